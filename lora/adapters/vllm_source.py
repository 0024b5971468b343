"""What an installed vLLM's own source says of LoRA: read as text in milliseconds, where an import takes a minute."""

import ast
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.launch.ask_python import ask_python
from engine.records import Installation

_WITHIN_S = 30.0
# find_spec of a package that lies at the top imports nothing.
_WHERE = "import importlib.util as u; print(*(u.find_spec('vllm').submodule_search_locations), sep='\\n')"

# `MaxLoRARanks = Literal[1, 8, …]` in config/lora.py (0.10.2 or 0.11 on); before it a tuple `possible_max_ranks` within
# a check of config.py or config/__init__.py.
_RANK_FILES = ("config/lora.py", "config/__init__.py", "config.py", "lora/config.py")
_RANK_NAMES = ("MaxLoRARanks", "possible_max_ranks")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What the class of an architecture declares. `embedding_modules` are the embeddings and output layers to which it
    can apply LoRA."""

    supports_lora: bool
    embedding_modules: frozenset[str]


def vllm_folder(installation: Installation, environ: Mapping[str, str]) -> Path | None:
    """The folder of the package `vllm` in an installation; None where its Python does not tell."""
    try:
        answer = ask_python(installation.python, installation.bin_dir, _WHERE, environ, _WITHIN_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    folders = [Path(line) for line in answer.stdout.splitlines() if line.strip()]
    return next((folder for folder in folders if folder.is_dir()), None)


def max_lora_ranks(folder: Path) -> tuple[int, ...] | None:
    """The values that `--max-lora-rank` may have, lowest first; None where the source does not tell."""
    for name in _RANK_FILES:
        tree = _parsed(folder / name)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id in _RANK_NAMES for target in node.targets
            ):
                found = {each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)}
                ranks = sorted(rank for rank in found if type(rank) is int)
                if ranks:
                    return tuple(ranks)
    return None


def model_source(folder: Path, architecture: str) -> ModelSource | None:
    """What vLLM's class for an `architectures` entry of config.json declares; None where it cannot be found."""
    models = folder / "model_executor" / "models"
    where = _registered(models / "registry.py", architecture)
    if where is None:
        return None
    module, name = where
    tree = _parsed(models / f"{module}.py")
    if tree is None:
        return None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    supports, embeddings = False, set[str]()
    waiting, seen = [name], set[str]()
    while waiting:  # the bases that stand in the same file: `MistralForCausalLM(LlamaForCausalLM)`
        if (one := waiting.pop()) in seen:
            continue
        seen.add(one)
        if one == "SupportsLoRA":
            supports = True
        elif (node := classes.get(one)) is not None:
            waiting += [_last_name(base) for base in node.bases]
            embeddings |= _declared(node)
        elif one != architecture and (inherited := model_source(folder, one)) is not None:
            supports, embeddings = supports or inherited.supports_lora, embeddings | inherited.embedding_modules
    return ModelSource(supports, frozenset(embeddings))


def _declared(node: ast.ClassDef) -> set[str]:
    """The keys of `embedding_modules = {…}` in the body of a class."""
    for each in node.body:
        targets = (
            each.targets if isinstance(each, ast.Assign) else [each.target] if isinstance(each, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "embedding_modules" for target in targets):
            value = each.value if isinstance(each, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Dict):
                return {str(key.value) for key in value.keys if isinstance(key, ast.Constant)}
    return set()


def _registered(registry: Path, architecture: str) -> tuple[str, str] | None:
    """`("llama", "LlamaForCausalLM")` of an entry `"LlamaForCausalLM": ("llama", "LlamaForCausalLM")`."""
    tree = _parsed(registry)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == architecture and isinstance(value, ast.Tuple):
                parts = [part.value for part in value.elts if isinstance(part, ast.Constant)]
                if len(parts) == 2:
                    return str(parts[0]), str(parts[1])
    return None


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None

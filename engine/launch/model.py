"""A model as a folder: whether it is one, and a cheap fingerprint of it."""

import hashlib
import json
import re
from pathlib import Path

from engine.records import ModelUnfit

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_HUB_NAME = re.compile(r"(?!\.)[\w.-]+(?:/(?!\.)[\w.-]+)?", re.ASCII)
_READ_WHOLE = ("config.json", "model.safetensors.index.json", "pytorch_model.bin.index.json", "quantize_config.json")


def check_model(path_or_name: str) -> None:
    """Nothing if vLLM could try to load `path_or_name`: a folder with config.json and weights, a .gguf file, or a
    hub name ("org/name"), of which only the form is checked. Raises ModelUnfit with one line otherwise."""
    text = path_or_name.strip()
    if not text:
        raise ModelUnfit("no model is given: give a model folder or a hub name such as Qwen/Qwen2.5-7B-Instruct")
    path = Path(text).expanduser()
    if path.is_file():
        if path.suffix != ".gguf":
            raise ModelUnfit(f"{text} is a file, not a model: give the folder that holds config.json")
        return
    if not path.exists():
        if _looks_like_path(text):
            raise ModelUnfit(f"{text} does not exist: give a model folder or a hub name such as org/name")
        return
    try:
        names = [entry.name for entry in path.iterdir()]
    except OSError as error:
        raise ModelUnfit(f"{text} cannot be read ({error.strerror}): check its permissions") from None
    _check_folder(text, path, names)


def _check_folder(text: str, path: Path, names: list[str]) -> None:
    mistral = "params.json" in names and any(name.startswith("consolidated") for name in names)
    if "config.json" not in names and not mistral:
        hint = (
            "it is a LoRA adapter; give its base model" if "adapter_config.json" in names else "it has no config.json"
        )
        raise ModelUnfit(f"{text} is not a model folder: {hint}")
    if "config.json" in names:
        try:
            config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        except OSError as error:
            raise ModelUnfit(f"{path / 'config.json'} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ModelUnfit(f"{path / 'config.json'} is not JSON ({error}): download the model again") from None
        if not isinstance(config, dict):
            raise ModelUnfit(f"{path / 'config.json'} is not a JSON object: download the model again")


def model_hash(path: str) -> str | None:
    """A fingerprint of a local model in hex, or None for a hub name or a folder that cannot be read.

    SHA-256 over the whole of config.json and the weight index, and the names and sizes of the weight files: reading
    30 GB would take minutes, and a changed checkpoint nearly always changes one of these. Times are left out, so a
    copy has the fingerprint of its original.
    """
    folder = Path(path).expanduser()
    digest = hashlib.sha256()
    try:
        if folder.is_file():
            digest.update(f"{folder.name} {folder.stat().st_size}".encode())
            return digest.hexdigest()
        if not folder.is_dir():
            return None
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.name in _READ_WHOLE:
                digest.update(f"file {entry.name}\0".encode() + entry.read_bytes() + b"\0")
            elif entry.suffix in _WEIGHTS:
                digest.update(f"weights {entry.name} {entry.stat().st_size}\0".encode())
    except OSError:
        return None
    return digest.hexdigest()


def _looks_like_path(text: str) -> bool:
    """Hub names are "name" or "org/name" of word characters, dots and dashes; all else can only be a path, and so is
    what names something in a folder that is here ("models/qwen")."""
    if not _HUB_NAME.fullmatch(text):
        return True
    return "/" in text and Path(text).parent.is_dir()

"""A package `transformers` for a Python of the tests, which has none: enough of it to count tokens by."""

import json
from pathlib import Path

import tests.lora.fake_tokenizer as fake_tokenizer

_AUTO = """

class AutoTokenizer:
    @staticmethod
    def from_pretrained(model):
        import os
        print("a library that prints where it likes")
        if not os.path.exists(os.path.join(model, "config.json")):
            raise OSError(f"{model} is no model\\nand more lines")
        path = os.path.join(model, "chat_template.jinja")
        return FakeTokenizer(open(path).read() if os.path.exists(path) else None)
"""
_UTILS = """
import os

def cached_file(model, name):
    return os.path.join(model, name)
"""


def make_transformers(folder: Path) -> Path:
    """The folder to put on a Python's path."""
    package = folder / "packages" / "transformers"
    package.mkdir(parents=True)
    source = Path(fake_tokenizer.__file__).read_text(encoding="utf-8")
    (package / "__init__.py").write_text(source + _AUTO, encoding="utf-8")
    (package / "utils.py").write_text(_UTILS, encoding="utf-8")
    return package.parent


def make_model(folder: Path, template: str | None = fake_tokenizer.CHATML) -> Path:
    """A model's folder as far as its tokenizer goes."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "fake"}), encoding="utf-8")
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder

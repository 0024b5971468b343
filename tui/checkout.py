"""What `make setup` made, where llmtune runs from a checkout."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
MODEL = Path("models") / "smollm2-135m"
VLLM = Path(".venv-vllm") / "bin" / "vllm"


def of_checkout(relative: Path) -> str | None:
    """Its path, or None where it was not made."""
    path = CHECKOUT / relative
    return str(path) if path.exists() else None

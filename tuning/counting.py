"""Short texts that several parts of a report use."""

import re


def short_model(model: str) -> str:
    """The last part of a path or hub name."""
    return re.split(r"[/\\]", model.rstrip("/\\"))[-1] or model


def span_text(seconds: float) -> str:
    """`40 s`, `12 min`, `5 h`, `5.4 days`."""
    if seconds >= 86_400:
        days = f"{seconds / 86_400:.1f}".removesuffix(".0")
        return f"{days} {'day' if days == '1' else 'days'}"
    for size, word in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {word}"
    return f"{seconds:.0f} s"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 run`, `1,200 runs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"

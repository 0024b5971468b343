"""How the classes of a picture look where no style sheet reaches it: copied out of the page, or drawn by a program
that knows none. The page's own colours, for light and dark, go over these."""

from collections.abc import Mapping

INK, SOFT, RULE, MARK, PAPER, BAND = "#1b1f24", "#57606a", "#d0d7de", "#6e7781", "#ffffff", "#e3ecf7"
VERDICTS = {
    "better": "#1a7f37",
    "worse": "#b42318",
    "infeasible": "#b42318",
    "equivalent": "#0b62b3",
    "undecided": "#7a5a00",
}
_ACCENT = VERDICTS["equivalent"]
_NONE = {"fill": "none"}

_LOOKS: Mapping[str, Mapping[str, str]] = {
    "label": {"fill": INK},
    "words": {"fill": INK},
    "note": {"fill": SOFT},
    "tick": {"fill": SOFT, "font-size": "11"},
    "on-front": {"font-weight": "600"},
    "axis": {"stroke": MARK},
    "grid": {"stroke": RULE, "stroke-width": "0.7"},
    "zero": {"stroke": INK, "stroke-width": "1.2"},
    "band": {"fill": BAND},
    "interval": {"stroke": MARK, "stroke-width": "2.2"},
    "whole": {"stroke": MARK, "stroke-width": "1.2", "stroke-dasharray": "3 2"},
    "point": {"fill": MARK},
    "bars": {"stroke": MARK, "stroke-width": "1", "opacity": "0.6"},
    "front": {**_NONE, "stroke": _ACCENT, "stroke-width": "1.5", "stroke-dasharray": "5 3"},
    "mark": {"fill": PAPER, "stroke": MARK, "stroke-width": "1.6"},
    "optimal": {"fill": _ACCENT, "stroke": _ACCENT},
    "uncounted": {**_NONE, "stroke-dasharray": "2 2"},
    "aside": {**_NONE, "stroke": VERDICTS["worse"], "stroke-width": "2.4"},
    "level": {**_NONE, "stroke": _ACCENT, "stroke-width": "2", "opacity": "0.7"},
}


def look(kind: str) -> dict[str, str]:
    """The attributes of an element with these classes, the later over the earlier."""
    found: dict[str, str] = {}
    for name in kind.split():
        verdict = VERDICTS.get(name.removeprefix("v-"))
        if name.startswith("v-") and verdict:
            found["stroke" if "stroke" in found else "fill"] = verdict
        else:
            found |= _LOOKS.get(name, {})
    return found

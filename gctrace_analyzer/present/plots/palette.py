"""The colours, dashes and markers of every chart, on light and on dark ground."""

from __future__ import annotations

from typing import Literal, NamedTuple

Dash = Literal["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"]
Symbol = Literal["circle", "square"]
Theme = Literal["auto", "light", "dark"]
"""The background for which colours are chosen; `auto` follows the reader's system."""

_COLORS = {
    "blue": ("#1a4fd6", "#3b72bf"),
    "sky": ("#3d9ba6", "#9ac8fe"),
    "green": ("#17451a", "#4a962a"),
    "violet": ("#8f7df2", "#ae93ff"),
    "slate": ("#5a6270", "#a3abb5"),
    "navy": ("#0d1150", "#eef1ff"),
    "ink": ("#1b1f24", "#e6e9ee"),
    "bad": ("#d93025", "#ff7a7a"),
    "warn": ("#b26a00", "#f0b84a"),
    "info": ("#8a8f98", "#7d858f"),
}
"""Colours by name, on light and on dark ground, with a contrast of at least 3:1. Colour-blind
readers can distinguish them too, as tests/present/plots/test_palette.py computes."""

_PAGE = {
    "ground": ("#ffffff", "#14171c"),
    "ink": ("#1b1f24", "#e6e9ee"),
    "dim": ("#59636e", "#a3acb8"),
    "line": ("#d8dee4", "#343b45"),
    "raised": ("#f6f8fa", "#1d2229"),
    "bad": ("#b03a00", "#ff9a66"),
    "warn": ("#8a5a00", "#f0b84a"),
    "ok": ("#00704f", "#4fd0a5"),
    "link": ("#005a9c", "#7cc4ff"),
    "blue": ("#1a4fd6", "#7cb3ff"),
}
"""The colours of pages and, for text, of terminals: text has a contrast of at least 4.5:1."""

LIGHT, DARK = ({name: pair[at] for name, pair in _COLORS.items()} for at in (0, 1))
PAGE = {
    theme: {name: pair[at] for name, pair in _PAGE.items()}
    for at, theme in enumerate(("light", "dark"))
}

_TERMINAL = {
    "green": "ok",
    "yellow": "warn",
    "cyan": "blue",
    "dim": "dim",
    "bold red": "bold bad",
    "bold yellow": "bold warn",
    "bold green": "bold ok",
}
"""The styles of printed lines, and the colours of `PAGE` that a theme gives them."""


def terminal_styles(theme: str) -> dict[str, str]:
    """Returns the styles of printed lines in colours for a light or a dark terminal.

    >>> terminal_styles("light")["bold red"]
    'bold #b03a00'
    """
    colors = PAGE[theme]
    return {
        style: " ".join(colors.get(word, word) for word in meant.split())
        for style, meant in _TERMINAL.items()
    }


SERIES = ("blue", "sky", "green", "violet", "slate", "navy")
SEVERITIES = ("bad", "warn", "info")
"""Bands and events have these colours, which no series has."""

NEUTRAL = "#7f7f7f"
"""Grid and notes: readable on both grounds."""


class Look(NamedTuple):
    """How a series looks: `color` is a key of `LIGHT` and `DARK`."""

    color: str
    dash: Dash = "solid"
    symbol: Symbol = "circle"

    @property
    def hex(self) -> str:
        """The colour on light ground."""
        return LIGHT[self.color]


LOOKS = {
    "heap start": Look("sky", "dot"),
    "live heap": Look("blue"),
    "heap goal": Look("green", "dash"),
    "resident": Look("violet", "dashdot"),
    "heap allocated": Look("slate", "dot"),
    "system": Look("navy", "longdash"),
    "killed": Look("violet", symbol="square"),
    "forced": Look("navy", symbol="square"),
    "GC CPU": Look("blue"),
    "with idle marking": Look("sky", "dot"),
    "mark assist": Look("violet"),
    "sweep termination": Look("sky", "dot", "square"),
    "mark termination": Look("blue"),
    "all pauses": Look("slate", "dash"),
    "allocation": Look("green"),
    "interval": Look("slate"),
    "trend": Look("navy", "dash"),
    "held": Look("violet", "dashdot"),
    "needed": Look("blue"),
    "heap in use": Look("sky", "dot"),
    "given back": Look("slate", "longdashdot"),
    "effective GOGC": Look("green"),
    "gogc": Look("blue"),
    "memory-limit": Look("navy", symbol="square"),
    "heap-minimum": Look("slate"),
    "predicted": Look("sky"),
    "now": Look("slate", symbol="square"),
    "advised": Look("blue"),
    "median": Look("blue"),
    "p99": Look("green", "dash"),
    "maximum": Look("violet", symbol="square"),
}
"""The same quantity looks the same in every plot."""

RUNS = (
    Look("blue"),
    Look("green", "dash"),
    Look("violet", "dashdot"),
    Look("slate", "dot"),
    Look("sky", "longdash"),
    Look("navy", "longdashdot"),
)
"""Several runs in one plot, in their order; runs of one side look the same."""

"""Numbers as bars of characters: each class has its own glyph and colour, so that a bar reads without colour too."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.text import Text

from c3prof.renderers.palette import CLASSES

PARTS = {"compute": "compute_ns", "hidden": "hidden_ns", "exposed": "exposed_ns", "exposed_copy": "exposed_copy_ns", "idle": "idle_ns"}
"""The parts of a row's span and the columns that they come from."""

GLYPHS = {"compute": "█", "hidden": "▓", "exposed": "▚", "exposed_copy": "▪", "idle": "·"}
WORDS = {
    "compute": "compute",
    "hidden": "compute hiding communication",
    "exposed": "exposed communication",
    "exposed_copy": "exposed copy",
    "idle": "idle",
}
ASCII = str.maketrans(
    {"█": "#", "▓": "=", "▚": "x", "▪": "o", "·": ".", "–": "-", "…": "~", "µ": "u", "▏": "|", "─": "-", "×": "x", "≥": ">", "│": "|"}
)
"""What stands for a glyph where the terminal cannot show it."""

_EIGHTHS = " ▏▎▍▌▋▊▉"


def stacked(parts: dict[str, float], width: int) -> Text:
    """One bar of `width` characters, shared among the classes by their values; empty when nothing is known."""
    values = np.nan_to_num(np.array(list(parts.values()), dtype=np.float64)).clip(min=0)
    bar = Text()
    if not values.sum() > 0:
        return bar
    for name, cells in zip(parts, _cells(values, width), strict=True):
        bar.append(GLYPHS[name] * cells, style=CLASSES[name])
    return bar


def accounted(row: Mapping[str, Any]) -> dict[str, float]:
    """The parts of a row's span, each instant once: compute alone, both, exposed, copies alone, nothing."""
    parts = {name: float(row[column] or 0) for name, column in PARTS.items()}
    parts["compute"] -= parts["hidden"]
    return parts


def legend() -> Text:
    """The glyph of each part with its word."""
    line = Text()
    for name in PARTS:
        line.append(f"{GLYPHS[name]} ", style=CLASSES[name])
        line.append(f"{WORDS[name]}   ", style="dim")
    line.rstrip()
    return line


def bar(value: float, largest: float, width: int, colour: str) -> Text:
    """A bar of value / largest, in eighths of a character; empty when the value is not known."""
    if not largest > 0 or not value > 0:
        return Text()
    eighths = max(1, round(8 * width * value / largest))
    return Text("█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else ""), style=colour)


def _cells(values: npt.NDArray[np.float64], width: int) -> list[int]:
    """Whole characters by largest remainder; what is there at all gets one."""
    exact = values / values.sum() * width
    cells = np.floor(exact).astype(int)
    cells[(values > 0) & (cells == 0)] = 1
    while cells.sum() > width:
        cells[np.argmax(cells)] -= 1
    while cells.sum() < width:
        cells[np.argmax(exact - cells)] += 1
    return [int(cell) for cell in cells]

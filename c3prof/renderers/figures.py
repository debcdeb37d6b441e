"""Report → figures, as the plain dicts that plotly draws; the HTML report and the app show the same.

A figure is {"data": [...], "layout": {...}}. None means that the report has nothing to draw it from. Text from a trace goes through
`plain`: plotly reads a few HTML tags in text, and a kernel's name must not become one.
"""

import html
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from c3prof.analysis.overlap import OUTSIDE
from c3prof.renderers.palette import CLASSES, colour
from c3prof.table import Report
from c3prof.units import NS_PER_MS, text_of_time

Figure = dict[str, Any]

_FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
_STEPS_SHOWN = 400
POINTS = 4_000
"""Points that a scatter has at most, over all its parts."""

_WRAPPERS = frozenset({"Kernel", "Kernel2", "kernel", "device_kernel"})
_SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "x",
    "star",
    "hexagon",
    "pentagon",
    "triangle-down",
    "bowtie",
    "hourglass",
)


def plain(text: object, length: int = 60) -> str:
    """A text of the trace as plotly shows it literally, cut in the middle to a length."""
    words = str(text)
    if len(words) > length:
        half = (length - 1) // 2
        words = f"{words[: length - 1 - half]}…{words[-half:]}"
    return html.escape(words, quote=False)


def short_kernel(name: object, length: int = 46) -> str:
    """What tells a kernel from another in a label: its function without call and template arguments, cut to a length.

    A wrapper such as cutlass::Kernel<name> is named by what it wraps.
    """
    text = str(name).removeprefix("void ").replace("(anonymous namespace)::", "")
    head, _, inside = text.partition("<")
    if head.rsplit("::", 1)[-1] in _WRAPPERS and inside:
        head = inside.split(",")[0].split(">")[0]
    head = head.partition("(")[0] if not head.startswith("Mem") else head
    return plain(head.strip() or text, length)


def figure(data: list[dict[str, Any]], x: str = "", y: str = "", *, height: int = 340, **layout: Any) -> Figure:
    """Traces with the layout that all figures share; x and y are axis titles."""
    has_legend = any("name" in trace for trace in data)
    axis: dict[str, Any] = {"gridcolor": "#D9DEE5", "zerolinecolor": "#B8BEC6", "linecolor": "#B8BEC6", "automargin": True}
    shared: dict[str, Any] = {
        "height": height,
        "autosize": True,
        "font": {"family": _FONT, "size": 13, "color": "#1B2430"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 64, "r": 18, "t": 40 if has_legend else 12, "b": 48},
        "legend": {"orientation": "h", "traceorder": "normal", "yanchor": "bottom", "y": 1.02, "x": 0},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#7A8694", "activecolor": "#0B61A4"},
        "showlegend": has_legend,
        "hoverlabel": {"bgcolor": "#1B2430", "bordercolor": "#1B2430", "font": {"family": _FONT, "color": "#FFFFFF"}, "align": "left"},
        "xaxis": axis | {"title": {"text": x}, "showgrid": False},
        "yaxis": axis | {"title": {"text": y}},
    }
    for name, value in layout.items():
        shared[name] = shared[name] | value if isinstance(value, dict) and isinstance(shared.get(name), dict) else value
    return {"data": data, "layout": shared}


def rows_of(report: Report, name: str) -> pd.DataFrame:
    """The rows of a table, none when the report lacks it."""
    return report[name].frame if name in report else pd.DataFrame()


def steps_only(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of real steps, their numbers as int."""
    if not len(frame):
        return frame
    frame = frame[frame["step"].notna() & (frame["step"].astype(str) != OUTSIDE)]
    return frame.assign(step=frame["step"].astype(str).astype(np.int64))


def numbers(frame: pd.DataFrame, column: str) -> "pd.Series[float]":
    """A column as float64, NaN where nothing is known."""
    return pd.to_numeric(frame[column], errors="coerce").astype(np.float64)


def hatched(shape: str) -> dict[str, Any]:
    """A pattern of white lines over the colour of a bar; none for an empty shape."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.65)", "size": 6, "solidity": 0.2}


PARTS = (
    ("compute alone", "compute"),
    ("hidden communication", "hidden"),
    ("exposed communication", "exposed"),
    ("exposed copy", "exposed_copy"),
    ("idle", "idle"),
)
"""The parts that a step is split into, in order, with their colours; they add up to the step."""


def parts_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The PARTS of each row of an overlap table, in ms; what is hidden counts once, as hidden."""
    hidden = numbers(frame, "hidden_ns").fillna(0)
    values = {
        "compute alone": numbers(frame, "compute_ns") - hidden,
        "hidden communication": hidden,
        "exposed communication": numbers(frame, "exposed_ns"),
        "exposed copy": numbers(frame, "exposed_copy_ns"),
        "idle": numbers(frame, "idle_ns"),
    }
    return pd.DataFrame(values) / NS_PER_MS


def step_bars(report: Report) -> Figure | None:
    """What each step is made of: mean over ranks and devices, stacked; one bar for the run when it has no steps."""
    frame = steps_only(rows_of(report, "overlap_by_step"))
    label = "step"
    if not len(frame):
        frame, label = rows_of(report, "overlap").assign(step=0), "run"
    if not len(frame):
        return None
    means = parts_of(frame).groupby(frame["step"]).mean().iloc[:_STEPS_SHOWN]
    count = len(frame.groupby(["rank", "device"], observed=True))
    total = means.sum(axis=1)
    data = [
        {
            "type": "bar",
            "name": name,
            "width": min(0.82, 0.2 * len(means)),
            "x": [str(step) for step in means.index],
            "y": means[name].round(4).tolist(),
            "customdata": (100 * means[name] / total.where(total > 0)).round(1).fillna(0).tolist(),
            "hovertemplate": f"{label} %{{x}}<br>{name} %{{y:.4~g}} ms, %{{customdata}} %<extra></extra>",
            "marker": {"color": CLASSES[cls], "pattern": hatched("/" if cls == "exposed" else "")},
        }
        for name, cls in PARTS
        if means[name].abs().max() > 0
    ]
    y = "ms" if count == 1 else f"ms, mean of {count:,} ranks"
    ticks = {"type": "category", "showticklabels": label == "step", "title": {"text": label}}
    return figure(data, label, y, barmode="stack", bargap=0.18, xaxis=ticks)


def run_bar(report: Report) -> Figure | None:
    """One horizontal bar: what all ranks' time went into, in percent."""
    frame = rows_of(report, "overlap")
    if not len(frame):
        return None
    total = parts_of(frame).sum()
    shares = 100 * total / total.sum() if total.sum() > 0 else total
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "x": [round(float(shares[name]), 3)],
            "y": [""],
            "text": [f"{shares[name]:.0f} %" if shares[name] >= 4 else ""],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "hovertemplate": f"{name} %{{x:.1f}} %, {text_of_time(total[name] * NS_PER_MS)}<extra></extra>",
            "marker": {"color": CLASSES[cls], "pattern": hatched("/" if cls == "exposed" else "")},
        }
        for name, cls in PARTS
        if shares[name] > 0
    ]
    return figure(
        data,
        barmode="stack",
        height=120,
        xaxis={"range": [0, 100.5], "ticksuffix": " %", "dtick": 20},
        margin={"l": 8, "r": 18, "t": 36, "b": 28},
    )


def exposed_rows(report: Report) -> pd.DataFrame:
    """The rows of the table exposed that name collective and cause together, with text in both."""
    frame = rows_of(report, "exposed")
    if not len(frame):
        return frame
    frame = frame[frame["by"].astype(str) == "combination"]
    return frame.assign(**{name: frame[name].astype(object).fillna("unknown").astype(str) for name in ("cause", "collective")})


def exposed_by_cause(report: Report) -> Figure | None:
    """Exposed time by cause, split by kind of collective."""
    frame = exposed_rows(report)
    if not len(frame):
        return None
    sums = frame.pivot_table("exposed_ns", "cause", "collective", "sum", fill_value=0) / NS_PER_MS
    order = sums.sum(axis=1).sort_values().index
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": plain(kind),
            "y": [plain(cause) for cause in order],
            "x": sums.loc[order, kind].round(4).tolist(),
            "marker": {"color": colour(str(kind))},
            "hovertemplate": "%{y}: %{x:.4~g} ms<extra>" + plain(kind).replace("%", "") + "</extra>",
        }
        for kind in sums.columns
    ]
    return figure(data, "ms of exposed communication", barmode="stack", height=120 + 34 * len(order), yaxis={"showgrid": False})


def kernel_times(report: Report, top: int = 15) -> Figure | None:
    """The kernels that take most time, coloured by class."""
    frame = rows_of(report, "kernels")
    named = frame[frame["by"].astype(str) == "kernel"] if len(frame) else frame
    if not len(named):
        return None
    keys = [named["kernel"].astype(str), named["kernel_class"].astype(object).fillna("other").astype(str)]
    sums = (numbers(named, "total_ns").groupby(keys).sum() / NS_PER_MS).sort_values().iloc[-top:]
    names = [short_kernel(kernel) for kernel, _ in sums.index]
    classes = [str(cls) for _, cls in sums.index]
    data = [_kernel_bars(sums, [place for place, one in enumerate(classes) if one == cls], cls) for cls in dict.fromkeys(classes[::-1])]
    ticks = {"tickvals": list(range(len(sums))), "ticktext": names, "showgrid": False}
    return figure(data, "ms, all ranks", height=150 + 24 * len(sums), yaxis=ticks, barmode="overlay")


def _kernel_bars(sums: "pd.Series[float]", places: list[int], cls: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": plain(cls),
        "width": 0.8,
        "y": places,
        "x": sums.iloc[places].round(4).tolist(),
        "customdata": [plain(sums.index[place][0], 160) for place in places],
        "hovertemplate": "%{customdata}<br>" + plain(cls).replace("%", "") + ": %{x:.4~g} ms<extra></extra>",
        "marker": {"color": colour(cls)},
    }


def heat_map(values: pd.DataFrame, x: str, y: str, unit: str, *, scale: Any = "Cividis", height: int = 0) -> Figure:
    """A map of a frame: a row a rank, a column a step; unit is written beside the values."""
    shown = values.round(4)
    data = {
        "type": "heatmap",
        "z": [[None if math.isnan(cell) else cell for cell in row] for row in shown.to_numpy(np.float64).tolist()],
        "x": [plain(name) for name in shown.columns],
        "y": [plain(name) for name in shown.index],
        "colorscale": scale,
        "hoverongaps": False,
        "colorbar": {"title": {"text": unit}, "thickness": 14},
        "hovertemplate": f"{y} %{{y}}, {x} %{{x}}<br>%{{z:.4~g}} {unit}<extra></extra>",
    }
    high = height or min(max(150 + 22 * len(shown), 260), 760)
    category = {"type": "category"}
    return figure([data], x, y, height=high, xaxis=category, yaxis=category | {"autorange": "reversed", "showgrid": False})


def thinned(frame: pd.DataFrame, most: int = POINTS) -> pd.DataFrame:
    """At most so many rows, evenly over the frame."""
    if len(frame) <= most:
        return frame
    return frame.iloc[np.linspace(0, len(frame) - 1, most).astype(np.int64)]


def symbols(names: Iterable[str]) -> dict[str, str]:
    """A marker for each name, so that a colour does not stand alone."""
    return {name: _SYMBOLS[place % len(_SYMBOLS)] for place, name in enumerate(sorted(names))}

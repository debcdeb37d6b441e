"""Figures of slowdown, interference, footprint and the scorecard."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.renderers.figures import Figure, figure, heat_map, numbers, plain, rows_of, short_kernel, thinned
from c3prof.renderers.palette import CLASSES, colour
from c3prof.table import Report
from c3prof.units import NS_PER_MS, NS_PER_US

_FACTORS = (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 8)
_DIVERGING = [[0.0, "#2166AC"], [0.5, "#F7F7F7"], [1.0, "#B2182B"]]


def co_runner_colour(co_runner: str) -> str:
    """The colour of a co-runner such as comm:all_reduce, compute:gemm, copy or mixed."""
    cls, _, kind = co_runner.partition(":")
    return colour(kind) if kind else CLASSES.get(cls, CLASSES["unknown"])


def slowdown_ranking(report: Report, top: int = 15) -> Figure | None:
    """The rows that lose most time, with their slowdown and its 95 % interval; 1.0 is no slowdown."""
    frame = rows_of(report, "slowdown")
    if not len(frame):
        return None
    frame = frame[numbers(frame, "slowdown").notna()]
    frame = frame.assign(lost=numbers(frame, "lost_ns").fillna(0)).sort_values("lost", ascending=False).head(top).iloc[::-1]
    if not len(frame):
        return None
    factor, low, high = (numbers(frame, name).to_numpy() for name in ("slowdown", "slowdown_low", "slowdown_high"))
    sure = frame["interference"].to_numpy(bool)
    about = [
        [
            plain(row["kernel"], 120),
            plain(row["co_runner"]),
            round(row["lost"] / NS_PER_MS, 4),
            int(row["n_clean"]),
            int(row["n_overlapped"]),
        ]
        for row in frame.to_dict("records")
    ]
    data = {
        "type": "scatter",
        "mode": "markers",
        "x": factor.round(4).tolist(),
        "y": list(range(len(frame))),
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": _known(high - factor),
            "arrayminus": _known(factor - low),
            "color": "#7A8694",
            "thickness": 1.6,
        },
        "marker": {
            "size": 11,
            "color": [co_runner_colour(str(one)) for one in frame["co_runner"]],
            "symbol": ["circle" if one else "circle-open" for one in sure],
            "line": {"width": 2, "color": [co_runner_colour(str(one)) for one in frame["co_runner"]]},
        },
        "customdata": about,
        "hovertemplate": "%{customdata[0]}<br>beside %{customdata[1]}: %{x:.2f}×, lost %{customdata[2]:.4~g} ms"
        "<br>%{customdata[3]} clean, %{customdata[4]} overlapped<extra></extra>",
    }
    names = [f"{short_kernel(row['kernel'])} | {plain(row['co_runner'], 24)}" for row in frame.to_dict("records")]
    line = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": {"dash": "dot", "color": "#7A8694"}}
    ticks = {"tickvals": list(range(len(frame))), "ticktext": names}
    return figure(
        [data], "slowdown (1 = none); filled: interference", height=100 + 26 * len(frame), yaxis=ticks, shapes=[line], showlegend=False
    )


def _known(values: npt.NDArray[np.float64]) -> list[float]:
    return [0.0 if math.isnan(value) else round(max(float(value), 0.0), 4) for value in values]


def slowdown_samples(samples: pd.DataFrame, row: Mapping[str, Any]) -> Figure | None:
    """Durations of one signature against the share of each that was overlapped, with the fitted curve and its interval.

    samples: `duration_ns`, `shared_ns`, `clean` (bool), a row a sample. row: of the table slowdown. The model
    w = (d − o) + o/s gives d = w / (1 − f·(1 − 1/s)) at the overlap fraction f = o/d.
    """
    if not len(samples):
        return None
    fraction = (samples["shared_ns"] / samples["duration_ns"].where(samples["duration_ns"] > 0)).fillna(0)
    data = [_points(samples, fraction, clean=clean) for clean in (True, False)]
    data = [*_fit(row), *data]
    return figure(data, "overlap fraction of the sample", "duration in µs", xaxis={"range": [-0.03, 1.03]}, yaxis={"rangemode": "tozero"})


def _points(samples: pd.DataFrame, fraction: "pd.Series[float]", *, clean: bool) -> dict[str, Any]:
    mine = samples["clean"].to_numpy(bool) == clean
    chosen = thinned(samples[mine])
    name = "clean" if clean else "overlapped"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name} ({int(mine.sum()):,})",
        "x": fraction[chosen.index].round(4).tolist(),
        "y": (chosen["duration_ns"] / NS_PER_US).round(3).tolist(),
        "marker": {
            "symbol": "circle" if clean else "diamond",
            "color": CLASSES["compute"] if clean else CLASSES["exposed"],
            "opacity": 0.75,
            "size": 8,
        },
        "hovertemplate": name + ": %{y:.4~g} µs, %{x:.0%} overlapped<extra></extra>",
    }


def _fit(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    alone, factor = _number(row.get("clean_ns")), _number(row.get("slowdown"))
    if math.isnan(alone) or math.isnan(factor):
        return []
    at = np.linspace(0, 1, 41)
    low, high = _number(row.get("slowdown_low")), _number(row.get("slowdown_high"))
    parts: list[dict[str, Any]] = []
    if not math.isnan(low + high):
        band = np.concatenate([_curve(alone, high, at), _curve(alone, low, at)[::-1]])
        parts.append(
            {
                "type": "scatter",
                "x": np.concatenate([at, at[::-1]]).tolist(),
                "y": band.round(3).tolist(),
                "fill": "toself",
                "fillcolor": "rgba(213,94,0,0.15)",
                "line": {"width": 0},
                "name": f"95 % interval {low:.2f} to {high:.2f}",
                "hoverinfo": "skip",
            }
        )
    line = {"type": "scatter", "mode": "lines", "x": at.tolist(), "y": _curve(alone, factor, at).round(3).tolist()}
    parts.append(line | {"name": f"slowdown {factor:.2f}×", "line": {"color": CLASSES["exposed"], "width": 2.5}, "hoverinfo": "skip"})
    return parts


def _curve(alone: float, factor: float, at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return alone / NS_PER_US / np.maximum(1 - at * (1 - 1 / factor), 0.02)


def _number(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan


def interference_map(report: Report) -> Figure | None:
    """Slowdown by class of kernel (rows) and co-runner (columns); white is none, red slower, blue faster (log scale)."""
    frame = rows_of(report, "interference")
    if not len(frame):
        return None
    if not numbers(frame, "slowdown").notna().any():
        return None
    frame = frame.assign(factor=numbers(frame, "slowdown"), co=frame["co_runner"].astype(str), of=frame["kernel_class"].astype(str))
    values = frame.pivot_table("factor", "of", "co", "median")
    made = heat_map(np.log2(values), "co-runner", "class", "×", scale=_DIVERGING, height=max(240, 170 + 34 * len(values)))
    widest = max(float(np.nanmax(np.abs(np.log2(values.to_numpy(np.float64))))), 0.2)
    texts = [["" if math.isnan(cell) else f"{cell:.2f}" for cell in line] for line in values.to_numpy(np.float64).tolist()]
    ticks = {"tickvals": [math.log2(factor) for factor in _FACTORS], "ticktext": [f"{factor:g}" for factor in _FACTORS]}
    made["data"][0] |= {
        "zmin": -widest,
        "zmax": widest,
        "text": texts,
        "texttemplate": "%{text}",
        "hoverinfo": "x+y+text",
        "hovertemplate": None,
    }
    made["data"][0]["colorbar"] |= ticks
    return made


def scorecard_bars(report: Report) -> Figure | None:
    """Serial, ideal and concurrent time of the regions of those ranks whose ratios are known, in ms."""
    frame = rows_of(report, "c3")
    names = [
        ("serial", "serial_ns", "#7A8694"),
        ("concurrent (measured)", "concurrent_ns", CLASSES["exposed"]),
        ("ideal", "ideal_ns", CLASSES["compute"]),
    ]
    frame = frame[numbers(frame, "ideal_speedup").notna()] if len(frame) else frame
    if not len(frame):
        return None
    sums = {name: numbers(frame, column).sum(min_count=1) / NS_PER_MS for name, column, _ in names}
    if any(math.isnan(value) for value in sums.values()):
        return None
    data = {
        "type": "bar",
        "orientation": "h",
        "y": list(sums)[::-1],
        "x": [round(value, 4) for value in sums.values()][::-1],
        "marker": {"color": [shade for _, _, shade in names][::-1]},
        "text": [f"{value:,.4g} ms" for value in sums.values()][::-1],
        "hovertemplate": "%{y}: %{x:.5~g} ms<extra></extra>",
    }
    return figure([data], "ms in regions where both run, all ranks", height=220, showlegend=False, yaxis={"showgrid": False})


def waves(report: Report) -> Figure | None:
    """Waves of compute kernels alone and with the SMs that communication takes; most shared time first."""
    frame = rows_of(report, "footprint")
    pairs = ["waves", "waves_beside"]
    if not len(frame):
        return None
    shown = frame[frame[pairs].apply(pd.to_numeric, errors="coerce").notna().all(axis=1)]
    shown = shown.assign(shared=numbers(shown, "shared_ns")).sort_values("shared", ascending=False).head(15).iloc[::-1]
    if not len(shown):
        return None
    names = [f"{short_kernel(row['kernel'])} | {short_kernel(row['co_runner'], 28)}" for row in shown.to_dict("records")]
    styles = zip(pairs, ("#7A8694", CLASSES["exposed"]), strict=True)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": {"waves": "alone", "waves_beside": "beside communication"}[column],
            "x": numbers(shown, column).tolist(),
            "y": list(range(len(shown))),
            "marker": {"color": shade},
        }
        for column, shade in styles
    ]
    ticks = {"tickvals": list(range(len(shown))), "ticktext": names, "showgrid": False}
    return figure(data, "waves of thread blocks", height=150 + 30 * len(shown), barmode="group", yaxis=ticks)

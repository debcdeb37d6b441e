"""Figures of collectives and ranks: bandwidth by size, where their time goes, who waits for whom."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from c3prof.renderers.figures import POINTS, Figure, figure, hatched, heat_map, numbers, plain, rows_of, steps_only, symbols, thinned
from c3prof.renderers.palette import CLASSES, colour
from c3prof.table import Report
from c3prof.units import NS_PER_MS, NS_PER_US

_CELLS = 200_000
"""Cells that a map has at most."""

MEASURES = {"exposed_ns": "exposed time", "wait_ns": "waiting in collectives", "compute_ns": "compute"}
"""What the map of ranks and steps can show."""


def busbw_by_size(report: Report) -> Figure | None:
    """Bus bandwidth of each collective against its message size, by kind, with the line that was fitted."""
    frame = rows_of(report, "collectives")
    if not len(frame):
        return None
    frame = frame.assign(size=numbers(frame, "size_bytes"), bandwidth=numbers(frame, "busbw_gb_s"))
    frame = frame[(frame["size"] > 0) & frame["bandwidth"].notna()]
    if not len(frame):
        return None
    kinds = frame["collective"].astype(str)
    marks = symbols(kinds.unique())
    data = [_points(thinned(frame[kinds == kind], POINTS // len(marks)), kind, marks[kind]) for kind in sorted(marks)]
    data += list(_fits(report, frame))
    bound = frame["lower_bound"].to_numpy(bool)
    title = "busbw in GB/s" + (" (lower bounds: one rank only)" if bound.all() else "")
    return figure(
        data, "message size in bytes", title, height=400, xaxis={"type": "log", "exponentformat": "SI"}, yaxis={"rangemode": "tozero"}
    )


def _points(frame: pd.DataFrame, kind: str, symbol: str) -> dict[str, Any]:
    about = [
        [plain(row["group"]), str(row["rank"]), "≥ " if row["lower_bound"] else ""]
        for row in frame[["group", "rank", "lower_bound"]].to_dict("records")
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(kind),
        "x": frame["size"].tolist(),
        "y": frame["bandwidth"].round(4).tolist(),
        "customdata": about,
        "marker": {"color": colour(kind), "symbol": symbol, "size": 8, "opacity": 0.75},
        "hovertemplate": "%{x:.4~s}B, %{customdata[2]}%{y:.4~g} GB/s<br>group %{customdata[0]}, rank %{customdata[1]}<extra></extra>",
    }


def _fits(report: Report, points: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """busbw = factor · S / (α + S/β) for each fitted kind; the factor is that of its points."""
    for row in rows_of(report, "bandwidth_fit").to_dict("records"):
        alpha, bandwidth = row.get("alpha_ns"), row.get("bandwidth_gb_s")
        kind = str(row.get("collective"))
        mine = points[points["collective"].astype(str) == kind]
        if alpha is None or bandwidth is None or math.isnan(float(alpha)) or not float(bandwidth) > 0 or not len(mine):
            continue
        factor = float((mine["bandwidth"] / numbers(mine, "algbw_gb_s")).median())
        size = np.geomspace(mine["size"].min() / 1.5, mine["size"].max() * 1.5, 60)
        values = factor * size / (float(alpha) + size / float(bandwidth))
        yield {
            "type": "scatter",
            "mode": "lines",
            "x": size.tolist(),
            "y": values.round(4).tolist(),
            "name": f"{plain(kind)}: α {float(alpha) / NS_PER_US:.3g} µs, {float(bandwidth):.3g} GB/s",
            "line": {"color": colour(kind), "width": 2},
            "hoverinfo": "skip",
        }


def time_by_kind(report: Report) -> Figure | None:
    """Where the time of collectives goes, by kind: waiting for peers, transfer, and what cannot be told apart."""
    frame = rows_of(report, "collectives")
    if not len(frame):
        return None
    known = numbers(frame, "wait_ns").notna() & numbers(frame, "transfer_ns").notna()
    parts = pd.DataFrame(
        {
            "kind": frame["collective"].astype(str),
            "wait": numbers(frame, "wait_ns").where(known),
            "transfer": numbers(frame, "transfer_ns").where(known),
            "not split": numbers(frame, "duration_ns").where(~known),
        }
    )
    sums = parts.groupby("kind").sum() / NS_PER_MS
    order = sums.sum(axis=1).sort_values().index
    shades = {"wait": CLASSES["wait"], "transfer": CLASSES["transfer"], "not split": CLASSES["idle"]}
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": [plain(kind) for kind in order],
            "x": sums.loc[order, name].round(4).tolist(),
            "marker": {"color": shade, "pattern": hatched("\\" if name == "wait" else "")},
            "hovertemplate": "%{y}: " + name + " %{x:.4~g} ms<extra></extra>",
        }
        for name, shade in shades.items()
        if sums[name].sum() > 0
    ]
    return figure(data, "ms, all ranks", barmode="stack", height=120 + 34 * len(order), yaxis={"showgrid": False})


def rank_map(report: Report, measure: str = "exposed_ns") -> Figure | None:
    """A measure of MEASURES by rank and step, in ms."""
    name = "collectives" if measure == "wait_ns" else "overlap_by_step"
    frame = rows_of(report, name)
    if not len(frame) and name == "overlap_by_step":
        frame = rows_of(report, "overlap").assign(step=0)
    if not len(frame) or measure not in frame:
        return None
    frame = frame.assign(value=numbers(frame, measure) / NS_PER_MS)
    frame = _with_steps(frame)
    frame = frame[frame["value"].notna()]
    if not len(frame):
        return None
    values = frame.pivot_table("value", "rank", "step", "sum")
    shown = values.iloc[:, : max(_CELLS // len(values), 1)]
    label = "step" if shown.shape == values.shape else f"step (the first {shown.shape[1]:,} of {values.shape[1]:,})"
    return heat_map(shown, label, "rank", "ms")


def _with_steps(frame: pd.DataFrame) -> pd.DataFrame:
    if pd.api.types.is_integer_dtype(frame["step"].dtype) and not (frame["step"] >= 0).any():
        return frame.assign(step=0)
    return steps_only(frame)


def straggler_bars(report: Report, top: int = 20) -> Figure | None:
    """How long the others waited for each rank, by cause; the ranks that cost most."""
    frame = rows_of(report, "stragglers")
    if not len(frame):
        return None
    frame = frame.assign(
        waited=numbers(frame, "caused_wait_ns") / NS_PER_MS, cause=frame["cause"].astype(object).fillna("unknown").astype(str)
    )
    worst = frame.groupby("rank")["waited"].sum().sort_values(ascending=False)
    worst = worst[worst > 0].head(top)
    if not len(worst):
        return None
    shades = {"compute-late": CLASSES["compute"], "launch-late": CLASSES["launch"], "comm-late": CLASSES["comm"]}
    data = [
        {
            "type": "bar",
            "name": plain(cause),
            "x": [str(rank) for rank in worst.index],
            "y": [round(float(rows.loc[rows["rank"] == rank, "waited"].sum()), 4) for rank in worst.index],
            "marker": {"color": shades.get(cause, CLASSES["unknown"])},
            "hovertemplate": "rank %{x}: others waited %{y:.4~g} ms<extra>" + plain(cause).replace("%", "") + "</extra>",
        }
        for cause, rows in frame.groupby("cause")
    ]
    return figure(data, "rank that came last", "ms that others waited", barmode="stack", xaxis={"type": "category"})

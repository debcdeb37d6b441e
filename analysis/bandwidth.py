"""Latency and bandwidth of each kind of communication: t = α + size / B over the transfers."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.clock_fit import medians
from c3prof.analysis.joined import Joined
from c3prof.analysis.significance import t_factor
from c3prof.analysis.waits import Waits
from c3prof.table import Column, Schema, Table

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BANDWIDTH_FIT = Schema(
    "bandwidth_fit",
    "Latency and bandwidth by kind, group and link, from transfers of different sizes",
    (
        Column("collective", "object", "", "kind; send/recv together as recv"),
        Column("group", "object", "", "process group"),
        Column("link", "object", "", "intra-node or inter-node, null unknown"),
        Column("n", "int64", "", "operations, each a point: the median transfer over its ranks"),
        Column("alpha_ns", "float64", "ns", "time of an empty message"),
        Column("alpha_low", "float64", "ns", "lower end of the 95 % interval"),
        Column("alpha_high", "float64", "ns", "upper end"),
        Column("bandwidth_gb_s", "float64", "GB/s", "size over time of a long message (algorithm bandwidth)"),
        Column("bandwidth_low", "float64", "GB/s", "lower end of the 95 % interval"),
        Column("bandwidth_high", "float64", "GB/s", "upper end"),
        Column("half_size_bytes", "float64", "B", "α · B: message that reaches half of the bandwidth"),
        Column("bound", "object", "", "latency or bandwidth: what more than half of the time of all points is spent on"),
        Column("note", "object", "", "why there is no number"),
    ),
)


@dataclass(frozen=True)
class Points:
    """One element an operation: kind and group codes, size in bytes, transfer in ns; kinds: names of the codes."""

    kind: Codes
    group: Codes
    size: Floats
    transfer: Floats
    kinds: list[str]


@dataclass(frozen=True)
class Line:
    """t = alpha + size / bandwidth, with 95 % intervals; bandwidth in bytes per ns, which are GB/s."""

    alpha: float
    alpha_low: float
    alpha_high: float
    bandwidth: float
    bandwidth_low: float
    bandwidth_high: float


def bandwidth_fit(run: Joined, split: Waits, groups: Table) -> Table:
    """Table `bandwidth_fit`. groups: table `process_groups`.

    Left out: the first collective of each recording window, transfers below 3 clock bounds, unknown sizes.
    """
    points = transfer_points(run, split)
    key = points.kind * (len(run.groups.table) + 1) + points.group
    rows = []
    for value in np.unique(key):
        here = key == value
        kind, group = points.kinds[points.kind[here][0]], int(points.group[here][0])
        rows.append(
            (kind, *groups.frame.loc[group, ["group", "link"]], int(here.sum()), *_described(points.size[here], points.transfer[here]))
        )
    return Table.of(BANDWIDTH_FIT, dict(zip(BANDWIDTH_FIT.names, map(list, zip(*rows, strict=True)), strict=True)) if rows else None)


def transfer_points(run: Joined, split: Waits) -> Points:
    """The operations whose transfer can be used."""
    frame = run.trace.collectives
    kind, size = frame["collective"].astype("category"), frame["size_bytes"].to_numpy()
    kept = (
        run.asked
        & np.isfinite(split.transfer_ns)
        & (size > 0)
        & ~split.reasons["first"]
        & ~split.reasons["below bound"]
        & (kind != "send").to_numpy()
    )
    rows = np.flatnonzero(kept & (split.transfer_ns > 0))
    n = int(split.operation.max(initial=-1)) + 1
    transfer = medians(split.operation[rows], split.transfer_ns[rows], n)
    first = np.unique(split.operation[rows], return_index=True)[1]
    at = rows[first]
    names = [str(name) for name in kind.cat.categories]
    return Points(
        kind.cat.codes.to_numpy()[at].astype(np.int64), run.groups.code[at], size[at].astype(float), transfer[split.operation[at]], names
    )


def fitted_line(size: Floats, time: Floats) -> Line | None:
    """The Line through (size in bytes, time in ns), weighted by 1/time²: least relative residuals. None when it has no slope.

    Intervals: t distribution with n − 2 degrees of freedom; bandwidth_high is NaN where the slope may be 0.
    """
    design = np.stack([1 / time, size / time], axis=1)
    normal = design.T @ design
    if len(size) < 3 or len(np.unique(size)) < 2 or np.linalg.cond(normal / np.outer(*[np.sqrt(np.diag(normal))] * 2)) > 1e12:
        return None
    alpha, slope = np.linalg.solve(normal, design.sum(axis=0))
    residual = 1 - design @ np.array([alpha, slope])
    covariance = np.linalg.inv(normal) * float(residual @ residual) / (len(size) - 2)
    reach = t_factor(len(size) - 2) * np.sqrt(np.diag(covariance))
    if slope <= 0:
        return None
    ends = (1 / (slope + reach[1]), 1 / (slope - reach[1]) if slope > reach[1] else math.nan)
    return Line(float(alpha), float(alpha - reach[0]), float(alpha + reach[0]), float(1 / slope), float(ends[0]), float(ends[1]))


def _described(size: Floats, time: Floats) -> tuple[object, ...]:
    line = fitted_line(size, time)
    if line is None:
        why = (
            "fewer than 3 operations"
            if len(size) < 3
            else "one message size only"
            if len(np.unique(size)) < 2
            else "time does not grow with size"
        )
        return (*[math.nan] * 7, None, why)
    latency = np.clip(line.alpha / time, 0, 1)
    spent = "latency" if float((latency * time).sum()) * 2 > float(time.sum()) else "bandwidth"
    note = (
        "negative latency: other than a line"
        if line.alpha < 0
        else "too few or too scattered points for an upper end"
        if math.isnan(line.bandwidth_high)
        else ""
    )
    return (
        line.alpha,
        line.alpha_low,
        line.alpha_high,
        line.bandwidth,
        line.bandwidth_low,
        line.bandwidth_high,
        max(line.alpha, 0.0) * line.bandwidth,
        spent,
        note,
    )


def line_of(fit: pd.DataFrame, collective: str, group: object) -> Line | None:
    """The Line of a row of table `bandwidth_fit`, None where it has none."""
    rows = fit[(fit["collective"] == collective) & (fit["group"] == group) & fit["bandwidth_gb_s"].notna()]
    if not len(rows):
        return None
    names = ("alpha_ns", "alpha_low", "alpha_high", "bandwidth_gb_s", "bandwidth_low", "bandwidth_high")
    return Line(*(float(rows.iloc[0][name]) for name in names))

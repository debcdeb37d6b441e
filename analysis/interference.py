"""The slowdown of whole kernel classes, and which numbers are interference (docs/metrics.md §3, Sureness)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.samples import MIXED_LABEL
from c3prof.analysis.segments import FloatArray, ratio
from c3prof.analysis.significance import q_values, t_factor, t_p_value
from c3prof.table import Column, Schema

INTERFERENCE = Schema(
    "interference",
    "Slowdown of each class of kernels beside each kind of co-runner: the samples of `slowdown` together",
    (
        Column("rank", "int32", "", "global rank; negative when the file does not name it"),
        Column("kernel_class", "object", "", "class of the kernels; comm:KIND for collectives"),
        Column("co_runner", "object", "", "what ran beside them"),
        Column("n_signatures", "int64", "", "signatures with a number"),
        Column("n_clean", "int64", "", "their clean samples"),
        Column("n_overlapped", "int64", "", "their overlapped samples"),
        Column("slowdown", "float64", "", "of all their shared time together"),
        Column("slowdown_low", "float64", "", "lower end of its 95 % interval"),
        Column("slowdown_high", "float64", "", "upper end of its 95 % interval"),
        Column("p_value", "float64", "", "two-sided, for a slowdown of 1"),
        Column("q_value", "float64", "", "p_value after Benjamini-Hochberg over the rows of this table"),
        Column("interference", "bool", "", "q_value ≤ 0.05 and the slowdown differs from 1 by 0.02 or more"),
        Column("lost_ns", "float64", "ns", "duration beyond the time alone, of every signature where it is known"),
        Column("note", "object", "", "why there is no number"),
    ),
)

_LEAST_EFFECT, _LEVEL = 0.02, 0.05
_KEYS = ["kernel_class", "co_runner"]


def flagged(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with q_value and interference set over all of them together."""
    q = q_values(frame["p_value"].to_numpy(dtype=float))
    slowdown = frame["slowdown"].to_numpy(dtype=float)
    with np.errstate(invalid="ignore"):
        real = (q <= _LEVEL) & (np.abs(slowdown - 1) >= _LEAST_EFFECT)
    return frame.assign(q_value=q, interference=real)


def interference_rows(measured: pd.DataFrame, residuals: pd.DataFrame) -> pd.DataFrame:
    """The rows of INTERFERENCE for one rank without `rank` and without the judgement over all rows.

    measured: of slowdown.measured_rows with kernel_class and co_runner; residuals: its second frame. r = Σ r·o / Σ o
    over the rows with a number. The error is the larger of two: rows as independent, and steps as independent (what
    a step does to all its kernels does not average out over them).
    """
    best = measured[measured["best"] & (measured["co_runner"] != MIXED_LABEL)]
    if not len(best):
        return pd.DataFrame({name: [] for name in INTERFERENCE.names if name != "rank"})
    known = best[best["rate"].notna()]
    rows = best.groupby(_KEYS, as_index=False, sort=True)["lost_ns"].sum(min_count=1)
    weighted = known.assign(progress=known["rate"] * known["shared_ns"], square=(known["error"] * known["shared_ns"]) ** 2, n_signatures=1)
    names = ["n_signatures", "n_clean", "n_overlapped", "shared_ns", "progress", "square"]
    rows = rows.merge(weighted.groupby(_KEYS, as_index=False)[names].sum(), on=_KEYS, how="left")
    by_step, steps = _step_errors(known, residuals, rows[_KEYS])
    shared = rows["shared_ns"].to_numpy(dtype=float)
    rate = ratio(rows["progress"], shared)
    error = ratio(np.sqrt(np.fmax(rows["square"].to_numpy(dtype=float), by_step)), shared)
    freedom = np.maximum(steps - 1.0, 5.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        reach = t_factor(freedom) * error
        bounded = (rate > 0) & (rate - reach > 0)
        p_value = t_p_value(np.clip((rate - 1) / error, -1e8, 1e8), freedom)
    numbers = {
        "slowdown": ratio(1, rate),
        "slowdown_low": ratio(1, rate + reach),
        "slowdown_high": ratio(1, rate - reach),
        "p_value": p_value,
    }
    rows = rows.assign(**{name: np.where(bounded, value, np.nan) for name, value in numbers.items()}, q_value=np.nan, interference=False)
    rows = rows.assign(**{name: rows[name].fillna(0).astype(int) for name in ("n_signatures", "n_clean", "n_overlapped")})
    rows["note"] = _reasons(rows["n_signatures"].to_numpy(), bounded)
    return rows.drop(columns=["shared_ns", "progress", "square"])


def _step_errors(known: pd.DataFrame, residuals: pd.DataFrame, keys: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Σ over steps of (Σ residual)² of each class, times S/(S − 1), and S; NaN and 0 with fewer than 6 steps."""
    used = residuals.merge(known[["signature", "label", "evidence", *_KEYS]], on=["signature", "label", "evidence"])
    by_step = used.groupby([*_KEYS, "step"], as_index=False)["residual_ns"].sum()
    by_step = by_step.assign(square=by_step["residual_ns"] ** 2, steps=1)
    sums = keys.merge(by_step.groupby(_KEYS, as_index=False)[["square", "steps"]].sum(), on=_KEYS, how="left")
    steps = sums["steps"].fillna(0).to_numpy(dtype=float)
    enough = steps >= 6
    return np.where(enough, sums["square"] * ratio(steps, steps - 1), np.nan), np.where(enough, steps, 0)


def _reasons(n_signatures: npt.NDArray[np.int64], bounded: npt.NDArray[np.bool_]) -> Sequence[str | None]:
    return [
        None if ok else "rate not identifiable" if n else "no signature has a number" for n, ok in zip(n_signatures, bounded, strict=True)
    ]

"""How much each kernel is slowed by what runs beside it, with a control and an interval (docs/metrics.md §3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.clock import COARSEST_TICK_NS
from c3prof.analysis.dose_response import dose_response
from c3prof.analysis.estimator import MINIMUM, Rates, rates
from c3prof.analysis.mixture import mixed
from c3prof.analysis.resampling import Counts
from c3prof.analysis.samples import CLEAN, MIXED, MIXED_LABEL, OVERLAPPED, SLIGHT, Samples
from c3prof.analysis.segments import FloatArray, Segments
from c3prof.analysis.sides import Rows, Sides, rows_of
from c3prof.analysis.significance import t_factor
from c3prof.records import CONCURRENT, SERIALIZED
from c3prof.table import Column, Schema

SLOWDOWN = Schema(
    "slowdown",
    "Slowdown of each kernel beside each kind of co-runner; intervals are 95 % each, unadjusted",
    (
        Column("rank", "int32", "", "global rank; negative when the file does not name it"),
        Column("kernel", "object", "", "name of the kernel"),
        Column("signature", "object", "", "kernels that do the same work: same name, launch, operator and sizes (or place in the step)"),
        Column("op", "object", "", "operator that launched it; kind of a collective"),
        Column("input_dims", "object", "", "input dims of the operator; message size of a collective; null when not recorded"),
        Column("co_runner", "object", "", "what ran beside it, on other streams of the device; mixed: several kinds at once"),
        Column("n_clean", "int64", "", "samples with nothing else on the device"),
        Column("n_overlapped", "int64", "", "samples beside this co-runner that were used"),
        Column("clean_ns", "float64", "ns", "median duration alone"),
        Column("overlapped_ns", "float64", "ns", "median duration beside the co-runner"),
        Column("slowdown", "float64", "", "time with the co-runner over time alone, per shared time; 1 is none"),
        Column("slowdown_low", "float64", "", "lower end of its 95 % interval"),
        Column("slowdown_high", "float64", "", "upper end of its 95 % interval"),
        Column("p_value", "float64", "", "two-sided, for a slowdown of 1"),
        Column("q_value", "float64", "", "p_value after Benjamini-Hochberg over all rows with a number"),
        Column("interference", "bool", "", "q_value ≤ 0.05 and the slowdown differs from 1 by 0.02 or more"),
        Column("lost_ns", "float64", "ns", "duration beyond the time alone, summed over the overlapped samples; negative is a gain"),
        Column("evidence", "object", "", "what the time alone rests on: calibration, same-trace, baseline, dose-response or none"),
        Column("note", "object", "", "why there is no number, and what to know about one"),
    ),
)

CALIBRATION, SAME_TRACE, BASELINE, DOSE_RESPONSE, NO_EVIDENCE = LADDER = ("calibration", "same-trace", "baseline", "dose-response", "none")

_TICKS = 10
_WIDE = 0.3
_DISAGREEMENT = 0.1
_MANY = 0.15  # of the samples: more are no outliers but another kind of work


@dataclass(frozen=True)
class Context:
    """What all rows of one device share: timer tick, resample counts, and the kernel class of each signature."""

    tick_ns: float
    counts: Counts
    group: npt.NDArray[np.int64]


def tick_of(ranks: pd.DataFrame) -> float:
    """The timer's resolution in ns; at most 1 µs, since no recorder is coarser: a larger gcd is chance in a short file."""
    return float(np.clip(ranks["tick_ns"].min(), 1, COARSEST_TICK_NS)) if len(ranks) else 1.0


def measured_rows(samples: Samples, context: Context, baseline: tuple[Samples, int] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row for each signature, co-runner and kind of evidence that gives a number, or one that says why none does.

    Columns signature, label (codes of samples), the measured columns of SLOWDOWN, and rate, error, shared_ns; `best`
    marks the strongest evidence. The second frame holds what each step deviates from the row's rate: signature, label,
    evidence, step, residual_ns. baseline: the samples with those of a second trace behind them, and how many those are.
    """
    calibrated = np.isin(samples.phase, (SERIALIZED,)).any()
    apart = samples.phase != CONCURRENT if calibrated else np.zeros(len(samples.use), bool)
    clean, over = samples.use == CLEAN, np.isin(samples.use, (OVERLAPPED, MIXED)) & ~apart
    frames = []
    if calibrated:
        serialized = samples.phase == SERIALIZED
        frames.append(_frame(CALIBRATION, samples, rows_of(samples, context.group, clean & serialized, over, same_place=True), context))
    same = rows_of(samples, context.group, clean & ~apart, over)
    frames.append(_frame(SAME_TRACE, samples, same, context))
    if baseline is not None:
        both, added = baseline
        kept = np.append(over, np.zeros(added, bool))
        alone = (both.use == CLEAN) & (np.arange(len(both.use)) >= len(over))
        frames.append(_frame(BASELINE, both, rows_of(both, context.group, alone, kept), context))
    frames.append(_dose_frame(samples, same, context))
    measured = _best(pd.concat([frame for frame, _ in frames], ignore_index=True))
    return measured, pd.concat([residuals for _, residuals in frames], ignore_index=True)


def _frame(evidence: str, samples: Samples, rows: Rows, context: Context) -> tuple[pd.DataFrame, pd.DataFrame]:
    sides = rows.sides
    found = rates(sides, context.tick_ns, context.counts)
    several = rows.label == samples.labels.index(MIXED_LABEL)
    too_few = (found.n_clean < MINIMUM) | (found.n_over < MINIMUM)
    too_short = found.clean_ns < _TICKS * context.tick_ns
    twofold = mixed(sides.clean, sides.clean_ns)
    lower = np.minimum(found.low, found.rate - 2 * found.error)
    lost = ~(too_short | twofold) & (found.n_clean >= MINIMUM)
    unsized = samples.marks.unsized[rows.signature]
    twofold |= unsized & mixed(sides.over, sides.over_ns / sides.shared_ns) if unsized.any() else False
    reasons = {
        "several co-runners at once": several,
        f"too few samples ({MINIMUM} clean and {MINIMUM} overlapped needed)": ~several & too_few,
        "seen in one step only": ~several & ~too_few & (found.n_steps < 2),
        "below the timer's resolution": ~too_few & too_short,
        "mixed clean sample": ~too_few & twofold,
        "mixed overlapped sample": ~several & ~too_few & (found.outliers >= 2) & (found.outliers > _MANY * sides.over.sizes),
        "rate not identifiable": ~too_few & ~several & ((found.rate <= 0) | (lower <= 0)),
    }
    number = ~np.logical_or.reduce(list(reasons.values()))
    slight = np.bincount(samples.signature[samples.use == SLIGHT], minlength=len(context.group))[rows.signature]
    waited = sides.clean.sums(samples.after_wait[rows.clean]) if evidence == CALIBRATION else np.zeros(sides.rows)
    remarks = {
        "rate not constant": number & _rate_varies(sides, number, context),
        "few samples": number & found.few,
        "first step included": np.full(sides.rows, samples.first_step_included),
        "problem sizes not recorded": unsized,
        "{} outliers left out": found.outliers,
        "{} slightly shared samples not used": slight,
        "{} clean samples right after a blocking wait": waited,
    }
    frame = pd.DataFrame(
        {
            "signature": rows.signature,
            "label": rows.label,
            "n_clean": found.n_clean,
            "n_overlapped": found.n_over,
            "clean_ns": found.clean_ns,
            "overlapped_ns": found.over_ns,
            "rate": np.where(number, found.rate, np.nan),
            "rate_low": np.where(number, found.low, np.nan),
            "rate_high": np.where(number, found.high, np.nan),
            "error": np.where(number, found.error, np.nan),
            "p_value": np.where(number, found.p_value, np.nan),
            "lost_ns": np.where(lost, found.lost_ns, np.nan),
            "shared_ns": found.shared_ns,
            "evidence": evidence,
            "note": notes({**reasons, **remarks}, sides.rows),
        }
    )
    return frame, _residuals(evidence, samples, rows, found)


def _residuals(evidence: str, samples: Samples, rows: Rows, found: Rates) -> pd.DataFrame:
    over = rows.over[found.kept]
    columns = {
        "signature": samples.signature[over],
        "label": samples.label[over],
        "step": samples.step[over],
        "residual_ns": found.residual,
    }
    summed = pd.DataFrame(columns).groupby(["signature", "label", "step"], as_index=False).sum()
    return summed.assign(evidence=evidence)


def _dose_frame(samples: Samples, rows: Rows, context: Context) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows without enough clean samples, by dose and response."""
    never = (rows.sides.clean.sizes < MINIMUM) & (rows.label != samples.labels.index(MIXED_LABEL))
    sides = rows.sides.only(never)
    found = dose_response(sides, context.tick_ns, context.counts)
    short = found.varies & (found.clean_ns < _TICKS * context.tick_ns)
    number = found.varies & ~short & (found.low > 0)
    reasons = {
        "never clean, overlap does not vary": ~found.varies & (sides.clean.sizes == 0),
        f"too few samples ({MINIMUM} clean and {MINIMUM} overlapped needed), overlap does not vary": ~found.varies
        & (sides.clean.sizes > 0),
        "below the timer's resolution": short,
        "rate not identifiable": found.varies & ~short & ~number,
    }
    remarks = {"first step included": np.full(sides.rows, samples.first_step_included)}
    values = {
        "clean_ns": found.clean_ns,
        "rate": found.rate,
        "rate_low": found.low,
        "rate_high": found.high,
        "error": found.error,
        "p_value": found.p_value,
        "lost_ns": found.lost_ns,
    }
    frame = pd.DataFrame(
        {
            "signature": rows.signature[never],
            "label": rows.label[never],
            "n_clean": sides.clean.sizes,
            "n_overlapped": found.n_over,
            "overlapped_ns": sides.over.medians(sides.over_ns),
            **{name: np.where(number, value, np.nan) for name, value in values.items()},
            "shared_ns": sides.over.sums(sides.shared_ns),
            "evidence": DOSE_RESPONSE,
            "note": notes({**reasons, **remarks}, sides.rows),
        }
    )
    return frame, pd.DataFrame({name: [] for name in ("signature", "label", "step", "residual_ns", "evidence")})


def _rate_varies(sides: Sides, number: npt.NDArray[np.bool_], context: Context) -> npt.NDArray[np.bool_]:
    """Rows whose lower and upper half by o/d disagree beyond both intervals; looked at where o/d ranges over 0.3."""
    share = sides.shared_ns / sides.over_ns
    low, high = sides.over.extremes(share)
    asked = number & (high - low >= _WIDE) & (sides.over.sizes >= 2 * MINIMUM)
    varies = np.zeros(sides.rows, bool)
    if not asked.any():
        return varies
    some, share = sides.only(asked), share[asked[sides.over_row]]
    upper = share > some.over.medians(share)[some.over_row]
    below, above = (rates(some.keeping(half), context.tick_ns, None) for half in (~upper, upper))
    varies[asked] = (below.high < above.low) | (above.high < below.low)
    return varies


def _best(frame: pd.DataFrame) -> pd.DataFrame:
    """The strongest evidence with a number for each signature and co-runner; other numbers stay below it, with a remark."""
    if not len(frame):
        return frame.assign(best=np.zeros(0, bool))
    step = frame["evidence"].map({name: place for place, name in enumerate(LADDER)})
    frame = frame.assign(step=step, known=frame["rate"].notna())
    # Without any number the last word has the one who looked furthest: dose and response of what never ran alone.
    frame["order"] = np.where(frame["known"], frame["step"], 10 + np.where(frame["evidence"] == DOSE_RESPONSE, 0, 1 + frame["step"]))
    frame = frame.sort_values(["signature", "label", "order"], kind="stable", ignore_index=True)
    first = ~frame.duplicated(["signature", "label"])
    strongest = frame["rate"].where(first).ffill()
    frame = frame.assign(best=first, far=~first & ((strongest / frame["rate"] - 1).abs() > _DISAGREEMENT))
    frame = frame[first | frame["known"]].reset_index(drop=True)
    for place in np.flatnonzero(frame["far"]):
        frame.loc[place, "note"] = joined(frame.loc[place, "note"], "disagrees by more than 10 % with the stronger evidence")
    frame.loc[~frame["known"], "evidence"] = NO_EVIDENCE
    return frame.drop(columns=["step", "known", "order", "far"])


def notes(marks: Mapping[str, npt.NDArray[Any]], rows: int) -> list[str | None]:
    """The note of each row: the texts whose mark is true, {} filled with its number; None without any."""
    texts: list[str | None] = [None] * rows
    for text, mark in marks.items():
        for place in np.flatnonzero(mark):
            texts[place] = joined(texts[place], text.format(int(mark[place])))
    return texts


def joined(note: str | None, text: str) -> str:
    """A note with one more remark."""
    return f"{note}; {text}" if isinstance(note, str) and note else text


class CleanTimes(NamedTuple):
    """Median clean duration of each signature and the half width of its 95 % interval, ns; NaN unknown."""

    median_ns: FloatArray
    reach_ns: FloatArray


def clean_times(samples: Samples) -> CleanTimes:
    """The CleanTimes of all signatures: unknown with fewer than 3 clean samples or a mixture; serialized steps are clean."""
    alone = np.flatnonzero(samples.use == CLEAN)
    alone = alone[np.argsort(samples.signature[alone], kind="stable")]
    segments = Segments(samples.signature[alone], len(samples.marks))
    duration = samples.duration[alone].astype(float)
    known = (segments.sizes >= MINIMUM) & ~mixed(segments, duration)
    n = np.maximum(segments.sizes, 2)
    spread = segments.sums((duration - segments.means(duration)[segments.label]) ** 2) / (n - 1)
    reach = t_factor(n - 1) * np.sqrt(np.pi / 2 * spread / n)
    return CleanTimes(np.where(known, segments.medians(duration), np.nan), np.where(known, reach, np.nan))

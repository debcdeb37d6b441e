"""Report → the most costly findings, each with the view that shows it."""

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pandas as pd

from c3prof.analysis.headline import headline
from c3prof.renderers.figures import exposed_rows, numbers, rows_of, short_kernel
from c3prof.table import Report
from c3prof.units import text_of_ratio, text_of_time

_CAUSES = {
    "wait": "a rank arrives late",
    "late-launch": "launched too late",
    "dependency": "the next compute was queued and waited for it",
    "host": "the CPU queued the next compute too late",
    "host-sync": "the CPU waited for the device",
    "no-work": "no compute follows that could hide it",
    "unknown": "the trace does not tell why",
}


@dataclass(frozen=True)
class Finding:
    """Something that costs time: a sentence, the ns it costs over all ranks, and where to look.

    view: path in the app; query: its settings. Costs of different findings may count the same time.
    """

    sentence: str
    cost_ns: float
    view: str
    query: Mapping[str, str] = field(default_factory=dict)


def findings(report: Report, top: int = 3) -> list[Finding]:
    """The most costly findings, dearest first; none when the report holds nothing that costs."""
    found = [finding for source in (_exposed, _slowed, _late, _idle) for finding in source(report) if finding.cost_ns > 0]
    return sorted(found, key=lambda finding: -finding.cost_ns)[:top]


def _exposed(report: Report) -> Iterator[Finding]:
    """Exposed time of the collective and cause that cost most."""
    frame = exposed_rows(report)
    if not len(frame):
        return
    sums = numbers(frame, "exposed_ns").groupby([frame["collective"], frame["cause"]]).sum()
    (kind, cause), cost = sums.idxmax(), float(sums.max())
    yield Finding(f"{text_of_time(cost)} of {kind} is exposed: {_CAUSES.get(cause, cause)}.", cost, "/timeline", {"finding": "exposed"})


def _slowed(report: Report) -> Iterator[Finding]:
    """The kernel that loses most to a co-runner, where that is sure."""
    frame = rows_of(report, "slowdown")
    if not len(frame):
        return
    frame = frame[frame["interference"].to_numpy(bool) & numbers(frame, "lost_ns").notna()]
    if not len(frame):
        return
    place = int(numbers(frame, "lost_ns").to_numpy().argmax())
    row = frame.iloc[place]
    cost = float(row["lost_ns"])
    kernel = html.unescape(short_kernel(row["kernel"], 60))
    factor = f"{row['slowdown']:.2f}× slower beside {row['co_runner']}"
    yield Finding(f"{kernel} loses {text_of_time(cost)}: {factor}.", cost, "/slowdown", {"signature": str(row["signature"])})


def _late(report: Report) -> Iterator[Finding]:
    """The rank that others wait for most."""
    frame = rows_of(report, "stragglers")
    if not len(frame):
        return
    sums = numbers(frame, "caused_wait_ns").groupby(frame["rank"]).sum()
    if len(sums):
        rank, cost = sums.idxmax(), float(sums.max())
        yield Finding(f"Others wait {text_of_time(cost)} for rank {rank}.", cost, "/ranks", {"rank": str(rank)})


def _idle(report: Report) -> Iterator[Finding]:
    """Time in which nothing runs."""
    frame = rows_of(report, "overlap")
    if not len(frame):
        return
    idle, span = numbers(frame, "idle_ns").sum(), numbers(frame, "span_ns").sum()
    if span > 0:
        share = f"{100 * idle / span:.0f} % of the time" if idle > 0 else ""
        yield Finding(f"Nothing runs for {text_of_time(float(idle))}, {share}.", float(idle), "/tables", {"table": _idle_table(report)})


def _idle_table(report: Report) -> str:
    return "idle" if "idle" in report and len(report["idle"]) else "overlap"


def headline_text(report: Report) -> tuple[str, tuple[str, ...]]:
    """The sentence that answers first and the sentences below it."""
    made = headline(report)
    return made.sentence, tuple(made.details)


Number = tuple[str, str, str]
"""Label, value and a few words about it, as text."""


def key_numbers(report: Report) -> list[Number]:
    """The few numbers that everybody asks for; none when there is no overlap table."""
    overlap = rows_of(report, "overlap")
    if not len(overlap):
        return []
    span, comm = total_of(overlap, "span_ns"), total_of(overlap, "comm_ns")
    hidden, exposed, idle = (total_of(overlap, f"{name}_ns") for name in ("hidden", "exposed", "idle"))
    ranks = overlap["rank"].nunique()
    where = f"{ranks:,} ranks" if ranks > 1 else "one rank"
    return [
        ("exposed communication", text_of_ratio(_ratio(exposed, span)), f"{text_of_time(exposed)} on {where}"),
        ("of communication is hidden", text_of_ratio(_ratio(hidden, comm)), f"{text_of_time(hidden)} of {text_of_time(comm)}"),
        ("idle", text_of_ratio(_ratio(idle, span)), text_of_time(idle)),
        ("recorded", text_of_time(span / len(overlap)), "a rank, on average" if ranks > 1 else where),
    ]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


_SCORES = (
    ("real_speedup", "realized speed-up", "×"),
    ("ideal_speedup", "ideal speed-up", "×"),
    ("realized_by_time", "realized, by time", "%"),
    ("realized_by_speedup", "realized, by speed-up", "%"),
)


def scorecard_numbers(report: Report) -> list[Number]:
    """Speed-ups of running both at once, as medians over ranks, with the interval when there is one; none when nothing is known."""
    frame = rows_of(report, "c3")
    known = any(numbers(frame, name).notna().any() for name, _, _ in _SCORES if name in frame)
    return [(label, *_score(frame, name, unit)) for name, label, unit in _SCORES if known and name in frame]


def _score(frame: pd.DataFrame, name: str, unit: str) -> tuple[str, str]:
    values = [numbers(frame, column) if column in frame else pd.Series(dtype=float) for column in (name, f"{name}_low", f"{name}_high")]
    value, low, high = (_score_text(float(part.median()) if part.notna().any() else math.nan, unit) for part in values)
    if len(frame) > 1:
        known = int(values[0].notna().sum())
        return value, f"median of {known:,} ranks" if known > 1 else f"{known} of {len(frame):,} ranks"
    return value, f"{low} to {high}" if "–" not in (low, high) else ""


def _score_text(value: float, unit: str) -> str:
    if math.isnan(value):
        return "–"
    return f"{100 * value:.0f} %" if unit == "%" else f"{value:.2f}×"


def total_of(frame: pd.DataFrame, column: str) -> float:
    """Sum of what is known of a column, NaN when nothing is."""
    return float(numbers(frame, column).sum(min_count=1)) if column in frame else float("nan")


def readings(report: Report, top: int = 3) -> list[str]:
    """What the scorecard means, in sentences; the notes where it has no numbers. Each once."""
    frame = rows_of(report, "c3")
    texts = [str(text) for name in ("reading", "note") if name in frame for text in frame[name].dropna() if str(text)]
    return list(dict.fromkeys(texts))[:top]

"""What the pages of the terminal show of each table: data, read by terminal.py. A table without a view is shown by its schema."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class View:
    """How the page shows a table.

    columns: in order of importance, () for all of the schema. where: only rows with this value in this column. known: only
    rows with a value in this column. fold: rows equal in these columns (on other ranks, …) become one, their numbers
    added. sort: column, largest first.
    bar: column drawn as bars, with its share. accounting: draw the parts of span_ns as one stacked bar.
    """

    table: str
    title: str
    columns: tuple[str, ...] = ()
    where: tuple[str, Any] | None = None
    known: str = ""
    fold: tuple[str, ...] = ()
    sort: str = ""
    bar: str = ""
    accounting: bool = False
    intervals: bool = True
    limit: int = 0


_OVERLAP = ("span_ns", "compute_ns", "exposed_ns", "idle_ns", "hidden_ratio")
_SUBSET = ("collectives", "comm_ns", "exposed_ns", "hidden_ratio")
_COMBINATION = ("collective", "group", "cause", "op")
_SCORE = (
    "rank",
    "device",
    "baseline_share",
    "ideal_speedup",
    "real_speedup",
    "realized_by_time",
    "realized_by_time_low",
    "realized_by_time_high",
    "scenario",
)
_FACTOR = ("slowdown", "slowdown_low", "slowdown_high", "lost_ns", "interference")
VIEWS: tuple[View, ...] = (
    View("overlap", "Where the time goes", ("rank", "device", *_OVERLAP), accounting=True, limit=16),
    View(
        "calibration",
        "Calibration: what the overlap saves, by serialized steps (in brackets: 95 % interval)",
        ("n_serialized", "n_concurrent", "serial_ns", "concurrent_ns", "ideal_speedup", "real_speedup", "realized_by_time", "note"),
        limit=2,
    ),
    View(
        "exposed",
        "Exposed communication: what the step pays for",
        (*_COMBINATION, "exposed_ns"),
        where=("by", "combination"),
        fold=_COMBINATION,
        sort="exposed_ns",
        bar="exposed_ns",
        limit=8,
    ),
    View(
        "exposed_causes", "Why it is exposed, and what would help", ("cause", "exposed_ns", "share", "advice"), sort="exposed_ns", limit=3
    ),
    View(
        "stragglers",
        "Ranks that others wait for",
        ("rank", "n_last", "n_collectives", "caused_wait_ns", "cause", "p_value"),
        sort="caused_wait_ns",
        limit=5,
    ),
    View(
        "c3",
        "What overlap delivers of the ideal speed-up",
        ("rank", "device", "ideal_speedup", "real_speedup", "realized_by_time", "scenario", "wait_ns"),
        known="real_speedup",
        intervals=False,
        limit=4,
    ),
    View(
        "slowdown",
        "Kernels that a co-runner slows (in brackets: 95 % interval, unadjusted)",
        ("rank", "kernel", "co_runner", "slowdown", "lost_ns", "n_overlapped"),
        where=("interference", True),
        known="slowdown",
        sort="lost_ns",
        limit=8,
    ),
    View(
        "kernels",
        "Device time by class of kernel",
        ("kernel_class", "class", "count", "total_ns"),
        where=("by", "class"),
        fold=("class", "kernel_class"),
        sort="total_ns",
        bar="total_ns",
        limit=8,
    ),
    View(
        "idle",
        "Idle time of the device: what it waits for",
        ("cause", "gaps", "idle_ns"),
        where=("stream", None),
        fold=("cause",),
        sort="idle_ns",
        bar="idle_ns",
        limit=6,
    ),
    View(
        "waits",
        "When the host waits for its collectives",
        ("rank", "collective", "group", "n", "n_at_once", "size_bytes", "duration_ns", "blocked_ns"),
        sort="blocked_ns",
        limit=4,
    ),
    View("overhead", "What recording cost", ("rank", "steps", "hook_ns_per_call", "overhead_ratio", "window_ratio"), limit=2),
    View(
        "contents",
        "What is in it",
        ("rank", "source", "device_name", "span_ns", "activities", "streams", "collectives", "steps", "events", "events_lost"),
    ),
    View("trust", "What it can answer"),
)
BY: dict[str, View] = {
    "step": View("overlap_by_step", "By step", ("rank", "device", "step", *_OVERLAP), accounting=True),
    "stream": View("overlap_by_stream", "By stream", ("rank", "device", "stream", "activities", "compute_ns", "copy_ns", *_SUBSET)),
    "group": View("overlap_by_group", "By process group", ("rank", "device", "group", "group_desc", *_SUBSET), bar="exposed_ns"),
    "collective": View("overlap_by_collective", "By kind of collective", ("rank", "device", "collective", *_SUBSET), bar="exposed_ns"),
}
"""What `--by` adds to the page."""
PAGES: dict[str, tuple[View, ...]] = {
    "slowdown": (
        View(
            "slowdown",
            "Kernels beside a co-runner; intervals are 95 % each, unadjusted",
            ("signature", "co_runner", *_FACTOR[:4], "kernel", "n_clean", "n_overlapped", "note"),
        ),
        View("interference", "By class of kernel and co-runner", ("rank", "kernel_class", "co_runner", *_FACTOR, "n_signatures"), limit=12),
        View(
            "footprint",
            "What communication kernels take",
            ("kernel", "co_runner", "workgroups", "sms", "waves", "waves_beside", "likely_cause"),
            limit=8,
        ),
        View("c3", "What overlap delivers of the ideal speed-up", _SCORE, limit=4),
        View(
            "sample_counts",
            "What the numbers rest on",
            ("rank", "device", "clean_baseline_share", "n_clean", "n_overlapped", "n_mixed", "n_slight"),
            limit=8,
        ),
    ),
}
"""Pages of other commands, by the setting `page`; the first table keeps `top` rows."""

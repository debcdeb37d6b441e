"""What a trace holds, and which questions it can answer: the tables behind `c3prof doctor`.

contents gives one row a rank, trust reads the rows of all ranks. Neither needs more than counts.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.table import Column, Schema, Table
from c3prof.trace import Trace

CONTENTS = Schema(
    "contents",
    "What is in each file",
    (
        Column("rank", "int64", "", "global rank; negative when the file does not name it"),
        Column("source", "object", "", "the file"),
        Column("world_size", "int64", "", "ranks of the job, -1 unknown"),
        Column("device_name", "object", "", "device that it used"),
        Column("backend", "object", "", "nccl, gloo, …"),
        Column("span_ns", "int64", "ns", "first start to last end of what ran"),
        Column("events", "int64", "", "events in the file"),
        Column("events_lost", "int64", "", "events that could not be read"),
        Column("activities", "int64", "", "execution spans on device streams"),
        Column("streams", "int64", "", "device streams"),
        Column("collectives", "int64", "", "communication operations"),
        Column("steps", "int64", "", "training steps"),
        Column("comm_activities", "int64", "", "activities that communicate"),
        Column("comm_with_metadata", "int64", "", "of those, the ones that the record says so of"),
        Column("launched", "int64", "", "activities with their launch"),
        Column("shaped", "int64", "", "activities whose operator has input shapes"),
        Column("grouped", "int64", "", "collectives with their process group"),
        Column("tick_ns", "int64", "ns", "what the clock resolves"),
        Column("median_ns", "float64", "ns", "median length of an activity"),
    ),
)

TRUST = Schema(
    "trust",
    "What can be answered from this input",
    (
        Column("question", "object", "", "what one would like to know"),
        Column("answer", "object", "", "yes, partly or no"),
        Column("why", "object", "", "what is there, what is missing, and what to do for it"),
    ),
)

YES, PARTLY, NO = "yes", "partly", "no"
Answer = tuple[str, str, str]


def contents(trace: Trace) -> Table:
    """One row for the Trace of one rank."""
    row, counts = trace.ranks.iloc[0], trace.coverage.get(trace.rank_numbers[0], {})
    activities, collectives = trace.activities, trace.collectives
    op = activities["op"].to_numpy()
    shapes = trace.ops["dims"].notna().to_numpy()
    ran = activities if len(activities) else trace.ops
    data = {
        "rank": row["rank"],
        "source": row["path"],
        "world_size": row["world_size"],
        "device_name": row["device_name"],
        "backend": row["backend"],
        "span_ns": int(ran["end_ns"].max() - ran["start_ns"].min()) if len(ran) else 0,
        "events": row["events"],
        "events_lost": counts.get("events_dropped", 0) + counts.get("activities_left_out", 0),
        "activities": len(activities),
        "streams": len(activities[["device", "stream"]].drop_duplicates()),
        "collectives": len(collectives),
        "steps": max(trace.steps["step"].nunique(), trace.recorded_steps["step"].nunique()),
        "comm_activities": counts.get("comm_activities", 0),
        "comm_with_metadata": counts.get("comm_with_metadata", 0),
        "launched": int((activities["launch"] >= 0).sum()),
        "shaped": int(shapes[op[op >= 0]].sum()),
        "grouped": int(collectives["group"].notna().sum()),
        "tick_ns": row["tick_ns"],
        "median_ns": float(np.median(activities["end_ns"] - activities["start_ns"])) if len(activities) else np.nan,
    }
    return Table.of(CONTENTS, {name: [value] for name, value in data.items()})


def trust(files: pd.DataFrame, warnings: Sequence[DataWarning]) -> Table:
    """The questions of this tool, and whether the files (rows of contents) can answer them."""
    answers = [
        _overlap(files, warnings),
        _collectives(files),
        _causes(files),
        _steps(files),
        _waiting(files),
        _slowdown(files),
        _times(files),
    ]
    return Table.of(TRUST, dict(zip(TRUST.names, map(list, zip(*answers, strict=True)), strict=True)))


def usable(answers: Table) -> bool:
    """Whether anything at all can be answered."""
    return bool((answers.frame["answer"] != NO).any())


def _overlap(files: pd.DataFrame, warnings: Sequence[DataWarning]) -> Answer:
    question = "how much communication is hidden"
    lost, harmful = int(files["events_lost"].sum()), sum(w.bears_on_numbers for w in warnings)
    if not files["activities"].sum() and not files["collectives"].sum():
        return (
            question,
            NO,
            "neither device activity nor communication was recorded: profile with ProfilerActivity.CUDA, or run gloo on CPU",
        )
    if not files["span_ns"].sum():
        return question, NO, "no profiler window: steps, waits and collectives were recorded, but no timeline"
    if lost or harmful:
        return question, PARTLY, f"{lost:,} events were lost and {harmful} warnings bear on numbers: what is left is exact"
    if not files["activities"].sum():
        return question, YES, "CPU run: compute and communication of CPU threads"
    return question, YES, f"{files['activities'].sum():,} device activities, exact in ns"


def _collectives(files: pd.DataFrame) -> Answer:
    question = "which collective, group and size"
    found, grouped = int(files["collectives"].sum()), int(files["grouped"].sum())
    if not found:
        return question, NO, "no communication was found"
    why = f"{grouped:,} of {found:,} operations name their process group"
    if grouped == found:
        return question, YES, why
    return question, PARTLY if grouped else NO, f"{why}: torch 2.4 or newer records it, c3prof.profile() too"


def _causes(files: pd.DataFrame) -> Answer:
    question = "why communication is exposed"
    total, launched = int(files["activities"].sum()), int(files["launched"].sum())
    if not total:
        return question, NO, "no device activity"
    share = launched / total
    why = f"{share:.0%} of the activities have their launch"
    cure = ": record with ProfilerActivity.CPU too" if not launched else ""
    return question, YES if share > 0.95 else PARTLY if launched else NO, why + cure


def _steps(files: pd.DataFrame) -> Answer:
    steps = int(files["steps"].min())
    if not steps:
        return "what each step costs", NO, "no ProfilerStep marks: call prof.step() in the loop; the run is one row"
    return "what each step costs", YES, f"{steps:,} steps"


def _waiting(files: pd.DataFrame) -> Answer:
    question = "who waits for whom"
    here, world = int((files["rank"] >= 0).sum()), int(files["world_size"].max())
    if not files["collectives"].sum():
        return question, NO, "no communication was found"
    if here < 2:
        return question, NO, f"one rank{f' of {world:,}' if world > 1 else ''} is here: give the files of the other ranks too"
    if here < world:
        return question, PARTLY, f"{here:,} of {world:,} ranks are here"
    return question, YES, f"all {here:,} ranks are here"


def _slowdown(files: pd.DataFrame) -> Answer:
    question = "which kernels slow down under communication"
    total, shaped = int(files["activities"].sum()), int(files["shaped"].sum())
    if not total or not files["comm_activities"].sum():
        return question, NO, "needs device activity of both, compute and communication"
    if files["steps"].min() < 3:
        return question, PARTLY, "fewer than 3 steps: few samples a kernel; record more steps"
    if not shaped:
        return question, PARTLY, "operators have no input shapes: record with record_shapes=True to tell problem sizes apart"
    return question, YES, f"{shaped / total:.0%} of the activities have input shapes"


def _times(files: pd.DataFrame) -> Answer:
    tick, known = int(files["tick_ns"].max()), files["median_ns"].dropna()
    median = float(known.median()) if len(known) else np.nan
    why = f"the clock resolves {tick:,} ns"
    if np.isnan(median):
        return "times of single kernels", NO, "no device activity"
    if median < 10 * tick:
        return "times of single kernels", PARTLY, f"{why}, the median activity lasts {median:,.0f} ns"
    return "times of single kernels", YES, why

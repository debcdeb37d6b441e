"""The tables about contention of all ranks: collectives on their transfer windows, the judgement over all rows, the scorecard."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.c3 import C3, C3_BY_STEP, C3_REGIONS, PARTS, measured_steps, readings, region_rows, summed
from c3prof.analysis.collective_samples import COLLECTIVE_SAMPLES, COLLECTIVE_SHARED, Shared
from c3prof.analysis.collective_slowdown import Transfers, collective_slowdown, transfers
from c3prof.analysis.collectives import OPERATIONS
from c3prof.analysis.contention import OF_CLASSES, OF_COLLECTIVES, OF_KERNELS
from c3prof.analysis.estimator import MINIMUM
from c3prof.analysis.interference import INTERFERENCE, flagged
from c3prof.analysis.phase_steps import PHASE_STEPS
from c3prof.analysis.resampling import resample_counts
from c3prof.analysis.samples import CLEAN_BELOW, UNION_OF_COMPUTE
from c3prof.analysis.settings import Settings
from c3prof.analysis.slowdown import SLOWDOWN, Context, tick_of
from c3prof.table import Schema, Table
from c3prof.trace import NONE, Trace

SCHEMAS = (SLOWDOWN, INTERFERENCE, C3, C3_BY_STEP, C3_REGIONS)
NEEDS = (
    *(
        schema.name
        for schema in (OF_KERNELS, OF_COLLECTIVES, OF_CLASSES, PARTS, COLLECTIVE_SAMPLES, COLLECTIVE_SHARED, PHASE_STEPS, OPERATIONS)
    ),
    "collectives",
)

Floats = npt.NDArray[np.float64]


def contention_of_run(trace: Trace, tables: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The tables of SCHEMAS from those in NEEDS."""
    collectives = tables["collectives"].frame
    rows, operations = (tables[schema.name].frame for schema in (COLLECTIVE_SAMPLES, OPERATIONS))
    shared = Shared.of(tables[COLLECTIVE_SHARED.name].frame, _begins(collectives))
    found = transfers(collectives, operations, rows, shared)
    context = Context(tick_of(trace.ranks), resample_counts(settings.seed), np.zeros(0, np.int64))
    of_collectives, classes_of_collectives = collective_slowdown(found, collectives, rows, context)
    unknown = tables[OF_COLLECTIVES.name].frame
    if len(of_collectives):
        unknown = unknown[~unknown["signature"].isin(of_collectives["signature"])]
    slow = _together(SLOWDOWN, [tables[OF_KERNELS.name].frame, of_collectives, unknown])
    classes = _together(INTERFERENCE, [tables[OF_CLASSES.name].frame, classes_of_collectives])
    regions = region_rows(*_with_waits(tables[PARTS.name].frame, collectives, found, rows, shared))
    by_step = summed(regions[regions["step"].notna()], ["rank", "device", "step"]) if len(regions) else regions
    calibrated = measured_steps(tables[PHASE_STEPS.name].frame)
    if len(calibrated):
        by_step = pd.concat(
            [by_step[~by_step["rank"].isin(calibrated["rank"])] if len(by_step) else by_step, calibrated], ignore_index=True
        )
    return (
        Table.of(SLOWDOWN, flagged(slow).sort_values("lost_ns", ascending=False, na_position="last", kind="stable")),
        Table.of(INTERFERENCE, flagged(classes).sort_values("lost_ns", ascending=False, na_position="last", kind="stable")),
        _table(C3, _run_rows(regions, calibrated)),
        _table(C3_BY_STEP, by_step),
        _table(C3_REGIONS, regions),
    )


def _together(schema: Schema, frames: list[pd.DataFrame]) -> pd.DataFrame:
    some = [frame[schema.names] for frame in frames if len(frame)]
    return pd.concat(some, ignore_index=True) if some else schema.frame()


def _table(schema: Schema, frame: pd.DataFrame) -> Table:
    return Table.of(schema, frame[schema.names] if len(frame) else None)


def _run_rows(regions: pd.DataFrame, calibrated: pd.DataFrame) -> pd.DataFrame:
    """Rows of C3: the regions of each rank and device summed; medians over the steps where they were measured."""
    rows = summed(regions, ["rank", "device"]) if len(regions) else regions
    if len(calibrated):
        rows = pd.concat([rows[~rows["rank"].isin(calibrated["rank"])] if len(rows) else rows, _medians(calibrated)], ignore_index=True)
    steps = regions["step"].nunique() if len(regions) else 0
    return rows.assign(reading=readings(rows, max(steps, 1))) if len(rows) else rows


def _medians(calibrated: pd.DataFrame) -> pd.DataFrame:
    """One row a rank and device: the step with the median concurrent time stands for all."""
    ordered = calibrated.sort_values("concurrent_ns", kind="stable")
    return pd.concat([here.iloc[[len(here) // 2]] for _, here in ordered.groupby(["rank", "device"])], ignore_index=True)


def _with_waits(
    parts: pd.DataFrame, collectives: pd.DataFrame, found: Transfers, rows: pd.DataFrame, shared: Shared
) -> tuple[pd.DataFrame, Mapping[str, Floats] | None]:
    """The parts, and wait_ns and comm_alone_ns of each region whose collectives' transfers are known.

    wait is the part of the first collective's waiting beside which nothing computed; the time alone of a collective is
    the median transfer of its signature's clean samples, or its own transfer where there are none.
    """
    known = collectives["transfer_ns"].notna()
    if not len(parts) or not known.any():
        return parts, None
    first = parts["first_collective"].to_numpy()
    at = np.where(first >= 0, first + _begins(collectives).reindex(parts["rank"]).fillna(0).to_numpy().astype(np.int64), 0)
    wait = np.where(first >= 0, _exposed_wait(collectives, shared)[at], np.nan)
    of = rows[(rows["region"] != NONE) & known.to_numpy()]
    alone = _clean_transfers(collectives, found, rows).loc[of.index]
    sums = pd.DataFrame({"rank": of["rank"], "region": of["region"], "alone": alone}).groupby(["rank", "region"])["alone"].sum()
    summed_alone = sums.reindex(pd.MultiIndex.from_frame(parts[["rank", "region"]])).to_numpy(dtype=float)
    scaled = summed_alone * parts["comm_scale"].to_numpy()
    return parts, {"wait_ns": np.where(np.isnan(scaled), np.nan, wait), "comm_alone_ns": scaled}


def _begins(collectives: pd.DataFrame) -> pd.Series:
    """By rank the row at which its collectives begin."""
    return collectives.groupby("rank").size().cumsum().shift(fill_value=0)


def _exposed_wait(collectives: pd.DataFrame, shared: Shared) -> Floats:
    """Of each record the part of its waiting beside which nothing computed, ns."""
    duration = np.maximum(collectives["duration_ns"].to_numpy(dtype=float), 1)
    wait = collectives["wait_ns"].to_numpy(dtype=float)
    beside = shared.where((shared.names[shared.co_runner] == UNION_OF_COMPUTE) & (wait[shared.record] > 0))
    hidden = np.zeros(len(wait))
    hidden[beside.record] = beside.rest[:, 0] - beside.after((wait / duration)[beside.record])
    return np.asarray(np.maximum(wait - hidden, 0.0))


def _clean_transfers(collectives: pd.DataFrame, found: Transfers, rows: pd.DataFrame) -> pd.Series:
    """Of each record the median transfer of its signature beside which nothing ran, else its own transfer."""
    clean = found.shared_ns.sum(axis=1) < CLEAN_BELOW * found.transfer_ns
    samples = pd.DataFrame({"signature": found.signature[clean], "time": found.transfer_ns[clean]}).groupby("signature")["time"]
    medians = samples.median()[samples.size() >= MINIMUM]
    return rows["signature"].map(medians).fillna(collectives["transfer_ns"])

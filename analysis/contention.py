"""The tables about contention of one rank: samples are drawn once, and read by slowdown, interference and the rest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.c3 import PARTS, numbered
from c3prof.analysis.collective_samples import COLLECTIVE_SAMPLES, collective_samples, no_samples
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.interference import INTERFERENCE, interference_rows
from c3prof.analysis.regions import region_pieces, regions
from c3prof.analysis.resampling import resample_counts
from c3prof.analysis.samples import CLEAN, NO_SAMPLE, Samples, samples
from c3prof.analysis.segments import ratio
from c3prof.analysis.settings import Settings
from c3prof.analysis.signatures import signature_texts
from c3prof.analysis.slowdown import NO_EVIDENCE, SLOWDOWN, Context, clean_times, measured_rows, tick_of
from c3prof.analysis.steps import Lane, lanes
from c3prof.kernels import COMM
from c3prof.table import Schema, Table
from c3prof.trace import CPU_DEVICE, NONE, Trace


OF_KERNELS = Schema("_slowdown_of_kernels", "Rows of `slowdown` about kernels, before the judgement over all rows", SLOWDOWN.columns)
OF_COLLECTIVES = Schema("_slowdown_of_collectives", "Rows of `slowdown` about collectives, before the other ranks are known", SLOWDOWN.columns)
OF_CLASSES = Schema("_interference_of_rank", "Rows of `interference`, before the judgement over all rows", INTERFERENCE.columns)

SCHEMAS = (OF_KERNELS, OF_COLLECTIVES, OF_CLASSES, PARTS, COLLECTIVE_SAMPLES)

WAITING = "waiting not separable with one rank"


class DeviceSamples(NamedTuple):
    """The samples of one device and what they are judged by."""

    lane: Lane
    drawn: Samples
    context: Context


def device_samples(trace: Trace, settings: Settings) -> Iterator[DeviceSamples]:
    """The DeviceSamples of each device of a Trace. CPU lanes have none: their times are mostly time-slicing."""
    counts = resample_counts(settings.seed)
    for lane in lanes(trace, work(trace), settings):
        if lane.device == CPU_DEVICE:
            continue
        drawn = samples(trace, lane.rows)
        if settings.steps is not None:
            drawn = replace(drawn, use=np.where(np.isin(drawn.step, lane.steps.steps), drawn.use, NO_SAMPLE))
        group = lane.rows["kernel_class"].cat.codes.to_numpy().astype(np.int64)[drawn.marks.first] + 1
        yield DeviceSamples(lane, drawn, Context(tick_of(trace.ranks), counts, group))


def contention(trace: Trace, _: Mapping[str, Table], settings: Settings, baseline: Trace | None = None) -> tuple[Table, ...]:
    """The tables of SCHEMAS for the Trace of one rank.

    baseline: a second trace of the same rank, whose clean samples count too (evidence `baseline`). q values and the
    judgement over all rows, and the collectives of several ranks, come in contention_of_run.
    """
    found: dict[str, list[pd.DataFrame]] = {schema.name: [] for schema in SCHEMAS}
    others = list(device_samples(baseline, settings)) if baseline is not None else []
    shared = no_samples(trace)
    for device in device_samples(trace, settings):
        known = _known_as(trace, device, baseline, others) if baseline is not None else None
        measured, residuals = measured_rows(device.drawn, device.context, known)
        named = _named(trace, device, measured)
        comm = named["is_comm"].to_numpy(dtype=bool)
        rows = named.assign(signature=named["signature_text"])[SLOWDOWN.names]
        found[OF_KERNELS.name].append(rows[~comm])
        found[OF_COLLECTIVES.name].append(inseparable(rows[comm]))
        found[OF_CLASSES.name].append(interference_rows(named[~comm], residuals).assign(rank=device.lane.rank))
        parts, region = _region_parts(device)
        if settings.steps is not None:
            parts = parts[parts["step"].notna()]
        found[PARTS.name].append(parts)
        shared = _updated(shared, collective_samples(trace, device.lane, device.drawn, region))
    found[COLLECTIVE_SAMPLES.name].append(shared)
    return tuple(_table(schema, found[schema.name]) for schema in SCHEMAS)


def _updated(rows: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """The rows with those replaced that were found, by position."""
    return pd.concat([rows.drop(index=found.index), found]).sort_index() if len(found) else rows


def _region_parts(device: DeviceSamples) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    """Rows of PARTS for one device, and the region of each of its activities (that of its first piece)."""
    rows, marks = device.lane.rows, device.drawn.marks
    clean, reach = clean_times(device.drawn)
    pieces = region_pieces(rows, device.lane.steps)
    duration = (rows["end_ns"] - rows["start_ns"]).to_numpy()
    parts = regions(pieces, duration, clean[marks.code], reach[marks.code])
    region = np.full(len(rows), NONE)
    region[pieces.row[::-1]] = pieces.region[::-1]
    first = np.append(rows["collective_id"].to_numpy(), NONE)[parts["first_collective"].to_numpy()]
    step = pd.Series(numbered(parts["step"]), dtype=object)
    return parts.assign(rank=device.lane.rank, device=device.lane.label, first_collective=first, step=step), region


def inseparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of collectives without numbers: with one rank only, their durations contain waiting for peers."""
    unknown = dict.fromkeys(("slowdown", "slowdown_low", "slowdown_high", "p_value", "q_value", "lost_ns"), np.nan)
    return rows.assign(**unknown, evidence=NO_EVIDENCE, note=WAITING)


def _named(trace: Trace, device: DeviceSamples, measured: pd.DataFrame) -> pd.DataFrame:
    """The measured rows with what the signature is, and slowdowns in place of rates; most time lost first."""
    codes = measured["signature"].to_numpy()
    used, place = np.unique(codes, return_inverse=True)
    texts = signature_texts(trace, device.lane.rows, device.drawn.marks, used).iloc[place].reset_index(drop=True)
    first = device.lane.rows.iloc[device.drawn.marks.first[codes]]
    labels = np.array(device.drawn.labels, object)
    rows = measured.assign(
        **{name: texts[name] for name in ("kernel", "op", "input_dims")},
        signature_text=texts["signature"],
        rank=device.lane.rank,
        co_runner=labels[measured["label"].to_numpy()],
        kernel_class=labels[device.drawn.own_label[codes]],
        is_comm=(first["class"] == COMM).to_numpy(dtype=bool),
        slowdown=ratio(1, measured["rate"]),
        slowdown_low=ratio(1, measured["rate_high"]),
        slowdown_high=ratio(1, measured["rate_low"]),
        q_value=np.nan,
        interference=False,
    )
    return rows.sort_values("lost_ns", ascending=False, na_position="last", kind="stable", ignore_index=True)


def _known_as(
    trace: Trace, device: DeviceSamples, baseline: Trace, others: Sequence[DeviceSamples]
) -> tuple[Samples, Mapping[int, int]] | None:
    """Samples of the baseline's device (of that number, else the first) and which of its signatures are known here."""
    if not others:
        return None
    other = next((one for one in others if one.lane.device == device.lane.device), others[0])
    wanted = np.unique(device.drawn.signature[device.drawn.label >= 0])
    offered = np.unique(other.drawn.signature[other.drawn.use == CLEAN])
    here = signature_texts(trace, device.lane.rows, device.drawn.marks, wanted)["signature"]
    there = signature_texts(baseline, other.lane.rows, other.drawn.marks, offered)["signature"]
    code = dict(zip(here.tolist(), wanted.tolist(), strict=True))
    return other.drawn, {int(of): code[text] for text, of in zip(there.tolist(), offered.tolist(), strict=True) if text in code}


def _table(schema: Schema, frames: Sequence[pd.DataFrame]) -> Table:
    some = [frame for frame in frames if len(frame)]
    return Table.of(schema, pd.concat(some, ignore_index=True)[schema.names] if some else None)

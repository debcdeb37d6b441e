"""The tables about contention of one rank: samples are drawn once, and read by slowdown, interference and the rest."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.interference import INTERFERENCE, interference_rows
from c3prof.analysis.resampling import resample_counts
from c3prof.analysis.samples import CLEAN, Samples, samples
from c3prof.analysis.segments import ratio
from c3prof.analysis.settings import Settings
from c3prof.analysis.signatures import signature_texts
from c3prof.analysis.slowdown import NO_EVIDENCE, SLOWDOWN, Context, measured_rows, tick_of
from c3prof.analysis.steps import Lane, lanes
from c3prof.kernels import COMM
from c3prof.table import Schema, Table
from c3prof.trace import CPU_DEVICE, Trace


OF_COLLECTIVES = Schema("_slowdown_of_collectives", "Rows of `slowdown` about collectives, before the other ranks are known", SLOWDOWN.columns)

SCHEMAS = (SLOWDOWN, OF_COLLECTIVES, INTERFERENCE)

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
        group = lane.rows["kernel_class"].cat.codes.to_numpy().astype(np.int64)[drawn.marks.first] + 1
        yield DeviceSamples(lane, drawn, Context(tick_of(trace.ranks), counts, group))


def contention(trace: Trace, _: Mapping[str, Table], settings: Settings, baseline: Trace | None = None) -> tuple[Table, ...]:
    """The tables of SCHEMAS for the Trace of one rank.

    baseline: a second trace of the same rank, whose clean samples count too (evidence `baseline`). q values and the
    judgement over all rows, and the collectives of several ranks, come in contention_of_run.
    """
    found: dict[str, list[pd.DataFrame]] = {schema.name: [] for schema in SCHEMAS}
    others = list(device_samples(baseline, settings)) if baseline is not None else []
    for device in device_samples(trace, settings):
        known = _known_as(trace, device, baseline, others) if baseline is not None else None
        measured, residuals = measured_rows(device.drawn, device.context, known)
        named = _named(trace, device, measured)
        comm = named["is_comm"].to_numpy(dtype=bool)
        rows = named.assign(signature=named["signature_text"])[SLOWDOWN.names]
        found["slowdown"].append(rows[~comm])
        found[OF_COLLECTIVES.name].append(inseparable(rows[comm]))
        found["interference"].append(interference_rows(named[~comm], residuals).assign(rank=device.lane.rank))
    return tuple(_table(schema, found[schema.name]) for schema in SCHEMAS)


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

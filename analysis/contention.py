"""The tables about contention of one rank: samples are drawn once, and read by slowdown, interference and the rest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.baseline import BASELINE_SAMPLES, baseline_rows, of_rank, with_baseline
from c3prof.analysis.c3 import PARTS, numbered
from c3prof.analysis.collective_samples import COLLECTIVE_SAMPLES, COLLECTIVE_SHARED, collective_samples, no_samples
from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.interference import INTERFERENCE, interference_rows
from c3prof.analysis.phase_steps import PHASE_STEPS, phase_steps
from c3prof.analysis.regions import region_pieces, regions
from c3prof.analysis.resampling import resample_counts
from c3prof.analysis.samples import CLEAN, NO_SAMPLE, USES, Samples, samples
from c3prof.analysis.segments import ratio
from c3prof.analysis.settings import Settings
from c3prof.analysis.signatures import signature_texts
from c3prof.analysis.slowdown import NO_EVIDENCE, SLOWDOWN, CleanTimes, Context, clean_times, measured_rows, tick_of
from c3prof.analysis.steps import Lane, lanes
from c3prof.kernels import COMM
from c3prof.table import Column, Schema, Table
from c3prof.trace import CPU_DEVICE, NONE, Trace

OF_KERNELS = Schema("_slowdown_of_kernels", "Rows of `slowdown` about kernels, before the judgement over all rows", SLOWDOWN.columns)
OF_COLLECTIVES = Schema(
    "_slowdown_of_collectives", "Rows of `slowdown` about collectives, before the other ranks are known", SLOWDOWN.columns
)
OF_CLASSES = Schema("_interference_of_rank", "Rows of `interference`, before the judgement over all rows", INTERFERENCE.columns)

SAMPLE_COUNTS = Schema(
    "sample_counts",
    "What the slowdowns rest on: samples by use, and the share of compute time that has a clean time to compare with",
    (
        Column("rank", "int32", "", "global rank; negative when the file does not name it"),
        Column("device", "object", "", "device number"),
        Column("compute_ns", "int64", "ns", "durations of all compute kernels"),
        Column("clean_baseline_share", "float64", "ratio", "part of compute_ns whose signature has a clean time"),
        Column("n_clean", "int64", "", "samples with nothing else on the device"),
        Column("n_overlapped", "int64", "", "samples beside one kind of co-runner"),
        Column("n_mixed", "int64", "", "samples beside several kinds"),
        Column("n_slight", "int64", "", "samples with 1 to 5 % shared: counted only"),
        Column("n_same_stream", "int64", "", "samples that share time with their own stream: counted only"),
        Column("n_first_step", "int64", "", "samples in the first step of a recording window: counted only"),
    ),
)
SAMPLES = Schema(
    "samples",
    "The samples behind one signature",
    (
        Column("rank", "int32", "", "global rank; negative when the file does not name it"),
        Column("kernel", "object", "", "name of the kernel"),
        Column("step", "object", "", "step number, null for none"),
        Column("start_ns", "int64", "ns", "start on the rank's clock"),
        Column("use", "object", "", "clean, overlapped, mixed, slightly shared, same-stream overlap or first step"),
        Column("co_runner", "object", "", "what ran beside it, null for none"),
        Column("duration_ns", "int64", "ns", "duration"),
        Column("shared_ns", "int64", "ns", "time shared with the co-runner"),
        Column("after_wait", "bool", "", "its stream stood still before it because the host had waited: caches may be cold"),
    ),
)

SCHEMAS = (SAMPLE_COUNTS, OF_KERNELS, OF_COLLECTIVES, OF_CLASSES, PARTS, COLLECTIVE_SAMPLES, COLLECTIVE_SHARED, PHASE_STEPS)

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


def contention(trace: Trace, tables: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The tables of SCHEMAS for the Trace of one rank.

    tables may hold `_baseline`, clean samples of a second trace. q values and the judgement over all rows, and the
    collectives of several ranks, come in contention_of_run.
    """
    found: dict[str, list[pd.DataFrame]] = {schema.name: [] for schema in SCHEMAS}
    records, shared = no_samples(trace), COLLECTIVE_SHARED.frame()
    for device in device_samples(trace, settings):
        measured, residuals = measured_rows(device.drawn, device.context, _behind(trace, device, tables.get(BASELINE_SAMPLES.name)))
        named = _named(trace, device, measured)
        comm = named["is_comm"].to_numpy(dtype=bool)
        rows = named.assign(signature=named["signature_text"])[SLOWDOWN.names]
        found[OF_KERNELS.name].append(rows[~comm])
        found[OF_COLLECTIVES.name].append(inseparable(rows[comm]))
        found[OF_CLASSES.name].append(interference_rows(named[~comm], residuals).assign(rank=device.lane.rank))
        clean = clean_times(device.drawn)
        found[SAMPLE_COUNTS.name].append(_counted(device, clean))
        parts, region = _region_parts(device, clean)
        if settings.steps is not None:
            parts = parts[parts["step"].notna()]
        found[PARTS.name].append(parts)
        sampled, sharing = collective_samples(trace, device.lane, device.drawn, region)
        records = _updated(records, sampled)
        shared = pd.concat([shared[~shared["record"].isin(sampled.index)], sharing]) if len(shared) else sharing
    found[COLLECTIVE_SAMPLES.name].append(records)
    found[COLLECTIVE_SHARED.name].append(shared)
    found[PHASE_STEPS.name] = phase_steps(trace)
    return tuple(_table(schema, found[schema.name]) for schema in SCHEMAS)


def _counted(device: DeviceSamples, clean: CleanTimes) -> pd.DataFrame:
    """The row of SAMPLE_COUNTS of one device."""
    drawn = device.drawn
    counts = np.bincount(drawn.use, minlength=len(USES)).tolist()
    compute = ~drawn.comm
    based = ~np.isnan(clean.median_ns[drawn.signature])
    total = int(drawn.duration[compute].sum())
    row = {
        "compute_ns": total,
        "clean_baseline_share": float(drawn.duration[compute & based].sum()) / total if total else np.nan,
        **dict(zip(("n_clean", "n_overlapped", "n_mixed", "n_slight", "n_same_stream", "n_first_step"), counts, strict=False)),
    }
    return pd.DataFrame([row]).assign(rank=device.lane.rank, device=device.lane.label)


def _updated(rows: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """The rows with those replaced that were found, by position."""
    parts = [part for part in (rows.drop(index=found.index), found) if len(part)]
    return pd.concat(parts).sort_index() if len(found) else rows


def _region_parts(device: DeviceSamples, clean: CleanTimes) -> tuple[pd.DataFrame, npt.NDArray[np.int64]]:
    """Rows of PARTS for one device, and the region of each of its activities (that of its first piece)."""
    rows, marks = device.lane.rows, device.drawn.marks
    pieces = region_pieces(rows, device.lane.steps)
    duration = (rows["end_ns"] - rows["start_ns"]).to_numpy()
    parts = regions(pieces, duration, clean.median_ns[marks.code], clean.reach_ns[marks.code])
    region = np.full(len(rows), NONE)
    region[pieces.row[::-1]] = pieces.region[::-1]
    first = np.append(rows["collective_id"].to_numpy(), NONE)[parts["first_collective"].to_numpy()]
    step = pd.Series(numbered(parts["step"]), dtype=object)
    return parts.assign(rank=device.lane.rank, device=device.lane.label, first_collective=first, step=step), region


def coverage(tables: Mapping[str, Table]) -> dict[str, float]:
    """The share of all ranks' compute time that has a clean time to compare with; empty without compute or the table."""
    frame = tables[SAMPLE_COUNTS.name].frame if SAMPLE_COUNTS.name in tables else SAMPLE_COUNTS.frame()
    total = int(frame["compute_ns"].sum())
    return {"clean_baseline_share": float((frame["compute_ns"] * frame["clean_baseline_share"]).sum()) / total} if total else {}


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


def _behind(trace: Trace, device: DeviceSamples, baseline: Table | None) -> tuple[Samples, int] | None:
    """The samples with those of the baseline behind them."""
    if baseline is None:
        return None
    wanted = np.unique(device.drawn.signature[device.drawn.label >= 0])
    texts = signature_texts(trace, device.lane.rows, device.drawn.marks, wanted)["signature"]
    return with_baseline(device.drawn, of_rank(baseline.frame, device.lane.rank), wanted.tolist(), texts.tolist())


def baseline_samples(traces: Iterable[Trace], settings: Settings) -> Table:
    """The table `_baseline` of the traces of a second run; hand it to rank_part as a given table."""
    found = []
    for trace in traces:
        for device in device_samples(trace, settings):
            offered = np.unique(device.drawn.signature[device.drawn.use == CLEAN])
            texts = signature_texts(trace, device.lane.rows, device.drawn.marks, offered)["signature"]
            found.append(baseline_rows(device.drawn, device.lane.rank, offered.tolist(), texts.tolist()))
    return _table(BASELINE_SAMPLES, found)


def explained(trace: Trace, signature: str, settings: Settings) -> Table:
    """The samples of one signature (as `slowdown` writes it), or of all that begin with it."""
    found = []
    for device in device_samples(trace, settings):
        drawn, rows = device.drawn, device.lane.rows
        used = np.unique(drawn.signature)
        texts = signature_texts(trace, rows, drawn.marks, used)
        text = np.full(len(drawn.marks), None, object)
        text[used[texts["signature"].str.startswith(signature).to_numpy(dtype=bool)]] = signature
        mine = np.flatnonzero(text[drawn.signature] == signature)
        at = rows.iloc[drawn.row[mine]]
        labels = np.array([*drawn.labels, None], object)
        columns = {
            "kernel": at["name"].astype(object).to_numpy(),
            "step": numbered(pd.Series(drawn.step[mine])),
            "start_ns": at["start_ns"].to_numpy(),
            "use": np.array(USES, object)[drawn.use[mine]],
            "co_runner": labels[drawn.label[mine]],
            "duration_ns": drawn.duration[mine],
            "shared_ns": drawn.shared[mine],
            "after_wait": drawn.after_wait[mine],
        }
        found.append(pd.DataFrame(columns).assign(rank=device.lane.rank))
    return _table(SAMPLES, found)


def _table(schema: Schema, frames: Sequence[pd.DataFrame]) -> Table:
    some = [frame for frame in frames if len(frame)]
    return Table.of(schema, pd.concat(some, ignore_index=True)[schema.names] if some else None)

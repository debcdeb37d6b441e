"""The concurrency scorecard: what share of the ideal speed-up the overlap delivers (docs/metrics.md §4)."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.segments import FloatArray, ratio
from c3prof.records import CONCURRENT, SERIALIZED
from c3prof.table import Column, Schema
from c3prof.trace import NONE
from c3prof.units import text_of_time

_RANK = Column("rank", "int32", "", "global rank; negative when the file does not name it")
_DEVICE = Column("device", "object", "", "device number, or cpu for CPU threads (gloo)")
_STEP = Column("step", "object", "", "step number; null outside of steps")
_ALONE = (
    Column("compute_alone_ns", "float64", "ns", "time of the compute side if it ran alone"),
    Column("comm_alone_ns", "float64", "ns", "time of the communication if it ran alone"),
    Column("baseline_share", "float64", "ratio", "part of the members' time that has a clean time; below 0.9 the ratios are null"),
)
_RATIOS = tuple(
    Column(
        name + end,
        "float64",
        "ratio" if name.startswith("realized") else "",
        doc if not end else f"{'lower' if end == '_low' else 'upper'} end of its 95 % interval",
    )
    for name, doc in (
        ("ideal_speedup", "serial / ideal, 1 to 2: what perfect overlap would give"),
        ("real_speedup", "serial / concurrent: what the overlap gives"),
        ("realized_by_speedup", "(real_speedup - 1) / (ideal_speedup - 1); null when ideal_speedup < 1.05"),
        ("realized_by_time", "(serial - concurrent) / (serial - ideal); null when ideal_speedup < 1.05"),
    )
    for end in ("", "_low", "_high")
)
_TIMES = (
    Column("serial_ns", "float64", "ns", "both sides one after the other"),
    Column("serial_source", "object", "", "summed (from clean times) or measured (serialized steps of a calibration)"),
    Column("ideal_ns", "float64", "ns", "the longer side alone"),
    Column("concurrent_ns", "float64", "ns", "what it took, without waiting for peers"),
    Column("wait_ns", "float64", "ns", "waiting for peers before the first collective moved data; null with one rank"),
    *_RATIOS,
    Column("scenario", "object", "", "compute-long or comm-long when one side is over 1.15 times the other, else balanced"),
    Column("note", "object", "", "why a value is unknown, and what to know about the others"),
)

C3_REGIONS = Schema(
    "c3_regions",
    "Concurrency scorecard of each region: a connected group of compute and communication",
    (
        _RANK,
        _DEVICE,
        _STEP,
        Column("region", "int64", "", "number of the region on the device, in order of time"),
        Column("start_ns", "int64", "ns", "its first start"),
        Column("end_ns", "int64", "ns", "its last end"),
        Column("n_compute", "int64", "", "compute activities"),
        Column("n_comm", "int64", "", "communication activities"),
        Column("compute_ns", "float64", "ns", "length of the union of its compute"),
        Column("comm_ns", "float64", "ns", "length of the union of its communication"),
        *_ALONE,
        *_TIMES,
    ),
)
_SUMS = (Column("n_regions", "int64", "", "regions that were summed"), *_ALONE, *_TIMES)
C3_BY_STEP = Schema("c3_by_step", "Concurrency scorecard of each step: sums over its regions", (_RANK, _DEVICE, _STEP, *_SUMS))
C3 = Schema(
    "c3",
    "Concurrency scorecard of each rank: sums over its regions, and how to read it",
    (_RANK, _DEVICE, *_SUMS, Column("reading", "object", "", "what the numbers say, in a sentence")),
)
PARTS = Schema(
    "_region_parts",
    "Regions as one rank sees them, before other ranks' arrivals are known",
    (
        *C3_REGIONS.columns[:10],
        *_ALONE[:2],
        Column("compute_reach_ns", "float64", "ns", "half width of the 95 % interval of compute_alone_ns"),
        Column("comm_reach_ns", "float64", "ns", "half width of the 95 % interval of comm_alone_ns"),
        _ALONE[2],
        Column("first_collective", "int64", "", "row in Trace.collectives of the rank of its first collective, -1 for none"),
        Column("comm_scale", "float64", "", "union of the communication over the sum of its durations"),
    ),
)

NO_BASELINE, CHAINED, WAITING = "too little has a clean time", "chained", "waiting not separable with one rank: it counts as communication"
_LEAST_SERIALIZED = 3
_LEAST_SHARE, _LEAST_IDEAL, _LONGER, _CHAIN = 0.9, 1.05, 1.15, 4

Values = Mapping[str, FloatArray]


def scored(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the columns serial_ns to scenario from compute_alone_ns, comm_alone_ns, their reach and concurrent_ns.

    Rows that have serial_ns, ideal_ns already (sums, measured) keep them. The intervals carry the uncertainty of both
    times alone, as independent; the concurrent time is measured exactly.
    """
    compute, comm, concurrent = (rows[name].to_numpy(dtype=float) for name in ("compute_alone_ns", "comm_alone_ns", "concurrent_ns"))
    serial = rows["serial_ns"].to_numpy(dtype=float) if "serial_ns" in rows else compute + comm
    ideal = rows["ideal_ns"].to_numpy(dtype=float) if "ideal_ns" in rows else np.maximum(compute, comm)
    reach = [rows[name].to_numpy(dtype=float) for name in ("compute_reach_ns", "comm_reach_ns")]
    middle = _ratios(serial, ideal, concurrent)
    longer = compute >= comm
    moved = [
        _ratios(serial + reach[0], ideal + np.where(longer, reach[0], 0), concurrent),
        _ratios(serial + reach[1], ideal + np.where(longer, 0, reach[1]), concurrent),
    ]
    hidden = ~(rows["baseline_share"].to_numpy(dtype=float) >= _LEAST_SHARE)
    numbers: dict[str, FloatArray] = {}
    for name, value in middle.items():
        width = np.sqrt(sum((other[name] - value) ** 2 for other in moved))
        numbers |= {f"{name}{end}": np.where(hidden, np.nan, value + sign * width) for end, sign in (("", 0), ("_low", -1), ("_high", 1))}
    scenario = np.select([compute > _LONGER * comm, comm > _LONGER * compute], ["compute-long", "comm-long"], "balanced").astype(object)
    scenario[np.isnan(compute + comm)] = None
    return rows.assign(serial_ns=serial, ideal_ns=ideal, **numbers, scenario=scenario)


def _ratios(serial: FloatArray, ideal: FloatArray, concurrent: FloatArray) -> Values:
    best, real = ratio(serial, ideal), ratio(serial, concurrent)
    with np.errstate(invalid="ignore"):
        worth = best >= _LEAST_IDEAL
    by_speedup, by_time = ratio(real - 1, best - 1), ratio(serial - concurrent, serial - ideal)
    return {
        "ideal_speedup": best,
        "real_speedup": real,
        "realized_by_speedup": np.where(worth, by_speedup, np.nan),
        "realized_by_time": np.where(worth, by_time, np.nan),
    }


def region_rows(parts: pd.DataFrame, waits: Mapping[str, npt.NDArray[np.float64]] | None = None) -> pd.DataFrame:
    """The rows of C3_REGIONS from the `_region_parts` of all ranks.

    waits: wait_ns and comm_alone_ns of each region where the other ranks are known.
    """
    rows = parts.assign(wait_ns=np.nan, serial_source="summed", several_ranks=False)
    if waits is not None:
        known = ~np.isnan(waits["wait_ns"])
        for name, values in waits.items():
            rows[name] = np.where(known, values, rows[name])
        rows["several_ranks"] = known
    rows["concurrent_ns"] = rows["end_ns"] - rows["start_ns"] - rows["wait_ns"].fillna(0.0)
    rows = scored(rows)
    rows["note"] = [
        "; ".join(text for text, applies in zip((NO_BASELINE, CHAINED, WAITING), marks, strict=True) if applies) or None
        for marks in zip(rows["baseline_share"] < _LEAST_SHARE, rows["n_comm"] > _CHAIN, ~rows["several_ranks"], strict=True)
    ]
    return rows


def summed(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Rows of regions summed by keys, then divided: serial, ideal, concurrent, wait and both sides alone."""
    weight = rows["compute_ns"] + rows["comm_ns"]
    parts = rows.assign(n_regions=1, weight=weight, based=rows["baseline_share"] * weight, waits=rows["wait_ns"].isna())
    added = [
        "n_regions",
        "compute_alone_ns",
        "comm_alone_ns",
        "compute_reach_ns",
        "comm_reach_ns",
        "serial_ns",
        "ideal_ns",
        "concurrent_ns",
    ]
    groups = parts.groupby(keys, as_index=False, dropna=False, sort=True)
    sums = groups[[*added, "weight", "based"]].sum()
    wait, unknown = groups["wait_ns"].sum(min_count=1)["wait_ns"], groups["waits"].any()["waits"]
    sums = sums.assign(baseline_share=ratio(sums["based"], sums["weight"]), wait_ns=wait, serial_source="summed")
    sums = scored(sums)
    poor = sums["baseline_share"] < _LEAST_SHARE
    sums["note"] = [
        "; ".join(text for text, applies in ((NO_BASELINE, p), (WAITING, w)) if applies) or None for p, w in zip(poor, unknown, strict=True)
    ]
    return sums


def readings(rows: pd.DataFrame, steps: int) -> list[str]:
    """A sentence on each row of C3."""
    return [_reading(row, max(steps, 1)) for row in rows.to_dict("records")]


def _reading(row: Mapping[str, object], steps: int) -> str:
    if not row["n_regions"] and row["serial_source"] != "measured":
        return "Compute and communication never share time: there is no overlap to judge."
    value = {name: float(str(row[name])) for name in ("serial_ns", "ideal_ns", "concurrent_ns", "realized_by_time", "baseline_share")}
    if np.isnan(value["baseline_share"]) or value["baseline_share"] < _LEAST_SHARE:
        return f"Only {value['baseline_share']:.0%} of the overlapped time has a clean time to compare with: a calibration or a baseline trace is needed."
    gain = text_of_time(max(value["concurrent_ns"] - value["ideal_ns"], 0.0) / steps)
    per = " a step" if steps > 1 else ""
    bound = {"compute-long": "Compute-bound", "comm-long": "Communication-bound"}.get(str(row["scenario"]), "Balanced")
    cure = {
        "Compute-bound": "giving the collective fewer channels, or copy engines, may gain",
        "Communication-bound": "smaller or fewer messages, or starting them earlier, come first; less contention may gain",
        "Balanced": "less contention may gain",
    }[bound]
    if np.isnan(value["realized_by_time"]):
        return f"{bound}: the shorter side is so short that overlap cannot save 5 %; {cure} up to {gain}{per}."
    share = value["realized_by_time"]
    verdict = (
        f"the overlap realizes {share:.0%} of what it could save"
        if share >= 0
        else "running both at once is slower than one after the other"
    )
    return f"{bound}: {verdict}; {cure} up to {gain}{per}."


def measured_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of C3_BY_STEP for the concurrent steps of a calibrated run.

    rows: `_phase_steps`. serial = median span of the serialized steps of the rank, ideal = that less the shorter side
    there (medians), concurrent = the span of the step.
    """
    found = []
    for _, here in rows.groupby(["rank", "device"], sort=False):
        serial, together = here[here["phase"] == SERIALIZED], here[here["phase"] == CONCURRENT]
        if len(serial) >= _LEAST_SERIALIZED and len(together):
            found.append(_measured(serial, together))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _measured(serial: pd.DataFrame, together: pd.DataFrame) -> pd.DataFrame:
    middle = {name: float(serial[name].median()) for name in ("span_ns", "compute_ns", "comm_ns")}
    error = {name: 1.2533 * float(serial[name].std()) * 1.96 / np.sqrt(len(serial)) for name in ("compute_ns", "comm_ns")}
    return scored(
        together[["rank", "device", "step"]].assign(
            n_regions=0,
            compute_alone_ns=middle["compute_ns"],
            comm_alone_ns=middle["comm_ns"],
            compute_reach_ns=error["compute_ns"],
            comm_reach_ns=error["comm_ns"],
            baseline_share=1.0,
            serial_ns=middle["span_ns"],
            ideal_ns=middle["span_ns"] - min(middle["compute_ns"], middle["comm_ns"]),
            concurrent_ns=together["span_ns"].astype(float),
            wait_ns=np.nan,
            serial_source="measured",
            note=f"over {len(serial)} serialized steps; waiting counts as communication",
        )
    )


def numbered(step: pd.Series) -> list[int | None]:
    """Step numbers as the tables hold them: None where there is none."""
    return [None if value == NONE else int(value) for value in step]

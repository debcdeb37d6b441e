"""Consistent traces of many ranks that were never run: what each rank's clock would have recorded, and the truth.

A Job is simulated once for all ranks: every operation starts on a rank when its compute is done, moves data from the
last arrival on, and ends everywhere at once. Then each rank's clock, recording window and losses are applied.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.trace import COLLECTIVES, GROUPS, NONE, RANKS, STEPS, Trace

Array = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LAUNCH_LEAD_NS = 300_000
"""How far the CPU runs ahead of the device where nothing is late."""


@dataclass(frozen=True)
class Job:
    """What to simulate. ranks = pp × dp × tp, rank = (p · dp + d) · tp + t.

    A step is: layers tensor-parallel all_reduces, ep all_to_alls, one send/recv between neighbouring stages, buckets
    gradient all_reduces, one world all_reduce. straggler: (rank, ns that it takes longer before each operation);
    straggler_launches: its CPU, not its compute, is late. Clocks differ by host (ranks_per_host; 0: host unknown, each
    rank its own clock) by ± clock_ns and ± drift_ppm. window: each rank's file begins 0 to window records late;
    missing: ranks without a file; dropped: share of records lost; recorded_seq: files name sequence numbers.
    """

    ranks: int = 8
    tp: int = 1
    pp: int = 1
    steps: int = 5
    layers: int = 0
    ep: int = 0
    buckets: int = 4
    bucket_bytes: int = 25_000_000
    compute_ns: int = 1_000_000
    jitter: float = 0.05
    straggler: tuple[int, int] | None = None
    straggler_launches: bool = False
    alpha_ns: int = 30_000
    bandwidth_gb_s: float = 100.0
    noise: float = 0.02
    end_jitter_ns: int = 1_000
    ranks_per_host: int = 8
    clock_ns: int = 0
    drift_ppm: float = 0.0
    window: int = 0
    missing: tuple[int, ...] = ()
    dropped: float = 0.0
    recorded_seq: bool = True
    seed: int = 0

    @property
    def dp(self) -> int:
        return self.ranks // (self.tp * self.pp)


@dataclass(frozen=True)
class Run:
    """A simulated job: the summary Trace that its files give, and truth, a frame with a row for each of its collectives.

    truth: operation (same number on all ranks), wait_ns, transfer_ns; clocks: offset_ns and drift_ppm by rank.
    """

    trace: Trace
    truth: pd.DataFrame
    clocks: pd.DataFrame


@dataclass(frozen=True)
class _Operation:
    """One operation on the ranks that take part, in the same order in every array; times on the true clock."""

    kind: str
    dimension: str
    ranks: Array
    group: Array
    size: int
    step: int
    peer: Array
    arrival: Array
    last: Array
    end: Array


def simulated(job: Job) -> Run:
    """The Run of a job. Deterministic for a seed."""
    rng = np.random.default_rng(job.seed)
    spans = np.full((job.steps, job.ranks, 2), 0, np.int64)
    table = _rows(job, list(_operations(job, rng, spans)))
    clocks = _clocks(job, rng)
    table = table[_recorded(job, rng, table)].reset_index(drop=True)
    on_clock = _OnClock(clocks["offset_ns"].to_numpy(), clocks["drift_ppm"].to_numpy())
    kept = np.setdiff1d(np.arange(job.ranks), job.missing)
    trace = Trace(
        collectives=_collectives(job, table, on_clock),
        steps=_steps(spans, kept, on_clock),
        ranks=_ranks(job, kept),
        groups=_groups(job, kept),
    )
    return Run(trace, table[["operation", "wait_ns", "transfer_ns"]], clocks)


# --- what happens, on the true clock


def _operations(job: Job, rng: np.random.Generator, spans: Array) -> Iterator[_Operation]:
    ready = rng.integers(0, 1 + job.compute_ns // 10, job.ranks)
    grid = np.arange(job.ranks).reshape(job.pp, job.dp, job.tp)
    late = np.zeros(job.ranks, np.int64)
    if job.straggler:
        late[job.straggler[0]] = job.straggler[1]
    for step in range(job.steps):
        spans[step, :, 0] = ready
        for kind, dimension, size in _program(job):
            busy = (job.compute_ns * rng.lognormal(0, job.jitter, job.ranks)).astype(np.int64) + late
            if kind == "send_recv":
                for stage in range(job.pp - 1):
                    yield from _sent(job, rng, grid[stage].ravel(), grid[stage + 1].ravel(), size, step, ready, busy)
            else:
                yield _collective(job, rng, kind, dimension, size, step, ready, busy)
        spans[step, :, 1] = ready


def _program(job: Job) -> list[tuple[str, str, int]]:
    plan = [("all_reduce", "tp", 4_000_000)] * (job.layers if job.tp > 1 else 0)
    plan += [("all_to_all", "ep", 8_000_000)] * (job.ep if job.dp > 1 else 0)
    plan += [("send_recv", "pp", 2_000_000)] if job.pp > 1 else []
    plan += [("all_reduce", "dp", job.bucket_bytes >> (i % 3)) for i in range(job.buckets)] if job.dp > 1 else []
    return [*plan, ("all_reduce", "world", 4)]


def _collective(
    job: Job, rng: np.random.Generator, kind: str, dimension: str, size: int, step: int, ready: Array, busy: Array
) -> _Operation:
    group = _group_of(job, dimension)
    arrival = ready + busy
    last = np.full(group.max() + 1, 0, np.int64)
    np.maximum.at(last, group, arrival)
    transfer = _transfer(job, rng, size, len(last))
    end = (last + transfer)[group] + rng.integers(0, job.end_jitter_ns + 1, job.ranks)
    ready[:] = end
    everyone = np.arange(job.ranks)
    return _Operation(kind, dimension, everyone, group, size, step, np.full(job.ranks, NONE), arrival, last[group], end)


def _sent(
    job: Job, rng: np.random.Generator, source: Array, target: Array, size: int, step: int, ready: Array, busy: Array
) -> Iterator[_Operation]:
    group = _group_of(job, "pp")
    arrivals = {"send": ready[source] + busy[source], "recv": ready[target] + busy[target]}
    last = np.maximum(arrivals["send"], arrivals["recv"])
    end = last + _transfer(job, rng, size, len(last))
    for kind, mine, peer in (("send", source, target), ("recv", target, source)):
        ready[mine] = end
        yield _Operation(kind, "pp", mine, group[mine], size, step, peer, arrivals[kind], last, end)


def _transfer(job: Job, rng: np.random.Generator, size: int, n: int) -> Array:
    noise = 1 + job.noise * rng.standard_normal(n)
    return np.maximum((job.alpha_ns + size / job.bandwidth_gb_s) * noise, 1_000).astype(np.int64)


def _group_of(job: Job, dimension: str) -> Array:
    """For each rank the number of its group in the dimension."""
    p, d, t = np.unravel_index(np.arange(job.ranks), (job.pp, job.dp, job.tp))
    numbers = {"tp": p * job.dp + d, "dp": p * job.tp + t, "ep": p * job.tp + t, "pp": d * job.tp + t, "world": p * 0}
    return np.asarray(numbers[dimension], np.int64)


# --- what the files say of it


def _rows(job: Job, operations: list[_Operation]) -> pd.DataFrame:
    counts = [len(op.ranks) for op in operations]
    table = pd.DataFrame(
        {name: np.concatenate([getattr(op, name) for op in operations]) for name in ("ranks", "group", "peer", "arrival", "last", "end")}
    ).rename(columns={"ranks": "rank"})
    for name in ("kind", "dimension"):
        codes, labels = pd.factorize(np.array([getattr(op, name) for op in operations], dtype=object))
        table[name] = pd.Categorical.from_codes(np.repeat(codes, counts), categories=labels)
    for name in ("size", "step"):
        table[name] = np.repeat([getattr(op, name) for op in operations], counts)
    # send and recv of one transfer are two operations of this list, but one to the truth
    table["operation"] = np.repeat(np.cumsum([op.kind != "recv" for op in operations]) - 1, counts)
    table["wait_ns"], table["transfer_ns"] = table["last"] - table["arrival"], table["end"] - table["last"]
    table = table.sort_values(["rank", "arrival"], kind="stable", ignore_index=True)
    table["seq"] = table.groupby(["rank", "dimension"], observed=True).cumcount() + 1
    launches_late = job.straggler_launches and job.straggler is not None
    lead = np.where(launches_late & (table["rank"] == (job.straggler or (NONE,))[0]), 5_000, LAUNCH_LEAD_NS)
    table["launch_end"] = table["arrival"] - lead
    return table


def _recorded(job: Job, rng: np.random.Generator, table: pd.DataFrame) -> npt.NDArray[np.bool_]:
    late = rng.integers(0, job.window + 1, job.ranks)
    place = table.groupby("rank").cumcount().to_numpy()
    kept = place >= late[table["rank"].to_numpy()]
    kept &= rng.random(len(table)) >= job.dropped
    return np.asarray(kept & ~table["rank"].isin(job.missing).to_numpy())


def _clocks(job: Job, rng: np.random.Generator) -> pd.DataFrame:
    host = np.arange(job.ranks) // max(job.ranks_per_host, 1)
    offset = rng.uniform(-job.clock_ns, job.clock_ns, job.ranks)[host] if job.clock_ns else np.zeros(job.ranks)
    drift = rng.uniform(-job.drift_ppm, job.drift_ppm, job.ranks)[host]
    return pd.DataFrame({"rank": np.arange(job.ranks), "offset_ns": offset, "drift_ppm": drift})


class _OnClock:
    """Turns true times into what a rank's clock shows."""

    def __init__(self, offset: Floats, drift_ppm: Floats) -> None:
        self.offset, self.rate = offset, drift_ppm * 1e-6

    def __call__(self, rank: Array, time: Array) -> Array:
        return np.asarray(time + np.rint(self.offset[rank] + self.rate[rank] * time), np.int64)


EPOCH_NS = 1_790_000_000_000_000_000


def _collectives(job: Job, table: pd.DataFrame, on_clock: _OnClock) -> pd.DataFrame:
    rank = table["rank"].to_numpy()
    dimension, group = table["dimension"], table["group"].to_numpy()
    keys = dimension.cat.codes.to_numpy().astype(np.int64) * job.ranks + group
    found, inverse = np.unique(keys, return_inverse=True)
    labels = [(str(dimension.cat.categories[key // job.ranks]), int(key % job.ranks)) for key in found]
    members = [_members(job, name, number) for name, number in labels]

    def by_group(values: list[object]) -> pd.Categorical:
        codes, categories = pd.factorize(np.array(values, dtype=object))
        return pd.Categorical.from_codes(codes[inverse], categories=categories)

    n, size = len(table), table["size"].to_numpy()
    data = {
        "rank": rank,
        "device": rank % max(job.ranks_per_host, 1),
        "stream": np.full(n, 20),
        "start_ns": EPOCH_NS + on_clock(rank, table["arrival"].to_numpy()),
        "end_ns": EPOCH_NS + on_clock(rank, table["end"].to_numpy()),
        "collective": table["kind"].array,
        "group": by_group([_name(job, *label) for label in labels]),
        "group_desc": by_group([_description(label[0]) for label in labels]),
        "group_size": np.array([len(m) for m in members])[inverse],
        "group_ranks": by_group([_listed(m) for m in members]),
        "seq": table["seq"].to_numpy() if job.recorded_seq else np.full(n, NONE),
        "order": pd.DataFrame({"rank": rank, "group": keys}).groupby(["rank", "group"]).cumcount().to_numpy(),
        "dtype": pd.Categorical.from_codes(np.zeros(n, int), categories=["Float"]),
        "in_elements": size // 4,
        "out_elements": size // 4,
        "size_bytes": size,
        "peer": table["peer"].to_numpy(),
        "op": np.full(n, NONE),
        "step": table["step"].to_numpy(),
        "launch_end_ns": EPOCH_NS + on_clock(rank, table["launch_end"].to_numpy()),
        "kernels": np.ones(n),
        "evidence": pd.Categorical.from_codes(np.zeros(n, int), categories=["metadata"]),
    }
    return COLLECTIVES.frame(data)


def _members(job: Job, dimension: str, number: int) -> Array:
    return np.flatnonzero(_group_of(job, dimension) == number)


def _name(job: Job, dimension: str, number: int) -> str:
    """Names as torch counts them: one group after another, 0 the world."""
    counts = {"world": 1, "tp": job.pp * job.dp, "dp": job.pp * job.tp, "ep": job.pp * job.tp, "pp": job.dp * job.tp}
    first = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    return str(first[dimension] + number)


def _description(dimension: str) -> str:
    return "default_pg" if dimension == "world" else f"mesh_{dimension}"


def _listed(members: Array) -> str:
    """The rank list as the recorder writes it: cut at 30 entries."""
    shown = ",".join(map(str, members[:30].tolist()))
    return f"[{shown},...]" if len(members) > 30 else f"[{shown}]"


def _steps(spans: Array, kept: Array, on_clock: _OnClock) -> pd.DataFrame:
    n_steps = len(spans)
    rank = np.repeat(kept, n_steps)
    times = spans[:, kept].transpose(1, 0, 2).reshape(-1, 2)
    start, end = (EPOCH_NS + on_clock(rank, times[:, i]) for i in (0, 1))
    return STEPS.frame({"rank": rank, "step": np.tile(np.arange(n_steps), len(kept)), "start_ns": start, "end_ns": end})


def _ranks(job: Job, kept: Array) -> pd.DataFrame:
    n = len(kept)
    hosts = [f"node{rank // job.ranks_per_host}" if job.ranks_per_host else None for rank in kept]
    return RANKS.frame(
        {
            "rank": kept,
            "path": [f"rank{rank}.json.gz" for rank in kept],
            "world_size": np.full(n, job.ranks),
            "host": hosts,
            "backend": ["nccl"] * n,
            "rank_evidence": ["distributedInfo"] * n,
            "base_ns": np.full(n, EPOCH_NS),
            "tick_ns": np.ones(n),
            "device_name": ["simulated"] * n,
            "events": np.zeros(n),
        }
    )


def _groups(job: Job, kept: Array) -> pd.DataFrame:
    dimensions = {"world": True, "tp": job.tp > 1 and job.layers, "dp": job.dp > 1, "ep": job.dp > 1 and job.ep, "pp": job.pp > 1}
    rows = []
    for dimension in (name for name, used in dimensions.items() if used):
        numbers = _group_of(job, dimension)
        for number in range(int(numbers.max()) + 1):
            members = np.flatnonzero(numbers == number)
            row = (_name(job, dimension, number), _description(dimension), len(members), _listed(members))
            rows += [(int(rank), *row) for rank in np.intersect1d(members, kept)]
    rows.sort(key=lambda row: row[0])
    return GROUPS.frame(dict(zip(GROUPS.names, map(list, zip(*rows, strict=True)), strict=True)))

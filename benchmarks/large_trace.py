"""A large Trace straight in memory: so many events over so many ranks, for the dashboard's benchmark and tests."""

import numpy as np
import pandas as pd

from c3prof.trace import ACTIVITIES, COLLECTIVES, LAUNCHES, OPS, RANKS, STEPS, Trace

_KERNELS = ["ampere_bf16_s16816gemm_128x256", "flash_fwd_kernel", "vectorized_elementwise_kernel", "layer_norm_kernel", "adam_kernel"]


def large_trace(events: int, ranks: int = 8, steps: int = 20, seed: int = 0) -> Trace:
    """A Trace of about `events` events: 3 of 10 are activities, 3 launches, 4 operators; 1 of 30 activities communicates."""
    return Trace.concat([_rank(rank, events // ranks, steps, ranks, np.random.default_rng(seed + rank)) for rank in range(ranks)])


def _rank(rank: int, events: int, steps: int, world: int, rng: np.random.Generator) -> Trace:
    n_activities, n_ops = events * 3 // 10, events * 4 // 10
    n_comm = max(n_activities // 30, 1)
    compute = _back_to_back(n_activities - n_comm, 9_000, 1_500, rng)
    extent = int(compute[1][-1])
    comm = _back_to_back(n_comm, 9_000 * 12, max(1, extent // n_comm - 9_000 * 12), rng)
    parts = [(7, compute, "compute"), (20, comm, "comm")]
    frames = [_activities(rank, stream, spans, cls, steps, extent, rng) for stream, spans, cls in parts]
    activities = pd.concat(frames, ignore_index=True)
    for column in ("name", "kind", "class", "evidence", "kernel_class", "grid", "block"):
        activities[column] = activities[column].astype("category")
    return Trace(
        activities=ACTIVITIES.frame(activities),
        launches=_launches(rank, activities, rng),
        ops=_ops(rank, n_ops, extent, steps, rng),
        collectives=_collectives(frames[1], world),
        steps=_steps(rank, steps, extent),
        ranks=RANKS.frame(
            {
                "rank": [rank],
                "path": [f"rank{rank}.json"],
                "world_size": [world],
                "host": [None],
                "backend": ["nccl"],
                "rank_evidence": ["distributedInfo"],
                "base_ns": [0],
                "tick_ns": [1],
                "device_name": ["generated"],
                "events": [events],
            }
        ),
        coverage={rank: {"events": events}},
    )


def _back_to_back(n: int, length: float, gap: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    duration = rng.lognormal(np.log(length), 0.6, n).astype(np.int64) + 1
    pause = rng.exponential(gap, n).astype(np.int64) + 1
    start = np.cumsum(pause) + np.concatenate([[0], np.cumsum(duration)[:-1]])
    return start, start + duration


def _activities(
    rank: int, stream: int, spans: tuple[np.ndarray, np.ndarray], cls: str, steps: int, extent: int, rng: np.random.Generator
) -> pd.DataFrame:
    n = len(spans[0])
    kinds = rng.integers(0, len(_KERNELS), n)
    names = (
        pd.Categorical.from_codes(kinds, _KERNELS) if cls == "compute" else pd.Categorical(["ncclDevKernel_AllReduce_Sum_bf16_RING_LL"] * n)
    )
    classes = (
        np.array(["gemm", "attention", "elementwise", "normalization", "optimizer"])[kinds] if cls == "compute" else ["all_reduce"] * n
    )
    return pd.DataFrame(
        {
            "rank": np.full(n, rank, np.int32), "device": np.full(n, rank % 8, np.int32), "stream": np.full(n, stream), "start_ns": spans[0],
            "end_ns": spans[1], "name": names, "kind": "kernel", "class": cls, "evidence": "metadata" if cls == "comm" else "none",
            "kernel_class": classes, "suspected": False, "correlation": np.arange(n) + (0 if cls == "compute" else 10**7), "graph": -1,
            "launch": -1, "op": -1, "annotation": -1, "collective_id": np.arange(n) if cls == "comm" else np.full(n, -1),
            "step": np.minimum(spans[0] * steps // max(extent, 1), steps - 1), "grid": "[132,1,1]", "block": "[256,1,1]",
            "shared_memory": 0, "registers": 64, "occupancy": 50.0, "bytes": -1,
        }
    )  # fmt: skip


def _launches(rank: int, activities: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    start = np.sort(activities["start_ns"].to_numpy()) - rng.integers(5_000, 50_000)
    n = len(start)
    return LAUNCHES.frame(
        {"rank": np.full(n, rank), "thread": pd.Categorical(["1/1"] * n), "start_ns": start, "end_ns": start + 2_500,
         "name": pd.Categorical(["cudaLaunchKernel"] * n), "correlation": np.arange(n), "op": np.full(n, -1),
         "annotation": np.full(n, -1), "blocking": np.zeros(n, bool)}
    )  # fmt: skip


def _ops(rank: int, n: int, extent: int, steps: int, rng: np.random.Generator) -> pd.DataFrame:
    """Pairs of an outer operator and one nested in it."""
    outer = np.sort(rng.integers(0, extent, n // 2))
    length = np.maximum(np.diff(np.append(outer, extent)) - 1, 2)
    start, end = np.repeat(outer, 2), np.repeat(outer + length, 2)
    start[1::2] += length // 4
    end[1::2] -= length // 4
    parent = np.full(len(start), -1)
    parent[1::2] = np.arange(0, len(start), 2)
    names = ["aten::linear", "aten::addmm", "aten::layer_norm", "aten::native_layer_norm"]
    m = len(start)
    empty = pd.Categorical.from_codes(np.full(m, -1), [])
    return OPS.frame(
        {"rank": np.full(m, rank), "thread": pd.Categorical(["1/1"] * m), "start_ns": start, "end_ns": np.maximum(end, start),
         "name": pd.Categorical.from_codes(np.arange(m) % 4, names), "external_id": np.arange(m), "parent": parent,
         "dims": pd.Categorical(["[[4096,4096]]"] * m), "types": empty, "strides": empty, "concrete": empty,
         "is_comm": np.zeros(m, bool), "step": np.minimum(start * steps // max(extent, 1), steps - 1)}
    )  # fmt: skip


def _collectives(comm: pd.DataFrame, world: int) -> pd.DataFrame:
    n = len(comm)
    whole = pd.Categorical([str(list(range(world))).replace(" ", "")] * n)
    return COLLECTIVES.frame(
        {"rank": comm["rank"], "device": comm["device"], "stream": comm["stream"], "start_ns": comm["start_ns"], "end_ns": comm["end_ns"],
         "collective": pd.Categorical(["all_reduce"] * n), "group": pd.Categorical(["0"] * n), "group_desc": pd.Categorical(["default_pg"] * n),
         "group_size": np.full(n, world), "group_ranks": whole, "seq": np.arange(n), "order": np.arange(n),
         "dtype": pd.Categorical(["BFloat16"] * n), "in_elements": np.full(n, 13_107_200), "out_elements": np.full(n, 13_107_200),
         "size_bytes": np.full(n, 26_214_400), "peer": np.full(n, -1), "op": np.full(n, -1), "step": comm["step"],
         "launch_end_ns": np.full(n, -1), "kernels": np.ones(n), "evidence": pd.Categorical(["metadata"] * n)}
    )  # fmt: skip


def _steps(rank: int, steps: int, extent: int) -> pd.DataFrame:
    edges = np.linspace(0, extent, steps + 1).astype(np.int64)
    return STEPS.frame({"rank": np.full(steps, rank), "step": np.arange(steps), "start_ns": edges[:-1], "end_ns": edges[1:]})

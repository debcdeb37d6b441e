"""Work of a rank as activities: what its devices ran or, without any device, what its CPU threads did (gloo).

docs/metrics.md §1: a lane is a CPU thread; it computes while its innermost open operator is neither communication nor
a wait for it. A union of whole operators would count DTensor's dispatch, which encloses collective and wait, as compute.
An annotation inside an operator is a hook in Python (FSDP waits in one): what runs there are the operators inside it.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.intervals import Int64s, pieces
from c3prof.kernels import COMM, COMPUTE, rules
from c3prof.trace import ACTIVITIES, CPU_DEVICE, NONE, Trace

_ON_RUNLOOP = r"^(gloo|mpi|ucc):"


def work(trace: Trace) -> pd.DataFrame:
    """Activities of a Trace in the schema ACTIVITIES; of a rank without device activity those of its CPU lanes.

    On a CPU lane `device` is CPU_DEVICE, `stream` the number of the thread in the trace (-1 for communication), and a
    row of class compute is a piece of the operator `op` in which no operator inside it was open.
    """
    if len(trace.activities) or not len(trace.ops):
        return trace.activities  # without operators nobody knows what computed while the host saw a collective run
    return cpu_activities(trace)


def cpu_activities(trace: Trace) -> pd.DataFrame:
    """Compute pieces and communication spans of the CPU threads, sorted by rank, class of lane and start."""
    op, start, end = _compute_pieces(trace)
    spans = trace.collectives
    compute_rows = _compute_columns(trace.ops, op)
    columns = {
        "rank": np.concatenate([trace.ops["rank"].to_numpy()[op], spans["rank"].to_numpy()]),
        "stream": np.concatenate([trace.ops["thread"].cat.codes.to_numpy()[op].astype(np.int64), np.full(len(spans), NONE)]),
        "start_ns": np.concatenate([start, spans["start_ns"].to_numpy()]),
        "end_ns": np.concatenate([end, spans["end_ns"].to_numpy()]),
        "name": np.concatenate([compute_rows["name"], spans["collective"].astype(object).to_numpy()]),
        "class": np.repeat(np.array([COMPUTE, COMM], object), [len(op), len(spans)]),
        "kernel_class": np.concatenate([compute_rows["kernel_class"], spans["collective"].astype(object).to_numpy()]),
        "op": np.concatenate([op, spans["op"].to_numpy()]),
        "collective_id": np.concatenate([np.full(len(op), NONE), np.arange(len(spans))]),
        "step": np.concatenate([trace.ops["step"].to_numpy()[op], spans["step"].to_numpy()]),
    }
    rows = len(op) + len(spans)
    absent = pd.Categorical.from_codes(np.full(rows, -1), categories=pd.Index([], dtype=object))
    unknown = np.full(rows, NONE)
    frame = ACTIVITIES.frame(
        {
            **columns,
            "device": np.full(rows, CPU_DEVICE),
            **dict.fromkeys(("kind", "grid", "block"), absent),
            **dict.fromkeys(("correlation", "graph", "launch", "annotation", "shared_memory", "registers", "bytes"), unknown),
            "evidence": pd.Categorical(np.repeat(np.array(["none", "annotation"], object), [len(op), len(spans)])),
            "suspected": np.zeros(rows, bool),
            "occupancy": np.full(rows, np.nan),
        }
    )
    return frame.sort_values(["rank", "stream", "start_ns"], kind="stable", ignore_index=True)


def innermost_pieces(ops: pd.DataFrame) -> tuple[Int64s, Int64s, Int64s]:
    """When each operator is the innermost open one of its thread: (row in ops, start, end), int64, without empty pieces.

    ops: schema OPS, sorted by thread and start with parents. A piece lies between two children that follow each other.
    """
    start, end, parent = (ops[column].to_numpy().astype(np.int64) for column in ("start_ns", "end_ns", "parent"))
    child = np.flatnonzero(parent >= 0)
    child = child[np.lexsort((start[child], parent[child]))]
    of = parent[child]
    family = np.concatenate(([False], of[1:] == of[:-1])) if len(of) else np.zeros(0, bool)
    before = np.where(family, np.concatenate(([0], end[child][:-1])) if len(of) else 0, start[of])
    last = np.concatenate((~family[1:], [True])) if len(of) else np.zeros(0, bool)
    alone = np.flatnonzero(~np.isin(np.arange(len(start)), of))
    row = np.concatenate([of, of[last], alone])
    low = np.concatenate([before, np.maximum(end[child][last], start[of[last]]), start[alone]])
    high = np.concatenate([np.minimum(start[child], end[of]), end[of[last]], end[alone]])
    real = low < high
    order = np.lexsort((low[real], row[real]))
    return row[real][order], low[real][order], high[real][order]


def innermost_at(spans: pd.DataFrame, thread: npt.NDArray[np.object_], instants: Int64s) -> Int64s:
    """Row of the innermost span (schema OPS or ANNOTATIONS) that is open at each instant on its thread, -1 for none."""
    found = np.full(len(instants), NONE, np.int64)
    if not len(spans):
        return found
    names = spans["thread"].cat.categories
    codes, parent, end = spans["thread"].cat.codes.to_numpy(), spans["parent"].to_numpy(), spans["end_ns"].to_numpy()
    for code in np.unique(codes):
        rows, asked = np.flatnonzero(codes == code), np.flatnonzero(thread == names[code])
        last = np.searchsorted(spans["start_ns"].to_numpy()[rows], instants[asked], side="right") - 1
        found[asked] = np.where(last >= 0, rows[last], NONE)
    todo = np.flatnonzero(found >= 0)
    while len(todo):
        todo = todo[end[found[todo]] <= instants[todo]]
        found[todo] = parent[found[todo]]
        todo = todo[found[todo] >= 0]
    return found


def _compute_pieces(trace: Trace) -> tuple[Int64s, Int64s, Int64s]:
    """(row in ops, start, end) of the pieces in which a thread computes."""
    op, start, end = innermost_pieces(trace.ops)
    computes = ~_in_communication(trace, op)
    op, start, end = op[computes], start[computes], end[computes]
    notes = trace.annotations
    notes = notes[~notes["name"].astype(object).str.match(_ON_RUNLOOP).to_numpy(dtype=bool)] if len(notes) else notes
    row, start, end = pieces(start, end, np.concatenate([notes["start_ns"].to_numpy(), notes["end_ns"].to_numpy()]))
    op = op[row]
    inner = innermost_at(trace.annotations, trace.ops["thread"].astype(object).to_numpy()[op], start)
    hooked = _inside(trace.annotations, inner, trace.ops, op)
    return op[~hooked], start[~hooked], end[~hooked]


def _inside(notes: pd.DataFrame, note: Int64s, ops: pd.DataFrame, op: Int64s) -> npt.NDArray[np.bool_]:
    """Whether each annotation (row, -1 for none) began inside the operator beside it and does not belong to gloo."""
    if not len(notes):
        return np.zeros(len(op), bool)
    begun, ended = notes["start_ns"].to_numpy()[note], notes["end_ns"].to_numpy()[note]
    start, end = ops["start_ns"].to_numpy()[op], ops["end_ns"].to_numpy()[op]
    served = notes["name"].astype(object).str.match(_ON_RUNLOOP).to_numpy(dtype=bool)[note]
    return np.asarray((note >= 0) & ~served & ((begun > start) | ((begun == start) & (ended < end))), bool)


def _in_communication(trace: Trace, op: Int64s) -> npt.NDArray[np.bool_]:
    """Whether each piece communicates or waits: its operator does, or it runs on a thread that only serves gloo."""
    ops, notes = trace.ops, trace.annotations
    is_comm = ops["is_comm"].to_numpy()
    serving = set(notes["thread"][notes["name"].astype(object).str.match(_ON_RUNLOOP).to_numpy(dtype=bool)]) if len(notes) else set()
    calling = set(ops["thread"][is_comm])
    on_runloop = ops["thread"].isin(serving - calling).to_numpy(dtype=bool)
    return np.asarray((is_comm | on_runloop)[op], bool)


def _compute_columns(ops: pd.DataFrame, op: Int64s) -> dict[str, npt.NDArray[np.object_]]:
    names = [str(name) for name in ops["name"].cat.categories]
    verdicts = rules().verdicts(names)
    told = [kernel if kind == COMPUTE else "other" for kind, kernel in zip(verdicts.classes, verdicts.kernel_classes, strict=True)]
    classes = np.array([*told, "other"], object)
    codes = ops["name"].cat.codes.to_numpy()[op]
    return {"name": np.array([*names, ""], object)[codes], "kernel_class": classes[codes]}

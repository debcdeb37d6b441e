"""Communication operations of one rank: which activities are one collective, and what is known about it."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.kernels import UNKNOWN, collective_kind, is_comm_op, is_wait_op
from c3prof.readers.classes import WORDS, Classified
from c3prof.readers.cpu_side import step_at
from c3prof.readers.scan import MISSING
from c3prof.readers.strings import texts
from c3prof.trace import COLLECTIVES, CPU_DEVICE, NONE

if TYPE_CHECKING:
    from c3prof.readers.cpu_side import CpuSide
    from c3prof.readers.file import File
    from c3prof.readers.links import Links

Int = npt.NDArray[np.int64]

_ITEM_SIZES = {
    "byte": 1, "char": 1, "bool": 1, "uint8": 1, "int8": 1, "unsigned char": 1, "signed char": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "short": 2, "int16": 2, "half": 2, "bfloat16": 2, "float16": 2, "c10::half": 2, "c10::bfloat16": 2, "uint16": 2,
    "int": 4, "int32": 4, "float": 4, "float32": 4, "uint32": 4, "c10::complex<half>": 4,
    "long": 8, "int64": 8, "long int": 8, "double": 8, "float64": 8, "uint64": 8, "c10::complex<float>": 8, "complexfloat": 8,
    "complexdouble": 16, "c10::complex<double>": 16,
}  # fmt: skip
_ON_CPU = re.compile(r"^(gloo|mpi|ucc):")
_NUMBER = re.compile(r"\d+")


def item_size(dtype: str) -> int:
    """Bytes of an element of a dtype as recorders write it (Float, c10::BFloat16, torch.int64); 0 when unknown."""
    return _ITEM_SIZES.get(dtype.lower().removeprefix("torch."), 0)


def collectives_on_devices(
    file: "File", rows: Int, links: "Links", classes: Classified, cpu: "CpuSide", step: Int
) -> tuple[pd.DataFrame, npt.NDArray[np.int32]]:
    """The collectives frame, and the row in it of each activity (-1 for what is not communication).

    Activities that one communication operator launched are one operation; in a graph replay, or without operator,
    each activity is one.
    """
    launches, notes = cpu.launches, cpu.annotations
    comm = np.flatnonzero(np.asarray(classes.activity_class == "comm"))
    by_op = classes.comm_op[comm] & ~links.replayed[comm]
    key = np.where(by_op, links.op[comm], len(cpu.ops) + np.arange(len(comm)))
    _, first, operation = np.unique(key, return_index=True, return_inverse=True)
    start, end = np.full(len(first), np.iinfo(np.int64).max), np.full(len(first), np.iinfo(np.int64).min)
    np.minimum.at(start, operation, file.start[rows[comm]])
    np.maximum.at(end, operation, file.end[rows[comm]])
    rank_of_start = np.lexsort((np.arange(len(first)), start))
    place = np.empty_like(rank_of_start)
    place[rank_of_start] = np.arange(len(first))
    leading = comm[first[rank_of_start]]  # the activity that stands for the operation
    collective_id = np.full(len(rows), NONE, np.int32)
    collective_id[comm] = place[operation]

    op = np.where(classes.comm_op[leading], links.op[leading], NONE)
    source = _argument_rows(file, rows[leading], op, cpu.op_rows)
    launch = links.launch[leading]
    launch_start = (
        np.where(launch >= 0, launches["start_ns"].to_numpy()[launch], start[rank_of_start]) if len(launches) else start[rank_of_start]
    )
    launch_end = np.where(launch >= 0, launches["end_ns"].to_numpy()[launch], NONE) if len(launches) else np.full(len(leading), NONE)
    kind = _refined_kinds(np.array(WORDS, object)[classes.collective[leading]], links.annotation[leading], notes)
    columns = {
        "device": file.sparse("device", "device", rows[leading], 0),
        "stream": _known(file.sparse("device", "stream", rows[leading], MISSING)),
        "start_ns": start[rank_of_start],
        "end_ns": end[rank_of_start],
        **_arguments(file, source, kind, _annotated_elements(links.annotation[leading], notes)),
        "op": links.op[leading],
        "step": step[leading],
        "launch_end_ns": launch_end,
        "kernels": np.bincount(operation, minlength=len(first))[rank_of_start],
        "evidence": classes.evidence[leading],
    }
    return _frame(file, columns, launch_start), collective_id


def kernel_classes(by_name: pd.Categorical, collective_id: npt.NDArray[np.int32], collectives: pd.DataFrame) -> pd.Categorical:
    """The kernel class of each activity; of communication the kind of its collective, which knows more than the name."""
    kind = collectives["collective"].array
    words = by_name.categories.union(kind.categories)
    codes, of_kind = (np.append(words.get_indexer(c.categories), NONE)[c.codes] for c in (by_name, kind))
    told = np.append(of_kind, NONE)[np.where(collective_id >= 0, collective_id, len(of_kind))]
    return pd.Categorical.from_codes(np.where(told >= 0, told, codes), categories=words)


def _known(stream: Int) -> Int:
    return np.where(stream == MISSING, NONE, stream)


def _argument_rows(file: "File", event: Int, op: Int, op_rows: Int) -> Int:
    """Event that carries the collective arguments: the activity itself, else its operator."""
    own = np.isin(event, file.scan.comm["row"])
    return np.where(own | (op < 0), event, op_rows[op] if len(op_rows) else event)


def _refined_kinds(kind: npt.NDArray[Any], annotation: Int, notes: pd.DataFrame) -> npt.NDArray[Any]:
    """Kinds, with what torch's own annotation around the launch (nccl:all_to_all) knows better than the kernel's name."""
    names = notes["name"].cat.categories
    known = np.array([*(collective_kind(name) if is_comm_op(name) else UNKNOWN for name in names), UNKNOWN], object)
    told = np.full(len(kind), UNKNOWN, object)
    inside = annotation >= 0
    told[inside] = known[notes["name"].cat.codes.to_numpy()[annotation[inside]]]
    return np.where(told != UNKNOWN, told, kind)


def _annotated_elements(annotation: Int, notes: pd.DataFrame) -> tuple[Int, npt.NDArray[Any]]:
    """Elements and type of the tensor that torch's annotation (nccl:…, gloo:…) was given; -1 and "" where unknown."""
    names, dims, types = notes["name"].cat, notes["dims"].cat, notes["types"].cat
    is_comm = np.array([*(is_comm_op(name) for name in names.categories), False], bool)[names.codes.to_numpy()]
    elements = np.array([*(_elements(text) for text in dims.categories), NONE], np.int64)[dims.codes.to_numpy()]
    dtype = np.array([*(_first_type(text) for text in types.categories), ""], object)[types.codes.to_numpy()]
    usable = (annotation >= 0) & (is_comm[annotation] if len(notes) else False)
    at = np.where(usable, annotation, 0)
    if not len(notes):
        return np.full(len(annotation), NONE), np.full(len(annotation), "", object)
    return np.where(usable, elements[at], NONE), np.where(usable, dtype[at], "")


def _elements(dims: str) -> int:
    """Elements of the first tensor in Input Dims, [[2873320]] → 2873320; -1 if there is none."""
    first = re.match(r"^\[\[([\d,]*)\]", dims)
    if not first:
        return NONE
    product = 1
    for number in _NUMBER.findall(first[1]):
        product *= int(number)
    return product if first[1] and product < 2**62 else NONE


def _first_type(types: str) -> str:
    first = re.match(r'^\["([^"]*)"', types)
    return first[1] if first else ""


def _arguments(file: "File", source: Int, kind: npt.NDArray[Any], annotated: tuple[Int, npt.NDArray[Any]]) -> dict[str, Any]:
    """The columns that come from collective arguments on the events `source`; sizes from the annotation where they have none."""
    values = {c: file.sparse("comm", c, source, NONE) for c in ("in_elements", "out_elements", "group_size", "seq", "src_rank", "dst_rank")}
    dtype = file.strings.lookup(file.sparse("comm", "dtype", source, NONE), str, object, "")
    elements, annotated_type = annotated
    without = (values["in_elements"] < 0) & (values["out_elements"] < 0) & (elements >= 0)
    values["in_elements"] = np.where(without, elements, values["in_elements"])
    dtype = np.where((dtype == "") & without, annotated_type, dtype)
    return {
        "collective": kind,
        "group": file.text("comm", "group", source),
        "group_desc": file.text("comm", "group_desc", source),
        "group_size": values["group_size"],
        "group_ranks": file.text("comm", "group_ranks", source),
        "seq": values["seq"],
        "dtype": dtype,
        "in_elements": values["in_elements"],
        "out_elements": values["out_elements"],
        "size_bytes": sizes(kind, values["in_elements"], values["out_elements"], values["group_size"], dtype),
        "peer": np.select([kind == "send", kind == "recv"], [values["dst_rank"], values["src_rank"]], NONE),
    }


def sizes(kind: npt.NDArray[Any], inputs: Int, outputs: Int, group_size: Int, dtype: npt.NDArray[Any]) -> Int:
    """Message sizes in bytes as nccl-tests counts them (docs/metrics.md §5), -1 where elements or type are unknown.

    max(in, out) elements; a send counts its input, a recv its output. An all_gather of which only the input is known
    has input × group size.
    """
    gathered = np.where(
        (kind == "all_gather") & (outputs < 0), np.where(group_size > 0, inputs * group_size, NONE), np.maximum(inputs, outputs)
    )
    elements = np.select([(kind == "send") & (inputs >= 0), (kind == "recv") & (outputs >= 0)], [inputs, outputs], gathered)
    known = {text: item_size(str(text)) for text in set(dtype.tolist())}
    item = np.array([known[text] for text in dtype.tolist()], np.int64)
    return np.where((elements >= 0) & (item > 0), elements * item, NONE)


def collectives_on_cpu(file: "File", cpu: "CpuSide") -> pd.DataFrame:
    """The collectives frame of a run without devices: the execution spans gloo:* of torch's annotations.

    The k-th span belongs to the k-th c10d operator when there are as many of both: then the operator tells the kind
    (gloo runs a reduce_scatter as all_reduce) and when it was enqueued.
    """
    ops, notes = cpu.ops, cpu.annotations
    spans = np.flatnonzero(notes["name"].str.match(_ON_CPU).to_numpy(dtype=bool)) if len(notes) else np.zeros(0, np.int64)
    spans = spans[np.argsort(notes["start_ns"].to_numpy()[spans], kind="stable")]
    kind = np.array([collective_kind(name) for name in notes["name"].to_numpy()[spans]], object)
    op = _enqueued_by(ops, len(spans))
    named = np.array([collective_kind(name) for name in ops["name"].to_numpy()[op[op >= 0]]], object)
    kind[op >= 0] = np.where(named == UNKNOWN, kind[op >= 0], named)
    elements, dtype = _annotated_elements(spans, notes)
    unknown = np.full(len(spans), NONE, np.int64)
    missing = texts([None] * len(spans))
    start = notes["start_ns"].to_numpy()[spans]
    columns = {
        "device": np.full(len(spans), CPU_DEVICE),
        "stream": unknown,
        "start_ns": start,
        "end_ns": notes["end_ns"].to_numpy()[spans],
        "collective": kind,
        "group": missing,
        "group_desc": missing,
        "group_size": unknown,
        "group_ranks": missing,
        "seq": unknown,
        "dtype": dtype,
        "in_elements": elements,
        "out_elements": unknown,
        "size_bytes": sizes(kind, elements, unknown, unknown, dtype),
        "peer": unknown,
        "op": op,
        "step": _op_steps(ops, op, step_at(cpu.steps, start)),
        "launch_end_ns": np.where(op >= 0, ops["end_ns"].to_numpy()[op], NONE) if len(ops) else unknown,
        "kernels": np.ones(len(spans), np.int64),
        "evidence": texts(["annotation"] * len(spans)),
    }
    return _frame(file, columns, start)


def _op_steps(ops: pd.DataFrame, op: Int, otherwise: Int) -> Int:
    return np.where(op >= 0, ops["step"].to_numpy()[op], otherwise) if len(ops) else otherwise


def _enqueued_by(ops: pd.DataFrame, count: int) -> Int:
    """Row in ops of the operator that enqueued each of `count` spans in order; -1 when the counts differ."""
    names = ops["name"].cat.categories
    enqueues = np.array([*(name.startswith("c10d::") and not is_wait_op(name) for name in names), False], bool)
    rows = np.flatnonzero(enqueues[ops["name"].cat.codes.to_numpy()]) if len(ops) else np.zeros(0, np.int64)
    if len(rows) != count:
        return np.full(count, NONE, np.int64)
    return rows[np.argsort(ops["start_ns"].to_numpy()[rows], kind="stable")]


def _frame(file: "File", columns: dict[str, Any], launched: Int) -> pd.DataFrame:
    """The frame with rank and the place of each operation in the order of launch of its group."""
    group = columns["group"]
    order = np.lexsort((launched, group.codes))
    place = np.empty(len(order), np.int64)
    sorted_groups = group.codes[order]
    begins = np.r_[0, np.flatnonzero(np.diff(sorted_groups)) + 1] if len(order) else np.zeros(0, np.int64)
    place[order] = np.arange(len(order)) - np.repeat(begins, np.diff(np.r_[begins, len(order)]))
    text = {c: texts(columns[c].tolist()) for c in ("collective", "dtype")}
    rank = np.full(len(order), file.rank, np.int32)
    return COLLECTIVES.frame({**columns, **text, "rank": rank, "order": place})

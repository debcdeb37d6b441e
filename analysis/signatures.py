"""Which activities do the same work, so that their durations can be compared (docs/metrics.md §3, Signature).

Name and grid alone are not enough: real traces run one name and grid on different sizes.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.intervals import Int64s
from c3prof.analysis.segments import Segments
from c3prof.kernels import COMM
from c3prof.trace import NONE, Trace

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Signatures:
    """The signature of each of n activities, and what the signatures are.

    code: of each activity, 0..m-1; first: the first activity of each signature; place: n-th occurrence of the name on
    its stream in the step (or replay, or run), of each activity; unsized: whether sizes are unknown, of each signature.
    """

    code: Int64s
    first: Int64s
    place: Int64s
    unsized: BoolArray

    def __len__(self) -> int:
        return len(self.first)


def signatures(trace: Trace, rows: pd.DataFrame) -> Signatures:
    """The Signatures of the activities of one device, in the order of rows (by stream and start)."""
    comm = (rows["class"] == COMM).to_numpy(dtype=bool)
    place, repeats = _places(rows)
    sized = np.where(comm, _sized_collectives(trace, rows), _sized_operators(trace, rows)) & (rows["graph"].to_numpy() == NONE)
    position = np.where(sized | ~repeats, -1, place)
    fields = [comm, position, *(_codes(rows[name]) for name in ("name", "grid"))]
    fields += [np.where(comm, -1, field) for field in _launch_fields(trace, rows)]
    fields += [np.where(comm, field, -1) for field in _collective_fields(trace, rows)]
    code = np.zeros(len(rows), np.int64)
    for field in fields:
        code = _joined(code, field)
    first = np.full(int(code.max(initial=-1)) + 1, len(rows), np.int64)
    np.minimum.at(first, code, np.arange(len(rows)))
    return Signatures(code, first, place, ~(sized | repeats)[first])


def signature_texts(trace: Trace, rows: pd.DataFrame, marks: Signatures, codes: Sequence[int] | Int64s) -> pd.DataFrame:
    """What the given signatures are: kernel, op, input_dims and `signature`, 8 hex digits that are the same in every trace."""
    first = marks.first[np.asarray(codes, np.int64)]
    here, op = rows.iloc[first], rows["op"].to_numpy()[first]
    place = np.where(marks.unsized[np.asarray(codes, np.int64)], -1, marks.place[first])
    ops = {name: _at(trace.ops[name], op) for name in ("name", "dims", "types", "strides")}
    known = {
        name: _at(trace.collectives[name], here["collective_id"].to_numpy()) for name in ("collective", "group", "dtype", "size_bytes")
    }
    sized = np.where(here["class"] == COMM, _sized_collectives(trace, here), _sized_operators(trace, here))
    place = np.where(sized & (here["graph"].to_numpy() == NONE), -1, place)
    compute = (here["class"] != COMM).to_numpy(dtype=bool)
    parts = [here[name].astype(object) for name in ("name", "grid")]
    parts += [np.where(compute, here[name].astype(object), "") for name in ("block", "shared_memory")]
    parts += [np.where(compute, values, "") for values in ops.values()]
    parts += [np.where(compute, "", values) for values in known.values()]
    parts += [place, np.where(compute & (op >= 0), _turn_in_op(rows)[first], -1)]
    texts = ["|".join(map(str, values)) for values in zip(*parts, strict=True)]
    return pd.DataFrame(
        {
            "kernel": here["name"].astype(object).to_numpy(),
            "signature": [hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest() for text in texts],
            "op": np.where(compute, ops["name"], known["collective"]),
            "input_dims": np.where(compute, ops["dims"], _sizes(known["size_bytes"])),
        }
    )


def _sizes(size_bytes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.array([f"{size} B" if isinstance(size, (int, np.integer)) and size >= 0 else None for size in size_bytes], object)


def _places(rows: pd.DataFrame) -> tuple[Int64s, BoolArray]:
    """n-th occurrence of the name on its stream in the step (in the replay for graphs, in the run without steps).

    And whether that place can repeat: it does in replays and steps; a run without steps has every place once, unless
    nothing of the CPU's side was recorded, where names and grids are all there is.
    """
    step, graph = rows["step"].to_numpy(), rows["graph"].to_numpy()
    frame = np.where(graph != NONE, rows["correlation"].to_numpy(), step)
    code = _joined(_joined(_joined(_codes(rows["name"]), rows["stream"].to_numpy()), frame), graph != NONE)
    order = np.argsort(code, kind="stable")
    place = np.empty(len(rows), np.int64)
    place[order] = Segments(code[order], int(code.max(initial=-1)) + 1).ordinals()
    bare = len(np.unique(step)) < 2 and not np.any(rows["op"].to_numpy() >= 0)
    return place, np.full(len(rows), not bare) | (graph != NONE)


def _sized_operators(trace: Trace, rows: pd.DataFrame) -> BoolArray:
    """Whether the launching operator's dims say how much work it is: some dimension is a number."""
    dims = trace.ops["dims"]
    told = np.array([any(letter.isdigit() for letter in str(text)) for text in dims.cat.categories] + [False], bool)
    op = rows["op"].to_numpy()
    return np.where(op >= 0, np.append(told[dims.cat.codes.to_numpy()], False)[op], False)


def _sized_collectives(trace: Trace, rows: pd.DataFrame) -> BoolArray:
    size = np.append(trace.collectives["size_bytes"].to_numpy(), NONE)
    return np.asarray(size[rows["collective_id"].to_numpy()] >= 0)


def _launch_fields(trace: Trace, rows: pd.DataFrame) -> list[Int64s]:
    op = rows["op"].to_numpy()
    of_op = [np.append(_codes(trace.ops[name]), -2)[op] for name in ("name", "dims", "types", "strides")]
    return [_codes(rows["block"]), rows["shared_memory"].to_numpy(), *of_op, _turn_in_op(rows)]


def _turn_in_op(rows: pd.DataFrame) -> Int64s:
    """n-th launch of the name by one call of its operator: a multi-tensor operator splits its work unevenly over them."""
    op = rows["op"].to_numpy().astype(np.int64)
    code = _joined(_codes(rows["name"]), op)
    order = np.argsort(code, kind="stable")
    turn = np.empty(len(rows), np.int64)
    turn[order] = Segments(code[order], int(code.max(initial=-1)) + 1).ordinals()
    return np.where((op >= 0) & (rows["graph"].to_numpy() == NONE), turn, 0)


def _collective_fields(trace: Trace, rows: pd.DataFrame) -> list[Int64s]:
    collective = rows["collective_id"].to_numpy()
    of_collective = [np.append(_codes(trace.collectives[name]), -2)[collective] for name in ("collective", "group", "dtype")]
    return [*of_collective, np.append(trace.collectives["size_bytes"].to_numpy(), NONE)[collective]]


def _at(values: pd.Series, positions: Int64s) -> npt.NDArray[Any]:
    """Values at row positions, None for -1 and for what is missing."""
    found = np.append(values.astype(object).to_numpy(), [None])[positions]
    found[pd.isna(found)] = None
    return found


def _codes(column: pd.Series) -> Int64s:
    return column.cat.codes.to_numpy().astype(np.int64)


def _joined(code: Int64s, field: Any) -> Int64s:
    """A dense code of pairs: equal where both are equal."""
    other = pd.factorize(np.asarray(field).astype(np.int64))[0].astype(np.int64)
    return pd.factorize(code * (int(other.max(initial=0)) + 1) + other)[0].astype(np.int64)

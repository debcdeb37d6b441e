"""Class of each device activity, with the evidence it rests on (docs/metrics.md §1): metadata, copy-engine, name, stream."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.kernels import (
    COLLECTIVES,
    COMM,
    COMPUTE,
    COPY,
    FUSED,
    KERNEL_CLASSES,
    UNKNOWN,
    Rules,
    collective_kind,
    is_comm_op,
    is_recorded_op,
)
from c3prof.readers.file import KINDS
from c3prof.readers.scan import MISSING
from c3prof.readers.strings import categorical
from c3prof.trace import NONE

if TYPE_CHECKING:
    from c3prof.readers.file import File
    from c3prof.readers.links import Links

Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]

CLASSES = (COMPUTE, COMM, FUSED, COPY)
_COMPUTE, _COMM, _FUSED, _COPY = range(4)
EVIDENCE = ("none", "metadata", "copy-engine", "name", "stream")


WORDS = ("", *KERNEL_CLASSES, *COLLECTIVES)
"""Kernel classes and kinds of collectives; positions in here stand for them until the frames are made."""

_OTHER, _MEMORY, _UNKNOWN = WORDS.index("other"), WORDS.index("memory"), WORDS.index(UNKNOWN)


@dataclass(frozen=True)
class Classified:
    """Per activity: class, evidence and kernel class as categoricals; collective: position in WORDS of what is known.

    suspected: unknown name on a communication stream; comm_op: its innermost operator is communication (and it is no
    part of a graph replay); renamed: activities whose metadata says another kind than the kernel's name.
    """

    activity_class: pd.Categorical
    evidence: pd.Categorical
    kernel_class: pd.Categorical
    collective: Codes
    suspected: Bool
    comm_op: Bool
    renamed: int
    warnings: tuple[DataWarning, ...]


def classified(file: "File", rows: Int, links: "Links", ops: pd.DataFrame, rules: Rules) -> Classified:
    """The classes of the activities `rows`. Metadata beats copy engine beats name beats the stream they run on."""
    is_kernel, is_memcpy = file.kind[rows] == KINDS.index("kernel"), file.kind[rows] == KINDS.index("memcpy")
    named_class, named_kernel = _by_name(file, rows, is_kernel, rules)
    by_args = _kind_in_arguments(file, rows)
    by_op = _kind_of_op(ops)[links.op]  # -1 reads the last entry: no operator
    # One launch replays many kernels: the operator around it says nothing about each of them.
    comm_op = (by_op > 0) & ~(links.replayed & (by_args == 0))

    fused = is_kernel & (named_class == _FUSED)
    metadata = is_kernel & ~fused & ((by_args > 0) | (comm_op & _is_recorded(ops)[links.op]))
    copy_engine = is_memcpy & (comm_op | _peer_to_peer(file, rows))
    named = is_kernel & (named_class == _COMM) & ~metadata
    code = np.select([fused, metadata | copy_engine | named, is_kernel], [_FUSED, _COMM, _COMPUTE], _COPY)
    evidence = np.select([metadata, copy_engine, named | fused], [1, 2, 3], 0)

    told = np.where((by_args > 0) & (by_args != _UNKNOWN), by_args, np.where(comm_op & (by_op != _UNKNOWN), by_op, 0))
    in_name = np.where(named_class == _COMM, named_kernel, _UNKNOWN)
    collective = np.where(told > 0, told, in_name)
    renamed = metadata & (told > 0) & (in_name != _UNKNOWN) & (told != in_name)
    suspected = _suspected(file, rows, code, named_kernel)
    evidence[suspected] = EVIDENCE.index("stream")
    kernel_class = np.select([code == _COMM, code == _COPY], [collective, _MEMORY], named_kernel)
    return Classified(
        activity_class=_categorical(code, CLASSES),
        evidence=_categorical(evidence, EVIDENCE),
        kernel_class=_categorical(kernel_class, WORDS),
        collective=collective,
        suspected=suspected,
        comm_op=comm_op,
        renamed=int(renamed.sum()),
        warnings=_warnings(file, rows, suspected, fused),
    )


def _categorical(codes: Codes, words: tuple[str, ...]) -> pd.Categorical:
    """The codes as a categorical over the words that occur."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(words)))
    return categorical(codes, used, [words[code] for code in used])


def _by_name(file: "File", rows: Int, is_kernel: Bool, rules: Rules) -> tuple[Codes, Codes]:
    """Class and kernel class that the rule table gives to each kernel's name; copies have none."""
    names = file.scan.events["name"][rows]
    used = file.strings.used(names[is_kernel])
    verdicts = rules.verdicts(file.strings.texts[used].tolist())
    classes = np.full(len(file.strings.texts) + 1, _COMPUTE, np.int8)
    kernel_classes = np.full(len(file.strings.texts) + 1, _OTHER, np.int8)
    classes[used] = [CLASSES.index(word) for word in verdicts.classes]
    kernel_classes[used] = [WORDS.index(word) for word in verdicts.kernel_classes]
    return np.where(is_kernel, classes[names], _COPY), np.where(is_kernel, kernel_classes[names], _MEMORY)


def _kind_in_arguments(file: "File", rows: Int) -> Codes:
    """The collective that an activity's own arguments name; 0 without arguments, "unknown" for a name not known.

    A process group or an element count without a name are arguments too.
    """
    codes = file.sparse("comm", "collective", rows, NONE)
    kinds = file.strings.lookup(codes, lambda text: WORDS.index(collective_kind(text)), np.int8, 0)
    others = (file.sparse("comm", "group", rows, NONE) >= 0) | (file.sparse("comm", "in_elements", rows, NONE) >= 0)
    return np.where((kinds == 0) & others, _UNKNOWN, kinds).astype(np.int8)


def _is_recorded(ops: pd.DataFrame) -> Bool:
    """For each operator, and last for none, whether it is c10d's own record of communication."""
    names = ops["name"].cat.categories
    recorded = np.array([*(is_recorded_op(name) for name in names), False], bool)
    return np.append(recorded[ops["name"].cat.codes.to_numpy()], False)


def _kind_of_op(ops: pd.DataFrame) -> Codes:
    """For each operator the kind of collective its name means, 0 if it is no communication operator; one more 0 at the end."""
    names = ops["name"].cat.categories
    kinds = np.array([*(WORDS.index(collective_kind(name)) if is_comm_op(name) else 0 for name in names), 0], np.int8)
    return np.append(kinds[ops["name"].cat.codes.to_numpy()], np.int8(0))


def _peer_to_peer(file: "File", rows: Int) -> Bool:
    by_name = file.strings.lookup(file.scan.events["name"][rows], _is_peer_copy, bool, absent=False)
    by_kind = file.strings.lookup(file.sparse("device", "copy_kind", rows, NONE), _is_peer_copy, bool, absent=False)
    return np.logical_or(by_name, by_kind)


def _is_peer_copy(text: str) -> bool:
    return "ptop" in text.lower() or "peer" in text.lower()


def _suspected(file: "File", rows: Int, code: Codes, kernel_class: Codes) -> Bool:
    """Kernels of unknown name on a stream on which every other kernel communicates, and more of them."""
    if not len(rows):
        return np.zeros(0, bool)
    device, stream = file.sparse("device", "device", rows, 0), file.sparse("device", "stream", rows, MISSING)
    lane = np.cumsum(np.r_[0, (np.diff(device) != 0) | (np.diff(stream) != 0)])
    unknown = (code == _COMPUTE) & (kernel_class == _OTHER)
    other_work = np.bincount(lane[(code != _COMM) & (code != _COPY) & ~unknown], minlength=lane[-1] + 1)
    comm, strange = (np.bincount(lane[mask], minlength=lane[-1] + 1) for mask in (code == _COMM, unknown))
    return np.asarray(unknown & ((other_work == 0) & (comm > strange))[lane], bool)


def _warnings(file: "File", rows: Int, suspected: Bool, fused: Bool) -> tuple[DataWarning, ...]:
    def first(mask: Bool) -> str:
        code = file.scan.events["name"][rows[np.flatnonzero(mask)[0]]]
        return str(file.strings.texts[code])[:80] if code >= 0 else "no name"

    found = []
    if suspected.any():
        message = (
            f"kernels of unknown name run on a stream that otherwise only communicates ({first(suspected)}); "
            "counted as compute: add a rule (--rules) if they communicate"
        )
        found.append(DataWarning("suspected-comm", message, int(suspected.sum()), file.name))
    if fused.any():
        message = f"kernels that compute and communicate at once ({first(fused)}): their communication cannot be separated"
        found.append(DataWarning("unattributable-fused", message, int(fused.sum()), file.name))
    return tuple(found)

"""Class of each device activity, with the evidence it rests on (docs/metrics.md §1): metadata, copy-engine, name, stream."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.errors import DataWarning
from c3prof.kernels import COMM, COMPUTE, COPY, FUSED, UNKNOWN, Rules, collective_kind, is_comm_op
from c3prof.readers.scan import MISSING
from c3prof.trace import NONE

if TYPE_CHECKING:
    from c3prof.readers.file import File
    from c3prof.readers.links import Links

Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

CLASSES = (COMPUTE, COMM, FUSED, COPY)
EVIDENCE = ("none", "metadata", "copy-engine", "name", "stream")


@dataclass(frozen=True)
class Classified:
    """Per activity: class, evidence and kernel class as categoricals, the kind that metadata or name tells, and suspicion.

    has_arguments: the activity itself carries collective arguments; comm_op: its innermost operator is communication;
    renamed: activities whose metadata says another kind than the kernel's name.
    """

    activity_class: pd.Categorical
    evidence: pd.Categorical
    kernel_class: pd.Categorical
    collective: npt.NDArray[np.object_]
    suspected: Bool
    has_arguments: Bool
    comm_op: Bool
    renamed: int
    warnings: tuple[DataWarning, ...]


def classified(file: "File", rows: Int, links: "Links", ops: pd.DataFrame, rules: Rules) -> Classified:
    """The classes of the activities `rows`. Metadata beats copy engine beats name beats the stream they run on."""
    is_kernel, is_memcpy = file.kind[rows] == "kernel", file.kind[rows] == "memcpy"
    named_class, named_kernel = _by_name(file, rows, is_kernel, rules)
    by_args = _kind_in_arguments(file, rows)
    has_arguments = by_args != ""
    op_kind = _kind_of_op(ops)
    comm_op = np.zeros(len(rows), bool)
    linked = links.op >= 0
    comm_op[linked] = (op_kind != "")[links.op[linked]]
    comm_op &= ~(links.replayed & ~has_arguments)  # one launch replays many kernels: the operator around it says nothing about each

    fused = is_kernel & (named_class == FUSED)
    metadata = is_kernel & ~fused & (has_arguments | comm_op)
    copy_engine = is_memcpy & (comm_op | _peer_to_peer(file, rows))
    named = is_kernel & (named_class == COMM) & ~metadata

    code = np.select([fused, metadata | copy_engine | named, is_kernel], [2, 1, 0], 3)
    evidence = np.select([metadata, copy_engine, named | fused], [1, 2, 3], 0)
    collective = np.where(has_arguments & (by_args != UNKNOWN), by_args, "")
    from_op = (collective == "") & comm_op
    collective[from_op] = op_kind[links.op[from_op]]
    renamed = (metadata & (named_class == COMM)) & (named_kernel != UNKNOWN) & (collective != UNKNOWN) & (collective != named_kernel)
    collective = np.where((collective == "") | (collective == UNKNOWN), np.where(named_class == COMM, named_kernel, UNKNOWN), collective)

    kernel_class = np.select([code == 1, code == 3], [collective, "memory"], named_kernel)
    suspected = _suspected(file, rows, code, named_kernel)
    evidence[suspected] = EVIDENCE.index("stream")
    return Classified(
        activity_class=pd.Categorical.from_codes(code, categories=pd.Index(CLASSES, dtype=object)),
        evidence=pd.Categorical.from_codes(evidence, categories=pd.Index(EVIDENCE, dtype=object)),
        kernel_class=pd.Categorical(kernel_class.astype(object)),
        collective=collective,
        suspected=suspected,
        has_arguments=has_arguments,
        comm_op=comm_op,
        renamed=int(renamed.sum()),
        warnings=_warnings(file, rows, suspected, fused),
    )


def _by_name(file: "File", rows: Int, is_kernel: Bool, rules: Rules) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]:
    """Class and kernel class that the rule table gives to each kernel's name; copies have none."""
    names = file.scan.events["name"][rows]
    used = file.strings.used(names[is_kernel])
    verdicts = rules.verdicts(file.strings.texts[used].tolist())
    classes = np.full(len(file.strings.texts) + 1, COMPUTE, object)
    kernel_classes = np.full(len(file.strings.texts) + 1, "other", object)
    classes[used], kernel_classes[used] = verdicts.classes, verdicts.kernel_classes
    return np.where(is_kernel, classes[names], COPY), np.where(is_kernel, kernel_classes[names], "memory")


def _kind_in_arguments(file: "File", rows: Int) -> npt.NDArray[Any]:
    """The collective that an activity's own arguments name; "" without arguments, "unknown" for a name not known.

    A collective name is enough; a process group or element counts without a name are arguments too.
    """
    codes = file.sparse("comm", "collective", rows, NONE)
    kinds = file.strings.lookup(codes, collective_kind, object, "")
    others = (file.sparse("comm", "group", rows, NONE) >= 0) | (file.sparse("comm", "in_elements", rows, NONE) >= 0)
    return np.where((kinds == "") & others, UNKNOWN, kinds)


def _kind_of_op(ops: pd.DataFrame) -> npt.NDArray[np.object_]:
    """For each operator the kind of collective its name means, "" if it is no communication operator."""
    names = ops["name"].cat.categories
    kinds = np.array([*(collective_kind(name) if is_comm_op(name) else "" for name in names), ""], object)
    return np.asarray(kinds[ops["name"].cat.codes.to_numpy()], object)


def _peer_to_peer(file: "File", rows: Int) -> Bool:
    by_name = file.strings.lookup(file.scan.events["name"][rows], _is_peer_copy, bool, absent=False)
    by_kind = file.strings.lookup(file.sparse("device", "copy_kind", rows, NONE), _is_peer_copy, bool, absent=False)
    return np.asarray(by_name | by_kind, bool)


def _is_peer_copy(text: str) -> bool:
    return "ptop" in text.lower() or "peer" in text.lower()


def _suspected(file: "File", rows: Int, code: npt.NDArray[Any], kernel_class: npt.NDArray[Any]) -> Bool:
    """Kernels of unknown name on a stream on which every other kernel communicates."""
    device, stream = file.sparse("device", "device", rows, 0), file.sparse("device", "stream", rows, MISSING)
    lane = np.cumsum(np.r_[0, (np.diff(device) != 0) | (np.diff(stream) != 0)])[: len(rows)]
    unknown = (code == 0) & (kernel_class == "other")
    lanes = int(lane[-1]) + 1 if len(lane) else 0
    other_work = np.bincount(lane[(code != 1) & (code != 3) & ~unknown], minlength=lanes)
    comm = np.bincount(lane[code == 1], minlength=lanes)
    strange = np.bincount(lane[unknown], minlength=lanes)
    return np.asarray(unknown & ((other_work == 0) & (comm > strange))[lane], bool) if lanes else unknown


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

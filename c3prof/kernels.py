"""Who is communication, and of which class a kernel is, by name: rules are data (kernel_rules.toml, docs/metrics.md §1).

Standard library only: readers, analysis and collectors all use it.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from c3prof.errors import WrongSettings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COMPUTE, COMM, FUSED, COPY = "compute", "comm", "fused", "copy"

KERNEL_CLASSES = ("gemm", "attention", "convolution", "norm", "elementwise", "reduction", "embedding", "optimizer", "memory", "other")

UNKNOWN = "unknown"

# Longer words first: "reduce" is found in "all_reduce" too.
_KINDS = {
    "reduce_scatter": ("_reduce_scatter",),
    "all_reduce": ("_all_reduce",),
    "all_gather": ("_all_gather",),
    "all_to_all": ("_all_to_all",),
    "send_recv": ("_send_recv", "_isend_irecv"),
    "broadcast": ("_broadcast", "_bcast"),
    "barrier": ("_barrier", "_monitored_barrier"),
    "gather": ("_gather_", "_gatherv_"),
    "scatter": ("_scatter_", "_scatterv_"),
    "reduce": ("_reduce_",),
    "send": ("_send_", "_isend_"),
    "recv": ("_recv_", "_irecv_", "_recv_any"),
}

COLLECTIVES = (*_KINDS, UNKNOWN)
"""Kinds of collectives and point-to-point operations, in the glossary's words."""

_WORD = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_READ = 500  # characters; what follows in a C++ name are parameters that repeat what stands before
_SPELLINGS = (
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("reducescatter", "reduce_scatter"),
    ("alltoall", "all_to_all"),
    ("sendrecv", "send_recv"),
    ("oneshot", "one_shot"),
    ("twoshot", "two_shot"),
    ("fbgemm", "fb"),  # a library; few of its kernels multiply matrices
)


def plain(name: str) -> str:
    """The name in the plain spelling that rules are written in, an underscore at both ends.

    >>> plain("ncclDevKernel_AllReduce_Sum_f32")
    '_nccl_dev_kernel_all_reduce_sum_f32_'
    """
    words = f"_{'_'.join(_WORD.findall(name[:_READ])).lower()}_"
    for found, meant in _SPELLINGS:
        if found in words:
            words = words.replace(found, meant)
    return words


def head(name: str) -> str:
    """The function's name alone, without template arguments and parameters."""
    text = name.replace("(anonymous namespace)", "").removeprefix("void ")
    return re.split(r"[<(]", text, maxsplit=1)[0]


@lru_cache(maxsize=4096)
def collective_kind(text: str) -> str:
    """The kind of collective that a name in any spelling means, in the glossary's words; "unknown" if it names none.

    >>> collective_kind("c10d::_reduce_scatter_base_"), collective_kind("alltoallv"), collective_kind("wait")
    ('reduce_scatter', 'all_to_all', 'unknown')
    """
    words = plain(text)
    for kind, needles in _KINDS.items():
        if any(needle in words for needle in needles):
            return kind
    return UNKNOWN


_RECORDED_OPS = (
    "c10d::",
    "_c10d_functional::",
    "c10d_functional::",
    "_c10d_functional_autograd::",
    "record_param_comms",
    "nccl:",
    "gloo:",
    "mpi:",
    "ucc:",
    "xccl:",
    "rccl:",
    "hccl:",
    "oneccl_bindings_for_pytorch::",
    "torch_ccl::",
)
_COMM_OPS = (*_RECORDED_OPS, "symm_mem::", "_C_custom_ar::")


def is_comm_op(name: str) -> bool:
    """Whether a CPU operator or annotation is a communication operation or a wait for one; a fused one is not."""
    return name.startswith(_COMM_OPS) and not name.startswith("symm_mem::fused_")


def is_recorded_op(name: str) -> bool:
    """Whether an operator is c10d's or a library's own record of communication: then so is any kernel it launches itself."""
    return name.startswith(_RECORDED_OPS)


def is_wait_op(name: str) -> bool:
    """Whether a CPU operator waits for communication that was started before."""
    return is_comm_op(name) and "wait" in plain(name).split("_")


_BLOCKING_COPY = re.compile(r"(cuda|cu|hip)Memcpy(?!.*(Async|Peer))")


def is_blocking_call(name: str) -> bool:
    """Whether a runtime or driver API call makes the CPU wait for the device (synchronize, copy that is not async)."""
    return "Synchronize" in name or _BLOCKING_COPY.match(name) is not None


@dataclass(frozen=True)
class Rule:
    """One line of the table; see kernel_rules.toml for what its fields mean."""

    entry: str
    kind: str
    kernel_class: str = ""
    words: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    regex: re.Pattern[str] | None = None

    def fits(self, name: str, words: str, head_words: str) -> bool:
        """Whether the rule speaks about this name; words, head_words: its plain spellings."""
        if not (_any(self.words, words) or _any(self.head, head_words) or (self.regex is not None and self.regex.search(name))):
            return False
        return (not self.also or _any(self.also, words)) and not _any(self.unless, words)


def _any(needles: tuple[str, ...], words: str) -> bool:
    for needle in needles:  # noqa: SIM110 - asked for each name and rule, and any() takes three times as long
        if needle in words:
            return True
    return False


@dataclass(frozen=True)
class Verdicts:
    """What names alone say, one element a name: class, kernel class, and the entry of the table that said so."""

    classes: list[str]
    kernel_classes: list[str]
    entries: list[str]


@dataclass(frozen=True)
class Rules:
    """The rule table, the user's rules first."""

    table: tuple[Rule, ...]

    def verdicts(self, names: Iterable[str]) -> Verdicts:
        """Class, kernel class and entry of each name; give each distinct name once.

        The kernel class of communication is the kind of collective, "unknown" where the name does not tell.
        """
        found = [self._known(name) for name in names]
        return Verdicts([kind for kind, _, _ in found], [kernel for _, kernel, _ in found], [entry for _, _, entry in found])

    @cached_property
    def _known(self) -> Callable[[str], tuple[str, str, str]]:
        return lru_cache(maxsize=1 << 16)(self._verdict)  # the ranks of a job run the same kernels

    def _verdict(self, name: str) -> tuple[str, str, str]:
        words, head_words = plain(name), plain(head(name))
        for rule in self.table:
            if rule.fits(name, words, head_words):
                kernel_class = rule.kernel_class or (collective_kind(head(name)) if rule.kind == COMM else "other")
                return rule.kind, kernel_class, rule.entry
        return COMPUTE, "other", "none"


@lru_cache(maxsize=8)
def rules(path: str | None = None) -> Rules:
    """The packaged rules, with those of the user's TOML file before them; a rule of the same entry is replaced.

    WrongSettings names file and entry if the file cannot be read or a rule cannot be understood.
    """
    own = _rules_in(Path(__file__).with_name("kernel_rules.toml"))
    mine = _rules_in(Path(path)) if path else ()
    replaced = {rule.entry for rule in mine}
    return Rules((*mine, *(rule for rule in own if rule.entry not in replaced)))


def _rules_in(path: Path) -> tuple[Rule, ...]:
    if not path.is_file():  # a pipe would be waited for
        raise WrongSettings(f"rules file {path}: no such file")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WrongSettings(f"rules file {path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongSettings(f"rules file {path}: not TOML: {error}") from None
    entries = data.get("rule")
    if set(data) != {"rule"} or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise WrongSettings(f"rules file {path}: found {sorted(data)}, expected a list of [[rule]] tables and nothing else")
    return tuple(
        _rule(fields, f"rules file {path}, rule {number} ({fields.get('entry', 'no entry')!r})") for number, fields in enumerate(entries, 1)
    )


_LISTS = ("words", "head", "also", "unless")
_TEXTS = ("entry", "class", "kernel_class", "regex")


def _rule(fields: Mapping[str, Any], where: str) -> Rule:
    lists: dict[str, tuple[str, ...]] = {}
    for key, value in fields.items():
        if key not in (*_TEXTS, *_LISTS):
            raise WrongSettings(f"{where}: unknown key {key!r}; known are {', '.join((*_TEXTS, *_LISTS))}")
        if key in _TEXTS and not isinstance(value, str):
            raise WrongSettings(f"{where}: {key} is {value!r}, expected text")
        if key in _LISTS:
            words = value if isinstance(value, list) and all(isinstance(word, str) for word in value) else []
            lists[key] = tuple(map(_needle, words))
            if not words or not all(needle.strip("_") for needle in lists[key]):
                raise WrongSettings(f"{where}: {key} is {value!r}, expected a list of words")
    kind, kernel_class = fields.get("class"), fields.get("kernel_class", "")
    _check_classes(kind, kernel_class, where)
    if not fields.get("entry"):
        raise WrongSettings(f"{where}: no entry; give the rule a name")
    if not {"words", "head", "regex"} & set(fields):
        raise WrongSettings(f"{where}: one of words, head, regex is needed to know which names it is about")
    return Rule(fields["entry"], str(kind), kernel_class, **lists, regex=_regex(fields.get("regex"), where))


def _check_classes(kind: object, kernel_class: str, where: str) -> None:
    if kind not in (COMPUTE, COMM, FUSED):
        raise WrongSettings(f"{where}: class is {kind!r}, expected compute, comm or fused")
    allowed: Sequence[str] = ("", *COLLECTIVES) if kind == COMM else ("", *KERNEL_CLASSES)
    if kernel_class not in allowed:
        raise WrongSettings(f"{where}: kernel_class is {kernel_class!r}, expected one of {', '.join(allowed[1:])}")


def _needle(word: str) -> str:
    core = plain(word)
    return core[word.startswith("*") : len(core) - word.endswith("*")]


def _regex(text: str | None, where: str) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise WrongSettings(f"{where}: regex {text!r} is not a regular expression: {error}") from None

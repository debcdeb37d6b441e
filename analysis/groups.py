"""What a process group is for: its dimension (dp, tp, pp, ep, cp), and whether it leaves the node."""

import re
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.joined import Joined
from c3prof.table import Column, Schema, Table

DIMENSIONS = ("dp", "tp", "pp", "ep", "cp", "world")

PROCESS_GROUPS = Schema(
    "process_groups",
    "Process groups that communicated, and how their records were matched",
    (
        Column("group", "object", "", "name, with the members where one name means several groups; null when not recorded"),
        Column("group_desc", "object", "", "description that the program gave it"),
        Column("dimension", "object", "", "dp, tp, pp, ep, cp, or world; null unknown"),
        Column("dimension_evidence", "object", "", "what the dimension rests on: file, description, name, kinds, size and stride"),
        Column("group_size", "object", "", "ranks in the group, null unknown"),
        Column("members", "object", "", "member ranks; cut at 30 by the recorder"),
        Column("link", "object", "", "intra-node or inter-node, by the hosts of the recorded ranks; null unknown"),
        Column("ranks_recorded", "int64", "", "ranks that have records of it"),
        Column("records", "int64", "", "records of all ranks"),
        Column("operations", "int64", "", "distinct operations among them"),
        Column("matched_ranks", "float64", "", "mean number of ranks that recorded an operation"),
        Column("unmatched", "int64", "", "records that no other rank has"),
    ),
)

_WORDS = {
    "tp": "tp|tensor|mp|model_parallel",
    "pp": "pp|pipe|pipeline|stage",
    "ep": "ep|expert|experts|moe",
    "cp": "cp|context|ring|ulysses|sequence",
    "dp": "dp|ddp|fsdp|hsdp|data|shard|replicate|zero|expert_data",
}
_PATTERNS = {dimension: re.compile(rf"(?<![a-z])(?:{words})(?![a-z])") for dimension, words in _WORDS.items()}


def process_groups(run: Joined, named: Mapping[str, str] | None = None) -> Table:
    """Table `process_groups`, a row for each code of run.groups.

    named: dimension by group name or description, from a user's file; it beats everything else.
    """
    table, matches, code = run.groups.table, run.matches, run.groups.code
    n = len(table)
    records = np.bincount(code, minlength=n)
    seen = pd.DataFrame({"code": code, "operation": matches.operation})[matches.operation >= 0].drop_duplicates()
    operations = np.bincount(seen["code"], minlength=n)
    members = _recorded_ranks(run)
    descriptions = _first_text(run.trace.collectives["group_desc"], code, n)
    used = _dimensions(run, descriptions, members, named or {})
    hosts = run.trace.ranks.drop_duplicates("rank").set_index("rank")["host"]
    data = {
        "group": table["label"],
        "group_desc": descriptions,
        "dimension": [dimension for dimension, _ in used],
        "dimension_evidence": [evidence for _, evidence in used],
        "group_size": [size if size > 0 else None for size in table["size"].tolist()],
        "members": table["members"],
        "link": [_link(hosts.reindex(ranks)) for ranks in members],
        "ranks_recorded": [len(ranks) for ranks in members],
        "records": records,
        "operations": operations,
        "matched_ranks": records / np.maximum(operations, 1),
        "unmatched": np.bincount(code[matches.ranks <= 1], minlength=n),
    }
    return Table.of(PROCESS_GROUPS, data)


def dimension_of(text: str) -> str | None:
    """The dimension that a name or description says, by the word that comes first: mesh_tp, DATA_PARALLEL_GROUP, …"""
    lowered = text.lower()
    found = [(match.start(), -len(match.group()), dimension) for dimension, p in _PATTERNS.items() if (match := p.search(lowered))]
    return min(found)[2] if found else None


def _dimensions(
    run: Joined, descriptions: list[str | None], members: list[npt.NDArray[np.int64]], named: Mapping[str, str]
) -> list[tuple[str | None, str | None]]:
    table = run.groups.table
    world = int(run.trace.ranks["world_size"].max()) if len(run.trace.ranks) else -1
    kinds = pd.DataFrame({"code": run.groups.code, "kind": run.trace.collectives["collective"].to_numpy(dtype=object)}).drop_duplicates()
    used = {int(code): set(part) for code, part in kinds.groupby("code")["kind"]}
    found: list[tuple[str | None, str | None]] = []
    for i, (name, size) in enumerate(zip(table["name"], table["size"].tolist(), strict=True)):
        texts = {"description": descriptions[i], "name": name}
        texts = {evidence: text for evidence, text in texts.items() if isinstance(text, str)}
        told = next((named[text] for text in texts.values() if text in named), None)
        said = next(((d, evidence) for evidence, text in texts.items() if (d := dimension_of(text))), None)
        if told:
            found.append((told, "file"))
        elif said:
            found.append(said)
        else:
            found.append(_by_shape(size, members[i], world, used.get(i, set()), alone=len(table) == 1))
    return found


def _by_shape(size: int, members: npt.NDArray[np.int64], world: int, kinds: set[str], *, alone: bool) -> tuple[str | None, str | None]:
    """What size, stride and kinds suggest: ranks are laid out with tp innermost, then dp, then pp."""
    evidence = "size and stride"
    if size < 2 or len(members) < 2:
        return None, None
    if kinds <= {"send", "recv", "send_recv"}:
        return "pp", "kinds"
    if size == world:
        return ("dp" if alone else "world"), evidence
    if kinds == {"all_to_all"}:
        return "ep", evidence
    return ("tp" if int(np.diff(members).min()) == 1 else "dp"), evidence


def _recorded_ranks(run: Joined) -> list[npt.NDArray[np.int64]]:
    pairs = pd.DataFrame({"code": run.groups.code, "rank": run.trace.collectives["rank"].to_numpy()}).drop_duplicates()
    pairs = pairs.sort_values(["code", "rank"])
    cuts = np.searchsorted(pairs["code"], np.arange(len(run.groups.table) + 1))
    ranks = pairs["rank"].to_numpy().astype(np.int64)
    return [ranks[low:high] for low, high in pairwise(cuts)]


def _first_text(column: pd.Series, code: npt.NDArray[np.int64], n: int) -> list[str | None]:
    """For each group the first description that a record has."""
    codes = column.astype("category").cat.codes.to_numpy()
    rows = np.flatnonzero(codes >= 0)
    groups, at = np.unique(code[rows], return_index=True)
    result: list[str | None] = [None] * n
    for group, row in zip(groups, rows[at], strict=True):
        result[group] = str(column.iloc[row])
    return result


def _link(hosts: pd.Series) -> str | None:
    if hosts.isna().any():
        return None
    return "intra-node" if len(set(hosts)) == 1 else "inter-node"

"""Which records on different ranks are the same operation. Pure: a collectives frame in, integer codes out.

Two rules (docs/metrics.md §5). With sequence numbers: (process group by name and members, number, how often the rank
had that number before: coalesced calls share one). Without: the order in the group, aligned by kind and size, and by
the ends where kind and size repeat, so that a missing first record or a missing rank shifts nothing.
Send and recv: the k-th send a to b in a group is the k-th recv from a at b. Never by External id or kernel name.
"""

import json
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.ordering import common_order
from c3prof.trace import NONE

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

POINT_TO_POINT = ("send", "recv", "send_recv")


@dataclass(frozen=True)
class ProcessGroups:
    """The process groups of a run. code: for each record the row of its group in `table`, -1 never.

    table: name (None when not recorded), members (text of the rank list, None unknown), size (-1 unknown), label
    (name, with the members where one name means several groups).
    """

    code: Codes
    table: pd.DataFrame


@dataclass(frozen=True)
class Matches:
    """operation: for each record a number that it shares with the same operation on other ranks, ascending with the
    first start in each group; -1 where its kind contradicts the others'. ranks: how many ranks recorded it.
    by_order: the record carries no sequence number, so the order decided.
    """

    operation: Codes
    ranks: Codes
    by_order: Mask

    @property
    def unmatched(self) -> int:
        """Records that no other rank has."""
        return int((self.ranks <= 1).sum())


def process_groups(collectives: pd.DataFrame, declared: pd.DataFrame | None = None, world_size: int = NONE) -> ProcessGroups:
    """The process group of each record, by name and members.

    declared: the `groups` frame of the Trace; it names the members where a record does not, and the group where the
    rank has only one. A group without a name in which all world_size ranks communicate has that size.
    """
    names, name = _codes(collectives["group"])
    texts, text = _codes(collectives["group_ranks"])
    if declared is not None:
        name = _names_filled(names, name, collectives["rank"].to_numpy(), declared)
    texts = [t.replace(" ", "") for t in texts]
    text = _members_filled(names, name, texts, text, collectives["rank"].to_numpy(), declared)
    code, found = pd.factorize((name + 1) * (len(texts) + 1) + text + 1)
    table = pd.DataFrame({"name": _picked(names, found // (len(texts) + 1)), "members": _picked(texts, found % (len(texts) + 1))})
    recorded = np.full(len(table), NONE)
    np.maximum.at(recorded, code, collectives["group_size"].to_numpy())
    present = pd.DataFrame({"code": code, "rank": collectives["rank"].to_numpy()}).drop_duplicates()["code"].value_counts()
    recorded[(table["name"].isna() & (present.reindex(table.index) == world_size) & (recorded < 0)).to_numpy()] = world_size
    table["size"] = [_size(*pair) for pair in zip(recorded.tolist(), table["members"], strict=True)]
    ambiguous = table["name"].duplicated(keep=False) & table["name"].notna()
    table["label"] = table["name"].where(~ambiguous, table["name"].astype(str) + " " + table["members"].astype(str))
    return ProcessGroups(code.astype(np.int64), table)


def matches(collectives: pd.DataFrame, groups: ProcessGroups) -> Matches:
    """The Matches of all records: collectives by sequence number or order, send/recv by peers and order.

    Times are compared where kind and size repeat; give them on one clock for send/recv where that is known.
    """
    kind = collectives["collective"]
    seq = collectives["seq"].to_numpy()
    p2p = kind.isin(POINT_TO_POINT).to_numpy()
    peer = peers(collectives, groups)
    paired = p2p & (peer >= 0)
    numbered = ~p2p & (seq >= 0)
    ordered = ~paired & ~numbered
    operation = np.full(len(collectives), NONE, np.int64)
    for rows, matched in (
        (np.flatnonzero(numbered), _by_number),
        (np.flatnonzero(ordered), _by_order),
        (np.flatnonzero(paired), _by_peers),
    ):
        if len(rows):
            found = matched(collectives.iloc[rows], groups.code[rows], peer[rows])
            operation[rows] = np.where(found >= 0, found + operation.max(initial=NONE) + 1, NONE)
    operation = _without_contradictions(operation, kind, p2p)
    return Matches(operation, _ranks_of(operation), ordered)


def peers(collectives: pd.DataFrame, groups: ProcessGroups) -> Codes:
    """Peer or root of each record as a global rank, -1 unknown.

    A peer that is no member of its group, but smaller than the group, was written as the rank inside the group. In a
    group of two the peer is the other one.
    """
    peer = collectives["peer"].to_numpy().astype(np.int64)
    members = [_member_list(text) for text in groups.table["members"]]
    rank = collectives["rank"].to_numpy()
    for code, (first, second) in ((c, m) for c, m in enumerate(members) if len(m) == 2):
        rows = np.flatnonzero((groups.code == code) & (peer < 0) & collectives["collective"].isin(POINT_TO_POINT).to_numpy())
        peer[rows] = np.where(rank[rows] == first, second, first)
    rows = np.flatnonzero(peer >= 0)
    if not len(rows) or not any(members):
        return peer
    width = max(map(len, members))
    of_row = np.array([m + [NONE] * (width - len(m)) for m in members], np.int64)[groups.code[rows]]
    outside = ~(of_row == peer[rows, None]).any(axis=1) & (of_row[:, 0] >= 0)
    local = outside & (peer[rows] < (of_row >= 0).sum(axis=1))
    peer[rows[local]] = of_row[local, peer[rows[local]]]
    return peer


# --- groups


def _codes(column: pd.Series) -> tuple[list[str], Codes]:
    categorical = column.astype("category")
    return [str(c) for c in categorical.cat.categories], categorical.cat.codes.to_numpy().astype(np.int64)


def _picked(values: list[str], codes: Codes) -> npt.NDArray[np.object_]:
    """values[code - 1], None for code 0."""
    return np.array([None, *values], dtype=object)[codes]


def _names_filled(names: list[str], name: Codes, rank: Codes, declared: pd.DataFrame) -> Codes:
    """Codes of the names; a record without one belongs to its rank's group, if the rank has only one."""
    lacking = np.flatnonzero(name < 0)
    if not len(lacking) or not len(declared):
        return name
    only = {int(r): str(g.iloc[0]) for r, g in declared.groupby("rank")["group"] if len(set(g)) == 1}
    names.extend(sorted(set(only.values()) - set(names)))
    ranks, inverse = np.unique(rank[lacking], return_inverse=True)
    filled = name.copy()
    filled[lacking] = np.array([names.index(only[r]) if r in only else NONE for r in ranks.tolist()])[inverse]
    return filled


def _members_filled(names: list[str], name: Codes, texts: list[str], text: Codes, rank: Codes, declared: pd.DataFrame | None) -> Codes:
    """Codes of the member texts; where a record has none, what its rank's file or the other records say of the name."""
    lacking = np.flatnonzero((text < 0) & (name >= 0))
    if not len(lacking):
        return text
    known: dict[tuple[int, str], str] = {}
    if declared is not None:
        rows = declared[declared["group_ranks"].notna()]
        known = {
            (int(r), str(g)): str(t).replace(" ", "") for r, g, t in zip(rows["rank"], rows["group"], rows["group_ranks"], strict=True)
        }
    recorded: dict[str, set[str]] = defaultdict(set)
    for n, t in set(zip(name[text >= 0].tolist(), text[text >= 0].tolist(), strict=True)):
        recorded[names[n]].add(texts[t])
    pairs, inverse = np.unique(np.stack([rank[lacking], name[lacking]]), axis=1, return_inverse=True)
    filled = text.copy()
    found = [_members_of(int(r), names[n], known, recorded[names[n]]) for r, n in pairs.T]
    texts.extend(sorted({t for t in found if t is not None} - set(texts)))
    filled[lacking] = np.array([NONE if t is None else texts.index(t) for t in found])[inverse.ravel()]
    return filled


def _members_of(rank: int, name: str, known: dict[tuple[int, str], str], recorded: set[str]) -> str | None:
    if (rank, name) in known:
        return known[rank, name]
    holding = [text for text in sorted(recorded) if rank in _member_list(text)]
    return holding[0] if len(holding) == 1 else next(iter(recorded)) if len(recorded) == 1 else None


def _member_list(text: str | None) -> list[int]:
    """The ranks of a member text; of a cut list ([0,1,...]) those that are there."""
    if not isinstance(text, str):
        return []
    try:
        return [int(rank) for rank in json.loads(text.replace(",...", "").replace("...", ""))]
    except (ValueError, TypeError, RecursionError):
        return []


def _size(recorded: int, members: str | None) -> int:
    if recorded > 0 or not isinstance(members, str) or "..." in members:
        return recorded
    return len(_member_list(members)) or NONE


# --- operations


def _by_number(records: pd.DataFrame, group: Codes, _peer: Codes) -> Codes:
    rank, seq, order = (records[c].to_numpy() for c in ("rank", "seq", "order"))
    again = _occurrence((group, seq, rank), order)
    return _numbered((group, seq, again))


def _by_order(records: pd.DataFrame, group: Codes, _peer: Codes) -> Codes:
    tokens = _tokens(records)
    return _in_common_order(group, records["rank"].to_numpy(), tokens, records["end_ns"].to_numpy(), records["order"].to_numpy())


def _by_peers(records: pd.DataFrame, group: Codes, peer: Codes) -> Codes:
    """k-th with k-th where both sides have as many of the same sizes and none ends before the other starts."""
    rank, order = records["rank"].to_numpy().astype(np.int64), records["order"].to_numpy()
    kind = records["collective"].to_numpy()
    receives, both = kind == "recv", kind == "send_recv"
    source = np.where(both, np.minimum(rank, peer), np.where(receives, peer, rank))
    target = np.where(both, np.maximum(rank, peer), np.where(receives, rank, peer))
    side = np.where(both, rank == target, receives)
    channel = _numbered((group, source, target, both))
    place = _occurrence((channel, side), order)
    pair = _numbered((channel, place))
    shifted = np.isin(channel, channel[_contradictory(records, pair)])
    if shifted.any():
        tokens = records["size_bytes"].to_numpy()[shifted]
        ends = records["end_ns"].to_numpy()[shifted]
        place[shifted] = _in_common_order(channel[shifted], side[shifted].astype(np.int64), tokens, ends, order[shifted])
        pair = _numbered((channel, place))
    return pair


def _contradictory(records: pd.DataFrame, pair: Codes) -> Mask:
    """Pairs that cannot be: sizes differ, one is alone, or a recv ends before its send starts."""
    size, start, end = (records[c].to_numpy() for c in ("size_bytes", "start_ns", "end_ns"))
    n = int(pair.max(initial=NONE)) + 1
    lowest, highest = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(lowest, pair, size)
    np.maximum.at(highest, pair, size)
    sends, receives = (records["collective"] == "send").to_numpy(), (records["collective"] == "recv").to_numpy()
    begun, done = np.full(n, np.iinfo(np.int64).min), np.full(n, np.iinfo(np.int64).max)
    begun[pair[sends]], done[pair[receives]] = start[sends], end[receives]
    alone = np.bincount(pair, minlength=n) != 2
    return np.asarray(((lowest != highest) | alone | (begun > done))[pair])


def _tokens(records: pd.DataFrame) -> Codes:
    """Kind and size as one code; ranks of an all_to_all may move different amounts, so there the kind alone."""
    kind = records["collective"].astype("category").cat.codes.to_numpy().astype(np.int64)
    same_size = (records["collective"] != "all_to_all").to_numpy()
    size = pd.factorize(np.where(same_size, records["size_bytes"].to_numpy(), NONE))[0]
    return np.asarray(kind * (size.max(initial=0) + 1) + size)


def _in_common_order(group: Codes, side: Codes, token: Codes, end: Codes, order: Codes) -> Codes:
    """For each record a number for (group, place in the group's common order)."""
    by = np.lexsort((order, side, group))
    place = np.empty(len(group), np.int64)
    changes = np.flatnonzero(np.diff(group[by], prepend=NONE - 1))
    for low, high in zip(changes, np.append(changes[1:], len(by)), strict=True):
        rows = by[low:high]
        cuts = np.flatnonzero(np.diff(side[rows])) + 1
        parts = np.split(rows, cuts)
        for part, places in zip(parts, common_order([token[p] for p in parts], [end[p] for p in parts]), strict=True):
            place[part] = places
    return _numbered((group, place))


def _occurrence(keys: tuple[npt.NDArray[np.generic], ...], order: Codes) -> Codes:
    """How many records with the same keys come before, in order."""
    by = np.lexsort((order, *reversed(keys)))
    fresh = np.zeros(len(by), bool)
    fresh[:1] = True
    for key in keys:
        fresh[1:] |= key[by][1:] != key[by][:-1]
    starts = np.flatnonzero(fresh)
    counts = np.diff(np.append(starts, len(by)))
    result = np.empty(len(by), np.int64)
    result[by] = np.arange(len(by)) - np.repeat(starts, counts)
    return result


def _numbered(keys: tuple[npt.NDArray[np.generic], ...]) -> Codes:
    """One number for each distinct tuple of keys, in their sorted order."""
    total = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        values, codes = np.unique(key, return_inverse=True)
        total = total * len(values) + codes
        total = np.unique(total, return_inverse=True)[1]
    return total


def _without_contradictions(operation: Codes, kind: pd.Series, p2p: Mask) -> Codes:
    """The operations without the records whose kind differs from what most ranks say; `unknown` contradicts nobody."""
    codes = kind.astype("category").cat.codes.to_numpy().astype(np.int64)
    told = ~p2p & (operation >= 0) & (kind != "unknown").to_numpy()
    n = int(operation.max(initial=NONE)) + 1
    lowest, highest = np.full(n, np.iinfo(np.int64).max), np.full(n, NONE)
    np.minimum.at(lowest, operation[told], codes[told])
    np.maximum.at(highest, operation[told], codes[told])
    torn = np.flatnonzero((lowest != highest) & (highest >= 0))
    result = operation.copy()
    for rows in (np.flatnonzero(told & (operation == number)) for number in torn):
        result[rows[codes[rows] != np.bincount(codes[rows]).argmax()]] = NONE
    return result


def _ranks_of(operation: Codes) -> Codes:
    counts = np.bincount(operation[operation >= 0], minlength=1)
    return np.where(operation >= 0, counts[operation], 1)

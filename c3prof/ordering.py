"""The common order of sequences that are parts of one sequence: different windows, lost records, different clocks."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]

REACH = 8
"""How many places a window may be shifted beyond the difference in length, and how far a lost record is looked for."""


def common_order(tokens: list[Codes], ends: list[Codes]) -> list[Codes]:
    """For each sequence the place of its records in the order common to all, so that equal records get equal places.

    tokens: what a record is (kind and size) as codes; ends: when it ended, on the clock of its sequence, ascending or
    nearly so. The longest sequence is the first guess of the common one; each other is laid over it where most tokens
    agree, then where the distances between ends agree best, then where the clocks agree, then without a shift.
    Records that the common sequence lacks are added to it.
    """
    result: list[Codes] = [np.empty(0, np.int64)] * len(tokens)
    by_length = sorted(range(len(tokens)), key=lambda i: (-len(tokens[i]), i))
    common = _Common(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
    origin = int(min((e[0] for e in ends if len(e)), default=0))
    for i in by_length:
        common, result[i] = _laid_over(common, tokens[i], (ends[i] - origin).astype(np.float64))
    # identities were given in order of discovery; places are their rank by time
    places = np.empty(len(common.identity), np.int64)
    places[common.identity] = np.arange(len(common.identity))
    return [places[identity] for identity in result]


@dataclass(frozen=True)
class _Common:
    """The common sequence so far, by time on the first sequence's clock."""

    token: Codes
    end: Times
    identity: Codes

    @cached_property
    def gap(self) -> float:
        """The median distance between neighbours, infinite without any."""
        return float(np.median(np.diff(self.end))) if len(self.end) > 1 else np.inf


def _laid_over(common: _Common, token: Codes, end: Times) -> tuple[_Common, Codes]:
    """The common sequence with what this one adds, and the identity of each of its records."""
    n = len(common.token)
    if not n:
        identity = np.arange(len(token))
        return _Common(token, end, identity), identity
    place = np.arange(len(token)) + _best_shift(common, token, end)
    inside = (place >= 0) & (place < n)
    agrees = inside.copy()
    agrees[inside] = common.token[place[inside]] == token[inside]
    on_common = _on_common_clock(common, end, place, agrees)
    if not agrees.all() or _drifts_apart(common, on_common, place, inside):
        on_common = on_common - _best_offset(common, token, on_common, place, as_shown=float(np.median(on_common - end)))
        place, agrees = _nearest(common, token, on_common)
    identity = np.full(len(token), -1)
    identity[agrees] = common.identity[place[agrees]]
    new = np.flatnonzero(~agrees)
    identity[new] = n + np.arange(len(new))
    if not len(new):
        return common, identity
    merged_end = np.concatenate([common.end, on_common[new]])
    by = np.argsort(merged_end, kind="stable")
    merged = (np.concatenate(pair)[by] for pair in ((common.token, token[new]), (common.identity, identity[new])))
    merged_token, merged_identity = merged
    return _Common(merged_token, merged_end[by], merged_identity), identity


def _best_shift(common: _Common, token: Codes, end: Times) -> int:
    """How many places after the first common record this sequence begins (negative: before it)."""
    n, m = len(common.token), len(token)
    scores = []
    for shift in range(max(-REACH, 1 - m), min(n - 1, n - m + REACH if n > m else REACH) + 1):
        low, high = max(0, -shift), min(m, n - shift)
        same = token[low:high] == common.token[low + shift : high + shift]
        if same.any():
            difference = (end[low:high] - common.end[low + shift : high + shift])[same]
            scores.append((shift, same.mean(), same.sum(), difference))
    if not scores:
        return 0
    most = max(share for _, share, count, _ in scores if count * 2 >= min(m, n) or len(scores) == 1) if _any_long(scores, m, n) else 0.0
    kept = [s for s in scores if s[1] >= most - 0.1 and (s[2] * 2 >= min(m, n) or most == 0.0)]
    spreads = [float(np.median(np.abs(np.diff(d)))) if len(d) >= 4 else np.inf for *_, d in kept]
    sharp = min(spreads)
    kept = [s for s, spread in zip(kept, spreads, strict=True) if spread <= 2 * sharp + 1]
    distance = [abs(float(np.median(d))) for *_, d in kept]
    if min(distance) < common.gap / 2:
        return int(kept[int(np.argmin(distance))][0])
    return int(min((s[0] for s in kept), key=abs))


def _any_long(scores: list[tuple[int, float, int, Times]], m: int, n: int) -> bool:
    return any(count * 2 >= min(m, n) for _, _, count, _ in scores)


def _on_common_clock(common: _Common, end: Times, place: Codes, agrees: npt.NDArray[np.bool_]) -> Times:
    """The ends on the common sequence's clock. The drift is the median over neighbours, which a lost record leaves alone."""
    if not agrees.any():
        return end
    difference, at = end[agrees] - common.end[place[agrees]], end[agrees]
    steps = np.diff(at)
    drift = float(np.median(np.diff(difference)[steps > 0] / steps[steps > 0])) if (steps > 0).sum() >= 32 else 0.0
    drift = drift if abs(drift) < 1e-3 else 0.0
    return np.asarray(end - np.median(difference - drift * at) - drift * end)


def _best_offset(common: _Common, token: Codes, end: Times, place: Codes, as_shown: float) -> float:
    """What must be taken from the ends so that most of them meet an end of their token: lost records leave steps.

    as_shown: what makes the two clocks agree as recorded; ranks of one host need no more.
    """
    sample = np.unique(np.linspace(0, len(end) - 1, 256).astype(np.int64))
    candidates = {0.0, as_shown}
    for shift in range(-REACH, REACH + 1):
        at = place[sample] + shift
        legal = (at >= 0) & (at < len(common.token))
        legal[legal] = common.token[at[legal]] == token[sample][legal]
        if legal.any():
            candidates |= set(np.quantile(end[sample][legal] - common.end[at[legal]], (0.1, 0.3, 0.5, 0.7, 0.9), method="nearest").tolist())
    nearby = [c for c in candidates if abs(c) <= 4 * (common.end[-1] - common.end[0] + 1.0)]
    fits = [(_meetings(common, token[sample], end[sample] - c), -abs(c), c) for c in nearby]
    best, standing = max(fits, default=(0.0, 0.0, 0.0)), _meetings(common, token[sample], end[sample])
    return float(best[2]) if best[0] > _CLEARLY * standing else 0.0


_CLEARLY = 1.2
"""How many times more meetings another offset must have before it replaces the one that the order gave."""


def _meetings(common: _Common, token: Codes, end: Times) -> float:
    """How many ends meet an end of their token: each counts 1 at distance 0, falling with its logarithm to 0 at a gap.

    The logarithm makes few exact meetings count more than many near ones.
    """
    gap = max(common.gap, 1.0) if np.isfinite(common.gap) else 1.0
    distance = np.minimum(_distances(common, token, end)[1] / gap, 1.0)
    return float((1 - np.log1p(1000 * distance) / np.log(1001)).sum())


def _drifts_apart(common: _Common, end: Times, place: Codes, inside: npt.NDArray[np.bool_]) -> bool:
    """A record was lost on the way: from there on the ends are a whole record apart."""
    if inside.sum() < 4:
        return False
    return bool((np.abs(end[inside] - common.end[place[inside]]) > common.gap / 2).mean() > 0.05)


def _distances(common: _Common, token: Codes, end: Times) -> tuple[Codes, Times]:
    """For each record the common record of its token whose end is nearest, and how far that is (inf: none nearby)."""
    candidates = np.searchsorted(common.end, end)[:, None] + np.arange(-REACH, REACH + 1)
    legal = (candidates >= 0) & (candidates < len(common.token))
    candidates = np.where(legal, candidates, 0)
    away = np.where(legal & (common.token[candidates] == token[:, None]), np.abs(common.end[candidates] - end[:, None]), np.inf)
    best, rows = away.argmin(axis=1), np.arange(len(token))
    return candidates[rows, best], away[rows, best]


def _nearest(common: _Common, token: Codes, end: Times) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """For each record its place and whether it has one; of two that want one place the nearer gets it."""
    place, distance = _distances(common, token, end)
    limit = _half_gaps(common)[place]
    agrees = distance <= limit
    by = np.lexsort((distance, place))
    first = np.ones(len(by), bool)
    first[1:] = place[by][1:] != place[by][:-1]
    agrees[by[~first]] = False
    return place, agrees


def _half_gaps(common: _Common) -> Times:
    """Half the median distance between neighbours: farther than that it is another record; at least half the own gap."""
    if len(common.end) < 2:
        return np.full(len(common.end), np.inf)
    gaps = np.diff(common.end)
    own = np.maximum(np.concatenate([gaps[:1], gaps]), np.concatenate([gaps, gaps[-1:]]))
    return np.asarray(np.maximum(own, common.gap) / 2)

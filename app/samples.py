"""The samples behind a row of the table slowdown, found again in the trace."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from c3prof.analysis.cpu_lanes import work
from c3prof.analysis.samples import CLEAN, MIXED, OVERLAPPED, Samples, samples
from c3prof.analysis.signatures import signature_texts
from c3prof.trace import Trace

Lookup = Callable[[Mapping[str, Any]], pd.DataFrame]

_COLUMNS = ("duration_ns", "shared_ns", "clean")


def sample_lookup(trace: Trace) -> Lookup:
    """A function from a row of the table slowdown to its samples: duration_ns, shared_ns, clean (bool).

    None for collectives: theirs are transfers, which rest on the arrivals of all ranks; durations hold the waiting too.
    The samples of a rank are found once and kept while it is among the last two asked for.
    """

    @lru_cache(maxsize=2)
    def of_rank(rank: int) -> list[tuple[Samples, pd.DataFrame]]:
        one = trace.only_rank(rank)
        found = []
        for _, rows in work(one).groupby("device", sort=True):
            made = samples(one, rows.reset_index(drop=True))
            texts = signature_texts(one, rows.reset_index(drop=True), made.marks, np.arange(len(made.marks)))
            found.append((made, texts))
        return found

    def lookup(row: Mapping[str, Any]) -> pd.DataFrame:
        parts = [_chosen(made, texts, row) for made, texts in of_rank(int(row["rank"]))]
        filled = [part for part in parts if len(part)]
        return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame({name: [] for name in _COLUMNS})

    return lookup


def _chosen(made: Samples, texts: pd.DataFrame, row: Mapping[str, Any]) -> pd.DataFrame:
    mine = ~made.comm & np.isin(made.signature, np.flatnonzero((texts["signature"] == row["signature"]).to_numpy()))
    label = made.labels.index(row["co_runner"]) if row["co_runner"] in made.labels else -2
    beside = np.isin(made.use, (OVERLAPPED, MIXED)) & (made.label == label)
    chosen = mine & ((made.use == CLEAN) | beside)
    clean = made.use[chosen] == CLEAN
    shared = np.where(clean, 0, made.shared[chosen])
    return pd.DataFrame(dict(zip(_COLUMNS, (made.duration[chosen], shared, clean), strict=True)))

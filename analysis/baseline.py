"""Clean samples from a second trace of the same program (evidence `baseline`)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from c3prof.analysis.samples import CLEAN, PARTS_OF_STEP, Samples
from c3prof.table import Column, Schema
from c3prof.trace import NONE

BASELINE_SAMPLES = Schema(
    "_baseline",
    "Clean samples of a second trace, a row a sample",
    (
        Column("rank", "int32", "", "global rank"),
        Column("signature", "object", "", "signature, as in `slowdown`"),
        Column("duration_ns", "int64", "ns", "duration alone"),
        Column("step", "int64", "", "step number, -1 for none"),
    ),
)


def baseline_rows(samples: Samples, rank: int, codes: Sequence[int], texts: Sequence[str]) -> pd.DataFrame:
    """Rows of BASELINE_SAMPLES: the clean samples of the given signatures."""
    text = np.full(len(samples.marks), None, object)
    text[list(codes)] = list(texts)
    clean = (samples.use == CLEAN) & (text[samples.signature] != None)  # noqa: E711 - an array of objects
    columns = {"signature": text[samples.signature[clean]], "duration_ns": samples.duration[clean], "step": samples.step[clean]}
    return pd.DataFrame(columns).assign(rank=rank)


def of_rank(rows: pd.DataFrame, rank: int) -> pd.DataFrame:
    """The rows of that rank, or all of them where the baseline has no such rank."""
    mine = rows[rows["rank"] == rank]
    return mine if len(mine) else rows


def with_baseline(samples: Samples, rows: pd.DataFrame, codes: Sequence[int], texts: Sequence[str]) -> tuple[Samples, int]:
    """The samples of a device, and after them the rows of the baseline with a known signature; and how many those are.

    codes, texts: signatures here by code and as text. Steps of the baseline are numbered behind.
    """
    known = rows["signature"].map(dict(zip(texts, codes, strict=True)))
    rows, code = rows[known.notna()], known.dropna().to_numpy().astype(np.int64)
    n = len(rows)
    behind = int(samples.step.max(initial=0)) + 2 - int(rows["step"].min() if n else 0)
    added: dict[str, Any] = {
        "row": np.zeros(n, np.int64),
        "signature": code,
        "comm": np.zeros(n, bool),
        "use": np.full(n, CLEAN),
        "label": np.full(n, -1),
        "duration": rows["duration_ns"].to_numpy(),
        "shared": np.zeros(n, np.int64),
        "step": rows["step"].to_numpy() + behind,
        "part": np.full(n, PARTS_OF_STEP),  # elsewhere
        "place": np.full(n, NONE),
        "phase": np.full(n, None, object),
        "after_wait": np.zeros(n, bool),
    }
    both: dict[str, Any] = {name: np.concatenate([getattr(samples, name), values]) for name, values in added.items()}
    return replace(samples, **both), n

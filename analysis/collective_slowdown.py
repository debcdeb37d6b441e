"""The other direction: how much collectives are slowed by compute and by other communication, over all ranks (§3, §5)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.class_fit import class_fit
from c3prof.analysis.collective_samples import KNOTS, Shared
from c3prof.analysis.interference import interference_rows
from c3prof.analysis.intervals import Int64s
from c3prof.analysis.samples import (
    CLEAN,
    CLEAN_BELOW,
    FIRST_STEP,
    MIXED,
    MIXED_LABEL,
    OVERLAPPED,
    OVERLAPPED_FROM,
    SLIGHT,
    UNION_OF_COMPUTE,
    Samples,
    first_steps,
)
from c3prof.analysis.segments import FloatArray, Segments
from c3prof.analysis.signatures import Signatures
from c3prof.analysis.slowdown import Context, joined, measured_rows
from c3prof.kernels import COMM, COMPUTE
from c3prof.trace import NONE


@dataclass(frozen=True)
class Transfers:
    """One sample an operation, over the ranks that recorded it: transfer time, and by co-runner the largest shared time.

    row: the row of the collectives table that stands for it (lowest rank); signature: text; shared_ns: operations ×
    co_runners, 0 where nothing is shared.
    """

    row: Int64s
    signature: npt.NDArray[np.object_]
    transfer_ns: FloatArray
    shared_ns: FloatArray
    co_runners: Sequence[str]
    step: Int64s


def transfers(collectives: pd.DataFrame, operations: pd.DataFrame, rows: pd.DataFrame, shared: Shared) -> Transfers:
    """The Transfers of all operations whose transfer time can be used.

    collectives, operations, rows: tables `collectives`, `_operations` and `_collective_samples`; row i of each is the
    same record.
    """
    usable = operations["usable"].to_numpy() & rows["signature"].notna().to_numpy()
    at = np.flatnonzero(usable)
    _, first, operation = np.unique(operations["operation"].to_numpy()[at], return_index=True, return_inverse=True)
    by = np.argsort(operation, kind="stable")
    transfer = collectives["transfer_ns"].to_numpy(dtype=float)
    count = len(first)
    times = Segments(operation[by], count).medians(transfer[at[by]])
    place = np.full(len(collectives), NONE)
    place[at] = operation
    mine = shared.where(usable[shared.record])
    spent, whole = transfer[mine.record], np.maximum(rows["duration_ns"].to_numpy(dtype=float)[mine.record], 1)
    used, co_runner = np.unique(mine.co_runner, return_inverse=True)
    most = np.zeros((count, len(used)))
    np.maximum.at(most, (place[mine.record], co_runner), np.minimum(mine.after(1 - spent / whole), spent))
    step = pd.to_numeric(collectives["step"]).fillna(-1).to_numpy().astype(np.int64)
    order = np.argsort(first)  # in the order of their first records
    row = at[first[order]]
    signature = rows["signature"].to_numpy(dtype=object)[row]
    return Transfers(row, signature, times[order], most[order], mine.names[used].tolist(), step[row])


def transfer_samples(found: Transfers) -> tuple[Samples, npt.NDArray[np.object_]]:
    """The operations as Samples, and the signature text of each signature code. Compute is one co-runner, the union."""
    texts, code = np.unique(found.signature.astype(str), return_inverse=True)
    names = [name for name in found.co_runners if not name.startswith(COMPUTE + ":") and name != UNION_OF_COMPUTE]
    labels = [*names, UNION_OF_COMPUTE, MIXED_LABEL]
    n = len(code)
    time = np.column_stack([_beside(found, name) for name in labels[:-1]])
    most, together = time.max(axis=1, initial=0.0), time.sum(axis=1)
    overlapped = most >= OVERLAPPED_FROM * found.transfer_ns
    clean, alone = together < CLEAN_BELOW * found.transfer_ns, together - most < OVERLAPPED_FROM * found.transfer_ns
    first, included = first_steps(found.step)
    use = np.select([first, clean, overlapped & alone, overlapped], [FIRST_STEP, CLEAN, OVERLAPPED, MIXED], SLIGHT)
    label = np.select([use == OVERLAPPED, use == MIXED], [time.argmax(axis=1) if n else 0, len(labels) - 1], -1)
    marks = Signatures(code, np.unique(code, return_index=True)[1], np.zeros(n, np.int64), np.zeros(len(texts), bool))
    samples = Samples(
        marks=marks,
        labels=labels,
        own_label=np.full(len(texts), -1),
        row=np.arange(n),
        signature=code,
        comm=np.ones(n, bool),
        use=use,
        label=label,
        duration=np.rint(found.transfer_ns).astype(np.int64),
        shared=np.where(use == MIXED, np.minimum(together, found.transfer_ns), most),
        step=found.step,
        part=np.zeros(n, np.int64),
        place=np.zeros(n, np.int64),
        phase=np.full(n, None, object),
        after_wait=np.zeros(n, bool),
        first_step_included=included,
    )
    return samples, texts


def _beside(found: Transfers, name: str) -> FloatArray:
    """ns that each operation shares with a co-runner."""
    return found.shared_ns[:, found.co_runners.index(name)] if name in found.co_runners else np.zeros(len(found.row))


def collective_slowdown(found: Transfers, collectives: pd.DataFrame, rows: pd.DataFrame, context: Context) -> tuple[pd.DataFrame, ...]:
    """Rows of `slowdown` and of `interference` about collectives, without the judgement over all rows.

    `rank` is the lowest that recorded the signature. context: its groups are not used.
    """
    if not len(found.row):
        return pd.DataFrame(), pd.DataFrame()
    samples, texts = transfer_samples(found)
    measured, residuals = measured_rows(samples, replace(context, group=np.zeros(len(texts), np.int64)))
    measured = measured.assign(class_name=None)
    by_class = _by_class(found, samples, measured)  # adds remarks to the rows of the union
    measured = pd.concat([measured, by_class], ignore_index=True)
    codes = measured["signature"].to_numpy()
    first = found.row[samples.marks.first[codes]]
    kind = collectives["collective"].astype(object).to_numpy()[first]
    named = measured.assign(
        rank=collectives["rank"].to_numpy()[first],
        kernel=rows["kernel"].to_numpy()[first],
        op=kind,
        kernel_class=[f"{COMM}:{one}" for one in kind],
        input_dims=rows["input_dims"].to_numpy()[first],
        co_runner=measured["class_name"].fillna(pd.Series(np.array(samples.labels, object)[measured["label"].to_numpy()])),
        slowdown=1 / measured["rate"],
        slowdown_low=1 / measured["rate_high"],
        slowdown_high=1 / measured["rate_low"],
        q_value=np.nan,
        interference=False,
    )
    union = named[named["class_name"].isna()]
    rolled_up = [interference_rows(of_rank, residuals).assign(rank=rank) for rank, of_rank in union.groupby("rank")]
    classes = pd.concat(rolled_up, ignore_index=True) if rolled_up else pd.DataFrame()
    return named.assign(signature=texts[codes]), classes


def _by_class(found: Transfers, samples: Samples, measured: pd.DataFrame) -> pd.DataFrame:
    """Rows beside single classes of compute, where one fit separates them; a remark on the row of their union where not."""
    union = samples.labels.index(UNION_OF_COMPUTE)
    rows = []
    for place in np.flatnonzero((measured["label"] == union) & measured["rate"].notna() & measured["best"]).tolist():
        row = measured.iloc[place]
        mine = np.flatnonzero((samples.signature == row["signature"]) & (samples.label == union) & (samples.use == OVERLAPPED))
        some = np.any(found.shared_ns[mine] > 0, axis=0).tolist()
        names = [name for at, name in enumerate(found.co_runners) if some[at] and name.startswith(COMPUTE + ":")]
        if len(names) < 2:
            continue
        shared = np.column_stack([_beside(found, name)[mine] for name in names])
        fit = class_fit(found.transfer_ns[mine], shared, float(row["clean_ns"]), float(np.median(found.transfer_ns[mine])) / KNOTS)
        if fit is None:
            measured.loc[place, "note"] = joined(row["note"], "classes not separable")
            continue
        for i, name in enumerate(names):
            number = {"n_overlapped": int(fit.samples[i]), "rate": fit.rate[i], "rate_low": fit.low[i], "rate_high": fit.high[i]}
            known = fit.low[i] > 0
            number = number if known else {**number, **dict.fromkeys(("rate", "rate_low", "rate_high"), np.nan)}
            lost = {"lost_ns": float((1 - fit.rate[i]) * shared[:, i].sum()), "p_value": fit.p_value[i] if known else np.nan}
            note = "joint fit over classes of compute" if known else "rate not identifiable"
            rows.append(
                {**row.to_dict(), **number, **lost, "error": fit.error[i], "class_name": name, "note": note, "overlapped_ns": np.nan}
            )
    return pd.DataFrame(rows)

"""The other direction: how much collectives are slowed by compute and by other communication, over all ranks (§3, §5)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from c3prof.analysis.class_fit import class_fit
from c3prof.analysis.collective_samples import KNOTS
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
from c3prof.analysis.segments import FloatArray
from c3prof.analysis.signatures import Signatures
from c3prof.analysis.slowdown import Context, joined, measured_rows
from c3prof.kernels import COMM, COMPUTE


@dataclass(frozen=True)
class Transfers:
    """One sample an operation, over the ranks that recorded it: transfer time, and by co-runner the largest shared time.

    row: the row of the collectives table that stands for it (lowest rank); signature: text.
    """

    row: Int64s
    signature: npt.NDArray[np.object_]
    transfer_ns: FloatArray
    shared: Sequence[Mapping[str, float]]
    step: Int64s


def transfers(collectives: pd.DataFrame, operations: pd.DataFrame, rows: pd.DataFrame) -> Transfers:
    """The Transfers of all operations whose transfer time can be used.

    collectives, operations, rows: tables `collectives`, `_operations` and `_collective_samples`; row i of each is the
    same record.
    """
    members: dict[int, list[int]] = defaultdict(list)
    at = np.flatnonzero(operations["usable"].to_numpy() & rows["signature"].notna().to_numpy())
    for place, number in zip(at.tolist(), operations["operation"].to_numpy()[at].tolist(), strict=True):
        members[number].append(place)
    transfer = collectives["transfer_ns"].to_numpy(dtype=float)
    shared = [_largest(rows["shared"].to_numpy(), rows["duration_ns"].to_numpy(), transfer, of) for of in members.values()]
    first = np.array([of[0] for of in members.values()], np.int64)
    step = pd.to_numeric(collectives["step"]).fillna(-1).to_numpy().astype(np.int64)
    return Transfers(
        first,
        rows["signature"].to_numpy(dtype=object)[first],
        np.array([np.median(transfer[of]) for of in members.values()]),
        shared,
        step[first],
    )


def _largest(shared: npt.NDArray[np.object_], duration: Int64s, transfer: FloatArray, of: Sequence[int]) -> dict[str, float]:
    """By co-runner the largest time over the ranks that the transfer window shares with it."""
    most: dict[str, float] = defaultdict(float)
    for row in of:
        place = KNOTS * (1 - min(transfer[row] / max(duration[row], 1), 1.0))
        for name, rest in (shared[row] or {}).items():
            most[name] = max(most[name], min(float(np.interp(place, np.arange(KNOTS + 1), rest)), transfer[row]))
    return dict(most)


def transfer_samples(found: Transfers) -> tuple[Samples, npt.NDArray[np.object_]]:
    """The operations as Samples, and the signature text of each signature code. Compute is one co-runner, the union."""
    texts, code = np.unique(found.signature.astype(str), return_inverse=True)
    names = sorted({name for shared in found.shared for name in shared if not name.startswith(COMPUTE + ":") and name != UNION_OF_COMPUTE})
    labels = [*names, UNION_OF_COMPUTE, MIXED_LABEL]
    n = len(code)
    time = np.array([[shared.get(name, 0.0) for name in labels[:-1]] for shared in found.shared]).reshape(n, len(labels) - 1)
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
        names = sorted({name for at in mine.tolist() for name in found.shared[at] if name.startswith(COMPUTE + ":")})
        if len(names) < 2:
            continue
        shared = np.array([[found.shared[at].get(name, 0.0) for name in names] for at in mine.tolist()])
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

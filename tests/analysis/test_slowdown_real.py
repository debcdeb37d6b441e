"""Slowdowns of a real trace: A100, 8 ranks, half of its kernels shorter than 10 µs and timed in whole µs."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from c3prof.analysis.contention import DeviceSamples, device_samples
from c3prof.analysis.samples import CLEAN, NO_SAMPLE, OVERLAPPED
from c3prof.analysis.settings import Settings
from c3prof.analysis.slowdown import measured_rows
from c3prof.readers import load
from c3prof.trace import Trace
from tests.analysis.contended_runs import table


@pytest.fixture(scope="module")
def a100(shared_traces: Path) -> Trace:
    return load(shared_traces / "a100_ddp_rank3of8.json.gz")


@pytest.fixture(scope="module")
def device(a100: Trace) -> DeviceSamples:
    return next(device_samples(a100, Settings()))


@pytest.fixture(scope="module")
def placebo() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "placebo.py"
    spec = importlib.util.spec_from_file_location("placebo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_slowdown_comes_from_two_problem_sizes(a100: Trace, device: DeviceSamples) -> None:
    """By name and grid alone the same samples give factors above 4; by signature none does."""
    rows = device.lane.rows.iloc[device.drawn.row]
    drawn = pd.DataFrame(
        {"name": rows["name"].astype(str), "grid": rows["grid"].astype(str), "d": device.drawn.duration, "o": device.drawn.shared}
    )
    drawn["clean"], drawn["over"] = device.drawn.use == CLEAN, device.drawn.use == OVERLAPPED
    kernels = drawn[~device.drawn.comm]
    alone = kernels[kernels["clean"]].groupby(["name", "grid"])["d"].median().rename("w")
    naive = kernels[kernels["over"]].join(alone, on=["name", "grid"]).dropna()
    naive["progress"] = naive["w"] - (naive["d"] - naive["o"])
    sums = naive.groupby(["name", "grid"])[["progress", "o"]].sum()
    factors = (sums["o"] / sums["progress"])[lambda f: f > 0]
    assert (factors > 4).any()
    found = table(a100, "slowdown")["slowdown"].dropna()
    assert len(found) >= 10
    assert found.between(0.5, 4).all(), found.describe()


def test_every_number_compares_equal_work(a100: Trace) -> None:
    """Each signature with a number has one name, operator and set of dims."""
    rows = table(a100, "slowdown")
    known = rows[rows["slowdown"].notna()]
    per_signature = known.groupby("signature")[["kernel", "op", "input_dims"]].nunique()
    assert (per_signature == 1).all(axis=None)


def test_placebo(a100: Trace, placebo: ModuleType) -> None:
    """Communication at random places of each step: at most 5 % of 40 runs flag a row beside it (200 in benchmarks/placebo.py)."""
    rng = np.random.default_rng(1)
    flags = sum(placebo.false_rows(placebo.shifted(a100, rng)) > 0 for _ in range(40))
    assert flags <= 2


def test_odd_and_even_steps_agree(device: DeviceSamples) -> None:
    """The ten rows with most time lost, overlapped samples of the odd and of the even steps: their intervals meet.

    Five steps give too few clean samples for two halves, so both halves compare with all of them.
    """
    drawn = device.drawn
    whole, _ = measured_rows(drawn, device.context)
    halves = []
    for odd in (0, 1):
        some = replace(drawn, use=np.where((drawn.use == OVERLAPPED) & (drawn.step % 2 != odd), NO_SAMPLE, drawn.use))
        halves.append(measured_rows(some, device.context)[0].set_index(["signature", "label"])[["rate", "rate_low", "rate_high"]])
    top = whole[whole["rate"].notna()].nlargest(10, "lost_ns").set_index(["signature", "label"])
    both = top[[]].join(halves[0]).join(halves[1].add_suffix("_odd")).dropna()
    assert len(both) >= 2
    assert ((both["rate_low"] <= both["rate_high_odd"]) & (both["rate_low_odd"] <= both["rate_high"])).all()


def test_share_of_compute_time_with_a_clean_time(a100: Trace) -> None:
    row = table(a100, "sample_counts").iloc[0]
    assert row["clean_baseline_share"] == pytest.approx(0.485, abs=0.005)
    assert row[["n_clean", "n_first_step"]].tolist() == [4218, 1428]


def test_collectives_have_no_number_with_one_rank(a100: Trace) -> None:
    rows = table(a100, "slowdown")
    collectives = rows[rows["op"].isin(["all_reduce", "all_to_all"])]
    assert len(collectives) > 0
    assert collectives["slowdown"].isna().all()
    assert collectives["note"].str.startswith("waiting not separable").all()

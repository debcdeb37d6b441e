"""Two runs by hand: means a step, their difference and Welch's interval; what one run lacks is said."""

import numpy as np
import pytest

import c3prof
from c3prof.analysis.comparison import comparison
from tests.kineto_files import annotation, document, kernel, launched, nccl, written


def run(path, durations, *, extra=()):
    """A run whose step i has one GEMM of durations[i] µs and an all_reduce of 10 µs."""
    events = []
    for step, duration in enumerate(durations):
        at = 1_000 + 1_000 * step
        events.append(annotation(f"ProfilerStep#{step}", at, at + 900))
        events += launched(kernel("gemm", at + 10, at + 10 + duration), at + 1)
        events += launched(nccl("allreduce", at + 500, at + 510), at + 3)
        for place, name in enumerate(extra):
            events += launched(kernel(name, at + 600 + 20 * place, at + 610 + 20 * place), at + 5 + place)
    trace = c3prof.load(written(path, document(events)))
    return trace, c3prof.analyze(trace)


def row(table, key):
    frame = table.frame
    return frame[frame.iloc[:, 0] == key].iloc[0]


def test_means_difference_and_interval(tmp_path):
    #  the first step (999 µs would spoil the mean) is left out: 100, 110, 120 against 130, 140, 150
    tables = comparison(run(tmp_path / "a.json", [400, 100, 110, 120]), run(tmp_path / "b.json", [400, 130, 140, 150]))
    gemm = row(tables["change_by_kernel"], "gemm")
    assert (gemm["first_ns"], gemm["second_ns"], gemm["change_ns"]) == (110_000, 140_000, 30_000)
    assert (gemm["n_first"], gemm["n_second"]) == (3, 3)
    #  standard errors 10/√3 each, 4 degrees of freedom: t = 2.776
    half = 2.776 * np.sqrt(2 * 100 / 3) * 1_000
    assert gemm["change_low"] == pytest.approx(30_000 - half, rel=1e-3)
    assert gemm["change_high"] == pytest.approx(30_000 + half, rel=1e-3)
    assert gemm["changed"]
    assert not row(tables["change_by_collective"], "all_reduce")["changed"]
    assert row(tables["change_by_class"], "gemm")["change_ns"] == 30_000


def test_what_one_run_lacks_is_null_there_and_said(tmp_path):
    tables = comparison(run(tmp_path / "a.json", [10, 20, 30]), run(tmp_path / "b.json", [10, 20, 30], extra=["new_kernel"]))
    new = row(tables["change_by_kernel"], "new_kernel")
    assert np.isnan(new["first_ns"])
    assert (new["second_ns"], new["change_ns"]) == (10_000, 10_000)
    assert new["note"] == "not in the first run"


def test_without_repeated_steps_there_is_no_interval(tmp_path):
    tables = comparison(run(tmp_path / "a.json", [10]), run(tmp_path / "b.json", [30]))
    gemm = row(tables["change_by_kernel"], "gemm")
    assert gemm["change_ns"] == 20_000
    assert np.isnan(gemm["change_low"])
    assert not gemm["changed"]
    assert "fewer than two steps" in gemm["note"]


def test_the_same_run_twice_changes_nothing(tmp_path):
    one = run(tmp_path / "a.json", [10, 20, 30])
    for table in comparison(one, one).values():
        assert (table.frame["change_ns"].fillna(0) == 0).all()
        assert not table.frame["changed"].any()

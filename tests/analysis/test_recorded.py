"""Step times, waits, overhead, calibration and power from hand-made recordings: the whole tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c3prof.analysis import analyze
from c3prof.analysis.settings import Settings
from c3prof.readers import load
from c3prof.records import OverheadRecord, PowerRecord, line_of
from c3prof.table import Table
from tests.run_folders import MANIFEST, MS, T0, call, kineto_window, rank_folder, step


def _table(folder: Path, name: str, **settings: Any) -> Table:
    return analyze(load(folder), Settings(only=(name,), **settings))[name]


def _rows(table: Table) -> list[dict[str, Any]]:
    return [{k: None if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()} for row in table.frame.to_dict("records")]


def waited(seq: int, call_ms: float, end_ms: float, wait_ms: float, blocked_ms: float, **more: Any) -> Any:
    return call(seq, call_ms, end_ms, wait_start_ns=T0 + round(wait_ms * MS), blocked_ns=round(blocked_ms * MS), **more)


def test_step_times_of_a_rank_in_light_mode(tmp_path: Path) -> None:
    calls = [
        waited(0, 1, 5, 4, 1),
        waited(1, 2, 6, 5, 1.5),
        waited(2, 11, 15, 14, 1, step=1),
        call(3, 12, 18, step=1),
        call(4, 21, 25, step=2),
    ]
    rank_folder(tmp_path, 0, [step(0, 0, 10, cpu_ns=7 * MS), step(1, 10, 20, window=0), step(2, 20, 30), step(3, 30, 31)], calls)
    table = _table(tmp_path, "step_times")
    base = {"rank": 0, "phase": None, "window": None, "cpu_ns": None, "duration_ns": 10 * MS, "note": None}
    assert _rows(table) == [
        {**base, "step": 0, "cpu_ns": 7 * MS, "blocked_ns": 5 * MS // 2, "collectives": 2, "size_bytes": 8000},
        {
            **base,
            "step": 1,
            "window": 0,
            "blocked_ns": MS,
            "collectives": 2,
            "size_bytes": 8000,
            "note": "1 of 2 waits were not seen (inside torch, or none)",
        },
        {
            **base,
            "step": 2,
            "blocked_ns": None,
            "collectives": 1,
            "size_bytes": 4000,
            "note": "1 of 1 waits were not seen (inside torch, or none)",
        },
        {**base, "step": 3, "duration_ns": MS, "blocked_ns": 0, "collectives": 0, "size_bytes": 0},
    ]


def test_waits_tell_what_was_waited_for_at_once(tmp_path: Path) -> None:
    calls = [
        waited(0, 1, 5, 1.15, 4),  # 0.05 ms after its return
        call(1, 6, 9, asynchronous=False),  # says so itself
        waited(2, 11, 15, 14, 1, kind="all_gather"),  # 2.9 ms to compute in between
        call(3, 16, 19, kind="all_gather"),
    ]
    rank_folder(tmp_path, 0, [step(0, 0, 20)], calls)
    table = _table(tmp_path, "waits")
    base = {"rank": 0, "group": "0", "n": 2, "size_bytes": 4000}
    assert _rows(table) == [
        {
            **base, "collective": "all_gather", "n_at_once": 0, "n_unseen": 1, "duration_ns": 7 * MS // 2, "blocked_ns": MS,
            "note": "1 waits inside torch are not seen; blocked_ns is a lower bound",
        },
        {
            **base, "collective": "all_reduce", "n_at_once": 2, "n_unseen": 0, "duration_ns": 7 * MS // 2, "blocked_ns": 4 * MS,
            "note": "no overlap was possible: every one was waited for at once",
        },
    ]  # fmt: skip


def test_waits_of_a_calibrated_run_are_those_of_its_concurrent_steps(tmp_path: Path) -> None:
    calls = [waited(0, 1, 5, 1.15, 4, phase="serialized"), waited(1, 11, 15, 14, 1, step=1, phase="concurrent")]
    rank_folder(tmp_path, 0, [step(0, 0, 10, phase="serialized"), step(1, 10, 20, phase="concurrent")], calls)
    (row,) = _rows(_table(tmp_path, "waits"))
    assert (row["n"], row["n_at_once"]) == (1, 0)


def test_overhead_is_what_the_collectors_measured(tmp_path: Path) -> None:
    cost = OverheadRecord(hook_calls=20, hook_ns=2 * MS, step_calls=4, step_ns=9 * MS, window_ns=8 * MS, watcher_cpu_ns=MS)
    steps = [step(0, 0, 100), step(1, 100, 110), step(2, 110, 125, window=0), step(3, 125, 135)]
    rank_folder(tmp_path, 0, steps, [call(0, 1, 2)], replace(MANIFEST, overhead=cost))
    (row,) = _rows(_table(tmp_path, "overhead"))
    assert row == {
        "rank": 0, "steps": 4, "hook_calls": 20, "hook_ns_per_call": 100_000.0, "hook_ns_per_step": 500_000.0, "step_ns_per_step": 250_000.0,
        "watcher_ns_per_step": 250_000.0, "overhead_ratio": 0.1, "window_ns": 8 * MS, "window_ratio": 1.5, "note": None,
    }  # fmt: skip


def test_overhead_of_a_killed_rank_is_unknown(tmp_path: Path) -> None:
    rank_folder(tmp_path, 0, [step(0, 0, 10), step(1, 10, 20)], [call(0, 1, 2)], None)
    (row,) = _rows(_table(tmp_path, "overhead"))
    assert row["overhead_ratio"] is None
    assert row["note"] == "no manifest from the end of the run"


def _calibrated(root: Path, *, concurrent_ms: float = 12.0, asynchronous: bool | None = None) -> None:
    """Two ranks: serialized steps of 10 ms compute and 6 ms communication (rank 1 waits 1 ms longer), concurrent ones as given."""
    for rank in (0, 1):
        steps, calls, now = [], [], 0.0
        for number in range(8):
            phase = "serialized" if number % 2 == 0 else "concurrent"
            length = 16.0 if phase == "serialized" else concurrent_ms
            duration = 6.0 + rank if phase == "serialized" else 6.0
            steps.append(step(number, now, now + length, phase=phase))
            calls.append(
                call(
                    number,
                    now + 1,
                    now + 1 + duration,
                    step=number,
                    phase=phase,
                    serialized=phase == "serialized",
                    asynchronous=asynchronous,
                )
            )
            now += length
        rank_folder(root, rank, steps, calls)


def test_calibration_by_hand(tmp_path: Path) -> None:
    """F2 of the metrics, as steps: serial 16, ideal 10, concurrent 12: speed-up 1.333 of 1.6, two thirds of the time."""
    _calibrated(tmp_path)
    (row,) = _rows(_table(tmp_path, "calibration"))
    assert row["ranks"] == 2
    assert (row["n_serialized"], row["n_concurrent"], row["n_at_once"], row["n_collectives"]) == (4, 4, 0, 8)
    assert (row["serial_ns"], row["concurrent_ns"], row["compute_ns"], row["comm_ns"], row["ideal_ns"]) == (16e6, 12e6, 10e6, 6e6, 10e6)
    assert row["ideal_speedup"] == pytest.approx(1.6)
    assert row["real_speedup"] == pytest.approx(4 / 3)
    assert row["realized_by_time"] == pytest.approx(4 / 6)
    assert (row["realized_by_time_low"], row["realized_by_time_high"]) == pytest.approx((4 / 6, 4 / 6))  # no step differs
    assert row["note"] is None


def test_calibration_below_zero_is_shown(tmp_path: Path) -> None:
    _calibrated(tmp_path, concurrent_ms=17.0)
    (row,) = _rows(_table(tmp_path, "calibration"))
    assert row["realized_by_time"] == pytest.approx(-1 / 6)


def test_calibration_says_when_no_overlap_was_possible(tmp_path: Path) -> None:
    _calibrated(tmp_path, asynchronous=False)
    (row,) = _rows(_table(tmp_path, "calibration"))
    assert row["note"] == "no overlap was possible: every collective was waited for at once"
    assert row["realized_by_time"] is None
    assert row["real_speedup"] == pytest.approx(4 / 3)


def test_too_few_steps_give_no_number(tmp_path: Path) -> None:
    steps = [step(n, 10 * n, 10 * n + 10, phase=phase) for n, phase in enumerate(["serialized", "serialized", "concurrent"])]
    rank_folder(tmp_path, 0, steps, [call(0, 1, 2, phase="serialized")])
    (row,) = _rows(_table(tmp_path, "calibration"))
    assert row["serial_ns"] is None
    assert "fewer than 3 steps" in row["note"]


def test_without_calibration_there_is_no_row(tmp_path: Path) -> None:
    rank_folder(tmp_path, 0, [step(0, 0, 10)], [call(0, 1, 2)])
    assert len(_table(tmp_path, "calibration")) == 0


def test_power_inside_and_outside_of_overlap(tmp_path: Path) -> None:
    """Compute [0, 40) ms, communication [20, 60): overlap [20, 40). 300 W in it, 200 W elsewhere, a sample every 5 ms."""
    folder = rank_folder(tmp_path, 0, [step(0, 0, 60, window=0)], [call(0, 19, 61)])
    kineto_window(folder, 0, [("cpu_op", "aten::mm", 0, 40, 1), ("user_annotation", "gloo:all_reduce", 20, 60, 2)])
    samples = [PowerRecord(T0 + t * MS, 0, power_w=300.0 if 20 <= t < 40 else 200.0) for t in range(0, 60, 5)]
    (folder / "power.jsonl").write_text("".join(map(line_of, samples)))
    base = {"rank": 0, "counter": "power [W]", "note": None, "energy_per_step_j": None}
    found = _rows(_table(tmp_path, "power"))
    assert found[:2] == [
        {**base, "where": "overlap", "samples": 4, "time_ns": 20 * MS, "mean": 300.0, "peak": 300.0, "energy_j": 6.0},
        {**base, "where": "no overlap", "samples": 8, "time_ns": 40 * MS, "mean": 200.0, "peak": 200.0, "energy_j": 8.0},
    ]
    assert found[2]["where"] == "all steps"
    assert found[2]["energy_per_step_j"] == pytest.approx((4 * 300 + 8 * 200) / 12 * 0.060)


def test_a_window_shorter_than_three_samples_has_no_power(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, 0, [step(0, 0, 60)], [call(0, 1, 2)])
    (folder / "power.jsonl").write_text(
        line_of(PowerRecord(T0 + MS, 0, power_w=300.0)) + line_of(PowerRecord(T0 + 2 * MS, 0, power_w=300.0))
    )
    (row,) = _rows(_table(tmp_path, "power"))
    assert (row["samples"], row["mean"], row["energy_j"], row["note"]) == (2, None, None, "fewer than 3 samples")

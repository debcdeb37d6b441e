"""Run folders → Trace: windows merged, records joined, and the state of every rank."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from c3prof.errors import UnreadableInput
from c3prof.readers import load
from c3prof.records import EventRecord, line_of
from c3prof.trace import NONE, Trace
from tests.run_folders import DEAD_PID, MANIFEST, MS, T0, call, kineto_window, rank_folder, step


def _codes(trace: Trace) -> dict[str, str]:
    return {warning.code: warning.message for warning in trace.warnings}


STEPS = [step(0, 0, 10), step(1, 10, 20, window=0), step(2, 20, 30), step(3, 30, 40, window=1, cpu_ns=4 * MS)]
CALLS = [call(0, 2, 8), call(1, 12, 18, step=1), call(2, 22, 28, step=2), call(3, 32, 38, step=3)]


def _window(folder: Path, number: int, start: float, step_number: int) -> None:
    kineto_window(
        folder,
        number,
        [
            ("user_annotation", f"ProfilerStep#{step_number}", start, start + 10, 1),
            ("cpu_op", "aten::mm", start + 1, start + 4, 1),
            ("cpu_op", "c10d::allreduce_", start + 2, start + 2.2, 1),
            ("user_annotation", "gloo:all_reduce", start + 3, start + 7.9, 2),
        ],
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Rank 0 with two windows, rank 1 in light mode."""
    folder = rank_folder(tmp_path, 0, STEPS, CALLS)
    _window(folder, 0, 10, 1)
    _window(folder, 1, 30, 3)
    rank_folder(tmp_path, 1, STEPS[:3], CALLS)
    (tmp_path / "run.json").write_text('{"schema":"c3prof.run/1"}')
    return tmp_path


def test_windows_become_one_rank_and_records_name_their_spans(run: Path) -> None:
    trace = load(run).only_rank(0)
    assert list(trace.steps["step"]) == [1, 3]
    spans = trace.collectives
    assert list(spans["start_ns"]) == [T0 + 13 * MS, T0 + 33 * MS]  # the profiler's times
    assert list(spans["seq"]) == [1, 3]  # the hook's knowledge
    assert list(spans["group"]) == ["0", "0"]
    assert list(spans["group_ranks"]) == ["[0,1]", "[0,1]"]
    assert list(spans["size_bytes"]) == [4000, 4000]
    assert list(spans["launch_end_ns"]) == [T0 + 12 * MS + MS // 10, T0 + 32 * MS + MS // 10]
    assert list(spans["order"]) == [0, 1]
    assert trace.coverage[0]["collectives_with_hook_record"] == 2
    assert len(trace.recorded_collectives) == 4


def test_positions_still_point_at_their_rows_after_merging(run: Path) -> None:
    trace = load(run).only_rank(0)
    ops = trace.ops
    inner = ops[ops["name"] == "c10d::allreduce_"]
    assert list(ops["name"].iloc[inner["parent"]]) == ["aten::mm", "aten::mm"]
    assert list(ops["start_ns"].iloc[trace.collectives["op"]]) == [T0 + 12 * MS, T0 + 32 * MS]


def test_a_rank_without_windows_is_complete_in_light_mode(run: Path) -> None:
    trace = load(run).only_rank(1)
    assert len(trace.ops) == 0
    assert list(trace.collectives["end_ns"] - trace.collectives["start_ns"]) == [6 * MS] * 4
    assert set(trace.collectives["evidence"]) == {"hook"}
    assert list(trace.recorded_steps["step"]) == [0, 1, 2]
    assert trace.ranks["status"].iloc[0] == "complete"


def test_a_complete_run_has_no_warning(run: Path) -> None:
    assert _codes(load(run)) == {}


def test_a_killed_rank_says_how_far_it_came(tmp_path: Path) -> None:
    rank_folder(tmp_path, 0, STEPS, CALLS)
    rank_folder(tmp_path, 1, STEPS[:2], [CALLS[0], call(1, 12, None, step=1)], replace(MANIFEST, status="running", pid=DEAD_PID))
    trace = load(tmp_path)
    assert list(trace.ranks["status"]) == ["complete", "killed"]
    (warning,) = [w for w in trace.warnings if w.code == "rank-status"]
    assert warning.path == "ranks/rank00001"
    assert warning.message == "killed; last whole step 1, 1 collectives not ended: all_reduce 0:1"


def test_a_run_that_goes_on_is_not_called_killed(tmp_path: Path) -> None:
    rank_folder(tmp_path, 0, STEPS, CALLS, replace(MANIFEST, status="running"))
    assert load(tmp_path).ranks["status"].iloc[0] == "running"


def test_silence_on_another_host_means_killed(tmp_path: Path) -> None:
    rank_folder(tmp_path, 0, STEPS, CALLS, replace(MANIFEST, status="running", host="elsewhere", updated_ns=T0))
    assert load(tmp_path).ranks["status"].iloc[0] == "killed"


def test_a_cut_line_costs_that_line(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, 0, STEPS, CALLS)
    lines = (folder / "comm.jsonl").read_text()
    (folder / "comm.jsonl").write_text(lines[:-20])
    trace = load(tmp_path)
    assert list(trace.recorded_collectives["seq"]) == [0, 1, 2]
    assert "1 of 4 lines cannot be read, the first at byte" in _codes(trace)["bad-line"]


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"rank": "x", "files": 5}'])
def test_without_a_usable_manifest_the_folder_names_the_rank(tmp_path: Path, content: str | None) -> None:
    folder = rank_folder(tmp_path, 3, STEPS, CALLS, None)
    if content is not None:
        (folder / "manifest.json").write_text(content)
    trace = load(tmp_path)
    assert trace.rank_numbers == [3]
    assert "the rank is taken from the folder's name" in _codes(trace)["no-manifest" if content is None else "bad-manifest"]


def test_a_damaged_window_leaves_the_rest(run: Path) -> None:
    (run / "ranks/rank00000/trace-w001.json.gz").write_bytes(b"not a trace at all")
    trace = load(run).only_rank(0)
    assert list(trace.steps["step"]) == [1]
    assert "unreadable" in _codes(load(run))


def test_of_two_lives_of_a_rank_the_last_is_read_and_the_other_named(tmp_path: Path) -> None:
    rank_folder(tmp_path, 0, STEPS[:1], CALLS[:1])
    rank_folder(tmp_path, 0, STEPS, CALLS, replace(MANIFEST, started_ns=T0 + 5, restart=1), name="rank00000.host.77.ab12")
    trace = load(tmp_path)
    assert len(trace.recorded_steps) == 4
    assert [w.path for w in trace.warnings if "earlier recording" in w.message] == ["ranks/rank00000"]


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    rank_folder(tmp_path, 0, STEPS, CALLS)
    assert "1 of 2 ranks are missing (1)" in _codes(load(tmp_path))["missing-ranks"]


def test_an_empty_rank_folder_is_an_error_with_its_name(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, 0, manifest=None)
    with pytest.raises(UnreadableInput, match="rank00000: no window, step or communication record"):
        load(folder)


def test_phases_reach_the_steps_of_the_profiler(tmp_path: Path) -> None:
    phases = ["discarded", "serialized", "concurrent"]
    steps = [step(n, 10 * n, 10 * n + 10, phase=phases[n], window=0) for n in range(3)]
    folder = rank_folder(tmp_path, 0, steps, CALLS[:3])
    kineto_window(
        folder, 0, [("user_annotation", f"ProfilerStep#{n}", 10 * n, 10 * n + 10, 1) for n in range(3)] + [("cpu_op", "aten::mm", 1, 2, 1)]
    )
    trace = load(tmp_path)
    assert list(trace.steps["phase"]) == phases
    assert list(trace.recorded_steps["phase"]) == phases


def test_two_groups_in_flight_are_told_apart_by_size_and_time(tmp_path: Path) -> None:
    """Spans of equal kind, started out of order by two threads: sizes and completion times decide."""
    calls = [
        call(0, 1, 9, in_bytes=8000, out_bytes=8000),
        call(0, 1.2, 5, group="1"),
        call(1, 1.4, 9.5, in_bytes=8000, out_bytes=8000),
    ]
    folder = rank_folder(tmp_path, 0, [step(0, 0, 10, window=0)], calls)
    kineto_window(folder, 0, [("user_annotation", "gloo:all_reduce", 1.3, 4.9, 3), ("cpu_op", "aten::mm", 0, 1, 1)], elements=1000)
    kineto_window(
        folder,
        1,
        [
            ("user_annotation", "gloo:all_reduce", 1.5, 8.9, 2),
            ("user_annotation", "gloo:all_reduce", 1.6, 9.4, 4),
            ("cpu_op", "aten::mm", 11, 12, 1),
        ],
        elements=2000,
    )
    spans = load(tmp_path).collectives
    assert [*zip(spans["group"], spans["seq"], strict=True)] == [("1", 0), ("0", 0), ("0", 1)]


def test_a_span_without_a_record_stays_unnamed(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, 0, [step(0, 0, 10, window=0)], [call(0, 5, 9)])
    kineto_window(folder, 0, [("user_annotation", "gloo:all_reduce", 1, 4, 2), ("cpu_op", "aten::mm", 0, 1, 1)])
    spans = load(tmp_path).collectives
    assert list(spans["seq"]) == [NONE]  # it ran before the only call that is recorded
    assert spans["group"].isna().all()


def test_device_events_time_the_collectives_of_a_gpu_without_windows(tmp_path: Path) -> None:
    calls = [replace(call(n, 1 + n, None), end_from=None) for n in range(2)]
    folder = rank_folder(tmp_path, 0, [step(0, 0, 10)], calls, replace(MANIFEST, local_rank=3))
    event = EventRecord(0, "0", 0, ready_ns=T0 + 2 * MS, reached_ns=T0 + 4 * MS, end_ns=T0 + 7 * MS, gpu_ns=5 * MS)
    (folder / "events.jsonl").write_text(line_of(event) + line_of(EventRecord(0, "0", 1)) + line_of(EventRecord(0, end_ns=T0 + 9 * MS)))
    trace = load(tmp_path)
    (row,) = trace.collectives.to_dict("records")
    assert (row["start_ns"], row["end_ns"], row["device"]) == (T0 + 2 * MS, T0 + 7 * MS, 3)
    assert (row["wait_start_ns"], row["blocked_ns"]) == (T0 + 4 * MS, 3 * MS)  # the stream waited for 3 ms: exposed
    assert list(trace.recorded_collectives["end_ns"]) == [T0 + 7 * MS, NONE]


def test_the_flight_recorder_gives_durations_where_nothing_else_does(tmp_path: Path) -> None:
    calls = [replace(call(n, 1 + n, None), end_from=None) for n in range(2)]
    folder = rank_folder(tmp_path, 0, [step(0, 0, 10)], calls)
    entry = {"time_created_ns": calls[1].call_ns + 5, "profiling_name": "nccl:all_reduce", "duration_ms": 2.5, "collective_seq_id": 99}
    (folder / "fr-000.json").write_text(json.dumps({"nccl_version": "2.28", "entries": [entry, entry]}))
    trace = load(tmp_path)
    assert list(trace.collectives["seq"]) == [1]
    assert list(trace.collectives["end_ns"] - trace.collectives["start_ns"]) == [5 * MS // 2]


def test_power_samples_become_counters(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, 0, STEPS, CALLS)
    (folder / "power.jsonl").write_text(f'{{"at_ns":{T0 + MS},"device":0,"power_w":412.5,"sm_clock_mhz":1980}}\n')
    counters = load(tmp_path).counters
    assert [*zip(counters["name"], counters["value"], strict=True)] == [("SM clock [MHz]", 1980.0), ("power [W]", 412.5)]
    assert np.issubdtype(counters["at_ns"].dtype, np.int64)

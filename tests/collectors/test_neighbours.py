"""Other users of the same process: torch profilers of the user's, worker processes, forks."""

from pathlib import Path

import pytest

from tests.collectors.ranks import lines, manifest, run_ranks

pytest.importorskip("torch", reason="real ranks need torch")

from tests.collectors import jobs  # torch decides first whether there is anything to run


def _windows(folder: Path) -> list[tuple[int, int]]:
    return [(file["first_step"], file["last_step"]) for file in manifest(folder, 0)["files"] if file["kind"] == "kineto"]


def test_no_window_opens_while_the_users_profiler_runs(tmp_path: Path) -> None:
    assert run_ranks(jobs.profiles_outside, 1, str(tmp_path), None) == [0]
    record = manifest(tmp_path, 0)
    assert _windows(tmp_path) == []
    assert any("another torch profiler is running" in error for error in record["errors"])
    assert len(lines(tmp_path, 0, "steps.jsonl")) == jobs.STEPS
    assert int((tmp_path / "events0.txt").read_text()) > 100  # the user's profiler lost nothing


def test_our_window_ends_when_the_users_schedule_begins_to_record(tmp_path: Path) -> None:
    schedule = {"wait": 1, "warmup": 2, "active": 2, "repeat": 1}  # its warmup covers step 2, where our window opens
    assert run_ranks(jobs.profiles_outside, 1, str(tmp_path), schedule) == [0]
    assert manifest(tmp_path, 0)["status"] == "complete"
    counts = [int(count) for count in (tmp_path / "events0.txt").read_text().split()]
    assert len(counts) == 1
    assert counts[0] > 100


def test_our_window_gives_way_to_a_profiler_inside_it(tmp_path: Path) -> None:
    assert run_ranks(jobs.profiles_inside, 1, str(tmp_path)) == [0]
    record = manifest(tmp_path, 0)
    assert int((tmp_path / "events0.txt").read_text()) > 50
    assert _windows(tmp_path)[0] == (2, 2)
    assert any("another torch profiler started" in error for error in record["errors"])
    assert (6, 7) in _windows(tmp_path)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_neither_write_nor_end_the_recording(tmp_path: Path, method: str) -> None:
    assert run_ranks(jobs.loads_data, 1, str(tmp_path), method) == [0]
    assert manifest(tmp_path, 0)["status"] == "complete"
    assert [record["step"] for record in lines(tmp_path, 0, "steps.jsonl")] == list(range(8))
    sequence = [record["seq"] for record in lines(tmp_path, 0, "comm.jsonl")]
    assert sorted(sequence) == list(range(len(sequence)))  # each once; a line is written when its operation ends


def test_a_forked_child_dies_of_sigterm_and_its_parent_goes_on(tmp_path: Path) -> None:
    assert run_ranks(jobs.forks, 1, str(tmp_path)) == [0]
    assert (tmp_path / "child0.txt").read_text() == "-15"
    assert manifest(tmp_path, 0)["status"] == "complete"
    assert [record["step"] for record in lines(tmp_path, 0, "steps.jsonl")] == list(range(jobs.STEPS))

"""What happens when training does not end well, each with real processes. Training dies or goes on as it would have."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from c3prof.readers import load
from tests.collectors.ranks import SIGINT, SIGKILL, SIGTERM, lines, manifest, ranks, run_ranks, until

pytest.importorskip("torch", reason="real ranks need torch")

from tests.collectors import jobs  # torch decides first whether there is anything to run


def test_an_exception_in_the_loop_leaves_the_open_window_and_says_why_on_every_rank(tmp_path: Path) -> None:
    codes = run_ranks(jobs.raises, 2, str(tmp_path))
    assert codes == [1, 1]
    first, second = manifest(tmp_path, 0), manifest(tmp_path, 1)
    assert first["status"] == "exception:ValueError"
    assert second["status"] == "exception:RuntimeError"  # its collective fails when the peer goes
    assert first["steps"] == 3
    windows = [file for file in first["files"] if file["kind"] == "kineto"]
    assert [(file["first_step"], file["last_step"]) for file in windows] == [(2, 2)]  # step 3 never ended
    assert [record["step"] for record in lines(tmp_path, 0, "steps.jsonl")] == [0, 1, 2]


def test_sigterm_while_blocked_in_a_collective_saves_everything_and_dies_of_the_signal(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with ranks(jobs.waits_for_file, 2, str(folder), str(tmp_path / "never")) as job:
        until(lambda: len(lines(folder, 0, "steps.jsonl")) == 3 and len(lines(folder, 1, "steps.jsonl")) == 3)
        job.signal(SIGTERM)
        assert job.exit_codes() == [-SIGTERM, -SIGTERM]
    assert manifest(folder, 0)["status"] == manifest(folder, 1)["status"] == "signal:SIGTERM"
    assert (folder / "ranks/rank00000/trace-w000.json.gz").exists()
    unfinished = [record for record in lines(folder, 0, "comm.jsonl") if "end_ns" not in record]
    assert [record["collective"] for record in unfinished][:1] == ["all_reduce"]
    assert {record["step"] for record in unfinished} == {3}
    assert all("end_ns" in record for record in lines(folder, 1, "comm.jsonl"))


def test_sigint_while_blocked_saves_at_once_and_interrupts_when_python_runs_again(tmp_path: Path) -> None:
    folder, gate = tmp_path / "run", tmp_path / "gate"
    with ranks(jobs.waits_for_file, 2, str(folder), str(gate)) as job:
        until(lambda: len(lines(folder, 0, "steps.jsonl")) == 3)
        job.signal(SIGINT, 0)
        until(lambda: manifest(folder, 0)["status"] == "signal:SIGINT")
        assert (folder / "ranks/rank00000/trace-w000.json.gz").exists()
        assert job.processes[0].is_alive()  # as without the profiler: the interrupt waits for the collective
        gate.touch()
        codes = job.exit_codes()
    assert codes[0] == 1
    assert manifest(folder, 0)["status"] == "signal:SIGINT"


def test_sigkill_leaves_whole_lines_up_to_the_last_flush(tmp_path: Path) -> None:
    with ranks(jobs.runs_slowly, 2, str(tmp_path)) as job:
        until(lambda: len(lines(tmp_path, 0, "steps.jsonl")) >= 3 and len(lines(tmp_path, 1, "steps.jsonl")) >= 3)
        job.signal(SIGKILL)
        assert job.exit_codes() == [-SIGKILL, -SIGKILL]
    assert manifest(tmp_path, 0)["status"] == "running"
    steps = [record["step"] for record in lines(tmp_path, 0, "steps.jsonl")]
    assert steps == list(range(len(steps)))
    recorded = [record["step"] for record in lines(tmp_path, 0, "comm.jsonl")]
    assert set(steps[:-1]) <= set(recorded)
    trace = load(tmp_path)
    assert list(trace.ranks["status"]) == ["killed", "killed"]
    assert f"last whole step {steps[-1]}" in next(w.message for w in trace.warnings if w.code == "rank-status")


def test_a_hanging_rank_is_reported_with_the_open_collectives_of_each_rank(tmp_path: Path) -> None:
    folder, gate = tmp_path / "run", tmp_path / "gate"
    with ranks(jobs.waits_for_file, 2, str(folder), str(gate), 0.6) as job:
        reports = [folder / f"ranks/rank0000{rank}/stacks.txt" for rank in (0, 1)]
        until(lambda: all(report.exists() and report.read_text() for report in reports))
        until(lambda: manifest(folder, 0)["status"] == manifest(folder, 1)["status"] == "stalled")
        gate.touch()
        assert job.exit_codes() == [0, 0]
    waiting, missing = (json.loads((folder / f"ranks/rank0000{rank}/stall.json").read_text()) for rank in (0, 1))
    assert waiting["step"] == missing["step"] == 3
    assert [(one["collective"], one["group"]) for one in waiting["open"]][:1] == [("all_reduce", "0")]
    assert missing["open"] == []
    assert "pause" in (folder / "ranks/rank00001/stacks.txt").read_text()
    assert manifest(folder, 0)["status"] == "complete"
    assert any("went on after a stall" in note for note in manifest(folder, 0)["notes"])


def test_a_rank_that_cannot_write_trains_on_and_the_others_record(tmp_path: Path) -> None:
    assert run_ranks(jobs.completes, 2, str(tmp_path), 1, "/proc/nowhere") == [0, 0]
    assert manifest(tmp_path, 0)["status"] == "complete"
    assert manifest(tmp_path, 1) == {}


def test_a_reused_folder_keeps_the_first_run_and_the_second_writes_beside_it(tmp_path: Path) -> None:
    assert run_ranks(jobs.completes, 1, str(tmp_path)) == [0]
    before = (tmp_path / "ranks/rank00000/comm.jsonl").read_bytes()
    assert run_ranks(jobs.completes, 1, str(tmp_path)) == [0]
    assert (tmp_path / "ranks/rank00000/comm.jsonl").read_bytes() == before
    second = [path for path in (tmp_path / "ranks").iterdir() if path.name.startswith("rank00000.")]
    assert len(second) == 1
    assert "another process owns" in (second[0] / "manifest.json").read_text()


def test_a_rank_that_is_switched_off_never_writes(tmp_path: Path) -> None:
    assert run_ranks(jobs.one_rank_is_off, 2, str(tmp_path)) == [0, 0]
    assert manifest(tmp_path, 0)["status"] == "complete"
    assert not (tmp_path / "ranks/rank00001").exists()


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system with room for the line files and not for a window."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "small"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("mount is not permitted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("least_free", [None, "0"])
def test_a_full_disk_costs_the_window_and_nothing_else(small_disk: Path, least_free: str | None) -> None:
    assert run_ranks(jobs.fills_the_disk, 1, str(small_disk), least_free) == [0]
    record = manifest(small_disk, 0)
    assert record["status"] == "complete"
    assert record["steps"] == jobs.STEPS
    assert any("export of window" in error for error in record["errors"])
    assert not [file for file in record["files"] if file["kind"] == "kineto"]
    left = {path.name for path in (small_disk / "ranks/rank00000").iterdir()}
    assert left == {"manifest.json", "comm.jsonl", "steps.jsonl"}

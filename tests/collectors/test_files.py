"""Line files and rank folders: whole lines, whole manifests, and one owner."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from c3prof.collectors.folder import RankFolder
from c3prof.collectors.identity import identity
from c3prof.collectors.lines import Lines
from c3prof.records import CollectiveRecord, RankManifest, RunRecord, StepRecord, line_of, manifest_of, record_of

WHO = replace(identity({}), rank=3, world_size=8)


def test_a_line_holds_what_is_known_and_reads_back() -> None:
    step = StepRecord(4, 10, 20, cpu_ns=5, phase="serialized")
    assert line_of(step) == '{"step":4,"start_ns":10,"end_ns":20,"cpu_ns":5,"phase":"serialized"}\n'
    assert record_of(StepRecord, json.loads(line_of(step))) == step


def test_a_newer_writers_fields_are_ignored_and_missing_ones_named() -> None:
    assert record_of(StepRecord, {"step": 1, "start_ns": 0, "end_ns": 1, "colour": "red"}) == StepRecord(1, 0, 1)
    with pytest.raises(ValueError, match="CollectiveRecord without call_ns, return_ns"):
        record_of(CollectiveRecord, {"op": "x", "collective": "x", "group": "0", "step": 0})


def test_a_manifest_reads_back_whole(tmp_path: Path) -> None:
    folder = RankFolder(str(tmp_path), WHO)
    manifest = RankManifest(rank=3, world_size=8, status="complete", steps=7, errors=("one",))
    folder.write_manifest(manifest)
    assert manifest_of(json.loads((folder.final / "manifest.json").read_text())) == manifest


def test_lines_are_appended_whole(tmp_path: Path) -> None:
    told: list[object] = []
    lines = Lines(tmp_path / "steps.jsonl", lambda *what: told.append(what))
    lines.write([StepRecord(0, 0, 1), StepRecord(1, 1, 2)])
    lines.write([])
    lines.write([StepRecord(2, 2, 3)])
    lines.close()
    content = (tmp_path / "steps.jsonl").read_text()
    assert [json.loads(line)["step"] for line in content.splitlines()] == [0, 1, 2]
    assert lines.bytes == len(content)
    assert told == []


def test_a_file_that_grows_too_large_ends_with_a_report(tmp_path: Path) -> None:
    told: list[tuple[str, object]] = []
    lines = Lines(tmp_path / "steps.jsonl", lambda *what: told.append(what), most_bytes=80)
    for number in range(9):
        lines.write([StepRecord(number, 0, 1)])
    assert len((tmp_path / "steps.jsonl").read_text().splitlines()) == 2
    assert len(told) == 1
    assert "80 bytes" in str(told[0][1])


def test_a_write_that_fails_is_reported_once_and_never_raised(tmp_path: Path) -> None:
    told: list[object] = []
    lines = Lines(tmp_path / "steps.jsonl", lambda *what: told.append(what))
    os.close(lines._file)
    lines.write([StepRecord(0, 0, 1)])
    lines.write([StepRecord(1, 0, 1)])
    assert len(told) == 1


def test_a_disk_that_was_full_for_a_moment_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    lines = Lines(tmp_path / "steps.jsonl", lambda *what: told.append(what))
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:10]))  # only a part fits
    lines.write([StepRecord(0, 0, 1)])
    assert (tmp_path / "steps.jsonl").read_text() == ""
    monkeypatch.setattr(os, "write", write)
    lines.write([StepRecord(1, 1, 2)])
    assert [json.loads(line)["step"] for line in (tmp_path / "steps.jsonl").read_text().splitlines()] == [0, 1]
    assert told == []


def test_a_disk_that_stays_full_is_reported_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, object]] = []
    lines = Lines(tmp_path / "steps.jsonl", lambda *what: told.append(what))
    monkeypatch.setattr(os, "write", lambda *_: 0)
    for number in range(3):
        lines.write([StepRecord(number, 0, 1)])
    lines.close()
    assert len(told) == 1
    assert "could not be written" in str(told[0][1])


def test_the_folder_has_one_owner(tmp_path: Path) -> None:
    first, second = RankFolder(str(tmp_path), WHO), RankFolder(str(tmp_path), WHO)
    assert first.final.name == "rank00003"
    assert not first.taken_by_other
    assert second.taken_by_other
    assert second.final.name.startswith(f"rank00003.{WHO.host}.{WHO.pid}.")


def test_run_json_is_written_once(tmp_path: Path) -> None:
    folder = RankFolder(str(tmp_path), WHO)
    folder.write_run(RunRecord(world_size=8))
    folder.write_run(RunRecord(world_size=9))
    assert json.loads((tmp_path / "run.json").read_text())["world_size"] == 8


def test_local_data_is_copied_at_the_end(tmp_path: Path) -> None:
    folder = RankFolder(str(tmp_path / "shared"), WHO, str(tmp_path / "local"), ballast=True)
    (folder.path / "comm.jsonl").write_text("{}\n")
    assert not (folder.final / "comm.jsonl").exists()
    folder.publish()
    assert {path.name for path in folder.final.iterdir()} == {"comm.jsonl"}
    assert list((tmp_path / "local").iterdir()) == []

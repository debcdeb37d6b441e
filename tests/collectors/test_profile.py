"""profile() and what stands around it: off, strict, labels, triggers, launchers, torch that moved."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import c3prof
from c3prof.collectors import adapters
from c3prof.errors import MissingExtra
from tests.collectors.ranks import lines, manifest, run_ranks

pytest.importorskip("torch", reason="real ranks need torch")

from tests.collectors import jobs  # torch decides first whether there is anything to run

ROOT = Path(__file__).resolve().parents[2]


def _python(code: str, **variables: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_importing_the_collectors_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'pandas', 'numpy', 'dash', 'plotly', 'rich', 'typer'}"
    assert _python(f"import sys, c3prof.collectors, c3prof.collectors.session; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_switched_off_it_loads_and_writes_nothing(tmp_path: Path) -> None:
    code = f"""
import sys, c3prof
with c3prof.profile({str(tmp_path / "run")!r}, calibrate=3) as prof:
    prof.step(); prof.mark("x")
print("torch" in sys.modules, "c3prof.collectors.session" in sys.modules)
"""
    assert _python(code, C3PROF="0") == "False False"
    assert not (tmp_path / "run").exists()


def test_strict_lets_errors_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("C3PROF_STRICT", "1")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        c3prof.profile(tmp_path / "file" / "run").start()


def test_without_strict_training_goes_on_and_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    with c3prof.profile(tmp_path / "file" / "run") as prof:
        prof.step()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "training goes on" in caplog.text


def test_labels_and_forced_phases(tmp_path: Path) -> None:
    assert run_ranks(jobs.marks_and_forces, 2, str(tmp_path)) == [0, 0]
    steps = lines(tmp_path, 0, "steps.jsonl")
    assert [step.get("mark") for step in steps] == [None, "eval", "eval", None]
    calls = lines(tmp_path, 0, "comm.jsonl")
    phases = {(call["step"], call.get("phase"), call["serialized"]) for call in calls if call["collective"] == "all_reduce"}
    assert phases == {(0, None, False), (1, "serialized", True), (2, "concurrent", False), (3, None, False)}


def test_decorator_by_hand_and_one_at_a_time(tmp_path: Path) -> None:
    assert run_ranks(jobs.decorated, 1, str(tmp_path)) == [0]
    assert manifest(tmp_path / "decorated", 0)["status"] == "complete"
    assert manifest(tmp_path / "by-hand", 0)["steps"] == 1
    assert not (tmp_path / "inside").exists()


@pytest.mark.parametrize(("options", "recorded"), [({}, [0, 1]), ({"ranks": "1"}, [1]), ({"calibrate": 3}, [0, 1])])
def test_a_trigger_opens_one_window_at_the_same_step(tmp_path: Path, options: dict[str, object], recorded: list[int]) -> None:
    if recorded == [1]:
        assert run_ranks(jobs.completes, 2, str(tmp_path), -1, "", {**options, "kineto": jobs.WINDOW}) == [0, 0]
        windows = {rank: [file for file in manifest(tmp_path, rank)["files"] if file["kind"] == "kineto"] for rank in (0, 1)}
        assert not windows[0]
        assert windows[1]
        return
    assert run_ranks(jobs.waits_for_a_trigger, 2, str(tmp_path), options) == [0, 0]
    spans = [
        [(file["path"], file["first_step"], file["last_step"]) for file in manifest(tmp_path, rank)["files"] if file["kind"] == "kineto"]
        for rank in (0, 1)
    ]
    assert spans[0] == spans[1]
    ((name, first, last),) = spans[0]
    assert name == "trace-w1000.json.gz"
    assert last - first + 1 == (7 if options else 3)
    assert not options or first % 7 == 0
    assert not (tmp_path / "TRIGGER").exists()


def test_a_torch_that_moved_costs_the_hook_and_one_warning(tmp_path: Path) -> None:
    assert run_ranks(jobs.internals_moved, 1, str(tmp_path)) == [0]
    record = manifest(tmp_path, 0)
    assert record["status"] == "complete"
    assert any("comm is off: torch 9.9 has no Work.unbox" in note for note in record["notes"])
    assert [file["kind"] for file in record["files"]].count("kineto") > 0
    assert not (tmp_path / "ranks/rank00000/comm.jsonl").exists()
    assert len(lines(tmp_path, 0, "steps.jsonl")) == jobs.STEPS


def test_data_written_to_a_local_disk_ends_in_the_run_folder(tmp_path: Path) -> None:
    options = {"local_dir": str(tmp_path / "local")}
    assert run_ranks(jobs.completes, 1, str(tmp_path / "run"), -1, "", options) == [0]
    assert len(lines(tmp_path / "run", 0, "steps.jsonl")) == jobs.STEPS
    assert list((tmp_path / "local").iterdir()) == []


def _launched(tmp_path: Path, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    torchrun = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, "-m", "c3prof.cli", "run", "--dir", str(tmp_path / "run"), "--kineto", "off", "--", *torchrun, *before]
    script = str(ROOT / "tests/collectors/script.py")
    return subprocess.run(
        [*command, script, *arguments],
        cwd=ROOT,
        env={**os.environ, "STORE": str(tmp_path / "store")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_program_is_recorded_without_a_change_to_it_and_through_a_restart(tmp_path: Path) -> None:
    run = _launched(tmp_path, "fail-first", before=("--max-restarts", "1"))
    assert run.returncode == 0, run.stderr
    assert "c3prof: recording into" in run.stderr
    folders = sorted((tmp_path / "run/ranks").iterdir())
    assert [folder.name[:9] for folder in folders] == ["rank00000", "rank00000", "rank00001", "rank00001"]
    by_life = {(m["rank"], m["restart"]): m for m in (json.loads((folder / "manifest.json").read_text()) for folder in folders)}
    assert by_life[0, 0]["status"] == "exception:ValueError"
    assert by_life[0, 1]["status"] == "complete"
    assert by_life[0, 1]["steps"] == by_life[1, 1]["steps"] == 4  # the first optimizer step starts the recording


def test_adapters_import_without_their_frameworks() -> None:
    for factory, package in ((adapters.hugging_face, "transformers"), (adapters.lightning, "lightning")):
        if not _installed(package):
            with pytest.raises(MissingExtra, match=package):
                factory("runs/x")


def _installed(package: str) -> bool:
    return find_spec(package) is not None


def test_adapters_follow_the_documented_hooks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The frameworks' base classes stand in; the order of calls is that of their documentation."""
    said: list[str] = []
    monkeypatch.setattr(adapters.StepCallback, "began", lambda _: said.append("began"))
    monkeypatch.setattr(adapters.StepCallback, "stepped", lambda _: said.append("stepped"))
    monkeypatch.setattr(adapters.StepCallback, "ended", lambda _, error=None: said.append(f"ended {error!r}"))
    monkeypatch.setattr(adapters, "_class", lambda *_: object)
    trainer = adapters.hugging_face(tmp_path)
    trainer.on_train_begin(None, None, None)
    trainer.on_step_end(None, None, None, model=None)
    trainer.on_train_end(None, None, None)
    light = adapters.lightning(tmp_path)
    light.on_train_start(None, None)
    light.on_train_batch_end(None, None, None, None, 0)
    light.on_exception(None, None, KeyError("x"))
    assert said == ["began", "stepped", "ended None", "began", "stepped", "ended KeyError('x')"]


def test_torchtitans_post_processor_names_the_traces(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "rank0_trace.json").touch()
    with caplog.at_level("INFO", logger="c3prof"):
        assert adapters.trace_post_processor(tmp_path) == [str(tmp_path / "rank0_trace.json")]
    assert f"c3prof analyze {tmp_path}" in caplog.text

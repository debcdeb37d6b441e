"""The command line: exit codes, streams, settings, and that no user ever sees a traceback."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from c3prof import __version__, cli
from c3prof.readers.scan import scanner_name
from tests.kineto_files import annotation, document, kernel, launched, memcpy, nccl, written

ROOT = Path(cli.__file__).resolve().parents[1]
STEPS = [annotation(f"ProfilerStep#{step}", 1000 * step, 1000 * step + 900) for step in (1, 2, 3)]


def events():
    """Three steps: compute 400 µs, all_reduce 300 µs of which 100 are hidden, a copy of 50 µs."""
    made = list(STEPS)
    for at in (1000, 2000, 3000):
        made += launched(kernel("void gemm<float>()", at + 100, at + 500), at + 10)
        made += launched(nccl("allreduce", at + 400, at + 700), at + 20)
        made += launched(memcpy("Memcpy DtoH", at + 700, at + 750), at + 30)
    return made


pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def trace(tmp_path):
    return written(tmp_path / "in" / "trace.json.gz", document(events()))


def run(*arguments):
    return cli.exit_code([str(a) for a in arguments])


def process(*arguments, env=None, stdout=subprocess.PIPE):
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "c3prof.cli", *map(str, arguments)]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False, env=environment, cwd=ROOT)


def test_json_is_the_only_thing_on_stdout(trace, capsys):
    assert run("analyze", trace, "--format", "json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert found["schema"] == "c3prof.report/1"
    assert found["inputs"] == ["trace.json.gz"]
    row = found["tables"]["overlap"]["rows"][0]
    times = {name: row[f"{name}_ns"] for name in ("span", "compute", "comm", "copy", "hidden", "exposed", "exposed_copy", "idle")}
    # three times: compute 400, comm 300, hidden 100, copy 50; the device is idle 350 between steps, twice
    assert times == {"span": 2_650_000, "compute": 1_200_000, "comm": 900_000, "copy": 150_000, "hidden": 300_000, "exposed": 600_000, "exposed_copy": 150_000, "idle": 700_000}  # fmt: skip


def test_text_begins_with_the_headline(trace, capsys):
    assert run("analyze", trace) == 0
    assert "is exposed communication, all of it all_reduce in group" in capsys.readouterr().out.splitlines()[0]


def test_csv_is_a_folder_with_one_file_a_table(trace, tmp_path, capsys):
    assert run("analyze", trace, "--format", "csv", "-o", tmp_path / "out") == 0
    assert run("analyze", trace, "--format", "json") == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(f"{name}.csv" for name in tables)
    header, row = (tmp_path / "out" / "overlap.csv").read_text().splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=True))["exposed_ns"] == "600000"


def test_csv_needs_a_folder_or_one_table(trace, capsys):
    assert run("analyze", trace, "--format", "csv") == 2
    assert "-o FOLDER" in capsys.readouterr().err
    assert run("analyze", trace, "--format", "csv", "--only", "overlap") == 0
    assert capsys.readouterr().out.startswith("rank,device,")


def test_same_input_same_bytes_wherever_it_lies(trace, tmp_path, capsys, monkeypatch):
    other = tmp_path / "elsewhere" / "deep"
    other.mkdir(parents=True)
    shutil.copy(trace, other / trace.name)
    outputs = []
    for path in (trace, other / trace.name, trace):
        monkeypatch.chdir(path.parent)
        assert run("analyze", path if len(outputs) < 2 else path.name, "--format", "json") == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    assert str(tmp_path) not in outputs[0]
    assert "/" not in json.loads(outputs[0])["inputs"][0]


def test_a_dash_is_stdout(trace, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("analyze", trace, "--format", "json", "-o", "-") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "c3prof.report/1"
    assert not (tmp_path / "-").exists()


def test_out_is_written_whole_or_not_at_all(trace, tmp_path, capsys):
    target = tmp_path / "report.json"
    target.write_text("before")
    assert run("analyze", tmp_path / "missing.json", "--format", "json", "-o", target) == 1
    assert target.read_text() == "before"
    assert run("analyze", trace, "--format", "json", "-o", target) == 0
    assert json.loads(target.read_text())["schema"] == "c3prof.report/1"
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.glob("*.part")] == []


@pytest.mark.parametrize("content", [b"", b"\x00\x01binary", b'{"traceEvents": []}', b"[1, 2, 3]", b'{"a": 1}', b"\x1f\x8b\x08cut"])
def test_nothing_usable_is_one_line_and_exit_1(content, tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert run("analyze", path) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("c3prof: ")
    assert err.count("\n") == 1
    assert "bad.json" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyze"], "give at least one PATH"),
        (["analyze", "x", "--format", "xml"], "--format: 'xml' cannot be used: expected one of text, json, csv, html"),
        (["analyze", "x", "--only", "nothing"], "nothing"),
        (["analyze", "x", "--by", "moon"], "--by moon: expected one of step, stream, group, collective"),
        (["analyze", "x", "--steps", "7-3"], "expected FIRST-LAST"),
        (["analyze", "x", "--rules", "nowhere.toml"], "nowhere.toml"),
        (["analyze", "x", "--sample", "ddp"], "either PATH or --sample"),
        (["analyze", "--unknown-flag"], "--unknown-flag"),
        (["analyze", "x", "-o", "/nowhere/at/all/r.txt"], "there is no folder /nowhere/at/all"),
        (["analyze", "x", "-o", "/"], "this is a folder"),
        (["analyze", "x", "--format", "csv", "-o", "/dev/null"], "this is a file"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_is_exit_2_and_says_what_is_right(arguments, said, capsys):
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err


def test_strict_exits_3_only_when_a_warning_bears_on_a_number(trace, tmp_path, capsys):
    assert run("analyze", trace, "--strict") == 0
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps(document(events()))[:-200])
    assert run("analyze", cut) == 0
    assert run("analyze", cut, "--strict") == 3
    assert "Warnings" in capsys.readouterr().out


def test_an_unexpected_error_is_one_line(trace, monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("a bug\nwith two lines")

    monkeypatch.setattr("c3prof.pipeline.report", broken)
    assert run("analyze", trace) == 1
    err = capsys.readouterr().err
    assert err == "c3prof: internal error: RuntimeError: a bug with two lines. Please report it, with what C3PROF_DEBUG=1 prints.\n"
    monkeypatch.setenv("C3PROF_DEBUG", "1")
    assert run("analyze", trace) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 1, "out of memory"),
        (PermissionError(13, "Permission denied", "x.json"), 1, "x.json: Permission denied"),
    ],
)
def test_what_stops_it_from_outside(error, code, said, trace, monkeypatch, capsys):
    def stopped(*_, **__):
        raise error

    monkeypatch.setattr("c3prof.pipeline.report", stopped)
    assert run("analyze", trace) == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_ctrl_c_ends_a_real_process_with_130():
    """The report is made to sleep, the process gets SIGINT as from a keyboard."""
    script = (
        "import signal, sys, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import c3prof.pipeline; from c3prof.cli import main\n"
        "def report(*_, **__): print('reading', flush=True); time.sleep(30)\n"
        "c3prof.pipeline.report = report; sys.argv = ['c3prof', 'analyze', 'x']; main()"
    )
    running = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert running.stdout.readline() == "reading\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "Traceback" not in err


def test_a_closed_pipe_is_quiet(trace):
    reader, writer = os.pipe()
    os.close(reader)
    done = process("analyze", trace, "--format", "json", stdout=writer)
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == ""


def test_a_terminal_gets_a_progress_bar_a_pipe_none(trace):
    assert process("analyze", trace, "--no-cache").stderr == ""


def test_start_is_light():
    """import c3prof and --help load nothing heavy; a start under 0.3 s follows, and the best of three is measured."""
    script = "import sys; from c3prof.cli import exit_code; exit_code(['--help']); print([m for m in HEAVY if m in sys.modules])"
    heavy = "HEAVY = ['numpy', 'pandas', 'pyarrow', 'msgspec', 'torch', 'dash', 'plotly', 'fsspec', 'dask']; "
    done = subprocess.run([sys.executable, "-c", heavy + script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
    assert min(cpu_seconds_of_help() for _ in range(3)) < 0.3


def cpu_seconds_of_help():
    """CPU time of a process that prints the help: what it takes on a machine that is not shared."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_version_help_and_completion(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"c3prof {__version__}\n"
    assert run("--help") == 0
    out = capsys.readouterr().out
    for command in ("analyze", "doctor", "scrub", "schema", "hta", "--install-completion"):
        assert command in out
    done = process(env={"_C3PROF_COMPLETE": "complete_bash", "COMP_WORDS": "c3prof ana", "COMP_CWORD": "1"})
    assert done.stdout.split() == ["analyze"]


def test_show_config_says_where_a_value_comes_from(tmp_path, monkeypatch, capsys):
    (tmp_path / "c3prof.toml").write_text("top = 5\n")
    monkeypatch.setenv("C3PROF_BY", "step")
    assert run("analyze", "--show-config", "--steps", "3-7") == 0
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert lines["top"] == ["5", str(tmp_path / "c3prof.toml")]
    assert lines["by"] == ["step", "C3PROF_BY"]
    assert lines["steps"] == ["3-7", "--steps"]
    assert lines["strict"] == ["false", "default"]


def test_settings_of_the_environment_and_the_file_reach_the_report(trace, tmp_path, monkeypatch, capsys):
    (tmp_path / "c3prof.toml").write_text('format = "json"\nonly = ["overlap"]\n')
    monkeypatch.setenv("C3PROF_STEPS", "2-2")
    assert run("analyze", trace) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["tables"]) == ["overlap"]
    assert found["settings"]["steps"] == [2, 2]
    assert found["tables"]["overlap"]["rows"][0]["compute_ns"] == 400_000


def test_several_files_are_several_ranks(tmp_path, capsys):
    for rank in (0, 1):
        written(tmp_path / "run" / f"r{rank}.json", document(events(), rank=rank, world_size=2))
    (tmp_path / "run" / "notes.txt").write_text("no trace")
    (tmp_path / "run" / "broken.json").write_text('{"traceEvents": [')
    assert run("analyze", tmp_path / "run", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == ["r0.json", "r1.json"]
    assert [row["rank"] for row in found["tables"]["overlap"]["rows"]] == [0, 1]
    assert {(w["code"], w["path"]) for w in found["warnings"]} >= {("skipped-file", "notes.txt"), ("unreadable", "broken.json")}


def test_doctor_says_what_can_be_trusted(trace, tmp_path, capsys):
    assert run("doctor", trace) == 0
    out = capsys.readouterr().out
    assert "how much communication is hidden" in out
    assert "one rank" in out
    assert run("doctor", trace, "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["trust"]["rows"]
    assert {row["question"]: row["answer"] for row in rows}["what each step costs"] == "yes"
    assert run("doctor", written(tmp_path / "none.json", {"traceEvents": []})) == 1
    assert run("doctor") == 2


def test_doctor_self_lists_what_is_installed(capsys):
    assert run("doctor", "--self") == 0
    out = capsys.readouterr().out
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert f"scan of traces          {scanner_name()}\n" in out
    assert lines["c3prof"] == __version__
    assert lines["numpy"][0].isdigit()


def test_schema_prints_json_and_markdown(capsys):
    assert run("schema") == 0
    assert json.loads(capsys.readouterr().out)["$id"] == "c3prof.report/1"
    assert run("schema", "--format", "markdown") == 0
    assert capsys.readouterr().out.startswith("# Tables and columns")
    assert run("schema", "--format", "yaml") == 2

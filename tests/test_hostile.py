"""Hostile input through the command line: what a terminal, a spreadsheet or a shell would obey, and values no field may have."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from c3prof import cli
from c3prof.units import printable
from tests.kineto_files import annotation, document, kernel, launched, nccl, written
from tests.run_folders import call, rank_folder, step

ROOT = Path(cli.__file__).resolve().parents[1]


pytestmark = pytest.mark.usefixtures("alone")


def events(name="gemm"):
    made = []
    for i in range(8):
        t = 100.0 * i
        made += [annotation(f"ProfilerStep#{i}", t, t + 99), *launched(kernel(name, t, t + 50), t + 1), kernel(name, t + 90, t + 95)]
        made += launched(nccl("allreduce", t + 40, t + 80, group=name), t + 2)
    return made


@pytest.fixture
def said(capsys):
    """(exit code, stdout, stderr) of a command line."""

    def run(*arguments):
        code = cli.exit_code([str(a) for a in arguments])
        return (code, *capsys.readouterr())

    return run


@pytest.mark.parametrize("command", ["analyze", "slowdown", "ranks", "doctor"])
@pytest.mark.parametrize("name", ["a\x1b[31mb\x07", "a\x00\x9bb", "a\u202eb\u2066", "a\nb\u2028c\rd"])
def test_no_name_can_steer_a_terminal(tmp_path, said, command, name):
    path = written(tmp_path / "t.json", document(events(name)))
    code, out, err = said(command, path)
    assert code == 0
    assert printable(out.replace("\n", "") + err.replace("\n", "")) == out.replace("\n", "") + err.replace("\n", "")


def test_a_name_with_a_line_end_stays_on_one_line(tmp_path, said):
    path = written(tmp_path / "t.json", document(events("first\nsecond")))
    assert "first\\nsecond" in said("analyze", path, "--only", "kernels")[1]


def test_a_message_cannot_steer_a_terminal_either(said):
    assert said("analyze", "\x1b]0;x\x07.json") == (1, "", "c3prof: \\x1b]0;x\\x07.json: no such file or folder\n")


@pytest.mark.parametrize("name", ["=cmd|'/c calc'!A1", "@SUM(1)", "+1+1", "-1+1", "\t=1"])
def test_no_spreadsheet_runs_a_name_from_csv(tmp_path, said, name):
    path = written(tmp_path / "t.json", document(events(name)))
    code, out, _ = said("analyze", path, "--format", "csv", "--only", "kernels")
    assert code == 0
    assert f"'{name}" in out
    assert f",{name}" not in out


BROKEN = ("abc", " ", [1], {"a": 1}, None, True, -5, 1.5, 10**30, "\ud800")


@pytest.mark.parametrize("value", BROKEN, ids=repr)
def test_broken_device_properties_are_unknown_ones(tmp_path, said, value):
    keys = ("numSms", "maxThreadsPerMultiprocessor", "regsPerMultiprocessor", "sharedMemPerMultiprocessor", "name")
    launch = {"grid": [8, 1, 1], "block": [64, 1, 1], "registers per thread": 32, "shared memory": 1}
    with_launch = [{**event, "args": {**event["args"], **launch}} if event["cat"] == "kernel" else event for event in events()]
    path = written(tmp_path / "t.json", document(with_launch, deviceProperties=[{"id": 0, **dict.fromkeys(keys, value)}]))
    code, out, err = said("analyze", path, "--format", "json", "--only", "footprint")
    assert (code, err) == (0, "")
    assert {row["note"] for row in json.loads(out)["tables"]["footprint"]["rows"]} == {"no device properties"}


@pytest.mark.parametrize("rank", [2**31, 2**63, -1, "x", [0]])
@pytest.mark.parametrize("name", ["t.json", "rank99999999999999999999.json"])
def test_a_rank_that_cannot_be_one_is_an_unknown_rank(tmp_path, said, rank, name):
    path = written(tmp_path / name, document(events(), distributedInfo={"rank": rank, "world_size": rank}))
    code, out, _ = said("analyze", path, "--format", "json", "--only", "overlap")
    assert code == 0
    assert [row["rank"] for row in json.loads(out)["tables"]["overlap"]["rows"]] == [-1]


def test_a_file_name_that_is_not_utf8(tmp_path, said):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json"))
    written(path, document(events()))
    code, out, _ = said("analyze", path, "--format", "json")
    assert code == 0
    assert json.loads(out)["inputs"] == ["\\xff.json"]
    for more in (("--format", "html"), ("--format", "csv", "--only", "overlap"), ("--format", "text")):
        assert said("analyze", path, *more)[0] == 0


@pytest.mark.parametrize("path", ["", "~no-such-user/x.json"])
def test_paths_that_name_nothing(said, path):
    code, out, err = said("analyze", path)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "internal error" not in err


@pytest.mark.parametrize("command", [("analyze", "--format", "json", "-o"), ("report", "-o"), ("export", "--perfetto"), ("doctor", "-o")])
def test_an_input_is_never_overwritten(tmp_path, said, command):
    path = written(tmp_path / "t.json", document(events()))
    before = path.read_bytes()
    code, _, err = said(command[0], path, *command[1:], f"../{tmp_path.name}/t.json")
    assert code == 2
    assert "is an input" in err
    assert path.read_bytes() == before


@pytest.mark.parametrize("option", ["--rules", "--groups"])
@pytest.mark.parametrize("command", ["analyze", "doctor"])
def test_a_settings_file_that_is_a_pipe_is_not_waited_for(tmp_path, said, option, command):
    if (command, option) == ("doctor", "--groups"):
        pytest.skip("doctor has no --groups")
    os.mkfifo(tmp_path / "pipe")
    code, _, err = said(command, written(tmp_path / "t.json", document(events())), option, tmp_path / "pipe")
    assert code == 2
    assert "no such file" in err


def test_memory_without_end_is_refused(tmp_path, said):
    assert said("analyze", written(tmp_path / "t.json", document(events())), "--memory", "inf")[0] == 2


def test_kernel_patterns_may_have_groups(tmp_path, said):
    code, out, err = said("slowdown", written(tmp_path / "t.json", document(events())), "--kernel", "(ge)(m+)")
    assert (code, err) == (0, "")
    assert "gemm" in out


def test_export_of_a_rank_that_is_not_there_writes_nothing(tmp_path, said):
    code, _, err = said("export", written(tmp_path / "t.json", document(events())), "--perfetto", tmp_path / "out.json", "--ranks", "5")
    assert code == 2
    assert "no such rank here; there are 0" in err
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_streams_that_the_shell_closed(tmp_path, closed):
    path = written(tmp_path / "t.json", document(events()))
    done = subprocess.run(f"{sys.executable} -m c3prof.cli analyze {path} {closed}", shell=True, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"error" not in done.stdout + done.stderr


def run_folder(tmp_path):
    for rank in (0, 1):
        calls = [call(i, 10 * i + 2 + rank, 10 * i + 6, step=i) for i in range(4)]
        rank_folder(tmp_path / "run", rank, [step(i, 10 * i, 10 * i + 9) for i in range(4)], calls)
    return tmp_path / "run"


@pytest.mark.parametrize("field", ["rank", "world_size", "groups", "files", "notes", "started_ns", "status"])
@pytest.mark.parametrize("value", ["x", None, [5], 10**40], ids=str)
def test_a_manifest_with_a_value_of_the_wrong_type_is_a_broken_one(tmp_path, said, field, value):
    folder = run_folder(tmp_path)
    path = folder / "ranks" / "rank00000" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    code, out, err = said("ranks", folder, "--format", "json")
    assert (code, err) == (0, "")
    if (field, value) != ("status", "x"):
        assert "bad-manifest" in {warning["code"] for warning in json.loads(out)["warnings"]}


def test_json_nested_without_end_is_damage(tmp_path, said):
    folder = run_folder(tmp_path)
    for name in ("manifest.json", "comm.jsonl"):
        (folder / "ranks" / "rank00000" / name).write_text("[" * 100_000)
    code, out, err = said("ranks", folder, "--format", "json")
    assert (code, err) == (0, "")
    assert {"bad-manifest", "bad-line"} <= {warning["code"] for warning in json.loads(out)["warnings"]}


@pytest.mark.parametrize("key", ["call_ns", "end_ns", "seq", "step"])
def test_a_record_with_a_number_that_no_column_holds_is_left_out(tmp_path, said, key):
    folder = run_folder(tmp_path)
    path = folder / "ranks" / "rank00000" / "comm.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text(json.dumps({**json.loads(first), key: 10**30}) + "\n" + "".join(others))
    code, out, err = said("ranks", folder, "--format", "json")
    assert (code, err) == (0, "")
    assert "1 of 4 lines cannot be read, the first at byte 0; the others are used" in out


def test_a_counter_that_no_float_holds_is_left_out(tmp_path, said):
    counter = {"ph": "C", "name": "power", "pid": 0, "ts": 1, "args": {"a": 10**400, "b": 2}}
    assert said("analyze", written(tmp_path / "t.json", document([*events(), counter])))[::2] == (0, "")


def test_a_user_without_a_home(tmp_path, said, monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("C3PROF_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert said("analyze", written(tmp_path / "t.json", document(events())))[::2] == (0, "")

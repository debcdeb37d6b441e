"""The commands dashboard, report and export: what they write, and what they refuse before anything is read."""

import gzip
import json

import pytest

from c3prof.cli import exit_code
from tests.kineto_files import document, kernel, nccl, written


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.setenv("C3PROF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return str(written(tmp_path / "t.json", document([kernel("gemm", 0, 100), nccl("allreduce", 50, 200), kernel("gemm", 300, 400)])))


def test_report_writes_one_page(trace, tmp_path):
    assert exit_code(["report", trace, "-q"]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert exit_code(["analyze", trace, "--format", "html", "-o", str(tmp_path / "same.html"), "-q"]) == 0
    assert (tmp_path / "same.html").read_text(encoding="utf-8") == page


def test_export_writes_what_perfetto_reads(trace, tmp_path, capsys):
    assert exit_code(["export", trace, "--perfetto", "out.json.gz"]) == 0
    assert "ui.perfetto.dev" in capsys.readouterr().out
    events = json.loads(gzip.decompress((tmp_path / "out.json.gz").read_bytes()))["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 3
    assert exit_code(["export", trace, "--perfetto", "part.json.gz", "--window", "0.25-1", "-q"]) == 0
    events = json.loads(gzip.decompress((tmp_path / "part.json.gz").read_bytes()))["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == ["gemm"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export"], "--perfetto"),
        (["export", "--perfetto", "nowhere/out.json.gz"], "no folder nowhere"),
        (["export", "--perfetto", "o", "--window", "5-1"], "--window 5-1"),
        (["export", "--perfetto", "o", "--window", "x"], "--window x"),
        (["export", "--perfetto", "o", "--ranks", "one"], "--ranks one"),
        (["dashboard", "--host", "0.0.0.0"], "--token"),
        (["dashboard", "--host", "0.0.0.0", "--token", "short"], "at least 8"),
        (["dashboard", "--host", "203.0.113.9", "--token", "long-enough-token"], "cannot be bound"),
    ],
)
def test_wrong_usage_is_told_in_one_line(trace, capsys, arguments, said):
    assert exit_code([arguments[0], trace, *arguments[1:]]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert len(errors.strip().splitlines()) == 1


def test_without_a_path_there_is_nothing_to_show(capsys):
    for command in ("dashboard", "report"):
        assert exit_code([command]) == 2
    assert "PATH" in capsys.readouterr().err

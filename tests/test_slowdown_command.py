"""c3prof slowdown: the same numbers from text, JSON, CSV and the library; filters, baseline, explain."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from c3prof.cli import exit_code
from c3prof.readers import load
from tests.analysis.contended_runs import A, run_of, table
from tests.kineto_files import written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """gemm [100 alone, 150 under the all_reduce] and mul [80 alone, 88 under it], five times."""
    kernels = [("gemm", 100.0, A, None), ("gemm", 150.0, A, (0.0, 150.0)), ("mul", 80.0, A, None), ("mul", 88.0, A, (0.0, 88.0))] * 5
    return written(tmp_path / "run.json", run_of(kernels))


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert exit_code(["slowdown", *map(str, arguments), "--no-cache"]) == code
    output = capsys.readouterr()
    return output.out if code == 0 else output.err


def test_the_same_numbers_everywhere(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = table(load(path), "slowdown")
    report = json.loads(said(capsys, path, "--format", "json"))
    said(capsys, path, "--format", "csv", "--out", tmp_path / "csv")
    in_csv = list(csv.DictReader(io.StringIO((tmp_path / "csv" / "slowdown.csv").read_text(encoding="utf-8"))))
    in_json = report["tables"]["slowdown"]["rows"]
    text = said(capsys, path)
    assert len(library) == len(in_json) == len(in_csv)
    for row, from_json, from_csv in zip(library.to_dict("records"), in_json, in_csv, strict=True):
        for name in ("slowdown", "slowdown_low", "slowdown_high", "p_value", "lost_ns", "n_clean"):
            if np.isnan(row[name]):
                assert from_json[name] is None
                assert from_csv[name] == ""
            else:
                assert from_json[name] == row[name] == float(from_csv[name]), name
    assert library["slowdown"].max() == 1.5
    assert "1.50" in text
    assert "1.10" in text


def test_filters(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def kernels(*arguments: str) -> list[str]:
        rows = json.loads(said(capsys, path, "--format", "json", *arguments))["tables"]["slowdown"]["rows"]
        return [row["kernel"] for row in rows]

    assert kernels("--kernel", "^mul$") == ["mul"]
    assert kernels("--co-runner", "comm:all_reduce") == ["gemm", "mul"]
    assert kernels("--co-runner", "comm:all_gather") == []
    assert kernels("--min-lost", "5%") == ["gemm"]  # 250 of 2,090 µs of compute
    assert kernels("--min-lost", "100us") == ["gemm"]
    assert "gemm" not in kernels("--min-lost", "1ms")


def test_explain(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signature = table(load(path), "slowdown").set_index("kernel").loc["gemm", "signature"]
    rows = json.loads(said(capsys, path, "--explain", signature, "--format", "json"))["tables"]["samples"]["rows"]
    assert [(row["use"], row["co_runner"], row["duration_ns"], row["shared_ns"]) for row in rows] == [
        ("clean", None, 100_000, 0), ("overlapped", "comm:all_reduce", 150_000, 150_000),
    ] * 5  # fmt: skip


def test_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Never clean here; alone in a second trace: 1.5 by the baseline."""
    here = written(tmp_path / "run.json", run_of([("gemm", 150.0, A, (0.0, 150.0))] * 6))
    there = written(tmp_path / "alone.json", run_of([("gemm", 100.0, A, None)] * 6))
    rows = json.loads(said(capsys, here, "--baseline", there, "--format", "json"))["tables"]["slowdown"]["rows"]
    row = next(row for row in rows if row["kernel"] == "gemm")
    assert (row["slowdown"], row["evidence"], row["n_clean"], row["lost_ns"]) == (1.5, "baseline", 6, 300_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kernel", "("), "--kernel (: not a regular expression"),
        (("--min-lost", "much"), "--min-lost much: expected a share like 1% or a time like 2ms"),
        (("--explain", "ffffffff"), "--explain ffffffff: no such signature"),
    ],
)
def test_wrong_usage(path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert message in said(capsys, path, *arguments, code=2)

"""c3prof demo: trains, records, analyzes; and its run folder gives the same numbers again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collectors.ranks import manifest

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("torch", reason="the demo trains with torch")


def _c3prof(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "c3prof.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True, check=False, timeout=200)


def test_the_demo_and_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    shown = _c3prof("demo", "--dir", str(folder), "--steps", "29")
    assert shown.returncode == 0, shown.stderr
    assert "hidden behind compute" in shown.stdout
    assert f"c3prof analyze {folder}" in shown.stdout
    for rank in (0, 1):
        record = manifest(folder, rank)
        assert (record["status"], record["steps"], record["errors"]) == ("complete", 29, [])
        assert [file["kind"] for file in record["files"]].count("kineto") == 2
    again = _c3prof("analyze", str(folder))
    assert again.returncode == 0
    assert shown.stdout.startswith(again.stdout.rstrip()[:2000])
    first, second = (_c3prof("analyze", str(folder), "--format", "json").stdout for _ in range(2))
    assert first == second


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    refused = _c3prof("demo", "--dir", str(tmp_path))
    assert refused.returncode == 2
    assert "is not from a demo" in refused.stderr
    assert (tmp_path / "precious").exists()

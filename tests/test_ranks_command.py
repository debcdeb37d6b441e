"""c3prof ranks: the page, the tables, and the groups file."""

import json
from pathlib import Path

import pytest

from c3prof.cli import exit_code
from c3prof.renderers.rank_views import RANK_TABLES
from c3prof.sample_traces.rank_files import write_rank_files
from c3prof.sample_traces.ranks import Job


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("run")
    write_rank_files(Job(ranks=4, steps=12, straggler=(2, 1_000_000), ranks_per_host=2), made, 700)
    return made


def test_page_names_the_straggler_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["ranks", "--no-cache", str(folder)]) == 0
    page = capsys.readouterr().out
    assert page.splitlines()[0].startswith("Rank 2 is last in")
    assert "compute-late" in page
    for title in ("Ranks that others wait for", "Communication by kind and group", "Latency and bandwidth", "Clocks"):
        assert title in page


def test_json_holds_the_tables_about_ranks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["ranks", "--no-cache", "--format", "json", str(folder)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["tables"]) == set(RANK_TABLES)


def test_dimension_from_a_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = tmp_path / "groups.toml"
    said.write_text('mesh_dp = "cp"\n', encoding="utf-8")
    assert exit_code(["analyze", "--no-cache", "--only", "process_groups", "--format", "csv", "--groups", str(said), str(folder)]) == 0
    assert ",cp,file," in capsys.readouterr().out


def test_wrong_dimension_is_said(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = tmp_path / "groups.toml"
    said.write_text('mesh_dp = "data"\n', encoding="utf-8")
    assert exit_code(["ranks", "--no-cache", "--groups", str(said), str(folder)]) == 2
    assert "mesh_dp = 'data'" in capsys.readouterr().err


def test_one_rank_alone_says_what_it_cannot_tell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["ranks", "--no-cache", str(folder / "rank0.json.gz")]) == 0
    page = capsys.readouterr().out
    assert "nobody's waiting can be told" in page
    assert "lower bounds" in page

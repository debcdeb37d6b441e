"""Flags over C3PROF_* over c3prof.toml over defaults."""

import pytest

from c3prof.config import OPTIONS, config
from c3prof.errors import WrongSettings


def test_defaults_when_nothing_is_given(tmp_path):
    found = config({}, {}, tmp_path)
    assert {name: found[name] for name in found} == {name: option.default for name, option in OPTIONS.items()}
    assert {setting.source for setting in found.settings.values()} == {"default"}


def test_a_flag_beats_a_variable_beats_the_file(tmp_path):
    (tmp_path / "c3prof.toml").write_text('top = 1\nby = "step"\nformat = "csv"\n')
    found = config({"top": 3, "by": None}, {"C3PROF_TOP": "2", "C3PROF_BY": "stream"}, tmp_path)
    assert (found["top"], found.settings["top"].source) == (3, "--top")
    assert (found["by"], found.settings["by"].source) == ("stream", "C3PROF_BY")
    assert (found["format"], found.settings["format"].source) == ("csv", str(tmp_path / "c3prof.toml"))


def test_the_nearest_file_above_counts(tmp_path):
    (tmp_path / "c3prof.toml").write_text("top = 1\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert config({}, {}, inner)["top"] == 1
    (tmp_path / "a" / "c3prof.toml").write_text("top = 2\n")
    assert config({}, {}, inner)["top"] == 2


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("steps", "3-7", (3, 7)),
        ("steps", "4", (4, 4)),
        ("only", "overlap, kernels", ("overlap", "kernels")),
        ("strict", "yes", True),
        ("strict", "0", False),
        ("cache_gb", "0.5", 0.5),
    ],
)
def test_text_is_read(name, text, value, tmp_path):
    assert config({}, {f"C3PROF_{name.upper()}": text}, tmp_path)[name] == value


@pytest.mark.parametrize(
    ("name", "text"),
    [("steps", "7-3"), ("steps", "a-b"), ("top", "0"), ("top", "many"), ("format", "xml"), ("strict", "maybe"), ("cache_gb", "-1")],
)
def test_what_cannot_be_used_is_named(name, text, tmp_path):
    with pytest.raises(WrongSettings, match=f"C3PROF_{name.upper()}.*{text}.*expected"):
        config({}, {f"C3PROF_{name.upper()}": text}, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"), [("tops = 1", "unknown setting tops"), ("top = = 1", "not a TOML file"), ("top = true", "expected a whole")]
)
def test_a_wrong_file_is_named(content, message, tmp_path):
    (tmp_path / "c3prof.toml").write_text(content)
    with pytest.raises(WrongSettings, match=message) as error:
        config({}, {}, tmp_path)
    assert str(tmp_path / "c3prof.toml") in str(error.value)


def test_lines_say_where_each_value_comes_from(tmp_path):
    lines = config({"only": ["overlap,idle"], "steps": "3-7"}, {}, tmp_path).lines()
    assert next(line for line in lines if line.startswith("only ")).split() == ["only", "overlap,idle", "--only"]
    assert next(line for line in lines if line.startswith("steps ")).split() == ["steps", "3-7", "--steps"]

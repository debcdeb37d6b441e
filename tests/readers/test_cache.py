"""The cache of parsed traces: the same Trace again, or none."""

import os

import numpy as np
import pandas as pd
import pytest

from c3prof import pipeline
from c3prof.errors import DataWarning
from c3prof.readers import cache as cache_module
from c3prof.readers.cache import Cache, default_folder, key
from c3prof.renderers import json
from c3prof.trace import SCHEMAS, Trace
from tests.kineto_files import document, kernel, launched, nccl, written


def made_up(schema, rows):
    """A frame with every dtype at its awkward values: missing categories, None, not ASCII."""
    values = {
        "category": lambda: pd.Categorical.from_codes(np.arange(rows) % 3 - 1, ["é", "b"]),
        "object": lambda: [None if i % 2 else f"x{i}" for i in range(rows)],
        "bool": lambda: np.arange(rows) % 2 == 0,
        "float64": lambda: np.where(np.arange(rows) % 2, np.nan, 0.1),
    }
    return schema.frame({column.name: values.get(column.dtype, lambda: np.arange(rows) - 1)() for column in schema.columns})


FULL = Trace(
    **{name: made_up(schema, 5) for name, schema in SCHEMAS.items()},
    devices={(0, 1): {"numSms": 132, "name": "H200", "memory": 2**40}},
    warnings=(DataWarning("code", "text", 3, "a.json", False),),
    coverage={0: {"events": 7}, -1: {"events": 0}},
)


def same(one, other):
    for name in SCHEMAS:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))
    return (one.devices, tuple(one.warnings), one.coverage) == (other.devices, tuple(other.warnings), other.coverage)


@pytest.mark.parametrize("trace", [FULL, Trace()], ids=["full", "empty"])
def test_what_is_kept_comes_back_equal(trace, tmp_path):
    cache = Cache(tmp_path / "new" / "cache")
    assert cache.trace("k") is None
    cache.keep("k", trace)
    assert same(cache.trace("k"), trace)
    assert [entry.name for entry in cache.folder.iterdir()] == ["k"]


@pytest.mark.parametrize("damage", ["cut", "gone", "not-json", "not-parquet"])
def test_a_damaged_entry_is_none_and_dropped_and_made_again(damage, tmp_path):
    cache = Cache(tmp_path)
    cache.keep("k", FULL)
    frame, meta = tmp_path / "k" / "activities.parquet", tmp_path / "k" / "trace.json"
    {
        "cut": lambda: frame.write_bytes(frame.read_bytes()[:-20]),
        "gone": lambda: meta.write_text("{}"),
        "not-json": lambda: meta.write_text("{"),
        "not-parquet": lambda: frame.write_bytes(b"PAR1"),
    }[damage]()
    assert cache.trace("k") is None
    assert not (tmp_path / "k").exists()
    cache.keep("k", FULL)
    assert same(cache.trace("k"), FULL)


def test_the_oldest_goes_when_it_is_full(tmp_path):
    cache = Cache(tmp_path)
    cache.keep("size", FULL)
    one = sum(file.stat().st_size for file in (tmp_path / "size").iterdir())
    cache = Cache(tmp_path / "small", limit_bytes=2.5 * one)
    for age, name in enumerate(["a", "b"]):
        cache.keep(name, FULL)
        os.utime(cache.folder / name, (age, age))
    assert cache.trace("a") is not None  # used, so it is the younger one now
    cache.keep("c", FULL)
    assert sorted(entry.name for entry in cache.folder.iterdir()) == ["a", "c"]


def test_what_is_larger_than_the_cache_is_not_kept(tmp_path):
    cache = Cache(tmp_path, limit_bytes=100)
    cache.keep("k", FULL)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_no_cache(tmp_path):
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    cache.keep("k", FULL)
    assert cache.trace("k") is None


def test_the_key_depends_on_all_that_the_trace_depends_on(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "SMALLEST", 1)
    path, rules = tmp_path / "a.json", tmp_path / "r.toml"
    path.write_text("one")
    rules.write_text("x = 1")
    keys = [key(str(path), "a.json"), key(str(path), "run/a.json"), key(str(path), "a.json", str(rules))]
    rules.write_text("x = 2")
    keys.append(key(str(path), "a.json", str(rules)))
    os.utime(path, (1, 1))
    keys.append(key(str(path), "a.json"))
    path.write_text("three")
    os.utime(path, (1, 1))
    keys.append(key(str(path), "a.json"))
    monkeypatch.setattr(cache_module, "reader_version", lambda: "another")
    keys.append(key(str(path), "a.json"))
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert key(str(path), "a.json") == keys[-1]


def test_no_key_for_what_is_small_or_far_or_not_there(tmp_path):
    path = tmp_path / "small.json"
    path.write_text("{}")
    assert [key(str(path), ""), key("memory://a.json", ""), key(str(tmp_path / "none"), "")] == [None, None, None]


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("C3PROF_CACHE_DIR", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("C3PROF_CACHE_DIR")
    assert default_folder().name == "c3prof"


# The whole way: one file, read once; the second command gets it from the cache, the report is the same to the byte.
def test_a_second_report_does_not_read_the_file_again(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "SMALLEST", 1)
    path = written(tmp_path / "t.json", document([*launched(kernel("gemm", 0, 10), 0), nccl("allreduce", 5, 20)], rank=None))
    asked = {"cache_dir": str(tmp_path / "cache")}
    first = json.text(pipeline.report([str(path)], asked))
    monkeypatch.setattr(pipeline, "loaded", lambda *_, **__: pytest.fail("read again"))
    assert json.text(pipeline.report([str(path)], asked)) == first
    monkeypatch.undo()
    assert json.text(pipeline.report([str(path)], {"cache": False})) == first
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_rank_that_no_file_names_keeps_its_own_number(tmp_path, monkeypatch):
    """Two files without a rank: each comes from the cache under the number of its place."""
    monkeypatch.setattr(cache_module, "SMALLEST", 1)
    paths = [str(written(tmp_path / f"{name}.json", document([kernel("gemm", 0, 10)], rank=None))) for name in "ab"]
    asked = {"cache_dir": str(tmp_path / "cache")}
    pipeline.report(paths[1:], asked)  # b alone is rank -1 and is kept so
    found = pipeline.report(paths, asked)
    assert found["overlap"].frame["rank"].tolist() == [-2, -1]

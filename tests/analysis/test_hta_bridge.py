"""HolisticTraceAnalysis on our Trace gives what it gives on its own parse of the same file."""

import importlib.util
import json

import pandas as pd
import pytest

from c3prof import cli
from c3prof.analysis import hta_bridge
from c3prof.errors import MissingExtra, UnreadableInput, WrongSettings
from c3prof.readers import load
from c3prof.readers.kineto import with_rank

HERE = importlib.util.find_spec("hta") is not None
needs_hta = pytest.mark.skipif(not HERE, reason="HolisticTraceAnalysis is not installed")
OLD_PANDAS = int(pd.__version__.split(".")[0]) < 3

FILE = "a100_ddp_rank3of8.json.gz"


@pytest.mark.skipif(HERE, reason="HolisticTraceAnalysis is installed")
def test_without_it_the_cure_is_named(capsys):
    with pytest.raises(MissingExtra, match=r"pip install 'c3prof\[hta\]'"):
        hta_bridge.hta(iter(()), "idle")
    assert cli.exit_code(["hta", "x.json", "idle"]) == 1
    assert "pip install" in capsys.readouterr().err


def test_an_analysis_that_does_not_exist():
    with pytest.raises(WrongSettings, match="expected one of critical-path, idle, queue"):
        hta_bridge.hta(iter(()), "nothing")


@pytest.fixture(scope="module")
def its_own(shared_traces):
    """Its TraceAnalysis by its own parser, the last step kept."""
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415 - an optional package

    with hta_bridge._quiet():
        return TraceAnalysis({3: str(shared_traces / FILE)}, trace_dir=str(shared_traces), include_last_profiler_step=True)


@pytest.fixture(scope="module")
def ours(shared_traces):
    return load(shared_traces / FILE)


@needs_hta
def test_idle_time_is_its_own(its_own, ours):
    with hta_bridge._quiet():
        expected = its_own.get_idle_time_breakdown(ranks=[3], visualize=False)[0]
    table = hta_bridge.hta(iter([ours]), "idle")["hta_idle"]
    assert table.source == "hta"
    found = table.frame.set_index(["stream", "idle_category"])["idle_ns"]
    for row in expected.itertuples():
        assert found[row.stream, row.idle_category] == row.idle_time * 1000


@needs_hta
def test_queue_length_is_its_own(its_own, ours):
    with hta_bridge._quiet():
        expected = its_own.get_queue_length_summary(ranks=[3])["queue_length"]
    found = hta_bridge.hta(iter([ours]), "queue")["hta_queue"].frame.set_index(["rank", "stream"])
    assert found["changes"].to_dict() == expected["count"].astype(int).to_dict()
    # ties in whole µs may be ordered otherwise, which moves a length by one
    assert (found["mean"] - expected["mean"]).abs().max() < 0.05
    assert (found["max"] - expected["max"]).abs().max() <= 1


@needs_hta
@pytest.mark.skipif(OLD_PANDAS, reason="this pandas is old enough")
def test_a_pandas_that_is_too_new_is_named(ours):
    with pytest.raises(WrongSettings, match=r"needs pandas below 3, found .*pip install 'pandas<3'"):
        hta_bridge.hta(iter([ours]), "critical-path")


@needs_hta
@pytest.mark.skipif(not OLD_PANDAS, reason="its critical path needs pandas below 3")
def test_the_critical_path_is_its_own(its_own, ours):
    with hta_bridge._quiet():
        graph, done = its_own.critical_path_analysis(3, "ProfilerStep", 0)
        edges = graph.get_critical_path_breakdown()
    assert done
    expected = edges[edges["bound_by"] != ""].groupby("bound_by")["duration"].sum() * 1000
    found = hta_bridge.hta(iter([ours]), "critical-path")["hta_critical_path"].frame.groupby("bound_by", observed=True)["path_ns"].sum()
    assert found.to_dict() == expected.to_dict()


@needs_hta
def test_the_command_marks_its_tables(shared_traces, capsys):
    assert cli.exit_code(["hta", str(shared_traces / FILE), "idle", "--format", "json", "--no-cache"]) == 0
    table = json.loads(capsys.readouterr().out)["tables"]["hta_idle"]
    assert table["source"] == "hta"
    assert {row["idle_category"] for row in table["rows"]} == {"host_wait", "kernel_wait", "other"}
    assert cli.exit_code(["hta", str(shared_traces / FILE), "queue", "--no-cache"]) == 0
    assert "(by hta)" in capsys.readouterr().out


@needs_hta
def test_a_rank_that_it_fails_on_is_a_warning_and_all_of_them_an_error(ours, monkeypatch):
    def failing_on_the_first(_, rank):
        if rank == 3:
            raise AssertionError("its reason")
        return hta_bridge.IDLE.frame()

    monkeypatch.setitem(hta_bridge.ANALYSES, "idle", (hta_bridge.IDLE, failing_on_the_first))
    report = hta_bridge.hta(iter([ours, with_rank(ours, 4)]), "idle")
    assert [(w.code, w.path) for w in report.warnings] == [("hta-failed", FILE)]
    with pytest.raises(UnreadableInput, match="rank 3: AssertionError: its reason"):
        hta_bridge.hta(iter([ours]), "idle")

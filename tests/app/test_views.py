"""Each view as a plain function: on a small run, on a report without tables, and what it says when something is missing."""

import json

import pytest
from plotly.utils import PlotlyJSONEncoder

from c3prof.app import callbacks, layout, overview, ranks, slowdown
from c3prof.app.grid import grid
from c3prof.app.overview import longest_exposed
from c3prof.app.query import Query, link
from c3prof.app.run import Run, analyzed, loaded
from c3prof.renderers.figures_collectives import MEASURES
from c3prof.table import Column, Report, Schema, Table
from tests.app.conftest import HOSTILE

PATHS = ["/", "/timeline", "/slowdown", "/collectives", "/ranks", "/tables", "/compare", "/nothing"]


@pytest.fixture(scope="module")
def bare(trace):
    return Run(("bare",)).start(lambda *_: trace, lambda *_: Report({})).wait()


def as_json(component) -> str:
    return json.dumps(component, cls=PlotlyJSONEncoder)


@pytest.mark.parametrize("path", PATHS)
def test_every_view_of_a_run_and_of_a_bare_report(run, bare, path):
    for one, other in ((run, run), (bare, bare), (run, None)):
        assert not one.error
        assert len(as_json(callbacks.page(one, other, path, "?t0=1&sel=x~3&table=none"))) > 100


def test_what_is_missing_is_said(bare):
    page = as_json(callbacks.page(bare, None, "/", ""))
    assert "the table overlap was not computed" in page
    assert "a second run is needed" in as_json(callbacks.page(bare, None, "/compare", ""))


def test_while_loading_only_the_timeline_may_be_there(run):
    half = Run(("half",), timeline=run.timeline, trace=run.trace, doing="analyzing", share=0.5)
    assert "analyzing" in as_json(callbacks.page(half, None, "/", ""))
    assert '"id": "timeline"' in as_json(callbacks.page(half, None, "/timeline", ""))
    assert not callbacks.is_ready(run, half, "/compare")
    assert callbacks.is_ready(run, half, "/")


def test_the_current_view_is_marked():
    marked = [item.children for item in layout.navigation("/ranks", compare=True) if "current" in item.className]
    assert marked == ["Ranks"]


def test_the_longest_exposed_interval_is_where_the_finding_leads(timeline):
    #  exposed 50-70 µs of each step, on both ranks
    assert longest_exposed(timeline) == {"t0": 40_000, "t1": 80_000, "ranks": 0}


def test_the_overview_links_its_findings(run):
    assert "/timeline?t0=" in as_json(overview.page(run, Query({})))


def test_a_grid_has_help_numbers_and_text():
    columns = (
        Column("rank", "int32", "", "a rank"),
        Column("time_ns", "float64", "ns", "a time"),
        Column("kernel", "object", "", "a name"),
    )
    table = Table.of(Schema("t", "A table", columns), {"rank": [3, 4], "time_ns": [1.5e6, float("nan")], "kernel": [HOSTILE, None]})
    made = grid(table, "some-grid", first=("kernel",), selected=1)
    sheet = made.children[0]
    assert sheet.rowData == [
        {"rank": 3, "time_ns": 1.5e6, "kernel": HOSTILE, "_row": "0"},
        {"rank": 4, "time_ns": None, "kernel": None, "_row": "1"},
    ]
    assert [column["field"] for column in sheet.columnDefs] == ["kernel", "rank", "time_ns"]
    assert sheet.columnDefs[2]["headerTooltip"] == "a time [ns]"
    assert sheet.columnDefs[2]["headerName"] == "time [ms]"
    assert sheet.selectedRows[0]["rank"] == 4
    assert sheet.dangerously_allow_code is False


@pytest.mark.parametrize("measure", [*MEASURES, "nonsense"])
def test_a_measure_of_ranks_is_a_map_or_a_reason(run, measure):
    made = ranks.figure(run, measure)
    assert made["data"] or "Nothing to show" in made["layout"]["title"]["text"]


def test_the_samples_of_a_row_are_those_that_were_used(shared_traces):
    run = Run((str(shared_traces / "a100_ddp_rank3of8.json.gz"),)).start(loaded, analyzed).wait()
    frame = run.report["slowdown"].frame
    for row in frame[frame["slowdown"].notna() & (frame["evidence"] == "same-trace")].head(5).to_dict("records"):
        found = run.samples(row)
        assert int(found["clean"].sum()) == row["n_clean"]
        assert int((~found["clean"]).sum()) >= row["n_overlapped"]
        assert found.loc[found["clean"], "duration_ns"].median() == row["clean_ns"]
    assert "95 % interval" in as_json(slowdown.page(run, Query({})))


def test_an_address_and_its_query():
    assert link("/timeline", t0=5, ranks="0-3", none=None) == "/timeline?t0=5&ranks=0-3"
    assert Query.of("?a=1&b=%3Cx%3E&c").values == {"a": "1", "b": "<x>"}
    assert Query.of("?" + "a" * 20_000).values == {}

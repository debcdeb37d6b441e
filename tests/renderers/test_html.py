"""The report in one file: complete, small, the same bytes, and nothing in it runs or loads but what is ours."""

import re

import pytest

import c3prof
from c3prof.errors import DataWarning
from c3prof.renderers.html import ROWS, text
from c3prof.table import Column, Report, Schema, Table
from tests.kineto_files import document, kernel, nccl, written

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("html") / "t.json"
    events = [kernel(HOSTILE, 0, 10), nccl("allreduce", 5, 20), kernel("gemm", 30, 40)]
    return text(c3prof.analyze(c3prof.load(written(path, document(events)))))


def test_it_is_one_file_that_asks_for_nothing(page):
    outside = re.sub(r"<script>/\*\*\n\* plotly\.js.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(src|href)\s*=\s*["']?\s*(https?:)?//""", outside)
    assert "default-src 'none'" in page
    assert len(page) < 10_000_000


def test_hostile_names_are_text(page):
    assert HOSTILE not in page
    assert "<img src=x" not in page
    assert "&lt;/script&gt;" in page


def test_it_says_what_the_numbers_are(page):
    assert "exposed communication" in page
    assert 'name="viewport"' in page
    assert "@media print" in page


def test_the_same_report_gives_the_same_bytes():
    report = Report({}, inputs=("a",))
    assert text(report) == text(report)


def test_an_empty_report_is_a_page():
    made = text(Report({}, warnings=(DataWarning("cut", "<b>cut</b> at byte 5", path="x<y.json"),)))
    assert "&lt;b&gt;cut&lt;/b&gt; at byte 5" in made
    assert "x&lt;y.json" in made


def test_cells_and_long_tables():
    columns = (Column("time_ns", "float64", "ns", "a time"), Column("ok", "bool", "", "a flag"), Column("n", "object", "", "a number"))
    schema = Schema("long", "A long table", columns)
    data = {"time_ns": [1.5e6, float("nan")] * ROWS, "ok": [True, False] * ROWS, "n": [7, None] * ROWS}
    made = text(Report({"long": Table.of(schema, data)}))
    assert "<th title='a time'>time [ms]</th>" in made
    assert "<td class='number'>1.5</td><td>yes</td><td class='number'>7</td>" in made
    assert "<td class='number'>–</td><td>no</td><td class='number'>–</td>" in made
    assert f"First {ROWS} of {2 * ROWS} rows." in made

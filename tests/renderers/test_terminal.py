"""The page: what it says, and that it can be read anywhere."""

import io
import re

import pytest

from c3prof.errors import DataWarning
from c3prof.renderers import terminal
from c3prof.renderers.bars import GLYPHS, accounted, bar, stacked
from c3prof.renderers.cells import heading, text_of
from c3prof.table import Column, Schema
from tests.reports import BY_STEP, OVERLAP, exposed_rows, report, run_row, table

ROW = run_row(3, compute=281_000, comm=163_000, hidden=75_000, exposed=88_000, idle=76_000, copy=20_000)
LONG = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x128_nn_align4>(cutlass_80_tensorop_s1688gemm::Params)"


def shown(made, encoding="utf-8", **options):
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    terminal.write(made, file, **options)
    file.flush()
    return raw.getvalue().decode(encoding)


def full():
    warnings = [DataWarning("minor", "of no matter", bears_on_numbers=False), DataWarning("cut", "the file ends early", path="a.json")]
    return report(
        table(OVERLAP, [ROW]),
        table(BY_STEP, [{**ROW, "step": 4}, {**ROW, "step": "outside"}]),
        exposed_rows(("all_reduce", "dp", "dependency", 60_000), ("send_recv", None, "wait", 28_000)),
        warnings=warnings,
        coverage={"events": 123456, "events_dropped": 0},
    )


def test_headline_first_then_tables_then_coverage_and_warnings():
    text = shown(full())
    order = [
        "exposed communication, most of it all_reduce in group dp.",
        "Where the time goes",
        "Exposed communication:",
        "Coverage",
        "events 123,456",
        "Warnings (2)",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert "events dropped" not in text
    assert text.index("! a.json: the file ends early [cut]") < text.index("· of no matter [minor]")


def test_numbers_have_units_and_the_unknown_is_a_dash():
    text = shown(full())
    assert re.search(r"^  3 +0 .* 465 µs +281 µs +88\.0 µs +76\.0 µs +46\.0 %$", text, re.MULTILINE)
    assert re.search(r"send_recv +– +wait +28\.0 µs", text)


def test_by_adds_a_section():
    assert "By step" not in shown(full())
    text = shown(full(), by="step")
    assert re.search(r"^  3 +0 +outside", text[text.index("By step") :], re.MULTILINE)


@pytest.mark.parametrize("by", ["", "step"])
def test_it_fits_100_columns_with_long_names(by):
    made = full()
    made = report(
        made["overlap"],
        made["overlap_by_step"],
        exposed_rows((LONG, LONG, "dependency", 5), ("x", "y" * 200, "wait", 4)),
        warnings=[DataWarning("c", "w " * 200)],
    )
    assert max(map(len, shown(made, by=by).splitlines())) <= 100


def test_a_pipe_gets_no_escape_and_no_trailing_blank():
    text = shown(full())
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_colour_when_asked_for(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in shown(full(), colour=True)


def test_an_ascii_terminal_gets_ascii():
    text = shown(full(), encoding="ascii")
    assert "#" in text
    assert "281 us" in text


def test_same_report_same_bytes():
    assert shown(full()) == shown(full())


def test_a_report_of_nothing_says_so():
    assert shown(report(table(OVERLAP, []))) == "No device activity and no communication was recorded: there is nothing to account for.\n\n"


def test_markup_in_a_name_is_text():
    text = shown(report(table(OVERLAP, [ROW]), exposed_rows(("[red]x[/red]", "[/]", "wait", 5))))
    assert "[red]x[/red]" in text


def test_only_shows_the_table_in_full_and_says_what_has_no_room():
    made = report(table(OVERLAP, [ROW]), settings={"only": ("overlap",)})
    text = shown(made)
    assert "copy" in text
    assert "more columns" in text


def test_rows_beyond_the_limit_are_counted():
    made = report(table(BY_STEP, [{**ROW, "step": step} for step in range(5)]), settings={"only": ("overlap_by_step",)})
    text = shown(made, top=2)
    assert "3 more rows: --only overlap_by_step --top 5" in text


# span 100 = compute 50 (of which hidden 20) + exposed 30 + idle 20
def test_the_stacked_bar_shares_its_width_exactly():
    parts = accounted(run_row(compute=50, comm=50, hidden=20, exposed=30, idle=20))
    assert parts == {"compute": 30, "hidden": 20, "exposed": 30, "exposed_copy": 0, "idle": 20}
    assert stacked(parts, 10).plain == "███▓▓▚▚▚··"


@pytest.mark.parametrize("width", [5, 7, 30])
def test_what_is_there_at_all_gets_a_character(width):
    drawn = stacked({"compute": 1e9, "hidden": 1, "exposed": 1, "exposed_copy": 0, "idle": 1}, width).plain
    assert len(drawn) == width
    assert [drawn.count(GLYPHS[name]) for name in ("hidden", "exposed", "exposed_copy", "idle")] == [1, 1, 0, 1]


def test_bars():
    assert bar(8, 8, 4, "").plain == "████"
    assert bar(3, 8, 2, "").plain == "▊"
    assert bar(0, 8, 2, "").plain == ""
    assert stacked(dict.fromkeys(GLYPHS, 0.0), 5).plain == ""


@pytest.mark.parametrize(
    ("value", "unit", "dtype", "text"),
    [
        (1_234_567, "ns", "int64", "1.23 ms"),
        (None, "ns", "object", "–"),
        (float("nan"), "", "float64", "–"),
        (25_600_000, "B", "int64", "25.6 MB"),
        (0.382, "ratio", "float64", "38.2 %"),
        (12345, "", "int64", "12,345"),
        (1.2345, "", "float64", "1.23"),
        (93.75, "GB/s", "float64", "93.8"),
        (True, "", "bool", "yes"),
        ("text", "", "object", "text"),
    ],
)
def test_cells(value, unit, dtype, text):
    assert text_of(value, Column("x", dtype, unit, "")) == text


@pytest.mark.parametrize(
    ("name", "unit", "head"),
    [
        ("exposed_ns", "ns", "exposed"),
        ("busbw_gb_s", "GB/s", "busbw [GB/s]"),
        ("n_clean", "", "n clean"),
        ("size_bytes", "B", "size"),
        ("drift_ppm", "ppm", "drift ppm [ppm]"),
    ],
)
def test_headings(name, unit, head):
    assert heading(Column(name, "float64", unit, "")) == head


def test_schema_alone_is_enough_for_a_table_that_no_view_knows():
    new = Schema("brand_new", "A new table", (Column("n_things", "int64", "", "things"),))
    assert "A new table" in shown(report(table(new, [{"n_things": 1234}]), settings={"only": ("brand_new",)}))

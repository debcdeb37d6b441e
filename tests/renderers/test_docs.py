"""docs/columns.md is generated, and current."""

from pathlib import Path

from c3prof.analysis import schemas
from c3prof.renderers.docs import columns_page
from c3prof.table import Column, Schema


def test_a_section_a_table():
    page = columns_page([Schema("t", "A table", (Column("x_ns", "int64", "ns", "|P|: a time"),))])
    assert page.endswith(
        "## t\n\nA table.\n\n| column | dtype | unit | what |\n|---|---|---|---|\n| `x_ns` | int64 | ns | \\|P\\|: a time |\n"
    )


def test_the_page_is_current():
    page = (Path(__file__).parents[2] / "docs" / "columns.md").read_text(encoding="utf-8")
    now = columns_page(schemas())
    assert page == now, "run: c3prof schema --format markdown > docs/columns.md"

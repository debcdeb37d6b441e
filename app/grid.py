"""A Table as an AG Grid: numbers as numbers with their unit, help for each column from the schema, text as text."""

import re
from typing import Any

import dash_ag_grid as dag
from dash import html
from dash.development.base_component import Component

from c3prof.app.timeline import readable
from c3prof.table import Column, Table

ROWS = 5_000
_NARROW = ("rank", "device", "step", "stream")


def grid(table: Table, name: str, *, height: int = 420, selected: int | None = None, sort: str = "") -> Component:
    """The table with sorting, filters and column help; the first ROWS rows, and a remark when there are more.

    selected: place of the row that is selected at first; sort: column by which it is sorted, largest first.
    """
    frame = table.frame.head(ROWS)
    records = [{key: readable(value) for key, value in row.items()} | {"_row": str(place)} for place, row in enumerate(_records(frame))]
    settings: dict[str, Any] = {
        "rowSelection": {"mode": "singleRow", "checkboxes": False, "enableClickSelection": True},
        "tooltipShowDelay": 300,
        "ensureDomOrder": True,
        "enableCellTextSelection": True,
        "suppressFieldDotNotation": True,
    }
    made = dag.AgGrid(
        id=name,
        rowData=records,
        columnDefs=[_column(column, sort) for column in table.schema.columns],
        defaultColDef={"sortable": True, "filter": True, "resizable": True, "minWidth": 90},
        getRowId="params.data._row",
        dashGridOptions=settings,
        columnSize="autoSize",
        selectedRows=[records[selected]] if selected is not None and selected < len(records) else [],
        dangerously_allow_code=False,
        className="ag-theme-quartz",
        style={"height": f"{min(height, 110 + 42 * max(len(records), 1))}px", "width": "100%"},
    )
    more = f"The first {ROWS:,} of {len(table):,} rows; the CSV has all." if len(table) > ROWS else f"{len(table):,} rows."
    link = html.A("CSV", href=f"/api/csv?table={table.schema.name}", className="button", download=f"{table.schema.name}.csv")
    return html.Div([made, html.P([more, " ", link], className="muted under")], role="region", **{"aria-label": table.schema.title})


def _records(frame: Any) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.astype(object).to_dict("records")]


def _column(column: Column, sort: str) -> dict[str, Any]:
    numeric = column.dtype.startswith(("int", "float")) or column.unit != ""
    made: dict[str, Any] = {
        "field": column.name,
        "headerName": _heading(column),
        "headerTooltip": column.doc + (f" [{column.unit}]" if column.unit else ""),
        "tooltipField": column.name,
    }
    if numeric:
        made |= {"filter": "agNumberColumnFilter", "type": "rightAligned", "valueFormatter": {"function": _number_format(column)}}
    elif column.dtype == "bool":
        made |= {"cellDataType": "text", "valueFormatter": {"function": "params.value == true ? 'yes' : params.value == false ? 'no' : '–'"}}
    else:
        made |= {"cellDataType": "text", "maxWidth": 420, "valueFormatter": {"function": "params.value == null ? '–' : params.value"}}
    if column.name in _NARROW:
        made |= {"pinned": "left"} if column.name == "rank" else {}
    if column.name == sort:
        made["sort"] = "desc"
    return made


def _heading(column: Column) -> str:
    words = re.sub(r"_(ns|gb_s|bytes|ppm)$", "", column.name).replace("_", " ")
    unit = {"ns": "ms", "GB/s": "GB/s"}.get(column.unit, column.unit)
    return f"{words} [{unit}]" if unit else words


def _number_format(column: Column) -> str:
    """Times are shown in ms, ratios and factors with three digits; the value in the grid stays what it is."""
    if column.unit == "ns":
        return "params.value == null ? '–' : d3.format(',.4~g')(params.value / 1e6)"
    if column.dtype.startswith("float") and column.unit != "B":
        return "params.value == null ? '–' : d3.format(',.4~g')(params.value)"
    return "params.value == null ? '–' : d3.format(',')(params.value)"

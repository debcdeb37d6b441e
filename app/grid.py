"""A Table as an AG Grid: numbers as numbers with their unit, help for each column from the schema, text as text."""

from collections.abc import Sequence
from typing import Any

import dash_ag_grid as dag
import pandas as pd
from dash import html
from dash.development.base_component import Component

from c3prof.app.timeline import readable
from c3prof.renderers.cells import heading_in_ms
from c3prof.table import Column, Table

ROWS = 2_000
_A_DATE = 1e15
"""ns that are a time since 1970 and no duration: these are shown in full."""


def grid(table: Table, name: str, *, height: int = 420, selected: int | None = None, first: Sequence[str] = ()) -> Component:
    """The table with sorting, filters and column help; the first ROWS rows, and a remark when there are more.

    selected: place of the row that is selected at first; first: columns that stand before the others.
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
        columnDefs=[_column(column, frame) for column in sorted(table.schema.columns, key=lambda one: _place(one.name, first))],
        defaultColDef={"sortable": True, "filter": True, "resizable": True, "minWidth": 90},
        getRowId="params.data._row",
        dashGridOptions=settings,
        columnSize="autoSize",
        selectedRows=[records[selected]] if selected is not None and selected < len(records) else [],
        dangerously_allow_code=False,
        className="ag-theme-quartz",
        style={"height": f"{min(height, 70 + 42 * max(len(records), 2))}px", "width": "100%"},
    )
    more = (
        f"The first {ROWS:,} of {len(table):,} rows; the CSV has all."
        if len(table) > ROWS
        else f"{len(table):,} row{'s' if len(table) != 1 else ''}."
    )
    link = html.A("CSV", href=f"/api/csv?table={table.schema.name}", className="button", download=f"{table.schema.name}.csv")
    return html.Div([made, html.P([more, " ", link], className="muted under")], role="region", **{"aria-label": table.schema.title})


def _place(name: str, first: Sequence[str]) -> int:
    return first.index(name) if name in first else len(first)


def _records(frame: Any) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.astype(object).to_dict("records")]


def _column(column: Column, frame: pd.DataFrame) -> dict[str, Any]:
    numeric = column.dtype.startswith(("int", "float")) or column.unit != ""
    made: dict[str, Any] = {
        "field": column.name,
        "headerName": heading_in_ms(column),
        "headerTooltip": column.doc + (f" [{column.unit}]" if column.unit else ""),
        "tooltipField": column.name,
    }
    if numeric:
        made |= {"filter": "agNumberColumnFilter", "type": "rightAligned", "valueFormatter": {"function": _number_format(column, frame)}}
    elif column.dtype == "bool":
        made |= {
            "cellDataType": "text",
            "valueFormatter": {"function": "params.value == true ? 'yes' : params.value == false ? 'no' : '–'"},
        }
    else:
        made |= {"cellDataType": "text", "maxWidth": 420, "valueFormatter": {"function": "params.value == null ? '–' : params.value"}}
    if column.name == "rank":
        made["pinned"] = "left"
    return made


def _number_format(column: Column, frame: pd.DataFrame) -> str:
    """Times are shown in ms, ratios and factors with four digits; the value in the grid stays what it is."""
    known = "params.value == null ? '–' : "
    if column.unit == "ns":
        largest = pd.to_numeric(frame[column.name], errors="coerce").abs().max()
        return known + f"d3.format('{',.3f' if largest > _A_DATE else ',.4~g'}')(params.value / 1e6)"
    if column.dtype.startswith("float") and column.unit != "B":
        return known + "d3.format(',.4~g')(params.value)"
    return known + ("d3.format(',')(params.value)" if column.unit else "params.value")

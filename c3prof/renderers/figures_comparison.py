"""Figures of two runs side by side."""

import math

from c3prof.renderers.figures import Figure, figure, numbers, plain
from c3prof.renderers.palette import CLASSES
from c3prof.table import Table
from c3prof.units import NS_PER_MS


def change_bars(table: Table, top: int = 15) -> Figure | None:
    """Change of each row in ms with its interval: right is slower; open bars are not sure."""
    frame = table.frame[numbers(table.frame, "change_ns").notna()].head(top).iloc[::-1] if len(table) else table.frame
    if not len(frame):
        return None
    change, low, high = (numbers(frame, name) / NS_PER_MS for name in ("change_ns", "change_low", "change_high"))
    errors = [None if math.isnan(value) else value for value in (high - low) / 2]
    names = [plain(str(key).removesuffix("_ns"), 40) for key in frame[table.schema.columns[0].name]]
    shades = [CLASSES["exposed"] if value > 0 else CLASSES["compute"] for value in change]
    data = {
        "type": "bar",
        "orientation": "h",
        "x": change.round(4).tolist(),
        "y": list(range(len(frame))),
        "error_x": {"type": "data", "array": errors, "color": "#7A8694"},
        "marker": {"color": shades, "opacity": [0.95 if sure else 0.4 for sure in frame["changed"]]},
        "customdata": names,
        "hovertemplate": "%{customdata}: %{x:+.4~g} ms a step<extra></extra>",
    }
    ticks = {"tickvals": list(range(len(frame))), "ticktext": names, "showgrid": False}
    return figure([data], "change in ms a step (pale: not sure)", height=120 + 30 * len(frame), yaxis=ticks, showlegend=False)

"""Report → one HTML file that opens anywhere: no network, no other file; on a phone, on paper, light and dark."""

import html
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from c3prof.renderers.cells import counts, heading_in_ms
from c3prof.renderers.figures import Figure, exposed_by_cause, kernel_times, run_bar, step_bars
from c3prof.renderers.figures_collectives import busbw_by_size, rank_map, straggler_bars, time_by_kind
from c3prof.renderers.figures_slowdown import interference_map, scorecard_bars, slowdown_ranking, waves
from c3prof.renderers.findings import findings, headline_text, key_numbers, scorecard_numbers
from c3prof.renderers.values import columns
from c3prof.table import Column, Report, Table
from c3prof.units import NS_PER_MS, text_of_time

ROWS = 100
"""Rows of a table that the report shows."""

_TEXT = 200

_FIGURES: tuple[tuple[str, str, Callable[[Report], Figure | None]], ...] = (
    (
        "Where the step goes",
        "Parts of a step add up to its length. What is exposed is communication with no compute at the same instant.",
        step_bars,
    ),
    ("All ranks' time", "", run_bar),
    ("Concurrency scorecard", "Regions in which both run: one after the other, as measured, and at best.", scorecard_bars),
    ("Why communication is exposed", "", exposed_by_cause),
    ("Kernels that lose most to a co-runner", "1 is no slowdown; bars are 95 % intervals, each by itself, unadjusted.", slowdown_ranking),
    ("Interference", "Slowdown by class of kernel and co-runner.", interference_map),
    ("Footprint", "Waves of thread blocks alone and beside communication.", waves),
    ("Kernels that take most time", "", kernel_times),
    ("Bus bandwidth by message size", "", busbw_by_size),
    ("Waiting and transfer", "", time_by_kind),
    ("Exposed time by rank and step", "", rank_map),
    ("Who the others wait for", "", straggler_bars),
)


def text(report: Report, title: str = "") -> str:
    """The report as one HTML document: headline, numbers, findings, figures, tables (first ROWS rows), coverage, warnings.

    title: of the page; the inputs without it. Text of the trace is escaped; a policy in the page allows nothing from elsewhere.
    """
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - five megabytes that only this needs

    drawn = [(name, about, made) for name, about, draw in _FIGURES if (made := draw(report)) is not None]
    name = title or ", ".join(str(path) for path in report.inputs[:3]) or "c3prof report"
    body = "\n".join(part for part in _body(report, drawn, name) if part)
    figures = json.dumps([made for _, _, made in drawn], separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return _PAGE.format(title=html.escape(name), style=_STYLE, body=body, figures=figures, plotly=get_plotlyjs(), script=_SCRIPT)


def _body(report: Report, drawn: list[tuple[str, str, Figure]], name: str) -> Iterator[str]:
    sentence, more = headline_text(report)
    yield f'<header><p class="brand">c3prof · {html.escape(name)}</p><h1>{html.escape(sentence or "No headline: the report has no overlap table")}</h1>'
    yield "".join(f"<p>{html.escape(line)}</p>" for line in more) + "</header>"
    tiles = [*key_numbers(report), *scorecard_numbers(report)]
    yield '<div class="stats">' + "".join(_tile(*tile) for tile in tiles) + "</div>" if tiles else ""
    found = findings(report)
    if found:
        items = "".join(f"<li><b>{text_of_time(one.cost_ns)}</b> {html.escape(one.sentence)}</li>" for one in found)
        yield f"<section><h2>What costs most</h2><ol>{items}</ol></section>"
    for place, (title, about, figure) in enumerate(drawn):
        height = int(figure["layout"]["height"])
        note = f"<p class='muted'>{html.escape(about)}</p>" if about else ""
        yield f'<section><h2>{title}</h2>{note}<div class="figure" id="figure-{place}" style="height:{height}px" role="img" aria-label="{title}"></div></section>'
    yield from _remarks(report)
    yield "<h2>Tables</h2>"
    yield from (_table(table) for table in report.values() if len(table))
    empty = [table.schema.name for table in report.values() if not len(table)]
    yield f"<p class='muted'>Without rows: {html.escape(', '.join(empty))}.</p>" if empty else ""


def _tile(label: str, value: str, about: str) -> str:
    return f"<div class='stat'><b>{html.escape(value)}</b><span>{html.escape(label)}</span><small>{html.escape(about)}</small></div>"


def _remarks(report: Report) -> Iterator[str]:
    if report.warnings:
        items = "".join(f"<li>{html.escape((one.path + ': ' if one.path else '') + one.message)}</li>" for one in report.warnings[:50])
        yield f"<section class='warn'><h2>What these numbers rest on</h2><ul>{items}</ul></section>"
    if told := counts(report.coverage):
        rows = "".join(f"<tr><td>{html.escape(words)}</td><td class='number'>{number}</td></tr>" for words, number in told)
        yield f"<details><summary>Coverage</summary><div class='wide'><table>{rows}</table></div></details>"


def _table(table: Table) -> str:
    shown = [column for column in table.schema.columns if table.frame[column.name].notna().any()]
    head = "".join(f"<th title='{html.escape(column.doc, quote=True)}'>{html.escape(heading_in_ms(column))}</th>" for column in shown)
    values = columns(replace(table, frame=table.frame.head(ROWS)))
    cells = [[_cell(value, column) for value in values[column.name]] for column in shown]
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    more = f"<p class='muted'>First {ROWS} of {len(table):,} rows.</p>" if len(table) > ROWS else ""
    title = html.escape(f"{table.schema.title} ({len(table):,})")
    return f"<details><summary>{title}</summary><div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}</details>"


def _cell(value: Any, column: Column) -> str:
    if value is None:
        return "<td class='number'>–</td>"
    if isinstance(value, bool) or column.dtype == "bool":
        return f"<td>{'yes' if value else 'no'}</td>"
    if column.unit == "ns" and not isinstance(value, str):
        return f"<td class='number'>{float(value) / NS_PER_MS:,.4g}</td>"
    if isinstance(value, float):
        return f"<td class='number'>{value:,.4g}</td>"
    if isinstance(value, int):
        return f"<td class='number'>{value:,}</td>" if column.unit else f"<td class='number'>{value}</td>"
    words = str(value)
    return f"<td>{html.escape(words if len(words) <= _TEXT else words[: _TEXT - 1] + '…')}</td>"


_STYLE = """
:root{--ink:#17202b;--muted:#556172;--line:#d9dee5;--panel:#fff;--ground:#f4f6f9;--warn:#7a5200;--soft:#fff6df;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--ink:#e8edf3;--muted:#a3afbd;--line:#313b48;--panel:#18202a;--ground:#0f151c;--warn:#f1cf7d;--soft:#332a14}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1100px;padding:24px 18px 60px;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.7rem;line-height:1.25;margin:.2rem 0 .5rem}h2{font-size:1.1rem;margin:0 0 .3rem}p{margin:.2rem 0}.brand,.muted,small{color:var(--muted);font-size:.88rem}
section,.stat{background:var(--panel);border:1px solid var(--line);border-radius:12px;padding:14px 16px;margin:14px 0;overflow-wrap:anywhere}
.stats{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:16px 0}.stat{margin:0}.stat b{display:block;font-size:1.6rem;letter-spacing:-.02em}.stat span,.stat small{display:block}
.warn{background:var(--soft);color:var(--warn)}ol,ul{margin:.3rem 0;padding-left:1.3rem}li b{display:inline-block;min-width:5em}
details{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:8px 14px;margin:8px 0}summary{cursor:pointer;font-weight:600}
.wide{overflow-x:auto;margin-top:8px}table{border-collapse:collapse;font-size:.82rem}th,td{border-bottom:1px solid var(--line);padding:3px 12px 3px 0;text-align:left;vertical-align:top;max-width:380px;overflow-wrap:anywhere;min-width:3em}.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.js-plotly-plot .xtick text,.js-plotly-plot .ytick text,.js-plotly-plot .g-xtitle text,.js-plotly-plot .g-ytitle text,.js-plotly-plot .legendtext,.js-plotly-plot .colorbar text{fill:var(--ink)!important}.js-plotly-plot .gridlayer path{stroke:var(--line)!important}
@media(max-width:600px){body{padding:12px 10px 40px}h1{font-size:1.3rem}section{padding:12px 10px}}
@media print{:root{--ink:#000;--muted:#444;--line:#ccc;--panel:#fff;--ground:#fff;--soft:#fff;--warn:#000}body{max-width:none;padding:0}section,.stat{break-inside:avoid}.modebar{display:none!important}}
"""

_SCRIPT = """
const figures = JSON.parse(document.getElementById("figures").textContent);
const narrow = () => window.innerWidth < 600;
const cut = (text) => text.length > 17 ? text.slice(0, 16) + "…" : text;
const slim = (layout) => ({...layout, font: {...layout.font, size: 11}, margin: {...layout.margin, l: 40, r: 8},
  yaxis: layout.yaxis.ticktext ? {...layout.yaxis, ticktext: layout.yaxis.ticktext.map(cut)} : layout.yaxis});
figures.forEach((figure, i) => {
  const layout = narrow() ? slim(figure.layout) : figure.layout;
  Plotly.newPlot("figure-" + i, figure.data, layout, {responsive: true, displaylogo: false, displayModeBar: narrow() ? false : "hover"});
});
const resized = (width) => document.querySelectorAll(".figure").forEach((node) => Plotly.relayout(node, width ? {width, autosize: false} : {autosize: true, width: null}));
window.addEventListener("beforeprint", () => resized(680));
window.addEventListener("afterprint", () => resized(0));
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:">
<title>{title} – c3prof</title><style>{style}</style></head>
<body>
{body}
<noscript><p>The figures need JavaScript; the numbers and tables do not.</p></noscript>
<script type="application/json" id="figures">{figures}</script>
<script>{plotly}</script>
<script>{script}</script>
</body></html>
"""

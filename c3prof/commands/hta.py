"""c3prof hta: HolisticTraceAnalysis' own analyses on the same trace."""

from typing import Annotated

import typer

from c3prof.commands import options
from c3prof.config import config


def hta(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, a folder of them, a URL.")],
    analysis: Annotated[str, typer.Argument(metavar="ANALYSIS", help="critical-path, idle or queue.")] = "critical-path",
    *,
    format_: options.Format = None,
    out: options.Out = None,
    top: options.Top = None,
    quiet: options.Quiet = None,
    no_cache: options.NoCache = None,
) -> None:
    """Critical path, idle time or queue length by HolisticTraceAnalysis (extra hta)."""
    asked = config({"format": format_, "top": top, "quiet": quiet, "cache": False if no_cache else None})
    from c3prof.analysis.hta_bridge import hta as bridge
    from c3prof.commands.output import progress, put
    from c3prof.pipeline import traces

    with progress(quiet=asked["quiet"]) as tick:
        report = bridge(traces([path], asked, tick), analysis)
    put(report, asked, out)

"""c3prof report: the report as one HTML file that one can send."""

from typing import Annotated

import typer

from c3prof.commands import options
from c3prof.config import config

Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The HTML file.")]


def report(
    paths: options.Paths = None,
    *,
    out: Out = "report.html",
    steps: options.Steps = None,
    rules: options.Rules = None,
    top: options.Top = None,
    sample: options.Sample = None,
    baseline: options.Baseline = None,
    quiet: options.Quiet = None,
    no_cache: options.NoCache = None,
) -> None:
    """One HTML file with the figures and tables, which opens anywhere without a network."""
    from c3prof.commands.analyze import given, made
    from c3prof.commands.output import put

    flags = {"format": "html", "steps": steps, "rules": rules, "top": top, "baseline": baseline, "quiet": quiet}
    asked = config(flags | {"cache": False if no_cache else None})
    put(made(given(paths, sample, out), asked), asked, out)

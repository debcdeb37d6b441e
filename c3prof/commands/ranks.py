"""c3prof ranks: who is late, who waits, and how fast the wires are."""

from dataclasses import replace
from typing import Any

import typer

from c3prof.commands import options
from c3prof.commands.analyze import given, made
from c3prof.config import Setting, config


def ranks(
    paths: options.Paths = None,
    *,
    format_: options.Format = None,
    out: options.Out = None,
    steps: options.Steps = None,
    rules: options.Rules = None,
    groups: options.Groups = None,
    top: options.Top = None,
    sample: options.Sample = None,
    workers: options.Workers = None,
    memory: options.Memory = None,
    scheduler: options.Scheduler = None,
    cluster: options.Cluster = None,
    strict: options.Strict = None,
    quiet: options.Quiet = None,
    no_cache: options.NoCache = None,
) -> None:
    """All ranks together: stragglers, waiting, bandwidth, clocks."""
    from c3prof.renderers.rank_views import RANK_TABLES, RANK_VIEWS

    flags: dict[str, Any] = {
        "format": format_,
        "steps": steps,
        "rules": rules,
        "groups": groups,
        "top": top,
        "strict": strict,
        "quiet": quiet,
    }
    flags |= {"workers": workers, "memory_gb": memory, "scheduler": scheduler, "cluster": cluster, "cache": False if no_cache else None}
    asked = config(flags)
    asked = replace(asked, settings={**asked.settings, "only": Setting(RANK_TABLES, "c3prof ranks")})
    report = made(given(paths, sample, out), asked)
    from c3prof.commands.output import put

    put(report, asked, out, views=RANK_VIEWS)
    if asked["strict"] and any(warning.bears_on_numbers for warning in report.warnings):
        raise typer.Exit(3)

"""c3prof analyze: traces → report."""

from typing import Any

import typer

from c3prof.commands import options
from c3prof.config import Config, config
from c3prof.errors import WrongSettings


def analyze(
    paths: options.Paths = None,
    *,
    format_: options.Format = None,
    out: options.Out = None,
    by: options.By = None,
    steps: options.Steps = None,
    rules: options.Rules = None,
    only: options.Only = None,
    top: options.Top = None,
    sample: options.Sample = None,
    baseline: options.Baseline = None,
    workers: options.Workers = None,
    memory: options.Memory = None,
    scheduler: options.Scheduler = None,
    cluster: options.Cluster = None,
    groups: options.Groups = None,
    strict: options.Strict = None,
    quiet: options.Quiet = None,
    no_cache: options.NoCache = None,
    show_config: options.ShowConfig = False,
) -> None:
    """Where the step goes: compute, hidden and exposed communication, copies, idle."""
    flags: dict[str, Any] = {
        "format": format_,
        "by": by,
        "steps": steps,
        "rules": rules,
        "only": only or None,
        "top": top,
        "baseline": baseline,
    }
    flags |= {"workers": workers, "memory_gb": memory, "scheduler": scheduler, "cluster": cluster, "groups": groups}
    flags |= {"strict": strict, "quiet": quiet, "cache": False if no_cache else None}
    asked = config(flags)
    if show_config:
        print("\n".join(asked.lines()))
        return
    from c3prof.tasks import prepared

    inputs = given(paths, sample)
    if asked["workers"] != 1 and not asked["scheduler"] and not asked["cluster"]:
        prepared(inputs)
    from c3prof.commands.output import check_out, put

    check_out(asked, out)
    report = made(inputs, asked)
    put(report, asked, out)
    if asked["strict"] and any(warning.bears_on_numbers for warning in report.warnings):
        raise typer.Exit(3)


def given(paths: list[str] | None, sample: str | None) -> list[str]:
    """The paths to read. WrongSettings when there are none, or both paths and a sample."""
    if sample is not None:
        if paths:
            raise WrongSettings("give either PATH or --sample NAME, not both")
        from pathlib import Path

        from c3prof.sample_traces import path_of

        return sorted(str(path) for path in Path(path_of(sample)).glob("*.json.gz"))
    if not paths:
        raise WrongSettings("give at least one PATH, or --sample NAME; c3prof analyze --help lists what there is")
    return paths


def made(paths: list[str], asked: Config) -> Any:
    """The Report on the paths, with a progress bar where somebody looks."""
    from c3prof.commands.output import check, progress
    from c3prof.pipeline import report

    check(asked)
    with progress(quiet=asked["quiet"]) as tick:
        return report(paths, asked, progress=tick)

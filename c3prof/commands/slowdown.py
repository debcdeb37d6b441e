"""c3prof slowdown: the long list of what slows what, and the samples behind a number."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from c3prof.commands import options
from c3prof.config import Config, config
from c3prof.errors import WrongSettings

if TYPE_CHECKING:
    from c3prof.table import Report

TABLES = ("slowdown", "interference", "footprint", "c3", "sample_counts")

Kernel = Annotated[str | None, typer.Option("--kernel", metavar="REGEX", help="Only kernels whose name matches.")]
CoRunner = Annotated[str | None, typer.Option("--co-runner", metavar="REGEX", help="Only co-runners that match, like comm:all_reduce.")]
MinLost = Annotated[
    str | None,
    typer.Option(
        "--min-lost", metavar="SHARE", help="Only rows that lose this share of the rank's compute time, like 1%, or a time, like 2ms."
    ),
]
Explain = Annotated[str | None, typer.Option("--explain", metavar="SIGNATURE", help="The samples behind one signature, instead.")]


def slowdown(
    paths: options.Paths = None,
    *,
    kernel: Kernel = None,
    co_runner: CoRunner = None,
    baseline: options.Baseline = None,
    min_lost: MinLost = None,
    explain: Explain = None,
    format_: options.Format = None,
    out: options.Out = None,
    steps: options.Steps = None,
    rules: options.Rules = None,
    top: options.Top = None,
    sample: options.Sample = None,
    quiet: options.Quiet = None,
    no_cache: options.NoCache = None,
) -> None:
    """How much each kernel is slowed by what runs beside it; intervals are 95 % each, unadjusted."""
    from c3prof.commands.analyze import given, made
    from c3prof.commands.output import put

    flags = {"format": format_, "steps": steps, "rules": rules, "top": top, "baseline": baseline, "quiet": quiet}
    asked = config({**flags, "only": ",".join(TABLES), "cache": False if no_cache else None})
    wanted = _filters(kernel, co_runner)
    least = None if min_lost is None else _least(min_lost)
    sources = given(paths, sample, out)
    if explain is not None:
        put(_samples(sources, explain, asked), asked, out)
        return
    put(_filtered(made(sources, asked), wanted, least), asked, out)


def _filters(kernel: str | None, co_runner: str | None) -> dict[str, re.Pattern[str]]:
    found = {}
    for option, column, pattern in (("--kernel", "kernel", kernel), ("--co-runner", "co_runner", co_runner)):
        if pattern is not None:
            try:
                found[column] = re.compile(pattern)
            except re.error as error:
                raise WrongSettings(f"{option} {pattern}: not a regular expression ({error})") from None
    return found


def _least(text: str) -> Callable[[float], float]:
    """From a share (1%) or a time (2ms) to the ns that a row must lose, given the compute time of its rank in ns."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(%|ns|us|µs|ms|s)", text.strip())
    if match is None:
        raise WrongSettings(f"--min-lost {text}: expected a share like 1% or a time like 2ms")
    from c3prof.units import NS_PER_MS, NS_PER_S, NS_PER_US

    value = float(match[1])
    if match[2] == "%":
        return lambda compute_ns: value / 100 * compute_ns
    factor = {"ns": 1, "us": NS_PER_US, "µs": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S}[match[2]]
    return lambda _: value * factor


def _filtered(report: "Report", wanted: dict[str, re.Pattern[str]], least: Callable[[float], float] | None) -> "Report":
    """The report with only those rows of `slowdown`; the numbers, and what they are judged against, stay those of all rows."""
    table = report["slowdown"]
    frame = table.frame
    for column, pattern in wanted.items():
        frame = frame[[pattern.search(str(text)) is not None for text in frame[column]]]
    if least is not None:
        compute = report["sample_counts"].frame.groupby("rank")["compute_ns"].sum()
        frame = frame[frame["lost_ns"] >= frame["rank"].map(compute).map(least)]
    tables = {**report.tables, "slowdown": replace(table, frame=frame.reset_index(drop=True))}
    return replace(report, tables=tables, settings={**report.settings, "page": "slowdown"})


def _samples(sources: list[str], signature: str, asked: Config) -> Any:
    """The report with the table `samples` alone. WrongSettings when no rank has that signature."""
    import pandas as pd

    from c3prof.analysis.contention import SAMPLES, explained
    from c3prof.pipeline import settings_of, traces
    from c3prof.table import Report, Table

    rows = [explained(trace, signature, settings_of(asked)).frame for trace in traces(sources, asked)]
    found = pd.concat(rows, ignore_index=True)
    if not len(found):
        raise WrongSettings(f"--explain {signature}: no such signature; the column `signature` of the table slowdown lists them")
    return Report(tables={SAMPLES.name: Table.of(SAMPLES, found)}, inputs=tuple(sources))

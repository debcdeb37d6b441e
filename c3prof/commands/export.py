"""c3prof export: the trace with what was found, for another viewer."""

from pathlib import Path
from typing import Annotated

import typer

from c3prof.commands import options
from c3prof.config import config
from c3prof.errors import WrongSettings
from c3prof.units import NS_PER_MS

Perfetto = Annotated[str | None, typer.Option("--perfetto", metavar="OUT", help="File for ui.perfetto.dev, such as out.json.gz.")]
Window = Annotated[str | None, typer.Option("--window", metavar="A-B", help="Only from A to B ms after the first span.")]
Ranks = Annotated[str, typer.Option("--ranks", metavar="0-3,8", help="Only these ranks.")]


def export(
    paths: options.Paths = None,
    *,
    perfetto: Perfetto = None,
    window: Window = None,
    ranks: Ranks = "",
    sample: options.Sample = None,
    rules: options.Rules = None,
    quiet: options.Quiet = None,
    no_cache: options.NoCache = None,
) -> None:
    """Write a trace for Perfetto, with tracks of hidden and exposed communication and the slowdown of each kernel."""
    from c3prof.app.run import analyzed, loaded, on_one_clock
    from c3prof.commands.analyze import given
    from c3prof.commands.output import check_file, whole_file
    from c3prof.renderers.perfetto import chosen_ranks, first_ns, write_perfetto

    if perfetto is None:
        raise WrongSettings("say where to: --perfetto out.json.gz")
    check_file("--perfetto", perfetto, "a trace")
    span = _window(window)
    asked = config({"rules": rules, "quiet": quiet, "cache": False if no_cache else None})
    read = loaded(given(paths, sample, perfetto), lambda *_: None, asked)
    trace, report = on_one_clock(read), analyzed(read, lambda *_: None, asked)
    begin = first_ns(trace)
    try:
        kept = chosen_ranks(ranks, trace.rank_numbers)
    except ValueError:
        raise WrongSettings(f"--ranks {ranks}: expected numbers and ranges, like 0-3,8") from None
    if not kept:
        raise WrongSettings(f"--ranks {ranks}: no such rank here; there are {', '.join(map(str, trace.rank_numbers))}")
    with whole_file(Path(perfetto)) as file:
        count = write_perfetto(trace, report, file, window=(begin + span[0], begin + span[1]) if span else None, ranks=kept)
    if not asked["quiet"]:
        print(f"wrote {count:,} events to {perfetto}; open it in https://ui.perfetto.dev")


def _window(text: str | None) -> tuple[int, int] | None:
    """The window in ns. WrongSettings when it cannot be read."""
    if text is None:
        return None
    first, _, last = text.partition("-")
    try:
        window = round(float(first) * NS_PER_MS), round(float(last) * NS_PER_MS)
    except (ValueError, OverflowError):
        window = (0, 0)
    if window[0] >= window[1]:
        raise WrongSettings(f"--window {text}: expected A-B in ms with A before B, like 100-120.5")
    return window

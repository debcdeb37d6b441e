"""A run that the app shows: loading, loaded or broken. Pages ask it what is there."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any

from c3prof.analysis import Part, combine, rank_part
from c3prof.analysis.clock import aligned
from c3prof.analysis.joined import joined as joined_ranks
from c3prof.app.samples import Lookup, sample_lookup
from c3prof.app.timeline import Timeline
from c3prof.errors import C3profError
from c3prof.pipeline import settings_of
from c3prof.pipeline import trace as trace_of
from c3prof.readers import together
from c3prof.readers.sources import found
from c3prof.table import Report
from c3prof.trace import Trace

Progress = Callable[[str, float], None]
"""Told what is being done and which share of it is done, 0-1."""

Load = Callable[[Sequence[str], Progress], Trace]
Analyze = Callable[[Trace, Progress], Report]

_LOG = logging.getLogger(__name__)


@dataclass
class Run:
    """One run by the paths that the user gave.

    trace (on one clock), timeline and report appear one after another; error is for the user, once something cannot be read.
    """

    paths: tuple[str, ...]
    trace: Trace | None = None
    timeline: Timeline | None = None
    report: Report | None = None
    samples: Lookup | None = None
    error: str = ""
    doing: str = "waiting"
    share: float = 0.0
    began: float = field(default_factory=time.monotonic)
    _thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        """What the page calls the run: the last part of its path."""
        first = PurePath(self.paths[0]).name if self.paths else ""
        return f"{first} and {len(self.paths) - 1} more" if len(self.paths) > 1 else first

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return bool(self.error) or self.report is not None

    def start(self, load: Load, analyze: Analyze) -> "Run":
        """Begins to load in the background and returns at once."""
        self._thread = threading.Thread(target=self._fill, args=(load, analyze), name=f"load {self.name}", daemon=True)
        self._thread.start()
        return self

    def wait(self, seconds: float | None = None) -> "Run":
        """Returns when the run is loaded or broken, or after so many seconds."""
        if self._thread:
            self._thread.join(seconds)
        return self

    def _tell(self, doing: str, share: float) -> None:
        self.doing, self.share = doing, min(max(share, 0.0), 1.0)

    def _fill(self, load: Load, analyze: Analyze) -> None:
        try:
            self._tell("reading", 0.0)
            trace = load(self.paths, self._tell)
            self._tell("drawing the timeline", 0.0)
            shown = on_one_clock(trace)
            spans = max(sum(len(getattr(shown, name)) for name in ("activities", "launches", "ops", "annotations")), 1)
            timeline = Timeline.of(shown, lambda n: self._tell("drawing the timeline", n / spans))
            self.trace, self.samples, self.timeline = shown, sample_lookup(shown), timeline
            self._tell("analyzing", 0.0)
            self.report = analyze(trace, self._tell)
        except C3profError as error:
            self.error = str(error)
        except MemoryError:
            self.error = f"{self.name} does not fit into memory: give fewer ranks or files"
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a run, the app stays up and the page says so
            _LOG.debug("loading failed", exc_info=True)
            self.error = f"{self.name} could not be analyzed ({type(error).__name__}: {error}); please report this with `c3prof doctor`"


def loaded(paths: Sequence[str], progress: Progress, asked: Mapping[str, Any] | None = None) -> Trace:
    """The Trace of all that the paths lead to, from the cache where it is there; a file that cannot be read is a warning.

    asked: settings by name (c3prof.config). UnreadableInput when nothing usable is found.
    """
    inputs = found(list(paths))
    total, read = max(sum(source.size for source in inputs.sources), 1), [0]

    def tell(count: int) -> None:
        read[0] += count
        progress("reading", read[0] / total)

    return together(inputs, partial(trace_of, asked=asked or {}), tell)


def analyzed(trace: Trace, progress: Progress, asked: Mapping[str, Any] | None = None) -> Report:
    """The report of a Trace, rank by rank."""
    settings = settings_of(asked or {})
    ranks = max(len(trace.rank_numbers), 1)

    def parts() -> Iterator[Part]:
        for place, one in enumerate(trace.each_rank()):
            progress("analyzing", place / ranks)
            yield rank_part(one, settings)

    return combine(parts(), settings)


def on_one_clock(trace: Trace) -> Trace:
    """The Trace with the ranks' clocks aligned, where something ties them together."""
    if len(trace.rank_numbers) < 2 or not len(trace.collectives):
        return trace
    return aligned(trace, joined_ranks(trace.summary()).clocks)

"""A run that the app shows: loading, loaded or broken. Pages ask it what is there."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from c3prof.app.samples import Lookup, sample_lookup
from c3prof.app.timeline import Timeline
from c3prof.errors import C3profError
from c3prof.table import Report
from c3prof.trace import Trace

Progress = Callable[[str, float], None]
"""Told what is being done and which share of it is done, 0-1."""

Load = Callable[[Sequence[str], Progress], Trace]
Analyze = Callable[[Trace, Progress], tuple[Trace, Report]]
"""Gives the report and the Trace on one clock, which the timeline shows."""

_LOG = logging.getLogger(__name__)


@dataclass
class Run:
    """One run by the paths that the user gave.

    trace, timeline and report appear one after another; error is for the user, once something cannot be read.
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
            self._tell("analyzing", 0.0)
            aligned, report = analyze(trace, self._tell)
            self._tell("drawing the timeline", 0.0)
            spans = max(sum(len(getattr(aligned, name)) for name in ("activities", "launches", "ops", "annotations")), 1)
            self.timeline = Timeline.of(aligned, lambda n: self._tell("drawing the timeline", n / spans))
            self.samples = sample_lookup(aligned)
            self.trace, self.report = aligned, report
        except C3profError as error:
            self.error = str(error)
        except MemoryError:
            self.error = f"{self.name} does not fit into memory: give fewer ranks or files"
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a run, the app stays up and the page says so
            _LOG.debug("loading failed", exc_info=True)
            self.error = f"{self.name} could not be analyzed ({type(error).__name__}: {error}); please report this with `c3prof doctor`"


def loaded(paths: Sequence[str], progress: Progress) -> Trace:
    """The Trace of paths, read with the readers that fit."""
    from c3prof.readers import load  # noqa: PLC0415 - readers load pandas; an app that is given a loader does without
    from c3prof.readers.sources import found  # noqa: PLC0415 - as above

    total, read = max(sum(source.size for source in found(list(paths)).sources), 1), [0]

    def tell(count: int) -> None:
        read[0] += count
        progress("reading", read[0] / total)

    return load(list(paths), progress=tell)


def analyzed(trace: Trace, progress: Progress) -> tuple[Trace, Report]:
    """The Trace on one clock, where its ranks' clocks could be tied together, and its report."""
    from c3prof.analysis import analyze  # noqa: PLC0415 - as above
    from c3prof.analysis.clock import aligned  # noqa: PLC0415 - as above

    progress("analyzing", 0.0)
    report = analyze(trace)
    clocks = report.get("clocks")
    return (aligned(trace, clocks) if clocks is not None and len(clocks) else trace), report

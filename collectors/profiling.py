"""profile(): the context manager that a user puts around a training loop."""

import contextlib
import logging
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any

from c3prof.collectors.options import Options, overridden, switched_off
from c3prof.collectors.window import Window

if TYPE_CHECKING:
    from c3prof.collectors.session import Session

log = logging.getLogger("c3prof")

_active: "Session | None" = None


class profile(contextlib.ContextDecorator):  # noqa: N801  # reads as a verb where it is used: with c3prof.profile(...)
    """A recording of this rank's steps and communication into a run folder, around a training loop.

        with c3prof.profile("runs/a") as prof:
            for batch in loader:
                train(batch)
                prof.step()

    dir: the run folder, the same for all ranks. kineto: profiler windows, None for light mode without them.
    comms: record every c10d operation. calibrate: N >= 3 alternates N serialized and N concurrent steps.
    power: sample power and clocks where there is a driver. stall_s: seconds without a step after which a report is
    written, 0 for never. strict: let errors of the profiler out. ranks: which open windows, as "0-7,64"; all without.
    trigger: also open a window when the file TRIGGER appears in the folder. local_dir: write there and copy at the end.
    flush_s: seconds between writes; grows with the world size by itself. shapes: record operator shapes in windows.
    C3PROF_<NAME> in the environment overrides each of these; C3PROF=0 turns everything off.

    Also a decorator, and usable by hand with start() and stop(). WrongSettings is raised at once for settings that
    contradict each other; after that nothing is ever raised into training unless strict.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str] = "runs/c3prof",  # noqa: A002  # the word that users expect
        *,
        kineto: "Window | str | None" = "auto",
        comms: "bool | str" = "auto",
        calibrate: int | None = None,
        power: "bool | str" = "auto",
        stall_s: float = 120.0,
        strict: bool = False,
        ranks: str | None = None,
        trigger: bool = False,
        local_dir: str | os.PathLike[str] | None = None,
        flush_s: float | None = None,
        shapes: bool = True,
    ) -> None:
        self._session: Session | None = None
        self._off = switched_off()
        if not self._off:
            local = None if local_dir is None else os.fspath(local_dir)
            asked: dict[str, Any] = {
                "kineto": kineto,
                "comms": comms,
                "calibrate": calibrate,
                "power": power,
                "stall_s": stall_s,
                "strict": strict,
            }
            asked |= {"ranks": ranks, "trigger": trigger, "local_dir": local, "flush_s": flush_s, "shapes": shapes}
            self.options = overridden(Options(os.fspath(dir), **asked))

    def start(self) -> "profile":
        """Begins the recording; without a torch or a folder to write to it warns once and does nothing."""
        global _active  # noqa: PLW0603  # hooks are process-wide, so one recording at a time
        if self._off:
            return self
        try:
            _active = self._session = _started(self.options)
        except Exception as error:
            if self.options.strict:
                raise
            log.warning("c3prof records nothing: %s: %s (training goes on)", type(error).__name__, error)
        return self

    def stop(self, status: str = "complete") -> None:
        """Ends the recording and writes what is left."""
        global _active  # noqa: PLW0603  # as above
        session, self._session = self._session, None
        if session is None:
            return
        _active = None
        with session.faults.guard("end"):
            session.finish(status)

    def step(self) -> None:
        """Marks the end of a training step. Costs nothing when the recording is off."""
        if self._session is not None:
            with self._session.faults.guard("step"):
                self._session.step()

    def mark(self, text: str) -> None:
        """Labels the steps from the current one on, for example "eval"; an empty text ends the label."""
        if self._session is not None:
            self._session.steps.mark(text)

    def __enter__(self) -> "profile":  # noqa: PYI034  # typing.Self is there from Python 3.11 on
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        del error, trace
        self.stop("complete" if kind is None else "signal:SIGINT" if kind is KeyboardInterrupt else f"exception:{kind.__name__}")


def _started(options: Options) -> "Session":
    if _active is not None:
        raise RuntimeError("another c3prof.profile is active in this process")
    from c3prof.collectors.session import Session  # noqa: PLC0415  # loads what only a recording needs

    session = Session(options)
    try:
        session.start()
    except Exception:
        session.finish("failed")  # takes back what was installed until then
        raise
    return session


def _forget_in_child() -> None:
    global _active  # as above
    session, _active = _active, None
    if session is not None:
        session.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)

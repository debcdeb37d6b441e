"""When profiler windows open and which phase of calibration a step is in: pure functions of the step number.

Every rank computes the same answer from the same number, so that all switch together without talking.
"""

from dataclasses import dataclass

from c3prof.errors import WrongSettings
from c3prof.records import CONCURRENT, DISCARDED, SERIALIZED

FEWEST_CALIBRATION_STEPS = 3


@dataclass(frozen=True)
class Window:
    """Recurring profiler windows: after `wait` steps, `warmup` steps and then `active` recorded ones, `repeat` times.

    repeat = 0 means as long as the run lasts. Each window becomes one file. WrongSettings names a number out of range.
    """

    wait: int = 5
    warmup: int = 1
    active: int = 3
    repeat: int = 2

    def __post_init__(self) -> None:
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise WrongSettings(f"Window({name}={value!r}): expected a whole number of at least {least}")

    @property
    def period(self) -> int:
        return self.wait + self.warmup + self.active

    def place(self, step: int) -> tuple[int, str]:
        """The window's number and what happens at this step: wait, warmup, active, or over after the last window."""
        number, place = divmod(step, self.period)
        if self.repeat and number >= self.repeat:
            return self.repeat, "over"
        return number, "wait" if place < self.wait else "warmup" if place < self.wait + self.warmup else "active"


@dataclass(frozen=True)
class Calibration:
    """Alternating phases: one discarded step, `steps` serialized ones, `steps` concurrent ones, and so on."""

    steps: int

    def __post_init__(self) -> None:
        if not isinstance(self.steps, int) or self.steps < FEWEST_CALIBRATION_STEPS:
            raise WrongSettings(f"calibrate={self.steps!r}: expected a whole number of at least {FEWEST_CALIBRATION_STEPS}, or None")

    @property
    def period(self) -> int:
        return 2 * self.steps + 1

    def phase(self, step: int) -> str:
        """The phase of a step, the same on every rank."""
        place = step % self.period
        return DISCARDED if place == 0 else SERIALIZED if place <= self.steps else CONCURRENT

    def next_boundary(self, step: int) -> int:
        """The first step from here on that begins a period."""
        return -(-step // self.period) * self.period

    def window(self) -> Window:
        """The windows that fit: one period to warm up, then two that are recorded, a period of rest between them."""
        return Window(wait=self.period - 1, warmup=1, active=self.period, repeat=2)

    def fits(self, window: Window) -> None:
        """Raises WrongSettings with the numbers to use unless every window records exactly one whole period."""
        if window.active == self.period and (window.wait + window.warmup) % self.period == 0:
            return
        good = self.window()
        raise WrongSettings(
            f"calibrate={self.steps} needs windows that begin with a period of {self.period} steps "
            f"(1 discarded, {self.steps} serialized, {self.steps} concurrent): found {window}, "
            f"use Window(wait={good.wait}, warmup={good.warmup}, active={good.active}, repeat={window.repeat})"
        )


class Plan:
    """The windows of a rank: the recurring ones, and those that were asked for while it runs, which have numbers from EXTRA on."""

    EXTRA = 1_000

    def __init__(self, window: Window | None, calibration: Calibration | None = None) -> None:
        self._window, self._calibration = window, calibration
        shape = window or (calibration.window() if calibration else Window())
        self.warmup, self.active = shape.warmup, shape.active
        self._extra: list[int] = []

    def add(self, first_step: int) -> None:
        """One more window whose first recorded step is first_step."""
        self._extra.append(first_step)

    def boundary(self, step: int) -> int:
        """The first step from here on at which an extra window may begin: calibration needs whole periods."""
        return self._calibration.next_boundary(step) if self._calibration else step

    def place(self, step: int) -> tuple[int, str]:
        """The window's number and what happens at this step: wait, warmup, active or over."""
        for number, first in enumerate(self._extra, self.EXTRA):
            if first - self.warmup <= step < first + self.active:
                return number, "warmup" if step < first else "active"
        return self._window.place(step) if self._window else (0, "wait")


def ranks_of(text: str) -> frozenset[int]:
    """The ranks that a list like "0-7,64" names; WrongSettings if it is none."""
    ranks: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise WrongSettings(f"ranks={text!r}: expected numbers and ranges like 0-7,64; {part!r} is neither")
        ranks.update(range(int(first), int(last or first) + 1))
    return frozenset(ranks)

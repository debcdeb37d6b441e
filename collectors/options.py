"""What a user asked of profile(), after the environment had its say."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from c3prof.collectors.window import Calibration, Plan, Window, ranks_of
from c3prof.errors import WrongSettings

Auto = Literal["auto"]


@dataclass(frozen=True)
class Options:
    """The settings of one profile(); see its docstring for their meaning. WrongSettings where they contradict."""

    dir: str
    kineto: Window | Auto | None = "auto"
    comms: bool | Auto = "auto"
    calibrate: int | None = None
    power: bool | Auto = "auto"
    stall_s: float = 120.0
    strict: bool = False
    ranks: str | None = None
    trigger: bool = False
    local_dir: str | None = None
    flush_s: float | None = None
    shapes: bool = True

    def __post_init__(self) -> None:
        if self.ranks is not None:
            ranks_of(self.ranks)
        if self.calibration is not None:
            if not self.comms:
                raise WrongSettings("calibrate needs the communication hook: do not turn comms off")
            if isinstance(self.kineto, Window):
                self.calibration.fits(self.kineto)

    @property
    def calibration(self) -> Calibration | None:
        return None if self.calibrate is None else Calibration(self.calibrate)

    def plan(self, rank: int) -> Plan | None:
        """The windows of this rank, None when it never records any."""
        if (self.ranks is not None and rank not in ranks_of(self.ranks)) or (self.kineto is None and not self.trigger):
            return None
        window = self.kineto
        if window == "auto":
            window = self.calibration.window() if self.calibration else Window()
        return Plan(window, self.calibration)

    def leads(self, rank: int) -> bool:
        """Whether this is the lowest of the ranks that open windows."""
        return rank == (min(ranks_of(self.ranks)) if self.ranks is not None else 0)

    def flush_interval(self, world_size: int) -> float:
        """Seconds between writes: 1 up to 64 ranks, then longer, so that a shared file system sees a bounded rate."""
        return self.flush_s if self.flush_s is not None else min(30.0, max(1.0, world_size / 64))


def switched_off(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether C3PROF=0 (or off, false, no) turns everything off."""
    return environ.get("C3PROF", "").lower() in {"0", "off", "false", "no"}


def overridden(options: Options, environ: Mapping[str, str] = os.environ) -> Options:
    """The options with what C3PROF_<NAME> says instead; WrongSettings names a variable that cannot be used."""
    changes: dict[str, Any] = {}
    for name, parse in _PARSERS.items():
        variable = f"C3PROF_{name.upper()}"
        if (text := environ.get(variable)) is None:
            continue
        try:
            changes[name] = parse(text.strip())
        except (ValueError, TypeError, WrongSettings) as error:
            raise WrongSettings(f"environment variable {variable}={text!r} cannot be used: {error}") from error
    return replace(options, **changes) if changes else options


def _flag(text: str) -> bool:
    if (low := text.lower()) not in {"0", "1", "true", "false", "yes", "no", "on", "off"}:
        raise ValueError("expected 0 or 1")
    return low in {"1", "true", "yes", "on"}


def _flag_or_auto(text: str) -> bool | Auto:
    return "auto" if text.lower() == "auto" else _flag(text)


def _number_or_none(text: str) -> int | None:
    return None if text.lower() in {"", "none", "0", "off"} else int(text)


def _window(text: str) -> Window | Auto | None:
    """A window from "wait=5,warmup=1,active=3,repeat=2", "auto" or "off"."""
    if text.lower() in {"off", "none", "0"}:
        return None
    if text.lower() == "auto":
        return "auto"
    return Window(**{key.strip(): int(value) for key, _, value in (part.partition("=") for part in text.split(","))})


_PARSERS: dict[str, Callable[[str], Any]] = {
    "dir": str,
    "kineto": _window,
    "comms": _flag_or_auto,
    "calibrate": _number_or_none,
    "power": _flag_or_auto,
    "stall_s": float,
    "strict": _flag,
    "ranks": str,
    "trigger": _flag,
    "local_dir": str,
    "flush_s": float,
    "shapes": _flag,
}

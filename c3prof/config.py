"""What the user asked for: flags over C3PROF_* over c3prof.toml over defaults, and where each value came from.

Standard library only (and tomli before Python 3.11), and tomllib only when there is a file: the command line's start pays for it.
"""

import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c3prof.errors import WrongSettings

FILE = "c3prof.toml"
FORMATS = ("text", "json", "csv", "html")


@dataclass(frozen=True)
class Option:
    """One setting: its default, how its text is read, and a sentence."""

    name: str
    default: Any
    read: Callable[[Any], Any]
    doc: str


@dataclass(frozen=True)
class Setting:
    """A value and where it came from: flag, C3PROF_NAME, path of the c3prof.toml, or default."""

    value: Any
    source: str


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def _names(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else [part for item in value for part in _text(item).split(",")]
    return tuple(part.strip() for part in parts if part.strip())


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False, "": False}
    if str(value).lower() not in words:
        raise ValueError("expected true or false")
    return words[str(value).lower()]


def _count(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not str(value).lstrip("-").isdigit() or int(value) < least:
            raise ValueError(f"expected a whole number from {least} up")
        return int(value)

    return read


def _size_gb(value: Any) -> float:
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError("expected a size in GB")
    return number


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return str(value)

    return read


def _steps(value: Any) -> tuple[int, int]:
    first, _, last = str(value).partition("-")
    if not first.isdigit() or not (last or first).isdigit() or int(last or first) < int(first):
        raise ValueError("expected FIRST-LAST, like 3-7, or one step")
    return int(first), int(last or first)


OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        Option("format", "text", _one_of(*FORMATS), "text, json, csv or html"),
        Option("by", "", _text, "also show the overlap by step, stream, group or collective"),
        Option("steps", None, _steps, "first and last step to look at, like 3-7"),
        Option("rules", None, _text, "TOML file of rules: which kernels are communication, and kernel classes"),
        Option("only", (), _names, "names of the tables wanted"),
        Option("top", 20, _count(1), "rows that long tables keep"),
        Option("seed", 0, _count(0), "seed of the bootstrap"),
        Option("baseline", None, _text, "a second trace of the same program without overlap, for slowdown"),
        Option("strict", False, _flag, "exit 3 when a warning bears on a number"),
        Option("quiet", False, _flag, "no progress and no remarks on stderr"),
        Option("cache", True, _flag, "keep the parsed trace for the next command"),
        Option("cache_dir", None, _text, "where parsed traces are kept"),
        Option("workers", 0, _count(0), "processes that read inputs, 0: as many as CPUs, if there is enough to read"),
        Option("memory_gb", 0.0, _size_gb, "memory that they may use together, 0: 60 % of what is free"),
        Option("cluster", "", _one_of("", "local"), "local: read the inputs on a dask cluster of this machine"),
        Option("scheduler", "", _text, "address of a running dask scheduler that reads the inputs"),
        Option("groups", None, _text, "TOML file with the dimension of process groups: name or description = dp, tp, pp, ep or cp"),
        Option("cache_gb", 10.0, _size_gb, "size that the cache of parsed traces may have"),
    )
}


@dataclass(frozen=True)
class Config(Mapping[str, Any]):
    """The settings by name, each with its source."""

    settings: Mapping[str, Setting]

    def __getitem__(self, name: str) -> Any:
        return self.settings[name].value

    def __iter__(self) -> Any:
        return iter(self.settings)

    def __len__(self) -> int:
        return len(self.settings)

    def lines(self) -> list[str]:
        """One line a setting: name, value, where it came from."""
        width = max(map(len, self.settings))
        return [f"{name:<{width}}  {_shown(setting.value):<20}  {setting.source}" for name, setting in self.settings.items()]


def config(flags: Mapping[str, Any], environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Config:
    """The settings from flags (None: not given), the environment and the nearest c3prof.toml at or above folder.

    WrongSettings names the flag, variable or file with a value that cannot be used, or a key that does not exist.
    """
    environment = os.environ if environment is None else environment
    path, written = _file(folder or Path.cwd())
    found: dict[str, Setting] = {}
    for name, option in OPTIONS.items():
        variable = f"C3PROF_{name.upper()}"
        if flags.get(name) is not None:
            found[name] = _setting(option, flags[name], f"--{name.replace('_', '-')}")
        elif variable in environment:
            found[name] = _setting(option, environment[variable], variable)
        elif name in written:
            found[name] = _setting(option, written[name], str(path))
        else:
            found[name] = Setting(option.default, "default")
    return Config(found)


def _setting(option: Option, value: Any, source: str) -> Setting:
    try:
        return Setting(option.read(value), source)
    except (ValueError, TypeError) as error:
        raise WrongSettings(f"{source}: {value!r} cannot be used: {error}") from None


def _file(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    path = next((candidate / FILE for candidate in (folder, *folder.parents) if (candidate / FILE).is_file()), None)
    if path is None:
        return None, {}
    written = toml(path)
    unknown = sorted(set(written) - set(OPTIONS))
    if unknown:
        raise WrongSettings(f"{path}: unknown setting {', '.join(unknown)}; there are {', '.join(OPTIONS)}")
    return path, written


def toml(path: Path) -> dict[str, Any]:
    """What a TOML file says; WrongSettings when it cannot be read."""
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 - only a file needs it
    else:
        import tomli as tomllib  # noqa: PLC0415 - only a file needs it
    if not path.is_file():  # a pipe would be waited for
        raise WrongSettings(f"{path}: no such file")
    try:
        return dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise WrongSettings(f"{path}: not a TOML file that can be read: {error}") from error


def _shown(value: Any) -> str:
    if value is None or value in ((), ""):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ("-" if isinstance(value[0], int) else ",").join(map(str, value))
    return str(value)

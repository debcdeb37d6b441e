"""Errors and warnings that a user sees.

C3profError                 everything below; the command line prints one line and exits 1
├── UnreadableInput         nothing usable in what was given (file, folder, URL)
├── WrongSettings           an option, a rule file or a setting that cannot be used (exit 2)
└── MissingExtra            an optional package is needed; the message gives the pip line

A damaged input is not an error: what is whole is used, and the rest is a DataWarning.
"""

from dataclasses import dataclass


class C3profError(Exception):
    """What was found, where, what was expected, and what to do, in one line."""


class UnreadableInput(C3profError):
    """Nothing usable was found in the input."""


class WrongSettings(C3profError):
    """An option, rule or setting cannot be used."""


class MissingExtra(C3profError):
    """An optional package is missing."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed: pip install 'c3prof[{extra}]'")


@dataclass(frozen=True)
class DataWarning:
    """Something about the input that the reader of a number should know.

    code: short and stable, for programs ("missing-ranks"); message: for people, with place and cure;
    count: how many events, files or bytes it is about; path: which input, as the user gave it ("" for all);
    bears_on_numbers: whether a number may be wrong or partial because of it (`--strict` exits 3 then).
    """

    code: str
    message: str
    count: int = 1
    path: str = ""
    bears_on_numbers: bool = True

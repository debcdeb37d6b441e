"""The command line: flags → one call → a page. Errors become one line and an exit code here, and nowhere else.

Exit codes: 0 a report was made; 1 nothing usable; 2 wrong usage; 3 --strict and a warning that bears on a number; 130 Ctrl-C.
Only typer is imported at the start; each command loads what it needs when it runs (a test guards it).
"""

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from c3prof import __version__
from c3prof.commands import analyze, dashboard, demo, doctor, export, hta, ranks, report, run, schema, scrub, slowdown
from c3prof.errors import C3profError, WrongSettings
from c3prof.units import printable


class _Interrupted(Exception):
    """Ctrl-C, out of reach of the libraries that make exit code 1 of it."""


def _interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """The command, Ctrl-C in it as _Interrupted."""

    @wraps(command)
    def interruptible(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            raise _Interrupted from None

    return interruptible


app = typer.Typer(
    name="c3prof",
    help="Profile concurrent computation and communication in distributed training.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help starts three times as fast
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    analyze.analyze,
    ranks.ranks,
    slowdown.slowdown,
    dashboard.dashboard,
    report.report,
    export.export,
    run.run,
    demo.demo,
    doctor.doctor,
    scrub.scrub,
    schema.schema,
    hta.hta,
)
for command in _COMMANDS:
    app.command()(_interruptible(command))


def _version(asked: bool) -> None:
    if asked:
        print(f"c3prof {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    del version  # its callback has answered


def main() -> None:
    """Run the command line and exit with its code. What libraries warn developers of is not for the user."""
    gc.set_threshold(100_000, 50, 100)  # importing pandas alone makes half a million objects that live to the end …
    atexit.register(gc.freeze)  # … and need not be looked through once more when it comes
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the shell closed it (>&-), and its number would go to the next file that is opened
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for as long as the program runs
    if not sys.warnoptions and not _debugging():
        warnings.simplefilter("ignore")
    sys.exit(exit_code())


def exit_code(arguments: list[str] | None = None) -> int:
    """The exit code of a command line (sys.argv when None), after its output went out and its errors became one line."""
    try:
        app(arguments, prog_name="c3prof")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence: a user never sees a traceback
        return _failed(*_said(error))
    return 0


def _said(error: BaseException) -> tuple[str, int]:
    """What a user reads about an error, and the exit code."""
    if isinstance(error, C3profError):
        return str(error), 2 if isinstance(error, WrongSettings) else 1
    if isinstance(error, KeyboardInterrupt | _Interrupted):
        return "interrupted", 130
    if isinstance(error, MemoryError):
        return "out of memory: look at fewer ranks at once, or use --steps", 1
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}", 1
    return f"internal error: {type(error).__name__}: {error}. Please report it, with what C3PROF_DEBUG=1 prints.", 1


def _debugging() -> bool:
    return os.environ.get("C3PROF_DEBUG", "0") not in ("", "0")


def _failed(message: str, code: int) -> int:
    """The exit code, after one line on stderr; C3PROF_DEBUG shows where it came from."""
    if _debugging():
        import traceback  # noqa: PLC0415 - only for debugging

        traceback.print_exc()
    print(f"c3prof: {printable(' '.join(message.split()))}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()

"""c3prof run: a training command as it is, recorded."""

from typing import Annotated

import typer


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND", help="The training command, like torchrun --nproc-per-node 8 train.py.")
    ],
    *,
    dir_: Annotated[
        str | None,
        typer.Option("--dir", "-d", metavar="DIR", help="The run folder, the same on every node.", show_default="runs/<job or time>"),
    ] = None,
    kineto: Annotated[
        str | None, typer.Option("--kineto", metavar="WINDOW", help="Profiler windows, like wait=5,warmup=1,active=3,repeat=2; or off.")
    ] = None,
    calibrate: Annotated[
        int | None, typer.Option("--calibrate", metavar="N", help="Alternate N serialized and N concurrent steps.")
    ] = None,
    ranks: Annotated[
        str | None, typer.Option("--ranks", metavar="A-B,C", help="Ranks that open windows; the others record without.")
    ] = None,
    trigger: Annotated[bool, typer.Option("--trigger", help="Also open a window when DIR/TRIGGER appears.")] = False,
) -> None:
    """Run a training command that cannot be edited, and record it; its optimizer steps are taken for steps."""
    import os
    import sys
    import tempfile
    from pathlib import Path

    from c3prof.collectors.autostart import injected_environment
    from c3prof.collectors.options import Options, overridden
    from c3prof.errors import WrongSettings

    folder = str(Path(dir_ or f"runs/{_job()}").absolute())
    asked = {"dir": folder, "kineto": kineto, "calibrate": calibrate, "ranks": ranks, "trigger": int(trigger)}
    variables = {f"C3PROF_{name.upper()}": str(value) for name, value in asked.items() if value is not None}
    overridden(Options(folder), variables)  # refuses here what every rank would refuse
    environ = injected_environment(Path(tempfile.mkdtemp(prefix="c3prof-")), {**os.environ, **variables})
    print(f"c3prof: recording into {folder}; then: c3prof analyze {folder}", file=sys.stderr, flush=True)
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606 - the user's own command; it replaces us, so signals and exit code are its own
    except OSError as error:
        raise WrongSettings(f"{command[0]}: {error.strerror}; give the training command after --") from error


def _job() -> str:
    """The launcher's job number, else the time: a name for the run folder."""
    import os
    import time

    return next(
        (f"job-{os.environ[name]}" for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID") if os.environ.get(name)),
        time.strftime("%Y%m%d-%H%M%S"),
    )

"""c3prof demo: a real training of two ranks on this machine, recorded and analyzed."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathlib import Path

RANKS = 2
STEPS = 57  # eight periods of calibration, one step over
TIMEOUT_S = 600  # a guard against a hang; on a quiet machine the training takes some twenty seconds


def demo(
    dir_: Annotated[str, typer.Option("--dir", "-d", metavar="DIR", help="The run folder to write.")] = "runs/demo",
    *,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=29, help="Training steps.")] = STEPS,
) -> None:
    """Train a small transformer on two ranks under the profiler, analyze the run, write its report, and say what to try next."""
    import sys
    from importlib.util import find_spec
    from pathlib import Path

    from c3prof.commands.analyze import made
    from c3prof.commands.output import put
    from c3prof.config import config
    from c3prof.errors import MissingExtra

    if find_spec("torch") is None:
        raise MissingExtra("torch", "collect", "c3prof demo trains a model and")
    folder = _fresh(Path(dir_))
    print(f"Training {steps} steps on {RANKS} ranks (gloo, this machine), recorded into {folder} …", file=sys.stderr, flush=True)
    _train(folder, steps)
    asked = config({})
    report = made([str(folder)], asked)
    put(report, asked, None)
    page = folder / "report.html"
    put(report, config({"format": "html"}), str(page))
    print("\n".join([f"The same as a page to send: {page}", "Next", *(f"  {line}" for line in _next(folder))]))


def _fresh(folder: "Path") -> "Path":
    """The folder, empty. Only what an earlier demo wrote is removed."""
    import shutil

    from c3prof.errors import WrongSettings

    marker = folder / ".c3prof-demo"
    if folder.exists() and any(folder.iterdir()):
        if not marker.exists():
            raise WrongSettings(f"--dir {folder}: exists and is not from a demo; give another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    return folder


def _train(folder: "Path", steps: int) -> None:
    import os
    import socket
    import subprocess
    import sys

    from c3prof.errors import C3profError

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {**os.environ, "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "KINETO_LOG_LEVEL": "99"}
    command = [sys.executable, "-W", "ignore", "-m", "c3prof.collectors.demo_training", str(folder), str(steps)]
    ranks = [
        subprocess.Popen(command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})  # noqa: S603 - our own module, no shell
        for rank in range(RANKS)
    ]
    try:
        codes = [rank.wait(TIMEOUT_S) for rank in ranks]
    except subprocess.TimeoutExpired:
        raise C3profError(f"the demo's training did not end within {TIMEOUT_S} s; is this machine busy?") from None
    finally:
        for rank in ranks:
            rank.kill()
    if any(codes):
        raise C3profError(f"the demo's training failed (exit codes {codes}); its own message stands above")


def _next(folder: "Path") -> list[str]:
    return [
        f"c3prof analyze {folder} --only calibration,waits,step_times   how much of the possible gain overlap realizes",
        f"c3prof dashboard {folder}                                     the same in a browser",
        "with c3prof.profile('runs/mine') as prof: …; prof.step()       around your own loop (docs/collectors.md)",
    ]

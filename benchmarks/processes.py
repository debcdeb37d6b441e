"""A command as a whole process: wall and CPU seconds, peak memory, and what it printed."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    """One finished process. peak_mb is the resident set of its largest moment; printed is its last line as JSON, if it is."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    printed: Any


def run(command: Sequence[str], **environment: str) -> Run:
    """The Run of a command; CalledProcessError with its error output when it fails."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=errors, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        text = out.read().decode(errors="replace")
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, text, errors.read().decode(errors="replace"))
    try:
        printed = json.loads(text.strip().rsplit("\n", 1)[-1])
    except ValueError:
        printed = None
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, printed)

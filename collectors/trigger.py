"""Windows on demand: whoever creates the file TRIGGER in the run folder gets one window, at the same step on all chosen ranks.

Ranks agree without communicating: the lowest chosen one turns the file into trigger.json, which names a step far enough
ahead for the others to have read it by then.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

from c3prof.collectors.faults import Faults
from c3prof.collectors.folder import replace_file
from c3prof.collectors.window import Plan

TRIGGER_FILE, AGREED_FILE = "TRIGGER", "trigger.json"
POLLS_AHEAD = 4


@dataclass(frozen=True)
class Agreed:
    """What trigger.json says: the count of windows asked for so far, and the step at which the latest begins."""

    count: int
    first_step: int


class Trigger:
    """Looks for the files; poll() is called by the watcher every `poll_s` seconds."""

    def __init__(self, root: Path, plan: Plan, faults: Faults, *, leads: bool, poll_s: float) -> None:
        self._root, self._plan, self._faults, self._leads, self._poll_s = root, plan, faults, leads, poll_s
        self._seen = self._agreed().count

    def poll(self, step: int, step_s: float) -> None:
        """Plans a window when one was asked for. step: the current one; step_s: how long steps take."""
        if self._leads and (self._root / TRIGGER_FILE).exists():
            ahead = 2 + self._plan.warmup + math.ceil(POLLS_AHEAD * self._poll_s / max(step_s, 1e-4))
            content = {"count": self._agreed().count + 1, "first_step": self._plan.boundary(step + ahead)}
            replace_file(self._root / AGREED_FILE, json.dumps(content) + "\n")
            (self._root / TRIGGER_FILE).unlink()
        agreed = self._agreed()
        if agreed.count <= self._seen:
            return
        self._seen = agreed.count
        if agreed.first_step - self._plan.warmup <= step:
            self._faults.error("trigger", f"the window at step {agreed.first_step} was read in step {step}, too late; this rank skips it")
        else:
            self._plan.add(agreed.first_step)

    def _agreed(self) -> Agreed:
        try:
            return Agreed(**json.loads((self._root / AGREED_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return Agreed(0, 0)

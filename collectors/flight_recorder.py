"""torch's own flight recorder on NCCL: durations of collectives, measured by the backend, harvested from its ring buffer.

The ring holds TORCH_FR_BUFFER_SIZE entries (2000 from torch 2.11 on, none by default before); durations need
TORCH_NCCL_ENABLE_TIMING=1, which the user sets: torch says that it can make a hang of its watchdog more likely.
"""

import os

from c3prof.collectors.faults import Faults
from c3prof.collectors.folder import RankFolder
from c3prof.collectors.internals import recorded_flight_text
from c3prof.records import FileRecord

STEPS_BETWEEN = 100


class FlightRecorder:
    """A dump each STEPS_BETWEEN steps, as fr-NNN.json: what torch gives, unchanged. Readers drop what two dumps share."""

    name = "flight_recorder"

    def __init__(self, folder: RankFolder, faults: Faults, steps_between: int = STEPS_BETWEEN) -> None:
        self._folder, self._faults, self._steps_between = folder, faults, steps_between
        self._files: list[FileRecord] = []
        self._first_step = self._step = 0

    def probe(self) -> tuple[bool, str]:
        """Whether this torch has a flight recorder that is on."""
        if recorded_flight_text(only_active=True) is None:
            return False, "torch has no flight recorder here, or it is off (TORCH_FR_BUFFER_SIZE)"
        timed = os.environ.get("TORCH_NCCL_ENABLE_TIMING", "0") not in {"", "0"}
        return True, "" if timed else "no durations: TORCH_NCCL_ENABLE_TIMING is not set"

    def start(self) -> None:
        """Nothing to start: torch records."""

    def step(self, step: int, phase: str | None) -> None:
        """Harvests now and then."""
        del phase
        self._step = step
        if step - self._first_step >= self._steps_between:
            self._harvest()

    def stop(self) -> None:
        self._harvest()

    def files(self) -> list[FileRecord]:
        return list(self._files)

    def _harvest(self) -> None:
        with self._faults.guard("flight recorder"):
            text = recorded_flight_text(only_active=False)
            if text is not None:
                name = f"fr-{len(self._files):03d}.json"
                (self._folder.path / name).write_text(text, encoding="utf-8")
                self._files.append(self._folder.file_record("flight_recorder", name, self._first_step, self._step))
        self._first_step = self._step

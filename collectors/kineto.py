"""Short torch profiler windows, each exported as one compressed file as soon as it ends.

The profiler is process-wide: a second one on the same thread silently takes the events of the first, and one on another
thread can end the process. So a window is not opened while another profiler runs, and gives way when one starts.
"""

import gzip
import os
import shutil
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from c3prof.collectors.faults import Faults
from c3prof.collectors.folder import RankFolder
from c3prof.collectors.internals import all_threads, profiler_runs
from c3prof.records import FileRecord

LEAST_FREE_BYTES = 64 << 20
_TAIL_BYTES = 64


class Kineto:
    """The windows of this rank. `opens(step)` says what a step is: wait, warmup, active or over, and of which window."""

    name = "kineto"

    def __init__(self, folder: RankFolder, opens: Callable[[int], tuple[int, str]], faults: Faults, *, shapes: bool = True) -> None:
        self._folder, self._opens, self._faults, self._shapes = folder, opens, faults, shapes
        self._lock = threading.RLock()
        self._profiler: Any = None
        self._annotation: Any = None
        self._annotated_by = 0
        self._recording = False
        self._number, self._first_step, self._step = 0, 0, 0
        self._refused = -1
        self._originals: dict[str, Any] = {}
        self._files: list[FileRecord] = []
        self.cost_ns = 0

    @property
    def window(self) -> int | None:
        """The number of the window that records now."""
        return self._number if self._recording else None

    def probe(self) -> tuple[bool, str]:
        """Whether torch's profiler is there."""
        torch = import_module("torch")
        if not torch.profiler.kineto_available():
            return False, "torch is built without Kineto"
        return True, "" if all_threads() is not None else "threads other than the loop's are not recorded (torch before 2.8)"

    def start(self) -> None:
        """Watches for other profilers."""
        autograd_profile = import_module("torch.autograd.profiler").profile

        for name in ("_prepare_trace", "_start_trace"):
            if original := getattr(autograd_profile, name, None):
                self._originals[name] = original
                setattr(autograd_profile, name, self._giving_way(original))

    def step(self, step: int, phase: str | None) -> None:
        """Ends the annotation of the last step and opens, records or exports as the schedule says."""
        del phase
        started = time.perf_counter_ns()
        with self._lock:
            self._annotate(None)
            self._step = step
            number, place = self._opens(step)
            if self._profiler is not None and (place not in {"warmup", "active"} or number != self._number):
                self._export()
            if place in {"warmup", "active"} and self._profiler is None and self._refused != number:
                self._prepare(number)
            if place == "active" and self._profiler is not None:
                self._record(step)
        self.cost_ns += time.perf_counter_ns() - started

    def close_window(self) -> None:
        """Exports what is open, also from another thread than the loop's."""
        with self._lock:
            if self._profiler is not None:
                self._refused = self._number
                self._annotate(None)
                self._export()

    def stop(self) -> None:
        """Exports what is open and no longer watches for other profilers."""
        with self._lock:
            self.close_window()
            if self._originals:
                autograd_profile = import_module("torch.autograd.profiler").profile

                for name, original in self._originals.items():
                    setattr(autograd_profile, name, original)
                self._originals = {}

    def files(self) -> list[FileRecord]:
        return list(self._files)

    def _prepare(self, number: int) -> None:
        torch = import_module("torch")
        if profiler_runs():
            self._refused = number
            self._faults.error(f"window {number} at step {self._step}", "another torch profiler is running; the window is skipped")
            return
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        profiler = torch.profiler.profile(activities=activities, record_shapes=self._shapes, experimental_config=all_threads())
        self._number = number
        self._profiler = profiler
        profiler.prepare_trace()

    def _record(self, step: int) -> None:
        torch = import_module("torch")
        if not self._recording:
            self._recording, self._first_step = True, step
            self._profiler.start_trace()
        self._annotate(torch.profiler.record_function(f"ProfilerStep#{step}"))

    def _annotate(self, annotation: Any) -> None:
        """Ends the annotation of the last step, which only the thread that began it may do, and begins another."""
        if self._annotation is not None and self._annotated_by == threading.get_ident():
            self._annotation.__exit__(None, None, None)
        self._annotation, self._annotated_by = annotation, threading.get_ident()
        if annotation is not None:
            annotation.__enter__()

    def _export(self) -> None:
        profiler, recording = self._profiler, self._recording
        self._profiler, self._recording = None, False
        if profiler is None:
            return
        if not recording:
            # Only warmed up: start and stop is how torch leaves that state; there is nothing to keep.
            profiler.start_trace()
            profiler.stop_trace()
            return
        profiler.stop_trace()
        with self._faults.guard(f"export of window {self._number}"):
            self._write(profiler)

    def _write(self, profiler: Any) -> None:
        free = shutil.disk_usage(self._folder.path).free
        if free < LEAST_FREE_BYTES:
            raise OSError(28, f"{free:,} bytes free, {LEAST_FREE_BYTES:,} needed; the window is dropped")
        name = f"trace-w{self._number:03d}.json.gz"
        plain, part = self._folder.path / f".{name}.json", self._folder.path / f".{name}.part"
        try:
            profiler.export_chrome_trace(str(plain))
            _compress(plain, part)
            part.replace(self._folder.path / name)
        finally:
            # On a full disk Kineto leaves a .tmp behind and keeps it open: what is only unlinked would starve the other files.
            for path in (plain, plain.with_name(plain.name + ".tmp"), part):
                if path.exists():
                    os.truncate(path, 0)
                    path.unlink()
        self._files.append(self._folder.file_record("kineto", name, self._first_step, self._step - 1))

    def _giving_way(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def starts(other: Any, *args: Any, **kwargs: Any) -> Any:
            ours = getattr(self._profiler, "profiler", None)
            if self._profiler is not None and ours is not None and other is not ours:
                with self._faults.guard("another profiler"), self._lock:
                    self._faults.error(f"window {self._number} ended at step {self._step}", "another torch profiler started")
                    self.close_window()
            return original(other, *args, **kwargs)

        return starts


def _compress(plain: Path, part: Path) -> None:
    """Packs a file; OSError when Kineto wrote none or only a part: it reports neither."""
    if not plain.exists():
        raise OSError(28, "the profiler wrote no file; is the disk full?")
    tail = b""
    with plain.open("rb") as source, gzip.open(part, "wb", compresslevel=1) as target:
        while block := source.read(1 << 20):
            target.write(block)
            tail = (tail + block)[-_TAIL_BYTES:]
    if not tail.rstrip().endswith(b"}"):
        raise OSError(28, "the profiler wrote an incomplete file; is the disk full?")

"""profile() where training frameworks expect a callback. Each is importable without its framework.

Hugging Face:  Trainer(..., callbacks=[c3prof.collectors.adapters.hugging_face("runs/a")])
Lightning:     Trainer(..., callbacks=[c3prof.collectors.adapters.lightning("runs/a")])
torchtitan:    trace_post_processor(trace_folder) after its own profiler wrote a trace: where to look, what to run
"""

import logging
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from c3prof.collectors.profiling import profile
from c3prof.errors import MissingExtra

log = logging.getLogger("c3prof")


class StepCallback:
    """Starts profile() when training starts, marks its steps, and ends it; the frameworks' callbacks are made of it."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        self.profile = profile(folder, **options)

    def began(self) -> None:
        self.profile.start()

    def stepped(self) -> None:
        self.profile.step()

    def ended(self, error: BaseException | None = None) -> None:
        self.profile.stop("complete" if error is None else f"exception:{type(error).__name__}")


def hugging_face(folder: str | os.PathLike[str], **options: Any) -> Any:
    """A transformers.TrainerCallback that records into folder; options are those of profile()."""
    base = _class("transformers", ("transformers",), "TrainerCallback")

    class Recording(base):  # type: ignore[misc, valid-type]  # the base is only known at run time
        """Steps are the trainer's optimizer steps."""

        def __init__(self) -> None:
            self.recording = StepCallback(folder, **options)

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            del args, state, control, kwargs
            self.recording.began()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            del args, state, control, kwargs
            self.recording.stepped()

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            del args, state, control, kwargs
            self.recording.ended()

    return Recording()


def lightning(folder: str | os.PathLike[str], **options: Any) -> Any:
    """A Lightning Callback that records into folder; options are those of profile()."""
    base = _class("lightning", ("lightning.pytorch", "pytorch_lightning"), "Callback")

    class Recording(base):  # type: ignore[misc, valid-type]  # as above
        """Steps are the training batches."""

        def __init__(self) -> None:
            self.recording = StepCallback(folder, **options)

        def on_train_start(self, trainer: Any, module: Any) -> None:
            del trainer, module
            self.recording.began()

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:  # Lightning's signature
            del trainer, module, outputs, batch, batch_idx
            self.recording.stepped()

        def on_train_end(self, trainer: Any, module: Any) -> None:
            del trainer, module
            self.recording.ended()

        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
            del trainer, module
            self.recording.ended(exception)

    return Recording()


def trace_post_processor(trace_folder: str | os.PathLike[str]) -> list[str]:
    """The trace files in a folder that torchtitan's profiler wrote, after a line in the log that says how to analyze them."""
    files = sorted(str(path) for path in Path(trace_folder).rglob("*.json*"))
    log.info("%d trace files in %s; analyze them with: c3prof analyze %s", len(files), trace_folder, trace_folder)
    return files


def _class(package: str, modules: tuple[str, ...], name: str) -> Any:
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except ImportError:
            continue
    raise MissingExtra(package, package, f"this adapter is a {name} of {package} and")

"""Inside the training job: torch, the standard library and small drivers only; nothing heavy is loaded on import."""

from c3prof.collectors.calibration import concurrent, serialize
from c3prof.collectors.profiling import profile
from c3prof.collectors.window import Calibration, Window

__all__ = ["Calibration", "Window", "concurrent", "profile", "serialize"]

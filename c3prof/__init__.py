"""c3prof: the profiler for concurrent computation and communication in distributed training."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from c3prof.analysis import analyze as analyze
    from c3prof.collectors import Window as Window
    from c3prof.collectors import concurrent as concurrent
    from c3prof.collectors import profile as profile
    from c3prof.collectors import serialize as serialize
    from c3prof.readers import load as load
    from c3prof.table import Report as Report
    from c3prof.table import Table as Table
    from c3prof.trace import Trace as Trace

__version__ = "0.1.0"

# Loaded on first use (PEP 562): importing c3prof must cost a training job or a shell completion nothing.
_HOMES = {
    "analyze": "c3prof.analysis",
    "load": "c3prof.readers",
    "profile": "c3prof.collectors",
    "Window": "c3prof.collectors",
    "serialize": "c3prof.collectors",
    "concurrent": "c3prof.collectors",
    "Trace": "c3prof.trace",
    "Table": "c3prof.table",
    "Report": "c3prof.table",
}

__all__ = ["Report", "Table", "Trace", "Window", "__version__", "analyze", "concurrent", "load", "profile", "serialize"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'c3prof' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

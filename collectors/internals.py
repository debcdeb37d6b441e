"""The parts of torch below its public interface that the collectors rest on, in one place, found once and tested at start.

They exist in torch 2.4 to 2.13. Where a later torch moved one, Moved names it and the collector that needs it stays off.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


class Moved(Exception):  # never seen outside of this package
    """This torch lacks something that a collector needs."""


@dataclass(frozen=True)
class Dispatcher:
    """What the communication hook needs.

    process_group, work: the classes, with unbox(); key: BackendSelect, above which no kernel of c10d stands;
    c10d: the operations; wait_tensor: the wait of functional collectives; library(namespace): a registration that can be destroyed.
    """

    process_group: Any
    work: Any
    key: Any
    c10d: Any
    wait_tensor: Any
    library: Any


def dispatcher() -> Dispatcher:
    """The dispatcher's parts. Moved says which is missing."""
    torch = import_module("torch")
    if not torch.distributed.is_available():
        raise Moved("torch is built without distributed")
    import_module("torch.distributed._functional_collectives")  # registers wait_tensor
    found = Dispatcher(
        process_group=_part("torch._C._distributed_c10d", "ProcessGroup"),
        work=_part("torch._C._distributed_c10d", "Work"),
        key=_part("torch._C", "DispatchKey", "BackendSelect"),
        c10d=torch.ops.c10d,
        wait_tensor=_part("torch", "ops", "_c10d_functional", "wait_tensor", "default"),
        library=_part("torch.library", "Library"),
    )
    for owner, name in (
        (found.process_group, "unbox"),
        (found.work, "unbox"),
        (found.work, "wait"),
        (found.wait_tensor, "redispatch"),
        (found.library, "_destroy"),
    ):
        if not hasattr(owner, name):
            raise Moved(f"torch {torch.__version__} has no {getattr(owner, '__name__', owner)}.{name}")
    return found


def coalescing() -> bool:
    """Inside a block whose operations only start at its end: to wait for one of them would never return."""
    world = _part("torch.distributed.distributed_c10d", "_world")
    return any(getattr(world, "pg_coalesce_state", {}).values())


def profiler_runs() -> bool:
    """Whether any torch profiler records in this process: the only flag that holds for all threads."""
    return bool(getattr(import_module("torch.autograd.profiler"), "_is_profiler_enabled", False))


def all_threads() -> Any:
    """The profiler's setting that records every thread and lets another one stop it; None before torch 2.8."""
    try:
        return _part("torch._C._profiler", "_ExperimentalConfig")(profile_all_threads=True)
    except TypeError:
        return None


def recorded_flight_text(*, only_active: bool) -> str | None:
    """torch's flight recorder as JSON text, None where this torch has none (before 2.6) or it is off."""
    c10d = import_module("torch._C._distributed_c10d")
    dumps = [getattr(c10d, name, None) for name in ("_dump_nccl_trace_json", "_dump_fr_trace_json")]
    return next((text for dump in dumps if (text := _dumped(dump, only_active=only_active)) is not None), None)


def _dumped(dump: Any, *, only_active: bool) -> str | None:
    try:
        text = dump(includeCollectives=True, onlyActive=only_active)
    except (RuntimeError, TypeError):
        return None
    return text if isinstance(text, str) else bytes(text).decode()


def _part(module: str, *names: str) -> Any:
    part: Any = import_module(module)
    for name in names:
        try:
            part = getattr(part, name)
        except AttributeError as error:
            raise Moved(f"torch {import_module('torch').__version__} has no {module}.{'.'.join(names)}") from error
    return part

"""Every communication operation of this rank, seen in torch's dispatcher.

A kernel at the BackendSelect key of each c10d operation times the call, passes it on below itself and writes down what
it was. It sees what patched torch.distributed names do not: DDP's C++ reducer, FSDP2, functional collectives, pipeline
send/recv and compiled graphs. No operation is replaced; nothing is added to operations that do not communicate.
What does not go through c10d (DeepEP, NVSHMEM, symmetric memory) is not seen.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from c3prof.collectors.c10d_ops import Operation, operations
from c3prof.collectors.calibration import Switch
from c3prof.collectors.faults import Faults
from c3prof.collectors.internals import Dispatcher, Moved, dispatcher
from c3prof.collectors.ledger import Ledger, Pending
from c3prof.collectors.lines import Lines
from c3prof.records import COMM_FILE, FileRecord, GroupRecord


class Comm:
    """The communication hook. Its kernels run in the caller's thread; drain() in the watcher's."""

    name = "comm"

    def __init__(self, path: Path, switch: Switch, faults: Faults, device_events: Any = None) -> None:
        self._path, self._switch, self._faults, self._events = path, switch, faults, device_events
        self._ledger = Ledger()
        self._lines: Lines | None = None
        self._torch: Dispatcher | None = None
        self._libraries: list[Any] = []
        self._on = False
        self._dtypes: dict[Any, str] = {}
        self._counts: Counter[tuple[Any, ...]] = Counter()
        self.groups: dict[str, GroupRecord] = {}
        self.calls = self.cost_ns = 0

    def probe(self) -> tuple[bool, str]:
        """Whether this torch has what the hook needs."""
        try:
            self._torch = dispatcher()
        except Moved as error:
            return False, str(error)
        return bool(operations(self._torch.c10d)), ""

    def start(self) -> None:
        """Installs the kernels and opens the file."""
        torch = import_module("torch")
        self._lines = Lines(self._path, self._faults.error)
        self._capturing = torch.cuda.is_current_stream_capturing if torch.cuda.is_available() else bool
        parts = self._torch or dispatcher()
        c10d, functional = parts.library("c10d", "IMPL"), parts.library("_c10d_functional", "IMPL")
        self._libraries = [c10d, functional]
        for operation, overload in operations(parts.c10d):
            c10d.impl(operation.name, self._kernel(operation, overload, parts), "BackendSelect", with_keyset=True)
        functional.impl("wait_tensor", self._wait_kernel(parts), "BackendSelect", with_keyset=True)
        self._work_wait = parts.work.wait
        parts.work.wait = self._wait_method(self._work_wait)
        self._on = True

    def step(self, step: int, phase: str | None) -> None:
        """Nothing to do: records carry the step of the switch."""

    def drain(self) -> None:
        """Writes the operations that have ended."""
        if self._lines is not None:
            self._lines.write(self._ledger.records())

    def stop(self) -> None:
        """Removes the kernels and writes what is left, operations that have not ended included."""
        self._on = False
        for library in self._libraries:
            library._destroy()  # the only way to take a registration back
        self._libraries = []
        if self._torch is not None and self._lines is not None:
            self._torch.work.wait = self._work_wait
            self._lines.write(self._ledger.records(final=True))
            self._lines.close()

    def silence(self) -> None:
        """Stops recording without a word: in a child after fork."""
        self._on = False

    def files(self) -> list[FileRecord]:
        return [FileRecord("comm", COMM_FILE, bytes=self._lines.bytes)] if self._lines else []

    def open_operations(self) -> list[dict[str, Any]]:
        """The operations that were called and have not ended, oldest first."""
        return self._ledger.open_operations()

    def _kernel(self, operation: Operation, overload: Any, parts: Dispatcher) -> Callable[..., Any]:
        redispatch, key = overload.redispatch, parts.key

        def kernel(keyset: Any, *args: Any) -> Any:
            if not self._on:
                return redispatch(keyset.remove(key), *args)
            entry_ns = time.time_ns()
            ready = self._prepared(operation)
            call_ns = time.time_ns()
            out = redispatch(keyset.remove(key), *args)
            return_ns = time.time_ns()
            waited_ns = 0
            try:
                waited_ns = self._called(operation, args, out, (ready, call_ns, return_ns))
            except Exception as error:  # whatever fails in here must not reach training
                self._faults.error(f"hook of {operation.name}", error)
            self.calls += 1
            self.cost_ns += call_ns - entry_ns + time.time_ns() - return_ns - waited_ns
            return out

        return kernel

    def _prepared(self, operation: Operation) -> Any:
        try:
            if operation.serializable:
                self._switch.before()
            return self._events.ready() if self._events is not None else None
        except Exception as error:  # as above
            self._faults.error(f"before {operation.name}", error)
            return None

    def _called(self, operation: Operation, args: tuple[Any, ...], out: Any, times: tuple[Any, int, int]) -> int:
        """Takes down a call that has just returned; gives the time that calibration then waited for it."""
        assert self._torch is not None  # noqa: S101  # there are no kernels without it
        ready, call_ns, return_ns = times
        boxed = out[-1] if isinstance(out, tuple | list) else out
        work = self._torch.work.unbox(boxed) if boxed is not None else None
        group = self._torch.process_group.unbox(args[operation.group_at])
        outputs, inputs = operation.tensors(args)
        facts = self._facts(operation, args, group, outputs, inputs)
        facts |= {"call_ns": call_ns, "return_ns": return_ns, "captured": self._capturing()}
        on_host = not outputs or outputs[0].device.type == "cpu"
        follows = work is not None and not facts["captured"]
        pending = self._ledger.entered(facts, work, outputs[0].data_ptr() if outputs else None, end_known=follows and on_host)
        if not follows:
            return 0
        if on_host:
            self._end_with_future(pending, work)
        elif self._events is not None:
            self._events.called(ready, facts, work)
        if operation.serializable and self._switch.serializes():
            return self._serialize(pending, work, on_host=on_host)
        return 0

    def _facts(
        self, operation: Operation, args: tuple[Any, ...], group: Any, outputs: list[Any], inputs: list[Any]
    ) -> dict[str, Any]:  # one call site
        known = self._group(group)
        at, asynchronous_at = operation.peer_at, operation.async_at
        peer = args[at] if at is not None and at < len(args) else -1
        peer = known.ranks[peer] if 0 <= peer < len(known.ranks) else None
        counter = (known.name, operation.collective, peer) if operation.point_to_point else (known.name,)
        seq = self._counts[counter]
        self._counts[counter] = seq + 1
        tensor = outputs[0] if outputs else None
        return {
            "op": operation.name,
            "collective": operation.collective,
            "group": known.name,
            "seq": None if operation.point_to_point and peer is None else seq,
            "step": self._switch.step,
            "phase": self._switch.phase,
            "asynchronous": args[asynchronous_at] if asynchronous_at is not None and asynchronous_at < len(args) else None,
            "dtype": None if tensor is None else self._dtype(tensor.dtype),
            "itemsize": 0 if tensor is None else tensor.itemsize,
            "in_bytes": 0 if operation.collective == "recv" else sum(t.nbytes for t in inputs),
            "out_bytes": 0 if operation.collective == "send" else sum(t.nbytes for t in outputs),
            "peer": peer,
            "thread": threading.get_native_id(),
        }

    def _dtype(self, dtype: Any) -> str:
        if dtype not in self._dtypes:
            self._dtypes[dtype] = str(dtype).removeprefix("torch.")
        return self._dtypes[dtype]

    def _group(self, group: Any) -> GroupRecord:
        name = group.group_name
        if name not in self.groups:
            try:
                ranks = tuple(import_module("torch.distributed").get_process_group_ranks(group))
            except Exception:  # a group that torch did not register: its ranks count from 0
                ranks = tuple(range(group.size()))
            self.groups[name] = GroupRecord(name, group.group_desc or None, group.name(), group.size(), ranks)
        return self.groups[name]

    def _end_with_future(self, pending: Pending, work: Any) -> None:
        try:
            future = work.get_future()
        except RuntimeError:  # gloo's reduce_scatter, send and recv have none: their end is the return of the wait
            return
        future.add_done_callback(lambda _: self._ledger.ended(pending, "future"))

    def _serialize(self, pending: Pending, work: Any, *, on_host: bool) -> int:
        started = time.time_ns()
        if self._switch.after(partial(self._work_wait, work), on_host=on_host):
            pending.facts["serialized"] = True
            if on_host:
                self._ledger.ended(pending, "wait")
        return time.time_ns() - started

    def _wait_method(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            return self._waited(self._ledger.of_work(work) if self._on else None, lambda: original(work, *args, **kwargs))

        return wait

    def _wait_kernel(self, parts: Dispatcher) -> Callable[..., Any]:
        redispatch, key = parts.wait_tensor.redispatch, parts.key

        def kernel(keyset: Any, tensor: Any) -> Any:
            return self._waited(
                self._ledger.of_output(tensor.data_ptr()) if self._on else None, lambda: redispatch(keyset.remove(key), tensor)
            )

        return kernel

    def _waited(self, pending: Pending | None, wait: Callable[[], Any]) -> Any:
        if pending is None:
            return wait()
        if self._events is not None:
            self._events.reached(pending.facts)
        return self._ledger.waited(pending, wait)

"""Every communication operation of this rank, seen in torch's dispatcher.

A kernel at the BackendSelect key of each c10d operation times the call, passes it on below itself and writes down what
it was. It sees what patched torch.distributed names do not: DDP's C++ reducer, FSDP2, functional collectives, pipeline
send/recv and compiled graphs. No operation is replaced; nothing is added to operations that do not communicate.
What does not go through c10d (DeepEP, NVSHMEM, symmetric memory) is not seen.
"""

import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from c3prof.collectors.c10d_ops import Operation, operations
from c3prof.collectors.calibration import Switch
from c3prof.collectors.faults import Faults
from c3prof.collectors.lines import Lines
from c3prof.records import COMM_FILE, CollectiveRecord, FileRecord, GroupRecord

_SETTLED_NS = 200_000_000  # a wait may still begin shortly after the end: such a record is not yet written
_MOST_OPEN = 4_096  # operations that nobody waits for and whose end the backend does not tell
_MOST_OUTPUTS = 4_096


class Pending:
    """One operation between its call and its line in the file: the fields of its record, and who still waits for it."""

    __slots__ = ("__weakref__", "facts", "key", "waiting")

    def __init__(self, facts: dict[str, Any], key: int) -> None:
        self.facts, self.key, self.waiting = facts, key, 0

    @property
    def end_ns(self) -> int | None:
        end: int | None = self.facts.get("end_ns")
        return end


class Comm:
    """The communication hook. Its kernels run in the caller's thread; drain() in the watcher's."""

    name = "comm"

    def __init__(self, path: str, switch: Switch, faults: Faults, device_events: Any = None) -> None:
        self._path, self._switch, self._faults, self._events = path, switch, faults, device_events
        self._library: Any = None
        self._functional: Any = None
        self._on = False
        self._keys = count()
        self._open: dict[int, Pending] = {}
        self._done: deque[Pending] = deque()
        self._works: weakref.WeakKeyDictionary[Any, Pending] = weakref.WeakKeyDictionary()
        self._latest: deque[Any] = deque(maxlen=4)  # keeps the wrapper of a Work alive until its caller holds it
        self._outputs: dict[int, Pending] = {}
        self._counts: Counter[tuple[Any, ...]] = Counter()
        self._members: dict[str, tuple[int, ...]] = {}
        self.groups: dict[str, GroupRecord] = {}
        self.calls = self.cost_ns = 0

    def probe(self) -> tuple[bool, str]:
        """Whether this torch has what the hook needs; tried on the real dispatcher's interface, without a call."""
        import torch  # noqa: PLC0415  # a job has it; importing c3prof must not load it

        if not torch.distributed.is_available():
            return False, "torch is built without distributed"
        lacking = [
            name
            for name, home in (
                ("ProcessGroup.unbox", getattr(torch._C._distributed_c10d, "ProcessGroup", None)),
                ("Work.unbox", getattr(torch._C._distributed_c10d, "Work", None)),
                ("DispatchKey.BackendSelect", torch._C.DispatchKey),
                ("OpOverload.redispatch", torch._ops.OpOverload),
            )
            if not hasattr(home, name.split(".")[1])
        ]
        if lacking or not operations(torch.ops.c10d):
            return False, f"torch {torch.__version__} moved {', '.join(lacking) or 'its c10d operations'}: communication is not recorded"
        return True, ""

    def start(self) -> None:
        """Installs the kernels and opens the file."""
        import torch  # noqa: PLC0415  # as above
        from torch._C._distributed_c10d import ProcessGroup, Work  # noqa: PLC0415  # as above

        self._lines = Lines(self._path, self._faults.error)
        self._unbox_group, self._unbox_work = ProcessGroup.unbox, Work.unbox
        self._key = torch._C.DispatchKey.BackendSelect
        self._capturing = torch.cuda.is_current_stream_capturing if torch.cuda.is_available() else lambda: False
        self._library = torch.library.Library("c10d", "IMPL")
        for operation, overload in operations(torch.ops.c10d):
            self._library.impl(operation.name, self._kernel(operation, overload), "BackendSelect", with_keyset=True)
        self._functional = torch.library.Library("_c10d_functional", "IMPL")
        wait_tensor = torch.ops._c10d_functional.wait_tensor.default
        self._functional.impl("wait_tensor", self._wait_kernel(wait_tensor), "BackendSelect", with_keyset=True)
        self._work_class, self._work_wait = Work, Work.wait
        Work.wait = self._wait_method(Work.wait)
        self._on = True

    def step(self, step: int, phase: str | None) -> None:
        """Nothing to do: records carry the step of the switch."""

    def stop(self) -> None:
        """Removes the kernels and writes what is left, operations that have not ended included."""
        self._on = False
        for library in (self._library, self._functional):
            if library is not None:
                library._destroy()  # the only way to take a registration back
        if self._library is not None:
            self._work_class.wait = self._work_wait
            self._library = self._functional = None
            self.drain(final=True)
            self._lines.close()

    def silence(self) -> None:
        """Stops recording without a word: in a child after fork."""
        self._on = False

    def files(self) -> list[FileRecord]:
        return [FileRecord("comm", COMM_FILE, bytes=self._lines.bytes)] if hasattr(self, "_lines") else []

    def drain(self, *, final: bool = False) -> None:
        """Writes the operations that have ended; with final also those that have not."""
        settled = time.time_ns() - _SETTLED_NS
        ready, later = [], []
        for _ in range(len(self._done)):
            pending = self._done.popleft()
            waits_possible = pending.waiting or (pending.end_ns or pending.facts["return_ns"]) > settled
            (later if waits_possible and not final else ready).append(pending)
        self._done.extendleft(reversed(later))
        if final or len(self._open) > _MOST_OPEN:
            left = list(self._open)
            ready += [p for key in (left if final else left[:-_MOST_OPEN]) if (p := self._open.pop(key, None))]
        self._lines.write(CollectiveRecord(**pending.facts) for pending in ready)

    def open_operations(self) -> list[dict[str, Any]]:
        """The operations that were called and have not ended, oldest first."""
        return [dict(pending.facts) for pending in list(self._open.values())]

    def _kernel(self, operation: Operation, overload: Any) -> Callable[..., Any]:
        redispatch, key = overload.redispatch, self._key

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
                waited_ns = self._called(operation, args, out, ready, call_ns, return_ns)
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

    def _called(self, operation: Operation, args: tuple[Any, ...], out: Any, ready: Any, call_ns: int, return_ns: int) -> int:
        """Takes down a call that has just returned; gives the time that calibration then waited for it."""
        group = self._unbox_group(args[operation.group_at])
        boxed = out[-1] if isinstance(out, (tuple, list)) else out
        work = self._unbox_work(boxed) if boxed is not None else None
        outputs, inputs = operation.tensors(args)
        pending = Pending(
            self._facts(operation, args, group, outputs, inputs) | {"call_ns": call_ns, "return_ns": return_ns}, next(self._keys)
        )
        on_host = not outputs or outputs[0].device.type == "cpu"
        if work is None or pending.facts["captured"]:
            self._done.append(pending)
            return 0
        self._latest.append(work)
        self._works[work] = pending
        if outputs:
            self._remember_output(outputs[0].data_ptr(), pending)
        if not on_host:
            self._done.append(pending)
            if self._events is not None:
                self._events.called(ready, pending.facts, work)
        else:
            self._open[pending.key] = pending
            self._end_with_future(pending, work)
        if operation.serializable and self._switch.serializes():
            return self._serialize(pending, work, on_host)
        return 0

    def _facts(self, operation: Operation, args: tuple[Any, ...], group: Any, outputs: list[Any], inputs: list[Any]) -> dict[str, Any]:
        name = group.group_name
        ranks = self._ranks(name, group)
        peer = None if operation.peer_at is None else args[operation.peer_at] if operation.peer_at < len(args) else None
        peer = ranks[peer] if peer is not None and 0 <= peer < len(ranks) else None
        counter = (name, operation.collective, peer) if operation.point_to_point else (name,)
        seq = self._counts[counter]
        self._counts[counter] = seq + 1
        asynchronous = args[operation.async_at] if operation.async_at is not None and operation.async_at < len(args) else None
        tensor = outputs[0] if outputs else inputs[0] if inputs else None
        return {
            "op": operation.name,
            "collective": operation.collective,
            "group": name,
            "seq": None if operation.point_to_point and peer is None else seq,
            "step": self._switch.step,
            "phase": self._switch.phase,
            "asynchronous": asynchronous,
            "dtype": None if tensor is None else str(tensor.dtype).removeprefix("torch."),
            "itemsize": 0 if tensor is None else tensor.element_size(),
            "in_bytes": 0 if operation.name.startswith("recv") else sum(t.nbytes for t in inputs),
            "out_bytes": 0 if operation.name == "send" else sum(t.nbytes for t in outputs),
            "peer": peer,
            "thread": threading.get_native_id(),
            "captured": self._capturing(),
        }

    def _ranks(self, name: str, group: Any) -> tuple[int, ...]:
        if name not in self._members:
            import torch.distributed as dist  # noqa: PLC0415  # as above

            try:
                self._members[name] = tuple(dist.get_process_group_ranks(group))
            except Exception:  # a group that torch did not register: its ranks count from 0
                self._members[name] = tuple(range(group.size()))
            self.groups[name] = GroupRecord(name, group.group_desc or None, group.name(), group.size(), self._members[name])
        return self._members[name]

    def _remember_output(self, address: int, pending: Pending) -> None:
        if len(self._outputs) >= _MOST_OUTPUTS:
            self._outputs.clear()
        self._outputs[address] = pending

    def _end_with_future(self, pending: Pending, work: Any) -> None:
        try:
            future = work.get_future()
        except RuntimeError:  # gloo's reduce_scatter, send and recv have none: their end is the return of the wait
            return
        future.add_done_callback(lambda _: self._ended(pending, "future"))

    def _ended(self, pending: Pending, source: str) -> None:
        if self._open.pop(pending.key, None) is not None:
            pending.facts |= {"end_ns": time.time_ns(), "end_from": source}
            self._done.append(pending)

    def _serialize(self, pending: Pending, work: Any, on_host: bool) -> int:
        started = time.time_ns()
        if self._switch.after(partial(self._work_wait, work), on_host=on_host):
            pending.facts["serialized"] = True
            if on_host:
                self._ended(pending, "wait")
        return time.time_ns() - started

    def _wait_method(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            return self._timed(self._works.get(work) if self._on else None, lambda: original(work, *args, **kwargs))

        return wait

    def _wait_kernel(self, overload: Any) -> Callable[..., Any]:
        redispatch, key = overload.redispatch, self._key

        def kernel(keyset: Any, tensor: Any) -> Any:
            pending = self._outputs.pop(tensor.data_ptr(), None) if self._on else None
            return self._timed(pending, lambda: redispatch(keyset.remove(key), tensor))

        return kernel

    def _timed(self, pending: Pending | None, wait: Callable[[], Any]) -> Any:
        if pending is None:
            return wait()
        facts, start = pending.facts, time.time_ns()
        facts.setdefault("wait_start_ns", start)
        pending.waiting += 1
        if self._events is not None:
            self._events.reached(facts)
        try:
            result = wait()
            self._ended(pending, "wait")
            return result
        finally:
            facts["blocked_ns"] = facts.get("blocked_ns", 0) + time.time_ns() - start
            pending.waiting -= 1

"""Which communication operations are under way, and the records of those that are done.

Written to by the threads that call collectives, by the backend's threads (completion) and read by the watcher; each
entry is a dict whose keys are set one at a time, so no lock is held while a program communicates.
"""

import time
import weakref
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from c3prof.records import CollectiveRecord

_SETTLED_NS = 200_000_000  # a wait may still begin shortly after the end: such a record is not yet written
_MOST_OPEN = 4_096  # operations that nobody waits for and whose end the backend does not tell
_MOST_OUTPUTS = 4_096


class Pending:
    """One operation between its call and its line in the file: the fields of its record, and how many wait for it."""

    __slots__ = ("__weakref__", "facts", "key", "waiting")

    def __init__(self, facts: dict[str, Any], key: int) -> None:
        self.facts, self.key, self.waiting = facts, key, 0


class Ledger:
    """Operations by their Work object and by the address of their output, open and done."""

    def __init__(self) -> None:
        self._keys = count()
        self._open: dict[int, Pending] = {}
        self._done: deque[Pending] = deque()
        self._works: weakref.WeakKeyDictionary[Any, Pending] = weakref.WeakKeyDictionary()
        self._latest: deque[Any] = deque(maxlen=4)  # keeps the wrapper of a Work alive until its caller holds it
        self._outputs: dict[int, Pending] = {}

    def entered(self, facts: dict[str, Any], work: Any = None, output: int | None = None, *, end_known: bool = False) -> Pending:
        """The entry of a call. end_known: somebody will say when it ended; otherwise it is done as it stands."""
        pending = Pending(facts, next(self._keys))
        if work is not None:
            self._latest.append(work)
            self._works[work] = pending
        if output is not None:
            if len(self._outputs) >= _MOST_OUTPUTS:
                self._outputs.clear()
            self._outputs[output] = pending
        if end_known:
            self._open[pending.key] = pending
        else:
            self._done.append(pending)
        return pending

    def ended(self, pending: Pending, source: str) -> None:
        """Takes down the end of an open operation, once; source: future or wait."""
        if self._open.pop(pending.key, None) is not None:
            pending.facts |= {"end_ns": time.time_ns(), "end_from": source}
            self._done.append(pending)

    def of_work(self, work: Any) -> Pending | None:
        return self._works.get(work)

    def of_output(self, address: int) -> Pending | None:
        return self._outputs.pop(address, None)

    def waited(self, pending: Pending, wait: Callable[[], Any]) -> Any:
        """What wait() gives; its time is the host's blocked time, its return an upper bound of the end."""
        facts, start = pending.facts, time.time_ns()
        facts.setdefault("wait_start_ns", start)
        pending.waiting += 1
        try:
            result = wait()
            self.ended(pending, "wait")
            return result
        finally:
            facts["blocked_ns"] = facts.get("blocked_ns", 0) + time.time_ns() - start
            pending.waiting -= 1

    def records(self, *, final: bool = False) -> list[CollectiveRecord]:
        """The operations that are done since the last call; with final also those that never ended."""
        settled = time.time_ns() - _SETTLED_NS
        ready: list[Pending] = []
        later: list[Pending] = []
        for _ in range(len(self._done)):
            pending = self._done.popleft()
            moving = pending.waiting or pending.facts.get("end_ns", pending.facts["return_ns"]) > settled
            (later if moving and not final else ready).append(pending)
        self._done.extendleft(reversed(later))
        excess = list(self._open) if final else list(self._open)[:-_MOST_OPEN]
        ready += [left for key in excess if (left := self._open.pop(key, None)) is not None]
        return [CollectiveRecord(**pending.facts) for pending in ready]

    def open_operations(self) -> list[dict[str, Any]]:
        """The operations that were called and have not ended, oldest first."""
        return [dict(pending.facts) for pending in list(self._open.values())]

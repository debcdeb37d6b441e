"""The operations of torch's c10d dispatcher library: their names in our words and where their arguments stand."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_COLLECTIVES = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather",
    "allgather_coalesced_": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all",
    "gather_": "gather",
    "scatter_": "scatter",
    "send": "send",
    "recv_": "recv",
    "recv_any_source_": "recv",
    "barrier": "barrier",
}
_POINT_TO_POINT = {"send", "recv"}


@dataclass(frozen=True)
class Operation:
    """One c10d operation. The *_at are positions in its arguments, None where it has no such argument.

    serializable: calibration may wait for it at once. Never point-to-point (the peer may be doing the same), barriers
    or coalesced operations (they only start at the end of their block).
    """

    name: str
    collective: str
    group_at: int
    async_at: int | None
    peer_at: int | None

    @cached_property
    def point_to_point(self) -> bool:
        return self.collective in _POINT_TO_POINT

    @cached_property
    def serializable(self) -> bool:
        return not self.point_to_point and self.collective != "barrier" and "coalesced" not in self.name

    def tensors(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """The output and the input tensors of a call: (output, input, group, …), or one argument that is both."""
        if self.collective == "barrier":
            return [], []
        return list(_flat(args[0])), list(_flat(args[self.group_at - 1]))


def operations(library: Any) -> list[tuple[Operation, Any]]:
    """The operations that this torch has, each with its overload; library is torch.ops.c10d."""
    found = []
    for name, collective in _COLLECTIVES.items():
        if not hasattr(library, name):
            continue
        overload = getattr(library, name).default
        names = [argument.name for argument in overload._schema.arguments]  # torch has no public way to the schema
        peer = next((names.index(word) for word in ("dst", "src", "root_rank") if word in names), None)
        asynchronous = names.index("async_op") if "async_op" in names else None
        found.append((Operation(name, collective, names.index("process_group"), asynchronous, peer), overload))
    return found


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    elif value is not None:
        yield value

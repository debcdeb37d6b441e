"""One colour a class, the same in terminal, figures, report and app.

The classes take Okabe and Ito's colours (2008), which people with any common colour blindness tell apart; kernel classes and
collective kinds take Tol's muted set (2021). A colour never stands alone: a label, a pattern or a symbol says the same.
"""

from zlib import crc32

CLASSES: dict[str, str] = {
    "compute": "#0072B2",
    "comm": "#E69F00",
    "fused": "#CC79A7",
    "copy": "#009E73",
    "hidden": "#56B4E9",
    "exposed": "#D55E00",
    "exposed_copy": "#009E73",
    "idle": "#B8BEC6",
    "wait": "#8C6BB1",
    "transfer": "#E69F00",
    "excess": "#D55E00",
    "launch": "#8A94A3",
    "blocking": "#CC6677",
    "op": "#6699CC",
    "comm_op": "#DDAA33",
    "annotation": "#A59BC8",
    "step": "#5B6B7F",
    "unknown": "#7F7F7F",
}
"""Classes of device activity and of its accounting (docs/metrics.md §1, §2, §5)."""

KERNEL_CLASSES: dict[str, str] = {
    "gemm": "#332288",
    "attention": "#882255",
    "convolution": "#117733",
    "norm": "#44AA99",
    "elementwise": "#88CCEE",
    "reduction": "#DDCC77",
    "embedding": "#999933",
    "optimizer": "#661100",
    "memory": "#6699CC",
    "memcpy": "#009E73",
    "memset": "#66C2A5",
    "other": "#7F7F7F",
}
"""Classes of compute kernels; names that are not here get one of these colours, always the same."""

COLLECTIVES: dict[str, str] = {
    "all_reduce": "#CC6677",
    "all_gather": "#332288",
    "reduce_scatter": "#117733",
    "all_to_all": "#AA4499",
    "broadcast": "#88CCEE",
    "reduce": "#999933",
    "gather": "#661100",
    "scatter": "#6699CC",
    "send": "#DDCC77",
    "recv": "#882255",
    "send_recv": "#44AA99",
    "barrier": "#888888",
}
"""Kinds of collective communication."""

CAUSES: dict[str, str] = {
    "wait": "#8C6BB1",
    "late-launch": "#CC6677",
    "dependency": "#D55E00",
    "host": "#DDCC77",
    "host-sync": "#999933",
    "no-work": "#56B4E9",
    "unknown": "#7F7F7F",
}
"""Causes of exposed communication (docs/metrics.md §2)."""

_SPARE = tuple(dict.fromkeys((*KERNEL_CLASSES.values(), *COLLECTIVES.values())))


def colour(name: str) -> str:
    """The colour of a class, kernel class, collective kind or cause as #RRGGBB; for a word not listed a stable one of the same set."""
    for known in (CLASSES, COLLECTIVES, KERNEL_CLASSES, CAUSES):
        if name in known:
            return known[name]
    return _SPARE[crc32(name.encode()) % len(_SPARE)]

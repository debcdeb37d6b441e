"""What NCCL chose, as its log tells: channels (workgroups that a collective takes from compute), algorithm, protocol."""

from collections.abc import Mapping

from c3prof.analysis.settings import Settings
from c3prof.table import Schema, Table
from c3prof.trace import NCCL_CHOICES as FRAME
from c3prof.trace import Trace

NCCL_CHOICES = Schema("nccl_choices", FRAME.title, FRAME.columns)


def nccl_choices(trace: Trace, _: Mapping[str, Table], settings: Settings) -> tuple[Table, ...]:
    """The table nccl_choices: the rows of the log, as they are."""
    del settings
    return (Table.of(NCCL_CHOICES, trace.nccl_choices),)

"""Who this process is in its job: from torch.distributed when it is up, else from the launcher's variables."""

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_WORLD = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
_JOB = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid", "PBS_JOBID", "LSB_JOBID")


@dataclass(frozen=True)
class Identity:
    """Rank, world size, local rank, host, job and how often the launcher restarted it."""

    rank: int
    world_size: int
    local_rank: int | None
    host: str
    pid: int
    job: str | None
    restart: int
    backend: str | None


def identity(environ: Mapping[str, str] = os.environ) -> Identity:
    """The identity of this process. A process without a launcher is rank 0 of 1."""
    rank, world_size, backend = _from_torch()
    return Identity(
        rank=_number(environ, _RANK, 0) if rank is None else rank,
        world_size=_number(environ, _WORLD, 1) if world_size is None else world_size,
        local_rank=_number(environ, _LOCAL, None),
        host=socket.gethostname(),
        pid=os.getpid(),
        job=next((environ[name] for name in _JOB if environ.get(name)), None),
        restart=_number(environ, ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"), 0),
        backend=backend,
    )


def _from_torch() -> tuple[int | None, int | None, str | None]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None, None, None
    return distributed.get_rank(), distributed.get_world_size(), distributed.get_backend()


def _number(environ: Mapping[str, str], names: tuple[str, ...], default: int | None) -> int:
    for name in names:
        if environ.get(name, "").isdigit():
            return int(environ[name])
    return default  # type: ignore[return-value]  # the caller that passes None says so in its own type

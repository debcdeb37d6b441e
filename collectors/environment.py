"""What may have decided the run's speed: versions, an allow-list of variables, devices and their links. Never all of the environment."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from importlib import import_module
from typing import Any

_PREFIXES = ("NCCL_", "RCCL_", "TORCH_NCCL_", "TORCH_FR_", "GLOO_")
_NAMES = {
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "OMP_NUM_THREADS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
}
_TOPOLOGY_TIMEOUT_S = 5


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables on the allow-list that are set."""
    return {name: value for name, value in sorted(environ.items()) if name in _NAMES or name.startswith(_PREFIXES)}


def versions() -> dict[str, str]:
    """The versions of what the run rests on, as far as they can be told."""
    torch = import_module("torch")
    found = {"c3prof": import_module("c3prof").__version__, "python": platform.python_version(), "torch": torch.__version__}
    for name in ("cuda", "hip"):
        if value := getattr(torch.version, name, None):
            found[name] = str(value)
    if torch.cuda.is_available() and torch.distributed.is_available() and torch.distributed.is_nccl_available():
        found["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    return found


def device_name() -> str | None:
    """The name of this process's device, None on a CPU."""
    torch = import_module("torch")
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def topology() -> dict[str, Any]:
    """CPU count and, where the driver's tool tells it, the matrix of links between devices as its text."""
    found: dict[str, Any] = {"cpus": os.cpu_count()}
    if tool := shutil.which("nvidia-smi"):
        try:
            run = subprocess.run([tool, "topo", "-m"], capture_output=True, text=True, timeout=_TOPOLOGY_TIMEOUT_S, check=True)  # noqa: S603  # a fixed command, no input
            found["links"] = run.stdout.splitlines()
        except (OSError, subprocess.SubprocessError):
            found["links"] = None
    return found

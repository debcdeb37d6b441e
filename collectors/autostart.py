"""Recording a program that one cannot edit: `c3prof run -- torchrun ... train.py`.

The command's processes find a sitecustomize module on PYTHONPATH that calls install(). It waits for torch's optimizers to
be imported and takes their steps for training steps: the recording starts after the first step of the first optimizer
that steps, and each of its later steps is one. Processes that never step an optimizer (the launcher, data workers)
import nothing and write nothing.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from c3prof.collectors.profiling import profile

HOOKED = "torch.optim.optimizer"
INJECTED = "C3PROF_INJECTED"
"""The variable that names the folder with our sitecustomize."""

_SITECUSTOMIZE = "from c3prof.collectors.autostart import install\n\ninstall()\n"


def injected_environment(folder: Path, environ: dict[str, str]) -> dict[str, str]:
    """The environment in which every Python process records itself; folder gets the sitecustomize module."""
    (folder / "sitecustomize.py").write_text(_SITECUSTOMIZE, encoding="utf-8")
    here = Path(__file__).parents[1]
    package_root = here.parent if here.name == "c3prof" else here
    paths = [str(folder), *filter(None, [environ.get("PYTHONPATH")])]
    if package_root.name not in {"site-packages", "dist-packages"}:
        paths.append(str(package_root))
    return {**environ, "PYTHONPATH": os.pathsep.join(paths), INJECTED: str(folder)}


def install() -> None:
    """Runs the sitecustomize that ours hides, then waits for torch's optimizers."""
    ours = os.environ.get(INJECTED, "")
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if path != ours])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))
    sys.meta_path.insert(0, _WhenImported())


class _WhenImported:
    """Imports HOOKED as usual and then hooks it, once."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del target
        if name != HOOKED:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                module.register_optimizer_step_post_hook(_Steps())

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # this one loader only
        return spec


class _Steps:
    """The hook: counts the steps of the optimizer that stepped first."""

    def __init__(self) -> None:
        self._optimizer: int | None = None
        self._profile: profile | None = None

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        del args, kwargs
        if self._profile is None:
            self._optimizer = id(optimizer)
            self._profile = profile().start()
        elif id(optimizer) == self._optimizer:
            self._profile.step()

"""Runs of real programs, each made once a session and shared by the tests that look at it."""

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from c3prof.readers import load
from c3prof.trace import Trace
from tests.collectors.ranks import run_ranks
from tests.real.network import limited

Run = Callable[..., Path]


@pytest.fixture(scope="session")
def slow_network() -> Iterator[str | None]:
    """The name of a rate-limited network namespace, None without root."""
    with limited(f"c3prof-{os.getpid()}") as name:
        yield name


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """run(program, ranks=2, ...) gives the run folder of a program (tests/real/jobs.py), running it when it is first asked for."""
    root = tmp_path_factory.mktemp("runs")

    @cache
    def folder(program: str, ranks: int = 2, namespace: str | None = None, options: tuple[tuple[str, Any], ...] = ()) -> Path:
        from tests.real import jobs  # noqa: PLC0415  # imports torch, which the tests that ask for a run have looked for

        place = root / f"{program}-{ranks}-{len(list(root.iterdir()))}"
        codes = run_ranks(jobs.recorded, ranks, program, str(place), namespace, dict(options), timeout_s=120)
        assert codes == [0] * ranks
        return place

    return folder


@pytest.fixture(scope="session")
def trace(run: Run) -> Callable[..., Trace]:
    """The Trace of such a run."""
    return cache(lambda *args, **kwargs: load(run(*args, **kwargs)))

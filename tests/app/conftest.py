"""A small run in memory that the app's tests share: two ranks, two steps, one hostile name."""

import pytest

import c3prof
from c3prof.app.run import Run
from c3prof.app.timeline import Timeline
from c3prof.table import Report
from tests.kineto_files import annotation, document, kernel, launched, nccl, op, written

HOSTILE = "<img src=x onerror=alert(1)>\"';</script><script>window.hacked=1</script>{{7*7}}"


def events():
    """Two steps of 100 µs: a GEMM 0-40, an all_reduce 20-60, of which 20 µs are exposed; a kernel with a hostile name 60-70."""
    made = []
    for step in (0, 1):
        at = 1_000 + 100 * step
        made.append(annotation(f"ProfilerStep#{step}", at, at + 95))
        made.append(op("aten::linear", at + 1, at + 8, **{"Input Dims": [[64, 64]]}))
        made += launched(kernel("gemm_kernel", at + 10, at + 50, grid=[8, 1, 1], block=[128, 1, 1]), at + 2)
        made += launched(nccl("allreduce", at + 30, at + 70), at + 12)
        made += launched(kernel(HOSTILE, at + 75, at + 85), at + 14)
    return made


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    for rank in (0, 1):
        written(folder / f"rank{rank}.json", document(events(), rank=rank, world_size=2))
    return c3prof.load(folder)


@pytest.fixture(scope="session")
def report(trace) -> Report:
    return c3prof.analyze(trace)


@pytest.fixture(scope="session")
def timeline(trace) -> Timeline:
    return Timeline.of(trace)


@pytest.fixture(scope="session")
def run(trace, report) -> Run:
    return Run(("runs/a",)).start(lambda *_: trace, lambda *_: report).wait()

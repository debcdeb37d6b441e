"""What recording costs: CPU time of a training step with c3prof against torch.profiler alone, in one run.

    python benchmarks/overhead.py [--steps N] [--rounds N]

One rank (gloo), a small DDP model with several collectives a step, so that the cost stands out; every round runs each
mode once, in turn, and the ratio to the bare step is taken within the round: a busy machine moves both. Prints a table.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
warnings.simplefilter("ignore")
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "KINETO_LOG_LEVEL": "99"}

import torch  # noqa: E402  # the environment comes first
import torch.distributed as dist  # noqa: E402  # as above
from torch.profiler import ProfilerActivity, profile, schedule  # noqa: E402  # as above

import c3prof  # noqa: E402  # as above

LAYERS, WIDTH, BATCH, BUCKET_MB = 8, 256, 64, 0.3
WINDOW = c3prof.Window(wait=7, warmup=1, active=2, repeat=0)


def trained() -> Callable[[], None]:
    """A step of the model."""
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(
            *[torch.nn.Sequential(torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU()) for _ in range(LAYERS)]
        ),
        bucket_cap_mb=BUCKET_MB,
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        model(torch.randn(BATCH, WIDTH)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


@contextmanager
def bare() -> Iterator[Callable[[], None]]:
    yield lambda: None


@contextmanager
def ours(**options: object) -> Iterator[Callable[[], None]]:
    with tempfile.TemporaryDirectory() as folder, c3prof.profile(folder, power=False, **options) as prof:  # type: ignore[arg-type]  # options of profile
        yield prof.step


@contextmanager
def torch_profiler(*, shapes: bool, always: bool) -> Iterator[Callable[[], None]]:
    plan = None if always else schedule(wait=7, warmup=1, active=2)
    with (
        tempfile.TemporaryDirectory() as folder,
        profile(
            activities=[ProfilerActivity.CPU],
            record_shapes=shapes,
            schedule=plan,
            on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/{p.step_num}.json"),
        ) as prof,
    ):
        yield prof.step


MODES = {
    "bare": bare,
    "c3prof, hook only": lambda: ours(kineto=None),
    "c3prof, windows 2 of 10": lambda: ours(kineto=WINDOW, shapes=False),
    "c3prof, windows with shapes": lambda: ours(kineto=WINDOW),
    "torch.profiler, schedule 2 of 10, shapes": lambda: torch_profiler(shapes=True, always=False),
    "torch.profiler, every step": lambda: torch_profiler(shapes=False, always=True),
    "torch.profiler, every step, shapes": lambda: torch_profiler(shapes=True, always=True),
}


def times(mode: Callable[..., object], step: Callable[[], None], steps: int) -> tuple[float, float]:
    """CPU and wall time a step, ms: of all threads of the process, exports within the loop included."""
    with mode() as mark:  # type: ignore[attr-defined]  # each is a context manager
        step(), mark()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
            mark()
        return (time.process_time() - cpu) / steps * 1e3, (time.perf_counter() - wall) / steps * 1e3


def per_collective(calls: int = 2_000) -> tuple[float, float]:
    """Thread CPU time of one all_reduce call without and with the hook, µs (medians)."""
    tensor = torch.ones(16)

    def cost() -> float:
        samples = []
        for _ in range(calls):
            start = time.thread_time_ns()
            work = dist.all_reduce(tensor, async_op=True)
            samples.append(time.thread_time_ns() - start)
            work.wait()
        return statistics.median(samples) / 1e3

    cost()
    off = cost()
    with ours(kineto=None, flush_s=0.5):
        on = cost()
    return off, on


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--steps", type=int, default=40)
    asked.add_argument("--rounds", type=int, default=12)
    options = asked.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=0, world_size=1)
    step = trained()
    for _ in range(10):
        step()
    found = {name: [times(mode, step, options.steps) for name_, mode in MODES.items() if name_ == name] for name in MODES}
    for _ in range(options.rounds - 1):
        for name, mode in MODES.items():
            found[name].append(times(mode, step, options.steps))
    off, on = per_collective()
    print(
        f"torch {torch.__version__}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds of {options.steps} steps\n"
    )
    print("| mode | CPU a step | CPU ratio to bare (quartiles) | wall ratio |\n|---|---|---|---|")
    for name, samples in found.items():
        ratios = [cpu / base for (cpu, _), (base, _) in zip(samples, found["bare"], strict=True)]
        walls = [wall / base for (_, wall), (_, base) in zip(samples, found["bare"], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        cpu = statistics.median(cpu for cpu, _ in samples)
        print(f"| {name} | {cpu:.2f} ms | {statistics.median(ratios):.2f} ({low:.2f}–{high:.2f}) | {statistics.median(walls):.2f} |")
    print(f"\nA collective's call: {off:.1f} µs bare, {on:.1f} µs with the hook (median CPU time of the calling thread).")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

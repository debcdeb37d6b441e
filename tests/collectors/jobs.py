"""The training jobs of the tests: what each rank runs. Small DDP loops on gloo that do one thing wrong each."""

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import c3prof

STEPS = 8
# A DDP model that dies after its process group can deadlock in torch 2.13 on gloo (pytorch issue 56297): the last reference
# to the group joins gloo's threads while it holds the interpreter lock they want. So models live as long as their process.
_ALIVE: list[nn.Module] = []
Loop = Callable[[Callable[[], None]], None]


def connect(rank: int, world: int, port: int) -> None:
    """Joins the job's process group, the way a launcher would set it up."""
    warnings.simplefilter("ignore")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank))
    os.environ["KINETO_LOG_LEVEL"] = "99"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)


def ddp_step(width: int = 64, layers: int = 4, batch: int = 8) -> Callable[[], None]:
    """One training step of a small DDP model with several buckets."""
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)]), bucket_cap_mb=0.03)
    _ALIVE.append(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        model(torch.randn(batch, width)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


WINDOW = c3prof.Window(wait=1, warmup=1, active=2, repeat=0)


def training(rank: int, world: int, port: int, folder: str, at: dict[int, Any] | None = None, **options: Any) -> None:
    """A loop of STEPS steps under profile(); `at` maps a step to what happens before it."""
    connect(rank, world, port)
    step = ddp_step()
    with c3prof.profile(folder, **{"kineto": WINDOW, "flush_s": 0.1, **options}) as prof:
        for number in range(STEPS):
            if at and number in at:
                at[number]()
            step()
            prof.step()
    dist.destroy_process_group()


def raises(rank: int, world: int, port: int, folder: str) -> None:
    def wrong() -> None:
        raise ValueError("a bug of the user's")

    training(rank, world, port, folder, {3: wrong} if rank == 0 else None)


def waits_for_file(rank: int, world: int, port: int, folder: str, file: str, stall_s: float = 0.0) -> None:
    """Rank 1 stays out of step 3 until the file appears, so that rank 0 is blocked inside a collective."""

    def pause() -> None:
        while not Path(file).exists():
            time.sleep(0.05)

    training(rank, world, port, folder, {3: pause} if rank == 1 else None, stall_s=stall_s)


def runs_slowly(rank: int, world: int, port: int, folder: str) -> None:
    training(rank, world, port, folder, {number: lambda: time.sleep(0.25) for number in range(STEPS)}, kineto=None)


def completes(
    rank: int, world: int, port: int, folder: str, bad_rank: int = -1, bad_folder: str = "", options: dict[str, Any] | None = None
) -> None:
    """Trains to the end; one rank may write somewhere else."""
    training(rank, world, port, bad_folder if rank == bad_rank else folder, **(options or {}))


def one_rank_is_off(rank: int, world: int, port: int, folder: str) -> None:
    if rank == 1:
        os.environ["C3PROF"] = "0"
    training(rank, world, port, folder)


def fills_the_disk(rank: int, world: int, port: int, folder: str, least_free: str | None) -> None:
    """Trains on a disk too small for a window; least_free "0" takes the check away that would see it coming."""
    if least_free is not None:
        from c3prof.collectors import kineto  # noqa: PLC0415  # only this job changes it

        kineto.LEAST_FREE_BYTES = int(least_free)
    training(rank, world, port, folder)


def profiles_outside(rank: int, world: int, port: int, folder: str, schedule: dict[str, int] | None) -> None:
    """The user's own torch profiler around ours; counts what it got into events.txt."""
    connect(rank, world, port)
    step = ddp_step()
    got: list[int] = []
    plan = torch.profiler.schedule(**schedule) if schedule else None
    user = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], schedule=plan, on_trace_ready=lambda p: got.append(len(p.events()))
    )
    with user, c3prof.profile(folder, kineto=WINDOW, flush_s=0.1) as prof:
        for _ in range(STEPS):
            step()
            prof.step()
            user.step()
    Path(folder, f"events{rank}.txt").write_text(" ".join(map(str, got)))
    dist.destroy_process_group()


def profiles_inside(rank: int, world: int, port: int, folder: str) -> None:
    """The user's own torch profiler opened within a step that our window records."""
    connect(rank, world, port)
    step = ddp_step()
    got: list[int] = []
    with c3prof.profile(folder, kineto=WINDOW, flush_s=0.1) as prof:
        for number in range(STEPS):
            if number == 3:
                with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as user:
                    step()
                got.append(len(user.events()))
            else:
                step()
            prof.step()
    Path(folder, f"events{rank}.txt").write_text(" ".join(map(str, got)))
    dist.destroy_process_group()


class Numbers(torch.utils.data.Dataset[torch.Tensor]):  # type: ignore[misc]  # torch is Any to the type checker
    """A data set whose items come from worker processes."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((64,), float(index))


def loads_data(rank: int, world: int, port: int, folder: str, method: str) -> None:
    """A loader with worker processes that are ended while training goes on."""
    connect(rank, world, port)
    step = ddp_step()
    with c3prof.profile(folder, kineto=None, flush_s=0.05) as prof:
        for _ in range(2):
            loader = torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=1, multiprocessing_context=method)
            for number, _batch in enumerate(loader):
                step()
                prof.step()
                if number == 3:
                    break
            iterator = loader._iterator
            del loader, iterator
    dist.destroy_process_group()


def forks(rank: int, world: int, port: int, folder: str) -> None:
    """A child by fork in the middle of the loop that takes steps and is ended by SIGTERM."""
    connect(rank, world, port)
    step = ddp_step()
    with c3prof.profile(folder, kineto=None, flush_s=0.05) as prof:
        for number in range(STEPS):
            step()
            if number == 3:
                child = os.fork()
                if child == 0:
                    prof.step()
                    while True:
                        time.sleep(1)
                time.sleep(0.3)
                os.kill(child, 15)
                _, status = os.waitpid(child, 0)
                Path(folder, f"child{rank}.txt").write_text(str(os.waitstatus_to_exitcode(status)))
            prof.step()
    dist.destroy_process_group()


def waits_for_a_trigger(rank: int, world: int, port: int, folder: str, options: dict[str, Any]) -> None:
    """Trains until a window that was asked for has been recorded (at most 30 s); the first rank asks after some steps."""
    connect(rank, world, port)
    step = ddp_step()
    until = time.monotonic() + 30
    with c3prof.profile(folder, kineto=None, trigger=True, flush_s=0.05, **options) as prof:
        number = 0
        wanted = torch.zeros(1)
        while wanted.item() < world and time.monotonic() < until:
            if number == 10 and rank == 0:
                Path(folder, "TRIGGER").touch()
            step()
            prof.step()
            time.sleep(0.01)
            number += 1
            recorded = any(Path(folder, "ranks", f"rank{rank:05d}").glob("trace-w*.json.gz"))
            wanted = torch.tensor([1.0 if recorded or rank not in {0, 1} else 0.0])
            dist.all_reduce(wanted)  # all ranks leave after the same step
    dist.destroy_process_group()


def internals_moved(rank: int, world: int, port: int, folder: str) -> None:
    """A torch whose dispatcher changed: the hook stays off, the rest records."""
    from c3prof.collectors import comm  # noqa: PLC0415  # only this job changes it
    from c3prof.collectors.internals import Moved  # noqa: PLC0415  # as above

    def moved() -> Any:
        raise Moved("torch 9.9 has no Work.unbox")

    comm.dispatcher = moved  # type: ignore[attr-defined]  # the name in that module is what is replaced
    training(rank, world, port, folder)


def marks_and_forces(rank: int, world: int, port: int, folder: str) -> None:
    """Labels, and the switch of calibration as context managers, without a schedule."""
    connect(rank, world, port)
    step = ddp_step()
    with c3prof.profile(folder, kineto=None) as prof:
        step()
        prof.step()
        prof.mark("eval")
        with c3prof.serialize():
            step()
            prof.step()
        with c3prof.concurrent():
            step()
            prof.step()
        prof.mark("")
        step()
        prof.step()
    dist.destroy_process_group()


def decorated(rank: int, world: int, port: int, folder: str) -> None:
    """profile() as a decorator and by hand, one after the other, and one inside the other."""
    connect(rank, world, port)
    step = ddp_step()

    @c3prof.profile(f"{folder}/decorated", kineto=None)
    def train() -> None:
        step()

    train()
    prof = c3prof.profile(f"{folder}/by-hand", kineto=None).start()
    step()
    prof.step()
    with c3prof.profile(f"{folder}/inside", kineto=None) as inner:
        inner.step()
    prof.stop()
    dist.destroy_process_group()

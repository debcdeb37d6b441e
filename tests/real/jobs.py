"""Real distributed programs of a few steps, each recorded by profile(): what a rank runs. Models are small, ops are real."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import c3prof
from tests.collectors.jobs import connect
from tests.real.network import join

WIDTH, LAYERS, BATCH = 384, 4, 192
STEPS = 6
WINDOW = c3prof.Window(wait=2, warmup=1, active=2, repeat=1)

Step = Callable[[], object]
_ALIVE: list[Step] = []  # models outlive their groups, as in tests/collectors/jobs.py


class Mlp(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """Linear layers with relu between them."""

    def __init__(self, width: int = WIDTH, layers: int = LAYERS) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def _trained(model: nn.Module) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        model(torch.randn(BATCH, WIDTH)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def ddp(rank: int, world: int) -> Step:
    del rank, world
    return _trained(nn.parallel.DistributedDataParallel(Mlp(), bucket_cap_mb=0.5))


def fsdp2(rank: int, world: int, *, asynchronous: bool = False) -> Step:
    del rank

    mesh, model = init_device_mesh("cpu", (world,)), Mlp()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    sharded: Any = fully_shard(model, mesh=mesh)
    if asynchronous:
        sharded._set_unshard_async_op(True)
    return _trained(sharded)


def fsdp2_async(rank: int, world: int) -> Step:
    return fsdp2(rank, world, asynchronous=True)


def tensor_parallel(rank: int, world: int) -> Step:
    del rank

    mesh = init_device_mesh("cpu", (world,))
    blocks = [nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(2)]
    for block in blocks:
        parallelize_module(block, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return _trained(nn.Sequential(*blocks))


def pipeline(rank: int, world: int) -> Step:

    module = Mlp()
    stage = PipelineStage(module, rank, world, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda out, target: (out - target).square().mean())

    def step() -> None:
        if rank == 0:
            schedule.step(torch.randn(BATCH, WIDTH))
        elif rank == world - 1:
            schedule.step(target=torch.zeros(BATCH, WIDTH))
        else:
            schedule.step()
        module.zero_grad()

    return step


COUNT = 1 << 16
"""Elements that each rank has in every_collective."""


def expected(world: int) -> list[tuple[str, int, int]]:
    """Kind, bytes in and bytes out of what one step of every_collective sends, in order: float32, the last one bfloat16."""
    whole, part = 4 * COUNT, 4 * COUNT // world
    return [
        ("all_to_all", whole, whole),
        ("all_gather", part, whole),
        ("all_gather", part, whole),
        ("broadcast", whole, whole),
        ("reduce_scatter", whole, part),
        ("reduce", whole, whole),
        ("all_reduce", whole // 2, whole // 2),
    ]


def every_collective(rank: int, world: int) -> Step:
    del rank

    def step() -> None:
        x, y = torch.randn(COUNT), torch.empty(COUNT)
        work = dist.all_to_all_single(y, x, async_op=True)
        a = torch.randn(256, 256)
        for _ in range(10):
            a = a @ a * 0.01
        work.wait()
        dist.all_gather([torch.empty(COUNT // world) for _ in range(world)], x[: COUNT // world])
        dist.all_gather_into_tensor(y, x[: COUNT // world])
        dist.broadcast(x, 0)
        dist.reduce_scatter_tensor(torch.empty(COUNT // world), x)
        dist.reduce(x, 0)
        dist.all_reduce(x.bfloat16())

    return step


def two_groups(rank: int, world: int) -> Step:
    """All ranks, and pairs of neighbours, with different sizes in flight at once; then a ring of sends."""
    pairs = [dist.new_group([first, first + 1]) for first in range(0, world, 2)]
    mine = pairs[rank // 2]

    def step() -> None:
        works = [
            dist.all_reduce(torch.ones(1000 * (1 + number)), async_op=True, group=group) for number, group in enumerate([None, mine] * 3)
        ]
        for work in works:
            work.wait()
        ring = [
            dist.P2POp(dist.isend, torch.ones(500), (rank + 1) % world),
            dist.P2POp(dist.irecv, torch.ones(500), (rank - 1) % world),
        ]
        for work in dist.batch_isend_irecv(ring):
            work.wait()
        dist.barrier()

    return step


def compiled(rank: int, world: int) -> Step:
    """A graph that inductor compiles, functional collective and its wait inside."""
    del rank, world

    group = dist.group.WORLD
    assert group is not None

    @torch.compile(fullgraph=True)  # type: ignore[untyped-decorator]  # as above
    def body(x: torch.Tensor) -> torch.Tensor:
        return functional.all_reduce(x * 2, "sum", group) + 1

    return lambda: body(torch.ones(128, 128))


BUILDERS = {
    "ddp": ddp,
    "fsdp2": fsdp2,
    "fsdp2_async": fsdp2_async,
    "tensor_parallel": tensor_parallel,
    "pipeline": pipeline,
    "every_collective": every_collective,
    "two_groups": two_groups,
    "compiled": compiled,
}


def recorded(rank: int, world: int, port: int, builder: str, folder: str, namespace: str | None, options: dict[str, Any]) -> None:
    """Runs one of BUILDERS for some steps under profile()."""
    if namespace:
        join(namespace)
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": str(Path(folder).parent / "inductor"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    connect(rank, world, port)
    steps = options.pop("steps", STEPS)
    step = BUILDERS[builder](rank, world)
    _ALIVE.append(step)
    step()  # groups connect, graphs compile
    with c3prof.profile(folder, **{"kineto": WINDOW, **options}) as prof:
        for _ in range(steps):
            step()
            prof.step()
    dist.destroy_process_group()

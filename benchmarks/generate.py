"""A large Kineto trace of one rank, as torch 2.x writes it: what speed is measured on.

    python benchmarks/generate.py out.json.gz --events 1000000

The mix follows real DDP traces: a step launches kernels from operators with shapes, a backward thread, bucketed
all_reduces on a side stream with collective arguments, copies, runtime calls and flow events; about 240 bytes an event.
"""

import argparse
import gzip
import io
import random
from collections.abc import Iterator
from pathlib import Path

_OPS = ("aten::linear", "aten::mm", "aten::addmm", "aten::layer_norm", "aten::gelu", "aten::mul", "aten::add_", "aten::_softmax")
_KERNELS = (
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4::Params)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, ...)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)",
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(...)> >(int, ...)",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*, float const*, int, int, int)",
)
_STEP_OPS = 2000
_ORIGIN = 4458676000000.0


def events(count: int, seed: int = 0) -> Iterator[str]:
    """The events as pretty-printed JSON objects, about `count` of them, in the order Kineto writes them."""
    rng = random.Random(seed)
    written, step, clock, correlation, external = 0, 0, 1000.0, 1, 1
    while written < count:
        cpu, gpu, comm_free, start = clock, clock + 30.0, clock + 30.0, clock
        block: list[str] = []
        for i in range(_STEP_OPS):
            thread = 101 if i >= _STEP_OPS // 2 else 100
            dims = f"[[{64 << (i % 3)}, 1024], [1024, {1024 << (i % 2)}]]"
            length = rng.uniform(12.0, 20.0)
            block.append(_op(_OPS[i % 8], thread, cpu, length, external, dims))
            block.append(_op(_OPS[(i + 3) % 8], thread, cpu + 1, length - 3, external + 1, dims))
            block.append(_launch(thread, cpu + 3.0, 5.25, correlation, external + 1))
            gpu = max(gpu, cpu + 9.0)
            dur = rng.uniform(4.0, 16.0)
            block.append(_kernel(_KERNELS[i % 6], gpu, dur, 7, correlation, external + 1, (i % 7 + 1) * 32, ""))
            block += _flow(thread, cpu + 3.0, gpu, 7, correlation)
            gpu += dur + 0.5
            if i % 100 == 99:
                comm_free, extra = _all_reduce(cpu, max(comm_free, gpu), rng.uniform(150.0, 400.0), correlation + 1, external + 2)
                block += extra
                correlation, external = correlation + 1, external + 1
            cpu += length + 1.0
            correlation, external = correlation + 1, external + 2
        clock = max(gpu, comm_free, cpu) + 50.0
        block.append(_annotation(f"ProfilerStep#{step}", 100, start, cpu - start))
        yield from block
        written, step = written + len(block), step + 1


def _op(name: str, thread: int, start: float, dur: float, external: int, dims: str) -> str:
    args = f'"External id": {external},"Record function id": 0, "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Dims": {dims}, "Ev Idx": {external}'
    return _x("cpu_op", name, 4000, thread, start, dur, args)


def _launch(thread: int, start: float, dur: float, correlation: int, external: int) -> str:
    return _x(
        "cuda_runtime",
        "cudaLaunchKernel",
        4000,
        thread,
        start,
        dur,
        f'"External id": {external}, "cbid": 211, "correlation": {correlation}',
    )


def _kernel(name: str, start: float, dur: float, stream: int, correlation: int, external: int, grid: int, more: str) -> str:
    args = (
        f'"External id": {external}, "queued": 0, "device": 0, "context": 1,\n      "stream": {stream}, "correlation": {correlation},\n'
        f'      "registers per thread": 96, "shared memory": 49152, "blocks per SM": 1.2, "warps per SM": 9.6,\n'
        f'      "grid": [{grid}, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 25{more}'
    )
    return _x("kernel", name, 0, stream, start, dur, args)


def _all_reduce(cpu: float, ready: float, dur: float, correlation: int, external: int) -> tuple[float, list[str]]:
    arguments = (
        ',\n      "Collective name": "allreduce", "In msg nelems": 6553600, "Out msg nelems": 6553600, "Group size": 8, "dtype": "BFloat16",'
        ' "In split size": "[]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg",'
        ' "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"'
    )
    comms = arguments.lstrip(",\n ") + f', "External id": {external}, "Ev Idx": {external}'
    return ready + dur, [
        _x("cpu_op", "record_param_comms", 4000, 101, cpu + 8.5, 1.4, comms),
        _launch(101, cpu + 8.7, 0.9, correlation, external),
        _kernel(
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            ready,
            dur,
            20,
            correlation,
            external,
            24,
            arguments,
        ),
    ]


def _annotation(name: str, thread: int, start: float, dur: float) -> str:
    return _x("user_annotation", name, 4000, thread, start, dur, '"External id": 1, "Record function id": 0, "Ev Idx": 1')


def _flow(thread: int, start: float, end: float, stream: int, correlation: int) -> list[str]:
    return [
        f'  {{\n    "ph": "s", "id": {correlation}, "pid": 4000, "tid": {thread}, "ts": {start + _ORIGIN:.3f},\n    "cat": "ac2g", "name": "ac2g"\n  }}',
        f'  {{\n    "ph": "f", "id": {correlation}, "pid": 0, "tid": {stream}, "ts": {end + _ORIGIN:.3f},\n    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  }}',
    ]


def _x(cat: str, name: str, pid: int, tid: int, start: float, dur: float, args: str) -> str:
    head = f'"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid}'
    return f'  {{\n    {head},\n    "ts": {start + _ORIGIN:.3f}, "dur": {dur:.3f},\n    "args": {{\n      {args}\n    }}\n  }}'


def write(path: Path, count: int, rank: int = 0, world_size: int = 8) -> None:
    """Writes the trace; gzip level 1, since only reading is measured."""
    with (
        gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb") as raw,
        io.TextIOWrapper(raw, encoding="utf-8") as out,
    ):
        out.write('{\n  "schemaVersion": 1,\n  "deviceProperties": [{"id": 0, "name": "NVIDIA A100", "numSms": 108}],\n')
        out.write(f'  "distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {world_size}}},\n')
        out.write('  "baseTimeNanoseconds": 1711964646000000000,\n  "traceEvents": [\n')
        for i, event in enumerate(events(count, seed=rank)):
            out.write(event if i == 0 else ",\n" + event)
        out.write("\n  ]\n}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rank", type=int, default=0)
    arguments = parser.parse_args()
    write(arguments.path, arguments.events, arguments.rank)

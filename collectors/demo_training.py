"""The training that `c3prof demo` records: a small transformer under DDP on gloo, one process a rank.

Run by python -m c3prof.collectors.demo_training DIR STEPS with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set. It is
also the shortest example of how to use profile().
"""

import sys
from importlib import import_module
from typing import Any

from c3prof.collectors.profiling import profile

LAYERS, WIDTH, HEADS, TOKENS, BATCH = 4, 256, 4, 64, 8
BUCKET_MB = 2
CALIBRATION_STEPS = 3


def main(folder: str, steps: int) -> None:
    """Joins the job, trains, leaves the job. In this order: a DDP model that outlives its group can hang torch on gloo."""
    torch = import_module("torch")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    train(torch, folder, steps)
    torch.distributed.destroy_process_group()


def train(torch: Any, folder: str, steps: int) -> None:
    """Trains and records `steps` steps on this rank."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(_transformer(torch), bucket_cap_mb=BUCKET_MB)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with profile(folder, calibrate=CALIBRATION_STEPS) as prof:
        for _ in range(steps):
            tokens = torch.randn(BATCH, TOKENS, WIDTH)
            loss = (model(tokens) - tokens).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()


def _transformer(torch: Any) -> Any:
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

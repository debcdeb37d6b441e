"""A training script that knows nothing of c3prof: what `c3prof run -- torchrun script.py` records."""

import os
import sys
import warnings

import torch
import torch.distributed as dist

warnings.simplefilter("ignore")
torch.set_num_threads(1)
# A store of this life's own: torch's restart on gloo can hand out the addresses of the processes before it.
life, world = os.environ["TORCHELASTIC_RESTART_COUNT"], int(os.environ["WORLD_SIZE"])
dist.init_process_group(
    "gloo", store=dist.FileStore(f"{os.environ['STORE']}-{life}", world), rank=int(os.environ["RANK"]), world_size=world
)
if "fail-first" in sys.argv and life == "0":
    steps, fails = 3, True
else:
    steps, fails = 5, False
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer, other = torch.optim.SGD(model.parameters(), lr=0.01), torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
for _ in range(steps):
    model(torch.randn(8, 64)).sum().backward()
    optimizer.step()
    other.step()
    optimizer.zero_grad()
if fails:
    raise ValueError("the first life fails")
dist.destroy_process_group()

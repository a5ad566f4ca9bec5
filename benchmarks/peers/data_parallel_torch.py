"""The same steps by PyTorch's DistributedDataParallel over gloo: `python -m benchmarks.peers.data_parallel_torch
WORKLOAD RANK SIZE PORT`, once for each rank; SIZE 1 is a step without it.

Lives here: the step of one process.  Not here: model, loss and optimizers (training_torch.py, models_torch.py).
"""

from __future__ import annotations

import os
import sys
import time

from benchmarks.peers import training_torch
from benchmarks.peers.models_torch import MODELS
from benchmarks.workloads import WORKLOADS

STEPS, WARM = 40, 3


def seconds(name: str, rank: int, size: int, port: str) -> list[float]:
    """Return the seconds of steps, ascending."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = WORKLOADS[name].sizes
    x, y = training_torch.inputs_of(torch, name, sizes)
    model, loss_function = MODELS[name](torch, sizes), training_torch.loss_of(torch, name)
    model.train()
    optimizers, network = training_torch.optimizers_of(torch, name, model), model
    if size > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        dist.init_process_group("gloo", rank=rank, world_size=size)
        network = torch.nn.parallel.DistributedDataParallel(model)
    times = []
    for _ in range(WARM + STEPS):
        if size > 1:
            dist.barrier()
        start = time.perf_counter()
        loss = loss_function(network(*x), y)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        loss.item()
        times.append(time.perf_counter() - start)
    return sorted(times[WARM:])


if __name__ == "__main__":
    workload, rank, size, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    times = seconds(workload, rank, size, port)
    print(
        f"{workload} torch {size} rank {rank}: "
        f"least {times[0] * 1e3:.2f} ms, median {times[len(times) // 2] * 1e3:.2f} ms",
        flush=True,
    )
    os._exit(0)  # without waiting for the other process

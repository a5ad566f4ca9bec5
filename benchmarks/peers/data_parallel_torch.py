"""The same steps by PyTorch's DistributedDataParallel over gloo: a rank, which benchmarks/data_parallel.py starts by
`python -m benchmarks.peers.data_parallel_torch WORKLOAD RANK PORT ADDRESS`.

Lives here: the steps of a process.  Not here: model, loss and optimizers (training_torch.py, models_torch.py), whose
turn it is (../turns.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from benchmarks import turns
from benchmarks.peers import training_torch
from benchmarks.peers.models_torch import MODELS
from benchmarks.workloads import WORKLOADS


def step_of(torch: Any, name: str, seed: int, distributed: bool) -> Callable[[], object]:
    """Return a call of a step of a new model on the batch of a seed."""
    torch.manual_seed(0)
    sizes = WORKLOADS[name].sizes
    x, y = training_torch.inputs_of(torch, name, sizes, seed)
    model, loss_function = MODELS[name](torch, sizes), training_torch.loss_of(torch, name)
    model.train()
    optimizers = training_torch.optimizers_of(torch, name, model)
    network = torch.nn.parallel.DistributedDataParallel(model) if distributed else model

    def step() -> object:
        loss = loss_function(network(*x), y)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.item()

    return step


def main(name: str, rank: int, port: str, address: str) -> None:
    """Run the turns of this process."""
    import torch
    import torch.distributed as dist

    turns.take_core(rank)
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    turns.serve(address, rank, step_of(torch, name, 0, False), step_of(torch, name, rank, True), dist.barrier)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
    os._exit(0)  # without waiting for the other process

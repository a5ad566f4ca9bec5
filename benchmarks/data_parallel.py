"""Data-parallel steps of two processes against one: `mpiexec -n 2 python -m benchmarks.data_parallel WORKLOAD [MODE]`.

Lives here: our side; MODE is "replicated" (the default), "sharded" (the table of DLRM by rows), "overlap", or
"alone", one process without a strategy. Prints the least and the median seconds of a step, by rank.
Not here: PyTorch's (peers/data_parallel_torch.py), what larger clusters would do (scale.py).

Each process has a batch of the workload's own size, and one thread.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import types
from typing import Any

from benchmarks import measure, training_models
from benchmarks.workloads import WORKLOADS, batch_of

os.environ.update(measure.QUIET)  # one thread for each process

STEPS, WARM = 40, 3


def names_of(ow: Any, sharded: bool) -> Any:
    """Return the names that models are built of; with tables by rows if `sharded`."""
    if not sharded:
        return ow
    layers = types.SimpleNamespace(
        **{n: getattr(ow.keras.layers, n) for n in ("Dense", "Concatenate", "Reshape", "Layer")}
    )
    layers.Embedding = ow.distribute.ShardedEmbedding
    keras = types.SimpleNamespace(
        layers=layers, **{n: getattr(ow.keras, n) for n in ("Model", "Input", "losses", "optimizers")}
    )
    return types.SimpleNamespace(
        keras=keras, **{n: getattr(ow, n) for n in ("matmul", "gather", "reshape", "GradientTape")}
    )


def seconds(name: str, mode: str) -> tuple[int, list[float]]:
    """Return this process's rank and the seconds of its steps."""
    import opwright as ow

    communicator = ow.distribute.LocalCommunicator() if mode == "alone" else ow.distribute.MPICommunicator()
    sizes = WORKLOADS[name].sizes
    inputs, targets = batch_of(name, sizes, seed=communicator.rank)
    x = [ow.constant(a) for a in inputs]
    strategy = ow.distribute.MultiWorker(communicator, overlap=mode == "overlap")
    with contextlib.nullcontext() if mode == "alone" else strategy:
        tf = names_of(ow, mode == "sharded")
        step = training_models.step_of(tf, name, training_models.MODELS[name](tf, sizes))
        run = ow.function(step, jit_compile=True)
        arguments = x[0] if len(x) == 1 else x, ow.constant(targets)
        times = []
        for _ in range(WARM + STEPS):
            communicator.barrier()
            start = time.perf_counter()
            run(*arguments).numpy()
            times.append(time.perf_counter() - start)
    return communicator.rank, sorted(times[WARM:])


if __name__ == "__main__":
    workload, how = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "replicated"
    rank, times = seconds(workload, how)
    print(f"{workload} {how} rank {rank}: least {times[0] * 1e3:.2f} ms, median {times[len(times) // 2] * 1e3:.2f} ms")

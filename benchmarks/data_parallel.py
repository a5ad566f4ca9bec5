"""Data-parallel steps of two processes against one, and PyTorch's: `python -m benchmarks.data_parallel [WORKLOAD...]`.

Lives here: the driver, and a rank of ours. WORKLOAD is `resnet18`, `dlrm` (the table on both), `dlrm:sharded` (by
rows); by default all three. OPWRIGHT_PEER_TORCH is a Python for DistributedDataParallel over gloo, if there is one.
Not here: PyTorch's rank (peers/data_parallel_torch.py), what turns they take (turns.py), larger clusters (scale.py).

Each process has a core, one thread and a batch of the workload's own size. Rounds of one process without a strategy,
the other waiting, and of both take turns, of ours and PyTorch's: what else the machine does meets all of them. A step
of both is that of the slower process. Throughput is twice the time of one over that of both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure, training_models, turns
from benchmarks.workloads import WORKLOADS, batch_of

os.environ.update(measure.QUIET)  # one thread for each process

ROUNDS, ROUND_SECONDS = 8, 0.25
"""Rounds of a kind, and about how long each of them takes."""
ALL = ("resnet18", "dlrm", "dlrm:sharded")


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


def step_of(ow: Any, name: str, seed: int, sharded: bool = False) -> Callable[[], object]:
    """Return a call of a step of a new model on the batch of a seed."""
    sizes = WORKLOADS[name].sizes
    inputs, targets = batch_of(name, sizes, seed=seed)
    x = [ow.constant(a) for a in inputs]
    tf = names_of(ow, sharded)
    run = ow.function(training_models.step_of(tf, name, training_models.MODELS[name](tf, sizes)), jit_compile=True)
    arguments = x[0] if len(x) == 1 else x, ow.constant(targets)
    return lambda: run(*arguments).numpy()


def rank(name: str, mode: str, address: str) -> None:
    """Run the turns of this process."""
    import opwright as ow

    communicator = ow.distribute.MPICommunicator()
    turns.take_core(communicator.rank)
    alone = step_of(ow, name, 0)
    alone()  # is traced here, without the strategy
    with ow.distribute.MultiWorker(communicator):
        both = step_of(ow, name, communicator.rank, mode == "sharded")
        both()
    turns.serve(address, communicator.rank, alone, both, communicator.barrier)


def started(name: str, mode: str, folder: Path) -> dict[str, turns.Ranks]:
    """Start the processes of a workload, ours and PyTorch's if there is one."""
    here, peer = str(folder / "ours"), os.environ.get("OPWRIGHT_PEER_TORCH")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    command = [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", "2", sys.executable, "-m", __spec__.name]
    ranks = {"opwright": turns.Ranks(here, [[*command, "--rank", name, mode, here]])}
    if peer and not mode:
        there, port = str(folder / "torch"), str(turns.free_port())
        module = "benchmarks.peers.data_parallel_torch"
        ranks["torch"] = turns.Ranks(there, [[peer, "-m", module, name, r, port, there] for r in ("0", "1")])
    return ranks


def report(workload: str) -> list[str]:
    """Return the lines of a workload, one for each framework."""
    name, _, mode = workload.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        frameworks = started(name, mode, Path(folder))
        try:
            figures = turns.measured(frameworks, ROUNDS, ROUND_SECONDS)
        finally:
            for ranks in frameworks.values():
                ranks.close()
    return [f"{workload:14} {framework:9} {figure}" for framework, figure in figures.items()]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        rank(*sys.argv[2:])
    else:
        for workload in sys.argv[1:] or ALL:
            try:
                print("\n".join(report(workload)), flush=True)
            except (EOFError, subprocess.SubprocessError) as error:
                sys.exit(f"{workload}: a process ended: {error}")

"""Our side of the rows on training: `python -m benchmarks.training ROW...`.

Lives here: a step of each workload as machine code (`train_mlp`), as a function that leaves jit_compile open
(`train_mlp_function`), eagerly (`train_mlp_eager`) and in `fit` (`train_mlp_fit`), on two threads relative to one
(`train_mlp_threads`), its peak memory and the time until it is at full speed; what two threads can gain
(`two_processes`).
Not here: the models (training_models.py), the peers' steps (peers/training_*.py).
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

from benchmarks import duels, measure, training_models
from benchmarks.workloads import WORKLOADS, Sizes, batch_of

HOT_CALLS = 3
"""Calls before a function is compiled, where the speed that it reaches is what is measured, and not how soon."""
EPOCH = 10
"""Batches of an epoch of `fit`."""


def step(name: str, sizes: Sizes, mode: str) -> Callable[[], object]:
    """Return a call of one step. mode: "jit", "function" or "eager"."""
    import opwright as ow

    inputs, targets = batch_of(name, sizes)
    x = [ow.constant(a) for a in inputs]
    x, y = x[0] if len(x) == 1 else x, ow.constant(targets)
    run = training_models.step_of(ow, name, training_models.MODELS[name](ow, sizes))
    if mode != "eager":
        run = ow.function(run, jit_compile=True if mode == "jit" else None)
    return lambda: run(x, y).numpy()


def fit(name: str, sizes: Sizes) -> Callable[[], object]:
    """Return a call of `fit` over an epoch."""
    import numpy as np

    import opwright as ow

    inputs, targets = batch_of(name, sizes)
    x = [np.concatenate([a] * EPOCH) for a in inputs]
    model = training_models.MODELS[name](ow, sizes)
    model.compile(training_models.optimizer_of(ow, name), training_models.loss_of(ow, name), jit_compile="auto")
    y = np.concatenate([targets] * EPOCH)
    return lambda: model.fit(x[0] if len(x) == 1 else x, y, batch_size=sizes["batch"], verbose=0)


def _hot(run: Callable[[], object], calls: int) -> None:
    import opwright as ow

    with ow.flags(hot_calls=HOT_CALLS):
        for _ in range(calls):
            run()


def seconds(name: str, mode: str) -> float:
    """Seconds of a step at full speed."""
    sizes = WORKLOADS[name].sizes
    run = fit(name, sizes) if mode == "fit" else step(name, sizes, mode)
    _hot(run, 1 if mode == "fit" else HOT_CALLS + 2)
    return measure.median_seconds(run) / (EPOCH if mode == "fit" else 1)


def threads(name: str) -> float:
    """Speed of a step on two threads relative to one, which take turns."""
    import opwright as ow

    measure.use_all_cores()
    runs = []
    for number in (1, 2):
        with ow.flags(num_threads=number):
            runs.append(step(name, WORKLOADS[name].sizes, "jit"))
            _hot(runs[-1], HOT_CALLS + 2)
    one, two = duels.in_turn(runs, 2 * duels.BUDGET_S)
    return one / two


BURST = 200_000
"""Turns of the processor's chains of multiplications and additions, some 80 ms."""


def burst() -> Callable[[], object]:
    """Return a call that computes in registers alone."""
    from opwright.compiler.kernels.peak_rates import chains_f32

    return functools.partial(chains_f32().call, BURST)


def serve_bursts(connection: Connection) -> None:
    """Compute once for each true message, and answer."""
    run = burst()
    while connection.recv():
        run()
        connection.send(None)


def two_processes() -> float:
    """Speed of two independent processes relative to one, which take turns: what the second processor is worth now.

    Rows of two threads are read next to it: on a virtual machine it may be another's for a while.
    """
    measure.use_all_cores()
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve_bursts, args=(there,), daemon=True)
    process.start()
    run = burst()

    def both() -> None:
        here.send(True)
        run()
        here.recv()

    try:
        alone, together = duels.in_turn([run, both], 2 * duels.BUDGET_S)
    finally:
        here.send(False)
        process.join()
    return 2 * alone / together


def memory(name: str, mode: str) -> float:
    """Peak memory of a step: weights, optimizer and code among it."""

    def make(sizes: Sizes) -> Callable[[], object]:
        run = fit(name, sizes) if mode == "fit" else step(name, sizes, mode)
        return lambda: _hot(run, 1 if mode == "fit" else HOT_CALLS + 2)

    return measure.whole_peak_bytes(lambda: make(WORKLOADS[name].reduced), lambda: make(WORKLOADS[name].sizes))


def ready(name: str, mode: str) -> float:
    """Seconds from the first call to full speed, with an empty cache."""
    import tempfile

    import opwright as ow

    with tempfile.TemporaryDirectory() as folder, ow.flags(cache_dir=folder):
        return measure.seconds_until_steady(step(name, WORKLOADS[name].sizes, mode))


def runs(name: str) -> dict[str, measure.Prepare]:
    return {
        f"train_{name}": lambda: seconds(name, "jit"),
        **{f"train_{name}_{mode}": lambda mode=mode: seconds(name, mode) for mode in ("function", "fit", "eager")},
        f"train_{name}_threads": lambda: threads(name),
        f"train_{name}_memory": lambda: memory(name, "jit"),
        **{f"train_{name}_{mode}_memory": lambda mode=mode: memory(name, mode) for mode in ("function", "fit")},
        f"train_{name}_ready": lambda: ready(name, "jit"),
        f"train_{name}_function_ready": lambda: ready(name, "function"),
    }


RUNS: dict[str, measure.Prepare] = {
    "two_processes": two_processes,
    **{row: run for name in WORKLOADS for row, run in runs(name).items()},
}

if __name__ == "__main__":
    measure.main(RUNS)

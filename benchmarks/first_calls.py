"""The first calls of functions that leave jit_compile open, next to those of the same functions uncompiled.

    python -m benchmarks.first_calls [--cores N] [--seconds S] [FUNCTION...]

Lives here: functions as users write them, small and large, `later_at` (how far the calls of one are behind the other).
Not here: speed at the end (training.py, ours.py), the time until it is reached (`train_*_ready`).

Each run is a process of its own with an empty cache of machine code. Compiled and uncompiled runs take turns; of each
call, the least time of all runs counts, so that what another process took from one of them is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

Call = Callable[[], object]
SECONDS, RUNS = 2.0, 3
MOST_CALLS = 20_000
"""Calls of a run, at most."""


def _dense(ow: Any, np: Any, rows: int, *widths: int) -> tuple[Any, list[tuple[Any, Any]]]:
    rng = np.random.default_rng(0)
    x = ow.constant(rng.standard_normal((rows, widths[0])).astype(np.float32))
    layers = [
        (ow.Variable(rng.standard_normal((m, n)).astype(np.float32) * 0.1), ow.Variable(np.zeros(n, np.float32)))
        for m, n in pairwise(widths)
    ]
    return x, layers


def layer(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return tanh(x w + b) on 4 x 4."""
    x, [(w, b)] = _dense(ow, np, 4, 4, 4)
    return lambda x: ow.tanh(ow.matmul(x, w) + b), [x]


def mlp(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return an inference of 784-512-512-10 on 32 rows."""
    x, layers = _dense(ow, np, 32, 784, 512, 512, 10)

    def run(x: Any) -> Any:
        for w, b in layers:
            x = ow.nn.relu(ow.matmul(x, w) + b)
        return x

    return run, [x]


def product(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return a product of 1024 x 1024 matrices."""
    x, [(w, _)] = _dense(ow, np, 1024, 1024, 1024)
    return lambda x: ow.matmul(x, w), [x]


def chain(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return eight element-wise operators on a million floats."""
    x = ow.constant(np.linspace(-3, 3, 1 << 20).astype(np.float32))
    return lambda x: ow.tanh(x * 0.5 + 1.0) * ow.exp(-x * x) + ow.sin(x), [x]


def statistics(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return columns standardized by their mean and variance, and their correlations."""
    x = ow.constant(np.random.default_rng(0).standard_normal((1000, 20)).astype(np.float32))

    def run(x: Any) -> Any:
        z = (x - ow.reduce_mean(x, 0)) / ow.math.reduce_std(x, 0)
        return ow.matmul(z, z, transpose_a=True) / 1000.0

    return run, [x]


def attention(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return the attention of 8 heads over 128 steps."""
    rng = np.random.default_rng(0)
    q, k, v = (ow.constant(rng.standard_normal((4, 8, 128, 32)).astype(np.float32)) for _ in range(3))
    return lambda q, k, v: ow.matmul(ow.nn.softmax(ow.matmul(q, k, transpose_b=True) / 5.66), v), [q, k, v]


def collatz(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return a loop on single numbers, of some hundred iterations."""

    def run(n: Any) -> Any:
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    return run, [ow.constant(97)]


def power_iteration(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return a loop over tensors: 20 products of a matrix and a vector, each normalized."""
    x, [(w, _)] = _dense(ow, np, 1, 64, 64)

    def run(x: Any) -> Any:
        for _ in ow.range(20):
            x = ow.matmul(x, w)
            x = x / ow.norm(x)
        return x

    return run, [x]


def newton(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return the gradient of a small formula, by tape in the function."""
    x = ow.constant(np.linspace(1, 2, 8))

    def run(x: Any) -> Any:
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.reduce_sum(x**3 - 2.0 * x + ow.sin(x))
        return x - 0.1 * tape.gradient(y, x)

    return run, [x]


def _training(ow: Any, np: Any, name: str) -> tuple[Callable[..., Any], list[Any]]:
    from benchmarks import training_models
    from benchmarks.workloads import WORKLOADS, batch_of

    sizes = WORKLOADS[name].sizes
    inputs, targets = batch_of(name, sizes)
    step = training_models.step_of(ow, name, training_models.MODELS[name](ow, sizes))
    return step, [ow.constant(inputs[0]), ow.constant(targets)]


def small_training(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return a step of Adam on a small classifier."""
    layers = [ow.nn.layers.Dense(64, activation="relu"), ow.nn.layers.Dense(64, activation="relu")]
    model = ow.nn.Sequential([*layers, ow.nn.layers.Dense(10)])
    optimizer = ow.optimizers.Adam(1e-3)
    rng = np.random.default_rng(0)
    x, y = ow.constant(rng.standard_normal((32, 20)).astype(np.float32)), ow.constant(rng.integers(0, 10, 32))
    model(x)

    def run(x: Any, y: Any) -> Any:
        with ow.GradientTape() as tape:
            logits = model(x)
            loss = ow.reduce_mean(ow.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return run, [x, y]


def embedding(ow: Any, np: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return a lookup of 4096 words of 64 numbers, averaged, and its gradient."""
    table = ow.Variable(np.random.default_rng(0).standard_normal((10_000, 64)).astype(np.float32))
    ids = ow.constant(np.random.default_rng(1).integers(0, 10_000, (64, 64)))

    def run(ids: Any) -> Any:
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(ow.reduce_mean(ow.gather(table, ids), 1) ** 2)
        grad = tape.gradient(loss, table)
        table.scatter_sub(ow.IndexedSlices(0.01 * grad.values, grad.indices))
        return loss

    return run, [ids]


FUNCTIONS: dict[str, Callable[[Any, Any], tuple[Callable[..., Any], list[Any]]]] = {
    **{f.__name__: f for f in (layer, mlp, product, chain, statistics, attention, collatz, power_iteration, newton)},
    **{f.__name__: f for f in (small_training, embedding)},
    **{f"train_{name}": lambda ow, np, name=name: _training(ow, np, name) for name in ("mlp", "cnn", "lstm")},
}


def serve(name: str, compiled: bool, seconds: float) -> None:
    """Call a function for this number of seconds; print the time of each call as JSON."""
    import numpy as np

    import opwright as ow

    with tempfile.TemporaryDirectory() as folder, ow.flags(cache_dir=folder):
        function, arguments = FUNCTIONS[name](ow, np)
        ow.function(lambda x: x + 1.0, jit_compile=False)(ow.ones([2]))  # what the first function of a process imports
        run = ow.function(function, jit_compile=None if compiled else False)
        times: list[float] = []
        clock = time.perf_counter
        start = last = clock()
        while not times or (last - start < seconds and len(times) < MOST_CALLS):
            run(*arguments)
            now = clock()
            times.append(now - last)
            last = now
        print(json.dumps(times))
        sys.stdout.flush()
        os._exit(0)  # a compiler that is still at work is not waited for


def times_of(name: str, compiled: bool, seconds: float) -> list[float]:
    """Return the times of the calls of a process of its own."""
    code = f"from benchmarks.first_calls import serve; serve({name!r}, {compiled}, {seconds})"
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environ)
    times: list[float] = json.loads(result.stdout.splitlines()[-1])
    return times


def least(runs: list[list[float]]) -> list[float]:
    """Return the least time of each call that all runs have reached."""
    return [min(times) for times in zip(*runs)]


def in_turn(name: str, seconds: float, runs: int = RUNS) -> tuple[list[float], list[float]]:
    """Return the times of the calls of the function, compiled and uncompiled."""
    both: tuple[list[list[float]], list[list[float]]] = ([], [])
    for _ in range(runs):
        for times, compiled in zip(both, (True, False)):
            times.append(times_of(name, compiled, seconds))
    return least(both[0]), least(both[1])


def later_at(compiled: list[float], plain: list[float]) -> tuple[float, int]:
    """Return how far calls are behind those of the uncompiled function, at most, as a ratio of all the time until then,
    and the number of the call."""
    ratios = [a / b for a, b in zip(accumulate(compiled), accumulate(plain))]
    worst = max(range(len(ratios)), key=ratios.__getitem__)
    return ratios[worst], worst + 1


def main() -> None:
    """Print the figures of each function."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS))
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    os.environ["OPWRIGHT_NUM_THREADS"] = str(options.cores)
    for name in options.functions:
        a, b = in_turn(name, options.seconds, options.runs)
        ratio, call = later_at(a, b)
        n = min(len(a), len(b))
        print(
            f"{name:16} first {a[0] * 1e3:8.2f} / {b[0] * 1e3:8.2f} ms = {a[0] / b[0]:.3f}; 2-10 "
            f"{sum(a[1:10]) / max(sum(b[1:10]), 1e-9):.3f}; worst {ratio:.3f} at call {call}; "
            f"all {n} {sum(a[:n]) / sum(b[:n]):.3f}; last {a[-1] * 1e3:.3f} / {b[-1] * 1e3:.3f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()

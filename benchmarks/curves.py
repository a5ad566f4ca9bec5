"""How far float32 leaves float64 in training: `python -m benchmarks.curves WORKLOAD [RATE]`.

Lives here: the largest relative difference of the first losses from those of eager float64, at a workload's sizes: of
the compiled step and of the eager one in float32, and of float64 whose weights alone are rounded to float32, once at
the beginning or before each step. Rounded weights are the least that a step in float32 does: what they change, no order
of sums avoids.
Not here: what the differences have to be (tests/nn/test_training_curves.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import training_models
from benchmarks.workloads import WORKLOADS, batch_of

STEPS = 10


def losses(
    name: str, rate: float, dtype: str, weights: list[np.ndarray], is_compiled: bool, rounds: int
) -> list[float]:
    """Return the losses of the first steps. rounds: steps before which weights are rounded to float32."""
    import opwright as ow

    sizes = WORKLOADS[name].sizes
    before = ow.keras.backend.floatx()
    ow.keras.backend.set_floatx(dtype)
    try:
        model = training_models.MODELS[name](ow, sizes)
        model.set_weights(weights)
        step: Callable[..., Any] = training_models.step_of(ow, name, model, rate)
        step = ow.function(step, jit_compile=True) if is_compiled else step
        result = []
        for seed in range(STEPS):
            if seed < rounds:
                model.set_weights([w.astype(np.float32).astype(w.dtype) for w in model.get_weights()])
            inputs, targets = batch_of(name, sizes, seed)
            *x, y = (ow.constant(a.astype(dtype) if a.dtype.kind == "f" else a) for a in (*inputs, targets))
            result.append(float(step(x[0] if len(x) == 1 else x, y)))
        return result
    finally:
        ow.keras.backend.set_floatx(before)


def differences(name: str, rate: float, seed: int) -> dict[str, float]:
    """Return the largest relative difference from float64 of each way. seed: of the initial weights."""
    import opwright as ow

    ow.keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    initial = [
        w.astype(np.float64) * (1 + rng.uniform(-(2.0**-25), 2.0**-25, w.shape))  # no numbers of float32
        for w in training_models.MODELS[name](ow, WORKLOADS[name].sizes).get_weights()
    ]
    exact = np.array(losses(name, rate, "float64", initial, False, 0))
    ways = {
        "float64, weights rounded at the beginning": ("float64", False, 1),
        "float64, weights rounded before each step": ("float64", False, STEPS),
        "float32, eager": ("float32", False, 0),
        "float32, compiled": ("float32", True, 0),
    }
    return {
        way: float(np.max(np.abs(np.array(losses(name, rate, dtype, initial, is_compiled, rounds)) / exact - 1)))
        for way, (dtype, is_compiled, rounds) in ways.items()
    }


def main(name: str, rate: float = training_models.LEARNING_RATE, seeds: int = 3) -> None:
    found = [differences(name, rate, seed) for seed in range(1, 1 + seeds)]
    print(f"{name}, rate {rate:g}, {STEPS} steps, relative to eager float64, {seeds} initial weights")
    for way in found[0]:
        print(f"  {way:44}", *(f"{each[way]:.1e}" for each in found))


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:3]))

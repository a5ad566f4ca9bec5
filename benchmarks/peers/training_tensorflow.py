"""The training rows in TensorFlow, as functions and by XLA.

Lives here: steps, their memory, the time until they are at full speed.  Not here: the models (../training_models.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure, training_models
from benchmarks.workloads import WORKLOADS, Sizes, batch_of


def step(name: str, sizes: Sizes, jit_compile: bool) -> Callable[[], object]:
    import tensorflow as tf

    inputs, targets = batch_of(name, sizes)
    x: Any = [tf.constant(a) for a in inputs]
    x, y = x[0] if len(x) == 1 else x, tf.constant(targets)
    run = training_models.step_of(tf, name, training_models.MODELS[name](tf, sizes))
    function = tf.function(run, jit_compile=jit_compile)
    return lambda: function(x, y).numpy()


def runs(jit_compile: bool) -> dict[str, measure.Prepare]:
    """Return the rows, by name."""
    return measure.training_runs(lambda name, sizes: step(name, sizes, jit_compile), WORKLOADS)

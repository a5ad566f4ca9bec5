"""The rows in TensorFlow.  Run by a Python that has it: `python -m benchmarks.peers.peer_tensorflow ROW...`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure


def _matrices() -> tuple[Any, Any, Any, Any]:
    import tensorflow as tf  # type: ignore  # not in our environment

    x, w, b = (tf.random.stateless_normal((4, 4), seed=(0, i)) for i in range(3))
    return tf, x, w, b


def eager_add() -> Callable[[], object]:
    tf, x, y, _ = _matrices()
    return lambda: tf.add(x, y)


def traced_call() -> Callable[[], object]:
    tf, x, w, b = _matrices()

    @tf.function
    def layer(x, w, b):
        return tf.tanh(tf.add(tf.matmul(x, w), b))

    return lambda: layer(x, w, b)


def trace() -> Callable[[], object]:
    tf, *_ = _matrices()

    def sixty(x, w):
        for _ in range(20):
            x = tf.tanh(tf.add(tf.matmul(x, w), w))
        return x

    spec = tf.TensorSpec([4, 4], tf.float32)
    return lambda: tf.function(sixty, autograph=False).get_concrete_function(spec, spec)


def tape_step() -> Callable[[], object]:
    tf, x, w, b = _matrices()

    def step() -> object:
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = tf.tanh(tf.add(tf.matmul(x, w), b))
        return tape.gradient(y, w)

    return step


def convert() -> Callable[[], object]:
    tf, *_ = _matrices()
    offset = tf.Variable(0.0)

    def run() -> object:  # traces anew, as our row does
        @tf.function(input_signature=[tf.TensorSpec([5], tf.float32)])
        def model(x):
            return tf.atan(x + offset)

        converter = tf.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model)
        converter.allow_custom_ops = True
        return converter.convert()

    return run


RUNS: dict[str, measure.Prepare] = {
    "import": lambda: measure.import_seconds("tensorflow"),
    "import_whole": lambda: measure.import_seconds("tensorflow", bare=False),
    "eager_add": eager_add,
    "traced_call": traced_call,
    "trace": trace,
    "tape_step": tape_step,
    "convert": convert,
}

if __name__ == "__main__":
    measure.main(RUNS)

"""Our side of the rows on sequences: packed without padding, and the same on the padded batch with a mask.

Lives here: one function for each, entered into ours.py.  Not here: the batch (ragged.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.ragged import LENGTHS, ROWS, WIDTH


def _batch(width: int) -> Any:
    import numpy as np

    import opwright as ow

    rows = np.random.default_rng(0).standard_normal((ROWS, width), dtype=np.float32)
    return ow.create_lod_tensor(rows, [list(LENGTHS)])


def _padded(width: int) -> tuple[Any, Any]:
    """The rows [64, 200, width], and which are there, as 1 and 0 [64, 200, 1]."""
    import opwright as ow

    x, length = ow.sequence.pad(_batch(width))
    return x, ow.sequence.mask(length, dtype=ow.float32)[..., None]


def _gradient(function: Callable[..., Any], *sources: Any) -> Callable[[], object]:
    import opwright as ow

    @ow.function
    def gradient(*sources: Any) -> Any:
        with ow.GradientTape() as tape:
            tape.watch(sources)
            y = function(*sources)
        return y, tape.gradient(y, sources)

    return lambda: gradient(*sources)


def pool(kind: str) -> Callable[[], object]:
    import opwright as ow

    return _gradient(lambda x: ow.sequence.pool(x, kind), _batch(WIDTH))


def pool_padded(kind: str) -> Callable[[], object]:
    import opwright as ow

    x, there = _padded(WIDTH)
    if kind == "sum":
        return _gradient(lambda x: ow.reduce_sum(x * there, 1), x)
    return _gradient(lambda x: ow.reduce_max(ow.where(there > 0.0, x, -1e30), 1), x)


def softmax() -> Callable[[], object]:
    import opwright as ow

    return _gradient(lambda x: ow.sequence.softmax(x), _batch(1))


def softmax_padded() -> Callable[[], object]:
    import opwright as ow

    x, there = _padded(1)
    return _gradient(lambda x: ow.nn.softmax(ow.where(there > 0.0, x, -1e30), 1), x)


def lstm() -> Callable[[], object]:
    import opwright as ow

    x = _batch(WIDTH)
    weights = [ow.random.normal((WIDTH, 4 * WIDTH), stddev=0.1) for _ in range(2)]
    bias = ow.zeros([1, 4 * WIDTH])

    def layer(w: Any, u: Any, b: Any) -> Any:
        hidden, _ = ow.sequence.dynamic_lstm(ow.matmul(x, w), u, b, use_peepholes=False)
        return ow.reduce_sum(hidden)

    return _gradient(layer, *weights, bias)


def lstm_padded() -> Callable[[], object]:
    import opwright as ow

    x, there = _padded(WIDTH)
    layer, mask = ow.keras.layers.LSTM(WIDTH, return_sequences=True), there[..., 0] > 0.0
    layer(x, mask=mask)

    @ow.function
    def gradients(x: Any) -> Any:
        with ow.GradientTape() as tape:
            y = ow.reduce_sum(layer(x, mask=mask) * there)
        return tape.gradient(y, layer.trainable_variables)

    return lambda: gradients(x)


RUNS: dict[str, measure.Prepare] = {
    "sequence_sum": lambda: pool("sum"),
    "sequence_sum_padded": lambda: pool_padded("sum"),
    "sequence_max": lambda: pool("max"),
    "sequence_max_padded": lambda: pool_padded("max"),
    "sequence_softmax": softmax,
    "sequence_softmax_padded": softmax_padded,
    "sequence_lstm": lstm,
    "sequence_lstm_padded": lstm_padded,
}

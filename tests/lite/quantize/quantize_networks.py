"""Small networks for quantisation, each written once for Opwright and TensorFlow alike, with data that are the same.

Lives here: `NETWORKS`, and `SPARSE` of weights with many zeros: name -> Network; what a network calls is given to it,
so that quantize_official.py can build it with TensorFlow.
Not here: conversions and checks (the test files), the official converter's results (quantize_official.json).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SAMPLES = 16


class Network(NamedTuple):
    """make(tf, w): the function; w(*shape) gives the next weights. shapes: of its inputs."""

    make: Callable[[Any, Callable[..., np.ndarray]], Callable[..., Any]]
    shapes: tuple[tuple[int, ...], ...]


def weights_of(name: str) -> Callable[..., np.ndarray]:
    """Weights of a network, by calls in order."""
    random = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
    return lambda *shape: (random.randn(*shape) / np.sqrt(max(np.prod(shape[:-1]), 1))).astype(np.float32)


def samples_of(name: str, seed: int = 1, count: int = SAMPLES) -> list[list[np.ndarray]]:
    """Inputs of a network: samples of lists of arrays."""
    random, shapes = np.random.RandomState(seed), (NETWORKS | SPARSE)[name].shapes
    return [[random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes] for _ in range(count)]


def _mlp(tf: Any, w: Any) -> Any:
    a, b, c, d = w(32, 64), w(64), w(64, 32), w(32)
    return lambda x: tf.nn.softmax(tf.matmul(tf.nn.relu(tf.matmul(x, a) + b), c) + d)


def _residual(tf: Any, w: Any) -> Any:
    """Convolutions with batch norm, a residual sum, global average pool, softmax."""
    a, b, c = w(3, 3, 3, 8), w(3, 3, 8, 8), w(8, 10)
    scale, offset, mean, variance = 1 + 0.3 * w(8), w(8), w(8), 1 + 0.2 * np.abs(w(8))

    def f(x: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, a, 1, "SAME"))
        z = tf.nn.conv2d(y, b, 1, "SAME")
        z = (z - mean) * (scale / np.sqrt(variance + 1e-3)) + offset
        y = tf.nn.relu(y + z)
        y = tf.nn.max_pool2d(y, 2, 2, "VALID")
        return tf.nn.softmax(tf.matmul(tf.reduce_mean(y, [1, 2]), c))

    return f


def _separable(tf: Any, w: Any) -> Any:
    """An inverted bottleneck: 1x1 out, depthwise, 1x1 in, sum."""
    a, b, c, d = w(1, 1, 8, 24), w(3, 3, 24, 1), w(1, 1, 24, 8), w(24)

    def f(x: Any) -> Any:
        y = tf.nn.relu6(tf.nn.conv2d(x, a, 1, "SAME") + d)
        y = tf.nn.relu6(tf.nn.depthwise_conv2d(y, b, [1, 1, 1, 1], "SAME"))
        return x + tf.nn.conv2d(y, c, 1, "SAME")

    return f


def _unet(tf: Any, w: Any) -> Any:
    a, b, c = w(3, 3, 4, 8), w(2, 2, 4, 8), w(3, 3, 8, 2)

    def f(x: Any) -> Any:
        down = tf.nn.relu(tf.nn.conv2d(x, a, 2, "SAME"))
        up = tf.nn.conv2d_transpose(down, b, [1, 8, 8, 4], 2)
        return tf.nn.conv2d(tf.concat([up, x], -1), c, 1, "SAME")

    return f


def _attention(tf: Any, w: Any) -> Any:
    q, k, v = w(16, 16), w(16, 16), w(16, 16)

    def f(x: Any) -> Any:
        scores = tf.matmul(tf.matmul(x, q), tf.matmul(x, k), transpose_b=True) * 0.25
        return tf.matmul(tf.nn.softmax(scores), tf.matmul(x, v))

    return f


def _lstm(tf: Any, w: Any) -> Any:
    """Three steps, unrolled."""
    kernel, recurrent, bias = w(6, 32), w(8, 32), w(32)

    def f(x: Any) -> Any:
        h = c = tf.zeros([1, 8])
        for t in range(3):
            i, g, o, u = tf.split(tf.matmul(x[:, t], kernel) + tf.matmul(h, recurrent) + bias, 4, -1)
            c = tf.sigmoid(g) * c + tf.sigmoid(i) * tf.tanh(u)
            h = tf.sigmoid(o) * tf.tanh(c)
        return h

    return f


def _shapes(tf: Any, w: Any) -> Any:
    """Splitting, padding, joining, pooling, moving."""
    a = w(3, 3, 4, 4)

    def f(x: Any) -> Any:
        left, right = tf.split(x, 2, -1)
        y = tf.concat(
            [tf.pad(left, [[0, 0], [1, 1], [1, 1], [0, 0]]), tf.pad(right * 2.0, [[0, 0], [0, 2], [2, 0], [0, 0]])], -1
        )
        y = tf.nn.avg_pool2d(tf.nn.conv2d(y, a, 1, "SAME"), 2, 2, "VALID")
        return tf.reshape(tf.transpose(y, [0, 3, 1, 2]), [1, -1])

    return f


def _two_inputs(tf: Any, w: Any) -> Any:
    a = w(16, 12)
    return lambda x, y: (tf.maximum(tf.matmul(x, a), y), tf.reduce_sum(x, [1]) * 0.5)


NETWORKS = {
    "mlp": Network(_mlp, ((1, 32),)),
    "residual": Network(_residual, ((1, 8, 8, 3),)),
    "separable": Network(_separable, ((1, 6, 6, 8),)),
    "unet": Network(_unet, ((1, 8, 8, 4),)),
    "attention": Network(_attention, ((1, 6, 16),)),
    "lstm": Network(_lstm, ((1, 3, 6),)),
    "shapes": Network(_shapes, ((1, 8, 8, 4),)),
    "two_inputs": Network(_two_inputs, ((2, 16), (2, 12))),
}


def single(call: Callable[[Any], Callable[..., Any]], *shapes: tuple[int, ...]) -> Network:
    """A network of one operator."""
    return Network(lambda tf, w: call(tf), shapes)


FLAT, IMAGE = (2, 16), (1, 8, 8, 4)
OPERATORS: dict[str, Network] = {
    **{
        name: single(lambda tf, name=name: getattr(tf.nn, name), FLAT)
        for name in ("relu", "relu6", "gelu", "leaky_relu", "softmax", "log_softmax")
    },
    **{name: single(lambda tf, name=name: getattr(tf, name), FLAT) for name in ("sigmoid", "tanh", "abs", "exp")},
    **{
        name: single(lambda tf, name=name: getattr(tf.math, name), FLAT, FLAT)
        for name in ("add", "subtract", "multiply", "squared_difference", "maximum", "minimum")
    },
    **{
        name: single(lambda tf, name=name: lambda x: getattr(tf, name)(x, [1, 2]), IMAGE)
        for name in ("reduce_mean", "reduce_max", "reduce_min", "reduce_sum")
    },
    "hard_swish": single(lambda tf: lambda x: x * tf.nn.relu6(x + 3.0) * (1 / 6), FLAT),
    "relu_n1_to_1": single(lambda tf: lambda x: tf.maximum(-1.0, tf.minimum(x, 1.0)), FLAT),
    "l2_normalize": single(lambda tf: lambda x: tf.math.l2_normalize(x, -1), FLAT),
    "greater": single(lambda tf: lambda x, y: x > y, FLAT, FLAT),
    "less_constant": single(lambda tf: lambda x: x < 0.25, FLAT),
    "argmin": single(lambda tf: lambda x: tf.argmin(x, -1, tf.int32), FLAT),
    "batch_matmul": single(lambda tf: tf.matmul, (2, 4, 8), (2, 8, 4)),
    "max_pool": single(lambda tf: lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"), IMAGE),
    "average_pool": single(lambda tf: lambda x: tf.nn.avg_pool2d(x, 2, 2, "SAME"), IMAGE),
    "pad_with": single(lambda tf: lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=7.0), IMAGE),
    "mirror_pad": single(lambda tf: lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"), IMAGE),
    "stack": single(lambda tf: lambda x, y: tf.stack([x, y], 0), FLAT, FLAT),
    "unstack": single(lambda tf: tf.unstack, FLAT),
    "gather": single(lambda tf: lambda x: tf.gather(x, [3, 1], axis=1), FLAT),
    "gather_nd": single(lambda tf: lambda x: tf.gather_nd(x, [[0, 3], [1, 1]]), FLAT),
    "slice": single(lambda tf: lambda x: tf.slice(x, [0, 2], [2, 4]), FLAT),
    "strided_slice": single(lambda tf: lambda x: x[:, 2:10:2], FLAT),
    "tile": single(lambda tf: lambda x: tf.tile(x, [1, 2]), FLAT),
    "reverse": single(lambda tf: lambda x: tf.reverse(x, [1]), FLAT),
    "broadcast_to": single(lambda tf: lambda x: tf.broadcast_to(x, [3, 2, 16]), FLAT),
    "space_to_depth": single(lambda tf: lambda x: tf.nn.space_to_depth(x, 2), IMAGE),
    "depth_to_space": single(lambda tf: lambda x: tf.nn.depth_to_space(x, 2), IMAGE),
    "space_to_batch": single(lambda tf: lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), IMAGE),
    "batch_to_space": single(lambda tf: lambda x: tf.batch_to_space(x, [2, 2], [[0, 0], [0, 0]]), (4, 4, 4, 2)),
    "floor": single(lambda tf: tf.floor, FLAT),
    "sin": single(lambda tf: tf.sin, FLAT),
    "cast": single(lambda tf: lambda x: tf.cast(tf.cast(x * 9.0, tf.int32), tf.float32), FLAT),
}
NETWORKS |= OPERATORS


def _pruned(array: np.ndarray, block: int, axis: int, density: float) -> np.ndarray:
    """With blocks of zeros along an axis."""
    shape = [n // block if i == axis % array.ndim else n for i, n in enumerate(array.shape)]
    keep = np.random.RandomState(6).uniform(size=shape) < density
    return np.where(np.repeat(keep, block, axis), array, np.float32(0))


def _sparse(
    call: Callable[[Any], Callable[..., Any]],
    shape: tuple[int, ...],
    weights: tuple[int, ...],
    block: int = 1,
    axis: int = -1,
    density: float = 0.2,
) -> Network:
    """call(tf): a function of x and the pruned weights."""

    def make(tf: Any, w: Any) -> Any:
        pruned = _pruned(w(*weights), block, axis, density)
        return lambda x: call(tf)(x, pruned)

    return Network(make, (shape,))


def _product(tf: Any) -> Any:
    return tf.matmul


def _convolution(tf: Any) -> Any:
    return lambda x, w: tf.nn.conv2d(x, w, 1, "SAME")


SPARSE = {
    "elements": _sparse(_product, (2, 64), (64, 64)),
    "half the elements": _sparse(_product, (2, 64), (64, 64), density=0.5),
    "few zeros": _sparse(_product, (2, 64), (64, 64), density=0.75),
    "blocks of 4": _sparse(_product, (2, 64), (64, 64), 4, 0),
    "blocks of 16": _sparse(_product, (2, 64), (64, 64), 16, 0),
    "many blocks of 16": _sparse(_product, (2, 64), (64, 64), 16, 0, 0.6),
    "many columns": _sparse(_product, (1, 300), (300, 40), density=0.1),
    "a small product": _sparse(_product, (2, 8), (8, 8), 4, 0),
    "convolution": _sparse(_convolution, (1, 8, 8, 16), (3, 3, 16, 32)),
    "depthwise": _sparse(
        lambda tf: lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), (1, 8, 8, 64), (3, 3, 64, 1), axis=2
    ),
    "a stack of products": _sparse(_product, (2, 4, 64), (2, 64, 32)),
    "a sum": _sparse(lambda tf: lambda x, w: x + w, (64, 32), (64, 32)),
}

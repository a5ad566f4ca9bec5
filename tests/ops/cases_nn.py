"""Rows of activations, softmax and losses, normalisations, dropout, embeddings.

Oracles: the formulas of the papers, written out in float64 with NumPy or the math module.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from harness import bad, case, f32, f64, i8, i32, pos, unit

erf = np.vectorize(math.erf, otypes=[float])
SELU = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def elu(x: Any) -> Any:
    return np.where(x < 0, np.exp(x) - 1, x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def log_softmax(x: Any, axis: int = -1) -> Any:
    return x - np.log(np.sum(np.exp(x), axis, keepdims=True))


def probabilities(x: Any, axis: int = -1) -> Any:
    """Normalize the rows of a generator to a sum of 1."""
    return (np.exp(x) / np.exp(x).sum(axis, keepdims=True)).astype(x.dtype)


def of_all_paths(blank: int = 0) -> Any:
    """The loss of sequences as a sum over every path of classes: the definition of Graves et al., 2006."""

    def oracle(logits: Any, labels: Any, label_length: Any, logit_length: Any) -> Any:
        losses = []
        for b in range(logits.shape[1]):
            steps, expected_labels = int(logit_length[b]), labels[b, : label_length[b]].tolist()
            scores, total = log_softmax(logits[:, b].astype(np.float64)), 0.0
            for path in itertools.product(range(logits.shape[2]), repeat=steps):
                merged = [k for k, _ in itertools.groupby(path)]
                if [k for k in merged if k != blank] == expected_labels:
                    total += math.exp(sum(scores[t, k] for t, k in enumerate(path)))
            losses.append(-math.log(total) if total else math.inf)
        return np.array(losses)

    return oracle


def isotonic(x: Any) -> Any:
    """The minimax formula of isotonic regression (Barlow et al., 1972), and the number of each run of equal values."""
    wide, y = x.astype(np.float64), np.empty(x.shape)
    for row, out in zip(wide, y):
        for i in range(len(row)):
            out[i] = min(max(row[a : b + 1].mean() for b in range(i, len(row))) for a in range(i + 1))
    return y, np.cumsum(np.diff(y.round(9), prepend=y[:, :1].round(9)) != 0, 1)


def of_best_labels(blank: int, count: int) -> Any:
    """The most probable label sequences, by the sum over every path of classes; labels, lengths, log-probabilities."""

    def oracle(logits: Any, lengths: Any) -> Any:
        steps, batch, classes = logits.shape
        labels, sizes = np.full((batch, count, steps), -1), np.zeros((batch, count), np.int64)
        scores = np.full((batch, count), -np.inf)
        for b in range(batch):
            logp, totals = log_softmax(logits[:, b].astype(np.float64)), {}
            for path in itertools.product(range(classes), repeat=int(lengths[b])):
                sequence = tuple(k for k, _ in itertools.groupby(path) if k != blank)
                totals[sequence] = totals.get(sequence, 0.0) + math.exp(sum(logp[t, k] for t, k in enumerate(path)))
            for i, (sequence, total) in enumerate(sorted(totals.items(), key=lambda each: -each[1])[:count]):
                labels[b, i, : len(sequence)], sizes[b, i], scores[b, i] = sequence, len(sequence), math.log(total)
        return labels, sizes, scores

    return oracle


def sigmoid_loss(z: Any, x: Any, weight: float = 1.0) -> Any:
    return -weight * z * np.log(sigmoid(x)) - (1 - z) * np.log(1 - sigmoid(x))


def batch_norm(channel: int, epsilon: float, factor: float = 1.0) -> Any:
    def oracle(x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None) -> Any:
        last = np.moveaxis(x, channel, -1)
        rows = last.reshape(-1, last.shape[-1])
        mu, sigma2 = rows.mean(0), rows.var(0)
        y = np.moveaxis((last - mu) / np.sqrt(sigma2 + epsilon) * scale + offset, -1, channel)
        running, spread = mu, rows.var(0, ddof=1)
        if factor != 1:
            running, spread = factor * mu + (1 - factor) * mean, factor * spread + (1 - factor) * variance
        return y, running, spread

    return oracle


def batch_norm_fixed(channel: int, epsilon: float) -> Any:
    def oracle(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        y = (np.moveaxis(x, channel, -1) - mean) / np.sqrt(variance + epsilon) * scale + offset
        return np.moveaxis(y, -1, channel), mean, variance

    return oracle


def layer_norm(axes: tuple[int, ...], epsilon: float) -> Any:
    def oracle(x: Any, scale: Any = None, offset: Any = None) -> Any:
        y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
        shape = [d if i in {a % x.ndim for a in axes} else 1 for i, d in enumerate(x.shape)]
        y = y if scale is None else y * scale.reshape(shape)
        return y if offset is None else y + offset.reshape(shape)

    return oracle


def weighted(x: Any, w: Any) -> Any:
    mean = np.sum(w * x, 0) / np.sum(w)
    return mean, np.sum(w * (x - mean) ** 2, 0) / np.sum(w)


def lrn(radius: int, bias: float, alpha: float, beta: float) -> Any:
    def oracle(x: Any) -> Any:
        y = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            low, high = max(at[-1] - radius, 0), at[-1] + radius + 1
            y[at] = x[at] / (bias + alpha * np.sum(x[at[:-1]][low:high] ** 2)) ** beta
        return y

    return oracle


CASES = {
    "Relu": [
        case(f64(3, 4), expect=lambda x: x * (x > 0)),
        case(
            np.array([-1, 0, 2, np.nan, np.inf, -np.inf], np.float32), expect=[0, 0, 2, np.nan, np.inf, 0], grad=False
        ),
        case(i8(5), expect=lambda x: np.where(x > 0, x, 0)),
        case(f32(0, 3), expect=np.zeros((0, 3))),
        bad(np.array([True]), says="dtype"),
    ],
    "Relu6": [
        case(4 * f64(3, 4), expect=lambda x: np.clip(x, 0, 6)),
        case(4 * i32(7), expect=lambda x: np.clip(x, 0, 6)),
    ],
    "LeakyRelu": [
        case(f64(3, 4), expect=lambda x: np.where(x > 0, x, 0.2 * x)),
        case(f64(3, 4), expect=lambda x: np.where(x > 0, x, 1.5 * x), alpha=1.5),
        bad(i32(3), says="dtype"),
    ],
    "nn.leaky_relu": [
        case(i32(5), expect=lambda x: np.where(x > 0, x, x * 0.2), gives="float32"),
        case(f64(4), alpha=0.3, expect=lambda x: np.where(x > 0, x, x * 0.3)),
        case(f64(4), np.float64(0.3), expect=lambda x, a: np.where(x > 0, x, x * a)),
    ],
    "Elu": [
        case(f64(3, 4), expect=elu),
        case(np.array([-1e-9, -800.0]), expect=[-1e-9, -1.0], grad=False),
        bad(i32(3), says="dtype"),
    ],
    "Selu": [case(f64(3, 4), expect=lambda x: SELU[0] * np.where(x < 0, SELU[1] * (np.exp(x) - 1), x))],
    "Gelu": [
        case(f64(3, 4), expect=lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
        case(
            f64(3, 4),
            approximate=True,
            expect=lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
    ],
    "nn.silu": [
        case(f64(3, 4), expect=lambda x: x * sigmoid(x)),
        case(f64(3, 4), beta=2.0, expect=lambda x: x * sigmoid(2 * x)),
        case(f64(3, 4), np.float64(0.5), expect=lambda x, b: x * sigmoid(b * x)),
    ],
    "nn.swish": [case(f64(3, 4), expect=lambda x: x * sigmoid(x))],
    "nn.crelu": [
        case(f64(3, 4), expect=lambda x: np.maximum(np.concatenate([x, -x], -1), 0)),
        case(f64(3, 4), axis=0, expect=lambda x: np.maximum(np.concatenate([x, -x], 0), 0)),
    ],
    "nn.relu6": [case(4 * f64(5), expect=lambda x: np.clip(x, 0, 6))],
    "Softmax": [
        case(f64(3, 4), expect=lambda x: np.exp(log_softmax(x))),
        case(f64(2, 3, 4), axis=1, expect=lambda x: np.exp(log_softmax(x, 1))),
        case(np.array([1000.0, 1000.0, 0.0], np.float32), expect=[0.5, 0.5, 0.0], grad=False),
        case(np.array([-np.inf, 0.0], np.float32), expect=[0.0, 1.0], grad=False),
        case(f32(0, 3), expect=np.zeros((0, 3))),
        case(f32(2, 0), expect=np.zeros((2, 0))),
        bad(np.float32(1), says="scalar"),
        bad(f32(2, 3), says="out of range", axis=2),
        bad(i32(2, 3), says="dtype"),
    ],
    "LogSoftmax": [
        case(f64(3, 4), expect=log_softmax),
        case(f64(2, 3, 4), axis=0, expect=lambda x: log_softmax(x, 0)),
        case(np.array([1000.0, 0.0], np.float32), expect=[0.0, -1000.0], grad=False),
        bad(f32(2, 3), says="out of range", axis=-3),
    ],
    "nn.softmax": [
        case(f64(3, 4), expect=lambda x: np.exp(log_softmax(x))),
        case(f64(3, 4), axis=0, expect=lambda x: np.exp(log_softmax(x, 0))),
    ],
    "nn.log_softmax": [case(f64(3, 4), expect=log_softmax)],
    "SoftmaxCrossEntropyWithLogits": [
        case(probabilities(f64(3, 4)), f64(3, 4), expect=lambda z, x: -np.sum(z * log_softmax(x), -1)),
        case(f64(3, 4), f64(3, 4), expect=lambda z, x: -np.sum(z * log_softmax(x), -1)),  # labels need not sum to 1
        case(f64(2, 3, 4), f64(2, 3, 4), axis=1, expect=lambda z, x: -np.sum(z * log_softmax(x, 1), 1)),
        case(probabilities(f64(1, 4)), f64(3, 4), expect=lambda z, x: -np.sum(z * log_softmax(x), -1)),
        case(np.array([[0.0, 1.0]], np.float32), np.array([[-np.inf, 3.0]], np.float32), expect=[0.0], grad=False),
        case(f32(0, 3), f32(0, 3), expect=np.zeros(0)),
        bad(f32(2, 3), f32(2, 4), says="must be broadcastable: logits_size=[2, 4] labels_size=[2, 3]"),
        bad(f32(2, 3), f64(2, 3), says="differ in dtype"),
        bad(f32(3), f32(2, 3), says="rank"),
    ],
    "nn.softmax_cross_entropy_with_logits": [
        case(i32(2, 3, low=0, high=2), f64(2, 3), expect=lambda z, x: -np.sum(z * log_softmax(x), -1)),
        case(f64(2, 3), f64(2, 3), axis=0, expect=lambda z, x: -np.sum(z * log_softmax(x, 0), 0)),
    ],
    "SparseSoftmaxCrossEntropyWithLogits": [
        case(np.array([1, 0, 3]), f64(3, 4), expect=lambda z, x: -log_softmax(x)[np.arange(3), z]),
        case(
            np.array([[1, 0], [2, 2]], np.int32),
            f64(2, 2, 3),
            expect=lambda z, x: -np.take_along_axis(log_softmax(x), z[..., None], -1)[..., 0],
        ),
        case(np.int32(1), f64(3), expect=lambda z, x: -log_softmax(x)[z]),
        case(np.zeros(0, np.int32), f32(0, 3), expect=np.zeros(0)),
        bad(np.array([5]), f32(1, 2), says="Received a label value of 5 which is outside the valid range of [0, 2)"),
        bad(np.array([-1]), f32(1, 2), says="label value of -1"),
        bad(np.array([[0]]), f32(1, 2), says="`labels.shape.rank` must equal `logits.shape.rank - 1`"),
        bad(np.array([0, 1]), f32(3, 2), says="one label a row"),
        bad(f32(3), f32(3, 2), says="dtype"),
    ],
    "nn.sigmoid_cross_entropy_with_logits": [
        case(unit(pos(f64(3, 4))), f64(3, 4), expect=sigmoid_loss),
        case(np.array([0.0, 1.0]), np.array([800.0, -800.0]), expect=[800.0, 800.0], grad=False),
        case(np.array([0.25]), np.array([0.0]), expect=[math.log(2)]),
        bad(f32(2), f32(3), says="must have the same shape"),
    ],
    "nn.weighted_cross_entropy_with_logits": [
        case(unit(pos(f64(3, 4))), f64(3, 4), pos_weight=2.5, expect=lambda z, x: sigmoid_loss(z, x, 2.5)),
        case(np.array([0.25]), np.array([0.0]), pos_weight=2.0, expect=[1.25 * math.log(2)]),
    ],
    "nn.log_poisson_loss": [
        case(pos(f64(3, 4)), f64(3, 4), expect=lambda z, c: np.exp(c) - z * c),
        case(
            3 * pos(f64(3, 4)),
            f64(3, 4),
            compute_full_loss=True,
            expect=lambda z, c: np.exp(c) - z * c + np.where(z > 1, z * np.log(z) - z + np.log(2 * math.pi * z) / 2, 0),
        ),
    ],
    "nn.compute_average_loss": [
        case(f64(4), expect=np.mean),
        case(
            f64(4),
            sample_weight=np.array([1.0, 0.0, 2.0, 0.5]),
            global_batch_size=8,
            expect=lambda x: np.sum(x * [1.0, 0.0, 2.0, 0.5]) / 8,
        ),
        case(f64(4, 3, 2), expect=lambda x: np.sum(x) / 4),
        case(f64(4, 3), sample_weight=np.arange(4.0), expect=lambda x: np.sum(x * np.arange(4.0)[:, None]) / 4),
        case(f64(0, 3), expect=0.0, grad=False),
    ],
    "L2Loss": [
        case(f64(3, 4), expect=lambda t: np.sum(t * t) / 2),
        case(f32(0), expect=0.0),
        bad(i32(3), says="dtype"),
    ],
    "BiasAdd": [
        case(f64(2, 3, 4), f64(4), expect=lambda x, b: x + b),
        case(f64(2, 3, 4, 2), f64(3), data_format="NCHW", expect=lambda x, b: x + b[:, None, None]),
        case(i32(2, 3), i32(3), expect=lambda x, b: x + b),
        bad(
            f32(2, 3),
            f32(2),
            says="Must provide as many biases as the last dimension of the input tensor: [2] vs. [2, 3]",
        ),
        bad(f32(2, 3, 4), f32(4), says="second dimension", data_format="NCHW"),
        bad(f32(3), f32(3), says="rank must be at least 2"),
        bad(f32(2, 3), f32(1, 3), says="rank 1"),
    ],
    "ClassLabels": [
        case(np.array([1, 0, 3]), np.int32(4), expect=lambda z, n: z),
        case(np.array([[1, 0], [2, 2]], np.int32), np.int64(3), expect=lambda z, n: z),
        case(np.zeros(0, np.int32), np.int32(3), expect=lambda z, n: z),
        bad(np.array([0, 5]), np.int32(5), says="Received a label value of 5 which is"),
        bad(np.array([-1]), np.int32(5), says="label value of -1"),
        bad(f32(3), np.int32(5), says="dtype"),
    ],
    "BiasAddGrad": [
        case(f64(2, 3, 4), expect=lambda x: x.sum((0, 1))),
        case(f64(2, 3, 4, 2), data_format="NCHW", expect=lambda x: x.sum((0, 2, 3))),
    ],
    "nn.bias_add": [
        case(f64(2, 3, 4), f64(3), data_format="NC..", expect=lambda x, b: x + b[:, None]),
        case(f64(2, 3), f64(3), data_format="N...C", expect=lambda x, b: x + b),
        bad(f32(2, 3), f32(3), data_format="HWC", says="data_format"),
    ],
    "FusedBatchNorm": [
        case(f64(2, 3, 2, 3), f64(3), f64(3), epsilon=0.01, expect=batch_norm(3, 0.01)),
        case(f64(2, 3, 2, 2), f64(3), f64(3), epsilon=0.01, data_format="NCHW", expect=batch_norm(1, 0.01)),
        case(f64(2, 2, 2, 1, 3), f64(3), f64(3), epsilon=0.01, data_format="NDHWC", expect=batch_norm(4, 0.01)),
        case(
            f64(2, 3, 2, 3),
            f64(3),
            f64(3),
            f64(3),
            pos(f64(3)),
            epsilon=0.01,
            exponential_avg_factor=0.25,
            expect=batch_norm(3, 0.01, 0.25),
        ),
        case(
            f64(2, 3, 2, 3),
            f64(3),
            f64(3),
            f64(3),
            pos(f64(3)),
            epsilon=0.01,
            is_training=False,
            expect=batch_norm_fixed(3, 0.01),
        ),
        case(
            f64(2, 3, 2, 2),
            f64(3),
            f64(3),
            f64(3),
            pos(f64(3)),
            epsilon=0.01,
            is_training=False,
            data_format="NCHW",
            expect=batch_norm_fixed(1, 0.01),
        ),
        case(f32(2, 3, 2, 3), f32(3), f32(3), expect=batch_norm(3, 0.0001), half=False),
        case(
            f32(2, 3, 2, 3).astype(np.float16),
            f32(3),
            f32(3),
            expect=batch_norm(3, 0.0001),
            grad=False,
            gives=["float16", "float32", "float32"],
        ),
        bad(f32(2, 3, 2, 3), f32(2), f32(3), says="same number of elements as the channels"),
        bad(f32(2, 3, 2, 3), f32(3), f32(3), says="mean is missing", is_training=False),
        bad(f64(2, 3, 2, 3), f32(3), f32(3), says="wrong dtype"),
        bad(f32(2, 3, 2, 3), f32(3), f32(3), says="differ in rank", data_format="NDHWC"),
    ],
    "nn.fused_batch_norm": [
        case(f64(2, 3, 2, 3), f64(3), f64(3), expect=batch_norm(3, 0.001)),
        case(f64(2, 3, 2, 3), f64(3), f64(3), epsilon=1e-9, expect=batch_norm(3, 1.001e-5)),
    ],
    "LayerNorm": [
        case(f64(3, 5), f64(5), f64(5), epsilon=0.01, expect=layer_norm((-1,), 0.01)),
        case(f64(3, 5), None, None, epsilon=0.01, expect=lambda x, *_: layer_norm((-1,), 0.01)(x)),
        case(f64(3, 5), f64(5), None, expect=layer_norm((-1,), 1e-5)),
        case(f64(2, 3, 2), f64(3, 2), f64(3, 2), axis=[-2, -1], epsilon=0.01, expect=layer_norm((-2, -1), 0.01)),
        case(f64(2, 3, 2), f64(3), f64(3), axis=[1], epsilon=0.01, expect=layer_norm((1,), 0.01)),
        case(f64(2, 3, 2), f64(2, 3), f64(2, 3), axis=[1, 0], epsilon=0.01, expect=layer_norm((0, 1), 0.01)),
        bad(f32(2, 3), f32(2), f32(3), says="scale does not have the shape"),
        bad(f32(2, 3), f32(3), f32(3), axis=[2], says="out of range"),
    ],
    "nn.layer_normalization": [case(f64(3, 5), f64(5), f64(5), epsilon=0.01, expect=layer_norm((-1,), 0.01))],
    "LRN": [
        case(f64(1, 2, 2, 7), expect=lrn(5, 1.0, 1.0, 0.5)),
        case(f64(1, 2, 2, 5), depth_radius=1, bias=2.0, alpha=0.5, beta=0.75, expect=lrn(1, 2.0, 0.5, 0.75)),
        case(f64(1, 1, 1, 3), depth_radius=0, expect=lrn(0, 1.0, 1.0, 0.5)),
        bad(f32(2, 3), says="rank 4"),
        bad(f32(1, 1, 1, 3), says="depth_radius", depth_radius=-1),
    ],
    "nn.moments": [
        case(f64(3, 4), [0], expect=lambda x, _: (x.mean(0), x.var(0))),
        case(f64(3, 4), [0, 1], keepdims=True, expect=lambda x, _: (x.mean(keepdims=True), x.var(keepdims=True))),
        case(1000 + f32(5, 4), [-1], expect=lambda x, _: (x.mean(-1), x.var(-1)), rtol=1e-4, grad=False, half=False),
    ],
    "nn.weighted_moments": [case(f64(3, 4), [0], pos(f64(3, 1)), expect=lambda x, _, w: weighted(x, w))],
    "nn.sufficient_statistics": [
        case(
            f64(3, 4),
            [0],
            call=lambda x, a: _nn().sufficient_statistics(x, a)[:3],
            expect=lambda x, _: (3, x.sum(0), (x * x).sum(0)),
        ),
        case(f64(3, 4), [0, 1], shift=0.5, expect=lambda x, _: (12, (x - 0.5).sum(), ((x - 0.5) ** 2).sum(), 0.5)),
    ],
    "nn.normalize_moments": [
        case(np.float64(3), f64(4), pos(f64(4)), shift=None, expect=lambda n, m, v: (m / n, v / n - (m / n) ** 2))
    ],
    "nn.batch_normalization": [
        case(
            f64(3, 4),
            f64(4),
            pos(f64(4)),
            f64(4),
            f64(4),
            0.01,
            expect=lambda x, m, v, b, s, e: (x - m) / np.sqrt(v + e) * s + b,
        ),
        case(
            f64(3, 4), f64(4), pos(f64(4)), None, None, 0.01, expect=lambda x, m, v, b, s, e: (x - m) / np.sqrt(v + e)
        ),
    ],
    "nn.batch_norm_with_global_normalization": [
        case(
            f64(3, 4),
            f64(4),
            pos(f64(4)),
            f64(4),
            f64(4),
            0.01,
            False,
            expect=lambda x, m, v, b, s, e, _: (x - m) / np.sqrt(v + e) + b,
        )
    ],
    "nn.embedding_lookup": [
        case(f64(5, 3), np.array([[0, 4], [2, 2]]), expect=lambda w, i: w[i]),
        case([f64(2, 3), f64(3, 3)], np.array([0, 4, 1]), expect=lambda w, i: np.concatenate(w)[i]),
        case(
            f64(5, 3),
            np.array([1, 3]),
            max_norm=1.0,
            expect=lambda w, i: w[i] * np.minimum(1, 1 / np.linalg.norm(w[i], axis=1, keepdims=True)),
        ),
        bad([], np.array([0]), says="must be specified", raises=ValueError),
    ],
    "nn.dropout": [
        case(f64(3, 4), 0, expect=lambda x, _: x),
        case(
            f64(30, 40),
            0.25,
            holds=lambda y, x, r: bool(np.all((y == 0) | np.isclose(y, x / 0.75))) and 0.2 < np.mean(y == 0) < 0.3,
            grad=False,
        ),
        case(
            f64(30, 40), 0.5, noise_shape=[30, 1], holds=lambda y, x, r: set(np.sum(y == 0, 1)) == {0, 40}, grad=False
        ),
        case(
            f64(30, 40), 0.5, noise_shape=[None, 1], holds=lambda y, x, r: set(np.sum(y == 0, 1)) == {0, 40}, grad=False
        ),
        case(f32(30, 40), np.float32(0.5), holds=lambda y, x, r: 0.4 < np.mean(y == 0) < 0.6, grad=False, half=False),
        bad(f32(3), 1.0, says="range [0, 1)", raises=ValueError),
        bad(f32(3), -0.1, says="range [0, 1)", raises=ValueError),
        bad(f32(3), True, says="range [0, 1)", raises=ValueError),
        bad(i32(3), 0.5, says="floating point", raises=ValueError),
    ],
    "nn.stateless_dropout": [
        case(
            f64(30, 40),
            0.25,
            np.array([1, 2]),
            grad=[0],
            holds=lambda y, x, r, s: bool(np.all((y == 0) | np.isclose(y, x / 0.75))) and 0.2 < np.mean(y == 0) < 0.3,
        )
    ],
    "CTCLoss": [
        case(
            f64(4, 3, 3),
            np.array([[1, 2], [2, 0], [1, 1]]),
            np.array([2, 1, 2]),
            np.array([4, 3, 4]),
            expect=of_all_paths(),
        ),
        case(
            f64(4, 2, 3),
            np.int32([[1, 0, 1], [0, 0, 0]]),
            np.int32([3, 0]),
            np.int32([4, 2]),
            blank_index=2,
            expect=of_all_paths(2),
        ),
        case(f32(3, 0, 2), i32(0, 1), i32(0), i32(0), expect=np.zeros(0)),
        bad(f32(3, 1, 2), np.array([[1]]), np.array([2]), np.array([3]), says="label_length"),
        bad(f32(3, 1, 2), np.array([[1]]), np.array([1]), np.array([4]), says="logit_length"),
        bad(f32(3, 1, 2), np.array([[2]]), np.array([1]), np.array([3]), says="label or blank_index"),
    ],
    "CTCBeamSearch": [
        case(f64(4, 3, 3), np.array([4, 2, 0]), top_paths=3, expect=of_best_labels(2, 3), grad=False),
        case(f32(3, 2, 4), np.int32([3, 3]), top_paths=2, blank_index=1, expect=of_best_labels(1, 2), grad=False),
        bad(f32(3, 1, 2), np.array([4]), says="sequence_length"),
        bad(f32(3, 1, 2), np.array([3]), beam_width=2, top_paths=3, says="more paths than the beam width"),
        bad(f32(3, 1, 2), np.array([3]), blank_index=2, says="blank_index"),
    ],
    "IsotonicRegression": [
        case(f64(3, 7), expect=isotonic),
        case(f32(2, 1), expect=isotonic),
        bad(f32(3), says="rank"),
    ],
}


def _nn() -> Any:
    from opwright.ops import nn

    return nn

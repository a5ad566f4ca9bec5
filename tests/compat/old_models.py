"""Models that are saved once in every version and loaded by all later ones: programs, inputs, formulas.

Lives here: for each model how it is made, what it is given, and what must come out, by a formula in float64 NumPy.
Not here: writing the files (make_models.py), loading them (test_old_models.py).

A program may change with the library; the files of old versions stay as they were written, under models/VERSION.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import opwright as ow


def weights(*shape: int, start: float = 0.3) -> np.ndarray:
    """Fixed numbers between -1 and 1 that no release of anything changes."""
    return np.sin(start + np.arange(math.prod(shape), dtype=np.float64)).reshape(shape)


# ---- operators of a user --------------------------------------------------------------------------------------------


def soft_clip(version: int) -> Any:
    """A user's operator as it was, and as it grew: version 2 has a shift, a bias and an intermediate output."""
    body: dict[str, Any] = {
        "__doc__": "Squash.\n\n.. math:: y = limit \\tanh((x - shift) / limit) + bias",
        "__module__": __name__,
        "x": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "limit": ow.Attr(float, default=1.0),
    }
    if version == 1:
        body["compute"] = lambda op, x: (op.limit * np.tanh(x / op.limit)).astype(x.dtype)
        body["gradient"] = lambda op, dy: dy * (1.0 - ow.square(op.y / op.limit))
    else:
        body |= {
            "bias": ow.Input(ow.floating, like="x", optional=True, since=2),
            "inner": ow.Output(like="x", intermediate=True, since=2),
            "shift": ow.Attr(float, default=0.0, since=2),
            "infer": lambda op: (op.x.spec, op.x.spec),
            "compute": _grown,
            "gradient": lambda op, dy, _: (dy * (1.0 - ow.square(op.inner)), None),
        }
    return ow.operator(name="CompatSoftClip", version=version)(type("CompatSoftClip", (), body))


def _grown(op: Any, x: np.ndarray, bias: Any) -> Any:
    inner = np.tanh((x - op.shift) / op.limit).astype(x.dtype)
    y = (op.limit * inner).astype(x.dtype)
    return (y if bias is None else y + bias), inner


# ---- programs -------------------------------------------------------------------------------------------------------


class Dense(ow.Module):
    """softmax(tanh(x a + b) c)"""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = ow.Variable(np.float32(weights(3, 5))), ow.Variable(np.float32(weights(5, start=2.0)))
        self.c = ow.Variable(np.float32(weights(5, 4, start=5.0)))

    @ow.function(input_signature=[ow.TensorSpec([2, 3], ow.float32)])
    def run(self, x: Any) -> Any:
        return ow.nn.softmax(ow.tanh(x @ self.a + self.b) @ self.c)


def dense(x: np.ndarray) -> np.ndarray:
    z = np.tanh(x @ weights(3, 5) + weights(5, start=2.0)) @ weights(5, 4, start=5.0)
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Convolution(ow.Module):
    """max pooling of relu(conv(x, w) + b), padded SAME with strides 2"""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = ow.Variable(np.float32(weights(3, 3, 2, 4))), ow.Variable(np.float32(weights(4, start=1.0)))

    @ow.function(input_signature=[ow.TensorSpec([1, 8, 8, 2], ow.float32)])
    def run(self, x: Any) -> Any:
        y = ow.nn.relu(ow.nn.bias_add(ow.nn.conv2d(x, self.w, strides=2, padding="SAME"), self.b))
        return ow.nn.max_pool2d(y, 2, 2, "VALID")


def convolution(x: np.ndarray) -> np.ndarray:
    w, b = weights(3, 3, 2, 4), weights(4, start=1.0)
    padded = np.zeros((10, 10, 2))
    padded[:8, :8] = x[0]  # 8 by strides of 2 with a kernel of 3: one row and column are padded, at the end
    y = np.zeros((4, 4, 4))
    for i in range(4):
        for j in range(4):
            y[i, j] = np.maximum(np.tensordot(padded[2 * i : 2 * i + 3, 2 * j : 2 * j + 3], w, 3) + b, 0)
    return y.reshape(1, 2, 2, 2, 2, 4).max((2, 4))


class Control(ow.Module):
    """A loop of n turns of x -> x / 2 + 1, then a branch by its sum; counts its calls"""

    def __init__(self) -> None:
        super().__init__()
        self.calls = ow.Variable(0, trainable=False)

    @ow.function(input_signature=[ow.TensorSpec([None], ow.float32), ow.TensorSpec([], ow.int32)])
    def run(self, x: Any, n: Any) -> Any:
        self.calls.assign_add(1)
        y = ow.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * 0.5 + 1.0), (ow.constant(0), x))[1]
        return ow.cond(ow.reduce_sum(y) > 0.0, lambda: y * 10.0, lambda: -y)


def control(x: np.ndarray, n: int) -> np.ndarray:
    y = 2 + (x - 2) * 0.5**n
    return y * 10 if y.sum() > 0 else -y


@ow.custom_gradient
def _with_slope_3(x: Any) -> Any:
    return x * 1.0, lambda dy: dy * 3.0


class Lists(ow.Module):
    """Running sums by a TensorArray, of strings too, and a gradient of one's own"""

    @ow.function(input_signature=[ow.TensorSpec([4], ow.float32)])
    def run(self, x: Any) -> Any:
        array, total = ow.TensorArray(ow.float32, 4), ow.constant(0.0)
        for i in ow.range(4):
            total = total + x[i]
            array = array.write(i, total)
        return _with_slope_3(array.stack())

    @ow.function(input_signature=[ow.TensorSpec([None], ow.string)])
    def join(self, words: Any) -> Any:
        return ow.strings.reduce_join(ow.strings.upper(words), separator="-")


class Custom(ow.Module):
    """A user's operator, with its default and without"""

    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op

    @ow.function(input_signature=[ow.TensorSpec([4], ow.float32)])
    def run(self, x: Any) -> Any:
        return self.op(x) + self.op(x * 2.0, 3.0)


def custom(x: np.ndarray) -> np.ndarray:
    return np.tanh(x) + 3 * np.tanh(x * 2 / 3)


class Shapes(ow.Module):
    """Slices, gathers, joins, pads, reductions: operators with many attributes"""

    @ow.function(input_signature=[ow.TensorSpec([4, 6], ow.float32), ow.TensorSpec([2], ow.int32)])
    def run(self, x: Any, rows: Any) -> Any:
        a = ow.gather(x[1:, ::-2], rows)
        b = ow.transpose(ow.pad(a, [[0, 1], [1, 0]], constant_values=7.0))
        c = ow.concat([b, ow.one_hot(rows, 3, on_value=5.0, off_value=-1.0)], 0)
        return ow.concat([c, [ow.reduce_max(c, 0)], [ow.reduce_mean(c, 0)], [ow.cumsum(c, 0, exclusive=True)[-1]]], 0)


def shapes(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    a = x[1:, ::-2][rows]
    b = np.pad(a, [(0, 1), (1, 0)], constant_values=7).T
    c = np.concatenate([b, np.where(np.eye(3)[rows] > 0, 5, -1)])
    return np.concatenate([c, c.max(0, keepdims=True), c.mean(0, keepdims=True), c[:-1].sum(0, keepdims=True)])


class Case(NamedTuple):
    """make: the module; inputs: of its `run`; wanted: the formula; lite: whether there is a .tflite file too."""

    make: Callable[[], Any]
    inputs: Sequence[np.ndarray]
    wanted: Callable[..., np.ndarray]
    lite: bool = True


MODELS = {
    "dense": Case(Dense, [np.float32(weights(2, 3, start=9.0))], dense),
    "convolution": Case(Convolution, [np.float32(weights(1, 8, 8, 2, start=4.0))], convolution),
    "control": Case(Control, [np.float32([1.0, -3.0, 8.5]), np.int32(5)], control, lite=False),
    "lists": Case(Lists, [np.float32([1.5, -2.0, 0.25, 4.0])], np.cumsum, lite=False),
    "custom": Case(lambda: Custom(soft_clip(1)), [np.float32([-2.0, 0.0, 0.5, 30.0])], custom),
    "shapes": Case(Shapes, [np.float32(weights(4, 6)), np.int32([2, 0])], shapes),
}

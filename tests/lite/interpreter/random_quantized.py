"""Random graphs on int8: images through convolutions, pools, sums, joins, and what moves integers.

Lives here: drawing them.  Not here: the checks (test_random_graphs.py), graphs of floats (random_graphs.py).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from random_graphs import as_model

from opwright.lite.format import Model, objects, schema
from opwright.lite.ops import get


class Known(NamedTuple):
    """A tensor of int8."""

    index: int
    shape: tuple[int, ...]
    scale: float
    zero: int


class QuantizedGraph:
    """A subgraph on int8 that grows by one random operator at a time; unread tensors are outputs."""

    def __init__(self, seed: int, operators: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.buffers, self.tensors, self.nodes = [objects.Buffer()], [], []
        self.codes: dict[str, int] = {}
        self.known: list[Known] = []
        x = self.tensor((self.int(1, 2), self.int(4, 9), self.int(4, 9), self.int(1, 5)), 0.05, self.int(-20, 20))
        for _ in range(operators):
            self.one(*STEPS)(self)
        read = {i for node in self.nodes for i in node.inputs}
        self.inputs = [x.index]
        self.outputs = [t.index for t in self.known[1:] if t.index not in read] or [self.known[-1].index]

    def model(self) -> Model:
        return as_model(self)

    def feeds(self) -> list[np.ndarray]:
        return [self.rng.integers(-128, 128, self.tensors[i].shape).astype(np.int8) for i in self.inputs]

    # ---- drawing -----------------------------------------------------------------------------------------------

    def int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def one(self, *choices: Any) -> Any:
        return choices[self.int(0, len(choices) - 1)]

    def scale(self) -> float:
        return float(np.float32(self.rng.uniform(0.01, 0.1)))

    def _add_tensor(self, shape: tuple[int, ...], kind: str, scale: Any, zero: int, axis: int, values: Any) -> int:
        place = 0
        if values is not None:
            self.buffers.append(objects.Buffer(data=np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)))
            place = len(self.buffers) - 1
        q = None
        if scale is not None:
            scales = np.atleast_1d(np.float32(scale))
            q = objects.QuantizationParameters(
                scale=scales, zero_point=np.full(scales.shape, zero, np.int64), quantized_dimension=axis
            )
        self.tensors.append(
            objects.Tensor(
                shape=list(shape),
                type=schema.TensorType[kind],
                buffer=place,
                quantization=q,
                name=f"t{len(self.tensors)}",
            )
        )
        return len(self.tensors) - 1

    def tensor(self, shape: tuple[int, ...], scale: float, zero: int) -> Known:
        self.known.append(Known(self._add_tensor(shape, "INT8", scale, zero, 0, None), shape, scale, zero))
        return self.known[-1]

    def const(self, values: Any, kind: str = "INT32", scale: Any = None, axis: int = 0) -> int:
        array = np.asarray(values, {"INT32": np.int32, "INT8": np.int8}[kind])
        return self._add_tensor(array.shape, kind, scale, 0, axis, array)

    def pick(self, rank: int = 0) -> Known:
        """A tensor of that rank (0: any), of late ones sooner than of old ones."""
        fits = [t for t in self.known if rank in (0, len(t.shape))]
        return fits[-min(len(fits), 1 + int(self.rng.exponential(2)))]

    def add(
        self,
        name: str,
        inputs: list[int],
        shape: tuple[int, ...],
        like: Known | None = None,
        params: tuple[float, int] | None = None,
        **options: Any,
    ) -> Known:
        """A node with one output; its parameters: those of a tensor, given ones, or random."""
        if like is not None:
            params = like.scale, like.zero
        result = self.tensor(shape, *(params or (self.scale(), self.int(-60, 60))))
        code = self.codes.setdefault(name, len(self.codes))
        self.nodes.append(
            objects.Operator(
                opcode_index=code, inputs=inputs, outputs=[result.index], builtin_options=get(name).to_options(options)
            )
        )
        return result

    def weights(self, shape: tuple[int, ...], axis: int, x: Known) -> list[int]:
        """A filter with scales by channel, and its bias."""
        channels = shape[axis]
        scales = self.rng.uniform(0.002, 0.02, channels).astype(np.float32)
        w = self.const(self.rng.integers(-127, 128, shape), "INT8", scales, axis)
        bias = self.const(self.rng.integers(-3000, 3000, channels), "INT32", scales * np.float32(x.scale))
        return [w, bias]

    def activation(self) -> str:
        return self.one("NONE", "NONE", "RELU", "RELU6")


def _window(g: QuantizedGraph, x: Known) -> tuple[int, int, int, str, int, int]:
    size, stride, padding = g.int(1, min(3, *x.shape[1:3])), g.int(1, 2), g.one("SAME", "VALID")
    taken = [-(-n // stride) if padding == "SAME" else -(-(n - size + 1) // stride) for n in x.shape[1:3]]
    return size, stride, stride, padding, *taken


def _conv(g: QuantizedGraph) -> None:
    x = g.pick(4)
    size, sh, sw, padding, h, w = _window(g, x)
    out = g.int(1, 6)
    g.add(
        "CONV_2D",
        [x.index, *g.weights((out, size, size, x.shape[3]), 0, x)],
        (x.shape[0], h, w, out),
        padding=padding,
        stride_h=sh,
        stride_w=sw,
        dilation_h_factor=1,
        dilation_w_factor=1,
        fused_activation_function=g.activation(),
    )


def _depthwise(g: QuantizedGraph) -> None:
    x = g.pick(4)
    size, sh, sw, padding, h, w = _window(g, x)
    g.add(
        "DEPTHWISE_CONV_2D",
        [x.index, *g.weights((1, size, size, x.shape[3]), 3, x)],
        (x.shape[0], h, w, x.shape[3]),
        padding=padding,
        stride_h=sh,
        stride_w=sw,
        dilation_h_factor=1,
        dilation_w_factor=1,
        depth_multiplier=1,
        fused_activation_function=g.activation(),
    )


def _pool(g: QuantizedGraph) -> None:
    x = g.pick(4)
    size, sh, sw, padding, h, w = _window(g, x)
    g.add(
        g.one("AVERAGE_POOL_2D", "MAX_POOL_2D"),
        [x.index],
        (x.shape[0], h, w, x.shape[3]),
        x,
        padding=padding,
        stride_h=sh,
        stride_w=sw,
        filter_height=size,
        filter_width=size,
    )


def _binary(g: QuantizedGraph) -> None:
    x = g.pick()
    same = [t for t in g.known if t.shape == x.shape]
    y = g.one(*same)
    name = g.one("ADD", "ADD", "MUL", "SUB")
    options = {"pot_scale_int16": False} if name != "MUL" else {}
    g.add(name, [x.index, y.index], x.shape, fused_activation_function=g.activation(), **options)


def _unary(g: QuantizedGraph) -> None:
    x = g.pick()
    name = g.one("LOGISTIC", "TANH", "RELU", "HARD_SWISH", "LEAKY_RELU", "QUANTIZE")
    fixed = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
    options = {"alpha": 0.25} if name == "LEAKY_RELU" else {}
    g.add(name, [x.index], x.shape, params=fixed.get(name), **options)


def _softmax(g: QuantizedGraph) -> None:
    x = g.pick()
    g.add("SOFTMAX", [x.index], x.shape, params=(1 / 256, -128), beta=1.0)


def _dense(g: QuantizedGraph) -> None:
    x = g.pick()
    if len(x.shape) < 2:
        return
    n = g.int(1, 5)
    g.add(
        "FULLY_CONNECTED",
        [x.index, *_whole_tensor(g, n, x)],
        (*x.shape[:-1], n),
        keep_num_dims=True,
        fused_activation_function=g.activation(),
    )


def _whole_tensor(g: QuantizedGraph, n: int, x: Known) -> list[int]:
    scale = np.float32(g.rng.uniform(0.002, 0.02))
    w = g.const(g.rng.integers(-127, 128, (n, x.shape[-1])), "INT8", scale)
    return [w, g.const(g.rng.integers(-3000, 3000, n), "INT32", scale * np.float32(x.scale))]


def _mean(g: QuantizedGraph) -> None:
    x = g.pick(4)
    n, _, _, c = x.shape
    keep = bool(g.int(0, 1))
    g.add("MEAN", [x.index, g.const([1, 2])], (n, 1, 1, c) if keep else (n, c), keep_dims=keep)


def _join(g: QuantizedGraph) -> None:
    x = g.pick()
    same = [t for t in g.known if t.shape == x.shape and (t.scale, t.zero) == (x.scale, x.zero)]
    parts = [x, *(g.one(*same) for _ in range(g.int(0, 2)))]
    axis = g.int(0, len(x.shape) - 1)
    shape = (*x.shape[:axis], x.shape[axis] * len(parts), *x.shape[axis + 1 :])
    if shape[axis] <= 16:
        g.add("CONCATENATION", [t.index for t in parts], shape, x, axis=axis)


def _move(g: QuantizedGraph) -> None:
    x = g.pick()
    rank, size = len(x.shape), math.prod(x.shape)
    choice = g.int(0, 4)
    if choice == 0:
        g.add("RESHAPE", [x.index, g.const([size // x.shape[-1], x.shape[-1]])], (size // x.shape[-1], x.shape[-1]), x)
    elif choice == 1:
        order = g.rng.permutation(rank)
        g.add("TRANSPOSE", [x.index, g.const(order)], tuple(x.shape[k] for k in order), x)
    elif choice == 2:
        begin = [g.int(0, n - 1) for n in x.shape]
        sizes = [g.int(1, n - b) for n, b in zip(x.shape, begin)]
        g.add("SLICE", [x.index, g.const(begin), g.const(sizes)], tuple(sizes), x)
    elif choice == 3:
        pads = g.rng.integers(0, 2, (rank, 2))
        if max(x.shape) < 12:
            g.add("PAD", [x.index, g.const(pads)], tuple(int(n + p.sum()) for n, p in zip(x.shape, pads)), x)
    elif rank == 4:
        h, w = g.int(1, 8), g.int(1, 8)
        g.add(
            g.one("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
            [x.index, g.const([h, w])],
            (x.shape[0], h, w, x.shape[3]),
            x,
        )


STEPS = (_conv, _conv, _depthwise, _pool, _binary, _binary, _unary, _softmax, _dense, _mean, _join, _move, _move)

"""Models of chains of two operators, to compare what fusion makes of them with the reference kernels.

Lives here: `Stage`, the table STAGES of element-wise steps, the table PRODUCERS, `Chains`: a model of many chains.
Not here: the checks (test_fused_chains.py).

A stage takes a tensor and gives one of the same shape and type. All chains of a model have the same inputs and an
output each, so that one interpreter serves many of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from lite_kit import Build

from opwright.lite.format import objects, versions

KINDS = {
    "INT8": (np.int8, 0.05, -5),
    "UINT8": (np.uint8, 0.05, 121),
    "INT16": (np.int16, 0.0005, 0),
    "FLOAT32": (np.float32, None, 0),
}
"""By type, NumPy's, the scale and the zero point of tensors."""
FIXED = {
    ("LOGISTIC", "INT8"): (1 / 256, -128),
    ("LOGISTIC", "UINT8"): (1 / 256, 0),
    ("LOGISTIC", "INT16"): (2**-15, 0),
    ("TANH", "INT8"): (1 / 128, 0),
    ("TANH", "UINT8"): (1 / 128, 128),
    ("TANH", "INT16"): (2**-15, 0),
    ("SOFTMAX", "INT8"): (1 / 256, -128),
    ("SOFTMAX", "UINT8"): (1 / 256, 0),
    ("SOFTMAX", "INT16"): (2**-15, 0),
    ("L2_NORMALIZATION", "INT8"): (1 / 128, 0),
}
"""Outputs whose scale and zero point the operator prescribes."""


class T(NamedTuple):
    """A tensor of a model that is being written."""

    name: str
    shape: tuple[int, ...]
    scale: float | None
    zero: int


class Chains:
    """A model of chains on the inputs x and b, both of one shape and type."""

    def __init__(self, kind: str, shape: tuple[int, ...], seed: int = 0) -> None:
        self.kind, self.shape = kind, shape
        self.dtype, self.scale, self.zero = KINDS[kind]
        self.build, self.rng, self.ends = Build(), np.random.default_rng(seed), []
        self._names = (f"t{i}" for i in itertools.count())
        self.x, self.b = (self._tensor(name, shape) for name in ("x", "b"))

    def _parameters(self, scale: float | None, zero: int) -> dict[str, Any]:
        if scale is None:
            return {}
        return {"quantization": objects.QuantizationParameters(scale=[scale], zero_point=[zero])}

    def _tensor(
        self, name: str, shape: tuple[int, ...], scale: float | None = None, zero: int = 0, kind: str = ""
    ) -> T:
        if not kind and scale is None:
            scale, zero = self.scale, self.zero
        self.build.tensor(name, shape, kind or self.kind, **self._parameters(scale, zero))
        return T(name, shape, scale, zero)

    def constant(self, *shape: int) -> T:
        """Random numbers as the other tensors have them, none of them 0: integers are divided by them."""
        name, data = next(self._names), self.draw(shape)
        data[data == self.zero] += 1
        data[data == 0] += 1
        self.build.tensor(name, type=self.kind, data=data, **self._parameters(self.scale, self.zero))
        return T(name, shape, self.scale, self.zero)

    def integers(self, values: Any) -> str:
        """A constant of int32."""
        name = next(self._names)
        self.build.tensor(name, type="INT32", data=np.int32(values))
        return name

    def weights(self, shape: tuple[int, ...], channels: int) -> tuple[str, str]:
        """A filter and a bias."""
        w, b = next(self._names), next(self._names)
        if self.scale is None:
            data = self.rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
            self.build.tensor(w, data=data.astype(np.float32))
            self.build.tensor(b, data=self.rng.normal(size=channels).astype(np.float32))
            return w, b
        unsigned, wide = self.kind == "UINT8", self.kind == "INT16"
        low, high = (100, 156) if unsigned else (-28, 28)
        scale, zero = 0.02, 128 if unsigned else 0
        data = self.rng.integers(low, high, shape).astype(np.uint8 if unsigned else np.int8)
        self.build.tensor(w, type="UINT8" if unsigned else "INT8", data=data, **self._parameters(scale, zero))
        bias = self.rng.integers(-500, 500, channels).astype(np.int64 if wide else np.int32)
        self.build.tensor(b, type="INT64" if wide else "INT32", data=bias, **self._parameters(self.scale * scale, 0))
        return w, b

    def op(self, name: str, inputs: str, shape: tuple[int, ...], kind: str = "", **options: Any) -> T:
        """One operator; kind: of its output, where that is another."""
        scale, zero = FIXED.get((name, self.kind), (None, 0)) if not kind else (None, 0)
        y = self._tensor(next(self._names), shape, scale, zero, kind)
        self.build.op(name, inputs, y.name, **options)
        return y

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers for a tensor: all that its type has, where there is room."""
        if self.scale is None:
            return self.rng.uniform(-3.0, 3.0, shape).astype(np.float32)
        if self.kind == "INT16":
            return self.rng.integers(-12000, 12000, shape).astype(np.int16)
        return self.rng.integers(0, 256, shape).astype(np.uint8).view(self.dtype)

    def end(self, y: T) -> None:
        """Make a tensor an output."""
        self.ends.append(y.name)

    def content(self, label: str = "") -> bytes:
        """The file. label: makes it another file than one of the same chains."""
        self.build.model.description = label
        self.build.ends("x b", " ".join(self.ends))
        versions.stamp_model(self.build.model)
        return bytes(self.build.model.to_bytes())

    def feeds(self) -> list[np.ndarray]:
        """Numbers for the inputs."""
        return [self.draw(self.shape), self.draw(self.shape)]


# ---- stages --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """write(chains, x): adds the operators of one step and gives its result."""

    name: str
    write: Callable[[Chains, T], T]

    def __str__(self) -> str:
        return self.name


UNARY = (
    "ABS",
    "NEG",
    "SQUARE",
    "EXP",
    "SQRT",
    "RSQRT",
    "LOG",
    "SIN",
    "COS",
    "FLOOR",
    "CEIL",
    "ROUND",
    "SIGN",
    "LOGISTIC",
    "TANH",
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "RELU_0_TO_1",
    "LEAKY_RELU",
    "ELU",
    "HARD_SWISH",
    "GELU",
    "QUANTIZE",
)
BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "POW")
DIVISIONS = ("DIV", "FLOOR_DIV", "FLOOR_MOD")
COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
OTHERS: dict[str, Callable[[Chains, T], str]] = {
    "number": lambda c, x: c.constant(1).name,
    "channels": lambda c, x: c.constant(x.shape[-1]).name,
    "elements": lambda c, x: c.constant(*x.shape).name,
    "input": lambda c, x: c.b.name if x.shape == c.shape else c.constant(*x.shape).name,
    "itself": lambda c, x: x.name,
}
"""Second operands of a binary operator, by kind."""


def _unary(name: str) -> Stage:
    options = {"alpha": 0.3} if name == "LEAKY_RELU" else {}
    return Stage(name, lambda c, x: c.op(name, x.name, x.shape, **options))


def _binary(name: str, other: str, turned: bool) -> Stage:
    def write(c: Chains, x: T) -> T:
        pair = [x.name, OTHERS[other](c, x)]
        return c.op(name, " ".join(reversed(pair) if turned else pair), x.shape)

    return Stage(f"{name} {other}{' turned' if turned else ''}", write)


def _compared(c: Chains, x: T, name: str, other: str) -> T:
    return c.op(name, f"{x.name} {OTHERS[other](c, x)}", x.shape, kind="BOOL")


def _chosen(name: str, other: str, choice: str, side: str) -> Stage:
    def write(c: Chains, x: T) -> T:
        if (x.scale, x.zero) != (c.scale, c.zero):  # a choice has the scale of what it chooses from
            x = c.op("QUANTIZE", x.name, x.shape)
        mask = _compared(c, x, name, other)
        if choice.startswith("LOGICAL_NOT"):
            mask = c.op("LOGICAL_NOT", mask.name, x.shape, kind="BOOL")
        elif choice.startswith("LOGICAL"):
            more = _compared(c, x, "LESS", "number")
            mask = c.op(choice.split()[0], f"{mask.name} {more.name}", x.shape, kind="BOOL")
        return c.op(
            "SELECT" if side != "number" and len(choice) == 6 else "SELECT_V2",
            f"{mask.name} {x.name} {SIDES[side](c, x)}",
            x.shape,
        )

    return Stage(f"{name} {other} {choice} {side}", write)


SIDES: dict[str, Callable[[Chains, T], str]] = {
    "elements": lambda c, x: c.constant(*x.shape).name,
    "number": lambda c, x: c.constant(1).name,
    "function": lambda c, x: c.op("MUL", f"{x.name} {c.constant(1).name}", x.shape).name,
}
"""What a choice has where the condition is false: with a number or a function of x it is one of x alone."""

STAGES = [
    *map(_unary, UNARY),
    *(
        _binary(name, other, turned)
        for name in BINARY
        for other in OTHERS
        for turned in (False, True)
        if not (turned and (name in ("ADD", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE") or other == "itself"))
        and not (name in DIVISIONS and (turned or other in ("input", "itself")))
    ),
    *(
        _chosen(name, other, choice, side)
        for name in COMPARISONS
        for other in ("number", "channels", "input")
        for choice in ("SELECT", "SELECT_V2", "LOGICAL_NOT SELECT", "LOGICAL_AND SELECT", "LOGICAL_OR SELECT")
        for side in SIDES
    ),
]


# ---- what maps are fused into --------------------------------------------------------------------------------------


def _window(c: Chains, x: T) -> tuple[int, int, int, int]:
    n, h, w, ch = x.shape
    return n, h, w, ch


def _conv(size: int, padding: str = "SAME") -> Callable[[Chains, T], T]:
    def write(c: Chains, x: T) -> T:
        n, h, w, ch = _window(c, x)
        f, b = c.weights((ch, size, size, ch), ch)
        less = 0 if padding == "SAME" else size - 1
        return c.op(
            "CONV_2D", f"{x.name} {f} {b}", (n, h - less, w - less, ch), padding=padding, stride_h=1, stride_w=1
        )

    return write


def _depthwise(c: Chains, x: T) -> T:
    f, b = c.weights((1, 3, 3, x.shape[3]), x.shape[3])
    return c.op(
        "DEPTHWISE_CONV_2D", f"{x.name} {f} {b}", x.shape, padding="SAME", stride_h=1, stride_w=1, depth_multiplier=1
    )


def _fully_connected(c: Chains, x: T) -> T:
    n, h, w, ch = _window(c, x)
    f, b = c.weights((ch, ch), ch)
    return c.op("FULLY_CONNECTED", f"{x.name} {f} {b}", (n, h, w, ch), keep_num_dims=True)


def _transposed(c: Chains, x: T) -> T:
    n, h, w, ch = _window(c, x)
    f, b = c.weights((ch, 2, 2, ch), ch)
    shape = (n, 2 * h, 2 * w, ch)
    return c.op(
        "TRANSPOSE_CONV", f"{c.integers(shape)} {f} {x.name} {b}", shape, padding="VALID", stride_h=2, stride_w=2
    )


def _pool(name: str) -> Callable[[Chains, T], T]:
    return lambda c, x: c.op(
        name, x.name, x.shape, padding="SAME", stride_h=1, stride_w=1, filter_height=3, filter_width=2
    )


def _reduced(name: str) -> Callable[[Chains, T], T]:
    return lambda c, x: c.op(name, f"{x.name} {c.integers([1, 2])}", (x.shape[0], x.shape[3]))


def _resized(name: str) -> Callable[[Chains, T], T]:
    return lambda c, x: c.op(name, f"{x.name} {c.integers([7, 9])}", (x.shape[0], 7, 9, x.shape[3]))


def _matmul(c: Chains, x: T) -> T:
    return c.op("BATCH_MATMUL", f"{x.name} {c.b.name}", (*x.shape[:3], x.shape[2]), adj_y=True)


def _padded(write: Callable[[Chains, T], T]) -> Callable[[Chains, T], T]:
    def padded(c: Chains, x: T) -> T:
        n, h, w, ch = x.shape
        whole = c.op("PAD", f"{x.name} {c.integers([[0, 0], [1, 2], [2, 1], [0, 0]])}", (n, h + 3, w + 3, ch))
        return write(c, whole)

    return padded


def _reshaped(write: Callable[[Chains, T], T]) -> Callable[[Chains, T], T]:
    def reshaped(c: Chains, x: T) -> T:
        y = write(c, x)
        shape = (y.shape[0], int(np.prod(y.shape[1:-1])), y.shape[-1])
        result = c._tensor(next(c._names), shape, y.scale, y.zero)
        c.build.op("RESHAPE", f"{y.name} {c.integers(shape)}", result.name, new_shape=list(shape))
        return result

    return reshaped


PRODUCERS = [
    Stage(name, write)
    for name, write in {
        "CONV_2D 1x1": _conv(1),
        "CONV_2D 3x3": _conv(3),
        "CONV_2D VALID": _conv(3, "VALID"),
        "DEPTHWISE_CONV_2D": _depthwise,
        "FULLY_CONNECTED": _fully_connected,
        "TRANSPOSE_CONV": _transposed,
        "BATCH_MATMUL": _matmul,
        "MAX_POOL_2D": _pool("MAX_POOL_2D"),
        "AVERAGE_POOL_2D": _pool("AVERAGE_POOL_2D"),
        "MEAN": _reduced("MEAN"),
        "SUM": _reduced("SUM"),
        "REDUCE_MAX": _reduced("REDUCE_MAX"),
        "RESIZE_BILINEAR": _resized("RESIZE_BILINEAR"),
        "RESIZE_NEAREST_NEIGHBOR": _resized("RESIZE_NEAREST_NEIGHBOR"),
        "SOFTMAX": lambda c, x: c.op("SOFTMAX", x.name, x.shape, beta=1.0),
        "L2_NORMALIZATION": lambda c, x: c.op("L2_NORMALIZATION", x.name, x.shape),
        "PAD CONV_2D": _padded(_conv(3, "VALID")),
        "PAD DEPTHWISE_CONV_2D": _padded(_depthwise),
        "PAD MAX_POOL_2D": _padded(_pool("MAX_POOL_2D")),
        "PAD AVERAGE_POOL_2D": _padded(_pool("AVERAGE_POOL_2D")),
        "CONV_2D RESHAPE": _reshaped(_conv(1)),
        "MAX_POOL_2D RESHAPE": _reshaped(_pool("MAX_POOL_2D")),
    }.items()
]
"""Forms that take the maps behind them, with pads in front of them and views between."""


def joined(first: Sequence[Stage]) -> Stage:
    """A concatenation of what several stages make of x: its parts are written in place."""

    def write(c: Chains, x: T) -> T:
        parts = [stage.write(c, x) for stage in first]
        shape = (*x.shape[:-1], sum(p.shape[-1] for p in parts))
        return c.op("CONCATENATION", " ".join(p.name for p in parts), shape, axis=-1)

    return Stage("CONCATENATION of " + " and ".join(s.name for s in first), write)

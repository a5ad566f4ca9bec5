"""Operands of the rules of quantized operators, and the checks that these rules share.

Lives here: `Operand`, types that go together, bounds of fused activations.  Not here: arithmetic (fixed_point.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ....core.errors import InvalidArgumentError, UnimplementedError
from ....scalar.fixed_point import log2_of_scale
from ....scalar.formulas import CLAMPS

LIMITS = {
    "INT8": (-128, 127),
    "UINT8": (0, 255),
    "INT16": (-32768, 32767),
    "INT4": (-8, 7),
    "INT2": (-2, 1),
    "UINT4": (0, 15),
    "UINT16": (0, 65535),
    "INT32": (-(2**31), 2**31 - 1),
    "INT64": (-(2**63), 2**63 - 1),
}


class Operand:
    """A tensor of a node: real = scale * (q - zero_point).

    type: the schema's name, such as INT8; scales, zero_points: float32 and int64 vectors of one length, along the
    dimension `axis` where longer than one, empty for a tensor that is not quantized; scale, zero_point: the first of
    each, as a np.float32 and an int; low, high: the type's range; constant: the elements where they never change;
    blocks: scales by block instead (runtime/tensor.py), which hybrid.py alone knows.
    raises InvalidArgumentError for scales and zero points that do not fit each other or the type
    """

    __slots__ = (
        "axis",
        "blocks",
        "constant",
        "high",
        "low",
        "name",
        "scale",
        "scales",
        "shape",
        "type",
        "zero_point",
        "zero_points",
    )

    def __init__(self, t: Any) -> None:
        self.name, self.type, self.shape = t.name, t.type.name, t.shape
        self.constant, self.blocks = t.constant, t.blocks
        self.low, self.high = LIMITS.get(self.type, (0, 0))
        q = t.quantization if t.is_quantized else None
        self.axis = 0 if q is None else int(q.quantized_dimension)
        self.scales = np.zeros(0, np.float32) if q is None else np.asarray(q.scale, np.float32)
        zero_points = np.zeros(0, np.int64) if q is None or q.zero_point is None else np.asarray(q.zero_point, np.int64)
        n = len(self.scales)
        if len(zero_points) not in (0, 1, n):
            raise self.wrong(
                "has another number of zero points than scales", f"{len(zero_points)} and {n}", wanted="as many, or one"
            )
        self.zero_points = np.zeros(n, np.int64) if not len(zero_points) else np.resize(zero_points, n)
        if n and not (np.isfinite(self.scales).all() and (self.scales >= 0).all()):
            raise self.wrong(
                "has a scale that is negative or not finite",
                self.scales[:8].tolist(),
                wanted="finite scales of at least 0",
            )
        if n and (self.zero_points.min() < self.low or self.zero_points.max() > self.high):
            raise self.wrong(
                "has a zero point outside its type", self.zero_points[:8].tolist(), wanted=f"{self.low} to {self.high}"
            )
        if n > 1 and not (0 <= self.axis < len(self.shape) and self.shape[self.axis] == n):
            raise self.wrong(
                "has scales that fit none of its sizes",
                f"{n} along {self.axis} of {self.shape}",
                wanted="one scale, or one for each slice of the quantized dimension",
            )
        self.scale = self.scales[0] if n else np.float32(0)
        self.zero_point = int(self.zero_points[0]) if n else 0

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return len(self.scales) > 1

    def wrong(self, what: str, found: object, wanted: object = None) -> InvalidArgumentError:
        """Return an error about this tensor."""
        return InvalidArgumentError(what=f"tensor {self.name!r} ({self.type}) {what}", found=found, wanted=wanted)

    @property
    def single(self) -> tuple[float, int]:
        """Scale and zero point of a tensor with one scale; else zeros."""
        return (float(self.scale), self.zero_point) if len(self.scales) == 1 else (0.0, 0)

    @property
    def reach(self) -> int:
        """The greatest |q - zero_point|."""
        return max(self.high - self.zero_point, self.zero_point - self.low)

    @property
    def log2_scale(self) -> int | None:
        """The exponent of a scale that is a power of two; None for other scales."""
        return log2_of_scale(float(self.scale))

    def saturated(self, steps: Any, low: int | None = None, high: int | None = None) -> np.ndarray:
        """Return integers from steps of the scale: add the zero point, clamp to low..high, by default the type's."""
        bounds = self.low if low is None else low, self.high if high is None else high
        result: np.ndarray = np.clip(steps + self.zero_point, *bounds)
        return result

    def centred(self, q: np.ndarray, dtype: Any = np.int64) -> np.ndarray:
        """Return q - zero_point in a wider type."""
        wide = q.astype(dtype)
        if self.zero_point:
            wide -= dtype(self.zero_point)
        return wide


def present(operands: Mapping[str, Operand | None], *names: str) -> list[Operand]:
    """Return operands whose presence `infer` has checked."""
    selected = [operands[name] for name in names]
    return [o for o in selected if o is not None]


def types_of(operands: Iterable[Operand | None]) -> tuple[str, ...]:
    """Return the names of the types, "" for omitted operands."""
    return tuple("" if o is None else o.type for o in operands)


BIASES = {"INT8": ("", "INT32"), "UINT8": ("", "INT32"), "INT16": ("", "INT64", "INT32")}
"""Types of the bias of products by the type of the input; the first is that of an absent one."""


def check_types(op: Any, combinations: Iterable[str], *operands: Operand | None) -> str:
    """Check that the operands' types are one of the combinations, such as "INT8 INT8 INT32"; return the first type.

    raises UnimplementedError naming operator, tensors and types
    """
    combinations = tuple(combinations)
    types = " ".join(types_of(operands))
    if types not in combinations:
        named = ", ".join(f"{o.name!r} {o.type}" for o in operands if o is not None)
        raise UnimplementedError(
            op=op.operator.name,
            what="no integer kernel for these types",
            found=named,
            wanted=" or ".join(combinations),
            explain="OW103",
        )
    assert operands[0] is not None
    result: str = operands[0].type
    return result


def check_scaled(*operands: Operand | None, zero: bool = False) -> None:
    """Raise InvalidArgumentError unless each operand has one scale per tensor. zero: whether it may be 0."""
    for o in operands:
        if o is not None and len(o.scales) != 1:
            raise o.wrong("has no single scale", f"{len(o.scales)} scales", "one scale and zero point")
        if o is not None and not zero and o.scale == 0:
            raise o.wrong("has a scale of 0", 0.0, "a positive scale")


def check_axis(o: Operand, axis: int) -> None:
    """Raise InvalidArgumentError if an operand has scales along another dimension."""
    if o.per_channel and o.axis != axis:
        raise o.wrong("has scales along another dimension than that of the outputs", o.axis, axis)


def check_symmetric(*operands: Operand | None) -> None:
    """Raise InvalidArgumentError if an operand has a zero point other than 0."""
    for o in operands:
        if o is not None and o.zero_points.any():
            raise o.wrong("has a zero point", o.zero_points[:8].tolist(), "zero point 0")


def check_same(*operands: Operand) -> None:
    """Raise InvalidArgumentError if operands differ in scale or zero point.

    As in the official kernels, an operand with several scales counts as one without.
    """
    first = operands[0]
    for o in operands[1:]:
        if o.single != first.single:
            raise o.wrong("differs in scale or zero point", list(o.single), list(first.single))


def check_output(y: Operand, scale: float, zero_point: int, slack: float = 0.0) -> None:
    """Raise InvalidArgumentError unless an output has the parameters that its operator prescribes."""
    if abs(float(y.scale) - scale) > slack * scale or y.zero_point != zero_point:
        raise y.wrong(
            "has other parameters than the operator fixes", [float(y.scale), y.zero_point], [scale, zero_point]
        )


def quantize_real(value: float, y: Operand) -> int:
    """Quantize a real number, without clamping to the type's range."""
    ratio = float(np.float32(value) / y.scale) if y.scale else 0.0
    return y.zero_point + int(np.sign(ratio) * np.floor(abs(ratio) + 0.5)) if abs(ratio) < 2**40 else y.high


def fused_bounds(activation: str, y: Operand) -> tuple[int, int]:
    """Return the bounds of a fused activation as integers. `activation`: NONE, RELU, ..."""
    low, high = CLAMPS.get(activation, (None, None))
    return (
        y.low if low is None else max(y.low, quantize_real(low, y)),
        y.high if high is None else min(y.high, quantize_real(high, y)),
    )

"""Nodes as rules see them: operands with their scales, options, and the forms that are added.

Lives here: `At`, `Operand`, `Buffers`; values as expressions (`real`, `stored`, `clamped`).
Not here: the rules (rules/), which nodes are asked about (delegate.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.loops.adding import Adding, Refused
from ...compiler.loops.expressions import Expr, apply, arg, const, convert, quantize, scalar
from ...compiler.loops.forms import Buffer, View
from ...core.dtypes import DType, float32, int8, int16, int64, uint8, uint64
from ..runtime.node import Node
from ..runtime.resources import ResourceVariable
from ..runtime.tensor import Tensor

NARROW = (int8, uint8, int16)
"""Integers that may stand for real numbers by one scale and zero point."""
MOST_STEPS = float(1 << 16)
"""Steps of an output that an integer of 1 may stand for: beyond, all but 0 saturates here, and the operator wraps."""
MOST_SCALE = float(1 << 40)
"""Scales from its inverse to this are computed with: products and quotients of three stay within float32."""


class Operand:
    """A tensor as an operand. buffer: in the loop graph."""

    __slots__ = ("_constant", "_follows", "buffer", "tensor")

    def __init__(self, tensor: Tensor, buffer: Buffer) -> None:
        self.tensor, self.buffer = tensor, buffer
        self._constant: np.ndarray | None = buffer.constant
        self._follows: Callable[[], np.ndarray] | None = None

    @property
    def constant(self) -> np.ndarray | None:
        """Its elements, if known: of the file, or computed of constants."""
        if self._constant is None and self._follows is not None:
            self._constant = self._follows()
        return self._constant

    @property
    def is_constant(self) -> bool:
        """Whether its elements are known; does not compute them."""
        return self._constant is not None or self._follows is not None

    def follows(self, compute: Callable[[], np.ndarray]) -> None:
        """Declare that the elements follow from constants: compute() returns them. A form writes the buffer, too."""
        self._follows = compute

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.buffer.dtype

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.buffer.size

    @property
    def is_quantized(self) -> bool:
        """Whether it has a scale; a tensor of scales by block has none here."""
        t = self.tensor
        return t.blocks is None and t.is_quantized

    @property
    def scale(self) -> float:
        """The one scale. Raises Refused where there is none, or several, or one whose quotients may overflow."""
        scales = self.scales
        if scales.size != 1:
            raise Refused(f"{self.tensor.name!r} has {scales.size} scales")
        if not scales[0] >= 1 / MOST_SCALE:
            raise Refused(f"{self.tensor.name!r} has the scale {scales[0]:g}")
        return float(scales[0])

    @property
    def scales(self) -> np.ndarray:
        """All scales, float32. Raises Refused where there are none, one whose products may overflow, or a zero point
        outside the type, which operators refuse.

        Channels of weights that are all 0 have scales as small as they come.
        """
        if not self.is_quantized:
            raise Refused(f"{self.tensor.name!r} has no scale")
        low, high = self.dtype.limits
        points = self.tensor.quantization.zero_point
        if points is not None and len(points) and (np.min(points) < low or np.max(points) > high):
            raise Refused(f"{self.tensor.name!r} has the zero points {np.asarray(points)[:8].tolist()}")
        scales = np.asarray(self.tensor.quantization.scale, np.float32)
        if not np.all(scales <= MOST_SCALE):
            raise Refused(f"{self.tensor.name!r} has the scale {scales.max():g}")
        return scales

    @property
    def zero(self) -> int:
        """The zero point. Raises Refused where there are several."""
        points = self.tensor.quantization.zero_point
        if points is None or len(points) == 0:
            return 0
        first = int(points[0])
        if len(points) > 1 and (np.asarray(points) != first).any():
            raise Refused(f"{self.tensor.name!r} has several zero points")
        return first

    def __repr__(self) -> str:
        return repr(self.buffer)


class Buffers:
    """The buffers of a subgraph's tensors, made on demand. variables: the memory of each variable that nodes name, and
    the shape of what they assign, if they do.

    seen: by tensor, elements of a run before, where sizes are those of that run; None where sizes are known. A rule
    that asks for such elements is given them, and the tensor is `assumed` from then on. counts: by tensor, the cell for
    its number of rows, where that is known only when a node has run.
    """

    def __init__(self, seen: Mapping[int, np.ndarray] | None = None) -> None:
        self._made: dict[int, Operand] = {}
        self.seen = seen
        self.assumed: set[int] = set()
        self.counts: dict[int, Buffer] = {}
        self.variables: dict[ResourceVariable, tuple[Buffer, tuple[int, ...] | None]] = {}

    def variable(self, handle: Tensor, value: Buffer, assigned: bool) -> Buffer:
        """The memory of the variable that a handle means, for values like this one. Raises Refused where the handle is
        known only as the model runs, or others of the subgraph read or assign other values."""
        self._check_stateless()
        elements = handle.constant
        variable = None if elements is None or elements.size != 1 else elements.reshape(-1)[0]
        if not isinstance(variable, ResourceVariable):
            raise Refused(f"the variable of {handle!r} is not known before it runs")
        memory, shape = self.variables.get(variable, (None, None))
        if memory is None:
            memory = Buffer(f"t{handle.index}", value.dtype, value.shape)
        if memory.dtype is not value.dtype or memory.size != value.size:
            raise Refused(f"{variable!r} is {memory} elsewhere")
        if assigned and shape not in (None, value.shape):
            raise Refused(f"{variable!r} gets the shape {list(shape or ())} elsewhere")
        self.variables[variable] = memory, value.shape if assigned else shape
        return memory

    def _check_stateless(self) -> None:
        """Raises Refused where sizes are assumed: plans for those are given tensors, and nothing that stays."""
        if self.seen is not None:
            raise Refused("it has state, and sizes that are known only as it runs")

    def assume(self, operand: Operand) -> None:
        """Let an operand have the elements that were seen, if they were."""
        index = operand.tensor.index
        if self.seen is not None and index in self.seen:
            self.assumed.add(index)
            operand.follows(functools.partial(self.seen.__getitem__, index))

    def counted(self, t: Tensor, most: int) -> tuple[Operand, Buffer]:
        """As `At.counted`."""
        if self.seen is None or not t.shape or t.index in self._made:
            raise Refused("how many rows it has is not known before it runs")
        if t._dtype is None or t.is_object:
            raise Refused(f"tensors of type {getattr(t.type, 'name', t.type)}")
        found = self._made[t.index] = Operand(t, Buffer(f"t{t.index}", t.dtype, (most, *t.shape[1:])))
        count = self.counts[t.index] = Buffer(f"t{t.index}.count", int64, (2,))
        return found, count

    def sequence(self, node: Node, seeds: tuple[int, int]) -> Buffer:
        """The memory of a node's random numbers: the state of its generator. Raises Refused beside what is assumed."""
        self._check_stateless()
        resource = node.subgraph.resources.sequence(node.subgraph.index, node.number, seeds)
        memory = Buffer(f"t{-1 - node.number}", uint64, (3,))  # the name of no tensor
        self.variables[resource] = memory, None
        return memory

    def of(self, t: Tensor) -> Operand:
        """The tensor as an operand. Raises Refused for types that no form has."""
        found = self._made.get(t.index)
        if found is None:
            if t._dtype is None or t.is_object:
                raise Refused(f"tensors of type {getattr(t.type, 'name', t.type)}")
            constant = t.constant
            found = self._made[t.index] = Operand(t, Buffer(f"t{t.index}", t.dtype, t.shape, constant))
        return found


class At(Adding):
    """One node, and the forms that its rule adds."""

    __slots__ = ("_buffers", "node")

    def __init__(self, node: Node, buffers: Buffers) -> None:
        super().__init__((f"{node.name} {node.number}",))
        self.node, self._buffers = node, buffers

    # ---- what it has ------------------------------------------------------------------------------------------------

    def operand(self, place: int) -> Operand:
        """An input. Raises Refused where it is left out."""
        found = self.optional(place)
        if found is None:
            raise Refused(f"input {place} is left out")
        return found

    def optional(self, place: int) -> Operand | None:
        """An input, or None where it is left out."""
        tensors = self.node.tensors_in
        t = tensors[place] if place < len(tensors) else None
        return None if t is None else self._buffers.of(t)

    def of(self, t: Tensor) -> Operand:
        """A tensor as an operand. Raises Refused for types that no form has."""
        return self._buffers.of(t)

    def constant(self, place: int) -> np.ndarray:
        """The elements of an input: known, or assumed. Raises Refused where they are neither."""
        operand = self.operand(place)
        if not operand.is_constant:
            self._buffers.assume(operand)
        return super().constant(place)

    def counted(self, most: int) -> tuple[Operand, Buffer]:
        """The first output with so many rows, and the cell for how many of them there are after a run. Raises Refused
        where sizes are those that the file says."""
        return self._buffers.counted(self.node.tensors_out[0], most)

    def variable(self, place: int, value: Buffer, assigned: bool = False) -> Buffer:
        """The memory of the variable whose handle is this input; see `Buffers.variable`."""
        handle = self.node.tensors_in[place]
        if handle is None:
            raise Refused(f"input {place} is left out")
        return self._buffers.variable(handle, value, assigned)

    def sequence(self, seeds: tuple[int, int]) -> Buffer:
        """The memory of the node's random numbers; see `Buffers.sequence`."""
        return self._buffers.sequence(self.node, seeds)

    @property
    def operands(self) -> list[Operand]:
        """All inputs. Raises Refused where one is left out."""
        return [self.operand(i) for i in range(len(self.node.tensors_in))]

    def output(self, shape: Sequence[int] | None = None, place: int = 0) -> Operand:
        """An output; shape: the one that follows from the inputs. Raises Refused where the file has another."""
        found = self._buffers.of(self.node.tensors_out[place])
        if shape is not None and found.shape != tuple(shape):
            raise Refused(f"the output has the shape {list(found.shape)}, {list(shape)} follows from the inputs")
        return found

    def option(self, name: str) -> Any:
        """An option of the operator; 0 where the file has none. Of an enum: the member's name, or 0."""
        value = getattr(self.node.options, name, 0)
        return getattr(value, "name", value)

    # ---- what it becomes --------------------------------------------------------------------------------------------

    def new(self, dtype: DType, shape: Sequence[int], name: str = "") -> Buffer:
        """A buffer for what lies between two forms of this node."""
        t = self.node.tensors_out[0]
        return Buffer(f"t{t.index}{name or f'.{len(self.forms)}'}", dtype, tuple(shape))

    def under(self, output: Operand, shape: Sequence[int]) -> tuple[Buffer, Callable[[], None]]:
        """A buffer of another shape for a form to write, and what to call after that form: it becomes the output."""
        if output.shape == tuple(shape):
            return output.buffer, lambda: None
        made = self.new(output.dtype, shape)

        def close() -> None:
            self.form(View, output.buffer, made)

        return made, close


# ---- values as expressions ------------------------------------------------------------------------------------------


def real(operand: Operand, place: int) -> Expr:
    """The real numbers that the operand `place` of a form stands for, float32; one number is a scalar.

    raises Refused for other types
    """
    value = steps(operand, place)
    if operand.dtype is float32 or (operand.size == 1 and operand.constant is not None):
        return value
    return apply("mul", value, scalar(operand.scale, float32))


def steps_per(scale: Any, output: Operand) -> Any:
    """Return steps of the output for one of `scale`, which may be an array. Raises Refused above MOST_STEPS."""
    ratio = scale / output.scale
    if not np.all(ratio <= MOST_STEPS):
        raise Refused(f"the scale {np.max(scale):g} is {np.max(ratio):g} steps of {output.tensor.name!r}")
    return ratio


def steps(operand: Operand, place: int) -> Expr:
    """As `real`, in steps of the scale: float32 q - zero point. Constants of one element: their real number."""
    if operand.size == 1 and operand.constant is not None:
        return scalar(float(real_number(operand)), float32)
    if operand.dtype is float32:
        return arg(place, float32)
    if operand.dtype not in NARROW or not operand.is_quantized:
        raise Refused(f"elements of type {operand.dtype.name}")
    return apply("sub", convert(arg(place, operand.dtype), float32), scalar(operand.zero, float32))


def real_number(operand: Operand) -> float:
    """What a constant of one element stands for."""
    assert operand.constant is not None
    value = operand.constant.reshape(-1)[0]
    if operand.dtype is float32:
        return float(value)
    return (float(value) - operand.zero) * operand.scale


def stored(value: Expr, output: Operand, activation: Any = 0) -> Expr:
    """Real numbers, after an activation, as the output has them. Raises Refused for other types."""
    if output.dtype is float32:
        return clamped(value, activation)
    if output.dtype not in NARROW or not output.is_quantized:
        raise Refused(f"elements of type {output.dtype.name}")
    return in_steps(apply("mul", value, scalar(1.0 / output.scale, float32)), output, activation)


def in_steps(value: Expr, output: Operand, activation: Any = 0) -> Expr:
    """Numbers in steps of the output's scale, after an activation, as integers."""
    low, high = bounds(activation)
    least, most = (int(v) for v in output.dtype.limits)
    zero, scale = output.zero, output.scale
    low_step = least if low is None else max(least, zero + round(low / scale))
    high_step = most if high is None else min(most, zero + round(high / scale))
    within = () if (low_step, high_step) == (least, most) else (low_step, high_step)
    return quantize(value, zero, output.dtype, *within)


BOUNDS: dict[Any, tuple[float | None, float | None]] = {
    0: (None, None), "NONE": (None, None), "RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}  # fmt: skip
"""By activation, the least and the greatest that it lets through."""


def bounds(activation: Any) -> tuple[float | None, float | None]:
    """Of a fused activation. Raises Refused for one that is no clamp."""
    if activation not in BOUNDS:
        raise Refused(f"the activation {activation}")
    return BOUNDS[activation]


def clamped(value: Expr, activation: Any) -> Expr:
    """A value between the bounds of an activation; NaN stays."""
    low, high = bounds(activation)
    if low is not None:
        value = apply("maximum", const(low, value.dtype), value)
    if high is not None:
        value = apply("minimum", const(high, value.dtype), value)
    return value

"""Catalogue nodes as rules see them: operands as buffers, attributes, and the forms that are added.

Lives here: `At`, `Buffers`.  Not here: the rules (one module a family), which nodes are asked about
(../partitioner.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, bfloat16
from ...graph import Node, Value
from ..loops.adding import Adding, Refused
from ..loops.expressions import Expr, arg, const, scalar
from ..loops.forms import Buffer, IndexMap, Move, View

UNIFORM = 1 << 16  # elements; whether all of a constant are equal is asked of smaller ones


class Buffers:
    """The buffers of a graph's values, made on demand."""

    def __init__(self) -> None:
        self._made: dict[Value, Buffer] = {}

    def of(self, value: Value) -> Buffer:
        """The value as a buffer. Raises Refused where its sizes are not known, and for what is no number."""
        found = self._made.get(value)
        if found is None:
            dims = value.shape.dims
            if value.dtype.is_handle or (value.dtype.np.kind in "OSUVc" and value.dtype is not bfloat16):
                raise Refused(f"elements of type {value.dtype.name}")
            if dims is None or None in dims:
                raise Refused(f"sizes of {value!r} are not known")
            shape = tuple(int(n) for n in dims if n is not None)
            constant = value.constant
            if constant is not None:
                constant = np.ascontiguousarray(constant).reshape(shape)
            found = self._made[value] = Buffer(value.name, value.dtype, shape, constant)
        return found


class At(Adding):
    """One node, and the forms that its rule adds. origin: how forms name it."""

    __slots__ = ("_buffers", "node")

    def __init__(self, node: Node, buffers: Buffers) -> None:
        super().__init__((node.name,))
        self.node, self._buffers = node, buffers

    # ---- what it has ------------------------------------------------------------------------------------------------

    def operand(self, place: int) -> Buffer:
        """An input. Raises Refused where it is left out, or is several."""
        found = self.node.inputs[place]
        if not isinstance(found, Value):
            raise Refused(f"input {place} is left out" if found is None else f"input {place} is several")
        return self._buffers.of(found)

    def optional(self, place: int) -> Buffer | None:
        """An input, or None where it is left out."""
        return None if self.node.inputs[place] is None else self.operand(place)

    def several(self, place: int) -> list[Buffer]:
        """A repeated input."""
        found = self.node.inputs[place]
        assert isinstance(found, tuple)
        return [self._buffers.of(v) for v in found]

    @property
    def operands(self) -> list[Buffer]:
        """Every value read, in order."""
        return [self._buffers.of(v) for v in self.node.operands]

    def output(self, place: int = 0, shape: Sequence[int] | None = None) -> Buffer:
        """An output. shape: what follows from the inputs; raises Refused where the graph says another."""
        found = self._buffers.of(self.node.outputs[place])
        if shape is not None and found.shape != tuple(shape):
            raise Refused(f"the result has the shape {list(found.shape)}, {list(shape)} follows from the inputs")
        return found

    def attr(self, name: str) -> Any:
        """An attribute."""
        return self.node.attrs[name]

    # ---- what it becomes --------------------------------------------------------------------------------------------

    def new(self, dtype: DType, shape: Sequence[int]) -> Buffer:
        """A buffer for what lies between two forms of this node."""
        return Buffer(f"{self.node.name}.{len(self.forms)}", dtype, tuple(shape))

    def written(self, output: Buffer, shape: Sequence[int], make: Callable[[Buffer], Any]) -> None:
        """Let `make(buffer)` write a buffer of another shape, whose elements are the output's."""
        if output.shape == tuple(shape):
            make(output)
            return
        made = self.new(output.dtype, shape)
        make(made)
        self.form(View, output, made)

    def moved(self, output: Buffer, *parts: tuple[Buffer, np.ndarray, Sequence[int]],
              fill: float | None = None) -> None:  # fmt: skip
        """Add the move that writes each part's elements in the order of a NumPy view, from a place of the output on.

        parts: a buffer, a view of `places(buffer)` that the elements are taken by, the place where its box begins
        """
        maps, operands = [], []
        for buffer, view, start in parts:
            if view.size:
                offset = view.__array_interface__["data"][0] - _origin(view)
                maps.append(IndexMap(tuple(start), view.shape, offset, view.strides))
                operands.append(buffer)
        self.form(Move, output, tuple(operands), tuple(maps), fill)

    def moved_whole(self, output: Buffer, source: Buffer, view: np.ndarray) -> None:
        """`moved` where one view fills all of the output, perhaps under another shape."""
        if math.prod(view.shape) != output.size:
            raise Refused(f"{view.shape} elements for {output}")
        self.written(output, view.shape, lambda y: self.moved(y, (source, view, (0,) * view.ndim)))


def places(buffer: Buffer) -> np.ndarray:
    """uint8 of the buffer's shape, never written: its views tell which elements are taken, by offset and strides."""
    return np.empty(buffer.shape, np.uint8)


def _origin(view: np.ndarray) -> int:
    base: Any = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return int(base.__array_interface__["data"][0])


# ---- values as expressions ------------------------------------------------------------------------------------------


def uniform(buffer: Buffer) -> Any:
    """The number that every element of a constant is; None where there are several, or it is no constant."""
    constant = buffer.constant
    if constant is None or not 1 <= constant.size <= UNIFORM:
        return None
    flat = constant.reshape(-1)
    first = flat[0]
    if constant.size > 1 and not (flat == first).all():
        return None
    return first.item()


class Operands:
    """The operands of a form as its rule writes the expression: numbers become scalars, buffers args, each once."""

    def __init__(self, first: int = 0) -> None:
        self.buffers: list[Buffer] = []
        self._first = first

    def of(self, buffer: Buffer) -> Expr:
        """A buffer as part of the expression."""
        number = uniform(buffer)
        if number is not None:
            wide = buffer.dtype.size >= 4
            return (scalar if wide else const)(number, buffer.dtype)
        if buffer not in self.buffers:
            self.buffers.append(buffer)
        return arg(self._first + self.buffers.index(buffer), buffer.dtype)

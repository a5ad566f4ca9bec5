"""Open sizes: expressions of symbolic dimensions, such as `b` or `2*b`, that calls of a function decide.

Lives here: `OpenSizes`, the expressions of tensors' sizes and their values as tensors; `Repeated`, a value that
operators broadcast. Not here: rules, tracing by JAX (program.py).

An expression is an object of JAX, which adds, multiplies and compares; its text is what `jax.export.symbolic_shape`
reads: sums and products of variables, powers, floordiv, mod, max and min.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...core import introspection
from ...ops import array, math
from ...ops.tensor import TensorLike
from ..importing import tensor_of

ARITHMETIC: dict[Any, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": math.maximum,
    "min": math.minimum,
}
"""The functions in the text of an expression."""


def is_open(sizes: Iterable[Any]) -> bool:
    """Return whether a shape has sizes that are expressions."""
    return any(not isinstance(d, (int, np.integer)) for d in sizes)


class Repeated:
    """A value with sizes of 1 that stands for its repetition along open sizes. value: of the same rank as shape."""

    __slots__ = ("shape", "value")

    def __init__(self, value: Any, shape: Sequence[Any]) -> None:
        self.value, self.shape = value, tuple(shape)


class OpenSizes:
    """The open sizes of one trace. variables: scalars int32 by the names of the symbolic dimensions."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._shapes: dict[int, tuple[Any, tuple[Any, ...]]] = {}

    def note(self, value: Any, shape: Sequence[Any]) -> Any:
        """Return a value; if it is a tensor and the shape is open, its sizes are known from now on."""
        if isinstance(value, TensorLike) and is_open(shape):
            self._shapes[id(value)] = value, tuple(shape)
        return value

    def shape_of(self, tensor: Any) -> tuple[Any, ...]:
        """Return the sizes of a tensor. Raises ValueError for one of unknown expressions."""
        row = self._shapes.get(id(tensor))
        if row is None:
            raise ValueError(f"this rule needs all sizes, and those of {tensor.shape} are open")
        return row[1]

    def shape_if_known(self, tensor: Any) -> tuple[Any, ...] | None:
        """Return the sizes of a tensor; None if some have no expression."""
        sizes = tensor.shape.dims
        if sizes is not None and None not in sizes:
            return tuple(map(int, sizes))
        row = self._shapes.get(id(tensor))
        return None if row is None else row[1]

    def value(self, size: Any) -> Any:
        """Return a size as an int, or, if it is open, as an int32 scalar."""
        if isinstance(size, (int, np.integer)):
            return int(size)
        (statement,) = introspection.parse(str(size).replace("^", "**")).body
        assert isinstance(statement, ast.Expr)
        return self._evaluated(statement.value)

    def _evaluated(self, node: Any) -> Any:
        if isinstance(node, ast.Name):
            return self._variables[node.id]
        if isinstance(node, ast.Constant):
            return tensor_of(np.asarray(node.value, np.int32))
        if isinstance(node, ast.UnaryOp):
            return -self._evaluated(node.operand)
        if isinstance(node, ast.BinOp):
            function, operands = ARITHMETIC[type(node.op)], (node.left, node.right)
        else:
            function, operands = ARITHMETIC[node.func.id], tuple(node.args)
        return function(*map(self._evaluated, operands))

    def vector(self, shape: Sequence[Any]) -> Any:
        """Return a shape as an int32 vector."""
        return array.stack(
            [tensor_of(np.asarray(d, np.int32)) if isinstance(d, int) else d for d in self.values(shape)]
        )

    def values(self, shape: Sequence[Any]) -> list[Any]:
        """Return sizes as ints and int32 scalars."""
        return [self.value(d) for d in shape]

    def target(self, shape: Sequence[Any]) -> Any:
        """Return what `reshape` takes for a shape: a list with -1 for the only open size, or a vector."""
        if sum(is_open([d]) for d in shape) == 1 and 0 not in shape:
            return [-1 if is_open([d]) else int(d) for d in shape]
        return self.vector(shape)


CURRENT: ContextVar[OpenSizes | None] = ContextVar("open sizes", default=None)
"""The open sizes of the jaxpr that is executed."""


def open_sizes() -> OpenSizes:
    """Return the open sizes of the jaxpr that is executed. Raises ValueError if it has none."""
    sizes = CURRENT.get()
    if sizes is None:
        raise ValueError("the sizes of this program are open")
    return sizes


def dense(value: Any) -> Any:
    """Return a value with its repetitions."""
    if not isinstance(value, Repeated):
        return value
    sizes = open_sizes()
    return sizes.note(array.broadcast_to(tensor_of(value.value), sizes.vector(value.shape)), value.shape)

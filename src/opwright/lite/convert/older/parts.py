"""What the rules for older run times share: sizes that must be known, and small pieces of graphs.

Lives here: sizes, constants, reshaping, axes, polynomials.  Not here: rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.errors import InvalidArgumentError
from ....core.specs import TensorSpec
from ....graph import Node, Value
from ....ops.call import Call
from ..lowering import Lowering


def sizes(value: Value, what: str = "operand") -> list[int]:
    """The sizes of a value. Raises InvalidArgumentError, by which a rule declines, where one is not known."""
    dims = value.spec.shape.dims
    if dims is None or None in dims:
        raise InvalidArgumentError(what=f"the shape of the {what} is not known", found=value.spec.short())
    return [int(d) for d in dims if d is not None]


def constant_of(value: Value, what: str) -> np.ndarray:
    """The elements of a constant. Raises InvalidArgumentError, by which a rule declines, where it is none."""
    if value.constant is None:
        raise InvalidArgumentError(what=f"{what} is no constant", found=value.spec.short())
    return value.constant


def bound(node: Node) -> Call:
    """The node's attributes, as its operator's own rules see them."""
    return node.op.bind({name: node.attrs[name] for name in node.attrs})


def number(low: Lowering, x: float, like: Value) -> Value:
    """A scalar of the dtype of another value."""
    return low.constant(x, like.dtype)


def reshaped(low: Lowering, x: Value, shape: Sequence[int], like: TensorSpec | None = None) -> Value:
    """`x` with another shape; itself where it has it."""
    if x.spec.shape.is_fully_defined() and sizes(x) == [*shape]:
        return x
    return low.emit("RESHAPE", x, low.int32(shape), like=like)


def around(dims: Sequence[int], axis: int) -> list[int]:
    """The three sizes of a tensor seen from one axis: all before it, itself, all after it."""
    return [math.prod(dims[:axis]), dims[axis], math.prod(dims[axis + 1 :])]


def polynomial(low: Lowering, coefficients: Sequence[float], x: Value) -> Value:
    """c0 + c1 x + c2 x^2 + ..., by Horner's rule."""
    *others, last = coefficients
    total: Any = None
    for c in reversed(others):
        scaled = low.emit("MUL", x, number(low, last, x) if total is None else total)
        total = low.emit("ADD", scaled, number(low, c, x))
    return total

"""What the rules for older run times share, besides what all rules build with.

Lives here: attributes as operators see them, axes, polynomials.
Not here: rules; sizes, constants and reshaping (../rules/building.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....graph import Node, Value
from ....ops.call import Call
from ..rewriter import LiteRewriter
from ..rules.building import number


def bound(node: Node) -> Call:
    """The node's attributes, as its operator's own rules see them."""
    return node.op.bind({name: node.attrs[name] for name in node.attrs})


def around(dims: Sequence[int], axis: int) -> list[int]:
    """The three sizes of a tensor seen from one axis: all before it, itself, all after it."""
    return [math.prod(dims[:axis]), dims[axis], math.prod(dims[axis + 1 :])]


def polynomial(low: LiteRewriter, coefficients: Sequence[float], x: Value) -> Value:
    """c0 + c1 x + c2 x^2 + ..., by Horner's rule."""
    *others, last = coefficients
    total: Any = None
    for c in reversed(others):
        scaled = low.emit("MUL", x, number(low, last, x) if total is None else total)
        total = low.emit("ADD", scaled, number(low, c, x))
    return total

"""Operators whose outputs are parts of their input under other strides: TRANSPOSE to UNPACK.

Lives here: the rule of TRANSPOSE, SLICE, STRIDED_SLICE, BROADCAST_TO, REVERSE_V2, SPLIT, SPLIT_V and UNPACK; `moved`.
Not here: joining and padding (moving.py), blocks of space (blocks.py).

What an operator means is said once, where it is defined (lite/ops): its own `infer` and `compute` are asked about an
array of the input's shape whose elements nobody looks at, and what NumPy makes of its strides is the index map.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiler.loops.forms import IndexMap, Move, View
from ....core.dtypes import int4
from ....core.errors import OpError
from ....core.shapes import TensorShape
from ....core.specs import TensorSpec
from ...registration import OperatorRegistration
from ..nodes import At, Operand, Refused
from . import rule
from .moving import row_major, same_numbers


class Given:
    """An operand for an operator's `infer`. constant: its elements, if known."""

    fixed = True

    def __init__(self, operand: Operand) -> None:
        self.spec = TensorSpec(TensorShape(operand.shape), operand.dtype)
        self.constant = operand.constant


def layout(operand: Operand) -> np.ndarray:
    """An array of the operand's shape, a byte an element, which nobody has written to."""
    return np.empty(operand.shape, np.int8)


def asked(at: At, places: np.ndarray) -> list[np.ndarray]:
    """What the operator makes of its first input that is no constant, given as `places`, and of its constants.

    raises Refused where it has something against the node, or another input is no constant
    """
    registration = at.node.registration
    assert isinstance(registration, OperatorRegistration)
    operator: Any = registration.operator
    operands = at.operands
    known = [o.constant for o in operands]
    moving = [i for i, array in enumerate(known) if array is None]
    if len(moving) != 1:
        raise Refused(f"inputs {moving} are no constants")
    try:
        call = operator.from_options(at.node.options)
        operator.infer(call, [Given(o) for o in operands])
        found = operator.compute(call, [places if array is None else array for array in known])
    except OpError as error:
        raise Refused(str(error)) from None
    return list(found)


def moved(at: At, y: Operand, x: Operand, view: np.ndarray, places: np.ndarray) -> None:
    """Make the output the elements of x that are a view of `places`, in their order."""
    start = places.__array_interface__["data"][0]
    offset = view.__array_interface__["data"][0] - start
    if view.size != y.size or not (np.may_share_memory(view, places) or not view.size):
        raise Refused(f"{view.shape} is no view for {y}")
    strides = tuple(view.strides)
    whole = view.size == x.size and not offset
    if whole and all(n == 1 or s == r for n, s, r in zip(view.shape, strides, row_major(view.shape))):
        at.form(View, y.buffer, x.buffer)
        return
    out, close = at.under(y, view.shape)
    box = IndexMap((0,) * view.ndim, view.shape, offset if view.size else 0, strides)
    at.form(Move, out, (x.buffer,), (box,))
    close()


def check_whole_bytes(x: Operand) -> None:
    """Raises Refused for elements that share bytes."""
    if x.dtype is int4 or x.dtype.name in ("uint4", "int2"):
        raise Refused(f"elements of type {x.dtype.name}")


@rule("TRANSPOSE", "SLICE", "STRIDED_SLICE", "BROADCAST_TO", "REVERSE_V2", "SPLIT", "SPLIT_V", "UNPACK")
def view(at: At) -> None:
    x = next((o for o in at.operands if o.constant is None), None)
    if x is None:
        raise Refused("all inputs are constants")
    check_whole_bytes(x)
    places = layout(x)
    for i, part in enumerate(asked(at, places)):
        y = at.output(part.shape, i)
        same_numbers(x, y)
        moved(at, y, x, part, places)

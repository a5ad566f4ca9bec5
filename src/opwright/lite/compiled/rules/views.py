"""Operators whose outputs are parts of their input under other strides: TRANSPOSE to UNPACK.

Lives here: the rule of TRANSPOSE, SLICE, STRIDED_SLICE, BROADCAST_TO, REVERSE_V2, SPLIT, SPLIT_V and UNPACK; `moved`.
Not here: joining and padding (moving.py), blocks of space (blocks.py).

What an operator means is said once, where it is defined (lite/ops): its own `infer` and `compute` are asked about an
array of the input's shape whose elements nobody looks at, and what NumPy makes of its strides is the index map.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiler.loops.forms import Gather, IndexMap, Move, SliceAt, View
from ....core.errors import OpError
from ....core.shapes import TensorShape
from ....core.specs import TensorSpec
from ...registration import OperatorRegistration
from ..nodes import At, Operand, Refused
from .moving import row_major, same_numbers
from .registry import rule

FEW = 4096  # elements that are numbered to find one of them


class Given:
    """An operand for an operator's `infer`. constant: its elements, if known."""

    fixed = True

    def __init__(self, operand: Operand) -> None:
        self.spec = TensorSpec(TensorShape(operand.shape), operand.dtype)
        self.constant = operand.constant


def layout(operand: Operand) -> np.ndarray:
    """An array of the operand's shape, a byte an element, which nobody has written to."""
    return np.empty(operand.shape, np.int8)


def asked(at: At, place: int, places: np.ndarray) -> list[np.ndarray]:
    """What the operator makes of `places` in the place of its input, and of its other inputs, which are constants.

    raises Refused where it has something against the node, or another input is no constant
    """
    registration = at.node.registration
    assert isinstance(registration, OperatorRegistration)
    operator: Any = registration.operator
    operands = at.operands
    arrays = [places if i == place else at.constant(i) for i in range(len(operands))]
    try:
        call = operator.from_options(at.node.options)
        operator.infer(call, [Given(o) for o in operands])
        found = operator.compute(call, arrays)
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


PLACES = {"SPLIT": 1}
"""Where the input is whose elements are moved, if not first."""


@rule("TRANSPOSE", "SLICE", "STRIDED_SLICE", "BROADCAST_TO", "REVERSE_V2", "SPLIT", "SPLIT_V", "UNPACK")
def view(at: At) -> None:
    place = PLACES.get(at.node.name, 0)
    x = at.operand(place)
    if at.node.name == "SLICE" and at.operand(1).constant is None:
        _slice_at(at, x)
        return
    if at.node.name == "STRIDED_SLICE" and at.operand(1).constant is None and _is_element(at, x):
        _element_at(at, x)
        return
    places = layout(x)
    for i, part in enumerate(asked(at, place, places)):
        y = at.output(np.shape(part), i)
        same_numbers(x, y)
        if isinstance(part, np.ndarray):
            moved(at, y, x, part, places)
        elif x.size <= FEW:  # one element: NumPy gives that, and no view
            number = asked(at, place, np.arange(x.size).reshape(x.shape))[i]
            at.form(Move, y.buffer, (x.buffer,), (IndexMap((), (), int(number), ()),))
        else:
            raise Refused(f"one element of {x}")


def _is_element(at: At, x: Operand) -> bool:
    """Whether a STRIDED_SLICE is x[i] along the first axis."""
    masks = [at.option(f"{name}_mask") for name in ("begin", "ellipsis", "new_axis", "shrink_axis")]
    return at.operand(1).shape == (1,) and bool(x.shape) and masks == [0, 0, 0, 1]


def _element_at(at: At, x: Operand) -> None:
    """x[i] along the first axis, i computed."""
    start = at.operand(1)
    y = at.output(x.shape[1:])
    same_numbers(x, y)
    at.form(Gather, y.buffer, x.buffer, at.viewed(start.buffer, ()), 0)


def _slice_at(at: At, x: Operand) -> None:
    """A slice of a size that the file says, from a place that is computed."""
    starts, sizes = at.operand(1), tuple(int(n) for n in at.constant(2))
    if starts.shape != (len(x.shape),) or len(sizes) != len(x.shape) or any(
            not 0 <= s <= n for s, n in zip(sizes, x.shape)):  # fmt: skip
        raise Refused(f"a slice of {x} at {starts}")
    y = at.output(sizes)
    same_numbers(x, y)
    at.form(SliceAt, y.buffer, x.buffer, starts.buffer)

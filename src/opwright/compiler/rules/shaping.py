"""Operators that change a shape and no element: each is a view.

Lives here: these rules.  Not here: the movement of elements (movement.py).
"""

from __future__ import annotations

from ..loops.forms import View
from .nodes import At, Refused
from .registry import rule


@rule("Reshape", "ExpandDims", "Squeeze")
def view(at: At) -> None:
    x, y = at.operand(0), at.output()
    if x.size != y.size:
        raise Refused(f"{x} under the shape {list(y.shape)}")
    at.form(View, y, x)


@rule("EnsureShape")
def ensure_shape(at: At) -> None:
    """The graph knows the shape: where it is another, the operator says so."""
    x = at.operand(0)
    wanted = at.attr("shape")
    if not wanted.is_compatible_with(x.shape):
        raise Refused(f"{x} is not of the shape {wanted}")
    at.form(View, at.output(shape=x.shape), x)

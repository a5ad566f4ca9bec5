"""Parts of arrays cut out at random.

Lives here: random_crop, stateless_random_crop.  Not here: frames that are given (framing.py), boxes that keep objects
in view (sampled_boxes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import int32
from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..array import cast
from ..array.shaping import dims_tensor, shape_op
from ..array.slicing import slice_op
from ..math import mod
from ..random import stateless_uniform, uniform


def _cropped(value: Any, size: Any, draw: Callable[[Any], Any], name: str | None) -> Any:
    value = dispatch.to_tensor(value)
    size = dims_tensor(list(size)) if isinstance(size, (list, tuple)) else dispatch.to_tensor(size)
    size = cast(size, int32)
    wanted, dims = size.constant, value.shape.dims
    if wanted is not None and dims is not None:
        fits = len(dims) == len(wanted) and all(d is None or d >= w for d, w in zip(dims, wanted.tolist()))
        if not fits:
            raise InvalidArgumentError(op="random_crop", node=name, what="Need value.shape >= size",
                                       found={"value": value.spec.short(), "size": wanted.tolist()})  # fmt: skip
    # Where the value turns out smaller than the size, slicing says so.
    room = shape_op(value) - size + 1
    return slice_op(value, mod(draw(shape_op(size)), room), size, name=name)


def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Any:
    """A part of `value` of this size, at a place where each is as likely as any other.

    size: integers, one a dimension. raises InvalidArgumentError where the size is larger than the value
    """
    return _cropped(value, size, lambda n: uniform(n, 0, int32.max, int32, seed), name)


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Any:
    """As random_crop, a function of `seed`, two integers.

    raises InvalidArgumentError where the size is larger than the value
    """
    return _cropped(value, size, lambda n: stateless_uniform(n, seed, 0, int32.max, int32), name)

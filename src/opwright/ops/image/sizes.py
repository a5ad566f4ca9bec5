"""Sizes of images as callers have them: numbers where they are known, else scalar tensors.

Lives here: what the family's functions share: one image as a batch, its sizes, numbers that may be tensors.
Not here: any function users call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from .. import dispatch, math
from ..array import cast, expand_dims, squeeze
from ..array.shaping import shape_op

if TYPE_CHECKING:
    from ..tensor import Tensor


def check_image(image: Any, op: str, least: int = 3) -> Tensor:
    """`image` as a tensor of at least `least` dimensions, the last three not empty. Raises InvalidArgumentError."""
    tensor = dispatch.to_tensor(image)
    dims = tensor.shape.dims
    if dims is not None and len(dims) < least:
        raise InvalidArgumentError(
            op=op,
            what="'image' must be at least three-dimensional."
            if least == 3
            else f"'image' must have at least {least} dimensions.",
            found=tensor.spec.short(),
        )
    if dims is not None and 0 in dims[-3:]:
        raise InvalidArgumentError(op=op, what="inner 3 dims of 'image.shape' must be > 0", found=tensor.spec.short())
    return tensor


def batched(image: Any, op: str) -> tuple[Any, Callable[[Any], Any]]:
    """`image` of rank 3 (or unknown) or 4 as a batch, and what undoes that to a result of rank 4.

    raises InvalidArgumentError for another rank
    """
    tensor = dispatch.to_tensor(image)
    rank = tensor.shape.rank
    if rank == 4:
        return tensor, lambda x: x
    if rank not in (None, 3):
        raise InvalidArgumentError(op=op, what="'image' must have either 3 or 4 dimensions.", found=tensor.spec.short())
    if rank is None:
        tensor.set_shape([None, None, None])
    return expand_dims(tensor, 0), lambda x: squeeze(x, [0])


def dims_of(tensor: Any) -> list[Any]:
    """The sizes of a tensor of known rank: ints, or scalar int32 tensors where unknown."""
    dims = tensor.shape.as_list()
    sizes = shape_op(tensor) if None in dims else dims
    return [sizes[i] if d is None else d for i, d in enumerate(dims)]


def known(value: Any) -> int | Tensor:
    """An integer where its value is known, else the tensor as int32."""
    constant = getattr(value, "constant", value)
    if constant is None:
        result: int | Tensor = cast(value, dtypes.int32)
        return result
    return int(constant.item() if hasattr(constant, "item") else constant)


def is_known(*values: Any) -> bool:
    """Whether all of these are numbers."""
    return all(isinstance(v, (int, float)) for v in values)


def larger(x: Any, y: Any) -> Tensor:
    """The larger of two numbers, each of which may be a tensor."""
    return max(x, y) if is_known(x, y) else math.maximum(x, y)


def smaller(x: Any, y: Any) -> Tensor:
    """The smaller of two numbers, each of which may be a tensor."""
    return min(x, y) if is_known(x, y) else math.minimum(x, y)


def require(op: str, condition: Any, what: str, **found: Any) -> None:
    """Raises InvalidArgumentError unless a condition on numbers holds; one on tensors is left to the operators."""
    if isinstance(condition, bool) and not condition:
        raise InvalidArgumentError(op=op, what=what, found=found)


def static_dims(*sizes: Any) -> list[int | None]:
    """Sizes as far as they are known."""
    return [s if isinstance(s, int) else None for s in sizes]

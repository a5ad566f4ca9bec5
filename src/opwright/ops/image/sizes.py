"""Shapes of images: numbers where they are static, else scalar tensors.

Lives here: helpers of the image functions: batching, sizes, arithmetic on numbers that may be tensors.
Not here: public functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...core.errors import InvalidArgumentError
from .. import dispatch, math
from ..array import cast, expand_dims, squeeze
from ..array.shape_operators import shape_op

if TYPE_CHECKING:
    from ..tensor import Tensor


def check_image(image: Any, op: str) -> Tensor:
    """Convert an image to a tensor. Raises InvalidArgumentError for fewer than 3 dimensions, or empty images."""
    tensor = dispatch.to_tensor(image)
    dims = tensor.shape.dims
    if dims is not None and len(dims) < 3:
        raise InvalidArgumentError(op=op, what="'image' must be at least three-dimensional.", found=tensor.spec.short())
    if dims is not None and 0 in dims[-3:]:
        raise InvalidArgumentError(op=op, what="inner 3 dims of 'image.shape' must be > 0", found=tensor.spec.short())
    return tensor


def batched(image: Any, op: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return an image of rank 3 (or unknown) or 4 as a batch, and the function that removes the batch dimension again.

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
    """Return the sizes of a tensor of known rank: ints, or scalar int32 tensors where unknown."""
    dims = tensor.shape.as_list()
    sizes = shape_op(tensor) if None in dims else dims
    return [sizes[i] if d is None else d for i, d in enumerate(dims)]


def static_or_tensor(value: Any) -> int | Tensor:
    """Return an integer if its value is known, else an int32 tensor."""
    constant = getattr(value, "constant", value)
    if constant is None:
        result: int | Tensor = cast(value, dtypes.int32)
        return result
    return int(constant.item() if hasattr(constant, "item") else constant)


def is_known(*values: Any) -> bool:
    """Return whether all values are numbers."""
    return all(isinstance(v, (int, float)) for v in values)


def larger(x: Any, y: Any) -> float | Tensor:
    """Return the maximum of two numbers, which may be tensors."""
    return max(x, y) if is_known(x, y) else math.maximum(x, y)


def smaller(x: Any, y: Any) -> float | Tensor:
    """Return the minimum of two numbers, which may be tensors."""
    return min(x, y) if is_known(x, y) else math.minimum(x, y)


def require(op: str, condition: Any, what: str, **values: Any) -> None:
    """Raise InvalidArgumentError if a condition on numbers is false; conditions on tensors are checked by operators."""
    if isinstance(condition, bool) and not condition:
        raise InvalidArgumentError(op=op, what=what, found=values)


def static_dims(*sizes: Any) -> list[int | None]:
    """Return static sizes, None for tensors."""
    return [s if isinstance(s, int) else None for s in sizes]

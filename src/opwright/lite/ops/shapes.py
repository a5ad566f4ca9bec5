"""Common parts of the lite dialect's shape rules: broadcasting, axes, known integers, sizes that may be unknown.

Lives here: helpers of `infer` rules.  Not here: any operator's rule.
A size is an int, or None where it is unknown until the model runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...core import flags
from ...core.errors import InvalidArgumentError, ResourceExhaustedError
from ...core.shapes import TensorShape
from ...core.shapes import broadcast as broadcast_two
from ...core.specs import TensorSpec
from ...ops.shape_inference import axes_in, axis_in
from ...ops.shape_inference import refuse as refuse
from ..format.constants import MAX_RANK

__all__ = [
    "Size",
    "axes_in",
    "axis_in",
    "bounded",
    "broadcast",
    "check_one",
    "check_vector",
    "fixed",
    "ints",
    "one_int",
    "product",
    "refuse",
    "same",
    "spec",
    "text",
    "unknown",
]

Size = int | None


def text(shape: Any) -> str:
    """Format a shape as the official run time does: [2,3], ? for an unknown size."""
    dims = shape.dims if isinstance(shape, TensorShape) else tuple(shape)
    return "[...]" if dims is None else f"[{','.join('?' if d is None else str(d) for d in dims)}]"


def spec(dims: Iterable[Size] | None, dtype: Any) -> TensorSpec:
    """Return a TensorSpec of sizes (None: unknown rank) and a dtype."""
    return TensorSpec(None if dims is None else tuple(dims), dtype)


def broadcast(*operands: Any) -> TensorShape:
    """Return the broadcast shape of operands. Raises InvalidArgumentError if they are not broadcastable."""
    shape = operands[0].spec.shape
    for other in operands[1:]:
        try:
            shape = broadcast_two(shape, other.spec.shape)
        except InvalidArgumentError:
            shapes = " and ".join(text(o.spec.shape) for o in operands)
            raise refuse(
                f"Given shapes, {shapes}, are not broadcastable.",
                wanted="sizes that are equal or 1, aligned at the last dimension",
            ) from None
    result: TensorShape = shape
    return result


def unknown(rank: int) -> tuple[None, ...]:
    """Return `rank` unknown sizes. Raises InvalidArgumentError for more dimensions than an array can have."""
    if rank > MAX_RANK:
        raise refuse("more dimensions than an array can have", found=rank, wanted=f"at most {MAX_RANK}")
    return (None,) * rank


def ints(operand: Any) -> list[int] | None:
    """Return the integers of a constant operand as a flat list; None if it is not constant."""
    constant = operand.constant
    return None if constant is None else [int(v) for v in constant.reshape(-1).tolist()]


def spec_of_sizes(shape: Any, dtype: Any) -> tuple[TensorSpec, list[int] | None]:
    """Return the spec of a result of the sizes in an operand, and the sizes; None if they are unknown.

    raises InvalidArgumentError for a negative size
    """
    sizes = ints(shape)
    if sizes is None:
        rank = shape.spec.shape[0]
        return spec(None if rank is None else unknown(rank), dtype), None
    if min(sizes, default=0) < 0:
        raise refuse("the shape has a negative size", found=sizes, wanted="sizes of at least 0")
    return spec(sizes, dtype), sizes


def fixed(operand: Any) -> Any:
    """Return the elements of an operand that never change, else None: kernels check all others at run time."""
    return operand.constant if getattr(operand, "fixed", True) else None


def check_one(operand: Any, what: str, unit: str = "number") -> None:
    """Raise InvalidArgumentError unless an operand has one element."""
    if operand.spec.shape.num_elements() not in (None, 1):
        raise refuse(f"{what} is not one {unit}", found=operand.spec.short(), wanted=f"one {unit}")


def one_int(operand: Any, name: str) -> int | None:
    """Return the one integer in an operand, None if unknown. Raise InvalidArgumentError for any other count."""
    check_one(operand, name)
    values = ints(operand)
    return None if values is None else values[0]


def check_vector(operand: Any, size: int, name: str) -> None:
    """Raise InvalidArgumentError for an operand of rank 1 with another number of elements."""
    shape = operand.spec.shape
    if not same(shape[0], size):
        raise refuse(f"{name} does not have {size} elements", found=text(shape), wanted=f"[{size}]")


def product(dims: Sequence[Size]) -> Size:
    """Return the product of sizes; None if one is unknown and none is 0."""
    if any(d == 0 for d in dims):
        return 0
    return None if any(d is None for d in dims) else math.prod(dims)  # type: ignore[arg-type]


def same(*sizes: Size) -> bool:
    """Return whether sizes can be equal; unknown ones can."""
    return len({s for s in sizes if s is not None}) <= 1


def bounded(dims: Sequence[Any], dtype: Any, what: str) -> None:
    """Raise ResourceExhaustedError if an array of these sizes exceeds the limit on activations."""
    limit = flags.get("max_activation_bytes")
    size = math.prod(dims) * max(dtype.size, 1)
    if size > limit:
        raise ResourceExhaustedError(
            what=f"{what} would take {size} bytes",
            found=f"{dtype.name} {text(dims)}",
            wanted=f"at most {limit}",
            do="set the flag max_activation_bytes higher if the model is right",
        )

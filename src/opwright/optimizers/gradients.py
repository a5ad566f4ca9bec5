"""Prepare gradients and hyperparameters for an update.

Lives here: `prepare` and the three ways to clip; `scalar`, a hyperparameter as a tensor, and the dtype of such scalars.
Not here: the step itself (base.py).

A gradient by rows (IndexedSlices) is merged first, so clipping is equivalent to that of the dense gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core import dtypes
from ..core.dtypes import DType, as_dtype, float32
from ..core.errors import InvalidArgumentError
from ..eager.variable import Variable
from ..ops import array, dispatch, math
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import rows_of

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


Gradient: TypeAlias = "Tensor | IndexedSlices"


def scalar(value: Any, dtype: DType) -> Tensor:
    """Return `value` in `dtype`: tensors and variables are cast, Python numbers converted without an intermediate
    float32.
    """
    if not hasattr(value, "dtype"):
        return dispatch.to_tensor(value, dtype)
    cast: Tensor = array.cast(value, dtype)
    return cast


def working_dtype(dtype: Any) -> DType:
    """Return float32 for 16-bit dtypes: in bfloat16 0.999 is 1, and step counts end at 256. Others unchanged."""
    dtype = as_dtype(dtype)
    return float32 if dtype.size < 4 else dtype


def prepare(gradient: Any, variable: Variable, slices: bool) -> Gradient:
    """Return a gradient as a tensor; or, if `slices`, IndexedSlices unchanged but with unique rows.

    raises InvalidArgumentError for sparse rows of a dense shape that is not the variable's
    """
    if not isinstance(gradient, IndexedSlices):
        rows: Tensor = rows_of(dispatch.to_tensor(gradient, None if hasattr(gradient, "dtype") else variable.dtype))
        return rows
    if not gradient.shape.is_compatible_with(variable.shape):
        raise InvalidArgumentError(
            what=f"the sparse gradient of variable {variable.name!r} has another dense shape",
            found={"IndexedSlices of": gradient.shape, "variable": variable.shape},
            wanted="equal heights, rows of equal width",
            do="dense_shape=ow.shape(variable)",
        )
    if slices:
        merged: IndexedSlices = gradient.merged()
        return merged
    shape = gradient.dense_shape
    if shape is None:
        shape = array.shape(variable.value())
    dense: Tensor = IndexedSlices(gradient.values, gradient.indices, shape).to_dense()
    return dense


def on_values(function: Callable[[Tensor], Tensor], gradient: Gradient) -> Gradient:
    """Return function(gradient), applied to the present rows only; for functions that map zero to zero."""
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(function(gradient.values), gradient.indices, gradient.dense_shape)
    return function(gradient)


def _values(gradient: Gradient) -> Tensor:
    return gradient.values if isinstance(gradient, IndexedSlices) else gradient


def clip_norm(gradient: Gradient, limit: float) -> Gradient:
    """Return g * limit / max(|g|, limit), with the L2 norm."""
    norm = math.sqrt(math.reduce_sum(math.square(_values(gradient))))
    return on_values(lambda g: g * limit / math.maximum(norm, limit), gradient)


def clip_global_norm(grads: Sequence[Gradient], limit: float) -> list[Gradient]:
    """Return g * limit / max(n, limit) for each, n the L2 norm of all together; NaN for all if n is not finite."""
    squares = [math.reduce_sum(math.square(_values(g))) for g in grads]
    dtypes_of_squares = {s.dtype for s in squares}
    wide = (
        squares[0].dtype
        if len(dtypes_of_squares) == 1
        else dtypes.float64
        if dtypes.float64 in dtypes_of_squares
        else dtypes.float32
    )
    norm = math.sqrt(math.add_n([array.cast(s, wide) for s in squares]))
    scale = limit * math.minimum(1.0 / norm, 1.0 / limit) + (norm - norm)
    return [on_values(lambda x: x * array.cast(scale, x.dtype), g) for g in grads]


def clip_value(gradient: Gradient, limit: float) -> Gradient:
    """Return min(max(g, -limit), limit)."""
    return on_values(lambda g: math.minimum(math.maximum(g, -limit), limit), gradient)

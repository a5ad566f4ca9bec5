"""Changing dtype: Cast, Bitcast and saturate_cast.

Lives here: dtype changes.  Not here: quantisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import dispatch, math, structural_arrays
from ..attributes import Attr
from ..definition import operator
from ..indexed_slices import IndexedSlices
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..structural_shapes import bitcast_spec
from ..tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

    from .. import signatures
    from ..tensor import TensorLike

_CASTABLE = tuple(d for d in dtypes.ALL if d is not dtypes.string)


@operator
class Cast(OperatorDefinition):
    """Change the dtype.

    .. math:: y = (dtype) x

    Floats to integers truncate toward zero; to bool, non-zero is True; complex to real keeps the real part.
    """

    x = Input(_CASTABLE, kinds=("dense", "lod", "rows"))
    y = Output(kind="as x")
    dtype = Attr(DType)

    def on_rows(op, x: Any) -> Any:
        return cast(x, op.dtype)

    def infer(op) -> TensorSpec:
        if op.dtype not in _CASTABLE:
            raise InvalidArgumentError(what=f"Cast {op.x.spec.dtype.name} to {op.dtype.name} is not supported")
        return op.x.spec.with_dtype(op.dtype)

    def compute(op, x: Any) -> Any:
        if x.dtype.kind == "c" and not op.dtype.is_complex and not op.dtype.is_bool:
            x = x.real
        return x.astype(op.dtype.np)

    def gradient(op, dy: Any) -> Tensor | None:
        source = op.x.dtype
        return Cast(dy, dtype=source) if source.is_floating or source.is_complex else None


@overload
def cast(x: IndexedSlices, dtype: Any, name: str | None = None) -> IndexedSlices: ...
@overload
def cast(x: TensorLike | npt.ArrayLike, dtype: Any, name: str | None = None) -> Tensor: ...
@documented_by(Cast)
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Cast a tensor to a dtype.

    Returns x itself if it has that dtype. Sparse rows stay sparse.
    """
    wanted = as_dtype(dtype)
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, wanted), x.indices, x.dense_shape)
    tensor = dispatch.to_tensor(x)
    return tensor if tensor.dtype is wanted else Cast(tensor, dtype=wanted, name=name)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`value` clipped to what `dtype` holds, then cast; for complex dtypes real and imaginary parts alike."""
    wanted, tensor = as_dtype(dtype), dispatch.to_tensor(value)
    if tensor.dtype.is_complex and wanted.is_complex:
        return _saturated_parts(tensor, wanted, name)
    within = wanted.real_dtype
    if tensor.dtype.is_floating or tensor.dtype.is_integer:
        exact = _float if tensor.dtype.is_floating else _int  # the largest int64 is no float64
        (low, high), (found_low, found_high) = (map(exact, d.limits) for d in (within, tensor.dtype))
        least = np.array(max(low, found_low), tensor.dtype.np)
        most = np.array(min(high, found_high), tensor.dtype.np)
        if exact is _float and _int(most) > _int(within.limits[1]):  # rounding up the limit would overflow
            most = np.nextafter(most, most.dtype.type(0))
        tensor = math.clip_by_value(tensor, least, most)
    return cast(tensor, wanted, name)


def _float(number: Any) -> float:
    return float(number)


def _int(number: Any) -> int:
    """A limit as a Python integer, by way of float where NumPy's own scalar type would go through int64."""
    return int(number) if isinstance(number, np.integer) or number.dtype.kind in "iu" else int(float(number))


def _saturated_parts(x: Any, wanted: DType, name: str | None) -> Tensor:
    part = wanted.real_dtype
    return math.complex(saturate_cast(math.real(x), part), saturate_cast(math.imag(x), part), name=name)


@operator
class Bitcast(OperatorDefinition):
    """The same bits read as another dtype.

    .. math:: y = bits^{-1}_{type}(bits(x))

    A wider dtype takes up the last dimension, a narrower one adds one.
    """

    input = Input(_CASTABLE)
    output = Output()
    type = Attr(DType)
    gradient = None
    views = {"output": "input"}

    def infer(op) -> TensorSpec:
        return bitcast_spec(op.input.spec, op.type)

    def compute(op, input: Any) -> Any:
        return structural_arrays.bitcast(input, op.type.np)


bitcast: signatures.Bitcast = Bitcast.as_function("bitcast")

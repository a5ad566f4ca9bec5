"""Conversion between dtypes.

Lives here: Cast, Bitcast, `saturate_cast`.  Not here: quantization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from .. import array_functions, dispatch, math
from ..attributes import Attr
from ..definition import operator
from ..indexed_slices import IndexedSlices
from ..registry import documented_by
from ..shape_inference import bitcast_spec
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

    from .. import signatures
    from ..tensor import TensorLike

_CASTABLE = tuple(d for d in dtypes.ALL if d is not dtypes.string)


@operator
class Cast(OperatorDefinition):
    """Convert a tensor to another dtype.

    .. math:: y = (dtype) x

    Floats to integers truncate toward zero; to bool, non-zero is True; complex to real keeps the real part.
    """

    x = Input(_CASTABLE, kinds=("dense", "lod", "rows"))
    y = Output(kind="as x")
    dtype = Attr(DType)

    def on_rows(op, x: IndexedSlices) -> IndexedSlices:
        return cast(x, op.dtype)

    def infer(op) -> TensorSpec:
        if op.dtype not in _CASTABLE:
            raise InvalidArgumentError(what=f"Cast {op.x.spec.dtype.name} to {op.dtype.name} is not supported")
        return op.x.spec.with_dtype(op.dtype)

    def compute(op, x: Any) -> np.ndarray:
        if x.dtype.kind == "c" and not op.dtype.is_complex and not op.dtype.is_bool:
            x = x.real
        y: np.ndarray = x.astype(op.dtype.np)
        return y

    def gradient(op, dy: Any) -> Tensor | None:
        source = op.x.dtype
        return Cast(dy, dtype=source) if source.is_floating or source.is_complex else None


@overload
def cast(x: IndexedSlices, dtype: Any, name: str | None = None) -> IndexedSlices: ...
@overload
def cast(x: TensorLike | npt.ArrayLike, dtype: Any, name: str | None = None) -> Tensor: ...
@documented_by(Cast)
def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor | IndexedSlices:
    """Cast a tensor to a dtype.

    Returns x itself if it has that dtype. Sparse rows stay sparse.
    """
    target = as_dtype(dtype)
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, target), x.indices, x.dense_shape)
    tensor = dispatch.to_tensor(x)
    return tensor if tensor.dtype is target else Cast(tensor, dtype=target, name=name)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Clip a tensor to the range of a dtype, then cast it. Clips real and imaginary parts of complex numbers each."""
    target, tensor = as_dtype(dtype), dispatch.to_tensor(value)
    real_target = target.real_dtype
    if tensor.dtype.is_complex and target.is_complex:
        real, imag = (saturate_cast(part, real_target) for part in (math.real(tensor), math.imag(tensor)))
        return math.complex(real, imag, name=name)
    if tensor.dtype.is_floating or tensor.dtype.is_integer:
        exact = float if tensor.dtype.is_floating else _exact_int  # the largest int64 is not a float64
        (low, high), (source_low, source_high) = (map(exact, d.limits) for d in (real_target, tensor.dtype))
        minimum = np.array(max(low, source_low), tensor.dtype.np)
        maximum = np.array(min(high, source_high), tensor.dtype.np)
        if exact is float and _exact_int(maximum) > _exact_int(real_target.limits[1]):
            maximum = np.nextafter(maximum, maximum.dtype.type(0))  # rounding up the limit would overflow
        tensor = math.clip_by_value(tensor, minimum, maximum)
    return cast(tensor, target, name)


def _exact_int(limit: Any) -> int:
    """Return a limit of a dtype as a Python integer; via float for scalar types that NumPy converts through int64."""
    return int(limit) if isinstance(limit, np.integer) or limit.dtype.kind in "iu" else int(float(limit))


@operator
class Bitcast(OperatorDefinition):
    """Reinterpret the bits of a tensor as another dtype.

    .. math:: y = bits^{-1}_{type}(bits(x))

    A wider dtype removes the last dimension, a narrower one adds a dimension.
    """

    input = Input(_CASTABLE)
    output = Output()
    type = Attr(DType)
    gradient = None
    views = {"output": "input"}

    def infer(op) -> TensorSpec:
        return bitcast_spec(op.input.spec, op.type)

    def compute(op, input: Any) -> np.ndarray:
        return array_functions.bitcast(input, op.type.np)


bitcast: signatures.Bitcast = Bitcast.as_function("bitcast")

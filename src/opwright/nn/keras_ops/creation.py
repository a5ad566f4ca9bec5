"""Tensors that `keras.ops` creates: constants, ranges, windows, and conversions from and to arrays.

Lives here: functions of sizes and numbers.  Not here: random tensors (nn/random.py).
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import as_dtype
from ...ops import array, dispatch, math, tensor
from .. import backend
from ..keras_tensor import KerasTensor
from . import elementwise
from .promotion import as_floating, as_tensor, convert, promote, rank_of, result_type

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def convert_to_tensor(x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None) -> Tensor:
    """Convert an array, a number or a structure of them to a tensor; Python's floats become `backend.floatx`."""
    if dtype is not None:
        return convert(x, dtype)
    if isinstance(x, float):
        return convert(x, backend.floatx())
    return dispatch.to_tensor(x)


def convert_to_numpy(x: Any) -> np.ndarray:
    """Return a tensor, variable or value as a NumPy array."""
    x = dispatch.to_tensor(x)
    result: np.ndarray = x.numpy()
    return result


def array_(x: Any, dtype: Any = None) -> Tensor:
    """Convert an array, a number or a structure of them to a tensor."""
    return convert_to_tensor(x, dtype)


def is_tensor(x: Any) -> bool:
    """Return whether x is a tensor, also a symbolic one; variables and arrays are none."""
    return isinstance(x, (tensor.Tensor, KerasTensor))


def cast(x: Any, dtype: Any) -> Tensor:
    """Convert elements to another dtype."""
    return convert(x, dtype)


def saturate_cast(x: Any, dtype: Any) -> Tensor:
    """Convert elements to another dtype, numbers beyond its range to its limits."""
    return array.saturate_cast(dispatch.to_tensor(x), dtype)


def dtype(x: Any) -> str:
    """Return the name of a tensor's dtype."""
    return dispatch.to_tensor(x).dtype.name


def shape(x: Any) -> tuple[Any, ...]:
    """Return the sizes of a tensor: integers, or scalar tensors where they are known only at run time."""
    x = dispatch.to_tensor(x)
    if isinstance(x, KerasTensor):
        return tuple(x.shape)
    sizes = None if None not in tuple(x.shape) else array.shape(x)
    return tuple(n if n is not None else sizes[i] for i, n in enumerate(x.shape))  # type: ignore[index]


def ndim(x: Any) -> int:
    """Return the number of axes."""
    return rank_of(dispatch.to_tensor(x))


def size(x: Any) -> Any:
    """Return the number of elements: an integer, or a scalar tensor if it is known only at run time."""
    x = dispatch.to_tensor(x)
    count = x.shape.num_elements()
    return array.size(x) if count is None else count


def copy(x: Any) -> Tensor:
    """Return a tensor of the same elements."""
    return array.identity(dispatch.to_tensor(x))


def stop_gradient(variable: Any) -> Tensor:
    """Return a tensor of the same elements through which no gradient passes."""
    return array.stop_gradient(dispatch.to_tensor(variable))


def view(x: Any, dtype: Any = None) -> Tensor:
    """Read the bytes of elements as another dtype; the last axis grows or shrinks with the size of elements."""
    x = dispatch.to_tensor(x)
    if dtype is None or as_dtype(dtype) == x.dtype:
        return as_tensor(x)
    old, new = x.dtype.size, as_dtype(dtype).size
    if old > new:
        y = array.bitcast(x, dtype)
        return array.reshape(y, array.concat([array.shape(x)[:-1], [-1]], 0))
    if old < new:
        x = array.reshape(x, array.concat([array.shape(x)[:-1], [-1, new // old]], 0))
    return array.bitcast(x, dtype)


def _default(dtype: Any) -> Any:
    return backend.floatx() if dtype is None else dtype


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Create a tensor of zeros, of `backend.floatx` by default."""
    return array.zeros(shape, as_dtype(_default(dtype)))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Create a tensor of ones, of `backend.floatx` by default."""
    return array.ones(shape, as_dtype(_default(dtype)))


def empty(shape: Any, dtype: Any = None) -> Tensor:
    """Create a tensor of a shape, whose elements are zeros."""
    return zeros(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Create a tensor of one value, or of values broadcast to the shape."""
    value = convert(fill_value, _default(dtype))
    return array.broadcast_to(value, [shape] if isinstance(shape, int) else shape)


def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """Create zeros of the shape of x, and of its dtype by default."""
    return array.zeros_like(dispatch.to_tensor(x), dtype)


def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """Create ones of the shape of x, and of its dtype by default."""
    return array.ones_like(dispatch.to_tensor(x), dtype)


def empty_like(x: Any, dtype: Any = None) -> Tensor:
    """Create a tensor of the shape and dtype of x, whose elements are zeros."""
    return zeros_like(x, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Create a tensor of one value, or of values broadcast, in the shape of x, and in its dtype by default."""
    x = dispatch.to_tensor(x)
    return array.broadcast_to(array.cast(fill_value, dtype or x.dtype), array.shape(x))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Create a matrix [N, M] with ones on the k-th diagonal."""
    return dispatch.to_tensor(np.eye(N, M, k, as_dtype(_default(dtype)).as_numpy_dtype))


def identity(n: int, dtype: Any = None) -> Tensor:
    """Create the identity matrix [n, n], of `backend.floatx` by default."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Create a matrix [N, M] with ones on and below the k-th diagonal."""
    return dispatch.to_tensor(np.tri(N, M, k, as_dtype(_default(dtype)).as_numpy_dtype))


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """Create numbers from start, 0 if it is alone, up to stop (excluded) in steps."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if dtype is None:
        kinds = [type(v) if isinstance(v, (int, float)) else dispatch.to_tensor(v).dtype for v in (start, stop, step)]
        dtype = result_type(*kinds)
    if as_dtype(dtype).name == "bool":
        return convert(arange(start, stop, step, "int32"), "bool")
    return array.range(convert(start, dtype), convert(stop, dtype), convert(step, dtype))


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """Create `num` equally spaced numbers from start to stop, included if `endpoint`, along a new axis.

    retstep: return the distance of neighbours, too
    """
    a, b = promote(start, stop, floating=True)
    parts = num - 1 if endpoint else num
    step = (b - a) / parts if parts > 0 else (b - a) * float("nan")
    places = array.reshape(array.range(num), [num] + [1] * rank_of(step))
    values = array.expand_dims(a + array.zeros_like(step), 0)
    values = values + convert(places, step.dtype) * array.expand_dims(step, 0) if parts > 0 else values[:num]
    if endpoint and num > 1:  # exact, whatever the rounding of steps
        last = math.equal(places, convert(num - 1, "int32"))
        values = array.where(last, array.expand_dims(b + array.zeros_like(step), 0), values)
    values = convert(_first_to(values, axis), dtype or values.dtype)
    return (values, step) if retstep else values


def _first_to(x: Tensor, axis: int) -> Tensor:
    """Move the first axis to a place."""
    if axis in (0, -rank_of(x)):
        return x
    rest = list(range(1, rank_of(x)))
    rest.insert(axis if axis >= 0 else rank_of(x) + axis, 0)
    return array.transpose(x, rest)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Create powers of a base whose exponents are equally spaced. Arguments: see `linspace`."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    values = math.pow(convert(base, exponents.dtype), exponents)
    return convert(values, dtype or values.dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """Create numbers of which neighbours have one ratio. Arguments: see `linspace`."""
    a, b = promote(start, stop, floating=True)
    sign = math.sign(a)
    values = sign * logspace(elementwise.log10(a * sign), elementwise.log10(b * sign), num, endpoint, axis=axis)
    return convert(values, dtype or values.dtype)


def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """Create grids of coordinates from vectors; indexing: "xy" (columns first) or "ij"."""
    return list(array.meshgrid(*[array.reshape(dispatch.to_tensor(v), [-1]) for v in x], indexing=indexing))


# ---- windows ------------------------------------------------------------------------------------------------------


def _cosines(length: Any, coefficients: tuple[float, ...]) -> Tensor:
    r"""Compute the symmetric window :math:`\sum_j (-1)^j a_j \cos(2 \pi j n / (N - 1))`."""
    n = int(length)
    if n == 1:
        return ones([1])
    phase = convert(array.range(n), backend.floatx()) * (2 * python_math.pi / (n - 1))
    terms = [(-1) ** j * a * math.cos(phase * float(j)) for j, a in enumerate(coefficients) if j]
    return math.add_n([coefficients[0] + array.zeros_like(phase), *terms])


def hanning(x: Any) -> Tensor:
    r"""Create the Hann window of x points, :math:`0.5 - 0.5 \cos(2 \pi n / (x - 1))`, in `backend.floatx`."""
    return _cosines(x, (0.5, 0.5))


def hamming(x: Any) -> Tensor:
    r"""Create the Hamming window of x points, :math:`0.54 - 0.46 \cos(2 \pi n / (x - 1))`, in `backend.floatx`."""
    return _cosines(x, (0.54, 0.46))


def blackman(x: Any) -> Tensor:
    r"""Create the Blackman window of x points, :math:`0.42 - 0.5 \cos(a) + 0.08 \cos(2 a), a = 2 \pi n / (x - 1)`."""
    return _cosines(x, (0.42, 0.5, 0.08))


def bartlett(x: Any) -> Tensor:
    """Create the triangular window of x points, :math:`1 - |2 n / (x - 1) - 1|`, in `backend.floatx`."""
    n = int(x)
    if n == 1:
        return ones([1])
    return 1 - math.abs(convert(array.range(n), backend.floatx()) * (2 / (n - 1)) - 1)


def kaiser(x: Any, beta: Any) -> Tensor:
    r"""Create the Kaiser window of x points: :math:`I_0(\beta \sqrt{1 - t^2}) / I_0(\beta)` for t from -1 to 1."""
    n = int(x)
    if n == 1:
        return ones([1])
    t = convert(array.range(n), backend.floatx()) * (2 / (n - 1)) - 1
    beta = as_floating(beta)
    return math.bessel_i0(beta * math.sqrt(math.maximum(1 - t * t, convert(0, t.dtype)))) / math.bessel_i0(beta)

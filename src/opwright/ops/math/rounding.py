"""Rounding and clipping: division rounded toward zero, neighbours of floats, tests for NaN and infinity, bounds.

Lives here: the table of these operators, TruncateDiv and TruncateMod; ClipByValue, clip_by_norm, clip_by_global_norm,
clip_by_average_norm, global_norm.
Not here: division rounded down (arithmetic.py), casts, saturating ones among them (array/type_conversion.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating, real
from ...core.errors import InvalidArgumentError
from ...core.shapes import broadcast
from ...scalar.table import FUNCTIONS
from .. import array, dispatch
from ..definition import operator
from ..indexed_slices import IndexedSlices
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from .arithmetic import check_divisor, maximum, minimum
from .elementary import rsqrt, sqrt
from .reduction import reduce_sum
from .ufunc import ufunc

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor, TensorLike

Floor, floor = ufunc("floor", "x -> y", floating, "The largest integer that is not greater.", r"y = \lfloor x \rfloor")
Ceil, ceil = ufunc("ceil", "x -> y", floating, "The smallest integer that is not less.", r"y = \lceil x \rceil")
_NEAREST = r"y = n \in \mathbb{Z}, \; |x - n| \le 1/2, \; n \text{ even where } |x - n| = 1/2"
Round, round = ufunc(
    "round",
    "x -> y",
    (*floating, *dtypes.integer),
    "The nearest integer, of two equally near the even one; integers as they are.",
    _NEAREST,
)
Rint, rint = ufunc(
    "rint", "x -> y", floating, "The nearest integer, of two equally near the even one.", _NEAREST, compute=np.rint
)
IsNan, is_nan = ufunc("is_nan", "x -> y", floating, "Whether it is NaN.", r"y = [x \text{ is NaN}]", result=dtypes.bool)
IsInf, is_inf = ufunc(
    "is_inf", "x -> y", floating, "Whether it is infinite, of either sign.", r"y = [|x| = \infty]", result=dtypes.bool
)
IsFinite, is_finite = ufunc(
    "is_finite",
    "x -> y",
    floating,
    "Whether it is neither infinite nor NaN.",
    r"y = [|x| < \infty]",
    result=dtypes.bool,
)
NextAfter, nextafter = ufunc(
    "nextafter",
    "x1 x2 -> output",
    (dtypes.float64, dtypes.float32),
    "The next number of this dtype after x1 on the way to x2; x2 where they are equal.",
    r"output = \min \{ t > x1 \} \text{ if } x2 > x1, \; \max \{ t < x1 \} \text{ if } x2 < x1",
    lambda op, doutput: (doutput, array.zeros_like(op.x2)),
    operator_name="NextAfter",
    compute=np.nextafter,
    inplace=False,
    no_need_buffer=("x2",),
)


@operator
class TruncateDiv(OperatorDefinition):
    """Quotient rounded toward zero.

    .. math:: z = sign(x / y) \\lfloor |x / y| \\rfloor

    raises InvalidArgumentError for an integer divisor of 0
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True
    gradient = None

    def compute(op, x: Any, y: Any) -> np.ndarray:
        check_divisor(y)
        result: np.ndarray = FUNCTIONS["truncate_div"].numpy(x, y)
        return result


truncatediv: signatures.TruncateDiv = TruncateDiv.as_function("truncatediv")


@operator
class TruncateMod(OperatorDefinition):
    """Remainder with the dividend's sign.

    .. math:: z = x - y \\cdot truncatediv(x, y)

    raises InvalidArgumentError for an integer divisor of 0
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> np.ndarray:
        check_divisor(y)
        result: np.ndarray = FUNCTIONS["truncate_mod"].numpy(x, y)
        return result

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        return dz, -dz * TruncateDiv(op.x, op.y)


truncatemod: signatures.TruncateMod = TruncateMod.as_function("truncatemod")


@operator
class ClipByValue(OperatorDefinition):
    """`t` brought into [clip_value_min, clip_value_max]; the bounds are broadcast to `t`. NaN stays NaN.

    .. math:: output = \\max(\\min(t, clip\\_value\\_max), clip\\_value\\_min)

    raises InvalidArgumentError if broadcasting a bound would change the shape of `t`
    """

    t = Input(real)
    clip_value_min = Input(real, like="t")
    clip_value_max = Input(real, like="t")
    output = Output(like="t")
    elementwise = True
    inplace = {"output": "t"}

    def infer(op) -> TensorSpec:
        spec = op.t.spec
        for name in ("clip_value_min", "clip_value_max"):
            bound = getattr(op, name).spec
            if not broadcast(spec.shape, bound.shape).is_compatible_with(spec.shape):
                raise InvalidArgumentError(
                    what=f"{name} cannot be broadcast to t", found={"t": spec.short(), name: bound.short()}
                )
        return spec

    def compute(op, t: Any, clip_value_min: Any, clip_value_max: Any, *, out: Any = None) -> np.ndarray:
        output = FUNCTIONS["clip"].numpy(t, clip_value_min, clip_value_max, out)
        if output.shape != t.shape:
            raise ValueError("a bound cannot be broadcast to t")
        result: np.ndarray = output
        return result

    def gradient(op, doutput: Any) -> tuple[Any, Any, Any]:
        t, low, high = op.t, op.clip_value_min, op.clip_value_max
        top = minimum(t, high)
        zero = array.zero_of(doutput)
        is_low, is_high = top < low, t > high
        lowest, passed = array.where(is_low, doutput, zero), array.where(is_low, zero, doutput)
        return array.where(is_high, zero, passed), lowest, array.where(is_high, passed, zero)


def _on_values(t: Any, clip: Callable[[Any], Tensor]) -> Tensor | IndexedSlices:
    """Apply `clip` to a tensor, or to the values of sparse rows."""
    if isinstance(t, IndexedSlices):
        return IndexedSlices(clip(t.values), t.indices, t.dense_shape)
    return clip(dispatch.to_tensor(t))


@overload
def clip_by_value(
    t: IndexedSlices, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> IndexedSlices: ...
@overload
def clip_by_value(
    t: TensorLike | npt.ArrayLike, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> Tensor: ...
@documented_by(ClipByValue)
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Tensor | IndexedSlices:
    """Clamp elements to a range. Sparse rows stay sparse."""
    return _on_values(t, lambda x: ClipByValue(x, clip_value_min, clip_value_max, name=name))


@overload
def clip_by_norm(t: IndexedSlices, clip_norm: Any, axes: Any = None, name: str | None = None) -> IndexedSlices: ...
@overload
def clip_by_norm(
    t: TensorLike | npt.ArrayLike, clip_norm: Any, axes: Any = None, name: str | None = None
) -> Tensor: ...
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor | IndexedSlices:
    """Scale `t` so that its norm over `axes` (None: all) is at most `clip_norm`. Sparse rows stay sparse.

    .. math:: output = t \\cdot \\min(1, \\max(clip\\_norm, 0) / \\lVert t \\rVert_2)
    """

    def clip(x: Any) -> Tensor:
        if isinstance(clip_norm, (int, float)):
            limit: Any = max(clip_norm, 0.0)
        else:
            limit = maximum(array.cast(clip_norm, x.dtype), array.cast(0, x.dtype))
        total = reduce_sum(x * x, axes, keepdims=True)
        some = total > 0
        # the root only where it has a derivative, so that the gradient at 0 is 0 and not NaN
        norm = array.where(some, sqrt(array.where(some, total, array.ones_like(total))), total)
        scaled = x * limit
        if not scaled.shape.is_compatible_with(x.shape):
            raise InvalidArgumentError(
                op="clip_by_norm",
                node=name,
                what="clip_norm cannot be broadcast to t",
                found=f"{x.spec.short()}, result {scaled.spec.short()}",
            )
        return array.identity(scaled / maximum(norm, limit), name=name)

    return _on_values(t, clip)


def _tensors(t_list: Any) -> list[Any]:
    if isinstance(t_list, (str, bytes)) or not isinstance(t_list, Sequence):
        raise TypeError(f"t_list should be a sequence; found {t_list!r}")
    return [None if t is None else t if isinstance(t, IndexedSlices) else dispatch.to_tensor(t) for t in t_list]


def global_norm(t_list: Any, name: str | None = None) -> Tensor | None:
    """Return the Euclidean norm of all tensors together, None entries left out; None without any tensor.

    .. math:: \\sqrt{\\sum_k \\lVert t_k \\rVert_2^2}
    """
    values = [t.values if isinstance(t, IndexedSlices) else t for t in _tensors(t_list) if t is not None]
    if not values:
        return None
    return sqrt(functools.reduce(lambda a, b: a + b, [reduce_sum(v * v) for v in values]), name=name)


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Any]:
    """Scale all tensors so that their global norm is at most `clip_norm`; return them and the norm before.

    .. math:: t_k \\cdot clip\\_norm / \\max(global\\_norm, clip\\_norm)

    use_norm: the norm, if it is known. None entries stay; sparse rows stay sparse. A norm that is infinite or NaN
    makes every result NaN.
    """
    tensors = _tensors(t_list)
    norm = global_norm(tensors) if use_norm is None else use_norm
    if norm is None:
        return tensors, norm
    norm = dispatch.to_tensor(norm)
    scale = clip_norm * minimum(1.0 / norm, array.ones_like(norm) / clip_norm)
    scale = scale + (norm - norm)  # NaN where the norm is not finite, else + 0
    clipped = [None if t is None else _on_values(t, lambda x: x * array.cast(scale, x.dtype)) for t in tensors]
    return clipped, norm


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """Scale `t` so that its Euclidean norm divided by its number of elements is at most `clip_norm`.

    .. math:: output = t \\cdot \\min(1, clip\\_norm \\cdot n / \\lVert t \\rVert_2)
    """
    t = dispatch.to_tensor(t)
    count = array.cast(array.size(t), t.dtype)
    limit = array.ones_like(count) / clip_norm
    return array.identity(t * clip_norm * minimum(rsqrt(reduce_sum(t * t)) * count, limit), name=name)

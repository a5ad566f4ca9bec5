"""Max pooling and its gradients; pooling under TensorFlow's names.

Lives here: MaxPool, MaxPool3D with MaxPoolGrad, MaxPoolGradGrad, MaxPoolWithArgmax; max_pool ... avg_pool3d and pool.
Not here: AvgPool, AvgPool3D (average_pool.py), shape rules (pooling_rules.py), the positions of windows
(../windows.py).

The operators have window sizes for all dimensions of the input; data_format only determines which must be 1.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, as_dtype, floating, index, int8, int16, int32, int64, of_numpy, uint8, uint16
from ...core.errors import InvalidArgumentError, UnimplementedError
from ...core.specs import TensorSpec
from .. import dispatch, like_device
from ..array import expand_dims, squeeze
from ..attributes import Attr, one_of
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import Tensor
from ..windows import FORMATS, PADDINGS, pad, padding_of, sequence, taps
from .average_pool import AvgPool, AvgPool3D
from .convolution_rules import check_data_format, dims_of_rank
from .pooling_rules import check_gradient, pooled_shape, windows_of

MAX_POOL_DTYPES = (*floating, int32, int64, uint8, int16, int8, uint16)


def _lowest(dtype: np.dtype) -> float | np.generic:
    element = of_numpy(dtype)
    lowest: float | np.generic = dtype.type(-np.inf) if element.is_floating else element.min
    return lowest


def _window_max(op: Any, x: np.ndarray) -> np.ndarray:
    windows = windows_of(op, x.shape)
    padded = pad(x, windows, _lowest(x.dtype), 0)
    maxima = like_device.full(x, [w.out for w in windows], _lowest(x.dtype), x.dtype)
    for _, tap in taps(windows):
        maxima = np.maximum(maxima, padded[tap])
    return maxima


def _window_argmax(op: Any, x: np.ndarray) -> np.ndarray:
    """Return the flat index of the maximum of each window; of equal elements, the first in row-major order."""
    windows = windows_of(op, x.shape)
    values = pad(x, windows, _lowest(x.dtype), 0)
    indices = pad(like_device.arange(x, x.size).reshape(x.shape), windows, -1, 0)
    maxima = like_device.full(x, [w.out for w in windows], _lowest(x.dtype), x.dtype)
    argmax = like_device.full(x, maxima.shape, -1, np.int64)
    for _, tap in taps(windows):
        value, index = values[tap], indices[tap]
        is_nan = (value != value) & (maxima == maxima)  # NaN is the maximum
        replaces = (index >= 0) & ((value > maxima) | (argmax < 0) | is_nan)
        maxima, argmax = np.where(replaces, value, maxima), np.where(replaces, index, argmax)
    return argmax


def _scatter_add(indices: np.ndarray, values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Add values at flat indices into zeros of the shape of `like`; in float64, so that the order is irrelevant."""
    summed = np.bincount(indices.ravel(), values.ravel().astype(np.float64), like.size)
    return summed.reshape(like.shape).astype(values.dtype)


def _define_max(n: int) -> tuple[Any, Any, Any]:
    rank, suffix = n + 2, "3D" if n == 3 else ""

    @operator(name=f"MaxPool{suffix}")
    class MaxPooling(OperatorDefinition):
        """Compute the maximum of each window, excluding padding. The first of equal elements gets the gradient.

        .. math:: output_p = \\max_{0 \\le q < ksize} input_{p \\cdot strides + q - before}

        ksize, strides: one entry per dimension of input, 1 for the batch. Output sizes as Conv2D's.
        raises InvalidArgumentError if a window is larger than the padded image
        """

        input = Input(MAX_POOL_DTYPES, rank=rank)
        output = Output(like="input")
        ksize = Attr([int])
        strides = Attr([int])
        padding = Attr(str, check=one_of(*PADDINGS))
        explicit_paddings = Attr([int], default=())
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        no_need_buffer = ("output",)
        lod = "as input"

        def infer(op) -> TensorSpec:
            return op.input.spec.with_shape(pooled_shape(op, op.input.spec.shape, rank))

        def compute(op, input: Any) -> np.ndarray:
            return _window_max(op, input)

        def gradient(op, doutput: Any) -> Tensor:
            return MaxPoolingGrad(op.input, op.output, doutput, **op.attrs)

    @operator(name=f"MaxPool{suffix}Grad")
    class MaxPoolingGrad(OperatorDefinition):
        """Compute the gradient of max pooling: add each window's gradient to its first maximum.

        .. math:: output_i = \\sum_{p :\\; argmax_p = i} grad_p
        """

        orig_input = Input(MAX_POOL_DTYPES, rank=rank)
        orig_output = Input(MAX_POOL_DTYPES, rank=rank, like="orig_input")
        grad = Input(MAX_POOL_DTYPES, rank=rank, like="orig_input")
        output = Output(like="orig_input")
        ksize = Attr([int])
        strides = Attr([int])
        padding = Attr(str, check=one_of(*PADDINGS))
        explicit_paddings = Attr([int], default=())
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        shape_only = no_need_buffer = ("orig_output",)
        lod = "vanishes"

        def infer(op) -> TensorSpec:
            check_gradient(op, pooled_shape(op, op.orig_input.spec.shape, rank))
            return op.orig_input.spec.with_shape(dims_of_rank(op.orig_input.spec.shape, rank))

        def compute(op, orig_input: Any, orig_output: Any, grad: Any) -> np.ndarray:
            return _scatter_add(_window_argmax(op, orig_input), grad, orig_input)

        def gradient(op, doutput: Any) -> tuple[None, None, Tensor]:
            return None, None, MaxPoolingGradGrad(op.orig_input, op.orig_output, doutput, **op.attrs)

    @operator(name=f"MaxPool{suffix}GradGrad")
    class MaxPoolingGradGrad(OperatorDefinition):
        """Compute the gradient of the gradient of max pooling: gather `grad` at the first maximum of each window.

        .. math:: output_p = grad_{argmax_p}
        """

        orig_input = Input(MAX_POOL_DTYPES, rank=rank)
        orig_output = Input(MAX_POOL_DTYPES, rank=rank, like="orig_input")
        grad = Input(MAX_POOL_DTYPES, rank=rank, like="orig_input")
        output = Output(like="orig_input")
        ksize = Attr([int])
        strides = Attr([int])
        padding = Attr(str, check=one_of(*PADDINGS))
        explicit_paddings = Attr([int], default=())
        data_format = Attr(str, default=FORMATS[n][0], check=one_of(*FORMATS[n]))
        shape_only = no_need_buffer = ("orig_output",)
        lod = "vanishes"

        def infer(op) -> TensorSpec:
            check_gradient(op, op.orig_input.spec.shape)
            return op.orig_input.spec.with_shape(pooled_shape(op, op.orig_input.spec.shape, rank))

        def compute(op, orig_input: np.ndarray, orig_output: np.ndarray, grad: np.ndarray) -> np.ndarray:
            output: np.ndarray = grad.reshape(-1)[_window_argmax(op, orig_input)]
            return output

        def gradient(op, doutput: Any) -> tuple[None, None, Tensor]:
            return None, None, MaxPoolingGrad(op.orig_input, op.orig_output, doutput, **op.attrs)

    return MaxPooling, MaxPoolingGrad, MaxPoolingGradGrad


MaxPool, MaxPoolGrad, MaxPoolGradGrad = _define_max(2)
MaxPool3D, MaxPool3DGrad, MaxPool3DGradGrad = _define_max(3)


@operator
class MaxPoolWithArgmax(OperatorDefinition[tuple[Tensor, Tensor]]):
    """Compute the maximum of each window and its flat index.

    .. math:: output_p = \\max_q input_{p \\cdot strides + q - before}, \\quad argmax_p = ((b
              \\cdot height + y) width + x) channels + c

    input: [batch, height, width, channels]; argmax: the flat index, without b unless include_batch_in_index.
    """

    input = Input(MAX_POOL_DTYPES, rank=4)
    output = Output(like="input")
    argmax = Output()
    ksize = Attr([int])
    strides = Attr([int])
    padding = Attr(str, check=one_of("SAME", "VALID"))
    output_dtype = Attr(DType, default=int64)
    include_batch_in_index = Attr(bool, default=False)
    no_need_buffer = ("output",)

    def infer(op) -> tuple[TensorSpec, TensorSpec]:
        if op.output_dtype not in index:
            raise InvalidArgumentError(what="output_dtype is int32 or int64", found=op.output_dtype.name)
        shape = pooled_shape(op, op.input.spec.shape, 4)
        return op.input.spec.with_shape(shape), TensorSpec(shape, op.output_dtype)

    def compute(op, input: Any) -> tuple[Any, np.ndarray]:
        argmax = _window_argmax(op, input)
        output = input.reshape(-1)[argmax]
        if not op.include_batch_in_index:
            argmax = argmax % max(math.prod(input.shape[1:]), 1)
        return output, argmax.astype(op.output_dtype.np)

    def gradient(op, doutput: Any, dargmax: Any) -> Tensor:
        window = {"ksize": op.ksize, "strides": op.strides, "padding": op.padding}
        result: Tensor = MaxPoolGrad(op.input, op.output, doutput, **window)
        return result


def _pool(
    op: Any, input: Any, n: int, ksize: Any, strides: Any, padding: Any, data_format: str | None, name: str | None
) -> Tensor:
    data_format = check_data_format(op.name, data_format, n)
    kind, explicit = padding_of(padding)
    attrs: dict[str, Any] = {"explicit_paddings": explicit} if "explicit_paddings" in op.attr_defs else {}
    if explicit and not attrs:
        raise InvalidArgumentError(
            op=op.name, node=name, what="explicit padding is not supported", wanted='"SAME" or "VALID"'
        )
    attrs |= {
        "ksize": sequence(ksize, n, data_format, "ksize"),
        "strides": sequence(strides, n, data_format, "strides"),
        "padding": kind,
    }
    if n > 1:
        result: Tensor = op(input, **attrs, data_format=data_format, name=name)
        return result
    height_axis = 1 if data_format == "NWC" else 2
    for key in ("ksize", "strides"):
        attrs[key] = (*attrs[key][:height_axis], 1, *attrs[key][height_axis:])
    if explicit:
        attrs["explicit_paddings"] = (*explicit[: 2 * height_axis], 0, 0, *explicit[2 * height_axis :])
    pooled = op(expand_dims(input, height_axis), **attrs, data_format="NHWC" if height_axis == 1 else "NCHW", name=name)
    return squeeze(pooled, [height_axis])


@documented_by(MaxPool)
def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """Compute max pooling over [batch, width, channels]."""
    return _pool(MaxPool, input, 1, ksize, strides, padding, data_format, name)


@documented_by(MaxPool)
def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Compute 2-D max pooling. padding: "SAME", "VALID" or a list of (before, after) pairs, one per dimension."""
    return _pool(MaxPool, input, 2, ksize, strides, padding, data_format, name)


@documented_by(MaxPool3D)
def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """Compute 3-D max pooling."""
    return _pool(MaxPool3D, input, 3, ksize, strides, padding, data_format, name)


@documented_by(AvgPool)
def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Tensor:
    """Compute average pooling over [batch, width, channels]."""
    return _pool(AvgPool, input, 1, ksize, strides, padding, data_format, name)


@documented_by(AvgPool)
def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Compute 2-D average pooling."""
    return _pool(AvgPool, input, 2, ksize, strides, padding, data_format, name)


@documented_by(AvgPool3D)
def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """Compute 3-D average pooling."""
    return _pool(AvgPool3D, input, 3, ksize, strides, padding, data_format, name)


def _spatial_rank(op: str, input: Any, data_format: str | None, name: str | None) -> int:
    """Return the number of spatial dimensions, by data format or the rank of the input. Raises InvalidArgumentError."""
    if data_format is not None and data_format not in ("N...C", "NC..."):
        return len(data_format) - 2
    rank = input.shape.rank
    if rank not in (3, 4, 5):
        raise InvalidArgumentError(
            op=op,
            node=name,
            what="the number of spatial dimensions is not 1, 2 or 3",
            found=input.spec.short(),
            wanted="rank 3, 4 or 5",
        )
    return int(rank) - 2


def _any_rank(
    functions: Sequence[Callable[..., Tensor]],
    op: str,
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    input = dispatch.to_tensor(input)
    n = _spatial_rank(op, input, data_format, name)
    formats = FORMATS.get(n)
    if formats is None:
        raise InvalidArgumentError(op=op, node=name, what="unknown data_format", found=repr(data_format))
    if data_format in (None, "N...C", "NC..."):
        data_format = formats[1] if data_format == "NC..." else formats[0]
    return functions[n - 1](input, ksize, strides, padding, data_format, name=name)


@documented_by(MaxPool)
def max_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Compute max pooling over one, two or three dimensions, by the rank of the input."""
    return _any_rank(
        (max_pool1d, max_pool2d, max_pool3d), "max_pool", input, ksize, strides, padding, data_format, name
    )


@documented_by(AvgPool)
def avg_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Compute average pooling over one, two or three dimensions, by the rank of the input."""
    return _any_rank(
        (avg_pool1d, avg_pool2d, avg_pool3d), "avg_pool", input, ksize, strides, padding, data_format, name
    )


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Compute max pooling or average pooling, by pooling_type "MAX" or "AVG".

    input: [batch, *spatial, channels], of one to three spatial dimensions, or channels second by data_format;
    window_shape, strides: a number for each spatial dimension, strides by default 1; padding: "SAME" or "VALID".
    raises InvalidArgumentError for another pooling_type, UnimplementedError for dilations other than 1
    """
    if dilations is not None and set(sequence(dilations, len(window_shape), "NHWC", "dilations")) != {1}:
        raise UnimplementedError(
            op="pool", node=name, what="dilated pooling is not supported", found=f"dilations {dilations}"
        )
    if pooling_type not in ("MAX", "AVG"):
        raise InvalidArgumentError(
            op="pool", node=name, what="unknown pooling_type", found=repr(pooling_type), wanted="'MAX' or 'AVG'"
        )
    function = max_pool if pooling_type == "MAX" else avg_pool
    return function(input, window_shape, strides, padding, data_format, name)


# The result of `max_pool_with_argmax`, printed under TensorFlow's name.
PooledWithArgmax = namedtuple("MaxPoolWithArgmax", ["output", "argmax"])  # type: ignore[name-match]


@documented_by(MaxPoolWithArgmax)
def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: Any = int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> PooledWithArgmax:
    """Compute 2-D max pooling with the indices of the maxima, as a named tuple (output, argmax)."""
    if data_format != "NHWC":
        raise InvalidArgumentError(
            op="MaxPoolWithArgmax", node=name, what="data_format must be NHWC", found=repr(data_format)
        )
    pooled = MaxPoolWithArgmax(
        input,
        ksize=sequence(ksize, 2, data_format, "ksize"),
        strides=sequence(strides, 2, data_format, "strides"),
        padding=padding,
        output_dtype=as_dtype(output_dtype),
        include_batch_in_index=include_batch_in_index,
        name=name,
    )
    return PooledWithArgmax(*pooled)

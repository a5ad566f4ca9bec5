"""The public functions of pooling, under TensorFlow's names.

Lives here: max_pool and avg_pool over one to three dimensions, max_pool_with_argmax, pool.
Not here: the operators (pooling.py).

ksize and strides are one number, one a spatial dimension, or one a dimension of the input.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from ...core.dtypes import as_dtype, int64
from ...core.errors import InvalidArgumentError, UnimplementedError
from .. import dispatch
from ..array import expand_dims, squeeze
from ..windows import FORMATS, padding_of, sequence
from .convolving import known_format
from .pooling import AvgPool, AvgPool3D, MaxPool, MaxPool3D, MaxPoolWithArgmax


def _pool(op: Any, input: Any, n: int, ksize: Any, strides: Any, padding: Any, data_format: str | None,
          name: str | None) -> Any:  # fmt: skip
    data_format = known_format(op.name, data_format, n)
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
        return op(input, **attrs, data_format=data_format, name=name)
    at = 1 if data_format == "NWC" else 2
    for key in ("ksize", "strides"):
        attrs[key] = (*attrs[key][:at], 1, *attrs[key][at:])
    if explicit:
        attrs["explicit_paddings"] = (*explicit[: 2 * at], 0, 0, *explicit[2 * at :])
    wide = op(expand_dims(input, at), **attrs, data_format="NHWC" if at == 1 else "NCHW", name=name)
    return squeeze(wide, [at])


def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Any:
    """Max pooling over [batch, width, channels]: see MaxPool."""
    return _pool(MaxPool, input, 1, ksize, strides, padding, data_format, name)


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Any:
    """See MaxPool. padding: "SAME", "VALID" or a list of (before, after) pairs, one a dimension."""
    return _pool(MaxPool, input, 2, ksize, strides, padding, data_format, name)


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Any:
    """See MaxPool3D."""
    return _pool(MaxPool3D, input, 3, ksize, strides, padding, data_format, name)


def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: str | None = None
) -> Any:
    """Average pooling over [batch, width, channels]: see AvgPool."""
    return _pool(AvgPool, input, 1, ksize, strides, padding, data_format, name)


def avg_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Any:
    """See AvgPool."""
    return _pool(AvgPool, input, 2, ksize, strides, padding, data_format, name)


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NDHWC", name: str | None = None
) -> Any:
    """See AvgPool3D."""
    return _pool(AvgPool3D, input, 3, ksize, strides, padding, data_format, name)


def _spatial_rank(op: str, input: Any, data_format: str | None, name: str | None) -> int:
    """The number of spatial dimensions, by the data format or the input's rank. Raises InvalidArgumentError."""
    if data_format is not None and data_format not in ("N...C", "NC..."):
        return len(data_format) - 2
    rank = input.shape.rank
    if rank not in (3, 4, 5):
        raise InvalidArgumentError(op=op, node=name, what="the number of spatial dimensions is not 1, 2 or 3",
                                   found=input.spec.short(), wanted="rank 3, 4 or 5")  # fmt: skip
    return int(rank) - 2


def _any_rank(functions: Any, op: str, input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None,
              name: str | None) -> Any:  # fmt: skip
    input = dispatch.to_tensor(input)
    n = _spatial_rank(op, input, data_format, name)
    formats = FORMATS.get(n)
    if formats is None:
        raise InvalidArgumentError(op=op, node=name, what="unknown data_format", found=repr(data_format))
    if data_format in (None, "N...C", "NC..."):
        data_format = formats[1] if data_format == "NC..." else formats[0]
    return functions[n - 1](input, ksize, strides, padding, data_format, name=name)


def max_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Any:
    """Max pooling over one, two or three dimensions, by the rank of the input: see MaxPool."""
    return _any_rank(
        (max_pool1d, max_pool2d, max_pool3d), "max_pool", input, ksize, strides, padding, data_format, name
    )


def avg_pool(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Any:
    """Average pooling over one, two or three dimensions, by the rank of the input: see AvgPool."""
    return _any_rank(
        (avg_pool1d, avg_pool2d, avg_pool3d), "avg_pool", input, ksize, strides, padding, data_format, name
    )


def pool(input: Any, window_shape: Any, pooling_type: str, strides: Any = None, padding: Any = "VALID",
         data_format: str | None = None, dilations: Any = None, name: str | None = None) -> Any:  # fmt: skip
    """max_pool or avg_pool, by pooling_type "MAX" or "AVG".

    raises UnimplementedError for dilations other than 1
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


# What `max_pool_with_argmax` gives, under TensorFlow's name; the operator has that name here.
PooledWithArgmax = namedtuple("MaxPoolWithArgmax", ["output", "argmax"])  # type: ignore[name-match]


def max_pool_with_argmax(input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC",
                         output_dtype: Any = int64, include_batch_in_index: bool = False, name: str | None = None
                         ) -> PooledWithArgmax:  # fmt: skip
    """See MaxPoolWithArgmax. A named tuple of output and argmax."""
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

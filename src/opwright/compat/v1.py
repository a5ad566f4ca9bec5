"""`ow.compat.v1`: names of TensorFlow 1 that programs for TensorFlow 2 still use.

Lives here: names that differ from those of `ow`, functions of older signatures, logging.
Not here: graphs with sessions and placeholders, which do not exist: functions are traced by `ow.function`.

Names that are the same in both versions are `ow`'s; modules are those of `ow`, with its signatures.
"""

from __future__ import annotations

import logging as python_logging
import re
from collections.abc import Callable
from typing import Any

from ..core.lazy_imports import MissingNameError, import_module
from ..ops import array, dispatch, math
from ..ops import random as random_ops
from ..ops.ragged.operations import select_rows
from ..ops.ragged.ragged_tensor import RaggedTensor
from ..ops.tensor import TensorLike
from . import dimension_at_index as dimension_at_index
from . import dimension_value as dimension_value
from .logger import get_logger

SAME = frozenset(
    re.findall(
        r"\w+",
        "Assert DType GradientTape IndexedSlices Module RaggedTensor RaggedTensorSpec SparseTensor "
        "SparseTensorSpec Tensor TensorArray TensorShape TensorSpec TypeSpec UnconnectedGradients Variable abs "
        "acos acosh add add_n as_dtype as_string asin asinh assert_equal assert_greater assert_less assert_rank "
        "atan atan2 atanh autograph bfloat16 bitcast bitwise bool broadcast_dynamic_shape broadcast_static_shape "
        "broadcast_to case cast clip_by_global_norm clip_by_norm clip_by_value compat complex complex128 complex64 "
        "concat cond config constant constant_initializer control_dependencies convert_to_tensor cos cosh "
        "custom_gradient data debugging device distribute divide double dtypes dynamic_partition dynamic_stitch "
        "eig eigvals einsum ensure_shape equal errors executing_eagerly exp experimental eye fill float16 float32 "
        "float64 floor function gather_nd get_logger grad_pass_through gradients greater greater_equal group "
        "guarantee_const half histogram_fixed_width identity identity_n image init_scope initializers int16 int32 "
        "int64 int8 io is_tensor keras less less_equal linalg linspace lite logical_and logical_not logical_or "
        "lookup losses map_fn math matmul maximum meshgrid metrics minimum multiply name_scope negative nest "
        "newaxis nn no_op not_equal numpy_function one_hot ones ones_initializer parallel_stack pow print "
        "py_function quantization ragged random random_normal_initializer random_uniform_initializer range rank "
        "realdiv recompute_grad repeat reshape reverse roll round saturate_cast saved_model scatter_nd "
        "searchsorted sequence_mask shape_n sigmoid sign signal sin sinh slice sort sparse split sqrt square stack "
        "stop_gradient strided_slice string strings subtract summary sysconfig tan tanh tensor_scatter_nd_add "
        "tensor_scatter_nd_update tensordot test tile timestamp train truediv truncatediv truncatemod types uint16 "
        "uint32 uint64 uint8 unique unique_with_counts unravel_index unstack vectorized_map version while_loop "
        "zeros zeros_initializer ",
    )
)
"""Names of version 1 that are `ow`'s."""

RENAMED = {
    "angle": "math.angle",
    "assert_greater_equal": "debugging.assert_greater_equal",
    "assert_less_equal": "debugging.assert_less_equal",
    "assert_near": "debugging.assert_near",
    "assert_non_negative": "debugging.assert_non_negative",
    "assert_positive": "debugging.assert_positive",
    "ceil": "math.ceil",
    "check_numerics": "debugging.check_numerics",
    "cholesky": "linalg.cholesky",
    "confusion_matrix": "math.confusion_matrix",
    "conj": "math.conj",
    "cross": "linalg.cross",
    "cumprod": "math.cumprod",
    "cumsum": "cumsum",
    "decode_csv": "io.decode_csv",
    "decode_raw": "io.decode_raw",
    "depth_to_space": "nn.depth_to_space",
    "diag": "linalg.tensor_diag",
    "digamma": "math.digamma",
    "div_no_nan": "math.divide_no_nan",
    "erf": "math.erf",
    "erfc": "math.erfc",
    "expm1": "math.expm1",
    "fft": "signal.fft",
    "fft2d": "signal.fft2d",
    "FixedLenFeature": "io.FixedLenFeature",
    "FixedLenSequenceFeature": "io.FixedLenSequenceFeature",
    "floordiv": "math.floordiv",
    "floormod": "math.floormod",
    "gfile": "io.gfile",
    "global_norm": "linalg.global_norm",
    "ifft": "signal.ifft",
    "imag": "math.imag",
    "invert_permutation": "math.invert_permutation",
    "is_finite": "math.is_finite",
    "is_inf": "math.is_inf",
    "is_nan": "math.is_nan",
    "lgamma": "math.lgamma",
    "lin_space": "linspace",
    "log": "math.log",
    "log1p": "math.log1p",
    "log_sigmoid": "math.log_sigmoid",
    "logical_xor": "math.logical_xor",
    "matching_files": "io.matching_files",
    "matrix_band_part": "linalg.band_part",
    "matrix_diag": "linalg.diag",
    "matrix_diag_part": "linalg.diag_part",
    "matrix_inverse": "linalg.inv",
    "matrix_solve": "linalg.solve",
    "matrix_transpose": "linalg.matrix_transpose",
    "mixed_precision": "keras.mixed_precision",
    "mod": "math.floormod",
    "parse_example": "io.parse_example",
    "parse_single_example": "io.parse_single_example",
    "parse_tensor": "io.parse_tensor",
    "py_func": "numpy_function",
    "qr": "linalg.qr",
    "random_crop": "image.random_crop",
    "random_normal": "random.normal",
    "random_shuffle": "random.shuffle",
    "random_uniform": "random.uniform",
    "read_file": "io.read_file",
    "real": "math.real",
    "reciprocal": "math.reciprocal",
    "regex_replace": "strings.regex_replace",
    "rint": "math.rint",
    "rsqrt": "math.rsqrt",
    "segment_max": "math.segment_max",
    "segment_mean": "math.segment_mean",
    "segment_min": "math.segment_min",
    "segment_sum": "math.segment_sum",
    "self_adjoint_eig": "linalg.eigh",
    "serialize_tensor": "io.serialize_tensor",
    "set_random_seed": "random.set_seed",
    "space_to_depth": "nn.space_to_depth",
    "squared_difference": "math.squared_difference",
    "string_join": "strings.join",
    "string_strip": "strings.strip",
    "string_to_hash_bucket_fast": "strings.to_hash_bucket_fast",
    "string_to_number": "strings.to_number",
    "substr": "strings.substr",
    "svd": "linalg.svd",
    "trace": "linalg.trace",
    "truncated_normal": "random.truncated_normal",
    "unsorted_segment_max": "math.unsorted_segment_max",
    "unsorted_segment_mean": "math.unsorted_segment_mean",
    "unsorted_segment_min": "math.unsorted_segment_min",
    "unsorted_segment_sum": "math.unsorted_segment_sum",
    "VarLenFeature": "io.VarLenFeature",
    "VERSION": "version.VERSION",
    "where_v2": "where",
    "write_file": "io.write_file",
    "zeta": "math.zeta",
}
"""Names of version 1 and `ow`'s for the same function."""


def __getattr__(name: str) -> object:
    if name in SAME or name in RENAMED:
        value: Any = import_module("opwright")
        for part in RENAMED.get(name, name).split("."):
            value = getattr(value, part)
        return value
    raise MissingNameError(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *SAME, *RENAMED})


# ---- switches between versions -------------------------------------------------------------------------------------


def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Do nothing: calls run eagerly, and in functions as they are traced."""


def enable_v2_behavior() -> None:
    """Do nothing: everything behaves as in TensorFlow 2."""


enable_resource_variables = enable_tensor_equality = enable_v2_tensorshape = enable_control_flow_v2 = enable_v2_behavior


def executing_eagerly_outside_functions() -> bool:
    """Return True."""
    return True


def resource_variables_enabled() -> bool:
    """Return True: variables are resources."""
    return True


control_flow_v2_enabled = resource_variables_enabled


# ---- older signatures ----------------------------------------------------------------------------------------------


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction with the arguments of both versions."""

    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Any:
        axes = reduction_indices if axis is None else axis
        return function(input_tensor, axes, bool(keep_dims if keepdims is None else keepdims))

    reduce.__doc__ = f"{function.__doc__}\n\nkeep_dims, reduction_indices: older names of keepdims and axis."
    reduce.__name__ = reduce.__qualname__ = function.__name__
    return reduce


reduce_all, reduce_any, reduce_max = map(_reduction, (math.reduce_all, math.reduce_any, math.reduce_max))
reduce_mean, reduce_min, reduce_prod = map(_reduction, (math.reduce_mean, math.reduce_min, math.reduce_prod))
reduce_sum, reduce_logsumexp = map(_reduction, (math.reduce_sum, math.reduce_logsumexp))


def _search(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return argmax or argmin with the arguments of both versions."""

    def search(
        input: Any, axis: Any = None, name: str | None = None, dimension: Any = None, output_type: Any = "int64"
    ) -> Any:
        chosen = dimension if axis is None else axis
        return function(input, 0 if chosen is None else chosen, output_type)

    search.__doc__, search.__name__ = f"{function.__doc__}\n\ndimension: an older name of axis.", function.__name__
    return search


argmax, argmin = _search(math.argmax), _search(math.argmin)
arg_max, arg_min = argmax, argmin


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    """Return a tensor without dimensions of size 1: all, or those of axis, formerly squeeze_dims."""
    return array.squeeze(input, squeeze_dims if axis is None else axis)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """Return a tensor with a dimension of size 1 at axis, formerly dim."""
    return array.expand_dims(input, dim if axis is None else axis)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Any:
    """Return a tensor with permuted dimensions."""
    return array.transpose(a, perm, conjugate)


def shape(input: Any, name: str | None = None, out_type: Any = "int32") -> Any:
    """Return the shape of a tensor as a tensor."""
    return array.shape(input, out_type)


def size(input: Any, name: str | None = None, out_type: Any = "int32") -> Any:
    """Return the number of elements of a tensor."""
    return array.size(input, out_type)


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Any:
    """Return zeros of a tensor's shape."""
    return array.zeros_like(tensor, dtype)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Any:
    """Return ones of a tensor's shape."""
    return array.ones_like(tensor, dtype)


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Any:
    """Return rows of a tensor."""
    return array.gather(params, indices, axis=batch_dims if axis is None else axis, batch_dims=batch_dims)


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0) -> Any:
    """Return a tensor with values added around it."""
    return array.pad(tensor, paddings, mode, constant_values)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Return elements of x and y, or positions; a vector as condition of higher ranks selects rows."""
    if x is None or y is None:
        return array.where(condition, x, y)
    if any(isinstance(v, RaggedTensor) for v in (condition, x, y)):
        if isinstance(condition, RaggedTensor):
            return array.where(condition, x, y)
        return select_rows(dispatch.to_tensor(condition), x, y)
    choice, values = dispatch.to_tensor(condition), dispatch.to_tensor(x)
    if choice.shape.rank == 1 and values.shape.rank:
        for _ in range(values.shape.rank - 1):
            choice = array.expand_dims(choice, -1)
    return array.where(choice, x, y)


def _cast_to(dtype: str) -> Callable[..., Any]:
    def cast(x: Any, name: str | None = None) -> Any:
        return array.cast(x, dtype)

    cast.__doc__, cast.__name__ = f"Return a tensor as {dtype}.", f"to_{dtype}"
    return cast


to_float, to_double, to_bfloat16 = _cast_to("float32"), _cast_to("float64"), _cast_to("bfloat16")
to_int32, to_int64 = _cast_to("int32"), _cast_to("int64")
to_complex64, to_complex128 = _cast_to("complex64"), _cast_to("complex128")


def div(x: Any, y: Any, name: str | None = None) -> Any:
    """Return quotients, of integers rounded down."""
    quotient = math.divide(x, y)
    integers = isinstance(x, TensorLike) and not x.dtype.is_floating and not x.dtype.is_complex
    return math.floordiv(x, y) if integers else quotient


def multinomial(
    logits: Any, num_samples: Any, seed: Any = None, name: str | None = None, output_dtype: Any = "int64"
) -> Any:
    """Return classes drawn by logits, [batch, num_samples]."""
    return random_ops.categorical(logits, num_samples, output_dtype, seed)


def assign(ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: str | None = None) -> Any:
    """Set a variable; return it."""
    return ref.assign(value)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """Add to a variable; return it."""
    return ref.assign_add(value)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """Subtract from a variable; return it."""
    return ref.assign_sub(value)


Dimension = int
"""Sizes of shapes are integers."""


# ---- logging -------------------------------------------------------------------------------------------------------


class logging:
    """`compat.v1.logging`: the logger of the package."""

    DEBUG, INFO, WARN, WARNING = (
        python_logging.DEBUG,
        python_logging.INFO,
        python_logging.WARNING,
        python_logging.WARNING,
    )
    ERROR, FATAL = python_logging.ERROR, python_logging.FATAL

    @staticmethod
    def set_verbosity(v: Any) -> None:
        """Set the level of messages that are shown."""
        get_logger().setLevel(v)

    @staticmethod
    def get_verbosity() -> int:
        """Return the level of messages that are shown."""
        return get_logger().getEffectiveLevel()

    log = staticmethod(get_logger().log)
    debug, info = staticmethod(get_logger().debug), staticmethod(get_logger().info)
    warn = warning = staticmethod(get_logger().warning)
    error, fatal = staticmethod(get_logger().error), staticmethod(get_logger().fatal)

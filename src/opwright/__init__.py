"""Opwright: the whole life of a machine-learning operator, in Python.

>>> import opwright as ow
>>> ow.atan(ow.constant([1.0, 2.0]))
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.7853982, 1.1071488], dtype=float32)>

The public names stand in `__all__`, and each is documented where it is defined. `ow.lite`, `ow.optimizers` and
`ow.nn` are imported when first used.
"""

import importlib as _importlib
from typing import Any as _Any

from .compiler.kernel import kernel
from .core import errors, nest
from .core.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    complexes,
    float16,
    float32,
    float64,
    floating,
    floating_or_complex,
    int4,
    int8,
    int16,
    int32,
    int64,
    integer,
    numeric,
    real,
    signed,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .core.flags import override as flags
from .core.places import CPUPlace, CUDAPlace
from .core.shapes import TensorShape
from .core.specs import TensorSpec
from .eager import execute as _execute
from .eager.tape import GradientTape, UnconnectedGradients, custom_gradient
from .eager.tensor import constant, convert_to_tensor, from_dlpack
from .eager.variable import Variable
from .graph import Graph
from .ops import KernelKey, math
from .ops import overloads as _overloads
from .ops import attributes as attr
from .ops.array import (
    batch_to_space,
    bitcast,
    boolean_mask,
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    cast,
    concat,
    dynamic_partition,
    dynamic_stitch,
    ensure_shape,
    expand_dims,
    eye,
    fill,
    gather,
    gather_nd,
    identity,
    identity_n,
    linspace,
    meshgrid,
    one_hot,
    ones,
    ones_like,
    pad,
    range,
    rank,
    repeat,
    reshape,
    reverse,
    reverse_sequence,
    roll,
    saturate_cast,
    scatter_nd,
    searchsorted,
    sequence_mask,
    shape,
    shape_n,
    size,
    slice,
    space_to_batch,
    split,
    squeeze,
    stack,
    stop_gradient,
    strided_slice,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
    tile,
    transpose,
    unique,
    unique_with_counts,
    unstack,
    where,
    zeros,
    zeros_like,
)
from .ops.definition import Input, Operator, Output, operator
from .ops.attributes import Attr
from .ops.indexed_slices import IndexedSlices
from .ops.linalg import einsum, matmul, norm, tensordot
from .ops.math import (
    abs,
    acos,
    acosh,
    add,
    add_n,
    argmax,
    argmin,
    argsort,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
    complex,
    cos,
    cosh,
    cumsum,
    divide,
    equal,
    exp,
    floor,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    pow,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    sigmoid,
    sign,
    sin,
    sinh,
    sort,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    truediv,
)
from .ops.tensor import Tensor
from .tracing import config
from .tracing.function import function
from .tracing.trace import executing_eagerly, init_scope, name_scope
from . import ops

# What `import opwright` need not wait for: the module, and the name in it if it is not the module itself.
_LATER = {
    "Module": (".nn.module", "Module"),
    "bitwise": (".ops.bitwise", None),
    "linalg": (".ops.linalg", None),
    "lite": (".lite", None),
    "nn": (".nn", None),
    "optimizers": (".optimizers", None),
    "random": (".ops.random", None),
    "strings": (".ops.strings", None),
}


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        module, attribute = _LATER[name]
        found = _importlib.import_module(module, __name__)
        globals()[name] = found if attribute is None else getattr(found, attribute)
        return globals()[name]
    raise AttributeError(f"module 'opwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = []
__version__ = "0.1.0"

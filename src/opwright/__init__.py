"""Opwright: the whole life of a machine-learning operator, in Python.

>>> import opwright as ow
>>> ow.atan(ow.constant([1.0, 2.0]))
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.7853982, 1.1071488], dtype=float32)>

The public names stand in `__all__`; docs/api.md has a line for each. Those in `_LATER` are imported when first used,
so that `import opwright` stays quick; type checkers see them as they see the others.
"""

from .core import importing as _importing

# isort: split
import importlib as _importlib
import typing as _typing
from contextlib import AbstractContextManager as _AbstractContextManager

from . import ops
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
from .core.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, SimulatedPlace
from .core.shapes import TensorShape
from .core.specs import TensorSpec
from .core.version import __version__
from .eager import execute as _execute  # what runs an operator called outside a trace
from .eager.tape import GradientTape, UnconnectedGradients, custom_gradient
from .eager.tensor import constant, convert_to_tensor, from_dlpack
from .eager.variable import Variable
from .graph import Graph
from .ops import KernelKey, math
from .ops import attributes as attr
from .ops import overloads as _overloads  # Python's operators on tensors
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
    guarantee_const,
    identity,
    identity_n,
    linspace,
    meshgrid,
    newaxis,
    one_hot,
    ones,
    ones_like,
    pad,
    parallel_stack,
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
    space_to_batch_nd,
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
    unravel_index,
    unstack,
    where,
    zeros,
    zeros_like,
)
from .ops.attributes import Attr
from .ops.definition import Input, Operator, Output, operator
from .ops.indexed_slices import IndexedSlices
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
    histogram_fixed_width,
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
    realdiv,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    scalar_mul,
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
    truncatediv,
    truncatemod,
)
from .ops.tensor import Tensor, get_static_value, is_tensor
from .tracing import config
from .tracing.function import function
from .tracing.naming import name_scope
from .tracing.trace import executing_eagerly, init_scope

if _typing.TYPE_CHECKING:
    from . import autograph, data, keras, language, lite, nn, optimizers, testing
    from .core.type_spec import TypeSpec, type_spec_from_value
    from .devices import DeviceContext, DeviceContextPool
    from .eager import debugging
    from .eager.calling import numpy_function, py_function
    from .lite.export.exporting import export_c
    from .nn.module import Module
    from .ops import bitwise, dtypes, image, linalg, quantization, random, sequence, signal, strings
    from .ops.clock import timestamp
    from .ops.debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank
    from .ops.indexed_slices import IndexedSlicesSpec
    from .ops.linalg import eig, eigvals, einsum, matmul, norm, tensordot
    from .ops.linalg import sqrtm as matrix_square_root
    from .ops.lod_tensor import LoDTensor, LoDTensorSpec, create_lod_tensor
    from .ops.printing import print
    from .ops.signal import fftnd, ifftnd, irfftnd, rfftnd
    from .ops.strings import as_string
    from .runtime.backward import append_backward
    from .runtime.backward import gradients as graph_gradients
    from .runtime.gradient_map import Backward
    from .runtime.graphs import run_graph
    from .runtime.instance import OpInstance
    from .runtime.scope import Scope, global_scope, scope_guard
    from .runtime.variable import ScopeVariable
    from .saved import saved_model, train
    from .tracing import experimental, types
    from .tracing.control import case, cond, foldl, foldr, map_fn, scan, switch_case, vectorized_map, while_loop
    from .tracing.derivatives import grad_pass_through, gradients, recompute_grad
    from .tracing.ordering import (
        control_dependencies,
        device,
        get_current_name_scope,
        group,
        inside_function,
        is_symbolic_tensor,
        no_op,
        tuple,
    )
    from .tracing.tensor_array import TensorArray, TensorArraySpec

ops.dispatch.install_instances(lambda *parts: __getattr__("OpInstance")(*parts))  # its module is imported when needed

half, double = float16, float64

# What `import opwright` need not wait for: the module, and the name in it if it is not the module itself.
_LATER = {
    "language": (".language", None),
    "Assert": (".ops.debugging", "Assert"),
    "DeviceContext": (".devices", "DeviceContext"),
    "DeviceContextPool": (".devices", "DeviceContextPool"),
    "IndexedSlicesSpec": (".ops.indexed_slices", "IndexedSlicesSpec"),
    "LoDTensor": (".ops.lod_tensor", "LoDTensor"),
    "LoDTensorSpec": (".ops.lod_tensor", "LoDTensorSpec"),
    "Backward": (".runtime.gradient_map", "Backward"),
    "OpInstance": (".runtime.instance", "OpInstance"),
    "append_backward": (".runtime.backward", "append_backward"),
    "graph_gradients": (".runtime.backward", "gradients"),
    "Scope": (".runtime.scope", "Scope"),
    "ScopeVariable": (".runtime.variable", "ScopeVariable"),
    "create_lod_tensor": (".ops.lod_tensor", "create_lod_tensor"),
    "Module": (".nn.module", "Module"),
    "TensorArray": (".tracing.tensor_array", "TensorArray"),
    "TensorArraySpec": (".tracing.tensor_array", "TensorArraySpec"),
    "TypeSpec": (".core.type_spec", "TypeSpec"),
    "as_string": (".ops.strings", "as_string"),
    "assert_equal": (".ops.debugging", "assert_equal"),
    "assert_greater": (".ops.debugging", "assert_greater"),
    "assert_less": (".ops.debugging", "assert_less"),
    "assert_rank": (".ops.debugging", "assert_rank"),
    "autograph": (".autograph", None),
    "bitwise": (".ops.bitwise", None),
    "case": (".tracing.control", "case"),
    "cond": (".tracing.control", "cond"),
    "control_dependencies": (".tracing.ordering", "control_dependencies"),
    "data": (".data", None),
    "debugging": (".eager.debugging", None),
    "device": (".tracing.ordering", "device"),
    "dtypes": (".ops.dtypes", None),
    "eig": (".ops.linalg", "eig"),
    "eigvals": (".ops.linalg", "eigvals"),
    "einsum": (".ops.linalg", "einsum"),
    "experimental": (".tracing.experimental", None),
    "export_c": (".lite.export.exporting", "export_c"),
    "fftnd": (".ops.signal", "fftnd"),
    "foldl": (".tracing.control", "foldl"),
    "foldr": (".tracing.control", "foldr"),
    "get_current_name_scope": (".tracing.ordering", "get_current_name_scope"),
    "global_scope": (".runtime.scope", "global_scope"),
    "grad_pass_through": (".tracing.derivatives", "grad_pass_through"),
    "gradients": (".tracing.derivatives", "gradients"),
    "group": (".tracing.ordering", "group"),
    "image": (".ops.image", None),
    "ifftnd": (".ops.signal", "ifftnd"),
    "inside_function": (".tracing.ordering", "inside_function"),
    "irfftnd": (".ops.signal", "irfftnd"),
    "is_symbolic_tensor": (".tracing.ordering", "is_symbolic_tensor"),
    "keras": (".keras", None),
    "linalg": (".ops.linalg", None),
    "lite": (".lite", None),
    "map_fn": (".tracing.control", "map_fn"),
    "matmul": (".ops.linalg", "matmul"),
    "matrix_square_root": (".ops.linalg", "sqrtm"),
    "nn": (".nn", None),
    "no_op": (".tracing.ordering", "no_op"),
    "norm": (".ops.linalg", "norm"),
    "numpy_function": (".eager.calling", "numpy_function"),
    "optimizers": (".optimizers", None),
    "print": (".ops.printing", "print"),
    "py_function": (".eager.calling", "py_function"),
    "quantization": (".ops.quantization", None),
    "random": (".ops.random", None),
    "recompute_grad": (".tracing.derivatives", "recompute_grad"),
    "rfftnd": (".ops.signal", "rfftnd"),
    "run_graph": (".runtime.graphs", "run_graph"),
    "saved_model": (".saved.saved_model", None),
    "scan": (".tracing.control", "scan"),
    "scope_guard": (".runtime.scope", "scope_guard"),
    "sequence": (".ops.sequence", None),
    "signal": (".ops.signal", None),
    "strings": (".ops.strings", None),
    "testing": (".testing", None),
    "switch_case": (".tracing.control", "switch_case"),
    "tensordot": (".ops.linalg", "tensordot"),
    "timestamp": (".ops.clock", "timestamp"),
    "train": (".saved.train", None),
    "tuple": (".tracing.ordering", "tuple"),
    "type_spec_from_value": (".core.type_spec", "type_spec_from_value"),
    "types": (".tracing.types", None),
    "vectorized_map": (".tracing.control", "vectorized_map"),
    "while_loop": (".tracing.control", "while_loop"),
}


def __getattr__(name: str) -> _typing.Any:
    if name in _LATER:
        module, attribute = _LATER[name]
        found = _importlib.import_module(module, __name__)
        globals()[name] = found if attribute is None else getattr(found, attribute)
        return globals()[name]
    raise AttributeError(f"module 'opwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})


def show(*stages: str) -> _AbstractContextManager[None]:
    """Prints these stages to stderr while in the `with`: graph, passes, kernel, llvm, asm, time, plan.

    with ow.show("graph", "passes"):
        f(x)

    raises InvalidArgumentError listing the stages there are, for another name or none
    """
    if not stages:
        raise errors.InvalidArgumentError(op="show", what="no stage is named", do='ow.show("passes")')
    return flags(show=",".join(stages))


__all__ = [  # noqa: RUF022  grouped as in docs/api.md
    # tensors, variables, gradients
    "GradientTape", "IndexedSlices", "IndexedSlicesSpec", "LoDTensor", "LoDTensorSpec", "create_lod_tensor",
    "TypeSpec", "type_spec_from_value", "Module",
    "Tensor", "TensorArray", "TensorArraySpec", "TensorShape", "TensorSpec",
    "UnconnectedGradients", "Variable", "constant", "convert_to_tensor", "custom_gradient", "executing_eagerly",
    "from_dlpack", "get_static_value", "init_scope", "is_tensor", "name_scope", "newaxis", "stop_gradient",
    # dtypes, and sets of them
    "DType", "as_dtype", "bfloat16", "bool", "complex128", "complex64", "double", "float16", "float32", "float64",
    "half", "int16", "int32", "int4", "int64", "int8", "string", "uint16", "uint32", "uint64", "uint8",
    "complexes", "floating", "floating_or_complex", "integer", "numeric", "real", "signed",
    # tracing and control flow
    "Assert", "Graph", "assert_equal", "assert_greater", "assert_less", "assert_rank", "case", "cond",
    "control_dependencies", "device", "foldl", "foldr", "function", "get_current_name_scope", "grad_pass_through",
    "gradients", "group", "inside_function", "is_symbolic_tensor", "map_fn", "no_op", "numpy_function", "print",
    "py_function", "recompute_grad", "scan", "switch_case", "timestamp", "tuple", "vectorized_map", "while_loop",
    # defining operators
    "Attr", "Backward", "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "DeviceContext", "DeviceContextPool", "Input",
    "KernelKey", "OpInstance", "Operator", "Output", "Scope", "ScopeVariable", "SimulatedPlace", "append_backward",
    "attr", "export_c", "global_scope", "graph_gradients", "kernel", "operator", "ops", "run_graph", "scope_guard",
    # modules and switches
    "autograph", "experimental", "types",
    "bitwise", "config", "data", "debugging", "dtypes", "errors", "flags", "image", "keras", "language", "linalg",
    "lite", "math", "nest", "nn", "optimizers", "quantization", "random", "saved_model", "sequence", "show", "signal",
    "strings", "testing", "train",
    # element by element
    "abs", "acos", "acosh", "add", "add_n", "as_string", "asin", "asinh", "atan", "atan2", "atanh",
    "clip_by_global_norm", "clip_by_norm", "clip_by_value", "complex", "cos", "cosh", "divide", "equal", "exp", "floor",
    "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_not", "logical_or", "maximum", "minimum",
    "multiply", "negative", "not_equal", "pow", "realdiv", "round", "saturate_cast", "scalar_mul", "sigmoid", "sign",
    "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "truediv", "truncatediv", "truncatemod", "where",
    # over axes, and products
    "argmax", "argmin", "argsort", "cumsum", "eig", "eigvals", "einsum", "fftnd", "histogram_fixed_width", "ifftnd",
    "irfftnd", "matmul", "matrix_square_root", "norm", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max",
    "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "rfftnd", "searchsorted", "sort", "tensordot", "unique",
    "unique_with_counts",
    # making arrays
    "eye", "fill", "linspace", "meshgrid", "one_hot", "ones", "ones_like", "range", "sequence_mask", "zeros",
    "zeros_like",
    # shape and order of arrays
    "batch_to_space", "bitcast", "boolean_mask", "broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to",
    "cast", "concat", "dynamic_partition", "dynamic_stitch", "ensure_shape", "expand_dims", "gather", "gather_nd",
    "guarantee_const", "identity", "identity_n", "pad", "parallel_stack", "rank", "repeat", "reshape", "reverse",
    "reverse_sequence", "roll", "scatter_nd", "shape", "shape_n", "size", "slice", "space_to_batch",
    "space_to_batch_nd", "split", "squeeze", "stack", "strided_slice", "tensor_scatter_nd_add", "tensor_scatter_nd_max",
    "tensor_scatter_nd_min", "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tile", "transpose", "unravel_index",
    "unstack",
]  # fmt: skip

_importing.finish()

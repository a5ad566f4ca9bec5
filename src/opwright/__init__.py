"""Opwright: the whole life of a machine-learning operator, in Python.

>>> import opwright as ow
>>> ow.atan(ow.constant([1.0, 2.0]))
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.7853982, 1.1071488], dtype=float32)>

The public names stand in `__all__`; docs/api.md has a line for each. Nothing is imported before it is used: `_HOMES`
says which module each name comes from, and type checkers read the same as import statements.
"""

import typing as _typing

from .core.importing import lazily as _lazily

if _typing.TYPE_CHECKING:
    from . import autograph, data, keras, language, lite, nn, ops, optimizers, testing
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
    from .core.dtypes import float16 as half
    from .core.dtypes import float64 as double
    from .core.flags import override as flags
    from .core.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, SimulatedPlace
    from .core.shapes import TensorShape
    from .core.showing import show
    from .core.specs import TensorSpec
    from .core.type_spec import TypeSpec, type_spec_from_value
    from .core.version import __version__
    from .devices import DeviceContext, DeviceContextPool
    from .eager import debugging
    from .eager.calling import numpy_function, py_function
    from .eager.tape import GradientTape, UnconnectedGradients, custom_gradient
    from .eager.tensor import constant, convert_to_tensor, from_dlpack
    from .eager.variable import Variable
    from .graph import Graph
    from .lite.export.exporting import export_c
    from .nn.module import Module
    from .ops import attributes as attr
    from .ops import bitwise, dtypes, image, linalg, math, quantization, random, sequence, signal, strings
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
    from .ops.clock import timestamp
    from .ops.debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank
    from .ops.definition import Input, Operator, Output, operator
    from .ops.indexed_slices import IndexedSlices, IndexedSlicesSpec
    from .ops.kernels import KernelKey
    from .ops.linalg import eig, eigvals, einsum, matmul, norm, tensordot
    from .ops.linalg import sqrtm as matrix_square_root
    from .ops.lod_tensor import LoDTensor, LoDTensorSpec, create_lod_tensor
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
    from .ops.printing import print
    from .ops.signal import fftnd, ifftnd, irfftnd, rfftnd
    from .ops.strings import as_string
    from .ops.tensor import Tensor, get_static_value, is_tensor
    from .runtime.backward import append_backward
    from .runtime.backward import gradients as graph_gradients
    from .runtime.gradient_map import Backward
    from .runtime.graphs import run_graph
    from .runtime.instance import OpInstance
    from .runtime.scope import Scope, global_scope, scope_guard
    from .runtime.variable import ScopeVariable
    from .saved import saved_model, train
    from .tracing import config, experimental, types
    from .tracing.control import case, cond, foldl, foldr, map_fn, scan, switch_case, vectorized_map, while_loop
    from .tracing.derivatives import grad_pass_through, gradients, recompute_grad
    from .tracing.function import function
    from .tracing.naming import name_scope
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
    from .tracing.trace import executing_eagerly, init_scope

_HOMES = {
    ".": "autograph, data, keras, language, lite, nn, ops, optimizers, testing",
    ".compiler.kernel": "kernel",
    ".core": "errors, nest",
    ".core.dtypes": (
        "DType, as_dtype, bfloat16, bool, complex128, complex64, complexes, float16, float16 as half, float32, "
        "float64, float64 as double, floating, floating_or_complex, int16, int32, int4, int64, int8, integer, "
        "numeric, real, signed, string, uint16, uint32, uint64, uint8"
    ),
    ".core.flags": "override as flags",
    ".core.places": "CPUPlace, CUDAPinnedPlace, CUDAPlace, SimulatedPlace",
    ".core.shapes": "TensorShape",
    ".core.showing": "show",
    ".core.specs": "TensorSpec",
    ".core.type_spec": "TypeSpec, type_spec_from_value",
    ".core.version": "__version__",
    ".devices": "DeviceContext, DeviceContextPool",
    ".eager": "debugging",
    ".eager.calling": "numpy_function, py_function",
    ".eager.tape": "GradientTape, UnconnectedGradients, custom_gradient",
    ".eager.tensor": "constant, convert_to_tensor, from_dlpack",
    ".eager.variable": "Variable",
    ".graph": "Graph",
    ".lite.export.exporting": "export_c",
    ".nn.module": "Module",
    ".ops": (
        "attributes as attr, bitwise, dtypes, image, linalg, math, quantization, random, sequence, signal, "
        "strings"
    ),
    ".ops.array": (
        "batch_to_space, bitcast, boolean_mask, broadcast_dynamic_shape, broadcast_static_shape, broadcast_to, cast, "
        "concat, dynamic_partition, dynamic_stitch, ensure_shape, expand_dims, eye, fill, gather, gather_nd, "
        "guarantee_const, identity, identity_n, linspace, meshgrid, newaxis, one_hot, ones, ones_like, pad, "
        "parallel_stack, range, rank, repeat, reshape, reverse, reverse_sequence, roll, saturate_cast, scatter_nd, "
        "searchsorted, sequence_mask, shape, shape_n, size, slice, space_to_batch, space_to_batch_nd, split, squeeze, "
        "stack, stop_gradient, strided_slice, tensor_scatter_nd_add, tensor_scatter_nd_max, tensor_scatter_nd_min, "
        "tensor_scatter_nd_sub, tensor_scatter_nd_update, tile, transpose, unique, unique_with_counts, unravel_index, "
        "unstack, where, zeros, zeros_like"
    ),
    ".ops.attributes": "Attr",
    ".ops.clock": "timestamp",
    ".ops.debugging": "Assert, assert_equal, assert_greater, assert_less, assert_rank",
    ".ops.definition": "Input, Operator, Output, operator",
    ".ops.indexed_slices": "IndexedSlices, IndexedSlicesSpec",
    ".ops.kernels": "KernelKey",
    ".ops.linalg": "eig, eigvals, einsum, matmul, norm, sqrtm as matrix_square_root, tensordot",
    ".ops.lod_tensor": "LoDTensor, LoDTensorSpec, create_lod_tensor",
    ".ops.math": (
        "abs, acos, acosh, add, add_n, argmax, argmin, argsort, asin, asinh, atan, atan2, atanh, clip_by_global_norm, "
        "clip_by_norm, clip_by_value, complex, cos, cosh, cumsum, divide, equal, exp, floor, greater, greater_equal, "
        "histogram_fixed_width, less, less_equal, logical_and, logical_not, logical_or, maximum, minimum, multiply, "
        "negative, not_equal, pow, realdiv, reduce_all, reduce_any, reduce_logsumexp, reduce_max, reduce_mean, "
        "reduce_min, reduce_prod, reduce_sum, round, scalar_mul, sigmoid, sign, sin, sinh, sort, sqrt, square, "
        "subtract, tan, tanh, truediv, truncatediv, truncatemod"
    ),
    ".ops.printing": "print",
    ".ops.signal": "fftnd, ifftnd, irfftnd, rfftnd",
    ".ops.strings": "as_string",
    ".ops.tensor": "Tensor, get_static_value, is_tensor",
    ".runtime.backward": "append_backward, gradients as graph_gradients",
    ".runtime.gradient_map": "Backward",
    ".runtime.graphs": "run_graph",
    ".runtime.instance": "OpInstance",
    ".runtime.scope": "Scope, global_scope, scope_guard",
    ".runtime.variable": "ScopeVariable",
    ".saved": "saved_model, train",
    ".tracing": "config, experimental, types",
    ".tracing.control": "case, cond, foldl, foldr, map_fn, scan, switch_case, vectorized_map, while_loop",
    ".tracing.derivatives": "grad_pass_through, gradients, recompute_grad",
    ".tracing.function": "function",
    ".tracing.naming": "name_scope",
    ".tracing.ordering": (
        "control_dependencies, device, get_current_name_scope, group, inside_function, is_symbolic_tensor, no_op, tuple"
    ),
    ".tracing.tensor_array": "TensorArray, TensorArraySpec",
    ".tracing.trace": "executing_eagerly, init_scope",
}

__getattr__, __dir__ = _lazily(__name__, _HOMES)

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

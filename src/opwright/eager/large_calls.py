"""Calls of large tensors by the compiler's kernels: vector code on all threads.

Lives here: `kernel_of`, which selects the kernel of an element-wise call, and `KERNELS`, which do it for calls along
rows, reductions, convolutions and other operators; which calls are compiled.
Not here: when compiled code takes over (compiler/compile_schedule.py), calls of small tensors (short_calls.py).

A call is a graph of one node, over an axis of unknown size or of the sizes at hand, as a plan that is compiled once its
calls take long. The operator, dtypes, sizes and the number of the call decide, never the clock or the threads, and the
result of an element depends on no other element or row: a program that is run twice has the same bits. They are those
of the operator in a compiled function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes, flags
from ..core.dtypes import DType, of_numpy
from ..core.lazy_imports import later
from ..core.specs import TensorSpec
from ..graph import Graph, Node, Value
from ..graph.builder import constant_node
from ..ops.call import Call
from ..ops.definition import Operator

if TYPE_CHECKING:
    from ..compiler import tiered_plan
else:  # most programs make few large calls
    tiered_plan = later("..compiler.tiered_plan", __package__)

LEAST_ELEMENTS, LEAST_MOVED = 1 << 16, 1 << 23
"""Elements from which functions are compiled; the same for those with which NumPy is as fast on one thread until memory
decides: plans keep that of large results, which the system zeroes for NumPy page by page."""
LEAST_COST = 10
"""Cost (scalar/table.py) of the functions that take longer than their operands to load."""
AS_FAST = frozenset({"Sin", "Cos"})
"""Costly functions with which NumPy is as fast."""
SLOWER = frozenset({"Relu", "Relu6", "Select", "ClipByValue"})
"""Other functions with which NumPy is slower: four times at a million elements, by random conditions more."""
COMPILE_US = 100_000.0
"""Time to compile and load a kernel by itself, in microseconds."""
ROWS = frozenset({"Softmax", "LogSoftmax", "Cumsum"})
"""Operators on rows along the attribute `axis`."""
REDUCTIONS = frozenset({"Sum", "Mean", "ArgMax"})
"""Operators that reduce rows, or all elements; NumPy is as fast with maxima."""
CONVOLUTIONS = frozenset({"Conv2D"})
OF_FIXED_SIZES = frozenset(
    {
        "AvgPool",
        "AvgPool3D",
        "AvgPoolGrad",
        "Conv3D",
        "Conv3DBackpropFilter",
        "Conv3DBackpropInput",
        "CTCLoss",
        "Cumprod",
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropFilter",
        "DepthwiseConv2dNativeBackpropInput",
        "Erfinv",
        "ExtractImagePatches",
        "FakeQuantWithMinMaxArgs",
        "FakeQuantWithMinMaxVars",
        "FFT",
        "Frame",
        "HSVToRGB",
        "Lgamma",
        "LRN",
        "Lu",
        "MatrixBandPart",
        "MatrixInverse",
        "MatrixSolve",
        "MatrixTriangularSolve",
        "MaxPool",
        "MaxPool3D",
        "MirrorPad",
        "Prod",
        "RFFT",
        "RGBToHSV",
        "ResizeBilinear",
        "ResizeNearestNeighbor",
        "ScatterNd",
        "SoftmaxCrossEntropyWithLogits",
        "Sort",
        "SpaceToBatchND",
        "SparseSoftmaxCrossEntropyWithLogits",
        "TensorScatterAdd",
        "TopK",
        "UnsortedSegmentMax",
        "UnsortedSegmentMin",
        "UnsortedSegmentProd",
        "UnsortedSegmentSum",
        "Xlogy",
    }
)
"""Operators that NumPy computes in at least twice the time, planned for the sizes of the call."""
ELEMENTS = frozenset({"indices", "label_length", "labels", "logit_length", "segment_ids"})
"""Operands that are data, although they are integers."""
LONGEST_CONSTANT = 16
"""Maximum number of integers, of sizes and axes, that are constants of a plan."""
LONGEST_ROW = 4096
"""Maximum number of elements of a row: NumPy, which sums by halves, rounds sums of longer ones less."""
UNCOUNTED = 2
"""Number of calls before there is a plan that counts them, which takes 0.2 ms."""
MOST = 256
"""Maximum number of operators, by attributes and operands, with a plan; the oldest is forgotten."""

Kernel = Callable[..., Any]
Dims = tuple[int | None, ...]
_Key = tuple[Any, tuple[Dims, ...], Any]
_HALVES = (dtypes.float16.np, dtypes.bfloat16.np)
_plans: dict[_Key, int | tiered_plan.TieredPlan] = {}  # or the number of calls, by shapes and dtype


def is_large(arrays: Sequence[Any]) -> bool:
    """Return whether an operand has `LEAST_ELEMENTS`."""
    return any(type(a) is np.ndarray and a.size >= LEAST_ELEMENTS for a in arrays)


def kernel_of(op: Operator, bound: Call, arrays: Sequence[np.ndarray]) -> Kernel:
    """Return the kernel for a call: a compiled one, or the reference for small or strided arrays and other dtypes.

    op: with a `vector_cost`; arrays: of its inputs
    """
    if op.name in KERNELS:
        return KERNELS[op.name](op, bound, arrays)
    reference: Kernel = bound.reference
    largest = max(arrays, key=np.size)
    shape, size = largest.shape, largest.size
    if size < LEAST_ELEMENTS:
        return reference
    costly = op.profile.vector_cost >= LEAST_COST and op.name not in AS_FAST
    if largest.dtype in _HALVES or (costly and largest.dtype.kind == "c"):
        return _kernel_of_fixed_sizes(op, bound, arrays)
    alike = all(a.shape in (shape, ()) for a in arrays)
    if alike and size < LEAST_MOVED and not costly and op.name not in SLOWER:
        return reference
    for a, declared in zip(arrays, op.inputs):
        expected = dtypes.bool if declared.dtypes == (dtypes.bool,) else dtypes.float32
        if a.dtype is not expected.np or not a.flags.c_contiguous:
            return reference
    dims = tuple([(None,) if a.ndim else () for a in arrays]) if alike else _broadcast_dims(shape, arrays)
    return (_tiered(op, bound, dims, shape, dtypes.float32) if dims else None) or reference


def _broadcast_dims(shape: tuple[int, ...], arrays: Sequence[np.ndarray]) -> tuple[Dims, ...] | None:
    """Return the sizes of operands as matrices of the result's rows, as rows or columns of it, and as numbers.

    None if they broadcast in another way, or to another shape.
    """
    rows = {math.prod(a.shape) for a in arrays if a.shape != shape and a.size > 1 and _is_row(a.shape, shape)}
    length = rows.pop() if rows else shape[-1]
    if rows:
        return None
    dims: list[Dims] = []
    for a in arrays:
        if a.shape == shape:
            dims.append((None, length))
        elif a.size == 1 and a.ndim <= len(shape):
            dims.append(())
        elif _is_row(a.shape, shape):
            dims.append((length,))
        elif a.shape == (*shape[:-1], 1) and length == shape[-1]:
            dims.append((None, 1))
        else:
            return None
    return tuple(dims)


def _is_row(part: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a shape is that of the last axes, perhaps with axes of size 1 before them."""
    if len(part) > len(shape):
        return False
    kept = part
    while kept and kept[0] == 1:
        kept = kept[1:]
    return kept == shape[len(shape) - len(kept) :]


def _kernel_of_rows(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of an operator of `ROWS`, as `kernel_of`."""
    (x,) = arrays
    reference: Kernel = bound.reference
    if x.dtype is not dtypes.float32.np:
        return reference
    if bound.axis not in (-1, x.ndim - 1):
        return _kernel_of_fixed_sizes(op, bound, arrays) if x.shape[bound.axis] <= LONGEST_ROW else reference
    if x.shape[-1] > LONGEST_ROW or not x.flags.c_contiguous:
        return reference
    return _tiered(op, bound, ((None, x.shape[-1]),), x.shape, dtypes.float32) or reference


def _kernel_of_reduction(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of an operator of `REDUCTIONS`, as `kernel_of`: over the last axes, or all."""
    (x,) = arrays
    reference: Kernel = bound.reference
    if x.dtype not in _REDUCED or not x.flags.c_contiguous:
        return reference
    rank, axis = x.ndim, bound.axis
    axes = range(rank) if axis is None else sorted([a % rank for a in ((axis,) if type(axis) is int else axis)])
    rest = rank - len(axes)
    if [*axes] != [*range(rest, rank)] or not axes:
        return _kernel_of_fixed_sizes(op, bound, arrays) if op.name == "ArgMax" else reference
    dims: Dims = (None, math.prod(x.shape[rest:])) if rest or op.name == "ArgMax" else (None,)
    ones = (1,) * len(axes) if getattr(bound, "keepdims", False) else ()
    return _tiered(op, bound, (dims,), (*x.shape[:rest], *ones), of_numpy(x.dtype)) or reference


_REDUCED = (dtypes.float32.np, dtypes.float64.np)


def _kernel_of_convolution(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of an operator of `CONVOLUTIONS`, as `kernel_of`: for batches of any size."""
    x, filters = arrays
    dense = x.flags.c_contiguous and filters.flags.c_contiguous
    if x.size >= LEAST_ELEMENTS and x.dtype is filters.dtype is dtypes.float32.np and dense:
        return _tiered(op, bound, ((None, *x.shape[1:]), filters.shape), None, dtypes.float32) or bound.reference
    reference: Kernel = bound.reference
    return reference


def _kernel_of_fixed_sizes(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of these sizes and dtypes, as `kernel_of`; sizes and axes are constants."""
    reference: Kernel = bound.reference
    given = [(k, a) for k, a in enumerate(arrays) if a is not None]
    if any(type(a) is not np.ndarray or (a.size >= LEAST_ELEMENTS and not a.flags.c_contiguous) for _, a in given):
        return reference
    places = [k for k in op.profile.index_places if op.input_names[k] not in ELEMENTS]
    constants = {k: a for k, a in given if k in places and a.size <= LONGEST_CONSTANT}
    kinds = tuple([(k, a.dtype) for k, a in given])
    called = op.name, repr(bound.attrs)  # calls with lists as attributes are bound again each time
    key = called, tuple([a.shape for _, a in given]), (kinds, tuple([(k, a.tobytes()) for k, a in constants.items()]))
    run = _counted_plan(key, lambda: _fixed_graph(op, bound, arrays, constants))
    if run is None:
        return reference

    def kernel(*operands: np.ndarray | None) -> Any:
        inputs = [a for k, a in enumerate(operands) if k not in constants and a is not None]
        results = run(*[a if a.flags.c_contiguous else a.copy() for a in inputs])
        return results[0] if len(results) == 1 else results

    return kernel


def _fixed_graph(
    op: Operator, bound: Call, arrays: Sequence[np.ndarray | None], constants: dict[int, np.ndarray]
) -> Graph:
    """Return the graph of one call on operands of these sizes and dtypes, of which some are constants."""
    operands: list[Value | None] = []
    nodes: list[Node] = []
    for k, (name, a) in enumerate(zip(op.input_names, arrays)):
        if a is None:
            operands.append(None)
            continue
        spec = TensorSpec(a.shape, of_numpy(a.dtype))
        if k in constants:
            nodes.append(constant_node(op.const_operator(), a.copy(), spec, name))
        operands.append(nodes[-1].outputs[0] if k in constants else Value(name, spec))
    specs = op.infer(op.bind(bound.attrs), operands)
    node = Node(op, operands, bound.attrs, specs, op.name)
    inputs = [v for k, v in enumerate(operands) if k not in constants and v is not None]
    return Graph(op.name, inputs, [*nodes, node], node.outputs)


def _kernel_of_conversion(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of `Cast`, as `kernel_of`: from or to halves."""
    if arrays[0].dtype in _HALVES or bound.dtype.np in _HALVES:
        return _kernel_of_fixed_sizes(op, bound, arrays)
    reference: Kernel = bound.reference
    return reference


def _kernel_of_product(op: Operator, bound: Any, arrays: Sequence[Any]) -> Kernel:
    """Return the kernel for a call of `MatMul`, as `kernel_of`: of numbers that BLAS does not multiply."""
    if arrays[0].dtype in _HALVES or arrays[0].dtype.kind in "iu":
        return _kernel_of_fixed_sizes(op, bound, arrays)
    reference: Kernel = bound.reference
    return reference


KERNELS: dict[str, Callable[[Operator, Any, Sequence[Any]], Kernel]] = {
    **dict.fromkeys(ROWS, _kernel_of_rows),
    **dict.fromkeys(REDUCTIONS, _kernel_of_reduction),
    **dict.fromkeys(CONVOLUTIONS, _kernel_of_convolution),
    **dict.fromkeys(OF_FIXED_SIZES, _kernel_of_fixed_sizes),
    "Cast": _kernel_of_conversion,
    "MatMul": _kernel_of_product,
}
"""The function that selects the kernel of a call of which an operand has `LEAST_ELEMENTS`, by operator."""


def _tiered(
    op: Operator, bound: Call, dims: tuple[Dims, ...], shape: tuple[int, ...] | None, dtype: DType
) -> Kernel | None:
    """Return the plan of a call as a kernel; None for the first calls, and where nothing is compiled.

    dims: of the operands; shape: of the result, None for the plan's; dtype: of the operands that are not bools
    """
    run = _counted_plan((bound, dims, dtype), lambda: _graph_of_rows(op, bound, dims, dtype))
    if run is None:
        return None
    shapes = [tuple([-1 if d is None else d for d in one]) for one in dims]

    def kernel(*operands: np.ndarray) -> np.ndarray:
        (result,) = run(*[a.reshape(one) for a, one in zip(operands, shapes)])
        reshaped: np.ndarray = result if shape is None else result.reshape(shape)
        return reshaped

    return kernel


def _counted_plan(key: _Key, graph_of: Callable[[], Graph]) -> Callable[..., tuple[Any, ...]] | None:
    """Return what runs the plan of a call; None for the first calls, and where nothing is compiled."""
    if not flags.jit or flags.deterministic:  # equal calls have equal bits then, the first one's
        return None
    plan = _plans.get(key, 0)
    if type(plan) is int:
        plan = plan + 1 if plan < UNCOUNTED else tiered_plan.TieredPlan(graph_of(), COMPILE_US, warns=False)
        while len(_plans) >= MOST and key not in _plans:
            _plans.pop(next(iter(_plans)), None)  # unless another thread has removed it
        _plans[key] = plan
    return None if type(plan) is int else plan.run  # type: ignore[union-attr]  # no number


def _graph_of_rows(op: Operator, bound: Call, dims: Sequence[Dims], dtype: DType) -> Graph:
    """Return the graph of one call on operands of these sizes, None for unknown ones."""
    kinds = [dtypes.bool if declared.dtypes == (dtypes.bool,) else dtype for declared in op.inputs]
    inputs = [Value(name, TensorSpec(one, kind)) for name, one, kind in zip(op.input_names, dims, kinds)]
    attrs = {**bound.attrs, **_axis_of_rows(op, len(dims[0]))}
    (spec,) = op.infer(op.bind(attrs), inputs)
    node = Node(op, inputs, attrs, [spec], op.name)
    return Graph(op.name, inputs, [node], node.outputs)


def _axis_of_rows(op: Operator, rank: int) -> dict[str, Any]:
    """Return the attributes of a call on rows that differ from those of the user's call. rank: of its operand."""
    if op.name in ROWS:
        return {"axis": -1}
    if op.name in REDUCTIONS:
        return {"axis": rank - 1} if op.name == "ArgMax" else {"axis": (rank - 1,), "keepdims": False}
    return {}

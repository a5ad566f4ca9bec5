"""Quantisation of weights alone, which needs no data: float16, and dynamic range; sparse weights.

Lives here: `float16`, `dynamic_range`; `sparsify` (`Optimize.EXPERIMENTAL_SPARSITY`) with `SparseLayout`, `layout_of`,
`in_blocks`.
Not here: integer activations (plan.py, driver.py), hybrid kernels (lite/ops/quantized), reading sparse tensors
(lite/runtime/constants.py).

Float16: each float32 constant that a node reads is stored in half the bytes and restored by a DEQUANTIZE.
Dynamic range: weights of the operators in HYBRID are int8; their kernels quantise activations at run time. Small
weights stay float: they would save nothing.

Sparse: rows of the last dimension are compressed (CSR): the indices of nonzero elements, or of nonzero blocks, in the
narrowest type that holds them. FULLY_CONNECTED computes on blocks (4 of float32, 16 of int8) directly; for other
readers a DENSIFY restores the zeros when the model is loaded, so that only the file is smaller. A tensor that would
not be smaller remains dense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ....graph import Graph, Node, Value
from ....graph.ir import flat
from ...format import versions
from ...ops.definition import LiteOperator
from ...ops.module import is_source
from ...ops.specs import Sparsity, name_of, with_changes
from .graphs import ConstantRewriter, constant, operand, producer
from .modes import Mode
from .parameters import of_weights, quantized
from .plan import unsupported_by_runtime

LEAST_SPARSITY = 0.3  # part of the elements that are zero, below which nothing is tried
WHOLE_BLOCKS = 0.9  # part of the zeros that must be in whole blocks for a blocked layout
SPARSE_BLOCKS = {"float32": 4, "int8": 16}  # of FULLY_CONNECTED's kernels on sparse weights
TABLES = 128  # bytes of a layout without its arrays, about


class SparseLayout(NamedTuple):
    """The sparse storage of a tensor: offsets of rows, column indices of blocks, elements of blocks, block size."""

    segments: np.ndarray
    indices: np.ndarray
    stored: np.ndarray
    block: int

    @property
    def size(self) -> int:
        """Return the approximate number of bytes in the file."""
        return sum(_narrow(a).nbytes for a in (self.segments, self.indices)) + self.stored.nbytes + TABLES

    def of(self, shape: tuple[int, ...]) -> Sparsity:
        """Return where the elements of a tensor of this shape are, as types have it."""
        blocked = self.block > 1
        levels: list[int | tuple[np.ndarray, np.ndarray]] = [*shape[:-1]]
        levels.append((_narrow(self.segments), _narrow(self.indices)))
        if blocked:
            levels.append(self.block)
        return Sparsity(tuple(range(len(levels))), (len(shape) - 1,) if blocked else (), tuple(levels))


def layout_of(array: np.ndarray, block: int = 1) -> SparseLayout:
    """Return the layout of an array whose last dimension is a multiple of `block`."""
    blocks = array.reshape(-1, array.shape[-1] // block, block)
    kept = (blocks != 0).any(axis=-1)
    segments = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return SparseLayout(segments, np.nonzero(kept)[1], blocks[kept].reshape(-1), block)


def _narrow(numbers: np.ndarray) -> np.ndarray:
    most = int(numbers.max(initial=0))
    return numbers.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int32)


def sparsity_of(array: np.ndarray) -> float:
    """Return the fraction of elements that are zero."""
    return 1.0 - np.count_nonzero(array) / max(array.size, 1)


def in_blocks(array: np.ndarray, block: int) -> bool:
    """Return whether a matrix has many zeros, most of them in whole blocks."""
    if array.ndim != 2 or not array.size or array.shape[-1] % block:
        return False
    zeros = sparsity_of(array)
    return zeros >= LEAST_SPARSITY and 1.0 - layout_of(array, block).stored.size / array.size >= WHOLE_BLOCKS * zeros


WEIGHTS = {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 1, "FULLY_CONNECTED": 1}
ELEMENTS = ("float32", "float16", "int8")
CODE = 64  # bytes that a DENSIFY takes
BLOCK = 4  # where DENSIFY reads it and that is smaller
# int8 weights from a DENSIFY are none of the constants that the other kernels of the official run time ask for.
DENSIFIED = {"CONV_2D": ("int8", "int16"), "DEPTHWISE_CONV_2D": ("int8", "int16"), "FULLY_CONNECTED": ("int16",)}


def sparsify(graph: Graph, inside: Callable[[Graph], Graph], mode: Mode) -> Graph:
    """Return a graph with its weights of many zeros in sparse form.

    inside: the same for a subgraph. mode: the mode of the preceding quantisation.
    """
    rewriter = _SparseRewriter(graph, inside, mode)
    for value in rewriter.weights():
        rewriter.compress(value)
    for node in graph.nodes:
        if is_source(node):
            rewriter.weight(node)
        else:
            rewriter.copy_with(node)
    return rewriter.finish()


class _SparseRewriter(ConstantRewriter):
    """The rewriter of sparse weights. stored: layouts of constants that all readers compute on directly."""

    def __init__(self, graph: Graph, inside: Callable[[Graph], Graph], mode: Mode) -> None:
        super().__init__(graph, inside)
        self.mode = mode
        self.stored: dict[Value, SparseLayout] = {}
        self.readers: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for value in dict.fromkeys(node.operands):
                self.readers.setdefault(value, []).append(node)

    def weights(self) -> list[Value]:
        """Return the constants that operators read as weights, also through a DEQUANTIZE."""
        constants = {}
        for node in self.source.nodes:
            value = operand(node, WEIGHTS[node.op.name]) if node.op.name in WEIGHTS else None
            if value is None:
                continue
            source = producer(value)
            if source is not None and source.op.name == "DEQUANTIZE":
                value = operand(source, 0)
            if value is not None and value.constant is not None and value not in self.source.outputs:
                constants[value] = True
        return list(constants)

    def compress(self, value: Value) -> None:
        """Store a constant without its zeros if that makes the file smaller."""
        array = value.constant
        assert array is not None
        sparse = getattr(value.spec, "sparsity", None) is not None
        if sparse or value.dtype.name not in ELEMENTS or not array.size or not array.shape:
            return
        if sparsity_of(array) < LEAST_SPARSITY:
            return
        layout = self._of_kernels(value, array)
        if layout is not None:
            self.stored[value] = layout
            return
        layouts = [layout_of(array)] + ([layout_of(array, BLOCK)] if array.shape[-1] % BLOCK == 0 else [])
        layout = min(layouts, key=lambda made: made.size)
        if layout.size + CODE < array.nbytes and self._densifies(value):
            spec = with_changes(value.spec, sparsity=layout.of(array.shape))
            stored = self.add_constant(array, spec, name_of(value))
            self.substitutes[value] = self.unary("DENSIFY", stored, value.spec, f"{name_of(value)}_dense")

    def weight(self, node: Node) -> None:
        """Add a constant as it is, or in the layout that its readers compute on."""
        (value,) = node.outputs
        if value in self.stored:
            array = node.attrs["value"]
            spec = with_changes(value.spec, sparsity=self.stored[value].of(array.shape))
            self.substitutes[value] = self.add_constant(array, spec, name_of(value))
        else:
            self.copy_source(node, self.substitutes)

    def _densifies(self, value: Value) -> bool:
        """Return whether all readers accept the output of a DENSIFY."""
        if self.mode.too_new(versions.min_runtime("DENSIFY", 1)):
            return False
        if value.dtype.name != "int8":
            return True
        return all(_type_of_first(node) in DENSIFIED.get(node.op.name, ()) for node in self.readers[value])

    def _of_kernels(self, value: Value, array: np.ndarray) -> SparseLayout | None:
        """Return a layout that all readers compute on directly; None if there is none, or it is not smaller."""
        kind = value.dtype.name
        block = SPARSE_BLOCKS.get(kind, 0)
        if not block or array.ndim != 2 or array.shape[-1] % block:
            return None
        layout = layout_of(array, block)
        # int8 has no alternative by DENSIFY
        if layout.size >= array.nbytes or (kind != "int8" and not in_blocks(array, block)):
            return None
        spec = with_changes(value.spec, sparsity=layout.of(array.shape))
        scales = 0 if spec.quantization is None else len(spec.quantization.scale)
        for node in self.readers[value]:
            operands, x = flat(node.inputs), _type_of_first(node)
            if node.op.name != "FULLY_CONNECTED" or operands.index(value) != 1 or operands.count(value) > 1:
                return None
            if unsupported_by_runtime(self.mode, node, {value: spec}):
                return None
            if x not in ("float32", "int8") or (x == "float32" and scales > 1):  # the hybrid kernel takes one scale
                return None
        return layout


def _type_of_first(node: Node) -> str:
    first = operand(node, 0)
    return "" if first is None else first.dtype.name


LEAST_ELEMENTS = 1024  # of weights that are worth it
ASYMMETRIC = "asymmetric_quantize_inputs"
HALF_LIMIT = float(np.finfo(np.float16).max)
HALF_LEAST = float(np.finfo(np.float16).tiny)


class WeightForm(NamedTuple):
    """How the weights of a hybrid operator are quantised: by slices of an axis, or as a whole; its activations between
    their extremes, or symmetrically."""

    axis: int | None
    asymmetric: bool


class HybridOperator(NamedTuple):
    """operand: which input has the weights. axis: of output channels where each may have its scale. needs_axis: the
    kernel takes no single scale. asymmetric: the options select how activations are quantised. moves: the kernel moves
    elements, so its result is integers, too."""

    operand: int = 1
    axis: int | None = None
    needs_axis: bool = False
    asymmetric: bool = False
    moves: bool = False


HYBRID = {
    "CONV_2D": HybridOperator(axis=0),
    "DEPTHWISE_CONV_2D": HybridOperator(axis=3, needs_axis=True),
    "TRANSPOSE_CONV": HybridOperator(axis=0),
    "FULLY_CONNECTED": HybridOperator(axis=0, asymmetric=True),
    "BATCH_MATMUL": HybridOperator(asymmetric=True),
    "GATHER": HybridOperator(operand=0, moves=True),
    "EMBEDDING_LOOKUP": HybridOperator(),
}


def float16(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    """Return a graph with its float32 constants in float16, except constants beyond its range.

    inside: returns the same of a graph that nodes hold.
    """
    rewriter = ConstantRewriter(graph, inside)
    for node in graph.nodes:
        for value in node.outputs if is_source(node) else ():
            array = constant(value)
            if array is None or not array.size or _beyond(array) or value not in rewriter.read:
                continue
            spec = with_changes(value.spec, dtype="float16")
            half = rewriter.add_constant(array.astype(np.float16), spec, f"{name_of(value)}_float16")
            rewriter.substitutes[value] = rewriter.unary("DEQUANTIZE", half, value.spec, name_of(value))
    for node in graph.nodes:
        if is_source(node):
            rewriter.copy_source(node, rewriter.substitutes)
        else:
            rewriter.copy_with(node)
    return rewriter.finish()


def dynamic_range(graph: Graph, inside: Callable[[Graph], Graph], mode: Mode) -> Graph:
    """Return a graph with weights of 1024 elements or more in int8. inside: as `float16`."""
    rewriter = ConstantRewriter(graph, inside)
    forms = {n: f for n in graph.nodes if isinstance(n.op, LiteOperator) and (f := _form(n, mode)) is not None}
    axes: dict[Value, dict[int | None, None]] = {}  # of weights, those of their scales
    for node, form in forms.items():
        axes.setdefault(_weights(node), {})[form.axis] = None
    replaced = axes.keys() - {
        v for n in graph.nodes for i, v in enumerate(flat(n.inputs)) if not _is_weights(n, i, forms)
    }
    weights: dict[tuple[Value, int | None], Value] = {}
    for node in graph.nodes:
        if is_source(node):
            rewriter.copy_source(node, replaced)
            (value,) = node.outputs
            for axis in axes.get(value, ()):
                array = node.attrs["value"]
                parameters = of_weights(array, axis)
                integers = quantized(array, parameters, narrow=True)
                weights[value, axis] = rewriter.add_constant(integers, parameters.of(value.spec), name_of(value))
            continue
        if node not in forms:
            rewriter.copy_with(node)
            continue
        row, form = HYBRID[node.op.name], forms[node]
        fresh = weights[_weights(node), form.axis]
        attrs = {ASYMMETRIC: form.asymmetric} if row.asymmetric else {}
        if not row.moves:
            rewriter.copy_with(node, {row.operand: fresh}, attrs=attrs)
            continue
        (real,) = node.outputs
        spec = with_changes(real.spec, dtype=fresh.dtype, quantization=fresh.spec.quantization)
        moving = {real: (spec, f"{name_of(real)}_int8")}
        moved = rewriter.copy_with(node, {row.operand: fresh}, moving, attrs).outputs[0]
        rewriter.mapping[real] = rewriter.unary("DEQUANTIZE", moved, real.spec, name_of(real))
    return rewriter.finish()


def _weights(node: Node) -> Value:
    value = operand(node, HYBRID[node.op.name].operand)
    assert value is not None
    return value


def _is_weights(node: Node, place: int, forms: Mapping[Node, WeightForm]) -> bool:
    """Return whether an operand of a node takes the form of hybrid weights."""
    return node in forms and place == HYBRID[node.op.name].operand


def _form(node: Node, mode: Mode) -> WeightForm | None:
    """Return the best int8 form of a node's weights that the run time has; None to leave them float."""
    row = HYBRID.get(node.op.name)
    value = None if row is None else operand(node, row.operand)
    array = constant(value)
    if row is None or value is None or array is None or array.size < LEAST_ELEMENTS or not np.isfinite(array).all():
        return None
    per_channel = mode.per_channel_dense if node.op.name == "FULLY_CONNECTED" else mode.per_channel
    if mode.sparse and node.op.name == "FULLY_CONNECTED" and in_blocks(array, SPARSE_BLOCKS["int8"]):
        per_channel = False  # the hybrid kernel of sparse weights takes one scale
    axes = [row.axis] if row.needs_axis else [row.axis, None] if per_channel and row.axis is not None else [None]
    for axis in axes:
        for asymmetric in (True, False) if row.asymmetric else (False,):
            parameters = of_weights(array, axis)
            specs = {v: parameters.of(v.spec) for v in (value, *(node.outputs if row.moves else ()))}
            attrs = {ASYMMETRIC: asymmetric} if row.asymmetric else {}
            if not unsupported_by_runtime(mode, node, specs, **attrs):
                return WeightForm(axis, asymmetric)
    return None


def _beyond(array: np.ndarray) -> bool:
    """Return whether float16 overflows a finite element, or flushes all of them to zero or nearly so, as an epsilon."""
    most = np.abs(array[np.isfinite(array)]).max(initial=0.0)
    return bool(most > HALF_LIMIT or 0 < most < HALF_LEAST)

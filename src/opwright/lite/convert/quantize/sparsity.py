"""Sparse weights: constants with many zeros, stored without them (`Optimize.EXPERIMENTAL_SPARSITY`).

Lives here: `sparsify`, which selects tensors and their readers; `SparseLayout`, `layout_of`, `in_blocks`.
Not here: reading sparse tensors (lite/runtime/constants.py).

Rows of the last dimension are compressed (CSR): the indices of nonzero elements, or of nonzero blocks, in the narrowest
type that holds them. FULLY_CONNECTED computes on blocks (4 of float32, 16 of int8) directly; for other readers a
DENSIFY restores the zeros when the model is loaded, which makes the file smaller and nothing else. A tensor that would
not be smaller stays dense.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ....graph import Graph, Node, Value
from ....graph.ir import flat
from ...format import versions
from ...ops.module import is_source
from ...ops.specs import Sparsity, name_of, with_changes
from .calibrated_graph import operand, producer
from .modes import Mode
from .plan import late
from .rewriter import ConstantRewriter

LEAST_SPARSITY = 0.3  # part of the elements that are zero, below which nothing is tried
WHOLE_BLOCKS = 0.9  # so much of that must be in blocks of zeros for a layout in blocks
SPARSE_BLOCKS = {"float32": 4, "int8": 16}  # of FULLY_CONNECTED's kernels on sparse weights
TABLES = 128  # bytes of a layout without its arrays, about


class SparseLayout(NamedTuple):
    """How a tensor is stored: places of the blocks in each row, the blocks in order, the elements in each."""

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

    inside: returns the same of a graph that nodes hold. mode: of the quantisation, which was before.
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
    """The graph on its way. stored: the layouts of constants that all readers compute on as they are."""

    def __init__(self, graph: Graph, inside: Callable[[Graph], Graph], mode: Mode) -> None:
        super().__init__(graph, inside)
        self.mode = mode
        self.stored: dict[Value, SparseLayout] = {}
        self.readers: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for value in dict.fromkeys(node.operands):
                self.readers.setdefault(value, []).append(node)

    def weights(self) -> list[Value]:
        """Return the constants that operators have as weights, also by way of a DEQUANTIZE."""
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
        """Store a constant without its zeros, where the file gets smaller by it."""
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
        """Return whether a DENSIFY may stand before all readers."""
        if self.mode.too_new(versions.min_runtime("DENSIFY", 1)):
            return False
        if value.dtype.name != "int8":
            return True
        return all(_type_of_first(node) in DENSIFIED.get(node.op.name, ()) for node in self.readers[value])

    def _of_kernels(self, value: Value, array: np.ndarray) -> SparseLayout | None:
        """Return a layout that all readers compute on as it is; None where there is none, or it is no smaller."""
        kind = value.dtype.name
        block = SPARSE_BLOCKS.get(kind, 0)
        if not block or array.ndim != 2 or array.shape[-1] % block:
            return None
        layout = layout_of(array, block)
        # int8 has no DENSIFY as other way out
        if layout.size >= array.nbytes or (kind != "int8" and not in_blocks(array, block)):
            return None
        spec = with_changes(value.spec, sparsity=layout.of(array.shape))
        scales = 0 if spec.quantization is None else len(spec.quantization.scale)
        for node in self.readers[value]:
            operands, x = flat(node.inputs), _type_of_first(node)
            if node.op.name != "FULLY_CONNECTED" or operands.index(value) != 1 or operands.count(value) > 1:
                return None
            if late(self.mode, node, {value: spec}):
                return None
            if x not in ("float32", "int8") or (x == "float32" and scales > 1):  # the hybrid kernel takes one scale
                return None
        return layout


def _type_of_first(node: Node) -> str:
    first = operand(node, 0)
    return "" if first is None else first.dtype.name

"""Sparse weights: constants of many zeros are stored without them, as `Optimize.EXPERIMENTAL_SPARSITY` asks.

Lives here: `sparsify`, which tensors, for which kernels.
Not here: layouts (layouts.py), reading them (lite/runtime/constants.py).

FULLY_CONNECTED computes on blocks (4 of float32, 16 of int8) as they are; elsewhere a DENSIFY puts the zeros back when
the model is loaded, so that the file is smaller and no more. What would not be smaller stays as it is.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ...format import Model, versions
from .layouts import LEAST_SPARSITY, Layout, in_blocks, layout_of, sparsity_of
from .modes import Mode
from .plan import Graph
from .releases import late
from .tables import Tables
from .weights import SPARSE_BLOCKS, Edited

WEIGHTS = {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 1, "FULLY_CONNECTED": 1}
ELEMENTS = {"FLOAT32": "<f4", "FLOAT16": "<f2", "INT8": "i1"}
CODE = 64  # bytes that a DENSIFY takes
BLOCK = 4  # where DENSIFY reads it and that is smaller
# int8 weights from a DENSIFY are none of the constants that the other kernels of the official run time ask for.
DENSIFIED = {"CONV_2D": ("INT8", "INT16"), "DEPTHWISE_CONV_2D": ("INT8", "INT16"), "FULLY_CONNECTED": ("INT16",)}


def sparsify(model: Model, mode: Mode) -> Model:
    """The model with its weights of many zeros in sparse form. mode: of the quantisation, which was before."""
    model = Model.read(model.to_bytes())
    tables = Tables(model)
    return tables.finish([_Sparse(Graph(model, s, {}), tables, mode).subgraph() for s in model.subgraphs])


class _Sparse(Edited):
    """One subgraph on its way."""

    def __init__(self, graph: Graph, tables: Tables, mode: Mode) -> None:
        super().__init__(graph, tables)
        self.mode = mode
        self.dense: dict[int, int] = {}  # of constants that a DENSIFY gives back
        self.direct: dict[int, int] = {}

    def subgraph(self) -> Any:
        """The new table."""
        graph = self.graph
        for t in self._weights():
            self._compress(t)
        new = self.dense | self.direct
        for i, ins in enumerate(graph.inputs):
            self.operators.append(self._operator(i, [new.get(t, t) for t in ins]))
        return self._with_buffers(len(graph.tensors))

    def _weights(self) -> list[int]:
        """The constants that operators have as weights, also by way of a DEQUANTIZE."""
        graph, found = self.graph, {}
        for i, name in enumerate(graph.names):
            place = WEIGHTS.get(name, -1)
            if 0 <= place < len(graph.inputs[i]) and (t := graph.inputs[i][place]) >= 0:
                source = graph.producer.get(t)
                if source is not None and graph.names[source] == "DEQUANTIZE":
                    t = graph.inputs[source][0]
                found[t] = True
        outer = set(np.asarray(graph.subgraph.inputs).tolist() + np.asarray(graph.subgraph.outputs).tolist())
        return [t for t in found if t not in outer and t not in graph.producer]

    def _elements(self, t: int) -> np.ndarray | None:
        tensor = self.graph.tensors[t]
        data = self.graph.model.buffers[tensor.buffer].data
        dtype, shape = ELEMENTS.get(tensor.type.name), np.asarray(tensor.shape).tolist()
        if dtype is None or data is None or tensor.is_variable or tensor.sparsity is not None or not shape:
            return None
        array = np.frombuffer(memoryview(data), dtype)
        return array.reshape(shape) if array.size == np.prod(shape, dtype=np.int64) and array.size else None

    def _compress(self, t: int) -> None:
        """Store a constant without its zeros, where the file gets smaller by it."""
        array = self._elements(t)
        if array is None:
            return
        if sparsity_of(array) < LEAST_SPARSITY:
            return
        layout = self._of_kernels(t, array)
        if layout is not None:
            self.direct[t] = self._stored(t, layout)
            return
        layouts = [layout_of(array)] + ([layout_of(array, BLOCK)] if array.shape[-1] % BLOCK == 0 else [])
        layout = min(layouts, key=lambda made: made.size)
        if layout.size + CODE < array.nbytes and self._densifies(t):
            sparse = self._stored(t, layout)
            self.dense[t] = self._new(t, "_dense")
            self.operators.append(self.tables.step("DENSIFY", sparse, self.dense[t]))

    def _readers(self, t: int) -> list[tuple[int, str, str]]:
        """Operators that read a tensor: number, name, type of the first operand."""
        graph = self.graph
        return [(i, graph.names[i], graph.tensors[ins[0]].type.name) for i, ins in enumerate(graph.inputs) if t in ins]

    def _densifies(self, t: int) -> bool:
        """Whether a DENSIFY may stand before all readers."""
        if self.mode.too_new(versions.min_runtime("DENSIFY", 1)):
            return False
        integers = self.graph.tensors[t].type.name == "INT8"
        return not integers or all(x in DENSIFIED.get(name, ()) for _, name, x in self._readers(t))

    def _of_kernels(self, t: int, array: np.ndarray) -> Layout | None:
        """A layout that all readers compute on as it is; None where there is none, or it is no smaller."""
        graph = self.graph
        kind = graph.tensors[t].type.name
        block = SPARSE_BLOCKS.get(kind, 0)
        if not block or array.ndim != 2 or array.shape[-1] % block:
            return None
        layout = layout_of(array, block)
        # int8 has no DENSIFY as other way out
        if layout.size >= array.nbytes or (kind != "INT8" and not in_blocks(array, block)):
            return None
        tensor = copy.copy(graph.tensors[t])
        tensor.sparsity = layout.table(array.shape)
        scales = 0 if tensor.quantization is None else len(tensor.quantization.scale)
        for i, name, x in self._readers(t):
            ins = graph.inputs[i]
            if name != "FULLY_CONNECTED" or ins.index(t) != 1 or ins.count(t) > 1:
                return None
            if late(self.mode, graph, i, {t: tensor}):
                return None
            if x not in ("FLOAT32", "INT8") or (x == "FLOAT32" and scales > 1):  # the hybrid kernel takes one scale
                return None
        return layout

    def _stored(self, t: int, layout: Layout) -> int:
        fresh = self._new(t)
        tensor = self.tensors[fresh]
        tensor.sparsity = layout.table(tuple(np.asarray(tensor.shape).tolist()))
        tensor.buffer = self.tables.buffer(layout.stored)
        return fresh

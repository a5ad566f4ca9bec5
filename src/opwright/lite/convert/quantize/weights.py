"""Quantisation of weights alone, which needs no data: float16, and dynamic range.

Lives here: both.  Not here: integer activations (plan.py, rewrite.py), the hybrid kernels (lite/ops/quantized).

Float16: every float32 constant that an operator reads is kept in half the bytes, and a DEQUANTIZE gives it back.
Dynamic range: weights of the operators in HYBRID are int8; their kernels quantise the activations while they run. Small
weights stay float, as there is nothing to gain.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from ...format import Model, schema
from .layouts import in_blocks
from .modes import Mode
from .parameters import of_weights, quantized
from .plan import Graph
from .releases import late
from .tables import Tables

LEAST_ELEMENTS = 1024  # of weights that are worth it
SPARSE_BLOCKS = {"FLOAT32": 4, "INT8": 16}  # of FULLY_CONNECTED's kernels on sparse weights
HALF_LIMIT = float(np.finfo(np.float16).max)
HALF_LEAST = float(np.finfo(np.float16).tiny)


class Form(NamedTuple):
    """How the weights of a hybrid operator are quantised: by slices of an axis, or as a whole; its activations between
    their extremes, or symmetrically."""

    axis: int | None
    asymmetric: bool


class Hybrid(NamedTuple):
    """operand: which input has the weights. axis: of output channels where each may have its scale. needs_axis: the
    kernel takes no single scale. asymmetric: the options say how activations are quantised. moves: the kernel moves
    elements, so its result is integers, too."""

    operand: int = 1
    axis: int | None = None
    needs_axis: bool = False
    asymmetric: bool = False
    moves: bool = False


HYBRID = {
    "CONV_2D": Hybrid(axis=0),
    "DEPTHWISE_CONV_2D": Hybrid(axis=3, needs_axis=True),
    "TRANSPOSE_CONV": Hybrid(axis=0),
    "FULLY_CONNECTED": Hybrid(axis=0, asymmetric=True),
    "BATCH_MATMUL": Hybrid(asymmetric=True),
    "GATHER": Hybrid(operand=0, moves=True),
    "EMBEDDING_LOOKUP": Hybrid(),
}


def float16(model: Model) -> Model:
    """The model with its float32 constants in float16, but those that it cannot hold."""
    tables = Tables(model)
    return tables.finish([Edited(Graph(model, s, {}), tables).float16() for s in model.subgraphs])


def dynamic_range(model: Model, mode: Mode) -> Model:
    """The model with weights of 1024 elements or more in int8."""
    tables = Tables(model)
    return tables.finish([Edited(Graph(model, s, {}), tables).dynamic_range(mode) for s in model.subgraphs])


def _beyond(array: np.ndarray) -> bool:
    """Whether float16 would make a finite number infinite, or all of them nothing (an epsilon, say) or nearly so."""
    most = np.abs(array[np.isfinite(array)]).max(initial=0.0)
    return bool(most > HALF_LIMIT or 0 < most < HALF_LEAST)


class Edited:
    """One subgraph on its way. Tensors keep their indices; new ones follow."""

    def __init__(self, graph: Graph, tables: Tables) -> None:
        self.graph, self.tables = graph, tables
        self.made = copy.copy(graph.subgraph)
        self.made.tensors = self.tensors = [copy.copy(t) for t in graph.tensors]
        self.operators: list[Any] = []
        self.made.operators = self.operators
        self.changed: dict[tuple[int, Any], int] = {}

    def _finish(self) -> Any:
        """Drop the tensors that nobody reads any more, and number buffers and codes anew."""
        made = self.made
        used = {*np.asarray(made.inputs).tolist(), *np.asarray(made.outputs).tolist()}
        for op in self.operators:
            used.update(np.asarray(op.inputs).tolist() + np.asarray(op.outputs).tolist())
            used.update(np.asarray(op.intermediates).tolist())
        order = [t for t in range(len(self.tensors)) if t in used]
        index = {-1: -1} | {t: i for i, t in enumerate(order)}

        def renumbered(values: Any) -> np.ndarray:
            return np.array([index[t] for t in np.asarray(values).tolist()], np.int32)

        for op in self.operators:
            op.inputs, op.outputs = renumbered(op.inputs), renumbered(op.outputs)
            if len(op.intermediates):  # an empty vector that is new is written, one that was not there is not
                op.intermediates = renumbered(op.intermediates)
        made.inputs, made.outputs = renumbered(made.inputs), renumbered(made.outputs)
        made.tensors = [self.tensors[t] for t in order]
        return made

    def _operator(self, i: int, inputs: list[int]) -> Any:
        op = copy.copy(self.graph.operators[i])
        op.opcode_index = self.tables.kept_code(op.opcode_index)
        op.inputs = np.array(inputs, np.int32)
        return op

    def _new(self, source: int, suffix: str = "") -> int:
        self.tensors.append(copy.copy(self.graph.tensors[source]))
        self.tensors[-1].buffer = 0
        self.tensors[-1].name = f"{self.graph.tensors[source].name}{suffix}"
        return len(self.tensors) - 1

    def float16(self) -> Any:
        """Every float32 constant that an operator reads."""
        graph = self.graph
        halves: dict[int, int] = {}
        read = {t for ins in graph.inputs for t in ins if t >= 0}
        for t in sorted(read):
            array = graph.constant(t)
            if array is None or not array.size or _beyond(array):
                continue
            half = self._new(t, "_float16")
            tensor = self.tensors[half]
            tensor.type = schema.enum("TensorType")["FLOAT16"]
            tensor.buffer = self.tables.buffer(array.astype(np.float16))
            back = self._new(t)
            self.tensors[back].name = graph.tensors[t].name
            halves[t] = back
            self.operators.append(self.tables.step("DEQUANTIZE", half, back))
        for i, ins in enumerate(graph.inputs):
            self.operators.append(self._operator(i, [halves.get(t, t) for t in ins]))
        return self._with_buffers(len(graph.tensors))

    def dynamic_range(self, mode: Mode) -> Any:
        """Weights of hybrid operators."""
        graph = self.graph
        for i, ins in enumerate(graph.inputs):
            row = HYBRID.get(graph.names[i])
            form = None if row is None else self._form(i, row, mode)
            if row is None or form is None:
                self.operators.append(self._operator(i, ins))
                continue
            fresh = self._int8(ins[row.operand], form)
            op = self._operator(i, [fresh if at == row.operand else t for at, t in enumerate(ins)])
            if row.asymmetric:
                op.builtin_options = copy.copy(op.builtin_options)
                op.builtin_options.asymmetric_quantize_inputs = form.asymmetric
            self.operators.append(op)
            if row.moves:
                real = graph.outputs[i][0]
                moved = self._new(real, "_int8")
                self.tensors[moved].type = self.tensors[fresh].type
                self.tensors[moved].quantization = self.tensors[fresh].quantization
                op.outputs = np.array([moved], np.int32)
                self.operators.append(self.tables.step("DEQUANTIZE", moved, real))
        return self._with_buffers(len(graph.tensors))

    def _form(self, i: int, row: Hybrid, mode: Mode) -> Form | None:
        """How an operator's weights are best in int8: the first way that the run time has; None to leave them."""
        graph = self.graph
        t = graph.inputs[i][row.operand]
        array = graph.constant(t) if t >= 0 else None
        if array is None or array.size < LEAST_ELEMENTS or not np.isfinite(array).all():
            return None
        wanted = mode.per_channel_dense if graph.names[i] == "FULLY_CONNECTED" else mode.per_channel
        if mode.sparse and graph.names[i] == "FULLY_CONNECTED" and in_blocks(array, SPARSE_BLOCKS["INT8"]):
            wanted = False  # the hybrid kernel of sparse weights takes one scale
        axes = [row.axis] if row.needs_axis else [row.axis, None] if wanted and row.axis is not None else [None]
        for axis in axes:
            for asymmetric in (True, False) if row.asymmetric else (False,):
                if not self._late(i, row, Form(axis, asymmetric), mode):
                    return Form(axis, asymmetric)
        return None

    def _late(self, i: int, row: Hybrid, form: Form, mode: Mode) -> str:
        if mode.runtime is None:
            return ""
        t = self.graph.inputs[i][row.operand]
        tensor = copy.copy(self.graph.tensors[t])
        array = self.graph.constant(t)
        assert array is not None
        parameters = of_weights(array, form.axis)
        tensor.type, tensor.quantization = parameters.tensor_type, parameters.table()
        forms = {t: tensor} | ({self.graph.outputs[i][0]: tensor} if row.moves else {})
        return late(mode, self.graph, i, forms,
                    **({"asymmetric_quantize_inputs": form.asymmetric} if row.asymmetric else {}))  # fmt: skip

    def _int8(self, t: int, form: Form) -> int:
        """The tensor of weights in int8."""
        if (t, form.axis) not in self.changed:
            array = self.graph.constant(t)
            assert array is not None
            fresh = self.changed[t, form.axis] = self._new(t)
            parameters = of_weights(array, form.axis)
            tensor = self.tensors[fresh]
            tensor.type, tensor.quantization = parameters.tensor_type, parameters.table()
            tensor.buffer = self.tables.buffer(quantized(array, parameters, narrow=True))
        return self.changed[t, form.axis]

    def _with_buffers(self, kept: int) -> Any:
        """Buffers of old tensors, of those that stay in the file."""
        made = self._finish()
        old = {id(t) for t in self.tensors[:kept]}
        for tensor in made.tensors:
            if id(tensor) in old:
                tensor.buffer = self.tables.kept_buffer(tensor.buffer)
        return made

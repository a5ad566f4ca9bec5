"""Rewriting: the tables of a float subgraph become those of a quantised one, as its plan says.

Lives here: tensors, QUANTIZE and DEQUANTIZE where two sides differ, the borders of the model, weights and biases.
Not here: which parameters a tensor gets (plan.py, parameters.py), buffers and codes of the whole file (tables.py).

A tensor has up to three forms: real numbers, the integers its producer writes, the integers a reader asks for. Each is
made when first needed, so that nothing stands in the file that nobody reads.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ...format import objects, schema
from .modes import INT16, Mode
from .parameters import BIAS_LIMIT, Parameters, of_io, of_range, of_weights, quantized
from .plan import Graph, Plan, activations
from .rules import NONE, Linear
from .tables import Tables

LEAST_MULTIPLIER = 2.0**-30  # of a channel: kernels read a smaller one as zero
FLOAT: None = None  # the form that holds real numbers
Form = Parameters | None


class Rewriter:
    """One subgraph. border: whether it is called from outside, so that its inputs and outputs take the mode's types."""

    def __init__(self, graph: Graph, plan: Plan, mode: Mode, tables: Tables, border: bool) -> None:
        self.graph, self.plan, self.mode, self.tables = graph, plan, mode, tables
        self.ends = (mode.inputs, mode.outputs) if border else ("float32", "float32")
        self.tensors: list[Any] = []
        self.operators: list[Any] = []
        self.places: dict[tuple[int, Form], int] = {}  # of a tensor in a form, in the new subgraph
        self.born: dict[int, Form] = {}  # the form that its producer writes
        self.names: set[str] = set()

    def subgraph(self) -> Any:
        """The new table."""
        graph = self.graph
        source = graph.subgraph
        outer = np.asarray(source.outputs).tolist()
        forms = {t: self._end(t, self.ends[1]) for t in outer if graph.is_float(t)}
        self.outer = forms  # the forms that bear the tensors' names
        inputs = [self._input(t) for t in np.asarray(source.inputs).tolist()]
        for i in range(len(graph.operators)):
            self._operator(i)
        outputs = [self.place(t, forms.get(t, FLOAT)) for t in outer]
        made = copy.copy(source)
        made.tensors, made.operators = self.tensors, self.operators
        made.inputs, made.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
        return made

    # ---- forms of tensors -----------------------------------------------------------------------------------------

    def _end(self, t: int, dtype: str) -> Form:
        """The form of an input or output of the subgraph."""
        if dtype == "float32" or not self.graph.is_float(t):
            return FLOAT
        low, high = self.graph.range_of(t) or (0.0, 1.0)
        behind = self.plan.produced.get(t) or of_range(low, high, self.mode.activations)
        return of_io(behind, dtype, low, high)

    def _input(self, t: int) -> int:
        self.born[t] = form = self._end(t, self.ends[0])
        return self._add(t, form)

    def _add(self, t: int, form: Form) -> int:
        """A new tensor for this form, without elements."""
        source = self.graph.tensors[t]
        tensor = copy.copy(source)
        tensor.buffer = 0
        if form is not FLOAT:
            tensor.type, tensor.quantization = form.tensor_type, form.table()
        tensor.name = self._name(t, source.name or "", form)
        self.places[t, form] = len(self.tensors)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _name(self, t: int, name: str, form: Form) -> str:
        main = self.outer[t] if t in self.outer else self.born.get(t, form)
        if form != main:
            name += "_float" if form is FLOAT else f"_{form.dtype}"
        found, count = name, 1
        while found and found in self.names:
            count += 1
            found = f"{name}_{count}"
        self.names.add(found)
        return found

    def place(self, t: int, form: Form) -> int:
        """Where a tensor is in a form; what makes it so is written if it is not there yet."""
        if t < 0:
            return t
        found = self.places.get((t, form))
        if found is not None:
            return found
        if t not in self.born:  # nothing writes it: a constant, or a variable
            return self._constant(t, form)
        was = self.born[t]
        source = self.places[t, was]
        target = self._add(t, form)
        self.operators.append(self.tables.step("DEQUANTIZE" if form is FLOAT else "QUANTIZE", source, target))
        return target

    def _constant(self, t: int, form: Form, narrow: bool = False) -> int:
        array = self.graph.constant(t)
        place = self._add(t, form)
        tensor = self.tensors[place]
        if form is FLOAT or array is None:
            tensor.buffer = self.tables.kept_buffer(self.graph.tensors[t].buffer)
        else:
            tensor.buffer = self.tables.buffer(quantized(array, form, narrow))
        return place

    # ---- operators ------------------------------------------------------------------------------------------------

    def _operator(self, i: int) -> None:
        graph, rule = self.graph, self.plan.rule.get(i)
        ins, outs = graph.inputs[i], graph.outputs[i]
        operator = copy.copy(graph.operators[i])
        if rule is not None and rule.sum and self.mode.kind == INT16:
            # else scales that are powers of two take an older kernel, which cannot broadcast
            operator.builtin_options = copy.copy(operator.builtin_options)
            operator.builtin_options.pot_scale_int16 = False
        if rule is None:
            loose = i in self.plan.loose
            places = [self.place(t, self.born.get(t, FLOAT) if loose else FLOAT) for t in ins]
        else:
            read = activations(graph, i, rule)
            special = self._linear(i, rule.linear, operator) if rule.linear is not None else {}
            places = []
            for at, t in enumerate(ins):
                if at in special:
                    places.append(special.pop(at))
                elif t in read:
                    places.append(self.place(t, self.plan.wanted(i, t)))
                else:
                    places.append(self.place(t, FLOAT))
            for at in sorted(special):  # a bias that was not there
                places += [-1] * (at - len(places)) + [special[at]]
        results = []
        for t in outs:
            integers = rule is not None and rule.results is not NONE and graph.is_float(t)
            self.born[t] = form = self.plan.produced[t] if integers else FLOAT
            results.append(self._add(t, form))
        operator.opcode_index = self.tables.kept_code(operator.opcode_index)
        operator.inputs, operator.outputs = np.array(places, np.int32), np.array(results, np.int32)
        self.operators.append(operator)

    def _linear(self, i: int, linear: Linear, operator: Any) -> dict[int, int]:
        """Weights and bias of an operator, by place among its inputs.

        A channel's weights get max / 127 as scale, or more where its bias would not fit the accumulator, or its
        multiplier would be nothing.
        """
        graph, mode = self.graph, self.mode
        ins, rule = graph.inputs[i], self.plan.rule[i]
        weights = graph.constant(ins[linear.weights])
        assert weights is not None
        x = self.plan.wanted(i, activations(graph, i, rule)[0]).scale
        y = self.plan.produced[graph.outputs[i][0]].scale
        bias_at = ins[linear.bias] if linear.bias < len(ins) else -1
        bias = graph.constant(bias_at) if bias_at >= 0 else None
        # The kernel of DEPTHWISE_CONV_2D on int16 takes no other bias.
        wide = mode.kind == INT16 and (mode.bias == "int64" or graph.names[i] == "DEPTHWISE_CONV_2D")
        dtype = np.dtype(np.int64 if wide else np.int32)
        floor: Any = LEAST_MULTIPLIER * y / x
        if bias is not None:
            floor = np.maximum(floor, np.abs(bias.astype(np.float64)).reshape(-1) / (BIAS_LIMIT[dtype] * x))
        dense = graph.names[i] == "FULLY_CONNECTED"
        axis = linear.axis if (mode.per_channel_dense if dense else mode.per_channel) else None
        parameters = of_weights(weights, axis, floor if axis is not None else np.max(floor))
        key = (ins[linear.weights], parameters)
        made = {linear.weights: self.places[key] if key in self.places else self._constant(*key, narrow=True)}
        if bias is None and not linear.needs_bias:
            return made
        made[linear.bias] = self._bias(i, bias_at, bias, weights.shape[linear.axis], parameters, x, dtype)
        if mode.kind == INT16 and mode.bias == "int32" and not wide:
            operator.builtin_options = copy.copy(operator.builtin_options)
            operator.builtin_options.quantized_bias_type = schema.enum("TensorType")["INT32"]
        return made

    def _bias(self, i: int, at: int, bias: np.ndarray | None, n: int, weights: Parameters, x: float, dtype: np.dtype
              ) -> int:  # fmt: skip
        values = np.zeros(n, np.float32) if bias is None else bias.reshape(-1)
        scales = np.array(weights.scales, np.float64) * x
        integers = np.rint(values.astype(np.float64) / scales)
        limit = BIAS_LIMIT[dtype]
        tensor = objects.Tensor(
            name=self._free_name(at, i), shape=np.array([n], np.int32), has_rank=True,
            type=schema.enum("TensorType")[dtype.name.upper()],
            buffer=self.tables.buffer(np.clip(integers, -limit, limit).astype(dtype)),
            quantization=objects.QuantizationParameters(
                scale=scales.astype(np.float32), zero_point=np.zeros(len(scales), np.int64)))  # fmt: skip
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _free_name(self, at: int, i: int) -> str:
        name = self.graph.tensors[at].name if at >= 0 else f"{self.graph.tensors[self.graph.outputs[i][0]].name}_bias"
        found, count = name or "", 1
        while found in self.names:
            count += 1
            found = f"{name}_{count}"
        self.names.add(found)
        return found

"""The driver of quantisation, and quantisation of one graph by its plan.

Lives here: `quantize` and `sparsify`, the stages in order; the report of nodes without an integer form;
`GraphQuantizer`: forms of values, QUANTIZE and DEQUANTIZE between them, inputs and outputs of the model, weights,
biases.
Not here: choosing parameters (plan.py), the other stages (calibration.py, weights.py).

A value has up to three forms: real numbers, the integers that its producer writes, and the integers that a reader
wants. Each is created at its first use, so that no form is unused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ....core.specs import TensorSpec
from ....graph import Graph, Node, Value
from ....graph.builder import GraphTransform, subgraphs_mapped
from ....graph.ir import flat
from ...ops.definition import LiteOperator
from ...ops.module import LiteModule, is_source
from ...ops.specs import name_of
from ..errors import ConverterError
from . import modes, weights
from .calibration import calibrate, carried, ranges_of_constants, trained
from .graphs import CalibratedGraph, QuantizationRewriter, Range, constant, is_float, operand, regrouped
from .masks import narrowed
from .modes import INT16, Mode
from .parameters import (
    BIAS_LIMIT,
    QuantizationParameters,
    of_io,
    of_range,
    of_weights,
    quantized,
    stored_parameters,
    weights_grid,
)
from .plan import QuantizationPlan, activations, plan_for
from .rules import NONE, LinearOperands, QuantizationRule, rules_of_users

LEAST_MULTIPLIER = 2.0**-30  # of a channel: kernels read a smaller one as zero
FLOAT: None = None  # the form of real numbers
Form = QuantizationParameters | None


class GraphQuantizer(QuantizationRewriter):
    """One graph. border: whether it is called from outside, so that its inputs and outputs take the mode's types.

    inside: returns the quantised form of a subgraph.
    """

    def __init__(
        self, graph: CalibratedGraph, plan: QuantizationPlan, mode: Mode, border: bool, inside: Callable[[Graph], Graph]
    ) -> None:
        super().__init__(graph.graph, inside)
        self.graph, self.plan, self.mode = graph, plan, mode
        self.ends = (mode.inputs, mode.outputs) if border else ("float32", "float32")
        self.forms: dict[tuple[Value, Form], Value] = {}  # a value in a form, in the new graph
        self.born: dict[Value, Form] = {}  # the form that its producer writes
        self.outer: dict[Value, Form] = {}  # of outputs: the forms that bear the values' names
        self.names: set[str] = set()

    def rewritten(self) -> Graph:
        """Return the new graph."""
        self.outer = {v: self._end(v, self.ends[1]) for v in self.source.outputs if is_float(v)}
        for value in self.source.inputs:
            self.born[value] = form = self._end(value, self.ends[0])
            self.forms[value, form] = self.add_input(self._spec(value, form), self._name(value, form))
        for value in self.source.inputs if self.mode.explicit else ():
            self._quantize_result(value)
        for node in self.graph.operators:
            self._operator(node)
        return self.build([self.form(v, self.outer.get(v, FLOAT)) for v in self.source.outputs])

    # ---- forms of values ------------------------------------------------------------------------------------------

    def _end(self, value: Value, dtype: str) -> Form:
        """Return the form of an input or output of the graph."""
        if dtype == "float32" or not is_float(value):
            return FLOAT
        low, high = self.graph.range_of(value) or (0.0, 1.0)
        behind = self.plan.produced.get(value) or of_range(low, high, self.mode.activations)
        return of_io(behind, dtype, low, high)

    @staticmethod
    def _spec(value: Value, form: Form) -> TensorSpec:
        return value.spec if form is None else form.of(value.spec)

    def _name(self, value: Value, form: Form) -> str:
        name = name_of(value)
        main = self.outer[value] if value in self.outer else self.born.get(value, form)
        if form != main:
            name += "_float" if form is None else f"_{form.dtype}"
        return self._free_name(name)

    def _free_name(self, name: str) -> str:
        candidate, count = name, 1
        while candidate and candidate in self.names:
            count += 1
            candidate = f"{name}_{count}"
        self.names.add(candidate)
        return candidate

    def form(self, value: Value, form: Form) -> Value:
        """Return a value in a form, converted at the first use."""
        existing = self.forms.get((value, form))
        if existing is not None:
            return existing
        if value not in self.born:  # no operator writes it: a constant, or state
            return self._constant(value, form)
        source = self.forms[value, self.born[value]]
        step = "DEQUANTIZE" if form is FLOAT else "QUANTIZE"
        converted = self.unary(step, source, self._spec(value, form), self._name(value, form))
        self.forms[value, form] = converted
        return converted

    def _constant(self, value: Value, form: Form, narrow: bool = False) -> Value:
        node, array = value.node, constant(value)
        assert node is not None
        assert is_source(node)
        attrs = dict(node.attrs)
        if form is not None and array is not None:
            attrs["value"] = quantized(array, form, narrow)
        (fresh,) = self.add(node.op, (), attrs, [self._spec(value, form)], [self._name(value, form)]).outputs
        self.forms[value, form] = fresh
        return fresh

    # ---- operators ------------------------------------------------------------------------------------------------

    def _converts(self, node: Node) -> bool:
        """Match nodes between forms: they are not operators, but name a form of a value."""
        if node.op.name == "DEQUANTIZE" and (stored := stored_parameters(next(node.operands))) is not None:
            (x,), (y,) = node.operands, node.outputs
            self.born[y] = stored
            self.forms[y, stored] = self.forms[x, FLOAT]
            return True
        if node.op.name == "QUANTIZE" and (stored := stored_parameters(node.outputs[0])) is not None:
            (x,), (y,) = node.operands, node.outputs
            self.born[y] = FLOAT
            self.forms[y, FLOAT] = self.form(x, stored)
            return True
        if node.op.name == "FAKE_QUANT" and self.mode.explicit and node.outputs[0] in self.graph.ranges:
            (x,), (y,) = node.operands, node.outputs
            if self.born.get(x) is not None:  # from one scale to another
                self.born[y] = of_range(*self.graph.ranges[y], self.mode.activations)
                self.forms[y, self.born[y]] = self.form(x, self.born[y])
                return True
        return False

    def _operator(self, node: Node) -> None:
        if self._converts(node):
            return
        rule = self.plan.rule.get(node)
        attrs = dict(subgraphs_mapped(node.attrs, self.inside))
        if rule is not None and rule.sum and self.mode.kind == INT16:
            # else scales that are powers of two take an older kernel, which cannot broadcast
            attrs["pot_scale_int16"] = False
        operands = flat(node.inputs)
        if rule is None:
            loose = node in self.plan.loose
            places = [v and self.form(v, self.born.get(v, FLOAT) if loose else FLOAT) for v in operands]
        else:
            read = activations(node, rule)
            special = self._linear(node, rule.linear, attrs) if rule.linear is not None else {}
            places = []
            for at, value in enumerate(operands):
                if at in special:
                    places.append(special[at])
                else:
                    places.append(
                        value and self.form(value, self.plan.parameters_read(node, value) if value in read else FLOAT)
                    )
        specs, names = [], []
        for value in node.outputs:
            integers = rule is not None and rule.results is not NONE and is_float(value)
            self.born[value] = form = self.plan.produced[value] if integers else FLOAT
            specs.append(self._spec(value, form))
            names.append(self._name(value, form))
        fresh = self.add(node.op, regrouped(node.inputs, places), attrs, specs, names, node)
        self.forms |= {(old, self.born[old]): new for old, new in zip(node.outputs, fresh.outputs)}
        if self.mode.explicit:
            for value in node.outputs:
                self._quantize_result(value)

    def _quantize_result(self, value: Value) -> None:
        """Quantize a real result, or input, that the program quantizes: its clamp is a part of the program."""
        if self.born[value] is FLOAT and is_float(value) and value in self.graph.ranges:
            form = self.plan.produced.get(value) or of_range(*self.graph.ranges[value], self.mode.activations)
            self.form(value, form)
            self.born[value] = form
            del self.forms[value, FLOAT]

    def _linear(self, node: Node, linear: LinearOperands, attrs: dict[str, Any]) -> dict[int, Value]:
        """Return the weights and bias of an operator, by place among its inputs.

        A channel's weights get max / 127 as scale, or more where its bias would not fit the accumulator, or its
        multiplier would be nothing.
        """
        mode, rule = self.mode, self.plan.rule[node]
        source = operand(node, linear.weights)
        weights = constant(source)
        assert source is not None
        assert weights is not None
        x = self.plan.parameters_read(node, activations(node, rule)[0]).scale
        y = self.plan.produced[node.outputs[0]].scale
        bias_of = operand(node, linear.bias)
        bias = constant(bias_of)
        # The kernel of DEPTHWISE_CONV_2D on int16 takes no other bias.
        wide = mode.kind == INT16 and (mode.bias == "int64" or node.op.name == "DEPTHWISE_CONV_2D")
        dtype = np.dtype(np.int64 if wide else np.int32)
        floor: Any = LEAST_MULTIPLIER * y / x
        if bias is not None:
            floor = np.maximum(floor, np.abs(bias.astype(np.float64)).reshape(-1) / (BIAS_LIMIT[dtype] * x))
        dense = node.op.name == "FULLY_CONNECTED"
        axis = linear.axis if (mode.per_channel_dense if dense else mode.per_channel) else None
        parameters = of_weights(weights, axis, floor if axis is not None else np.max(floor))
        if mode.explicit and (grid := weights_grid(weights, linear.axis)) is not None:
            parameters = _not_below(grid, floor)
        existing = self.forms.get((source, parameters))
        replacements = {
            linear.weights: self._constant(source, parameters, narrow=True) if existing is None else existing
        }
        if bias is None and not linear.needs_bias:
            return replacements
        name = name_of(bias_of) if bias_of is not None else f"{name_of(node.outputs[0])}_bias"
        values = np.zeros(weights.shape[linear.axis], np.float32) if bias is None else bias.reshape(-1)
        replacements[linear.bias] = self._bias(name, values, parameters, x, dtype)
        if mode.kind == INT16 and mode.bias == "int32" and not wide:
            attrs["quantized_bias_type"] = "INT32"
        return replacements

    def _bias(self, name: str, values: np.ndarray, weights: QuantizationParameters, x: float, dtype: np.dtype) -> Value:
        scales = np.array(weights.scales, np.float64) * x
        limit = BIAS_LIMIT[dtype]
        integers = np.clip(np.rint(values.astype(np.float64) / scales), -limit, limit).astype(dtype)
        parameters = QuantizationParameters(dtype.name, tuple(map(float, scales.astype(np.float32))))
        spec = parameters.of(TensorSpec(integers.shape))
        return self.add_constant(integers, spec, self._free_name(name))


def _not_below(parameters: QuantizationParameters, floor: Any) -> QuantizationParameters:
    """Return parameters of weights with scales of at least a floor."""
    scales = np.maximum(np.array(parameters.scales), floor)
    return parameters._replace(scales=tuple(map(float, scales.astype(np.float32))))


PASSING = ("IF", "WHILE", "CALL")  # pass real numbers on without computing; their subgraphs are quantised
SHOWN = 5  # nodes named for each reason


def quantize(
    module: LiteModule, mode: Mode, dataset: Any = None, *, custom_ops: Any = (), op_resolver: Any = None
) -> LiteModule:
    """Return the quantised form of a float model.

    dataset: representative data, if the mode needs it; None if FAKE_QUANTs state all ranges. custom_ops, op_resolver:
    as for the Interpreter, to run the model.
    raises ConverterError where the mode wants integers alone and an operator has none; InvalidArgumentError for data
    that does not fit the model
    """
    if mode.kind == modes.FLOAT:
        return module
    if mode.kind == modes.FLOAT16:
        return _each(module, weights.float16)
    ranges: dict[Value, Range] = {}
    masked: dict[Value, Range] = {}
    bits = 16 if mode.explicit and mode.kind == INT16 else 8
    module = _each(module, lambda graph, inside: trained(graph, inside, ranges, bits))
    customs = rules_of_users(module, custom_ops, op_resolver)
    if mode.kind == modes.DYNAMIC:
        if ranges:  # their operators run on integers; the weights of all others are quantised
            module = _integers(module, mode._replace(kind=modes.INT8), ranges, customs)
        return _each(module, lambda graph, inside: weights.dynamic_range(graph, inside, mode))
    if dataset is not None:
        seen, masked = calibrate(module, dataset, custom_ops, op_resolver)
        ranges = seen | ranges
    return _integers(module, mode, ranges, customs, masked)


def sparsify(module: LiteModule, mode: Mode) -> LiteModule:
    """Return the model with its weights of many zeros in sparse form. mode: of the quantisation, which was before."""
    return _each(module, lambda graph, inside: weights.sparsify(graph, inside, mode))


def _each(module: LiteModule, change: Callable[[Graph, Callable[[Graph], Graph]], Graph]) -> LiteModule:
    """Apply a change to every graph of a module, once."""
    changed = GraphTransform(change)
    return module._replace(graphs=[changed(graph) for graph in module.graphs])


def _integers(
    module: LiteModule,
    mode: Mode,
    ranges: Mapping[Value, Range],
    customs: Mapping[str, QuantizationRule],
    masked: Mapping[Value, Range] = MappingProxyType({}),
) -> LiteModule:
    graphs = {graph: CalibratedGraph(graph, ranges, customs, masked) for graph in module.all_graphs}
    for graph in graphs.values():
        carried(graph, mode.explicit)
        if mode.explicit:
            graph.narrowed = ranges_of_constants(graph) | narrowed(graph)
    plans = {graph: plan_for(calibrated, mode) for graph, calibrated in graphs.items()}
    if not mode.allow_float:
        _refuse_floats(plans.values())
    outer = {module.graphs[0], *(module.graphs[s.graph] for s in module.signatures)}
    return _each(
        module,
        lambda graph, inside: GraphQuantizer(graphs[graph], plans[graph], mode, graph in outer, inside).rewritten(),
    )


def _refuse_floats(plans: Iterable[QuantizationPlan]) -> None:
    """Raise ConverterError listing every operator that would compute on real numbers."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for node, reason in (item for plan in plans for item in plan.kept.items()):
        if isinstance(node.op, LiteOperator) and node.op.name in PASSING:
            continue
        name = repr(name_of(node.outputs[0]) if node.outputs else node.name)
        by_reason.setdefault((node.op.name, reason), []).append(name + (f" at {node.at}" if node.at else ""))
    if not by_reason:
        return
    lines = []
    for (name, reason), nodes in by_reason.items():
        more = f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
        lines.append(
            f"    Quantization not yet supported for op: '{name}' ({reason}): {', '.join(nodes[:SHOWN])}{more}"
        )
    raise ConverterError(
        what="target_spec.supported_ops allows integer operators alone, and these have none\n" + "\n".join(lines),
        do="add OpsSet.TFLITE_BUILTINS to target_spec.supported_ops, so that they stay float, or rewrite the function "
        "without them",
    )

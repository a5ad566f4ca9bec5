"""Explicit quantization: pairs of quantize and dequantize that a program computes state the parameters of its tensors.

Lives here: `stated`, which replaces such pairs in graphs of the catalogue; `is_stated`.
Not here: the integers of weights (parameters.py), ranges, plans (calibration.py, plan.py), the new graph (driver.py).

Programs from ONNX (QuantizeLinear, DequantizeLinear) and PyTorch (quantize_per_tensor, dequantize_per_tensor) compute

    q = cast(clip(rint(x / s) + z))         y = s * cast(q - z)

A pair becomes a FAKE_QUANT of the range of all integers, so that the value has exactly these parameters; uint8 becomes
int8, with z - 128. Operators that only move or choose elements of integers between the two are computed on real
numbers, which commutes. Integers that are inputs or outputs of the function stay, as QUANTIZE and DEQUANTIZE.

Weights that were stored as integers are float32 constants by now; parameters.py finds their integers again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....core.dtypes import DType, float32, float64, int8, int16, int32, int64, uint8
from ....graph import Graph, GraphRewriter, Node, Value
from ....graph.builder import GraphTransform, constant_node, map_subgraphs, use_counts
from ....graph.passes import dead_code
from ....ops import registry
from ... import ops as dialect
from ...ops.specs import with_changes
from .parameters import QuantizationParameters, limits

STORED = (int8, uint8, int16)

_MOVING = (
    "Identity Reshape Transpose ExpandDims Squeeze Slice StridedSlice Gather Split SplitV Unpack Pack Concat Reverse "
    "Tile BroadcastTo Pad MaxPool MaxPool3D Max Min Maximum Minimum DepthToSpace SpaceToDepth"
)
# Operators on integers that give the same elements as on the real numbers which these represent.
MOVING = frozenset(_MOVING.split())


class QuantizeChain(NamedTuple):
    """The nodes that quantize a value, found from the last. x: the real numbers."""

    x: Value
    parameters: QuantizationParameters


class DequantizeChain(NamedTuple):
    """The nodes that restore real numbers. q: the integers. nodes: the first to the last."""

    q: Value
    parameters: QuantizationParameters
    nodes: tuple[Node, ...]


def _operands(value: Value, name: str) -> tuple[Value, ...]:
    node = value.node
    return tuple(node.operands) if node is not None and node.op.name == name else ()


def _uncast(value: Value, *dtypes: DType) -> Value:
    """Return the operand of casts among these dtypes."""
    while (operands := _operands(value, "Cast")) and value.dtype in dtypes and operands[0].dtype in dtypes:
        value = operands[0]
    return value


def _number(value: Value) -> float | None:
    """Return a constant of one element that leaves the shape of the other operand alone."""
    array = value.constant
    if array is None or array.size != 1 or array.ndim > 1 or array.dtype.kind not in "fiu":
        return None
    return float(array.reshape(-1)[0])


def _with_number(value: Value, *names: str) -> tuple[Value, float] | None:
    """Return the other operand and the number of a node of one of these operators; the number may be either operand
    of a sum or product."""
    for name in names:
        operands = _operands(value, name)
        if len(operands) != 2:
            continue
        x, y = operands
        if (number := _number(y)) is not None:
            return x, number
        if name in ("Mul", "Add", "Maximum", "Minimum") and (number := _number(x)) is not None:
            return y, number
    return None


def _unclipped(value: Value) -> Value:
    """Return the operand of a clip, of one operator or two."""
    if (operands := _operands(value, "ClipByValue")) and all(_number(v) is not None for v in operands[1:]):
        return operands[0]
    for names in (("Minimum", "Maximum"), ("Maximum", "Minimum")):
        outer = _with_number(value, names[0])
        inner = None if outer is None else _with_number(outer[0], names[1])
        if inner is not None:
            return inner[0]
    return value


def _shifted(value: Value, *dtypes: DType) -> tuple[Value, float]:
    """Return the operand of a sum or difference with a number, and what is added; the value itself and 0 for none."""
    if (sum_ := _with_number(value, "Add")) is not None:
        return _uncast(sum_[0], *dtypes), sum_[1]
    if (difference := _with_number(value, "Sub")) is not None:
        return _uncast(difference[0], *dtypes), -difference[1]
    return value, 0.0


def _parameters(dtype: DType, scale: float, zero: float) -> QuantizationParameters | None:
    """Return the parameters of the integers in a file; None if no kernel takes them."""
    if not (np.isfinite(scale) and scale >= np.finfo(np.float32).tiny) or not float(zero).is_integer():
        return None
    low, high = limits(dtype.name)
    if not low <= zero <= high or (dtype is int16 and zero):
        return None
    return QuantizationParameters(dtype.name, (float(np.float32(scale)),), int(zero))


def quantize_chain(value: Value) -> QuantizeChain | None:
    """Return the chain of nodes that ends in these integers, None if they are not quantized by one scale."""
    if value.dtype not in STORED or not (operands := _operands(value, "Cast")):
        return None
    floats = (float32, float64)
    (x,) = operands
    if x.dtype in (int32, int64):  # rounded, then clipped as integers
        x, zero = _shifted(_unclipped(x), int32, int64)
        x = _uncast(x, int32, int64)
        if not (operands := _operands(x, "Cast")):
            return None
        (x,) = operands
    else:
        x, zero = _shifted(_uncast(_unclipped(_uncast(x, *floats)), *floats), *floats)
    rounded = _operands(_uncast(x, *floats), "Rint") or _operands(x, "Round")
    if not rounded:
        return None
    if (quotient := _with_number(rounded[0], "RealDiv")) is not None:
        x, scale = quotient
    elif (product := _with_number(rounded[0], "Mul")) is not None and product[1]:
        x, scale = product[0], 1.0 / product[1]
    else:
        return None
    parameters = _parameters(value.dtype, scale, zero)
    return QuantizeChain(x, parameters) if x.dtype is float32 and parameters is not None else None


def dequantize_chain(value: Value) -> DequantizeChain | None:
    """Return the chain of nodes from integers to these real numbers; None if there is none with one scale."""
    product = _with_number(value, "Mul")
    if product is None or value.dtype is not float32:
        return None
    x, scale = product
    x, zero = _shifted(_uncast(x, float32, int32, int64), float32, int32, int64)
    x = _uncast(x, float32, int32, int64)
    if not (operands := _operands(x, "Cast")) or operands[0].dtype not in STORED:
        return None
    (q,) = operands
    parameters = _parameters(q.dtype, scale, -zero)
    if parameters is None:
        return None
    nodes, current = [], value
    while current is not q:
        node = current.node
        assert node is not None
        nodes.append(node)
        current = next(v for v in node.operands if v.constant is None)
    return DequantizeChain(q, parameters, tuple(reversed(nodes)))


class PairRewriter(GraphRewriter):
    """The rewriter of one graph. bits: of the integers of all pairs that it replaced."""

    def __init__(self, source: Graph, inside: Callable[[Graph], Graph]) -> None:
        super().__init__(source)
        self.inside = inside
        self.bits: set[int] = set()
        self.changed = False
        self.real: dict[Value, tuple[Value, QuantizationParameters]] = {}  # of integers, the numbers, in the new graph
        self.inputs_of_chains = self._inputs()

    def run(self) -> Graph:
        """Return the new graph, the source itself without pairs."""
        for old in self.source.nodes:
            self.begin(old)
            self._visit(old)
            if any(made.op is not old.op for made in self.created()):
                self.credit(old, "explicit_quantization: integers with the scales that the source states")
        self.prefix, self.at = self.source.name, None
        for value in dict.fromkeys(self.source.outputs):
            if value in self.real:
                self.mapping[value] = self._integers(value, *self.real[value])
        return dead_code(self.finish())[0] if self.changed else self.source

    def _inputs(self) -> dict[Value, QuantizationParameters]:
        """Return the inputs that chains of one scale alone read."""
        readers = use_counts(self.source)
        stated: dict[Value, QuantizationParameters] = {}
        reads: dict[Value, int] = {}
        heads: set[Node] = set()
        for node in self.source.nodes:
            chain = dequantize_chain(node.outputs[0]) if node.op.name == "Mul" else None
            if chain is None or chain.q.node is not None or chain.q not in self.source.inputs:
                continue
            if stated.setdefault(chain.q, chain.parameters) != chain.parameters:
                reads[chain.q] = -1 << 30
            if chain.nodes[0] not in heads and all(readers[n.outputs[0]] == 1 for n in chain.nodes[:-1]):
                heads.add(chain.nodes[0])
                reads[chain.q] = reads.get(chain.q, 0) + 1
        return {value: p for value, p in stated.items() if reads.get(value) == readers[value]}

    def _visit(self, old: Node) -> None:
        node = map_subgraphs(self.remap(old), self.inside)
        self.changed |= node is not old
        self.replace(old, self.insert(node).outputs)
        if len(old.outputs) == 1 and (chain := quantize_chain(old.outputs[0])) is not None:
            self._quantize(old.outputs[0], chain)
        elif old.op.name == "Mul" and (back := dequantize_chain(old.outputs[0])) is not None:
            self._dequantize(old, back)
        elif old.op.name in MOVING:
            self._move(old)

    def _emit(self, name: str, x: Value, spec: Any = None, **attrs: Any) -> Value:
        op = dialect.get(name)
        bound = op.bind(attrs)
        specs = op.infer(bound, [x], self.prefix) if spec is None else [spec]
        return self.node(op, (x,), bound.attrs, specs, f"{self.prefix}/{name.lower()}", self.at).outputs[0]

    def _quantize(self, value: Value, chain: QuantizeChain) -> None:
        parameters = chain.parameters
        x = self.operand(chain.x)
        assert isinstance(x, Value)
        bits = 8 * np.dtype(parameters.dtype).itemsize
        real = self._emit("FAKE_QUANT", x, min=parameters.low, max=parameters.high, num_bits=bits)
        self.real[value] = real, parameters
        self.bits.add(bits)
        self.changed = True

    def _dequantize(self, old: Node, chain: DequantizeChain) -> None:
        if chain.q in self.inputs_of_chains and chain.q not in self.real:
            self._restore(chain.q, chain.parameters)
        real = self.real.get(chain.q)
        if real is not None and real[1] == chain.parameters:
            self.mapping[old.outputs[0]] = real[0]

    def _restore(self, value: Value, parameters: QuantizationParameters) -> None:
        """Give an input its scale."""
        typed = Value(value.name, with_changes(value.spec, quantization=parameters.quantization))
        self.inputs[self.inputs.index(value)] = typed
        self.mapping[value] = typed
        self.real[value] = self._emit("DEQUANTIZE", typed, value.spec.with_dtype(float32)), parameters
        self.bits.add(8 * np.dtype(parameters.dtype).itemsize)

    def _move(self, old: Node) -> None:
        """Compute an operator on the real numbers that its integers represent."""
        moved = [v for v in old.operands if v.dtype in STORED]
        reals = [self.real.get(v) for v in moved if v.constant is None]
        parameters = reals[0][1] if reals and reals[0] is not None else None
        if parameters is None or any(r is None or r[1] != parameters for r in reals):
            return
        numbers = {v: self.real[v][0] if v in self.real else self._number(v, parameters) for v in moved}

        def real(operand: Any) -> Any:
            if isinstance(operand, tuple):
                return tuple(real(v) for v in operand)
            return numbers[operand] if operand in numbers else self.operand(operand)

        specs = [v.spec.with_dtype(float32) if v.dtype in STORED else v.spec for v in old.outputs]
        fresh = self.node(old.op, [real(o) for o in old.inputs], old.attrs, specs, f"{old.name}/real", old.at)
        for before, after in zip(old.outputs, fresh.outputs):
            if before.dtype in STORED:
                self.real[before] = after, parameters

    def _number(self, value: Value, parameters: QuantizationParameters) -> Value:
        """Return the real numbers of a constant."""
        assert value.constant is not None
        numbers = ((value.constant.astype(np.float64) - parameters.zero_point) * parameters.scale).astype(np.float32)
        name = self.unique(f"{self.prefix}/const")
        spec = value.spec.with_dtype(float32)
        return self.insert(constant_node(registry.get("Const"), numbers, spec, name, self.at)).outputs[0]

    def _integers(self, value: Value, real: Value, parameters: QuantizationParameters) -> Value:
        """Return the integers of real numbers as an output."""
        spec = with_changes(value.spec, quantization=parameters.quantization)
        return self._emit("QUANTIZE", real, spec, output_type=parameters.dtype.upper())


def stated(graphs: list[Graph]) -> tuple[list[Graph], set[int]]:
    """Return graphs with FAKE_QUANTs in place of pairs of quantize and dequantize, and the bits of their integers."""
    bits: set[int] = set()

    def change(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
        rewriter = PairRewriter(graph, inside)
        changed = rewriter.run()
        bits.update(rewriter.bits)
        return changed

    transform = GraphTransform(change)
    return [transform(graph) for graph in graphs], bits


def is_stated(graph: Graph) -> bool:
    """Return whether a graph, or a subgraph of it, quantizes a value."""
    return any(
        any(quantize_chain(v) is not None for v in node.outputs) or any(map(is_stated, node.subgraphs))
        for node in graph.nodes
        if node.op.name == "Cast" or any(node.subgraphs)
    )

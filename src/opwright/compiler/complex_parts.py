"""Complex arithmetic as arithmetic on real and imaginary parts.

Lives here: `with_real_arithmetic`, the rules of operators by name.
Not here: nodes on whole complex numbers, as of Fourier transforms (lowering/spectral.py); gradients, which are part of
the graph before.

A complex value of the graph becomes two values of half the width, which all kernels take:

    z = x * y        becomes        re, im = a c - b d, a d + b c        of        x = a + i b, y = c + i d

`Real` and `Imag` divide what the graph or a node without a rule provides, and `Complex` joins what they read. Variables
of loops, and results of branches, are two each. Formulas are those of NumPy's loops, which do not overflow before the
result does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.dtypes import DType, as_dtype, float32, float64, int32
from ..core.specs import TensorSpec
from ..graph import Graph, GraphRewriter, Node, Value
from ..graph.builder import NO_ATTRS, constant_node, map_subgraphs, subgraphs_mapped
from ..graph.ir import map_operands
from ..ops import registry

Pair = tuple[Value, Value]
"""Real and imaginary parts."""
Results = Sequence["Pair | Value"]
"""The parts of each output of a node, or the value itself if it is real."""
CONTROL = frozenset({"If", "Case", "While"})
PRODUCTS = frozenset({float32})
"""Types of parts whose products of matrices are machine code: others are quicker as one call of BLAS."""


def with_real_arithmetic(graph: Graph) -> Graph:
    """Return the graph without complex arithmetic, where rules have it; the graph itself if there is none.

    Single complex numbers outside of loops stay: a graph of them is no native call.
    """
    return _Parts(graph).rewritten() if _has_arithmetic(graph) else graph


def _has_arithmetic(graph: Graph) -> bool:
    return any(
        any(v.dtype.is_complex and v.shape.rank != 0 for v in (*node.operands, *node.outputs))
        or any(v.dtype.is_complex for part in node.subgraphs for v in part.values())
        for node in graph.nodes
    )


class _Parts(GraphRewriter):
    """A graph under rewriting. pairs: parts of values of the source; apart: values that the new graph has as parts
    only."""

    def __init__(self, source: Graph) -> None:
        super().__init__(source)
        self.pairs: dict[Value, Pair] = {}
        self.apart: set[Value] = set()

    def rewritten(self) -> Graph:
        """Return the graph of the same inputs and outputs."""
        self._walk()
        for value in self.source.outputs:
            self.whole(value)
        return self.finish()

    def rewritten_boundary(self) -> Graph:
        """Return the graph with two inputs and outputs for each complex one."""
        self.inputs = []
        for value in self.source.inputs:
            if value.dtype.is_complex:
                spec = real_spec(value)
                self.pairs[value] = Value(value.name, spec), Value(self.unique(value.name), spec)
                self.apart.add(value)
            self.inputs += self.pairs.get(value, (value,))
        self._walk()
        self.begin_at(self.source.name)
        outputs = [v for value in self.source.outputs for v in self.divided(value)]
        return Graph(self.name, self.inputs, self.nodes, outputs)

    def begin_at(self, prefix: str) -> None:
        """Name created nodes after the graph."""
        self.prefix, self.at = prefix, None

    def _walk(self) -> None:
        for node in self.source.nodes:
            self.begin(node)
            results = self._results(node) if _is_complex(node) else None
            if results is None:
                for value in node.operands:
                    self.whole(value)
                copy = map_subgraphs(self.remap(node), with_real_arithmetic)
                self.replace(node, self.insert(copy).outputs)
                continue
            for value, result in zip(node.outputs, results, strict=True):
                if isinstance(result, Value):
                    self.mapping[value] = result
                else:
                    self.pairs[value] = result
                    self.apart.add(value)
        self.begin_at(self.source.name)

    def _results(self, node: Node) -> Results | None:
        if node.op.name in CONTROL:
            return _control_flow(self, node)
        rule = RULES.get(node.op.name) if node.op.catalogue else None
        return None if rule is None else rule(self, node)

    # ---- values -------------------------------------------------------------------------------------------------

    def pair(self, value: Any) -> Pair:
        """Return the parts of a complex value of the source."""
        if value not in self.pairs:
            whole: Value = self.mapping.get(value, value)
            constant = whole.constant
            if constant is not None:
                self.pairs[value] = self.constant(constant.real), self.constant(constant.imag)
            else:
                self.pairs[value] = self.apply("Real", whole), self.apply("Imag", whole)
        return self.pairs[value]

    def divided(self, value: Value) -> Sequence[Value]:
        """Return the parts of a value of the source, or, of a real one, its replacement."""
        return self.pair(value) if value.dtype.is_complex else (self.mapping.get(value, value),)

    def part(self, value: Any, index: int) -> Any:
        """Return a part of a value of the source; a real one is its own."""
        return self.pair(value)[index] if value.dtype.is_complex else self.mapping.get(value, value)

    def whole(self, value: Value) -> Value:
        """Return the replacement of a value of the source; of one that the new graph has as parts only, joined."""
        if value in self.apart and value not in self.mapping:
            self.mapping[value] = self.apply("Complex", *self.pairs[value])
        whole: Value = self.mapping.get(value, value)
        return whole

    def apply(self, name: str, *inputs: Value, **attrs: Any) -> Value:
        """Return the result of an operator of the catalogue."""
        result: Value = self.create(registry.get(name), inputs, attrs or NO_ATTRS).outputs[0]
        return result

    def constant(self, array: Any, dtype: DType | None = None) -> Value:
        """Return a constant."""
        elements = np.array(array, None if dtype is None else dtype.np, order="C")
        spec = TensorSpec(elements.shape, as_dtype(elements.dtype) if dtype is None else dtype)
        name = self.unique(f"{self.prefix}/const")
        return self.insert(constant_node(registry.get("Const"), elements, spec, name, self.at)).outputs[0]

    def zeros(self, like: Value) -> Value | None:
        """Return zeros of a value's type; None if its shape is unknown."""
        if not like.shape.is_fully_defined():
            return None
        return self.apply("Fill", self.constant(like.shape.as_list(), int32), self.constant(0, like.dtype))


def real_spec(value: Value) -> TensorSpec:
    """Return the type of a part of a complex value."""
    return value.spec.with_dtype(value.dtype.real_dtype)


def _is_complex(node: Node) -> bool:
    return any(v.dtype.is_complex for v in (*node.operands, *node.outputs))


# ---- control flow ---------------------------------------------------------------------------------------------------


def _control_flow(state: _Parts, node: Node) -> Results:
    """Pass the parts of complex values to the graphs of a node, which return parts."""
    inputs = [
        tuple([v for x in operand for v in state.divided(x)]) if isinstance(operand, tuple) else state.operand(operand)
        for operand in node.inputs
    ]
    attrs = subgraphs_mapped(node.attrs, lambda graph: _Parts(graph).rewritten_boundary())
    specs, names = [], []
    for value in node.outputs:
        specs += [real_spec(value)] * 2 if value.dtype.is_complex else [value.spec]
        names += [value.name, *([state.unique(value.name)] if value.dtype.is_complex else [])]
    outputs = iter(state.insert(Node(node.op, inputs, attrs, specs, node.name, node.at, names, node.rules)).outputs)
    return [(next(outputs), next(outputs)) if v.dtype.is_complex else next(outputs) for v in node.outputs]


# ---- operators ------------------------------------------------------------------------------------------------------

Rule = Callable[[_Parts, Node], "Results | None"]


def _by_parts(state: _Parts, node: Node) -> Results:
    """Apply an operator that is linear over the reals, or moves elements, to each part."""
    likes = [real_spec(v) if v.dtype.is_complex else v.spec for v in node.outputs]

    def applied(index: int) -> Sequence[Value]:
        inputs = map_operands(lambda v: state.part(v, index), node.inputs)
        return state.create(node.op, inputs, node.attrs, likes).outputs

    return list(zip(applied(0), applied(1)))


def _of_shape(state: _Parts, node: Node) -> Results:
    """Apply an operator that reads shapes only."""
    inputs = map_operands(lambda v: state.part(v, 0), node.inputs)
    return state.create(node.op, inputs, node.attrs, [v.spec for v in node.outputs]).outputs


def _join(state: _Parts, node: Node) -> Results | None:
    parts = [state.mapping.get(v, v) for v in node.operands]
    shape = node.outputs[0].shape
    if not shape.is_fully_defined():
        return None
    spread = []
    for part in parts:
        if part.shape != shape:
            part = state.apply("BroadcastTo", part, state.constant(shape.as_list(), int32))
        spread.append(part)
    return [(spread[0], spread[1])]


def _extract(index: int) -> Rule:
    return lambda state, node: [state.pair(node.inputs[0])[index]]


def _conjugate(state: _Parts, node: Node) -> Results:
    re, im = state.pair(node.inputs[0])
    return [(re, state.apply("Neg", im))]


def _bilinear(state: _Parts, multiply: Callable[[Value, Value], Value], x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    re = state.apply("Sub", multiply(a, c), multiply(b, d))
    return re, state.apply("Add", multiply(a, d), multiply(b, c))


def _product(state: _Parts, node: Node) -> Results:
    x, y = (state.pair(v) for v in node.operands)
    return [_bilinear(state, lambda p, q: state.apply("Mul", p, q), x, y)]


def _square(state: _Parts, node: Node) -> Results:
    x = state.pair(node.inputs[0])
    return [_bilinear(state, lambda p, q: state.apply("Mul", p, q), x, x)]


def _matmul(state: _Parts, node: Node) -> Results | None:
    """Return four products of parts; an adjoint is the transpose of the conjugate."""
    if node.outputs[0].dtype.real_dtype not in PRODUCTS:
        return None
    pairs = []
    attrs = {name: value for name, value in node.attrs.items() if name != "output_type"}
    for value, side in zip(node.operands, "ab"):
        re, im = state.pair(value)
        if attrs[f"adjoint_{side}"]:
            im = state.apply("Neg", im)
            attrs |= {f"adjoint_{side}": False, f"transpose_{side}": True}
        pairs.append((re, im))
    return [_bilinear(state, lambda p, q: state.apply("MatMul", p, q, **attrs), *pairs)]


def _einsum(state: _Parts, node: Node) -> Results | None:
    values = list(node.operands)
    if len(values) == 1:
        return _by_parts(state, node)
    if len(values) > 2 or node.outputs[0].dtype.real_dtype not in PRODUCTS:
        return None

    def multiply(p: Value, q: Value) -> Value:
        result: Value = state.create(node.op, [(p, q)], node.attrs).outputs[0]
        return result

    return [_bilinear(state, multiply, state.pair(values[0]), state.pair(values[1]))]


def _scaled(state: _Parts, y: Pair) -> tuple[Value, Value, Value, Value]:
    """Return |c| < |d| of y = c + i d, the larger part p, the ratio r of the smaller one to it, and p + r q, for
    division by Smith's algorithm, in which no square overflows."""
    c, d = y
    swap = state.apply("Less", state.apply("Abs", c), state.apply("Abs", d))
    p, q = state.apply("Select", swap, d, c), state.apply("Select", swap, c, d)
    ratio = state.apply("RealDiv", q, p)
    return swap, p, ratio, state.apply("Add", p, state.apply("Mul", q, ratio))


def _quotient(state: _Parts, node: Node) -> Results:
    (a, b), y = (state.pair(v) for v in node.operands)
    swap, p, ratio, divisor = _scaled(state, y)

    def either(x: Value, z: Value, op: str) -> Value:
        swapped = state.apply(op, state.apply("Mul", x, ratio), z)
        plain = state.apply("Add", x, state.apply("Mul", z, ratio))
        if op == "Sub":  # b - a r, or b r - a
            plain = state.apply("Sub", x, state.apply("Mul", z, ratio))
        return state.apply("RealDiv", state.apply("Select", swap, swapped, plain), divisor)

    is_zero = state.apply("Equal", p, state.constant(0, p.dtype))
    size = state.apply("Abs", p)
    parts = [
        state.apply("Select", is_zero, state.apply("RealDiv", x, size), v)
        for x, v in ((a, either(a, b, "Add")), (b, either(b, a, "Sub")))
    ]
    return [(parts[0], parts[1])]


def _reciprocal(state: _Parts, node: Node) -> Results:
    swap, p, ratio, divisor = _scaled(state, state.pair(node.inputs[0]))
    one = state.constant(1, p.dtype)
    over, part = state.apply("RealDiv", one, divisor), state.apply("RealDiv", ratio, divisor)
    return [(state.apply("Select", swap, part, over), state.apply("Neg", state.apply("Select", swap, over, part)))]


def _exponential(state: _Parts, node: Node) -> Results:
    """Return exp(a) (cos b + i sin b), as exp(a / 2) (exp(a / 2) cos b) ..., which overflows with the result only."""
    a, b = state.pair(node.inputs[0])
    root = state.apply("Exp", state.apply("Mul", a, state.constant(0.5, a.dtype)))
    re, im = (state.apply("Mul", root, state.apply("Mul", root, state.apply(op, b))) for op in ("Cos", "Sin"))
    is_real = state.apply("Equal", b, state.constant(0, b.dtype))  # infinity times 0 is no number
    return [(re, state.apply("Select", is_real, b, im))]


def _logarithm(state: _Parts, node: Node) -> Results | None:
    """Return log |z| + i arg z of parts of float32, whose squares float64 holds.

    log |z|^2 is log1p((p - 1) (p + 1) + q^2) near 1, of the larger part p and the smaller q. An infinite part outweighs
    NaN.
    """
    pair = state.pair(node.inputs[0])
    if pair[0].dtype is not float32:
        return None
    number = {n: state.constant(n, float64) for n in (0.5, 1.0, 2.0)}
    sizes = [state.apply("Abs", state.apply("Cast", v, dtype=float64)) for v in pair]
    p, q = state.apply("Maximum", *sizes), state.apply("Minimum", *sizes)
    rest = state.apply("Square", q)
    square = state.apply("Add", state.apply("Square", p), rest)
    beyond = state.apply("Mul", state.apply("Sub", p, number[1.0]), state.apply("Add", p, number[1.0]))
    near = state.apply("Log1p", state.apply("Add", beyond, rest))
    is_near = state.apply(
        "LogicalAnd", state.apply("Greater", square, number[0.5]), state.apply("Less", square, number[2.0])
    )
    logarithm = state.apply("Select", is_near, near, state.apply("Log", square))
    half = state.apply("Mul", logarithm, number[0.5])
    infinity = state.constant(np.inf, float32)
    infinite = state.apply("LogicalOr", *(state.apply("Equal", state.apply("Abs", v), infinity) for v in pair))
    re = state.apply("Select", infinite, infinity, state.apply("Cast", half, dtype=float32))
    return [(re, state.apply("Atan2", pair[1], pair[0]))]


def _angle(state: _Parts, node: Node) -> Results:
    re, im = state.pair(node.inputs[0])
    return [state.apply("Atan2", im, re)]


def _sign(state: _Parts, node: Node) -> Results:
    """Return z / |z|; 0 of 0. An infinite part outweighs a finite one; two are NaN."""
    x = node.inputs[0]
    assert isinstance(x, Value)
    pair = state.pair(x)
    size = state.apply("ComplexAbs", state.whole(x))
    number = {n: state.constant(n, size.dtype) for n in (0.0, 1.0, np.inf, np.nan)}
    is_infinite = state.apply("Equal", size, number[np.inf])
    infinite = [state.apply("Equal", state.apply("Abs", v), number[np.inf]) for v in pair]
    both = state.apply("LogicalAnd", *infinite)
    limit = state.apply("Select", both, number[np.nan], number[1.0])
    nonzero = state.apply("Select", state.apply("Equal", size, number[0.0]), number[1.0], size)
    divisor = state.apply("Select", is_infinite, limit, nonzero)
    parts = []
    for v, is_inf in zip(pair, infinite):
        unit = state.apply("Select", is_inf, state.apply("Sign", v), number[0.0])
        parts.append(state.apply("RealDiv", state.apply("Select", is_infinite, unit, v), divisor))
    return [(parts[0], parts[1])]


def _comparison(combine: str) -> Rule:
    def compare(state: _Parts, node: Node) -> Results:
        x, y = (state.pair(v) for v in node.operands)
        return [state.apply(combine, *(state.apply(node.op.name, p, q, **node.attrs) for p, q in zip(x, y)))]

    return compare


def _cast(state: _Parts, node: Node) -> Results | None:
    x, dtype = node.inputs[0], node.attrs["dtype"]
    assert isinstance(x, Value)
    if dtype.is_bool:
        return None

    def cast(v: Value, to: DType) -> Value:
        return v if v.dtype is to else state.apply("Cast", v, dtype=to)

    if not dtype.is_complex:
        return [cast(state.pair(x)[0], dtype)]
    if x.dtype.is_complex:
        re, im = (cast(v, dtype.real_dtype) for v in state.pair(x))
        return [(re, im)]
    re = cast(state.mapping.get(x, x), dtype.real_dtype)
    zeros = state.zeros(re)
    return None if zeros is None else [(re, zeros)]


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        (
            *("Add", "AddN", "BiasAdd", "BiasAddGrad", "Cumsum", "Mean", "Neg", "Sub", "Sum", "SumToLike"),
            *(
                "BroadcastTo",
                "Concat",
                "EnsureShape",
                "ExpandDims",
                "Fill",
                "Frame",
                "Gather",
                "GatherGrad",
                "GatherNd",
            ),
            *("Identity", "MatrixBandPart", "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag", "MirrorPad"),
            *("MirrorPadGrad", "OverlapAndAdd", "Pack", "Pad", "Permute", "Reshape", "Reverse", "Roll", "ScatterNd"),
            *("Select", "Slice", "Split", "SplitV", "Squeeze", "StopGradient", "StridedSlice", "StridedSliceGrad"),
            *("TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate", "Tile", "TileGrad", "Transpose", "Unpack"),
        ),
        _by_parts,
    ),
    **dict.fromkeys(("Rank", "Shape", "Size"), _of_shape),
    "Angle": _angle,
    "Cast": _cast,
    "Complex": _join,
    "Conj": _conjugate,
    "Einsum": _einsum,
    "Equal": _comparison("LogicalAnd"),
    "Exp": _exponential,
    "Imag": _extract(1),
    "Log": _logarithm,
    "MatMul": _matmul,
    "Mul": _product,
    "NotEqual": _comparison("LogicalOr"),
    "Real": _extract(0),
    "RealDiv": _quotient,
    "Reciprocal": _reciprocal,
    "Sign": _sign,
    "Square": _square,
}
"""By operator of the catalogue. Nodes of others read and return whole numbers."""

"""Patterns of activations and normalisations written as arithmetic.

Lives here: RELU, LEAKY_RELU, PRELU, SOFTMAX within the dialect; GELU in the catalogue, as Erf has no lite form.
Not here: merging activations into other operators, HARD_SWISH and L2_NORMALIZATION (operator_fusion.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...graph import Graph, Node, Value
from ...graph.passes import PatternRewriter, RewriteRule
from ...graph.passes import rewrite as rewrite_graph
from ...ops import registry
from ...scalar.formulas import GELU_CUBIC, GELU_SLOPE
from .operator_fusion import NO, with_number
from .rewriter import LiteRewriter, RuleResult, definition, fused_activation, rule_table, scalar


def _relu(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Match max(x, 0)."""
    x = with_number(node, 0.0)
    if x is None or x.dtype is not float32 or x.constant is not None or x.spec.shape != node.outputs[0].spec.shape:
        return NO
    return rewriter.emit("RELU", x, like=node.outputs[0].spec)


def _leaky_relu(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Match max(x, alpha x), alpha between 0 and 1."""
    for x, y in (tuple(node.operands), tuple(node.operands)[::-1]):
        product = definition(y, "MUL")
        if product is None or x.dtype is not float32:
            continue
        for slope, other in (tuple(product.operands), tuple(product.operands)[::-1]):
            alpha = scalar(slope)
            if other is x and alpha is not None and 0 < float(alpha) < 1:
                return rewriter.emit("LEAKY_RELU", x, alpha=float(alpha), like=node.outputs[0].spec)
    return NO


def _prelu(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Match relu(x) - alpha relu(-x), and relu(x) + beta relu(-x) for a constant beta = -alpha."""
    operands = tuple(node.operands)
    if fused_activation(node) != "NONE" or node.outputs[0].dtype is not float32:
        return NO
    for positive, rest in (operands, operands[::-1]) if node.op.name == "ADD" else (operands,):
        relu, product = definition(positive, "RELU"), definition(rest, "MUL")
        if relu is None or product is None:
            continue
        (x,) = relu.operands
        for slope, negative in (tuple(product.operands), tuple(product.operands)[::-1]):
            inner = definition(negative, "RELU")
            minus = definition(next(inner.operands), "NEG") if inner is not None else None
            if minus is None or next(minus.operands) is not x:
                continue
            if node.op.name == "ADD":
                if slope.constant is None:
                    continue
                slope = rewriter.constant(-slope.constant, float32)
            return rewriter.emit("PRELU", x, slope, like=node.outputs[0].spec)
    return NO


def _softmax(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Match exp(x - max x)
    sum exp(x - max x) along the last axis."""
    above, total = node.operands
    exp, sum_node = definition(above, "EXP"), definition(total, "SUM")
    if exp is None or sum_node is None or fused_activation(node) != "NONE":
        return NO
    shifted = definition(next(exp.operands), "SUB")
    if shifted is None or not _along_last(sum_node, above):
        return NO
    x, most = shifted.operands
    largest = definition(most, "REDUCE_MAX")
    if largest is None or not _along_last(largest, x) or x.dtype is not float32:
        return NO
    return rewriter.emit("SOFTMAX", x, beta=1.0, like=node.outputs[0].spec)


def _along_last(node: Node, x: Value) -> bool:
    """Return whether a node reduces `x` along its last axis, keeping it."""
    operand, axes = node.operands
    rank = x.spec.shape.rank
    if operand is not x or rank is None or axes.constant is None or not node.attrs["keep_dims"]:
        return False
    return axes.constant.reshape(-1).tolist() in ([rank - 1], [-1])


ACTIVATIONS = rule_table(
    RewriteRule("relu", "MAXIMUM", _relu, "its definition"),
    RewriteRule("leaky_relu", "MAXIMUM", _leaky_relu, "its definition, where alpha is between 0 and 1"),
    RewriteRule("prelu", "SUB ADD", _prelu, "its two halves"),
    RewriteRule("softmax", "DIV", _softmax, "its definition"),
)


# ---- GELU, in the catalogue --------------------------------------------------------------------------------------


def find_gelu(graph: Graph) -> tuple[Graph, list[str]]:
    """Replace x / 2 by 1 + erf(x / sqrt 2) or by erfc(-x / sqrt 2), and the approximation by tanh, by Gelu, however the
    factors are grouped."""
    if not any(node.op.name in ("Erf", "Erfc", "Tanh") for node in graph.nodes):
        return graph, []
    return rewrite_graph(graph, (RewriteRule("gelu", "Mul", _gelu, "its definition"),))


def _factors(value: Value) -> list[Value]:
    """Return the factors of a product, constants and divisions by constants included."""
    factors: list[Value] = []
    rest = [value]
    while rest and len(factors) < 8:
        v = rest.pop()
        node = v.node
        if node is not None and node.op.name == "Mul" and v.constant is None:
            rest += list(node.operands)
        else:
            factors.append(v)
    return factors + rest


def _number(value: Value) -> float | None:
    number = scalar(value)
    return float(number) if isinstance(number, np.floating) else None


def _scaled(value: Value) -> tuple[Value | None, float]:
    """Return x and c of c x, with the constant as a factor or a divisor."""
    node = value.node
    if node is not None and node.op.name == "RealDiv":
        x, c = node.operands
        divisor = _number(c)
        return (x, 1 / divisor) if divisor else (None, 0.0)
    rest: list[Value] = []
    factor = 1.0
    for v in _factors(value):
        number = _number(v)
        if number is None:
            rest.append(v)
        else:
            factor *= number
    if len(rest) != 1:
        return None, 0.0
    first = rest[0].node
    if first is not None and first.op.name == "Neg":
        return next(iter(first.operands)), -factor
    return rest[0], factor


def _near(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-4)


def _gelu(node: Node, rewriter: PatternRewriter) -> Sequence[Value] | Node | None:
    """Match a product of x, a half, and 1 + erf(...), erfc(...) or 1 + tanh(...), in any order."""
    factors = _factors(node.outputs[0])
    numbers = [c for v in factors if (c := _number(v)) is not None]
    others = [v for v in factors if _number(v) is None]
    if len(others) != 2 or not _near(math.prod(numbers), 0.5) or others[0].dtype is not float32:
        return None
    for x, gate in (others, others[::-1]):
        if gate.node is not None and gate.node.op.name == "Erfc":
            source, factor = _scaled(next(iter(gate.node.operands)))
            if source is x and _near(factor, -math.sqrt(0.5)):
                return _gelu_of(node, x, False)
        curve = _plus_one(gate)
        if curve is None or curve.node is None:
            continue
        (inner,) = curve.node.operands if len(list(curve.node.operands)) == 1 else (None,)
        if inner is None:
            continue
        if curve.node.op.name == "Erf":
            source, factor = _scaled(inner)
            if source is x and _near(factor, math.sqrt(0.5)):
                return _gelu_of(node, x, False)
        if curve.node.op.name == "Tanh" and _is_cubic(inner, x):
            return _gelu_of(node, x, True)
    return None


def _plus_one(value: Value) -> Value | None:
    node = value.node
    if node is None or node.op.name != "Add":
        return None
    a, b = node.operands
    return a if _number(b) == 1.0 else b if _number(a) == 1.0 else None


def _is_cubic(value: Value, x: Value) -> bool:
    """Return whether a value is sqrt(2 / pi) (x + 0.044715 x^3)."""
    inner, factor = _scaled(value)
    if inner is None or inner.node is None or inner.node.op.name != "Add" or not _near(factor, GELU_SLOPE):
        return False
    for a, b in (tuple(inner.node.operands), tuple(inner.node.operands)[::-1]):
        if a is not x:
            continue
        numbers = [_number(v) for v in _factors(b)]
        coefficient = math.prod(n for n in numbers if n is not None)
        power = sum(_power_of(v, x) for v, n in zip(_factors(b), numbers) if n is None)
        if power == 3 and _near(coefficient, GELU_CUBIC):
            return True
    return False


def _power_of(value: Value, x: Value) -> float:
    """Return n if the value is x to the n-th power; nan otherwise."""
    if value is x:
        return 1
    node = value.node
    if node is not None and node.op.name == "Square" and next(node.operands) is x:
        return 2
    if node is not None and node.op.name == "Pow":
        base, exponent = node.operands
        power = _number(exponent)
        return power if base is x and power is not None else math.nan
    return math.nan


def _gelu_of(node: Node, x: Value, approximate: bool) -> Node | None:
    if not x.spec.shape.is_compatible_with(node.outputs[0].spec.shape) or x.spec.shape != node.outputs[0].spec.shape:
        return None
    op: Any = registry.get("Gelu")
    bound = op.bind({"approximate": approximate})
    return Node(op, (x,), bound.attrs, [node.outputs[0].spec], node.name, node.at, rules=node.rules)

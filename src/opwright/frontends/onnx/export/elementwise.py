"""Operators of one element, reductions and products as ONNX nodes.

Lives here: the tables of direct equivalents, compositions. Not here: arrays.py, neural.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import bool as boolean
from ....core.dtypes import float32, float64, int32, int64
from ....graph import Node
from ....lite.convert.quantize.explicit import dequantize_chain, quantize_chain
from ....scalar.fixed_point import nudged
from .writer import RULES, GraphWriter, NoForm, constant_of, operand, rank_of, rule

_SAME = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Exp Floor IsInf Log Neg Reciprocal Relu Round Selu "
    "Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh Identity Sub Pow BitwiseAnd BitwiseOr BitwiseXor Equal "
    "Greater Less"
)
DIRECT = {name: name for name in _SAME.split()} | {
    "IsNan": "IsNaN",
    "Rint": "Round",
    "LogicalNot": "Not",
    "Invert": "BitwiseNot",
    "StopGradient": "Identity",
    "PreventGradient": "Identity",
    "CheckNumerics": "Identity",
    "EnsureShape": "Identity",
    "IdentityN": "Identity",
    "RealDiv": "Div",
    "Maximum": "Max",
    "Minimum": "Min",
    "GreaterEqual": "GreaterOrEqual",
    "LessEqual": "LessOrEqual",
    "LogicalAnd": "And",
    "LogicalOr": "Or",
    "Select": "Where",
}
"""Catalogue to ONNX, where operands are the same in number and order."""


def _direct(kind: str) -> Any:
    def write(w: GraphWriter, node: Node) -> str:
        return w.op(kind, *(w[v] for v in node.operands))

    return write


RULES.update({name: _direct(kind) for name, kind in DIRECT.items()})


@rule("Mul")
def _product(w: GraphWriter, node: Node) -> str:
    """Emit a product, or the end of a chain that dequantizes."""
    chain = dequantize_chain(node.outputs[0])
    if chain is not None:
        p = chain.parameters
        operands = w.constant(np.float32(p.scale)), w.constant(np.array(p.zero_point, p.dtype))
        return w.op("DequantizeLinear", w[chain.q], *operands)
    return w.op("Mul", *(w[v] for v in node.operands))


@rule("Cast")
def _cast(w: GraphWriter, node: Node) -> str:
    """Emit a conversion, or the end of a chain that quantizes."""
    (x,), (y,) = node.operands, node.outputs
    chain = quantize_chain(y)
    if chain is not None:
        p = chain.parameters
        operands = w.constant(np.float32(p.scale)), w.constant(np.array(p.zero_point, p.dtype))
        return w.op("QuantizeLinear", w[chain.x], *operands)
    name = w[x]
    if x.dtype.is_floating and y.dtype.is_integer and y.dtype.size < 4:
        name = w.cast(name, int32)  # as NumPy wraps
    return w.cast(name, y.dtype)


@rule("Square")
def _square(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Mul", w[x], w[x])


@rule("SquaredDifference")
def _squared_difference(w: GraphWriter, node: Node) -> str:
    difference = w.op("Sub", *(w[v] for v in node.operands))
    return w.op("Mul", difference, difference)


@rule("Rsqrt")
def _rsqrt(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Reciprocal", w.op("Sqrt", w[x]))


@rule("Relu6")
def _relu6(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Clip", w[x], w.number(0, x), w.number(6, x))


@rule("NotEqual")
def _not_equal(w: GraphWriter, node: Node) -> str:
    return w.op("Not", w.op("Equal", *(w[v] for v in node.operands)))


@rule("IsFinite")
def _is_finite(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Not", w.op("Or", w.op("IsInf", w[x]), w.op("IsNaN", w[x])))


@rule("ClipByValue")
def _clip(w: GraphWriter, node: Node) -> str:
    x, low, high = (w[v] for v in node.operands)
    return w.op("Max", w.op("Min", x, high), low)  # low, where the bounds are in the wrong order


@rule("LeakyRelu")
def _leaky_relu(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("LeakyRelu", w[x], alpha=float(node.attrs["alpha"]))


@rule("Gelu")
def _gelu(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Gelu", w[x], approximate="tanh" if node.attrs["approximate"] else "none")


@rule("Expm1")
def _expm1(w: GraphWriter, node: Node) -> str:
    """Emit tanh(x / 2) (exp(x) + 1), which loses no digits near 0."""
    (x,) = node.operands
    half = w.op("Tanh", w.op("Mul", w[x], w.number(0.5, x)))
    exponential = w.op("Exp", w[x])
    exact = w.op("Mul", half, w.op("Add", exponential, w.number(1, x)))
    large = w.op("Greater", w[x], w.number(1, x))
    return w.op("Where", large, w.op("Sub", exponential, w.number(1, x)), exact)


@rule("Log1p")
def _log1p(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return log1p(w, w[x], w.number(1, x))


def log1p(w: GraphWriter, x: str, one: str) -> str:
    """Emit x log(u) / (u - 1) with u = 1 + x, which loses no digits near 0 (Goldberg 1991, theorem 4)."""
    u = w.op("Add", x, one)
    less = w.op("Sub", u, one)
    log = w.op("Log", u)
    near = w.op("Equal", less, w.op("Sub", one, one))
    far = w.op("IsInf", u)
    quotient = w.op("Div", w.op("Mul", log, x), w.op("Where", near, one, less))
    return w.op("Where", near, x, w.op("Where", far, log, quotient))


@rule("Erfc")
def _erfc(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Sub", w.number(1, x), w.op("Erf", w[x]))


@rule("DivNoNan", "Xdivy", "MulNoNan", "Xlogy", "Xlog1py")
def _guarded(w: GraphWriter, node: Node) -> str:
    """Emit an operator whose result is 0 where one operand is."""
    x, y = node.operands
    zero, one = w.number(0, x), w.number(1, x)
    kind = node.op.name
    guard = x if kind.startswith("X") else y
    at_zero = w.op("Equal", w[guard], zero)
    safe = w.op("Where", at_zero, one, w[y])
    if kind in ("DivNoNan", "Xdivy"):
        result = w.op("Div", w[x], safe)
    elif kind == "MulNoNan":
        result = w.op("Mul", w[x], w[y])
    else:
        result = w.op("Mul", w[x], w.op("Log", safe) if kind == "Xlogy" else log1p(w, safe, one))
    return w.op("Where", at_zero, zero, result)


@rule("FloorDiv", "TruncateDiv")
def _integer_quotient(w: GraphWriter, node: Node) -> str:
    x, y = node.operands
    quotient = w.op("Div", w[x], w[y])
    if x.dtype.is_floating:
        if node.op.name == "FloorDiv":
            return w.op("Floor", quotient)
        raise NoForm("ONNX has no truncated quotient of real numbers")
    if node.op.name == "TruncateDiv" or x.dtype.name.startswith("u"):
        return quotient
    zero = w.number(0, x)
    rest = w.op("Sub", w[x], w.op("Mul", quotient, w[y]))
    signs = w.op("Xor", w.op("Less", rest, zero), w.op("Less", w[y], zero))
    below = w.op("And", w.op("Not", w.op("Equal", rest, zero)), signs)
    return w.op("Sub", quotient, w.cast(below, x.dtype))


@rule("FloorMod", "TruncateMod")
def _remainder(w: GraphWriter, node: Node) -> str:
    x, y = node.operands
    if node.op.name == "TruncateMod":
        return w.op("Mod", w[x], w[y], fmod=1)
    if not x.dtype.is_floating:
        return w.op("Mod", w[x], w[y])
    rest, zero = w.op("Mod", w[x], w[y], fmod=1), w.number(0, x)
    signs = w.op("Xor", w.op("Less", rest, zero), w.op("Less", w[y], zero))
    below = w.op("And", w.op("Not", w.op("Equal", rest, zero)), signs)
    return w.op("Where", below, w.op("Add", rest, w[y]), rest)


@rule("LeftShift", "RightShift")
def _shift(w: GraphWriter, node: Node) -> str:
    x, y = node.operands
    if not x.dtype.name.startswith("u"):
        raise NoForm("ONNX shifts unsigned integers alone")
    by = w.op("Min", w[y], w.number(8 * x.dtype.size - 1, y))
    return w.op("BitShift", w[x], by, direction="LEFT" if node.op.name == "LeftShift" else "RIGHT")


@rule("Atan2")
def _atan2(w: GraphWriter, node: Node) -> str:
    """Emit atan(y / x), moved by pi where x is negative; half of pi where x alone is 0."""
    y, x = node.operands
    if x.constant is not None and (x.constant == 1).all():
        return w.op("Atan", w[y])  # as importers write it (../../trigonometry.py)
    zero, one, pi = (w.number(value, x) for value in (0, 1, np.pi))
    diagonal = w.op("And", w.op("IsInf", w[y]), w.op("IsInf", w[x]))
    rise, run = (w.op("Where", diagonal, w.op("Sign", w[v]), w[v]) for v in (y, x))
    # The sign of a zero shows in its reciprocal only, that of an infinity in itself.
    below, left = (w.op("Or", w.op("Less", v, zero), w.op("Less", w.op("Div", one, v), zero)) for v in (rise, run))
    on_axis = w.op("Equal", run, zero)
    angle = w.op("Atan", w.op("Div", rise, w.op("Where", on_axis, one, run)))
    turned = w.op("Add", angle, w.op("Where", below, w.op("Neg", pi), pi))
    upright = w.op("Mul", w.op("Sign", rise), w.number(np.pi / 2, x))
    is_upright = w.op("And", on_axis, w.op("Not", w.op("Equal", rise, zero)))
    return w.op("Where", is_upright, upright, w.op("Where", left, turned, angle))


@rule("ApproximateEqual")
def _approximate_equal(w: GraphWriter, node: Node) -> str:
    x, y = node.operands
    tolerance = node.attrs["tolerance"]
    if x.dtype.is_integer:  # differences of unsigned ones wrap, and the tolerance may be a fraction
        distance = w.op("Sub", w.op("Max", w[x], w[y]), w.op("Min", w[x], w[y]))
        return w.op("Less", w.cast(distance, float32), w.constant(tolerance, float32))
    return w.op("Less", w.op("Abs", w.op("Sub", w[x], w[y])), w.number(tolerance, x))


@rule("AddN")
def _add_n(w: GraphWriter, node: Node) -> str:
    values = [w[v] for v in node.operands]
    total = values[0]
    for value in values[1:]:
        total = w.op("Add", total, value)
    return total if len(values) > 1 else w.op("Identity", total)


@rule("L2Loss")
def _l2_loss(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Mul", w.op("ReduceSumSquare", w[x], keepdims=0), w.number(0.5, x))


@rule("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars")
def _fake_quant(w: GraphWriter, node: Node) -> str:
    """Emit a clamp, then rounding by Floor, which QuantizeLinear does not do."""
    x, *bounds = node.operands
    if bounds:
        low, high = (constant_of(b, "a bound") for b in bounds)
    else:
        low, high = (np.array(node.attrs[n], x.dtype.np) for n in ("min", "max"))
    if not low < high:
        raise NoForm("the bounds are equal")
    first, last = x.dtype.np.type(node.attrs["narrow_range"]), x.dtype.np.type(2 ** node.attrs["num_bits"] - 1)
    scale, start, end = (w.number(v, x) for v in nudged(low, high, first, last))
    clipped = w.op("Min", w.op("Max", w[x], start), end)
    steps = w.op("Add", w.op("Div", w.op("Sub", clipped, start), scale), w.number(0.5, x))
    return w.op("Add", w.op("Mul", w.op("Floor", steps), scale), start)


# ---- reductions ------------------------------------------------------------------------------------------------------

REDUCTIONS = {"Sum": "Sum", "Mean": "Mean", "Prod": "Prod", "Max": "Max", "Min": "Min", "EuclideanNorm": "L2"}


@rule(*REDUCTIONS)
def _reduction(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    kind, dtype = REDUCTIONS[node.op.name], x.dtype
    if kind == "L2" and (dtype.is_integer or dtype.size < 4):  # the squares may be out of range
        wide = float64 if dtype.is_integer else float32
        return w.cast(_reduced(w, kind, w.cast(w[x], wide), node), dtype)
    return _reduced(w, kind, w[x], node)


def _reduced(w: GraphWriter, kind: str, x: str, node: Node) -> str:
    axis, keep = node.attrs["axis"], int(node.attrs["keepdims"])
    if axis is None:
        return w.op(f"Reduce{kind}", x, keepdims=keep)
    axes = [axis] if isinstance(axis, int) else list(axis)
    if not axes:
        return w.op("Abs" if kind == "L2" else "Identity", x)
    return w.op(f"Reduce{kind}", x, w.ints(axes), keepdims=keep)


@rule("All", "Any")
def _quantifier(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    kind = "Min" if node.op.name == "All" else "Max"
    return w.cast(_reduced(w, kind, w.cast(w[x], int32), node), boolean)


@rule("ArgMax", "ArgMin")
def _arg(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    chosen = w.op(node.op.name, w[x], axis=int(node.attrs["axis"]), keepdims=0)
    dtype = node.outputs[0].dtype
    return chosen if dtype is int64 else w.cast(chosen, dtype)


@rule("Cumsum")
def _cumsum(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    flags = {name: int(node.attrs[name]) for name in ("exclusive", "reverse")}
    return w.op("CumSum", w[x], w.constant(np.int64(node.attrs["axis"])), **flags)


# ---- products --------------------------------------------------------------------------------------------------------


@rule("MatMul")
def _matmul(w: GraphWriter, node: Node) -> str:
    operands = []
    for value, side in zip(node.operands, "ab"):
        flipped = node.attrs[f"transpose_{side}"] or node.attrs[f"adjoint_{side}"]
        rank = rank_of(value)
        perm = [*range(rank - 2), rank - 1, rank - 2] if flipped else range(rank)
        operands.append(w.weights(value, perm, 1) if side == "b" and rank == 2 else w.transpose(w[value], perm))
    if any(v.dtype is not node.outputs[0].dtype for v in node.operands):
        raise NoForm("the product has another dtype than its factors")
    return w.op("MatMul", *operands)


@rule("Einsum")
def _einsum(w: GraphWriter, node: Node) -> str:
    return w.op("Einsum", *(w[v] for v in node.operands), equation=node.attrs["equation"])


@rule("MatrixDeterminant")
def _determinant(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Det", w[x])


@rule("Softmax", "LogSoftmax")
def _softmax(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op(node.op.name, w[x], axis=int(node.attrs["axis"]))


@rule("LayerNorm")
def _layer_norm(w: GraphWriter, node: Node) -> str:
    x, affine = operand(node, 0), node.inputs[1:]
    rank = rank_of(x)
    axes = sorted(a % rank for a in node.attrs["axis"])
    epsilon = float(node.attrs["epsilon"])
    names = ["" if v is None else w[operand(node, i)] for i, v in enumerate(affine, 1)]
    if axes == [*range(axes[0], rank)] and names[0]:
        return w.op("LayerNormalization", w[x], *names, axis=axes[0], epsilon=epsilon)
    centred = w.op("Sub", w[x], w.op("ReduceMean", w[x], w.ints(axes)))
    variance = w.op("ReduceMean", w.op("Mul", centred, centred), w.ints(axes))
    y = w.op("Div", centred, w.op("Sqrt", w.op("Add", variance, w.number(epsilon, x))))
    for kind, name in zip(("Mul", "Add"), names):
        if name:
            sizes = [x.shape[a] if a in axes else 1 for a in range(rank)]
            if None in sizes:
                raise NoForm("a normalized size is not known")
            y = w.op(kind, y, w.op("Reshape", name, w.ints(sizes)))
    return y

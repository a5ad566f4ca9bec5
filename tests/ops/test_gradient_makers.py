"""How gradients are declared, and what they need: makers, needs, and rules seen through their bytecode."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import InvalidArgumentError, NotFoundError, SignatureError
from opwright.ops import registry
from opwright.ops.definition import Operator

floating = ow.floating


def define(name: str, **body: object) -> Operator:
    body.setdefault("x", ow.Input(floating))
    body.setdefault("y", ow.Output(like="x"))
    body.setdefault("compute", lambda op, x: np.arctan(x))
    return ow.operator(name=name)(type(name, (), body))


def numbers(*shape: int) -> np.ndarray:
    return np.linspace(-1.5, 2.0, int(np.prod(shape))).reshape(shape)


def gradient_of(op: object, *inputs: np.ndarray, **attrs: object) -> list[np.ndarray | None]:
    tensors = [ow.constant(x) for x in inputs]
    with ow.GradientTape() as tape:
        tape.watch(tensors)
        y = op(*tensors, **attrs)
    return [None if g is None else g.numpy() for g in tape.gradient(y, tensors)]


# ---- the four states ----------------------------------------------------------------------------------------------


def test_words() -> None:
    none, empty = define("WordNone"), define("WordEmpty", gradient=None)
    custom = define("WordCustom", gradient=lambda op, dy: dy)
    default, single = (
        define("WordDefault", gradient=ow.ops.DefaultGradient()),
        define("WordSingle", gradient=ow.ops.SingleGradient("OtherGrad")),
    )
    assert [str(op.gradient_maker) for op in (none, empty, custom, default, single)] == [
        "none",
        "empty",
        "custom",
        "default",
        "single",
    ]
    assert repr(single.gradient_maker) == "SingleGradient('OtherGrad')"
    assert none.gradient_maker == "none"


def test_none_is_an_error_with_advice() -> None:
    with pytest.raises(LookupError, match=r"AdviceNone: the operator has no gradient.*ow\.stop_gradient"):
        gradient_of(define("AdviceNone"), numbers(3))


def test_empty_ends_quietly() -> None:
    assert gradient_of(define("QuietEmpty", gradient=None), numbers(3)) == [None]


# ---- gradients by operators ---------------------------------------------------------------------------------------


def atan_single(name: str, keeps: str = "x") -> Operator:
    """dx = dy / (1 + x^2), of the input; or of the output by dx = dy cos(y)^2."""

    def from_input(op, x, y_grad):
        return y_grad / (1 + x * x)

    def from_output(op, y, y_grad):
        return y_grad * np.cos(y) ** 2

    parts = {
        keeps: ow.Input(floating),
        "y_grad": ow.Input(floating, like=keeps),
        "x_grad": ow.Output(like=keeps),
        "compute": from_input if keeps == "x" else from_output,
    }
    ow.operator(name=f"{name}Grad")(type(f"{name}Grad", (), parts))
    return define(name, gradient=ow.ops.SingleGradient(f"{name}Grad"))


@pytest.mark.parametrize("keeps", ["x", "y"])
def test_single(keeps: str) -> None:
    x = numbers(2, 3)
    op = atan_single(f"SingleAtan{keeps.upper()}", keeps)
    np.testing.assert_allclose(gradient_of(op, x)[0], 1 / (1 + x * x), rtol=1e-12)
    needs = op.gradient_needs
    assert (needs.inputs["x"], needs.outputs["y"]) == (("value", "nothing") if keeps == "x" else ("nothing", "value"))


def test_single_in_functions_and_graphs() -> None:
    op, x = atan_single("SingleTraced"), numbers(4)

    @ow.function
    def inside(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = op(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(inside(ow.constant(x)).numpy(), 1 / (1 + x * x), rtol=1e-12)
    np.testing.assert_allclose(gradient_of(ow.function(lambda v: op(v)), x)[0], 1 / (1 + x * x), rtol=1e-12)


class Scaled:
    """A default gradient: z = factor * x * y, with the sum over both as a second output."""

    @staticmethod
    def define(name: str, **changes: object) -> Operator:
        def compute(op, x, y):
            z = op.factor * x * y
            return z, np.asarray(z.sum(), z.dtype)

        def backward(op, x, y, z, total, z_grad, total_grad):
            dz = op.factor * (z_grad + total_grad)
            return dz * y, dz * x

        parts = {
            n: ow.Input(floating, like=None if n == "x" else "x")
            for n in ("x", "y", "z", "total", "z_grad", "total_grad")
        }
        grad = {
            **parts,
            "x_grad": ow.Output(like="x"),
            "y_grad": ow.Output(like="x"),
            "factor": ow.Attr(float, default=1.0),
            "compute": backward,
            **changes,
        }
        grad = {k: v for k, v in grad.items() if v is not None}
        ow.operator(name=f"{name}Grad")(type(f"{name}Grad", (), grad))
        body = {
            "x": ow.Input(floating),
            "y": ow.Input(floating, like="x"),
            "z": ow.Output(like="x"),
            "total": ow.Output(like="x"),
            "factor": ow.Attr(float, default=1.0),
            "compute": compute,
            "infer": lambda op: (op.x.spec, op.x.spec.with_shape(())),
            "gradient": ow.ops.DefaultGradient(),
        }
        return ow.operator(name=name)(type(name, (), body))


def test_default_takes_everything_and_attributes() -> None:
    op = Scaled.define("DefaultScaled")
    x, y = numbers(3), numbers(3) + 4

    def both(x, y):
        z, total = op(x, y, factor=2.5)
        return z + 3.0 * total

    dx, dy = gradient_of(both, x, y)
    # d/dx of sum(z) + 9 total: each of the three elements of the result has 3 total
    np.testing.assert_allclose(dx, 2.5 * y * 10.0, rtol=1e-12)
    np.testing.assert_allclose(dy, 2.5 * x * 10.0, rtol=1e-12)
    assert set(op.gradient_needs.inputs.values()) == set(op.gradient_needs.outputs.values()) == {"value"}


def test_default_with_an_output_without_uses() -> None:
    op = Scaled.define("DefaultUnused")
    x, y = numbers(3), numbers(3) + 4
    np.testing.assert_allclose(gradient_of(lambda x, y: op(x, y)[0], x, y)[0], y, rtol=1e-12)


def test_an_output_that_the_gradient_operator_lacks_means_no_gradient() -> None:
    op = Scaled.define("DefaultLacking", y_grad=None, compute=lambda op, x, y, z, total, z_grad, total_grad: z_grad * y)
    x, y = numbers(3), numbers(3) + 4
    dx, dy = gradient_of(lambda x, y: op(x, y)[0], x, y)
    np.testing.assert_allclose(dx, y)
    assert dy is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"total": None}, "it does not take 'total'"),
        ({"total_grad": None}, "it does not take 'total_grad'"),
        ({"other": ow.Input(floating)}, "its input 'other' is not an input, output or gradient of an output of"),
        ({"w_grad": ow.Output(like="x")}, "its output 'w_grad' is the gradient of no input"),
        ({"factor": ow.Attr(int, default=1)}, "its attribute 'factor' is int"),
        ({"mode": ow.Attr(str)}, "its attribute 'mode' is required"),
        ({"x": ow.Input(floating, repeated=True)}, "its input 'x' is repeated"),
    ],
    ids=lambda v: v[:24] if isinstance(v, str) else None,
)
def test_what_does_not_fit_is_named(changes: dict[str, object], words: str) -> None:
    name = f"Misfit{abs(hash(words)) % 10**8}"
    changes = {**changes, **({"infer": lambda op: op.x.spec} if "w_grad" in changes or "x" in changes else {})}
    op = Scaled.define(name, **changes)
    with pytest.raises(SignatureError) as caught:
        gradient_of(lambda x, y: op(x, y)[0], numbers(3), numbers(3))
    assert name in str(caught.value)
    assert f"{name}Grad does not fit: {words}" in str(caught.value)


def test_a_gradient_operator_that_is_not_there() -> None:
    op = define("LonelyAtan", gradient=ow.ops.DefaultGradient())
    with pytest.raises(NotFoundError, match="LonelyAtan: its gradient operator 'LonelyAtanGrad' is not defined"):
        gradient_of(op, numbers(3))


def test_repeated_and_optional_inputs() -> None:
    """z = sum of xs, plus bias where it is given."""

    @ow.operator
    class GatheredSumGrad:
        xs = ow.Input(floating, repeated=True)
        bias = ow.Input(floating, optional=True)
        z_grad = ow.Input(floating)
        xs_grad = ow.Output(repeated=True)
        bias_grad = ow.Output(like="z_grad")
        shape_only = ("xs", "bias")

        def infer(op):
            return [x.spec for x in op.xs], op.z_grad.spec

        def compute(op, xs, bias, z_grad):
            return [z_grad * np.ones(x.shape) for x in xs], z_grad

    @ow.operator
    class GatheredSum:
        xs = ow.Input(floating, repeated=True)
        bias = ow.Input(floating, optional=True)
        z = ow.Output()
        gradient = ow.ops.SingleGradient(GatheredSumGrad)

        def infer(op):
            return op.xs[0].spec

        def compute(op, xs, bias):
            return sum(xs) + (0 if bias is None else bias)

    assert dict(GatheredSum.gradient_needs.inputs) == {"xs": "shape", "bias": "shape"}
    a, b, c = (ow.constant(numbers(3) + i) for i in range(3))
    for bias in (None, c):
        with ow.GradientTape() as tape:
            tape.watch([a, b, c])
            y = GatheredSum([a, b], bias) * 2.0
        da, db, dc = tape.gradient(y, [a, b, c])
        np.testing.assert_array_equal(da.numpy(), np.full(3, 2.0))
        np.testing.assert_array_equal(db.numpy(), np.full(3, 2.0))
        assert (dc is None) == (bias is None)


def test_shape_only_of_a_gradient_operator_hides_the_elements() -> None:
    @ow.operator
    class PeekedGrad:
        x = ow.Input(floating)
        y_grad = ow.Input(floating, like="x")
        x_grad = ow.Output(like="x")
        shape_only = ("x",)

        def compute(op, x, y_grad):
            return y_grad * np.asarray(x)

    op = define("Peeked", gradient=ow.ops.SingleGradient())
    assert op.gradient_needs.inputs["x"] == "shape"
    with pytest.raises(InvalidArgumentError, match="PeekedGrad"):
        gradient_of(op, numbers(3))


# ---- reading what was not kept -------------------------------------------------------------------------------------


def multiplied(name: str, **body: object) -> Operator:
    return define(name, y=ow.Input(floating, like="x"), z=ow.Output(like="x"), compute=lambda op, x, y: x * y, **body)


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize(
    "rule",
    [
        lambda op, dz: (dz * op.y, dz * op.x),
        lambda op, dz: (dz * op.y, dz * ow.exp(op.x)),
        lambda op, dz: (dz * op.y, dz * ow.concat([op.x, op.x], 0)),
        lambda op, dz: (dz * op.y, dz * op.x[0]),
    ],
)
def test_reading_a_no_need_buffer_input_is_an_error(rule: object, traced: bool) -> None:
    op = multiplied(f"Misread{id(rule)}", gradient=rule, no_need_buffer=("x",))

    def step(x, y):
        with ow.GradientTape() as tape:
            tape.watch([x, y])
            z = op(x, y)
        return tape.gradient(z, [x, y])

    x = ow.constant(numbers(3))
    with pytest.raises(InvalidArgumentError) as caught:
        (ow.function(step, autograph=False) if traced else step)(x, x + 1.0)
    text = str(caught.value)
    assert op.name in text
    assert "'x' is declared no_need_buffer" in text
    assert "take 'x' out of no_need_buffer" in text


ASKING = {
    "float": float,
    "bool": bool,
    "int": int,
    "len": len,
    "asarray": np.asarray,
    "numpy": lambda x: x.numpy(),
    "list": list,
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
def test_python_asks_an_outline(ask: object) -> None:
    op = multiplied("AskedOutline", gradient=lambda op, dz: (dz * ask(op.x), None), no_need_buffer=("x",))
    x = ow.constant(numbers(1)[0])
    with ow.GradientTape() as tape:
        tape.watch(x)
        z = op(x, x)
    with pytest.raises((InvalidArgumentError, TypeError)):
        tape.gradient(z, x)


def test_what_an_outline_answers() -> None:
    seen: dict[str, object] = {}

    def rule(op, dz):
        x = op.x
        seen.update(
            shape=x.shape,
            dtype=x.dtype,
            rank=x.rank,
            spec=x.spec,
            asked=ow.shape(x).numpy().tolist(),
            size=int(ow.size(x)),
            rank_op=int(ow.rank(x)),
            zeros=ow.zeros_like(x).numpy(),
            ones=ow.ones_like(x).numpy(),
        )
        return dz * op.y, ow.reshape(dz, x.shape)

    op = multiplied("AnsweringOutline", gradient=rule, no_need_buffer=("x",))
    gradient_of(op, numbers(2, 3), numbers(2, 3))
    assert (tuple(seen["shape"]), seen["dtype"], seen["rank"]) == ((2, 3), ow.float64, 2)
    assert (seen["asked"], seen["size"], seen["rank_op"]) == ([2, 3], 6, 2)
    np.testing.assert_array_equal(seen["zeros"], np.zeros((2, 3)))
    np.testing.assert_array_equal(seen["ones"], np.ones((2, 3)))


# ---- looking into rules ---------------------------------------------------------------------------------------------


def helper(op, dy):
    return dy * op.y


def second_argument(dy, op):
    return dy * op.y


def with_default(op, dy, *, scale=1.0):
    return dy * op.x * scale


def listed(items):
    return items[0].y


def _closure(op, dy):
    def inner():
        return op.y

    return dy * inner(), None


def _comprehension(op, dy):
    parts = [dy * v for v in (op.y,)]
    return parts[0], None


def _rebound(op, dy):
    op = dy
    return op, None


def _stored(op, dy):
    kept = op
    return dy * kept.y, None


def _argument_after_a_branch(op, dy):
    return helper(op, dy if dy is not None else 0), None


def _everywhere(op, dy):
    locals()
    return dy, None


class _Callable:
    def __call__(self, op, dy):
        return dy * op.y, None


LOOKED_INTO = {
    "nothing": (lambda op, dy: (dy, None), ""),
    "an input": (lambda op, dy: (dy * op.x, None), "x"),
    "both": (lambda op, dy: (dy * op.x * op.y, None), "xy"),
    "an output": (lambda op, dy: (dy * op.z, None), "z"),
    "an attribute": (lambda op, dy: (dy * op.scale, None), ""),
    "attributes": (lambda op, dy: (dy * len(op.attrs), None), ""),
    "shape": (lambda op, dy: (ow.reshape(dy, op.x.shape), None), ""),
    "shape and value": (lambda op, dy: (ow.reshape(dy * op.x, op.x.shape), None), "x"),
    "a helper": (lambda op, dy: (helper(op, dy), None), "y"),
    "a helper by keyword": (lambda op, dy: (with_default(op, dy, scale=2.0), None), "x"),
    "keywords alone": (lambda op, dy: (second_argument(dy=dy, op=op), None), "xyz"),
    "second argument": (lambda op, dy: (second_argument(dy, op), None), "xyz"),
    "in a list": (lambda op, dy: (dy * listed([op]), None), "xyz"),
    "a method of the class": (lambda op, dy: (op.own(dy), None), "y"),
    "a closure": (_closure, "y"),
    "a comprehension": (_comprehension, "y"),
    "rebound": (_rebound, "xyz"),
    "stored": (_stored, "xyz"),
    "a branch before the call": (_argument_after_a_branch, "xyz"),
    "locals": (_everywhere, "xyz"),
    "getattr": (lambda op, dy: (dy * getattr(op, "y"), None), "xyz"),  # noqa: B009
    "a partial": (functools.partial(lambda k, op, dy: (dy, None), 1), "xyz"),
    "an object": (_Callable(), "xyz"),
    "stars": (lambda *args: (args[1] * args[0].y, None), "xyz"),
}


@pytest.mark.parametrize("case", LOOKED_INTO)
def test_needs_found_in_a_rule(case: str) -> None:
    rule, read = LOOKED_INTO[case]
    name = f"LookedInto{list(LOOKED_INTO).index(case)}"
    op = multiplied(name, gradient=rule, scale=ow.Attr(float, default=1.0), own=lambda op, dy: dy * op.y)
    needs = {**op.gradient_needs.inputs, **op.gradient_needs.outputs}
    assert "".join(n for n in "xyz" if needs[n] == "value") == read
    if case == "shape":
        assert needs["x"] == "shape"


def test_no_need_buffer_moves_to_shape() -> None:
    op = multiplied(
        "MovedToShape", gradient=lambda op, dz: (dz * op.y, ow.reshape(dz, ow.shape(op.x))), no_need_buffer=("x", "z")
    )
    assert dict(op.gradient_needs.inputs) == {"x": "shape", "y": "value"}
    assert dict(op.gradient_needs.outputs) == {"z": "nothing"}


# From the formulas: what a gradient must know. d(x + y) nothing, d(x y) both, d exp = exp, d tanh = 1 - tanh^2, ...
KNOWN = {
    "Add": "",
    "Sub": "",
    "Neg": "",
    "Identity": "",
    "Concat": "",
    "Reshape": "",
    "Transpose": "",
    "Sum": "",
    "Mean": "",
    "ExpandDims": "",
    "Squeeze": "",
    "BroadcastTo": "",
    "Cast": "",
    "AvgPool": "",
    "Pack": "",
    "Unpack": "",
    "BiasAdd": "",
    "StopGradient": "",
    "Mul": "x y",
    "MatMul": "a b",
    "Exp": "y",
    "Tanh": "y",
    "Sigmoid": "y",
    "Sqrt": "y",
    "Relu": "activations",
    "Log": "x",
    "Sin": "x",
    "Square": "x",
    "RealDiv": "y z",
    "Softmax": "softmax",
    "LogSoftmax": "logsoftmax",
    "Gather": "indices",
    "MaxPool": "input",
    "Conv2D": "input filters",
    "Select": "condition",
    "SegmentSum": "segment_ids",
    "Cumsum": "",
    "Tile": "multiples",
    "ReverseSequence": "seq_lengths",
    "ReadVariable": "",
    "Reverse": "",
    "SpaceToDepth": "",
    "MatrixBandPart": "num_lower num_upper",
}


@pytest.mark.parametrize("name", KNOWN)
def test_needs_of_the_catalogue(name: str) -> None:
    op = registry.get(name)
    needs = {**op.gradient_needs.inputs, **op.gradient_needs.outputs}
    assert " ".join(n for n, need in needs.items() if need == "value") == KNOWN[name]

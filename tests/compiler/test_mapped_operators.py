"""A kernel on scalars broadcasts wherever its operator runs, and gradients are summed, where no shape rule is given."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright import lite
from opwright.core import flags

RNG = np.random.default_rng(5)


def define(**more):
    body = {
        "__doc__": "Weighted difference.\n\n.. math:: y = a - weight b",
        "a": ow.Input(ow.floating),
        "b": ow.Input(ow.floating, like="a"),
        "y": ow.Output(like="a"),
        "weight": ow.Attr(float, default=0.5),
        "compute": lambda op, a, b: a - a.dtype.type(op.weight) * b,
        "gradient": lambda op, dy: (dy, -op.weight * dy),
        "kernel": ow.kernel(difference),
        **more,
    }
    return ow.operator(name="MappedDifference")(type("MappedDifference", (), body))


def difference(a, b, *, weight):
    return a - weight * b


SHAPES = [
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((), (4,)),
    ((1, 5, 1), (2, 1, 3)),
    ((0, 3), (3,)),
    ((1, 2, 1, 2, 3), (2, 1, 1, 1)),
]


def numbers(shape):
    return np.asarray(RNG.standard_normal(shape), np.float32)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes_broadcast_in_every_way_it_runs(shapes):
    op = define()
    arrays = [numbers(s) for s in shapes]
    expected = arrays[0].astype(np.float64) - 0.5 * arrays[1]
    ways = {
        "eager": op(*arrays),
        "half": op(*(ow.cast(a, ow.float16) for a in arrays)),
        "traced": ow.function(lambda a, b: op(a, b))(*map(ow.constant, arrays)),
        "compiled": ow.function(lambda a, b: op(a, b), jit_compile=True)(*map(ow.constant, arrays)),
        "unknown": ow.function(
            lambda a, b: op(a, b),
            jit_compile=True,
            input_signature=[ow.TensorSpec([None] * len(s), ow.float32) for s in shapes],
        )(*map(ow.constant, arrays)),
    }
    for way, y in ways.items():
        assert tuple(y.shape) == expected.shape, way
        np.testing.assert_allclose(
            y.numpy(), expected, rtol=1e-2 if way == "half" else 1e-5, atol=1e-2 if way == "half" else 1e-6, err_msg=way
        )


@pytest.mark.parametrize("compiled", [False, True])
def test_a_file_broadcasts(compiled):
    op, (a, b) = define(), (numbers((3,)), numbers((2, 3)))
    traced = ow.function(lambda a, b: 2.0 * op(a, b), input_signature=[ow.TensorSpec(x.shape) for x in (a, b)])
    converter = lite.TFLiteConverter.from_concrete_functions([traced.get_concrete_function()])
    converter.allow_custom_ops = True
    with flags.override(compiled=compiled, background=False):
        run = lite.Interpreter(model_content=converter.convert(), custom_ops=[op]).get_signature_runner()
        np.testing.assert_allclose(run(a=a, b=b)["output_0"], 2 * (a - 0.5 * b.astype(np.float64)), rtol=1e-5)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_gradients_are_summed_to_the_inputs(shapes):
    op, inputs = define(), [ow.constant(numbers(s)) for s in shapes]
    with ow.GradientTape() as tape:
        for x in inputs:
            tape.watch(x)
        y = op(*inputs)
    size = np.broadcast_shapes(*shapes)
    for grad, shape, slope in zip(tape.gradient(y, inputs), shapes, (1.0, -0.5)):
        np.testing.assert_allclose(grad.numpy(), np.full(shape, slope * np.prod(size) / max(1, np.prod(shape))))


def test_a_rule_for_shapes_or_a_word_counts_more():
    assert define().elementwise
    assert not define(elementwise=False).elementwise
    assert not define(infer=lambda op: op.a.spec).elementwise
    assert not define(kernel=None).elementwise


def test_what_compute_gives_is_held_to_the_shape():
    op = define(compute=lambda op, a, b: (a - b)[:1])
    half = ow.zeros([3], ow.float16)  # which is none of the kernel's dtypes
    with pytest.raises(
        ow.errors.DefinitionError, match=r"MappedDifference: compute gave another shape than was inferred"
    ):
        op(half, half)


def test_a_gradient_that_is_not_summed_reports_the_word():
    op = define(infer=lambda op: ow.TensorSpec([2, 3], ow.float32))
    x, y = ow.constant(numbers((2, 3))), ow.constant(numbers((3,)))
    with ow.GradientTape() as tape:
        tape.watch(y)
        z = op(x, y)
    with pytest.raises(ow.errors.DefinitionError, match="elementwise = True in the class"):
        tape.gradient(z, y)

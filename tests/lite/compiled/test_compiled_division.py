"""Division by numbers that are no constants: the interpreter's own answers, and its own error for 0, at any place."""

import numpy as np
import pytest
from engine_kit import engine
from lite_kit import Build

import opwright as ow
from opwright import lite
from opwright.lite.format import objects
from opwright.lite.interpreter import OpResolverType
from thorough import crossed

TYPES = {
    "DIV": ("INT32",),
    "FLOOR_DIV": ("INT8", "INT16", "INT32", "FLOAT32"),
    "FLOOR_MOD": ("INT8", "INT16", "INT32", "INT64"),
}
CASES = [(name, kind) for name, kinds in TYPES.items() for kind in kinds]


def made(name, kind, shapes):
    build = Build().tensor("x", shapes[0], kind).tensor("z", shapes[1], kind)
    build.tensor("y", np.broadcast_shapes(*shapes), kind)
    return build.op(name, "x z", "y", version=2).done("x z")


def answer(content, x, z, **more):
    interpreter = lite.Interpreter(model_content=content, **more)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), (x, z)):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter, interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def drawn(kind, shapes):
    rng, dtype = np.random.default_rng(4), np.dtype(kind.lower())
    if dtype.kind == "f":
        return [(rng.normal(0, 9, s) + 0.01).astype(dtype) for s in shapes]
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x, z = (rng.integers(low, high, s, dtype, endpoint=True) for s in shapes)
    x = np.where(rng.random(x.shape) < 0.2, np.array([low, high], dtype)[rng.integers(0, 2, x.shape)], x)
    z = np.where(rng.random(z.shape) < 0.6, rng.integers(1, 9, z.shape).astype(dtype) * rng.choice([-1, 1]), z)
    return x.astype(dtype), np.where(z == 0, 1, z).astype(dtype)


@pytest.mark.parametrize(
    ("case", "shapes"),
    crossed(CASES, [((5,), (5,)), ((3, 40), (40,)), ((7, 1), (7, 33)), ((200, 300), (200, 300))]),
    ids=str,
)
def test_quotients_are_those_of_the_reference(case, shapes):
    name, kind = case
    content, (x, z) = made(name, kind, shapes), drawn(kind, shapes)
    _, expected = answer(content, x, z, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    with engine(verify=True):
        interpreter, actual = answer(content, x, z, num_threads=2)
    assert interpreter._engine.delegate.refused == {}
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("place", [0, 39_999, 59_999])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_divisor_of_0_is_reported_in_the_operators_words(name, kind, place):
    shapes = ((200, 300), (200, 300))
    content, (x, z) = made(name, kind, shapes), drawn(kind, shapes)
    bad = z.copy()
    bad.reshape(-1)[place] = 0
    with engine(verify=True):
        with pytest.raises(ow.errors.InvalidArgumentError, match=f"(?s)Division by 0.*{name}"):
            answer(content, x, bad)
        answer(content, x, z)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("kind", ["INT8", "UINT8", "INT16"])
def test_quantised_quotients_are_a_step_from_the_reference_and_the_zero_point_is_a_divisor_of_0(kind, constant):
    dtype, rng = np.dtype(kind.lower()), np.random.default_rng(5)
    zeros = (0, 0, 0) if kind == "INT16" else (3, 7, 5)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x, z = (rng.integers(low, high, (40, 70), dtype, endpoint=True) for _ in range(2))
    z[z == zeros[1]] += 1

    def content(divisors):
        b = Build()
        for name, scale, zero in zip("xzy", (0.1, 0.03, 0.2), zeros):
            data = divisors if name == "z" and constant else None
            b.tensor(
                name,
                x.shape,
                kind,
                data,
                quantization=objects.QuantizationParameters(
                    scale=[scale / (256 if kind == "INT16" else 1)], zero_point=[zero]
                ),
            )
        return b.op("DIV", "x z", "y", version=2).done("x" if constant else "x z")

    _, expected = answer(content(z), x, z, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    with engine(verify=True):
        interpreter, actual = answer(content(z), x, z)
    assert interpreter._engine.delegate.refused == {}
    assert np.abs(actual.astype(np.int64) - expected).max() <= 1
    z[39, 69] = zeros[1]
    with engine(verify=True), pytest.raises(ow.errors.InvalidArgumentError, match=r"Division by 0"):
        answer(content(z), x, z)

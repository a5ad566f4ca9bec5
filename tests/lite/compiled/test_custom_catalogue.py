"""Operators of the catalogue as custom operators of files, as TensorFlow's converter writes Atan: compiled where they
are one operation, computed by NumPy where not. The oracle is NumPy, or Python's own library, in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engine_kit import engine, plan_of
from lite_kit import Build

import opwright as ow
from opwright import lite

REALS = np.linspace(-3, 3, 37, dtype=np.float32)
UNIT = np.linspace(-0.99, 0.99, 37, dtype=np.float32)
ABOVE = np.linspace(1, 9, 37, dtype=np.float32)
WHOLE = np.arange(-18, 19, dtype=np.int32)
TRUTH = np.arange(37) % 3 == 0

CASES = {
    "Atan": (np.arctan, REALS),
    "Asin": (np.arcsin, UNIT),
    "Acos": (np.arccos, UNIT),
    "Tan": (np.tan, UNIT),
    "Sinh": (np.sinh, REALS),
    "Cosh": (np.cosh, REALS),
    "Asinh": (np.arcsinh, REALS),
    "Acosh": (np.arccosh, ABOVE),
    "Atanh": (np.arctanh, UNIT),
    "Expm1": (np.expm1, REALS),
    "Log1p": (np.log1p, UNIT),
    "Erf": (np.vectorize(math.erf), REALS),
    "Erfc": (np.vectorize(math.erfc), REALS),
    "Softplus": (lambda x: np.log1p(np.exp(x)), REALS),
    "Reciprocal": (np.reciprocal, ABOVE),
    "BitwiseXor": (np.bitwise_xor, WHOLE, WHOLE[::-1]),
    "BitwiseAnd": (np.bitwise_and, WHOLE, np.int32([5])),
    "Invert": (np.invert, WHOLE),
    "SquaredDifference": (lambda x, y: (x - y) ** 2, WHOLE, WHOLE[::-1]),
    "Mul": (np.multiply, REALS.astype(np.float64), ABOVE.astype(np.float64)),
    "LogicalNot": (np.logical_not, TRUTH),
}


def model(name, *arrays):
    kind = {"float32": "FLOAT32", "float64": "FLOAT64", "float16": "FLOAT16", "int32": "INT32", "bool": "BOOL"}
    build = Build()
    for i, a in enumerate(arrays):
        build.tensor(f"x{i}", a.shape, kind[a.dtype.name])
    build.tensor("h", arrays[0].shape, kind[arrays[0].dtype.name]).tensor(
        "y", arrays[0].shape, kind[arrays[0].dtype.name]
    )
    xs = " ".join(f"x{i}" for i in range(len(arrays)))
    return build.custom(name, xs, "h").custom("Identity", "h", "y").done(xs)


def run(name, *arrays, customs=()):
    operators = [ow.ops.get(name), ow.ops.get("Identity"), *customs]
    with engine():
        interpreter = lite.Interpreter(model_content=model(name, *arrays), custom_ops=operators)
        interpreter.allocate_tensors()
        for detail, a in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], a)
        interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), plan_of(interpreter)[0]


@pytest.mark.parametrize("name", CASES)
def test_one_operation_is_machine_code(name):
    formula, *arrays = CASES[name]
    y, node = run(name, *arrays)
    assert node != name  # a plan has taken its place
    exact = formula(*(a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays))
    np.testing.assert_allclose(y, exact, rtol=1e-6, atol=1e-7)
    assert y.dtype == arrays[0].dtype


@pytest.mark.parametrize(("name", "dtype"), [("Atan", np.float16), ("Lgamma", np.float32)])
def test_what_it_is_not_for_is_computed_by_numpy(name, dtype):
    y, node = run(name, ABOVE.astype(dtype))
    assert node == name
    formula = {"Atan": np.arctan, "Lgamma": np.vectorize(math.lgamma)}[name]
    np.testing.assert_allclose(y, formula(ABOVE.astype(dtype).astype(np.float64)), rtol=1e-3, atol=1e-3)


def test_a_users_operator_of_that_name_is_its_own():
    @ow.operator(name="Atan")
    class Mine:
        x = ow.Input()
        y = ow.Output(like="x")

        def compute(op, x):
            return x + x

    y, node = run("Atan", REALS, customs=[Mine])
    assert node == "Atan"
    np.testing.assert_array_equal(y, REALS + REALS)


@pytest.mark.parametrize(("place", "taken"), [("gpu", True), ("cpu", False)])
def test_kernels_of_other_places_change_nothing(monkeypatch, place, taken):
    """With one of this place the node is left to the operator, which chooses."""
    key = ow.KernelKey(place, ow.float32, "any", "foreign")
    monkeypatch.setattr(ow.ops.get("Atan"), "kernels", {key: lambda op, x: np.arctan(x)})
    y, node = run("Atan", REALS)
    assert (node != "Atan") is taken
    np.testing.assert_allclose(y, np.arctan(REALS.astype(np.float64)), rtol=1e-6)

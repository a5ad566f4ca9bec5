"""`ow.testing.check`: a right operator passes every check, and each check finds the mistake it is there for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.testing import CHECKS, CheckError, check

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def defined(**body: Any) -> Any:
    """A leaky clip, right in all that is not given otherwise."""
    parts = {
        "__doc__": "Leaky clip.\n\n.. math:: y = \\min(x, limit) + \\max(x - limit, 0) / 4",
        "x": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "limit": ow.Attr(float),
        "compute": lambda op, x: np.minimum(x, op.limit) + np.maximum(x - op.limit, 0) / 4,
        "gradient": lambda op, dy: dy * ow.where(op.x < op.limit, ow.ones_like(op.x), 0.25 * ow.ones_like(op.x)),
        **body,
    }
    return ow.operator(name="TestingClip")(type("TestingClip", (), {k: v for k, v in parts.items() if v is not ...}))


def clip(x: Any) -> Any:
    return np.where(x < 0.31, x, 0.31 + 0.25 * (x - 0.31))


GIVEN = {"x": X, "limit": 0.31}


def failed(op: Any, inputs: Any = GIVEN, expect: Any = clip, **options: Any) -> set[str]:
    with pytest.raises(CheckError) as excinfo:
        check(op, inputs, expect, **options)
    assert all(o.detail for o in excinfo.value.outcomes if o.state == "failed")
    assert "checks failed" in str(excinfo.value)
    return {o.check for o in excinfo.value.outcomes if o.state == "failed"}


def test_a_right_operator() -> None:
    result = {o.check: o for o in check(defined(), GIVEN, clip)}
    of_formulas = {f"outputs in {name}" for name in ("float16", "bfloat16", "int8", "int32", "int64")}
    assert {*CHECKS, "outputs", "outputs in float32", *of_formulas} == result.keys()
    assert {result[f"outputs in {name}"].state for name in ("float16", "bfloat16")} == {"ok"}
    assert result["second gradient is slope"].state == "ok"
    not_tried = {name for name, o in result.items() if o.state == "not tried"}
    others = {"official run time", *of_formulas}
    assert not_tried - others == {"kernel is compute", "empty sequences", "compiled", "exported"}
    assert result["gradient is slope"].detail == "12 elements"
    assert result["places"].detail == "cpu: reference, sim: reference"
    assert check("Tanh", {"x": X}, np.tanh)
    assert check("MatMul", {"a": X, "b": X.T.copy()}, lambda a, b: a @ b)
    assert check("Concat", {"values": [X, X[:1]], "axis": 0}, lambda values: np.concatenate(values))


def test_a_wrong_second_derivative_is_found() -> None:
    body = {"compute": lambda op, x: x**3, "gradient": lambda op, dy: 3.0 * dy * ow.stop_gradient(op.x) ** 2}
    assert failed(powers(**body), {"x": X}, lambda x: x**3) == {"second gradient is slope"}
    body["gradient"] = lambda op, dy: 3.0 * ow.stop_gradient(dy) * op.x**2  # which is not linear in dy any more
    assert failed(powers(**body), {"x": X}, lambda x: x**3) == {"second gradient is slope"}
    body["gradient"] = lambda op, dy: 3.0 * dy * op.x**2
    assert check(powers(**body), {"x": X}, lambda x: x**3)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "int8", "int32", "int64"])
def test_wrong_numbers_in_one_dtype_are_found(name: str) -> None:
    def compute(op: Any, x: Any) -> Any:
        return x * x + (1 if x.dtype.name == name else 0)

    op = powers(compute=compute, x=ow.Input((*ow.floating, ow.int8, ow.int32, ow.int64)), gradient=None)
    assert failed(op, {"x": X}, lambda x: x * x) == {f"outputs in {name}"}


def powers(**body: Any) -> Any:
    """An operator of one input; body: what replaces its parts."""
    parts = {"__doc__": "A power.   .. math:: y = x^k", "x": ow.Input(ow.floating), "y": ow.Output(like="x")}
    return ow.operator(type("TestingPower", (), {**parts, **body}))


def test_inputs_by_themselves() -> None:
    """The definition's example, or what is found; without an oracle."""
    assert check("Add")
    assert check(defined(example=lambda: {"x": X, "limit": 0.31}))


def test_sequences() -> None:
    x = ow.LoDTensor(np.arange(10.0).reshape(5, 2), [[0, 2, 2, 5]])
    sums = np.array([[2.0, 4.0], [0.0, 0.0], [18.0, 21.0]])
    result = {o.check: o for o in check("SequencePool", {"x": x, "pooltype": "SUM"}, (sums,))}
    assert result["empty sequences"].detail == "8 layouts"
    assert {result[n].state for n in ("lod", "gradient is slope", "gradient on graphs", "in place")} == {"ok"}
    turned = np.array([[2.0, 3.0], [0.0, 1.0], [8.0, 9.0], [6.0, 7.0], [4.0, 5.0]])
    check("SequenceReverse", {"x": x}, ((turned, [[0, 2, 2, 5]]),))
    assert "outputs" in failed("SequenceReverse", {"x": x}, ((turned, [[0, 1, 2, 5]]),))


def writes(op: Any, x: Any) -> Any:
    x.flags.writeable = True
    x[...] = x + 1.0
    return clip(x)


COUNT = iter(range(10**6))
MISTAKES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "another formula": ({"compute": lambda op, x: np.minimum(x, op.limit)}, {"outputs", "gradient is slope"}),
    "a gradient that is off": ({"gradient": lambda op, dy: dy * 0.9}, {"gradient is slope"}),
    "a gradient in NumPy": (
        {"gradient": lambda op, dy: ow.constant(np.where(op.x.numpy() < op.limit, 1.0, 0.25)) * dy},
        {"gradient on graphs"},
    ),
    "another answer at each call": ({"compute": lambda op, x: clip(x) + 1e-3 * next(COUNT)}, {"outputs", "places"}),
    "inputs written": ({"compute": writes}, {"inputs stay", "places"}),
    "a dtype that is not computed": ({"x": ow.Input((*ow.floating, "string"))}, {"every dtype"}),
    "inference that claims too much": (
        {"infer": lambda op: op.x.spec.with_shape([2 if d is None else d for d in op.x.spec.shape.dims or (2, 3)])},
        {"inference"},
    ),
    "an input that is never read": (
        {
            "w": ow.Input(like="x"),
            "compute": lambda op, x, w: clip(x),
            "gradient": lambda op, dy: (dy * ow.where(op.x < op.limit, 1.0, 0.25), None),
        },
        {"places"},
    ),
    "a LoD over other rows": (
        {
            "compute": lambda op, x: clip(x[:1]),
            "infer": lambda op: op.x.spec.with_shape(
                [None if op.x.spec.shape.rank is None else 1, *list(op.x.spec.shape)[1:]]
                if op.x.spec.shape.rank
                else None
            ),
        },
        {"outputs"},
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_found(mistake: str) -> None:
    body, expected = MISTAKES[mistake]
    inputs = {**GIVEN, "w": X} if "w" in body else GIVEN
    expect = (lambda x, w: clip(x)) if "w" in body else clip
    assert expected <= failed(defined(**body), inputs, expect)


def test_memory_that_may_not_be_used_again_is_found() -> None:
    """Writing the result into the input while the input is still read."""

    def into(op: Any, x: Any, *, out: Any = None) -> Any:
        y = np.multiply(x, 2.0, out=out)
        return np.add(y, x, out=y)  # x is y by now

    op = defined(compute=into, inplace={"y": "x"}, limit=..., gradient=lambda op, dy: dy * 3.0)
    assert failed(op, {"x": X}, lambda x: 3 * x) == {"in place"}


def test_an_older_specification(tmp_path: Path) -> None:
    old = ow.ops.spec([defined()])
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    assert check(defined(), GIVEN, against=path)[-1] == ("TestingClip", "compatible", "ok", "0 changes, all allowed")
    assert failed(
        defined(limit=..., level=ow.Attr(float, default=0.31), compute=lambda op, x: clip(x), gradient=...),
        {"x": X},
        None,
        against=old,
    ) == {"compatible"}


def test_what_there_is_not() -> None:
    with pytest.raises(ValueError, match="no check 'speed'"):
        check("Add", without=["speed"])
    with pytest.raises(ValueError, match="no input or attribute 'z'"):
        check("Tanh", {"z": X})
    with pytest.raises(KeyError, match="NoSuch"):
        check("NoSuch")
    assert "places" not in {o.check for o in check("Tanh", {"x": X}, without=["places"])}

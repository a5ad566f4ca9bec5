"""The checks themselves: each finds the mistake it is there for, in an operator that has just that mistake."""

from __future__ import annotations

from typing import Any

import checks
import numpy as np
import pytest
from harness import bad, bf16, bools, c64, case, f32, f64, i32, pos, resolve, strings, u8, unit

import opwright as ow


def operator(**body: Any) -> Any:
    """A squaring operator, right in all that is not given otherwise."""
    rules = {
        "__doc__": "Square.\n\n.. math:: y = x^2",
        "x": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "compute": lambda op, x: x * x,
        "gradient": lambda op, dy: dy * (2.0 * op.x),
        **body,
    }
    return ow.operator(name="HarnessSquare")(type("HarnessSquare", (), rules))


# Those of checks.py, whatever other files have entered: their checks are about the catalogue's rows.
OWN = {name: pair for name, pair in checks.CHECKS.items() if pair[1].__module__ == "checks"}


def failing(row: Any, **body: Any) -> set[str]:
    """Names of the checks that the row does not pass, of those that are for it."""
    operator(**body)
    resolve.cache_clear()  # the name means another operator now
    row.key = "HarnessSquare"
    names = set()
    for name, (applies, check) in OWN.items():
        if applies(row):
            try:
                check(row)
            except Exception:
                names.add(name)
    return names


def square(x: Any) -> Any:
    return np.abs(x) ** 2


def test_a_right_operator_passes() -> None:
    for x in (f64(2, 3), f32(2, 3), f32(0, 3), f64(), bf16(4)):
        assert failing(case(x, expect=square)) == set()
    assert failing(bad(i32(2), says="dtype")) == set()


RECORDED = {"traced_equals_eager", "prints_and_parses"}
MISTAKES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a wrong formula": ({"compute": lambda op, x: x * x + x.dtype.type(1e-3)}, {"matches_oracle"}),
    "a wrong gradient": ({"gradient": lambda op, dy: dy * op.x}, {"gradient_matches_differences"}),
    "a gradient that is slightly off": (
        {"gradient": lambda op, dy: dy * (2.001 * op.x)},
        {"gradient_matches_differences"},
    ),
    "a gradient of another shape": (
        {"gradient": lambda op, dy: ow.reduce_sum(dy * (2.0 * op.x))},
        {"gradient_matches_differences"},
    ),
    "a gradient that is None": ({"gradient": lambda op, dy: None}, {"gradient_matches_differences"}),
    "a gradient written in NumPy": (
        {"gradient": lambda op, dy: ow.constant(dy.numpy() * 2 * op.x.numpy())},
        {"traced_gradient_equals_eager"},
    ),
    "a gradient whose own gradient fails": (
        {"gradient": lambda op, dy: dy * HarnessNoGradient(op.x)},
        {"second_order_runs"},
    ),
    "an inferred shape that is wrong": ({"infer": lambda op: op.x.spec.with_shape([7])}, {"every one"}),
    "an inferred shape that needs to be known": (
        {"infer": lambda op: op.x.spec.with_shape([d + 0 for d in op.x.spec.shape])},
        {"outputs_match_inference", *RECORDED},
    ),
    "an inferred shape that knows too little": (
        {"infer": lambda op: op.x.spec.with_shape(None)},
        {"outputs_match_inference"},
    ),
    "an inferred shape that claims too much": (
        {"infer": lambda op: op.x.spec.with_shape([2 if d is None else d for d in op.x.spec.shape.dims or (2, 3)])},
        {"outputs_match_inference"},
    ),
    "halves that overflow": (
        {"compute": lambda op, x: (x * x.dtype.type(3e4)) * x / x.dtype.type(3e4)},
        {"halves_match_single"},
    ),
    "an answer that is not the same twice": (
        {"compute": lambda op, x: x * x * x.dtype.type(1 + 1e-3 * next(COUNT))},
        {"matches_oracle", "gradient_matches_differences", "traced_equals_eager"},
    ),
    "an attribute that has no text": (
        {"what": ow.Attr(object, default={"a": 1}), "infer": lambda op: op.x.spec},
        set(),  # such graphs print, and do not say that they parse
    ),
}
COUNT = iter(range(1, 10**9))


@ow.operator
class HarnessNoGradient:
    """2 x, with no gradient"""

    x = ow.Input(ow.floating)
    y = ow.Output(like="x")

    def compute(op, x: Any) -> Any:
        return 2 * x


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_found(mistake: str) -> None:
    body, expected = MISTAKES[mistake]
    actual = failing(case(f64(3, 3), expect=square), **body)
    if "every one" in expected:
        assert "matches_oracle" in actual
    elif mistake == "an answer that is not the same twice":
        assert actual & expected
    else:
        assert expected <= actual
        assert actual - expected <= {"second_order_runs", "halves_match_single", "traced_gradient_equals_eager"}


@pytest.mark.parametrize(
    "row",
    [
        bad(f32(2), says="dtype"),
        bad(i32(2), says="no such words"),
        bad(i32(2), says="dtype", raises=LookupError),
        case(f32(2), expect=lambda x: (x * x)[None]),
        case(f32(2), expect=lambda x: x > 0),
        case(f32(2), expect=lambda x: (x * x, x)),
        case(f32(2), expect=square, gives="float64"),
        case(f32(2), holds=lambda y, x: False),
        case(f32(2), holds=lambda y, x: np.testing.assert_array_equal(y, x)),
    ],
    ids=["no error", "other words", "other class", "shape", "bool", "two outputs", "dtype", "condition", "assertion"],
)
def test_wrong_rows_are_found(row: Any) -> None:
    assert failing(row) & {"matches_oracle", "fails_in_words"}


def test_a_row_says_something() -> None:
    with pytest.raises(TypeError, match="expect=, holds=, or says_nothing"):
        case(f32(2))
    assert failing(case(f32(2), says_nothing="only that it runs")) == set()


def test_which_checks_are_for_a_row() -> None:
    operator()
    resolve.cache_clear()

    def names(row: Any) -> set[str]:
        row.key = "HarnessSquare"
        return {n for n, (applies, _) in OWN.items() if applies(row)}

    assert names(bad(f32(2), says="x")) == {"fails_in_words"}
    every = set(OWN) - {"fails_in_words"}
    assert names(case(f32(2), expect=square)) == every
    of_gradients = {"gradient_matches_differences", "second_order_runs", "traced_gradient_equals_eager"}
    assert names(case(f32(2), expect=square, grad=False)) == every - of_gradients
    assert names(case(f32(2), expect=square, trace=False)) == every - RECORDED - {"traced_gradient_equals_eager"}
    assert names(case(f32(2), expect=square, half=False)) == every - {"halves_match_single"}
    assert names(case(bf16(2), expect=square)) == every - {"halves_match_single"}


def test_generators() -> None:
    for shape in ((), (0, 3), (4, 5)):
        for generator in (f32, f64, bf16, i32, u8, c64, bools, strings):
            result = generator(*shape)
            assert isinstance(result, np.ndarray)
            assert result.shape == shape
    x = f64(20, 20)
    assert np.abs(x).max() <= 2
    assert len(np.unique(x)) == 400
    assert np.abs(x).min() > 1e-5
    assert (pos(x) > 0).all()
    assert (np.abs(unit(x)) < 0.9 + 1e-12).all()
    assert pos(i32(5)).min() == 1
    assert set(bools(2).tolist()) == {True, False}
    assert (i32(9, low=3, high=5) >= 3).all()
    assert (f64(3) != f64(3)).any()

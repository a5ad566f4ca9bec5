"""`ow.testing.check_operator`: cases in every form, and the mistakes that only a file shows."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.lite.registration import registration_of
from opwright.testing import CHECKS, CheckError, check_operator, model_files
from opwright.testing import model_files as checked_files

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
IN_FILES = ("same again", "interpreted", "compiled", "versions")
OTHERS = ("exported", "official run time")  # a C compiler, the official run time's wheel
ELSEWHERE = tuple(name for name in CHECKS if name not in IN_FILES)


ONLY = {name: tuple(other for other in CHECKS if other != name) for name in OTHERS}


def defined(version: int = 1, **body: Any) -> Any:
    """A leaky clip with a kernel, right in all that is not given otherwise."""

    def kernel(x: Any, *, limit: float) -> Any:
        return ow.minimum(x, limit) + 0.25 * ow.maximum(x - limit, 0.0)

    parts = {
        "__doc__": "Leaky clip.\n\n.. math:: y = \\min(x, limit) + \\max(x - limit, 0) / 4",
        "x": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "limit": ow.Attr(float, default=0.5),
        "compute": lambda op, x: np.minimum(x, op.limit) + np.maximum(x - op.limit, 0) / 4,
        "gradient": lambda op, dy: ow.where(op.x < op.limit, dy, 0.25 * dy),
        "kernel": ow.kernel(kernel),
        **body,
    }
    named = {k: v for k, v in parts.items() if v is not ...}
    return ow.operator(name="TestingCases", version=version)(type("TestingCases", (), named))


def clip(x: Any, limit: float = 0.5) -> Any:
    return np.where(x < limit, x, limit + 0.25 * (x - limit))


def failed(op: Any, cases: Any, **options: Any) -> dict[str, str]:
    """The checks that fail, with what they say."""
    with pytest.raises(CheckError) as excinfo:
        check_operator(op, cases, **options)
    return {o.check: o.detail for o in excinfo.value.outcomes if o.state == "failed"}


def test_a_right_operator() -> None:
    result = check_operator(
        defined(), [{"x": X}, {"inputs": {"x": X}, "attrs": {"limit": 0.31}, "expect": lambda x: clip(x, 0.31)}]
    )
    assert len({o.operator for o in result}) == 2
    assert all(o.operator.startswith("TestingCases, case ") for o in result)
    states = {(o.check, o.state) for o in result}
    assert {(name, "ok") for name in IN_FILES} <= states
    details = {(o.check, o.detail) for o in result}
    assert ("compiled", "as machine code") in details
    for name, words in (("exported", "compiler"), ("official run time", "ai-edge-litert")):
        assert {(name, "ok")} <= states or any(words in detail for check, detail in details if check == name)
    assert ("interpreted", "custom operator, version 1") in details


def test_the_outcomes_print_as_a_table() -> None:
    result = check_operator(defined(), [{"x": X}, {"x": "f32[2]"}], without=ELSEWHERE)
    lines = repr(result).splitlines()
    assert lines[0] == "8 ok"
    assert lines[1] == "TestingCases, case 0 (x f64[3,4])"
    assert lines[2].split() == ["same", "again", "ok"]
    assert lines[4].split(": ") == ["  compiled     ok", "as machine code"]
    assert len(lines) == 11
    assert repr(check_operator("Add", without=CHECKS)) == ""


def test_forms_of_cases() -> None:
    cases = [
        {"inputs": [X], "expect": clip, "rtol": 1e-5},
        {"x": "float32[2,3]", "limit": 0.2},
        {"x": "f64[0,3]"},
        {"x": ow.TensorSpec([], ow.float32)},
    ]
    result = check_operator(defined(), cases, without=ELSEWHERE)
    shown = list(dict.fromkeys(o.operator.partition(" (")[2] for o in result))
    assert shown == ["x f64[3,4])", "x f32[2,3], limit=0.2)", "x f64[0,3])", "x f32[])"]


def test_without_cases_inputs_are_made_up() -> None:
    (name,) = {o.operator for o in check_operator(defined(), expect=clip)}
    assert name == "TestingCases"
    assert check_operator(defined(example=lambda: {"x": X, "limit": 0.1}), expect=lambda x: clip(x, 0.1))
    assert check_operator("Concat", [{"values": ["float32[2,3]", "float32[1,3]"], "axis": 0}])


def test_every_case_is_run_and_the_failing_one_named() -> None:
    with pytest.raises(CheckError, match=r"case 1 \(x f64\[3,4\], limit=0.3\): outputs: ") as excinfo:
        check_operator(
            defined(),
            [{"x": X}, {"x": X, "limit": 0.3}, {"x": X, "limit": 0.7}],
            expect=lambda x: clip(x, 0.7),
            without=ELSEWHERE,
        )
    wrong = [o for o in excinfo.value.outcomes if o.check == "outputs" and o.state == "failed"]
    assert [o.operator.partition(" (")[0] for o in wrong] == ["TestingCases, case 0", "TestingCases, case 1"]


def test_a_call_that_fails_is_said_once() -> None:
    op = defined(compute=lambda op, x: 1 / 0, kernel=..., gradient=...)
    with pytest.raises(CheckError, match=r"2 of 2 checks failed\n  case 0 .*: calls: .*division by zero"):
        check_operator(op, [{"x": X}, {"x": "f32[2]"}])


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ([], "there are no cases"),
        ([3], "case 0 is int"),
        ([{"x": "hello"}], "input 'x' is the text 'hello'"),
        ([{"z": 1}], "case 0 has 'z'"),
        ([{"x": X, "attrs": {}}], "no input or attribute 'attrs'"),
        ([{"x": "float32[?,2]"}], "unknown sizes"),
        ([{"inputs": {"x": X}, "attrs": {"q": 1}}], "attribute 'q'"),
        ([{"x": ow.TensorSpec(None)}], "unknown sizes"),
    ],
)
def test_cases_that_are_none(cases: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_operator(defined(), cases)
    with pytest.raises(ValueError, match="there is no check 'interpretd'"):
        check_operator(defined(), without=["interpretd"])


_calls = iter(range(1, 10**6))
MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {  # what is wrong, the check that finds it, what it says
    "another number each time": (
        {"compute": lambda op, x: x + x.dtype.type(next(_calls)), "kernel": ..., "gradient": ...},
        "same again",
        "called again",
    ),
    "an attribute that no file holds": (
        {"table": ow.Attr(object, default=object())},
        "interpreted",
        "options['table'] cannot be",
    ),
    "only sizes that are known": (
        {
            "infer": lambda op: ow.TensorSpec([n + 0 for n in op.x.shape.as_list()], op.x.dtype),
            "kernel": ...,
            "gradient": ...,
        },
        "interpreted",
        "",
    ),
}


@pytest.mark.parametrize("what", list(MISTAKES))
def test_mistakes_that_a_file_shows(what: str) -> None:
    body, check, words = MISTAKES[what]
    result = failed(defined(**body), [{"x": X}])
    assert words in result[check]


def growing(version: int, **body: Any) -> Any:
    """Version 2 has a floor."""
    if version >= 2:
        body = {"floor": ow.Attr(float, default=-np.inf, since=2), **body}
    return defined(
        version,
        kernel=...,
        gradient=...,
        compute=lambda op, x: np.maximum(np.minimum(x, op.limit), getattr(op, "floor", -np.inf)),
        **body,
    )


@pytest.mark.parametrize(
    ("version", "case", "detail"),
    [
        (1, {"x": X}, "version 1 of 1, 1 options, 0 older files"),
        (2, {"x": X}, "version 1 of 2, 1 options, 1 older files"),
        (2, {"x": X, "floor": -0.5}, "version 2 of 2, 2 options, 1 older files"),
    ],
)
def test_versions_that_are_right(version: int, case: Any, detail: str) -> None:
    result = {o.check: o for o in check_operator(growing(version), [case])}
    assert (result["versions"].state, result["versions"].detail) == ("ok", detail)


def test_versions_that_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of the check, by a library that does its part wrongly."""
    op = growing(2)
    whole = checked_files.bind_options
    monkeypatch.setattr(checked_files, "bind_options", lambda op, raw, version: whole(op, b"", version))
    assert "'limit' comes back as 0.5" in failed(op, [{"x": X, "limit": 0.25}])["versions"]
    monkeypatch.undo()
    monkeypatch.setattr("opwright.lite.registration.bind_options", lambda op, raw, version: whole(op, b"", version))
    assert "'not_known_yet', which the definition does not know, was run" in failed(op, [{"x": X}])["versions"]
    monkeypatch.setattr("opwright.lite.registration.bind_options", lambda op, raw, version: op.bind({"floor": 0.0}))
    assert "a file of version 1" in failed(op, [{"x": X}])["versions"]
    monkeypatch.undo()
    monkeypatch.setattr("opwright.lite.convert.custom_operators.least_version", lambda *args: 1)
    assert "stamped version 1, the call needs 2" in failed(op, [{"x": X, "floor": 0.5}])["versions"]


def test_others_that_compute_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the library that was compiled, and of the official run time."""
    wrong = defined(compute=lambda op, x: 2 * x, kernel=...)
    op = defined()
    monkeypatch.setattr(model_files, "build_custom_ops", lambda sources: {op.name: registration_of(wrong)})
    assert "exported to C, result 0" in failed(op, [{"x": X}], without=ONLY["exported"])["exported"]
    monkeypatch.setattr(model_files, "build_custom_ops", lambda sources: {"Another": registration_of(wrong)})
    assert "the library has Another" in failed(op, [{"x": X}], without=ONLY["exported"])["exported"]

    class Wrong:
        native_nodes: dict[str, bool] = {}

        def __init__(self, *arguments: Any, **options: Any) -> None: ...
        def __enter__(self) -> Wrong:
            return self

        def __exit__(self, *error: Any) -> None: ...
        def run(self, arrays: Any) -> Any:
            return [2 * a for a in arrays]

    monkeypatch.setattr("opwright.lite.litert.CompiledModel", Wrong)
    result = failed(op, [{"x": X}], without=ONLY["official run time"])["official run time"]
    assert "in the official run time, result 0" in result


def test_the_official_run_time_takes_no_empty_tensors() -> None:
    (result,) = check_operator(defined(), [{"x": "float32[0,4]"}], without=ONLY["official run time"])
    assert result.state == "not tried"


def test_others_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_there(*arguments: Any, **options: Any) -> Any:
        raise ow.errors.UnavailableError(what="no C compiler", do="install one")

    monkeypatch.setattr(model_files, "build_custom_ops", none_there)
    (result,) = check_operator(defined(), [{"x": X}], without=ONLY["exported"])
    assert (result.state, result.detail) == ("not tried", "no C compiler")

    def not_installed(*arguments: Any, **options: Any) -> Any:
        raise ImportError("pip install ai-edge-litert")

    monkeypatch.setattr("opwright.lite.litert.CompiledModel", not_installed)
    (result,) = check_operator(defined(), [{"x": X}], without=ONLY["official run time"])
    assert (result.state, result.detail) == ("not tried", "pip install ai-edge-litert")


def test_what_is_not_for_an_operator() -> None:
    result = {o.check: o for o in check_operator("Tanh", [{"x": "float32[2,3]"}])}
    assert (result["versions"].state, result["versions"].detail) == ("not tried", "it is builtin operators in a file")
    assert result["interpreted"].detail == "builtin operators"
    lods = {
        o.check: o
        for o in check_operator(
            "SequencePool", [{"x": ow.LoDTensor(np.arange(10.0).reshape(5, 2), [[0, 2, 2, 5]]), "pooltype": "SUM"}]
        )
    }
    assert lods["interpreted"].state == "not tried"


GRADIENTS = ("gradient is slope", "gradient on graphs", "gradient reads no more", "in place")
OF_GRADIENTS = tuple(name for name in CHECKS if name not in GRADIENTS)


@pytest.mark.parametrize("dtypes", [(ow.float32,), (ow.float16, ow.float32)], ids=str)
def test_gradients_of_what_takes_no_float64(dtypes: Any) -> None:
    """Measured in float32: a right one passes, one that is wrong by a hundredth does not."""
    narrow = {"x": ow.Input(dtypes), "kernel": ...}
    result = {
        o.check: o for o in check_operator(defined(**narrow), [{"x": X.astype(np.float32)}], without=OF_GRADIENTS)
    }
    assert {o.state for o in result.values()} == {"ok"}
    assert result["gradient is slope"].detail == "12 elements, coarsely, in float32"
    wrong = failed(
        defined(**narrow, gradient=lambda op, dy: ow.where(op.x < op.limit, 1.01 * dy, 0.25 * dy)),
        [{"x": X.astype(np.float32)}],
        without=OF_GRADIENTS,
    )
    assert list(wrong) == ["gradient is slope"]


OBJECTS = [[1, 2], (1, 2), [[1], [2, [3.5]]], {"a": [1, float("nan")], "b": {"c": ("x", None)}}, "text", None]


@pytest.mark.parametrize("value", OBJECTS, ids=str)
def test_attributes_of_any_form_come_through_files_and_text(value: Any) -> None:
    op = defined(kernel=..., extra=ow.Attr(object, default=7))
    result = {o.check: o.state for o in check_operator(op, [{"x": X, "extra": value}])}
    assert result["versions"] == result["traces"] == "ok"


def test_no_check_is_an_assert_statement() -> None:  # python -O leaves them out: wrong gradients passed
    for path in Path(checked_files.__file__).parent.glob("*.py"):
        statements = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Assert)]
        assert not statements, f"{path.name}:{statements[0].lineno}"

"""The lint: every rule on an operator that breaks it alone, and the texts of all errors that operators raise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from each_row import each_row
from opwright.ops import definition_lint

SOURCES = sorted(Path(definition_lint.__file__).parent.rglob("*.py"))


def define(name: str = "LintGood", **changes: Any) -> Any:
    body: dict[str, Any] = {
        "__doc__": "Twice the input.\n\n.. math:: y = 2 x",
        "x": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "compute": lambda op, x: x * 2,
        "gradient": lambda op, dy: dy * 2.0,
        **changes,
    }
    return ow.operator(name=name)(type(name, (), {k: v for k, v in body.items() if v is not ...}))


def test_a_good_one() -> None:
    assert ow.ops.lint(define()) == []
    assert ow.ops.lint("Atan") == []
    with pytest.raises(KeyError, match="no operator is named"):
        ow.ops.lint("NoSuchThing")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "lint_snake"}, "'lint_snake' is not in CamelCase"),
        ({"name": "LintThingV2"}, "ends with a version"),
        ({"bigAxis": ow.Attr(int, default=0, doc="a word")}, "attribute 'bigAxis' is not in snake_case"),
        ({"__doc__": ""}, "no docstring"),
        ({"__doc__": "no sentence\n\n.. math:: y = 2 x"}, "is not a sentence: 'no sentence'"),
        ({"__doc__": "Twice x is y."}, "no formula"),
        ({"__doc__": "Twice x is y.\n\n.. math:: b = 2 a"}, "the formula names none of its parts: 'b = 2 a'"),
        ({"n": ow.Attr(int, default=0)}, "nothing says what attribute 'n' means"),
        ({"w": ow.Input(ow.floating, optional=True), "compute": lambda op, x, w: x}, "what input 'w' means"),
        ({"x": ow.Input("float32")}, "takes float32 but not float64"),
        ({"x": ow.Input(("float64", "float16"))}, "takes float16, float64 but not float32"),
        ({"gradient": ...}, "takes floats and has no gradient"),
        ({"compute": ...}, "computes nothing"),
        ({"n": ow.Attr(int, default=0, doc="a word", check=ow.attr.satisfies(" ", lambda v: True))}, "no words"),
    ],
)
def test_each_rule(changes: dict[str, Any], words: str) -> None:
    result = ow.ops.lint(define(**changes))
    assert any(words in sentence for sentence in result), result
    assert len(result) == 1 or words == "no docstring", result  # which says what the formula and the parts are too


def test_words_that_all_operators_share_need_no_repeating() -> None:
    assert ow.ops.lint(define(axis=ow.Attr(int, default=0), data_format=ow.Attr(str, default="NHWC"))) == []
    assert ow.ops.lint(define(n=ow.Attr(int, default=0, doc="how many"))) == []
    assert ow.ops.lint(define(__doc__="Twice.\n\n.. math:: y_i = 2 x_i + n_{max}", n_max=ow.Attr(int, default=0)))


@ow.operator
class LintTwice:
    """Plus n.

    .. math:: y = x + n
    """

    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    n = ow.Attr(int, default=0)
    n = ow.Attr(int, default=1)  # noqa: PIE794
    gradient = None

    def compute(op, x):
        return np.asarray(x + op.n, x.dtype)


def test_a_name_declared_twice() -> None:
    """Python keeps the second and says nothing; the lint reads the source."""
    assert ow.ops.lint(LintTwice) == ["'n' is declared twice; the first is lost"]


def test_one_declaration_under_two_names_is_refused() -> None:
    n = ow.Attr(int, default=0)
    with pytest.raises(ValueError, match="one declaration has two names"):
        define("LintShared", a=n, b=n)


@pytest.mark.parametrize(
    ("attr", "error"),
    [
        (lambda: ow.Attr(int, default=-1, check=ow.attr.at_least(0)), "at least 0"),
        (lambda: ow.Attr(str, default="c", check=ow.attr.one_of("a", "b")), "one of 'a', 'b'"),
        (lambda: ow.Attr([int], default=[1, -1], check=ow.attr.each(ow.attr.at_least(0))), "every item at least 0"),
    ],
)
def test_a_default_must_pass_its_own_check(attr: Any, error: str) -> None:
    """At the definition, not when somebody leaves the attribute out."""
    with pytest.raises(ValueError, match=rf"LintDefault: attribute n: .*{error}"):
        define("LintDefault", n=attr())


def test_a_default_of_the_wrong_type() -> None:
    with pytest.raises(TypeError, match="LintDefault: attribute n: the default 'one' has the wrong type; wanted int"):
        define("LintDefault", n=ow.Attr(int, default="one"))


def test_unknown_arguments_are_refused_by_name() -> None:
    """A typo would otherwise train with the default."""
    op = define("LintStrict", n=ow.Attr(int, default=0, doc="how many"))
    for wrong in ({"m": 1}, {"X": 1.0}, {"out": 1}):
        with pytest.raises(ow.errors.SignatureError, match=f"unknown argument '{next(iter(wrong))}'(.|\n)*among x, n"):
            op(np.float32(1), **wrong)
    with pytest.raises(ow.errors.SignatureError, match="too many arguments"):
        op(np.float32(1), 2, 3)
    with pytest.raises(ow.errors.SignatureError, match="'x' is given twice"):
        op(np.float32(1), x=2.0)
    with pytest.raises(ow.errors.SignatureError, match="input 'x' is missing"):
        op(n=1)


def test_registering_twice() -> None:
    """The catalogue's names are fixed; of users' definitions the latest counts, so that a cell can be run again."""
    import copy

    atan = ow.ops.get("Atan")
    second = copy.copy(define("LintAtan"))
    assert atan.catalogue
    from opwright.ops import registry

    fake = define("LintFake")
    fake.name, fake.catalogue = "Atan", True
    with pytest.raises(ow.errors.AlreadyExistsError, match=r"Atan: (.|\n)*found(.|\n)*another in"):
        registry.add(fake)
    assert ow.ops.get("Atan") is atan
    assert define("LintAtan") is ow.ops.get("LintAtan") is not second


# ---- the texts of errors --------------------------------------------------------------------------------------------


@each_row("path", SOURCES)
def test_every_error_reports_what_was_found_or_wanted(path: Path) -> None:
    assert definition_lint.lint_errors(path.read_text("utf-8"), path.name) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("raise InvalidArgumentError()", "has no text"),
        ("raise InvalidArgumentError(what='')", "has no text"),
        ("raise errors.NotFoundError(what=' ')", "has no text"),
        ("raise ValueError()", "has no text"),
        ("raise TypeError('')", "has no text"),
        ("raise InvalidArgumentError(what='wrong')", "neither what was found"),
        ("raise InvalidArgumentError('wrong')", "neither what was found"),
        ("raise InvalidArgumentError(what='wrong', wanted='right')", None),
        ("raise InvalidArgumentError(what=f'{x} is wrong')", None),
        ("raise OutOfRangeError(what='End of sequence')", None),
        ("raise ValueError('wrong')", None),
        ("raise", None),
        ("raise error", None),
    ],
)
def test_the_lint_of_errors(source: str, words: str | None) -> None:
    result = definition_lint.lint_errors(source, "a.py")
    assert bool(result) == (words is not None)
    assert all(words in sentence and sentence.startswith("a.py:1: ") for sentence in result if words)


def test_no_error_of_ours_is_without_a_text() -> None:
    """Not even one raised with nothing."""
    classes = [ow.errors.OpError, *(getattr(ow.errors, n) for n in dir(ow.errors) if n.endswith("Error"))]
    for cls in classes:
        errors = [cls(), cls("")]
        if issubclass(cls, ow.errors.OpError):
            errors.append(cls(what=""))
        assert all(str(error).strip() for error in errors)

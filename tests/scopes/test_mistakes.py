"""Test common mistakes with scopes, instances and graphs: each raises an error of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opwright as ow

F = np.float32


def scope_of(**values: Any) -> ow.Scope:
    scope = ow.Scope()
    for name, value in values.items():
        scope.var(name).set(value)
    return scope


def add(x: Any = "a", y: Any = "b", z: Any = "c") -> ow.OpInstance:
    return ow.ops.get("Add").on({"x": x, "y": y}, {"z": z})


def graph() -> Any:
    return ow.function(lambda x: x + 1).get_concrete_function(ow.TensorSpec([2], ow.float32, "x")).graph


def run_with(value: Any) -> None:
    ow.run_graph(graph(), scope_of(x=value))


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a variable called as no variable": (lambda: ow.Scope().var("@EMPTY@"), "Scope.var.*@EMPTY@"),
    "a variable called as a temporary": (lambda: ow.Scope().var("@TEMP@"), "Scope.var.*@TEMP@"),
    "renamed to nothing": (lambda: scope_of(a=1.0).rename("a", ""), "Scope.rename.*found +''"),
    "a dict for a scope": (lambda: add().run({"a": 1.0}), "found +dict.*wanted +a Scope"),
    "a dict for a scope, explained": (lambda: add().explain({}), "found +dict.*wanted +a Scope"),
    "a dict for a scope, a graph": (lambda: ow.run_graph(graph(), {}), "found +dict.*wanted +a Scope"),
    "no graph": (lambda: ow.run_graph(print, ow.Scope()), "not a graph.*wanted +a Graph"),
    "gradients of no graph": (
        lambda: ow.append_backward(ow.function(abs), "x"),
        "not a graph.*found +Function.*a Graph",
    ),
    "a loss of another graph": (lambda: ow.append_backward(graph(), graph().outputs[0]), "of another graph"),
    "an object for a tensor": (lambda: add().run(scope_of(a={}, b=F(1))), "Add.*'x'.*'a' with an object: dict"),
    "a Variable for a tensor": (lambda: add().run(scope_of(a=ow.Variable(F(1)), b=F(1))), "Add.*try +scope.var.'a'"),
    "a list for a tensor": (lambda: add().run(scope_of(a=[F([1])] * 2, b=F([1]))), "Add.*'x' takes one.*list of 2"),
    "no operator of that name": (lambda: ow.OpInstance("Addd"), "^no operator is named 'Addd'; did you mean Add"),
    "no operator": (lambda: ow.OpInstance(3), "not an operator.*found +3 .int."),
    "no operator, explained": (lambda: ow.ops.explain(None, []), "not an operator.*found +None"),
    "a number for a name": (lambda: ow.ops.get(3), "found by name.*found +int"),
    "attributes in a list": (lambda: ow.OpInstance("Add", {}, {}, [1]), "attributes are not a mapping.*found +list"),
    "no tensor, explained": (lambda: ow.ops.explain("Add", [object(), 1.0]), "Add: input 'x' is not a tensor.*object"),
    "one variable for two outputs": (
        lambda: ow.ops.get("Unique").on({"x": "a"}, {"y": "q", "idx": "q"}),
        "Unique: variable 'q' is given for two outputs.*y: q, idx: q",
    ),
    "another dtype than the graph's": (lambda: run_with(np.ones(2)), r"input 'x'.*f64\[2\].*wanted +f32\[2\]"),
    "another shape than the graph's": (lambda: run_with(F([1, 2, 3])), r"run_graph: input 'x'.*f32\[3\].*f32\[2\]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_with_words(mistake: str) -> None:
    make, words = MISTAKES[mistake]
    with pytest.raises(ow.errors.OpError, match=f"(?s){words}"):
        make()

"""Generated programs of nested control flow: what both interpreters give is what the program gives eagerly.

A program is Python source over float vectors `a`, `b`, `c` and the int32 `n`, made of assignments, if/elif/else, while
and for with break and continue, early returns and TensorArrays; it is traced by AutoGraph as a user's would be.
"""

from __future__ import annotations

import importlib.util
import itertools
import pathlib
import sys
from types import ModuleType

import numpy as np
import pytest
from convert_harness import assert_same, case, converter, eager, official, ours
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thorough import examples

NAMES = ("a", "b", "c")
FORMULAS = (
    "{x} + {y}",
    "{x} * 0.5 - {y}",
    "ow.maximum({x}, {y})",
    "-{x}",
    "ow.tanh({x}) + 0.25",
    "{y}",
    "ow.reverse({x}, [0])",
    "ow.matmul({x}[None], W)[0] * 0.5",
    "ow.where({x} > {y}, {x}, {y} * 0.5)",
    "ow.cumsum({x}) * 0.1",
    "ow.constant([1.0, 2.0, 3.0])",
)
TESTS = ("ow.reduce_sum({x}) > {k}", "n > {k}", "{x}[0] < {y}[1]", "n % 2 == 0", "ow.reduce_any({x} > 1.0)")

name = st.sampled_from(NAMES)
assign = st.tuples(st.just("assign"), name, st.sampled_from(FORMULAS), name, name)
condition = st.tuples(st.sampled_from(TESTS), name, name, st.integers(-2, 4))


def _compound(inner: st.SearchStrategy) -> st.SearchStrategy:
    block = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("if"), condition, block, block),
        st.tuples(st.just("for"), st.integers(0, 4), block),
        st.tuples(st.just("for_n"), block),
        st.tuples(st.just("while"), st.integers(0, 4), block),
        st.tuples(st.just("leave"), st.sampled_from(("break", "continue")), condition, block, block),
        st.tuples(st.just("list"), st.integers(1, 4), name, name, block),
        st.tuples(st.just("map"), name, name),
    )


statement = st.recursive(assign, _compound, max_leaves=8)
program = st.lists(statement, min_size=1, max_size=4)
fresh = itertools.count()


def _condition(given_condition: tuple) -> str:
    text, x, y, k = given_condition
    return text.format(x=x, y=y, k=k)


def _lines(block: list, depth: int, numbers: itertools.count) -> list[str]:
    pad, out = "    " * depth, []
    for kind, *parts in block:
        i = next(numbers)
        if kind == "assign":
            to, formula, x, y = parts
            out.append(f"{pad}{to} = {formula.format(x=x, y=y)}")
        elif kind == "if":
            test, yes, no = parts
            out += [
                f"{pad}if {_condition(test)}:",
                *_lines(yes, depth + 1, numbers),
                f"{pad}else:",
                *_lines(no, depth + 1, numbers),
            ]
        elif kind in ("for", "for_n"):
            turns = parts[0] if kind == "for" else "n"
            out += [f"{pad}for i{i} in ow.range({turns}):", *_lines(parts[-1], depth + 1, numbers)]
        elif kind == "while":
            limit, inner = parts
            out += [
                f"{pad}i{i} = ow.constant(0)",
                f"{pad}while i{i} < {limit} and ow.reduce_max(a) < 50.0:",
                *_lines(inner, depth + 1, numbers),
                f"{pad}    i{i} += 1",
            ]
        elif kind == "leave":
            word, test, first, rest = parts
            out += [
                f"{pad}for i{i} in ow.range(3):",
                *_lines(first, depth + 1, numbers),
                f"{pad}    if {_condition(test)}:",
                f"{pad}        {word}",
                *_lines(rest, depth + 1, numbers),
            ]
        elif kind == "list":
            turns, x, to, inner = parts
            out += [
                f"{pad}t{i} = ow.TensorArray(ow.float32, size={turns}, element_shape=(3,))",
                f"{pad}for i{i} in ow.range({turns}):",
                *_lines(inner, depth + 1, numbers),
                f"{pad}    t{i} = t{i}.write(i{i}, {x})",
                f"{pad}{to} = ow.reduce_sum(t{i}.stack(), 0) * 0.5",
            ]
        else:
            x, y = parts
            out.append(f"{pad}{x} = ow.map_fn(lambda e, {y}={y}: e * 0.5 + ow.reduce_sum({y}) * 0.1, {x})")
    return out


def source(block: list) -> str:
    body = "\n".join(_lines(block, 1, itertools.count()))
    weights = "W = ow.constant(np.eye(3, dtype=np.float32)[::-1] * 0.5)"
    return (
        f"import numpy as np\nimport opwright as ow\n\n{weights}\n\n\n"
        f"def program(a, b, n):\n    c = a - b\n{body}\n    return a, b, c\n"
    )


def _module(text: str, folder: pathlib.Path) -> ModuleType:
    """The program as a module of a file, which AutoGraph can read."""
    label = f"generated_program_{next(fresh)}"
    path = folder / f"{label}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(label, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[label] = module
    spec.loader.exec_module(module)
    return module


A, B = np.array([0.5, -1.0, 2.0], np.float32), np.array([1.5, 0.25, -0.75], np.float32)


def check(block: list, n: int, folder: pathlib.Path, open: bool) -> None:
    text = source(block)
    module = _module(text, folder)
    try:
        row = case("program", module.program, A, B, np.int32(n), open={0: (0,), 1: (0,)} if open else {})
        content = converter(row.concrete()).convert()
        expected = eager(row)
        assert_same(ours(content, row.inputs), expected, 1e-5)
        assert_same(official(content, row.inputs), expected, 1e-5)
    finally:
        sys.modules.pop(module.__name__)


@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(block=program, n=st.integers(0, 4))
def test_generated_programs(block: list, n: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    check(block, n, tmp_path_factory.getbasetemp(), False)


@pytest.mark.slow
@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(block=program, n=st.integers(0, 4))
def test_many_generated_programs(block: list, n: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    check(block, n, tmp_path_factory.getbasetemp(), False)

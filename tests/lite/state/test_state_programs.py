"""Any program of reads and writes, in straight lines, branches and loops: both interpreters give what Python does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from state_harness import answers, assert_equal, converted, official, ours

import opwright as ow
from thorough import examples

NUMBERS = st.integers(-3, 3)
WHICH = st.integers(0, 2)
SIMPLE = st.one_of(
    st.tuples(st.just("set"), WHICH, NUMBERS),
    st.tuples(st.just("add"), WHICH, WHICH),
    st.tuples(st.just("sub"), WHICH, NUMBERS),
    st.tuples(st.just("read"), WHICH, WHICH),
)
BLOCK = st.lists(SIMPLE, max_size=3)
STATEMENT = st.one_of(SIMPLE, st.tuples(st.just("if"), BLOCK, BLOCK), st.tuples(st.just("while"), NUMBERS, BLOCK))
PROGRAM = st.lists(STATEMENT, min_size=1, max_size=5)


def traced(program: Any, variables: list[Any]) -> Any:
    """The program as a function of x that gives all it read."""

    def run(x: Any) -> Any:
        seen: list[Any] = []

        def simple(kind: str, i: int, other: int) -> None:
            v = variables[i]
            if kind == "set":
                v.assign(x * float(other))
            elif kind == "add":
                v.assign_add(variables[other])
            elif kind == "sub":
                v.assign_sub(float(other))
            else:
                seen.append(v.read_value() * variables[other])

        def block(statements: Any) -> Any:
            for statement in statements:
                if statement[0] != "read":
                    simple(*statement)
            return ow.constant(0)

        for statement in program:
            if statement[0] == "if":
                ow.cond(x > 0.0, lambda s=statement: block(s[1]), lambda s=statement: block(s[2]))
            elif statement[0] == "while":
                turns = max(statement[1], 0)
                ow.while_loop(lambda i, n=turns: i < n, lambda i, s=statement: (i + 1 + block(s[2]),), [0])
            else:
                simple(*statement)
        return {"seen": ow.stack([*seen, *(v.read_value() for v in variables)])}

    return run


@settings(max_examples=examples(40))
@given(PROGRAM, PROGRAM, st.lists(st.tuples(st.booleans(), NUMBERS), min_size=1, max_size=4))
def test_programs(first: Any, second: Any, calls: Any) -> None:
    variables = [ow.Variable(float(i), name="v") for i in range(3)]
    functions = {"f": traced(first, variables), "g": traced(second, variables)}
    spec = ow.TensorSpec([], ow.float32, "x")
    concrete = []
    for name, function in functions.items():
        function.__name__ = name
        concrete.append(ow.function(function, autograph=False).get_concrete_function(spec))
    content = converted(*concrete)
    series = [("g" if other else "f", {"x": np.float32(x)}) for other, x in calls]
    expected = [{"seen": np.asarray(functions[name](ow.constant(g["x"]))["seen"].numpy())} for name, g in series]
    assert_equal(answers(ours(content), series), expected)
    assert_equal(answers(official(content), series), expected)

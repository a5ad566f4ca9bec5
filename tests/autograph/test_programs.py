"""Generated programs - nests of if, while, for, break, continue, return over a few variables - mean in a graph what
they mean in Python."""

import itertools
import linecache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opwright as ow
from thorough import examples

NAMES = ("a", "b", "c")
_number = itertools.count()


@st.composite
def expressions(draw):
    kind = draw(st.integers(0, 4))
    name = st.sampled_from(NAMES)
    if kind == 0:
        return str(draw(st.integers(-3, 3)))
    if kind == 1:
        return draw(name)
    if kind == 4:
        return f"({draw(name)} if {draw(conditions())} else {draw(name)} - 1)"
    return f"{draw(name)} {draw(st.sampled_from(['+', '-']))} {draw(st.one_of(name, st.integers(0, 3).map(str)))}"


@st.composite
def conditions(draw):
    name = st.sampled_from(NAMES)
    sign = st.sampled_from(["<", ">", "==", "!=", "<="])
    one = f"{draw(name)} {draw(sign)} {draw(st.one_of(name, st.integers(-2, 4).map(str)))}"
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return f"{one} and {draw(name)} {draw(sign)} {draw(name)}"
    if kind == 1:
        return f"{one} or {draw(name)} > 1"
    if kind == 2:
        return f"not {one}"
    if kind == 3:
        return f"{draw(st.integers(-2, 1))} < {draw(name)} <= {draw(st.integers(2, 5))}"
    return one


@st.composite
def blocks(draw, depth, loop):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = ["assign", "assign", "augment"]
        if depth:
            kinds += ["if", "if", "for", "while"]
        if loop:
            kinds += ["break", "continue"]
        kinds.append("return")
        kind = draw(st.sampled_from(kinds))
        name = draw(st.sampled_from(NAMES))
        if kind == "assign":
            lines.append(f"{name} = {draw(expressions())}")
        elif kind == "augment":
            lines.append(f"{name} += {draw(expressions())}")
        elif kind == "if":
            lines.append(f"if {draw(conditions())}:")
            lines += ["    " + x for x in draw(blocks(depth - 1, loop))]
            if draw(st.booleans()):
                lines.append("else:")
                lines += ["    " + x for x in draw(blocks(depth - 1, loop))]
        elif kind in ("for", "while"):
            k = next(_number)
            if kind == "for":
                limit = draw(st.sampled_from(["n", "m", "3"]))
                lines.append(f"for i{k} in range({limit}):")
                lines.append(f"    a += i{k}")
            else:
                lines.append(f"w{k} = {draw(st.sampled_from(['n', 'm', 'n - n + 2']))}")
                lines.append(f"while w{k} > 0 and ({draw(conditions())}):")
                lines.append(f"    w{k} -= 1")
            lines += ["    " + x for x in draw(blocks(depth - 1, True))]
            if draw(st.integers(0, 3)) == 0:
                lines.append("else:")
                lines += ["    " + x for x in draw(blocks(depth - 1, loop))]
        elif kind == "return":
            lines.append(f"return a, {draw(expressions())}")
            break
        else:
            lines.append(kind)
            break
    return lines


@st.composite
def programs(draw):
    body = ["a, b, c = 0, n, m", *draw(blocks(3, False)), "return a, b - c"]
    return "def program(n, m):\n" + "".join(f"    {line}\n" for line in body)


def made(source):
    filename = f"<program {next(_number)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["program"], filename


def check(source, n, m):
    program, filename = made(source)
    try:
        expected = list(program(n, m))
        plainly = list(ow.autograph.to_graph(program)(n, m))
        traced = ow.function(program)(ow.constant(n), ow.constant(m))
    finally:
        del linecache.cache[filename]
    assert plainly == expected
    assert [int(x) for x in traced] == expected


SETTINGS = {"suppress_health_check": list(HealthCheck), "deadline": None}


@settings(max_examples=examples(40), **SETTINGS)
@given(programs(), st.integers(0, 3), st.integers(0, 3))
def test_generated_programs(source, n, m):
    check(source, n, m)


@pytest.mark.slow
@settings(max_examples=3000, **SETTINGS)
@given(programs(), st.integers(0, 4), st.integers(0, 4))
def test_many_generated_programs(source, n, m):
    check(source, n, m)

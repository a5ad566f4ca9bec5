"""Effects of generated programs - variables, prints, Python called back, assertions, iterators, random numbers - happen
in a graph in the order in which Python's own turns and branches have them."""

import io
import itertools
import linecache
from contextlib import redirect_stderr

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opwright as ow
from thorough import examples

_number = itertools.count()
LOG = []
v, w = ow.Variable(0), ow.Variable(0)


def noted(x):
    LOG.append(("called", int(x), int(v.numpy()), int(w.numpy())))
    return x + 1


NAMES = {"tf": ow, "v": v, "w": w, "noted": noted}

VALUES = st.sampled_from(["v", "w", "v + w", "n", "v - 2", "w * 2 - v", "k", "1", "v.read_value()"])
CONDITIONS = st.sampled_from(["v > w", "w < 3", "k > 2", "v + w < 4 and n > 0", "n > 1", "not v == 2", "1 < w <= 5"])
TURNS = ["tf.range(n)", "tf.range(2)", "range(2)", "tf.data.Dataset.range(3)", "tf.data.Dataset.range(n64).map(taken)"]


@st.composite
def effects(draw):
    kind = draw(st.integers(0, 8))
    value = draw(VALUES)
    if kind <= 2:
        return f"{draw(st.sampled_from('vw'))}.assign{draw(st.sampled_from(['', '_add', '_sub']))}(({value}) % 7)"
    if kind == 3:
        return f"tf.print('at', v, {value}, w)"
    if kind == 4:
        return f"k = tf.py_function(noted, [{value}], tf.int32); k.set_shape([])"
    if kind == 5:
        return f"tf.debugging.assert_less({value}, 8 + 20 * (1 - n % 2))"
    if kind == 6:
        return "k += tf.cast(next(it), tf.int32)"
    if kind == 7:
        return "k += random.uniform([], maxval=5, dtype=tf.int32)"
    return f"k = tf.cond({draw(CONDITIONS)}, lambda: v.assign_add(1) + 0, lambda: tf.identity({value}))"


@st.composite
def blocks(draw, depth, loop):
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        kinds = ["effect"] * 4 + (["if", "for", "while"] if depth else []) + (["break", "continue"] if loop else [])
        kind = draw(st.sampled_from([*kinds, "return"]))
        if kind == "effect":
            lines.append(draw(effects()))
        elif kind == "if":
            lines += [f"if {draw(CONDITIONS)}:", *("    " + x for x in draw(blocks(depth - 1, loop)))]
            if draw(st.booleans()):
                lines += ["else:", *("    " + x for x in draw(blocks(depth - 1, loop)))]
        elif kind == "for":
            lines += [f"for _ in {draw(st.sampled_from(TURNS))}:", *("    " + x for x in draw(blocks(depth - 1, True)))]
        elif kind == "while":
            t = f"t{next(_number)}"
            lines += [f"{t} = n", f"while {t} > 0 and ({draw(CONDITIONS)}):", f"    {t} -= 1"]
            lines += ["    " + x for x in draw(blocks(depth - 1, True))]
        elif kind == "return":
            lines.append(f"return k + {draw(VALUES)}")
            break
        else:
            lines.append(kind)
            break
    return lines


@st.composite
def programs(draw):
    body = ["k = n + 0", "n64 = tf.cast(n, tf.int64)", *draw(blocks(3, False)), "return k + v"]
    return "def program(n, it, random):\n" + "".join(f"    {line}\n" for line in body)


def ran(function, n):
    """All that a run leaves behind: what it wrote and called, its error, its result, the variables, the iterator."""
    LOG.clear()
    v.assign(0)
    w.assign(1)
    iterator = iter(ow.data.Dataset.range(100))
    random = ow.random.Generator.from_seed(3)
    written = io.StringIO()
    with redirect_stderr(written):
        try:
            result = int(function(ow.constant(n), iterator, random))
        except ow.errors.InvalidArgumentError:
            result = "assertion failed"
    return (
        [*LOG],
        written.getvalue(),
        result,
        int(v.numpy()),
        int(w.numpy()),
        int(next(iterator)),
        int(random.uniform([], maxval=100, dtype=ow.int32)),
    )


def check(source, n):
    filename = f"<effects {next(_number)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {**NAMES, "taken": lambda x: x * 2}
    exec(compile(source, filename, "exec"), namespace)
    try:
        program = namespace["program"]
        expected = ran(program, n)
        traced = ow.function(program)
        assert ran(traced, n) == expected
        assert ran(traced, n) == expected  # the second call records nothing
        assert ran(ow.function(lambda *args: traced(*args)), n) == expected
        with ow.GradientTape():
            assert ran(traced, n) == expected
    finally:
        del linecache.cache[filename]


SETTINGS = {"suppress_health_check": list(HealthCheck), "deadline": None}


@settings(max_examples=examples(20), **SETTINGS)
@given(programs(), st.integers(0, 3))
def test_effects_of_generated_programs(source, n):
    check(source, n)


@pytest.mark.slow
@settings(max_examples=600, **SETTINGS)
@given(programs(), st.integers(0, 3))
def test_effects_of_many_generated_programs(source, n):
    check(source, n)

"""Each rule of the passes: a program where it fires, one where it must not, and that nothing changes to the last bit.

Lives here: rules on catalogue operators and control flow.  Not here: the passes as such (test_graph_passes.py).
"""

from __future__ import annotations

from collections import Counter

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.compiler.plan import Plan
from opwright.core import flags
from opwright.graph import Graph, parse, same, text
from opwright.graph.ir import same_attr
from opwright.graph.passes import RULES, SIMPLIFY, UNUSED, run_passes
from opwright.graph.passes.control_flow import BRANCHES
from opwright.graph.passes.identities import ARITHMETIC, SHAPES
from opwright.ops import registry
from thorough import examples

EDGES = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, -np.nan, 1e-45, 3.0]
F, F64, F16 = np.float32(EDGES), np.float64(EDGES), np.float16(EDGES)
BF = np.array(EDGES).astype(ml_dtypes.bfloat16)
I = np.int32([0, 1, -1, 7, -(2**31), 2**31 - 1])
U = np.uint8([0, 1, 128, 255])
B = np.array([True, False])
C = np.array([complex(a, b) for a in EDGES for b in EDGES], np.complex64)
M = np.arange(6, dtype=np.float32).reshape(2, 3)
S = np.array([b"a", b" B "], object)
k = ow.constant


def traced(function, arrays, shapes="known"):
    """The graph as it was recorded, and after all passes; both run on the arrays."""
    specs = [
        ow.TensorSpec(
            a.shape if shapes == "known" else [None] * a.ndim if shapes == "sizes" else None,
            ow.string if a.dtype == object else a.dtype,
        )
        for a in arrays
    ]
    concrete = ow.function(function, autograph=False).get_concrete_function(*specs)
    program = concrete.program
    builder = program.trace.builder
    raw = Graph(builder.name, program.graph.inputs, builder.nodes, [o.value_in_graph for o in program.outputs])
    with flags.override(verify=True):
        return run_passes(raw, UNUSED), run_passes(raw)


def names(graph):
    return Counter(n.op.name for n in graph.nodes if n.op.name not in ("Const", "Identity"))


def results(graph, arrays):
    return [np.asarray(a) for a in ow.ops.dispatch.quietly(Plan(graph).run, *arrays)]


def fires(function, arrays, shapes):
    """Whether passes leave fewer operators; checks that the answer is the same to the last bit."""
    raw, after = traced(function, arrays, shapes)
    assert all(map(same_attr, results(raw, arrays), results(after, arrays)))
    assert same(parse(text(after), registry.get), after)
    return names(after).total() < names(raw).total()


# rule: programs where it fires, then programs where it must not; each with its arguments and, where not all sizes are
# known, "sizes" (the rank is) or "nothing"
ROWS = {
    "fold_constants": ([(lambda x: x * ow.exp(k(0.5)), [F])], [(lambda x: ow.exp(x), [F])]),
    "common_subexpression": ([(lambda x: (ow.sin(x), ow.sin(x)), [F])], [(lambda x: (ow.sin(x), ow.cos(x)), [F])]),
    "add_zero": (
        [
            (lambda x: x + -0.0, [F]),
            (lambda x: x + k(-0.0, ow.bfloat16), [BF]),
            (lambda x: x + 0, [I]),
            (lambda x: k(0) + x, [I], "nothing"),
            (lambda x: x + k([-0.0] * 10), [F]),
        ],
        [
            (lambda x: x + 0.0, [F]),
            (lambda x: x + k([[-0.0]]), [F]),
            (lambda x: x + k([-0.0]), [F], "nothing"),
            (lambda x: x + k([0, 0, 0, 0, 0, 1]), [I]),
        ],
    ),
    "subtract_zero": (
        [(lambda x: x - 0.0, [F]), (lambda x: x - 0, [U])],
        [(lambda x: x - -0.0, [F]), (lambda x: 0.0 - x, [F]), (lambda x: x - 1, [I])],
    ),
    "multiply_by_one": (
        [
            (lambda x: x * 1.0, [F]),
            (lambda x: k(1.0, ow.float16) * x, [F16]),
            (lambda x: x * 1, [I], "nothing"),
            (lambda x: x * k([[1.0]]), [M], "sizes"),
        ],
        [(lambda x: x * k(1.0, ow.complex64), [C]), (lambda x: x * k([[1.0]]), [F]), (lambda x: x * -1.0, [F])],
    ),
    "divide_by_one": (
        [(lambda x: x / 1.0, [F])],
        [(lambda x: 1.0 / x, [F]), (lambda x: x / k(1.0, ow.complex64), [C])],
    ),
    "divide_integers_by_one": (
        [(lambda x: x // 1, [I]), (lambda x: ow.truncatediv(x, 1), [I])],
        [(lambda x: x // 1.0, [F]), (lambda x: x // 2, [I])],
    ),
    "power_of_one": (
        [(lambda x: x**1.0, [F64]), (lambda x: x**1, [I])],
        [(lambda x: x**2.0, [F]), (lambda x: 1.0**x, [F])],
    ),
    "multiply_integers_by_zero": (
        [(lambda x: x * 0, [I]), (lambda x: ow.abs(x) * 0, [I])],
        [(lambda x: x * 0.0, [F]), (lambda x: x * 0, [I], "sizes")],
    ),
    "neutral_truth": (
        [(lambda x: x & True, [B]), (lambda x: ow.logical_or(False, x), [B], "nothing")],
        [(lambda x: x & False, [B]), (lambda x: x | True, [B])],
    ),
    "twice": (
        [
            (lambda x: ow.negative(-x), [F]),
            (lambda x: ow.negative(-x), [I]),
            (lambda x: ow.negative(-x), [C]),
            (lambda x: ~(~x), [B], "nothing"),
            (lambda x: ow.bitwise.invert(ow.bitwise.invert(x)), [U]),
            (lambda x: ow.math.conj(ow.math.conj(x)), [C]),
        ],
        [(lambda x: 1.0 / (1.0 / x), [F]), (lambda x: ow.bitwise.invert(-x), [I])],
    ),
    "once_is_enough": (
        [
            (lambda x: ow.abs(ow.abs(x)), [F]),
            (lambda x: ow.floor(ow.floor(x)), [F], "nothing"),
            (lambda x: ow.nn.relu(ow.nn.relu(x)), [F]),
            (lambda x: ow.sign(ow.sign(x)), [F]),
            (lambda x: ow.round(ow.round(x)), [F64]),
            (lambda x: ow.strings.lower(ow.strings.lower(x)), [S]),
        ],
        [
            (lambda x: ow.sqrt(ow.sqrt(x)), [F]),
            (lambda x: ow.sign(ow.sign(x)), [C]),
            (lambda x: ow.strings.lower(ow.strings.lower(x), encoding="utf-8"), [S]),
        ],
    ),
    "with_itself": (
        [(lambda x: ow.maximum(x, x), [F]), (lambda x: x & x, [B]), (lambda x: ow.bitwise.bitwise_or(x, x), [I])],
        [(lambda x: x - x, [F]), (lambda x: ow.maximum(x, -x), [F])],
    ),
    "absolute_of_negative": ([(lambda x: ow.abs(-x), [F]), (lambda x: ow.abs(-x), [I])], [(lambda x: -ow.abs(x), [F])]),
    "select_known": (
        [(lambda x, y: ow.where(True, x, y), [F, F[::-1].copy()]), (lambda x, y: ow.where([False] * 10, x, y), [F, F])],
        [
            (lambda x: ow.where([True, False], x, 0.0), [np.float32([1, 2])]),
            (lambda x: ow.where([[True]], x, x * x), [F]),
        ],
    ),
    "select_either": (
        [(lambda c, x: ow.where(c, x, x), [B, np.float32([1, np.nan])])],
        [(lambda c, x: ow.where(c[:, None], x, x), [B, np.float32([1, 2])])],
    ),
    "cast_to_the_same": (
        [(lambda x: registry.get("Cast")(x, dtype="float32"), [F], "nothing")],
        [(lambda x: ow.cast(x, "float64"), [F])],
    ),
    "cast_there_and_back": (
        [
            (lambda x: ow.cast(ow.cast(x, "float64"), "float32"), [F]),
            (lambda x: ow.cast(ow.cast(x, "int32"), "bool"), [B]),
            (lambda x: ow.cast(ow.cast(x, "float32"), "bfloat16"), [BF]),
            (lambda x: ow.cast(ow.cast(x, "float64"), "int32"), [I]),
        ],
        [
            (lambda x: ow.cast(ow.cast(x, "float32"), "int32"), [np.int32([1, 2])]),
            (lambda x: ow.cast(ow.cast(x, "float16"), "float32"), [F]),
            (lambda x: ow.cast(ow.cast(x, "int32"), "float32"), [M]),
            (lambda x: ow.cast(ow.cast(x, "float32"), "uint8"), [B]),
        ],
    ),
    "sum_of_one": ([(lambda x: registry.get("AddN")([x]), [F])], [(lambda x: ow.add_n([x, x]), [F])]),
    "known_shape": (
        [
            (lambda x: registry.get("Shape")(x, out_type="int64"), [M]),
            (lambda x: registry.get("Rank")(x), [M], "sizes"),
            (lambda x: registry.get("Size")(x), [M]),
        ],
        [
            (lambda x: ow.shape(x), [M], "sizes"),
            (lambda x: ow.size(x), [M], "sizes"),
            (lambda x: ow.rank(x), [M], "nothing"),
        ],
    ),
    "there_and_back": (
        [
            (lambda x: ow.reshape(ow.reshape(x, [6]), [2, 3]), [M]),
            (lambda x: ow.reshape(x, [2, -1]), [M]),
            (lambda x: ow.reshape(ow.reshape(x, [6]), [3, 2]), [M]),
            (lambda x: ow.reshape(ow.expand_dims(x, 1), [2, 3]), [M]),
            (lambda x: ow.squeeze(ow.expand_dims(x, 0), [0]), [M]),
        ],
        [(lambda x: ow.reshape(x, [3, 2]), [M]), (lambda x: ow.reshape(ow.reshape(x, [6]), [2, 3]), [M], "sizes")],
    ),
    "expand_and_squeeze": (
        [
            (lambda x: ow.squeeze(ow.expand_dims(x, 1), [1]), [M], "sizes"),
            (lambda x: ow.squeeze(ow.expand_dims(x, -1), [2]), [M], "sizes"),
        ],
        [
            (lambda x: ow.squeeze(ow.expand_dims(x, 1), [0]), [M[:1]], "sizes"),
            (lambda x: ow.squeeze(ow.expand_dims(x, 1)), [M], "sizes"),
        ],
    ),
    "transpose": (
        [
            (lambda x: ow.transpose(ow.transpose(x)), [M], "sizes"),
            (lambda x: ow.transpose(x, [0, 1]), [M], "sizes"),
            (lambda x: ow.transpose(ow.transpose(x[None], [1, 2, 0]), [1, 2, 0]), [M]),
        ],
        [(lambda x: ow.transpose(x), [M]), (lambda x: ow.transpose(ow.transpose(x)), [M], "nothing")],
    ),
    "same_shape": (
        [
            (lambda x: ow.broadcast_to(x, [2, 3]), [M]),
            (lambda x: ow.slice(x, [0, 0], [2, -1]), [M]),
            (lambda x: registry.get("SumToLike")(x, ow.sin(x)), [M]),
            (lambda x: ow.ensure_shape(x, [2, None]), [M]),
        ],
        [
            (lambda x: ow.broadcast_to(x, [2, 2, 3]), [M]),
            (lambda x: ow.slice(x, [0, 0], [1, -1]), [M]),
            (lambda x: ow.ensure_shape(x, [2, 3]), [M], "sizes"),
        ],
    ),
    "slice_of_everything": (
        [(lambda x: x[:, :], [M]), (lambda x: x[0:2], [M]), (lambda x: x[...], [M])],
        [
            (lambda x: x[::-1], [M]),
            (lambda x: x[None, 0], [M[:1]]),
            (lambda x: x[:2], [M], "sizes"),
            (lambda x: x[:1], [M]),
        ],
    ),
    "one_part": (
        [(lambda x: ow.concat([x], 0), [M], "nothing"), (lambda x: ow.split(x, 1), [M])],
        [(lambda x: ow.concat([x, x], 0), [M]), (lambda x: ow.split(x, 2), [M]), (lambda x: ow.stack([x]), [M])],
    ),
    "no_axes": (
        [
            (lambda x: ow.reduce_sum(x, []), [I]),
            (lambda x: ow.reduce_max(x, []), [F]),
            (lambda x: ow.reverse(x, []), [F]),
            (lambda x: ow.reduce_all(x, []), [B], "nothing"),
            (lambda x: ow.reduce_prod(x, []), [I]),
        ],
        [
            (lambda x: ow.reduce_sum(x), [F]),
            (lambda x: ow.reduce_sum(x, []), [F]),
            (lambda x: ow.reduce_sum(x, [0]), [np.float32([-0.0])]),
        ],
    ),
    "tile_once": ([(lambda x: ow.tile(x, [1, 1]), [M], "sizes")], [(lambda x: ow.tile(x, [1, 2]), [M])]),
    "pad_with_nothing": (
        [
            (lambda x: ow.pad(x, [[0, 0], [0, 0]]), [M], "sizes"),
            (lambda x: ow.pad(x, [[0, 0], [0, 0]], mode="REFLECT"), [M]),
        ],
        [(lambda x: ow.pad(x, [[0, 0], [0, 1]]), [M])],
    ),
    "roll_by_nothing": (
        [(lambda x: ow.roll(x, [0], [1]), [M])],
        [(lambda x: registry.get("Roll")(x, k([1]), axis=[1]), [M])],
    ),
    "unpack_of_pack": (
        [
            (lambda x: ow.unstack(ow.stack([x, x + 1.0])), [M], "sizes"),
            (lambda x: ow.unstack(ow.stack([x, x], -1), axis=2), [M]),
        ],
        [(lambda x: ow.unstack(ow.stack([x, x + 1.0]), axis=1), [M])],
    ),
}


def rows(which):
    result = []
    for rule, programs in ROWS.items():
        for i, row in enumerate(programs[which]):
            function, arrays, shapes = (*row, "known")[:3]
            result.append(pytest.param(function, arrays, shapes, id=f"{rule}-{i}"))
    return result


@pytest.mark.parametrize(("function", "arrays", "shapes"), rows(0))
def test_fires(function, arrays, shapes):
    assert fires(function, arrays, shapes)


@pytest.mark.parametrize(("function", "arrays", "shapes"), rows(1))
def test_leaves_alone(function, arrays, shapes):
    assert not fires(function, arrays, shapes)


def test_every_rule_has_rows():
    assert {r.name for r in RULES} == set(ROWS) | {r.name for r in BRANCHES}
    assert all(r.why for r in RULES)
    assert set(ARITHMETIC) | set(SHAPES) <= set(RULES)


def test_operators_that_rules_name_exist():
    for rule in RULES:
        for name in rule.ops.split():
            assert registry.get(name).name == name


# ---- random programs ------------------------------------------------------------------------------------------------

UNARY = [
    ow.abs,
    ow.negative,
    ow.floor,
    ow.sign,
    ow.nn.relu,
    ow.exp,
    lambda x: ow.reshape(x, [3, 2]),
    ow.sqrt,
    lambda x: ow.reshape(x, [2, 3]),
    lambda x: ow.transpose(ow.transpose(x)),
    lambda x: x + 0.0,
    lambda x: x - 0.0,
    lambda x: x * 1.0,
    lambda x: x * 0.0,
    lambda x: x / 1.0,
    lambda x: x**1.0,
    lambda x: x + -0.0,
    ow.identity,
    lambda x: ow.squeeze(ow.expand_dims(x, 0)),
    lambda x: ow.reduce_sum(x, []),
    lambda x: ow.concat([x], 0),
    lambda x: ow.cast(ow.cast(x, "float64"), "float32"),
    lambda x: ow.where(True, x, -x),
    lambda x: x[:, :],
    lambda x: ow.broadcast_to(x, ow.shape(x)),
    lambda x: ow.tile(x, [1, 1]),
]
BINARY = [ow.add, ow.subtract, ow.multiply, ow.maximum, ow.divide]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9), st.data())
def test_random_programs_mean_the_same(steps, data):
    """Bitwise, NaN included; and after the passes there is nothing more for them to do."""
    numbers = st.sampled_from([*EDGES, 2.5, -7.0])
    x = np.float32(data.draw(st.lists(numbers, min_size=6, max_size=6))).reshape(2, 3)

    def program(x):
        values = [x]
        for choice, a, b in steps:
            first, second = values[-1 - a % len(values)], values[-1 - b % len(values)]
            if choice % 3 == 0 and first.shape == second.shape:
                values.append(BINARY[choice % len(BINARY)](first, second))
            else:
                values.append(UNARY[choice % len(UNARY)](first))
        return values[-3:]

    raw, after = traced(program, [x])
    assert all(map(same_attr, results(raw, [x]), results(after, [x])))
    assert same(run_passes(after), after)


# ---- control flow ---------------------------------------------------------------------------------------------------


def check_control(function, arrays, shapes="known"):
    raw, after = traced(function, arrays, shapes)
    assert all(map(same_attr, results(raw, arrays), results(after, arrays)))
    assert same(parse(text(after), registry.get), after)
    return raw, after


def loop_of(graph):
    return next(n for n in graph.nodes if n.op.name == "While")


def test_a_known_branch_stands_in_place():
    def f(x):
        return ow.cond(k(1) < 2, lambda: ow.sin(x) + 1.0, lambda: ow.cos(x))

    after = check_control(f, [F])[1]
    assert names(after) == {"Sin": 1, "Add": 1}
    after = check_control(lambda x: ow.switch_case(k(7), [lambda: ow.sin(x), lambda: ow.cos(x)]), [F])[1]
    assert names(after) == {"Cos": 1}


def test_an_unknown_branch_stays():
    after = check_control(lambda x, p: ow.cond(p, lambda: ow.sin(x), lambda: ow.cos(x)), [F, np.array(True)])[1]
    assert names(after) == {"If": 1}


def test_branches_with_one_answer():
    after = check_control(lambda x, p: ow.cond(p, lambda: x, lambda: x), [F, np.array(True)])[1]
    assert not names(after)


def test_inside_branches_rules_apply():
    def f(x, p):
        return ow.cond(p, lambda: ow.sin(x * 1.0) + ow.sin(x), lambda: ow.exp(k(0.0)) * x)

    node = next(n for n in check_control(f, [F, np.array(True)])[1].nodes if n.op.name == "If")
    assert names(node.attrs["then_branch"]) == {"Sin": 1, "Add": 1}
    assert names(node.attrs["else_branch"]) == {}


def test_outputs_and_inputs_without_readers_go():
    def f(x, y, p):
        a, _ = ow.cond(p, lambda: (ow.sin(x), ow.cos(y)), lambda: (ow.exp(x), ow.tanh(y)))
        return a

    node = next(n for n in check_control(f, [F, F, np.array(True)])[1].nodes if n.op.name == "If")
    assert len(node.outputs) == 1
    assert len(node.inputs[1]) == 1
    assert names(node.attrs["then_branch"]) == {"Sin": 1}


def test_a_branch_that_writes_keeps_its_work(capfd):
    v = ow.Variable(0.0)

    @ow.function(autograph=False)
    def f(x, p):
        ow.cond(p, lambda: (v.assign_add(1.0), x)[1], lambda: x)
        return x

    f(k(1.0), k(True))
    f(k(1.0), k(False))
    assert v.numpy() == 1.0


def test_variables_without_readers_go():
    def f(x, n):
        def body(i, used, helper, unused):
            return i + 1, used + helper, helper * 0.5, unused + used

        return ow.while_loop(lambda i, *_: i < n, body, [0, x, x + 2.0, x])[1]

    raw, after = check_control(f, [F, np.int32(3)])
    assert len(loop_of(raw).outputs) == 4
    assert len(loop_of(after).outputs) == 3


def test_a_loop_that_does_not_run():
    after = check_control(lambda x: ow.while_loop(lambda i, x: i > 5, lambda i, x: (i + 1, x * x), [0, x])[1], [F])[1]
    assert not names(after)


def test_what_is_invariant_moves_out():
    def f(x, n):
        return ow.while_loop(lambda i, y: i < n * 2, lambda i, y: (i + 1, y + ow.exp(ow.sin(x))), [0, x])[1]

    after = check_control(f, [F, np.int32(3)])[1]
    loop = loop_of(after)
    assert names(loop.attrs["body"]) == {"Add": 2}
    assert names(loop.attrs["cond"]) == {"Less": 1}
    assert names(after) == {"While": 1, "Sin": 1, "Exp": 1, "Mul": 1}


def test_out_of_nested_loops_too():
    def f(x, n):
        def outer(i, y):
            return i + 1, ow.while_loop(lambda j, z: j < n, lambda j, z: (j + 1, z + ow.sin(x)), [0, y])[1]

        return ow.while_loop(lambda i, y: i < n, outer, [0, x])[1]

    assert names(check_control(f, [F, np.int32(3)])[1]) == {"While": 1, "Sin": 1}


@pytest.mark.parametrize("n", [0, 2])
def test_what_may_fail_stays_where_the_loop_may_not_run(n):
    def f(x, d, n):
        return ow.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + x // d), [0, x])[1]

    _, after = traced(f, [I, np.int32(0), np.int32(n)])
    assert "FloorDiv" in names(loop_of(after).attrs["body"])
    if n == 0:
        assert (results(after, [I, np.int32(0), np.int32(0)])[0] == I).all()


def test_what_may_fail_moves_where_the_loop_surely_runs():
    def f(x, d):
        return ow.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + x // d), [0, x])[1]

    assert "FloorDiv" in names(check_control(f, [I, np.int32(2)])[1])


def test_what_may_fail_stays_behind_an_effect():
    v = ow.Variable(0)

    @ow.function(autograph=False)
    def f(x, d):
        return ow.while_loop(lambda i, y: i < 3, lambda i, y: (i + v.assign_add(1) * 0 + 1, y + x // d), [0, x])[1]

    with pytest.raises(ow.errors.InvalidArgumentError):
        f(k([4]), k(0))
    assert v.numpy() == 1


def test_random_numbers_and_reads_stay_inside():
    v = ow.Variable([1.0])

    def f(n):
        def body(i, y):
            v.assign_add([1.0])
            return i + 1, y + v + ow.random.uniform([1])

        return ow.while_loop(lambda i, y: i < n, body, [0, k([0.0])])[1]

    program = ow.function(f, autograph=False).get_concrete_function(ow.TensorSpec([], ow.int32))
    inside = names(loop_of(program.graph).attrs["body"])
    assert inside["RandomUniform"] == inside["ReadVariable"] == 1


def test_gradients_of_simplified_loops():
    """Derivatives come from the recording, not from what the passes made of it."""

    @ow.function(autograph=False)
    def f(x, w):
        return ow.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * ow.sin(w) * 1.0), [0, x])[1]

    x, w = k(2.0), k(0.5)
    with ow.GradientTape() as tape:
        tape.watch([x, w])
        y = f(x, w)
    dx, dw = tape.gradient(y, [x, w])
    assert dx.numpy() == pytest.approx(np.sin(0.5) ** 3, rel=1e-6)
    assert dw.numpy() == pytest.approx(2 * 3 * np.sin(0.5) ** 2 * np.cos(0.5), rel=1e-6)


def test_functions_are_put_into_their_callers():
    inner = ow.function(lambda x: ow.sin(x) * 1.0)
    after = check_control(lambda x: inner(x) + inner(x), [F])[1]
    assert names(after) == {"Sin": 1, "Add": 1}


def test_the_passes_have_names():
    assert [name for name, _ in SIMPLIFY] == ["simplify", "prune", "hoist", "dead_code"]

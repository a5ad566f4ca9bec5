"""Results written into memory that dies: when, never when not, and with equal bits.

Lives here: the clauses of compiler/inplace.py one by one, every operator with `out=`, generated graphs.
Not here: rules for kernels (tests/ops/test_input_rules.py), how long values live (test_early_shapes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.compiler.inplace import LEAST_BYTES, own, own_like
from opwright.compiler.plan import Plan
from opwright.ops import registry
from thorough import examples

BIG = ow.TensorSpec([64, 512])  # 128 KiB
SMALL = ow.TensorSpec([4, 4])


def graph_of(function: Callable[..., Any], *specs: ow.TensorSpec) -> Any:
    return ow.function(function).get_concrete_function(*specs).graph


def big(seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 2.0, (64, 512)).astype(dtype)


def same_bits(plans: list[Plan], *inputs: Any) -> None:
    before = [np.array(x, copy=True) for x in inputs]
    first, second = (plan.run(*inputs) for plan in plans)
    for a, b in zip(first, second, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        assert np.asarray(a).strides == np.asarray(b).strides
    for x, was in zip(inputs, before):
        assert np.asarray(x).tobytes() == was.tobytes()


def both(graph: Any) -> list[Plan]:
    return [Plan(graph, inplace=True), Plan(graph, inplace=False)]


def test_a_chain_uses_one_buffer() -> None:
    def chain(x: Any, y: Any) -> Any:
        t = x + y
        for _ in range(5):
            t = ow.tanh(t) * y
        return t

    on, off = both(graph_of(chain, BIG, BIG))
    assert (on.reused, off.reused) == (10, 0)
    same_bits([on, off], big(0), big(1))


def test_the_switch() -> None:
    graph = graph_of(lambda x: ow.exp(x * 2.0), BIG)
    assert Plan(graph).reused == 1
    with ow.flags(inplace=False):
        assert Plan(graph).reused == 0
    assert Plan(graph, check_inputs=True).reused == 0  # wrapped kernels get nothing to write into


# ---- one for each clause, each in its legal form first --------------------------------------------------------------

ILLEGAL: dict[str, tuple[Callable[..., Any], list[ow.TensorSpec]]] = {
    # the input has one last reader and it is this node
    "read again later": (lambda x: ow.stack([t := x * 2.0, ow.exp(t)]), [BIG]),
    "is an output too": (lambda x: (t := x * 2.0, ow.exp(t)), [BIG]),
    # it occurs once among the inputs, under whatever name
    "occurs twice": (lambda x: (t := x * 2.0) * t, [BIG]),
    "occurs twice by another name": (lambda x: (t := x * 2.0) * ow.identity(t), [BIG]),
    "lives on under another name": (lambda x: (ow.identity(t := x * 2.0), ow.exp(t)), [BIG]),
    # no argument, no constant
    "an argument": (lambda x: ow.exp(x), [BIG]),
    "an argument by another name": (lambda x: ow.exp(ow.identity(x)), [BIG]),
    "a constant": (lambda x: ow.exp(ow.constant(big())), [BIG]),
    # dense: numbers; dtype and size
    "text": (lambda x: ow.strings.lower(x) + ow.strings.upper(x) + b"!", [ow.TensorSpec([100, 100], ow.string)]),
    "another dtype": (lambda x: ow.cast(x * 2.0, ow.float64), [BIG]),
    "a comparison": (lambda x: (x * 2.0) > 1.0, [BIG]),
    "real of complex": (lambda x: ow.abs(x * 2.0), [ow.TensorSpec([64, 512], ow.complex64)]),
    "another shape": (lambda x, y: ow.exp(x[0]) + y, [BIG, BIG]),
    "unknown rank": (lambda x: ow.exp(x * 2.0), [ow.TensorSpec(None)]),
    "scalars": (lambda x: ow.exp(x * 2.0), [ow.TensorSpec([])]),
    "small": (lambda x: ow.exp(x * 2.0), [SMALL]),
    # not declared
    "not declared": (lambda x: ow.nn.softmax(x * 2.0), [BIG]),
    "not declared for that input": (lambda x: ow.where(ow.equal(x, 1.0), x, x), [BIG]),
}


@pytest.mark.parametrize("why", ILLEGAL)
def test_no_reuse_where(why: str) -> None:
    function, specs = ILLEGAL[why]
    plan = Plan(graph_of(function, *specs))
    assert plan.reused == 0, plan.source


def test_what_is_no_value_is_passed_over() -> None:
    """An absent optional input: the first clause."""

    @ow.operator
    class Shifted:
        """x + by   .. math:: y = x + by"""

        x = ow.Input(dtypes=ow.floating)
        by = ow.Input(like="x", optional=True)
        y = ow.Output(like="x")
        inplace = {"y": ("by", "x")}

        def infer(op) -> Any:
            return op.x.spec

        def compute(op, x: Any, by: Any, *, out: Any = None) -> Any:
            return np.add(x, 1 if by is None else by, out)

    plan = Plan(graph_of(lambda x: Shifted(x * 2.0), BIG))
    assert "into t" in plan.source
    np.testing.assert_array_equal(plan.run(big())[0], big() * 2 + 1)


def test_variables_are_never_written() -> None:
    v = ow.Variable(big())

    @ow.function(jit_compile=False)
    def read() -> Any:
        return ow.exp(v.read_value())

    @ow.function
    def assigned(x: Any) -> Any:
        t = x * 2.0
        v.assign(t)
        return ow.exp(t)

    assert read.get_concrete_function().program.plan.reused == 0
    read()
    np.testing.assert_array_equal(v.numpy(), big())
    assigned(ow.constant(big(3)))
    np.testing.assert_array_equal(v.numpy(), big(3) * 2)


def test_lists_are_never_written() -> None:
    def kept(x: Any) -> Any:
        array = ow.TensorArray(ow.float32, 2)
        t = x * 2.0
        array = array.write(0, t)
        array = array.write(1, ow.exp(t))
        return array.stack()

    plans = both(graph_of(kept, BIG))
    same_bits(plans, big())


@pytest.mark.parametrize(
    "view",
    [
        lambda t: ow.reshape(t, [-1]),
        lambda t: ow.transpose(t),
        lambda t: t[::-1],
        lambda t: t[:32],
        lambda t: ow.split(t, 2)[1],
        lambda t: ow.broadcast_to(t, [2, 64, 512]),
        lambda t: ow.expand_dims(t, 0),
        lambda t: ow.bitcast(t, ow.int32),
        lambda t: ow.unstack(t)[3],
    ],
)
def test_a_view_of_what_lives_is_left_alone(view: Any) -> None:
    """The name of the view dies, its memory does not."""

    def f(x: Any) -> Any:
        t = x * 2.0
        v = view(t)
        return v + v.dtype.as_numpy_dtype(1), t

    same_bits(both(graph_of(f, BIG)), big())

    def g(x: Any) -> Any:
        t = x * 2.0
        v = view(t)
        u = ow.exp(t)  # t dies here, v lives
        return u, v

    same_bits(both(graph_of(g, BIG)), big())


def test_through_a_reshape_the_buffer_is_found() -> None:
    plan = Plan(graph_of(lambda x: ow.exp(ow.reshape(x * 2.0, [-1])), BIG))
    assert plan.reused == 1
    address: list[int] = []
    plan._scope["own"] = lambda t: address.append(t.ctypes.data) or own(t)
    plan.run(big())
    assert len(address) == 1


def test_loops_reuse_what_they_carry_and_never_what_they_start_from() -> None:
    def loop(x: Any, n: Any) -> Any:
        start = x * 2.0
        return ow.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, ow.tanh(t) * x), (0, start))[1], ow.while_loop(
            lambda i, t: i < n, lambda i, t: (i + 1, ow.tanh(t) * x), (0, x)
        )[1]

    plans = both(graph_of(loop, BIG, ow.TensorSpec([], ow.int32)))
    assert plans[0].reused == 4
    for turns in (0, 1, 2, 5):
        same_bits(plans, big(), np.int32(turns))


def test_variables_of_a_loop_that_change_places() -> None:
    def loop(x: Any, n: Any) -> Any:
        return ow.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, ow.sin(a) + b), (0, x * 2.0, x * 3.0))

    plans = both(graph_of(loop, BIG, ow.TensorSpec([], ow.int32)))
    for turns in (0, 1, 2, 3, 6):
        same_bits(plans, big(), np.int32(turns))


def test_branches_reuse_what_dies_with_them() -> None:
    def f(p: Any, x: Any) -> Any:
        t = x * 2.0
        return ow.cond(p, lambda: ow.exp(t), lambda: t)

    plans = both(graph_of(f, ow.TensorSpec([], ow.bool), BIG))
    assert plans[0].reused == 1
    for p in (True, False):
        same_bits(plans, np.bool_(p), big())


def test_a_known_size_next_to_an_unknown_one_that_is_larger() -> None:
    plans = both(graph_of(lambda x, y: (x * 2.0) + y, ow.TensorSpec([1, 65536]), ow.TensorSpec([None, None])))
    rng = np.random.default_rng(0)
    for rows in (1, 3):
        same_bits(plans, *[rng.uniform(0, 1, s).astype(np.float32) for s in ((1, 65536), (rows, 1))])


SHAPES = [
    ((64, 512), (64, 512)),
    ((1, 512), (64, 512)),
    ((64, 512), (1, 512)),
    ((2, 2), (2, 2)),
    ((0, 512), (0, 512)),
    ((0, 512), (1, 512)),
    ((64, 512), (512,)),
    ((1, 65536), (2, 1)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_sizes_that_are_unknown_are_compared_when_it_runs(shapes: Any) -> None:
    specs = [ow.TensorSpec([None] * len(s)) for s in shapes]
    plans = both(graph_of(lambda x, y: ow.exp(x * 2.0) + y, *specs))
    assert plans[0].reused == 2
    rng = np.random.default_rng(0)
    same_bits(plans, *[rng.uniform(0, 1, s).astype(np.float32) for s in shapes])


# ---- who holds an array ---------------------------------------------------------------------------------------------


def asked(make: Callable[[], Any]) -> Any:
    """Return the result of `own` for the only array of a plan."""
    scope: dict[str, Any] = {"own": own}
    exec("def run(kernel, make):\n    t1 = make()\n    t2 = kernel(t1, out=own(t1))\n    return t2", scope)
    return scope["run"](lambda t, out: out is not None, make)


KEPT: list[Any] = []


def _kept(array: np.ndarray) -> np.ndarray:
    KEPT.append(array)
    return array


def test_who_holds_an_array() -> None:
    n = LEAST_BYTES // 8
    assert asked(lambda: np.ones(n))
    assert asked(lambda: np.ones(n).reshape(2, -1))
    assert not asked(lambda: np.ones(n - 1)), "too small to pay"
    assert not asked(lambda: _kept(np.ones(n))), "held by a list"
    assert not asked(lambda: _kept(np.ones(n)).reshape(2, -1)), "a view of what is held"
    assert not asked(lambda: _kept(np.ones(2 * n).reshape(2, n))[0]), "a view of a view"
    assert not asked(lambda: np.ones((4, n)).T), "laid out otherwise"
    assert not asked(lambda: np.broadcast_to(np.ones(n), (4, n))), "not writable, overlapping"
    assert not asked(lambda: np.frombuffer(bytes(8 * n))), "somebody else's memory"
    KEPT.clear()
    scope: dict[str, Any] = {"own": own_like, "other": np.ones((1, n)), "wide": np.ones((3, 1, n))}
    exec("def run(kernel, t1, name):\n    t = t1()\n    t2 = kernel(t, out=own(t, name))\n    return t2", scope)
    assert scope["run"](lambda t, out: out is not None, lambda: np.ones((2, n)), scope["other"])
    assert not scope["run"](lambda t, out: out is not None, lambda: np.ones((2, n)), scope["wide"])


# ---- every operator that can ----------------------------------------------------------------------------------------

NUMBERS = [
    np.float16,
    np.float32,
    np.float64,
    ml_dtypes.bfloat16,
    np.complex64,
    np.complex128,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.bool_,
]
WRITING = [op for op in registry.catalogue().values() if op.inplace and op.profile.writes_out]


def test_some_operators_write_out() -> None:
    names = {op.name for op in WRITING}
    assert {"Add", "Sub", "Mul", "RealDiv", "Relu", "BiasAdd", "Sigmoid", "Tanh", "Select", "ClipByValue"} <= names


@pytest.mark.parametrize("op", WRITING, ids=lambda op: op.name)
def test_into_each_declared_input_with_equal_bits(op: Any) -> None:
    """On long arrays: NumPy's vector loops and their ends; with NaN and infinities; for every dtype that is taken."""
    rng = np.random.default_rng(1)
    ran = 0
    for dtype in (ow.as_dtype(d) for d in NUMBERS):
        if dtype not in op.inputs[-1].dtypes:
            continue
        arrays = []
        for i, declared in enumerate(op.inputs):
            own_dtype = dtype if dtype in declared.dtypes else declared.dtypes[0]
            shape = (1021,) if op.name == "BiasAdd" and i == 1 else (9, 1021)
            array = (
                (rng.standard_normal(shape) * 3).astype(own_dtype.as_numpy_dtype)
                if own_dtype != ow.bool
                else rng.integers(0, 2, shape).astype(bool)
            )
            if own_dtype.is_floating and len(shape) == 2:
                array[0, :5] = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0]).astype(array.dtype)
            arrays.append(array)
        kernel = op.kernel(op.bind({}), dtype)
        with np.errstate(all="ignore"):
            expected = kernel(*[a.copy() for a in arrays])
            declared_inputs = op.inplace[op.output_names[0]]
            for name in (declared_inputs,) if isinstance(declared_inputs, str) else declared_inputs:
                given = [a.copy() for a in arrays]
                into = given[op.input_names.index(name)]
                if into.dtype != expected.dtype:
                    continue  # no reuse then
                got = kernel(*given, out=into)
                assert got is into
                assert got.tobytes() == expected.tobytes(), f"{op.name} {dtype.name} into {name}"
                for other, was in zip(given, arrays):
                    assert other is into or other.tobytes() == was.tobytes()
                ran += 1
    assert ran


# ---- generated graphs -----------------------------------------------------------------------------------------------

STEPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / (b * b + 1.0),
    lambda a, b: ow.maximum(a, b),
    lambda a, b: ow.tanh(a),
    lambda a, b: ow.nn.relu(a),
    lambda a, b: ow.sigmoid(b),
    lambda a, b: ow.where(a > b, a, b),
    lambda a, b: ow.identity(a),
    lambda a, b: ow.transpose(ow.transpose(a) + 1.0),
    lambda a, b: ow.reshape(ow.reshape(a, [-1]) * 2.0, [96, 96]),
    lambda a, b: ow.matmul(a, b) * 0.01,
    lambda a, b: a + ow.reduce_sum(b, 0),
    lambda a, b: a - ow.reduce_mean(b, 1, keepdims=True),
    lambda a, b: ow.reverse(a, [0]) + b,
    lambda a, b: ow.concat(ow.split(a, 2), 0) * b,
    lambda a, b: ow.clip_by_value(a, -1.0, 1.0),
    lambda a, b: ow.nn.bias_add(a, b[0]),
    lambda a, b: ow.cond(a[0, 0] > b[0, 0], lambda: a * 2.0, lambda: a + b),
    lambda a, b: ow.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, ow.sin(t) + b), (0, a))[1],
]


@st.composite
def programs(draw: Any) -> list[tuple[int, int, int]]:
    """Steps by number, each of two of the values so far; with which of them are outputs left to the function."""
    length = draw(st.integers(2, 12))
    return [
        (draw(st.integers(0, len(STEPS) - 1)), draw(st.integers(0, i + 1)), draw(st.integers(0, i + 1)))
        for i in range(length)
    ]


def run_program(program: list[tuple[int, int, int]], x: Any, y: Any) -> list[Any]:
    values = [x, y]
    for step, a, b in program:
        values.append(STEPS[step](values[a], values[b]))
    return values


@given(programs(), st.integers(0, 5))
@settings(deadline=None, max_examples=examples(25))
def test_generated_graphs_and_their_gradients(program: list[tuple[int, int, int]], kept: int) -> None:
    spec = ow.TensorSpec([96, 96])
    x, y = (np.random.default_rng(s).uniform(-1, 1, (96, 96)).astype(np.float32) for s in (0, 1))

    def forward(x: Any, y: Any) -> Any:
        values = run_program(program, x, y)
        return values[-1], values[kept % len(values)]

    def backward(x: Any, y: Any) -> Any:
        with ow.GradientTape() as tape:
            tape.watch([x, y])
            total = ow.reduce_sum(ow.tanh(run_program(program, x, y)[-1]))
        return tape.gradient(total, [x, y], unconnected_gradients="zero")

    same_bits(both(graph_of(forward, spec, spec)), x, y)
    graph = graph_of(backward, spec, spec)
    plans = both(graph)
    same_bits(plans, x, y)
    consumed = plans[0].consume([x.copy(), y.copy()])
    for a, b in zip(consumed, plans[1].run(x, y), strict=True):
        assert a.tobytes() == b.tobytes()

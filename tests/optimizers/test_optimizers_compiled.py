"""Steps in compiled functions: one native call that writes the variables' own arrays.

Lives here: every optimizer and option against the published formulas, the order of reads and writes, errors, aliases,
threads, the plan cache.
Not here: the formulas (optimizer_oracles.py), the table (optimizer_rows.py), the other ways to run a step
(test_optimizers_updates.py).
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
from optimizer_oracles import descend
from optimizer_rows import COMMON, OWN, RATE, ROWS, SAMPLED, check, label, problem

import opwright as ow
from opwright import optimizers
from opwright.compiler import calls, native_plan, update_calls
from opwright.compiler.background import compiling
from opwright.compiler.native.image import runs_images
from opwright.core import flags
from thorough import THOROUGH, crossed

SHAPES = ((70, 130), (4099,), (1, 3, 5), (2,), ())
OTHERS = [(name, options) for name in OWN for options in COMMON if (name, options) not in ROWS]
STEPS = 4


def compiled_step(optimizer, variables, **options):
    return ow.function(lambda *grads: optimizer.apply(grads, variables), jit_compile=True, **options)


def report(function, *args):
    return function.experimental_get_compiler_ir(*args)("report")


def course_of(name, options, dtype="float32"):
    start, steps = problem(STEPS, shapes=SHAPES)
    start = [w.astype("f4").astype("f8") for w in start]
    steps = [[g.astype("f4").astype("f8") for g in grads] for grads in steps]
    variables = [ow.Variable(w.astype(dtype), name=f"w{i}") for i, w in enumerate(start)]
    optimizer = getattr(optimizers, name)(RATE, **options)
    step = compiled_step(optimizer, variables)
    course = []
    for grads in steps:
        arguments = [ow.constant(g.astype(dtype)) for g in grads]
        step(*arguments)
        course.append([v.numpy() for v in variables])
    uncompiled = [line for line in report(step, *arguments).splitlines() if line.startswith("  UpdateVariable")]
    expected, averages = descend(name, start, steps, RATE, **options)
    return course, expected, uncompiled, (optimizer, averages)


def check_row(name, options):
    course, expected, uncompiled, (optimizer, averages) = course_of(name, options)
    # 1 - 0.999 in float32 is 1.3e-5 off, and the first steps of Adam's kin divide by its root
    check(course, expected, 3e-5)
    assert uncompiled == []
    if options.get("use_ema"):
        check([[v.numpy() for v in optimizer._averages]], [averages], 3e-5)


@pytest.mark.parametrize("row", SAMPLED, ids=label)
def test_compiled_steps_follow_the_formula(row):
    check_row(*row)


@pytest.mark.slow
@pytest.mark.parametrize("row", OTHERS, ids=label)
def test_every_optimizer_takes_every_option(row):
    check_row(*row)


@pytest.mark.parametrize("name", sorted(set(OWN) - {"Ftrl"}))  # powers of float64 have no machine code
def test_compiled_steps_in_float64(name):
    course, expected, uncompiled, _ = course_of(name, {}, "float64")
    check(course, expected, 1e-11)
    assert uncompiled == []


@pytest.mark.parametrize(("name", "dtype"), crossed(sorted(OWN), ["float16", "bfloat16"]))
def test_narrow_variables_are_rounded_as_by_the_uncompiled_step(name, dtype):
    """Every second row of the table with one of the two types; in a thorough run every option with both."""
    kind = ow.as_dtype(dtype).np
    start = np.linspace(-2, 2, 311).astype(kind)
    rows = [options for optimizer, options in ROWS if optimizer == name]
    for options in [*OWN[name], *COMMON] if THOROUGH else rows[dtype == "bfloat16" :: 4]:
        results = []
        for jit in (False, True):
            variables = [ow.Variable(start), ow.Variable(start[:6])]
            optimizer = getattr(optimizers, name)(RATE, **options)
            step = ow.function(lambda *g, v=variables, o=optimizer: o.apply(g, v), jit_compile=jit, autograph=False)
            for k in range(3):
                grads = [ow.constant(np.cos(v.numpy().astype("f4") * (k + 1)).astype(kind)) for v in variables]
                step(*grads)
            results.append([v.numpy().view("u2") for v in (*variables, *optimizer.variables) if v.dtype.np == kind])
        assert "\n  UpdateVariable" not in report(step, *grads)
        for eager, compiled in zip(*results, strict=True):
            np.testing.assert_array_equal(eager, compiled, err_msg=f"{options}")


def test_a_decay_a_step_and_its_average_are_one_pass():
    v = ow.Variable(np.ones((60, 70), "f4"))
    step = compiled_step(optimizers.Adam(RATE, weight_decay=0.125, use_ema=True), [v])
    g = ow.ones((60, 70))
    step(g)
    assert "1 steps for UpdateVariable, UpdateVariable_1, " in report(step, g)


def test_variables_and_state_are_written_in_place():
    variables = [ow.Variable(np.ones(s, "f4")) for s in ((300, 40), (7,))]
    optimizer = optimizers.Adam(RATE)
    step = compiled_step(optimizer, variables)
    grads = [ow.ones(v.shape) for v in variables]
    step(*grads)
    everything = [v for v in (*variables, *optimizer.variables) if v.shape.rank]
    places = [v.read_array().ctypes.data for v in everything]
    step(*grads)
    assert [v.read_array().ctypes.data for v in everything] == places


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "asked"])
@pytest.mark.parametrize("shape", [(3, 2), (130, 70)], ids=["small", "large"])
def test_values_read_before_a_step_are_not_changed_by_it(shape, direct, monkeypatch):
    if not direct:
        monkeypatch.setattr(calls, "items_offset", lambda: None)
    v, optimizer = ow.Variable(np.ones(shape)), optimizers.Adam(RATE)
    optimizer.build([v])
    step = compiled_step(optimizer, [v])
    everything = [v, *optimizer.variables]
    gradient = v.value()  # the gradient may be the variable's own array
    expected, _ = descend("Adam", [np.ones(shape)], [[np.ones(shape)]] * 3, RATE)
    for k in range(3):
        held = [(x.value(), np.asarray(x), memoryview(np.asarray(x.value())), x.value()[...]) for x in everything]
        before = [x.numpy() for x in everything]
        step(gradient)
        for kept, was in zip(held, before, strict=True):
            for one in kept:
                np.testing.assert_array_equal(np.asarray(one), was)
        np.testing.assert_allclose(v.numpy(), expected[k][0], rtol=1e-11)


@pytest.mark.parametrize("jit", [False, True], ids=["uncompiled", "compiled"])
def test_reads_see_the_writes_before_them(jit):
    """w and a are 1 and 10 at first; each line below follows from the lines above it."""
    w, a = ow.Variable(np.full((80, 90), 1.0, "f4")), ow.Variable(np.full((80, 90), 10.0, "f4"))
    optimizer = optimizers.SGD(1.0)
    optimizer.build([w, a])

    @ow.function(jit_compile=jit)
    def step(g):
        before = w.value()
        optimizer.apply([g], [w])  # w = 1 - 2
        between = w.value()
        w.assign_add(g)  # 1
        w.assign_add(g)  # 3
        a.assign_sub(before)  # 10 - 1
        a.assign_add(between)  # 9 - 1
        optimizer.apply([w.value()], [a])  # 8 - 3
        return before, between, w.value(), a.value()

    results = step(ow.constant(np.full((80, 90), 2.0, "f4")))
    assert [np.unique(r.numpy()).tolist() for r in results] == [[1.0], [-1.0], [3.0], [5.0]]
    assert [np.unique(v.numpy()).tolist() for v in (w, a)] == [[3.0], [5.0]]


def test_a_value_read_in_a_step_survives_the_next_write():
    v, average = ow.Variable(np.zeros((64, 64), "f4")), ow.Variable(np.zeros((64, 64), "f4"))

    @ow.function(jit_compile=True)
    def step(g):
        old = v.value()
        v.assign_add(g)
        average.assign_add(old)  # the value from before the write, of the same group
        v.assign_add(g)

    for _ in range(3):
        step(ow.ones((64, 64)))
    assert np.unique(v.numpy()).tolist() == [6.0]
    assert np.unique(average.numpy()).tolist() == [0.0 + 2.0 + 4.0]


def refusing(limit):
    def check_below(x):
        if x.max() > limit:
            raise ValueError("too large")
        return x

    return check_below


@pytest.mark.parametrize("jit", [False, True], ids=["uncompiled", "compiled"])
def test_an_error_between_updates_keeps_the_earlier_ones(jit):
    v, w = (ow.Variable(np.zeros((70, 70), "f4")) for _ in range(2))
    optimizer = optimizers.SGD(1.0)
    optimizer.build([v, w])

    @ow.function(jit_compile=jit)
    def step(g, h):
        optimizer.apply([g], [v])
        h = ow.numpy_function(refusing(5.0), [h], ow.float32)
        optimizer.apply([ow.reshape(h, [70, 70])], [w])

    one, large = ow.ones((70, 70)), ow.fill((70, 70), 9.0)
    step(one, one)
    with pytest.raises(ow.errors.OpError, match="too large"):
        step(one, large)
    assert [np.unique(x.numpy()).tolist() for x in (v, w)] == [[-2.0], [-1.0]]
    step(one, one)
    assert [np.unique(x.numpy()).tolist() for x in (v, w)] == [[-3.0], [-2.0]]


def test_an_error_in_the_gradients_changes_no_variable():
    table = ow.Variable(np.ones((50, 40), "f4"))
    optimizer = optimizers.Adam(RATE)
    optimizer.build([table])

    @ow.function(jit_compile=True)
    def step(x, indices):
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(ow.matmul(ow.gather(x, indices), table) ** 2.0)
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    x = ow.ones((10, 50))
    step(x, ow.constant([1, 2]))
    before = [v.numpy() for v in (table, *optimizer.variables)]
    with pytest.raises(ow.errors.InvalidArgumentError):
        step(x, ow.constant([1, 10]))
    for v, was in zip((table, *optimizer.variables), before, strict=True):
        np.testing.assert_array_equal(v.numpy(), was)
    step(x, ow.constant([1, 2]))
    assert not np.array_equal(table.numpy(), before[0])


def test_nan_is_propagated_by_every_optimizer():
    for name in OWN:
        g = np.ones((40, 50), "f4")
        g[3, 7] = np.nan
        v = ow.Variable(np.ones((40, 50), "f4"))
        compiled_step(getattr(optimizers, name)(RATE), [v])(ow.constant(g))
        assert np.isnan(v.numpy()).sum() == 1, name
        assert np.isnan(v.numpy()[3, 7]), name


@pytest.mark.parametrize("shape", [(4, 6), (130, 70)], ids=["small", "large"])
def test_variables_of_any_layout_are_updated_right(shape):
    rng = np.random.default_rng(3)
    w, gradients = rng.normal(size=shape), rng.normal(size=(3, *shape))
    v, optimizer = ow.Variable(w), optimizers.Adam(RATE)
    step = compiled_step(optimizer, [v])
    v.assign(np.asfortranarray(w))
    for g in gradients:
        step(ow.transpose(ow.constant(np.ascontiguousarray(g.T))))
    expected, _ = descend("Adam", [w], [[g] for g in gradients], RATE)
    np.testing.assert_allclose(v.numpy(), expected[-1][0], rtol=1e-11)


@pytest.mark.parametrize("shape", [(4, 6), (130, 70)], ids=["small", "large"])
def test_gradients_are_broadcast_to_the_variable_and_others_refused(shape):
    v = ow.Variable(np.ones(shape))
    step = compiled_step(optimizers.SGD(0.5), [v])
    step(ow.constant(np.arange(shape[1], dtype="f8")))
    np.testing.assert_array_equal(v.numpy(), np.broadcast_to(1 - 0.5 * np.arange(shape[1]), shape))
    before = v.numpy()
    with pytest.raises(ow.errors.InvalidArgumentError, match="the gradient does not have the shape of the variable"):
        step(ow.ones((shape[0], shape[1] + 1), "float64"))
    np.testing.assert_array_equal(v.numpy(), before)


def test_one_variable_as_two_arguments():
    @ow.function(jit_compile=True)
    def add(a, b, x):
        a.assign_add(x)
        b.assign_add(x * 10.0)

    v, w, x = ow.Variable(ow.zeros((80, 80))), ow.Variable(ow.zeros((80, 80))), ow.ones((80, 80))
    add(v, w, x)
    add(v, v, x)
    assert [np.unique(y.numpy()).tolist() for y in (v, w)] == [[12.0], [10.0]]


def test_functions_that_share_variables_in_any_order_run_at_once():
    """Steps of rate 1 by gradients of 1 count down; no step is lost, and no thread waits for another one forever."""
    shape, rounds = (100, 100), 200  # smaller ones may lose a step of an uncompiled function
    variables = [ow.Variable(ow.zeros(shape)) for _ in range(6)]
    one = ow.ones(shape)

    def writer(order, jit):
        optimizer = optimizers.SGD(1.0)
        optimizer.build(variables)
        chosen = [variables[i] for i in order]
        step = ow.function(lambda g: optimizer.apply([g] * len(chosen), chosen), jit_compile=jit)
        step(one)
        return step

    steps = [writer(range(6), True), writer(range(5, -1, -1), True), writer((3, 0, 5, 1, 4, 2), False)]
    failures: list[BaseException] = []

    def repeat(step):
        try:
            for _ in range(rounds):
                step(one)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=repeat, args=(step,)) for step in steps]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads)
    assert failures == []
    assert [np.unique(v.numpy()).tolist() for v in variables] == [[-(rounds + 1.0) * len(steps)]] * 6


SPARSE = (
    [(name, {}) for name in OWN]
    + [(name, {"lazy_mode": True}) for name in ("Adam", "AdamW", "Adamax", "Nadam")]
    + [
        ("Adam", {"amsgrad": True, "beta_2": 0.5}),
        ("SGD", {"momentum": 0.75}),
        ("RMSprop", {"momentum": 0.9}),
        ("RMSprop", {"centered": True, "epsilon": 1e-3}),
    ]
)


# looked_up: in the native call that looks the rows up, else in one of its own
WIDTHS = [(width, looked_up) for looked_up in (False, True) for width in ((), (5, 7), (3,), (19,))]


@pytest.mark.parametrize(("row", "form"), crossed(SPARSE, WIDTHS, every=8), ids=lambda v: str(v).replace(" ", ""))
def test_sparse_rows_follow_the_formula(row, form):
    """The dense formula by gradients with rows of 0; in lazy mode, the dense formula of the rows alone."""
    (name, options), (width, looked_up) = row, form
    lazy = options.get("lazy_mode", False)
    rng = np.random.default_rng(5)
    height, rows = 900, np.sort(rng.permutation(900)[:300])
    start = rng.uniform(-2, 2, (height, *width)).astype("f4")
    table, optimizer = ow.Variable(start), getattr(optimizers, name)(RATE, **options)

    @ow.function(jit_compile=True)
    def step(values, indices):
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(ow.gather(table, indices) * values)
        slices = (
            tape.gradient(loss, table) if looked_up else ow.IndexedSlices(values, indices, ow.constant(start.shape))
        )
        optimizer.apply([slices], [table])
        return loss if looked_up else 0.0

    gradients = []
    for _ in range(STEPS):
        indices = np.concatenate([rng.permutation(rows), rng.choice(rows, 50)])  # some twice or more, in any order
        values = rng.uniform(-1, 1, (len(indices), *width)).astype("f4")
        step(ow.constant(values), ow.constant(indices))
        dense = np.zeros(start.shape)
        np.add.at(dense, indices, values.astype("f8"))
        gradients.append([dense[rows] if lazy else dense])
    formula = {k: v for k, v in options.items() if k != "lazy_mode"}
    initial = start.astype("f8")
    expected, _ = descend(name, [initial[rows] if lazy else initial], gradients, RATE, **formula)
    if lazy:
        initial[rows] = expected[-1][0]
    np.testing.assert_allclose(table.numpy(), initial if lazy else expected[-1][0], 3e-5, 3e-5)
    text = report(step, ow.constant(values), ow.constant(indices))
    assert ("native call for UpdateRows" in text) != looked_up
    assert (" in 1 native calls" in text) or not looked_up


def after_steps_by_rows(starts, first, second, compiled):
    """Return two tables and the state of their optimizer after two steps; the second table is looked up twice."""
    tables, optimizer = [ow.Variable(start) for start in starts], optimizers.Adam(RATE, lazy_mode=True)
    optimizer.build(tables)

    def step(first, second):
        with ow.GradientTape() as tape:
            a, b, again = ow.gather(tables[0], first), ow.gather(tables[1], second), ow.gather(tables[1], second[:9])
            loss = ow.reduce_sum(a * a) + ow.reduce_sum(b * b * b) + ow.reduce_sum(again)
        optimizer.apply_gradients(zip(tape.gradient(loss, tables), tables))
        return loss

    run, rows = ow.function(step, jit_compile=True) if compiled else step, (ow.constant(first), ow.constant(second))
    for _ in range(2):
        run(*rows)
    assert not compiled or " in 1 native calls" in report(run, *rows)
    return [v.numpy() for v in (*tables, *optimizer.variables)]


def test_steps_by_rows_of_large_tables_equal_eager():
    """Indices of several digits of the radix sort, equal ones among them."""
    rng = np.random.default_rng(8)
    starts = [rng.standard_normal((height, 8)).astype("f4") for height in (70_000, 3000)]
    many, few = rng.integers(0, 70_000, 600), np.repeat(rng.integers(0, 3000, 90), 3).astype("i4")
    many[:200] = many[200:400]
    results = [after_steps_by_rows(starts, many, few, compiled) for compiled in (False, True)]
    for expected, actual in zip(*results):
        np.testing.assert_allclose(actual, expected, 1e-6, 1e-7)


def test_no_rows_and_rows_out_of_range():
    table, momentum = ow.Variable(ow.ones((20, 6))), optimizers.SGD(1.0, momentum=0.5)

    @ow.function(jit_compile=True, input_signature=[ow.TensorSpec([None, 6]), ow.TensorSpec([None], ow.int64)])
    def step(values, indices):
        momentum.apply([ow.IndexedSlices(values, indices, ow.constant([20, 6]))], [table])

    step(ow.ones((1, 6)), ow.constant([19], ow.int64))
    step(ow.zeros((0, 6)), ow.zeros((0,), ow.int64))  # row 19 moves by half of its last step
    np.testing.assert_array_equal(table.numpy()[:, 0], [*np.ones(19), 1 - 1 - 0.5])
    before = [v.numpy() for v in (table, *momentum.variables)]
    for wrong in (20, -1):
        with pytest.raises(ow.errors.InvalidArgumentError, match=f"index {wrong} is out of range|{wrong}"):
            step(ow.ones((2, 6)), ow.constant([3, wrong], ow.int64))
    for v, was in zip((table, *momentum.variables), before, strict=True):
        np.testing.assert_array_equal(v.numpy(), was)


def test_the_compiled_step_prints_its_loops():
    v = ow.Variable(ow.ones((3, 4)))
    step = compiled_step(optimizers.SGD(0.5), [v])
    loops = step.experimental_get_compiler_ir(ow.ones((3, 4)))("loops")
    assert "Update(" in loops
    assert "exprs=(sub(arg0:f32, mul(arg1:f32, arg2:f32)),)" in loops


class Refusing:
    """In the place of the partitioner, where nothing is to be planned."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} is asked for")


@pytest.mark.skipif(not runs_images(), reason="LLVM's own loader is used on this system")
def test_a_cached_step_runs_without_planning(tmp_path, monkeypatch):
    start, steps = problem(3, shapes=((40, 50), (9,), (6, 7)))
    expected, _ = descend("Adam", start, steps, RATE, weight_decay=0.25, use_ema=True)
    every_row = ow.range(6, dtype="int64")

    def course():
        variables = [ow.Variable(w.astype("f4")) for w in start]
        optimizer = optimizers.Adam(RATE, weight_decay=0.25, use_ema=True, name="kept")

        @ow.function(jit_compile=True)
        def step(g, h, values):
            optimizer.apply([g, h, ow.IndexedSlices(values, every_row, ow.constant([6, 7]))], variables)

        for grads in steps:
            step(*[ow.constant(g.astype("f4")) for g in grads])
        compiling.submit(lambda: None).wait()
        return [v.numpy() for v in variables]

    native_calls = []
    for kind, name in ((update_calls._UpdateCallee, "run"), (update_calls._RowsCode, "update")):
        run = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *a, run=run: native_calls.append(1) or run(*a))
    with flags.override(cache_dir=tmp_path):
        first = course()
        count = len(native_calls)
        monkeypatch.setattr(native_plan, "partitioner", Refusing())
        again = course()
    for a, b, reference in zip(first, again, expected[-1], strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, reference, 3e-5, 3e-5)
    assert len(native_calls) == 2 * count >= 2 * 2 * len(steps)

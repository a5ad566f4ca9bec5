"""A training step as one native plan: forward, backward and updates.

Lives here: which steps are one call, the hazards of updates between other operations (guards, readers of old values,
interrupts, missing memory), the memory of the plan.
Not here: the optimizers' formulas and updates without gradients (test_optimizers_compiled.py), losses of whole
trainings (tests/nn/test_training_curves.py).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

import numpy as np
import pytest
from benchmarks import training_models
from benchmarks.workloads import WORKLOADS, batch_of
from optimizer_oracles import descend
from optimizer_rows import OWN

import opwright as ow
from opwright import optimizers
from opwright.compiler import memory, native_plan, update_regions
from opwright.compiler.native import executor
from opwright.compiler.native.image import runs_images
from opwright.core.errors import ResourceExhaustedError
from thorough import sampled

RATE = 0.0625
X = np.random.default_rng(0).normal(size=(40, 70)).astype("f4")
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def weights(*shapes, seed=1):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=s) / 8).astype("f4") for s in shapes]


def report(step, *args):
    return step.experimental_get_compiler_ir(*args)("report")


def two_calls(monkeypatch):
    """Let updates be native calls of their own, after the one that computes the gradients; no plan is cached."""
    monkeypatch.setattr(native_plan.calls, "find_regions", lambda *call: None)
    monkeypatch.setattr(native_plan.calls, "save_regions", lambda *call: None)
    monkeypatch.setattr(update_regions.UpdateGrouping, "_joined", lambda self, group, groups, pays: groups)


def perceptron(variables, x):
    w, b, v = variables
    return ow.reduce_mean((ow.tanh(x @ w + b) @ v) ** 2.0)


def perceptron_gradients(values, x):
    """The gradients of `perceptron` in float64, by hand."""
    w, b, v = (np.float64(a) for a in values)
    h = np.tanh(x @ w + b)
    y = h @ v
    dy = 2 * y / y.size
    da = dy @ v.T * (1 - h * h)
    return [x.T @ da, da.sum(0), h.T @ dy]


SHAPES = ((70, 90), (90,), (90, 8))
OPTIONS = (
    *((name, {}) for name in sorted(OWN)),
    ("Adam", {"weight_decay": 0.125, "use_ema": True}),
    ("Adam", {"global_clipnorm": 0.01}),
    ("AdamW", {"clipvalue": 0.001}),
    ("SGD", {"loss_scale_factor": 64.0}),
    ("RMSprop", {"clipnorm": 0.01}),
)


def course(name, options, steps=3):
    """Return the weights after some steps, the averages if there are any, and the report."""
    variables = [ow.Variable(w) for w in weights(*SHAPES)]
    optimizer = getattr(optimizers, name)(RATE, **options)

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            loss = optimizer.scale_loss(perceptron(variables, x))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    x = ow.constant(X)
    for _ in range(steps):
        step(x)
    return [v.numpy() for v in (*variables, *optimizer.variables)], report(step, x)


@pytest.mark.parametrize(("name", "options"), sampled(OPTIONS, 3), ids=[f"{n}-{'-'.join(o)}" for n, o in OPTIONS])
def test_a_step_is_one_native_call_with_the_bits_of_two(name, options, monkeypatch):
    together, text = course(name, options)
    with monkeypatch.context() as context:
        two_calls(context)
        apart, other_text = course(name, options)
    assert text.splitlines()[0].split(" nodes in ")[1].startswith("1 native calls"), text
    assert other_text.splitlines()[0].split(" nodes in ")[1].startswith("2 native calls"), other_text
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_step_follows_the_formula():
    start, steps = [np.float64(w) for w in weights(*SHAPES)], 4
    values, gradients = start, []
    for _ in range(steps):
        gradients.append(perceptron_gradients(values, X))
        values = descend("Adam", start, gradients, RATE)[0][-1]
    trained, _ = course("Adam", {}, steps)
    for a, b in zip(trained, values):
        np.testing.assert_allclose(a, b, 1e-3, 1e-4)  # Adam's first steps divide small gradients by their own size


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_steps_of_the_bench_have_the_bits_of_two_calls(name, monkeypatch):
    def weights_after_steps():
        sizes = WORKLOADS[name].reduced
        ow.keras.utils.set_random_seed(1)
        model = training_models.MODELS[name](ow, sizes)
        step = ow.function(training_models.step_of(ow, name, model), jit_compile=True)
        inputs, targets = batch_of(name, sizes)
        x = [ow.constant(a) for a in inputs]
        losses = [float(step(x[0] if len(x) == 1 else x, ow.constant(targets))) for _ in range(3)]
        return losses, model.get_weights()

    losses, together = weights_after_steps()
    with monkeypatch.context() as context:
        two_calls(context)
        other_losses, apart = weights_after_steps()
    assert losses == other_losses
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- readers of old and of new values ------------------------------------------------------------------------------


def test_values_read_before_and_after_the_updates():
    """Gradients of sum(w) are 1: each step takes 1 from w, and adds the old w to its average."""
    w, average = (ow.Variable(np.full((80, 90), value, "f4")) for value in (10.0, 0.0))
    optimizer = optimizers.SGD(1.0)
    optimizer.build([w])

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(w * x)
        before = w.value()
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        between = w * 1.0
        average.assign_add(before)
        w.assign_sub(x)  # another 1
        return before, between, loss, w.value()

    x, held = ow.ones((80, 90)), []
    for k in range(3):
        held.append(step(x))
        assert np.unique(w.numpy()).tolist() == [8.0 - 2 * k]
    for k, results in enumerate(held):  # which later steps leave as they are
        start = 10.0 - 2 * k
        expected = [start, start - 1, start * 7200, start - 2]
        assert [np.unique(r.numpy()).tolist() for r in results] == [[e] for e in expected]
    assert np.unique(average.numpy()).tolist() == [10.0 + 8.0 + 6.0]


def test_every_use_of_a_variable_adds_to_its_gradient_before_the_update():
    (start,) = weights((70, 70))
    w, optimizer = ow.Variable(start), optimizers.SGD(RATE)
    optimizer.build([w])

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            y = x
            for _ in range(3):
                y = y @ w
            loss = ow.reduce_sum(y) + 0.5 * ow.reduce_sum(w * w)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    x, value = np.float64(X), np.float64(start)
    for _ in range(2):
        step(ow.constant(X))
        ones = np.ones((40, 70))
        gradient = value.copy()  # of the decay
        for k in range(3):  # of the use behind k others: (x w^k)' (1 w'^(2 - k))
            gradient += (x @ np.linalg.matrix_power(value, k)).T @ (ones @ np.linalg.matrix_power(value.T, 2 - k))
        value = value - RATE * gradient
        np.testing.assert_allclose(w.numpy(), value, 1e-5, 1e-5 * np.abs(value).max())
    assert " in 1 native calls" in report(step, ow.constant(X))


@pytest.mark.parametrize("layout", ["F", "shared", "a view"])
def test_a_variable_that_must_be_copied_first(layout):
    start, expected = weights(*SHAPES), perceptron_gradients(weights(*SHAPES), X)
    variables, optimizer = [ow.Variable(w) for w in start], optimizers.SGD(RATE)
    optimizer.build(variables)

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            loss = perceptron(variables, x)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    step.get_concrete_function(ow.constant(X))
    if layout == "F":
        variables[0].write_array(np.asfortranarray(start[0]))
    if layout == "a view":
        variables[0].write_array(start[0].copy()[:])
    kept = [v.value() for v in variables] if layout == "shared" else []
    step(ow.constant(X))
    for v, w, g in zip(variables, start, expected):
        np.testing.assert_allclose(v.numpy(), w - RATE * g, **CLOSE)
    for value, w in zip(kept, start):
        np.testing.assert_array_equal(value.numpy(), w)


# ---- what may stop a plan ------------------------------------------------------------------------------------------


def embedding_step(table, w, optimizer, **options):
    """Return a step whose gradient of the table is sparse, and that of w dense."""

    @ow.function(jit_compile=True, **options)
    def step(rows):
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(ow.gather(table, rows) @ w)
        optimizer.apply_gradients(zip(tape.gradient(loss, [table, w]), [table, w]))
        return loss

    return step


def test_sparse_rows_that_the_forward_pass_has_checked_keep_nothing_apart():
    start, v = weights((30, 70), (70, 60))
    table, w, optimizer = ow.Variable(start), ow.Variable(v), optimizers.SGD(RATE)
    optimizer.build([table, w])
    step = embedding_step(table, w, optimizer)
    rows = np.array([[3, 7], [3, 29]])
    step(ow.constant(rows))
    dense = np.zeros_like(start)
    np.add.at(dense, rows.ravel(), np.broadcast_to(v.sum(1), (4, 70)))
    np.testing.assert_allclose(table.numpy(), start - RATE * dense, **CLOSE)
    np.testing.assert_allclose(w.numpy(), v - RATE * np.repeat(start[rows.ravel()].sum(0)[:, None], 60, 1), **CLOSE)
    assert " in 1 native calls" in report(step, ow.constant(rows))

    before = [x.numpy() for x in (table, w)]
    for wrong in (30, -1):
        with pytest.raises(ow.errors.InvalidArgumentError):
            step(ow.constant([[3, 7], [3, wrong]]))
        for x, was in zip((table, w), before):
            np.testing.assert_array_equal(x.numpy(), was)


def test_the_first_error_in_program_order_is_reported_though_the_step_writes():
    """The scatter runs in Python, behind the native call with its gradient, which fails first."""
    start = weights((1, 8, 8))[0]
    variable = ow.Variable(start)

    def step(index):
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(ow.scatter_nd(index, ow.tanh(variable * 0.5), [3, 8, 8]))
        variable.assign_sub(RATE * tape.gradient(loss, variable))
        return loss

    for run in (step, ow.function(step, jit_compile=True)):
        with pytest.raises(ow.errors.InvalidArgumentError, match=r"ScatterNd.*indices\[0\] = \[3\]"):
            run(ow.constant([[3]]))
    np.testing.assert_array_equal(variable.numpy(), start)


def test_a_check_in_the_backward_pass_that_nothing_repeats_precedes_all_updates():
    """Rows of a gradient are gathered in another order, which is checked there alone."""
    start = weights(*SHAPES)
    variables, optimizer = [ow.Variable(w) for w in start], optimizers.SGD(RATE)
    optimizer.build(variables)

    @ow.function(jit_compile=True)
    def step(x, rows):
        with ow.GradientTape() as tape:
            loss = perceptron(variables, x)
        gradients = tape.gradient(loss, variables)
        gradients[0] = ow.gather(gradients[0], rows)
        optimizer.apply_gradients(zip(gradients, variables))

    order = np.roll(np.arange(70), 1)
    with pytest.raises(ow.errors.InvalidArgumentError):
        step(ow.constant(X), ow.constant(order + 1))
    for v, w in zip(variables, start):
        np.testing.assert_array_equal(v.numpy(), w)
    step(ow.constant(X), ow.constant(order))
    assert " in 1 native calls" in report(step, ow.constant(X), ow.constant(order))
    gradients = perceptron_gradients(start, X)
    gradients[0] = gradients[0][order]
    for v, w, g in zip(variables, start, gradients):
        np.testing.assert_allclose(v.numpy(), w - RATE * g, **CLOSE)


def by_python(x, message):
    return ow.numpy_function(finite, [x], x.dtype)


@pytest.mark.parametrize("check", [ow.debugging.check_numerics, by_python])
def test_checks_by_python_keep_gradients_and_updates_apart(check):
    start = weights(*SHAPES)
    variables, optimizer = [ow.Variable(w) for w in start], optimizers.SGD(RATE)
    optimizer.build(variables)

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            loss = perceptron(variables, x)
        gradients = tape.gradient(loss, variables)
        gradients = [ow.reshape(check(g, "a gradient"), v.shape) for g, v in zip(gradients, variables)]
        optimizer.apply_gradients(zip(gradients, variables))

    step(ow.constant(X))
    before = [v.numpy() for v in variables]
    for v, w, g in zip(before, start, perceptron_gradients(start, X)):
        np.testing.assert_allclose(v, w - RATE * g, **CLOSE)
    with pytest.raises(ow.errors.OpError):
        step(ow.constant(np.where(X > 2, np.float32(np.inf), X)))
    for v, was in zip(variables, before):
        np.testing.assert_array_equal(v.numpy(), was)


def finite(x):
    if not np.isfinite(x).all():
        raise ValueError("not finite")
    return x


def test_a_step_that_skips_gradients_that_are_not_finite():
    start = weights(*SHAPES)
    variables, optimizer = [ow.Variable(w) for w in start], optimizers.SGD(RATE, loss_scale_factor=2.0**20)
    optimizer.build(variables)

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            loss = optimizer.scale_loss(perceptron(variables, x))
        gradients = tape.gradient(loss, variables)
        is_finite = ow.reduce_all([ow.reduce_all(ow.math.is_finite(g)) for g in gradients])

        def update():
            optimizer.apply_gradients(zip(gradients, variables))

        ow.cond(is_finite, update, lambda: None)
        return is_finite

    assert not step(ow.constant(np.where(X > 2, np.float32(np.inf), X)))
    for v, w in zip(variables, start):
        np.testing.assert_array_equal(v.numpy(), w)
    assert step(ow.constant(X))
    for v, w, g in zip(variables, start, perceptron_gradients(start, X)):
        np.testing.assert_allclose(v.numpy(), w - RATE * g, **CLOSE)


@pytest.mark.parametrize("missing", ["arena", "results"])
def test_without_memory_no_variable_changes(missing, monkeypatch):
    start = weights(*SHAPES)
    variables, optimizer = [ow.Variable(w) for w in start], optimizers.SGD(RATE)
    optimizer.build(variables)

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            h = ow.matmul(x, variables[0])
            loss = perceptron(variables, x) + ow.reduce_sum(h)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss, h

    x = ow.ones((3200, 70))  # h has 1.2 MB

    def refuse(*size):
        raise ResourceExhaustedError(what="no memory")

    step.get_concrete_function(x)
    with monkeypatch.context() as context:
        if missing == "arena":
            context.setattr(executor, "aligned", refuse)
        else:
            context.setattr(memory, "_OwnedBytes", refuse)
            context.setattr(memory, "_kept", {})
        with pytest.raises(ow.errors.ResourceExhaustedError):
            step(x)
    for v, w in zip(variables, start):
        np.testing.assert_array_equal(v.numpy(), w)
    step(x)
    assert not np.array_equal(variables[0].numpy(), start[0])


@pytest.mark.skipif(not runs_images() or not hasattr(signal, "setitimer"), reason="no polls, or no timers with signals")
@pytest.mark.parametrize("crowded", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_a_step_done_or_undone(crowded, request):
    """All gradients exceed 1 and are clipped to it: a step of rate 2^-20 takes 2^-20 from every element of every
    variable, so that all of them are equal unless a step was interrupted between two updates. Threads that share one
    processor wait for each other, and poll."""
    size, layers = 256, 10
    variables = [ow.Variable(np.full((size, size), 1.0, "f4")) for _ in range(layers)]
    optimizer = optimizers.SGD(2.0**-20, clipvalue=1.0)
    optimizer.build(variables)

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            for v in variables:
                x = ow.matmul(x, v) / 16.0
            loss = ow.reduce_sum(x)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    x = ow.fill((size * 6, size), 8.0)
    step(x)
    start = time.process_time()
    step(x)
    long = time.process_time() - start
    if crowded:
        _share_a_processor(request)
    rng = np.random.default_rng(0)
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    interrupts, tries = 0, 0
    try:
        while interrupts < (20 if crowded else 5):
            tries += 1
            assert tries < 100
            try:
                try:
                    signal.setitimer(signal.ITIMER_PROF, float(rng.uniform(0.2, 1.0)) * long)  # time of this process
                    step(x)
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
            except KeyboardInterrupt:
                interrupts += 1
            values = {value for v in variables for value in np.unique(v.numpy()).tolist()}
            assert len(values) == 1
    finally:
        signal.signal(signal.SIGPROF, before)


def _share_a_processor(request):
    """Restrict all threads of this process to one of its processors until the test has ended."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("threads cannot be restricted to a processor here")
    for thread in map(int, os.listdir("/proc/self/task")):
        with contextlib.suppress(ProcessLookupError):
            processors = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, {min(processors)})
            request.addfinalizer(lambda t=thread, p=processors: os.sched_setaffinity(t, p))


# ---- memory --------------------------------------------------------------------------------------------------------


def test_gradients_leave_their_memory_to_the_next_ones():
    """The arena of eight layers holds the activations and two gradients, not eight."""
    size, layers, batch = 256, 8, 16
    variables = [ow.Variable(w) for w in weights(*[(size, size)] * layers)]
    optimizer = optimizers.Adam(RATE)
    optimizer.build(variables)

    @ow.function(jit_compile=True)
    def step(x):
        with ow.GradientTape() as tape:
            for v in variables:
                x = ow.tanh(ow.matmul(x, v))
            loss = ow.reduce_sum(x)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    x = ow.ones((batch, size))
    text = step.experimental_get_compiler_ir(x)("plan")
    (arena,) = [line.split("arena ")[1].split(" (")[0] for line in text.splitlines() if "arena " in line]
    number, unit = arena.split()
    nbytes = float(number) * {"B": 1, "KiB": 1024, "MiB": 1 << 20}[unit]
    assert nbytes < layers * batch * size * 4 + 3 * size * size * 4

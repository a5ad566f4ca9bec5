"""Every optimizer and option against the published formulas, over a course of steps.

Lives here: a table of optimizers with options, run eagerly, traced, in float64 and float32.
Not here: the formulas (optimizer_oracles.py), the table (optimizer_rows.py), compiled steps
(test_optimizers_compiled.py), gradients by rows (test_optimizers_sparse.py), errors (test_optimizers_use.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from optimizer_oracles import descend
from optimizer_rows import OWN, RATE, SAMPLED, SCHEDULE_FREE, STEPS, check, label, problem

import opwright as ow
from opwright import optimizers
from opwright.optimizers import schedules


def run(optimizer, start, steps, dtype, traced=False):
    """The variables after each step, and the variables themselves."""
    variables = [ow.Variable(w.astype(dtype), name=f"w{i}") for i, w in enumerate(start)]
    course = []

    def apply(*grads):
        optimizer.apply(grads, variables)

    step = ow.function(apply) if traced else apply
    for grads in steps:
        step(*[ow.constant(g.astype(dtype)) for g in grads])
        course.append([v.numpy() for v in variables])
    return course, variables


@pytest.mark.parametrize("row", SAMPLED, ids=label)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_steps_follow_the_formula_in_float64(row, traced):
    name, options = row
    start, steps = problem()
    optimizer = getattr(optimizers, name)(RATE, **options)
    course, variables = run(optimizer, start, steps, "float64", traced)
    expected, averages = descend(name, start, steps, RATE, **options)
    check(course, expected, 1e-11)
    if options.get("use_ema"):
        optimizer.finalize_variable_values(variables)
        check([[v.numpy() for v in variables]], [averages], 1e-11)
    assert int(optimizer._iterations) == STEPS
    assert int(optimizer.iterations) == STEPS // options.get("gradient_accumulation_steps", 1)


LARGE = ((150, 250), (40000,), (1, 3, 3001), (2,))
"""Shapes of variables that steps update in place, in blocks with a smaller last one, and of a small variable."""


@pytest.mark.parametrize("row", SAMPLED, ids=label)
def test_large_variables_are_updated_in_place_by_the_same_formula(row):
    name, options = row
    start, steps = problem(4, shapes=LARGE)
    optimizer = getattr(optimizers, name)(RATE, **options)
    course, variables = run(optimizer, start, steps, "float64")
    expected, averages = descend(name, start, steps, RATE, **options)
    check(course, expected, 1e-11)
    if options.get("use_ema"):
        np.testing.assert_allclose(optimizer._averages[0].numpy(), averages[0], rtol=1e-11)
    if "ema_overwrite_frequency" not in options:
        places = [v.read_array().ctypes.data for v in [*variables[:3], *optimizer.variables] if v.shape.rank]
        optimizer.apply([ow.constant(g) for g in steps[0]], variables)
        after = [v.read_array().ctypes.data for v in [*variables[:3], *optimizer.variables] if v.shape.rank]
        small = [v.shape == (2,) for v in [*variables[:3], *optimizer.variables] if v.shape.rank]
        assert [a for a, s in zip(after, small) if not s] == [p for p, s in zip(places, small) if not s]


@pytest.mark.parametrize("options", SCHEDULE_FREE, ids=str)
def test_schedule_free_steps_follow_the_formula(options):
    start, steps = problem(4, shapes=((3, 2), (5,)))
    course, _ = run(optimizers.ScheduleFreeAdamW(RATE, **options), start, steps, "float64")
    expected, _ = descend("ScheduleFreeAdamW", start, steps, RATE, **options)
    check(course, expected, 1e-11)


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
@pytest.mark.parametrize("shape", [(3, 2), (130, 70)], ids=["small", "large"])
def test_what_was_read_of_a_variable_before_a_step_stays(shape, traced):
    v, optimizer = ow.Variable(np.ones(shape)), optimizers.Adam(RATE)
    optimizer.build([v])
    step = ow.function(lambda g: optimizer.apply([g], [v])) if traced else lambda g: optimizer.apply([g], [v])
    everything = [v, *optimizer.variables]
    gradient = v.value()  # the gradient may be the variable's own array
    for _ in range(2):
        held = [(x.value(), np.asarray(x), memoryview(np.asarray(x.value())), x.value()[...]) for x in everything]
        before = [x.numpy() for x in everything]
        step(gradient)
        for kept, was in zip(held, before, strict=True):
            for k in kept:
                np.testing.assert_array_equal(np.asarray(k), was)
    assert gradient.numpy().min() == gradient.numpy().max() == 1.0


@pytest.mark.parametrize("shape", [(4, 6), (130, 70)], ids=["small", "large"])
def test_arrays_of_any_layout_are_updated_right(shape):
    rng = np.random.default_rng(3)
    w, gradients = rng.normal(size=shape), rng.normal(size=(3, *shape))
    v, optimizer = ow.Variable(w), optimizers.Adam(RATE)
    v.assign(np.asfortranarray(w))
    for g in gradients:
        optimizer.apply([ow.transpose(ow.constant(np.ascontiguousarray(g.T)))], [v])
    expected, _ = descend("Adam", [w], [[g] for g in gradients], RATE)
    np.testing.assert_allclose(v.numpy(), expected[-1][0], rtol=1e-11)


@pytest.mark.parametrize("shape", [(4, 6), (130, 70)], ids=["small", "large"])
def test_gradients_are_broadcast_to_the_variable_and_others_refused(shape):
    v, optimizer = ow.Variable(np.ones(shape)), optimizers.SGD(0.5)
    optimizer.apply([ow.constant(np.arange(shape[1], dtype="f8"))], [v])
    np.testing.assert_array_equal(v.numpy(), np.broadcast_to(1 - 0.5 * np.arange(shape[1]), shape))
    before = v.numpy()
    with pytest.raises(ow.errors.InvalidArgumentError, match="the gradient does not have the shape of the variable"):
        optimizer.apply([ow.ones((shape[0], shape[1] + 1), "float64")], [v])
    np.testing.assert_array_equal(v.numpy(), before)


@pytest.mark.parametrize("row", SAMPLED, ids=label)
def test_steps_follow_the_formula_in_float32(row):
    name, options = row
    start, steps = problem()
    start = [w.astype("f4").astype("f8") for w in start]
    steps = [[g.astype("f4").astype("f8") for g in grads] for grads in steps]
    course, _ = run(getattr(optimizers, name)(RATE, **options), start, steps, "float32")
    expected, _ = descend(name, start, steps, RATE, **options)
    # 1 - 0.999 in float32 is 1.3e-5 off, and the first steps of Adam's kin divide by its root
    check(course, expected, 3e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", sorted(OWN))
def test_half_precision_variables_keep_their_dtype_and_descend(name, dtype):
    w = ow.Variable(np.full(3, 1.0, ow.as_dtype(dtype).np))
    optimizer = getattr(optimizers, name)(
        0.125, **({"epsilon": 1e-3} if "epsilon" in getattr(optimizers, name).hyperparameters else {})
    )
    optimizer.build([w])
    slots = [v for v in optimizer.variables[2:] if v.shape.rank]
    for _ in range(3):
        optimizer.apply([np.ones(3, "f4")], [w])
    assert w.dtype.name == dtype
    assert {v.dtype.name for v in slots} <= {dtype}
    assert np.isfinite(w.numpy().astype("f4")).all()
    assert (w.numpy().astype("f4") < 1.0).all()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Lion"])
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_a_schedule_sees_the_number_of_steps_made_before(name, traced):
    start, steps = problem()
    schedule = schedules.PiecewiseConstantDecay([2, 5], [0.5, 0.125, 0.03125])
    course, _ = run(getattr(optimizers, name)(schedule), start, steps, "float64", traced)
    expected, _ = descend(name, start, steps, lambda t: 0.5 if t <= 2 else 0.125 if t <= 5 else 0.03125)
    check(course, expected, 1e-11)


def test_a_schedule_counts_single_steps_while_gradients_accumulate():
    start, steps = problem()
    schedule = schedules.PiecewiseConstantDecay([4, 8], [0.5, 0.125, 0.03125])
    course, _ = run(optimizers.SGD(schedule, gradient_accumulation_steps=3), start, steps, "float64")
    expected, _ = descend(
        "SGD", start, steps, lambda t: 0.5 if t <= 4 else 0.125 if t <= 8 else 0.03125, gradient_accumulation_steps=3
    )
    check(course, expected, 1e-12)


def test_one_trace_serves_all_steps_and_follows_the_learning_rate():
    w = ow.Variable([1.0, 2.0])
    optimizer = optimizers.SGD(0.5)

    @ow.function
    def step(g):
        return optimizer.apply_gradients([(g, w)])

    step(ow.constant([1.0, 1.0]))
    optimizer.learning_rate = 0.25
    step(ow.constant([1.0, 1.0]))
    assert step.experimental_get_tracing_count() <= 2  # one, or two where slots are made in the first
    np.testing.assert_array_equal(w.numpy(), [0.25, 1.25])


def test_a_constraint_is_applied_after_the_update():
    w = ow.Variable([0.1, 2.0], constraint=lambda x: ow.where(x > 0.0, x, ow.zeros_like(x)))
    optimizers.SGD(1.0).apply([np.ones(2, "f4")], [w])
    np.testing.assert_array_equal(w.numpy(), [0.0, 1.0])


def test_variables_of_several_dtypes_in_one_step():
    w, x = ow.Variable(np.float32([1.0, 2.0])), ow.Variable(np.float64([3.0]))
    optimizer = optimizers.Adam(0.5, global_clipnorm=1.0)
    optimizer.apply([np.float32([3.0, 0.0]), np.float64([4.0])], [w, x])
    expected, _ = descend(
        "Adam",
        [np.array([1.0, 2.0]), np.array([3.0])],
        [[np.array([3.0, 0.0]), np.array([4.0])]],
        0.5,
        global_clipnorm=1.0,
    )
    check([[w.numpy(), x.numpy()]], expected, 1e-5)

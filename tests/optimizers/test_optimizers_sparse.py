"""Gradients by rows: the same update as by the dense gradient they stand for.

Lives here: IndexedSlices through every optimizer, clipping and accumulation.
Not here: the updates themselves (test_optimizers_updates.py).
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from make_sparse_numbers import FILE, KEPT, KERAS, START, STEPS, TORCH

import opwright as ow
from opwright import optimizers
from thorough import crossed

MAKERS = {
    "SGD": lambda: optimizers.SGD(0.25),
    "SGD-momentum": lambda: optimizers.SGD(0.25, 0.5),
    "SGD-nesterov": lambda: optimizers.SGD(0.25, 0.5, True),
    "SGD-decay": lambda: optimizers.SGD(0.25, weight_decay=0.5),
    "SGD-clipnorm": lambda: optimizers.SGD(0.25, clipnorm=0.5),
    "SGD-clipvalue": lambda: optimizers.SGD(0.25, clipvalue=0.75),
    "SGD-global_clipnorm": lambda: optimizers.SGD(0.25, global_clipnorm=0.5),
    "SGD-scale": lambda: optimizers.SGD(0.25, loss_scale_factor=4.0),
    "SGD-accumulate": lambda: optimizers.SGD(0.25, gradient_accumulation_steps=2),
    "Adam": lambda: optimizers.Adam(0.25),
    "Adam-amsgrad": lambda: optimizers.Adam(0.25, amsgrad=True),
    "AdamW": lambda: optimizers.AdamW(0.25),
    "Adamax": lambda: optimizers.Adamax(0.25),
    "Nadam": lambda: optimizers.Nadam(0.25),
    "RMSprop": lambda: optimizers.RMSprop(0.25),
    "RMSprop-centered": lambda: optimizers.RMSprop(0.25, momentum=0.5, centered=True, epsilon=1e-3),
    "Adadelta": lambda: optimizers.Adadelta(0.25),
    "Adagrad": lambda: optimizers.Adagrad(0.25),
    "Adagrad-clipnorm": lambda: optimizers.Adagrad(0.25, clipnorm=0.5),
    "Ftrl": lambda: optimizers.Ftrl(0.25, l1_regularization_strength=0.1),
    "Lion": lambda: optimizers.Lion(0.25),
}


def dense_of(indices, values):
    dense = np.zeros_like(START)
    np.add.at(dense, np.asarray(indices, int), np.asarray(values))
    return dense


def slices_of(indices, values, shape=(5, 2)):
    shape = None if shape is None else ow.constant(np.array(shape, "i4"))
    return ow.IndexedSlices(ow.constant(np.asarray(values, "f8")), ow.constant(np.asarray(indices, "i4")), shape)


@pytest.mark.parametrize("shape", [(5, 2), None], ids=["shape", "no_shape"])
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_rows_do_what_the_dense_gradient_does(maker, shape):
    by_rows, by_dense = ow.Variable(START), ow.Variable(START)
    first, second = maker(), maker()
    for indices, values in STEPS:
        first.apply([slices_of(indices, values, shape)], [by_rows])
        second.apply([ow.constant(dense_of(indices, values))], [by_dense])
        np.testing.assert_allclose(by_rows.numpy(), by_dense.numpy(), rtol=1e-12, atol=1e-14)
    for a, b in zip(first.variables, second.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-14, err_msg=a.name)


@pytest.mark.parametrize("maker", [MAKERS["SGD"], MAKERS["Adagrad"], MAKERS["Adam"]], ids=["SGD", "Adagrad", "Adam"])
def test_rows_in_a_trace(maker):
    eager, traced = ow.Variable(START), ow.Variable(START)
    first, second = maker(), maker()
    step = ow.function(lambda values, indices: second.apply([ow.IndexedSlices(values, indices, None)], [traced]))
    for indices, values in STEPS[:4]:
        first.apply([slices_of(indices, values)], [eager])
        step(ow.constant(np.asarray(values, "f8")), ow.constant(np.asarray(indices, "i4")))
        np.testing.assert_allclose(traced.numpy(), eager.numpy(), rtol=1e-12)


def test_the_gradient_of_gather_trains_the_rows_it_took():
    table = ow.Variable(np.ones((4, 3), "f4"))
    optimizer = optimizers.Adagrad(0.5, initial_accumulator_value=0.0, epsilon=0.0)
    with ow.GradientTape() as tape:
        loss = ow.reduce_sum(ow.gather(table, ow.constant([2, 0, 2])))
    gradient = tape.gradient(loss, table)
    assert isinstance(gradient, ow.IndexedSlices)
    optimizer.apply([gradient], [table])
    # sum of squares g^2 makes every touched element step by exactly the learning rate; row 2 counts once
    np.testing.assert_array_equal(table.numpy(), [[0.5] * 3, [1.0] * 3, [0.5] * 3, [1.0] * 3])


@pytest.mark.parametrize("maker", [MAKERS["SGD"], MAKERS["Adagrad"]], ids=["SGD", "Adagrad"])
def test_a_row_out_of_range_is_refused(maker):
    with pytest.raises(ow.errors.InvalidArgumentError, match="5"):
        maker().apply([slices_of([5], [[1.0, 1.0]])], [ow.Variable(START)])


# ---- the same bits as by the dense gradient -------------------------------------------------------------------------

MORE = {
    **MAKERS,
    "RMSprop-plain": lambda: optimizers.RMSprop(0.25, centered=True, epsilon=1e-3),
    "RMSprop-momentum": lambda: optimizers.RMSprop(0.25, momentum=0.5),
    "SGD-ema": lambda: optimizers.SGD(0.25, use_ema=True, ema_overwrite_frequency=2),
    "Ftrl-all": lambda: optimizers.Ftrl(0.25, -0.5, 0.1, 0.1, 0.2, 0.3, 0.4),
    "Adam-accumulate": lambda: optimizers.Adam(0.25, gradient_accumulation_steps=2),
    "Adam-decay-clip": lambda: optimizers.Adam(0.25, weight_decay=0.1, clipnorm=0.5),
}


def stepper(optimizer, variable, traced):
    def step(gradient):
        optimizer.apply([gradient], [variable])

    return ow.function(step) if traced else step


@pytest.mark.parametrize(
    ("name", "form"),
    crossed(MORE, [("float32", False), ("float32", True), ("float64", False), ("float16", False), ("bfloat16", False)]),
)
def test_bits_are_those_of_the_dense_update(name, form):
    dtype, traced = form
    exact = "clip" not in name  # norms are sums of other zeros
    rng = np.random.default_rng(7)
    start = rng.normal(size=(40, 3))
    rows, dense = (ow.Variable(ow.cast(ow.constant(start), dtype)) for _ in range(2))
    first, second = MORE[name](), MORE[name]()
    by_rows, by_dense = stepper(first, rows, traced), stepper(second, dense, traced)
    shape = ow.constant([40, 3])
    for n in (5, 0, 90, 7):
        at = rng.integers(0, 40, n)
        values = ow.cast(ow.constant(rng.integers(-8, 9, (n, 3)) / 4.0), dtype)  # sums of these are exact
        slices = ow.IndexedSlices(values, ow.constant(at), shape)
        by_rows(slices)
        by_dense(slices.to_dense())
    for a, b in zip([rows, *first.variables], [dense, *second.variables], strict=True):
        if exact:
            np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=a.name)
        else:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-2 if dtype[-2:] == "16" else 1e-5, atol=1e-6)


# ---- the worked example of the specification: rows [2, 0, 2] with values [0.5, 1, 0.25] are {0: 1, 2: 0.75} ---------


def worked(optimizer, state=()):
    p = ow.Variable(np.array([1.0, 2.0, 3.0, 4.0]))
    optimizer.build([p])
    for slot, value in zip([v for v in optimizer.variables if v.shape == p.shape], state):
        slot.assign(np.array(value))
    gradient = ow.IndexedSlices(ow.constant([0.5, 1.0, 0.25], "float64"), ow.constant([2, 0, 2]), ow.constant([4]))
    optimizer.apply([gradient], [p])
    return [p.numpy(), *(v.numpy() for v in optimizer.variables if v.shape == p.shape)]


V0, M0 = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.01, 0.02, 0.03, 0.04])
# Our momentum u is -learning_rate times the specification's v.
ADAM = (
    [0.94268679, 1.95973064, 2.93756359, 3.94305052],
    [0.19, 0.18, 0.345, 0.36],
    [0.01099, 0.01998, 0.0305325, 0.03996],
)
WORKED = {
    "sgd": (lambda: optimizers.SGD(0.1), (), ([0.9, 2, 2.925, 4],)),
    "momentum": (
        lambda: optimizers.SGD(0.1, 0.9),
        (-0.1 * V0,),
        ([0.891, 1.982, 2.898, 3.964], -0.1 * np.array([1.09, 0.18, 1.02, 0.36])),
    ),
    "nesterov": (
        lambda: optimizers.SGD(0.1, 0.9, True),
        (-0.1 * V0,),
        ([0.8019, 1.9838, 2.8332, 3.9676], -0.1 * np.array([1.09, 0.18, 1.02, 0.36])),
    ),
    "adagrad": (
        lambda: optimizers.Adagrad(0.1, 0.1, 1e-6),
        (),
        ([0.90465383, 2, 2.90785585, 4], [1.1, 0.1, 0.6625, 0.1]),
    ),
    "adam": (lambda: optimizers.Adam(0.1, 0.9, 0.999, 1e-8), (V0, M0), ADAM),
    "adam-lazy": (
        lambda: optimizers.Adam(0.1, 0.9, 0.999, 1e-8, lazy_mode=True),
        (V0, M0),
        ([0.94268679, 2, 2.93756359, 4], [0.19, 0.2, 0.345, 0.4], [0.01099, 0.02, 0.0305325, 0.04]),
    ),
}


@pytest.mark.parametrize(("maker", "state", "expected"), WORKED.values(), ids=WORKED)
def test_worked_example(maker, state, expected):
    for actual, reference in zip(worked(maker(), state), expected, strict=True):
        # Adagrad's epsilon stands under the root here, beside it in the specification: 1e-7 apart
        np.testing.assert_allclose(actual, reference, rtol=0, atol=1e-7 if maker is WORKED["adagrad"][0] else 6e-9)


# ---- numbers of peers ------------------------------------------------------------------------------------------------

NUMBERS = json.loads(FILE.read_text())
PEERS = [(f"keras-{n}", *KERAS[n], NUMBERS["keras"][n]) for n in KERAS]
PEERS += [(f"torch-{n}", *TORCH[n][2:], NUMBERS["torch"][n]) for n in TORCH]


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize(("name", "kind", "settings", "wanted"), PEERS, ids=[p[0] for p in PEERS])
def test_steps_are_those_of_peers(name, kind, settings, wanted, traced):
    v = ow.Variable(START)
    step, wanted = stepper(getattr(optimizers, kind)(0.25, **settings), v, traced), iter(wanted)
    for i, (indices, values) in enumerate(STEPS, 1):
        step(slices_of(indices, values))
        if i in KEPT:  # Keras has its coefficients in float32, even of float64 variables
            np.testing.assert_allclose(v.numpy(), next(wanted), rtol=0, atol=1e-5 if "keras" in name else 1e-14)


# ---- lazy mode: rows that are not named do not move, nor does their state -------------------------------------------

LAZY = {
    "Adam": lambda **k: optimizers.Adam(0.25, **k),
    "Adam-amsgrad": lambda **k: optimizers.Adam(0.25, amsgrad=True, **k),
    "AdamW": lambda **k: optimizers.AdamW(0.25, weight_decay=0.5, **k),
    "Adamax": lambda **k: optimizers.Adamax(0.25, **k),
    "Nadam": lambda **k: optimizers.Nadam(0.25, **k),
}


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("maker", LAZY.values(), ids=LAZY)
def test_lazy_mode_moves_only_the_rows_that_are_named(maker, traced):
    """Each row by itself is what the dense rule makes of its own gradients, where steps without one are left out."""
    lazy_rows, optimizer = ow.Variable(START), maker(lazy_mode=True)
    step = stepper(optimizer, lazy_rows, traced)
    whole, reference = ow.Variable(START), maker()
    reference.build([whole])
    for indices, values in STEPS:
        step(slices_of(indices, values))
        kept = [v.numpy() for v in (whole, *reference.variables)]
        reference.apply([ow.constant(dense_of(indices, values))], [whole])
        untouched = [r for r in range(5) if r not in indices]
        for variable, before in zip((whole, *reference.variables), kept):
            if variable.shape == (5, 2):
                after = variable.numpy()
                after[untouched] = before[untouched]
                variable.assign(after)
        np.testing.assert_allclose(lazy_rows.numpy(), whole.numpy(), rtol=1e-12)
        for a, b in zip(optimizer.variables, reference.variables, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, err_msg=a.name)
    assert optimizer.iterations.numpy() == len(STEPS)  # every step counts, that without rows too


def test_lazy_mode_is_in_the_configuration_where_it_is_on():
    assert "lazy_mode" not in optimizers.Adam().get_config()
    again = optimizers.Adam.from_config(optimizers.Adam(lazy_mode=True).get_config())
    assert again.lazy_mode
    assert optimizers.deserialize(optimizers.serialize(again)).lazy_mode


def test_lazy_mode_with_accumulation_moves_the_rows_that_were_named_in_any_step():
    v, optimizer = ow.Variable(START), optimizers.Adam(0.25, lazy_mode=True, gradient_accumulation_steps=2)
    optimizer.apply([slices_of([1], [[1.0, 2.0]])], [v])
    optimizer.apply([slices_of([3, 3], [[1.0, 1.0], [1.0, 1.0]])], [v])
    assert sorted(np.flatnonzero((v.numpy() != START).any(1))) == [1, 3]
    optimizer.apply([slices_of([0], [[1.0, 2.0]])], [v])
    optimizer.apply([slices_of([0], [[1.0, 2.0]])], [v])
    assert sorted(np.flatnonzero((v.numpy() != START).any(1))) == [0, 1, 3]


# ---- what went wrong elsewhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MORE)
def test_unique_unsorted_rows_get_their_gradients(name):
    """A binary search through rows that are not sorted misses some of them, in silence."""
    one, other = ow.Variable(np.ones((6, 2))), ow.Variable(np.ones((6, 2)))
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    MORE[name]().apply([slices_of([5, 2, 0], values, (6, 2))], [one])
    MORE[name]().apply([slices_of([0, 2, 5], values[::-1], (6, 2))], [other])
    np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_the_first_step_of_adam_is_corrected_for_the_first_step():
    v = ow.Variable(np.zeros((3, 1)))
    optimizers.Adam(0.1, epsilon=1e-12).apply([slices_of([1], [[2.0]], (3, 1))], [v])
    np.testing.assert_allclose(v.numpy(), [[0], [-0.1], [0]], rtol=1e-7)


def test_adamw_takes_rows_and_decays_all_others():
    v = ow.Variable(np.ones((3, 1)))
    optimizers.AdamW(0.1, 0.5, epsilon=1e-12).apply([slices_of([1], [[2.0]], (3, 1))], [v])
    np.testing.assert_allclose(v.numpy(), [[0.95], [0.85], [0.95]], rtol=1e-7)


@pytest.mark.parametrize("last", [0, 3, 4])
def test_the_last_row_named_may_be_any(last):
    v, w = ow.Variable(np.ones((5, 1))), ow.Variable(np.ones((5, 1)))
    one, other = optimizers.Adam(0.1), optimizers.Adam(0.1)
    for _ in range(2):
        one.apply([slices_of([last], [[1.0]], (5, 1))], [v])
        other.apply([ow.constant(np.eye(5)[:, last : last + 1])], [w])
    np.testing.assert_array_equal(v.numpy(), w.numpy())


def test_rows_are_added_up_before_they_are_squared():
    v, optimizer = ow.Variable(np.zeros(4)), optimizers.Adagrad(0.1, 0.1)
    gradient = ow.IndexedSlices(ow.constant([0.5, 1.0, 0.25], "float64"), ow.constant([2, 0, 2]), ow.constant([4]))
    optimizer.apply([gradient], [v])
    np.testing.assert_allclose(optimizer.variables[-1].numpy()[2], 0.1 + 0.75**2)


# ---- in place, and nobody else's values -----------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_what_was_read_before_a_step_stays_as_it_was(traced):
    v = ow.Variable(START)
    step = stepper(optimizers.Adam(0.25), v, traced)
    held, part, view = v.value(), v[1:3], np.asarray(v)
    step(slices_of([1], [[1.0, 1.0]]))
    step(slices_of([2], [[1.0, 1.0]]))
    np.testing.assert_array_equal(held.numpy(), START)
    np.testing.assert_array_equal(part.numpy(), START[1:3])
    np.testing.assert_array_equal(view, START)


def test_a_table_is_updated_where_it_lies():
    v, optimizer = ow.Variable(np.ones((2000, 8), "f4")), optimizers.Adagrad(0.1)
    gradient = ow.IndexedSlices(ow.ones((2, 8)), ow.constant([1, 1]), ow.constant([2000, 8]))
    optimizer.apply([gradient], [v])
    places = [x.read_array().ctypes.data for x in (v, optimizer.variables[-1])]
    optimizer.apply([gradient], [v])
    assert places == [x.read_array().ctypes.data for x in (v, optimizer.variables[-1])]

"""Gradients by rows: the same update as by the dense gradient they stand for.

Lives here: IndexedSlices through every optimizer, clipping and accumulation.
Not here: the updates themselves (test_optimizers_updates.py).
"""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from opwright import optimizers

START = np.linspace(-1.0, 1.0, 10).reshape(5, 2)
# Rows twice in a step, rows that come and go, rows out of order, no rows at all.
STEPS = [([3, 0], [[1.0, -2.0], [0.5, 0.25]]), ([1, 4, 1], [[1.0, 1.0], [-3.0, 0.5], [0.5, -2.0]]),
         ([2, 2, 2], [[0.5, 0.5]] * 3), ([0], [[2.0, -1.0]]), ([], np.zeros((0, 2)))]  # fmt: skip
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

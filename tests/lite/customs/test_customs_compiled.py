"""Shipped custom operators as machine code: the tests of their values once more, with the compiled engine, on both
kinds of vectors. Each of their models must be one native node."""

from __future__ import annotations

import custom_models
import numpy as np
import pytest
from test_customs_images import (  # noqa: F401  which are collected here, too
    test_an_image_transformed,
    test_landmarks_moved,
    test_pools_over_quantised_volumes,
    test_the_crop_around_landmarks_in_a_range,
    test_the_crop_around_landmarks_in_pixels,
    test_the_greatest_of_each_window_and_its_place,
    test_unpooling_inverts_a_pool,
    window,
)
from test_customs_values import (  # noqa: F401
    ROLLS,
    test_attention_is_its_formula,
    test_functions_element_by_element,
    test_mean_and_variance_become_0_and_1,
)

from opwright.core import flags


@pytest.fixture(autouse=True, params=["host", "x86-64-v3"])
def compiled(request, monkeypatch):
    made = []

    class Interpreter(custom_models.Interpreter):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            made.append(self)

    monkeypatch.setattr(custom_models, "Interpreter", Interpreter)
    with flags.override(compiled=True, background=False, verify=True, target=request.param):
        yield
    assert made
    for interpreter in made:
        nodes = [node.name for node in interpreter._subgraphs[0].execution_plan]
        assert nodes == ["Opwright"], (nodes, interpreter._engine.delegate.refused)


@pytest.mark.parametrize(("shape", "shift", "axis"), [r for r in ROLLS if 0 not in r[0]], ids=str)
def test_elements_rolled(shape, shift, axis):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    given = [x, np.array(shift, np.int32), np.array(axis, np.int64)]
    y = custom_models.answers("Roll", given, ["INT32"], constant=(1, 2))[0]
    for index in np.ndindex(shape):
        place = list(index)
        for s, a in zip(np.atleast_1d(shift), np.atleast_1d(axis)):
            place[a] = (place[a] + s) % shape[a]
        assert y[tuple(place)] == x[index]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("name", ["AvgPool3D", "MaxPool3D"])
def test_pools_over_volumes_of_floats(name, padding):
    sizes, kernel, strides = (4, 5, 6), (2, 3, 2), (1, 2, 3)
    x = np.random.default_rng(1).normal(size=(2, *sizes, 3)).astype(np.float32) - 3
    options = {"ksize": [1, *kernel, 1], "strides": [1, *strides, 1], "padding": padding, "data_format": "NDHWC"}
    y = custom_models.answers(name, [x], ["FLOAT32"], options)[0]
    found = [window(n, k, s, 1 if padding == "SAME" else 2) for n, k, s in zip(sizes, kernel, strides)]
    assert y.shape == (2, *(out for out, _ in found), 3)
    for n, *place, c in np.ndindex(y.shape):
        starts = [i * s - before for i, s, (_, before) in zip(place, strides, found)]
        part = x[n, *(slice(max(0, at), at + k) for at, k in zip(starts, kernel)), c].astype(np.float64)
        np.testing.assert_allclose(y[n, *place, c], part.mean() if name == "AvgPool3D" else part.max(), 1e-5)


def test_gated_units_with_weights_of_the_file():
    rng, steps, batch, n, units = np.random.default_rng(2), 3, 2, 4, 17
    shapes = [(steps, batch, n), (batch, units), (2 * units, n + units), (2 * units,), (units, n + units), (units,)]
    x, h, wg, bg, wc, bc = given = [rng.normal(0, 0.5, shape).astype(np.float32) for shape in shapes]
    y, last = custom_models.answers("UNIDIRECTIONAL_SEQUENCE_GRU", given, ["FLOAT32"] * 2, constant=(2, 3, 4, 5))
    state = h.astype(np.float64)
    for t in range(steps):
        gates = 1 / (1 + np.exp(-(np.concatenate([x[t], state], 1) @ wg.T.astype(np.float64) + bg)))
        reset, update = gates[:, :units], gates[:, units:]
        new = np.tanh(np.concatenate([x[t], reset * state], 1) @ wc.T.astype(np.float64) + bc)
        state = (1 - update) * new + update * state
        np.testing.assert_allclose(y[t], state, 1e-5, 1e-6)
    np.testing.assert_array_equal(last, y[-1])

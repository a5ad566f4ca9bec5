"""Shipped custom operators as machine code: the tests of their values once more, with the compiled engine, on both
kinds of vectors if thorough. Each of their models must be one native node."""

from __future__ import annotations

import pathlib

import custom_models
import numpy as np
import pytest
from foreign import HERE
from test_customs_images import (  # noqa: F401  which are collected here, too
    test_an_image_resampled,
    test_an_image_transformed,
    test_an_image_warped_by_a_flow,
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
    test_a_table_of_integers,
    test_attention_is_its_formula,
    test_fourier_transforms_of_any_length,
    test_functions_element_by_element,
    test_mean_and_variance_become_0_and_1,
)

from opwright.core import flags
from thorough import THOROUGH


@pytest.fixture(autouse=True, params=HERE if THOROUGH else HERE[:1])  # `make test-avx2` runs them by AVX2
def compiled(request, monkeypatch):
    created = []

    class Interpreter(custom_models.Interpreter):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            created.append(self)

    monkeypatch.setattr(custom_models, "Interpreter", Interpreter)
    with flags.override(compiled=True, background=False, verify=True, target=request.param):
        yield
    assert created
    for interpreter in created:
        nodes = [node.name for node in interpreter._subgraphs[0].execution_plan]
        assert nodes == ["Opwright"], (nodes, interpreter._engine.delegate.refused)


@pytest.mark.parametrize(("shape", "shift", "axis"), [r for r in ROLLS if 0 not in r[0]], ids=str)
def test_elements_rolled(shape, shift, axis):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    inputs = [x, np.array(shift, np.int32), np.array(axis, np.int64)]
    y = custom_models.answers("Roll", inputs, ["INT32"], constant=(1, 2))[0]
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
    result = [window(n, k, s, 1 if padding == "SAME" else 2) for n, k, s in zip(sizes, kernel, strides)]
    assert y.shape == (2, *(out for out, _ in result), 3)
    for n, *place, c in np.ndindex(y.shape):
        starts = [i * s - before for i, s, (_, before) in zip(place, strides, result)]
        part = x[n, *(slice(max(0, at), at + k) for at, k in zip(starts, kernel)), c].astype(np.float64)
        np.testing.assert_allclose(y[n, *place, c], part.mean() if name == "AvgPool3D" else part.max(), 1e-5)


def test_gated_units_with_weights_of_the_file():
    rng, steps, batch, n, units = np.random.default_rng(2), 3, 2, 4, 17
    shapes = [(steps, batch, n), (batch, units), (2 * units, n + units), (2 * units,), (units, n + units), (units,)]
    x, h, wg, bg, wc, bc = inputs = [rng.normal(0, 0.5, shape).astype(np.float32) for shape in shapes]
    y, last = custom_models.answers("UNIDIRECTIONAL_SEQUENCE_GRU", inputs, ["FLOAT32"] * 2, constant=(2, 3, 4, 5))
    state = h.astype(np.float64)
    for t in range(steps):
        gates = 1 / (1 + np.exp(-(np.concatenate([x[t], state], 1) @ wg.T.astype(np.float64) + bg)))
        reset, update = gates[:, :units], gates[:, units:]
        new = np.tanh(np.concatenate([x[t], reset * state], 1) @ wc.T.astype(np.float64) + bc)
        state = (1 - update) * new + update * state
        np.testing.assert_allclose(y[t], state, 1e-5, 1e-6)
    np.testing.assert_array_equal(last, y[-1])


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [((2, 8, 5), (8, 8)), ((5, 9), (4, 6)), ((3, 2), (7, 9)), ((4, 1), (1, 1)), ((1, 16, 33), (16, 64))],
    ids=str,
)
def test_spectra_of_any_size_become_images(shape, lengths):
    """Cut or filled with zeros, in float64."""
    rng = np.random.default_rng(4)
    x = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)
    result = custom_models.answers("IRFFT2D", [x, np.int32(lengths)], ["FLOAT32"], constant=(1,))[0]
    np.testing.assert_allclose(result, np.fft.irfft2(x.astype(np.complex128), lengths), atol=1e-5)


@pytest.mark.parametrize("index", ["INT32", "INT64"])
@pytest.mark.parametrize(("padding", "batch"), [("SAME", False), ("VALID", True)])
def test_the_greatest_of_each_window_and_its_index(padding, batch, index):
    x = np.random.default_rng(6).integers(-3, 3, (2, 5, 7, 3)).astype(np.float32)  # equal ones: the first counts
    x[0, :3, :3, 1] = -np.inf
    options = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": padding, "include_batch_in_index": batch}
    codes = {"INT32": 3, "INT64": 9}  # as TensorFlow numbers its types
    y, at = custom_models.answers("MaxPoolWithArgmax", [x], ["FLOAT32", index], options | {"Targmax": codes[index]})
    before = {"SAME": ((5 - 5 + 1) // 2, 1), "VALID": (0, 0)}[padding]
    assert y.shape == ((2, 3, 4, 3) if padding == "SAME" else (2, 2, 3, 3))
    for n, p, q, c in np.ndindex(y.shape):
        taps = [
            (i, j)
            for i in range(p * 2 - before[0], p * 2 - before[0] + 2)
            if 0 <= i < 5
            for j in range(q * 2 - before[1], q * 2 - before[1] + 3)
            if 0 <= j < 7
        ]
        i, j = max(taps, key=lambda t: x[n, *t, c])
        if x[n, i, j, c] == -np.inf:
            i = j = 0
        else:
            assert y[n, p, q, c] == x[n, i, j, c]
        assert at[n, p, q, c] == (i * 7 + j) * 3 + c + batch * n * 105


def test_axes_of_broadcast_gradients_follow_from_sizes_of_a_run():
    """TensorFlow's axes (make_customs.py), then others by hand: constants behind a guard."""
    folder = pathlib.Path(__file__).parents[2] / "data" / "customs"
    with np.load(folder / "answers.npz") as kept:
        arrays = {key.split("|")[1]: kept[key] for key in kept if key.startswith("broadcast_axes|")}
    model = custom_models.Interpreter(model_path=str(folder / "broadcast_axes.tflite"))
    runner = model.get_signature_runner()
    given = {key: value for key, value in arrays.items() if key[0] == "x"}
    for _ in range(4):
        actual = runner(**given)
        for key, axes in actual.items():
            np.testing.assert_array_equal(axes, arrays[key])
    other = {"x0": np.int32([2, 3, 1, 5]), "x1": np.int32([3, 4, 5]), "x2": np.int32([1, 1])}
    for _ in range(4):
        axes = {key: value.tolist() for key, value in runner(**other).items()}
        assert axes == {"y0": [2], "y1": [0], "y2": [0], "y3": [2], "y4": [], "y5": []}
    with pytest.raises(RuntimeError, match="do not broadcast"):
        runner(**other | {"x1": np.int32([3, 4, 4])})

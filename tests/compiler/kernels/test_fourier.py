"""Fourier transforms of rows, at lengths about those where the kernel changes its way; oracle: NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from foreign import HERE
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.fourier import fourier
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.domain_ops import Fourier
from opwright.core import flags
from opwright.core.dtypes import float32, float64

RNG = np.random.default_rng(2)
NEAR = 1e-6
"""The tolerance relative to the largest element of a spectrum."""
REAL = [(1, 1), (2, 2), (3, 4), (64, 64), (128, 128), (97, 128), (200, 512), (1024, 1024), (60, 60), (250, 300)]
COMPLEX = [(1, 1), (3, 3), (32, 32), (60, 64), (128, 128)]
"""Numbers in a row, and in a spectrum."""


def form_of(x, size, is_complex):
    b = buffer(x)
    shape = (*x.shape[:-2], size, 2) if is_complex else (*x.shape[:-1], size // 2 + 1, 2)
    return Fourier(Buffer("y", float32, shape), b, size, is_complex), b


def near(actual, expected):
    gap = np.abs(actual[..., 0] + 1j * actual[..., 1] - expected).max()
    assert gap <= NEAR * np.abs(expected).max(), gap


@pytest.mark.parametrize("target", HERE)
def test_rows_of_real_numbers(target):
    with flags.override(target=target):
        for n, size in REAL:
            x = RNG.normal(size=(3, n)).astype(np.float32)
            form, b = form_of(x, size, False)
            near(run(form, {b: x}), np.fft.rfft(x.astype(np.float64), size))


@pytest.mark.parametrize("target", HERE)
def test_rows_of_complex_numbers(target):
    with flags.override(target=target):
        for n, size in COMPLEX:
            x = RNG.normal(size=(2, 2, n, 2)).astype(np.float32)
            form, b = form_of(x, size, True)
            near(run(form, {b: x}), np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1], size))


def test_a_wave_is_one_line():
    """x[j] = cos(2 pi 5 j / 256): all is 0 but y[5] = 128."""
    x = np.cos(2 * np.pi * 5 / 256 * np.arange(256)).astype(np.float32)[None]
    form, b = form_of(x, 256, False)
    y = run(form, {b: x})[0]
    np.testing.assert_allclose(y[5], [128, 0], atol=2e-5)
    assert np.abs(np.delete(y, 5, 0)).max() < 2e-5


def test_threads_give_the_same_bits():
    x = RNG.normal(size=(40, 512)).astype(np.float32)
    form, b = form_of(x, 512, False)
    np.testing.assert_array_equal(split(form, {b: x}, 7), run(form, {b: x}))


def test_a_nan_reaches_its_own_row_alone():
    x = RNG.normal(size=(3, 128)).astype(np.float32)
    x[1, 77] = np.nan
    form, b = form_of(x, 128, False)
    y = run(form, {b: x})
    assert np.isnan(y[1, :-1]).all()
    assert np.isfinite(y[[0, 2]]).all()


WHOLE = {"dtype": float64, "m": 64, "real": False, "whole": True, "inverse": True}


@targets((fourier, {"dtype": float32, "m": 64, "real": True, "whole": False, "inverse": False}), (fourier, WHOLE))
def test_transforms_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)

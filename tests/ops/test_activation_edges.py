"""Activations that choose by sign, computed without a choice: the same at all edges as the definition.

Lives here: LeakyRelu, Elu and Selu on zeros, infinities, NaN, the smallest and the largest numbers.
Not here: their formula on common numbers (cases_nn.py).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import opwright as ow

NUMBERS = np.array([0.0, -0.0, 1e-30, -1e-30, 1e-7, -1e-7, 5, -5, 200, -200, 3e4, -3e4, np.inf, -np.inf, np.nan])
DTYPES = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]
A, S = 1.6732632423543772, 1.0507009873554805


def numbers(dtype):
    with np.errstate(all="ignore"):
        return np.concatenate([NUMBERS, np.random.default_rng(0).normal(size=500)]).astype(dtype)


def same(actual, expected):
    """In float64, which holds all of them: NumPy sees no NaN in bfloat16 here."""
    np.testing.assert_array_equal(actual.astype("f8"), expected.astype("f8"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", [0.2, 1.0, 0.0, 3.0, -0.5, 1e-10, np.inf])
def test_leaky_relu(alpha, dtype):
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        expected = np.where(x > 0, x, x * x.dtype.type(alpha))
    actual = ow.nn.leaky_relu(ow.constant(x), alpha).numpy()
    assert actual.dtype == x.dtype
    same(actual, expected)
    numeric = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[numeric]), np.signbit(expected[numeric]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elu_and_selu(dtype):
    x = numbers(dtype)
    kind = x.dtype.type
    with np.errstate(all="ignore"):
        elu, selu = np.where(x < 0, np.expm1(x), x), np.where(x < 0, kind(S * A) * np.expm1(x), kind(S) * x)
    same(ow.nn.elu(ow.constant(x)).numpy(), elu)
    same(ow.nn.selu(ow.constant(x)).numpy(), selu)

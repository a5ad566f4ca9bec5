"""Functions composed of operators against NumPy's in float64; limits, infinities and NaN as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.ops import composed_functions
from opwright.ops.windows import is_same_padding, same_padding

UNARY = ("exp2", "log2", "log10", "cbrt", "sinc", "trunc", "deg2rad", "rad2deg", "signbit", "nan_to_num")
BINARY = ("hypot", "logaddexp", "logaddexp2")
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan]
TOLERANCE = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-12}


def elements(dtype: str) -> np.ndarray:
    """Return ordinary numbers, some beyond the square root of the dtype's greatest, and special ones."""
    large = float(np.finfo(dtype).max) / 4
    drawn = np.random.default_rng(19).uniform(-9, 9, 40)
    return np.array([*drawn, *np.round(drawn[:8]), large, -large, *SPECIAL], dtype)


def compare(actual: Any, expected: np.ndarray, dtype: str) -> None:
    actual = np.asarray(actual)
    with np.errstate(over="ignore"):
        expected = expected.astype(actual.dtype)
    np.testing.assert_allclose(actual, expected, TOLERANCE[dtype], 4e-7 if dtype != "float64" else 1e-15)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_functions_agree_with_numpy(dtype: str) -> None:
    x = elements(dtype)
    pairs = [a.reshape(-1) for a in np.meshgrid(x[::3], x[-8:])]
    with np.errstate(all="ignore"):
        for name in UNARY:
            numbers = x
            if name == "sinc":  # elsewhere sin(pi x) is that of the rounded pi x
                numbers = x[np.abs(x) < (0.5 if dtype == "float16" else 10)]
            wide = numbers if name == "nan_to_num" else numbers.astype(np.float64)
            compare(getattr(composed_functions, name)(ow.constant(numbers)), getattr(np, name)(wide), dtype)
        for name in BINARY:
            expected = getattr(np, name)(*(a.astype(np.float64) for a in pairs))
            compare(getattr(composed_functions, name)(*map(ow.constant, pairs)), expected, dtype)


def test_powers_of_two_are_exact() -> None:
    x = np.arange(-126, 128).astype(np.float32)
    np.testing.assert_array_equal(composed_functions.exp2(ow.constant(x)), np.exp2(x.astype(np.float64)))


def test_sinc_has_a_slope_at_0() -> None:
    x = ow.constant(np.float32([0.0, 0.5]))
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = composed_functions.sinc(x)
    np.testing.assert_allclose(tape.gradient(y, x), [0.0, -4 / np.pi], 1e-6)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_equal_operands_share_a_gradient_as_in_pytorch(name: str) -> None:
    """PyTorch 2.13 has halves, TensorFlow 2.21 and Keras 3.15 ones and zeros; elsewhere shares are those of softmax."""
    a, b = np.float32([1, 0, 2, -np.inf, np.inf, 100]), np.float32([1, 0, 1, 3, 3, -100])
    base = 2.0 if name == "logaddexp2" else np.e
    share = 1 / (1 + base ** (b - a).astype(np.float64))
    for halves in (True, False):
        x, y = ow.constant(a), ow.constant(b)
        with ow.GradientTape() as tape:
            tape.watch([x, y])
            z = getattr(composed_functions, name)(x, y, halves=halves)
        expected = np.where((a == b) & (not halves), 1.0, share)
        dx, dy = tape.gradient(z, [x, y])
        np.testing.assert_allclose(dx, expected, 1e-5)
        np.testing.assert_allclose(dy, 1 - expected, 1e-5, 1e-7)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_same_padding_is_the_least_for_ceil_of_size_over_stride(stride: int, dilation: int) -> None:
    for size in range(1, 9):
        for kernel in range(1, 5):
            extent, out = (kernel - 1) * dilation + 1, -(-size // stride)
            total = next(p for p in range(99) if len(range(0, size + p - extent + 1, stride)) >= out)
            assert same_padding(size, kernel, stride, dilation) == (total // 2, -(-total // 2))
            pads = [same_padding(size, kernel, stride, dilation)]
            assert is_same_padding([size], pads, [kernel], [stride], [dilation])
            assert not is_same_padding([size], [(pads[0][0] + 1, pads[0][1])], [kernel], [stride], [dilation])
            every = all(same_padding(n, kernel, stride, dilation) == pads[0] for n in range(1, 30))
            assert is_same_padding([None], pads, [kernel], [stride], [dilation]) <= every

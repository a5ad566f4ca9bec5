"""Kernels of contractions of float32 run on other processors, against float64: what masks hide here."""

from pathlib import Path

import numpy as np
import pytest
from foreign import run_on

from opwright.compiler import target as targets
from opwright.compiler.kernels.convolution_f32 import convolution
from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.gemm_f32 import gemm
from opwright.compiler.kernels.gemv_f32 import ACROSS, blocks_of, gemv, gevm
from opwright.compiler.kernels.tiling import row_tiles
from opwright.compiler.kernels.weight_packing_f32 import PanelsF32, pack, panels_of
from opwright.compiler.kernels.winograd import filter_size, scratch_size, transform_filter, winograd
from opwright.compiler.loops.expressions import apply, arg
from opwright.core.dtypes import float32

SUM = arg(0, float32)
RELU, SILU = (Epilogue(e, (), ()) for e in (apply("relu", SUM), apply("mul", SUM, apply("sigmoid", SUM))))
TARGETS = [
    pytest.param(name, marks=() if name == "aarch64" else pytest.mark.slow)
    for name in ("aarch64", "x86-64-v2", "riscv64", "riscv64-v", "wasm32-simd128")
]


def numbers(*shape: int) -> np.ndarray:
    """Unit normal numbers."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def panels_on(name: str, folder: Path, filters: np.ndarray, bias: np.ndarray, run: int) -> tuple[PanelsF32, np.ndarray]:
    """A filter [features, depth] packed on the target."""
    features, depth = filters.shape
    panels = panels_of(targets.named(name), features, run, depth // run)
    constants = {"dtype": float32, "halves": panels.halves, "biased": True, "along": True}
    words = [filters, bias, np.zeros(panels.size, np.float32), features, depth // run, run, depth, 0, 0]
    return panels, run_on(name, folder, pack, constants, words, panels.number)[2]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("features", "epilogue"), [(1, RELU), (6, RELU), (11, SILU), (16, RELU)], ids=str)
def test_gemm(name, features, epilogue, tmp_path):
    rows, depth = 23, 29
    x, w, bias = numbers(rows, depth), numbers(features, depth), numbers(features)
    panels, packed = panels_on(name, tmp_path, w, bias, depth)
    cut = row_tiles(rows, panels.rows)
    constants = {
        "more": 0,
        "rows": cut.height,
        "short": cut.tall != cut.tiles,
        "wide": panels.wide,
        "halves": panels.halves,
        "epilogue": epilogue,
    }
    words = [
        x,
        packed,
        np.zeros((rows, features), np.float32),
        depth,
        depth,
        features,
        features,
        cut.tiles,
        cut.tall,
        1,
        panels.number,
        cut.tiles,
        0,
        0,
        0,
    ]
    actual = run_on(name, tmp_path, gemm, constants, words, cut.tiles)[2]
    sums = x.astype(np.float64) @ w.T.astype(np.float64) + bias
    expected = np.maximum(sums, 0) if epilogue is RELU else sums / (1 + np.exp(-sums))
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, rtol=2e-5, atol=2e-5)


def windows(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A convolution of 3x3 windows with a border of one pixel, in float64."""
    height, width, _ = x.shape
    padded = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    return sum(
        padded[ky : ky + height, kx : kx + width] @ w[:, ky, kx].T.astype(np.float64)
        for ky in range(3)
        for kx in range(3)
    )


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lined", [True, False], ids=["lined", "windows"])
def test_convolution(name, lined, tmp_path):
    height, width, channels, features = 5, 17, 3, 9
    x, w, bias = numbers(height, width, channels), numbers(features, 3, 3, channels), numbers(features)
    panels, packed = panels_on(name, tmp_path, w.reshape(features, -1), bias, 9 if lined else 27)
    line = width if lined else height * width
    cut = row_tiles(line, panels.rows)
    tiles = cut.tiles * (height * width // line)
    constants = {
        "more": 0,
        "rows": cut.height,
        "short": cut.tall != cut.tiles,
        "wide": panels.wide,
        "halves": panels.halves,
        "lined": lined,
        "epilogue": RELU,
    }
    words = [
        x,
        packed,
        np.zeros((height, width, features), np.float32),
        height,
        width,
        channels,
        channels,
        3,
        3,
        1,
        1,
        1,
        1,
        1,
        1,
        height,
        width,
        features,
        features,
        line,
        cut.tiles,
        cut.tall,
        tiles,
        1,
        panels.number,
    ]
    actual = run_on(name, tmp_path, convolution, constants, words, tiles, 4096 + 4 * 27 * cut.height)[2]
    expected = np.maximum(windows(x, w) + bias, 0)
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("name", TARGETS)
def test_gemv(name, tmp_path):
    """Blocks of channels and a part of one; depths of an odd number of vectors and a part of one."""
    lanes = targets.named(name).vector_bytes // 4
    for depth, features in ((19, 11), (3 * lanes + 1, 2 * lanes * lanes + lanes + 3)):
        x, w = numbers(depth), numbers(features, depth)
        words = [x, w, np.zeros(features, np.float32), depth, features, depth, depth, features, 1, 0, 0]
        constants = {"more": 0, "dtype": float32, "epilogue": RELU}
        result = run_on(name, tmp_path, gemv, constants, words, blocks_of(features, lanes))[2]
        np.testing.assert_allclose(result, np.maximum(w.astype(np.float64) @ x, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", TARGETS)
def test_gevm(name, tmp_path):
    rows, depth, columns = 2, 7, 37
    a, b = numbers(rows, depth), numbers(depth, columns)
    items = -(-columns // (ACROSS * targets.named(name).vector_bytes // 4))
    words = [a, b, np.zeros((rows, columns), np.float32), depth, columns, depth, columns, columns, 0, 0]
    constants = {"more": 0, "rows": rows, "dtype": float32, "epilogue": RELU}
    actual = run_on(name, tmp_path, gevm, constants, words, items)[2]
    expected = np.maximum(a.astype(np.float64) @ b, 0)
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("m", [2, 4])
def test_winograd(name, m, tmp_path):
    height, width, channels, features = 7, 10, 8, 16
    x, w = numbers(height, width, channels), numbers(features, 3, 3, channels)
    panels = panels_of(targets.named(name), features, channels)
    words = [w, np.zeros(filter_size(channels, features, m), np.float32), channels]
    filters = run_on(name, tmp_path, transform_filter, {"dtype": float32, "m": m}, words, panels.number)[1]
    down, across = -(-height // m), -(-width // m)
    cut = row_tiles(down * across, panels.rows)
    words = [
        x,
        filters,
        w,
        np.zeros((height, width, features), np.float32),
        height,
        width,
        channels,
        channels,
        1,
        1,
        height,
        width,
        features,
        features,
        down,
        across,
        cut.tall,
    ]
    constants = {
        "more": 0,
        "rows": cut.height,
        "short": cut.tall != cut.tiles,
        "m": m,
        "dtype": float32,
        "epilogue": RELU,
    }
    scratch = scratch_size(channels, panels.width, cut.height, m)
    actual = run_on(name, tmp_path, winograd, constants, words, cut.tiles, scratch)[3]
    expected = np.maximum(windows(x, w), 0)
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, atol=1e-4 * expected.std(), rtol=1e-5)

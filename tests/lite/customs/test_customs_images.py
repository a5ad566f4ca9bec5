"""Shipped custom operators on images and landmarks against their definitions, element by element in float64.

The official run time has no kernels for these, or only a delegate's; MediaPipe's and TensorFlow's sources define them.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from custom_models import Scaled, answers

rng = np.random.default_rng(0)


def f32(*shape):
    return rng.normal(0, 2, shape).astype(np.float32)


def pool(padding, stride_w, stride_h, width, height, activation=0):
    """The C structure of a pool's options."""
    return struct.pack("<6i", padding, stride_w, stride_h, width, height, activation)


def window(size, kernel, stride, padding):
    """The number of windows and where the first begins."""
    out = -(-size // stride) if padding == 1 else (size - kernel + stride) // stride
    return out, max(0, (out - 1) * stride + kernel - size) // 2 if padding == 1 else 0


@pytest.mark.parametrize("activation", [0, 1, 3])
@pytest.mark.parametrize(
    ("padding", "strides", "kernel"), [(1, (2, 1), (3, 2)), (2, (1, 2), (2, 3)), (1, (3, 3), (2, 2))]
)
def test_the_greatest_of_each_window_and_its_place(padding, strides, kernel, activation):
    x = np.round(f32(2, 5, 7, 3) * 2)  # some are equal: the first counts
    (down, across), (height, width) = strides, kernel
    y, index = answers(
        "MaxPoolingWithArgmax2D", [x], ["FLOAT32", "FLOAT32"], pool(padding, across, down, width, height, activation)
    )
    (rows, top), (columns, left) = window(5, height, down, padding), window(7, width, across, padding)
    assert y.shape == index.shape == (2, rows, columns, 3)
    bounds = {0: (-math.inf, math.inf), 1: (0, math.inf), 3: (0, 6)}[activation]
    for n, p, q, c in np.ndindex(y.shape):
        seen = [
            (x[n, i, j, c], -((i - p * down + top) * width + j - q * across + left))
            for i in range(max(0, p * down - top), min(5, p * down - top + height))
            for j in range(max(0, q * across - left), min(7, q * across - left + width))
        ]
        best, place = max(seen)
        assert y[n, p, q, c] == min(max(best, bounds[0]), bounds[1])
        assert index[n, p, q, c] == np.float32(-place) + np.float32(0.1)


def test_unpooling_inverts_a_pool():
    x = f32(2, 4, 6, 3)
    options = pool(2, 2, 2, 2, 2)
    y, index = answers("MaxPoolingWithArgmax2D", [x], ["FLOAT32", "FLOAT32"], options)
    back = answers("MaxUnpooling2D", [y, index], ["FLOAT32"], options)[0]
    assert back.shape == x.shape
    assert np.array_equal(back[back != 0], x[back != 0])
    assert np.count_nonzero(back) == y.size


@pytest.mark.parametrize(("padding", "wanted"), [(1, (4, 6)), (2, (4, 7))])
def test_unpooling_by_places_in_the_image(padding, wanted):
    x = f32(2, 2, 3, 2)
    size = wanted[0] * wanted[1] * 2
    index = np.stack([rng.permutation(size)[: x[0].size] for _ in x]).astype(np.int32).reshape(x.shape)
    y = answers("MaxUnpooling2D", [x, index], ["FLOAT32"], pool(padding, 2, 2, 3, 2))[0]
    assert y.shape == (2, *wanted, 2)
    for n in range(2):
        array = np.zeros(size)
        for value, place in zip(x[n].ravel(), index[n].ravel()):
            array[place] = value
        assert np.array_equal(y[n].ravel(), array)


def test_an_index_outside_the_image_is_an_error():
    index = np.full((1, 1, 1, 1), 4, np.int32)
    with pytest.raises(RuntimeError, match="an index is out of range"):
        answers("MaxUnpooling2D", [f32(1, 1, 1, 1), index], ["FLOAT32"], pool(1, 2, 2, 2, 2))


@pytest.mark.parametrize("kind", [np.int8, np.int16])
@pytest.mark.parametrize("name", ["AvgPool3D", "MaxPool3D"])
def test_pools_over_quantised_volumes(name, kind):
    q = rng.integers(-100, 100, (1, 3, 4, 3, 2)).astype(kind)
    zero = 0 if kind is np.int16 else 5
    options = {"ksize": [1, 2, 3, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": "SAME", "data_format": "NDHWC"}
    kept = np.dtype(kind).name.upper()
    y = answers(name, [Scaled(q, 0.1, zero)], [(kept, 0.1, zero)], options)[0]
    sizes = [window(s, k, t, 1) for s, k, t in zip((3, 4, 3), (2, 3, 2), (1, 2, 1))]
    assert y.shape == (1, *(out for out, _ in sizes), 2)
    for t, p, r, c in np.ndindex(y.shape[1:]):
        first = [i * s - before for i, s, (_, before) in zip((t, p, r), (1, 2, 1), sizes)]
        part = q[
            0, max(0, first[0]) : first[0] + 2, max(0, first[1]) : first[1] + 3, max(0, first[2]) : first[2] + 2, c
        ]
        total, n = int(part.astype(int).sum()), part.size
        mean = (abs(total) + n // 2) // n * (1 if total > 0 else -1)  # halves away from zero
        assert y[0, t, p, r, c] == (mean if name == "AvgPool3D" else part.max())


@pytest.mark.parametrize("padding", [1, 2])
def test_a_transposed_convolution_with_bias(padding):
    x, w, bias = f32(2, 3, 4, 2), f32(3, 3, 2, 2), f32(3)
    y = answers("Convolution2DTransposeBias", [x, w, bias], ["FLOAT32"], struct.pack("<3i", padding, 3, 2))[0]
    spare = [max(0, k - (n - 1) % s - 1) if padding == 1 else 0 for n, k, s in ((3, 3, 2), (4, 2, 3))]
    high, wide = 2 * 2 + 3 - spare[0], 3 * 3 + 2 - spare[1]
    result = np.zeros((2, high, wide, 3)) + bias.astype(np.float64)
    for n, p, q, i, j, o in np.ndindex(2, 3, 4, 3, 2, 3):
        row, column = p * 2 + i - spare[0] // 2, q * 3 + j - spare[1] // 2
        if 0 <= row < high and 0 <= column < wide:
            result[n, row, column, o] += x[n, p, q].astype(np.float64) @ w[o, i, j]
    assert y.shape == result.shape
    np.testing.assert_allclose(y, result, 1e-5, 1e-5)


def between(image, row, column):
    """The value between the four pixels around a place, in float64; 0 for pixels outside."""
    i, j = math.floor(row), math.floor(column)
    a, b = row - i, column - j

    def pixel(r, c):
        return image[r, c].astype(np.float64) if 0 <= r < image.shape[0] and 0 <= c < image.shape[1] else 0.0

    upper = (1 - b) * pixel(i, j) + b * pixel(i, j + 1)
    return (1 - a) * upper + a * ((1 - b) * pixel(i + 1, j) + b * pixel(i + 1, j + 1))


def test_an_image_warped_by_a_flow():
    x, flow = f32(2, 4, 5, 3), f32(2, 4, 5, 2)
    y = answers("DenseImageWarp", [x, flow], ["FLOAT32"])[0]
    for n, i, j in np.ndindex(2, 4, 5):
        row, column = i - float(flow[n, i, j, 0]), j - float(flow[n, i, j, 1])
        want = between(x[n], min(max(row, 0), 3), min(max(column, 0), 4))
        np.testing.assert_allclose(y[n, i, j], want, 1e-5, 1e-5)


def test_an_image_resampled():
    x, warp = f32(2, 4, 5, 3), rng.uniform(-2, 6, (2, 4, 5, 2)).astype(np.float32)
    y = answers("Resampler", [x, warp], ["FLOAT32"])[0]
    inside = 0
    for n, i, j in np.ndindex(2, 4, 5):
        column, row = map(float, warp[n, i, j])
        seen = -1 < row < 4 and -1 < column < 5
        inside += seen
        np.testing.assert_allclose(y[n, i, j], between(x[n], row, column) if seen else 0, 1e-5, 1e-5)
    assert 0 < inside < 40


@pytest.mark.parametrize("version", [1, 2])
def test_an_image_transformed(version):
    x = f32(1, 5, 6, 2)
    matrix = np.eye(4, dtype=np.float32)[None]
    matrix[0, :2] = [[0.8, -0.3, 0, 0.7], [0.2, 0.9, 0, 0.4]]
    options = {"output_size": [4, 7], "mode": "bilinear"} if version == 1 else {"output_height": 4, "output_width": 7}
    y = answers("TransformTensorBilinear", [x, matrix], ["FLOAT32"], options, version)[0]
    assert y.shape == (1, 4, 7, 2)
    half = 0.5 if version == 2 else 0.0
    inside = 0
    for i, j in np.ndindex(4, 7):
        column, row = (matrix[0, k].astype(np.float64) @ [j + half, i + half, 0, 1] - half for k in range(2))
        seen = 0 <= column <= 5 and 0 <= row <= 4
        inside += seen
        np.testing.assert_allclose(y[0, i, j], between(x[0], row, column) if seen else 0, 1e-5, 1e-5)
    assert 0 < inside < 28


@pytest.mark.parametrize(("version", "dimensions"), [(1, 2), (1, 3), (2, 2), (2, 3)])
def test_landmarks_moved(version, dimensions):
    points, matrix = f32(6, dimensions), f32(1, 4, 4)
    x = points.reshape(1, 1, 1, -1) if version == 1 else points[None]
    options = {"dimensions": dimensions, "scale": 2.5} if version == 1 else b""
    y = answers("TransformLandmarks", [x, matrix], ["FLOAT32"], options, version)[0]
    assert y.shape == x.shape
    want = points.astype(np.float64)
    want[:, :2] = points[:, :2].astype(np.float64) @ matrix[0, :2, :2].T.astype(np.float64)
    want[:, :2] += matrix[0, :2, 3].astype(np.float64) * (2.5 if version == 1 else 1.0)
    np.testing.assert_allclose(y.reshape(6, -1), want, 1e-5, 1e-5)


def shifted(x, y):
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1]], np.float64)


def scaled(x, y):
    return np.diag([x, y, 1.0])


def turned(angle):
    return np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]])


def homogeneous(matrix):
    """A 3 x 3 matrix of the plane as the 4 x 4 one of space that leaves z alone."""
    array = np.eye(4)
    array[:2, :2], array[:2, 3] = matrix[:2, :2], matrix[:2, 2]
    return array


def test_the_crop_around_landmarks_in_pixels():
    x = rng.uniform(0, 100, (1, 9, 3)).astype(np.float32)
    subset, left, right = [0, 2, 3, 5, 7], 1, 4
    options = {
        "subset_idxs": subset,
        "left_rotation_idx": left,
        "right_rotation_idx": right,
        "output_height": 12,
        "output_width": 20,
        "scale_x": 1.5,
        "scale_y": 1.25,
        "target_rotation_radians": 0.3,
    }
    result = answers("Landmarks2TransformMatrix", [x], ["FLOAT32"], options, 2)[0]
    points = x[0, :, :2].astype(np.float64)
    across = points[right] - points[left]
    angle = 0.3 - math.atan2(across[1], across[0])
    seen = (turned(angle) @ np.c_[points[subset], np.ones(5)].T)[:2]
    middle = turned(-angle) @ [*((seen.min(1) + seen.max(1)) / 2), 1]
    size = seen.max(1) - seen.min(1)
    want = shifted(*middle[:2]) @ turned(-angle) @ scaled(1.5 * size[0] / 20, 1.25 * size[1] / 12) @ shifted(-10, -6)
    np.testing.assert_allclose(result, homogeneous(want)[None], 1e-5, 1e-4)


def test_the_crop_around_landmarks_in_a_range():
    x = rng.uniform(0, 192, (1, 1, 1, 27)).astype(np.float32)
    options = {
        "input_hw": [48, 64],
        "output_hw": [16, 24],
        "dimensions": 3,
        "landmarks_range": 192,
        "bbox_size_multiplier": 1.5,
        "left_rotation_idx": 1,
        "right_rotation_idx": 4,
        "subset": [0, 2, 3, 5, 7],
    }
    result = answers("Landmarks2TransformMatrix", [x], ["FLOAT32"], options, 1)[0]
    points = x.reshape(-1, 3)[:, :2].astype(np.float64)
    across = points[4] - points[1]
    angle = -math.atan(across[1] / across[0])
    seen = (turned(angle) @ np.c_[points[[0, 2, 3, 5, 7]], np.ones(5)].T)[:2]
    middle = (turned(-angle) @ [*((seen.min(1) + seen.max(1)) / 2), 1])[:2] / 192 * 2 - 1
    size = (seen.max(1) - seen.min(1)) * 1.5 / 192
    to_pixels = shifted(63 / 2, 47 / 2) @ scaled(63 / 2, 47 / 2)
    from_pixels = shifted(-1, -1) @ scaled(2 / 23, 2 / 15)
    want = to_pixels @ shifted(*middle) @ turned(-angle) @ scaled(*size) @ from_pixels
    np.testing.assert_allclose(result, homogeneous(want)[None], 1e-5, 1e-4)

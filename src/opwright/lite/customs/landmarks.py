"""Landmarks of a face and the affine maps between crops of its image: TransformLandmarks, Landmarks2TransformMatrix.

Lives here: both versions of both operators, of MediaPipe's models.  Not here: reading images through such a map
(resampling.py).

Version 1 of each was for crops whose corner pixels coincide, with landmarks in one row; version 2 for [1, n, 2 or 3].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr, greater_than, length, one_of
from ...ops.slots import Input, Output
from ..ops.definition import LiteDefinition
from ..ops.shapes import refuse, same, text
from .definition import custom_operator

_F = (float32,)
_MATRIX = TensorSpec((1, 4, 4), float32)


def check_matrix(matrix: Any) -> None:
    """Raise InvalidArgumentError unless the operand is a 4 by 4 matrix."""
    if matrix.spec.shape.num_elements() not in (None, 16):
        raise refuse("the matrix does not have 16 elements", found=text(matrix.spec.shape), wanted="[1,4,4]")


def _moved(points: np.ndarray, matrix: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Points [..., 2 or 3] with their first two numbers mapped; the third stays."""
    y = points.copy()
    a, b = points[..., 0], points[..., 1]
    for i, row in enumerate(matrix.reshape(-1)[:8].reshape(2, 4)):
        y[..., i] = a * row[0] + b * row[1] + row[3] * np.float32(scale)
    return y


@custom_operator("TransformLandmarks")
class TransformLandmarks(LiteDefinition):
    """Points through an affine map: (x, y) becomes the first two of matrix (x, y, 0, scale); a third number stays.

    .. math:: y_i = m_{i0} x_0 + m_{i1} x_1 + scale \\cdot m_{i3}, \\quad i \\in \\{0, 1\\}

    x: [1, h, w, points * dimensions]; matrix: [1, 4, 4]; y as x
    """

    x = Input(_F, rank=4)
    matrix = Input(_F)
    y = Output(like="x")
    dimensions = Attr(int, default=0)
    scale = Attr(float, default=1.0)

    def infer(op: Any) -> TensorSpec:
        check_matrix(op.matrix)
        if op.dimensions not in (2, 3):
            raise refuse("dimensions is neither 2 nor 3", found=op.dimensions, wanted="2 or 3")
        if op.scale == 0:
            raise refuse("scale is 0", wanted="a number other than 0")
        channels = op.x.spec.shape[3] if op.x.spec.shape.rank else None
        if channels is not None and channels % op.dimensions:
            raise refuse(
                "x does not hold whole points",
                found=text(op.x.spec.shape),
                wanted=f"a last size that {op.dimensions} divides",
            )
        result: TensorSpec = op.x.spec
        return result

    def compute(op: Any, x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        return _moved(x.reshape(-1, op.dimensions), matrix, op.scale).reshape(x.shape)


@custom_operator("TransformLandmarks", versions=(2, 2))
class TransformLandmarksV2(LiteDefinition):
    """Points through an affine map; a third number stays.

    .. math:: y_0 = m_{00} x_0 + m_{01} x_1 + m_{03}, \\quad y_1 = m_{10} x_0 + m_{11} x_1 + m_{13}

    x: [1, points, 2 or 3]; matrix: [1, 4, 4]; y as x
    """

    x = Input(_F, rank=3)
    matrix = Input(_F)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        check_matrix(op.matrix)
        x = op.x.spec.shape
        if not same(x[0], 1) or x[2] not in (None, 2, 3):
            raise refuse("x does not hold points", found=text(x), wanted="[1,n,2] or [1,n,3]")
        result: TensorSpec = op.x.spec
        return result

    def compute(op: Any, x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        return _moved(x, matrix)


def _rotation(angle: Any) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _box(points: np.ndarray, angle: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return center and size of the bounding box of points rotated by an angle; the center is rotated back."""
    turned = points @ _rotation(angle).T
    low, high = turned.min(0), turned.max(0)
    return _rotation(-angle) @ ((low + high) / 2), high - low


def _check_indices(op: Any, subset: str, points: int | None) -> None:
    """Raise InvalidArgumentError for indices of missing landmarks."""
    for name, indices in (
        (subset, getattr(op, subset)),
        ("left_rotation_idx", (op.left_rotation_idx,)),
        ("right_rotation_idx", (op.right_rotation_idx,)),
    ):
        if not indices or min(indices) < 0 or (points is not None and max(indices) >= points):
            raise refuse(
                f"{name} names landmarks that are not there",
                found=list(indices)[:8],
                wanted="0 and more" if points is None else f"0 to {points - 1}",
            )


def _affine(linear: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return the matrix [1, 4, 4] of an affine map of the plane."""
    matrix = np.eye(4)
    matrix[:2, :2], matrix[:2, 3] = linear, shift
    return matrix[None].astype(np.float32)


@custom_operator("Landmarks2TransformMatrix")
class Landmarks2TransformMatrix(LiteDefinition):
    """The map from a crop's pixels to the image's, for the crop that holds some landmarks, turned so that a line lies.

    .. math:: m = A_{in} R(-\\alpha) S A_{out}^{-1}, \\quad
              \\alpha = -\\arctan((y_r - y_l) / (x_r - x_l))

    x: [1, 1, 1, 3 points] as (x, y, z); S: the box of the landmarks `subset` turned by alpha, by bbox_size_multiplier /
    landmarks_range; A: from -1..1 to the corner pixels of input_hw, output_hw; y: [1, 4, 4]
    """

    x = Input(_F, rank=4)
    y = Output(dtype=float32)
    input_hw = Attr([int], default=(0, 0), check=length(2))
    output_hw = Attr([int], default=(0, 0), check=length(2))
    dimensions = Attr(int, default=3, check=one_of(3))
    landmarks_range = Attr(int, default=1, check=greater_than(0))
    bbox_size_multiplier = Attr(float, default=1.0)
    left_rotation_idx = Attr(int, default=0)
    right_rotation_idx = Attr(int, default=0)
    subset = Attr([int], default=())

    def infer(op: Any) -> TensorSpec:
        x = op.x.spec.shape
        count = x.num_elements()
        if min(op.input_hw) < 1 or min(op.output_hw) < 2:
            raise refuse(
                "a size is too small",
                found={"input_hw": op.input_hw, "output_hw": op.output_hw},
                wanted="input sizes of 1, output sizes of 2 at least",
            )
        if op.bbox_size_multiplier == 0:
            raise refuse("bbox_size_multiplier is 0", wanted="a number other than 0")
        if not same(*(x.dims or ())[:3], 1) or (count is not None and count % 3):
            raise refuse("x does not hold landmarks", found=text(x), wanted="[1,1,1,3 n]")
        _check_indices(op, "subset", None if count is None else count // 3)
        return _MATRIX

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        points = x.reshape(-1, 3)[:, :2].astype(np.float64)
        across = points[op.right_rotation_idx] - points[op.left_rotation_idx]
        angle = -np.arctan(across[1] / across[0])
        middle, size = _box(points[list(op.subset)], angle)
        to = (np.array(op.input_hw[::-1]) - 1.0) / 2.0
        unit = op.landmarks_range
        # half a crop pixel's share of -1..1, then the box, then the image
        linear = to[:, None] * _rotation(-angle) * (size * op.bbox_size_multiplier / unit)
        shift = to * (middle / unit * 2.0 - 1.0) + to - linear.sum(1)
        return _affine(linear * (2.0 / (np.array(op.output_hw[::-1]) - 1.0)), shift)


@custom_operator("Landmarks2TransformMatrix", versions=(2, 2))
class Landmarks2TransformMatrixV2(LiteDefinition):
    """The map from a crop's pixels to the image's, for the crop that holds some landmarks, turned so that a line has
    the direction target_rotation_radians.

    .. math:: m = T(middle) R(-\\alpha) S T(-output / 2), \\quad
              \\alpha = target - \\operatorname{atan2}(y_r - y_l, x_r - x_l)

    x: [1, points, 3] as (x, y, z) in pixels; S: the size of the box of the landmarks `subset_idxs` turned by alpha,
    by scale_x / output_width and scale_y / output_height; y: [1, 4, 4]
    """

    x = Input(_F, rank=3)
    y = Output(dtype=float32)
    subset_idxs = Attr([int], default=())
    left_rotation_idx = Attr(int, default=0)
    right_rotation_idx = Attr(int, default=0)
    target_rotation_radians = Attr(float, default=0.0)
    output_height = Attr(int, default=0)
    output_width = Attr(int, default=0)
    scale_x = Attr(float, default=0.0)
    scale_y = Attr(float, default=0.0)

    def infer(op: Any) -> TensorSpec:
        x = op.x.spec.shape
        for name in ("output_height", "output_width", "scale_x", "scale_y"):
            if not getattr(op, name) > 0:
                raise refuse(f"{name} is not positive", found=getattr(op, name), wanted="a number above 0")
        if not same(x[0], 1) or not same(x[2], 3):
            raise refuse("x does not hold landmarks", found=text(x), wanted="[1,n,3]")
        _check_indices(op, "subset_idxs", x[1])
        return _MATRIX

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        points = x[0, :, :2].astype(np.float64)
        across = points[op.right_rotation_idx] - points[op.left_rotation_idx]
        angle = op.target_rotation_radians - np.arctan2(across[1], across[0])
        middle, size = _box(points[list(op.subset_idxs)], angle)
        out = np.array([op.output_width, op.output_height], np.float64)
        linear = _rotation(-angle) * (np.array([op.scale_x, op.scale_y]) * size / out)
        return _affine(linear, middle - linear @ (out / 2))

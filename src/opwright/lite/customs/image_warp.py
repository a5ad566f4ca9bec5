"""Affine maps between crops of an image and sampling between pixels: TransformLandmarks, Landmarks2TransformMatrix,
TransformTensorBilinear (both versions of each), DenseImageWarp, Resampler.

Lives here: these operators, of MediaPipe's and TensorFlow's perception models.
Not here: RESIZE_BILINEAR (lite/ops/images.py).

Version 1 of the landmark operators was for crops whose corner pixels coincide, with landmarks in one row; version 2 for
[1, n, 2 or 3].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr, greater_than, length, one_of
from ...ops.slots import Input, Output
from ..ops.definition import LiteDefinition
from ..ops.shapes import bounded, refuse, same, spec, text
from .definition import CustomOperator, custom_operator

_F = (float32,)
_MATRIX = TensorSpec((1, 4, 4), float32)


def check_matrix(matrix: Any) -> None:
    """Raise InvalidArgumentError unless the operand is a 4 by 4 matrix."""
    if matrix.spec.shape.num_elements() not in (None, 16):
        raise refuse("the matrix does not have 16 elements", found=text(matrix.spec.shape), wanted="[1,4,4]")


def _moved(points: np.ndarray, matrix: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Map the first two coordinates of points [..., 2 or 3]; the third is unchanged."""
    y = points.copy()
    a, b = points[..., 0], points[..., 1]
    for i, row in enumerate(matrix.reshape(-1)[:8].reshape(2, 4)):
        y[..., i] = a * row[0] + b * row[1] + row[3] * np.float32(scale)
    return y


@custom_operator("TransformLandmarks")
class TransformLandmarksOp(LiteDefinition):
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
class TransformLandmarksV2Op(LiteDefinition):
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
class Landmarks2TransformMatrixOp(LiteDefinition):
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
class Landmarks2TransformMatrixV2Op(LiteDefinition):
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


_ONE = np.float32(1)


def _check_places(op: Any, name: str) -> None:
    """Raise InvalidArgumentError unless an operand has two elements for each pixel of x."""
    x, places = op.x.spec.shape, getattr(op, name).spec.shape
    if not same(places[3], 2) or not all(map(same, (x.dims or ())[:3], (places.dims or ())[:3])):
        raise refuse(f"{name} does not fit x", found={"x": text(x), name: text(places)}, wanted="[n,h,w,2]")


@custom_operator("DenseImageWarp")
class DenseImageWarpOp(LiteDefinition):
    """Sample each pixel at the position that a flow specifies, between the four pixels around it.

    .. math:: y_{nijc} = x(n, i - flow_{nij0}, j - flow_{nij1}, c)

    x: [n, h, w, c], h and w at least 2; flow: [n, h, w, 2]; places outside the image are moved to its border.
    """

    x = Input(_F, rank=4)
    flow = Input(_F, rank=4)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        x = op.x.spec.shape
        _check_places(op, "flow")
        if any(d is not None and d < 2 for d in (x.dims or ())[1:3]):
            raise refuse("the image is too small", found=text(x), wanted="height and width of at least 2")
        result: TensorSpec = op.x.spec
        return result

    def compute(op: Any, x: np.ndarray, flow: np.ndarray) -> np.ndarray:
        n, h, w, _ = x.shape
        at_y = np.arange(h, dtype=np.float32)[:, None] - flow[..., 0]
        at_x = np.arange(w, dtype=np.float32) - flow[..., 1]
        (i, a), (j, b) = _within(at_y, h), _within(at_x, w)
        batch = np.arange(n)[:, None, None]
        top, bottom = (_mix(x[batch, row, j], x[batch, row, j + 1], b) for row in (i, i + 1))
        return _mix(top, bottom, a)


def _within(at: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixel before each position, at most the last but one, and the fractional distance from it."""
    with np.errstate(invalid="ignore"):
        first = np.clip(np.nan_to_num(np.floor(at), nan=0.0), 0, size - 2).astype(np.int64)
    return first, np.clip(at - first.astype(np.float32), np.float32(0), _ONE)


def _mix(a: np.ndarray, b: np.ndarray, share: np.ndarray) -> np.ndarray:
    result: np.ndarray = share[..., None] * (b - a) + a
    return result


def _corner(x: np.ndarray, batch: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return pixels (i, j), 0 outside the image."""
    h, w = x.shape[1:3]
    inside = (i >= 0) & (j >= 0) & (i < h) & (j < w)
    return np.where(inside[..., None], x[batch, np.clip(i, 0, h - 1), np.clip(j, 0, w - 1)], np.float32(0))


@custom_operator("Resampler")
class ResamplerOp(LiteDefinition):
    """Sample each pixel of the output at the position in `warp`; 0 outside the image.

    .. math:: y_{nijc} = x(n, warp_{nij1}, warp_{nij0}, c)

    x: [n, h, w, c]; warp: [n, h, w, 2], columns before rows; y as x
    """

    x = Input(_F, rank=4)
    warp = Input(_F, rank=4)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        _check_places(op, "warp")
        result: TensorSpec = op.x.spec
        return result

    def compute(op: Any, x: np.ndarray, warp: np.ndarray) -> np.ndarray:
        n, h, w, _ = x.shape
        if 0 in x.shape:
            return np.zeros_like(x)
        columns, rows = warp[..., 0], warp[..., 1]
        inside = (columns > -1) & (rows > -1) & (columns < w) & (rows < h)
        columns, rows = np.where(inside, columns, 0), np.where(inside, rows, 0)
        i, j = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
        dy, dx = ((k + 1).astype(np.float32) - at for k, at in ((i, rows), (j, columns)))
        batch = np.arange(n)[:, None, None]
        weights = (
            (dx * dy, 0, 0),
            ((_ONE - dx) * (_ONE - dy), 1, 1),
            (dx * (_ONE - dy), 1, 0),
            ((_ONE - dx) * dy, 0, 1),
        )
        y = sum(share[..., None] * _corner(x, batch, i + a, j + b) for share, a, b in weights)
        return np.where(inside[..., None], y, np.float32(0)).astype(np.float32)


def _transformed(x: np.ndarray, matrix: np.ndarray, sizes: Any, centred: bool) -> np.ndarray:
    """Sample x at the positions to which the first two rows of a matrix map the pixels (column, row, 0, 1) of an image
    of these sizes.

    centred: pixels lie in the middle of their squares. Values beyond the centres of the outermost pixels are 0.
    """
    h, w = x.shape[1:3]
    (xx, xy, _, xt), (yx, yy, _, yt) = matrix.reshape(-1)[:8].reshape(2, 4).astype(np.float32)
    if centred:
        half = np.float32(0.5)
        xt, yt = np.float32(xt + (xx * half + xy * half - half)), np.float32(yt + (yx * half + yy * half - half))
    rows, columns = np.arange(sizes[0], dtype=np.float32)[:, None], np.arange(sizes[1], dtype=np.float32)
    at_x, at_y = xx * columns + xy * rows + xt, yx * columns + yy * rows + yt
    inside = (at_x >= 0) & (at_x <= w - 1) & (at_y >= 0) & (at_y <= h - 1)
    at_x, at_y = np.where(inside, at_x, 0), np.where(inside, at_y, 0)
    i, j = np.floor(at_y).astype(np.int64), np.floor(at_x).astype(np.int64)
    b, a = (at_x - j.astype(np.float32))[..., None], (at_y - i.astype(np.float32))[..., None]
    upper = (_ONE - b) * _corner(x, 0, i, j) + b * _corner(x, 0, i, j + 1)
    lower = (_ONE - b) * _corner(x, 0, i + 1, j) + b * _corner(x, 0, i + 1, j + 1)
    return np.where(inside[..., None], a * lower + (_ONE - a) * upper, np.float32(0))[None]


def _transform(
    name: str, also: tuple[str, ...], version: int, attrs: dict[str, Attr[Any]], sizes_of: Any
) -> CustomOperator:
    """Define a version of the transform. sizes_of: the call -> (height, width) of y."""

    def infer(op: Any) -> TensorSpec:
        x = op.x.spec.shape
        h, w = sizes_of(op)
        if min(h, w) < 1:
            raise refuse("the output has no pixels", found=[h, w], wanted="sizes of at least 1")
        if not same(x[0] if x.rank else None, 1):
            raise refuse("there is more than one image", found=text(x), wanted="a batch of 1")
        if any(d == 0 for d in x.dims or ()):
            raise refuse("the image is empty", found=text(x), wanted="sizes of at least 1")
        check_matrix(op.matrix)
        if x.rank and x[3] is not None:
            bounded((h, w, x[3], 4), float32, "the transformed image")
        return spec((1, h, w, x[3] if x.rank else None), float32)

    def compute(op: Any, x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        return _transformed(x, matrix, sizes_of(op), centred=version == 2)

    body = {
        "__doc__": "An image read where an affine map takes the pixels of the output, between the four around.\n\n"
        ".. math:: y_{ijc} = x(m_{10} j + m_{11} i + m_{13}, m_{00} j + m_{01} i + m_{03}, c)\n\n"
        "x: [1, h, w, c]; matrix: [1, 4, 4]; y: [1, output height, output width, c]; 0 outside the image."
        + ("\nPixels lie in the middle of their squares." if version == 2 else ""),
        "__module__": __name__,
        "x": Input(_F, rank=4),
        "matrix": Input(_F),
        "y": Output(dtype=float32),
        "infer": infer,
        "compute": compute,
        **attrs,
    }
    return custom_operator(name, *also, versions=(version, version))(type(name, (), body))


_transform(
    "TransformTensorBilinear",
    ("TransformTensor",),
    1,
    {
        "output_size": Attr([int], default=(0, 0), check=length(2)),
        "mode": Attr(str, default="bilinear", check=one_of("bilinear")),
    },
    lambda op: op.output_size,
)
_transform(
    "TransformTensorBilinear",
    (),
    2,
    {"output_height": Attr(int, default=0), "output_width": Attr(int, default=0)},
    lambda op: (op.output_height, op.output_width),
)

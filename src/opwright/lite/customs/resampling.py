"""Images read at places that lie between pixels: DenseImageWarp, Resampler, TransformTensorBilinear in both versions.

Lives here: these operators, of MediaPipe's and TensorFlow's perception models.
Not here: RESIZE_BILINEAR (lite/ops/images.py), where landmarks lie (landmarks.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr, length, one_of
from ...ops.slots import Input, Output
from ..ops.definition import LiteDefinition
from ..ops.shapes import bounded, refuse, same, spec, text
from .definition import CustomOperator, custom_operator
from .landmarks import check_matrix

_F = (float32,)
_ONE = np.float32(1)


def _check_places(op: Any, name: str) -> None:
    """Raise InvalidArgumentError unless an operand has two elements for each pixel of x."""
    x, places = op.x.spec.shape, getattr(op, name).spec.shape
    if not same(places[3], 2) or not all(map(same, (x.dims or ())[:3], (places.dims or ())[:3])):
        raise refuse(f"{name} does not fit x", found={"x": text(x), name: text(places)}, wanted="[n,h,w,2]")


@custom_operator("DenseImageWarp")
class DenseImageWarp(LiteDefinition):
    """Each pixel is read where a flow says, between the four pixels around that place.

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
    """Pixels (i, j), 0 outside the image."""
    h, w = x.shape[1:3]
    inside = (i >= 0) & (j >= 0) & (i < h) & (j < w)
    return np.where(inside[..., None], x[batch, np.clip(i, 0, h - 1), np.clip(j, 0, w - 1)], np.float32(0))


@custom_operator("Resampler")
class Resampler(LiteDefinition):
    """Each pixel of the output is read at the place that warp gives; outside the image all is 0.

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
    """x read where the first two rows of a matrix take the pixels (column, row, 0, 1) of an image of `sizes`.

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

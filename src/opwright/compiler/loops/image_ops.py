"""Operations on images: resizing, affine maps of points and pixels, bilinear sampling, non-maximum suppression,
detection.

Lives here: `Resize`, `AffinePoints`, `AffineImage`, `CropMatrix`, `PixelsAt`; `Suppression`, `Detection`.
Not here: other operations (ops.py), kernels (../kernels/image_warp.py, nms.py, ssd_postprocess.py).

A matrix is 4 by 4, of which the first two rows are used: (x, y) maps to m[i, 0] x + m[i, 1] y + m[i, 3].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .buffers import Buffer
from .expressions import Expr
from .ops import LoopOp


@dataclass(frozen=True, eq=False)
class Resize(LoopOp):
    """Images resized, NHWC. kind: bilinear or nearest; then expr of the float32 result (nearest: of the element)."""

    input: Buffer
    kind: Literal["bilinear", "nearest"]
    align_corners: bool
    half_pixel_centers: bool
    expr: Expr


@dataclass(frozen=True, eq=False)
class AffinePoints(LoopOp):
    """Points [points, 2 or 3] mapped by a matrix; a third coordinate is copied. scale: of the translation."""

    input: Buffer
    matrix: Buffer
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class AffineImage(LoopOp):
    """output [1, OH, OW, C]: the input [1, H, W, C] read between four pixels where the matrix takes a pixel (column,
    row); 0 beyond the middle of the outermost pixels. centred: pixels lie in the middle of their squares."""

    input: Buffer
    matrix: Buffer
    centred: bool = False


@dataclass(frozen=True, eq=False)
class PixelsAt(LoopOp):
    """Images [N, H, W, C] read between four pixels at places [N, OH, OW, 2] of each pixel of the output.

    flow: (rows, columns) that a pixel is away from where it is read; beyond the border lies the border. Else (column,
    row) in the image, outside of which all is 0.
    """

    input: Buffer
    places: Buffer
    flow: bool


@dataclass(frozen=True, eq=False)
class CropMatrix(LoopOp):
    """The matrix that takes a crop to the image: of points [points, 3] the box of `subset`, turned by an angle.

        angle = turn - atan2(y_r - y_l, x_r - x_l), or, half_turn, -arctan((y_r - y_l) / (x_r - x_l))
        m[i, j] = rows[i] R(-angle)[i, j] size[j] columns[j]
        m[i, 3] = middles[i] middle[i] - sum_j m[i, j] halves[j]
    middle, size: of the box of R(angle) p, the middle turned back. subset: constant int64. ends: l and r.
    """

    input: Buffer
    subset: Buffer
    ends: tuple[int, int]
    turn: float
    half_turn: bool
    rows: tuple[float, float]
    columns: tuple[float, float]
    middles: tuple[float, float]
    halves: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Suppression(LoopOp):
    """Non-maximum suppression, float32: indices of boxes by descending score whose overlap (IoU) with better ones is
    less than `threshold`; the overlap with a flat box is 0.

    boxes [n, 4], two opposite corners each; scores [n], ignored up to `least`; sigma, if any: scores decay by exp(-u^2
    / 2 sigma) for each better box with overlap u. results: indices int32 [most], padded with 0; with sigma, the decayed
    scores; their number, int32; and the byte in `output` where each begins.
    """

    boxes: Buffer
    scores: Buffer
    threshold: Buffer
    least: Buffer
    sigma: tuple[Buffer, ...]
    results: tuple[tuple[Buffer, int], ...]


@dataclass(frozen=True, eq=False)
class Detection(LoopOp):
    """Boxes of detected objects, float32: codes [n, 4 or more], anchors [n, 4], both (y, x, h, w), to corners, and
    those without what shares more than `threshold` with better ones.

    scores: [n, all classes], of which the last `classes` count; or, by_class, the other way round: each class by
    itself then, `each` boxes of it at most. results: boxes [1, m, 4], classes and scores [1, m], their number [1], m =
    most * several; and the byte in `output` where each begins.
    """

    codes: Buffer
    scores: Buffer
    anchors: Buffer
    results: tuple[tuple[Buffer, int], ...]
    classes: int
    most: int
    several: int
    each: int
    by_class: bool
    least: float
    threshold: float
    scales: tuple[float, float, float, float]

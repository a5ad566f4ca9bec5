"""Forms of maps of the plane: of points, of images, of the crop that holds some points; float32.

Lives here: `AffinePoints`, `AffineImage`, `CropMatrix`, `PixelsAt`.
Not here: other forms (forms.py), their kernels (../kernels/warping.py).

A matrix is 4 by 4, of which the first two rows count: (x, y) becomes m[i, 0] x + m[i, 1] y + m[i, 3].
"""

from __future__ import annotations

from dataclasses import dataclass

from .forms import Buffer, Form


@dataclass(frozen=True, eq=False)
class AffinePoints(Form):
    """Points [points, 2 or 3] mapped; a third number stays. scale: of what is added."""

    input: Buffer
    matrix: Buffer
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class AffineImage(Form):
    """output [1, OH, OW, C]: the input [1, H, W, C] read between four pixels where the matrix takes a pixel (column,
    row); 0 beyond the middle of the outermost pixels. centred: pixels lie in the middle of their squares."""

    input: Buffer
    matrix: Buffer
    centred: bool = False


@dataclass(frozen=True, eq=False)
class PixelsAt(Form):
    """Images [N, H, W, C] read between four pixels at places [N, OH, OW, 2] of each pixel of the output.

    flow: (rows, columns) that a pixel is away from where it is read; beyond the border lies the border. Else (column,
    row) in the image, outside of which all is 0.
    """

    input: Buffer
    places: Buffer
    flow: bool


@dataclass(frozen=True, eq=False)
class CropMatrix(Form):
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

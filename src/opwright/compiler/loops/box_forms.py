"""Forms of boxes in images: those that overlap better ones left out.

Lives here: `Suppression`, `Detection`.  Not here: other forms (forms.py), their kernels (../kernels/).
"""

from __future__ import annotations

from dataclasses import dataclass

from .forms import Buffer, Form


@dataclass(frozen=True, eq=False)
class Suppression(Form):
    """The boxes that share less than `threshold` with better ones, by falling score; float32. What two share is the
    area of both by that of either, 0 where one is flat.

    boxes [n, 4], two opposite corners each; scores [n], of which those above `least` count; sigma, if any: scores fall
    by exp(-u^2 / 2 sigma) for each better box that shares u. results: places int32 [most], filled up with 0; with sigma
    the scores left; their number, int32; and the byte in `output` where each begins.
    """

    boxes: Buffer
    scores: Buffer
    threshold: Buffer
    least: Buffer
    sigma: tuple[Buffer, ...]
    results: tuple[tuple[Buffer, int], ...]


@dataclass(frozen=True, eq=False)
class Detection(Form):
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

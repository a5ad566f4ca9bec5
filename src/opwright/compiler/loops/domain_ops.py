"""Operations of one domain: images, random numbers, signals, fixed-point arithmetic.

Lives here: of images, `Resize`, `ResizeGradient`, `AffinePoints`, `AffineImage`, `CropMatrix`, `PixelsAt`,
`Suppression`, `Detection`; of random numbers, `RandomWords`, `Advanced`, `NormalPairs`, `Classes`, `RandomElements`,
`AcceptedElements`; `FixedProduct`, `TabledSoftmax`, `Fourier`, `Hadamard`, `Projection` (of locality-sensitive
hashing), `Alignment` (the loss of connectionist temporal classification). Not here: recurrent layers
(recurrent_ops.py), other operations (ops.py), kernels (../kernels/), the storage of generators' states
(lite/runtime/resources.py).

A matrix is 4 by 4, of which the first two rows are used: (x, y) maps to m[i, 0] x + m[i, 1] y + m[i, 3].
"""

from __future__ import annotations

from typing import Literal

from ...core.dtypes import DType
from ...core.records import record
from .buffers import Buffer
from .expressions import Expr
from .ops import LoopOp


@record
class Resize(LoopOp):
    """Images resized, NHWC. kind: bilinear or nearest; then expr of the float32 result (nearest: of the element).

    differences: of bilinear float32, whether a mean is p + (q - p) w, as TensorFlow has it, and not p (1 - w) + q w, as
    LiteRT: next to an infinity, the former is NaN
    """

    input: Buffer
    kind: Literal["bilinear", "nearest"]
    align_corners: bool
    half_pixel_centers: bool
    expr: Expr
    differences: bool = False


@record
class ResizeGradient(LoopOp):
    """The gradient of Resize of float32 by its images, from that of its result: each pixel has the sum of the pixels
    that read it, times their weights. kind, align_corners, half_pixel_centers: as of Resize."""

    input: Buffer
    kind: Literal["bilinear", "nearest"]
    align_corners: bool
    half_pixel_centers: bool


@record
class AffinePoints(LoopOp):
    """Points [points, 2 or 3] mapped by a matrix; a third coordinate is copied. scale: of the translation."""

    input: Buffer
    matrix: Buffer
    scale: float = 1.0


@record
class AffineImage(LoopOp):
    """output [1, OH, OW, C]: the input [1, H, W, C] read between four pixels where the matrix takes a pixel (column,
    row); 0 beyond the middle of the outermost pixels. centred: pixels lie in the middle of their squares."""

    input: Buffer
    matrix: Buffer
    centred: bool = False


@record
class PixelsAt(LoopOp):
    """Images [N, H, W, C] read between four pixels at places [N, OH, OW, 2] of each pixel of the output.

    flow: (rows, columns) that a pixel is away from where it is read; beyond the border lies the border. Else (column,
    row) in the image, outside of which all is 0.
    """

    input: Buffer
    places: Buffer
    flow: bool


@record
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


@record
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


@record
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


@record
class TabledSoftmax(LoopOp):
    """Softmax of rows of int16, whole numbers throughout; results are steps of 2^-15.

    factor: (m, e), m 2^(e - 31) takes differences to the greatest to steps of 10 / 65535. tables: constant int64
    [2, 513], exp over [-10, 0] and 1 / (1 + x) over [0, 1], between whose entries values are interpolated.
    """

    input: Buffer
    tables: Buffer
    factor: tuple[int, int]


@record
class RandomWords(LoopOp):
    """The next words of a random generator's sequence after its state, uint32, as many as the output has.

    state: uint64, the key, the lower and, if it has three, the upper half of the first block's number; with two the
    upper half is the key. carries: whether the lower half carries into the upper one from block to block. pairs:
    whether the words are read as numbers of 8 bytes, whose lower halves come first.
    """

    state: Buffer
    algorithm: Literal["philox", "threefry"]
    carries: bool
    pairs: bool = False


@record
class Advanced(LoopOp):
    """The state advanced by a number of blocks."""

    state: Buffer
    blocks: int
    carries: bool


@record
class RandomElements(LoopOp):
    """output[i] = expr(word i) of the stream of words of `numpy.random.Philox` (4x64-10) from its start on.

    key: uint64, two words and, if it has three, the number of a call, from which the counter starts. word: uint16,
    uint32 or uint64, the type in which expr reads the stream, whose words of 64 bits are divided from the lower end.
    """

    key: Buffer
    word: DType
    expr: Expr


@record
class AcceptedElements(LoopOp):
    """Numbers from the same stream by rejection sampling, as NumPy draws them: one after the other.

    span: uint32 in [0, span) (Lemire 2019); 0: standard normal float32 by the ziggurat of Marsaglia and Tsang (2000).
    layers: of the ziggurat, constant uint32 [3, 256]: limits of acceptance, widths and densities, the latter as bits.
    """

    key: Buffer
    layers: tuple[Buffer, ...] = ()
    span: int = 0


@record
class NormalPairs(LoopOp):
    """Standard normal float32, two of each two numbers in [0, 1): sqrt(-2 log u) sin(2 pi v) and the same with cos.

    The last cosine of an odd number of results is left out.
    """

    uniform: Buffer


@record
class Classes(LoopOp):
    """The class that each float64 in [0, 1) falls into, int32 or int64 [rows, n].

    Class c of a row of logits [rows, classes] has the weight exp(l_c - max l), 0 where l_c is not finite; capped: what
    falls behind the last class is in it, else it has the number behind.
    """

    logits: Buffer
    numbers: Buffer
    capped: bool


@record
class SpecialFunction(LoopOp):
    """A special function of each element, computed in float64. kind: its name in kernels/special_functions.py."""

    input: Buffer
    kind: str


@record
class FixedProduct(LoopOp):
    """The product of each column of the input, [n, m] of int8 or int16, as integers of the same type.

        p_1 = x_1 - zero    p_k = rescale(p_(k - 1) (x_k - zero))    y = clamp(rescale(p_n) + output_zero)
    factor: (m, e); rescale(a) = a m 2^(e - 31), m cut to 16 bits, halves up. p is int32 and wraps.
    """

    input: Buffer
    zero: int
    factor: tuple[int, int]
    output_zero: int


@record
class Fourier(LoopOp):
    """The discrete Fourier transform of rows: y[k] = sum_j x[j] exp(-2 pi i j k / size), 0 behind a row's end.

    input: float32 or float64, real [..., n], and the output the first half, [..., size / 2 + 1, 2]; or, complex,
    [..., n, 2], and the output [..., size, 2]. Real and imaginary parts are neighbours. n <= size. inverse: of complex
    rows, with exp(2 pi i j k / size) / size.
    """

    input: Buffer
    size: int
    complex: bool = False
    inverse: bool = False


@record
class Hadamard(LoopOp):
    """The Walsh-Hadamard transform of runs of `size` elements, a power of 2, over sqrt(size), float32."""

    input: Buffer
    size: int


@record
class Projection(LoopOp):
    """Bits of locality-sensitive hashing, int32: [sum_r weight_r fingerprint(hash_ij, x_r) > 0].

    hash: float32 [functions, bits]; x: [rows, n] bytes, of elements of `size` bytes; weights: float32 [rows], or none,
    which are all 1. sparse: the bits of each function are a number, the first the highest, plus i 2^bits for function
    i; the output is [functions]. Else it is [functions bits].
    """

    hash: Buffer
    x: Buffer
    weights: tuple[Buffer, ...]
    sparse: bool
    size: int


@record
class Alignment(LoopOp):
    """The catalogue's CTCLoss of float32 logits [time, batch, classes] and labels [batch, length], of which each
    sequence has its numbers of labels and of steps, [batch] each.

    results: the losses [batch], their gradient by the logits; and the byte in `output` where each begins. A length or
    a label out of range, or a class `blank` that there is not, is a failed guard.
    """

    logits: Buffer
    labels: Buffer
    label_length: Buffer
    logit_length: Buffer
    blank: int
    results: tuple[tuple[Buffer, int], ...]

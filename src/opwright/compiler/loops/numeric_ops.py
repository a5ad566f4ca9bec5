"""Operations of numeric algorithms: random numbers, Fourier transforms, fixed-point arithmetic, hashes.

Lives here: `RandomWords`, `Advanced`, `NormalPairs`, `Classes`; `FixedProduct`, `TabledSoftmax`; `Fourier`;
`Projection`,
of locality-sensitive hashing.
Not here: other operations (ops.py), kernels (../kernels/random_numbers.py, fixed_point.py, fourier.py,
lsh_projection.py), the storage of generators' states (lite/runtime/resources.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .buffers import Buffer
from .ops import LoopOp


@dataclass(frozen=True, eq=False)
class TabledSoftmax(LoopOp):
    """Softmax of rows of int16, whole numbers throughout; results are steps of 2^-15.

    factor: (m, e), m 2^(e - 31) takes differences to the greatest to steps of 10 / 65535. tables: constant int64
    [2, 513], exp over [-10, 0] and 1 / (1 + x) over [0, 1], between whose entries values are interpolated.
    """

    input: Buffer
    tables: Buffer
    factor: tuple[int, int]


@dataclass(frozen=True, eq=False)
class RandomWords(LoopOp):
    """The words of the blocks that a state stands before, uint32, as many as the output has.

    state: uint64, the key, the lower and, if it has three, the upper half of the first block's number; with two the
    upper half is the key. carries: whether the lower half carries into the upper one from block to block.
    """

    state: Buffer
    algorithm: Literal["philox", "threefry"]
    carries: bool


@dataclass(frozen=True, eq=False)
class Advanced(LoopOp):
    """The state advanced by a number of blocks."""

    state: Buffer
    blocks: int
    carries: bool


@dataclass(frozen=True, eq=False)
class NormalPairs(LoopOp):
    """Standard normal float32, two of each two numbers in [0, 1): sqrt(-2 log u) sin(2 pi v) and the same with cos.

    The last cosine of an odd number of results is left out.
    """

    uniform: Buffer


@dataclass(frozen=True, eq=False)
class Classes(LoopOp):
    """The class that each float64 in [0, 1) falls into, int32 or int64 [rows, n].

    Class c of a row of logits [rows, classes] has the weight exp(l_c - max l), 0 where l_c is not finite; capped: what
    falls behind the last class is in it, else it has the number behind.
    """

    logits: Buffer
    numbers: Buffer
    capped: bool


@dataclass(frozen=True, eq=False)
class FixedProduct(LoopOp):
    """The product of each column of the input, [n, m] of int8 or int16, as integers of the same type.

        p_1 = x_1 - zero    p_k = rescale(p_(k - 1) (x_k - zero))    y = clamp(rescale(p_n) + output_zero)
    factor: (m, e); rescale(a) = a m 2^(e - 31), m cut to 16 bits, halves up. p is int32 and wraps.
    """

    input: Buffer
    zero: int
    factor: tuple[int, int]
    output_zero: int


@dataclass(frozen=True, eq=False)
class Fourier(LoopOp):
    """The discrete Fourier transform of rows, float32: y[k] = sum_j x[j] exp(-2 pi i j k / size), 0 behind a row's end.

    input: real [..., n], and the output the first half, [..., size / 2 + 1, 2]; or, complex, [..., n, 2], and the
    output [..., size, 2]. Real and imaginary parts are neighbours. n <= size.
    """

    input: Buffer
    size: int
    complex: bool = False


@dataclass(frozen=True, eq=False)
class Projection(LoopOp):
    """Bits of locality-sensitive hashing, int32: [sum_r weight_r fingerprint(hash_ij, x_r) > 0].

    hash: float32 [functions, bits]; x: [rows, n] bytes; weights: float32 [rows], or none, which are all 1. sparse: the
    bits of each function are a number, the first the highest, plus i 2^bits for function i; the output is [functions].
    Else it is [functions bits].
    """

    hash: Buffer
    x: Buffer
    weights: tuple[Buffer, ...]
    sparse: bool

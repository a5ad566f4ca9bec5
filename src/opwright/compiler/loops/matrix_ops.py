"""Operations of linear algebra: factors of matrices and solutions of systems.

Not here: products of matrices (ops.py), their kernels (../kernels/).
"""

from __future__ import annotations

from ...core.records import record
from .buffers import Buffer
from .ops import LoopOp


@record
class CholeskyFactor(LoopOp):
    """The lower triangular L of matrices L L^T [..., n, n], whose lower triangles are read. A pivot of 0 or less is a
    failed guard."""

    input: Buffer


@record
class TriangularSystem(LoopOp):
    """The solutions [..., n, k] of T x = rhs, or T^T x = rhs if transposed, batches broadcast. lower: the triangle of
    the matrix [..., n, n] that is read, before it is transposed. A 0 on the diagonal is a failed guard."""

    matrix: Buffer
    rhs: Buffer
    lower: bool
    transposed: bool


@record
class LuFactor(LoopOp):
    """L and U of matrices [..., n, n], or of their transposes, with partial pivoting: of the rows that are left, the
    one with the largest element in the column is exchanged with the first.

    results: U and, below it, L without its diagonal of ones; the matrix's row of each row, int64 [..., n]; 1 or -1 for
    an even or odd number of exchanges [...]; and the byte in `output` where each begins. singular: whether a pivot may
    be 0, otherwise it is a failed guard.
    """

    input: Buffer
    transposed: bool
    singular: bool
    results: tuple[tuple[Buffer, int], ...]


@record
class LuSolution(LoopOp):
    """The solutions [..., n, k] of systems by the results of LuFactor. rhs: of the output's shape, or identity matrices
    where there is none."""

    factors: Buffer
    rows: Buffer
    rhs: Buffer | None = None

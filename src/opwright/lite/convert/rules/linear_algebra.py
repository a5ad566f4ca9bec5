"""Rules for diagonals and bands of matrices, cross products, sorted rows, complex numbers and Fourier transforms.

Lives here: Matrix{Diag,DiagPart,SetDiag,BandPart}, Cross, LowerBound, UpperBound; Complex, Conj, Angle; transforms over
one dimension, and RFFT2D.
Not here: products (matmul.py); decompositions, solvers and transforms of higher rank, which have no lite form.

RFFT2D takes sizes that are powers of 2. Other transforms are products with the matrix of the transform, real and
imaginary part separately: exact, but the file holds the matrix, so up to a size.
"""

from __future__ import annotations

import numpy as np

from ....core.dtypes import complex64, float32, int32, int64
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import (
    LiteRewriter,
    NoMatch,
    Rewrite,
    RuleResult,
    UnmatchedNode,
    constant_of,
    number,
    numbered,
    only,
    padded,
    picked,
    rank_of,
    rule_table,
    run,
    sizes,
    sliced,
)


def _is_zero(value: Value) -> bool:
    return value.constant is not None and not value.constant.any()


def _diag(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, padding = node.operands
    attrs = node.attrs
    if tuple(attrs["k"]) != (0, 0) or not _is_zero(padding) or (attrs["num_rows"], attrs["num_cols"]) != (-1, -1):
        return NoMatch("MATRIX_DIAG makes square matrices of the main diagonal, with zeros beside")
    return rewriter.emit("MATRIX_DIAG", x, like=node.outputs[0].spec)


def _inner(value: Value, n: int) -> list[int]:
    """Return the last n sizes."""
    dims = value.spec.shape.dims
    if dims is None or None in dims[len(dims) - n :]:
        sizes(value)
    return [int(d) for d in (dims or ())[len(dims or ()) - n :] if d is not None]


def _diag_by_gather(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Gather diagonals: the source of each element is the same for all matrices."""
    x, padding = node.operands
    inner = _inner(x, 1 if node.attrs["k"][0] == node.attrs["k"][1] else 2)
    places = run(node, numbered(inner), np.int32(0)) - 1
    return picked(rewriter, x, inner, places, padding)


def _diag_part(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, padding = node.operands
    inner = _inner(x, 2)
    places = run(node, numbered(inner), np.int32(0)) - 1
    return picked(rewriter, x, inner, places, padding)


def _set_by_gather(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, diagonal = node.operands
    inner = _inner(x, 2)
    sizes_of_diagonals = _inner(diagonal, 1 if node.attrs["k"][0] == node.attrs["k"][1] else 2)
    places = run(node, np.zeros(inner, np.int32), numbered(sizes_of_diagonals)) - 1
    return picked(rewriter, diagonal, sizes_of_diagonals, places, x)


def _band(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, *bounds = node.operands
    for bound in bounds:
        constant_of(bound, "the width of the band")
    inside = run(node, np.ones(_inner(x, 2), np.int32), *(b.constant for b in bounds)) > 0
    return rewriter.emit("SELECT_V2", rewriter.constant(inside), x, number(rewriter, 0, x), like=node.outputs[0].spec)


def _cross(node: Node, rewriter: LiteRewriter) -> RuleResult:
    a, b = node.operands
    last = rank_of(a) - 1

    def permuted(v: Value, order: tuple[int, ...]) -> Value:
        return rewriter.emit("GATHER", v, rewriter.int32(order), axis=last)

    first, second = (1, 2, 0), (2, 0, 1)
    return rewriter.emit(
        "SUB",
        rewriter.emit("MUL", permuted(a, first), permuted(b, second)),
        rewriter.emit("MUL", permuted(a, second), permuted(b, first)),
        like=node.outputs[0].spec,
    )


def _bucketize(node: Node, rewriter: LiteRewriter) -> RuleResult:
    rows, values = node.operands
    bounds = constant_of(rows, "the sorted row")
    if len(bounds) != 1 or rows.dtype is not float32 or not (np.diff(bounds[0]) >= 0).all():
        return NoMatch("BUCKETIZE takes one sorted row of float32")
    y = rewriter.emit("BUCKETIZE", values, boundaries=tuple(map(float, bounds[0])))
    dtype = node.attrs["out_type"]
    return y if dtype is int32 else rewriter.cast(y, dtype)


def _bound(lite: str) -> Rewrite:
    """Count the elements of its row that each value exceeds: LESS, or reaches: LESS_EQUAL."""

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        rows, values = node.operands
        if rows.dtype not in (float32, int32, int64):
            return NoMatch(f"{lite} takes float32, int32 and int64")
        row = rewriter.emit("EXPAND_DIMS", rows, rewriter.int32([1]))
        column = rewriter.emit("EXPAND_DIMS", values, rewriter.int32([2]))
        below = rewriter.cast(rewriter.emit(lite, row, column), int32)
        y = rewriter.emit("SUM", below, rewriter.int32([2]))
        dtype = node.attrs["out_type"]
        return y if dtype is int32 else rewriter.cast(y, dtype)

    return lower


_KNOWN = "where each element comes from is known"

MATRICES = rule_table(
    RewriteRule("matrix_diag", "MatrixDiag", _diag),
    RewriteRule("diag_by_gather", "MatrixDiag", _diag_by_gather, _KNOWN),
    RewriteRule("diag_part_by_gather", "MatrixDiagPart", _diag_part, _KNOWN),
    RewriteRule("set_diag_by_gather", "MatrixSetDiag", _set_by_gather, _KNOWN),
    RewriteRule("band_by_select", "MatrixBandPart", _band, "what is inside the band is known"),
    RewriteRule("cross", "Cross", _cross, "its definition"),
    RewriteRule("bucketize", "UpperBound", _bucketize),
    RewriteRule("lower_bound", "LowerBound", _bound("LESS"), "its definition: a count"),
    RewriteRule("upper_bound", "UpperBound", _bound("LESS_EQUAL"), "its definition: a count"),
)


MOST = 1024  # points of a transform by its matrix


def _pair(rewriter: LiteRewriter, real: Value, imag: Value) -> Value:
    """Return a complex number of two parts, which are adjacent in memory."""
    both = rewriter.emit("PACK", (real, imag), values_count=2, axis=rank_of(real))
    return rewriter.emit("BITCAST", both, output_type="COMPLEX64")


def _complex(node: Node, rewriter: LiteRewriter) -> RuleResult:
    real, imag = node.operands
    only(real, float32)
    if real.spec.shape.dims != imag.spec.shape.dims:
        return NoMatch("the parts are broadcast")
    return _pair(rewriter, real, imag)


def _conj(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    only(x, complex64)
    return _pair(rewriter, rewriter.emit("REAL", x), rewriter.emit("NEG", rewriter.emit("IMAG", x)))


def _angle(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    only(x, complex64)
    return rewriter.emit("ATAN2", rewriter.emit("IMAG", x), rewriter.emit("REAL", x), like=node.outputs[0].spec)


def _lengths(node: Node, n: int) -> list[int]:
    length = constant_of(list(node.operands)[1], "fft_length").reshape(-1).tolist()
    return [int(v) for v in length[-n:]]


def _powers_of_2(lengths: list[int]) -> bool:
    return all(n > 0 and not n & (n - 1) for n in lengths)


def _rfft2d(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x, _), lengths = node.operands, _lengths(node, 2)
    only(x, float32)
    if not _powers_of_2(lengths):
        return NoMatch(f"RFFT2D takes lengths that are powers of 2, found {lengths}")
    return rewriter.emit("RFFT2D", x, rewriter.int32(lengths), like=node.outputs[0].spec)


def _rfft(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x, _), lengths = node.operands, _lengths(node, 1)
    only(x, float32)
    if not _powers_of_2(lengths):
        return NoMatch(f"RFFT2D takes lengths that are powers of 2, found {lengths}")
    axis = rewriter.int32([rank_of(x) - 1])
    row = rewriter.emit("EXPAND_DIMS", x, axis)
    y = rewriter.emit("RFFT2D", row, rewriter.int32([1, *lengths]))
    return rewriter.emit("SQUEEZE", y, squeeze_dims=[rank_of(x) - 1], like=node.outputs[0].spec)


def _fitted(rewriter: LiteRewriter, x: Value, n: int) -> Value:
    """Return the last dimension truncated or zero-padded to n."""
    dims = x.spec.shape.dims or (None,)
    size, lead = dims[-1], len(dims) - 1
    if size is None:
        raise UnmatchedNode("the size of the last dimension is not known")
    if size > n:
        return sliced(rewriter, x, [0] * len(dims), [-1] * lead + [n])
    return padded(rewriter, x, [(0, 0)] * lead + [(0, n - size)])


def _product(rewriter: LiteRewriter, x: Value, matrix: np.ndarray) -> Value:
    """Multiply x [..., n] by a constant [n, m]."""
    weights = rewriter.constant(np.ascontiguousarray(matrix.T.astype(np.float32)), float32)
    if rank_of(x) < 2:
        row = rewriter.emit("EXPAND_DIMS", x, rewriter.int32([0]))
        return rewriter.emit("SQUEEZE", rewriter.emit("FULLY_CONNECTED", row, weights, None), squeeze_dims=[0])
    return rewriter.emit("FULLY_CONNECTED", x, weights, None, keep_num_dims=True)


def _roots(n: int, m: int, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of 2 pi j k
    n, [n, m], exact in the angle."""
    angle = 2 * np.pi * (np.outer(np.arange(n), np.arange(m)) % n) / n
    return np.cos(angle), sign * np.sin(angle)


def _checked(n: int) -> int:
    if n > MOST:
        raise UnmatchedNode(f"the transform's matrix would be large: {n} points, at most {MOST}")
    return n


def _rfft_matrix(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x = next(node.operands)
    only(x, float32)
    n = _checked(_lengths(node, 1)[0])
    cos, sin = _roots(n, n // 2 + 1, -1)
    x = _fitted(rewriter, x, n)
    return _pair(rewriter, _product(rewriter, x, cos), _product(rewriter, x, sin))


def _fft_matrix(sign: int) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,) = node.operands
        only(x, complex64)
        n = (x.spec.shape.dims or (None,))[-1]
        if n is None:
            raise UnmatchedNode("the size of the last dimension is not known")
        n = _checked(n)
        cos, sin = _roots(n, n, sign)
        scale = 1 / n if sign > 0 else 1.0
        re, im = rewriter.emit("REAL", x), rewriter.emit("IMAG", x)
        real = rewriter.emit("SUB", _product(rewriter, re, cos * scale), _product(rewriter, im, sin * scale))
        imag = rewriter.emit("ADD", _product(rewriter, re, sin * scale), _product(rewriter, im, cos * scale))
        return _pair(rewriter, real, imag)

    return lower


def _irfft_matrix(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x = next(node.operands)
    only(x, complex64)
    n = _checked(_lengths(node, 1)[0])
    m = n // 2 + 1
    cos, sin = (part[:m] for part in _roots(n, n, 1))  # [m, n]
    weight = np.full((m, 1), 2.0)
    weight[0] = 1.0
    if n % 2 == 0:
        weight[-1] = 1.0
    re, im = (_fitted(rewriter, rewriter.emit(lite, x), m) for lite in ("REAL", "IMAG"))
    return rewriter.emit("SUB", _product(rewriter, re, cos * weight / n), _product(rewriter, im, sin * weight / n))


_MATRIX = "a transform is a product with its matrix"

SPECTRAL = rule_table(
    RewriteRule("complex", "Complex", _complex, "its two parts lie side by side"),
    RewriteRule("conj", "Conj", _conj, "its definition"),
    RewriteRule("angle", "Angle", _angle, "its definition"),
    RewriteRule("rfft2d", "RFFT2D", _rfft2d),
    RewriteRule("rfft_as_rfft2d", "RFFT", _rfft, "of one row it is the same"),
    RewriteRule("rfft_by_matrix", "RFFT", _rfft_matrix, _MATRIX),
    RewriteRule("fft_by_matrix", "FFT", _fft_matrix(-1), _MATRIX),
    RewriteRule("ifft_by_matrix", "IFFT", _fft_matrix(1), _MATRIX),
    RewriteRule("irfft_by_matrix", "IRFFT", _irfft_matrix, _MATRIX),
)

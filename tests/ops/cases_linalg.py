"""Rows for linear algebra: `ops/linalg`.

Oracles are sums written out (`dot`), literal values, or the equation a decomposition must solve; inputs are made well
conditioned where an inverse is asked for.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from harness import bad, bools, c64, c128, case, f16, f32, f64, i32

import opwright as ow

inf = math.inf
GRADIENT_ONLY = "the rows before have the oracle; this one is for the gradient of what no choice of phases changes"


def at(x, where):
    """x at an index of a batch, its sizes of 1 and missing dimensions repeated."""
    lead = x.shape[:-2]
    where = where[len(where) - len(lead) :]
    return x[tuple(0 if d == 1 else i for i, d in zip(where, lead))]


def batches(*arrays):
    return np.broadcast_shapes(*(x.shape[:-2] for x in arrays))


def each(function, *arrays):
    """`function` of every matrix of a batch."""
    lead = batches(*arrays)
    result = [function(*(at(x, w) for x in arrays)) for w in itertools.product(*map(range, lead))]
    return np.array(result).reshape(*lead, *np.shape(result[0]) if result else ())


def dot(a, b):
    """The product of matrices, written out."""
    return each(
        lambda x, y: np.array(
            [[sum(x[i, k] * y[k, j] for k in range(len(y))) for j in range(y.shape[1])] for i in range(len(x))], a.dtype
        ).reshape(len(x), y.shape[1]),
        a,
        b,
    )


def turned(x):
    return np.swapaxes(x, -1, -2)


def h(x):
    return np.swapaxes(x, -1, -2).conj()


def well(x, shift=4.0):
    """Square matrices that are far from singular."""
    return (x + shift * np.eye(x.shape[-1])).astype(x.dtype)


def definite(x):
    """Positive definite matrices."""
    return well(x @ h(x), 1.0).astype(x.dtype)


def call(path):
    """A public function by its name, for rows that put something before it."""

    def function(*args, **attrs):
        from harness import resolve

        return resolve(path)(*args, **attrs)

    return function


def gram(x):
    """x x^H + 1, of tensors: how a positive definite matrix depends on all its elements."""
    from opwright.ops.linalg import matmul

    return matmul(x, x, adjoint_b=True) + np.eye(x.shape[-2], dtype=x.dtype.np)


def det3(m):
    """Leibniz."""
    n, total = len(m), 0.0
    for p in itertools.permutations(range(n)):
        sign = (-1) ** sum(p[i] > p[j] for i in range(n) for j in range(i + 1, n))
        total = total + sign * math.prod(m[i, p[i]] for i in range(n))
    return total


def near(a, b):
    tolerance = 1e-9 if a.dtype in (np.float64, np.complex128) else 2e-4
    np.testing.assert_allclose(a, b, tolerance, tolerance)


def solves(x, a, b, **_):
    near(dot(a, x), np.broadcast_to(b, dot(a, x).shape))


def einsum_oracle(equation):
    """Every assignment of numbers to labels, one after another; no ellipsis."""
    left, right = equation.split("->")

    def oracle(inputs):
        terms = left.split(",")
        sizes = {c: d for t, x in zip(terms, inputs) for c, d in zip(t, x.shape)}
        labels = sorted(sizes)
        out = np.zeros([sizes[c] for c in right], inputs[0].dtype)
        for values in itertools.product(*(range(sizes[c]) for c in labels)):
            v = dict(zip(labels, values))
            out[tuple(v[c] for c in right)] += math.prod(x[tuple(v[c] for c in t)] for t, x in zip(terms, inputs))
        return out

    return oracle


def einsum_case(equation, *inputs, **options):
    if "expect" not in options:
        options["expect"] = einsum_oracle(equation)
    return case(list(inputs), equation=equation, **options)


A32 = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
singular = np.array([[1.0, 2.0], [2.0, 4.0]], np.float32)
zero = np.array(0.0)


def is_qr(q, r, x):
    near(dot(q, r), x)
    near(dot(h(q), q), np.broadcast_to(np.eye(q.shape[-1]), dot(h(q), q).shape))
    np.testing.assert_array_equal(np.tril(r, -1), 0)


def is_svd(s, u, v, x):
    p = s.shape[-1]
    near(dot(u[..., :p] * s[..., None, :], h(v[..., :p])), x)
    for w in (u, v):
        near(dot(h(w), w), np.broadcast_to(np.eye(w.shape[-1]), dot(h(w), w).shape))
    assert (np.diff(s) <= 0).all()


def is_eigh(e, v, x):
    low = np.tril(x, -1) + h(np.tril(x, -1)) + np.real(x) * np.eye(x.shape[-1])
    near(dot(low.astype(v.dtype), v), v * e[..., None, :])
    near(dot(h(v), v), np.broadcast_to(np.eye(v.shape[-1]), v.shape))
    assert (np.diff(e.real) >= 0).all()


def taylor(x):
    """exp of a matrix by its series, in the widest floats there are."""

    def one(m):
        m = m.astype(np.clongdouble if m.dtype.kind == "c" else np.longdouble)
        total = term = np.eye(len(m), dtype=m.dtype)
        for k in range(1, 80):
            term = term @ m / k
            total = total + term
        return total.astype(np.complex128 if m.dtype.kind == "c" else np.float64)

    return each(one, x)


# What does not depend on the choice of signs of a decomposition's factors, so that differences mean something
def invariant_svd(x):
    from opwright.ops.linalg import matmul, svd

    s, u, v = svd(x)
    return s, matmul(u * np.arange(1.0, 1.0 + s.shape[-1]).astype(u.dtype.np), v, adjoint_b=True)


def invariant_eigh(x):
    from opwright.ops.linalg import eigh, matmul

    e, v = eigh(x)
    return e, matmul(v * np.arange(1.0, 1.0 + e.shape[-1]).astype(v.dtype.np), v, adjoint_b=True)


CASES = {
    "MatMul": [
        case(f64(2, 3), f64(3, 4), expect=dot),
        case(f32(3, 2), f32(3, 4), transpose_a=True, expect=lambda a, b: dot(turned(a), b)),
        case(f64(2, 3), f64(4, 3), transpose_b=True, expect=lambda a, b: dot(a, turned(b))),
        case(f64(3, 2), f64(4, 3), adjoint_a=True, transpose_b=True, expect=lambda a, b: dot(turned(a), turned(b))),
        case(f64(2, 1, 2, 3), f64(4, 3, 2), expect=dot),
        case(f64(2, 3), f64(2, 3, 2), expect=dot),
        case(
            f64(2, 3, 2),
            f64(1, 2, 3),
            transpose_a=True,
            transpose_b=True,
            expect=lambda a, b: dot(turned(a), turned(b)),
        ),
        case(c128(2, 3), c128(3, 2), expect=dot),
        case(c128(3, 2), c128(2, 3), transpose_a=True, transpose_b=True, expect=lambda a, b: dot(turned(a), turned(b))),
        case(c128(3, 2), c128(2, 3), adjoint_a=True, adjoint_b=True, expect=lambda a, b: dot(h(a), h(b))),
        case(c128(2, 2, 3), c128(2, 3), adjoint_b=True, expect=lambda a, b: dot(a, h(b))),
        case(c128(3, 2), c128(3, 2), transpose_a=True, expect=lambda a, b: dot(turned(a), b)),
        case(i32(2, 3), i32(3, 2), expect=dot),
        case(
            np.full((1, 9), 100, np.int8),
            np.full((9, 1), 100, np.int8),
            output_type=np.int32,
            expect=np.array([[90000]]),
            gives="int32",
        ),
        case(f32(2, 0), f32(0, 3), expect=np.zeros((2, 3)), half=False),
        case(f16(4, 8), f16(8, 4), expect=dot),
        bad(f32(2, 3), f32(2, 3), says=("inner sizes differ, 3 and 2", "transpose")),
        bad(f32(3), f32(3, 2), says="ndims must be >= 2"),
        bad(f32(2, 2, 3), f32(3, 3, 2), says="batch"),
        bad(bools(2, 2), bools(2, 2), says="dtype"),
        bad(f32(2, 2), f64(2, 2), says="differ in dtype"),
    ],
    "linalg.matmul": [
        case(f64(3, 2), f64(3, 2), adjoint_a=True, expect=lambda a, b: dot(turned(a), b)),
        bad(f32(2, 2), f32(2, 2), transpose_a=True, adjoint_a=True, says="Only one of", raises=ValueError),
    ],
    "linalg.matvec": [
        case(f64(2, 3), f64(3), expect=lambda a, b: dot(a, b[:, None])[:, 0]),
        case(f64(4, 3, 2), f64(4, 3), transpose_a=True, expect=lambda a, b: dot(turned(a), b[..., None])[..., 0]),
    ],
    "linalg.tensordot": [
        case(f64(2, 3), f64(3, 4), axes=1, expect=dot),
        case(f64(2, 3), f64(2, 3), axes=2, expect=lambda a, b: (a * b).sum()),
        case(f64(2), f64(3), axes=0, expect=lambda a, b: a[:, None] * b),
        case(
            f64(2, 3, 4), f64(4, 5, 2), axes=[[0, 2], [2, 0]], expect=lambda a, b: einsum_oracle("abc,cda->bd")([a, b])
        ),
        case(f32(2, 3), f32(2, 4), axes=(0, 0), expect=lambda a, b: dot(turned(a), b)),
        bad(f32(2, 3), f32(3), axes=2, says="larger", raises=ValueError),
        bad(f32(2, 3), f32(3), axes=[[0, 1], [0]], says="Different number", raises=ValueError),
    ],
    "Einsum": [
        einsum_case("ij,jk->ik", f64(2, 3), f64(3, 4)),
        einsum_case("ij,jk->ki", f32(2, 3), f32(3, 4)),
        einsum_case("bij,bkj->bik", f64(2, 3, 2), f64(2, 4, 2)),
        einsum_case("ij->", f64(2, 3)),
        einsum_case("ijk->kj", f64(2, 3, 2)),
        einsum_case("ii->", f64(3, 3)),
        einsum_case("iij->ji", f64(2, 2, 3)),
        einsum_case("i->ii", f64(3), expect=lambda xs: np.diag(xs[0])),
        einsum_case("i,j->ij", f64(2), f64(3)),
        einsum_case("ij,k->i", f64(2, 3), f64(2)),
        einsum_case("ab,bc,cd->ad", f64(2, 3), f64(3, 2), f64(2, 4)),
        einsum_case("ab,ab,ab->b", f64(2, 3), f64(2, 3), f64(2, 3)),
        einsum_case("ij,jk", f64(2, 3), f64(3, 2), expect=lambda xs: dot(*xs)),
        einsum_case("ba", f64(2, 3), expect=lambda xs: xs[0].T),
        einsum_case("...ij,...jk->...ik", f64(2, 1, 2, 3), f64(4, 3, 2), expect=lambda xs: dot(*xs)),
        einsum_case("...ij,jk->...ik", f64(4, 2, 3), f64(3, 2), expect=lambda xs: dot(*xs)),
        einsum_case("ij,...jk->...ki", f64(2, 3), f64(2, 3, 2), expect=lambda xs: turned(dot(*xs))),
        einsum_case("i...->...", f64(2, 3), expect=lambda xs: xs[0].sum(0)),
        einsum_case("...,...->...", f64(2, 3), f64(3), expect=lambda xs: xs[0] * xs[1]),
        einsum_case("ij,jk->ik", c128(2, 3), c128(3, 2)),
        einsum_case("ij,jk->ik", i32(2, 3), i32(3, 2)),
        einsum_case("ij,jk->ik", f32(2, 0), f32(0, 2), expect=np.zeros((2, 2)), half=False),
        bad([f32(2, 3), f32(2, 2)], equation="ij,jk->ik", says="Expected dimension 3 at axis 0"),
        bad([f32(2, 3), f32(1, 2)], equation="ij,jk->ik", says="Expected dimension 3 at axis 0"),
        bad([f32(2)], equation="ij->ij", says="to have rank 2 but got: 1"),
        bad([f32(4, 2, 3)], equation="...ij->ij", says="no ellipsis"),
        bad([f32(2, 3)], equation="ij,jk->ik", says="Got 1 inputs", raises=ValueError),
        bad([f32(2, 3)], equation="i1->i", says="incorrect format", raises=ValueError),
        bad([f32(2, 3)], equation="ij->im", says="label m", raises=ValueError),
    ],
    "linalg.einsum": [
        case(
            f64(2, 3),
            f64(3, 2),
            call=lambda a, b: call("linalg.einsum")(" i j , j k -> i k ", a, b, optimize="greedy"),
            expect=dot,
        ),
        bad(f32(2), call=lambda a: call("linalg.einsum")("i->ii", a), says="more than once", raises=ValueError),
    ],
    "linalg.matrix_transpose": [
        case(f64(2, 3, 4), expect=turned),
        case(c64(2, 3), conjugate=True, expect=h),
        bad(f32(2), says="rank >= 2", raises=ValueError),
    ],
    "linalg.adjoint": [case(c128(2, 3), expect=h), case(f64(2, 3), expect=turned)],
    "MatrixDiag": [
        case(f64(2, 3), zero, expect=lambda d, p: np.array([np.diag(r) for r in d])),
        case(f64(2), np.array(9.0), k=(1, 1), expect=lambda d, p: np.array([[9, d[0], 9], [9, 9, d[1]], [9, 9, 9]])),
        case(
            f64(2), zero, k=(-1, -1), num_cols=3, expect=lambda d, p: np.array([[0, 0, 0], [d[0], 0, 0], [0, d[1], 0]])
        ),
        case(
            np.array([[9.0, 1, 2], [3, 4, 5], [6, 7, 9]]),
            zero,
            k=(-1, 1),
            expect=np.array([[3.0, 1, 0], [6, 4, 2], [0, 7, 5]]),
        ),
        case(
            np.array([[1.0, 2, 9], [3, 4, 5], [9, 6, 7]]),
            zero,
            k=(-1, 1),
            align="LEFT_RIGHT",
            expect=np.array([[3.0, 1, 0], [6, 4, 2], [0, 7, 5]]),
        ),
        case(
            np.array([1, 2], np.int32),
            np.array(7, np.int32),
            num_rows=2,
            num_cols=3,
            expect=np.array([[1, 7, 7], [7, 2, 7]]),
        ),
        bad(f32(2), np.float32(0), num_rows=1, says="rows is too small"),
        bad(f32(2), np.float32(0), num_rows=3, num_cols=4, says="not consistent"),
        bad(f32(2, 3), np.float32(0), k=(-1, 1), says="number of diagonals"),
        bad(f32(), np.float32(0), says="at least 1-dim"),
        bad(f32(2), np.float32(0), align="XX", says="align"),
    ],
    "linalg.diag": [
        case(f64(3), expect=np.diag),
        case(bools(2), k=-1, expect=lambda d: np.array([[0, 0, 0], [d[0], 0, 0], [0, d[1], 0]], bool)),
    ],
    "MatrixDiagPart": [
        case(A32, zero, expect=np.array([1.0, 4.0])),
        case(f64(2, 3, 4), zero, k=(1, 1), expect=lambda x, p: np.array([[m[i, i + 1] for i in range(3)] for m in x])),
        case(A32, zero, k=(-1, 1), expect=np.array([[0.0, 2], [1, 4], [3, 7]])),
        case(A32, np.array(9.0), k=(-2, 1), align="LEFT_LEFT", expect=np.array([[2.0, 9], [1, 4], [3, 7], [5, 9]])),
        bad(A32, zero, k=(5, 5), says="out of bound: 5"),
        bad(A32, zero, k=(1, 0), says="must not be larger"),
        bad(f64(2), zero, says="at least 2-dim"),
    ],
    "linalg.diag_part": [case(A32, k=(-1, 0), padding_value=-1.0, expect=np.array([[1.0, 4], [3, 7]]))],
    "MatrixSetDiag": [
        case(A32, f64(2), expect=lambda x, d: np.array([[d[0], 2], [3, d[1]], [5, 7]])),
        case(A32, np.array([[8.0, 0], [9, 6]]), k=(-1, 0), expect=np.array([[8.0, 2], [9, 0], [5, 6]])),
        case(
            f64(2, 2, 2),
            f64(2, 1),
            k=(1, 1),
            expect=lambda x, d: np.array([[[m[0, 0], e[0]], [m[1, 0], m[1, 1]]] for m, e in zip(x, d)]),
        ),
        bad(A32, f64(3), says="does not fit"),
    ],
    "linalg.set_diag": [case(A32, f64(2), k=-1, expect=lambda x, d: np.array([[1, 2], [d[0], 4], [5, d[1]]]))],
    "MatrixBandPart": [
        case(A32, np.array(1), np.array(0), expect=np.array([[1.0, 0], [3, 4], [0, 7]])),
        case(A32, np.array(-1, np.int32), np.array(0, np.int32), expect=np.array([[1.0, 0], [3, 4], [5, 7]])),
        case(
            f64(2, 2, 3),
            np.array(0),
            np.array(-1),
            expect=lambda x, *_: np.array(
                [[[v if j >= i else 0 for j, v in enumerate(r)] for i, r in enumerate(m)] for m in x]
            ),
        ),
        bad(A32, np.array(5), np.array(0), says="number of rows (3) got: 5"),
        bad(A32, np.array(0), np.array(5), says="number of columns (2) got: 5"),
        bad(f64(2), np.array(0), np.array(0), says="2-dim"),
    ],
    "linalg.trace": [
        case(f64(2, 3, 3), expect=lambda x: np.array([sum(m[i, i] for i in range(3)) for m in x])),
        case(A32, expect=5.0),
    ],
    "linalg.tensor_diag": [
        case(f64(2, 2), expect=lambda x: x[:, :, None, None] * np.eye(4).reshape(2, 2, 2, 2)),
        case(f64(3), expect=np.diag),
    ],
    "linalg.tensor_diag_part": [
        case(f64(2, 3, 2, 3), expect=lambda x: np.array([[x[i, j, i, j] for j in range(3)] for i in range(2)])),
        bad(f32(2, 3), says="halves"),
    ],
    "Cross": [
        case(np.array([1.0, 2, 3]), np.array([0.0, 1, 4]), expect=np.array([5.0, -4, 1])),
        case(
            f64(2, 3),
            f64(2, 3),
            expect=lambda a, b: np.array(
                [
                    [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]
                    for p, q in zip(a, b)
                ]
            ),
        ),
        case(
            c128(3),
            c128(3),
            expect=lambda p, q: np.array(
                [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]
            ),
        ),
        bad(f32(2, 3), f32(3), says="same shape"),
        bad(f32(2), f32(2), says="3-element"),
    ],
    "linalg.norm": [
        case(A32, expect=math.sqrt(1 + 4 + 9 + 16 + 25 + 49)),
        case(A32, ord=1, expect=22.0),
        case(A32, ord=1, axis=[0, 1], expect=13.0),
        case(A32, ord=inf, axis=[0, 1], expect=12.0),
        case(A32, ord=inf, axis=[1, 0], expect=13.0),
        case(A32, ord="fro", axis=[-2, -1], keepdims=True, expect=np.array([[math.sqrt(104)]])),
        case(A32, ord=2, axis=[0, 1], expect=math.sqrt((104 + math.sqrt(104**2 - 4 * 14)) / 2), rtol=1e-9),
        case(A32, ord=3, axis=1, expect=lambda x: np.array([sum(abs(v) ** 3 for v in r) ** (1 / 3) for r in x])),
        case(f64(2, 3), ord=inf, axis=1, expect=lambda x: np.array([max(map(abs, r)) for r in x])),
        case(np.array([3 + 4j]), expect=np.array(5 + 0j)),
        bad(A32, ord="fro", says="vector norm", raises=ValueError),
        bad(A32, ord=-1, says="vector norm", raises=ValueError),
        bad(A32, ord=3, axis=[0, 1], says="matrix norm", raises=ValueError),
        bad(A32, axis=[0, 1, 2], says="'axis'", raises=ValueError),
    ],
    "linalg.normalize": [
        case(
            f64(2, 3),
            axis=1,
            expect=lambda x: (x / np.sqrt((x * x).sum(1, keepdims=True)), np.sqrt((x * x).sum(1, keepdims=True))),
        )
    ],
    "MatrixInverse": [
        case(well(f64(3, 3)), holds=lambda y, x: near(dot(x, y), np.eye(3))),
        case(
            well(f32(2, 3, 3)),
            adjoint=True,
            holds=lambda y, x: near(dot(turned(x).astype(np.float32), y), np.stack([np.eye(3)] * 2)),
        ),
        case(well(c128(2, 2)), holds=lambda y, x: near(dot(x, y), np.eye(2))),
        case(well(c128(2, 2)), adjoint=True, holds=lambda y, x: near(dot(h(x), y), np.eye(2))),
        case(np.zeros((0, 0)), expect=np.zeros((0, 0))),
        bad(singular, says="not invertible"),
        bad(f32(2, 3), says="square"),
        bad(f32(3), says="rank >= 2"),
    ],
    "linalg.inv": [case(np.array([[2.0, 0], [0, 4]]), expect=np.array([[0.5, 0], [0, 0.25]]))],
    "MatrixDeterminant": [
        case(f64(3, 3), expect=det3),
        case(f64(2, 2, 2), expect=lambda x: each(det3, x)),
        case(c128(2, 2), expect=det3),
        case(singular, expect=0.0, grad=False),
        case(np.zeros((0, 0), np.float32), expect=1.0),
        bad(f32(2, 3), says="square"),
    ],
    "LogMatrixDeterminant": [
        case(f64(3, 3), expect=lambda x: (math.copysign(1, det3(x)), math.log(abs(det3(x))))),
        case(f64(2, 2, 2), expect=lambda x: (np.sign(each(det3, x)), np.log(np.abs(each(det3, x))))),
        case(c128(2, 2), expect=lambda x: (np.array(det3(x) / abs(det3(x))), np.array(math.log(abs(det3(x))) + 0j))),
        case(singular, expect=(0.0, -inf), grad=False),
    ],
    "linalg.slogdet": [
        case(-np.eye(3), expect=(-1.0, 0.0)),
        case(-np.eye(3), call=lambda x: ow.linalg.slogdet(x).sign, expect=-1.0, grad=False),
        case(2 * np.eye(2), call=lambda x: ow.linalg.slogdet(x).log_abs_determinant, expect=np.log(4.0)),
    ],
    "linalg.logdet": [
        case(definite(f64(3, 3)), expect=lambda x: math.log(det3(x)), grad=False),
        case(definite(c128(2, 2)), expect=lambda x: math.log(det3(x).real), grad=False),
        case(
            f64(2, 2),
            call=lambda x: call("linalg.logdet")(gram(x)),
            unknown=False,
            expect=lambda x: math.log(det3(dot(x, h(x)) + np.eye(2))),
        ),
    ],
    "MatrixSolve": [
        case(well(f64(3, 3)), f64(3, 2), holds=solves),
        case(well(f32(2, 2, 2)), f32(2, 2, 1), holds=lambda x, a, b: solves(x, a.astype(np.float32), b)),
        case(well(f64(2, 2)), f64(2, 3), adjoint=True, holds=lambda x, a, b: solves(x, turned(a), b)),
        case(well(c128(2, 2)), c128(2, 1), holds=solves),
        case(well(c128(2, 2)), c128(2, 1), adjoint=True, holds=lambda x, a, b: solves(x, h(a), b)),
        bad(singular, f32(2, 1), says="Input matrix is not invertible."),
        bad(well(f32(2, 2)), f32(3, 1), says="incompatible"),
        bad(well(f32(2, 2, 2)), f32(2, 1), says="same rank"),
    ],
    "linalg.solve": [case(np.array([[2.0, 0], [0, 4]]), np.ones((2, 1)), expect=np.array([[0.5], [0.25]]))],
    "MatrixTriangularSolve": [
        case(well(f64(3, 3)), f64(3, 2), holds=lambda x, a, b: solves(x, np.tril(a), b)),
        case(well(f64(3, 3)), f64(3, 2), lower=False, holds=lambda x, a, b: solves(x, np.triu(a), b)),
        case(well(f64(3, 3)), f64(3, 2), adjoint=True, holds=lambda x, a, b: solves(x, h(np.tril(a)), b)),
        case(
            well(f64(2, 2)), f64(3, 2, 1), lower=False, adjoint=True, holds=lambda x, a, b: solves(x, h(np.triu(a)), b)
        ),
        case(well(c128(2, 2, 2)), c128(2, 1), adjoint=True, holds=lambda x, a, b: solves(x, h(np.tril(a)), b)),
        case(well(f32(2, 2)), f32(2, 2), holds=lambda x, a, b: solves(x, np.tril(a).astype(np.float32), b)),
        bad(np.zeros((2, 2), np.float32), f32(2, 1), says="Input matrix is not invertible."),
        bad(well(f32(2, 2)), f32(3, 1), says="incompatible"),
    ],
    "linalg.triangular_solve": [case(np.array([[2.0, 9], [0, 4]]), np.ones((2, 1)), expect=np.array([[0.5], [0.25]]))],
    "Cholesky": [
        case(definite(f64(3, 3)), holds=lambda y, x: near(dot(y, h(y)), x), grad=False),
        case(definite(c128(2, 2)), holds=lambda y, x: near(dot(y, h(y)), x), grad=False),
        case(
            f64(3, 3),
            call=lambda x: call("Cholesky")(gram(x)),
            unknown=False,
            expect=lambda x: np.linalg.cholesky(dot(x, h(x)) + np.eye(3)),
        ),
        case(
            f64(2, 2, 2),
            call=lambda x: call("Cholesky")(gram(x)),
            unknown=False,
            expect=lambda x: np.linalg.cholesky(dot(x, h(x)) + np.eye(2)),
        ),
        case(
            c128(2, 2),
            call=lambda x: call("Cholesky")(gram(x)),
            unknown=False,
            expect=lambda x: np.linalg.cholesky(dot(x, h(x)) + np.eye(2)),
        ),
        bad(-np.eye(2, dtype=np.float32), says="not successful"),
        bad(f32(2, 3), says="square"),
    ],
    "linalg.cholesky_solve": [
        case(np.array([[2.0, 0], [1, 3]]), f64(2, 2), holds=lambda x, c, b: solves(x, dot(c, turned(c)), b))
    ],
    "Qr": [
        case(f64(3, 2), holds=is_qr),
        case(f64(2, 3, 3), holds=is_qr),
        case(f64(2, 4), holds=is_qr),
        case(f64(4, 2), full_matrices=True, holds=is_qr, grad=False),
        case(f32(3, 2), holds=lambda q, r, x: is_qr(q, r, x.astype(np.float32))),
        case(c128(3, 2), holds=is_qr),
        bad(f32(3), says="rank >= 2"),
    ],
    "linalg.qr": [case(f64(2, 2), holds=is_qr)],
    "Svd": [
        case(f64(3, 2), holds=is_svd),
        case(f64(2, 2, 3), holds=is_svd),
        case(f64(3, 2), full_matrices=True, holds=is_svd, grad=False),
        case(f64(3, 3), full_matrices=True, holds=is_svd, unknown=False),  # its gradient is for square matrices
        case(c128(3, 2), holds=is_svd, grad=False),
        case(c128(3, 2), call=invariant_svd, says_nothing=GRADIENT_ONLY, unknown=False),
        case(c128(2, 2), call=invariant_svd, says_nothing=GRADIENT_ONLY, unknown=False),
        bad(f32(3), says="rank >= 2"),
    ],
    "linalg.svd": [
        case(A32, compute_uv=False, expect=np.sqrt(np.roots([1, -104, 14]))),
        case(
            f64(2, 2, 3),
            compute_uv=False,
            holds=lambda s, x: near(s**2, np.linalg.eigvalsh(dot(x, turned(x)))[..., ::-1]),
        ),
    ],
    "SelfAdjointEig": [
        case(f64(3, 3), holds=is_eigh),
        case(f64(2, 2, 2), holds=is_eigh),
        case(c128(3, 3), call=invariant_eigh, says_nothing=GRADIENT_ONLY, unknown=False),
        case(c64(2, 2), holds=lambda e, v, x: is_eigh(e, v, x.astype(np.complex64)), grad=False),
        bad(f32(2, 3), says="square"),
    ],
    "linalg.eigh": [case(np.array([[1.0, 9.0], [2.0, 3.0]]), holds=is_eigh)],
    "linalg.eigvalsh": [
        case(np.array([[1.0, 9.0], [2.0, 3.0]]), expect=np.array([2 - math.sqrt(5), 2 + math.sqrt(5)]))
    ],
    "MatrixExponential": [
        case(f64(3, 3), expect=taylor, rtol=1e-9),
        case(f64(2, 2, 2) * np.array([0.01, 8.0])[:, None, None], expect=taylor, rtol=1e-8),
        case(c128(2, 2), expect=taylor),
        case(np.zeros((2, 2), np.float32), expect=np.eye(2)),
        case(f32(3, 3), expect=taylor),
        bad(f32(2, 3), says="square"),
    ],
    "linalg.pinv": [
        case(f64(3, 2), holds=lambda y, x: near(dot(y, x), np.eye(2)), rtol=1e-4),
        case(f64(2, 2, 3), holds=lambda y, x: near(dot(x, y), np.stack([np.eye(2)] * 2)), rtol=1e-4),
        case(np.array([[1.0, 2], [2, 4]]), expect=np.array([[1.0, 2], [2, 4]]) / 25, grad=False),
        case(np.diag([1.0, 0.1]), rcond=0.5, expect=np.diag([1.0, 0.0]), grad=False),
    ],
    "linalg.lstsq": [
        case(A32, np.ones((3, 1)), holds=lambda x, a, b: near(dot(turned(a), dot(a, x)), dot(turned(a), b))),
        case(turned(A32).copy(), np.ones((2, 1)), holds=lambda x, a, b: near(dot(a, x), b)),
        case(
            A32,
            np.ones((3, 1)),
            l2_regularizer=0.5,
            holds=lambda x, a, b: near(dot(turned(a), dot(a, x)) + 0.5 * x, dot(turned(a), b)),
        ),
        case(np.array([[1.0, 2], [2, 4]]), np.ones((2, 1)), fast=False, expect=np.array([[0.12], [0.24]]), grad=False),
    ],
    "linalg.matrix_rank": [
        case(np.array([[1.0, 2], [2, 4]]), expect=1, gives="int32"),
        case(f64(2, 3, 2), expect=np.array([2, 2])),
    ],
}

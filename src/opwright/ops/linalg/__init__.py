"""Linear algebra: products, decompositions, systems of equations. Public names as in `ow.linalg`."""

from ..array import eye
from ..math.clipping import global_norm
from ..math.moments import l2_normalize
from .diagonals import band_part, diag, diag_part, set_diag, tensor_diag, tensor_diag_part, trace
from .einsum import einsum
from .factoring import cholesky, eigh, eigvalsh, qr, svd
from .functions import cholesky_solve, expm, logdet, lstsq, matrix_rank, pinv
from .matmul import matmul, matvec, tensordot
from .matrices import adjoint, cross, matrix_transpose, norm, normalize
from .solving import det, inv, slogdet, solve, triangular_solve

__all__ = [
    "adjoint", "band_part", "cholesky", "cholesky_solve", "cross", "det", "diag", "diag_part", "eigh", "eigvalsh",
    "einsum", "expm", "eye", "global_norm", "inv", "l2_normalize", "logdet", "lstsq", "matmul", "matrix_rank",
    "matrix_transpose", "matvec", "norm", "normalize", "pinv", "qr", "set_diag", "slogdet", "solve", "svd",
    "tensor_diag", "tensor_diag_part", "tensordot", "trace", "triangular_solve",
]  # fmt: skip

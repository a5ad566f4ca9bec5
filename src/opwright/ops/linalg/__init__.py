"""Linear algebra: products, decompositions, systems of equations. Public names as in `ow.linalg`."""

from ...core.lazy_imports import MissingNameError, import_module
from ..array import eye
from ..math.rounding import global_norm
from ..math.statistics import l2_normalize
from .band_operators import LinearOperatorToeplitz, LinearOperatorTridiag
from .bands import banded_triangular_solve, tridiagonal_matmul, tridiagonal_solve
from .block_operators import LinearOperatorBlockDiag, LinearOperatorBlockLowerTriangular, LinearOperatorKronecker
from .circulant_operators import LinearOperatorCirculant, LinearOperatorCirculant2D, LinearOperatorCirculant3D
from .diagonal_operators import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from .diagonals import band_part, diag, diag_part, set_diag, tensor_diag, tensor_diag_part, trace
from .einsum import adjoint, cross, einsum, matrix_transpose
from .factorization import cholesky, eigh, eigvalsh, lu, lu_matrix_inverse, lu_reconstruct, lu_solve, qr, svd
from .linear_operator import (
    LinearOperator,
    LinearOperatorAdjoint,
    LinearOperatorComposition,
    LinearOperatorFullMatrix,
    LinearOperatorInversion,
    LinearOperatorLowerTriangular,
)
from .low_rank_update import LinearOperatorLowRankUpdate
from .matmul import matmul, matvec, tensordot
from .matrix_functions import cholesky_solve, expm, logdet, lstsq, matrix_rank, norm, normalize, pinv
from .orthogonal_operators import LinearOperatorHouseholder, LinearOperatorPermutation
from .solvers import det, inv, slogdet, solve, triangular_solve
from .spectral import eig, eigh_tridiagonal, eigvals, logm, sqrtm

__all__ = [
    "LinearOperator",
    "LinearOperatorAdjoint",
    "LinearOperatorBlockDiag",
    "LinearOperatorBlockLowerTriangular",
    "LinearOperatorCirculant",
    "LinearOperatorCirculant2D",
    "LinearOperatorCirculant3D",
    "LinearOperatorComposition",
    "LinearOperatorDiag",
    "LinearOperatorFullMatrix",
    "LinearOperatorHouseholder",
    "LinearOperatorIdentity",
    "LinearOperatorInversion",
    "LinearOperatorKronecker",
    "LinearOperatorLowRankUpdate",
    "LinearOperatorLowerTriangular",
    "LinearOperatorPermutation",
    "LinearOperatorScaledIdentity",
    "LinearOperatorToeplitz",
    "LinearOperatorTridiag",
    "LinearOperatorZeros",
    "adjoint",
    "band_part",
    "banded_triangular_solve",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eig",
    "eigh",
    "eigh_tridiagonal",
    "eigvals",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]


def __getattr__(name: str) -> object:
    if name == "experimental":  # loops are a layer above this one
        return import_module("opwright.tracing.linear_solvers")
    raise MissingNameError(__name__, name)

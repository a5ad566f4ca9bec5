"""Circulant matrices, which are products with a diagonal between two Fourier transforms, in one to three dimensions."""

from __future__ import annotations

from typing import Any, Unpack

from ...core import dtypes
from ...core.shapes import TensorShape
from .. import array, dispatch, math
from ..signal.fourier import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from ..tensor import Tensor
from .einsum import matrix_transpose
from .linear_operator import LinearOperator, adjoint_if
from .operator_hints import Hints

__all__ = ["LinearOperatorCirculant", "LinearOperatorCirculant2D", "LinearOperatorCirculant3D"]
TRANSFORMS = {1: (fft, ifft), 2: (fft2d, ifft2d), 3: (fft3d, ifft3d)}


class LinearOperatorCirculant(LinearOperator):
    """The circulant matrix whose eigenvalues are a spectrum [..., n]: products are circular convolutions.

    input_output_dtype: of operands and results; float32 drops the imaginary parts, which are 0 if the spectrum is that
    of a real kernel.
    """

    implied = Hints(is_square=True)
    block_depth = 1
    """Number of dimensions of the spectrum."""

    def __init__(
        self, spectrum: Any, input_output_dtype: Any = dtypes.complex64, *hints: Any, **named: Unpack[Hints]
    ) -> None:
        self._spectrum = dispatch.to_tensor(spectrum)
        if (self._spectrum.shape.rank or self.block_depth) < self.block_depth:
            raise ValueError(f"{type(self).__name__}: the spectrum has at least {self.block_depth} dimensions")
        if not self._spectrum.dtype.is_complex:
            self.implied = {**self.implied, "is_self_adjoint": True}
        super().__init__(input_output_dtype, *hints, **named)

    @property
    def spectrum(self) -> Tensor:
        """Return the spectrum."""
        return self._spectrum

    @property
    def block_shape(self) -> TensorShape:
        """Return the shape of the spectrum without the batch."""
        return self._spectrum.shape[-self.block_depth :]

    def _shape(self) -> TensorShape:
        size = self.block_shape.num_elements()
        return self._spectrum.shape[: -self.block_depth].concatenate([size, size])

    def _complex(self, x: Any) -> Any:
        double = dtypes.float64 in (self._spectrum.dtype.real_dtype, self.dtype.real_dtype)
        return array.cast(x, dtypes.complex128 if double else dtypes.complex64)

    def _filtered(self, x: Any, spectrum: Any) -> Tensor:
        """Return the product of an operand [..., n, k] with the operator of that spectrum."""
        forward, back = TRANSFORMS[self.block_depth]
        rows = matrix_transpose(x)
        lead = array.shape(rows)[:-1]
        blocks = array.reshape(self._complex(rows), array.concat([lead, self._block_tensor()], 0))
        spectrum = array.expand_dims(self._complex(spectrum), -self.block_depth - 1)
        product = back(forward(blocks) * spectrum)
        shape = array.concat([array.shape(product)[: -self.block_depth], array.shape(rows)[-1:]], 0)
        return array.cast(matrix_transpose(array.reshape(product, shape)), self.dtype)

    def _block_tensor(self) -> Tensor:
        return array.shape(self._spectrum)[-self.block_depth :]

    def _to_dense(self) -> Any:
        return self._filtered(array.eye(self.domain_dimension_tensor(), dtype=self.dtype), self._spectrum)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        spectrum = math.conj(self._spectrum) if adjoint else self._spectrum
        return self._filtered(adjoint_if(x, adjoint_arg), spectrum)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        spectrum = math.conj(self._spectrum) if adjoint else self._spectrum
        return self._filtered(adjoint_if(rhs, adjoint_arg), 1.0 / self._complex(spectrum))

    @property
    def _axes(self) -> list[int]:
        return list(range(-self.block_depth, 0))

    def _determinant(self) -> Any:
        return array.cast(math.reduce_prod(self._spectrum, self._axes), self.dtype)

    def _log_abs_determinant(self) -> Any:
        return array.cast(math.reduce_sum(math.log(math.abs(self._spectrum)), self._axes), self.dtype)

    def _trace(self) -> Any:
        return array.cast(math.reduce_sum(self._spectrum, self._axes), self.dtype)

    def _diag_part(self) -> Any:
        mean: Any = array.cast(math.reduce_mean(self._complex(self._spectrum), self._axes), self.dtype)
        return mean[..., None] * array.ones([self.domain_dimension_tensor()], self.dtype)

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """Return the eigenvalues: the spectrum."""
        shape = array.concat([array.shape(self._spectrum)[: -self.block_depth], [-1]], 0)
        return array.reshape(self._spectrum, shape)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """Return the kernel whose circular convolution `matmul` is: the inverse transform of the spectrum."""
        return array.cast(TRANSFORMS[self.block_depth][1](self._complex(self._spectrum)), self.dtype)


class LinearOperatorCirculant2D(LinearOperatorCirculant):
    """The block circulant matrix of a spectrum [..., n0, n1], of circular convolutions of images."""

    block_depth = 2


class LinearOperatorCirculant3D(LinearOperatorCirculant):
    """The nested block circulant matrix of a spectrum [..., n0, n1, n2], of circular convolutions of volumes."""

    block_depth = 3

"""Roots and logarithms of matrices.

Lives here: MatrixSquareRoot, MatrixLogarithm.  Not here: numerics (schur_arrays.py), the exponential (functions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import complexes
from .. import array, lod_rules
from ..definition import Input, Output, operator
from . import schur_arrays
from .matrices import adjoint
from .solving import SOLVABLE, matrix_shape


def _each(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """`function` of every matrix."""
    found = np.empty_like(x)
    for place in np.ndindex(x.shape[:-2]):
        found[place] = function(x[place])
    return found


def _gradient(op: Any, x: Any, doutput: Any) -> Any:
    """Of a function f of matrices: f of [[A, E], [0, A]] has its derivative in direction E above its diagonal."""
    a = adjoint(x)
    top, bottom = array.concat([a, doutput], -1), array.concat([array.zeros_like(a), a], -1)
    both = op.operator(array.concat([top, bottom], -2))
    n = array.shape_op(a)[-1]
    return both[..., :n, n:]


@operator
class MatrixSquareRoot:
    """Principal square root of square matrices: that whose eigenvalues have no negative real part.

    .. math:: output \\cdot output = input

    input: [..., n, n]. All of a matrix is NaN where it has no such root; a real one has none if an eigenvalue is
    negative.
    """

    input = Input(SOLVABLE)
    output = Output(like="input")
    lod = lod_rules.batched("input", 2)

    def infer(op) -> Any:
        return op.input.spec.with_shape(matrix_shape(op.input))

    def compute(op, input) -> Any:
        return _each(schur_arrays.square_root, input)

    def gradient(op, doutput) -> Any:
        return _gradient(op, op.input, doutput)


sqrtm = MatrixSquareRoot.as_function("sqrtm")


@operator
class MatrixLogarithm:
    """Principal logarithm of complex square matrices: that whose eigenvalues have imaginary parts in (-pi, pi].

    .. math:: e^{output} = input

    input: [..., n, n]. All of a matrix is NaN where an eigenvalue is 0.
    """

    input = Input(complexes)
    output = Output(like="input")
    lod = lod_rules.batched("input", 2)

    def infer(op) -> Any:
        return op.input.spec.with_shape(matrix_shape(op.input))

    def compute(op, input) -> Any:
        return _each(schur_arrays.logarithm, input)

    def gradient(op, doutput) -> Any:
        return _gradient(op, op.input, doutput)


logm = MatrixLogarithm.as_function("logm")

"""`ow.linalg.experimental`: systems of linear equations solved by iteration.

Lives here: `conjugate_gradient`.  Not here: direct solutions (ops/linalg/solvers.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.lazy_imports import MissingNameError
from ..ops import array, linalg, math
from .control.loops import while_loop

__all__ = ["conjugate_gradient"]


class CGState(NamedTuple):
    """The state of the iteration: its number, solution, residual, direction, and product of the last two."""

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


def conjugate_gradient(
    operator: Any,
    rhs: Any,
    preconditioner: Any = None,
    x: Any = None,
    tol: float = 1e-5,
    max_iter: int = 20,
    name: str | None = None,
) -> CGState:
    """Solve A x = rhs by conjugate gradients.

    operator: a LinearOperator, self-adjoint and positive definite. rhs: [..., n]. preconditioner: one that approximates
    the inverse of A. x: where to begin, by default 0. tol: the residual's norm over its first one at which it ends
    raises ValueError for operators that are not known to be self-adjoint and positive definite

    >>> hints = {"is_self_adjoint": True, "is_positive_definite": True}
    >>> A = ow.linalg.LinearOperatorFullMatrix([[4.0, 1.0], [1.0, 3.0]], **hints)
    >>> ow.linalg.experimental.conjugate_gradient(A, [1.0, 2.0]).x.numpy().round(4)
    array([0.0909, 0.6364], dtype=float32)
    """
    for each in (operator, preconditioner):
        if each is not None and not (each.is_self_adjoint and each.is_positive_definite):
            what = "operator" if each is operator else "preconditioner"
            raise ValueError(f"conjugate_gradient: expected a self-adjoint, positive definite {what}, as its hints say")
    rhs = array.cast(rhs, operator.dtype)
    start = array.zeros_like(rhs) if x is None else array.cast(x, operator.dtype)
    residual = rhs if x is None else rhs - operator.matvec(start)

    def direction(r: Any) -> Any:
        return r if preconditioner is None else preconditioner.matvec(r)

    def dot(a: Any, b: Any) -> Any:
        return math.reduce_sum(math.conj(a) * b, -1)

    limit = array.cast(tol, operator.dtype) * linalg.norm(residual, axis=-1)

    def goes_on(i: Any, x: Any, r: Any, p: Any, gamma: Any) -> Any:
        length, bound = (math.abs(value) for value in (linalg.norm(r, axis=-1), limit))
        return math.logical_and(i < max_iter, math.reduce_any(length > bound))

    def step(i: Any, x: Any, r: Any, p: Any, gamma: Any) -> Any:
        z = operator.matvec(p)
        alpha = array.expand_dims(math.divide_no_nan(gamma, dot(p, z)), -1)
        r = r - alpha * z
        q = direction(r)
        next_gamma = dot(r, q)
        beta = array.expand_dims(math.divide_no_nan(next_gamma, gamma), -1)
        return i + 1, x + alpha * p, r, q + beta * p, next_gamma

    first = direction(residual)
    return CGState(
        *while_loop(goes_on, step, (array.cast(0, "int32"), start, residual, first, dot(residual, first)), name=name)
    )


def __getattr__(name: str) -> object:
    raise MissingNameError(__name__, name)

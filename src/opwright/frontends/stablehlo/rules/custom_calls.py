"""Rules of custom calls and composites that JAX and other writers leave in a module.

Lives here: factorisations by LAPACK, of which JAX exports calls for processors; top_k; calls without a meaning here.
Not here: factorisations (jax/rules/linear_algebra.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ops import array, linalg, math
from ...importing import Rule, tensor_of
from ...jax.operands import cast, dims
from ..execution import RULES, ModuleContext, primitive

KINDS = "sdcz"
"""The letters of LAPACK for float32, float64, complex64, complex128."""


@RULES.rule("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "shape_assertion")
def identity(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the operands: these say where values are computed, or check sizes."""
    return list(inputs)[: context.outputs]


def _config(attributes: Any) -> dict[str, Any]:
    return dict(attributes.get("mhlo.backend_config") or attributes.get("backend_config") or {})


def _letter(attributes: Any, name: str) -> str:
    return chr(int(_config(attributes)[name]))


def _success(context: ModuleContext, place: int) -> Any:
    """Return the error codes of LAPACK, all zero."""
    shape = context.operation.results[place].type.shape
    return np.zeros(shape, np.int32)


def _lapack(name: str) -> Callable[[Rule], Rule]:
    return RULES.rule(*(f"lapack_{kind}{name}_ffi" for kind in KINDS))


def _of_self_adjoint(name: str) -> Callable[[Rule], Rule]:
    targets = [f"lapack_{k}sy{name}_ffi" for k in "sd"] + [f"lapack_{k}he{name}_ffi" for k in "cz"]
    return RULES.rule(*targets)


@_lapack("potrf")
def potrf(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return a Cholesky factor and the error codes."""
    x, lower = tensor_of(inputs[0]), _letter(attributes, "uplo") == "L"
    factor = linalg.cholesky(x if lower else linalg.adjoint(x))
    return [factor if lower else linalg.adjoint(factor), _success(context, 1)]


@_lapack("trsm")
def trsm(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the solution of a triangular system."""
    kind = _letter(attributes, "trans_x")
    return primitive(
        "triangular_solve",
        context,
        inputs[:2],
        left_side=_letter(attributes, "side") == "L",
        lower=_letter(attributes, "uplo") == "L",
        unit_diagonal=_letter(attributes, "diag") == "U",
        transpose_a=kind != "N",
        conjugate_a=kind == "C",
    )


@_lapack("getrf")
def getrf(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return packed factors of LU, the exchanges of rows from 1, the error codes."""
    factors, exchanges, _ = primitive("lu", context, inputs)
    one = tensor_of(np.asarray(1, np.int32))
    return [factors, math.add(cast(tensor_of(exchanges), np.int32), one), _success(context, 2)]


@_lapack("geqrf")
def geqrf(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return packed reflectors of QR and their factors."""
    return primitive("geqrf", context, inputs)


@RULES.rule(*(f"lapack_{kind}{name}_ffi" for kind, name in zip(KINDS, ("orgqr", "orgqr", "ungqr", "ungqr"))))
def orgqr(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the product of packed reflectors."""
    return primitive("householder_product", context, inputs)


@_of_self_adjoint("evd")
def syevd(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return eigenvectors, eigenvalues, the error codes."""
    vectors, values = primitive("eigh", context, inputs, lower=_letter(attributes, "uplo") == "L")
    return [vectors, values, _success(context, 2)]


@_lapack("gesdd")
def gesdd(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the operand, singular values, U, V^H, the error codes."""
    mode = _letter(attributes, "mode")
    x = tensor_of(inputs[0])
    if mode == "N":
        empty = [np.zeros(r.type.shape, r.type.dtype.as_numpy_dtype) for r in context.operation.results[2:4]]
        return [x, linalg.svd(x, compute_uv=False), *empty, _success(context, 4)]
    s, u, vh = primitive("svd", context, inputs, compute_uv=True, full_matrices=mode == "A")
    return [x, s, u, vh, _success(context, 4)]


@_lapack("geev")
def geev(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return eigenvalues (the parts of those of real matrices), left and right eigenvectors, the error codes."""
    if _letter(attributes, "compute_left") == "V":
        raise ValueError("left eigenvectors have no operator")
    results = context.operation.results
    left, empty = (np.zeros(r.type.shape, r.type.dtype.as_numpy_dtype) for r in results[-3:-1])
    right: Any = empty
    values: Any = None
    if _letter(attributes, "compute_right") == "V":
        values, right = linalg.eig(tensor_of(inputs[0]))
    else:
        values = linalg.eigvals(tensor_of(inputs[0]))
    parts = [math.real(values), math.imag(values)] if len(results) == 5 else [values]
    return [*parts, left, right, _success(context, len(results) - 1)]


@_lapack("gtsv")
def gtsv(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the operands, the solution of a tridiagonal system last before the error codes."""
    lower, main, upper, b = inputs
    short = dims(lower)[-1] < dims(main)[-1]  # without the unused element
    diagonals = [lower, main, upper]
    if short:
        diagonals = [_with_unused_element(lower, first=True), main, _with_unused_element(upper, first=False)]
    x = primitive("tridiagonal_solve", context, [*diagonals, b])
    return [lower, main, upper, x, _success(context, 4)]


def _with_unused_element(diagonal: Any, first: bool) -> Any:
    """Return a diagonal with LAPACK's unused element."""
    zero = array.zeros_like(tensor_of(diagonal)[..., :1])
    return array.concat([zero, tensor_of(diagonal)] if first else [tensor_of(diagonal), zero], -1)


# ---- top_k -----------------------------------------------------------------------------------------------------------


@RULES.rule("chlo.top_k", "mhlo.topk")
def top_k(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the k greatest elements of the last axis and their positions."""
    fields = {**attributes, **dict(attributes.get("mhlo.attributes") or {})}
    params = {"k": int(fields["k"]), "is_max_k": bool(fields.get("largest", True))}
    return primitive("top_k", context, inputs[:1], **params)


@RULES.rule("ApproxTopK", "PartialReduce")
def approximate_top_k(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the exact ones: the k greatest elements along an axis, or the least, by the called comparison."""
    config = _config(attributes)
    axis = int(config["reduction_dim"])
    comparison: Any = context.module.functions[attributes["called_computations"][0]].body.outputs[0].owner
    direction = comparison.attributes["comparison_direction"]
    params = {"k": int(config["top_k"]), "axis": axis, "is_max_k": direction in ("GT", "GE")}
    values, indices = primitive("top_k", context, inputs[:1], **params)
    return [values, cast(tensor_of(indices), context.operation.results[1].type.dtype)]

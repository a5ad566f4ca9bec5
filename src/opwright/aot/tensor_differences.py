"""The errors of one array with another one as the exact values.

Lives here: `TensorDifference`, `tensor_difference`, `Tolerance`. Not here: whose arrays they are (differences.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .model_runs import TensorFacts

RELATIVE = {2: 1e-2, 4: 1e-5, 8: 1e-9}
"""Tolerances relative to the largest element of a tensor, by the size of its floating-point elements."""


class Tolerance(NamedTuple):
    """An element agrees if |a - b| <= absolute + relative * |b|. None: of RELATIVE, times the largest |b|, for
    floating-point numbers; 0 for integers of equal types, one step of quantization where types differ."""

    absolute: float | None = None
    relative: float | None = None


class TensorDifference(NamedTuple):
    """The errors of one tensor.

    name: in the first model; node, operator: what computes it, of the first subgraph; largest: of |a - b|; relative: of
    |a - b| / |b| where b is not zero; mean: of |a - b|; differing: how many of `elements` differ at all; at: the index
    of the largest error; agrees: within the tolerance; unit: "elements" of integers of equal types, or "real" numbers;
    remark: why nothing was compared
    """

    name: str
    node: int | None
    operator: str | None
    dtype: str
    shape: tuple[int, ...]
    largest: float
    relative: float
    mean: float
    differing: int
    elements: int
    at: tuple[int, ...] | None
    agrees: bool
    unit: str
    remark: str = ""


def tensor_difference(
    a: np.ndarray,
    of_a: TensorFacts,
    b: np.ndarray,
    of_b: TensorFacts,
    tolerance: Tolerance,
    producer: tuple[int | None, str | None] = (None, None),
) -> TensorDifference:
    """Return the errors of an array; `b` is taken as exact."""
    start = TensorDifference(
        of_a.name, *producer, a.dtype.name, a.shape, 0.0, 0.0, 0.0, 0, a.size, None, True, "elements"
    )
    if a.shape != b.shape:
        return start._replace(agrees=False, largest=np.inf, remark=f"shapes {list(a.shape)} and {list(b.shape)}")
    if a.dtype.kind in "OSU" or b.dtype.kind in "OSU":
        equal = a == b
        differing = int(a.size - np.count_nonzero(equal))
        at = _index(np.argmin(equal), a.shape) if differing else None
        return start._replace(differing=differing, agrees=not differing, largest=np.inf if differing else 0.0, at=at)
    same = a.dtype == b.dtype and (of_a.scale, of_a.zero_point) == (of_b.scale, of_b.zero_point)
    if same and a.dtype.kind == "c":
        a, b = (x.view(x.real.dtype) for x in map(np.ascontiguousarray, (a, b)))
    is_integer = same and a.dtype.kind in "biu"
    x, y = (a, b) if same else (of_a.real(a), of_b.real(b))
    if is_integer and a.dtype.itemsize == 8:
        error = np.array(np.abs(a.astype(object) - b.astype(object)), np.float64)  # float64 does not hold int64
    else:
        x, y = x.astype(np.float64), y.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.array(np.abs(x - y))  # of scalars, too
        error[(x == y) | (np.isnan(x) & np.isnan(y))] = 0.0  # infinities agree with themselves
        error[np.isnan(error)] = np.inf
    magnitude = np.abs(y.astype(np.float64))
    bound = _bound(magnitude, is_integer, same, a.dtype, max(of_a.scale, of_b.scale), tolerance)
    if not error.size:
        return start._replace(unit="elements" if is_integer else "real")
    largest = int(np.argmax(error))
    nonzero = magnitude > 0
    relative = float(np.max(error[nonzero] / magnitude[nonzero], initial=0.0)) if nonzero.any() else 0.0
    differing = int(np.count_nonzero(error))
    return start._replace(
        largest=float(error.reshape(-1)[largest]),
        relative=relative,
        mean=float(error.mean()),
        differing=differing,
        at=_index(largest, error.shape) if differing else None,
        agrees=bool((error <= bound).all()),
        unit="elements" if is_integer else "real",
    )


def _bound(
    magnitude: np.ndarray, is_integer: bool, same: bool, dtype: np.dtype[Any], step: float, tolerance: Tolerance
) -> np.ndarray | float:
    """Return the largest error at which elements agree."""
    if tolerance.absolute is not None or tolerance.relative is not None:
        finite = np.where(np.isfinite(magnitude), magnitude, 0.0)
        return (tolerance.absolute or 0.0) + (tolerance.relative or 0.0) * finite
    if is_integer:
        return 0.0
    if not same and step:
        return step * (1 + 1e-6)  # of products with the scale in float64
    finite = magnitude[np.isfinite(magnitude)]
    return RELATIVE.get(dtype.itemsize, RELATIVE[4]) * float(finite.max(initial=0.0))


def _index(flat: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(flat), shape))

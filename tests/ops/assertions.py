"""Comparing results with what they should be.

Lives here: `assert_close`, and the views of results and inputs that checks compare.
Not here: the checks (checks.py), exact comparisons of graphs (`opwright.graph.same`).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from opwright.testing.operator_call import TOLERANCE

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def is_floating(x: Any) -> bool:
    """Whether x is an array of real floating numbers, bfloat16 among them."""
    return isinstance(x, (np.ndarray, np.generic)) and (x.dtype.kind == "f" or x.dtype == HALVES["bfloat16"])


def is_differentiable(x: Any) -> bool:
    """Whether x is an array of floating or complex numbers."""
    return is_floating(x) or (isinstance(x, np.ndarray) and x.dtype.kind == "c")


def flat_arrays(result: Any) -> list[np.ndarray]:
    """A result's tensors as arrays, in order."""
    from opwright.core import nest
    from opwright.ops.indexed_slices import IndexedSlices

    flat = [x.to_dense() if isinstance(x, IndexedSlices) else x for x in nest.flatten(result) if x is not None]
    return [np.asarray(x.read_array() if hasattr(x, "read_array") else x) for x in flat]


def wide(x: Any) -> Any:
    """Floating numbers as float64, complex ones as complex128, inside lists too."""
    if is_floating(x):
        return x.astype(np.float64)
    if isinstance(x, np.ndarray) and x.dtype.kind == "c":
        return x.astype(np.complex128)
    return type(x)(map(wide, x)) if isinstance(x, (list, tuple)) else x


def assert_close(actual: np.ndarray, expected: Any, rtol: float | None, atol: float | None, what: str) -> None:
    """Same shape, same kind, numbers within tolerance, NaN and infinities in the same places."""
    if actual.dtype == object:
        expected = np.asarray(expected, object) if not isinstance(expected, bytes) else expected
        encoded = [w.encode() if isinstance(w, str) else w for w in np.ravel(np.asarray(expected, object)).tolist()]
        assert actual.shape == np.shape(expected), f"{what}: shape {actual.shape}, wanted {np.shape(expected)}"
        assert actual.ravel().tolist() == encoded, f"{what}: {actual.ravel().tolist()[:9]}, wanted {encoded[:9]}"
        return
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, wanted {expected.shape}"
    assert (actual.dtype.kind == "b") == (expected.dtype.kind == "b"), (
        f"{what}: {actual.dtype}, wanted {expected.dtype}"
    )
    assert actual.dtype.kind == "c" or expected.dtype.kind != "c", f"{what}: {actual.dtype}, wanted {expected.dtype}"
    name = actual.dtype.name
    if name in TOLERANCE:
        rel, near = TOLERANCE[name]
        with np.errstate(all="ignore"):
            target = expected.astype(actual.dtype)  # what overflows there is infinite there
        kind = np.complex128 if actual.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            actual.astype(kind),
            target.astype(kind),
            rel if rtol is None else rtol,
            near if atol is None else atol,
            err_msg=what,
        )
    elif rtol or atol:
        integers = actual.astype(np.float64)
        np.testing.assert_allclose(integers, expected.astype(np.float64), rtol or 0.0, atol or 0.0, err_msg=what)
    elif expected.dtype.kind == "f":
        np.testing.assert_array_equal(actual.astype(np.float64), expected, err_msg=what)
    else:
        np.testing.assert_array_equal(actual.astype(object), expected.astype(object), err_msg=what)

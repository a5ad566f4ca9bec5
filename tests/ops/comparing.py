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


def assert_close(found: np.ndarray, wanted: Any, rtol: float | None, atol: float | None, what: str) -> None:
    """Same shape, same kind, numbers within tolerance, NaN and infinities in the same places."""
    if found.dtype == object:
        wanted = np.asarray(wanted, object) if not isinstance(wanted, bytes) else wanted
        encoded = [w.encode() if isinstance(w, str) else w for w in np.ravel(np.asarray(wanted, object)).tolist()]
        assert found.shape == np.shape(wanted), f"{what}: shape {found.shape}, wanted {np.shape(wanted)}"
        assert found.ravel().tolist() == encoded, f"{what}: {found.ravel().tolist()[:9]}, wanted {encoded[:9]}"
        return
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape, f"{what}: shape {found.shape}, wanted {wanted.shape}"
    assert (found.dtype.kind == "b") == (wanted.dtype.kind == "b"), f"{what}: {found.dtype}, wanted {wanted.dtype}"
    assert found.dtype.kind == "c" or wanted.dtype.kind != "c", f"{what}: {found.dtype}, wanted {wanted.dtype}"
    name = found.dtype.name
    if name in TOLERANCE:
        rel, near = TOLERANCE[name]
        with np.errstate(all="ignore"):
            target = wanted.astype(found.dtype)  # what overflows there is infinite there
        kind = np.complex128 if found.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            found.astype(kind),
            target.astype(kind),
            rel if rtol is None else rtol,
            near if atol is None else atol,
            err_msg=what,
        )
    elif rtol or atol:
        integers = found.astype(np.float64)
        np.testing.assert_allclose(integers, wanted.astype(np.float64), rtol or 0.0, atol or 0.0, err_msg=what)
    elif wanted.dtype.kind == "f":
        np.testing.assert_array_equal(found.astype(np.float64), wanted, err_msg=what)
    else:
        np.testing.assert_array_equal(found.astype(object), wanted.astype(object), err_msg=what)

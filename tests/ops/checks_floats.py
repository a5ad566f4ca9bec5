"""The check that every row with floating inputs gets in the size that it was not written in.

Lives here: float32 for rows of float64, and the other way round, run and compared: registered is not enough.
Not here: half precision (checks.py).
"""

from __future__ import annotations

import checks
import numpy as np
from assertions import flat_arrays, is_floating
from checks import _as, _members, _takes, is_random, works
from harness import Case

from opwright.core.errors import InvalidArgumentError

OTHER = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.float64): np.dtype(np.float32)}
# What the other size legitimately changes.
OTHERWISE = {
    "Bitcast": "bits are read as another dtype",
    "UnsortedSegmentMax": "an empty segment has the lowest number of the dtype",
    "UnsortedSegmentMin": "an empty segment has the highest number of the dtype",
    "FakeQuantWithMinMaxArgs": "the zero point of -1..1 is a half, which each size rounds its way",
    "FakeQuantWithMinMaxVars": "the zero point of -1..1 is a half, which each size rounds its way",
    "nn.stateless_dropout": "each dtype has its own random numbers",
}
# These give float32 whatever they are given, as TensorFlow has them.
FLOAT32 = ("image.", "Resize", "math.zero_fraction")


def _size(row: Case) -> np.dtype | None:
    """float32 or float64, where all floating inputs of the row are of one of them."""
    result = {y.dtype for x in row.inputs for _, y in _members(x) if is_floating(y)}
    return result.pop() if len(result) == 1 and result <= OTHER.keys() else None


@checks.check(lambda row: works(row) and _size(row) is not None and not is_random(row))
def runs_in_both_sizes(row: Case) -> None:
    """In the other size of float the result is the same, rounded; no result comes in the size it had."""
    if row.key in OTHERWISE:
        return
    own = _size(row)
    assert own is not None
    other = OTHER[own]
    assert _takes(row, other.name), f"{row.key} does not take {other.name}"
    rounded = [_as(x, np.dtype(np.float32)) for x in row.inputs]  # numbers that both sizes have
    narrow = flat_arrays(_run(row, rounded, np.dtype(np.float32)))
    wide = flat_arrays(_run(row, rounded, np.dtype(np.float64)))
    assert len(narrow) == len(wide)
    for i, (a, b) in enumerate(zip(narrow, wide)):
        assert a.shape == b.shape, f"output {i}"
        if a.dtype.kind in "fc" and a.dtype == b.dtype:
            asked = row.attrs or row.call  # an attribute may ask for a dtype
            assert asked or row.key.startswith(FLOAT32), f"output {i} is {a.dtype} for both"
        if a.dtype.kind not in "fc":
            continue  # integers may round apart: rows compare them with their oracle
        rtol, atol = max(row.rtol or 0.0, 2e-4), max(row.atol or 0.0, 2e-5)
        with np.errstate(all="ignore"):
            target = b.astype(a.dtype)
            if np.isfinite(b).all() and not np.isfinite(target).all():
                continue  # a row about the end of float64's range
            scale = np.abs(target[np.isfinite(target)]).max(initial=0.0)
        np.testing.assert_allclose(a, target, rtol, atol + 1e-5 * float(scale), err_msg=f"output {i}")


def _run(row: Case, inputs: list[object], dtype: np.dtype) -> object:
    try:
        return row.run([_as(x, dtype) for x in inputs])
    except InvalidArgumentError as error:
        raise AssertionError(f"in {dtype.name}: {error}") from error

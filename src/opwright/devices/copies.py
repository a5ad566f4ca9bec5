"""Copies between host and device memory: which of them wait.

Lives here: the table of waits, the size below which host memory is staged; the place of an array. Not here: a device's
copies (cuda.py, simulated.py), copies between places (transfer.py).

The rules are CUDA's. "Async" is the caller's request (cudaMemcpyAsync); whether a call returns before the copy is done
depends on the kinds of memory:

    from       to         plain call      Async call
    device     device     returns         returns
    pinned     device     waits *         returns, and the copy reads the source when it runs
    pageable   device     waits *         waits *
    device     pinned     waits           returns, and the target has its values after a wait
    device     pageable   waits           waits
    host       host       waits           waits

    * up to 64 KB the call stages the bytes and returns at once; the source may then be overwritten

Setting memory and launching a kernel never wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from .pinned import is_pinned

STAGED_BYTES = 64 * 1024
"""The largest copy from the host, in bytes, that the call stages."""

_WAITS = {  # (from, to): (a plain call waits, an Async call waits)
    ("device", "device"): (False, False),
    ("pinned", "device"): (True, False),
    ("pageable", "device"): (True, True),
    ("device", "pinned"): (True, False),
    ("device", "pageable"): (True, True),
    ("pinned", "pinned"): (True, True),
    ("pinned", "pageable"): (True, True),
    ("pageable", "pinned"): (True, True),
    ("pageable", "pageable"): (True, True),
}


def is_staged(source: str, target: str, nbytes: int, asynchronous: bool) -> bool:
    """Return whether the call copies the bytes to a staging buffer, so that neither side waits."""
    return target == "device" and source != "device" and nbytes <= STAGED_BYTES and _WAITS[source, target][asynchronous]


def waits(source: str, target: str, nbytes: int, asynchronous: bool = False) -> bool:
    """Return whether a copy is done when the call returns. source, target: "device", "pinned" or "pageable".

    >>> waits("device", "pageable", 4, asynchronous=True)
    True
    """
    return _WAITS[source, target][asynchronous] and not is_staged(source, target, nbytes, asynchronous)


def memory_kind(array: Any) -> str:
    """Return the kind of an array's memory: "pageable", "pinned" or "device"."""
    if isinstance(array, np.ndarray | np.generic):
        return "pinned" if is_pinned(array) else "pageable"
    return "device"


def check_same(target: Any, source: Any, op: str) -> None:
    """Raise InvalidArgumentError unless both arrays have the same shape and dtype: a copy changes neither."""
    if target.shape != source.shape or target.dtype != source.dtype:
        raise InvalidArgumentError(
            op=op,
            what="a copy is between arrays of one shape and dtype",
            found={"source": f"{source.dtype}{list(source.shape)}", "target": f"{target.dtype}{list(target.shape)}"},
        )


def place_of_array(array: Any) -> Place:
    """Return the place of an array: CPUPlace for NumPy's, CUDAPinnedPlace for page-locked ones, else the array's own.

    raises InvalidArgumentError for an object that is no array of a known device
    """
    if isinstance(array, np.ndarray | np.generic):
        return CUDAPinnedPlace() if is_pinned(array) else CPUPlace()
    place = getattr(array, "place", None)
    if isinstance(place, Place):
        return place
    if hasattr(array, "__cuda_array_interface__"):
        return CUDAPlace(int(getattr(getattr(array, "device", 0), "id", 0)))
    raise InvalidArgumentError(
        op="place_of_array", what="this is no array of a known device", found=f"a {type(array).__name__}"
    )

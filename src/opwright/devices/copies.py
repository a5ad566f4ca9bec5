"""Copies between host and device memory: which of them wait.

Lives here: the table of what waits, the size below which the host need not; where an array is.
Not here: how a device copies (cuda.py, simulated.py), copies between places (transfer.py).

The rules are CUDA's. "Async" is the caller's wish (cudaMemcpyAsync); whether a call returns before the copy is done
follows from where the memory is:

    from       to         plain call      Async call
    device     device     returns         returns
    pinned     device     waits *         returns, and the copy reads the source when it runs
    pageable   device     waits *         waits *
    device     pinned     waits           returns, and the target has its values after a wait
    device     pageable   waits           waits
    host       host       waits           waits

    * up to 64 KB the bytes are taken along by the call, which returns at once; the source may then be written again

Setting memory, and launching a kernel, never wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError
from ..core.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from .pinned import is_pinned

STAGED_BYTES = 64 * 1024
"""A copy from the host of so many bytes or fewer is taken along by the call."""

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


def staged(source: str, target: str, nbytes: int, asynchronous: bool) -> bool:
    """Whether the call takes the bytes along, so that neither waits for the other."""
    return target == "device" and source != "device" and nbytes <= STAGED_BYTES and _WAITS[source, target][asynchronous]


def waits(source: str, target: str, nbytes: int, asynchronous: bool = False) -> bool:
    """Whether a copy has been made when the call returns. source, target: "device", "pinned" or "pageable".

    >>> waits("device", "pageable", 4, asynchronous=True)
    True
    """
    return _WAITS[source, target][asynchronous] and not staged(source, target, nbytes, asynchronous)


def memory_kind(array: Any) -> str:
    """Where an array's memory is: "pageable", "pinned" or "device"."""
    if isinstance(array, np.ndarray | np.generic):
        return "pinned" if is_pinned(array) else "pageable"
    return "device"


def check_same(target: Any, source: Any, op: str) -> None:
    """Raises InvalidArgumentError unless both arrays have one shape and dtype: a copy changes neither."""
    if target.shape != source.shape or target.dtype != source.dtype:
        raise InvalidArgumentError(
            op=op,
            what="a copy is between arrays of one shape and dtype",
            found={"source": f"{source.dtype}{list(source.shape)}", "target": f"{target.dtype}{list(target.shape)}"},
        )


def place_of_array(array: Any) -> Place:
    """Where an array is: CPUPlace for NumPy's, CUDAPinnedPlace for page-locked ones, else what the array says.

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

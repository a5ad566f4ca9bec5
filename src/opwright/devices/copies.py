"""Copies between host and device memory: which of them wait.

Lives here: the table of what waits, the size below which the host need not; copies between places.
Not here: how a device copies (cuda.py, simulated.py).

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
from ..core.places import CPUPlace, CUDAPinnedPlace, Place, place_of
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
        from ..core.places import CUDAPlace

        return CUDAPlace(int(getattr(getattr(array, "device", 0), "id", 0)))
    raise InvalidArgumentError(
        op="place_of_array", what="this is no array of a known device", found=f"a {type(array).__name__}"
    )


def transfer(array: Any, place: Place | str) -> Any:
    """The array on another place, a copy unless it is there already.

    Both devices are waited for, and the copy is done when this returns; between two devices it goes by the host.
    raises as `DeviceContextPool.get` where a device is missing
    """
    from .pool import DeviceContextPool

    target = place_of(place)
    source = place_of_array(array)
    if source == target or ({source, target} == {CPUPlace(), CUDAPinnedPlace()} and target == CPUPlace()):
        return array  # page-locked memory is the host's: the processor reads it as it is
    pool = DeviceContextPool.instance()
    to = pool.get(target)
    if isinstance(array, np.ndarray | np.generic):
        result = to.to_device(np.asarray(array))
    else:
        of = pool.get(source)
        of.wait()
        host = of.to_host(array)
        result = host if target == CPUPlace() else to.to_device(host)
    to.wait()
    return result

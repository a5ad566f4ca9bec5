"""Copies of arrays between places.

Lives here: `transfer`.  Not here: which copies wait, where an array is (copies.py), the devices' contexts (pool.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.places import CPUPlace, CUDAPinnedPlace, Place, place_of
from .copies import place_of_array
from .pool import DeviceContextPool


def transfer(array: Any, place: Place | str) -> Any:
    """Return the array on another place, a copy unless it is there already.

    Waits for both devices; the copy is complete on return. Copies between two devices go through the host. raises as
    `DeviceContextPool.get` if a device is missing
    """
    target = place_of(place)
    source = place_of_array(array)
    if source == target or ({source, target} == {CPUPlace(), CUDAPinnedPlace()} and target == CPUPlace()):
        return array  # page-locked memory is host memory
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

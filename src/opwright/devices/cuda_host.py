"""Host side of CUDA: locating CuPy, and page-locked memory.

Lives here: `cupy_for`, `report`, `CuPyContext`, `CUDAPinnedDeviceContext`.  Not here: the GPU's context (cuda.py).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import FailedPreconditionError, UnavailableError
from ..core.places import CUDAPinnedPlace, CUDAPlace, Place
from .context import DeviceContext, numpy_dtype, sizes
from .copies import check_same
from .pinned import Lease, lease_of

_INSTALL = "install CuPy for this machine's CUDA (pip install cupy-cuda12x or cupy-cuda13x), or use CPUPlace()"


def cupy_for(place: Place) -> Any:
    """Return the module `cupy`, if it is installed and detects the device of this place.

    raises UnavailableError naming the place, the cause, and a remedy
    """
    try:
        cupy = importlib.import_module("cupy")
    except Exception as error:  # ImportError, or any error of a broken installation
        raise UnavailableError(
            op=repr(place),
            what="this place needs CuPy, which cannot be imported",
            found=_first_line(error),
            wanted="CuPy 13 or newer",
            do=_INSTALL,
        ) from error
    version = getattr(cupy, "__version__", "of unknown version")
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:  # CuPy's own class, unavailable without CuPy
        raise UnavailableError(
            op=repr(place),
            what="CuPy is here, but finds no CUDA device",
            found=f"CuPy {version}: {_first_line(error)}",
            wanted="a GPU with its driver",
            do="look at what nvidia-smi says, or use CPUPlace()",
        ) from error
    if count <= place.device_id:
        names = ", ".join(f"gpu:{i}" for i in range(count))
        raise UnavailableError(
            op=repr(place),
            what="there is no such device" if count else "CuPy is here, but finds no CUDA device",
            found=f"CuPy {version}: {count} devices{f', {names}' if names else ''}",
            wanted=f"at least {place.device_id + 1}",
            do=f"use one of {names}" if names else "look at CUDA_VISIBLE_DEVICES and nvidia-smi, or use CPUPlace()",
        )
    return cupy


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =\t")]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def report() -> str:
    """Return the GPUs in one line, or why there are none: for `opwright doctor`."""
    try:
        cupy = cupy_for(CUDAPlace(0))
    except UnavailableError as error:
        cause = next((line.strip() for line in error.message.splitlines() if line.startswith("  found")), "")
        return f"none: {cause.removeprefix('found').strip()}"
    runtime = cupy.cuda.runtime
    names = []
    for index in range(int(runtime.getDeviceCount())):
        properties = runtime.getDeviceProperties(index)
        name = properties["name"]
        gib = properties["totalGlobalMem"] / 2**30
        names.append(f"gpu:{index} {name.decode() if isinstance(name, bytes) else name}, {gib:.0f} GiB")
    return f"{'; '.join(names)}; CuPy {cupy.__version__}, CUDA {runtime.runtimeGetVersion()}"


class CuPyContext(DeviceContext):
    """Base of the two contexts: CuPy, and the process that created them."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.cupy = cupy_for(place)
        self._pid = os.getpid()

    def check_open(self) -> None:
        """Raise FailedPreconditionError if the context is closed or belongs to the parent of this forked process."""
        super().check_open()
        if os.getpid() != self._pid:
            raise FailedPreconditionError(
                op=repr(self.place),
                what="CUDA does not work in a forked process",
                found=f"created in process {self._pid}, used in {os.getpid()}",
                do='start processes with multiprocessing.get_context("spawn")',
            )

    def pinned_empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """Return a page-locked NumPy array from CuPy's pool, contents undefined, for asynchronous copies."""
        self.check_open()
        shape, dtype = sizes(shape), numpy_dtype(dtype)
        nbytes = max(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, 1)
        pointer = self.cupy.cuda.alloc_pinned_memory(nbytes)
        return Lease(np.frombuffer(pointer, np.uint8, nbytes), pointer).array(shape, dtype)


class CUDAPinnedDeviceContext(CuPyContext):
    """Page-locked host memory. Arrays are NumPy's; work on them runs on the processor, synchronously.

    raises UnavailableError if CuPy or a GPU is missing: CUDA locks the pages
    """

    def __init__(self, place: Place | None = None) -> None:
        super().__init__(place or CUDAPinnedPlace())

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        """Return a page-locked NumPy array, contents undefined."""
        return self.pinned_empty(shape, dtype)

    def owns(self, array: Any) -> bool:
        """Return whether this is a NumPy array of page-locked memory."""
        return lease_of(array) is not None

    def to_device(self, array: Any) -> np.ndarray:
        """Return the array in page-locked memory: itself if it is there."""
        host = np.asarray(array)
        if self.owns(host):
            return host
        result = self.empty(host.shape, host.dtype)
        np.copyto(result, host)
        return result

    def to_host(self, array: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return the array itself, or `out` with its values."""
        if out is None:
            return np.asarray(array)
        check_same(out, array, "copy")
        np.copyto(out, array)
        return out

    def launch(self, fn: Callable[..., Any], *args: Any, name: str | None = None) -> None:
        """Run `fn(*args)` immediately, on the processor."""
        self.check_open()
        fn(*args)

    def describe(self) -> str:
        """Return a short description."""
        return "page-locked memory of the host"

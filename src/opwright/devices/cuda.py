"""NVIDIA GPUs, through CuPy: the context of a device, and page-locked host memory.

Lives here: `cupy_for`, `report`, `CUDADeviceContext`, `CUDAPinnedDeviceContext`.  Not here: kernels. CuPy 13 or newer
is imported for the first context, never by `import opwright`.

Memory is CuPy's pool, which is stream-ordered: an array dropped while queued work uses it is reused at once, by work
queued later on the stream it was allocated on. Hence `record_use` for arrays used on another stream. Copies wait as in
memory.py; pageable memory is never read after the call returns, whatever the driver permits.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ..core import forks
from ..core.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from ..core.places import CUDAPinnedPlace, CUDAPlace, Place
from .context import DeviceContext, name_of, numpy_dtype, sizes
from .memory import STAGED_BYTES, Lease, check_same, lease_of

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


class CUDADeviceContext(CuPyContext):
    """One GPU: its stream, memory, and the handles of cuBLAS and cuDNN. Arrays are CuPy's.

    As a context manager it makes its device and stream CuPy's current ones on this thread; `launch` and `compute` do
    so. raises UnavailableError as `cupy_for`
    """

    asynchronous = True

    def __init__(self, place: Place | None = None) -> None:
        super().__init__(place or CUDAPlace(0))
        self._local = threading.local()
        self._in_use: deque[tuple[Any, tuple[Any, ...]]] = deque()
        self._in_use_lock = forks.lock()
        with self.cupy.cuda.Device(self.place.device_id):
            # Non-blocking: no synchronization with the default stream.
            self._stream = self.cupy.cuda.Stream(non_blocking=True)
        self.memory_pool = self.cupy.get_default_memory_pool()
        self.pinned_memory_pool = self.cupy.get_default_pinned_memory_pool()

    # --- streams ----------------------------------------------------------------------------------------------------

    @property
    def stream(self) -> Any:
        """The stream of this thread's work: the innermost `using`, else the context's own; a cupy.cuda.Stream."""
        stack = getattr(self._local, "stack", None)
        return stack[-1] if stack else self._stream

    def new_stream(self) -> Any:
        """Return a new stream of this device."""
        self.check_open()
        with self.cupy.cuda.Device(self.place.device_id):
            return self.cupy.cuda.Stream(non_blocking=True)

    @contextmanager
    def using(self, stream: Any = None) -> Iterator[CUDADeviceContext]:
        """Make this device and `stream` current, for CuPy and this context, within a `with` statement."""
        self.check_open()
        stream = stream or self.stream
        stack = getattr(self._local, "stack", None)
        if stack is None:
            stack = self._local.stack = []
        with self.cupy.cuda.Device(self.place.device_id), stream:
            stack.append(stream)
            try:
                yield self
            finally:
                stack.pop()

    def __enter__(self) -> CUDADeviceContext:
        entered = getattr(self._local, "entered", None)
        if entered is None:
            entered = self._local.entered = []
        exits = ExitStack()
        exits.enter_context(self.using())
        entered.append(exits)
        return self

    def __exit__(self, *exc: object) -> None:
        self._local.entered.pop().close()

    def _stream_key(self) -> object:
        return self.stream.ptr

    def record(self) -> Any:
        """Return an event after the work queued on this thread's stream; a cupy.cuda.Event."""
        with self.using():
            event = self.cupy.cuda.Event(disable_timing=True)
            event.record(self.stream)
        return event

    def wait(self) -> None:
        """Wait for all work of this device, on all streams. Raises CuPy's error if any failed."""
        self.check_open()
        self.cupy.cuda.Device(self.place.device_id).synchronize()
        self._release_finished()

    # --- memory -----------------------------------------------------------------------------------------------------

    def empty(self, shape: Any, dtype: Any) -> Any:
        """Return a new cupy.ndarray, contents undefined, allocated on this thread's stream.

        raises InvalidArgumentError for strings and handles, which devices do not support
        """
        shape, dtype = sizes(shape), numpy_dtype(dtype)
        self._check_dtype(dtype)
        self._release_finished()
        with self.using():
            return self.cupy.empty(shape, dtype)

    def _check_dtype(self, dtype: np.dtype) -> None:
        if dtype.hasobject:
            raise InvalidArgumentError(
                op=repr(self.place),
                what="a device holds numbers, no Python objects",
                found=f"dtype {dtype}",
                do="place strings and handles on CPUPlace()",
            )

    def owns(self, array: Any) -> bool:
        """Return whether this is a CuPy array on this device."""
        return isinstance(array, self.cupy.ndarray) and int(array.device.id) == self.place.device_id

    def to_device(self, array: Any) -> Any:
        """Return a copy on this device. Returns at once for a page-locked array, which must not change before a `wait`,
        and for 64 KB or fewer; waits for the copy of larger arrays.
        """
        if self.owns(array):
            return array
        host = np.asarray(array)
        self._check_dtype(host.dtype)
        if not host.flags.c_contiguous:  # CuPy would free its own copy during the transfer
            host = np.ascontiguousarray(host)
        lease = lease_of(host)
        result = self.empty(host.shape, host.dtype)
        if host.nbytes == 0:
            return result
        with self.using():
            if lease is None and host.nbytes <= STAGED_BYTES:
                source = self.pinned_empty(host.shape, host.dtype)
                np.copyto(source, host)
            else:
                source = host
            result.set(source, stream=self.stream)
            if lease is None and source is host:
                self.stream.synchronize()
            else:
                self.record_use(source)
        return result

    def to_host(self, array: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Return the values on the host, after all work queued before on this thread's stream.

        out: C-contiguous. A page-locked one has the values after the next `wait`; any other when this returns.
        """
        target = np.empty(array.shape, array.dtype) if out is None else out
        check_same(target, array, f"copy from {self.place}")
        if not target.flags.c_contiguous:
            raise InvalidArgumentError(op=f"copy from {self.place}", what="`out` is not in C order", do="copy it after")
        if target.nbytes == 0:
            return target
        with self.using():
            source = array if array.flags.c_contiguous else self.cupy.ascontiguousarray(array)
            source.get(stream=self.stream, out=target, blocking=False)
            if lease_of(target) is None:
                self.stream.synchronize()
            else:
                self.record_use(target, source)
        return target

    def record_use(self, *arrays: Any, stream: Any = None) -> None:
        """Keep these arrays, and page-locked host arrays, alive until the work queued on `stream` so far is done."""
        stream = stream or self.stream
        with self.using(stream):
            event = self.cupy.cuda.Event(disable_timing=True)
            event.record(stream)
        with self._in_use_lock:
            self._in_use.append((event, arrays))
        self._release_finished()

    def _release_finished(self) -> None:
        """Release the arrays whose work is done."""
        done: list[Any] = []
        with self._in_use_lock:
            for _ in range(len(self._in_use)):
                entry = self._in_use.popleft()
                (done if entry[0].done else self._in_use).append(entry)
        done.clear()  # outside the lock: finalizers may run arbitrary code

    # --- work -------------------------------------------------------------------------------------------------------

    def launch(self, fn: Callable[..., Any], *args: Any, name: str | None = None) -> None:
        """Call `fn(*args)` with this device and stream current, so that its CuPy work is queued there.

        fn: Python that launches kernels: CuPy's functions, cupy.RawKernel, a library with `cublas_handle`.
        """
        with self.using():
            try:
                fn(*args)
            except Exception as error:
                error.add_note(f"in {name or name_of(fn)}, launched on {self.place!r}")
                raise

    @property
    def cublas_handle(self) -> int:
        """CuPy's cuBLAS handle for this device and thread, set to this thread's stream."""
        with self.using():
            handle = self.cupy.cuda.get_cublas_handle()
            self.cupy.cuda.cublas.setStream(handle, self.stream.ptr)
            result: int = handle
            return result

    @property
    def cudnn_handle(self) -> int:
        """A cuDNN handle for this device, set to this thread's stream: CuPy 13's, else that of NVIDIA's `cudnn`
        package.

        raises UnavailableError if neither is available; CuPy 14 has no cuDNN
        """
        with self.using():
            try:
                cudnn = importlib.import_module("cupy.cudnn")
                handle = cudnn.get_handle()
                importlib.import_module("cupy_backends.cuda.libs.cudnn").setStream(handle, self.stream.ptr)
                result: int = handle
                return result
            except (ImportError, AttributeError):
                pass
            try:
                cudnn = importlib.import_module("cudnn")
            except ImportError as error:
                raise UnavailableError(
                    op=repr(self.place),
                    what="cuDNN is not available",
                    found=f"CuPy {self.cupy.__version__} without cupy.cudnn, and no package cudnn",
                    do="pip install nvidia-cudnn-frontend nvidia-cudnn-cu12",
                ) from error
            handle = getattr(self._local, "cudnn", None)
            if handle is None:
                handle = self._local.cudnn = cudnn.create_handle()
            cudnn.set_stream(handle=handle, stream=self.stream.ptr)
            created: int = handle
            return created

    def close(self) -> None:
        """Wait for all work, and return unused memory to the device."""
        if os.getpid() == self._pid and not self._closed:
            self.wait()
            self._scratch = threading.local()
            self.memory_pool.free_all_blocks()
        super().close()

    def describe(self) -> str:
        """Return the device's name and memory."""
        properties = self.cupy.cuda.runtime.getDeviceProperties(self.place.device_id)
        name = properties["name"]
        return f"{name.decode() if isinstance(name, bytes) else name}, {properties['totalGlobalMem'] / 2**30:.0f} GiB"

"""The context of CUDA against a stand-in for CuPy that records what it is asked: there need be no GPU for these.

The stand-in has the names of CuPy's documentation that the context uses, and no others, so that a name that does not
exist there fails here. What CuPy really does is test_cuda_real.py's part.
"""

import os
import sys
import threading
import types

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from opwright.devices import cuda
from opwright.devices.memory import is_pinned, place_of_array


class FakeArray:
    """A cupy.ndarray: NumPy's memory, with a device."""

    def __init__(self, cupy, host):
        self._cupy, self.host = cupy, host
        self.device = types.SimpleNamespace(id=cupy.current[-1])
        self.__cuda_array_interface__ = {}

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    nbytes = property(lambda self: self.host.nbytes)
    flags = property(lambda self: self.host.flags)

    def __getitem__(self, key):
        return FakeArray(self._cupy, self.host[key])

    def set(self, array, stream=None):
        assert isinstance(array, np.ndarray)
        assert array.flags.c_contiguous
        assert (array.shape, array.dtype) == (self.shape, self.dtype)
        self._cupy.log("set", array.nbytes, is_pinned(array), stream)
        self.host[...] = array

    def get(self, stream=None, order="C", out=None, blocking=True):
        assert out.flags.c_contiguous
        self._cupy.log("get", out.nbytes, is_pinned(out), blocking, stream)
        out[...] = self.host
        return out


class FakeStream:
    count = 0

    def __init__(self, cupy, non_blocking=False):
        FakeStream.count += 1
        self._cupy, self.ptr, self.device_id = cupy, FakeStream.count, cupy.current[-1]
        self.non_blocking = non_blocking

    def __enter__(self):
        if self.device_id != self._cupy.current[-1]:
            raise RuntimeError("The device that the stream is created on does not match with the current device")
        self._cupy.streams.append(self)
        return self

    def __exit__(self, *exc):
        assert self._cupy.streams.pop() is self

    def synchronize(self):
        self._cupy.log("stream.synchronize", self)


class FakeEvent:
    def __init__(self, cupy, disable_timing=False):
        assert disable_timing
        self._cupy, self.done = cupy, False

    def record(self, stream=None):
        self._cupy.log("event.record", stream)
        self._cupy.events.append(self)


class FakeDevice:
    def __init__(self, cupy, number):
        self._cupy, self.id = cupy, number

    def __enter__(self):
        self._cupy.current.append(self.id)

    def __exit__(self, *exc):
        assert self._cupy.current.pop() == self.id

    def synchronize(self):
        self._cupy.log("device.synchronize", self.id)
        for event in self._cupy.events:
            event.done = True


class FakeCuPy(types.ModuleType):
    __version__ = "13.9.fake"

    def __init__(self, devices=2, error=None):
        super().__init__("cupy")
        self.calls, self.events, self._local = [], [], threading.local()
        pool = types.SimpleNamespace(free_all_blocks=lambda: self.log("free_all_blocks"))
        self.get_default_memory_pool = lambda: pool
        self.get_default_pinned_memory_pool = lambda: types.SimpleNamespace()
        self.ndarray = FakeArray
        properties = {"name": b"Fake GPU", "totalGlobalMem": 8 * 2**30}

        def count():
            if error is not None:
                raise error
            return devices

        self.cuda = types.SimpleNamespace(
            Device=lambda number: FakeDevice(self, number),
            Stream=lambda non_blocking=False: FakeStream(self, non_blocking),
            Event=lambda disable_timing=False: FakeEvent(self, disable_timing),
            alloc_pinned_memory=lambda n: (self.log("alloc_pinned_memory", n), bytearray(n))[1],
            get_cublas_handle=lambda: 1000 + self.current[-1],
            cublas=types.SimpleNamespace(setStream=lambda handle, ptr: self.log("cublas.setStream", handle, ptr)),
            runtime=types.SimpleNamespace(
                getDeviceCount=count, getDeviceProperties=lambda i: properties, runtimeGetVersion=lambda: 12060
            ),
        )

    @property
    def current(self):
        return self._local.__dict__.setdefault("current", [0])

    @property
    def streams(self):
        return self._local.__dict__.setdefault("streams", [])

    def log(self, *call):
        self.calls.append(call)

    def names(self):
        return [call[0] for call in self.calls]

    def empty(self, shape, dtype):
        self.log("empty", shape, self.current[-1], self.streams[-1])
        return FakeArray(self, np.empty(shape, dtype))

    def ascontiguousarray(self, array):
        self.log("ascontiguousarray")
        return FakeArray(self, np.ascontiguousarray(array.host))


@pytest.fixture
def cupy(monkeypatch):
    fake = FakeCuPy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake


@pytest.fixture
def gpu(cupy):
    context = ow.DeviceContextPool._apart().get(ow.CUDAPlace(1))
    cupy.calls.clear()
    return context


# --- missing ----------------------------------------------------------------------------------------------------------


def test_no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    says = r"CUDAPlace\(0\): (.|\n)*CuPy, which cannot be imported(.|\n)*pip install"
    with pytest.raises(UnavailableError, match=says):
        ow.DeviceContextPool._apart().get(ow.CUDAPlace(0))
    assert cuda.report().startswith("none: ")


@pytest.mark.parametrize(
    ("fake", "says"),
    [
        (FakeCuPy(error=RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")), "cudaErrorNoDevice"),
        (FakeCuPy(devices=0), "0 devices"),
    ],
    ids=["runtime error", "none counted"],
)
def test_cupy_without_a_device(monkeypatch, fake, says):
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(UnavailableError) as caught:
        ow.DeviceContextPool._apart().get(ow.CUDAPlace(0))
    text = str(caught.value)
    for part in ("CUDAPlace(0)", "finds no CUDA device", "13.9.fake", says, "nvidia-smi"):
        assert part in text
    assert says in cuda.report()


def test_fewer_devices(cupy):
    with pytest.raises(UnavailableError) as caught:
        ow.DeviceContextPool._apart().get(ow.CUDAPlace(5))
    text = str(caught.value)
    for part in ("CUDAPlace(5)", "no such device", "2 devices, gpu:0, gpu:1", "at least 6"):
        assert part in text


def test_report(cupy):
    assert cuda.report() == "gpu:0 Fake GPU, 8 GiB; gpu:1 Fake GPU, 8 GiB; CuPy 13.9.fake, CUDA 12060"


# --- streams and memory -----------------------------------------------------------------------------------------------


def test_one_context_for_a_place(cupy):
    pool = ow.DeviceContextPool._apart()
    assert pool.get("gpu:1") is pool.get(ow.CUDAPlace(1)) is not pool.get("gpu:0")
    assert pool.get("gpu:1").describe() == "Fake GPU, 8 GiB"


def test_memory_comes_from_the_device_and_stream(gpu, cupy):
    x = gpu.empty((2, 3), ow.float32)
    assert cupy.calls == [("empty", (2, 3), 1, gpu.stream)]
    assert (x.shape, x.dtype, gpu.owns(x)) == ((2, 3), np.float32, True)
    assert not gpu.owns(np.zeros(1))
    assert gpu.stream.non_blocking
    assert gpu.stream.device_id == 1
    assert cupy.current == [0]
    assert gpu.allocate(10).nbytes == 10
    assert place_of_array(x) == ow.CUDAPlace(1)


def test_work_goes_to_the_device_and_stream(gpu, cupy):
    seen = []
    gpu.launch(lambda n: seen.append((n, cupy.current[-1], cupy.streams[-1])), 5)
    other = gpu.new_stream()
    with gpu.using(other):
        assert gpu.stream is other
        gpu.launch(lambda: seen.append(cupy.streams[-1]))
    assert seen == [(5, 1, gpu.stream), other]
    with gpu as entered:
        assert entered is gpu
        assert cupy.streams == [gpu.stream]
    assert (cupy.streams, cupy.current) == ([], [0])


def test_an_error_in_a_launch_names_it_and_leaves_the_device(gpu, cupy):
    with pytest.raises(ZeroDivisionError) as caught:
        gpu.launch(lambda: 1 // 0, name="my_kernel")
    assert caught.value.__notes__ == ["in my_kernel, launched on CUDAPlace(1)"]
    assert (cupy.streams, cupy.current) == ([], [0])


def test_compute_runs_under_the_stream(gpu, cupy):
    spec = ow.TensorSpec([2], ow.float32)
    (y,) = gpu.compute(lambda: cupy.empty((2,), np.float32), [spec])
    assert cupy.calls == [("empty", (2,), 1, gpu.stream)]
    assert y.shape == (2,)
    with pytest.raises(ow.errors.InvalidArgumentError):
        gpu.compute(lambda: cupy.empty((3,), np.float32), [spec])


def test_scratch_memory_is_of_the_stream(gpu, cupy):
    gpu.workspace(100)
    gpu.workspace(50)
    with gpu.using(gpu.new_stream()):
        gpu.workspace(100)
    assert [c[0] for c in cupy.calls] == ["empty", "empty"]
    assert cupy.calls[0][3] is not cupy.calls[1][3]


# --- copies -----------------------------------------------------------------------------------------------------------


def test_a_small_pageable_source_is_staged_and_not_waited_for(gpu, cupy):
    x = gpu.to_device(np.arange(4, dtype=np.float32))
    assert cupy.names() == ["empty", "alloc_pinned_memory", "set", "event.record"]
    assert cupy.calls[2] == ("set", 16, True, gpu.stream)
    assert x.host.tolist() == [0, 1, 2, 3]
    assert gpu.to_device(x) is x


def test_a_large_pageable_source_is_waited_for(gpu, cupy):
    gpu.to_device(np.zeros(64 * 1024 + 1, np.uint8))
    assert cupy.names() == ["empty", "set", "stream.synchronize"]
    assert cupy.calls[1] == ("set", 65537, False, gpu.stream)


def test_a_page_locked_source_is_kept_until_the_copy_is_made(gpu, cupy):
    source = gpu.pinned_empty((100_000,), np.uint8)
    source[...] = 1
    cupy.calls.clear()
    gpu.to_device(source)
    assert cupy.names() == ["empty", "set", "event.record"]
    assert [array is source for _, arrays in gpu._in_use for array in arrays] == [True]
    gpu.empty((1,), np.int8)
    assert len(gpu._in_use) == 1  # the event has not been reached
    cupy.events[-1].done = True
    gpu.empty((1,), np.int8)
    assert len(gpu._in_use) == 0


def test_what_is_not_contiguous_is_copied_before(gpu, cupy):
    source = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert gpu.to_device(source).host.tolist() == source.tolist()


def test_to_host(gpu, cupy):
    x = gpu.to_device(np.arange(4, dtype=np.float32))
    cupy.calls.clear()
    assert gpu.to_host(x).tolist() == [0, 1, 2, 3]
    assert cupy.calls == [("get", 16, False, False, gpu.stream), ("stream.synchronize", gpu.stream)]
    cupy.calls.clear()
    out = gpu.pinned_empty((4,), np.float32)
    assert gpu.to_host(x, out) is out
    assert cupy.names() == ["alloc_pinned_memory", "get", "event.record"]
    with pytest.raises(InvalidArgumentError, match="one shape and dtype"):
        gpu.to_host(x, np.zeros(3, np.float32))
    with pytest.raises(InvalidArgumentError, match="C order"):
        gpu.to_host(gpu.empty((2, 2), np.int8), np.zeros((2, 2), np.int8).T[::-1])


def test_to_host_of_what_is_not_contiguous(gpu, cupy):
    x = gpu.to_device(np.arange(6.0).reshape(2, 3))
    assert gpu.to_host(x[:, 1:]).tolist() == [[1, 2], [4, 5]]
    assert "ascontiguousarray" in cupy.names()


def test_empty_arrays_are_not_copied(gpu, cupy):
    x = gpu.to_device(np.zeros((0, 3)))
    assert gpu.to_host(x).shape == (0, 3)
    assert cupy.names() == ["empty"]


def test_objects_are_refused(gpu):
    with pytest.raises(InvalidArgumentError, match="no Python objects"):
        gpu.to_device(np.array([b"a"], object))


def test_record_use_and_wait(gpu, cupy):
    x, other = gpu.empty((1,), np.int8), gpu.new_stream()
    gpu.record_use(x, stream=other)
    assert cupy.calls[-1] == ("event.record", other)
    assert len(gpu._in_use) == 1
    gpu.wait()
    assert cupy.calls[-1] == ("device.synchronize", 1)
    assert len(gpu._in_use) == 0


def test_page_locked_memory(cupy):
    pinned = ow.DeviceContextPool._apart().get(ow.CUDAPinnedPlace())
    x = pinned.empty((2, 3), ow.float32)
    assert x.shape == (2, 3)
    assert is_pinned(x[1:])
    assert place_of_array(x) == ow.CUDAPinnedPlace()
    y = pinned.to_device(np.arange(3.0))
    assert pinned.to_device(y) is y
    assert pinned.owns(y)
    assert pinned.to_host(y) is y
    assert pinned.to_host(y, np.zeros(3)).tolist() == [0, 1, 2]
    pinned.launch(np.add, y, 1, y)
    assert y.tolist() == [1, 2, 3]
    assert pinned.describe()


# --- handles ----------------------------------------------------------------------------------------------------------


def test_cublas_handle_is_of_the_device_and_set_to_the_stream(gpu, cupy):
    assert gpu.cublas_handle == 1001
    assert cupy.calls == [("cublas.setStream", 1001, gpu.stream.ptr)]


def test_cudnn_of_cupy_13(gpu, cupy, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy.cudnn", types.SimpleNamespace(get_handle=lambda: 77))
    library = types.SimpleNamespace(setStream=lambda handle, ptr: cupy.log("cudnn.setStream", handle, ptr))
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs.cudnn", library)
    for name in ("cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.libs"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    assert gpu.cudnn_handle == 77
    assert cupy.calls == [("cudnn.setStream", 77, gpu.stream.ptr)]


def test_cudnn_of_its_own_package(gpu, cupy, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy.cudnn", None)
    created = []
    frontend = types.SimpleNamespace(
        create_handle=lambda: created.append(1) or 88,
        set_stream=lambda handle, stream: cupy.log("cudnn.set_stream", handle, stream),
    )
    monkeypatch.setitem(sys.modules, "cudnn", frontend)
    assert gpu.cudnn_handle == gpu.cudnn_handle == 88
    assert created == [1]
    assert cupy.calls[0] == ("cudnn.set_stream", 88, gpu.stream.ptr)


def test_no_cudnn(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy.cudnn", None)
    monkeypatch.setitem(sys.modules, "cudnn", None)
    with pytest.raises(UnavailableError, match=r"CUDAPlace\(1\): cuDNN is not available(.|\n)*pip install"):
        gpu.cudnn_handle  # noqa: B018


# --- life -------------------------------------------------------------------------------------------------------------


def test_use_in_a_forked_child_is_reported(gpu, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: gpu._pid + 1)
    for call in (gpu.wait, lambda: gpu.empty((1,), np.int8), lambda: gpu.launch(print), lambda: gpu.cublas_handle):
        with pytest.raises(FailedPreconditionError, match=r"CUDAPlace\(1\)(.|\n)*forked(.|\n)*spawn"):
            call()


def test_closing_waits_and_gives_memory_back(gpu, cupy):
    gpu.close()
    assert cupy.names() == ["device.synchronize", "free_all_blocks"]
    with pytest.raises(FailedPreconditionError, match="closed"):
        gpu.empty((1,), np.int8)

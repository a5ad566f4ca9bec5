"""CUDA through CuPy, where there is a GPU; skipped, with what was found, where there is none.

Run alone: python -m pytest tests/devices/test_cuda_real.py -p no:xdist -rs
"""

import threading

import numpy as np
import pytest

import opwright as ow
from opwright.devices.memory import is_pinned, place_of_array
from opwright.devices.pool import transfer

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def gpu():
    try:
        return ow.DeviceContextPool.instance().get(ow.CUDAPlace(0))
    except ow.errors.UnavailableError as error:
        pytest.skip("; ".join(line.strip() for line in str(error).splitlines()[:2]))


@pytest.fixture
def cupy(gpu):
    return gpu.cupy


def busy(gpu, cupy, seconds=0.2, stream=None):
    """Keep the stream at work for about so long: a spin on the device's clock, of 1 to 2 GHz."""
    spin = cupy.RawKernel(
        'extern "C" __global__ void spin(long long n) { long long t = clock64(); while (clock64() - t < n) {} }', "spin"
    )
    with gpu.using(stream):
        spin((1,), (1,), (np.int64(2e9 * seconds),))


# --- context ----------------------------------------------------------------------------------------------------------


def test_one_context(gpu):
    assert ow.DeviceContextPool.instance().get("gpu:0") is gpu
    assert gpu.describe()
    gpu.wait()


def test_a_number_too_high(gpu, cupy):
    count = cupy.cuda.runtime.getDeviceCount()
    with pytest.raises(ow.errors.UnavailableError, match=rf"CUDAPlace\({count}\)(.|\n)*no such device"):
        ow.DeviceContextPool.instance().get(ow.CUDAPlace(count))


def test_the_current_device_and_stream(gpu, cupy):
    before = cupy.cuda.get_current_stream()
    with gpu:
        assert cupy.cuda.get_current_stream() == gpu.stream
        assert cupy.cuda.runtime.getDevice() == 0
        with gpu.using(gpu.new_stream()) as same:
            assert cupy.cuda.get_current_stream() == same.stream
    assert cupy.cuda.get_current_stream() == before


def test_handles(gpu):
    assert gpu.cublas_handle
    try:
        assert gpu.cudnn_handle
    except ow.errors.UnavailableError as error:
        pytest.skip("; ".join(line.strip() for line in str(error).splitlines()[:2]))


def test_contexts_on_several_threads(gpu, cupy):
    results = {}

    def work(index):
        x = gpu.to_device(np.full(1000, index, np.float32))
        with gpu.using(gpu.new_stream() if index % 2 else None):
            gpu.wait()
            results[index] = gpu.to_host(x + 1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((results[i] == i + 1).all() for i in range(8))


# --- copies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 4), (300, 300)])
def test_there_and_back(gpu, dtype, shape):
    values = (rng.standard_normal(shape) * 50).astype(dtype)
    x = gpu.to_device(values)
    assert (x.shape, x.dtype) == (values.shape, values.dtype)
    assert place_of_array(x) == gpu.place
    np.testing.assert_array_equal(gpu.to_host(x), values)
    np.testing.assert_array_equal(transfer(x, "cpu"), values)


def test_what_is_not_contiguous(gpu):
    values = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(gpu.to_host(gpu.to_device(values.T[::2])), values.T[::2])
    np.testing.assert_array_equal(gpu.to_host(gpu.to_device(values).T), values.T)


def test_small_copies_do_not_wait_and_may_be_overwritten(gpu, cupy):
    source = np.arange(16384, dtype=np.float32)  # 64 KB
    busy(gpu, cupy)
    x = gpu.to_device(source)
    assert not gpu.stream.done
    source[...] = -1
    np.testing.assert_array_equal(gpu.to_host(x), np.arange(16384, dtype=np.float32))


def test_large_pageable_copies_wait(gpu, cupy):
    source = np.arange(1 << 20, dtype=np.float32)
    busy(gpu, cupy)
    x = gpu.to_device(source)
    assert gpu.stream.done
    source[...] = -1
    np.testing.assert_array_equal(gpu.to_host(x), np.arange(1 << 20, dtype=np.float32))


def test_page_locked_copies_do_not_wait(gpu, cupy):
    source, target = gpu.pinned_empty((1 << 20,), np.float32), gpu.pinned_empty((1 << 20,), np.float32)
    assert is_pinned(source[5:])
    source[...] = np.arange(1 << 20)
    busy(gpu, cupy)
    x = gpu.to_device(source)
    assert gpu.to_host(x, target) is target
    assert not gpu.stream.done
    gpu.wait()
    np.testing.assert_array_equal(target, source)


def test_page_locked_memory_is_kept_until_it_is_copied(gpu, cupy):
    """Dropped, asked for again and overwritten before the copy ran."""
    source = gpu.pinned_empty((1 << 18,), np.float32)
    source[...] = 3
    busy(gpu, cupy)
    x = gpu.to_device(source)
    del source
    for _ in range(4):
        gpu.pinned_empty((1 << 18,), np.float32)[...] = -1
    assert (gpu.to_host(x) == 3).all()


def test_the_pinned_place(gpu):
    pinned = ow.DeviceContextPool.instance().get(ow.CUDAPinnedPlace())
    x = transfer(np.arange(5.0), ow.CUDAPinnedPlace())
    assert place_of_array(x) == pinned.place
    np.testing.assert_array_equal(gpu.to_host(transfer(x, gpu.place)), np.arange(5.0))


def test_a_transfer_to_the_simulated_device_goes_by_the_host(gpu):
    x = transfer(gpu.to_device(np.arange(5.0)), "sim:0")
    np.testing.assert_array_equal(x.get(), np.arange(5.0))


# --- memory -----------------------------------------------------------------------------------------------------------


def test_memory_is_reused_in_stream_order(gpu, cupy):
    """A temporary dropped while its work is queued, its block overwritten by later work of the same stream."""
    x = gpu.to_device(np.arange(1 << 16, dtype=np.float32))
    gpu.wait()
    gpu.memory_pool.free_all_blocks()  # so that the temporary's is the only free block of its size
    busy(gpu, cupy)
    with gpu:
        temporary = x * 2
        y = temporary + 1
        where = temporary.data.ptr
        del temporary
        other = cupy.full(1 << 16, 99, np.float32)
        assert other.data.ptr == where  # the pool hands it out again at once
    np.testing.assert_array_equal(gpu.to_host(y), np.arange(1 << 16, dtype=np.float32) * 2 + 1)
    assert (gpu.to_host(other) == 99).all()


def test_record_use_keeps_a_temporary_of_another_stream(gpu, cupy):
    second = gpu.new_stream()
    temporary = gpu.to_device(np.arange(1 << 16, dtype=np.float32))
    gpu.wait()
    busy(gpu, cupy, stream=second)
    with gpu.using(second):
        y = temporary * 2
        gpu.record_use(temporary)
    del temporary
    with gpu:
        for _ in range(4):
            cupy.full(1 << 16, -1, np.float32)
    with gpu.using(second):
        np.testing.assert_array_equal(gpu.to_host(y), np.arange(1 << 16, dtype=np.float32) * 2)
    gpu.wait()
    assert len(gpu._in_use) == 0


def test_scratch_memory(gpu):
    a, b = gpu.workspace(1000), gpu.workspace(500)
    assert (a.nbytes, b.nbytes) == (1000, 500)
    assert a.data.ptr == b.data.ptr
    with gpu.using(gpu.new_stream()):
        assert gpu.workspace(500).data.ptr != a.data.ptr


# --- kernels ----------------------------------------------------------------------------------------------------------

KERNELS = {  # operator: shapes of its inputs, NumPy's formula in float64
    "Add": ([(64, 32), (32,)], lambda a, b: a + b),
    "MatMul": ([(64, 48), (48, 32)], lambda a, b: a @ b),
    "Exp": ([(100,)], np.exp),
    "Tanh": ([(100,)], np.tanh),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", KERNELS)
def test_reference_kernels_run_through_cupy(gpu, name, dtype):
    shapes, formula = KERNELS[name]
    inputs = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    expected = formula(*(x.astype(np.float64) for x in inputs))
    op = ow.ops.get(name)
    spec = ow.TensorSpec(expected.shape, dtype)
    (y,) = gpu.compute(op.reference(op.bind({})), [spec], *(gpu.to_device(x) for x in inputs), name=name)
    assert gpu.owns(y)
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(gpu.to_host(y), expected, rtol=tolerance, atol=tolerance)


def test_a_kernel_of_ones_own(gpu, cupy):
    add = cupy.RawKernel(
        'extern "C" __global__ void add(const float* a, const float* b, float* c, int n) '
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }",
        "add",
    )
    a, b = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
    x, y, out = gpu.to_device(a), gpu.to_device(b), gpu.empty((1000,), np.float32)
    gpu.launch(lambda: add((8,), (128,), (x, y, out, np.int32(1000))), name="add")
    np.testing.assert_array_equal(gpu.to_host(out), a + b)


def test_random_numbers_are_those_of_the_processor(gpu):
    cpu = ow.DeviceContextPool.instance().get("cpu")
    for context in (cpu, gpu):
        context.rng.reseed(3)
    drawn = [context.rng.next().random(10) for context in (cpu, gpu)]
    np.testing.assert_array_equal(*drawn)

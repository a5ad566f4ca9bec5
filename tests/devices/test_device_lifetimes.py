"""Memory of an asynchronous device (facts 15.1): what is freed is reused at once, and what that breaks shows.

The check of the facts is "reuse the freed block at once and overwrite it before synchronising": each hazard is here
twice, once as the mistake, with the wrong numbers it gives, and once as it must be done.
"""

import gc
import itertools
import threading

import numpy as np
import pytest

from opwright.core.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from opwright.devices.memory import Allocator, is_pinned, lease_of
from opwright.devices.simulated import SimulatedDeviceContext
from opwright.devices.streams import Stream


@pytest.fixture
def device():
    return SimulatedDeviceContext()


def address(array):
    return array.raw.ctypes.data


def test_new_memory_is_poisoned(device):
    assert np.isnan(device.empty((4,), np.float32).get()).all()
    assert np.isnan(device.empty((4,), np.float16).get()).all()
    assert device.empty((4,), np.int32).get().tolist() == [-1] * 4


def test_a_freed_block_is_handed_out_again_at_once(device):
    with device.held():
        x = device.empty((100,), np.float32)
        where = address(x)
        del x
        assert address(device.empty((90,), np.float32)) == where  # of the same size class


def test_blocks_in_use_are_apart(device):
    arrays = [device.empty((n,), np.uint8) for n in (0, 1, 255, 256, 257, 1000)]
    spans = sorted((address(a), address(a) + a.nbytes) for a in arrays if a.nbytes)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))


def test_a_temporary_dropped_before_its_work_ran_is_right_on_one_stream(device):
    """The seed's hazard: the host drops the temporary when the device has not begun. Stream order saves it."""
    x = device.to_device(np.arange(4, dtype=np.float32))
    with device.held():
        temporary = x * 2
        y = temporary + 1
        where = address(temporary)
        del temporary
        other = device.to_device(np.full(4, 99, np.float32))  # the same block, overwritten before anything ran
        assert address(other) == where
    assert y.get().tolist() == [1, 3, 5, 7]
    assert other.get().tolist() == [99] * 4


def test_a_use_after_free_on_one_stream_computes_nan(device):
    """A kernel that kept the address of what it no longer holds."""
    out = device.empty((4,), np.float32)
    temporary = device.to_device(np.ones(4, np.float32))
    kept = temporary.raw
    del temporary
    device.launch(lambda o: np.copyto(o, kept * 2), out)
    assert np.isnan(out.get()).all()


def use_on_another_stream(device, record_use):
    """Work on a second stream reads a temporary of the first, which is dropped and overwritten before it ran."""
    second = device.new_stream()
    temporary = device.to_device(np.arange(4, dtype=np.float32))
    out = device.empty((4,), np.float32)
    device.wait()
    with second.held():
        device.launch(lambda t, o: np.copyto(o, t * 2), temporary, out, stream=second)
        if record_use:
            device.record_use(temporary, stream=second)
        where = address(temporary)
        del temporary
        successor = device.to_device(np.full(4, 99, np.float32))
        device.stream.synchronize()
        reused = address(successor) == where
    device.wait()
    return out.get().tolist(), reused


def test_a_temporary_used_on_another_stream_is_lost_without_record_use(device):
    assert use_on_another_stream(device, record_use=False) == ([198] * 4, True)


def test_record_use_keeps_a_temporary_until_the_other_stream_has_passed(device):
    assert use_on_another_stream(device, record_use=True) == ([0, 2, 4, 6], False)


def test_what_was_kept_is_handed_out_afterwards(device):
    second = device.new_stream()
    x = device.empty((1000,), np.uint8)
    where = address(x)
    with second.held():
        second.submit(lambda: None)
        device.record_use(x, stream=second)
        del x
        assert address(device.empty((1000,), np.uint8)) != where
    second.synchronize()
    held = [device.empty((1000,), np.uint8) for _ in range(2)]
    assert where in {address(a) for a in held}


def test_an_event_orders_two_streams_and_the_result_is_right(device):
    second = device.new_stream()
    with device.held():
        x = device.to_device(np.arange(4.0)) * 3
        second.wait_event(device.record())
        with second:
            y = x + 1
        device.record_use(x, stream=second)
        del x
    second.synchronize()
    assert y.get().tolist() == [1, 4, 7, 10]


def test_without_an_event_the_other_stream_reads_too_early(device):
    second = device.new_stream()
    with device.held():
        x = device.to_device(np.arange(4.0)) * 3
        with second:
            y = x + 1
        second.synchronize()
    assert np.isnan(y.get()).all()


# --- page-locked memory -----------------------------------------------------------------------------------------------


def upload(device, record_use):
    """An asynchronous copy from page-locked memory that is freed, reused and overwritten before it ran."""
    staging = device.pinned_empty((4,), np.float32)
    staging[...] = [0, 1, 2, 3]
    target = device.empty((4,), np.float32)
    with device.held():
        device.copy(target, staging, asynchronous=True)
        if record_use:
            device.record_use(staging)
        where = staging.ctypes.data
        del staging
        successor = device.pinned_empty((4,), np.float32)
        successor[...] = 99
        reused = successor.ctypes.data == where
    return target.get().tolist(), reused


def test_staging_memory_is_lost_without_record_use(device):
    assert upload(device, record_use=False) == ([99] * 4, True)


def test_record_use_keeps_staging_memory(device):
    assert upload(device, record_use=True) == ([0, 1, 2, 3], False)


def test_to_device_and_to_host_keep_page_locked_memory_themselves(device):
    staging = device.pinned_empty((4,), np.float32)
    staging[...] = 5
    with device.held():
        x = device.to_device(staging)
        del staging
        device.pinned_empty((4,), np.float32)[...] = 99
    assert x.get().tolist() == [5] * 4


def test_freed_staging_memory_is_poisoned_at_once(device):
    a = device.pinned_empty((4,), np.float32)
    a[...] = 1
    raw = lease_of(a).raw(a)
    del a
    assert np.isnan(raw).all()


def test_views_of_page_locked_memory_are_page_locked_and_keep_it(device):
    a = device.pinned_empty((4, 3), np.float32)
    a[...] = 7
    view = a[1:, ::2].T
    where = a.ctypes.data
    assert is_pinned(view)
    assert not is_pinned(view.copy())
    assert not is_pinned([1.0])
    assert lease_of(view).raw(view).tolist() == view.tolist()
    del a
    gc.collect()
    assert device.pinned_empty((4, 3), np.float32).ctypes.data != where
    assert (view == 7).all()


# --- accounting -------------------------------------------------------------------------------------------------------


def test_bytes_in_use_and_their_peak(device):
    device.wait()
    device.memory.reset_peak()
    before = device.memory.in_use
    a = device.empty((1024,), np.uint8)
    b = device.empty((2048,), np.uint8)
    assert device.memory.in_use - before == 3072
    del a
    assert device.memory.in_use - before == 2048
    view = b[:10]
    del b
    assert device.memory.in_use - before == 2048  # a view is of the whole
    del view
    assert (device.memory.in_use - before, device.memory.peak - before) == (0, 3072)
    device.memory.trim()
    assert device.memory.reserved == device.memory.in_use


def test_a_limit():
    device = SimulatedDeviceContext(memory_limit=1024)
    a = device.empty((512,), np.uint8)
    with pytest.raises(ResourceExhaustedError, match=r"600 bytes(.|\n)*512 bytes in use(.|\n)*1024"):
        device.empty((600,), np.uint8)
    del a
    device.empty((600,), np.uint8)


def test_freeing_twice_is_an_error():
    storage = Allocator("m").allocate(8, Stream("s"))
    storage.free()
    with pytest.raises(InternalError, match="freed before"):
        storage.free()


def test_objects_are_refused(device):
    with pytest.raises(InvalidArgumentError, match="no Python objects"):
        device.to_device(np.array([b"text"], object))


def test_threads_that_allocate_and_drop(device):
    wrong = []

    def work(index):
        for n in range(60):
            x = device.to_device(np.full(64, index * 100 + n, np.float32))
            y = (x + 1) * 2
            del x
            if (y.get() != (index * 100 + n + 1) * 2).any():
                wrong.append((index, n))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert device.memory.in_use == 0


def test_cycles_are_freed_whenever_the_collector_runs(device):
    """It may run inside the allocator, on any thread: that must neither stand still nor lose a block."""
    for _ in range(300):
        cycle = [device.empty((64,), np.float32)]
        cycle.append(cycle)
        del cycle
        device.empty((64,), np.float32).fill(0)
    gc.collect()
    device.wait()
    device.empty((1,), np.float32)
    assert device.memory.in_use == 0


def test_scratch_memory_is_right_in_stream_order(device):
    """Two kernels that share the block one after the other, the second of which needs more."""
    outs = [device.empty((8,), np.float32) for _ in range(2)]

    def kernel(scratch, out, value):
        part = scratch[:32].view(np.float32)
        part[...] = value
        out[...] = part

    with device.held():
        device.launch(kernel, device.workspace(64), outs[0], 1.0)
        device.launch(kernel, device.workspace(5000), outs[1], 2.0)
    assert [o.get().tolist() for o in outs] == [[1] * 8, [2] * 8]
    with device.new_stream():
        other = device.workspace(64)
    assert address(other) != address(device.workspace(64))

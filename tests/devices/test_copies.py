"""Which copies wait (facts 15.1 and section 9 of the operator notes they restate); copies between places (5.4)."""

import threading
import time

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import InvalidArgumentError, UnavailableError
from opwright.devices.memory import STAGED_BYTES, memory_kind, place_of_array, waits
from opwright.devices.pool import transfer
from opwright.devices.simulated import SimulatedDeviceContext

SMALL, LARGE = 64 * 1024, 64 * 1024 + 4
# (from, to, bytes, Async call): whether the call returns only when the copy is made. Written from the facts, not from
# the table in devices/memory.py: asynchronous are launches, device to device, host to device up to 64 KB, *Async calls
# to and from pinned memory, memset; synchronous are device and pageable host even through the Async call, host to host.
RULES = [
    ("device", "device", SMALL, False, False),
    ("device", "device", LARGE, False, False),
    ("device", "device", LARGE, True, False),
    ("pageable", "device", SMALL, False, False),
    ("pageable", "device", LARGE, False, True),
    ("pageable", "device", LARGE, True, True),
    ("pinned", "device", SMALL, False, False),
    ("pinned", "device", LARGE, False, True),
    ("pinned", "device", LARGE, True, False),
    ("pinned", "device", 4, True, False),
    ("device", "pinned", 4, False, True),
    ("device", "pinned", LARGE, True, False),
    ("device", "pageable", 4, False, True),
    ("device", "pageable", 4, True, True),
    ("device", "pageable", LARGE, True, True),
    ("pageable", "pageable", 4, True, True),
    ("pinned", "pinned", 4, True, True),
    ("pageable", "pinned", 4, True, True),
    ("pinned", "pageable", LARGE, False, True),
]


@pytest.fixture
def device():
    return SimulatedDeviceContext()


def make(device, kind, values):
    if kind == "pageable":
        return values.copy()
    if kind == "pinned":
        array = device.pinned_empty(values.shape, values.dtype)
        array[...] = values
        return array
    array = device.to_device(values)
    device.wait()
    return array


def values_of(array):
    return array if isinstance(array, np.ndarray) else array.get()


@pytest.mark.parametrize(("source", "target", "nbytes", "asynchronous", "wait"), RULES)
def test_which_copies_wait(device, source, target, nbytes, asynchronous, wait):
    values = np.arange(nbytes // 4, dtype=np.float32)
    of, to = make(device, source, values), make(device, target, np.zeros_like(values))
    go, returned = threading.Event(), threading.Event()
    device.launch(lambda: go.wait(20), name="busy")  # the device is at work

    def call():
        device.copy(to, of, asynchronous=asynchronous)
        returned.set()

    thread = threading.Thread(target=call)
    thread.start()
    if wait:
        time.sleep(0.02)
        assert not returned.is_set()
    else:
        assert returned.wait(20)
    go.set()
    thread.join(20)
    assert returned.is_set()
    if wait:  # made, when it returned
        assert (to == values).all() if isinstance(to, np.ndarray) else (to.raw == values).all()
    device.wait()
    assert (values_of(to) == values).all()
    assert waits(source, target, nbytes, asynchronous) is wait


def test_64_kilobytes():
    assert STAGED_BYTES == 65536


def test_launches_and_memset_do_not_wait(device):
    with device.held():
        x = device.empty((4,), np.uint8)
        device.fill(x, 7)
        device.launch(lambda a: a.__iadd__(1), x)
        assert not device.stream.done
    assert x.get().tolist() == [8] * 4


@pytest.mark.parametrize("kind", ["pageable", "pinned"])
def test_a_small_source_may_be_written_when_the_call_has_returned(device, kind):
    source = make(device, kind, np.arange(4, dtype=np.float32))
    target = device.empty((4,), np.float32)
    with device.held():
        device.copy(target, source)
        source[...] = 99
    assert target.get().tolist() == [0, 1, 2, 3]


def test_a_page_locked_source_of_an_async_copy_may_not(device):
    """It is read when the copy runs: the hazard an asynchronous call brings."""
    source = make(device, "pinned", np.arange(4, dtype=np.float32))
    target = device.empty((4,), np.float32)
    with device.held():
        device.copy(target, source, asynchronous=True)
        source[...] = 99
    assert target.get().tolist() == [99] * 4


def test_a_page_locked_target_has_its_values_after_a_wait(device):
    out = make(device, "pinned", np.zeros(4, np.float32))
    with device.held():
        x = device.to_device(np.arange(4, dtype=np.float32)) + 1
        assert device.to_host(x, out) is out
        assert out.tolist() == [0, 0, 0, 0]
    device.wait()
    assert out.tolist() == [1, 2, 3, 4]


def test_a_pageable_target_has_its_values_at_once(device):
    x = device.to_device(np.arange(4, dtype=np.float32)) + 1
    out = np.zeros(4, np.float32)
    assert x.get(out) is out
    assert out.tolist() == [1, 2, 3, 4]


def test_fetching_at_every_step_waits_each_time(device):
    """facts 15.5: the queue is empty after each fetch, and never is without."""
    x = device.to_device(np.ones(4))
    with device.held():
        for _ in range(5):
            x = x + 1
        assert not device.stream.done
    for _ in range(5):
        x = x + 1
        x.get()
        assert device.stream.done


@pytest.mark.parametrize("other", [np.zeros(3, np.float32), np.zeros(4), np.zeros((2, 2), np.float32)])
def test_a_copy_changes_neither_shape_nor_dtype(device, other):
    x = device.to_device(np.zeros(4, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"one shape and dtype(.|\n)*float32\[4\]"):
        device.copy(x, other)


def test_kinds_of_memory(device):
    assert memory_kind(np.zeros(1)) == memory_kind(np.float32(1)) == "pageable"
    assert memory_kind(device.pinned_empty((1,), np.int8)) == "pinned"
    assert memory_kind(device.empty((1,), np.int8)) == "device"


# --- between places ---------------------------------------------------------------------------------------------------


def test_where_an_array_is():
    sim = ow.DeviceContextPool.instance().get("sim:1")
    assert place_of_array(np.zeros(1)) == ow.CPUPlace()
    assert place_of_array(sim.pinned_empty((1,), np.int8)) == ow.CUDAPinnedPlace()
    assert place_of_array(sim.empty((1,), np.int8)) == ow.SimulatedPlace(1)
    with pytest.raises(InvalidArgumentError, match="list"):
        place_of_array([1])


@pytest.mark.parametrize("source", ["cpu", "sim:0", "sim:1"])
@pytest.mark.parametrize("target", ["cpu", "sim:0", "sim:1"])
def test_transfers(source, target):
    pool = ow.DeviceContextPool.instance()
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    here = pool.get(source).to_device(values)
    there = transfer(here, target)
    assert place_of_array(there) == pool.get(target).place
    assert (there is here) == (source == target)
    assert np.asarray(there).tolist() == values.tolist()


def test_a_transfer_is_done_when_it_returns():
    device = ow.DeviceContextPool.instance().get("sim:0")
    x = device.to_device(np.arange(4.0))
    for _ in range(20):
        x = x + 1
    y = transfer(x, "sim:1")
    assert device.stream.done
    assert ow.DeviceContextPool.instance().get("sim:1").stream.done
    assert y.get().tolist() == [20, 21, 22, 23]


def test_a_transfer_to_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(UnavailableError, match=r"CUDAPlace\(9\)"):
        transfer(np.zeros(1), ow.CUDAPlace(9))

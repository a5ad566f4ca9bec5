"""The pool: one context for each place (facts 1.2), compared with or without the device's number (facts 1.3)."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError, UnavailableError
from opwright.core.places import Place
from opwright.devices import DeviceContext, DeviceContextPool, pool, register_place_kind
from opwright.devices.cpu import CPUDeviceContext
from opwright.devices.simulated import SimulatedDeviceContext


@pytest.fixture
def contexts():
    return DeviceContextPool._apart()


def test_there_is_one_pool() -> None:
    assert DeviceContextPool() is DeviceContextPool.instance()
    assert DeviceContextPool().get("cpu") is DeviceContextPool.instance().get(ow.CPUPlace())


def test_two_requests_give_one_object(contexts):
    for place in (ow.CPUPlace(), ow.SimulatedPlace(0), ow.SimulatedPlace(1)):
        assert contexts.get(place) is contexts.get(place)
        assert contexts.get(place).place == place
    assert contexts.get("cpu") is contexts.get(ow.CPUPlace())
    assert contexts.get("sim:1") is contexts.get(ow.SimulatedPlace(1)) is not contexts.get("sim:0")


def test_the_process_has_one_pool():
    assert ow.DeviceContextPool.instance() is ow.DeviceContextPool.instance()
    assert isinstance(ow.DeviceContextPool.instance().get("cpu"), ow.DeviceContext)


def test_contexts_are_made_when_first_asked_for(contexts):
    assert contexts.places() == []
    contexts.get("sim:3")
    contexts.get("cpu")
    assert contexts.places() == [ow.SimulatedPlace(3), ow.CPUPlace()]
    assert [type(c) for c in contexts] == [SimulatedDeviceContext, CPUDeviceContext]
    assert ow.CPUPlace() in contexts
    assert ow.SimulatedPlace(0) not in contexts
    assert len(contexts) == 2


class Unknown(Place):
    kind = "abacus"


def test_a_place_of_an_unknown_kind_is_named(contexts):
    with pytest.raises(NotFoundError) as caught:
        contexts.get(Unknown(2))
    text = str(caught.value)
    assert "Unknown(2)" in text
    assert "'abacus'" in text
    assert "cpu, gpu, pinned, sim" in text
    assert "register_place_kind" in text
    assert contexts.places() == []


@pytest.mark.parametrize("place", [ow.CUDAPlace(0), ow.CUDAPlace(7), ow.CUDAPinnedPlace()], ids=repr)
def test_cuda_without_cupy_reports_it(contexts, place, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # import cupy raises, installed or not
    with pytest.raises(UnavailableError) as caught:
        contexts.get(place)
    text = str(caught.value)
    assert repr(place) in text
    assert "CuPy" in text
    assert "pip install cupy" in text
    assert "CPUPlace()" in text
    assert contexts.places() == []


def test_a_users_device(contexts, monkeypatch):
    monkeypatch.setattr(pool, "_factories", dict(pool._factories))
    made = []

    class AbacusContext(CPUDeviceContext):
        def __init__(self, place):
            super().__init__(place)
            made.append(place)

    register_place_kind("abacus", AbacusContext)
    context = contexts.get(Unknown(1))
    assert contexts.get(Unknown(1)) is context
    assert isinstance(context, DeviceContext)
    assert made == [Unknown(1)]
    assert contexts.get(Unknown(2)) is not context
    with pytest.raises(AlreadyExistsError, match="abacus"):
        register_place_kind("abacus", AbacusContext)
    register_place_kind("abacus", SimulatedDeviceContext, replace=True)
    assert isinstance(contexts.get(Unknown(3)), SimulatedDeviceContext)
    with pytest.raises(AlreadyExistsError, match="cpu"):
        register_place_kind("cpu", AbacusContext, replace=True)


def test_a_factory_that_fails_is_asked_again(contexts, monkeypatch):
    monkeypatch.setattr(pool, "_factories", dict(pool._factories))
    calls = []

    def factory(place):
        calls.append(place)
        if len(calls) == 1:
            raise UnavailableError("not yet")
        return CPUDeviceContext(place)

    register_place_kind("abacus", factory)
    with pytest.raises(UnavailableError):
        contexts.get(Unknown())
    assert contexts.get(Unknown()) is contexts.get(Unknown())
    assert len(calls) == 2


def test_threads_that_ask_at_once_get_one_context(contexts, monkeypatch):
    monkeypatch.setattr(pool, "_factories", dict(pool._factories))
    made = []

    def slow(place):
        time.sleep(0.005)  # wide enough for others to come in between
        made.append(place)
        return CPUDeviceContext(place)

    register_place_kind("abacus", slow)
    found, barrier = [], threading.Barrier(24)

    def ask(index):
        barrier.wait()
        found.extend((n % 4, contexts.get(Unknown(n % 4))) for n in range(index, index + 40))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 24 * 40
    assert len({(n, id(c)) for n, c in found}) == 4
    assert sorted(p.device_id for p in made) == [0, 1, 2, 3]


def test_a_slow_device_holds_up_no_other(contexts, monkeypatch):
    monkeypatch.setattr(pool, "_factories", dict(pool._factories))
    begun, go = threading.Event(), threading.Event()

    def slow(place):
        begun.set()
        assert go.wait(10)
        return CPUDeviceContext(place)

    register_place_kind("abacus", slow)
    thread = threading.Thread(target=contexts.get, args=(Unknown(),))
    thread.start()
    assert begun.wait(10)
    assert contexts.get("cpu").place == ow.CPUPlace()
    go.set()
    thread.join()
    assert Unknown() in contexts


def test_kernel_keys_go_by_kind_data_by_kind_and_number():
    """facts 4.1: keys for GPU 0 and GPU 1 are equal and hash alike; the places are not."""
    zero, one = ow.CUDAPlace(0), ow.CUDAPlace(1)
    assert zero != one
    assert zero.kind == one.kind
    assert ow.KernelKey(zero.kind) == ow.KernelKey(one.kind)
    assert hash(ow.KernelKey(zero.kind)) == hash(ow.KernelKey(one.kind))
    assert ow.SimulatedPlace(0).kind == ow.SimulatedPlace(1).kind == "sim"
    assert ow.CUDAPinnedPlace().kind == "pinned"


def test_closing(contexts):
    first = contexts.get("sim:0")
    cpu = contexts.get("cpu")
    contexts.close("sim:0")
    assert contexts.get("sim:0") is not first
    assert contexts.get("cpu") is cpu
    with pytest.raises(FailedPreconditionError, match=r"closed(.|\n)*DeviceContextPool"):
        first.empty((2,), np.float32)
    contexts.close()
    assert contexts.places() == []
    with pytest.raises(FailedPreconditionError, match="closed"):
        cpu.parallel_for(3, lambda a, b: None)


def test_waiting_for_all_devices(contexts):
    a, b = contexts.get("sim:0"), contexts.get("sim:1")
    done = []
    for context in (a, b):
        context.launch(lambda: (time.sleep(0.01), done.append(1)))
    contexts.wait()
    assert len(done) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_uses_the_pool():
    """In a process of its own: pytest's may have threads that a fork must not meet."""
    code = """
import os, threading, warnings
warnings.simplefilter("ignore")
import numpy as np, opwright as ow
pool = ow.DeviceContextPool.instance()
cpu, sim = pool.get("cpu"), pool.get("sim:0")
total = np.zeros(1000)
def add(a, b): total[a:b] += 1
with ow.flags(num_threads=3):
    cpu.parallel_for(1000, add, 10)
    x = sim.to_device(np.arange(4.0))
    y = x * 2
    pool._lock.acquire()                     # as if another thread were inside
    child = os.fork()
    if child == 0:
        ok = pool.get("cpu") is cpu and pool.get("sim:0") is sim and pool.get("sim:1") is not sim
        cpu.parallel_for(1000, add, 10)
        z = sim.to_device(np.arange(4.0)) + 1
        ok = ok and (total == 2).all() and z.get().tolist() == [1, 2, 3, 4]
        os._exit(0 if ok else 1)
    pool._lock.release()
    _, status = os.waitpid(child, 0)
    cpu.parallel_for(1000, add, 10)
    print(os.waitstatus_to_exitcode(status), (total == 2).all(), y.get().tolist())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stdout.strip() == "0 True [0.0, 2.0, 4.0, 6.0]", ran.stderr


def test_importing_loads_no_devices_and_no_cupy():
    code = (
        "import opwright, sys; print([m for m in sys.modules if 'cupy' in m or m.startswith('opwright.devices')]);"
        "opwright.DeviceContextPool.instance().get('cpu'); print('cupy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split("\n")[:2] == ["[]", "False"]


def test_doctor_reports_the_devices():
    from opwright.tools.diagnostics import _devices

    found = {what: text for what, text, ok in _devices() if ok}
    assert found["CPU threads"].endswith("for one operator")
    assert found["GPUs (optional)"].startswith(("none: ", "gpu:0 "))

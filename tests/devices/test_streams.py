"""Streams and events of the simulated device: order, holding, waiting, errors."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwright.core.errors import FailedPreconditionError, InvalidArgumentError, UnknownError
from opwright.devices.simulated import SimulatedDeviceContext
from opwright.devices.streams import Event, Stream


@pytest.fixture
def stream():
    return Stream("s")


def test_work_runs_in_order_on_another_thread(stream):
    seen = []
    for i in range(200):
        stream.submit(lambda i=i: seen.append((i, threading.get_ident())))
    stream.synchronize()
    assert [i for i, _ in seen] == list(range(200))
    assert threading.get_ident() not in {t for _, t in seen}
    assert len({t for _, t in seen}) == 1


def test_queueing_does_not_wait(stream):
    go, done = threading.Event(), []
    stream.submit(lambda: done.append(go.wait(10)))
    assert not stream.done
    assert done == []
    go.set()
    stream.synchronize()
    assert done == [True]
    assert stream.done


def test_work_of_several_threads_keeps_each_threads_order(stream):
    seen = []

    def queue(name):
        for i in range(100):
            stream.submit(lambda i=i: seen.append((name, i)))

    threads = [threading.Thread(target=queue, args=(n,)) for n in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.synchronize()
    assert len(seen) == 400
    for name in "abcd":
        assert [i for n, i in seen if n == name] == list(range(100))


def test_nothing_runs_while_held(stream):
    seen = []
    with stream.held():
        stream.submit(lambda: seen.append(1))
        time.sleep(0.02)
        assert seen == []
        with stream.held():
            pass
        time.sleep(0.02)
        assert seen == []  # two holds, one release
    stream.synchronize()
    assert seen == [1]
    with pytest.raises(FailedPreconditionError, match="not held"):
        stream.release()


def test_holding_waits_for_what_is_running(stream):
    begun, seen = threading.Event(), []
    stream.submit(lambda: (begun.set(), time.sleep(0.02), seen.append(1)))
    begun.wait(10)
    with stream.held():
        assert seen == [1]


def test_waiting_for_a_held_stream_is_an_error_and_no_standstill(stream):
    with stream.held():
        stream.submit(lambda: None)
        with pytest.raises(FailedPreconditionError, match=r"held(.|\n)*test_streams.py(.|\n)*release"):
            stream.synchronize()
    stream.synchronize()


def test_a_held_stream_without_work_need_not_be_waited_for(stream):
    with stream.held():
        stream.synchronize()


def test_work_may_not_wait_for_its_own_stream(stream):
    stream.submit(stream.synchronize, "knot")
    with pytest.raises(UnknownError, match="waits for that same stream"):
        stream.synchronize()


def test_events(stream):
    event = Event()
    assert event.done  # never recorded, as CUDA has it
    event.synchronize()
    seen = []
    with stream.held():
        stream.submit(lambda: seen.append(1))
        stream.record(event)
        stream.submit(lambda: seen.append(2))
        assert not event.done
    event.synchronize()
    assert event.done
    assert seen[:1] == [1]
    stream.synchronize()
    assert seen == [1, 2]


def test_a_stream_waits_for_an_event_of_another():
    a, b, seen = Stream("a"), Stream("b"), []
    with a.held():
        a.submit(lambda: seen.append("a"))
        b.wait_event(a.record())
        b.submit(lambda: seen.append("b"))
        time.sleep(0.02)
        assert seen == []
        with pytest.raises(FailedPreconditionError, match="held"):
            b.synchronize()  # it waits for a stream that does
    b.synchronize()
    assert seen == ["a", "b"]


def test_an_event_recorded_again_does_not_move_who_waits_already():
    a, b, seen = Stream("a"), Stream("b"), []
    event = a.record()
    with a.held():
        b.wait_event(event)
        a.submit(lambda: seen.append("a"))
        a.record(event)
        b.submit(lambda: seen.append("b"))
        b.synchronize()
        assert seen == ["b"]


def test_without_an_event_streams_have_no_order():
    a, b, seen = Stream("a"), Stream("b"), []
    with a.held():
        a.submit(lambda: seen.append("a"))
        b.submit(lambda: seen.append("b"))
        b.synchronize()
        assert seen == ["b"]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30))
def test_events_make_any_program_as_if_in_one_row(program):
    """Each piece waits for the one before it, whichever stream that was on: the result is the program's order."""
    seen, last = [], None
    for index, (stream, _) in enumerate(program):
        if last is not None:
            STREAMS[stream].wait_event(last)
        STREAMS[stream].submit(lambda index=index: seen.append(index))
        last = STREAMS[stream].record()
    for stream in STREAMS:
        stream.synchronize()
    assert seen == list(range(len(program)))


STREAMS = [Stream(n) for n in "xyz"]


# --- errors -----------------------------------------------------------------------------------------------------------


def test_what_fails_is_raised_by_the_next_to_wait_and_named(stream):
    stream.submit(lambda: 1 // 0, "divide_kernel")
    with pytest.raises(UnknownError) as caught:
        stream.synchronize()
    text = str(caught.value)
    assert text.startswith("divide_kernel (test_streams.py:")
    assert "failed on s: ZeroDivisionError: " in text
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    seen = []
    stream.submit(lambda: seen.append(1))  # and the stream goes on
    stream.synchronize()
    assert seen == [1]


def test_several_failures_are_one_error(stream):
    seen = []
    with stream.held():
        for name in ("first", "second", "third"):
            stream.submit(lambda name=name: {}[name], name)
        stream.submit(lambda: seen.append(1))
    with pytest.raises(UnknownError, match=r"first \(.*\n.*3 pieces of work failed: first, second, third"):
        stream.synchronize()
    assert seen == [1]
    stream.synchronize()


@pytest.mark.parametrize("wait", ["wait", "get", "event", "asarray", "float", "to_host"])
def test_every_way_of_waiting_raises(wait):
    device = SimulatedDeviceContext()
    x = device.to_device(np.ones(1))
    device.launch(lambda a: 1 // 0, x, name="boom")
    ways = {
        "wait": device.wait,
        "get": x.get,
        "event": device.record().synchronize,
        "asarray": lambda: np.asarray(x),
        "float": lambda: float(x),
        "to_host": lambda: device.to_host(x),
    }
    with pytest.raises(UnknownError, match="boom"):
        ways[wait]()
    assert x.get().tolist() == [1.0]


def test_waiting_for_a_device_waits_for_all_its_streams_whichever_failed():
    device, seen = SimulatedDeviceContext(), []
    streams = [device.new_stream() for _ in range(3)]
    device.launch(lambda: 1 // 0, name="bad", stream=streams[0])
    for stream in streams[1:]:
        device.launch(lambda: (time.sleep(0.01), seen.append(1)), stream=stream)
    with pytest.raises(UnknownError, match="bad"):
        device.wait()
    assert seen == [1, 1]
    device.wait()


def test_a_shape_that_was_promised_wrongly_surfaces(monkeypatch):
    device = SimulatedDeviceContext()
    x = device.to_device(np.array([0.0, 3.0]))
    y = np.pad(x, x[1:].astype(np.int64))  # as long as its values say: zeros promise another shape
    assert y.shape == (2,)
    with pytest.raises(UnknownError, match=r"pad(.|\n)*depends on values(.|\n)*float64\[2\]"):
        device.wait()


# --- streams of a device ----------------------------------------------------------------------------------------------


def test_with_a_stream_work_goes_there():
    device = SimulatedDeviceContext()
    first, other = device.stream, device.new_stream()
    with other:
        assert device.stream is other
        with first:
            assert device.stream is first
        assert device.stream is other
        with other.held():
            x = device.to_device(np.ones(2)) + 1
            assert not other.done
            first.synchronize()
    assert device.stream is first
    assert x.get().tolist() == [2, 2] or other.synchronize() is None


def test_the_current_stream_is_each_threads_own():
    device = SimulatedDeviceContext()
    result = []
    with device.new_stream():
        thread = threading.Thread(target=lambda: result.append(device.stream))
        thread.start()
        thread.join()
    assert result == [device.stream]


def test_the_current_stream_is_each_devices_own():
    a, b = SimulatedDeviceContext(), SimulatedDeviceContext()
    with a.new_stream() as other:
        assert a.stream is other
        assert b.stream is not other


def test_a_launch_gets_memory_and_constants():
    device = SimulatedDeviceContext()
    x, out, host = device.to_device(np.arange(3.0)), device.empty((3,), np.float64), np.ones(3)

    def kernel(x, out, parts, scale):
        assert type(x) is np.ndarray
        out[...] = x * scale + parts["h"][0]

    with device.held():
        device.launch(kernel, x, out, {"h": [host]}, 2.0)
        host[...] = 100  # a launch takes its constants along
    assert out.get().tolist() == [1, 3, 5]


def test_compute_has_its_results_later():
    device = SimulatedDeviceContext()
    x = device.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    spec = x.sum(axis=1)
    with device.held():
        (y,) = device.compute(lambda a: a.sum(axis=1), [spec], x)
        assert (y.shape, y.dtype) == ((2,), np.float32)
    assert y.get().tolist() == [3, 12]
    device.compute(lambda a: a, [spec], x, name="promise")
    with pytest.raises(UnknownError, match=r"promise(.|\n)*float32\[2, 3\](.|\n)*float32\[2\]"):
        device.wait()


def test_an_array_of_another_device_is_refused():
    a, b = SimulatedDeviceContext(), SimulatedDeviceContext()
    with pytest.raises(InvalidArgumentError, match="another device"):
        a.launch(np.copyto, b.empty((1,), np.float32), 1)
    with pytest.raises(InvalidArgumentError, match="another device"):
        a.to_device(np.ones(1)) + b.to_device(np.ones(1))


def test_an_idle_stream_has_no_thread_and_is_collected():
    stream = Stream("idle")
    stream.submit(lambda: None)
    stream.synchronize()
    deadline = time.monotonic() + 10
    while stream._thread is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert stream._thread is None
    stream.submit(lambda: None)  # and it is started again
    stream.synchronize()
    while stream._thread is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    gone = weakref.ref(stream)
    del stream
    gc.collect()
    assert gone() is None

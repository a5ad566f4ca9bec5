"""References on arrays of devices: where their own arrays are made, and that nothing goes over the host unseen.

Lives here: ops/like_device.py, writing by index in NumPy's order, and the catalogue on arrays as strict as CuPy's.
Not here: what runs at the simulated device (test_on_scopes.py), its arrays (tests/devices/).
"""

from __future__ import annotations

from typing import Any

import catalogue_calls
import numpy as np
import pytest

import opwright as ow
from opwright.devices import simulated_array
from opwright.devices.simulated_array import SimulatedArray
from opwright.ops import dispatch, like_device
from opwright.ops.array_functions import put_last
from opwright.testing import scope_checks


def _on_device(values: Any) -> Any:
    return ow.DeviceContextPool.instance().get(ow.SimulatedPlace(0)).to_device(np.asarray(values))


def test_arrays_are_created_next_to_the_arguments() -> None:
    result = (
        lambda x: like_device.zeros(x, (2, 3), np.int32),
        lambda x: like_device.full(x, (2,), 7, np.float32),
        lambda x: like_device.arange(x, 4, np.int64),
        lambda x: like_device.array(x, np.array([1, 2])),
        like_device.copy,
    )
    for make in result:
        here, there = make(np.ones(3)), make(_on_device(np.ones(3)))
        assert type(here) is np.ndarray
        assert isinstance(there, SimulatedArray)
        assert (here.dtype, here.tolist()) == (there.dtype, there.tolist())
    assert isinstance(like_device.empty(_on_device([1.0]), (2,), np.int8), SimulatedArray)
    number = np.float32(1)
    assert {type(like_device.zeros(number, 2, np.float32)), type(like_device.copy(number))} == {np.ndarray}


def test_of_values_for_one_place_the_last_is_written() -> None:
    """As NumPy does; on GPUs threads write in any order, so the winner is picked by its number beforehand."""
    places, values = np.array([[2, 0], [2, 2]]), np.arange(8.0).reshape(2, 2, 2)
    for move in (np.asarray, _on_device):
        target = move(np.full((4, 2), -1.0))
        put_last(target, (move(places),), move(values))
        assert target.tolist() == [[2, 3], [-1, -1], [6, 7], [-1, -1]]


def test_parts_of_complex_arrays_are_written_on_devices() -> None:
    z = _on_device(np.zeros(2, np.complex64))
    z.real, z.imag = _on_device(np.float32([1, 2])), 3
    assert z.tolist() == [1 + 3j, 2 + 3j]


def test_select_of_text_is_the_hosts() -> None:
    """A device holds no text, wherever among the inputs it is."""
    spec = ow.TensorSpec([2], ow.string)
    assert ow.ops.explain("Select", [ow.TensorSpec([2], ow.bool), spec, spec], "sim:0").branch == "host"


_OVER_THE_HOST = """
    CTCLoss CumulativeLogsumexp Polygamma SegmentProd StatelessMultinomial UnsortedSegmentProd
"""
OVER_THE_HOST = frozenset(_OVER_THE_HOST.split())
"""These run on the simulated device, but not on arrays as strict as CuPy's: a table of the host is read, or a ufunc's
`accumulate` or `reduceat` that CuPy has for sums and products alone. On a GPU they fall back to the CPU."""

CUPY_HAS = {"reduceat": {"add"}, "accumulate": {"add", "multiply"}, "at": {"add", "subtract", "maximum", "minimum"}}
TAKES_HOST_ARRAYS = {"array", "asarray", "getitem", "getitem_mask", "setitem"}


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """In kernels, arrays of the simulated device refuse what CuPy's refuse: np.asarray, host arrays as arguments,
    methods of ufuncs that CuPy has not."""
    inside = [False]

    def outside(fn: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            was, inside[0] = inside[0], False
            try:
                return fn(*args, **kwargs)
            finally:
                inside[0] = was

        return run

    def queue(context: Any, fn: Any, args: Any, kwargs: Any, name: str) -> Any:
        if inside[0]:
            allowed = CUPY_HAS.get(getattr(fn, "__name__", ""))
            if allowed is not None and name not in allowed:
                raise NotImplementedError(f"{name}.{fn.__name__}")
            inputs = simulated_array._leaves([args, list(kwargs.values())])
            if name not in TAKES_HOST_ARRAYS and any(isinstance(a, np.ndarray) and a.ndim for a in inputs):
                raise TypeError(f"{name}: an array of the host among the arguments")
        return plain_queue(context, fn, args, kwargs, name)

    def to_array(self: Any, *args: Any, **kwargs: Any) -> Any:
        if inside[0]:
            raise TypeError("an implicit conversion to an array of the host")
        return plain_array(self, *args, **kwargs)

    def quietly(kernel: Any, *arrays: Any) -> Any:
        flat = [a for x in arrays for a in (x if isinstance(x, (list, tuple)) else (x,))]
        inside[0] = any(isinstance(a, SimulatedArray) for a in flat)
        try:
            return plain_quietly(kernel, *arrays)
        finally:
            inside[0] = False

    plain_queue, plain_array, plain_quietly = outside(simulated_array.queue), SimulatedArray.__array__, dispatch.quietly
    monkeypatch.setattr(simulated_array, "queue", queue)
    monkeypatch.setattr(SimulatedArray, "__array__", to_array)
    monkeypatch.setattr(dispatch, "quietly", quietly)
    for name in ("get", "tolist", "item", "tobytes", "__bool__", "__int__", "__float__", "__complex__", "__index__"):
        monkeypatch.setattr(SimulatedArray, name, outside(getattr(SimulatedArray, name)))


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("every", catalogue_calls.AMOUNTS)
def test_nothing_goes_over_the_host_unseen(every: bool) -> None:
    """What runs at the simulated device runs on arrays as strict as CuPy's, but for what is listed."""
    from test_on_scopes import FALLS_BACK

    def check(trial: Any, result: Any) -> Any:
        return scope_checks.on_scopes(trial, "sim:0", None if any(o.lod_of for o in trial.op.outputs) else result)

    operators = {trial.op for _, trial, _ in catalogue_calls.calls(every)}
    try:
        for op in operators:  # what an operator was found not to do is remembered with it
            op.refused.clear()
        inputs, wrong = catalogue_calls.walk(check, every, frozenset() if every else catalogue_calls.SERIES)
    finally:
        for op in operators:
            op.refused.clear()
    assert not wrong, "\n".join(wrong)
    back = {name for name, actual in inputs.items() if any(e.branch == "fallback" for e in actual)}
    assert back - FALLS_BACK == (OVER_THE_HOST if every else OVER_THE_HOST - catalogue_calls.SERIES)

"""Native calls of NumPy arrays: addresses read out of Python's objects, and the ways around that."""

import gc
import weakref

import numpy as np
import pytest
from foreign import EACH

import opwright as ow
from opwright.compiler import calls, memory, partitioner
from opwright.compiler.kernels.array_addresses import connected
from opwright.compiler.native_plan import specialize
from opwright.compiler.plan import Plan
from opwright.compiler.target import NAMED
from opwright.core.errors import InternalError


def region_of(function, *arrays):
    """The one region of a function's graph."""
    specs = [ow.TensorSpec(a.shape, a.dtype) for a in arrays]
    graph = ow.function(function, autograph=False).get_concrete_function(*specs).optimized_graph
    (region,) = partitioner.compile_regions(graph, lambda r: None).regions
    return region


def f32(*shape):
    return np.random.default_rng(2).standard_normal(shape, np.float32)


def function(x, y):
    return ow.tanh(x) * y + 1.0, ow.reduce_sum(x, 1)


def wanted(x, y):
    return np.tanh(x) * y + 1, x.sum(1)


@pytest.mark.parametrize("name", EACH)
def test_it_compiles_for_every_target(name):
    target = NAMED[name]
    assert len(target.object_code(str(connected.emit(target)))) > 100


@pytest.mark.parametrize("direct", [True, False])
def test_addresses_are_read_or_asked_for(direct, monkeypatch):
    if not direct:
        monkeypatch.setattr(calls, "items_offset", lambda: None)
    x, y = f32(5, 33), f32(33)
    call = calls.function_of(region_of(function, x, y))
    for scale in (1, 2, 3):
        a, b = x * np.float32(scale), y * np.float32(scale)
        for actual, exact in zip(call(a, b), wanted(a, b), strict=True):
            np.testing.assert_allclose(actual, exact, 1e-5, 1e-5)


def test_the_layout_is_the_one_expected_here():
    assert calls.items_offset() in (24, 32, 40)


def test_arrays_are_not_kept():
    x, y = f32(5, 33), f32(33)
    call = calls.function_of(region_of(function, x, y))
    call(x, y)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("direct", [True, False])
def test_another_shape_is_never_run(direct, monkeypatch):
    if not direct:
        monkeypatch.setattr(calls, "items_offset", lambda: None)
    x, y = f32(5, 33), f32(33)
    call = calls.function_of(region_of(function, x, y))
    for other in (f32(5, 32), f32(6, 33), f32(33), f32(5, 33, 1)):
        with pytest.raises(InternalError, match="another shape"):
            call(other, y)
    np.testing.assert_allclose(call(x, y)[0], wanted(x, y)[0], 1e-5, 1e-5)


def test_other_dtypes_and_objects_are_made_fitting():
    x, y = f32(5, 33), f32(33)
    call = calls.function_of(region_of(function, x, y))
    for a in (x.astype(np.float64), x.tolist(), x[::-1][::-1], np.ma.masked_array(x), x.astype(">f4")):
        np.testing.assert_allclose(call(a, y)[0], wanted(x, y)[0], 1e-5, 1e-5)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(memory, "KEPT", 3 << 20)
    monkeypatch.setattr(memory, "_kept", {})
    monkeypatch.setattr(memory, "_kept_bytes", 0)
    arrays = [memory.large((1 << 18,), np.dtype(np.float32)) for _ in range(5)]
    del arrays
    assert memory._kept_bytes == 3 << 20
    first = memory.large((1 << 9, 1 << 9), np.dtype(np.float32))
    assert memory._kept_bytes == 2 << 20
    view = first[3:, 1:]
    del first
    assert memory._kept_bytes == 2 << 20  # a view holds it
    del view
    assert memory._kept_bytes == 3 << 20


def test_sizes_that_follow_are_worked_out():
    def f(x):
        n = ow.shape(x)[0]
        y = ow.reshape(x, [n // 2, -1])
        return ow.concat([y, ow.zeros(ow.shape(y))], 0)

    graph = (
        ow.function(f, input_signature=[ow.TensorSpec([None, None], ow.float32)], autograph=False)
        .get_concrete_function()
        .optimized_graph
    )
    known = specialize(graph, [(6, 5)])
    assert [v.shape.as_list() for v in known.outputs] == [[6, 10]]
    assert {n.op.name for n in known.nodes} <= {"Const", "Reshape", "Concat", "Identity"}
    x = f32(6, 5)
    np.testing.assert_array_equal(Plan(known).run(x)[0], Plan(graph).run(x)[0])

"""Arrays through shared memory: what is put is what another process gets, and a slot is one task's at a time."""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.distribute import elements, slots
from opwright.distribute.task_size import TaskSize
from thorough import examples

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd_create")

DTYPES = (np.float32, np.int8, np.complex128, bool, "S5", ">i4", ml_dtypes.bfloat16, object)


@st.composite
def arrays(draw):
    shape = draw(st.sampled_from([(), (0, 3), (5,), (300,), (40, 7, 3), (17, 100)]))
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(draw(st.sampled_from(DTYPES)))
    return array.T if draw(st.booleans()) else array


def alike(x, y):
    if isinstance(x, np.ndarray):
        np.testing.assert_array_equal(x, y)
        assert x.shape == y.shape
        # Rows of a column are scalars, whose strings have their own length; stacking has the processor's byte order.
        assert x.dtype.newbyteorder("=") == y.dtype.newbyteorder("=") or x.ndim == 0
    elif isinstance(x, dict):
        assert list(x) == list(y)
        alike(list(x.values()), list(y.values()))
    elif isinstance(x, list | tuple):
        assert type(x) is type(y)
        for a, b in zip(x, y, strict=True):
            alike(a, b)
    else:
        assert x == y


VALUES = st.recursive(
    arrays() | st.sampled_from(["text", None, 3]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=examples(50), deadline=None)
@given(VALUES, st.booleans())
def test_values_come_back(value, too_small):
    slot = slots.Slot(4096 if too_small else 1 << 20)
    try:
        stored = slots.put_all(slot, value)
        assert slot.at <= (size := slots.placed_size(value))
        if not too_small:
            assert slot.at == size == slots.placed_size(stored)
        memory = slots.opened(slot.reference())
        alike(value, slots.get_all(memory, stored))
        copied = slots.get_all(memory, stored, copy=True)
        slot.bytes[:] = 7
        alike(value, copied)
    finally:
        slot.close()


@settings(max_examples=examples(50), deadline=None)
@given(
    st.integers(2, 5).flatmap(lambda n: st.lists(arrays(), min_size=n, max_size=n)),
    st.sampled_from(["alone", "tuples", "dicts", "mixed"]),
)
def test_columns_are_their_elements(row, form):
    """Three elements, each with the arrays of the row: alike unless they are objects."""
    rows = {
        "alone": [row[0]] * 3,
        "tuples": [tuple(row)] * 3,
        "dicts": [dict(zip("vwxyz", row))] * 3,
        "mixed": [tuple(row), tuple(row[1:]), tuple(row)],
    }[form]
    packed = elements.packed(rows)
    parts = rows[:1] if form == "alone" else row
    stackable = form != "mixed" and not any(array.dtype.kind == "O" for array in parts)
    assert isinstance(packed, elements.ElementColumns) == stackable
    alike(rows, list(packed))
    if stackable:
        alike(rows, list(packed.stacked()))
        alike(rows[1:], list(packed.stacked()[1:]))


def test_slots_are_used_again_and_grow():
    free = slots.Slots(usable=True)
    first, second = free.acquire(10), free.acquire(100_000)
    assert len(first.bytes) == slots.LEAST_SLOT
    assert len(second.bytes) == 7 << 14
    first.put(np.ones(1000))
    free.release(first)
    assert free.acquire(50_000) is first
    assert first.at == 0
    free.release(first)
    large = free.acquire(1 << 20)  # in place of the one that is too small
    assert large not in (first, second)
    assert slots.opened(first.reference()) is None
    free.retire(second)
    free.release(large)
    assert free.acquire(100) is large
    assert free.acquire(100) not in (second, large)


def test_the_number_of_slots_is_bounded(monkeypatch):
    monkeypatch.setattr(slots, "MOST_SLOTS", 2)
    free = slots.Slots(usable=True)
    taken = [free.acquire(100) for _ in range(3)]
    assert taken[2] is None
    free.release(taken[0])
    assert free.acquire(1 << 20) is not None
    monkeypatch.setattr(os, "memfd_create", lambda name: os.open("/nowhere/at/all", os.O_RDWR))
    other = slots.Slots(usable=True)
    assert other.acquire(100) is None
    assert not other.usable


def test_another_process_maps_a_slot_until_it_is_closed():
    slot = slots.Slot(1 << 16)
    x = np.arange(1000.0)
    placed = slot.put(x)
    reference = slot.reference()
    child = os.fork()
    if not child:
        memory = slots.opened(reference)
        same = memory is not None and np.array_equal(memory.array(placed), x)
        written = same and memory.put(2 * x) == slots.Placed(slots.aligned(x.nbytes), x.dtype, x.shape)
        os._exit(0 if written else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(slot.array(slots.Placed(slots.aligned(x.nbytes), x.dtype, x.shape)), 2 * x)
    assert slots.opened(reference._replace(name="opwright-0")) is None
    assert slots.opened(reference) is not None
    slot.close()
    assert slots.opened(reference) is not None  # this process has it mapped
    other = slots.Slot(1 << 16)
    assert slots.opened(other.reference()) is not None
    assert slots.opened(reference) is None  # dropped when the next one was mapped
    other.close()


# ---- sizes of tasks --------------------------------------------------------------------------------------------------


def test_sizes_of_tasks():
    """100 ms, 2 MiB or 64 batches, as a power of two; in parts of half of what remains for each worker."""
    size = TaskSize(10, 64, None)
    assert size.elements(0, 2, None) == 10  # not measured
    size.measure(0.01, 100.0)
    assert size.elements(0, 2, None) == 80
    assert size.elements(0, 2, 30) == 30
    size.measure(0.001, 100.0)
    assert size.elements(0, 2, None) == 640
    size.measure(0.0001, 1 << 20)
    assert size.elements(0, 2, None) == 20
    size.measure(0.1, 0.0)
    assert size.elements(0, 2, None) == 10
    counted = TaskSize(10, 64, 3000)
    counted.measure(0.0001, 1.0)
    assert [counted.elements(at, 2, None) for at in (0, 1500, 2400, 2990, 3100)] == [640, 370, 150, 10, 10]
    alone = TaskSize(10, 1, None)
    alone.measure(1e-9, 1.0)
    assert alone.elements(0, 2, None) == 10

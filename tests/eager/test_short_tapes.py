"""Records and signatures of tapes by machine code: the same as in Python, on drawn programs; what they leave to it."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.compiler.native import tape_calls
from opwright.eager import reverse_plans, short_calls
from opwright.ops import registry
from opwright.ops.autodiff import OpRecord

RNG = np.random.default_rng(11)
UNARY = (ow.tanh, ow.exp, ow.square, ow.negative, ow.abs, ow.sigmoid, ow.identity)
BINARY = (ow.add, ow.subtract, ow.multiply, ow.maximum, ow.matmul)
OTHERS = (
    lambda x: ow.reduce_sum(x, axis=0, keepdims=True),
    lambda x: ow.reshape(x, [int(x.shape[1]), int(x.shape[0])]),
    lambda x: ow.gather(x, [1, 0], axis=1),
    lambda x: ow.concat([x, x], 0)[:2],
    lambda x: ow.matmul(x, x, transpose_b=True)[:2, :2],
    lambda x: ow.cast(ow.cast(x, ow.float64), x.dtype),
    lambda x: x + ow.cast(x > 0.5, x.dtype),
    lambda x: ow.stop_gradient(x) * x,
)


@pytest.fixture(scope="module", autouse=True)
def _available() -> None:
    if tape_calls.make_tape_calls() is None:
        pytest.skip("this process reads no objects by machine code")


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(short_calls, "RECORDED", 1)
        yield


def _run(program: list[tuple[int, int, int]], values: list[Any], variable: Any) -> list[Any]:
    """Return the records of a program: lines (function, operand, operand), which may be any value before."""
    values = [*values, variable]
    with ow.GradientTape() as tape:
        tape.watch(values[0])
        for function, i, j in program:
            x, y = values[i % len(values)], values[j % len(values)]
            if function < len(UNARY):
                values.append(UNARY[function](x))
            elif function < len(UNARY) + len(BINARY):
                values.append(BINARY[function - len(UNARY)](x, y))
            else:
                values.append(OTHERS[function - len(UNARY) - len(BINARY)](ow.convert_to_tensor(x)))
    return tape._records


LINE = st.tuples(st.integers(0, len(UNARY) + len(BINARY) + len(OTHERS) - 1), st.integers(0, 20), st.integers(0, 20))
PROGRAM = st.lists(LINE, min_size=1, max_size=8)


def _values(dtype: Any = ow.float32, shape: tuple[int, int] = (2, 2)) -> list[Any]:
    return [ow.constant(RNG.standard_normal(shape), dtype) for _ in range(3)]


def _description(records: list[Any]) -> list[Any]:
    """Return the content of records, with tensors and identities numbered in the order of their first appearance."""
    numbers: dict[int, int] = {}

    def number(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return [number(y) for y in x]
        if x is None or isinstance(x, ow.Variable):
            return type(x).__name__
        identity = x._identity
        shape = x._shape if x is identity else x._array.shape
        kind = type(x).__name__, x.dtype.name, shape, None if x is not identity else x.source
        return kind, numbers.setdefault(id(identity), len(numbers))

    def keys(ids: Any) -> list[int]:
        return [numbers.setdefault(key, len(numbers)) for key in ids]

    rows = []
    for record in records:
        assert type(record) is OpRecord
        parts = [number(getattr(record, slot)) for slot in ("inputs", "outputs", "structure", "results")]
        rows.append([record.op, record.bound, *parts, keys(record.input_ids), keys(record.flowing)])
    return rows


def _without_recorders(program: Any, values: list[Any], variable: Any) -> list[Any]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(short_calls, "RECORDED", 1 << 60)
        built = [bound for op in registry.catalogue().values() for bound in op._bound.values()]
        for bound in built:
            monkeypatch.setattr(bound, "_recorder", False)
        return _run(program, values, variable)


@settings(max_examples=60, deadline=None)
@given(program=PROGRAM)
def test_records_match_python(program: list[tuple[int, int, int]]) -> None:
    variable = ow.Variable(RNG.standard_normal((2, 2)), dtype=ow.float32)
    for _ in range(3):  # recorders are built at the first, or before
        records = _run(program, _values(), variable)
    expected = _without_recorders(program, _values(), variable)
    assert _description(records) == _description(expected)
    called = [record.bound for record in records if record.op.profile.simple and record.op.profile.single]
    assert all(callable(bound._recorder) for bound in called if bound.operator.name != "ReadVariable")


@settings(max_examples=60, deadline=None)
@given(program=PROGRAM, other=PROGRAM, ends=st.lists(st.integers(0, 7), min_size=2, max_size=2))
def test_signatures_agree_with_python(program: Any, other: Any, ends: list[int]) -> None:
    variable = ow.Variable(RNG.standard_normal((2, 2)), dtype=ow.float32)
    by_machine, by_python = [], []
    tapes = [_run(one, _values(), variable) for one in (program, program, other)]
    tapes.append(_run(program, _values(ow.float64), ow.Variable(np.ones((2, 2)))))
    shared = _values()
    tapes.append(_run(program, [shared[0]] * 3, variable))
    function = short_calls.signature_function()
    assert function is not None
    for records in tapes:
        if not records:
            continue
        target = records[ends[0] % len(records)].outputs[0]
        source = records[ends[1] % len(records)].inputs[0]
        for sources in ([id(source)], [0, id(source)], [id(source), id(target)]):
            start = {id(target): ow.constant(1.0)}
            words = function(records, [*start, *sources])
            assert words is not None
            by_machine.append(words)
            by_python.append(reverse_plans._signature_by_python(records, start, sources, ()))
    for i in range(len(by_machine)):
        for j in range(i):
            assert (by_machine[i] == by_machine[j]) == (by_python[i] == by_python[j])


def test_signatures_with_the_elements_of_integers_and_long_tapes() -> None:
    function = short_calls.signature_function()
    assert function is not None
    x = ow.ones([40])

    def tape_of(indices: Any, times: int = 1) -> list[Any]:
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.gather(x, indices)
            for _ in range(times):
                y = y + y
        return tape._records

    short = [function(tape_of(ow.constant(indices)), []) for indices in ([1, 2], [2, 1], [1, 2])]
    assert short[0] == short[2] != short[1]
    long = [function(tape_of(ow.constant(np.arange(17) * k)), []) for k in (1, 2)]
    assert long[0] == long[1]
    assert function(tape_of([3], 255), []) is not None
    records = tape_of([3], 5000)
    assert function(records, []) is None  # more than it has room for
    assert function([], []) is None
    assert function([object()], []) is None
    assert function(records[:2], [id(x)], 1) is None  # type: ignore[call-arg]  # another number of arguments


def test_declined_records() -> None:
    x, y = ow.ones([2]), ow.ones([2])
    for _ in range(3):
        with ow.GradientTape() as tape:
            tape.watch(x)
            z = x + y
    recorder = registry.get("Add").default_call()._recorder
    live, records = tape._live, tape._records
    assert len(records) == 1
    fresh = ow.ones([2])
    assert recorder(live, records, (fresh, fresh), (z,)) is True  # which the tape does not follow
    assert recorder(live, records, (x, fresh), (z,)) is False
    assert recorder(live, records, (x, 1.0), (z,)) is None
    assert recorder(live, records, [x, y], (z,)) is None
    assert recorder(live, records, (x, y), (1.0,)) is None
    assert recorder(live, records, (x, y), (x > y,)) is None
    assert recorder(live, records, (x,), (z,)) is None
    assert recorder(live, records) is None
    assert len(records) == 1
    with pytest.raises(IndexError):
        recorder(live, records, (x, y), ())
    with pytest.raises(SystemError):
        recorder(records, records, (x, y), (z,))


def test_references_are_balanced() -> None:
    add = registry.get("Add")
    bound = add.default_call()

    def step() -> None:
        x, y = ow.ones([3]), ow.ones([3])
        with ow.GradientTape() as tape:
            tape.watch(x)
            z = ow.tanh(ow.add(x, y))
        tape.gradient(z, [x, y])

    for _ in range(100):
        step()
    gc.collect()
    counted = (add, bound, ow.float32, None, True, False, EMPTY)
    before = [sys.getrefcount(x) for x in counted], len(gc.get_objects())
    for _ in range(500):
        step()
    gc.collect()
    after = [sys.getrefcount(x) for x in counted], len(gc.get_objects())
    assert all(abs(a - b) < 100 for a, b in zip(before[0], after[0], strict=True))
    assert abs(after[1] - before[1]) < 100

    x = ow.ones([3])
    with ow.GradientTape() as tape:
        tape.watch(x)
        z = ow.add(x, x)
    gone = weakref.ref(z)
    del z
    assert gone() is None  # the gradient of a sum reads no elements
    assert len(tape._records) == 1


EMPTY = ()


def test_threads_with_tapes_of_their_own() -> None:
    shared = [ow.constant(RNG.standard_normal((3, 3))) for _ in range(2)]
    wrong: list[str] = []

    def work(k: int) -> None:
        scale = ow.constant(float(k), ow.float64)
        for _ in range(200):
            x = ow.constant(np.full((3, 3), k + 1.0))
            with ow.GradientTape() as tape:
                tape.watch(x)
                y = ow.tanh(ow.matmul(x, shared[0]) + shared[1]) * scale
            grad = tape.gradient(y, x).numpy()
            z = np.full((3, 3), k + 1.0) @ shared[0].numpy() + shared[1].numpy()
            expected = k * (1 - np.tanh(z) ** 2) @ shared[0].numpy().T
            if not np.allclose(grad, expected, rtol=1e-10, atol=1e-12):
                wrong.append(f"thread {k}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong

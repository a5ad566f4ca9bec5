"""TensorList against Python's lists: every version keeps what it was, whatever was made of it since.

Lives here: persistence, costs, threads, memory.  Not here: the operators (cases_lists.py).
"""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.core import dtypes
from opwright.core.errors import InvalidArgumentError
from opwright.core.shapes import TensorShape
from opwright.ops.tensor_list import TensorList
from thorough import examples

SCALAR = TensorShape(())
steps = st.lists(
    st.tuples(
        st.sampled_from(["set", "push", "pop", "grow", "shrink", "unset", "read", "read all", "add"]),
        st.integers(0, 10**6),  # which version, counted from the newest
        st.integers(0, 10**6),  # which element
    ),
    max_size=60,
)


def of(number: float) -> np.ndarray:
    return np.array(number, np.float64)


@settings(max_examples=examples(200))
@given(steps, st.integers(0, 6), st.booleans(), st.booleans())
def test_every_version_stays(program: Any, length: int, recent: bool, packed: bool) -> None:
    """A program on versions picked anywhere in the history; Python lists, copied, say what each one is."""
    versions = [(TensorList(length, dtypes.float64, SCALAR), [None] * length)]
    if packed:
        numbers = np.arange(float(length))
        versions = [(TensorList.of_array(numbers, dtypes.float64, SCALAR), list(numbers))]
    for n, (step, which, place) in enumerate(program):
        back = which % min(len(versions), 3 if recent else len(versions))
        result, model = versions[-1 - back]
        i = place % len(model) if model else 0
        if step in ("set", "unset", "read") and not model:
            continue
        if step == "set":
            versions.append((result.set(i, of(n)), [*model[:i], float(n), *model[i + 1 :]]))
        elif step == "unset":
            versions.append((result.unset_at([i]), [*model[:i], None, *model[i + 1 :]]))
        elif step == "push":
            versions.append((result.push(of(n)), [*model, float(n)]))
        elif step == "pop" and model:
            rest, item = result.pop()
            assert item == (model[-1] or 0.0)
            versions.append((rest, model[:-1]))
        elif step == "grow":
            versions.append((result.resize(len(model) + place % 4), model + [None] * (place % 4)))
        elif step == "shrink":
            versions.append((result.resize(i), model[:i]))
        elif step == "read":
            assert result.get(i) == (model[i] or 0.0)
        elif step == "read all":
            assert list(result.stack()) == [x or 0.0 for x in model]
        elif step == "add":
            other, others = next(v for v in reversed(versions) if len(v[1]) == len(model))
            sums = [None if a is None and b is None else (a or 0.0) + (b or 0.0) for a, b in zip(model, others)]
            versions.append((result.add(other), sums))
    for result, model in versions:
        assert result.length == len(model)
        assert result.elements() == model
        assert dict(result.items()) == {i: x for i, x in enumerate(model) if x is not None}


def written(n: int) -> tuple[TensorList, TensorList]:
    first = result = TensorList(n, dtypes.float64, SCALAR)
    for i in range(n):
        result = result.set(i, of(i))
    return first, result


@pytest.mark.slow
def test_a_long_history_goes_without_recursion() -> None:
    first, last = written(100_000)
    assert last.get(5) == 5
    del last
    gc.collect()
    assert first.get(5) == 0.0
    del first
    gc.collect()


def test_what_nobody_holds_is_let_go() -> None:
    """Overwriting one element again and again keeps no old value, unless an old version is held."""

    class Watched(np.ndarray):
        pass

    result = TensorList(1, dtypes.float64)
    kept = []
    for i in range(50):
        value = np.full([1000], float(i)).view(Watched)
        kept.append(weakref.ref(value))
        result = result.set(0, value)
        del value
    gc.collect()
    assert sum(r() is not None for r in kept) <= 1
    assert result.get(0)[0] == 49.0


def seconds(function: Any) -> float:
    """Return the least processor time of this thread: other processes do not count."""
    best = float("inf")
    for _ in range(3):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    return best


def alternating(n: int) -> None:
    """The first version is read, and written to, between the writes to the newest."""
    first, result = written(n)
    for i in range(n):
        result = result.set(i, of(1))
        assert first.get(i) == 0.0
        first.set(0, of(2))


def backwards(n: int) -> None:
    versions = [TensorList(n, dtypes.float64, SCALAR)]
    for i in range(n):
        versions.append(versions[-1].set(i, of(i)))
    for i in range(n, 0, -1):
        assert versions[i].get(i - 1) == i - 1


def sums_of_one(n: int) -> None:
    zero = TensorList(n, dtypes.float64, SCALAR)
    total = zero
    for i in range(n):
        total = total.add(zero.zeros_like().set(i, of(1)))
    assert total.count() == n


@pytest.mark.parametrize("program", [written, alternating, backwards, sums_of_one], ids=lambda p: p.__name__)
def test_costs_grow_with_the_number_of_steps(program: Any) -> None:
    """Eight times the steps take about eight times as long, not sixty-four."""
    program(100)
    assert seconds(lambda: program(8000)) < 30 * seconds(lambda: program(1000))


def test_threads_may_share_a_list() -> None:
    _, shared = written(64)
    failures: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        mine = shared
        try:
            for _ in range(800):
                i = int(rng.integers(64))
                assert shared.get(i) == i
                mine = mine.set(i, of(-seed - 1))
                assert mine.get(i) == -seed - 1
                assert shared.get(i) == i
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert shared.elements() == list(range(64))


def test_pickles_and_copies() -> None:
    _, result = written(3)
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert other.elements() == [0.0, 1.0, 2.0]
        assert other.length == 3
        assert other.element_shape == SCALAR


def test_lists_of_lists() -> None:
    _, inner = written(2)
    outer = TensorList(3, dtypes.variant).set(1, inner)
    assert outer.get(1) is inner
    nothing = outer.get(0)
    assert nothing.add(inner) is inner
    assert inner.add(nothing) is inner
    twice = outer.add(outer)
    assert twice.get(1).elements() == [0.0, 2.0]
    with pytest.raises(InvalidArgumentError, match="handles"):
        outer.stack()


def test_sum_of_nothing_is_a_list_of_any_length() -> None:
    nothing = TensorList.nothing()
    rest, item = nothing.pop()
    assert rest is nothing
    assert item.length == 0
    assert nothing.zeros_like().add(nothing).length == 0

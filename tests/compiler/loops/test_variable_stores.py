"""Values that variables keep: computed in their memory where that is safe, and right wherever they are copied."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from opwright.compiler.loops.buffers import Buffer, IndexMap, SameMemory
from opwright.compiler.loops.expressions import apply, arg
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.indexing_ops import Gather
from opwright.compiler.loops.ops import LoopOp, Map, Move, Store, View
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.loops.plans import LoopPlan
from opwright.compiler.native.executor import StepFailed
from opwright.core.dtypes import float32, int32

X, V, W = Buffer("x", float32, (4,)), Buffer("v", float32, (4,)), Buffer("w", float32, (4,))


def made(name: str, shape: tuple[int, ...] = (4,)) -> Buffer:
    return Buffer(name, float32, shape)


def after(variable: Buffer) -> Buffer:
    return SameMemory(variable.name, float32, variable.shape, of=variable)


def added(output: Buffer, *operands: Buffer) -> Map:
    return Map(output, operands, apply("add", *(arg(i, float32) for i in range(2))))


def kept(plan: LoopGraph, arrays: dict[Buffer, np.ndarray]) -> LoopPlan:
    """Run a graph on arrays, which hold what it leaves there."""
    made = plan_of(plan)
    made.pack()
    running = made.bind()
    running.connect({b: a.__array_interface__["data"][0] for b, a in arrays.items()})
    running.run()
    return made


def graph(*forms: LoopOp, inputs: tuple[Buffer, ...] = (X, V, W), outputs: tuple[Buffer, ...] = ()) -> LoopGraph:
    return LoopGraph("g", inputs, (*outputs, *(f.output for f in forms if isinstance(f, Store))), forms)


def values() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.float32([1, 2, 3, 4]), np.float32([10, 20, 30, 40]), np.float32([5, 6, 7, 8])


def test_element_by_element_over_the_old_value() -> None:
    x, v, w = values()
    s = made("s")
    plan = kept(graph(added(s, V, X), Store(after(V), s)), {X: x, V: v, W: w})
    assert v.tolist() == [11, 22, 33, 44]
    assert (len(plan.steps), plan.arena) == (1, 0)


def test_a_shifted_value_is_no_element_by_element_one() -> None:
    """The last three of the variable, and one new: written in place, a step could read what it wrote."""
    x, v, w = values()
    shifted = made("s")
    boxes = IndexMap((1,), (3,), 0, (1,)), IndexMap((0,), (1,), 3, (1,))
    plan = kept(graph(Move(shifted, (V, X), boxes), Store(after(V), shifted)), {X: x, V: v, W: w})
    assert v.tolist() == [4, 10, 20, 30]
    assert plan.arena > 0


def test_a_value_without_further_readers_gets_the_new_one_without_a_copy() -> None:
    x, v, w = values()
    s, t = made("s"), made("t")
    plan = kept(graph(added(s, V, X), added(t, s, s), Store(after(V), t)), {X: x, V: v, W: w})
    assert v.tolist() == [22, 44, 66, 88]
    assert len(plan.steps) == 2


def test_a_value_that_is_read_later_waits() -> None:
    x, v, w = values()
    s, y = made("s"), made("y")
    result = np.zeros(4, np.float32)
    kept(graph(added(s, V, X), added(y, s, V), Store(after(V), s), outputs=(y,)), {X: x, V: v, W: w, y: result})
    assert v.tolist() == [11, 22, 33, 44]
    assert result.tolist() == [21, 42, 63, 84]


def test_values_that_change_places() -> None:
    x, v, w = values()
    a, b = made("a"), made("b")
    kept(graph(View(a, V), View(b, W), Store(after(V), b), Store(after(W), a)), {X: x, V: v, W: w})
    assert v.tolist() == [5, 6, 7, 8]
    assert w.tolist() == [10, 20, 30, 40]


def test_one_value_for_two_and_inputs_and_itself() -> None:
    x, v, w = values()
    s = made("s")
    kept(graph(added(s, X, X), Store(after(V), s), Store(after(W), s)), {X: x, V: v, W: w})
    assert v.tolist() == w.tolist() == [2, 4, 6, 8]
    kept(graph(Store(after(V), X), Store(after(W), W)), {X: x, V: v, W: w})
    assert v.tolist() == [1, 2, 3, 4]
    assert w.tolist() == [2, 4, 6, 8]


def test_before_a_guard_nothing_is_kept() -> None:
    x, v, w = values()
    s, y, places = made("s"), made("y", (2,)), Buffer("i", int32, (2,))
    program = graph(added(s, V, X), Gather(y, W, places, 0), Store(after(V), s), inputs=(X, V, W, places), outputs=(y,))
    actual = np.zeros(2, np.float32)
    for index, expected in ((9, [10, 20, 30, 40]), (3, [11, 22, 33, 44])):
        at = np.int32([0, index])
        with pytest.raises(StepFailed) if index == 9 else contextlib.nullcontext():
            kept(program, {X: x, V: v, W: w, places: at, y: actual})
        assert v.tolist() == expected
    assert actual.tolist() == [5, 8]

"""Plans: memory that buffers share, constants packed once, what runs where no kernel does a form, errors."""

import itertools

import numpy as np
import pytest
from loop_semantics import meaning

from opwright.compiler import kernels
from opwright.compiler.kernels import NoKernel
from opwright.compiler.kernels.maps import map_elements
from opwright.compiler.language.compilation import FamilyCode
from opwright.compiler.loops import planner
from opwright.compiler.loops.buffers import Buffer, IndexMap
from opwright.compiler.loops.expressions import apply, arg
from opwright.compiler.loops.fusion import fused
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import LoopOp, Map, Move, View
from opwright.compiler.loops.planner import plan_of, plan_while_compiling
from opwright.compiler.loops.plans import word
from opwright.compiler.native import store
from opwright.compiler.native.executor import StepFailed
from opwright.core import flags
from opwright.core.dtypes import float32, float64, int64
from opwright.core.errors import InternalError

F = float32
rng = np.random.default_rng(5)


def buf(name, *shape, data=None):
    return Buffer(name, F, shape, data)


def neg(y, x, origin=()):
    return Map(y, (x,), apply("neg", arg(0, F)), origin=origin)


def chain(length, size=1000):
    """Maps that are not fused, one after the other."""
    buffers = [buf(f"b{i}", size) for i in range(length + 1)]
    forms = tuple(neg(y, x) for x, y in itertools.pairwise(buffers))
    return LoopGraph("chain", (buffers[0],), (buffers[-1],), forms)


def run(graph, plan, inputs, threads=1):
    plan.pack()
    running = plan.bind(threads)
    outs = [np.zeros(b.shape, b.dtype.np) for b in graph.outputs]
    running.connect({b: a.ctypes.data for b, a in zip((*graph.inputs, *graph.outputs), (*inputs, *outs))})
    running.run()
    return outs


def check(graph, plan=None):
    inputs = [rng.normal(size=b.shape).astype(np.float32) for b in graph.inputs]
    result = run(graph, plan_of(graph) if plan is None else plan, inputs)
    for a, b in zip(meaning(graph, inputs), result, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-6)


def test_a_chain_works_in_one_buffer_or_two():
    graph = chain(9)
    plan = plan_of(graph)
    assert plan.arena <= 2 * 4032
    assert plan.unshared == 8 * 4000
    check(graph, plan)


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """The plans of a process that has compiled nothing."""
    plans = []
    monkeypatch.setattr(planner, "plan_of", lambda *args: plans.append(plan_of(*args)) or plans[-1])
    monkeypatch.setattr(store, "_loaded", {})
    monkeypatch.setattr(map_elements, "_codes", {})
    with flags.override(cache_dir=str(tmp_path)):
        yield plans


def test_one_plan_suffices_while_its_kernels_are_compiled(planned):
    graph = chain(3)
    plan = plan_while_compiling(graph)
    assert planned == [plan]
    assert all(step.code.address for step in plan.steps)
    check(graph, plan)


def test_an_address_that_is_read_too_early_takes_another_plan(planned, monkeypatch):
    def select(op, builder):
        kernels.select(op, builder)
        step = builder.steps[-1]
        early = FamilyCode(0 if not planned else step.code.address, step.code.name, step.code.parameters)
        builder.steps[-1] = step._replace(code=early)

    monkeypatch.setattr(planner, "select", select)
    graph = chain(2)
    plan = plan_while_compiling(graph)
    assert len(planned) == 2
    assert plan is planned[1]
    check(graph, plan)


def test_views_take_no_step_and_no_memory():
    x, a, v, y = buf("x", 4, 6), buf("a", 4, 6), buf("v", 24), buf("y", 24)
    graph = LoopGraph("views", (x,), (y,), (neg(a, x), View(v, a), neg(y, v)))
    plan = plan_of(graph)
    assert len(plan.steps) == 2
    assert plan.arena <= 128
    check(graph, plan)


@pytest.mark.parametrize("between", [True, False])
def test_a_view_that_is_the_result_is_written_in_place(between):
    x, a, y = buf("x", 4, 6), buf("a", 4, 6), buf("y", 24)
    forms = (neg(a, x), View(y, a)) if between else (View(y, x),)
    graph = LoopGraph("result", (x,), (y,), forms)
    plan = plan_of(graph)
    assert len(plan.steps) == 1
    assert plan.arena == 0
    check(graph, plan)


def test_two_results_that_are_one():
    x, a, y, z = buf("x", 4, 6), buf("a", 4, 6), buf("y", 24), buf("z", 6, 4)
    check(LoopGraph("twice", (x,), (y, z), (neg(a, x), View(y, a), View(z, a))))


def test_parts_of_a_concatenation_share_its_memory():
    x, a, b, c, y = buf("x", 3, 4), buf("a", 3, 4), buf("b", 3, 4), buf("c", 3, 8), buf("y", 3, 8)
    boxes = tuple(IndexMap((0, at), (3, 4), 0, (4, 1)) for at in (0, 4))
    graph = LoopGraph(
        "concat", (x,), (y,), (neg(a, x), Map(b, (x,), apply("abs", arg(0, F))), Move(c, (a, b), boxes), neg(y, c))
    )
    after, apart = fused(graph)
    plan = plan_of(after, parts_of=apart)
    assert plan.arena <= 128
    inputs = [rng.normal(size=(3, 4)).astype(np.float32)]
    np.testing.assert_array_equal(run(after, plan, inputs)[0], meaning(graph, inputs)[0])


def test_constants_of_one_key_are_packed_once():
    w = rng.normal(size=7).astype(np.float32)
    packed = []

    def fill(out):
        packed.append(1)
        out[:] = w

    from opwright.compiler.loops.plan_builder import Builder

    build = Builder()
    a, b = (build.packed((7,), "f4", fill, key=("test", w)) for _ in range(2))
    c = build.packed((7,), "f4", fill, key=("test", w[:0]))
    assert a == b
    assert a != c
    assert len(build.constants) == 2
    mark = build.mark()
    build.constant(w, key="more")
    build.rewind(mark)
    assert len(build.constants) == 2
    assert not packed


@pytest.fixture
def picky(monkeypatch):
    """A selector of maps that refuses all whose expression has more than one operation."""

    def refuse(form, build):
        if any(e.args for e in form.expr.args):
            raise NoKernel("too much")
        raise NoKernel("not mine")

    first = kernels.selectors_of(Map)
    monkeypatch.setattr(
        kernels,
        "selectors_of",
        lambda kind: [
            lambda form, build: refuse(form, build) if any(e.args for e in form.expr.args) else first[0](form, build)
        ],
    )


def test_what_no_kernel_does_runs_in_its_parts(picky):
    graph = chain(3, 20)
    after, apart = fused(graph)
    assert len(after.ops) == 1
    plan = plan_of(after, parts_of=apart)
    assert len(plan.steps) == 3
    check(graph, plan)


def test_all_forms_without_a_kernel_are_named(picky):
    x, y, z = buf("x", 3), buf("y", 3), buf("z", 3)
    deep = apply("neg", apply("abs", arg(0, F)))
    forms = Map(y, (x,), deep, origin=("NEG 4",)), neg(z, y)
    with pytest.raises(NoKernel, match="too much") as caught:
        plan_of(LoopGraph("deep", (x,), (z,), forms))
    assert [form.origin for form in caught.value.ops] == [("NEG 4",)]


def test_a_form_without_maker():
    class Odd(LoopOp):
        pass

    with pytest.raises(NoKernel, match="there is no selector of Odd"):
        plan_of(LoopGraph("odd", (), (b := buf("y", 1),), (Odd(b),)))


def test_the_text_says_steps_and_sizes():
    text = str(plan_of(LoopGraph("g", (x := buf("x", 40),), (y := buf("y", 40),), (neg(y, x, ("NEG 7",)),))))
    first, second = text.splitlines()
    assert first.startswith("plan of g: 1 steps, arena 0 B (0 B unshared), constants 0 B, scratch ")
    assert "[x]" in second
    assert "[y]" in second
    assert second.endswith("# NEG 7")


def test_words_of_numbers():
    assert word(1.5, float32) == 0x3FC00000
    assert word(-2, int64) == -2
    assert word(7.0, None) == 7
    assert np.array(word(-1.5, float64)).view(np.float64) == -1.5
    with pytest.raises(InternalError, match="integer parameter"):
        word(1.5, int64)


def test_a_failed_guard_names_the_operator():
    error = StepFailed.of(neg(buf("y", 3), buf("x", 3), ("GATHER 3", "RELU 4")), "gather", 2)
    assert "GATHER 3 + RELU 4" in str(error)
    assert "gather gave 2" in str(error)


def test_times_by_step():
    graph = chain(4)
    plan = plan_of(graph)
    plan.pack()
    running = plan.bind()
    x, y = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    running.connect({graph.inputs[0]: x.ctypes.data, graph.outputs[0]: y.ctypes.data})
    times = running.profile()
    assert [(s.op, s.name) for s, _ in times] == [(s.op, s.code.name) for s in plan.steps]
    assert all(seconds >= 0 for _, seconds in times)

"""Whatever way a choice takes, the result is the form's: integers to the bit, floats within their rounding."""

import numpy as np
import pytest
from choice_forms import FORMS, drawn, graph_of
from foreign import on_here
from loop_semantics import meaning

from opwright.compiler.loops.fusion import fused
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.native import store
from opwright.compiler.tuning.autotuner import questions_of
from opwright.compiler.tuning.choices import CHOICES, answering
from opwright.core import flags


def test_every_choice_has_forms():
    assert set(FORMS) == set(CHOICES)


def planned(graph, question, way):
    with answering({question.key: way}):
        after, apart = fused(graph)
        plan = plan_of(after, parts_of=apart)
    plan.pack()
    return plan


def run(plan, x):
    (inputs,), (out,) = plan.graph.inputs, plan.graph.outputs
    y = np.full(out.shape, 77, out.dtype.np)
    running = plan.bind()
    running.connect({inputs: x.ctypes.data, out: y.ctypes.data})
    running.run()
    return y


def described(plan):
    """Return the kernels of a plan, their work items and their arguments."""
    return [(s.code.address, s.items, [w for w in s.words if isinstance(w, int)]) for s in plan.steps]


@pytest.mark.parametrize(("name", "target"), on_here(sorted(FORMS)))
def test_ways_agree(name, target):
    with flags.override(target=target):
        graph = graph_of(FORMS[name]())
        (question,) = (q for q in questions_of(graph) if q.choice.name == name)
        assert len(question.sizes) == len(CHOICES[name].sizes)
        assert question.default in question.ways
        assert len(question.ways) > 1
        x = drawn(graph.inputs[0].dtype, *graph.inputs[0].shape)
        (right,) = meaning(graph, [x])
        plans = {way: planned(graph, question, way) for way in question.ways}
        result = {way: run(plan, x) for way, plan in plans.items()}
    distinct = {str(described(plan)) for plan in plans.values()}
    assert len(distinct) > 1, "ways that are the same"
    for way, y in result.items():
        if y.dtype == np.float32:
            assert np.abs(y - right).max() <= 1e-4 * right.std(), way
        else:
            np.testing.assert_array_equal(y, result[question.default])
            assert np.abs(y.astype(int) - right).max() <= 1, way


def test_asking_compiles_nothing(monkeypatch):
    """Questions are known from sizes alone."""

    def refuse(*_):
        raise AssertionError("a kernel is looked for")

    monkeypatch.setattr(store, "_loaded", {})
    monkeypatch.setattr(store, "_load", refuse)
    for name, forms in FORMS.items():
        assert name in {q.choice.name for q in questions_of(graph_of(forms()))}


def test_an_answer_that_is_no_way_is_not_taken():
    graph = graph_of(FORMS["few_rows_f32"]())
    (question,) = questions_of(graph)
    assert described(planned(graph, question, 5)) == described(planned(graph, question, question.default))

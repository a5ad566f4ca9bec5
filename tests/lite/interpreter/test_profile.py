"""Interpreter.profile: rows, sums, subgraphs that nodes run, memory; and that nothing of it stays behind."""

from __future__ import annotations

import time

import numpy as np
import pytest
from lite_kit import Build

import opwright as ow
from opwright import lite

MEGABYTE = 1 << 20


def slow_and_large(context, node):
    time.sleep(0.002)
    scratch = np.ones(MEGABYTE, np.uint8)
    node.outputs[0].data[...] = node.inputs[0].data + np.float32(scratch[0])


SLOW = lite.Registration(prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape), invoke=slow_and_large)


def ready(content, **settings):
    interpreter = lite.Interpreter(model_content=content, **settings)
    interpreter.allocate_tensors()
    return interpreter


def loop(turns):
    @ow.function(input_signature=[ow.TensorSpec([4], ow.float32)])
    def f(x):
        for _ in ow.range(turns):
            x = ow.tanh(x) * 0.5
        return x

    return lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f).convert()


@pytest.fixture
def chain():
    content = Build().op("ADD", "x x", "a").custom("Slow", "a", "b").op("ADD", "b a", "y").done()
    return ready(content, custom_ops={"Slow": SLOW})


def test_rows_say_where_the_time_goes(chain):
    profile = chain.profile(3)
    assert [(r["node"], r["operator"], r["name"], r["calls"]) for r in profile] == [
        (0, "ADD", "a", 3),
        (1, "Slow", "b", 3),
        (2, "ADD", "y", 3),
    ]
    slow = profile[1]
    assert slow["share"] > 0.5
    assert 0.002 <= slow["fastest"] <= slow["seconds"] <= slow["slowest"]
    assert slow["bytes"] == 20
    assert profile[2]["cumulative"] == pytest.approx(1)
    kinds = profile.operators()
    assert [(r["operator"], r["count"], r["calls"]) for r in kinds] == [("Slow", 1, 3), ("ADD", 2, 6)]
    assert kinds[0]["average"] == slow["average"]


def test_memory_is_what_a_node_allocates(chain):
    assert [r["memory"] for r in chain.profile(1)] == [None] * 3
    profile = chain.profile(1, memory=True)
    assert MEGABYTE <= profile[1]["memory"] < 1.1 * MEGABYTE
    assert profile[0]["memory"] < 10_000
    assert profile.operators()[0]["memory"] == profile[1]["memory"]
    assert (
        profile.footprint.arena == chain._subgraphs[0].memory_usage.arena > 4 * 5 * 4
    )  # tensors of 5 float32, aligned


def test_nodes_of_loops_are_counted_by_subgraph():
    interpreter = ready(loop(5))
    profile = interpreter.profile(4, memory=True)
    (whole,) = [r for r in profile if r["operator"] == "WHILE"]
    counts = {(r["subgraph"], r["operator"]): r["calls"] for rows in profile.called.values() for r in rows}
    turns = {calls for (_, name), calls in counts.items() if name == "TANH"}
    assert turns == {4 * 5}
    assert {calls for (_, name), calls in counts.items() if name == "LESS"} == {4 * 6}
    inside = sum(r["average"] for rows in profile.called.values() for r in rows)
    assert inside < whole["average"]


def test_a_profile_leaves_nothing_behind():
    interpreter = ready(loop(3))
    x = np.float32([1, 2, 3, 4])
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.profile(2, memory=True)
    assert all(subgraph.observer is None for subgraph in interpreter._subgraphs)
    interpreter.invoke()
    expected = x.astype(np.float64)
    for _ in range(3):
        expected = np.tanh(expected) * 0.5
    actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(actual, expected, rtol=1e-6)

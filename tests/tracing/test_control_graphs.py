"""Graphs with control flow, ours alone: text, graphs without a recording, errors inside."""

import numpy as np
import pytest
from control_programs import power


@pytest.mark.ours
def test_graphs_with_control_flow_print_and_parse_back(tf):
    from opwright.graph import parse, same, text
    from opwright.ops import registry

    f = tf.function(lambda x, n: tf.cond(n > 2, lambda: power(tf, x, n), lambda: tf.sin(x)))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        f(x, tf.constant(3))
    graph = f.get_concrete_function(x, tf.constant(3)).graph
    again = parse(text(graph), registry.get)
    assert same(again, graph)
    from opwright.compiler.plan import Plan

    (y,) = Plan(again).run(np.float32(2.0), np.int32(5))
    assert y == 32.0


@pytest.mark.ours
def test_graphs_read_from_text_are_differentiated(tf):
    from opwright.graph import parse, text
    from opwright.ops import registry
    from opwright.tracing.control.body import of_graph
    from opwright.tracing.program import Program

    f = tf.function(lambda x, n: tf.cond(n > 2, lambda: power(tf, x, n), lambda: tf.sin(x)))
    graph = f.get_concrete_function(tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)).graph
    body = of_graph(parse(text(graph), registry.get))
    body.trace.inputs.extend(body.inputs)
    program = Program(body.trace, body.outputs)
    x = tf.constant(2.0)
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            (y,) = program.call([x, tf.constant(3)])
        dy = first.gradient(y, x)
    assert (y.numpy(), dy.numpy(), second.gradient(dy, x).numpy()) == (8.0, 12.0, 12.0)


@pytest.mark.ours
def test_errors_inside_a_branch_name_node_and_line(tf):
    @tf.function
    def f(x, i):
        return tf.cond(i >= 0, lambda: tf.gather(x, i), lambda: x[0])

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_control_graphs\.py"):
        f(tf.constant([1.0, 2.0]), tf.constant(5))


@pytest.mark.ours
def test_a_python_bool_chooses_while_tracing(tf):
    f = tf.function(lambda x: tf.cond(True, lambda: x, lambda: x * 2.0))
    assert f(tf.constant(3.0)).numpy() == 3.0


def test_shapes_that_were_stated_go_on_behind_branches_and_loops(tf):
    shapes = {}

    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec([2]), tf.TensorSpec([], tf.int32)])
    def f(x, y, n):
        def stated():
            z = x * 2.0
            z.set_shape([2])
            return z

        shapes["cond"] = tf.cond(n > 1, stated, lambda: y).shape
        shapes["scan"] = tf.cond(n > 1, lambda: tf.scan(lambda s, e: s * e, y, 1.0), lambda: y).shape
        shapes["map_fn"] = tf.cond(n > 1, lambda: y, lambda: tf.map_fn(lambda e: e * e, y)).shape
        while n > 0:
            n -= 1
            if n > 3:
                break
            y = tf.scan(lambda s, e: s * e, y, 2.0)
        return y

    assert f([1.0, 2.0], [1.0, 3.0], 1).numpy().tolist() == [2.0, 6.0]
    assert {k: s.as_list() for k, s in shapes.items()} == {"cond": [2], "scan": [2], "map_fn": [2]}

"""Rewriting one graph into another: operands, names, rollback, subgraphs, and groups of nodes by single ones."""

import numpy as np
import pytest
from graph_programs import F32, GraphAdd, GraphHold, GraphScale, GraphSplit, GraphTotal, GraphWrite, graphs, run
from hypothesis import given, settings

from opwright.core.errors import InvalidArgumentError
from opwright.core.specs import TensorSpec
from opwright.graph import Graph, GraphBuilder, GraphRewriter, same
from opwright.graph.builder import (
    GraphTransform,
    has_subgraphs,
    legal_name,
    map_subgraphs,
    refined,
    unique_name,
    use_counts,
    verify,
)
from opwright.graph.passes.rewrite_rules import NodeReplacement, splice
from thorough import examples

X = np.array([1.0, -3.0], np.float32)


def two_scales() -> Graph:
    b = GraphBuilder("g")
    x = b.input("x", F32)
    first = b.node(GraphScale, (x,), {"by": 2.0}, [F32], "first", at="a.py:1").outputs[0]
    second = b.node(GraphScale, (first,), {"by": 3.0}, [F32], "second", at="a.py:2").outputs[0]
    total = b.node(GraphTotal, ((first, second), second), {}, [F32], "total").outputs[0]
    b.node(GraphWrite, (second,), {"tag": 7}, [])
    return b.build([total, x])


def test_a_copy_shares_every_node_and_computes_the_same():
    g = two_scales()
    rewriter = GraphRewriter(g)
    for node in g.nodes:
        rewriter.copy(node)
    copied = rewriter.finish()
    assert copied is not g
    assert copied.nodes == g.nodes  # compared by identity: no operand changed
    assert same(copied, g)


def test_readers_of_a_replaced_value_are_created_again():
    g = two_scales()
    first, second, total, write = g.nodes
    rewriter = GraphRewriter(g)
    rewriter.copy(first)
    rewriter.begin(second)
    (fresh,) = rewriter.create(GraphAdd, (first.outputs[0], first.outputs[0])).outputs
    assert (fresh.name, fresh.node.at) == ("second/graphadd", "a.py:2")
    rewriter.replace(second, [fresh])
    rewriter.copy(total)
    rewriter.copy(write)
    new = rewriter.finish()
    verify(new)
    assert new.nodes[0] is first
    assert [v.name for v in new.nodes[2].operands] == ["first", "second/graphadd", "second/graphadd"]
    assert new.find("total") is not total
    (y, x), world = run(new, [X])
    np.testing.assert_array_equal(y, 2 * X + 4 * X + 4 * X)  # in real numbers: all are small integers
    np.testing.assert_array_equal(x, X)
    assert world == [(7, (4 * X).tobytes())]
    (y, _), _ = run(g, [X])
    np.testing.assert_array_equal(y, 2 * X + 6 * X + 6 * X)  # the source is as it was


def test_rollback_erases_what_the_context_created_and_no_more():
    g = two_scales()
    rewriter = GraphRewriter(g)
    rewriter.copy(g.nodes[0])
    rewriter.begin(g.nodes[1])
    rewriter.create(GraphScale, (g.inputs[0],), {"by": 5.0})
    assert [n.name for n in rewriter.created()] == ["second/graphscale"]
    rewriter.rollback()
    assert rewriter.nodes == [g.nodes[0]]
    assert rewriter.created() == []


def test_names_of_created_nodes_avoid_those_of_the_source():
    g = two_scales()
    rewriter = GraphRewriter(g)
    assert rewriter.unique("first") == "first_1"
    assert rewriter.unique("GraphWrite") == "GraphWrite_1"  # a node without outputs has a name, too
    clone = rewriter.clone(g.nodes[0], g.inputs, "loop")
    assert (clone.name, clone.outputs[0].name, clone.at) == ("loop/first", "loop/first", "a.py:1")
    rewriter.reserve_only(())
    assert rewriter.unique("first") == "first"
    for name, legal in [("1x", "_1x"), ("a b", "a_b"), ("return", "return_"), ("_", "__"), ("a/1.5@-", "a/1.5@-")]:
        assert legal_name(name) == legal
    taken = {"x", "x_1"}
    assert (unique_name("x", taken), unique_name("y", taken), unique_name("x", taken)) == ("x_2", "y", "x_3")


def test_inference_refuses_operands_that_the_operator_does_not_take():
    g = two_scales()
    rewriter = GraphRewriter(g)
    rewriter.begin(g.nodes[0])
    with pytest.raises(InvalidArgumentError, match="first"):
        rewriter.create(GraphAdd, (g.inputs[0], rewriter.input("n", TensorSpec([2], "int32"))))
    assert rewriter.created() == []


def test_types_are_refined_by_what_either_knows():
    rows = [
        ([None, 3], [2, None], [2, 3]),
        (None, [2], [2]),
        ([2], None, [2]),
        ([2], [3], [2]),  # contradiction: the first
    ]
    for first, second, merged in rows:
        result = refined(TensorSpec(first, "float32"), TensorSpec(second, "float32"))
        assert result.shape.as_list() == merged, (first, second)


def test_uses_are_counted_by_operand_and_output():
    g = two_scales()
    first, second, total, _ = (n.outputs[0] if n.outputs else None for n in g.nodes)
    assert use_counts(g) == {g.inputs[0]: 2, first: 2, second: 3, total: 1}


def test_graphs_that_nodes_share_are_changed_once_and_stay_shared():
    inner = two_scales()
    b = GraphBuilder("outer")
    for _ in range(2):
        b.node(GraphHold, (), {**GraphHold.bind({}).attrs, "anything": inner}, [])
    b.node(GraphHold, (), {**GraphHold.bind({}).attrs, "anything": (inner, two_scales())}, [])
    b.node(GraphHold, (), {**GraphHold.bind({}).attrs, "anything": (1, 2)}, [])
    g = b.build([])
    assert [has_subgraphs(n) for n in g.nodes] == [True, True, True, False]
    assert map_subgraphs(g.nodes[2], lambda held: held) is g.nodes[2]
    calls = []

    def transform(graph, inside):
        calls.append(graph)
        if graph is not g:
            return Graph("changed", graph.inputs, graph.nodes, graph.outputs)
        rewriter = GraphRewriter(graph)
        for node in graph.nodes:
            rewriter.insert(map_subgraphs(node, inside))
        return rewriter.finish()

    new = GraphTransform(transform)(g)
    first, second, pair, plain = new.nodes
    assert len(calls) == 3
    assert first.attrs["anything"].name == "changed"
    assert first.attrs["anything"] is second.attrs["anything"] is pair.attrs["anything"][0]
    assert pair.attrs["anything"][1] is not pair.attrs["anything"][0]
    assert plain is g.nodes[3]


def test_a_group_of_nodes_is_replaced_by_one():
    g = two_scales()
    _, second, total, _ = g.nodes
    b = GraphRewriter(g)
    six = b.node(GraphScale, g.inputs, {"by": 6.0}, [F32], "six")
    refusals = []
    replaced = splice(
        g, [NodeReplacement(six, {second}, {second.outputs[0]: 0})], lambda index, why: refusals.append((index, why))
    )
    verify(replaced)
    assert refusals == []
    assert [n.name for n in replaced.nodes] == ["first", "six", "total", "GraphWrite"]
    np.testing.assert_array_equal(run(replaced, [X])[0][0], 2 * X + 6 * X + 6 * X)
    circular = b.node(GraphTotal, ((total.outputs[0],), None), {}, [F32], "circular")
    left = splice(
        g, [NodeReplacement(circular, {second}, {second.outputs[0]: 0})], lambda index, why: refusals.append(index)
    )
    assert refusals == [0]
    assert same(left, g)


@settings(max_examples=examples(30))
@given(graphs())
def test_a_rewrite_of_every_node_means_the_same(g):
    """Nodes with two outputs are created again, and so are all that read them."""
    rewriter = GraphRewriter(g)
    for node in g.nodes:
        rewriter.begin(node)
        if node.op is GraphSplit:
            fresh = rewriter.insert(rewriter.remap(node.replaced(attrs=dict(node.attrs))))
            rewriter.replace(node, fresh.outputs)
        else:
            rewriter.copy(node)
    new = rewriter.finish()
    verify(new)
    assert same(new, g)
    arrays = [X for _ in g.inputs]
    for a, b in zip(run(new, arrays)[0], run(g, arrays)[0]):
        assert a.tobytes() == b.tobytes()

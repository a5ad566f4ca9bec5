"""The graph itself: builder, unique names, equality, what a valid one is."""

import numpy as np
import pytest
from graph_programs import F32, GraphAdd, GraphHold, GraphScale, GraphSplit, GraphTotal, GraphWrite, graphs
from hypothesis import given
from hypothesis import strategies as st

from opwright.core.errors import InternalError
from opwright.core.specs import TensorSpec
from opwright.graph import Graph, GraphBuilder, Node, Value, parse, same
from opwright.graph.builder import verify
from opwright.ops import registry


def small():
    b = GraphBuilder("small")
    x = b.input("x", F32)
    total = b.node(GraphTotal, ((x, x), None), {}, [F32], at="head.py:14")
    above, below = b.node(GraphSplit, total.outputs, {}, [F32, F32]).outputs
    b.node(GraphWrite, (above,), {"tag": 3}, [])
    return b.build([below, x])


def test_what_a_graph_is_made_of():
    g = small()
    assert [v.name for v in g.values()] == ["x", "GraphTotal", "GraphSplit", "GraphSplit.1"]
    total, split, write = g.nodes
    assert list(total.operands) == [g.inputs[0]] * 2
    assert split.outputs[1].node is split
    assert (split.outputs[1].index, split.outputs[1].dtype, split.outputs[1].shape) == (1, F32.dtype, F32.shape)
    assert g.inputs[0].node is None
    assert g.find("GraphWrite") is write
    with pytest.raises(KeyError, match="it has GraphTotal, GraphSplit, GraphWrite"):
        g.find("x")
    assert repr(g) == "<Graph small: 1 inputs, 3 nodes, 2 outputs>"
    assert repr(split) == "GraphSplit: f32[2], GraphSplit.1: f32[2] = GraphSplit(GraphTotal)"
    assert repr(write) == "GraphWrite = GraphWrite(GraphSplit)"
    with pytest.raises(TypeError):
        split.attrs["new"] = 1


NAMES = ["x", "x_1", "x.1", "x_1_1", "y", "x", "1x", "a b", "a_b", "", "_", "return", "é", "nan"]


@given(st.lists(st.sampled_from(NAMES)))
def test_names_are_unique_and_parse(wanted):
    b = GraphBuilder("<lambda>")
    for i, name in enumerate(wanted):
        if i % 2:
            b.node(GraphSplit, (b.input(name, F32),), {}, [F32, F32], name)
        else:
            b.node(GraphWrite, (b.input(name, F32),), {"tag": i}, [], name)
    g = b.build([n.outputs[-1] for n in b.nodes if n.outputs])
    verify(g)
    assert same(parse(str(g), registry.get), g)


def test_names_are_kept_where_they_can_be():
    b = GraphBuilder("g")
    names = ["x", "layer/x", "x", "x", "x_1", "my node", "2d"]
    assert [b.unique(n) for n in names] == ["x", "layer/x", "x_1", "x_2", "x_1_1", "my_node", "_2d"]


@given(graphs(), graphs())
def test_same_is_equality_of_texts(a, b):
    assert same(a, a)
    assert same(a, b) == (str(a) == str(b))


def change(**parts):
    """A one-node graph with something different in it."""
    b = GraphBuilder(parts.get("graph", "g"))
    x = b.input(parts.get("input", "x"), parts.get("spec", F32))
    y = b.input("y", F32)
    op = parts.get("op", GraphAdd)
    node = b.node(
        op,
        parts.get("inputs", lambda x, y: (x, y))(x, y),
        parts.get("attrs", {}),
        [F32],
        parts.get("name"),
        parts.get("at"),
    )
    return b.build([node.outputs[0]] * parts.get("outputs", 1))


@pytest.mark.parametrize(
    "parts",
    [
        {"graph": "h"},
        {"input": "z"},
        {"spec": TensorSpec([2], "float64")},
        {"spec": TensorSpec([None], "float32")},
        {"inputs": lambda x, y: (y, x)},
        {"inputs": lambda x, y: (x, None)},
        {"inputs": lambda x, y: (x, (y,))},
        {"attrs": {"a": 1}},
        {"name": "other"},
        {"outputs": 2},
        {"op": GraphTotal},
    ],
    ids=lambda p: next(iter(p)),
)
def test_what_makes_graphs_differ(parts):
    assert not same(change(), change(**parts))
    assert not same(change(**parts), change())
    assert same(change(**parts), change(**parts))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("a", b"a"),
        (np.float32([0.0]), np.float32([-0.0])),
        (np.float32([1.0]), np.float64([1.0])),
        (np.float32([1.0]), np.float32([[1.0]])),
        ((1,), (1.0,)),
        ((0.0,), (-0.0,)),
        (None, 0),
        (np.float32(1), 1.0),
    ],
    ids=repr,
)
def test_attributes_differ_by_type_and_bits(one, other):
    assert not same(change(attrs={"a": one}), change(attrs={"a": other}))


BY_BITS = [float("nan"), (float("nan"),), np.float32([np.nan]), np.array([b"x"], object)]


@pytest.mark.parametrize("value", BY_BITS, ids=repr)
def test_attributes_equal_by_bits(value):
    again = value.copy() if isinstance(value, np.ndarray) else eval(repr(value), {"nan": float("nan")})
    assert same(change(attrs={"a": value}), change(attrs={"a": again}))


def test_booleans_of_any_byte_but_0_are_true():
    """A file may store a boolean as any byte; its text says True."""
    value = np.uint8([0, 1, 2, 255]).view(bool)
    assert same(change(attrs={"a": value}), change(attrs={"a": np.array([False, True, True, True])}))
    assert not same(change(attrs={"a": value}), change(attrs={"a": np.array([True, True, True, True])}))


def test_where_a_node_comes_from_makes_no_difference():
    assert same(change(at="a.py:1"), change(at="b.py:2"))


def test_long_chains_do_not_recurse():
    b = GraphBuilder("chain")
    x = b.input("x", F32)
    for _ in range(3000):
        x = b.node(GraphAdd, (x, x), {}, [F32]).outputs[0]
    g = b.build([x])
    verify(g)
    assert same(parse(str(g), registry.get), g)
    assert len(repr(x)) < 100


def inner(outputs):
    return Graph("inner", [], [], outputs)


X, STRANGER = Value("x", F32), Value("stranger", F32)
SCALE = Node(GraphScale, (X,), {"by": 1.0}, [F32], "s")


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (Graph("g", [X, Value("x", F32)], [], []), "unique names: two values or nodes are named 'x'"),
        (Graph("g", [X], [Node(GraphScale, (X,), {}, [F32], "x")], []), "unique names"),
        (Graph("g", [X], [Node(GraphWrite, (X,), {}, [], "x")], []), "unique names"),
        (Graph("g", [X], [], [STRANGER]), "defined before use: output 'stranger' is not computed"),
        (
            Graph("g", [X], [Node(GraphScale, (STRANGER,), {}, [F32], "s")], []),
            "reads 'stranger' before it is computed",
        ),
        (
            Graph("g", [X], [Node(GraphScale, SCALE.outputs, {}, [F32], "t"), SCALE], []),
            "reads 's' before it is computed",
        ),
        (Graph("g", [X], [Node(GraphAdd, (X,), {}, [F32], "a")], []), "has 1 inputs, wanted 2"),
        (Graph("g", [], [Node(GraphHold, (), {"anything": inner([X])}, [], "h")], []), "graph 'inner' is not valid"),
        (Graph("g", [], [Node(GraphHold, (), {"anything": (inner([X]),)}, [], "h")], []), "graph 'inner' is not valid"),
    ],
    ids=range(9),
)
def test_what_is_not_valid(graph, words):
    with pytest.raises(InternalError, match="after some pass") as caught:
        verify(graph, after="some pass")
    assert words in str(caught.value)


@given(graphs())
def test_built_graphs_are_valid(graph):
    verify(graph)


def test_graphs_values_and_nodes_are_immutable():
    graph = small()
    for thing in (graph, graph.inputs[0], graph.nodes[1]):
        for attribute in ("name", "spec", "attrs", "inputs", "outputs", "nodes", "anything"):
            with pytest.raises(AttributeError, match="is immutable"):
                setattr(thing, attribute, ())


def test_a_node_in_the_place_of_another():
    graph = small()
    split, y = graph.nodes[1], graph.inputs[0]
    other = split.replaced(inputs=(y,))
    assert (other.name, other.at, other.op, other.inputs) == (split.name, split.at, split.op, (y,))
    assert [repr(v) for v in other.outputs] == [repr(v) for v in split.outputs]
    assert not set(other.outputs) & set(split.outputs)
    seen = split.with_operands((y,))
    assert (seen.inputs, seen.outputs) == ((y,), split.outputs)

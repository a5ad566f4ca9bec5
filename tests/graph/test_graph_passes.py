"""Passes: what each does to small graphs, and that none changes what a random graph means."""

import numpy as np
import pytest
from graph_programs import (
    F32,
    GraphAdd,
    GraphHold,
    GraphRead,
    GraphScale,
    GraphSplit,
    GraphTotal,
    GraphWrite,
    graphs,
    run,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.core import flags
from opwright.core.errors import InternalError, InvalidArgumentError
from opwright.core.specs import TensorSpec
from opwright.graph import GraphBuilder, parse, same, text
from opwright.graph.builder import verify
from opwright.graph.ir import Graph, Node, same_attr
from opwright.graph.passes import COMMON, FOLD, FOLD_LIMIT_BYTES, SIMPLIFY, dead_code, rewrite, run_passes
from opwright.ops import registry
from opwright.ops.array.constants import Const
from opwright.ops.attributes import Attr
from opwright.ops.definition import Input, Output, operator
from thorough import examples

PASSES = [SIMPLIFY, *([p] for p in SIMPLIFY), SIMPLIFY[::-1]]


@settings(max_examples=examples(200))
@given(graphs(), st.sampled_from(PASSES))
def test_meaning_stays(graph, passes):
    """Same outputs to the last bit, same effects in the same order."""
    arrays = [np.float32([1.5, -0.0]), np.float32([np.inf, 1e-40])]
    before = text(graph)
    outputs, told = run(graph, arrays)
    with flags.override(verify=True):
        after = run_passes(graph, passes)
    verify(after)
    new_outputs, new_told = run(after, arrays)
    assert told == new_told
    assert all(map(same_attr, outputs, new_outputs))
    assert text(graph) == before, "a pass changed its argument"
    assert [v.name for v in after.inputs] == ["x", "y"]
    assert same(parse(text(after), registry.get), after)


@given(graphs())
def test_a_second_time_there_is_nothing_to_do(graph):
    once = run_passes(graph)
    assert same(run_passes(once), once)


def build(body, inputs=("x", "y")):
    b = GraphBuilder("g")
    return b.build(body(b, *[b.input(n, F32) for n in inputs]))


def const(b, *numbers, dtype=np.float32):
    array = np.array(numbers, dtype)
    array.setflags(write=False)
    return b.node(Const, (), {"value": array}, [TensorSpec(array.shape, array.dtype)]).outputs[0]


def names(graph):
    return [n.op.name for n in graph.nodes]


def test_folding():
    def body(b, x, y):
        one = const(b, 1, 2)
        two = b.node(GraphScale, (one,), {"by": 3.0}, [F32], "scaled").outputs[0]
        split = b.node(GraphSplit, (two,), {}, [F32, F32], "split").outputs
        total = b.node(GraphTotal, (split, None), {}, [F32], "total").outputs[0]
        return [total, split[1], b.node(GraphAdd, (x, one), {}, [F32]).outputs[0]]

    folded, changes = rewrite(build(body), FOLD)
    assert names(folded) == ["Const", "Const", "Const", "Const", "Const", "GraphAdd"]
    assert [v.name for v in folded.outputs] == ["total", "split.1", "GraphAdd"]
    assert folded.outputs[0].constant.tolist() == [6.0, 12.0]
    assert folded.outputs[1].constant.tolist() == [2.0, 5.0]
    assert len(changes) == 3
    assert "fold_constants" in changes[0]
    with pytest.raises(ValueError, match="read-only"):
        folded.outputs[0].constant[0] = 1
    assert names(run_passes(build(body))) == ["Const", "Const", "Const", "GraphAdd"]


@operator
class GraphRefuse:
    """Fails for odd numbers."""

    x = Input(("float32",))
    z = Output(like="x")

    def compute(op, x):
        raise InvalidArgumentError(op="GraphRefuse", what="odd")


@operator
class GraphSpread:
    """A large tensor."""

    x = Input(("float32",))
    z = Output(like="x")
    n = Attr(int)

    def infer(op):
        return TensorSpec([op.n], "float32")

    def compute(op, x):
        return np.zeros(op.n, np.float32)


@pytest.mark.parametrize(
    ("op", "attrs", "specs"),
    [
        (GraphRefuse, {}, [F32]),
        (GraphSpread, {"n": FOLD_LIMIT_BYTES}, [TensorSpec([FOLD_LIMIT_BYTES], "float32")]),
        (GraphSpread, {"n": 3}, [TensorSpec([None], "float32")]),
        (GraphWrite, {"tag": 1}, []),
    ],
    ids=["an error is left to the run", "too large", "size not known", "effect"],
)
def test_what_is_not_folded(op, attrs, specs):
    def body(b):
        return b.node(op, (const(b, 1, 2),), attrs, specs).outputs

    graph = build(body, ())
    assert same(rewrite(graph, FOLD)[0], graph)


def test_merging():
    def body(b, x, y):
        a, c = (b.node(GraphAdd, (x, y), {}, [F32]).outputs[0] for _ in range(2))
        s, t = (b.node(GraphSplit, (v,), {}, [F32, F32]).outputs for v in (a, c))
        r, q = (b.node(GraphRead, (), {}, [F32]).outputs[0] for _ in range(2))
        return [a, c, s[0], t[1], r, q]

    merged = run_passes(build(body))
    assert names(merged) == ["GraphAdd", "GraphSplit", "GraphRead", "GraphRead"]
    assert merged.outputs[0] is merged.outputs[1]
    assert [v.name for v in merged.outputs[2:4]] == ["GraphSplit", "GraphSplit.1"]


@pytest.mark.parametrize(
    ("one", "other", "merge"),
    [
        (2.0, 2.0, True),
        (float("nan"), float("nan"), True),
        (0.0, -0.0, False),
        (1, True, False),
        (1, 1.0, False),
        ((0.0,), (-0.0,), False),
        ((1,), (True,), False),
        ((1, (2.0,)), (1, (2.0,)), True),
        (0j, complex(0, -0.0), False),
        ("a", b"a", False),
        (np.float32([0.0]), np.float32([-0.0]), False),
        (np.float32([1.0]), np.int32([1065353216]), False),
        (np.float32([[1.0]]), np.float32([1.0]), False),
        (np.float32([1.0]), np.float32([1.0]), True),
        ([1], [1], False),
    ],
    ids=repr,
)
def test_merging_goes_by_type_and_bits(one, other, merge):
    @operator(name="GraphHoldOne")
    class Hold:
        """Holds one attribute."""

        x = Input(("float32",))
        z = Output(like="x")
        value = Attr(object)

    def body(b, x):
        return [b.node(Hold, (x,), {"value": v}, [F32]).outputs[0] for v in (one, other)]

    merged, _ = rewrite(build(body, ("x",)), COMMON)
    assert (merged.outputs[0] is merged.outputs[1]) == merge


def test_dead_code_keeps_effects_and_what_they_read():
    def body(b, x, y):
        dead = b.node(GraphAdd, (x, x), {}, [F32], "dead").outputs[0]
        b.node(GraphAdd, (dead, dead), {}, [F32], "dead too")
        needed = b.node(GraphAdd, (x, y), {}, [F32], "needed").outputs[0]
        b.node(GraphWrite, (needed,), {"tag": 1}, [], "first")
        b.node(GraphRead, (), {}, [F32], "unused")
        b.node(GraphWrite, (x,), {"tag": 2}, [], "second")
        b.node(GraphHold, (), {}, [], "useless")
        return [y]

    kept, dropped = dead_code(build(body))
    assert [n.name for n in kept.nodes] == ["needed", "first", "second"]
    assert len(dropped) == 4
    assert len(kept.inputs) == 2


def test_changes_are_shown(capsys):
    def body(b, x, y):
        b.node(GraphAdd, (x, y), {}, [F32], "gone", "user.py:3")
        return [x]

    with flags.override(show="passes"):
        run_passes(build(body))
    out = capsys.readouterr().err
    assert "pass dead_code  1 -> 0 nodes" in out
    assert "user.py:3" in out


def test_a_pass_that_breaks_the_graph_is_named():
    def breaks(graph):
        stranger = Node(GraphAdd, graph.inputs * 2, {}, [F32], "stranger")
        return Graph(graph.name, graph.inputs, [], stranger.outputs), []

    with flags.override(verify=True), pytest.raises(InternalError, match="after breaks: defined before use"):
        run_passes(build(lambda b, x: [x], ("x",)), [("breaks", breaks)])

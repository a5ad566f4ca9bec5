"""Operators and programs that the graph tests are made of.

Lives here: a handful of operators with every kind of input, output and effect, a walk that runs a graph, a strategy
for random graphs.  Not here: the catalogue's operators (tests/ops).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from opwright.core import dtypes
from opwright.core.specs import TensorSpec
from opwright.graph import Graph, GraphBuilder
from opwright.ops.array.constants import Const
from opwright.ops.attributes import Attr
from opwright.ops.definition import Input, Output, operator

F32 = TensorSpec([2], "float32")


@operator
class GraphAdd:
    """x + y"""

    x = Input(dtypes.floating)
    y = Input(dtypes.floating, like="x")
    z = Output(like="x")
    elementwise = True
    compute = np.add


@operator
class GraphScale:
    """x by a number"""

    x = Input(dtypes.floating)
    z = Output(like="x")
    by = Attr(float, default=2.0)

    def compute(op, x) -> Any:
        return (x * np.float32(op.by)).astype(x.dtype)


@operator
class GraphSplit:
    """x + 1 and x - 1"""

    x = Input(dtypes.floating)
    above = Output(like="x")
    below = Output(like="x")

    def compute(op, x) -> Any:
        return x + x.dtype.type(1), x - x.dtype.type(1)


@operator
class GraphTotal:
    """Sum of several, and of one more where it is given."""

    xs = Input(dtypes.floating, repeated=True)
    more = Input(dtypes.floating, optional=True)
    z = Output(like="xs")

    def infer(op) -> Any:
        return F32

    def compute(op, xs, more) -> Any:
        return np.float32(0) + sum(xs, np.zeros(2, np.float32)) + (0 if more is None else more)


@operator
class GraphWrite:
    """Tell the world."""

    x = Input(dtypes.any_dtype)
    tag = Attr(int, default=0)
    effect = "write"

    def infer(op) -> Any:
        return ()

    def compute(op, x) -> Any:
        WORLD.append((op.tag, np.asarray(x).tobytes()))
        return ()


@operator
class GraphRead:
    """How much the world was told so far."""

    z = Output(dtype=dtypes.float32)
    effect = "read"

    def infer(op) -> Any:
        return F32

    def compute(op) -> Any:
        return np.full(2, len(WORLD), np.float32)


@operator
class GraphHold:
    """An attribute of every kind."""

    whole = Attr(int, default=None)
    real = Attr(float, default=None)
    yes = Attr(bool, default=None)
    words = Attr(str, default=None)
    raw = Attr(bytes, default=None)
    kind = Attr(dtypes.DType, default=None)
    sizes = Attr(type(F32.shape), default=None)
    array = Attr(np.ndarray, default=None)
    reals = Attr([float], default=None)
    anything = Attr(object, default=None)

    def infer(op) -> Any:
        return ()

    def compute(op) -> Any:
        return ()


WORLD: list[Any] = []


def run(graph: Graph, arrays: list[np.ndarray]) -> tuple[list[np.ndarray], list[Any]]:
    """The graph's outputs, and what it told the world."""
    WORLD.clear()
    values = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph.nodes:
        operands = [
            None if o is None else [values[v] for v in o] if isinstance(o, tuple) else values[o] for o in node.inputs
        ]
        bound = node.op.bind(dict(node.attrs))
        with np.errstate(all="ignore"):
            values.update(zip(node.outputs, node.op.compute(bound, operands), strict=True))
    return [values[v] for v in graph.outputs], list(WORLD)


NUMBERS = [0.0, -0.0, 1.0, 2.0, float("nan"), float("inf"), -1e30]


@st.composite
def graphs(draw: Any) -> Graph:
    """Programs of up to twenty nodes over two inputs, with repeated work, unused work and effects."""
    b = GraphBuilder("random")
    values = [b.input("x", F32), b.input("y", F32)]
    value = st.deferred(lambda: st.sampled_from(values))
    for _ in range(draw(st.integers(0, 20))):
        kind = draw(st.sampled_from(["const", "add", "scale", "split", "total", "write", "read"]))
        if kind == "const":
            array = np.array(draw(st.lists(st.sampled_from(NUMBERS), min_size=2, max_size=2)), np.float32)
            array.setflags(write=False)
            node = b.node(Const, (), {"value": array}, [F32])
        elif kind == "add":
            node = b.node(GraphAdd, (draw(value), draw(value)), {}, [F32])
        elif kind == "scale":
            node = b.node(GraphScale, (draw(value),), {"by": draw(st.sampled_from(NUMBERS))}, [F32])
        elif kind == "split":
            node = b.node(GraphSplit, (draw(value),), {}, [F32, F32], draw(st.sampled_from([None, "same", "same.1"])))
        elif kind == "total":
            xs = tuple(draw(st.lists(value, max_size=3)))
            node = b.node(GraphTotal, (xs, draw(st.one_of(st.none(), value))), {}, [F32])
        elif kind == "write":
            node = b.node(GraphWrite, (draw(value),), {"tag": draw(st.integers(0, 2))}, [])
        else:
            node = b.node(GraphRead, (), {}, [F32])
        values.extend(node.outputs)
    return b.build([draw(value) for _ in range(draw(st.integers(0, 3)))])

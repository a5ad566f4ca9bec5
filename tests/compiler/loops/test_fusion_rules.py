"""Each rule of fusion: what it makes of a graph, and that the graph means the same."""

import io
from contextlib import redirect_stderr

import numpy as np
import pytest
from loop_semantics import meaning

from opwright.compiler.loops.buffers import Buffer, IndexMap, Window
from opwright.compiler.loops.expressions import apply, arg, const, convert, quantize, scalar
from opwright.compiler.loops.fusion import PASSES, fused
from opwright.compiler.loops.graph import LoopGraph, verify
from opwright.compiler.loops.ops import Contract, Depthwise, Map, MatMul, Move, Pool, Reduce, View
from opwright.core import flags
from opwright.core.dtypes import float32, int8, int32

rng = np.random.default_rng(3)
F, I8, I32 = float32, int8, int32


def buf(name, *shape, dtype=F, data=None):
    if data is True:
        drawn = rng.normal(size=shape) if dtype is F else rng.integers(-120, 120, shape)
        data = drawn.astype(dtype.np)
    return Buffer(name, dtype, shape, data)


def relu(x):
    return apply("maximum", const(0.0, F), x)


def plus(i=0, j=1):
    return apply("add", arg(i, F), arg(j, F))


def step(value, zero=3, dtype=I8):
    return quantize(value, zero, dtype)


def real(i, scale, zero):
    return apply("mul", apply("sub", convert(arg(i, I8), F), scalar(zero, F)), scalar(scale, F))


SUM = arg(0, F)


def conv(y, x, *operands, expr=SUM, size=(1, 1), padding=(0, 0, 0, 0), zero=0, strides=(1, 1)):
    w = buf(f"w{y.name}", y.shape[-1], *size, x.shape[-1], dtype=x.dtype, data=True)
    return Contract(y, x, w, operands, expr, Window(size, strides, (1, 1), padding), 1, zero)


def strides_of(shape):
    return tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))


def padded(y, x, start, fill):
    return Move(y, (x,), (IndexMap(start, x.shape, 0, strides_of(x.shape)),), fill)


def joined(y, *parts):
    maps, at = [], 0
    for p in parts:
        maps.append(IndexMap((*(0,) * (len(y.shape) - 1), at), p.shape, 0, strides_of(p.shape)))
        at += p.shape[-1]
    return Move(y, parts, tuple(maps))


def graph_scalar():
    x, y = buf("x", 2, 3), buf("y", 2, 3)
    return LoopGraph("scalar", (x,), (y,), (Map(y, (x, buf("c", 1, data=True)), plus()),))


def graph_chain():
    x, r, a, y = (buf(n, 4, 5) for n in "xray")
    return LoopGraph("chain", (x, r), (y,), (Map(a, (x,), relu(arg(0, F))), Map(y, (a, r), plus())))


def graph_shared():
    """Buffers with two readers, and outputs, stay."""
    x, a, y, z = (buf(n, 4) for n in "xayz")
    forms = (Map(a, (x,), relu(arg(0, F))), Map(y, (a,), apply("neg", arg(0, F))), Map(z, (a, y), plus()))
    return LoopGraph("shared", (x,), (y, z), forms)


def graph_twice():
    """x * sigmoid(x)"""
    x, a, b, y = buf("x", 1, 2, 2, 3), *(buf(n, 1, 2, 2, 4) for n in "aby")
    forms = (conv(a, x), Map(b, (a,), apply("sigmoid", arg(0, F))), Map(y, (a, b), apply("mul", arg(0, F), arg(1, F))))
    return LoopGraph("twice", (x,), (y,), forms)


def graph_table():
    x, a, y = (buf(n, 2, 6, dtype=I8) for n in "xay")
    forms = (
        Map(a, (x,), step(apply("mul", apply("sigmoid", real(0, 0.05, 4)), scalar(256.0, F)), -128)),
        Map(y, (x, a), step(apply("mul", real(0, 0.05, 4), apply("mul", real(1, 1 / 256, -128), scalar(9.0, F))))),
    )
    return LoopGraph("table", (x,), (y,), forms)


def graph_table_within():
    """A function of a byte that meets another operand is a table within its expression."""
    x, r, a, y = (buf(n, 2, 6, dtype=I8) for n in "xray")
    total = apply("add", real(0, 0.1, 0), real(1, 0.2, 5))
    forms = (
        Map(a, (x,), step(apply("mul", apply("tanh", real(0, 0.05, 4)), scalar(100.0, F)))),
        Map(y, (a, r), step(apply("mul", total, scalar(3.0, F)))),
    )
    return LoopGraph("table_within", (x, r), (y,), forms)


def graph_residual():
    x, a, r, y = buf("x", 1, 4, 4, 3), buf("a", 1, 4, 4, 5), buf("r", 1, 4, 4, 5), buf("y", 1, 4, 4, 5)
    bias = apply("add", arg(0, F), arg(1, F))
    forms = (conv(a, x, buf("b", 5, data=True), expr=bias), Map(y, (r, a), relu(plus())))
    return LoopGraph("residual", (x, r), (y,), forms)


def graph_residual_int8():
    x, a, r, y = (buf(n, 1, 3, 3, c, dtype=I8) for n, c in (("x", 4), ("a", 5), ("r", 5), ("y", 5)))
    value = apply("mul", convert(apply("add", arg(0, I32), arg(1, I32)), F), arg(2, F))
    operands = buf("b", 5, dtype=I32, data=True), buf("m", 5, data=np.full(5, 0.004, np.float32))
    total = apply("mul", apply("add", real(0, 0.5, -3), real(1, 0.7, 3)), scalar(0.9, F))
    forms = (conv(a, x, *operands, expr=step(value), zero=-7), Map(y, (r, a), step(total, 2)))
    return LoopGraph("residual_int8", (x, r), (y,), forms)


def graph_channel():
    """A constant a channel, whatever its rank, and a broadcast one that is none."""
    x, a, b, y = buf("x", 1, 4, 4, 3), *(buf(n, 1, 4, 4, 5) for n in "aby")
    forms = (
        conv(a, x),
        Map(b, (a, buf("k", 1, 1, 1, 5, data=True)), plus()),
        Map(y, (b, buf("l", 4, 1, data=True)), plus()),
    )
    return LoopGraph("channel", (x,), (y,), forms)


def graph_view():
    x, a, v, y = buf("x", 6, 1, 1, 4), buf("a", 6, 1, 1, 5), buf("v", 6, 5), buf("y", 6, 5)
    return LoopGraph("view", (x,), (y,), (conv(a, x), View(v, a), Map(y, (v,), relu(arg(0, F)))))


def graph_view_of_product(y=(2, 3, 2, 5), bias=(2, 5)):
    """A bias and a sum under another shape than the product's."""
    a, b, r, c = buf("a", 6, 4), buf("b", 4, 10), buf("r", *y), buf("c", *bias)
    x, v, out = buf("x", 6, 10), buf("v", *y), buf("y", *y)
    total = apply("add", plus(), arg(2, F))
    forms = MatMul(x, a, b, (), SUM), View(v, x), Map(out, (v, c, r), total)
    return LoopGraph("view_of_product", (a, b, c, r), (out,), forms)


def graph_uniform():
    x, y, zeros = buf("x", 2, 3), buf("y", 2, 3), buf("c", 2, 3, data=np.full((2, 3), -0.0, np.float32))
    return LoopGraph("uniform", (x,), (y,), (Map(y, (x, zeros), plus()),))


def graph_filled():
    """Two maps read an array of one computed number, one of them under another shape; a third has no other array."""
    x, v, f, g, y, z, w = (
        buf("x", 2, 3),
        buf("v", 1),
        buf("f", 6),
        buf("g", 2, 3),
        buf("y", 2, 3),
        buf("z", 6),
        buf("w", 6),
    )
    k = buf("k", 6)
    forms = (
        Move(f, (v,), (IndexMap((0,), (6,), 0, (0,)),)),
        View(g, f),
        Map(y, (x, g), plus()),
        Map(z, (f, k), apply("mul", arg(0, F), arg(1, F))),
        Map(w, (f,), relu(arg(0, F))),
    )
    return LoopGraph("filled", (x, v, k), (y, z, w), forms)


def graph_negated():
    """A short map of two reductions, and a longer one of one."""
    x, a, b, y, z, w = buf("x", 4, 5), buf("a", 4, 5), buf("b", 4, 5), buf("y", 5), buf("z", 4, 1), buf("w", 4)
    forms = (
        Map(a, (x,), apply("neg", arg(0, F))),
        Reduce(y, a, (0,), "sum", SUM, SUM),
        Reduce(z, a, (1,), "max", apply("square", SUM), SUM),
        Map(b, (x,), relu(apply("exp", arg(0, F)))),
        Reduce(w, b, (1,), "sum", SUM, SUM),
    )
    return LoopGraph("negated", (x,), (y, z, w), forms)


def graph_views():
    x, a, b, c, y = buf("x", 2, 6), buf("a", 12), buf("b", 3, 4), buf("c", 3, 4), buf("y", 3, 4)
    return LoopGraph("views", (x,), (y,), (View(a, x), View(b, a), View(c, b), Map(y, (c,), relu(arg(0, F)))))


def graph_mean():
    x, a, y = buf("x", 1, 4, 4, 3), buf("a", 1, 3), buf("y", 1, 3)
    mean = apply("mul", arg(0, F), scalar(1 / 16, F))
    return LoopGraph("mean", (x,), (y,), (Reduce(a, x, (1, 2), "sum", arg(0, F), mean), Map(y, (a,), relu(arg(0, F)))))


def graph_pad():
    x, p, y = buf("x", 1, 5, 6, 3), buf("p", 1, 8, 9, 3), buf("y", 1, 6, 4, 2)
    forms = padded(p, x, (0, 2, 1, 0), 0.0), conv(y, p, size=(3, 3), strides=(1, 2))
    return LoopGraph("pad", (x,), (y,), forms)


def graph_pad_int8():
    x, p, y = buf("x", 1, 5, 6, 3, dtype=I8), buf("p", 1, 7, 8, 3, dtype=I8), buf("y", 1, 5, 6, 3, dtype=I8)
    expr = step(apply("mul", convert(arg(0, I32), F), scalar(0.01, F)))
    w = buf("w", 3, 3, 3, dtype=I8, data=True)
    return LoopGraph(
        "pad_int8", (x,), (y,), (padded(p, x, (0, 1, 1, 0), -9), Depthwise(y, p, w, (), expr, Window((3, 3)), 1, -9))
    )


def graph_pad_pool(bounded=True):
    x, a, p, y = buf("x", 1, 6, 6, 2), buf("a", 1, 6, 6, 2), buf("p", 1, 8, 8, 2), buf("y", 1, 3, 3, 2)
    expr = relu(arg(0, F)) if bounded else arg(0, F)
    return LoopGraph(
        "pad_pool",
        (x,),
        (y,),
        (conv(a, x, expr=expr), padded(p, a, (0, 1, 1, 0), 0.0), Pool(y, p, "max", arg(0, F), Window((3, 3), (2, 2)))),
    )


def graph_concat():
    x, a, b, y = buf("x", 1, 4, 4, 3), buf("a", 1, 4, 4, 2), buf("b", 1, 4, 4, 3), buf("y", 1, 4, 4, 8)
    forms = (conv(a, x), Map(b, (x,), relu(arg(0, F))), joined(y, a, b, x))
    return LoopGraph("concat", (x,), (y,), forms)


def graph_dead():
    x, a, y = buf("x", 3), buf("a", 3), buf("y", 3)
    return LoopGraph("dead", (x,), (y,), (Map(a, (x,), relu(arg(0, F))), Map(y, (x,), apply("neg", arg(0, F)))))


def graph_view_of_views():
    """A gradient of a dense layer: the view between does not read the product."""
    x, r, a, b, c, y = (
        buf(n, *shape)
        for n, shape in zip("xrabcy", ((6, 1, 1, 5), (2, 3, 4), (6, 1, 1, 4), (6, 4), (2, 3, 4), (2, 3, 4)))
    )
    return LoopGraph("view_of_views", (x, r), (y,), (conv(a, x), View(b, a), View(c, b), Map(y, (c, r), plus())))


def graph_moved_again(is_read=False):
    """Heads of attention, split for two products. is_read: what is moved has another reader."""
    x, h, a, b, y, z = (buf(n, *shape) for n, shape in zip("xhabyz", ((2, 5, 3),) * 2 + ((2, 3, 5),) * 4))
    box = IndexMap((0, 0, 0), (2, 3, 5), 0, (15, 1, 3))
    forms = [Map(h, (x,), relu(arg(0, F))), Move(a, (h,), (box,)), Map(y, (a,), apply("exp", arg(0, F)))]
    forms += [Move(b, (h,), (box,)), Map(z, (b, y), plus())]
    outputs = (y, z)
    if is_read:
        w = buf("w", 2, 5, 3)
        forms, outputs = [*forms, Map(w, (h,), apply("neg", arg(0, F)))], (y, z, w)
    return LoopGraph("moved_again", (x,), outputs, tuple(forms))


def graph_slice(rows):
    """States before each step: the first one, and those after some steps."""
    f, h, s, y = (buf(n, *shape) for n, shape in zip("fhsy", ((1, 3), (5, 3), (rows, 3), (rows + 1, 3))))
    part = Move(s, (h,), (IndexMap((0, 0), (rows, 3), 3, (3, 1)),))
    boxes = (IndexMap((0, 0), (1, 3), 0, (3, 1)), IndexMap((1, 0), (rows, 3), 0, (3, 1)))
    return LoopGraph("slice", (f, h), (y,), (part, Move(y, (f, s), boxes)))


CASES = {  # the graph, and the classes of the forms that fusion leaves
    "scalar": (graph_scalar(), "Map"),
    "chain": (graph_chain(), "Map"),
    "shared": (graph_shared(), "Map Map Map"),
    "twice": (graph_twice(), "Contract"),
    "table": (graph_table(), "Map"),
    "table_within": (graph_table_within(), "Map"),
    "residual": (graph_residual(), "Contract"),
    "residual_int8": (graph_residual_int8(), "Contract"),
    "channel": (graph_channel(), "Contract Map"),
    "view": (graph_view(), "Contract View"),
    "view_of_product": (graph_view_of_product(), "View View MatMul View"),
    "view_of_product_by_row": (graph_view_of_product((2, 3, 10), (3, 1)), "MatMul View Map"),
    "uniform": (graph_uniform(), "Map"),
    "filled": (graph_filled(), "Move Map Map Map"),
    "negated": (graph_negated(), "Reduce Reduce Reduce"),
    "views": (graph_views(), "View Map"),
    "mean": (graph_mean(), "Reduce"),
    "pad": (graph_pad(), "Contract"),
    "pad_int8": (graph_pad_int8(), "Depthwise"),
    "pad_pool": (graph_pad_pool(), "Contract Pool"),
    "pad_pool_of_any": (graph_pad_pool(False), "Contract Move Pool"),
    "concat": (graph_concat(), "Contract Map Move"),
    "slice": (graph_slice(4), "Move"),
    "short_slice": (graph_slice(2), "Move Move"),
    "dead": (graph_dead(), "Map"),
    "view_of_views": (graph_view_of_views(), "View Contract View"),
    "moved_again": (graph_moved_again(), "Map Move Map Map"),
    "moved_again_and_read": (graph_moved_again(True), "Map Move Map Move Map Map"),
}


def feed(graph):
    return [
        rng.integers(-128, 128, b.shape).astype(b.dtype.np)
        if b.dtype.is_integer
        else rng.normal(size=b.shape).astype(np.float32)
        for b in graph.inputs
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_rule_leaves_these_forms_and_the_same_meaning(name):
    graph, left = CASES[name]
    verify(graph)
    after, apart = fused(graph)
    verify(after)
    assert " ".join(type(form).__name__ for form in after.ops) == left
    assert after.inputs == graph.inputs
    assert after.outputs == graph.outputs
    for form in after.ops:
        parts = apart(form)
        assert parts is None or parts[-1].output is form.output or parts[-1].output.shape == form.output.shape
    for _ in range(3):
        x = feed(graph)
        for a, b in zip(meaning(graph, x), meaning(after, x), strict=True):
            if a.dtype.kind == "f":
                np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
            else:
                assert np.abs(a.astype(int) - b.astype(int)).max() <= 1


def test_a_uniform_constant_is_a_number():
    (form,) = fused(CASES["uniform"][0])[0].ops
    assert len(form.operands) == 1


def test_maps_read_the_number_that_fills_an_array():
    y, z, w = (op for op in fused(CASES["filled"][0])[0].ops if isinstance(op, Map))
    assert [b.shape for b in (*y.operands, *z.operands, *w.operands)] == [(2, 3), (1,), (1,), (6,), (6,)]


def test_a_chain_of_bytes_is_one_look_up():
    (form,) = fused(CASES["table"][0])[0].ops
    assert form.expr.op == "lookup"
    assert [b.shape for b in form.operands] == [(2, 6), (256,)]


def test_a_quantised_value_between_two_forms_is_not_narrowed():
    (form,) = fused(CASES["residual_int8"][0])[0].ops
    assert "round_even" in repr(form.expr)
    assert repr(form.expr).count("quantize") == 1


def test_parts_of_a_concatenation_are_written_where_they_go():
    contract, relu_, rest = fused(CASES["concat"][0])[0].ops
    assert [form.output.start for form in (contract, relu_, rest)] == [0, 2, 5]
    assert contract.output.pitch == 8


def test_padding_becomes_the_windows():
    (form,) = fused(CASES["pad"][0])[0].ops
    assert form.window.padding == (2, 1, 1, 2)


def test_graphs_and_passes_are_printed_on_demand():
    said = io.StringIO()
    with redirect_stderr(said), flags.override(show="graph,passes", verify=True):
        fused(CASES["residual"][0])
    text = said.getvalue()
    assert "before fusion: loops residual(x: f32[1, 4, 4, 3], r: f32[1, 4, 4, 5]) {" in text
    assert "into_producer: 1 x" in text
    assert "y: f32[1, 4, 4, 5] = Contract(x, const wa: f32[5, 1, 1, 3], const b: f32[5], r, expr=maximum(" in text


def test_every_pass_reports_why():
    assert all(p.why and p.name == p.rule.__name__ for p in PASSES)

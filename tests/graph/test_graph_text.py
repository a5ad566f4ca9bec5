"""Graph text: every kind of thing prints and reads back the same; broken text is refused in words."""

import ml_dtypes
import numpy as np
import pytest
from graph_programs import F32, GraphAdd, GraphHold, GraphSplit, GraphTotal, GraphWrite, graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright.core import dtypes
from opwright.core.errors import InvalidArgumentError
from opwright.core.shapes import TensorShape
from opwright.core.specs import TensorSpec
from opwright.graph import GraphBuilder, parse, same, text
from opwright.graph.ir import same_attr
from opwright.ops import registry
from thorough import examples


def hold(**attrs):
    b = GraphBuilder("g")
    b.node(GraphHold, (), attrs, [])
    return b.build([])


def survives(graph):
    again = parse(text(graph), registry.get)
    assert same(again, graph), text(graph)
    assert text(again) == text(graph)


def filled(dtype, *shape):
    rng = np.random.default_rng(3)
    n = int(np.prod(shape))
    if dtype is dtypes.string:
        array = np.empty(n, object)
        array[:] = [bytes(rng.integers(0, 256, i % 5).tolist()) for i in range(n)]
    elif dtype.is_bool:
        array = rng.integers(0, 2, n).astype(bool)
    elif dtype.is_complex:
        array = (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype.np)
    elif dtype.is_floating:
        array = rng.standard_normal(n).astype(dtype.np)
    else:
        low, high = (int(v) for v in dtype.limits)
        rest = rng.integers(max(low, -100), min(high, 100), n)
        array = np.array([low, high, 0, *rest.tolist()][:n], object).astype(dtype.np)
    return array.reshape(shape)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3), (17,), (3, 5, 4)], ids=str)
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda d: d.name)
def test_tensors_of_every_dtype_small_and_large(dtype, shape):
    survives(hold(array=filled(dtype, *shape)))


VALUES = {
    "whole": [0, -1, 2**63 - 1, -(2**63), 10**30],
    "real": [0.0, -0.0, 1.5, -1e-300, 5e-324, 1e308, 0.1, float("nan"), float("inf"), float("-inf"), 1e22, 123456789.0],
    "yes": [True, False],
    "words": [
        "",
        "plain",
        "it's",
        'say "hi"',
        "both ' and \"",
        "back\\slash",
        "two\nlines",
        "tab\t",
        "naïve ☃ 𝒳",
        "\x00\x7f",
        "# no comment",
        "nan",
    ],
    "raw": [b"", b"\x00\xff'\"\\\n"],
    "kind": list(dtypes.any_dtype),
    "sizes": [TensorShape(None), TensorShape([]), TensorShape([2, None]), TensorShape([0]), TensorShape([None, None])],
    "reals": [(), (1.0,), (float("nan"), -0.0, float("-inf"))],
    "anything": [
        None,
        (),
        ((),),
        (1, ("a", (b"b", None)), (True, 2.5)),
        1 + 2j,
        complex("nan-infj"),
        (complex(-0.0, 0.0), 1e300j),
        (dtypes.float32, TensorShape([1, None])),
    ],
    "array": [
        np.float32([np.nan, np.inf, -np.inf, -0.0]),
        np.frombuffer(b"\x01\x00\xa0\x7f" * 3, np.float32),
        ml_dtypes.bfloat16(1.25).reshape(1),
        np.zeros((), bool),
        np.float16([65504, 6e-8]),
        np.array(["x", "é"]),
        np.array([b"x"]),
        np.array([1.5, 2.5], ">f4"),
        np.array([2**64 - 1], np.uint64),
    ],
}


@pytest.mark.parametrize("key", VALUES)
def test_attributes_of_every_kind(key):
    for value in VALUES[key]:
        survives(hold(**GraphHold.bind({key: value}).attrs))


attrs = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.complex_numbers()),
    lambda inside: st.lists(inside, max_size=4).map(tuple),
    max_leaves=8,
)


@given(attrs)
def test_any_nesting_of_python_values(value):
    again = parse(text(hold(anything=value)), registry.get).nodes[0].attrs["anything"]
    assert same_attr(again, value) or repr(again) == repr(value)


@given(graphs())
def test_random_graphs(graph):
    survives(graph)


def test_subgraphs_in_place():
    def body(name, depth):
        b = GraphBuilder(name)
        x = b.input("x", TensorSpec([None], "float32"))
        y = b.node(GraphAdd, (x, x), {}, [x.spec], at="inner.py:1").outputs[0]
        if depth:
            branches = body("then", depth - 1), body("else", depth - 1)
            b.node(GraphHold, (), {"anything": branches, "whole": 1}, [], at="o.py:2")
        return b.build([y])

    graph = body("outer", 3)
    survives(graph)
    assert [g.name for g in graph.nodes[1].subgraphs] == ["then", "else"]
    assert parse(text(graph), registry.get).nodes[1].at == "o.py:2"


def test_the_form():
    b = GraphBuilder("head")
    x, w = b.input("x", TensorSpec([1, None], "float32")), b.input("w", TensorSpec(None, "bfloat16"))
    y = b.node(GraphTotal, ((x, x), None), {}, [F32], "total", "head.py:14").outputs[0]
    below = b.node(GraphSplit, (y,), {}, [F32, F32]).outputs[1]
    b.node(GraphWrite, (w,), {"tag": 7}, [], "tell")
    assert text(b.build([below, x])) == (
        "graph head(x: f32[1,?], w: bf16[...]) {\n"
        "  total: f32[2] = GraphTotal([x, x], _)  # head.py:14\n"
        "  GraphSplit: f32[2], GraphSplit.1: f32[2] = GraphSplit(total)\n"
        "  tell: () = GraphWrite(w, tag=7)\n"
        "  return GraphSplit.1, x\n"
        "}"
    )
    survives(b.build([]))
    survives(GraphBuilder("empty").build([]))


def test_people_may_write_it_otherwise():
    source = """
    # a graph, with comments
    graph g(x:f32[2],) {  # an input

      # where the work is done
      a: f32 [ 2 ] = GraphAdd(
          x,  # once
          x,
      )
      # not where a comes from
      return a,
             x  # both
    }  # end
    """
    graph = parse(source, registry.get)
    assert [v.name for v in graph.outputs] == ["a", "x"]
    assert graph.nodes[0].at is None


BROKEN = [  # text, the line that is to blame, words
    ("", 1, "'graph'"),
    ("graph", 1, "a word"),
    ("graph g(", 1, "a word"),
    ("graph g() {", 1, "a word"),
    ("graph g() {\n  return x\n}", 2, "a value defined before"),
    ("graph g(x: f32[2]) {\n  return x\n} more", 3, "the end"),
    ("graph g(x: f32[2]) {\n  return x x\n}", 2, "'}'"),
    ("graph g(x: f99[2]) {\n  return x\n}", 1, "f99[2]"),
    ("graph g(x: f32[-2]) {\n  return x\n}", 1, ">= 0"),
    ("graph g(x: f32[2]", 1, "')'"),
    ("graph g(x: f32[2", 1, "more text"),
    ("graph g(x: f32[2], x: f32[2]) {\n  return x\n}", 1, "a new name"),
    ("graph g(x: f32[2]) {\n  x: f32[2] = GraphAdd(x, x)\n  return x\n}", 2, "a new name"),
    ("graph g(x: f32[2]) {\n  y: f32[2] = NoSuchOp(x)\n  return y\n}", 2, "NoSuchOp"),
    ("graph g(x: f32[2]) {\n  y: f32[2] = GraphAdd(x, z)\n  return y\n}", 2, "'z'"),
    ("graph g(x: f32[2]) {\n\n\n  y: f32[2] = GraphAdd(x\n  return y\n}", 5, "')'"),
    ("graph g(x: f32[2]) {\n  y: f32[2] = GraphAdd(x", 2, "')'"),
    ("graph g(x: f32[2]) {\n  y = GraphAdd(x, x)\n  return y\n}", 2, "':'"),
    ("graph g() {\n  h: () = GraphHold(whole=)\n  return\n}", 2, "a word"),
    ("graph g() {\n  h: () = GraphHold(whole=wat)\n  return\n}", 2, "an attribute value"),
    ("graph g() {\n  h: () = GraphHold(whole=007)\n  return\n}", 2, "literal"),
    ("graph g() {\n  h: () = GraphHold(whole='\\xZZ')\n  return\n}", 2, "literal"),
    ("graph g() {\n  h: () = GraphHold(whole='abc\n  return\n}", 2, "a token"),
    ("graph g() {\n  h: () = GraphHold(kind=dtype(f99))\n  return\n}", 2, "a dtype"),
    ("graph g() {\n  h: () = GraphHold(sizes=shape(-1))\n  return\n}", 2, "a shape"),
    ("graph g() {\n  h: () = GraphHold(anything=complex(1))\n  return\n}", 2, "complex(real"),
    ("graph g() {\n  h: () = GraphHold(array=tensor(f32[2], [1.0]))\n  return\n}", 2, "elements for f32[2]"),
    ("graph g() {\n  h: () = GraphHold(array=tensor(f32[?], [1.0]))\n  return\n}", 2, "elements for f32[?]"),
    ("graph g() {\n  h: () = GraphHold(array=tensor(f32[...], 'AAAA'))\n  return\n}", 2, "elements for f32[...]"),
    ("graph g() {\n  h: () = GraphHold(array=tensor(i32[1], [1.5]))\n  return\n}", 2, "list of int"),
    ("graph g() {\n  h: () = GraphHold(array=tensor(i8[1], [300]))\n  return\n}", 2, "elements for i8[1]"),
    ("graph g() {\n  h: () = GraphHold(array=tensor(f32[1], '?'))\n  return\n}", 2, "elements for f32[1]"),
    ("graph g() {\n  h: () = GraphHold(array=tensor(resource[1], 'AAAAAAAAAAA='))\n  return\n}", 2, "handles"),
    ("graph g() {\n  h: () = GraphHold(anything=" + "[" * 100, 2, "deep"),
    ("graph g() {\n  h: () = GraphHold(anything=" + "graph g() { h: () = GraphHold(anything=" * 100, 2, "deep"),
    ("graph g(x: f32[2]) {\n  return x\n}\n$", 4, "a token"),
]


@pytest.mark.parametrize(("source", "line", "words"), BROKEN, ids=[str(i) for i in range(len(BROKEN))])
def test_broken_text_is_refused_in_words(source, line, words):
    with pytest.raises(InvalidArgumentError) as caught:
        parse(source, registry.get)
    assert f"graph text, line {line}\n" in str(caught.value)
    assert words in str(caught.value)


SEEDS = [
    text(hold(**{k: v[-1] for k, v in VALUES.items()})),
    text(hold(whole=1, real=-1e-5, anything=(1.0, "x", b"y", None, (True,), 2 + 1j))),
    text(hold(array=filled(dtypes.float32, 20), anything=(dtypes.int8, TensorShape([None, 2])))),
    "graph g(x: f32[2,?], y: bf16[...]) {\n  a: f32[2] = GraphTotal([x, x], _)  # f.py:1\n"
    "  s: f32[2], s.1: f32[2] = GraphSplit(a)\n  w: () = GraphWrite(s, tag=3)\n  return s.1, a\n}",
]
PIECES = [
    *"()[]{},:=?#-+1j_x \n'\"\\é\x00",
    "...",
    "e9",
    "nan",
    "inf",
    "graph",
    "return",
    "f32",
    "i4[1]",
    "str[1]",
    "[1]",
    "tensor(",
    "shape(",
    "dtype(",
    "complex(",
    "9" * 30,
    "b'",
    "0x1",
    "1_0",
]


@st.composite
def mutants(draw):
    source = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(source)))
        length = draw(st.sampled_from([0, 0, 1, 1, 2, 5, 30]))
        source = source[:at] + draw(st.sampled_from(["", "", *PIECES])) + source[at + length :]
    return source


@settings(max_examples=examples(400))
@given(mutants())
def test_mutants_parse_or_are_refused(source):
    try:
        graph = parse(source, registry.get)
    except InvalidArgumentError as error:
        if "graph text, line " not in str(error):
            raise
    else:
        survives(graph)


@given(st.text())
def test_any_text_parses_or_is_refused(source):
    with pytest.raises(InvalidArgumentError):
        parse(source, registry.get)


def test_huge_numbers_are_refused_in_words():
    with pytest.raises(InvalidArgumentError, match="literal"):
        parse(f"graph g() {{\n  h: () = GraphHold(whole={'9' * 100_000})\n  return\n}}", registry.get)

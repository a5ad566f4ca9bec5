"""Random graphs of many operators: our answers are the official interpreter's, run after run, wherever tensors lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import Graph
from random_quantized import QuantizedGraph

from opwright import lite
from opwright.core import flags
from thorough import THOROUGH

NEAR = {"rtol": 2e-5, "atol": 2e-5}


def answers(interpreter, feeds):
    for detail, x in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def check(graph: Graph | QuantizedGraph, **tolerance: float) -> None:
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    content = graph.model().to_bytes()
    # with all tensors kept: without, it overwrites what is read later in 2 graphs of 3,000 (RESHAPE after EXPAND_DIMS)
    theirs = peer.Interpreter(
        model_content=content,
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=peer.OpResolverType.BUILTIN_REF,
    )
    plain = lite.Interpreter(model_content=content)
    keeping = lite.Interpreter(model_content=content, experimental_preserve_all_tensors=True)
    for interpreter in (theirs, plain, keeping):
        interpreter.allocate_tensors()
    for _ in range(2):
        feeds = graph.feeds()
        expected = answers(theirs, feeds)
        kept = answers(keeping, feeds)
        for actual in (kept, answers(plain, feeds)):
            for a, b in zip(actual, expected, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                np.testing.assert_allclose(a, b, **tolerance)


@settings(max_examples=60 if THOROUGH else 6)
@given(seed=st.integers(0, 2**32 - 1), operators=st.integers(1, 40))
def test_graphs_of_known_shapes(seed, operators):
    check(Graph(seed, operators), **NEAR)


@settings(max_examples=60 if THOROUGH else 6)
@given(seed=st.integers(0, 2**32 - 1), operators=st.integers(1, 30))
def test_graphs_of_shapes_known_when_they_run(seed, operators):
    check(Graph(seed, operators, dynamic=True), **NEAR)


@settings(max_examples=60 if THOROUGH else 6)
@given(seed=st.integers(0, 2**32 - 1), operators=st.integers(1, 25))
def test_graphs_of_integers_are_equal(seed, operators):
    with flags.override(compiled=False):  # the compiled engine is a step away, and what follows amplifies it
        check(QuantizedGraph(seed, operators), rtol=0, atol=0)

"""Random graphs of many operators run as machine code: answers near those of the official interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from engine_kit import engine
from hypothesis import given, settings
from hypothesis import strategies as st

from opwright import lite

sys.path.append(str(Path(__file__).parents[1] / "interpreter"))
from random_graphs import Graph
from random_quantized import QuantizedGraph

from thorough import THOROUGH

STEPS = 8
"""Of the last operator's integers: each operator may be a step from the official one's, and those after it see that."""


def answers(interpreter, feeds):
    for detail, x in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def pairs(graph):
    """Ours and the official answers, of two runs."""
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    content = graph.model().to_bytes()
    theirs = peer.Interpreter(
        model_content=content,
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=peer.OpResolverType.BUILTIN_REF,
    )
    with engine(verify=True):
        ours = lite.Interpreter(model_content=content, num_threads=2)
        for interpreter in (theirs, ours):
            interpreter.allocate_tensors()
        for _ in range(2):
            feeds = graph.feeds()
            for a, b in zip(answers(ours, feeds), answers(theirs, feeds), strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                yield a, b


@settings(max_examples=6 if THOROUGH else 3)
@given(seed=st.integers(0, 2**32 - 1), operators=st.integers(1, 20), dynamic=st.booleans())
def test_graphs_of_floats(seed, operators, dynamic):
    for a, b in pairs(Graph(seed, operators, dynamic=dynamic)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@settings(max_examples=6 if THOROUGH else 3)
@given(seed=st.integers(0, 2**32 - 1), operators=st.integers(1, 6))
def test_graphs_of_bytes(seed, operators):
    for a, b in pairs(QuantizedGraph(seed, operators)):
        if a.dtype.kind in "iu":
            assert np.abs(a.astype(np.int64) - b.astype(np.int64)).max(initial=0) <= STEPS

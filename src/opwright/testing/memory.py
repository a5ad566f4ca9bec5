"""A call, its gradient and the gradient of that, with memory used again and without: the same bits.

Lives here: `reuse_changes_no_bits`.  Not here: when memory is used again (compiler/inplace.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..compiler import inplace
from ..compiler.plan import Plan
from ..graph import Graph, Value
from ..ops import math as math_ops
from ..runtime.backward import NoGradientError, graph_gradients
from ..tracing.function import function
from .slopes import Function
from .trial import NotTried, array, flows

ORDERS = 2  # gradients of gradients


def graphs(run: Function, values: Sequence[Any]) -> Iterator[Graph]:
    """The graph of the call, of its gradients, of their gradients. Inputs come out of other nodes, and die."""

    def dying(*given: Any) -> list[Any]:
        return run([math_ops.negative(math_ops.negative(x)) if flows(x) else x for x in given])

    graph = function(dying, autograph=False).get_concrete_function(*values).graph
    if len(graph.inputs) != len(values):
        raise NotTried("the graph takes more than the tensors")
    yield graph
    targets = [y for y in graph.outputs if flows(y)]
    for _ in range(ORDERS):
        if not targets:
            return
        try:
            made = graph_gradients(graph, targets, [x for x in graph.inputs if flows(x)])
        except NoGradientError:
            return
        graph = made.graph
        yield graph
        targets = [g for g in made.gradients if isinstance(g, Value) and flows(g)]


def reuse_changes_no_bits(run: Function, values: Sequence[Any]) -> int:
    """Run each of `graphs` with the planner's reuse of memory on and off. Gives how many results were written into
    memory that died. Small arrays are let in too. raises AssertionError where one bit differs, or an input changes
    """
    reused = 0
    if any(v.dtype.is_handle for v in values):
        raise NotTried("a handle among the inputs")
    arrays = [array(v) for v in values]
    before = [a.tobytes() for a in arrays]
    with inplace.any_size():
        for order, graph in enumerate(graphs(run, values)):
            on, off = Plan(graph, inplace=True), Plan(graph, inplace=False)
            reused += on.reused
            if not on.reused:
                continue  # one program
            with np.errstate(all="ignore"):
                found, wanted = on.run(*arrays), off.run(*arrays)
            for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
                x, y = np.asarray(a), np.asarray(b)
                if x.dtype == object:
                    continue
                assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes()), (
                    f"gradient {order}, result {k}: memory used again changes bits"
                )
            for a, was in zip(arrays, before):
                assert a.tobytes() == was, f"gradient {order}: an argument was written"
    return reused

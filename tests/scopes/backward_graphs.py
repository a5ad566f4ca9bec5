"""Graphs for the tests of gradients on graphs, how they are run, and central differences.

Lives here: helpers.  Not here: tests (test_backward.py, test_backward_numbers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opwright as ow
from opwright.compiler.plan import Plan
from opwright.graph import Graph

RNG = np.random.default_rng(4)


def spec(name: str, *shape: int | None, dtype: Any = ow.float64) -> ow.TensorSpec:
    return ow.TensorSpec(list(shape), dtype, name=name)


def graph_of(f: Callable[..., Any], *specs: ow.TensorSpec) -> Graph:
    return ow.function(f, input_signature=list(specs)).get_concrete_function().graph


def run(graph: Graph, *arrays: Any) -> tuple[Any, ...]:
    return Plan(graph).run(*arrays)


def reads(graph: Graph, name: str) -> list[str]:
    """The names a node reads."""
    return [v.name for v in graph.find(name).operands]


def made_by(graph: Graph) -> dict[str, str]:
    return {v.name: n.op.name for n in graph.nodes for v in n.outputs}


def differences(graph: Graph, arrays: Sequence[np.ndarray], k: int, out: int = 0) -> np.ndarray:
    """d (sum of output `out`) / d input k by central differences."""
    grad = np.zeros_like(arrays[k])
    for at in np.ndindex(arrays[k].shape):
        sides = []
        for eps in (1e-6, -1e-6):
            moved = [a.copy() for a in arrays]
            moved[k][at] += eps
            sides.append(np.sum(run(graph, *moved)[out]))
        grad[at] = (sides[0] - sides[1]) / 2e-6
    return grad

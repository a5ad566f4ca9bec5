"""What is kept of a plan besides the plan itself, so that a later process takes the same nodes without rules.

Lives here: `Made`, `note_of`, `constants_of`.  Not here: the files (compiler/loops/freezing.py), when (engine.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiler.loops.plans import Plan
from ..delegate import DelegateParams
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import CONSTANT, SETTLED
from .variables import Use


class Made(NamedTuple):
    """A plan of all nodes, to be kept: what `freezing.keep` takes."""

    key: str
    plans: list[Plan]
    note: dict[str, Any]
    tensors: dict[int, np.ndarray]


def note_of(subgraph: Subgraph, params: DelegateParams, uses: Sequence[Use]) -> dict[str, Any]:
    """Which nodes and tensors the plan stands for, in a form that JSON can write: all nodes, the settled ones too."""
    outside = [i for i in (*params.input_tensors, *params.output_tensors) if subgraph.tensors[i].constant is None]
    inputs = [i for i in params.input_tensors if subgraph.tensors[i].kind != SETTLED]
    return {"nodes": [node.number for node in subgraph.nodes if node.delegate is None], "inputs": inputs,
            "outputs": list(params.output_tensors), "variables": [list(use) for use in uses],
            "shapes": {i: list(subgraph.tensors[i].shape) for i in outside}}  # fmt: skip


def constants_of(subgraph: Subgraph) -> dict[int, np.ndarray]:
    """The elements of the file's constants, by tensor."""
    return {t.index: t.array for t in subgraph.tensors if t.kind == CONSTANT and t.array is not None}

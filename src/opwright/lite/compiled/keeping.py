"""What is kept of a plan besides the plan itself, so that a later process takes the same nodes without rules.

Lives here: `Made`, `note_of`, `constants_of`.  Not here: the files (compiler/loops/freezing.py), when (engine.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compiler.loops.plans import Plan
from ..delegate import DelegateParams
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import CONSTANT


class Made(NamedTuple):
    """A plan of all nodes, to be kept: what `freezing.keep` takes."""

    key: str
    plans: list[Plan]
    note: dict[str, Any]
    tensors: dict[int, np.ndarray]


def note_of(subgraph: Subgraph, params: DelegateParams) -> dict[str, Any]:
    """Which nodes and tensors the plan stands for, in a form that JSON can write."""
    outside = [i for i in (*params.input_tensors, *params.output_tensors) if subgraph.tensors[i].kind != CONSTANT]
    return {"nodes": list(params.nodes_to_replace), "inputs": list(params.input_tensors),
            "outputs": list(params.output_tensors),
            "shapes": {i: list(subgraph.tensors[i].shape) for i in outside}}  # fmt: skip


def constants_of(subgraph: Subgraph) -> dict[int, np.ndarray]:
    """The elements of the file's constants, by tensor."""
    return {t.index: t.array for t in subgraph.tensors if t.kind == CONSTANT and t.array is not None}

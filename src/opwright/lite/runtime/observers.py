"""Instrumentation of nodes as they run: the switch `check_inputs`, and observers.

Lives here: `run_watched`, `run_observed`.
Not here: checks of operators on arrays (ops/compute_wrappers.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import PermissionDeniedError
from ...ops.compute_wrappers import fingerprint
from .node import Node
from .tensor import Tensor


def _watched(node: Node) -> list[Tensor]:
    """Return the inputs that the node must not write: no variables, and none that shares memory with an output."""
    outs = [t.array for t in node.tensors_out if t.array is not None]
    return [
        t
        for t in node.tensors_in
        if t is not None
        and t.array is not None
        and not t.is_variable
        and not any(np.may_share_memory(t.array, out) for out in outs)
    ]


def run_watched(node: Node, step: Callable[[], Any]) -> None:
    """Run one node. Raises PermissionDeniedError with operator and tensor if it writes an input."""
    before = [(t, fingerprint(t.array)) for t in _watched(node)]
    step()
    for t, was in before:
        if fingerprint(t.array) != was:
            raise PermissionDeniedError(
                op=node.name,
                what=f"invoke writes its input {t.name!r}",
                found="other elements after the call than before",
                wanted="inputs as they were: other nodes read them too",
                do="write to node.outputs or node.temporaries",
            )


def run_observed(node: Node, step: Callable[[], Any], observer: Callable[[Node, bool], None]) -> None:
    """Run one node between two calls of an observer: `observer(node, False)` and `observer(node, True)`."""
    observer(node, False)
    step()
    observer(node, True)

"""DYNAMIC_UPDATE_SLICE where its result lies in its operand's memory: only the part is written.

Lives here: its registration.  Not here: its definition (ops/slicing.py), when the memory is shared (memory.py, and
loop.py for what a loop carries).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..registration import OperatorRegistration
from .node import Context, Node
from .tensor import DYNAMIC


class Update(OperatorRegistration):
    """Runs on raw elements, so on quantised tensors of one scale too, as the definition says."""

    __slots__ = ()

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        if node.kernel is not None or any(t.kind == DYNAMIC for t in node.tensors_out):
            return super().bind(context, node)
        x, update, starts = (t.readonly for t in node.tensors_in if t is not None)
        out: Any = node.tensors_out[0].array
        assert x is not None
        assert update is not None
        same = x.__array_interface__["data"][0] == out.__array_interface__["data"][0]
        most = tuple(d - u for d, u in zip(x.shape, update.shape))
        return functools.partial(_run, None if same else x, update, starts, out, most, update.shape)


def _run(x: Any, update: np.ndarray, starts: Any, out: np.ndarray, most: tuple[int, ...], sizes: Any) -> None:
    if x is not None:
        np.copyto(out, x)
    at = tuple([slice(s := min(max(i, 0), m), s + u) for i, m, u in zip(starts.tolist(), most, sizes)])
    out[at] = update

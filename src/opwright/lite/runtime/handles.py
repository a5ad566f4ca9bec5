"""Handles: nodes without inputs whose output holds a resource, such as VAR_HANDLE.

Lives here: `HandleRegistration`.
Not here: which resource a node names (ops/state.py, ops/tables.py), the resources (resources.py).

What a handle holds never changes, so its tensor is settled when tensors are allocated and the node runs no more; only a
handle that the subgraph returns is written at each run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import resource
from ...core.errors import InvalidArgumentError
from ..registration import Registration
from .node import Context, Node
from .settling import is_settled, nothing
from .tensor import SETTLED


class HandleRegistration(Registration):
    """find(resources, options) -> the resource that the node's output holds."""

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[Any, Any], Any]) -> None:
        super().__init__(None, None, self._prepare, self._invoke)
        self._find = find

    def _prepare(self, context: Context, node: Node) -> None:
        found = len(node.tensors_in), len(node.tensors_out)
        if found != (0, 1):
            raise InvalidArgumentError(what="the node has the wrong number of inputs or outputs", found=found,
                                       wanted=(0, 1))  # fmt: skip
        t, subgraph = node.tensors_out[0], node.subgraph
        if t.dtype is not resource:
            raise InvalidArgumentError(what=f"output {t.name!r} has the wrong type", found=t.dtype.name,
                                       wanted="resource")  # fmt: skip
        node.user_data = self._find(subgraph.resources, node.options)
        if not subgraph.running and t.index not in subgraph.outputs and subgraph.writers[t.index] == 1:
            t.set_kind(SETTLED)
            subgraph.allocate_own(t)
            self._invoke(context, node)

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        return nothing if is_settled(node) else super().bind(context, node)

    def _invoke(self, context: Context, node: Node) -> None:
        node.tensors_out[0].array.fill(node.user_data)  # type: ignore[union-attr]

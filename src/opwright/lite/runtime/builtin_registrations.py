"""Registrations of builtin operators whose nodes need more than `prepare` and `invoke` of their definitions.

Lives here: `ResourceHandleRegistration`, for nodes such as VAR_HANDLE; `DynamicUpdateSliceRegistration`, which updates
in place; `ShuffledFullyConnectedRegistration`, for weights stored in blocks.
Not here: the operators' definitions (lite/ops/), resources (resources.py), sharing of memory (memory.py, and
while_loop.py for loop-carried tensors), the arithmetic of shuffled weights (ops/quantized/matmul.py).

A handle never changes: its tensor is computed when tensors are allocated, and the node does not run again. Only a
handle that is an output of the subgraph is written in every run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import resource
from ...core.errors import InvalidArgumentError
from ...core.lazy_imports import later
from ...core.specs import TensorSpec
from ..quantized_registration import rule_named
from ..registration import OperatorRegistration, Registration
from .dynamic_shapes import is_folded, nothing
from .node import Context, Node
from .tensor import DYNAMIC, FOLDED

if TYPE_CHECKING:
    from ..ops.quantized import operand
else:  # not needed by the first answer of a model
    operand = later("..ops.quantized.operand", __package__)


class ResourceHandleRegistration(Registration):
    """Registration of a node without inputs whose output is a resource handle.

    find(resources, options) -> the resource that the output refers to.
    """

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[Any, Any], Any]) -> None:
        super().__init__(None, None, self._prepare, self._invoke)
        self._find = find

    def _prepare(self, context: Context, node: Node) -> None:
        counts = len(node.tensors_in), len(node.tensors_out)
        if counts != (0, 1):
            raise InvalidArgumentError(
                what="the node has the wrong number of inputs or outputs", found=counts, wanted=(0, 1)
            )
        t, subgraph = node.tensors_out[0], node.subgraph
        if t.dtype is not resource:
            raise InvalidArgumentError(
                what=f"output {t.name!r} has the wrong type", found=t.dtype.name, wanted="resource"
            )
        node.user_data = self._find(subgraph.resources, node.options)
        if not subgraph.running and t.index not in subgraph.outputs and subgraph.writers[t.index] == 1:
            t.set_kind(FOLDED)
            subgraph.allocate_own(t)
            self._invoke(context, node)

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        return nothing if is_folded(node) else super().bind(context, node)

    def _invoke(self, context: Context, node: Node) -> None:
        node.tensors_out[0].array.fill(node.user_data)  # type: ignore[union-attr]


class DynamicUpdateSliceRegistration(OperatorRegistration):
    """Registration of DYNAMIC_UPDATE_SLICE, which writes only the update if input and output share memory. It computes
    on raw elements, including those of quantized tensors with one scale."""

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


def _run(x: Any, update: np.ndarray, starts: Any, out: np.ndarray, limits: tuple[int, ...], sizes: Any) -> None:
    if x is not None:
        np.copyto(out, x)
    region = tuple([slice(s := min(max(i, 0), m), s + u) for i, m, u in zip(starts.tolist(), limits, sizes)])
    out[region] = update


class ShuffledFullyConnectedRegistration(OperatorRegistration):
    """Registration of FULLY_CONNECTED. With weights in the format SHUFFLED4x16INT8 the node has a second output, a
    workspace, which keeps the shape of the file."""

    __slots__ = ()

    def infer(self, call: Any, node: Node, operands: Sequence[Any]) -> list[TensorSpec]:
        if call.weights_format == "DEFAULT":
            return super().infer(call, node, operands)
        _check_outputs(node)
        (y,) = self.operator.infer(call, self.group(node, operands))
        workspace = node.tensors_out[1]
        return [y, TensorSpec(workspace.shape, workspace.dtype)]

    def quantized_kernel(self, call: Any, node: Node) -> Any:
        if call.weights_format == "DEFAULT":
            return super().quantized_kernel(call, node)
        _check_outputs(node)
        operands: list[Any] = [None if t is None else operand.Operand(t) for t in (*node.tensors_in, *node.tensors_out)]
        try:
            return rule_named("matmul.shuffled_fully_connected")(call, *operands)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(op=node.name, what=error.message) from None


def _check_outputs(node: Node) -> None:
    if len(node.tensors_in) != 3 or len(node.tensors_out) != 2:
        raise InvalidArgumentError(
            op=node.name,
            what="shuffled weights require three inputs and two outputs",
            found=f"{len(node.tensors_in)} inputs, {len(node.tensors_out)} outputs",
            wanted="x, weights and bias; y and a workspace",
        )

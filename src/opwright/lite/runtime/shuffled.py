"""FULLY_CONNECTED nodes whose weights are stored in blocks: they have a second output, a workspace.

Lives here: the registration that knows of it.  Not here: the arithmetic (ops/quantized/shuffled.py), the operator
(ops/matmul.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ..ops.quantized.operand import Operand
from ..ops.quantized.shuffled import fully_connected
from ..registration import OperatorRegistration
from .node import Node


class Shuffled(OperatorRegistration):
    """As the definition says, and for the format SHUFFLED4x16INT8 with the workspace, which keeps the file's shape."""

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
        operands: list[Any] = [None if t is None else Operand(t) for t in (*node.tensors_in, *node.tensors_out)]
        try:
            return fully_connected(call, *operands)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(op=node.name, what=error.message) from None


def _check_outputs(node: Node) -> None:
    if len(node.tensors_in) != 3 or len(node.tensors_out) != 2:
        raise InvalidArgumentError(op=node.name, what="shuffled weights go with three inputs and two outputs",
                                   found=f"{len(node.tensors_in)} inputs, {len(node.tensors_out)} outputs",
                                   wanted="x, weights and bias; y and a workspace")  # fmt: skip

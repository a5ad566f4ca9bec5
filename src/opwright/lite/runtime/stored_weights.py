"""Weights in special storage: sparse constants made dense, and FULLY_CONNECTED with weights stored in blocks.

Lives here: `dense_of`; the registration of nodes with shuffled weights, which have a second output, a workspace.
Not here: whether index arrays are valid, checked by the verifier (format/constants.py); the arithmetic of shuffled
weights (ops/quantized/shuffled.py).

A file stores the elements of a sparse tensor in the order of the levels in `traversal_order`: the tensor's dimensions
(counted in blocks where blocked), then the dimensions of the blocks. A dense level visits all its indices, a compressed
one (CSR) those that it lists for each position of the level above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ..ops.quantized.operand import Operand
from ..ops.quantized.shuffled import fully_connected
from ..ops.shapes import bounded
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


def dense_of(sparsity: Any, stored: np.ndarray, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """The tensor of `shape` whose stored elements are these, 0 elsewhere.

    raises ResourceExhaustedError above the flag max_activation_bytes
    """
    bounded(shape, dtype, "a sparse constant with its zeros")
    dense = np.zeros(shape, dtype.np)
    if not dense.size:
        return dense
    order, blocks = np.asarray(sparsity.traversal_order).tolist(), np.asarray(sparsity.block_map).tolist()
    rank = len(shape)
    places: dict[int, np.ndarray] = {}  # by level of the tensor and its blocks, where each position is along it
    positions = 1
    for level, metadata in zip(order, sparsity.dim_metadata):
        if metadata.format == 0:
            above = np.repeat(np.arange(positions), metadata.dense_size)
            here = np.tile(np.arange(metadata.dense_size), positions)
        else:
            counts: Any = np.diff(np.asarray(metadata.array_segments.values).astype(np.int64))
            above = np.repeat(np.arange(positions), counts)
            here = np.asarray(metadata.array_indices.values if len(above) else ()).astype(np.int64)
        places = {known: place[above] for known, place in places.items()} | {level: here}
        positions = len(here)
    sizes = {blocks[level - rank]: m.dense_size for level, m in zip(order, sparsity.dim_metadata) if level >= rank}
    for number, d in enumerate(blocks):
        places[d] = places[d] * sizes[d] + places[rank + number]
    dense[tuple(places[d] for d in range(rank))] = stored[:positions] if rank else stored[0]
    return dense

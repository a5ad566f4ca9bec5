"""Details of tensors and nodes as dictionaries, with the keys of the official interpreter.

Lives here: what get_input_details, get_tensor_details and _get_ops_details return.
Not here: elements and shapes given from outside (values.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ..ops import types
from .node import Node
from .tensor import Tensor


def dtype_class(t: Tensor) -> Any:
    """The NumPy type of the elements; None for types that NumPy does not hold. Strings are bytes, handles objects,
    and what is less than a byte is one."""
    dtype = types.BY_NAME.get(getattr(t.type, "name", ""))
    if dtype is None:
        return None
    return _OBJECTS.get(dtype.name) or types.IN_BYTES.get(t.type.name) or dtype.as_numpy_dtype


_OBJECTS = {"string": np.bytes_, "resource": np.object_}


def tensor_details(t: Tensor) -> dict[str, Any]:
    """One tensor's details. Raises InvalidArgumentError for a type that NumPy does not hold."""
    dtype = dtype_class(t)
    if dtype is None:
        raise InvalidArgumentError(what="Could not get tensor details", found=repr(t), wanted="a type that NumPy holds")
    q = t.quantization
    scales = np.asarray(q.scale if q is not None else (), np.float32)
    zeros = np.asarray(q.zero_point if q is not None else (), np.int64).astype(np.int32)
    return {
        "name": t.name,
        "index": t.index,
        "shape": np.array(t.shape, np.int32),
        "shape_signature": np.array(t.shape if t.signature is None else t.signature, np.int32),
        "dtype": dtype,
        "quantization": (float(scales[0]), int(zeros[0])) if len(scales) == 1 and len(zeros) == 1 else (0.0, 0),
        "quantization_parameters": {
            "scales": scales,
            "zero_points": zeros if len(scales) else np.zeros(0, np.int32),
            "quantized_dimension": int(q.quantized_dimension) if q is not None and len(scales) else 0,
            "block_size": int(getattr(q.details, "block_size", 0)) if q is not None else 0,
        },
        "sparsity_parameters": {} if t.sparsity is None else _sparsity(t.sparsity),
    }


def _sparsity(sparsity: Any) -> dict[str, Any]:
    def level(metadata: Any) -> dict[str, Any]:
        if metadata.format == 0:
            return {"format": 0, "dense_size": int(metadata.dense_size)}
        return {
            "format": 1,
            "array_segments": np.asarray(metadata.array_segments.values, np.int32),
            "array_indices": np.asarray(metadata.array_indices.values, np.int32),
        }

    return {
        "traversal_order": np.asarray(sparsity.traversal_order, np.int32),
        "block_map": np.asarray(sparsity.block_map, np.int32),
        "dim_metadata": [level(m) for m in sparsity.dim_metadata],
    }


def node_details(node: Node) -> dict[str, Any]:
    """One node's details."""
    return {
        "index": node.number,
        "op_name": node.name if node.delegate is None else "DELEGATE",
        "inputs": np.array([-1 if t is None else t.index for t in node.tensors_in], np.int32),
        "outputs": np.array([t.index for t in node.tensors_out], np.int32),
        "operand_types": [dtype_class(t) for t in node.tensors_in if t is not None],
        "result_types": [dtype_class(t) for t in node.tensors_out],
    }

"""A model in float64: what its results would be without the roundings of float32.

Lives here: `evaluated`, `error_of`.  Not here: who is compared with it (duels.py, zoo.py).

The nodes are computed one after the other by the reference kernels, which compute in the dtype of the arrays they are
given. Weights of float16 and of integers are the numbers that they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from opwright.core.dtypes import as_dtype, float32
from opwright.core.errors import OpError
from opwright.lite import ops
from opwright.lite.custom_options import group_inputs
from opwright.lite.format import Model, schema, versions


class Unevaluated(Exception):
    """The model has something that is not computed here: custom operators, sparse weights, variables, integers."""


def evaluated(content: bytes, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The outputs of a model. inputs: arrays as the model takes them.

    raises Unevaluated
    """
    model = Model.read(content)
    graph = model.subgraphs[0]
    values: dict[int, Any] = {}
    for i, tensor in enumerate(graph.tensors):
        data = model.buffers[tensor.buffer].data
        if data is not None and len(data):
            if tensor.sparsity is not None:
                raise Unevaluated(f"{tensor.name}: sparse weights")
            values[i] = _constant(tensor, data)
    for i, array in zip(graph.inputs, inputs):
        values[int(i)] = _real(graph.tensors[i], np.asarray(array))
    for node in graph.operators:
        code = versions.builtin_code(model.operator_codes[node.opcode_index])
        name = schema.enum("BuiltinOperator")(code).name
        given = [None if i < 0 else values.get(int(i)) for i in node.inputs]
        outputs = [graph.tensors[i] for i in node.outputs]
        if any(map(_is_quantized, outputs)):
            raise Unevaluated(f"{name}: its results are rounded to integers")
        try:
            found = given[:1] if name == "DEQUANTIZE" else _computed(name, node, given, outputs)
        except (OpError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Unevaluated(f"{name}: {error}") from error
        values.update({int(i): np.asarray(array) for i, array in zip(node.outputs, found)})
    return [values[int(i)] for i in graph.outputs]


def error_of(found: Sequence[Any], wanted: Sequence[np.ndarray]) -> float:
    """The greatest distance over the greatest number, of whichever output is worst."""
    return max(
        (
            float(np.max(np.abs(a - b), initial=0) / max(np.max(np.abs(b), initial=0), 1e-30))
            for a, b in zip(found, wanted)
        ),
        default=0.0,
    )


def results(interpreter: Any) -> list[np.ndarray]:
    """All outputs of an interpreter, ours or the official one."""
    return [np.asarray(interpreter.get_tensor(d["index"]), np.float64) for d in interpreter.get_output_details()]


def _computed(name: str, node: Any, given: list[Any], outputs: Sequence[Any]) -> list[Any]:
    operator = ops.get(name)
    dtypes = [as_dtype(tensor.type.name.lower()) for tensor in outputs] if operator.typed_by else ()
    call = operator.from_options(node.builtin_options, dtypes)
    arrays = group_inputs(operator, given, SimpleNamespace(name=name, version=operator.version))  # type: ignore[arg-type]
    result = operator.kernel(call, float32)(*arrays)
    return [result] if operator.profile.single else list(operator.flat_outputs(result))


def _constant(tensor: Any, data: Any) -> np.ndarray:
    dtype = np.dtype(tensor.type.name.lower())
    return _real(tensor, np.frombuffer(bytes(data), dtype).reshape([int(n) for n in tensor.shape]))


def _is_quantized(tensor: Any) -> bool:
    found = tensor.quantization
    return found is not None and found.scale is not None and len(found.scale) > 0


def _real(tensor: Any, array: np.ndarray) -> np.ndarray:
    """The numbers that elements stand for, float64 where they are no integers."""
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    quantization = tensor.quantization
    if not _is_quantized(tensor):
        return array
    along = [1] * array.ndim
    if len(quantization.scale) > 1:
        along[quantization.quantized_dimension] = -1
    scale, zero = (np.asarray(a, np.float64).reshape(along) for a in (quantization.scale, quantization.zero_point))
    return (array.astype(np.float64) - zero) * scale

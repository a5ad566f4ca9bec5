"""A model in float64: what its results would be without the roundings of float32.

Lives here: `evaluated`, `error_of`.  Not here: who is compared with it (duels.py, zoo.py).

The nodes are computed one after the other by the reference kernels, which compute in the dtype of the arrays they are
given, composites by their decompositions. Weights of float16 and of integers, by channel or by block, are the numbers
that they stand for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from opwright.core.dtypes import as_dtype, float32
from opwright.core.errors import OpError
from opwright.lite import ops
from opwright.lite.custom_options import group_inputs
from opwright.lite.format import Model, schema, versions
from opwright.lite.format.constants import PACKED
from opwright.lite.runtime.constants import unpacked


class Unevaluated(Exception):
    """The model has something that is not computed here: custom operators, sparse weights, variables, integers."""


def evaluated(content: bytes | Model, inputs: Sequence[Any], subgraph: int = 0) -> list[np.ndarray]:
    """The outputs of a subgraph of a model. inputs: arrays as it takes them.

    raises Unevaluated
    """
    model = content if isinstance(content, Model) else Model.read(content)
    graph = model.subgraphs[subgraph]
    values: dict[int, Any] = {}
    for i, array in zip(graph.inputs, inputs):
        values[int(i)] = _real(graph.tensors[i], np.asarray(array))
    last_uses = {int(i): n for n, node in enumerate(graph.operators) for i in node.inputs}
    for n, node in enumerate(graph.operators):
        code = versions.builtin_code(model.operator_codes[node.opcode_index])
        name = schema.enum("BuiltinOperator")(code).name
        values.update((int(i), _constant(model, graph, int(i))) for i in node.inputs if int(i) not in values)
        operands = [values[int(i)] for i in node.inputs]
        outputs = [graph.tensors[i] for i in node.outputs]
        if any(map(_is_quantized, outputs)):
            raise Unevaluated(f"{name}: its results are rounded to integers")
        try:
            if name == "DEQUANTIZE":
                found = operands[:1]
            elif name == "STABLEHLO_COMPOSITE":
                found = evaluated(model, operands, node.builtin_options_2.decomposition_subgraph_index)
            elif name in WIDE and operands[0].dtype.kind == "f":
                found = [WIDE[name](node.builtin_options, *operands)]
            else:
                found = _computed(name, node, operands, outputs)
        except (OpError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Unevaluated(f"{name}: {error}") from error
        values.update({int(i): np.asarray(array) for i, array in zip(node.outputs, found)})
        for i in {int(i) for i in node.inputs if last_uses.get(int(i)) == n} - {int(i) for i in graph.outputs}:
            values.pop(i, None)  # as wide as they are, all together would not fit
    return [values[int(i)] if int(i) in values else _constant(model, graph, int(i)) for i in graph.outputs]


def _softmax(options: Any, x: np.ndarray) -> np.ndarray:
    powers: np.ndarray = np.exp(options.beta * (x - x.max(-1, keepdims=True)))
    return powers / powers.sum(-1, keepdims=True)


def _reduced(reduce: Any) -> Any:
    return lambda options, x, axes: reduce(x, axis=tuple(np.unique(axes % x.ndim)), keepdims=options.keep_dims)


WIDE: dict[str, Any] = {"MEAN": _reduced(np.mean), "SUM": _reduced(np.sum), "SOFTMAX": _softmax}
"""Operators whose reference kernels return float32 for operands of float64, too."""


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


def _computed(name: str, node: Any, operands: list[Any], outputs: Sequence[Any]) -> list[Any]:
    operator = ops.get(name)
    dtypes = [as_dtype(tensor.type.name.lower()) for tensor in outputs] if operator.typed_by else ()
    call = operator.from_options(node.builtin_options, dtypes)
    arrays = group_inputs(operator, operands, SimpleNamespace(name=name, version=operator.version))  # type: ignore[arg-type]
    result = operator.kernel(call, float32)(*arrays)
    return [result] if operator.profile.single else list(operator.flat_outputs(result))


def _constant(model: Model, graph: Any, index: int) -> np.ndarray | None:
    """Return the numbers of a constant; None where there is none."""
    if index < 0:
        return None
    tensor = graph.tensors[index]
    name, data = tensor.type.name, model.buffers[tensor.buffer].data
    if data is None or not len(data):
        return None
    if tensor.sparsity is not None:
        raise Unevaluated(f"{tensor.name}: sparse weights")
    dtype = as_dtype(name.lower())
    shape = [int(n) for n in tensor.shape]
    if name not in PACKED:
        return _real(tensor, np.frombuffer(bytes(data), dtype.np).reshape(shape))
    array = unpacked(data, PACKED[name], dtype, math.prod(shape)).reshape(shape)
    details = getattr(tensor.quantization, "details", None)
    if details is None:
        return _real(tensor, array)
    scales = _constant(model, graph, details.scales)
    blocks = array.astype(np.float64).reshape(*shape[:-1], -1, details.block_size)
    return (blocks * scales.reshape(blocks.shape[:-1])[..., None]).reshape(shape)


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

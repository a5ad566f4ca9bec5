"""A model as plain values, equal for models that mean the same: without the order of tensors and buffers.

Written from the schema alone, without the importer or the exporter. Left out: tensors that no operator, signature or
graph names, versions of operators and the run time that follows from them. Equal: an options table left out and one of
zeros; absent operands at the end and none; a rank that is stated and one that follows from sizes. Subgraphs of one name
are told apart by numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwright.lite.format import schema
from opwright.lite.format.constants import BITS

RESTATED = {"CAST": ("in_data_type", "out_data_type")}  # options that repeat types of tensors
FRAMEWORK_OWN = ("min_runtime_version",)  # metadata that follows from the operators


def canonical(model: Any) -> Any:
    """The model as nested tuples."""
    names: dict[str, int] = {}
    for s in model.subgraphs:
        names[s.name] = names.get(s.name, -1) + 1
        s.name = f"{s.name}_{names[s.name]}" if names[s.name] else s.name
    return {
        "subgraphs": [_subgraph(model, s) for s in model.subgraphs],
        "signatures": sorted(_signature(model, d) for d in model.signature_defs),
        "description": model.description,
        "metadata": [(m.name, _data(model, m.buffer)) for m in model.metadata if m.name not in FRAMEWORK_OWN],
        "attachment": model.attachment,
    }


def _ints(vector: Any) -> list[int]:
    return np.asarray(() if vector is None else vector).tolist()


def _data(model: Any, index: int) -> bytes | None:
    data = model.buffers[index].data
    return None if data is None else bytes(data)


def _signature(model: Any, d: Any) -> Any:
    s = model.subgraphs[d.subgraph_index]
    inputs, outputs = _ints(s.inputs), _ints(s.outputs)
    return (
        d.signature_key,
        int(d.subgraph_index),
        sorted((m.name, inputs.index(m.tensor_index)) for m in d.inputs),
        sorted((m.name, outputs.index(m.tensor_index)) for m in d.outputs),
    )


def _subgraph(model: Any, s: Any) -> Any:
    number: dict[int, int] = {}
    tensors = []

    def place(t: int) -> int:
        if t < 0:
            return -1
        if t not in number:
            number[t] = len(number)
            tensors.append(_tensor(model, s, t))
        return number[t]

    inputs = [place(t) for t in _ints(s.inputs)]
    operators = [_operator(model, s, op, place) for op in s.operators]
    outputs = [place(t) for t in _ints(s.outputs)]
    return s.name, inputs, operators, outputs, tensors


def _operator(model: Any, s: Any, op: Any, place: Any) -> Any:
    code = model.operator_codes[op.opcode_index]
    number = max(int(code.builtin_code), int(code.deprecated_builtin_code))
    name = schema.BuiltinOperator(number).name
    ins = _ints(op.inputs)
    while ins and ins[-1] == -1:
        ins.pop()
    options = op.builtin_options if op.builtin_options is not None else op.builtin_options_2
    fields: dict[str, Any] = {}
    if options is not None:
        for field in schema.table(options.table_name).fields:
            value = getattr(options, field.name)
            value = tuple(_ints(value)) if field.kind == "vector" else value
            if value and field.name not in RESTATED.get(name, ()):
                fields[field.name] = value
    types = [_tensor(model, s, t) for t in _ints(op.intermediates) if t >= 0]
    custom = None if op.custom_options is None else bytes(op.custom_options)
    return name, code.custom_code, [place(t) for t in ins], [place(t) for t in _ints(op.outputs)], fields, custom, types


def _tensor(model: Any, s: Any, t: int) -> Any:
    tensor = s.tensors[t]
    shape, signature = _ints(tensor.shape), _ints(tensor.shape_signature)
    data = _data(model, tensor.buffer) if tensor.buffer else None
    bits = BITS.get(tensor.type.name)
    if data is not None and bits is not None and tensor.sparsity is None:
        data = data[: -(-int(np.prod(shape, dtype=object)) * bits // 8)]  # what is behind the elements is padding
    ranked = bool(tensor.has_rank) or bool(shape) or data is not None
    return (
        tensor.name or "",
        tensor.type.name,
        shape,
        signature if -1 in signature else [],
        ranked,
        data,
        bool(tensor.is_variable),
        _quantization(model, s, tensor.quantization),
        _sparsity(tensor.sparsity),
    )


def _quantization(model: Any, s: Any, q: Any) -> Any:
    if q is None:
        return None
    details: Any = None
    if q.details is not None and q.details.table_name == "CustomQuantization":
        details = None if q.details.custom is None else bytes(q.details.custom)
    elif q.details is not None:
        scales = [None if i < 0 else _tensor(model, s, i) for i in (q.details.scales, q.details.zero_points)]
        axes = _ints(getattr(q.details, "quantized_dimensions", ()))
        details = (q.details.table_name, scales, q.details.block_size, axes)
    parts = [np.asarray(p).tobytes() for p in (q.scale, q.zero_point, q.min, q.max)]
    if not any(parts) and details is None:
        return None
    return (*parts, q.quantized_dimension if len(q.scale) else 0, details)


def _sparsity(sparsity: Any) -> Any:
    if sparsity is None:
        return None
    levels = [
        m.dense_size if m.format == 0 else (_ints(m.array_segments.values), _ints(m.array_indices.values))
        for m in sparsity.dim_metadata
    ]
    return _ints(sparsity.traversal_order), _ints(sparsity.block_map), levels

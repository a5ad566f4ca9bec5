"""Mutations of models, one at a time: every change of one node, its tensors and its options.

Lives here: `changes`, the table of what is changed to what.
Not here: the models (good_models.py), what must become of the broken ones (test_lite_mutants.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opwright.lite.format import Model, objects, schema
from opwright.lite.format.constants import bytes_of, element_count

Feeds = dict[int, np.ndarray]
Change = tuple[str, Callable[[Model], Feeds | None]]
"""A name, and what changes a model; it gives values for inputs, by tensor, that are to be fed."""
INT32_MAX = 2**31 - 1
NUMBERS = (-1, 0, 1, 7, 255, -(2**31), INT32_MAX)
REALS = (0.0, -1.0, 1e38, float("nan"), float("inf"))
SCALES = (0.0, -1.0, 1e-45, 1e38, float("nan"), float("inf"))
ZERO_POINTS = (-129, 256, -(2**31), 2**40)
SIZES = (0, 1, INT32_MAX)
DTYPES = {
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FLOAT32": np.dtype(np.float32),
    "INT16": np.dtype(np.int16),
    "UINT32": np.dtype(np.uint32),
}
MOST_ELEMENTS = 4  # of a constant or a vector, changed one by one
MOST_BYTES = 60  # of a custom operator's options, changed one by one
LONGEST = 1 << 16  # bytes that a constant is given so that it fits its new type or shape


def changes(node: int, model: Model) -> Iterator[Change]:
    """Each change of a node of the first subgraph. They are applied to copies of the model."""
    main = model.subgraphs[0]
    operator = main.operators[node]
    yield from _of_wiring(node, operator)
    sides = (("input", operator.inputs), ("output", operator.outputs), ("intermediate", operator.intermediates))
    seen: set[int] = set()
    for side, indices in sides:
        for place, index in enumerate(np.asarray(indices).tolist()):
            if index >= 0 and index not in seen:
                seen.add(index)
                for label, change in _of_tensor(model, main.tensors[index], index):
                    yield f"{side} {place}: {label}", change
    yield from _of_options(node, operator)


# ---- which tensors -------------------------------------------------------------------------------------------


def _of_wiring(node: int, operator: Any) -> Iterator[Change]:
    for side in ("inputs", "outputs"):
        indices = np.asarray(getattr(operator, side)).tolist()
        for place, index in enumerate(indices):
            if side == "inputs" and index >= 0:
                yield f"input {place} left out", _wire(node, side, [*indices[:place], -1, *indices[place + 1 :]])
        if indices:
            yield f"{side}: one too few", _wire(node, side, indices[:-1])
            yield f"{side}: none", _wire(node, side, [])
            yield f"{side}: the last twice", _wire(node, side, [*indices, indices[-1]])
        yield f"{side}: one too many", _one_more(node, side)
    if len(operator.inputs) and len(operator.outputs):
        yield (
            "an output that is an input",
            _wire(node, "outputs", [int(max(0, operator.inputs[0])), *list(operator.outputs[1:])]),
        )


def _wire(node: int, side: str, indices: list[int]) -> Callable[[Model], None]:
    return lambda model: setattr(model.subgraphs[0].operators[node], side, indices)


def _one_more(node: int, side: str) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        main = model.subgraphs[0]
        main.tensors.append(objects.Tensor(shape=[2], type=schema.TensorType.FLOAT32, name="more"))
        operator = main.operators[node]
        setattr(operator, side, [*np.asarray(getattr(operator, side)).tolist(), len(main.tensors) - 1])
        if side == "inputs":
            main.inputs = [*np.asarray(main.inputs).tolist(), len(main.tensors) - 1]

    return change


# ---- one tensor ----------------------------------------------------------------------------------------------


def _of_tensor(model: Model, t: Any, index: int) -> Iterator[Change]:
    for kind in schema.TensorType:
        if kind != t.type:
            yield f"type {kind.name}", _retype(index, kind)
    shape = np.asarray(t.shape).tolist()
    shapes = [[], [0], [1, *shape], shape[1:], [1] * 8]
    shapes += [[*shape[:i], size, *shape[i + 1 :]] for i, d in enumerate(shape) for size in (*SIZES, d + 1)]
    for other in shapes:
        if other != shape:
            yield f"shape {other}", _reshape(index, other)
    yield from _of_quantization(index, t, shape)
    if not t.buffer:
        yield "a variable" if not t.is_variable else "no variable", _set(index, is_variable=not t.is_variable)
        yield "a constant of zeros", _to_constant(index)
        if index in np.asarray(model.subgraphs[0].inputs).tolist():
            yield from _of_fed(index, t)
    elif model.buffers[t.buffer].data is not None and len(model.buffers[t.buffer].data):
        yield "not constant", _to_input(index)
        yield from _of_constant(index, t, model.buffers[t.buffer].data)


def _tensor(model: Model, index: int) -> Any:
    return model.subgraphs[0].tensors[index]


def _set(index: int, **fields: Any) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        for name, value in fields.items():
            setattr(_tensor(model, index), name, value)

    return change


def _fill_up(model: Model, t: Any) -> None:
    """A constant whose buffer would be too short gets zeros at its end, where that is no more than LONGEST."""
    held = model.buffers[t.buffer]
    if t.buffer and held.data is not None:
        expected = bytes_of(schema.TensorType(t.type).name, element_count(np.asarray(t.shape).tolist())) or 0
        if len(held.data) < expected <= LONGEST:
            held.data = np.pad(np.asarray(held.data), (0, expected - len(held.data)))


def _retype(index: int, kind: Any) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        t = _tensor(model, index)
        t.type = kind
        _fill_up(model, t)

    return change


def _reshape(index: int, shape: list[int]) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        t = _tensor(model, index)
        t.shape, t.shape_signature = shape, None
        _fill_up(model, t)

    return change


def _of_quantization(index: int, t: Any, shape: list[int]) -> Iterator[Change]:
    q = t.quantization
    has = q is not None and len(q.scale) > 0
    if has:
        yield "no quantization", _set(index, quantization=None)
        yield "no zero points", _quantize(index, list(q.scale), None)
    for scale in SCALES:
        yield f"scale {scale}", _quantize(index, [scale], [0])
    for zero in ZERO_POINTS:
        yield f"zero point {zero}", _quantize(index, [0.5], [zero])
    if not has:
        yield "scale 0.5", _quantize(index, [0.5], [0])
    for axis, size in enumerate(shape):
        if 1 < size <= 64:
            yield f"{size} scales along {axis}", _quantize(index, [0.5] * size, [0] * size, axis)
    for axis in (-1, len(shape), INT32_MAX):
        yield f"quantized dimension {axis}", _quantize(index, [0.5], [0], axis)
    yield "two scales", _quantize(index, [0.5, 0.25], [0, 0])
    yield "more zero points than scales", _quantize(index, [0.5], [0, 0])


def _quantize(index: int, scales: Any, zeros: Any, axis: int = 0) -> Callable[[Model], None]:
    return lambda model: setattr(
        _tensor(model, index),
        "quantization",
        objects.QuantizationParameters(
            scale=np.float32(scales), zero_point=None if zeros is None else np.int64(zeros), quantized_dimension=axis
        ),
    )


def _to_constant(index: int) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        t, main = _tensor(model, index), model.subgraphs[0]
        count = element_count(np.asarray(t.shape).tolist())
        size = bytes_of(schema.TensorType(t.type).name, count)
        raw = np.zeros(4 if size is None else min(size, LONGEST), np.uint8)
        model.buffers.append(objects.Buffer(data=raw))
        t.buffer = len(model.buffers) - 1
        main.inputs = [i for i in np.asarray(main.inputs).tolist() if i != index]

    return change


def _to_input(index: int, value: Any = None) -> Callable[[Model], Feeds]:
    """value: of all elements; by default those that the constant has."""

    def change(model: Model) -> Feeds:
        t = _tensor(model, index)
        raw = bytes(model.buffers[t.buffer].data)
        t.buffer = 0
        model.subgraphs[0].inputs = [*np.asarray(model.subgraphs[0].inputs).tolist(), index]
        dtype = DTYPES.get(schema.TensorType(t.type).name)
        if dtype is None:
            return {}
        inputs = np.frombuffer(raw[: len(raw) // dtype.itemsize * dtype.itemsize], dtype)
        return {index: inputs if value is None else np.full_like(inputs, value)}

    return change


def _of_fed(index: int, t: Any) -> Iterator[Change]:
    """Values of an input that no kernel may take unseen: they are known only when the model runs."""
    dtype = DTYPES.get(schema.TensorType(t.type).name)
    for value in () if dtype is None else _extremes(dtype):
        yield f"fed {value}", lambda m, value=value: {index: np.full(1, value, dtype)}


def _extremes(dtype: Any) -> tuple[Any, ...]:
    if dtype.kind == "f":
        return REALS
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return tuple(v for v in dict.fromkeys((*NUMBERS, least, most)) if least <= v <= most)


def _of_constant(index: int, t: Any, raw: Any) -> Iterator[Change]:
    dtype = DTYPES.get(schema.TensorType(t.type).name)
    if dtype is None or (t.quantization is not None and len(t.quantization.scale)):
        return
    values = _extremes(dtype)
    count = len(raw) // dtype.itemsize
    for value in values:
        for place in (*range(min(count, MOST_ELEMENTS)), None):
            where = "all elements" if place is None else f"element {place}"
            if place is not None or count > 1:
                yield f"{where} {value}", _put(index, dtype, place, value)
        yield f"given as {value}", _to_input(index, value)


def _put(index: int, dtype: Any, place: int | None, value: Any) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        held = model.buffers[_tensor(model, index).buffer]
        data = np.frombuffer(bytes(held.data)[: len(held.data) // dtype.itemsize * dtype.itemsize], dtype).copy()
        data[slice(None) if place is None else place] = value
        held.data = data.view(np.uint8)

    return change


# ---- options -------------------------------------------------------------------------------------------------


def _of_options(node: int, operator: Any) -> Iterator[Change]:
    union = "builtin_options" if operator.builtin_options is not None else "builtin_options_2"
    options = getattr(operator, union)
    others = objects.AddOptions() if getattr(options, "table_name", "") != "AddOptions" else objects.SubOptions()
    yield (
        "options: those of another operator",
        lambda m: setattr(m.subgraphs[0].operators[node], "builtin_options", others),
    )
    if options is None:
        yield from _of_custom_options(node, operator.custom_options)
        return
    yield "options: none", lambda m: setattr(m.subgraphs[0].operators[node], union, None)
    for f in schema.table(options.table_name).fields:
        for value in _values(f, getattr(options, f.name)):
            yield f"{f.name}={_shown(value)}", _option(node, union, f.name, value)


def _of_custom_options(node: int, raw: Any) -> Iterator[Change]:
    """Bytes of a custom operator: of FlexBuffers, mostly."""
    if raw is None or not len(raw):
        return
    held = np.asarray(raw)
    others = [held[:0], held[:-1], held[: len(held) // 2], np.full(9, 255, np.uint8)]
    for place in range(0, len(held), max(1, len(held) // MOST_BYTES)):
        for value in (0, 1, 255):
            other = held.copy()
            other[place] = value
            others.append(other)
    for i, other in enumerate(others):
        yield (
            f"custom options, change {i}",
            lambda m, other=other: setattr(m.subgraphs[0].operators[node], "custom_options", other),
        )


def _shown(value: Any) -> str:
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def _values(f: Any, now: Any) -> list[Any]:
    """Other values of an options field."""
    if f.kind == "vector":
        if f.scalar not in ("int32", "int64", "uint8"):
            return []
        if f.scalar == "uint8":
            return [None, np.zeros(1, np.uint8), np.full(9, 255, np.uint8)]
        dtype = np.dtype(f.scalar)
        most = np.iinfo(dtype)
        held = np.zeros(0, dtype) if now is None else np.asarray(now, dtype)
        result = [held[:0], held[:-1], np.append(held, dtype.type(1)), np.zeros(70, dtype)]
        for value in (-1, 0, 1, 7, most.min, most.max):
            for place in range(min(len(held), MOST_ELEMENTS)):
                other = held.copy()
                other[place] = value
                result.append(other)
        return result
    if f.scalar == "bool":
        return [not now]
    if f.scalar == "float32":
        return list(REALS)
    if f.scalar in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "int16"):
        most = np.iinfo(np.dtype(f.scalar))
        values = sorted({0, 1, 2, 7, int(most.max), int(most.max) // 2 + 1, *((-1, int(most.min)) if most.min else ())})
        return [v for v in values if v != now]
    return [None, ""] if f.scalar == "string" or f.kind == "string" else []


def _option(node: int, union: str, name: str, value: Any) -> Callable[[Model], None]:
    return lambda model: setattr(getattr(model.subgraphs[0].operators[node], union), name, value)

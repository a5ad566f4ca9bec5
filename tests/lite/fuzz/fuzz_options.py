"""Mutants of models of one operator, for both engines: the case of a number is always the same file and inputs.

Lives here: `case` (a drawn model, changed in its options, its structure or its bytes), the inputs it is run on.
Not here: running and comparing (fuzz_engines.py), changes of structure and bytes (fuzz_mutants.py), the models
(../ops/drawn_rows_*.py).

Three of five cases change options alone: the fields of options tables, words of custom options, quantisation
parameters, sizes of tensors, elements of constant integers (axes, paddings, begins). The others change any field of any
table, or bytes. Inputs may be resized past 256 elements, where tables of a byte's values are taken.
"""

from __future__ import annotations

import functools
import random
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "ops"))

import fuzz_mutants
from drawn import Draw, feeds, model_of
from drawn_table import ROWS

from opwright.core import errors
from opwright.lite.format import schema

MODES = ("options", "options", "options", "structure", "bytes")
TARGETS = ("host", "x86-64-v3")
PAIRS = [(row, kind) for row in ROWS for kind in row.kinds]
SCALES = (*fuzz_mutants.FLOATS, 1e-38, 1e-30, 1e-9, 0.25, 0.5, 2.0, 100.0, 1e9, 1e30)
SIZES = (0, 1, 2, 3, 7, 8, 16, 17, 33, 256, 257, 300, 1024, 2**16, 2**20, 2**31 - 1, -1, -2)
COMPILED = ("FLOAT32", "INT8", "UINT8", "INT16", "INT32")
SLOW = ("LSH_PROJECTION",)
"""Rows whose work is a Python function for each pair of elements: not resized."""
DRAWN = 50  # models of a row that are started from


@dataclass
class Case:
    """A file and what it is run on. label: the operator and type; mode; target; changed: what was, in words."""

    number: int
    label: str
    mode: str
    target: str
    data: bytes
    feeds: list[np.ndarray]
    within: float
    larger: int = 1
    axis: int = 0
    changed: list[str] = field(default_factory=list)


@functools.cache
def rows() -> list[tuple[Any, str]]:
    """The rows of the table operator x type; those of types that are compiled three times, to be drawn more often."""
    return [(row, kind) for row, kind in PAIRS for _ in range(3 if kind in COMPILED else 1)]


EXTREME = (2**20, 2**31 - 1, -(2**31), 255, 100, -1, 0)
"""Values for each integer field."""


@functools.cache
def sweep() -> list[tuple[Any, str, str, Any]]:
    """Each field of each row's options table with each extreme: row, type, field, what it is."""
    result = []
    for row, kind in PAIRS:
        model = model_of(row.name, row.draw(Draw(0, kind)))
        for table in _tables(model):
            for place in schema.table(table.table_name).fields:
                if place.kind == "scalar" and place.scalar == "float32":
                    values: Any = SCALES
                elif place.kind == "scalar" and place.scalar == "bool":
                    values = (True, False)
                elif place.kind == "scalar":
                    values = [*EXTREME, *(range(-1, 7) if place.enum else ())]
                elif place.kind == "vector" and place.scalar != "float32":
                    values = [np.array([x], schema.SCALARS[place.scalar][2]) for x in EXTREME if _holds(place, x)]
                else:
                    continue
                result += [(row, kind, place.name, v) for v in values if not isinstance(v, int) or _holds(place, v)]
    return result


def _holds(place: schema.SchemaField, value: int) -> bool:
    limits = np.iinfo(schema.SCALARS[place.scalar][2]) if place.scalar != "bool" else None
    return limits is None or int(limits.min) <= value <= int(limits.max)


def _tables(model: Any) -> list[Any]:
    return [t for op in _operators(model) for t in (op.builtin_options, op.builtin_options_2) if t is not None]


def swept(number: int) -> Case:
    """A case of the sweep, which is as long as `sweep()`."""
    row, kind, name, value = sweep()[number % len(sweep())]
    drawn = row.draw(Draw(number // len(sweep()), kind))
    model = model_of(row.name, drawn)
    for table in _tables(model):
        if hasattr(table, name):
            setattr(table, name, value)
    return Case(
        number,
        f"{row} {kind}",
        "sweep",
        TARGETS[number % len(TARGETS)],
        model.to_bytes(),
        feeds(drawn),
        row.within,
        changed=[f"{name} = {value!r}"],
    )


def case(number: int, mode: str | None = None) -> Case:
    """The case of a number; of one mode, or of whichever the number draws."""
    if mode == "sweep":
        return swept(number)
    draw = random.Random(f"engines {number}")
    drawn_mode, target = draw.choice(MODES), TARGETS[number % len(TARGETS)]
    mode = mode or drawn_mode
    row, kind = draw.choice(rows())
    drawn = row.draw(Draw(draw.randrange(DRAWN), kind))
    model = model_of(row.name, drawn)
    changed: list[str] = []
    if mode == "options":
        changed += [draw.choice(CHANGES)(model, draw) for _ in range(draw.choice((0, 1, 1, 1, 1, 2, 2, 3)))]
        try:
            data = model.to_bytes()
        except errors.OpError:  # what no file can hold
            data = model_of(row.name, row.draw(Draw(0, kind))).to_bytes()
    else:
        data = model.to_bytes()
        if mode == "structure":
            data = fuzz_mutants._changed_objects(data, draw)
        else:
            data = fuzz_mutants.changed_bytes(data, draw)
    sizes = [x.size for x in feeds(drawn) if x.size]
    larger = -(-draw.choice((257, 300, 1100)) // max(min(sizes, default=1), 1)) if draw.random() < 0.4 else 1
    if row.name in SLOW:
        larger = 1
    return Case(
        number,
        f"{row} {kind}",
        mode,
        target,
        data,
        feeds(drawn),
        row.within,
        larger,
        draw.choice((0, 0, -1)),
        [c for c in changed if c],
    )


# ---- changes --------------------------------------------------------------------------------------------------------


def _operators(model: Any) -> list[Any]:
    return [operator for graph in model.subgraphs for operator in graph.operators]


def _tensors(model: Any) -> list[Any]:
    return [tensor for graph in model.subgraphs for tensor in graph.tensors]


def _options(model: Any, draw: random.Random) -> str:
    """A field of an options table."""
    tables = _tables(model)
    places = [(t, f) for t in tables for f in schema.table(t.table_name).fields]
    if not places:
        return _custom(model, draw)
    table, place = draw.choice(places)
    if place.kind == "scalar":
        new = fuzz_mutants._scalar(place, draw)
    elif place.kind == "vector":
        new = fuzz_mutants._vector(place, getattr(table, place.name), draw)
    else:
        new = fuzz_mutants._other(place, getattr(table, place.name), draw, tables)
    setattr(table, place.name, new)
    return f"{table.table_name}.{place.name} = {new!r}"[:120]


def _custom(model: Any, draw: random.Random) -> str:
    """A byte, word or float of custom options."""
    operators = [op for op in _operators(model) if op.custom_options is not None and len(op.custom_options) > 3]
    if not operators:
        return ""
    operator = draw.choice(operators)
    data = bytearray(bytes(np.asarray(operator.custom_options, np.uint8)))
    at = draw.randrange(len(data))
    if draw.random() < 0.5:
        data[at] = draw.choice((0, 1, 2, 127, 128, 255, draw.randrange(256)))
    else:
        at = min(at // 4 * 4, len(data) - 4)
        word = struct.pack("<I", draw.choice(fuzz_mutants.EXTREMES) & 0xFFFFFFFF)
        data[at : at + 4] = draw.choice((word, struct.pack("<f", draw.choice(SCALES))))
    operator.custom_options = np.frombuffer(bytes(data), np.uint8)
    return f"custom_options[{at}]"


def _quantization(model: Any, draw: random.Random) -> str:
    """A scale, a zero point, the axis of scales, or all of them."""
    tensors = [t for t in _tensors(model) if t.quantization is not None]
    if not tensors:
        return _options(model, draw)
    tensor = draw.choice(tensors)
    q = tensor.quantization
    what = draw.choice(("scale", "scale", "zero_point", "zero_point", "quantized_dimension", "length", "none"))
    if what == "none":
        tensor.quantization = None
    elif what == "quantized_dimension":
        q.quantized_dimension = draw.choice((-1, 0, 1, 2, 3, 4, 2**31 - 1, -(2**31)))
    elif what == "length":
        name = draw.choice(("scale", "zero_point"))
        values = getattr(q, name)
        if values is not None and len(values):
            setattr(q, name, np.resize(values, draw.choice((0, 1, 2, len(values) + 1, len(values) - 1))))
    else:
        values = np.array([] if getattr(q, what) is None else getattr(q, what))
        if len(values):
            new = (
                draw.choice(SCALES)
                if what == "scale"
                else max(min(draw.choice(fuzz_mutants.NUMBERS), 2**63 - 1), -(2**63))
            )
            with np.errstate(all="ignore"):
                values[draw.randrange(len(values))] = new
            setattr(q, what, values)
            return f"{tensor.name}.{what} = {new!r}"
    return f"{tensor.name}.{what}"


def _shape(model: Any, draw: random.Random) -> str:
    """A size, or the rank, of a tensor."""
    tensor = draw.choice(_tensors(model))
    shape = [] if tensor.shape is None else [int(n) for n in tensor.shape]
    change = draw.random()
    if shape and change < 0.7:
        shape[draw.randrange(len(shape))] = draw.choice(SIZES)
    elif change < 0.85:
        shape.insert(draw.randrange(len(shape) + 1), draw.choice((1, 1, 2, 0, -1)))
    elif shape:
        del shape[draw.randrange(len(shape))]
    tensor.shape = shape
    return f"{tensor.name}.shape = {shape}"


def _constant(model: Any, draw: random.Random) -> str:
    """An element of a constant of whole numbers that is not quantised: an axis, a size, a begin."""
    wide = {schema.TensorType.INT32: np.int32, schema.TensorType.INT64: np.int64}
    result = [t for t in _tensors(model) if t.type in wide and t.buffer and model.buffers[t.buffer].data is not None]
    if not result:
        return _options(model, draw)
    tensor = draw.choice(result)
    buffer, dtype = model.buffers[tensor.buffer], wide[tensor.type]
    data = np.frombuffer(bytes(np.asarray(buffer.data, np.uint8)), np.uint8)
    values = data[: data.size // dtype().itemsize * dtype().itemsize].view(dtype).copy()
    if not values.size:
        return ""
    limits = np.iinfo(dtype)
    number = draw.choice(fuzz_mutants.NUMBERS) if draw.random() < 0.6 else draw.randrange(-9, 40)
    at = draw.randrange(values.size)
    values[at] = min(max(number, int(limits.min)), int(limits.max))
    buffer.data = np.frombuffer(values.tobytes(), np.uint8)
    return f"{tensor.name}[{at}] = {values[at]}"


CHANGES = (_options, _options, _options, _options, _custom, _quantization, _quantization, _shape, _constant, _constant)

"""Valid models of every operator, changed at random where it hurts: shapes, types, indices, options, constants.

Each must run or be refused with an OpError: no other exception, no crash, no hang, no big memory.
"""

from __future__ import annotations

import random
import resource
import time
from typing import Any

import cases
import numpy as np
import pytest
from one_operator import model_of, output_types

import opwright.lite as lite
from opwright.core import flags
from opwright.core.errors import OpError
from opwright.lite.format import Model, objects, schema

ROWS = [(name, row) for name, rows in cases.CASES.items() for row in rows if not row.says]
EXTREME = (-(2**31), -65536, -7, -2, -1, 0, 1, 2, 3, 5, 7, 127, 255, 1 << 16, 1 << 20, 2**31 - 1)
SLOW = 5.0  # seconds that one mutant may take


def pick(rng: random.Random, items: Any) -> Any:
    return items[rng.randrange(len(items))]


def number(rng: random.Random) -> int:
    return pick(rng, EXTREME) if rng.random() < 0.6 else rng.randint(-10, 10)


def change_list(rng: random.Random, values: Any) -> list[int]:
    values = np.asarray(values).tolist()
    act = rng.randrange(4)
    if act == 0 and values:
        values[rng.randrange(len(values))] = number(rng)
    elif act == 1:
        values.insert(rng.randint(0, len(values)), abs(number(rng)) % 9)
    elif act == 2 and values:
        values.pop(rng.randrange(len(values)))
    else:
        rng.shuffle(values)
    return values


def shape(rng: random.Random, model: Model) -> None:
    t = pick(rng, model.subgraphs[0].tensors)
    t.shape = change_list(rng, t.shape)


def kind(rng: random.Random, model: Model) -> None:
    pick(rng, model.subgraphs[0].tensors).type = pick(rng, list(schema.TensorType))


def indices(rng: random.Random, model: Model) -> None:
    owner = pick(rng, [model.subgraphs[0], *model.subgraphs[0].operators])
    side = pick(rng, ("inputs", "outputs"))
    setattr(owner, side, [min(max(i, -3), 12) for i in change_list(rng, getattr(owner, side))])


def options(rng: random.Random, model: Model) -> None:
    op = model.subgraphs[0].operators[0]
    if op.builtin_options is None or rng.random() < 0.1:
        op.builtin_options = pick(rng, (None, objects.AddOptions(), objects.Conv2DOptions(stride_w=1, stride_h=1)))
        return
    fields = schema.table(op.builtin_options.table_name).fields
    if fields:
        field = pick(rng, fields)
        value: Any = number(rng)
        if field.kind == "vector":
            value = change_list(rng, getattr(op.builtin_options, field.name)) if field.scalar == "int32" else b"x"
        elif field.scalar == "bool":
            value = rng.random() < 0.5
        elif field.scalar == "float32":
            value = pick(rng, (0.0, -1.0, 1e38, float("nan"), float("inf")))
        elif field.scalar == "int8":
            value = value % 24 - 2
        setattr(op.builtin_options, field.name, value)


def constant(rng: random.Random, model: Model) -> None:
    buffer = pick(rng, model.buffers)
    if buffer.data is None or not len(buffer.data):
        return
    data = np.array(buffer.data)
    if len(data) % 4 == 0 and rng.random() < 0.8:
        data.view(np.int32)[rng.randrange(len(data) // 4)] = number(rng)
    else:
        data[rng.randrange(len(data))] = rng.randrange(256)
    buffer.data = data[: len(data) - rng.randrange(2) * rng.randrange(4)]


def buffer_index(rng: random.Random, model: Model) -> None:
    pick(rng, model.subgraphs[0].tensors).buffer = rng.randrange(len(model.buffers) + 1)


def code(rng: random.Random, model: Model) -> None:
    operator = model.operator_codes[0]
    if rng.random() < 0.5:
        operator.version = pick(rng, (0, 1, 2, 3, 9))
    else:
        number = pick(rng, sorted(int(op.code) for op in lite.ops.operators().values()))
        operator.builtin_code, operator.deprecated_builtin_code = number, min(number, 127)


def flavour(rng: random.Random, model: Model) -> None:
    t = pick(rng, model.subgraphs[0].tensors)
    act = rng.randrange(3)
    if act == 0:
        t.is_variable = True
    elif act == 1:
        t.quantization = objects.QuantizationParameters(
            scale=[pick(rng, (0.0, 0.5, float("nan")))], zero_point=[number(rng)]
        )
    else:
        t.shape_signature = change_list(rng, t.shape)


CHANGES = (shape, shape, kind, indices, options, options, constant, constant, buffer_index, code, flavour)


def mutant(seed: int) -> tuple[str, bytes]:
    rng = random.Random(seed)
    name, row = ROWS[seed % len(ROWS)]
    model = model_of(name, row, output_types(name, row), all_dynamic=rng.random() < 0.3)
    done = []
    for _ in range(rng.randint(1, 3)):
        change = pick(rng, CHANGES)
        change(rng, model)
        done.append(change.__name__)
    return f"{name} {row}: {done}", model.to_bytes()


def run(content: bytes, seed: int) -> str:
    """What became of a mutant: where it was refused, or that it ran."""
    rng = np.random.default_rng(seed)
    try:
        interpreter = lite.Interpreter(model_content=content)
    except OpError:
        return "refused at load"
    try:
        interpreter.allocate_tensors()
    except OpError:
        return "refused at allocation"
    for detail in interpreter.get_input_details():
        dtype = np.dtype(detail["dtype"])
        value = rng.integers(-3, 4, detail["shape"]).astype(object if dtype.kind == "S" else dtype)
        if dtype.kind == "S":
            value[...] = b"s"
        try:
            interpreter.set_tensor(detail["index"], value)
        except OpError:
            return "refused an input"
    for _ in range(2):
        try:
            interpreter.invoke()
        except OpError:
            return "refused in a run"
    for detail in interpreter.get_output_details():
        interpreter.get_tensor(detail["index"])
    return "ran"


def check(seeds: range) -> dict[str, int]:
    outcomes: dict[str, int] = {}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with flags.override(max_activation_bytes=32 << 20):
        for seed in seeds:
            try:
                told, content = mutant(seed)
            except OpError:  # what it should hold, no file can
                continue
            start = time.perf_counter()
            try:
                outcome = run(content, seed)
            except Exception as error:
                pytest.fail(f"seed {seed}, {told}: {type(error).__name__}: {error}")
            assert time.perf_counter() - start < SLOW, f"seed {seed}, {told}"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400 << 10, f"memory grew by {grown >> 10} MB"
    return outcomes


def test_mutants():
    outcomes = check(range(1500))
    assert outcomes["ran"] > 100
    assert outcomes["refused at load"] > 100
    assert outcomes["refused at allocation"] > 100


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_mutants():
    check(range(1500, 100_000))

"""Models of every operator that run, broken: one thing at a time (model_mutations.py), and several things at random.

Each must run or be refused, when it is loaded, allocated, given its inputs or run, with an OpError that a user can act
on: it is what the official interpreter raises (a RuntimeError or ValueError), names node, operator and tensors, and
says what was found and what is wanted, in words that are not Python's or NumPy's. No other exception, no crash, no
hang, no big memory.
"""

from __future__ import annotations

import random
import re
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import cases
import drawn_table
import numpy as np
import pytest
from good_models import Good, good
from model_mutations import Change, changes
from one_operator import model_of, output_types

import opwright.lite as lite
from opwright.core import flags
from opwright.core.errors import InternalError, OpError
from opwright.lite.format import Model, objects, schema
from thorough import THOROUGH, examples

pytestmark = pytest.mark.usefixtures("reference_unless_thorough")

ROWS = [(name, row) for name, rows in cases.CASES.items() for row in rows if not row.says]
EXTREME = (-(2**31), -65536, -7, -2, -1, 0, 1, 2, 3, 5, 7, 127, 255, 1 << 16, 1 << 20, 2**31 - 1)
SLOW = 5.0  # seconds that one mutant may take
SAMPLE, SAMPLED_MODELS = (
    (16, 6) if THOROUGH else (4, 1)
)  # changes and models of each operator that a run of the suite tests


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


FOREIGN = re.compile(
    r"\w+(Error|Exception|Warning): |NoneType|object has no|index out of range|out of bounds (for axis|with size)|"
    r"broadcast (together|input)|could not be broadcast|shape mismatch|cannot (reshape|convert)|Cannot cast array|"
    r"same_kind|ufunc|negative dimensions are|array is too big|not supported between|only integer scalar|mend infer"
)
"""Words of Python and NumPy, which mean that a check is missing."""


def fitting(detail: Any, value: Any, rng: np.random.Generator) -> np.ndarray:
    """A value of an input's type and shape, from what a case has or drawn."""
    dtype, shape = np.dtype(detail["dtype"]), detail["shape"]
    if dtype.kind in "SUO":
        return np.full(shape, b"s", object)
    if value is None or not value.size or value.dtype.kind in "OSU":
        value = rng.integers(0, 2, shape)
    if dtype.kind != "c":
        value = value.real
    with np.errstate(all="ignore"):
        return np.resize(value, shape).astype(dtype)


def run(content: bytes, feeds: dict[int, np.ndarray], seed: int = 0) -> tuple[str, OpError | None]:
    """Where a model was refused, and the error; or that it ran. feeds: values for inputs, as far as known."""
    rng = np.random.default_rng(seed)
    stage = "load"
    try:
        interpreter = lite.Interpreter(model_content=content)
        stage = "allocation"
        interpreter.allocate_tensors()
        stage = "an input"
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], fitting(detail, feeds.get(detail["index"]), rng))
        stage = "a run"
        for _ in range(2):
            interpreter.invoke()
    except OpError as error:
        return f"refused at {stage}", error
    for detail in interpreter.get_output_details():
        interpreter.get_tensor(detail["index"])
    return "ran", None


def complaints(stage: str, error: OpError | None, name: str) -> Iterator[str]:
    """Yield the deficiencies of an error message. name: that of the mutated operator."""
    if error is None:
        return
    said = str(error)
    if isinstance(error, InternalError) or FOREIGN.search(said):
        yield "words that are not ours"
    if not isinstance(error, ValueError if stage in ("refused at load", "refused at an input") else RuntimeError):
        yield f"a {type(error).__name__}, which is not what the official interpreter raises there"
    if stage not in ("refused at allocation", "refused at a run"):
        return
    if "\n  wanted  " not in said or "\n  found   " not in said:
        yield "it does not say what was found and what is wanted"
    about_memory = "AllocateTensors() failed" in said  # of a tensor that no node need be named for
    if not about_memory and not re.search(r"\nNode number \d+[^\n]* \([\w.]+\) failed to ", said):
        yield "it names no node"
    if not about_memory and "'" not in said and "none -> none" not in said:
        yield "it names no tensor"
    if not about_memory and name not in said and not STATEFUL.search(said):
        yield "it does not name the operator"


STATEFUL = re.compile(r"VAR_HANDLE|HASHTABLE|READ_VARIABLE|ASSIGN_VARIABLE|CALL_ONCE")
"""Operators whose tensors are those of other nodes of their model, which may be the first to see what is wrong."""


def feeds_of(made: Good, model: Model) -> dict[int, np.ndarray]:
    return dict(zip(np.asarray(model.subgraphs[0].inputs).tolist(), made.feeds))


def endless(made: Good, label: str) -> bool:
    """A loop that may turn two thousand million times."""
    return made.name == "WHILE" and f"{-(2**31)}" in label


def broken(made: Good, label: str, change: Change) -> tuple[str, list[str]]:
    """Return the verdict on a model with one mutation, and its deficiency."""
    model = made.model()
    try:
        fed = feeds_of(made, model) | (change(model) or {})
        content = model.to_bytes()
    except OpError:  # what it should hold, no file can
        return "no file", []
    start = time.perf_counter()
    try:
        stage, error = run(content, fed)
    except Exception as other:
        return "crashed", [f"{made}, {label}: {type(other).__name__}: {other}"]
    found = list(complaints(stage, error, made.name))
    if time.perf_counter() - start > SLOW:
        found.append("slow")
    return stage, [f"{made}, {label}, {stage}: {what}\n{error}" for what in found]


def check_one_by_one(tried: Iterable[tuple[Good, str, Any]]) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with flags.override(max_activation_bytes=32 << 20):
        for made, label, change in tried:
            if not endless(made, label):
                stage, found = broken(made, label, change)
                outcomes[stage] += 1
                wrong += found
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert not wrong, f"{len(wrong)} complaints, such as\n" + "\n".join(wrong[:5])
    assert grown < 400 << 10, f"memory grew by {grown >> 10} MB"
    return outcomes


def every_change(name: str, most: int | None = None) -> list[tuple[Good, str, Any]]:
    """Return each change of each model of an operator, or an even sample of them."""
    models = good()[name] if most is None else some(name)
    found = [(made, *change) for made in models for change in changes(made.node, made.model())]
    return found if most is None else found[:: max(1, len(found) // most)]


def some(name: str) -> list[Good]:
    """A few of an operator's models, evenly taken."""
    models = good()[name]
    return models[:: -(-len(models) // SAMPLED_MODELS)]


@pytest.mark.parametrize(
    "models", [lambda name: good()[name][:1], pytest.param(lambda name: good()[name], marks=pytest.mark.slow, id="all")]
)
def test_the_models_to_be_broken_run(models):
    for made in (m for name in good() for m in models(name)):
        stage, error = run(made.content, feeds_of(made, made.model()))
        assert stage == "ran", f"{made}: {error}"


def test_every_operator_has_models():
    assert not [name for name, models in good().items() if not models]


@pytest.mark.slow
def test_a_single_mutation_is_reported():
    outcomes = check_one_by_one(change for name in good() for change in every_change(name, SAMPLE))
    assert outcomes["ran"] > (500 if THOROUGH else 100)
    assert outcomes["refused at load"] > (100 if THOROUGH else 15)
    assert outcomes["refused at allocation"] > (1000 if THOROUGH else 150)
    assert outcomes["refused at a run"] > (20 if THOROUGH else 1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", sorted({*lite.ops.list_names(), *(row.name for row in drawn_table.ROWS)}))
def test_each_mutation_is_reported(name):
    check_one_by_one(every_change(name))


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
                outcome, error = run(content, {}, seed)
            except Exception as other:
                pytest.fail(f"seed {seed}, {told}: {type(other).__name__}: {other}")
            found = list(complaints(outcome, error, ""))
            assert not found, f"seed {seed}, {told}: {found}\n{error}"
            assert time.perf_counter() - start < SLOW, f"seed {seed}, {told}"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400 << 10, f"memory grew by {grown >> 10} MB"
    return outcomes


def test_mutants():
    count = examples(800)
    outcomes = check(range(count))
    assert all(outcomes[stage] > count // 20 for stage in ("ran", "refused at load", "refused at allocation"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_mutants():
    check(range(1500, 100_000))

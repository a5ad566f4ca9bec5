"""`opwright op test`: checks of an operator that need no knowledge of what it computes.

Lives here: making up inputs, the checks as a table, their report.  Not here: the rules of words and names
(ops/linting.py), finding operators in a file (catalogue.py).

Inputs are small arrays of a few shapes, tried until a call works. A definition for which none does has a function
among its rules that gives them: `def example(): return {"x": np.ones([2, 3]), "n": 1}`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from rich.text import Text

from .. import ops
from ..core import dtypes
from ..core.specs import TensorSpec
from ..eager.tape import GradientTape
from ..eager.tensor import EagerTensor, make
from ..graph import parse, same, text
from ..ops import registry
from ..tracing.function import function
from .catalogue import operators_in
from .report import BadFile, notes, out, print_json

SHAPES: tuple[tuple[int, ...], ...] = ((2, 3), (3, 3), (4,), (), (2, 3, 4), (1, 4, 4, 2), (1, 4, 4, 4, 2))
TRIES = 400  # combinations of shapes and dtypes until a call works
DELTA, LIMIT = 1e-5, 1e-5  # of central differences in float64


class Outcome(NamedTuple):
    """One check of one operator. state: "ok", "failed" or "not tried"."""

    operator: str
    check: str
    state: str
    detail: str = ""


class Example(NamedTuple):
    """Inputs, by declared input, and attributes with which a call works."""

    inputs: list[Any]
    attrs: dict[str, Any]


class _Skip(Exception):
    """A check does not apply; why."""


# ---- inputs that are made up ----------------------------------------------------------------------------------------


def _values(shape: tuple[int, ...], dtype: dtypes.DType, seed: int) -> np.ndarray:
    """Numbers between 0.1 and 0.9, away from each other; small integers; text."""
    n = math.prod(shape)
    flat = 0.1 + 0.8 * ((np.arange(n) * 0.6180339887 + seed * 0.37) % 1.0)
    if dtype is dtypes.string:
        return np.array([b"text %d" % i for i in range(n)], object).reshape(shape)
    if dtype.is_bool:
        return (flat > 0.5).reshape(shape)
    if dtype.is_floating or dtype.is_complex:
        return flat.reshape(shape).astype(dtype.np)
    return (np.arange(n) % 3 + seed % 2).reshape(shape).astype(dtype.np)


def _attribute(attr: Any) -> Iterator[Any]:
    """Values to try for a required attribute."""
    item = attr.type[0] if isinstance(attr.type, list) else attr.type
    form = attr.check.known_form if attr.check else ()
    if form and form[0] == "one_of":
        yield from form[1:]
        return
    known: dict[Any, tuple[Any, ...]] = {
        int: (1, 0, 2, -1), float: (1.0, 0.5, 0.0, 2.0), bool: (False, True), str: ("a", ""), bytes: (b"a",),
        dtypes.DType: (dtypes.float32, dtypes.int32), object: (None,),
    }  # fmt: skip
    values = known.get(item, ())
    if isinstance(attr.type, list):
        yield from ((v,) * n for v in values for n in (1, 2, 4, 5))
    else:
        yield from values


def _dtypes_for(declared: Any) -> list[dtypes.DType]:
    usable = [d for d in declared.dtypes if not d.is_handle]
    return sorted(usable, key=lambda d: (d is not dtypes.float64, d is not dtypes.float32, d is not dtypes.int32))[:2]


def example_of(op: Any) -> Example:
    """Inputs and attributes with which the operator runs. Raises _Skip with the last error where none was found."""
    if op.effect is not None or op.control:
        raise _Skip(f"it has an effect: {op.effect}" if op.effect else "control flow runs in graphs alone")
    example = vars(op._call_class).get("example")
    if example is not None:
        return _given_example(op, example())
    required = [a for a in op.attr_defs.values() if a.required]
    needed = [i for i in op.inputs if not i.optional]
    last: Exception | None = None
    choices = itertools.product(*(list(_attribute(a)) for a in required))
    for attrs in itertools.islice(choices, 24):
        given = {a.name: v for a, v in zip(required, attrs)}
        tries = itertools.product(*(_candidates(i, k) for k, i in enumerate(needed)))
        for values in itertools.islice(tries, TRIES if len(needed) < 3 else 4 * TRIES):
            by_name = {i.name: v for i, v in zip(needed, values)}
            inputs = [by_name.get(i.name) for i in op.inputs]
            try:
                op(**{i.name: v for i, v in zip(op.inputs, inputs) if v is not None}, **given)
            except Exception as error:  # whatever a rule does with inputs that are not for it
                last = error
            else:
                return Example(inputs, given)
    why = f"; the last try: {str(last).splitlines()[0]}" if last else ""
    raise _Skip(f"no inputs could be made up{why}. Give the class `def example(): return dict(x=..., n=...)`")


def _given_example(op: Any, given: dict[str, Any]) -> Example:
    """What the definition's own `example` gives: inputs and attributes by name."""
    inputs = [given.get(i.name) for i in op.inputs]
    arrays = [None if x is None else list(map(np.asarray, x)) if i.repeated else np.asarray(x)
              for i, x in zip(op.inputs, inputs)]  # fmt: skip
    return Example(arrays, {k: v for k, v in given.items() if k in op.attr_defs})


def _candidates(declared: Any, seed: int) -> list[Any]:
    found = []
    for shape, dtype in itertools.product(SHAPES, _dtypes_for(declared)):
        if declared.ranks is None or len(shape) in declared.ranks:
            value = _values(shape, dtype, seed)
            found.append([value, _values(shape, dtype, seed + 7)] if declared.repeated else value)
    return found


# ---- the checks -----------------------------------------------------------------------------------------------------


def _run(op: Any, example: Example, inputs: list[Any] | None = None) -> list[Any]:
    """The tensors that come out, in a flat list."""
    given = zip(op.inputs, example.inputs if inputs is None else inputs)
    return _flat(op(**{i.name: v for i, v in given if v is not None}, **example.attrs))


def _flat(result: Any) -> list[Any]:
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [t for part in parts for t in (part if isinstance(part, (tuple, list)) else [part]) if t is not None]


def _mapped(example: Example, change: Callable[[np.ndarray], Any]) -> list[Any]:
    return [None if x is None else [change(a) for a in x] if isinstance(x, list) else change(x) for x in example.inputs]


def inference(op: Any, example: Example) -> None:
    """Inference promises what comes out, however little it knows: values, shapes, dtypes alone."""
    bound, found = op.bind(example.attrs), _run(op, example)
    levels: dict[str, Callable[[Any], Any]] = {
        "values": lambda a: make(a),
        "shapes": lambda a: TensorSpec(a.shape, dtypes.of_numpy(a.dtype)),
        "dtypes": lambda a: TensorSpec(None, dtypes.of_numpy(a.dtype)),
    }
    for level, told in levels.items():
        operands = [tuple(x) if isinstance(x, list) else x for x in _mapped(example, told)]
        specs = [s for s, o in zip(op.infer(bound, operands), op.outputs) if not o.intermediate]
        flat = [s for part in specs for s in (part if isinstance(part, list) else [part])]
        for tensor, spec in zip(found, flat, strict=True):
            if tensor.dtype is not spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
                raise AssertionError(f"{tensor.spec.short()} came out; inferred from {level}: {spec.short()}")


def inputs_stay(op: Any, example: Example) -> None:
    """An operator does not write to its inputs."""
    copies = _mapped(example, np.copy)
    tensors = _mapped(example, lambda a: make(a))
    _run(op, example, tensors)
    for declared, before, after in zip(op.inputs, copies, tensors):
        pairs = zip(before, after) if isinstance(before, list) else [] if before is None else [(before, after)]
        if not all(np.array_equal(a, np.asarray(t)) for a, t in pairs):
            raise AssertionError(f"input {declared.name!r} was written to")


def every_dtype(op: Any, example: Example) -> None:
    """Every dtype that is declared is computed, not only accepted."""
    lead = next((i for i, x in zip(op.inputs, example.inputs) if isinstance(x, np.ndarray)), None)
    if lead is None:
        raise _Skip("no input that is a tensor")
    wrong = []
    for dtype in (d for d in lead.dtypes if not d.is_handle):
        inputs = [_values(x.shape, dtype, k) if isinstance(x, np.ndarray) and lead.name in (i.name, i.like) else x
                  for k, (i, x) in enumerate(zip(op.inputs, example.inputs))]  # fmt: skip
        try:
            _run(op, example, inputs)
        except Exception as error:
            wrong.append(f"{dtype.name}: {str(error).splitlines()[0]}")
    if wrong:
        raise AssertionError("; ".join(wrong[:3]))


def kernel_is_compute(op: Any, example: Example) -> None:
    """A kernel gives what `compute`, the meaning, gives."""
    if not op.kernels or op.compute_rule is None:
        raise _Skip("compute alone" if op.compute_rule is not None else "kernels alone")
    bound = op.bind(example.attrs)
    arrays = [tuple(x) if isinstance(x, list) else x for x in example.inputs]
    wanted = op.flat_outputs(op.reference(bound)(*arrays))
    for found, reference in zip(_run(op, example), wanted):
        np.testing.assert_allclose(np.asarray(found), reference, rtol=1e-6, atol=1e-7)


def gradient_is_slope(op: Any, example: Example) -> None:
    """The gradient is the slope that central differences find, in float64."""
    if op.gradient_rule is None:
        raise _Skip("differentiation ends here" if op.has_gradient_rule else "no gradient")
    inputs = _mapped(example, lambda a: a.astype(np.float64) if a.dtype.kind == "f" else a)
    places = [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype == np.float64]
    if not places:
        raise _Skip("no input in floats")
    outs = [t for t in _run(op, example, inputs) if t.dtype.is_floating]
    weights = [np.cos(np.arange(t.numpy().size)).reshape(t.shape.as_list()) for t in outs]

    def objective(values: list[Any]) -> float:
        found = [np.asarray(t) for t in _run(op, example, values) if t.dtype.is_floating]
        return float(sum((w * t).sum() for w, t in zip(weights, found)))

    tensors = [make(x) if i in places else x for i, x in enumerate(inputs)]
    with GradientTape() as tape:
        for i in places:
            tape.watch(tensors[i])
        found = [t for t in _run(op, example, tensors) if t.dtype.is_floating]
    arriving = [make(w.astype(t.dtype.np)) for w, t in zip(weights, found)]
    grads = tape.gradient(found, [tensors[i] for i in places], output_gradients=arriving)
    for place, grad in zip(places, grads):
        analytic = np.zeros(inputs[place].shape) if grad is None else np.asarray(_dense(grad), np.float64)
        numeric = np.zeros(inputs[place].shape)
        for at in np.ndindex(inputs[place].shape):
            sides = []
            for step in (DELTA, -DELTA):
                moved = list(inputs)
                moved[place] = inputs[place].copy()
                moved[place][at] += step
                sides.append(objective(moved))
            numeric[at] = (sides[0] - sides[1]) / (2 * DELTA)
        if analytic.shape != numeric.shape or np.abs(analytic - numeric).max(initial=0) > LIMIT * (
                1 + np.abs(numeric).max(initial=0)):  # fmt: skip
            both = (np.round(slopes.ravel()[:4], 5).tolist() for slopes in (analytic, numeric))
            raise AssertionError("of {!r}: gradient {}, by differences {}".format(op.inputs[place].name, *both))


def _dense(grad: Any) -> Any:
    return grad if isinstance(grad, EagerTensor) else grad.to_dense()


def traces(op: Any, example: Example) -> None:
    """Within a function it gives the same, and the function's graph prints and reads back."""
    tensors = {i.name: v for i, v in zip(op.inputs, _mapped(example, lambda a: make(a))) if v is not None}
    traced = function(lambda given: op(**given, **example.attrs), autograph=False).get_concrete_function(tensors)
    for found, wanted in zip(_flat(traced(tensors)), _run(op, example), strict=True):
        if not wanted.dtype.is_handle:
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    graph = traced.graph
    if not same(parse(text(graph), lambda name: op if name == op.name else registry.get(name)), graph):
        raise AssertionError("its graph's text reads back as another graph")


def pickles(op: Any, example: Example | None) -> None:
    """It is found by its name, which is how files and pickles know it."""
    if registry.get(op.name) is not op:
        raise AssertionError(f"ow.ops.get({op.name!r}) gives another operator: the catalogue's has this name")


CHECKS: tuple[Callable[[Any, Example], None], ...] = (
    inference, inputs_stay, every_dtype, kernel_is_compute, gradient_is_slope, traces,
)  # fmt: skip


def outcomes(op: Any) -> Iterator[Outcome]:
    """Every check of one operator."""
    for sentence in ops.lint(op):
        yield Outcome(op.name, "lint", "failed", sentence)
    try:
        pickles(op, None)
        yield Outcome(op.name, "pickles", "ok")
    except AssertionError as error:
        yield Outcome(op.name, "pickles", "failed", str(error))
    try:
        example = example_of(op)
    except _Skip as error:
        yield Outcome(op.name, "calls", "not tried", str(error))
        return
    shown = ", ".join(f"{i.name} {TensorSpec(x.shape, dtypes.of_numpy(x.dtype)).short()}"
                      for i, x in zip(op.inputs, example.inputs) if isinstance(x, np.ndarray))  # fmt: skip
    yield Outcome(op.name, "calls", "ok", ", ".join([shown, *(f"{k}={v!r}" for k, v in example.attrs.items())]))
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            check(op, example)
        except _Skip as error:
            yield Outcome(op.name, name, "not tried", str(error))
        except Exception as error:  # a failing check, or a rule of the operator that fails
            words = " ".join(str(error).split())[:300]
            yield Outcome(op.name, name, "failed", words if isinstance(error, AssertionError) else
                          f"{type(error).__name__}: {words}")  # fmt: skip
        else:
            yield Outcome(op.name, name, "ok")


def test_operators(targets: tuple[str, ...], as_json: bool) -> bool:
    """Check operators by name or by file, and print what was found; True if nothing failed."""
    chosen: list[Any] = []
    for target in targets:
        if target.endswith(".py"):
            chosen += operators_in(target)
            continue
        try:
            chosen.append(registry.get(target))
        except KeyError as error:
            raise BadFile(str(error.args[0])) from None
    found = [outcome for op in chosen for outcome in outcomes(op)]
    if as_json:
        print_json([o._asdict() for o in found])
    else:
        table = Table("operator", "check", "", "detail")
        for o in found:
            style = {"failed": "red", "not tried": "yellow"}.get(o.state, "")
            table.add_row(o.operator, o.check, Text(o.state, style), Text(o.detail))
        out().print(table)
    failed = sum(o.state == "failed" for o in found)
    notes().print(f"{len(chosen)} operators, {len(found)} checks, {failed} failed")
    return not failed

"""The checks that every row of every table must pass, written once for all operators.

Lives here: CHECKS, a name to (which rows it is for, the check).  Not here: rows (harness.py).
Inference is checked for every operator that runs inside a row, helpers too, not only the one that the row is about.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from assertions import HALVES, assert_close, flat_arrays, is_differentiable, is_floating, wide
from harness import Case, as_tensors, operator_of

import opwright as ow
from thorough import THOROUGH, examples

# ---- watching -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def watched() -> Iterator[list[tuple[Any, Any, Any, Any]]]:
    """Every operator run now inside the `with`: (operator, attributes, input tensors, result)."""
    from opwright.eager.tensor import make
    from opwright.ops import dispatch
    from opwright.ops.arguments import tensors

    seen: list[tuple[Any, Any, Any, Any]] = []
    ow.constant(0.0) + 0.0  # a first call reads the flags and installs what is spied on
    run = dispatch._eager

    def spy(op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
        inputs = tensors(op, inputs, make, name)
        result = run(op, inputs, bound, name)
        seen.append((op, bound, inputs, result))
        return result

    dispatch._eager = spy
    try:
        yield seen
    finally:
        dispatch._eager = run


def _mapped(inputs: Sequence[Any], to_spec: Callable[[Any], Any]) -> list[Any]:
    return [None if x is None else tuple(map(to_spec, x)) if isinstance(x, tuple) else to_spec(x) for x in inputs]


def _knowledge() -> dict[str, Callable[[Any], Any]]:
    """How much inference is told of an input, from everything down."""
    from opwright.core.specs import TensorSpec

    return {
        "values known": lambda x: x,
        "shapes known": lambda x: TensorSpec(x.spec.shape, x.spec.dtype),
        "ranks known": lambda x: TensorSpec([None] * x.spec.shape.rank, x.spec.dtype),
        "dtypes known": lambda x: TensorSpec(None, x.spec.dtype),
    }


@functools.lru_cache(maxsize=1)  # for the checks of one row, each of which reads it
def first_run(row: Case) -> tuple[Any, list[tuple[Any, Any, Any, Any]]]:
    """The row's eager result, and every operator that ran (`watched`)."""
    with watched() as seen:
        result = row.run()
    return result, seen


def is_random(row: Case) -> bool:
    """Whether the row draws random numbers, so that two runs of it cannot be compared."""
    return any(op.effect == "random" for op, *_ in first_run(row)[1])


# ---- the checks ---------------------------------------------------------------------------------------------------

Check = Callable[[Case], None]
CHECKS: dict[str, tuple[Callable[[Case], bool], Check]] = {}
ELEMENTS = examples(24)  # of an input that are moved one by one; larger ones are moved as a whole, too
# Operators whose output shapes need the input's values even when those are known ahead; files of cases add theirs.
SHAPE_DEPENDS_ON_DATA: set[str] = set()


def check(applies: Callable[[Case], bool]) -> Callable[[Check], Check]:
    """Enter a check and which rows it is for."""

    def enter(function: Check) -> Check:
        CHECKS[function.__name__] = (applies, function)
        return function

    return enter


def works(row: Case) -> bool:
    """Whether the row is a call that works."""
    return row.raises is None


@check(works)
def matches_oracle(row: Case) -> None:
    """The result is what an independent formula says."""
    actual = flat_arrays(first_run(row)[0])
    if row.gives is not None:
        from opwright.core.dtypes import as_dtype, of_numpy

        reference = [as_dtype(d) for d in (row.gives if isinstance(row.gives, (list, tuple)) else [row.gives])]
        assert [of_numpy(a.dtype) for a in actual] == reference
    inputs = [wide(x) for x in row.inputs] if row.widen else row.inputs
    if row.holds is not None:
        assert row.holds(*actual, *inputs) is not False, f"the row's condition does not hold for {actual}"
    if row.expect is None:
        return
    with np.errstate(all="ignore"):
        expected = row.expect(*inputs) if callable(row.expect) else row.expect
    several = isinstance(expected, (tuple, list))
    if several and len(actual) == 1:  # a result written as a list, or a tuple of the one result
        several = len(expected) == 1 and np.ndim(expected) == actual[0].ndim + 1
    reference = list(expected) if several else [expected]
    assert len(actual) == len(reference), f"{len(actual)} outputs, the oracle gives {len(reference)}"
    for i, (a, b) in enumerate(zip(actual, reference)):
        assert_close(a, b, row.rtol, row.atol, f"output {i}")


@check(works)
def outputs_match_inference(row: Case) -> None:
    """Check results against inference: dtype and shape, with full and with partial knowledge of the inputs."""
    for op, bound, inputs, result in first_run(row)[1]:
        shown = [o for o in op.outputs if not o.intermediate]
        results = [] if not shown else [result] if len(shown) == 1 else list(result)
        for level, to_spec in _knowledge().items():
            specs = [s for s, o in zip(op.infer(bound, _mapped(inputs, to_spec)), op.outputs) if not o.intermediate]
            for declared, ys, promised in zip(shown, results, specs):
                if not declared.repeated:
                    ys, promised = [ys], [promised]
                where = f"{op.name}, output {declared.name}, {level}"
                assert len(ys) == len(promised), f"{where}: {len(ys)} tensors, inferred {len(promised)}"
                for y, spec in zip(ys, promised):
                    _assert_promised(op, y, spec, where, level == "values known")


def _assert_promised(op: Any, y: Any, spec: Any, where: str, values_known: bool) -> None:
    from opwright.core.specs import TensorSpec

    if y.dtype.is_handle:
        assert spec.dtype is y.dtype, f"{where}: {y.dtype.name} came out, inferred {spec.short()}"
        return
    assert np.asarray(y).dtype == y.dtype.np, f"{where}: an array of {np.asarray(y).dtype} says it is {y.dtype.name}"
    came = f"{y.spec.short()} came out, inferred {spec.short()}"
    assert y.spec.is_subtype_of(TensorSpec(spec.shape, spec.dtype)), f"{where}: {came}"
    if values_known and op.effect is None and op.name not in SHAPE_DEPENDS_ON_DATA:
        assert spec.shape.is_fully_defined(), (
            f"{where}: {came}; if no inference could know, put it into SHAPE_DEPENDS_ON_DATA of its file of cases"
        )


def _takes(row: Case, dtype: str) -> bool:
    """Whether every floating input of the row's operator takes the dtype, as far as is declared."""
    op = operator_of(row.key)
    if op is None:
        return True
    return all(
        any(d.name == dtype for d in declared.dtypes)
        for declared in op.inputs
        if any(d.is_floating for d in declared.dtypes)
    )


def _has_floats(row: Case) -> bool:
    return any(is_differentiable(y) for x in row.inputs for _, y in _members(x))


def _differentiates(row: Case) -> bool:
    if not works(row) or row.grad is False or not _has_floats(row):
        return False
    op = operator_of(row.key)
    if row.grad is None and op is not None and op.gradient_rule is None:
        return False
    return _takes(row, "float64")


def _members(x: Any) -> list[tuple[int | None, Any]]:
    """An input's tensors, with their places in the list of a repeated one."""
    return list(enumerate(x)) if isinstance(x, (list, tuple)) else [(None, x)]


class _Differentiable:
    """A row as a function of its floating arrays, all in float64, in a flat list."""

    def __init__(self, row: Case) -> None:
        self.row = row
        self.inputs = [wide(x) for x in row.inputs]
        chosen = row.grad if isinstance(row.grad, (tuple, list)) else range(len(self.inputs))
        self.places = [(i, j) for i in chosen for j, y in _members(self.inputs[i]) if is_differentiable(y)]

    def values(self) -> list[np.ndarray]:
        return [self.inputs[i] if j is None else self.inputs[i][j] for i, j in self.places]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The floating outputs."""
        from opwright.core import nest
        from opwright.ops.indexed_slices import IndexedSlices

        inputs = [
            list(x) if isinstance(x, (list, tuple)) and any(p[0] == i for p in self.places) else x
            for i, x in enumerate(self.inputs)
        ]
        for (i, j), value in zip(self.places, values):
            if j is None:
                inputs[i] = value
            else:
                inputs[i][j] = value
        result = [y.to_dense() if isinstance(y, IndexedSlices) else y for y in nest.flatten(self.row.run(inputs))]
        return [y for y in result if y is not None and (y.dtype.is_floating or y.dtype.is_complex)]


def _projections(outputs: Sequence[Any]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    created = []
    for y in outputs:
        w = rng.uniform(0.5, 1.5, tuple(y.shape)) * np.where(rng.uniform(size=tuple(y.shape)) < 0.5, -1.0, 1.0)
        created.append((w * (1 + 0.5j) if y.dtype.is_complex else w).astype(y.dtype.np))
    return created


def _gradients(function: _Differentiable) -> tuple[list[Any], list[np.ndarray]] | None:
    """Gradients of randomly weighted outputs, and the weights; None where the row's function has none to give."""
    from opwright.eager.tape import GradientTape

    sources = as_tensors(function.values())
    with GradientTape() as tape:
        tape.watch(sources)
        outputs = function(sources)
    weights = _projections(outputs)
    if not outputs:
        return None
    try:
        return tape.gradient(outputs, sources, output_gradients=as_tensors(weights)), weights
    except LookupError:
        if function.row.grad is None and operator_of(function.row.key) is None:
            return None  # a function over operators of which one declares no gradient
        raise


@check(_differentiates)
def gradient_matches_differences(row: Case) -> None:
    """The gradient rule agrees with central differences, in float64."""
    function = _Differentiable(row)
    values = function.values()
    answer = None if is_random(row) else _gradients(function)
    if answer is None:
        return
    grads, weights = answer
    assert row.grad is not True or any(g is not None for g in grads) or not values, "no gradient reaches any input"
    rng = np.random.default_rng(11)

    def loss(moved: Sequence[np.ndarray]) -> float:
        outputs = [np.asarray(y) for y in function(moved)]
        with np.errstate(all="ignore"):
            return sum(float(np.sum(np.real(np.conj(w) * y))) for w, y in zip(weights, outputs))

    scale = abs(loss(values))
    for k, (x, grad) in enumerate(zip(values, grads)):
        dense = np.zeros_like(x) if grad is None else flat_arrays(grad)[0]
        assert dense.shape == x.shape, f"input {function.places[k]}: gradient of shape {dense.shape}, input {x.shape}"
        assert dense.dtype == x.dtype, f"input {function.places[k]}: gradient of {dense.dtype}, input {x.dtype}"
        directions = []
        for at in range(x.size) if x.size <= ELEMENTS else rng.choice(x.size, ELEMENTS, replace=False).tolist():
            one = np.zeros(x.size, x.dtype)
            one[at] = 1.0
            directions.append((f"element {at}", one.reshape(x.shape)))
            if x.dtype.kind == "c":
                directions.append((f"element {at}, imaginary", (1j * one).reshape(x.shape)))
        if x.size > ELEMENTS:
            directions.append(("a direction through all elements", rng.standard_normal(x.shape).astype(x.dtype)))
        for words, d in directions:
            eps = 1e-5
            up, down = list(values), list(values)
            up[k], down[k] = x + eps * d, x - eps * d
            numeric = (loss(up) - loss(down)) / (2 * eps)
            exact = float(np.sum(np.real(np.conj(dense) * d)))
            if not np.isfinite(numeric):
                continue
            rtol, atol = row.rtol or 2e-5, (row.atol or 0.0) + 2e-7 * max(1.0, scale)
            assert abs(exact - numeric) <= atol + max(rtol, 2e-5) * max(abs(numeric), abs(exact)), (
                f"input {function.places[k]}, {words}: gradient {exact:.10g}, differences {numeric:.10g}"
            )


@check(lambda row: in_turn(row) and _differentiates(row))
def second_order_runs(row: Case) -> None:
    """The gradient can be differentiated again, and is finite where the first one is."""
    from opwright.core import nest
    from opwright.eager.tape import GradientTape

    function = _Differentiable(row)
    sources = as_tensors(function.values())
    with GradientTape(persistent=True) as outer:
        outer.watch(sources)
        with GradientTape() as inner:
            inner.watch(sources)
            outputs = function(sources)
        if not outputs:
            return
        try:
            grads = inner.gradient(outputs, sources, output_gradients=as_tensors(_projections(outputs)))
        except LookupError:
            return  # whether that is right, gradient_matches_differences says
        grads = [g.to_dense() if hasattr(g, "to_dense") else g for g in nest.flatten(grads) if g is not None]
    if not grads:
        return
    second = outer.gradient(grads, sources)
    finite = all(np.isfinite(np.asarray(g)).all() for g in grads)
    for x, g in zip(sources, second):
        if g is not None:
            dense = flat_arrays(g)[0]
            assert dense.shape == tuple(x.shape), f"second derivative of shape {dense.shape}, input {x.shape}"
            assert not finite or np.isfinite(dense).all(), "the first gradient is finite, the second is not"


def _has_halves(row: Case) -> bool:
    floats = [y for x in row.inputs for _, y in _members(x) if is_floating(y)]
    if not works(row) or row.half is False or not floats:
        return False
    if any(x.dtype.itemsize < 4 for x in floats):
        return False
    return bool(row.half) or operator_of(row.key) is None or any(_takes(row, name) for name in HALVES)


def _as(x: Any, dtype: np.dtype) -> Any:
    if is_floating(x):
        with np.errstate(over="ignore"):
            return x.astype(dtype)
    return type(x)(_as(y, dtype) for y in x) if isinstance(x, (list, tuple)) else x


@check(_has_halves)
def halves_match_single(row: Case) -> None:
    """In float16 and bfloat16 the result is the float32 result rounded, within a few units of the last place."""
    if is_random(row):
        return
    for name, dtype in HALVES.items():
        if not _takes(row, name):
            continue
        rounded = [_as(x, dtype) for x in row.inputs]
        try:
            result = flat_arrays(row.run(rounded))
        except (TypeError, ValueError) as error:
            if operator_of(row.key) is None and not row.half and "dtype" in str(error):
                continue  # a function over operators of which one does not take it
            raise
        single = flat_arrays(row.run([_as(x, np.dtype(np.float32)) for x in rounded]))
        assert len(result) == len(single)
        eps = float(ml_dtypes.finfo(dtype).eps)
        for i, (a, b) in enumerate(zip(result, single)):
            if b.dtype != np.float32:
                assert a.dtype == b.dtype or b.dtype.kind == "c", f"{name}, output {i}: {a.dtype}, in float32 {b.dtype}"
                if b.dtype.kind not in "fc":
                    assert_close(a, b, row.rtol, row.atol, f"{name}, output {i}")
                continue
            if a.dtype == np.float32:  # an attribute asked for float32
                assert_close(a, b, 8 * eps, 8 * eps, f"{name}, output {i}")
                continue
            assert a.dtype == dtype, f"{name}, output {i}: came out as {a.dtype}"
            with np.errstate(all="ignore"):
                target = b.astype(dtype).astype(np.float64)
            finite = np.abs(target[np.isfinite(target)])
            near = 4 * eps * float(finite.mean()) if finite.size else 0.0
            tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
            rtol, atol = max(4 * eps, row.rtol or 0.0), near + 2 * tiny + (row.atol or 0.0)
            np.testing.assert_allclose(a.astype(np.float64), target, rtol, atol, err_msg=f"{name}, output {i}")


# ---- tracing ------------------------------------------------------------------------------------------------------


def _traces(row: Case) -> bool:
    return works(row) and row.trace


@functools.lru_cache(maxsize=4)  # for one row and its gradient, shapes known and not: checks share traces
def _traced(row: Case, unknown: bool) -> tuple[Any, list[np.ndarray]]:
    """The row's call as a traced function of its arrays, and those arrays."""
    from opwright.core.dtypes import of_numpy
    from opwright.core.specs import TensorSpec

    places: list[tuple[int, int | None]] = []
    arrays: list[np.ndarray] = []
    for i, x in enumerate(row.inputs):
        if i in row.static:
            continue
        for j, y in _members(x):
            if isinstance(y, (np.ndarray, np.generic)):
                places.append((i, j))
                arrays.append(np.asarray(y))

    def f(*args: Any) -> Any:
        inputs = [
            list(x) if isinstance(x, (list, tuple)) and any(p[0] == i and p[1] is not None for p in places) else x
            for i, x in enumerate(row.inputs)
        ]
        for (i, j), value in zip(places, args):
            if j is None:
                inputs[i] = value
            else:
                inputs[i][j] = value
        return row.run(inputs)

    signature = [TensorSpec([None] * a.ndim if unknown else a.shape, of_numpy(a.dtype)) for a in arrays]
    return ow.function(f, input_signature=signature, autograph=False), arrays


@check(_traces)
def traced_equals_eager(row: Case) -> None:
    """Recorded and then run, with shapes known and unknown, the answer is the eager one."""
    from opwright.ops import dispatch

    eager, random = flat_arrays(first_run(row)[0]), is_random(row)
    for unknown in _in_turn(row):
        traced, arrays = _traced(row, unknown)
        result = flat_arrays(traced(*[dispatch.to_tensor(a) for a in arrays]))
        words = "traced with unknown dimensions" if unknown else "traced"
        assert len(result) == len(eager), f"{words}: {len(result)} outputs, eagerly {len(eager)}"
        for i, (a, b) in enumerate(zip(result, eager)):
            assert a.dtype == b.dtype, f"{words}, output {i}: {a.dtype}, eagerly {b.dtype}"
            if random:
                assert a.shape == b.shape, f"{words}, output {i}: shape {a.shape}, eagerly {b.shape}"
            else:
                assert_close(a, b, row.rtol, row.atol, f"{words}, output {i}")


def in_turn(row: Case) -> bool:
    """Whether a row is the first of its key or every fourth after that; every one is in a thorough run."""
    return THOROUGH or row.number % 4 == 0


def in_pairs(row: Case) -> bool:
    """Whether a row is one of the first two of its key or every fourth two after that, with which both ways of
    `_in_turn` occur; every one is in a thorough run."""
    return THOROUGH or row.number % 8 < 2


def _in_turn(row: Case) -> tuple[bool, ...]:
    """Whether dimensions are unknown: both ways in the first row of a key and in a thorough run, else in turn."""
    if not row.unknown:
        return (False,)
    return (False, True) if THOROUGH or row.number == 0 else (row.number % 2 == 1,)


def _as_gradient(row: Case) -> Case:
    """The row whose call is the gradient of this one's, in float64."""
    from opwright.core import nest
    from opwright.eager.tape import GradientTape

    def gradient(*inputs: Any, **attrs: Any) -> list[Any]:
        sources = [y for x in inputs for _, y in _members(x) if _flows(y)]
        with GradientTape() as tape:
            tape.watch(sources)
            outputs = [y for y in nest.flatten(row.function()(*inputs, **attrs)) if _flows(y)]
        grads = tape.gradient(outputs, sources) if outputs else []
        return [g.to_dense() if hasattr(g, "to_dense") else g for g in grads if g is not None]

    return dataclasses.replace(row, inputs=tuple(map(wide, row.inputs)), call=gradient)


def _flows(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return getattr(dtype, "is_floating", False) or getattr(dtype, "is_complex", False)


@check(lambda row: in_pairs(row) and _traces(row) and _differentiates(row))
def traced_gradient_equals_eager(row: Case) -> None:
    """The gradient rule works inside `function`, with shapes known and unknown."""
    from opwright.ops import dispatch

    if is_random(row):
        return
    gradient = _as_gradient(row)
    try:
        eager = flat_arrays(gradient.run())
    except LookupError:
        return  # whether that is right, gradient_matches_differences says
    for unknown in _in_turn(row):
        traced, arrays = _traced(gradient, unknown)
        result = flat_arrays(traced(*[dispatch.to_tensor(a) for a in arrays]))
        words = "traced with unknown dimensions" if unknown else "traced"
        assert len(result) == len(eager), f"{words}: {len(result)} gradients, eagerly {len(eager)}"
        for i, (a, b) in enumerate(zip(result, eager)):
            assert_close(a, b, row.rtol, row.atol, f"{words}, gradient {i}")


@check(lambda row: in_pairs(row) and _traces(row))
def prints_and_parses(row: Case) -> None:
    """The recorded graph's text reads back to an equal graph, and obeys the rules of graphs."""
    from opwright.graph import parse, same, text
    from opwright.graph.builder import verify
    from opwright.ops import registry

    for unknown in _in_turn(row):
        traced, _ = _traced(row, unknown)
        graph = traced.get_concrete_function().graph
        graph = getattr(graph, "graph", graph)
        verify(graph)
        written = text(graph)
        if "opaque(" in written:
            return
        again = parse(written, registry.get)
        assert same(graph, again), written
        assert text(again) == written


@check(lambda row: not works(row))
def fails_in_words(row: Case) -> None:
    """The error has the promised class, names the operator and has the promised words."""
    try:
        row.run()
    except row.raises as error:
        message = str(error)
        for words in row.says:
            assert words.lower() in message.lower(), f"wanted {words!r} in: {message}"
        op = operator_of(row.key)
        if op is not None and row.call is None and hasattr(error, "op"):
            assert op.name in message, f"the error does not name {op.name}: {message}"
        return
    raise AssertionError(f"no error; wanted {row.raises}")

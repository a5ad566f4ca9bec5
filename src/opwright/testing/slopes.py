"""Gradients: against differences, on graphs against tapes, and with the memory of what they may not read spoilt.

Lives here: `gradient_is_slope`, `second_gradient_is_slope`, `backward_is_tape`, `gradient_reads_no_more`, `objective`.
Not here: gradients in memory that is used again (places.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.plan import Plan
from ..core import dtypes
from ..eager.tape import GradientTape
from ..eager.tensor import make
from ..graph import Value
from ..ops import array as array_ops
from ..ops import math as math_ops
from ..ops.indexed_slices import IndexedSlices
from ..scopes.backward import append_backward
from ..tracing.function import function
from .trial import NotTried, Trial, array, assert_same, flows, lod_of, refs, replaced

DELTA, LIMIT = 1e-5, 1e-5  # of central differences in float64
COARSE_DELTA, COARSE_LIMIT = 4e-3, 4e-3  # in float32: a third root of its rounding, and what that leaves, ten times
HUGE, COARSE_HUGE = 1e100, 1e30  # a result of this size, the maximum of nothing, would drown all others
MOST = 128  # elements of one input that are moved; of larger ones so many, spread evenly
MOST_SECOND = 16  # of second derivatives, where every output of the gradient is in the objective

Function = Callable[[list[Any]], list[Any]]
"""What is differentiated: tensors in a list to tensors in a list."""


def wide(trial: Trial) -> Trial:
    """The call with floating inputs in float64 and complex ones in complex128; in float32 and complex64 where it does
    not take these. Raises NotTried where it has none."""
    to_real, to_complex = (np.float64, np.complex128) if _takes_wide(trial) else (np.float32, np.complex64)

    def one(t: Any) -> Any:
        return replaced(t, array(t).astype(to_complex if t.dtype.is_complex else to_real)) if flows(t) else t

    if trial.op.gradient_rule is None:
        raise NotTried("differentiation ends here" if trial.op.has_gradient_rule else "no gradient")
    if any(isinstance(t, IndexedSlices) for t in trial.tensors()):
        raise NotTried("sparse rows")
    found = trial.over([one(t) for t in trial.tensors()])
    if not found.floats():
        raise NotTried("no input in floats")
    return found


def _takes_wide(trial: Trial) -> bool:
    """Whether each floating input may be of 64 bits, or each complex one of 128."""
    for declared, value in zip(trial.op.inputs, trial.inputs):
        for t in value if isinstance(value, tuple) else () if value is None else (value,):
            if flows(t) and (dtypes.complex128 if t.dtype.is_complex else dtypes.float64) not in declared.dtypes:
                return False
    return True


def of_floats(trial: Trial) -> tuple[Function, list[Any]]:
    """The call as a function of its floating tensors, and these."""
    tensors, places = trial.tensors(), trial.floats()

    def run(values: list[Any]) -> list[Any]:
        moved = list(tensors)
        for place, value in zip(places, values):
            moved[place] = value
        return trial.flat(moved)

    return run, [tensors[i] for i in places]


def weight(shape: Sequence[int]) -> np.ndarray:
    """The weights of one output in the objective: no two alike."""
    size = int(np.prod(tuple(shape)))
    return np.asarray(np.cos(np.arange(size) + 0.5)).reshape(tuple(shape))


def objective(outputs: Sequence[Any], weights: Sequence[np.ndarray]) -> Any:
    """Weighted sum of the floating outputs, of complex ones both parts, as operators: a scalar in float64."""
    total: Any = None
    for y, w in zip(_floating(outputs), weights):
        y = getattr(y, "values", y) if not isinstance(y, IndexedSlices) else y.to_dense()
        parts = [math_ops.real(y), math_ops.imag(y)] if y.dtype.is_complex else [y]
        for part in parts:
            part = part if part.dtype.name == "float64" else array_ops.cast(part, "float64")
            one = math_ops.reduce_sum(part * w)  # a constant where this is traced
            total = one if total is None else total + one
    return total


def _floating(outputs: Sequence[Any]) -> list[Any]:
    return [y for y in outputs if flows(y)]


def taped(run: Function, values: Sequence[Any]) -> tuple[list[Any], list[np.ndarray]]:
    """Gradients of the objective by the tape, and its weights. Raises NotTried where no output is floating."""
    values = list(values)
    with GradientTape() as tape:
        for t in values:
            tape.watch(t)
        outputs = run(values)
        weights = [weight(array(y).shape) * _counted(array(y)) for y in _floating(outputs)]
        loss = objective(outputs, weights)
    if loss is None:
        raise NotTried("no output in floats")
    return list(tape.gradient(loss, values)), weights


def _counted(y: np.ndarray) -> np.ndarray:
    """Which results are of a size that the objective may have. float32 and complex64 hold no HUGE."""
    size = np.abs(y)
    found: np.ndarray = size.astype(np.float64) < (HUGE if size.dtype == np.float64 else COARSE_HUGE)
    return found


def gradient_is_slope(trial: Trial) -> str:
    """The gradient is the slope that central differences find, in float64, or in float32 where it takes nothing wider;
    a LoDTensor's has its LoD."""
    run, values = of_floats(wide(trial))
    names = [name for name, t in trial.parts() if flows(t)]
    if not _takes_wide(trial):
        return f"{slopes_compared(run, values, names, COARSE_LIMIT, COARSE_DELTA)} elements, coarsely, in float32"
    return f"{slopes_compared(run, values, names)} elements"


def second_gradient_is_slope(trial: Trial) -> str:
    """Check that the derivative of the gradient, by the inputs and by the gradients that arrive, is its slope.

    In float64 alone: what float32 leaves of a difference of differences tells nothing.
    """
    trial = wide(trial)
    if not _takes_wide(trial):
        raise NotTried("second derivatives are compared in float64, which it does not take")
    run, values = of_floats(trial)
    names = [name for name, t in trial.parts() if flows(t)]
    outputs = _floating(run(values))
    if not outputs:
        raise NotTried("no output in floats")
    arriving = [_arriving(y) for y in outputs]
    count = len(values)

    def gradient(given: list[Any]) -> list[Any]:
        with GradientTape() as tape:
            for t in given[:count]:
                tape.watch(t)
            results = _floating(run(given[:count]))
        grads = tape.gradient(results, given[:count], output_gradients=given[count:])
        return [g for g in grads if g is not None]

    if not gradient([*values, *arriving]):
        raise NotTried("no gradient flows")
    try:
        moved = slopes_compared(
            gradient, [*values, *arriving], [*names, *(f"dy[{i}]" for i in range(len(arriving)))], most=MOST_SECOND
        )
    except LookupError as error:
        if "has no gradient" not in str(error):
            raise
        raise NotTried("its gradient has no gradient") from None
    return f"{moved} elements"


def _arriving(y: Any) -> Any:
    """Return a gradient for an output: its weights, 0 where the output is too large for an objective."""
    numbers = array(y)
    return replaced(y, np.asarray(weight(numbers.shape) * _counted(numbers), numbers.dtype))


def slopes_compared(
    run: Function,
    values: Sequence[Any],
    names: Sequence[str] = (),
    limit: float = LIMIT,
    delta: float = DELTA,
    most: int = MOST,
) -> int:
    """Compare the gradients of the objective of a function with differences; return how many elements were moved."""
    count = 0
    grads, weights = taped(run, values)
    names = names or [f"tensor {i}" for i in range(len(values))]

    def loss(moved: Sequence[Any]) -> float:
        return float(array(objective(run(list(moved)), weights)))

    for k, (x, grad) in enumerate(zip(values, grads)):
        numbers = array(x)
        analytic = np.zeros_like(numbers) if grad is None else array(grad)
        assert analytic.shape == numbers.shape, f"of {names[k]!r}: shape {analytic.shape}, wanted {numbers.shape}"
        assert grad is None or lod_of(grad) == lod_of(x), f"of {names[k]!r}: LoD {lod_of(grad)}, wanted {lod_of(x)}"
        chosen = range(numbers.size)
        if numbers.size > most:
            chosen = np.unique(np.linspace(0, numbers.size - 1, most).astype(int)).tolist()
        found, wanted = [], []
        count += len(chosen)
        for at in chosen:
            for unit in (1.0, 1.0j) if numbers.dtype.kind == "c" else (1.0,):
                sides = []
                for step in (delta, -delta):
                    moved = numbers.copy()
                    moved.reshape(-1)[at] += step * unit
                    sides.append(loss([*values[:k], replaced(x, moved), *values[k + 1 :]]))
                wanted.append((sides[0] - sides[1]) / (2 * delta))
                # a complex gradient is conjugate: its parts are the slopes along the real and the imaginary part
                found.append(float(np.real(np.conj(analytic.reshape(-1)[at]) * unit)))
        a, b = np.array(found), np.array(wanted)
        known = np.isfinite(b)
        tolerance = limit * (1 + np.abs(b[known]).max(initial=0))
        assert np.abs(a - b)[known].max(initial=0) <= tolerance, (
            f"of {names[k]!r}: gradient {np.round(a[:4], 5).tolist()}, by differences {np.round(b[:4], 5).tolist()}"
        )
    return count


def backward_is_tape(run: Function, values: Sequence[Any], bits: bool = True) -> int:
    """`append_backward` on the graph of the objective gives what the tape gives, under names with `@GRAD`.

    bits: whether the same bits, else within the tolerance. Where three or more parts of a gradient are added at once
    the tape's order may be another, so only numbers are compared. Gives how many gradients there are.
    """
    values = list(values)
    grads, weights = taped(run, values)
    traced = function(lambda *given: objective(run(list(given)), weights), autograph=False)
    concrete = traced.get_concrete_function(*values)
    graph = concrete.graph
    inputs = list(graph.inputs)[: len(values)]
    taken = list(getattr(concrete, "captured_inputs", ()))  # what is no argument of the function: offsets, numbers
    if len(graph.inputs) != len(values) + len(taken) or any(t.dtype.is_handle for t in taken):
        raise NotTried("the graph takes state, or several tensors for one value")
    result = append_backward(graph, graph.outputs[0], inputs)
    if not all(isinstance(g, Value) for _, g in result.pairs):
        raise NotTried("gradients that are sparse rows")
    with np.errstate(all="ignore"):
        outputs = Plan(result.graph).run(*[array(v) for v in (*values, *taken)])[-len(result.pairs) :]
    by_name = {p.name: (g.name, y) for (p, g), y in zip(result.pairs, outputs)}
    many = any(n.op.name == "AddN" and len(list(n.operands)) > 2 for n in result.graph.nodes)
    for value, wanted in zip(inputs, grads):
        pair = by_name.get(value.name)
        assert (pair is None) == (wanted is None), f"{value.name}: only one of tape and graph has a gradient"
        if pair is None or wanted is None:
            continue
        name, found = pair
        assert name.startswith(f"{value.name}@GRAD"), f"the gradient of {value.name} is named {name}"
        assert_same([found], [wanted], name, bits=bits and not many)
    return len(by_name)


def gradient_reads_no_more(trial: Trial) -> int:
    """What the gradient does not need by value may be overwritten before it runs: the poison test.

    Gives how many inputs and outputs were spoilt. raises AssertionError where the gradient changes, or keeps them
    """
    trial = wide(trial)
    op, spoilt = trial.op, 0
    needs = op.gradient_needs
    wanted: list[Any] = []
    for poison in (False, True):
        copied = trial.over([replaced(t, array(t).copy()) if not t.dtype.is_handle else t for t in trial.tensors()])
        run, values = of_floats(copied)
        with GradientTape() as tape:
            for t in values:
                tape.watch(t)
            result = run(values)
        arriving = [make(weight(array(y).shape).astype(array(y).dtype)) for y in _floating(result)]
        if not arriving:
            raise NotTried("no output in floats")
        if poison:
            spoilt = _spoil(copied, result, needs)
        grads = list(tape.gradient(_floating(result), values, output_gradients=arriving))
        if not poison:
            wanted = [None if g is None else make(array(g).copy()) for g in grads]
            continue
        for x, a, b in zip(values, grads, wanted):
            assert (a is None) == (b is None)
            if a is not None:
                words = f"a gradient of shape {array(x).shape} reads what it says it does not need"
                assert_same([make(array(a))], [b], words)
    return spoilt


def _spoil(trial: Trial, results: Sequence[Any], needs: Any) -> int:
    """Fill with NaN, or the largest number, the memory of what is not needed by value; how many tensors that were."""
    op = trial.op
    slots = [(op.inputs[i].name, x) for i, x in enumerate(trial.inputs) if x is not None]
    shown = [o.name for o in op.outputs if not o.intermediate]
    if len(shown) == len(results):
        slots += list(zip(shown, results))
    need = {**needs.inputs, **needs.outputs}
    kept: list[np.ndarray] = []
    free: list[np.ndarray] = []
    for name, value in slots:
        for t in value if isinstance(value, tuple) else (value,):
            if getattr(t.dtype, "is_handle", False) or t.dtype.name == "string":
                continue
            (kept if need.get(name) == "value" else free).extend(refs(t)[:1])
    count = 0
    for a in free:
        if a.size and not any(np.may_share_memory(a, k) for k in kept):
            a.flags.writeable = True
            a[...] = np.nan if a.dtype.kind in "fc" else np.array(True if a.dtype.kind == "b" else 99, a.dtype)
            count += 1
    return count

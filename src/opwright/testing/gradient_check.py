"""Check gradients: against central differences, on graphs against tapes, and with unneeded tensors overwritten.

Lives here: `gradient_is_slope`, `second_gradient_is_slope`, `backward_is_tape`, `gradient_reads_no_more`, `objective`.
Not here: gradients in reused memory (scope_checks.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
from .operator_call import CheckedCall, NotApplicable, array, assert_same, flows, lod_of, refs, replaced

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

DELTA, LIMIT = 1e-5, 1e-5  # of central differences in float64
COARSE_DELTA, COARSE_LIMIT = (4e-3, 4e-3)  # in float32: its rounding error's cube root; ten times the remaining error
HUGE, COARSE_HUGE = 1e100, 1e30  # larger results, such as an empty maximum, would dominate the objective
MAX_ELEMENTS = 128  # elements perturbed per input; of larger inputs this many, evenly spread
MAX_ELEMENTS_SECOND = 16  # for second derivatives, whose objective has every output of the gradient

Function = Callable[[list[Any]], list[Any]]
"""A function to differentiate, from a list of tensors to a list of tensors."""


def widened(call: CheckedCall) -> CheckedCall:
    """Return the call with floating inputs in float64 and complex ones in complex128; in float32 and complex64 if it
    does not take these. Raises NotApplicable if it has none.
    """
    to_real, to_complex = (np.float64, np.complex128) if _takes_wide(call) else (np.float32, np.complex64)

    def convert(t: Any) -> object:
        return replaced(t, array(t).astype(to_complex if t.dtype.is_complex else to_real)) if flows(t) else t

    if call.op.gradient_rule is None:
        raise NotApplicable("differentiation ends here" if call.op.has_gradient_rule else "no gradient")
    if any(isinstance(t, IndexedSlices) for t in call.tensors()):
        raise NotApplicable("sparse rows")
    converted = call.over([convert(t) for t in call.tensors()])
    if not converted.floats():
        raise NotApplicable("no input in floats")
    return converted


def _takes_wide(call: CheckedCall) -> bool:
    """Return whether each floating input may have 64 bits, and each complex one 128."""
    for declared, value in zip(call.op.inputs, call.inputs):
        for t in value if isinstance(value, tuple) else () if value is None else (value,):
            if flows(t) and (dtypes.complex128 if t.dtype.is_complex else dtypes.float64) not in declared.dtypes:
                return False
    return True


def as_function(call: CheckedCall) -> tuple[Function, list[Any]]:
    """Return the call as a function of its floating tensors, and these."""
    tensors, positions = call.tensors(), call.floats()

    def run(values: list[Any]) -> list[Any]:
        replaced = list(tensors)
        for position, value in zip(positions, values):
            replaced[position] = value
        return call.flat(replaced)

    return run, [tensors[i] for i in positions]


def weight(shape: Sequence[int]) -> np.ndarray:
    """Return the weights of one output in the objective, all different."""
    size = int(np.prod(tuple(shape)))
    return np.asarray(np.cos(np.arange(size) + 0.5)).reshape(tuple(shape))


def objective(outputs: Sequence[Any], weights: Sequence[np.ndarray]) -> Tensor | None:
    """Return the weighted sum of the floating outputs, both parts of complex ones, as operators: a float64 scalar."""
    total: Tensor | None = None
    for y, w in zip(_floating(outputs), weights):
        y = getattr(y, "values", y) if not isinstance(y, IndexedSlices) else y.to_dense()
        parts = [math_ops.real(y), math_ops.imag(y)] if y.dtype.is_complex else [y]
        for part in parts:
            part = part if part.dtype.name == "float64" else array_ops.cast(part, "float64")
            term: Tensor = math_ops.reduce_sum(part * w)  # a constant in a trace
            total = term if total is None else total + term
    return total


def _floating(outputs: Sequence[Any]) -> list[Any]:
    return [y for y in outputs if flows(y)]


def taped(run: Function, values: Sequence[Any]) -> tuple[list[Any], list[np.ndarray]]:
    """Return gradients of the objective by the tape, and its weights. Raises NotApplicable if no output is floating."""
    values = list(values)
    with GradientTape() as tape:
        for t in values:
            tape.watch(t)
        outputs = run(values)
        weights = [weight(array(y).shape) * _bounded(array(y)) for y in _floating(outputs)]
        loss = objective(outputs, weights)
    if loss is None:
        raise NotApplicable("no output in floats")
    return list(tape.gradient(loss, values)), weights


def _bounded(y: np.ndarray) -> np.ndarray:
    """Return which results are small enough for the objective. float32 and complex64 cannot represent HUGE."""
    size = np.abs(y)
    mask: np.ndarray = size.astype(np.float64) < (HUGE if size.dtype == np.float64 else COARSE_HUGE)
    return mask


def gradient_is_slope(call: CheckedCall) -> str:
    """Check that the gradient equals central differences, in float64, or in float32 if nothing wider is accepted; a
    LoDTensor's has its LoD.
    """
    run, values = as_function(widened(call))
    names = [name for name, t in call.parts() if flows(t)]
    if not _takes_wide(call):
        return f"{compare_slopes(run, values, names, COARSE_LIMIT, COARSE_DELTA)} elements, coarsely, in float32"
    return f"{compare_slopes(run, values, names)} elements"


def second_gradient_is_slope(call: CheckedCall) -> str:
    """Check that the derivative of the gradient, by inputs and output gradients, equals central differences.

    Only in float64: the rounding error of a second difference in float32 is too large.
    """
    call = widened(call)
    if not _takes_wide(call):
        raise NotApplicable("second derivatives are compared in float64, which it does not take")
    run, values = as_function(call)
    names = [name for name, t in call.parts() if flows(t)]
    outputs = _floating(run(values))
    if not outputs:
        raise NotApplicable("no output in floats")
    output_gradients = [_output_gradient(y) for y in outputs]
    count = len(values)

    def gradient(arguments: list[Any]) -> list[Any]:
        with GradientTape() as tape:
            for t in arguments[:count]:
                tape.watch(t)
            results = _floating(run(arguments[:count]))
        grads = tape.gradient(results, arguments[:count], output_gradients=arguments[count:])
        return [g for g in grads if g is not None]

    if not gradient([*values, *output_gradients]):
        raise NotApplicable("no gradient flows")
    try:
        num_elements = compare_slopes(
            gradient,
            [*values, *output_gradients],
            [*names, *(f"dy[{i}]" for i in range(len(output_gradients)))],
            max_elements=MAX_ELEMENTS_SECOND,
        )
    except LookupError as error:
        if "has no gradient" not in str(error):
            raise
        raise NotApplicable("its gradient has no gradient") from None
    return f"{num_elements} elements"


def _output_gradient(y: Any) -> object:
    """Return a gradient for an output: its weights, 0 if the output is too large for an objective."""
    numbers = array(y)
    return replaced(y, np.asarray(weight(numbers.shape) * _bounded(numbers), numbers.dtype))


def compare_slopes(
    run: Function,
    values: Sequence[Any],
    names: Sequence[str] = (),
    limit: float = LIMIT,
    delta: float = DELTA,
    max_elements: int = MAX_ELEMENTS,
) -> int:
    """Compare the gradients of a function's objective with differences; return the number of perturbed elements."""
    count = 0
    grads, weights = taped(run, values)
    names = names or [f"tensor {i}" for i in range(len(values))]

    def loss(moved: Sequence[Any]) -> float:
        return float(array(objective(run(list(moved)), weights)))

    for k, (x, grad) in enumerate(zip(values, grads)):
        numbers = array(x)
        analytic = np.zeros_like(numbers) if grad is None else array(grad)
        if analytic.shape != numbers.shape:
            raise AssertionError(f"of {names[k]!r}: shape {analytic.shape}, wanted {numbers.shape}")
        if not (grad is None or lod_of(grad) == lod_of(x)):
            raise AssertionError(f"of {names[k]!r}: LoD {lod_of(grad)}, wanted {lod_of(x)}")
        indices = range(numbers.size)
        if numbers.size > max_elements:
            indices = np.unique(np.linspace(0, numbers.size - 1, max_elements).astype(int)).tolist()
        gradients, differences = [], []
        count += len(indices)
        for index in indices:
            for unit in (1.0, 1.0j) if numbers.dtype.kind == "c" else (1.0,):
                sides = []
                for step in (delta, -delta):
                    moved = numbers.copy()
                    moved.reshape(-1)[index] += step * unit
                    sides.append(loss([*values[:k], replaced(x, moved), *values[k + 1 :]]))
                differences.append((sides[0] - sides[1]) / (2 * delta))
                # a complex gradient is conjugate: its parts are the slopes along the real and the imaginary part
                gradients.append(float(np.real(np.conj(analytic.reshape(-1)[index]) * unit)))
        a, b = np.array(gradients), np.array(differences)
        finite = np.isfinite(b)
        tolerance = limit * (1 + np.abs(b[finite]).max(initial=0))
        if not (np.abs(a - b)[finite].max(initial=0) <= tolerance):
            raise AssertionError(
                f"of {names[k]!r}: gradient {np.round(a[:4], 5).tolist()}, by differences {np.round(b[:4], 5).tolist()}"
            )
    return count


def backward_is_tape(run: Function, values: Sequence[Any], bits: bool = True) -> int:
    """Check that `append_backward` on the objective's graph computes the tape's gradients, under names with `@GRAD`.

    bits: require the same bits, else agreement within the tolerance. If three or more parts of a gradient are summed,
    the tape's order may differ, so only numbers are compared. Returns the number of gradients.
    """
    values = list(values)
    grads, weights = taped(run, values)
    traced = function(lambda *arguments: objective(run(list(arguments)), weights), autograph=False)
    concrete = traced.get_concrete_function(*values)
    graph = concrete.graph
    inputs = list(graph.inputs)[: len(values)]
    captured = list(getattr(concrete, "captured_inputs", ()))  # captured tensors: offsets, numbers
    if len(graph.inputs) != len(values) + len(captured) or any(t.dtype.is_handle for t in captured):
        raise NotApplicable("the graph takes state, or several tensors for one value")
    result = append_backward(graph, graph.outputs[0], inputs)
    if not all(isinstance(g, Value) for _, g in result.pairs):
        raise NotApplicable("gradients that are sparse rows")
    with np.errstate(all="ignore"):
        outputs = Plan(result.graph).run(*[array(v) for v in (*values, *captured)])[-len(result.pairs) :]
    by_name = {p.name: (g.name, y) for (p, g), y in zip(result.pairs, outputs)}
    many = any(n.op.name == "AddN" and len(list(n.operands)) > 2 for n in result.graph.nodes)
    for value, expected in zip(inputs, grads):
        pair = by_name.get(value.name)
        if (pair is None) != (expected is None):
            raise AssertionError(f"{value.name}: only one of tape and graph has a gradient")
        if pair is None or expected is None:
            continue
        name, actual = pair
        if not name.startswith(f"{value.name}@GRAD"):
            raise AssertionError(f"the gradient of {value.name} is named {name}")
        assert_same([actual], [expected], name, bits=bits and not many)
    return len(by_name)


def gradient_reads_no_more(call: CheckedCall) -> int:
    """Check that inputs and outputs that the gradient does not need by value may be overwritten before it runs.

    Returns the number of overwritten tensors. raises AssertionError if the gradient changes, or keeps them
    """
    call = widened(call)
    op, overwritten = call.op, 0
    needs = op.gradient_needs
    expected: list[Any] = []
    for overwrite in (False, True):
        copied = call.over([replaced(t, array(t).copy()) if not t.dtype.is_handle else t for t in call.tensors()])
        run, values = as_function(copied)
        with GradientTape() as tape:
            for t in values:
                tape.watch(t)
            result = run(values)
        output_gradients = [make(weight(array(y).shape).astype(array(y).dtype)) for y in _floating(result)]
        if not output_gradients:
            raise NotApplicable("no output in floats")
        if overwrite:
            overwritten = _overwrite_unneeded(copied, result, needs)
        grads = list(tape.gradient(_floating(result), values, output_gradients=output_gradients))
        if not overwrite:
            expected = [None if g is None else make(array(g).copy()) for g in grads]
            continue
        for x, a, b in zip(values, grads, expected):
            if (a is None) != (b is None):
                raise AssertionError("only one of two calls has a gradient")
            if a is not None:
                label = f"a gradient of shape {array(x).shape} reads what it says it does not need"
                assert_same([make(array(a))], [b], label)
    return overwritten


def _overwrite_unneeded(call: CheckedCall, results: Sequence[Any], needs: Any) -> int:
    """Overwrite tensors that are not needed by value with NaN or the largest number; return their number."""
    op = call.op
    slots = [(op.inputs[i].name, x) for i, x in enumerate(call.inputs) if x is not None]
    shown = [o.name for o in op.outputs if not o.intermediate]
    if len(shown) == len(results):
        slots += list(zip(shown, results))
    need = {**needs.inputs, **needs.outputs}
    needed: list[np.ndarray] = []
    free: list[np.ndarray] = []
    for name, value in slots:
        for t in value if isinstance(value, tuple) else (value,):
            if getattr(t.dtype, "is_handle", False) or t.dtype.name == "string":
                continue
            (needed if need.get(name) == "value" else free).extend(refs(t)[:1])
    count = 0
    for a in free:
        if a.size and not any(np.may_share_memory(a, k) for k in needed):
            a.flags.writeable = True
            a[...] = np.nan if a.dtype.kind in "fc" else np.array(True if a.dtype.kind == "b" else 99, a.dtype)
            count += 1
    return count

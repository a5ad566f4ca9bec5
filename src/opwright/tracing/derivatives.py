"""Derivatives in graphs without a tape, and functions with modified derivatives.

Lives here: gradients, hessians, grad_pass_through, recompute_grad.  Not here: the tape (eager/tape.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..core import nest
from ..eager.tape import GradientTape, UnconnectedGradients, custom_gradient
from ..ops import array, dispatch
from ..ops.autodiff import accumulate, backpropagate
from ..ops.lod_tensor import LoDTensor, rows_of
from ..ops.tensor import TensorLike

state = dispatch.state


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Any]:
    """Compute d sum(ys) / d x for each x, inside `function`, through everything recorded so far.

    grad_ys: the initial gradients of ys instead of ones. stop_gradients: tensors treated as constants.
    raises RuntimeError eagerly; use GradientTape there
    """
    trace: Any = state.trace
    if trace is None:
        raise RuntimeError(
            "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."
        )
    unconnected = UnconnectedGradients(unconnected_gradients)
    flat_xs = nest.flatten(xs)
    targets, sources = ([trace.local_tensor(rows_of(t)) for t in nest.flatten(part)] for part in (ys, flat_xs))
    dys: Sequence[Any] = [None] * len(targets) if grad_ys is None else list(map(rows_of, nest.flatten(grad_ys)))
    start: dict[int, Any] = {}
    for y, dy in zip(targets, dys, strict=True):
        dy = array.ones_like(y) if dy is None else dispatch.to_tensor(dy, y.dtype)
        start[id(y)] = accumulate(start[id(y)], dy) if id(y) in start else dy
    stopped = {id(trace.local_tensor(rows_of(t))) for t in nest.flatten(stop_gradients or [])}
    records = [r for r in trace.recorder.records if not any(id(y) in stopped for y in r.outputs)]
    grads = backpropagate(records, start, {id(x) for x in sources})
    results = [grads.get(id(x)) for x in sources]
    if unconnected is UnconnectedGradients.ZERO:
        results = [array.zeros_like(x) if g is None else g for g, x in zip(results, sources)]
    return [x.with_values(g) if isinstance(x, LoDTensor) and g is not None else g for g, x in zip(results, flat_xs)]


def hessians(
    ys: Any, xs: Any, gate_gradients: bool = False, aggregation_method: int | None = None, name: str = "hessians"
) -> list[Any]:
    """Compute the matrix of second derivatives of sum(ys) by each x, inside `function`: of shape x.shape + x.shape.

    raises RuntimeError eagerly; use a GradientTape and its `jacobian` of the gradient there
    """
    results: list[Any] = []
    first = gradients(ys, xs)
    trace: Any = state.trace
    for x, gradient in zip(nest.flatten(xs), first):
        local = trace.local_tensor(rows_of(x))
        shape = array.shape(local)
        flat = array.reshape(array.zeros_like(local) if gradient is None else gradient, [-1])

        def row(i: Any, flat: Any = flat, x: Any = local) -> Any:
            second = gradients(flat[i], x)[0]
            return array.zeros_like(x) if second is None else second

        count = flat.shape[0]
        if count is None:
            raise ValueError("hessians: the shape of x must be known")
        rows = array.stack([row(i) for i in range(count)]) if count else array.zeros_like(local)
        results.append(array.reshape(rows, array.concat([shape, shape], 0)))
    return results


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `f` with the gradient of the identity: incoming gradients pass to its arguments unchanged."""

    @custom_gradient
    def with_identity_gradient(*args: Any, **kwargs: Any) -> object:
        def grad(*dys: Any, variables: Sequence[Any] | None = None) -> tuple[Any, ...]:
            return dys if variables is None else (dys, [None] * len(variables))

        return f(*args, **kwargs), grad

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> object:
        return with_identity_gradient(*args, **kwargs)

    return wrapped


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `f` so that its intermediate values are recomputed for the gradient instead of stored."""

    @custom_gradient
    def recomputing(*args: Any, **kwargs: Any) -> object:
        result = f(*args, **kwargs)

        def grad(*dys: Any, variables: Sequence[Any] | None = None) -> object:
            tensors = [a for a in nest.flatten(args) if isinstance(a, TensorLike)]
            with GradientTape() as tape:
                copies = [array.identity(t) for t in tensors]  # recorded: gradients of this gradient flow through it
                tape.watch(copies)
                remaining = iter(copies)
                arguments = nest.map_structure(
                    lambda a: next(remaining) if isinstance(a, TensorLike) else a, list(args)
                )
                outputs = f(*arguments, **kwargs)
            sources = [*copies, *(variables or ())]
            grads = tape.gradient(outputs, sources, output_gradients=nest.pack_sequence_as(outputs, list(dys)))
            inputs, variable_grads = grads[: len(copies)], grads[len(copies) :]
            return inputs if variables is None else (inputs, variable_grads)

        return result, grad

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> object:
        return recomputing(*args, **kwargs)

    return wrapped

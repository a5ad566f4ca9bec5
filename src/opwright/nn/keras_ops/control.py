"""Control flow of `keras.ops`: branches, loops, scans, derivatives of functions.

Lives here: functions of functions.  Not here: the control flow of traced functions (tracing/control/).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, TypeVar, cast

from ...core import nest
from ...eager.tape import GradientTape
from ...eager.tape import custom_gradient as custom_gradient
from ...ops import array, dispatch
from ...tracing.control import higher_order, loops
from ...tracing.control.branches import cond as branch
from ...tracing.control.branches import switch_case
from ..keras_tensor import find
from ..layers import Lambda
from . import creation
from .promotion import as_floating

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def _as_layer(function: F) -> F:
    """Return a function that is one layer of a functional model where it gets KerasTensors."""

    @wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        if not find((args, kwargs)):
            return function(*args, **kwargs)
        layer = Lambda(lambda packed: function(*packed[0], **packed[1]), autocast=False)
        return layer((args, kwargs))

    return cast(F, recorded)


@_as_layer
def cond(pred: Any, true_fn: Callable[[], R], false_fn: Callable[[], R]) -> R:
    """Return true_fn() or false_fn(), by a scalar condition."""
    return branch(creation.cast(pred, "bool"), true_fn, false_fn)


@_as_layer
def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """Return the result of the branch at an index, clipped to those there are, of the operands."""
    last = len(branches) - 1
    index = creation.cast(index, "int32")
    index = array.where(index < 0, array.zeros_like(index), array.where(index > last, last, index))
    result: R = switch_case(index, [partial(f, *operands) for f in branches])
    return result


@_as_layer
def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: int | None = None
) -> Any:
    """Call body on the loop variables while cond of them holds; return their last values."""
    single = not isinstance(loop_vars, (tuple, list))
    result = loops.while_loop(
        cond, body, (loop_vars,) if single else tuple(loop_vars), maximum_iterations=maximum_iterations
    )
    return result[0] if single else tuple(result)


@_as_layer
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """Return the value after value = body_fun(i, value) for i from lower up to upper (excluded)."""
    upper = creation.convert_to_tensor(upper)
    init_val = nest.map_structure(dispatch.to_tensor, init_val)
    return loops.while_loop(
        lambda i, value: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (creation.cast(lower, upper.dtype), init_val),
    )[1]


@_as_layer
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Return f of each slice along the first axis, stacked."""
    leaves = nest.map_structure(dispatch.to_tensor, xs)

    def step(_: Any, x: Any) -> tuple[Any, Any]:
        return (), f(x)

    return scan(step, (), leaves)[1]


@_as_layer
def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """Return function of each slice along the first axis, stacked."""
    return higher_order.vectorized_map(function, nest.map_structure(dispatch.to_tensor, elements))


@_as_layer
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: Any = 1,
) -> tuple[Any, Any]:
    """Carry a value over slices along the first axis: (carry, y) = f(carry, x). Return the last carry and y, stacked.

    xs: a structure of tensors, or None with a number of steps, `length`; reverse: from the last slice; unroll: has no
    effect
    raises ValueError without xs and length
    """
    flat = [dispatch.to_tensor(x) for x in nest.flatten(xs)] if xs is not None else []
    count = flat[0].shape[0] if flat else length
    if count is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided, or a length known only at run time.")
    carry, outputs = init, []
    for i in reversed(range(count)) if reverse else range(count):
        x = None if xs is None else nest.pack_sequence_as(xs, [v[i] for v in flat])
        carry, y = f(carry, x)
        outputs.append(y)
    if reverse:
        outputs.reverse()
    if not outputs or outputs[0] is None:
        return carry, None
    return carry, nest.map_structure(lambda *ys: array.stack(list(ys)), *outputs)


@_as_layer
def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Return f of all slices up to each one along an axis; f: associative, of slices stacked along it.

    The slices are combined in doubling distances: log2(n) calls of f. reverse: from the last slice
    """
    flat = [dispatch.to_tensor(x) for x in nest.flatten(elems)]
    count = flat[0].shape[axis]
    flat = [array.reverse(x, [axis]) for x in flat] if reverse else flat

    def part(x: Any, start: int, stop: int) -> Any:
        return x[(slice(None),) * (axis % x.shape.rank) + (slice(start, stop),)]

    distance = 1
    while distance < count:
        earlier = nest.pack_sequence_as(elems, [part(x, 0, count - distance) for x in flat])
        later = nest.pack_sequence_as(elems, [part(x, distance, count) for x in flat])
        combined = nest.flatten(f(earlier, later))
        flat = [array.concat([part(x, 0, distance), y], axis) for x, y in zip(flat, combined)]
        distance *= 2
    flat = [array.reverse(x, [axis]) for x in flat] if reverse else flat
    return nest.pack_sequence_as(elems, flat)


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Return fun(*primals) and its derivative along tangents.

    The derivative is that of the reverse pass with respect to its weights, which it is linear in. has_aux: fun returns
    (value, aux); aux follows in the result
    """
    sources = [as_floating(p) for p in nest.flatten(list(primals))]
    along = [as_floating(t) for t in nest.flatten(list(tangents))]
    with GradientTape() as tape:
        tape.watch(sources)
        result = fun(*nest.pack_sequence_as(list(primals), sources))
    value, aux = result if has_aux else (result, None)
    flat = nest.flatten(value)
    weights = [array.zeros_like(v) for v in flat]
    with GradientTape() as outer:
        outer.watch(weights)
        gradients = tape.gradient(flat, sources, weights, unconnected_gradients="zero")
    derivatives = outer.gradient(gradients, weights, along, unconnected_gradients="zero")
    derivative = nest.pack_sequence_as(value, derivatives)
    return (value, derivative, aux) if has_aux else (value, derivative)


def vectorize(pyfunc: Callable[..., Any], *, excluded: Any = None, signature: str | None = None) -> Callable[..., Any]:
    """Return a function of scalars as one of tensors that broadcast.

    raises NotImplementedError for a signature of inner axes, or excluded arguments
    """
    if signature is not None or excluded:
        raise NotImplementedError("vectorize takes functions of scalars alone; for others use `vectorized_map`")

    def vectorized(*args: Any) -> Any:
        tensors = [dispatch.to_tensor(a) for a in args]
        shape = array.shape(tensors[0])
        for t in tensors[1:]:
            shape = array.broadcast_dynamic_shape(shape, array.shape(t))
        flat = [array.reshape(array.broadcast_to(t, shape), [-1]) for t in tensors]
        result = vectorized_map(lambda slices: pyfunc(*slices), flat)
        return nest.map_structure(lambda y: array.reshape(y, shape), result)

    return vectorized

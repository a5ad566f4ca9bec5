"""Higher-order functions over the first dimension of tensors: `map_fn`, `scan`, `foldl`, `foldr`, `vectorized_map`.

Lives here: these functions, eagerly and in graphs.  Not here: loops in general (loops.py).

In a graph, the elements and the results are lists of tensors: reading an element copies nothing, and the gradient of
one element is one element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...autograph.api import convert_if_enabled
from ...core import dtypes, nest
from ...core.errors import compose
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...eager.tensor import EagerTensor
from ...ops import array, dispatch
from ...ops.list_ops import ListGet, ListPush, ListReserve
from ...ops.list_tensor_ops import ListFromTensor, ListStack
from ...ops.lod_tensor import LoDTensor
from ..name_scopes import name_scope
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from . import composite_maps
from .body import emit_while

state = dispatch.state
R = TypeVar("R")
_INDEX = TensorSpec((), dtypes.int32, "i")


def map_fn(
    fn: Callable[[Any], R],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> R:
    """Apply `fn` to each element along the first dimension and stack the results.

    .. math:: y_i = fn(x_i)

    elems: a tensor or nesting of tensors of one first size n, eagerly also ragged and sparse ones. fn: a function of
    one element of that nesting; may return another nesting. fn_output_signature (dtype, its older name): dtypes or
    TensorSpecs of the results of `fn`; checked if given, otherwise inferred by calling it.
    raises ValueError if first sizes differ, TypeError if the dtype of a result differs from fn_output_signature
    """
    del parallel_iterations, back_prop, swap_memory, infer_shape
    signature = dtype if fn_output_signature is None else fn_output_signature
    if composite_maps.has_composites(elems, signature):
        rows: R = composite_maps.map_rows(fn, elems, signature)
        return rows
    flat, n = _elements(elems, "map_fn")
    fn = convert_if_enabled(fn)

    def step(element: Any, carried: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        return (), fn(element)

    with name_scope(name or "map"):
        _, stacked = _loop(step, elems, flat, n, (), False)
    result: R = stacked if signature is None else _checked_signature(stacked, signature)
    return result


def vectorized_map(fn: Callable[[Any], R], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> R:
    """Apply `fn` as `map_fn` does; provided for compatibility. The loop is not vectorized."""
    del fallback_to_while_loop, warn
    return map_fn(fn, elems)


def scan(
    fn: Callable[[Any, Any], R],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> R:
    """Stack all partial results of a fold.

    .. math:: y_i = fn(y_{i-1}, x_i)

    elems: a tensor or nesting of tensors of one first size. initializer: y_{-1}; if omitted, y_0 = x_0. reverse: from
    the last element to the first; each result has the index of its element.
    raises ValueError for no elements without an initializer, and if `fn` changes a shape; TypeError if it changes a
    dtype
    """
    del parallel_iterations, back_prop, swap_memory, infer_shape
    with name_scope(name or "scan"):
        results: R = _fold(fn, elems, initializer, reverse, "scan")[1]
    return results


def foldl(
    fn: Callable[[Any, Any], R],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> R:
    """Combine the elements from the first to the last.

    .. math:: y = fn(\\ldots fn(fn(initializer, x_0), x_1) \\ldots, x_{n-1})

    raises ValueError for no elements without an initializer
    """
    del parallel_iterations, back_prop, swap_memory
    with name_scope(name or "foldl"):
        result: R = _fold(fn, elems, initializer, False, "foldl", keep=False)[0]
    return result


def foldr(
    fn: Callable[[Any, Any], R],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> R:
    """Combine the elements from the last to the first.

    .. math:: y = fn(\\ldots fn(fn(initializer, x_{n-1}), x_{n-2}) \\ldots, x_0)

    raises ValueError for no elements without an initializer
    """
    del parallel_iterations, back_prop, swap_memory
    with name_scope(name or "foldr"):
        result: R = _fold(fn, elems, initializer, True, "foldr", keep=False)[0]
    return result


def _elements(elems: Any, caller: str) -> tuple[list[Any], Any]:
    """Return the flat tensors, and the number of elements: an int if it is known."""
    if any(isinstance(e, LoDTensor) and e.levels for e in nest.flatten(elems)):
        raise TypeError(
            compose(
                "a LoDTensor has sequences, not elements of one shape",
                op=caller,
                found="a LoDTensor",
                wanted="tensors",
                do="use its rows, x.values, or the operators of ow.sequence",
            )
        )
    flat = [dispatch.to_tensor(e) for e in nest.flatten(elems, expand_composites=True)]
    if not flat:
        raise ValueError(f"{caller}: 'elems' must be a tensor or a nesting of tensors, found {elems}")
    n: Any = None
    for tensor in flat:
        if tensor.shape.rank == 0:
            raise ValueError(f"{caller}: elements in 'elems' must be 1+ dimensional Tensors, not scalars: {tensor}")
        if tensor.shape.rank is not None and tensor.shape[0] is not None:
            if n is not None and n != tensor.shape[0]:
                raise ValueError(f"{caller}: elems have different first sizes, {n} and {tensor.shape[0]}")
            n = tensor.shape[0]
    return flat, array.shape(flat[0])[0] if n is None else n


def _fold(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool, caller: str, keep: bool = True
) -> tuple[Any, Any]:
    """Return the last partial result, and all partial results stacked (nothing if they are not needed)."""
    if not callable(fn):
        raise TypeError(f"{caller}: fn must be callable, found {fn!r}")
    flat, n = _elements(elems, caller)
    fn = convert_if_enabled(fn)
    starts_with_element = initializer is None
    if starts_with_element:
        if isinstance(n, int) and n == 0:
            raise ValueError(f"{caller}: there are no elements, and no initializer")
        index = -1 if reverse else 0
        initializer = nest.pack_sequence_as(elems, [t[index] for t in flat], expand_composites=True)
        remaining = [t[:-1] if reverse else t[1:] for t in flat]
        count = n - 1
    else:
        remaining, count = flat, n
    start = [dispatch.to_tensor(x) for x in nest.flatten(initializer, expand_composites=True)]

    def step(element: Any, carried: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        before = nest.pack_sequence_as(initializer, list(carried), expand_composites=True)
        result = fn(before, element)
        try:
            nest.assert_same_structure(initializer, result, expand_composites=True)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{caller}: fn returns another structure than the initializer: {error}") from None
        after = [
            dispatch.to_tensor(x, None if hasattr(x, "dtype") else s.dtype)
            for x, s in zip(nest.flatten(result, expand_composites=True), start)
        ]
        for x, s in zip(after, start):
            if x.dtype is not s.dtype:
                raise TypeError(f"{caller}: fn returns {x.dtype.name}, the initializer is {s.dtype.name}")
        return after, nest.pack_sequence_as(initializer, after, expand_composites=True) if keep else ()

    last, stacked = _loop(step, elems, remaining, count, start, reverse)
    last = nest.pack_sequence_as(initializer, list(last), expand_composites=True)
    if keep and starts_with_element:
        first = [array.expand_dims(x, 0) for x in start]
        parts = nest.flatten(stacked, expand_composites=True)
        pairs = zip(parts, first) if reverse else zip(first, parts)
        stacked = nest.pack_sequence_as(initializer, [array.concat(list(p), 0) for p in pairs], expand_composites=True)
    return last, stacked


Step = Callable[[Any, Sequence[Any]], tuple[Sequence[Any], Any]]


def _loop(
    step: Step, elems: Any, flat: Sequence[Any], n: Any, start: Sequence[Any], reverse: bool
) -> tuple[Sequence[Any], Any]:
    """Run or record `step(element, carried) -> (carried, result)` over the elements.

    Return the final carried values, and the results stacked in the structure that `step` returns.
    """
    if isinstance(state.trace, FuncTrace):
        return _recorded(step, elems, flat, n, start, reverse)
    count = int(n)
    if count == 0:
        return start, _empty_stack(step, elems, flat, start)
    carried, result, results = start, None, []
    for i in reversed(range(count)) if reverse else range(count):
        element = nest.pack_sequence_as(elems, [t[i] for t in flat], expand_composites=True)
        carried, result = step(element, carried)
        results.append(nest.flatten(result, expand_composites=True))
    if reverse:
        results.reverse()
    columns = [array.stack(list(column)) for column in zip(*results)]
    return carried, nest.pack_sequence_as(result, columns, expand_composites=True)


loop_over = _loop  # for recurrent layers, which carry more values than they stack


def _empty_stack(step: Step, elems: Any, flat: Sequence[Any], start: Sequence[Any]) -> object:
    """Return the stack of no results; dtypes and shapes are inferred by recording a step that never runs."""
    trace = FuncTrace("no_elements")
    with trace.recording():
        element = [trace.free_placeholder(TensorSpec(t.shape[1:], t.dtype), "element") for t in flat]
        carried = [trace.free_placeholder(t.spec, "carried") for t in start]
        _, result = step(nest.pack_sequence_as(elems, element, expand_composites=True), carried)
        leaves = [trace.to_tensor(leaf) for leaf in nest.flatten(result, expand_composites=True)]
    empty = [array.zeros([0, *(d or 0 for d in leaf.shape.dims or ())], leaf.dtype) for leaf in leaves]
    return nest.pack_sequence_as(result, empty, expand_composites=True)


def _recorded(
    step: Step, elems: Any, flat: Sequence[Any], n: Any, start: Sequence[Any], reverse: bool
) -> tuple[Sequence[Any], Any]:
    trace = state.trace
    assert isinstance(trace, FuncTrace)
    count = trace.to_tensor(n, dtypes.int32)
    sources = [ListFromTensor(t) for t in map(trace.to_tensor, flat)]
    late_variables: list[SymbolicTensor] = []
    structure: Any = None

    def iteration(i: Any, *carried: Any) -> list[Any]:
        nonlocal structure
        body_trace = state.trace
        assert isinstance(body_trace, FuncTrace)
        index = count - 1 - i if reverse else i
        parts = [
            ListGet(source, index, element_dtype=t.dtype, element_shape=_less_first(t.shape))
            for source, t in zip(sources, flat)
        ]
        after, result = step(nest.pack_sequence_as(elems, parts, expand_composites=True), carried)
        leaves = [body_trace.to_tensor(leaf) for leaf in nest.flatten(result, expand_composites=True)]
        structure = result, leaves
        lists = []
        for leaf in leaves:
            late_variables.append(body_trace.free_placeholder(TensorSpec((), dtypes.variant), "results"))
            lists.append(ListPush(late_variables[-1], leaf))
        return [i + 1, *after, *lists]

    def first() -> list[Any]:
        lists = [ListReserve(0, element_dtype=leaf.dtype, element_shape=leaf.shape) for leaf in structure[1]]
        return [trace.to_tensor(0, dtypes.int32), *start, *lists]

    specs = [_INDEX, *(TensorSpec(t.shape, t.dtype, t.value_in_graph.name) for t in map(trace.to_tensor, start))]
    _, *outs = emit_while(trace, specs, lambda i, *_: i < count, iteration, first, "while", late_variables)
    result, leaves = structure
    size = n if isinstance(n, int) else None
    stacked = []
    for values_list, leaf in zip(outs[len(start) :], leaves):
        stack = ListStack(values_list, element_dtype=leaf.dtype, element_shape=leaf.shape)
        stack.set_shape([size, *leaf.shape] if leaf.shape.rank is not None else None)
        stacked.append(array.reverse(stack, [0]) if reverse else stack)
    return outs[: len(start)], nest.pack_sequence_as(result, stacked, expand_composites=True)


def _less_first(shape: TensorShape) -> TensorShape:
    return shape if shape.rank is None else shape[1:]


def _checked_signature(stacked: Any, declared: Any) -> Any:
    """Check the stacked results against the declared type of one result."""
    if nest.is_nested(declared) and type(declared) is not type(stacked):
        raise TypeError(
            "map_fn: the two structures don't have the same nested structure: fn returns a "
            f"{type(stacked).__name__}, fn_output_signature declares a {type(declared).__name__}"
        )
    specs = nest.flatten(declared)
    leaves = nest.flatten(stacked)
    if len(specs) != len(leaves):
        raise ValueError(f"map_fn: fn returns {len(leaves)} tensors, fn_output_signature declares {len(specs)}")
    for leaf, spec in zip(leaves, specs):
        dtype = dtypes.as_dtype(getattr(spec, "dtype", spec))
        if leaf.dtype is not dtype:
            raise TypeError(f"map_fn: fn returns {leaf.dtype.name}, fn_output_signature declares {dtype.name}")
        if isinstance(spec, TensorSpec) and not isinstance(leaf, EagerTensor) and spec.shape.rank is not None:
            leaf.set_shape([leaf.shape[0] if leaf.shape.rank else None, *spec.shape])
    return nest.pack_sequence_as(declared, leaves) if nest.is_nested(declared) else stacked

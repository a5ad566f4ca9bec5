"""Loops over the first dimension of tensors: `map_fn`, `scan`, `foldl`, `foldr`, `vectorized_map`.

Lives here: these functions, eagerly and in graphs.  Not here: loops in general (loops.py).

In a graph the elements are a list of tensors and so are the results: taking one costs no copy, and the gradient of one
element is one element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...autograph.api import convert_if_enabled
from ...core import dtypes, nest
from ...core.errors import compose
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...eager.tensor import EagerTensor
from ...ops import array, dispatch
from ...ops.list_rows import ListFromTensor, ListStack
from ...ops.lists import ListGet, ListPush, ListReserve
from ...ops.lod_tensor import LoDTensor
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .body import emit_while

if TYPE_CHECKING:
    from ..name_scopes import name_scope

state = dispatch.state
_TURN = TensorSpec((), dtypes.int32, "i")


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` of each element along the first dimension, the results stacked.

    .. math:: y_i = fn(x_i)

    elems: a tensor or nesting of tensors of one first size n. fn: takes one element of that nesting, may give another
    nesting. fn_output_signature (dtype, its older name): dtypes or TensorSpecs of what `fn` gives; checked where
    given, found by calling where not.
    raises ValueError where first sizes differ, TypeError where a result has another dtype than announced
    """
    del parallel_iterations, back_prop, swap_memory, infer_shape
    announced = dtype if fn_output_signature is None else fn_output_signature
    flat, n = _elements(elems, "map_fn")
    fn = convert_if_enabled(fn)

    def step(element: Any, carried: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        return (), fn(element)

    with _scope(name or "map"):
        _, stacked = _loop(step, elems, flat, n, (), False)
    return stacked if announced is None else _as_announced(stacked, announced)


def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """`map_fn` under the name of programs that hope for vector code; the loop is the same."""
    del fallback_to_while_loop, warn
    return map_fn(fn, elems)


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Every partial result of a fold, stacked.

    .. math:: y_i = fn(y_{i-1}, x_i)

    elems: a tensor or nesting of tensors of one first size. initializer: y_{-1}; left out, y_0 = x_0. reverse: from
    the last element to the first; results stay at their elements' places.
    raises ValueError for no elements without an initializer, and where `fn` changes a shape; TypeError for a dtype
    """
    del parallel_iterations, back_prop, swap_memory, infer_shape
    with _scope(name or "scan"):
        return _fold(fn, elems, initializer, reverse, "scan")[1]


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The elements combined from the first to the last.

    .. math:: y = fn(\\ldots fn(fn(initializer, x_0), x_1) \\ldots, x_{n-1})

    raises ValueError for no elements without an initializer
    """
    del parallel_iterations, back_prop, swap_memory
    with _scope(name or "foldl"):
        return _fold(fn, elems, initializer, False, "foldl", keep=False)[0]


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """The elements combined from the last to the first.

    .. math:: y = fn(\\ldots fn(fn(initializer, x_{n-1}), x_{n-2}) \\ldots, x_0)

    raises ValueError for no elements without an initializer
    """
    del parallel_iterations, back_prop, swap_memory
    with _scope(name or "foldr"):
        return _fold(fn, elems, initializer, True, "foldr", keep=False)[0]


def _scope(name: str) -> name_scope:
    from ..name_scopes import name_scope

    return name_scope(name)


def _elements(elems: Any, caller: str) -> tuple[list[Any], Any]:
    """The flat tensors, and the number of elements: an int where it is known."""
    if any(isinstance(e, LoDTensor) and e.levels for e in nest.flatten(elems)):
        raise TypeError(
            compose(
                "a LoDTensor has sequences, not elements of one shape",
                op=caller,
                found="a LoDTensor",
                wanted="tensors",
                do="its rows, x.values, or what ow.sequence has",
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
    """The last partial result, and all of them stacked (nothing where they are not kept)."""
    if not callable(fn):
        raise TypeError(f"{caller}: fn must be callable, found {fn!r}")
    flat, n = _elements(elems, caller)
    fn = convert_if_enabled(fn)
    given_first = initializer is None
    if given_first:
        if isinstance(n, int) and n == 0:
            raise ValueError(f"{caller}: there are no elements, and no initializer")
        at = -1 if reverse else 0
        initializer = nest.pack_sequence_as(elems, [t[at] for t in flat], expand_composites=True)
        rest = [t[:-1] if reverse else t[1:] for t in flat]
        count = n - 1
    else:
        rest, count = flat, n
    start = [dispatch.to_tensor(x) for x in nest.flatten(initializer, expand_composites=True)]

    def step(element: Any, carried: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        before = nest.pack_sequence_as(initializer, list(carried), expand_composites=True)
        result = fn(before, element)
        try:
            nest.assert_same_structure(initializer, result, expand_composites=True)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{caller}: fn gives another structure than the initializer has: {error}") from None
        after = [
            dispatch.to_tensor(x, None if hasattr(x, "dtype") else s.dtype)
            for x, s in zip(nest.flatten(result, expand_composites=True), start)
        ]
        for x, s in zip(after, start):
            if x.dtype is not s.dtype:
                raise TypeError(f"{caller}: fn gives {x.dtype.name}, the initializer is {s.dtype.name}")
        return after, nest.pack_sequence_as(initializer, after, expand_composites=True) if keep else ()

    last, stacked = _loop(step, elems, rest, count, start, reverse)
    last = nest.pack_sequence_as(initializer, list(last), expand_composites=True)
    if keep and given_first:
        first = [array.expand_dims(x, 0) for x in start]
        parts = nest.flatten(stacked, expand_composites=True)
        pairs = zip(parts, first) if reverse else zip(first, parts)
        stacked = nest.pack_sequence_as(initializer, [array.concat(list(p), 0) for p in pairs], expand_composites=True)
    return last, stacked


Step = Callable[[Any, Sequence[Any]], tuple[Sequence[Any], Any]]


def _loop(
    step: Step, elems: Any, flat: Sequence[Any], n: Any, start: Sequence[Any], reverse: bool
) -> tuple[Sequence[Any], Any]:
    """Run or record `step(element, carried) -> (carried, result)` over the elements; the last carried values, and the
    results stacked in the structure that `step` gives them."""
    if isinstance(state.trace, FuncTrace):
        return _recorded(step, elems, flat, n, start, reverse)
    count = int(n)
    if count == 0:
        return start, _of_nothing(step, elems, flat, start)
    carried, results = start, []
    for i in reversed(range(count)) if reverse else range(count):
        element = nest.pack_sequence_as(elems, [t[i] for t in flat], expand_composites=True)
        carried, result = step(element, carried)
        results.append(nest.flatten(result, expand_composites=True))
    if reverse:
        results.reverse()
    columns = [array.stack(list(column)) for column in zip(*results)]
    return carried, nest.pack_sequence_as(result, columns, expand_composites=True)


loop_over = _loop  # for layers over time, which carry more than they stack


def _of_nothing(step: Step, elems: Any, flat: Sequence[Any], start: Sequence[Any]) -> Any:
    """The stack of no results: dtypes and shapes are found by recording a step that never runs."""
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
    born: list[SymbolicTensor] = []
    structure: Any = None

    def turn(i: Any, *carried: Any) -> list[Any]:
        nonlocal structure
        here = state.trace
        assert isinstance(here, FuncTrace)
        at = count - 1 - i if reverse else i
        parts = [
            ListGet(source, at, element_dtype=t.dtype, element_shape=_less_first(t.shape))
            for source, t in zip(sources, flat)
        ]
        after, result = step(nest.pack_sequence_as(elems, parts, expand_composites=True), carried)
        leaves = [here.to_tensor(leaf) for leaf in nest.flatten(result, expand_composites=True)]
        structure = result, leaves
        lists = []
        for leaf in leaves:
            born.append(here.free_placeholder(TensorSpec((), dtypes.variant), "results"))
            lists.append(ListPush(born[-1], leaf))
        return [i + 1, *after, *lists]

    def first() -> list[Any]:
        lists = [ListReserve(0, element_dtype=leaf.dtype, element_shape=leaf.shape) for leaf in structure[1]]
        return [trace.to_tensor(0, dtypes.int32), *start, *lists]

    specs = [_TURN, *(TensorSpec(t.shape, t.dtype, t.value_in_graph.name) for t in map(trace.to_tensor, start))]
    _, *outs = emit_while(trace, specs, lambda i, *_: i < count, turn, first, "while", born)
    result, leaves = structure
    size = n if isinstance(n, int) else None
    stacked = []
    for kept, leaf in zip(outs[len(start) :], leaves):
        together = ListStack(kept, element_dtype=leaf.dtype, element_shape=leaf.shape)
        together.set_shape([size, *leaf.shape] if leaf.shape.rank is not None else None)
        stacked.append(array.reverse(together, [0]) if reverse else together)
    return outs[: len(start)], nest.pack_sequence_as(result, stacked, expand_composites=True)


def _less_first(shape: TensorShape) -> TensorShape:
    return shape if shape.rank is None else shape[1:]


def _as_announced(stacked: Any, announced: Any) -> Any:
    """The stacked results, checked against what the caller announced of one result."""
    specs = nest.flatten(announced)
    leaves = nest.flatten(stacked)
    if len(specs) != len(leaves):
        raise ValueError(f"map_fn: fn gives {len(leaves)} tensors, fn_output_signature announces {len(specs)}")
    for leaf, spec in zip(leaves, specs):
        dtype = dtypes.as_dtype(getattr(spec, "dtype", spec))
        if leaf.dtype is not dtype:
            raise TypeError(f"map_fn: fn gives {leaf.dtype.name}, fn_output_signature announces {dtype.name}")
        if isinstance(spec, TensorSpec) and not isinstance(leaf, EagerTensor) and spec.shape.rank is not None:
            leaf.set_shape([leaf.shape[0] if leaf.shape.rank else None, *spec.shape])
    return nest.pack_sequence_as(announced, leaves) if nest.is_nested(announced) else stacked

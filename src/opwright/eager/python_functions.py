"""`ow.py_function` and `ow.numpy_function`: Python functions called when the program runs.

Lives here: the functions, and what stands behind the handles that graphs hold.
Not here: the operators (ops/host.py).

A function called back runs as any eager code does, under a tape of its own. The graph keeps the tape of each run as a
further value, and the gradient operator differentiates it; what that computes is recorded onto a copy of the tape, so
that its own gradient is the same again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype, of_numpy
from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..ops import array, dispatch, host
from ..ops.autodiff import backpropagate
from ..ops.indexed_slices import IndexedSlices
from ..ops.outline import linked
from .tape import GradientTape
from .tensor import EagerTensor, convert_to_tensor

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

state = dispatch.state


class _Outside:
    """Out of traces, tapes and scopes of names while it lasts: what is called back runs on its own."""

    def __enter__(self) -> None:
        self.saved = state.trace, state.tapes, state.names
        state.trace, state.tapes, state.names = None, (), ()

    def __exit__(self, *exc: object) -> None:
        state.trace, state.tapes, state.names = self.saved


def _tensors(arrays: Sequence[Any]) -> list[EagerTensor]:
    """Eager tensors of the arrays that a kernel gets; what is no array is an object that a handle stands for."""
    return [
        EagerTensor(a, dtypes.string if a.dtype == object else of_numpy(a.dtype))
        if isinstance(a, np.ndarray)
        else EagerTensor(a, dtypes.resource)
        for a in (np.asarray(a) if isinstance(a, np.generic) else a for a in arrays)
    ]


def _is_float(tensor: Any) -> bool:
    result: bool = tensor.dtype.is_floating or tensor.dtype.is_complex
    return result


class Run:
    """What one call of a function did: what its gradients are worked out from.

    records: the calls of operators, in order. sources, targets: the identities of its floating inputs and outputs.
    """

    shape = ()

    def __init__(self, records: list[Any], live: set[int], sources: list[Any], targets: list[Any]) -> None:
        self.records, self.live = records, live
        self.sources, self.targets = list(map(linked, sources)), list(map(linked, targets))

    def backward(self, arrays: Sequence[Any]) -> tuple[list[Any], Run]:
        """Gradients of the sources given those of the targets; zeros where nothing flows."""
        dys = _tensors(arrays)
        with _Outside():
            tape = GradientTape(watch_accessed_variables=False)
            tape._records, tape._live = list(self.records), set(self.live)
            with tape:
                for dy in dys:
                    tape.watch(dy)
                start: dict[int, Any] = {}
                for target, dy in zip(self.targets, dys):
                    start[id(target)] = start[id(target)] + dy if id(target) in start else dy
                found = backpropagate(self.records, start, {id(s) for s in self.sources})
                maybe: list[Any] = [found.get(id(s)) for s in self.sources]
                grads: list[Any] = [
                    array.zeros_like(s) if g is None else g.to_dense() if isinstance(g, IndexedSlices) else g
                    for g, s in zip(maybe, self.sources)
                ]
        return [g._array for g in grads], Run(tape._records, tape._live, [*self.sources, *dys], grads)


class EagerFunction:
    """A function of eager tensors, behind its handle."""

    shape = ()  # as all that handles stand for

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def call(self, arrays: Sequence[Any], wanted: Sequence[DType]) -> tuple[list[Any], Run]:
        """Arrays of the results, and the run."""
        inputs = _tensors(arrays)
        sources = [x for x in inputs if _is_float(x)]
        with _Outside(), GradientTape(watch_accessed_variables=False) as tape:
            for x in sources:
                tape.watch(x)
            results = _results(self.function, self.function(*inputs), wanted)
        targets = [y for y in results if _is_float(y)]
        return [y._array for y in results], Run(tape._records, tape._live, sources, targets)

    def __repr__(self) -> str:
        return f"<function {_name(self.function)}>"


class ArrayFunction:
    """A function of NumPy arrays, behind its handle."""

    shape = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def call(self, arrays: Sequence[Any], wanted: Sequence[DType]) -> list[Any]:
        """Arrays of the results."""
        with _Outside():
            given = self.function(*(a.copy() if isinstance(a, np.ndarray) else a for a in map(_whole, arrays)))
        return [
            _array(i, v, d, self.function)
            for i, (v, d) in enumerate(zip(_listed(self.function, given, wanted), wanted))
        ]

    def __repr__(self) -> str:
        return f"<function {_name(self.function)}>"


def _whole(array_: Any) -> Any:
    return np.asarray(array_) if isinstance(array_, np.generic) else array_


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _listed(function: Callable[..., Any], given: Any, wanted: Sequence[DType]) -> list[Any]:
    """What a function gave, one for each dtype. Raises InvalidArgumentError where there are fewer or more."""
    found = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
    if isinstance(given, (list, tuple)) and len(wanted) == 1 and len(found) > 1:
        return [np.asarray(given)] if wanted[0] is not dtypes.string else [given]  # one tensor written as a list
    if not wanted:
        return []
    if len(found) != len(wanted):
        raise InvalidArgumentError(
            what=f"{_name(function)} returns {len(found)} values, but expects to see {len(wanted)} values."
        )
    return found


def _results(function: Callable[..., Any], given: Any, wanted: Sequence[DType]) -> list[Any]:
    results: list[Any] = []
    for value, dtype in zip(_listed(function, given, wanted), wanted):
        if value is None:
            value = np.zeros((), dtype.np)
        if isinstance(value, IndexedSlices):
            value = value.to_dense()
        tensor = convert_to_tensor(value.astype(dtype.np) if _is_number_array(value) else value, dtype)
        results.append(array.identity_without_record(tensor) if any(tensor is r for r in results) else tensor)
    return results


def _is_number_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf"


def _array(i: int, value: Any, dtype: DType, function: Callable[..., Any]) -> np.ndarray:
    """The i-th value of a function of arrays. Raises InvalidArgumentError for another dtype than was said."""
    if dtype is dtypes.string:
        strings: Any = convert_to_tensor(value, dtype)
        array: np.ndarray = strings._array
        return array
    if isinstance(value, EagerTensor):
        value = value._array
    made = np.asarray(value)
    python = not isinstance(value, (np.ndarray, np.generic))  # Python's numbers have no width of their own
    if python and (made.dtype.kind in "biu" or dtype.is_floating or dtype.is_complex):
        made = np.asarray(value, dtype.np)
    if made.dtype != dtype.np:
        raise InvalidArgumentError(
            what=f"{i}-th value returned by {_name(function)} is {made.dtype.name}, but expects {dtype.name}"
        )
    return np.array(made)  # a copy: the function may keep its array and write to it


def _dtypes(Tout: Any) -> tuple[list[DType], list[Any], bool]:
    """The dtypes, the specs where there are any (else None), and whether a list is wanted."""
    several = isinstance(Tout, (list, tuple))
    each = list(Tout) if several else [Tout]
    specs = [t if isinstance(t, TensorSpec) else None for t in each]
    try:
        return [t.dtype if isinstance(t, TensorSpec) else as_dtype(t) for t in each], specs, several
    except TypeError as error:
        raise TypeError(f"Tout is a dtype, a TensorSpec, or a list of them; found {Tout!r}: {error}") from None


def _handle(made: Any) -> Tensor:
    return dispatch.to_tensor(EagerTensor(made, dtypes.resource))


def _inputs(inp: Any) -> list[Any]:
    return [dispatch.to_tensor(x) for x in ([] if inp is None else inp)]


def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> Any:
    """Call a Python function of eager tensors each time the program runs; gradients of any order pass through it.

    func: takes the tensors of `inp`, with values also inside `function`, and gives what converts to the dtypes of
    Tout: one dtype (or TensorSpec) for one tensor, a list of them for a list, [] for None. Output shapes are not known
    ahead, unless a TensorSpec says them. Without `func` it is a decorator.

    >>> ow.py_function(lambda x: x if x > 0 else -x, [-2.0], ow.float32)
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>

    What `func` raises becomes an error of the operator: ValueError and TypeError an InvalidArgumentError, StopIteration
    an OutOfRangeError, NotImplementedError an UnimplementedError, MemoryError a ResourceExhaustedError, others an
    UnknownError. raises ValueError for what is not callable, TypeError for a Tout that is missing
    """
    if Tout is None:
        raise TypeError(
            "Missing required argument: 'Tout'\n  If using tf.py_function as a decorator, set `Tout`\n"
            "  **by name** above the function:\n  `@tf.py_function(Tout=tout)`"
        )
    if func is None:

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def wrapped(*args: Any) -> Any:
                return py_function(function, args, Tout, name)

            return wrapped

        return decorate
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    wanted, specs, several = _dtypes(Tout)
    inputs = _inputs(inp)
    call: Any = host.EagerPyFunc
    results = call(_handle(EagerFunction(func)), inputs, out_dtypes=wanted, name=name)
    _state_shapes(results, specs)
    return list(results) if several else results[0]


def _state_shapes(results: Sequence[Any], specs: Sequence[Any]) -> None:
    """In graphs, take the word of the caller for shapes that nobody can infer."""
    if state.trace is not None:
        for tensor, spec in zip(results, specs):
            if spec is not None:
                tensor.set_shape(spec.shape)


def numpy_function(
    func: Any = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: str | None = None
) -> Any:
    """Call a Python function of NumPy arrays each time the program runs. No gradient flows through it.

    func: takes the arrays of `inp`, strings as arrays of bytes, and gives arrays of the dtypes of Tout: one for one
    tensor, a list for several, [] for none. stateful: whether each call must happen, and in program order. Called
    eagerly it is the function itself, with its results made tensors, and its own exceptions.

    raises in graphs InvalidArgumentError for results of another dtype or number, and as `py_function` for exceptions
    """
    if Tout is None:
        raise TypeError("Missing required argument: 'Tout'")
    if func is None:
        return functools.partial(_decorated, Tout=Tout, stateful=stateful, name=name)
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    wanted, specs, several = _dtypes(Tout)
    if state.trace is None:
        given = func(*(np.array(x.numpy() if hasattr(x, "numpy") else x) for x in ([] if inp is None else inp)))
        if given is None:
            return None
        if isinstance(given, (list, tuple)):
            return [convert_to_tensor(v) for v in given]
        return convert_to_tensor(given)
    call: Any = host.PyFunc if stateful else host.PyFuncStateless
    results = call(_handle(ArrayFunction(func)), _inputs(inp), out_dtypes=wanted, name=name)
    _state_shapes(results, specs)
    if not results:
        return None
    return list(results) if len(results) > 1 or several else results[0]


def _decorated(function: Callable[..., Any], Tout: Any, stateful: bool, name: str | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any) -> Any:
        return numpy_function(function, args, Tout, stateful, name)

    return wrapped

"""`ow.py_function` and `ow.numpy_function`: Python functions called at run time.

Lives here: the functions, and the objects to which handles in graphs refer; `call_on_arrays`, for this package's own
functions that read files and formats, and the limit of what these may ask for.
Not here: the operators (ops/host.py).

A called function runs as eager code under a tape of its own. The graph passes on the tape of each run as an additional
value, and the gradient operator differentiates it; that computation is recorded onto a copy of the tape, so that its
own gradient follows by the same construction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes, flags
from ..core.dtypes import DType, as_dtype, of_numpy
from ..core.errors import InvalidArgumentError, ResourceExhaustedError
from ..core.specs import TensorSpec
from ..ops import array, dispatch, host
from ..ops.autodiff import backpropagate
from ..ops.indexed_slices import IndexedSlices
from ..ops.tensor import tensor_identity
from .tape import GradientTape
from .tensor import EagerTensor, convert_to_tensor

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

state = dispatch.state


class _IsolatedState:
    """A context outside of traces, tapes and name scopes, in which a called function runs."""

    def __enter__(self) -> None:
        self.saved = state.trace, state.tapes, state.names
        state.trace, state.tapes, state.names = None, (), ()

    def __exit__(self, *exc: object) -> None:
        state.trace, state.tapes, state.names = self.saved


def _tensors(arrays: Sequence[Any]) -> list[EagerTensor]:
    """Return eager tensors of the arrays of a kernel; an argument that is not an array is the object of a handle."""
    return [
        EagerTensor(a, dtypes.string if a.dtype == object else of_numpy(a.dtype))
        if isinstance(a, np.ndarray)
        else EagerTensor(a, dtypes.resource)
        for a in (np.asarray(a) if isinstance(a, np.generic) else a for a in arrays)
    ]


def _is_float(tensor: Any) -> bool:
    result: bool = tensor.dtype.is_floating or tensor.dtype.is_complex
    return result


class RecordedRun:
    """The record of one call of a function, for its gradients.

    records: the calls of operators, in order. sources, targets: the identities of its floating inputs and outputs.
    """

    shape = ()

    def __init__(self, records: list[Any], live: set[int], sources: list[Any], targets: list[Any]) -> None:
        self.records, self.live = records, live
        self.sources, self.targets = list(map(tensor_identity, sources)), list(map(tensor_identity, targets))

    def backward(self, arrays: Sequence[Any]) -> tuple[list[Any], RecordedRun]:
        """Return the gradients of the sources for gradients of the targets; zeros if nothing flows."""
        dys = _tensors(arrays)
        with _IsolatedState():
            tape = GradientTape(watch_accessed_variables=False)
            tape._records, tape._live = list(self.records), set(self.live)
            with tape:
                for dy in dys:
                    tape.watch(dy)
                start: dict[int, Any] = {}
                for target, dy in zip(self.targets, dys):
                    start[id(target)] = start[id(target)] + dy if id(target) in start else dy
                grads_by_id = backpropagate(self.records, start, {id(s) for s in self.sources})
                sparse_grads: list[Any] = [grads_by_id.get(id(s)) for s in self.sources]
                grads: list[Any] = [
                    array.zeros_like(s) if g is None else g.to_dense() if isinstance(g, IndexedSlices) else g
                    for g, s in zip(sparse_grads, self.sources)
                ]
        return [g._array for g in grads], RecordedRun(tape._records, tape._live, [*self.sources, *dys], grads)


class EagerFunction:
    """The object behind a handle: a function of eager tensors."""

    shape = ()  # as for all objects of handles

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def call(self, arrays: Sequence[Any], out_dtypes: Sequence[DType]) -> tuple[list[Any], RecordedRun]:
        """Return the arrays of the results, and the recorded run."""
        inputs = _tensors(arrays)
        sources = [x for x in inputs if _is_float(x)]
        with _IsolatedState(), GradientTape(watch_accessed_variables=False) as tape:
            for x in sources:
                tape.watch(x)
            results = _results(self.function, self.function(*inputs), out_dtypes)
        targets = [y for y in results if _is_float(y)]
        return [y._array for y in results], RecordedRun(tape._records, tape._live, sources, targets)

    def __repr__(self) -> str:
        return f"<function {function_name(self.function)}>"


class ArrayFunction:
    """The object behind a handle: a function of NumPy arrays."""

    shape = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def call(self, arrays: Sequence[Any], out_dtypes: Sequence[DType]) -> list[Any]:
        """Return the arrays of the results."""
        with _IsolatedState():
            result = self.function(*(a.copy() if isinstance(a, np.ndarray) else a for a in map(_as_array, arrays)))
        return [
            _array(i, v, d, self.function)
            for i, (v, d) in enumerate(zip(_listed(self.function, result, out_dtypes), out_dtypes))
        ]

    def __repr__(self) -> str:
        return f"<function {function_name(self.function)}>"


class HostFunction:
    """The object behind a handle: a function of this package, which neither keeps nor writes to its arrays."""

    shape = ()

    def __init__(self, function: Callable[..., Any], several: bool) -> None:
        self.function, self.several = function, several

    def call(self, arrays: Sequence[Any], out_dtypes: Sequence[DType]) -> list[np.ndarray]:
        """Return the arrays of the results."""
        result = self.function(*map(np.asarray, arrays))
        return [_host_array(v, d) for v, d in zip(result if self.several else [result], out_dtypes)]

    def __repr__(self) -> str:
        return f"<function {function_name(self.function)}>"


def _host_array(value: Any, dtype: DType) -> np.ndarray:
    return np.asarray(value, dtype.np)


def _as_array(array_: Any) -> object:
    return np.asarray(array_) if isinstance(array_, np.generic) else array_


def function_name(function: Any) -> str:
    """Return a function's name for errors and graphs."""
    return str(getattr(function, "__name__", type(function).__name__))


def _listed(function: Callable[..., Any], result: Any, out_dtypes: Sequence[DType]) -> list[Any]:
    """Return the results of a function, one per dtype. Raises InvalidArgumentError if their number differs."""
    values = [] if result is None else list(result) if isinstance(result, (list, tuple)) else [result]
    if isinstance(result, (list, tuple)) and len(out_dtypes) == 1 and len(values) > 1:
        return [np.asarray(result)] if out_dtypes[0] is not dtypes.string else [result]  # one tensor as a list
    if not out_dtypes:
        return []
    if len(values) != len(out_dtypes):
        raise InvalidArgumentError(
            what=f"{function_name(function)} returns {len(values)} values, but expects to see {len(out_dtypes)} values."
        )
    return values


def _results(function: Callable[..., Any], result: Any, out_dtypes: Sequence[DType]) -> list[Any]:
    results: list[Any] = []
    for value, dtype in zip(_listed(function, result, out_dtypes), out_dtypes):
        if value is None:
            value = np.zeros((), dtype.np)
        dense: Any = value.to_dense() if isinstance(value, IndexedSlices) else value
        tensor = convert_to_tensor(dense.astype(dtype.np) if _is_number_array(dense) else dense, dtype)
        results.append(array.identity_without_record(tensor) if any(tensor is r for r in results) else tensor)
    return results


def _is_number_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf"


def _array(i: int, value: Any, dtype: DType, function: Callable[..., Any]) -> np.ndarray:
    """Return the i-th result of a function of arrays. Raises InvalidArgumentError if its dtype differs from Tout."""
    if dtype is dtypes.string:
        strings: Any = convert_to_tensor(value, dtype)
        array: np.ndarray = strings._array
        return array
    if isinstance(value, EagerTensor):
        value = value._array
    result = np.asarray(value)
    python = not isinstance(value, (np.ndarray, np.generic))  # Python's numbers have no width of their own
    if python and (result.dtype.kind in "biu" or dtype.is_floating or dtype.is_complex):
        result = np.asarray(value, dtype.np)
    if result.dtype != dtype.np:
        raise InvalidArgumentError(
            what=f"{i}-th value returned by {function_name(function)} is {result.dtype.name}, but expects {dtype.name}"
        )
    return np.array(result)  # a copy: the function may keep its array and write to it


def _dtypes(Tout: Any) -> tuple[list[DType], list[Any], bool]:
    """Return the dtypes, the specs (None without one), and whether to return a list."""
    several = isinstance(Tout, (list, tuple))
    each = list(Tout) if several else [Tout]
    specs = [t if isinstance(t, TensorSpec) else None for t in each]
    try:
        return [t.dtype if isinstance(t, TensorSpec) else as_dtype(t) for t in each], specs, several
    except TypeError as error:
        raise TypeError(f"Tout is a dtype, a TensorSpec, or a list of them; found {Tout!r}: {error}") from None


def _handle(function: Any) -> Tensor:
    return dispatch.to_tensor(EagerTensor(function, dtypes.resource))


def _inputs(inp: Any) -> list[Any]:
    return [dispatch.to_tensor(x) for x in ([] if inp is None else inp)]


def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> Any:
    """Call a Python function of eager tensors at run time; gradients of any order pass through it.

    func: a function of the tensors of `inp`, which have values inside `function`, too. Its results are converted to the
    dtypes of Tout: one dtype (or TensorSpec) for one tensor, a list of them for a list, [] for None. Output shapes are
    unknown, unless a TensorSpec specifies them. Without `func` it is a decorator.

    >>> ow.py_function(lambda x: x if x > 0 else -x, [-2.0], ow.float32)
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>

    Exceptions of `func` become errors of the operator: ValueError and TypeError an InvalidArgumentError, StopIteration
    an OutOfRangeError, NotImplementedError an UnimplementedError, MemoryError a ResourceExhaustedError, others an
    UnknownError.
    raises ValueError if func is not callable, TypeError if Tout is missing
    """
    if Tout is None:
        raise TypeError(
            "Missing required argument: 'Tout'\n  If using tf.py_function as a decorator, set `Tout`\n"
            "  **by name** above the function:\n  `@tf.py_function(Tout=tout)`"
        )
    if func is None:

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def wrapped(*args: Any) -> object:
                return py_function(function, args, Tout, name)

            return wrapped

        return decorate
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    out_dtypes, specs, several = _dtypes(Tout)
    inputs = _inputs(inp)
    call: Any = host.EagerPyFunc
    results = call(_handle(EagerFunction(func)), inputs, out_dtypes=out_dtypes, name=name)
    _set_shapes(results, specs)
    return list(results) if several else results[0]


def _set_shapes(results: Sequence[Any], specs: Sequence[Any]) -> None:
    """Set the declared shapes of results in graphs, where they cannot be inferred."""
    if state.trace is not None:
        for tensor, spec in zip(results, specs):
            if spec is not None:
                tensor.set_shape(spec.shape)


def numpy_function(
    func: Any = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: str | None = None
) -> Any:
    """Call a Python function of NumPy arrays at run time. No gradient flows through it.

    func: a function of the arrays of `inp`, strings as arrays of bytes. It returns arrays of the dtypes of Tout: one
    for one tensor, a list for several, [] for none. stateful: whether each call must be executed, in program order.
    Called eagerly it is the function itself, with its own exceptions, and results converted to tensors.

    raises in graphs InvalidArgumentError for results of another dtype or number, and errors of exceptions as
    `py_function`
    """
    if Tout is None:
        raise TypeError("Missing required argument: 'Tout'")
    if func is None:
        return functools.partial(_decorated, Tout=Tout, stateful=stateful, name=name)
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    out_dtypes, specs, several = _dtypes(Tout)
    if state.trace is None:
        result = func(*(np.array(x.numpy() if hasattr(x, "numpy") else x) for x in ([] if inp is None else inp)))
        if result is None:
            return None
        if isinstance(result, (list, tuple)):
            return [convert_to_tensor(v) for v in result]
        return convert_to_tensor(result)
    call: Any = host.PyFunc if stateful else host.PyFuncStateless
    results = call(_handle(ArrayFunction(func)), _inputs(inp), out_dtypes=out_dtypes, name=name)
    _set_shapes(results, specs)
    if not results:
        return None
    return list(results) if len(results) > 1 or several else results[0]


def check_size(size: int, op: str) -> None:
    """Raise ResourceExhaustedError if an array of `size` bytes, as some input announces it, exceeds the limit."""
    limit = flags.get("max_activation_bytes")
    if size > limit:
        raise ResourceExhaustedError(
            op=op,
            what="the result is too large",
            found=f"{size} bytes",
            wanted=f"at most {limit}",
            do="set the flag max_activation_bytes higher if the input is right",
        )


def call_on_arrays(
    function: Callable[..., Any],
    operands: Sequence[Tensor],
    specs: Any,
    name: str | None = None,
    stateful: bool = False,
) -> Any:
    """Call a function of this package on the arrays of tensors: now if eager, else each time the graph runs.

    function: takes read-only arrays and returns one array of `specs` (strings: bytes, or an object array), or one per
    spec of a list. specs: a TensorSpec for one tensor, or a list of them. stateful: whether it writes.
    raises the errors of the function, in graphs as `py_function`
    """
    several = isinstance(specs, list)
    each = specs if several else [specs]
    host_function = HostFunction(function, several)
    out_dtypes = [spec.dtype for spec in each]
    if state.trace is None:
        arrays = host_function.call([t._array for t in operands], out_dtypes)  # type: ignore[attr-defined]
        results: Any = list(map(EagerTensor, arrays, out_dtypes))
    else:
        call: Any = host.PyFunc if stateful else host.PyFuncStateless
        results = list(call(_handle(host_function), list(operands), out_dtypes=out_dtypes, name=name))
        _set_shapes(results, each)
    return results if several else results[0] if results else None


def _decorated(function: Callable[..., Any], Tout: Any, stateful: bool, name: str | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any) -> object:
        return numpy_function(function, args, Tout, stateful, name)

    return wrapped

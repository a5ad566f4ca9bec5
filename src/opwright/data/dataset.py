"""Dataset: a lazily evaluated sequence of elements.

Lives here: the public class: iteration, cardinality, reductions; datasets that are values of a graph; `for` and Python
builtins on datasets and iterators in traced functions, as one loop of the graph; `Options`, stored and merged for
compatibility, without effect: pipelines need no such tuning, and their order is deterministic unless `map` is
configured otherwise.
Not here: its constructors (constructors.py) and transformations (transformations.py), which it inherits; AutoGraph.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..autograph.handlers import register_handler
from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.notebook_reprs import shown_as
from ..eager.tensor import EagerTensor
from ..ops import control, dispatch, math
from ..ops.debugging import Assert
from ..tracing.control import cond
from ..tracing.statements import Cursor, GraphHandler
from ..tracing.symbolic import SymbolicTensor
from .base import INFINITE, UNKNOWN
from .constructors import DatasetConstructors
from .functions import ElementFunction, Failure, IteratorContext, initial_state_operands, trace_state_function
from .iterator import NumpyIterator, OwnedIterator
from .optional import Recipe
from .structure import ElementStructure, Flat
from .transformations import ElementTransformations, GroupTransformations

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class AutoShardPolicy(enum.IntEnum):
    """Policy that divides a dataset among workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """Policy for external state when a dataset is copied."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Settings:
    """Named settings, None until set. Raises AttributeError for unknown names."""

    _names: tuple[str, ...] = ()
    _parts: dict[str, Any] = {}

    def __init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, None)
        for name, make in self._parts.items():
            object.__setattr__(self, name, make())

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names and name not in self._parts:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    def merge(self, other: Any) -> Self:
        """Return new settings: those of `other` where set, else these."""
        new = type(self)()
        for name in self._names:
            mine, theirs = getattr(self, name), getattr(other, name)
            object.__setattr__(new, name, mine if theirs is None else theirs)
        for name in self._parts:
            object.__setattr__(new, name, getattr(self, name).merge(getattr(other, name)))
        return new

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


class ThreadingOptions(_Settings):
    """Options max_intra_op_parallelism and private_threadpool_size."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class AutotuneOptions(_Settings):
    """Options enabled, cpu_budget, ram_budget, autotune_algorithm, initial_parallelism, min_parallelism."""

    _names = ("autotune_algorithm", "cpu_budget", "enabled", "initial_parallelism", "min_parallelism", "ram_budget")


class DistributeOptions(_Settings):
    """Options auto_shard_policy and num_devices."""

    _names = ("auto_shard_policy", "num_devices")


class OptimizationOptions(_Settings):
    """Options that enable rewrites of a pipeline."""

    _names = (
        "apply_default_optimizations",
        "filter_fusion",
        "filter_parallelization",
        "inject_prefetch",
        "inject_io_prefetch",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "noop_elimination",
        "parallel_batch",
        "seq_interleave_prefetch",
        "shuffle_and_repeat_fusion",
        "warm_start",
    )


class ServiceOptions(_Settings):
    """Option pinned."""

    _names = ("pinned",)


class Options(_Settings):
    """Settings for `with_options`: deterministic, threading, autotune and others; stored, but without effect."""

    _names = (
        "dataset_name",
        "deterministic",
        "experimental_deterministic",
        "experimental_external_state_policy",
        "experimental_slack",
        "experimental_symbolic_checkpoint",
        "experimental_warm_start",
        "framework_type",
        "warm_start",
    )
    _parts = {
        "autotune": AutotuneOptions,
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_service": ServiceOptions,
        "threading": ThreadingOptions,
    }


state = dispatch.state


class Dataset(DatasetConstructors, ElementTransformations, GroupTransformations):
    """Lazy sequence of elements: nested structures of tensors of one type, `element_spec`.

    Created by `from_tensor_slices`, `range`, `from_generator` and others; methods such as `map` and `batch` return new
    datasets. A `for` loop or `iter` starts an iteration. Inside `function`, datasets can be created, passed as
    arguments (with one trace for all datasets of a type) and iterated by a loop of the graph.

    >>> list(ow.data.Dataset.range(5).map(lambda x: x * x).batch(2).as_numpy_iterator())
    [array([0, 1]), array([4, 9]), array([16])]
    """

    _repr_html_ = shown_as("dataset")

    # ---- iteration ------------------------------------------------------------------------------------------------

    def __iter__(self) -> OwnedIterator:
        return OwnedIterator(self)

    def as_numpy_iterator(self) -> NumpyIterator:
        """Return an iterator over elements as read-only NumPy arrays and scalars. Eager only."""
        if state.trace is not None:
            raise RuntimeError("`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode.")
        return NumpyIterator(self)

    def __len__(self) -> int:
        """Return the number of elements. Raises TypeError if it is infinite or unknown."""
        n = self._cardinality()
        if state.trace is not None and not self._is_known():
            raise TypeError(
                "`tf.data.Dataset` only supports `len` in eager mode. Use `tf.data.Dataset.cardinality()` instead."
            )
        if n == INFINITE:
            raise TypeError("The dataset is infinite.")
        if n == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return int(n)

    def __bool__(self) -> bool:
        return True

    def cardinality(self, name: str | None = None) -> EagerTensor | Tensor:
        """Return the number of elements, a scalar int64, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        if state.trace is None:
            return EagerTensor(np.array(self._cardinality(), np.int64), dtypes.int64)
        return control.DatasetCardinality(self.handle())

    def options(self) -> Options:
        """Return the merged options of this dataset and its inputs."""
        merged = Options()
        for dataset in self._inputs:
            merged = merged.merge(dataset.options())
        return merged if self._options is None else merged.merge(self._options)

    # ---- reductions -------------------------------------------------------------------------------------------------

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """Return the final state of `state = reduce_func(state, element)` over all elements, from `initial_state`.

        raises TypeError if the state changes its structure or dtypes
        """
        spec, operands = initial_state_operands(initial_state)
        traced, spec = trace_state_function(
            reduce_func, spec, self.element_spec, "reduce", "reduce_func", lambda t: t.form.spec
        )
        return self._reduce_elements(ElementStructure(spec), traced, operands, _fold)

    def get_single_element(self, name: str | None = None) -> Any:
        """Return the only element. Raises InvalidArgumentError unless there is exactly one."""
        return self._reduce_elements(self._form, None, (), _single)

    def _reduce_elements(
        self, form: ElementStructure, traced: ElementFunction | None, operands: Any, compute: Callable[..., Flat]
    ) -> Any:
        """Reduce all elements: now, or as a node of the active trace."""
        if state.trace is None:
            if self._in_trace:
                self.handle()  # raises: it belongs to a trace
            return form.arrays_to_tensors(compute(self, traced, operands))
        symbolic = [o for o in operands if type(o) is SymbolicTensor]
        captured = [] if traced is None else traced.symbolic

        def run(values: Any) -> Flat:
            remaining = iter(values)
            dataset = next(remaining).dataset
            arrays = [next(remaining) if type(o) is SymbolicTensor else o for o in operands]
            return compute(dataset, None if traced is None else traced.rebind(lambda: next(remaining)), arrays)

        trace: Any = state.trace
        leaves = [self.handle(), *(trace.to_tensor(t) for t in (*symbolic, *captured))]
        tensors: Any = control.DatasetReduce(leaves, recipe=Recipe(compute.__name__.strip("_"), run), **form.attrs)
        return form.tensors_to_value(tensors)


def _fold(dataset: Any, traced: Any, operands: Any) -> Flat:
    context = IteratorContext()
    call = traced.caller(context)
    result = tuple(operands)
    for item in dataset.flow(context.input()):
        if type(item) is Failure:
            raise item.error
        result = call(*result, *item)
    return result


def _single(dataset: Any, traced: Any, operands: Any) -> Flat:
    flow: Iterator[Any] = dataset.flow(IteratorContext())
    item = next(flow, None)
    if item is None:
        raise InvalidArgumentError(op="Dataset.get_single_element", what="Dataset was empty.")
    if type(item) is Failure:
        raise item.error
    if next(flow, None) is not None:
        raise InvalidArgumentError(op="Dataset.get_single_element", what="Dataset had more than one element.")
    return tuple(item)


class _VariantDataset(Dataset):
    """Dataset that is a value of a graph: an argument of a function, or an element of a window."""

    def __init__(self, handle: SymbolicTensor, spec: Any) -> None:
        super().__init__(spec, operands=(handle,))
        self._in_trace = True

    def handle(self) -> Tensor:
        """Return the value itself."""
        if state.trace is None:
            self._operands[0]._as_tensor()  # raises: it has no value outside of its trace
        trace: Any = state.trace
        tensor: Tensor = trace.to_tensor(self._operands[0])
        return tensor

    def rebind(self, take: Callable[[], Any]) -> Dataset:
        """Return the dataset of the value in this run."""
        dataset: Dataset = take().dataset
        return dataset

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        """Raise TypeError: only the graph iterates it."""
        self.handle()
        raise TypeError(f"{self!r} is iterated by the graph it belongs to")


class IteratorCursor(Cursor):
    """Cursor of an iterator, whose handle the loop captures."""

    def __init__(self, iterator: OwnedIterator) -> None:
        self.iterator = iterator

    widens = True  # as in TensorFlow: unknown element shapes make the loop variables' shapes unknown

    def more(self, position: Sequence[Any]) -> Any:
        """Return whether there is another element; it may be fetched."""
        return self.iterator.has_next()

    def take(self, position: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return the next element."""
        return self.iterator.get_next(), []


class DatasetHandler(GraphHandler):
    """Handler of datasets and iterators in traced functions."""

    def cursor(self, items: Any) -> Cursor | None:
        """Return a cursor: a new iteration of a dataset, or the current one of an iterator."""
        if isinstance(items, Dataset):
            return IteratorCursor(OwnedIterator(items))
        return IteratorCursor(items) if isinstance(items, OwnedIterator) else None

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Handle enumerate, zip, map, filter, len, any, all of datasets, and next of iterators with a default."""
        if name == "next":
            return _next(*args, **kwargs)
        rule = _BUILTINS.get(name)
        result = None if rule is None else rule(*args, **kwargs)
        return NotImplemented if result is None else result


def _zip(*values: object, **kwargs: object) -> Dataset | None:
    if not values or kwargs or not all(isinstance(v, Dataset) for v in values):
        return None
    return Dataset.zip(values)


def _enumerate(values: object, start: Any = 0) -> Dataset | None:
    return values.enumerate(start) if isinstance(values, Dataset) else None


def _map(function: Any, *values: Any) -> Dataset | None:
    if not values or not all(isinstance(v, Dataset) for v in values):
        return None
    return (values[0] if len(values) == 1 else Dataset.zip(values)).map(function)


def _filter(function: Any, values: object) -> Dataset | None:
    return values.filter(function) if isinstance(values, Dataset) and function is not None else None


def _len(values: object) -> Tensor | None:
    if not isinstance(values, Dataset):
        return None
    n = values.cardinality()
    Assert(math.greater_equal(n, 0), ["len() of a dataset whose size is infinite or unknown: its cardinality is", n])
    return n


def _any(values: object) -> Tensor | None:
    if not isinstance(values, Dataset):
        return None
    result: Tensor = values.reduce(dispatch.to_tensor(False), lambda result, x: math.logical_or(result, x))
    return result


def _all(values: object) -> Tensor | None:
    if not isinstance(values, Dataset):
        return None
    result: Tensor = values.reduce(dispatch.to_tensor(True), lambda result, x: math.logical_and(result, x))
    return result


def _next(iterator: object, *default: Any) -> Any:
    if not isinstance(iterator, OwnedIterator) or not default:
        return NotImplemented
    return cond(iterator.has_next(), iterator.get_next, lambda: default[0])


_BUILTINS: dict[str, Callable[..., Dataset | Tensor | None]] = {
    "all": _all,
    "any": _any,
    "enumerate": _enumerate,
    "filter": _filter,
    "len": _len,
    "map": _map,
    "zip": _zip,
}

DATASET_HANDLER = DatasetHandler()
register_handler(Dataset, DATASET_HANDLER)
register_handler(OwnedIterator, DATASET_HANDLER)

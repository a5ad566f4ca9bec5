"""Dataset: a lazily evaluated sequence of elements.

Lives here: the public class: iteration, cardinality, reductions; and datasets that are values of a graph.
Not here: its constructors (constructors.py) and transformations (transformations.py), which it inherits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..eager.tensor import EagerTensor
from ..ops import dispatch, iteration
from ..tracing.symbolic import SymbolicTensor
from .base import INFINITE, UNKNOWN
from .constructors import DatasetConstructors
from .context import IteratorContext
from .dataset_options import Options
from .functions import ElementFunction, Failure, initial_state_operands, trace_state_function
from .iterator import NumpyIterator, OwnedIterator
from .optional import Recipe
from .structure import ElementStructure, Flat
from .transformations import ElementTransformations, GroupTransformations

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

state = dispatch.state


class Dataset(DatasetConstructors, ElementTransformations, GroupTransformations):
    """Lazy sequence of elements: nested structures of tensors of one type, `element_spec`.

    Created by `from_tensor_slices`, `range`, `from_generator` and others; methods such as `map` and `batch` return new
    datasets. A `for` loop or `iter` starts an iteration. Inside `function`, datasets can be created, passed as
    arguments (with one trace for all datasets of a type) and iterated by a loop of the graph.

    >>> list(ow.data.Dataset.range(5).map(lambda x: x * x).batch(2).as_numpy_iterator())
    [array([0, 1]), array([4, 9]), array([16])]
    """

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
        return iteration.DatasetCardinality(self.handle())

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
        tensors: Any = iteration.DatasetReduce(leaves, recipe=Recipe(compute.__name__.strip("_"), run), **form.attrs)
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

    def handle(self) -> Any:
        """Return the value itself."""
        trace: Any = state.trace
        if trace is None:
            self._operands[0]._as_tensor()  # raises: it has no value outside of its trace
        return trace.to_tensor(self._operands[0])

    def rebind(self, take: Callable[[], Any]) -> Dataset:
        """Return the dataset of the value in this run."""
        dataset: Dataset = take().dataset
        return dataset

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        """Raise TypeError: only the graph iterates it."""
        self.handle()
        raise TypeError(f"{self!r} is iterated by the graph it belongs to")

"""DatasetBase: the base class of datasets, and datasets as values of a graph.

Lives here: inputs, operands and functions of a dataset, its handle, rebinding to a graph's values, cardinality.
Not here: the public methods (dataset.py and the mixins), the transformations (sources.py, order.py ...).

A dataset is a description; `flow(context)` starts one pass over it: an iterator over flat elements, or Failures in
their place. The handle of a dataset created inside a trace is a BuildDataset node, whose operands are the symbolic
tensors used by the chain of datasets created there; each run of the graph creates a copy with their values, with its
own caches and orders. A dataset created outside is captured as it is.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec
from ..eager.tensor import EagerTensor, convert_to_tensor
from ..ops import dispatch
from ..ops.control import BuildDataset
from ..tracing.symbolic import SymbolicTensor
from ..tracing.trace import FuncTrace
from .functions import ElementFunction, IteratorContext
from .iterator import IteratorState
from .optional import Recipe
from .structure import ElementStructure, common_spec, operand

if TYPE_CHECKING:
    from ..ops.tensor import Tensor
    from .dataset import Dataset as PublicDataset

state = dispatch.state

INFINITE, UNKNOWN = -1, -2
Rows = tuple[tuple[Any, ...], Callable[[], Iterator[int]]]
"""Arrays, and the order of their rows as elements of a dataset."""


class DatasetClasses:
    """Dataset classes by name without the underscore, for methods of modules below them."""

    if TYPE_CHECKING:
        Dataset: type[PublicDataset]

    def __getattr__(self, name: str) -> Callable[..., PublicDataset]:
        raise AttributeError(f"no dataset class _{name}")


dataset_classes = DatasetClasses()


class DatasetHandle:
    """Value of a dataset tensor, which operators on datasets receive when a graph runs."""

    __slots__ = ("dataset",)
    shape = ()

    def __init__(self, dataset: DatasetBase) -> None:
        self.dataset = dataset

    def make_state(self) -> IteratorState:
        """Return the state of a new iterator."""
        return self.dataset._make_state()

    def count_elements(self) -> int:
        """Return the cardinality."""
        return int(self.dataset._cardinality())

    def __repr__(self) -> str:
        return repr(self.dataset)


class DatasetBase(CompositeTensor):
    """Base class of datasets: inputs, operands and functions; subclasses override `flow` and `_cardinality`."""

    _inputs: tuple[Any, ...]
    _operands: tuple[Any, ...]
    _functions: tuple[ElementFunction, ...]

    def __init_subclass__(cls) -> None:
        setattr(dataset_classes, cls.__name__.lstrip("_"), cls)

    def __init__(
        self,
        spec: Any,
        inputs: Sequence[Any] = (),
        operands: Sequence[Any] = (),
        functions: Sequence[ElementFunction] = (),
    ) -> None:
        self._form = ElementStructure(spec)
        self._inputs, self._functions = tuple(inputs), tuple(functions)
        self._operands = tuple(operands)
        self._in_trace = state.trace is not None or any(d._in_trace for d in inputs)
        self._node: Any = None
        self._eager_handle: Any = None
        self._options: Any = None

    # ---- iteration ------------------------------------------------------------------------------------------------

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        """Start a pass: yield flat elements, or a Failure in place of an element. context: of the iterator."""
        raise TypeError(f"{type(self).__name__} must define flow()")

    def rows(self, context: IteratorContext) -> Rows | None:
        """Return the elements as rows of arrays and their order, or None; batches index them once."""
        return None

    def _cardinality(self) -> int:
        return UNKNOWN

    def _make_state(self) -> IteratorState:
        return IteratorState(self, self._form)

    @property
    def element_spec(self) -> Any:
        """Type of an element: nested TensorSpecs and other TypeSpecs."""
        return self._form.spec

    # ---- as a value -------------------------------------------------------------------------------------------------

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self._form.spec)

    def handle(self) -> Tensor:
        """Return the tensor of this dataset: eager, or of the active trace."""
        trace = state.trace
        if self._in_trace:
            if isinstance(trace, FuncTrace):
                if self._node is None or self._node.trace is not trace:
                    name = type(self).__name__.strip("_")
                    leaves = [trace.to_tensor(leaf) for leaf in self._leaves()]
                    self._node = BuildDataset(leaves, recipe=Recipe(name, self._build), name=name)
                node: Tensor = self._node
                return node
            for leaf in self._leaves():
                leaf._as_tensor()  # raises: it has no value outside of its trace
        handle = None if self._eager_handle is None else self._eager_handle()
        if handle is None:
            handle = EagerTensor(DatasetHandle(self), dtypes.resource)
            self._eager_handle = weakref.ref(handle)  # the handle owns the dataset: no reference cycle
        return trace.capture(handle) if isinstance(trace, FuncTrace) else handle

    @staticmethod
    def _stack_datasets(datasets: Sequence[Any]) -> tuple[DatasetSpec, EagerTensor]:
        """Return type and tensor of several datasets with one element type. Raises TypeError for other values."""
        if not all(isinstance(d, DatasetBase) for d in datasets) or any(d._in_trace for d in datasets):
            raise TypeError("a list with datasets must contain only datasets, none of them created inside a function")
        handles = np.empty(len(datasets), object)
        handles[:] = [d.handle()._array for d in datasets]
        return DatasetSpec(common_spec(datasets), handles.shape), EagerTensor(handles, dtypes.resource)

    def _leaves(self) -> list[SymbolicTensor]:
        """Return the symbolic tensors that it depends on, in the order in which `rebind` consumes their values."""
        leaves = [leaf for d in self._inputs for leaf in d._leaves()] if self._in_trace else []
        leaves += [o for o in self._operands if type(o) is SymbolicTensor]
        return leaves + [leaf for f in self._functions for leaf in f.symbolic]

    def _build(self, values: Any) -> DatasetHandle:
        remaining = iter(values)
        return DatasetHandle(self.rebind(lambda: next(remaining)))

    def rebind(self, take: Callable[[], Any]) -> DatasetBase:
        """Return a copy with values in place of symbolic tensors, for one run; itself if it has none."""
        if not self._in_trace:
            return self
        new = copy.copy(self)
        new._inputs = tuple(d.rebind(take) for d in self._inputs)
        new._operands = tuple(take() if type(o) is SymbolicTensor else o for o in self._operands)
        new._functions = tuple(f.rebind(take) for f in self._functions)
        new._in_trace, new._node, new._eager_handle = False, None, None
        new.begin()
        return new

    def begin(self) -> None:
        """Initialize the state of this object, such as a cache, and check operands; also called on copies."""

    def _is_known(self) -> bool:
        return not self._in_trace or not self._leaves()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self._form.spec!r}>"

    __str__ = __repr__


class DatasetSpec(TypeSpec):
    """Type of a dataset by its element type; functions have one trace for all datasets of a type."""

    __slots__ = ("_dataset_shape", "_element_spec")

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec, self._dataset_shape = element_spec, TensorShape(dataset_shape)

    @property
    def element_spec(self) -> Any:
        """Type of an element."""
        return self._element_spec

    @property
    def value_type(self) -> type[PublicDataset]:
        """Dataset."""
        return dataset_classes.Dataset

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """Return the type of a dataset."""
        return cls(value.element_spec)

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec, self._dataset_shape)

    @property
    def _component_specs(self) -> TensorSpec:
        return TensorSpec(self._dataset_shape, dtypes.resource)

    def _to_components(self, value: DatasetBase | NestedDatasets) -> Tensor:
        return value.handle()

    def _from_components(self, components: Any) -> Any:
        if self._dataset_shape.rank != 0:
            return NestedDatasets(components, self)
        if type(components) is EagerTensor:
            handle: Any = components._array
            return handle.dataset
        return dataset_classes.VariantDataset(components, self._element_spec)

    def _batch(self, size: int | None) -> DatasetSpec:
        """Return the type of `size` such datasets."""
        return DatasetSpec(self._element_spec, [size, *self._dataset_shape])

    def _unbatch(self) -> DatasetSpec:
        """Return the type of one of several datasets. Raises ValueError for the type of a single one."""
        if self._dataset_shape.rank == 0:
            raise ValueError("a dataset has no rows to unbatch: use flat_map for its elements")
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])


class NestedDatasets(CompositeTensor):
    """Several datasets as one element, such as a batch of datasets; `unbatch` and `from_tensor_slices` separate them.

    shape: their number along each axis.
    """

    def __init__(self, handles: Tensor, spec: DatasetSpec) -> None:
        self._handles, self._spec = handles, spec

    @property
    def _type_spec(self) -> DatasetSpec:
        return self._spec

    @property
    def shape(self) -> TensorShape:
        """Number of datasets along each axis."""
        return self._handles.shape

    def handle(self) -> Tensor:
        """Return the tensor of the datasets."""
        return self._handles

    def __repr__(self) -> str:
        return f"<datasets {self._spec!r}>"


def int_operand(value: Any, what: str) -> int | SymbolicTensor:
    """Convert a parameter that may be a tensor to an int64 operand. Raises TypeError or ValueError for other values."""
    if type(value) is int:
        return value
    try:
        tensor = convert_to_tensor(value, dtype=dtypes.int64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None
    value_of = operand(tensor)
    return value_of if type(value_of) is SymbolicTensor else int(value_of)


def static_int(value: Any) -> int | None:
    """Return the number if it is known while tracing, else None."""
    return None if type(value) is SymbolicTensor else int(value)

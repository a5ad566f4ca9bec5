"""Operators on datasets and their iterators: what iteration is inside a graph.

Lives here: building a dataset, making an iterator of it, asking it for elements.
Not here: datasets and iterators themselves (data/). A handle is a scalar of dtype resource; when a graph runs, the
value behind it is the Python object, which answers the methods named here. A dataset answers `make_state()` (a new
iterator), `count_elements()`; an iterator's state answers `take()` (one element's arrays, or StopIteration), `peek()`
(whether there is one more); a recipe is called with arrays and gives a dataset, or a result's arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtypes import DType, anything, resource
from ..core.errors import InvalidArgumentError, OutOfRangeError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from .attributes import Attr
from .definition import operator
from .slots import Input, OperatorDefinition, Output
from .tensor import Tensor

_HANDLE = TensorSpec((), resource)


def _specs(op: Any) -> list[TensorSpec]:
    return [TensorSpec(s, d) for s, d in zip(op.shapes, op.dtypes)]


@operator
class BuildDataset(OperatorDefinition):
    """A dataset whose parts were computed in this graph.

    .. math:: dataset = recipe(operands)
    """

    operands = Input(anything, repeated=True, mixed=True)
    dataset = Output(dtype=resource)
    recipe: Attr[Any] = Attr(object)
    effect = "random"  # each run gives a dataset of its own, with its own cache and order
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return _HANDLE

    def compute(op, operands: Any) -> object:
        return op.recipe(operands)


@operator
class MakeIterator(OperatorDefinition):
    """A new iterator of a dataset, at its first element.

    .. math:: iterator = iter(dataset)
    """

    dataset = Input(resource)
    iterator = Output(dtype=resource)
    effect = "random"
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return _HANDLE

    def compute(op, dataset: Any) -> object:
        return dataset.make_state()


@operator
class IteratorHasNext(OperatorDefinition):
    """Whether an iterator has one more element. It may fetch it; the next `IteratorNext` gives it.

    .. math:: y = iterator \\neq \\emptyset
    """

    iterator = Input(resource)
    y = Output(dtype="bool")
    effect = "write"
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec((), "bool")

    def compute(op, iterator: Any) -> np.ndarray:
        return np.array(iterator.peek())


@operator
class IteratorNext(OperatorDefinition[list[Tensor]]):
    """The next element of an iterator, flat. Raises OutOfRangeError at the end.

    .. math:: components = next(iterator)
    """

    iterator = Input(resource)
    components = Output(repeated=True, kind="of dtypes")
    dtypes = Attr([DType])
    shapes = Attr([TensorShape])
    effect = "write"
    lod = "vanishes"
    gradient = None

    def infer(op) -> list[TensorSpec]:
        return _specs(op)

    def compute(op, iterator: Any) -> list[Any]:
        try:
            return list(iterator.take())
        except StopIteration:
            raise OutOfRangeError(what="End of sequence") from None


@operator
class IteratorNextAsOptional(OperatorDefinition):
    """The next element of an iterator as an optional, which is empty at the end.

    .. math:: optional = next(iterator) \\text{ or } \\emptyset
    """

    iterator = Input(resource)
    optional = Output(dtype=resource)
    effect = "write"
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return _HANDLE

    def compute(op, iterator: Any) -> object:
        return iterator.take_optional()


@operator
class MakeOptional(OperatorDefinition):
    """An optional that holds a value, or none where there are no components.

    .. math:: optional = components
    """

    components = Input(anything, repeated=True, mixed=True)
    optional = Output(dtype=resource)
    recipe: Attr[Any] = Attr(object)
    effect = "random"
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return _HANDLE

    def compute(op, components: Any) -> object:
        return op.recipe(components)


@operator
class OptionalHasValue(OperatorDefinition):
    """Whether an optional holds a value.

    .. math:: y = optional \\neq \\emptyset
    """

    optional = Input(resource)
    y = Output(dtype="bool")
    effect = "read"
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec((), "bool")

    def compute(op, optional: Any) -> np.ndarray:
        return np.array(optional.components is not None)


@operator
class OptionalGetValue(OperatorDefinition[list[Tensor]]):
    """Return the flat elements of an optional. Raises InvalidArgumentError where it is empty.

    .. math:: components = optional
    """

    optional = Input(resource)
    components = Output(repeated=True, kind="of dtypes")
    dtypes = Attr([DType])
    shapes = Attr([TensorShape])
    effect = "read"
    lod = "vanishes"
    gradient = None

    def infer(op) -> list[TensorSpec]:
        return _specs(op)

    def compute(op, optional: Any) -> list[Any]:
        if optional.components is None:
            raise InvalidArgumentError(
                what="The given optional does not have a value.", wanted="one for which has_value() is true"
            )
        return list(optional.components)


@operator
class DatasetCardinality(OperatorDefinition):
    """How many elements a dataset has: -1 infinitely many, -2 unknown.

    .. math:: y = |dataset|
    """

    dataset = Input(resource)
    y = Output(dtype="int64")
    effect = "read"
    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return TensorSpec((), "int64")

    def compute(op, dataset: Any) -> np.ndarray:
        return np.array(dataset.count_elements(), np.int64)


@operator
class DatasetReduce(OperatorDefinition[list[Tensor]]):
    """A whole dataset folded by a traced function.

    .. math:: state = f(... f(f(state_0, x_1), x_2) ..., x_n)
    """

    operands = Input(anything, repeated=True, mixed=True, doc="the state at first")
    state = Output(repeated=True, kind="of dtypes")
    recipe: Attr[Any] = Attr(object)
    dtypes = Attr([DType])
    shapes = Attr([TensorShape])
    effect = "write"
    lod = "vanishes"
    gradient = None

    def infer(op) -> list[TensorSpec]:
        return _specs(op)

    def compute(op, operands: Any) -> list[Any]:
        return list(op.recipe(operands))

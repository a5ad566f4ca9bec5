"""Control flow in graphs: branches, loops, iteration over datasets; the boundaries of fused operators.

Lives here: `If`, `Case` and `While`, whose attributes hold the graphs that they execute; `Undefined`; `FusionInputs`
and `FusionResults`, which mark a function that is converted as one fused operator (`experimental_implements`);
operators that build a dataset, make an iterator of it, and take elements from it.
Not here: execution (compiler/plan.py inlines the graphs: these operators have no kernels), recording and
differentiation (tracing/control/), marking a call (tracing/inliner.py) and converting it
(lite/convert/custom_operators.py); datasets and iterators themselves (data/).

The graphs are closed: values that a branch or body uses from outside are inputs. All graphs of one node have the same
inputs in the same order, used or not.

A fused function is FusionInputs -> its own operators -> FusionResults. Both return their inputs, so the program
computes the same with and without them. FusionResults also reads the inputs: one node refers to both boundaries,
whatever passes do to the nodes between.

The handle of a dataset or iterator is a scalar of dtype resource. When a graph runs, its value is the Python object,
which has these methods: a dataset `make_state()` (a new iterator) and `count_elements()`; an iterator's state `take()`
(the arrays of one element, or StopIteration) and `peek()` (whether there is another element); a recipe is called with
arrays and returns a dataset, or the arrays of a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType, anything, resource, variant
from ..core.errors import InvalidArgumentError, OutOfRangeError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..graph import Graph
from . import var_types
from .attributes import Attr
from .definition import operator
from .slots import Input, OperatorDefinition, Output
from .tensor import Tensor

if TYPE_CHECKING:
    from .tensor_list import TensorList


def check_inputs(graph: Graph, inputs: Any, role: str) -> None:
    """Raise InvalidArgumentError if a graph does not take these inputs."""
    dtypes, expected = [x.spec.dtype.name for x in inputs], [v.dtype.name for v in graph.inputs]
    if dtypes != expected:
        raise InvalidArgumentError(what=f"the {role} does not take these inputs", found=dtypes, wanted=expected)


def merged_spec(values: Sequence[Any]) -> TensorSpec:
    """Return the most specific spec that holds for all values, which have one dtype."""
    first, *others = values
    return TensorSpec(first.shape.most_specific_common_supertype([v.shape for v in others]), first.dtype)


def merged_specs(graphs: Any, roles: Any) -> list[TensorSpec]:
    """Return the most specific spec of each output that holds for every graph. Raises InvalidArgumentError if dtypes
    differ.
    """
    first = graphs[0]
    for graph, role in zip(graphs[1:], roles[1:]):
        if [v.dtype for v in graph.outputs] != [v.dtype for v in first.outputs]:
            raise InvalidArgumentError(
                what=f"the {roles[0]} and the {role} give different dtypes",
                found={roles[0]: [v.dtype.name for v in first.outputs], role: [v.dtype.name for v in graph.outputs]},
            )
    return [merged_spec(values) for values in zip(*(g.outputs for g in graphs))]


def if_specs(op: Any) -> list[TensorSpec]:
    """Infer the outputs of an If of either dialect. Raises InvalidArgumentError."""
    return _branch_specs((op.then_branch, op.else_branch), ("then branch", "else branch"), op.inputs)


def case_specs(op: Any) -> list[TensorSpec]:
    """Infer the outputs of a Case of either dialect. Raises InvalidArgumentError."""
    return _branch_specs(op.branches, [f"branch {i}" for i in range(len(op.branches))], op.inputs)


def _branch_specs(branches: Sequence[Graph], roles: Sequence[str], inputs: Any) -> list[TensorSpec]:
    for branch, role in zip(branches, roles):
        check_inputs(branch, inputs, role)
    return merged_specs(branches, roles)


@operator
class If(OperatorDefinition[list[Tensor]]):
    """Conditional: execute one of two graphs, selected by a scalar at run time.

    .. math:: outputs = \\begin{cases} then(inputs) & pred \\\\ else(inputs) & \\text{otherwise} \\end{cases}
    """

    pred = Input("bool", rank=0)
    inputs = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    then_branch = Attr(Graph, doc="the graph that runs where the condition is true")
    else_branch = Attr(Graph, doc="the graph that runs where it is false")
    control = True
    lod = "vanishes"

    infer = if_specs

    def infer_kinds(op) -> list[str]:
        return var_types.of_branches((op.then_branch, op.else_branch), op.inputs)


@operator
class Case(OperatorDefinition[list[Tensor]]):
    """Switch: execute one of several graphs, selected by index at run time; an index out of range selects the last.

    .. math:: outputs = branches_{index}(inputs)
    """

    index = Input("int32", rank=0)
    inputs = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    branches = Attr([Graph])
    control = True
    lod = "vanishes"

    infer = case_specs

    def infer_kinds(op) -> list[str]:
        return var_types.of_branches(op.branches, op.inputs)


@operator
class While(OperatorDefinition[list[Tensor]]):
    """Loop: execute a body on its own results while a condition on them holds.

    `variables` change in each iteration, `captured` does not; condition and body take both, the body returns new
    variables. shapes: loop-invariant shapes of the variables.

    .. math:: v^{(0)} = variables, \\quad v^{(t+1)} = body(v^{(t)}, captured) \\text{ while } cond(v^{(t)}, captured)
    """

    variables = Input(anything, repeated=True, mixed=True)
    captured = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True, doc="the state after the last iteration")
    cond = Attr(Graph)
    body = Attr(Graph)
    control = True
    lod = "vanishes"

    def infer(op) -> list[Any]:
        inputs = (*op.variables, *op.captured)
        check_inputs(op.cond, inputs, "condition")
        check_inputs(op.body, inputs, "body")
        if [v.dtype.name for v in op.cond.outputs] != ["bool"]:
            raise InvalidArgumentError(what="the condition does not give one bool", found=repr(op.cond.outputs))
        return [v.spec for v in op.body.inputs[: len(op.variables)]]

    def infer_kinds(op) -> list[str]:
        return var_types.of_loop(op.body, op.variables, op.captured)


@operator
class Undefined(OperatorDefinition):
    """Placeholder of a type, never read: zeros without memory.

    .. math:: y = 0
    """

    y = Output(kind="of dtype")
    dtype = Attr(DType)
    shape = Attr(TensorShape)

    def infer(op) -> TensorSpec:
        return TensorSpec(op.shape, op.dtype)

    def compute(op) -> TensorList | np.ndarray:
        if op.dtype is variant:
            from .tensor_list import TensorList

            return TensorList.nothing()
        dims = op.shape.dims or ()
        return np.broadcast_to(np.zeros((), op.dtype.np), [d or 0 for d in dims])


@operator
class FusionInputs(OperatorDefinition[list[Tensor]]):
    """Mark the inputs of a fused operator.

    .. math:: outputs_i = inputs_i
    """

    inputs = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    implements = Attr(str, doc="the fused operator: the argument of `function(experimental_implements=...)`")
    inplace = {"outputs": "inputs"}

    def infer(op) -> list[Any]:
        return [TensorSpec(x.spec.shape, x.spec.dtype) for x in op.inputs]

    def compute(op, inputs: Any) -> list[Any]:
        return list(inputs)

    def gradient(op, doutputs: list[Tensor]) -> list[Tensor]:
        return doutputs


@operator
class FusionResults(OperatorDefinition[list[Tensor]]):
    """Mark the results of a fused operator.

    .. math:: outputs_i = results_i
    """

    results = Input(anything, repeated=True, mixed=True)
    inputs = Input(anything, repeated=True, mixed=True, doc="inputs of the operator, read by converters only")
    outputs = Output(repeated=True)
    implements = Attr(str, doc="the fused operator: the argument of `function(experimental_implements=...)`")
    inplace = {"outputs": "results"}
    shape_only = ("inputs",)
    no_need_buffer = ("inputs",)

    def infer(op) -> list[Any]:
        return [TensorSpec(x.spec.shape, x.spec.dtype) for x in op.results]

    def compute(op, results: Any, inputs: Any) -> list[Any]:
        return list(results)

    def gradient(op, doutputs: list[Tensor]) -> tuple[list[Tensor], list[None]]:
        return doutputs, [None] * len(op.inputs)


_HANDLE = TensorSpec((), resource)


def _specs(op: Any) -> list[TensorSpec]:
    return [TensorSpec(s, d) for s, d in zip(op.shapes, op.dtypes)]


class _HandleMaker(OperatorDefinition):
    """Base of operators whose result is a handle."""

    lod = "vanishes"
    gradient = None

    def infer(op) -> TensorSpec:
        return _HANDLE


class _ElementReader(OperatorDefinition[list[Tensor]]):
    """Base of operators whose results are elements of a dataset."""

    dtypes = Attr([DType])
    shapes = Attr([TensorShape])
    lod = "vanishes"
    gradient = None
    infer = _specs


@operator
class BuildDataset(_HandleMaker):
    """A dataset whose parts were computed in this graph.

    .. math:: dataset = recipe(operands)
    """

    operands = Input(anything, repeated=True, mixed=True)
    dataset = Output(dtype=resource)
    recipe: Attr[Any] = Attr(object)
    effect = "random"  # each run gives a dataset of its own, with its own cache and order

    def compute(op, operands: Any) -> object:
        return op.recipe(operands)


@operator
class MakeIterator(_HandleMaker):
    """A new iterator of a dataset, at its first element.

    .. math:: iterator = iter(dataset)
    """

    dataset = Input(resource)
    iterator = Output(dtype=resource)
    effect = "random"

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
class IteratorNext(_ElementReader):
    """The next element of an iterator, flat. Raises OutOfRangeError at the end.

    .. math:: components = next(iterator)
    """

    iterator = Input(resource)
    components = Output(repeated=True, kind="of dtypes")
    effect = "write"

    def compute(op, iterator: Any) -> list[Any]:
        try:
            return list(iterator.take())
        except StopIteration:
            raise OutOfRangeError(what="End of sequence") from None


@operator
class IteratorNextAsOptional(_HandleMaker):
    """The next element of an iterator as an optional, which is empty at the end.

    .. math:: optional = next(iterator) \\text{ or } \\emptyset
    """

    iterator = Input(resource)
    optional = Output(dtype=resource)
    effect = "write"

    def compute(op, iterator: Any) -> object:
        return iterator.take_optional()


@operator
class MakeOptional(_HandleMaker):
    """An optional that holds a value, or none where there are no components.

    .. math:: optional = components
    """

    components = Input(anything, repeated=True, mixed=True)
    optional = Output(dtype=resource)
    recipe: Attr[Any] = Attr(object)
    effect = "random"

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
class OptionalGetValue(_ElementReader):
    """Return the flat elements of an optional. Raises InvalidArgumentError where it is empty.

    .. math:: components = optional
    """

    optional = Input(resource)
    components = Output(repeated=True, kind="of dtypes")
    effect = "read"

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
    infer = _specs

    def compute(op, operands: Any) -> list[Any]:
        return list(op.recipe(operands))

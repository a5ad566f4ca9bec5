"""Placeholders of a trace for variables without identity and tensors without elements.

Lives here: `VariableArgument`, the placeholder of a variable among the arguments of a function; `IdentityRequired`;
shape placeholders, for tensors whose shape alone is read. Not here: the types that select a trace (trace_type.py),
traces for a single variable (function.py), captures of tensors whose elements are read (trace.py).

A `VariableArgument` reads and assigns a handle that is an input of the graph, so one trace serves every variable of a
dtype and shape. It has no value and no identity: if a program uses either (an optimizer keeps state per variable), the
function is traced again for the actual variable.

A backward program that needs the shape of a forward tensor must not keep that tensor alive. It captures the shape, a
small vector that the forward program computes, and represents the tensor by a zero broadcast to it, which occupies one
element in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core import dtypes, forks
from ..core.dtypes import DType
from ..core.errors import FailedPreconditionError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..eager.variable import Variable
from ..ops import array, dispatch
from ..ops.array.shape_operators import BroadcastTo, Shape
from ..ops.autodiff import CustomRecord
from ..ops.definition import Operator
from ..ops.tensor import ShapeOnlyTensor, TensorReference
from .symbolic import SymbolicTensor

if TYPE_CHECKING:
    from ..ops.tensor import Tensor
    from .trace import FuncTrace


class IdentityRequired(BaseException):
    """Raised if a trace depends on the identity of a variable argument. No Exception, so that user code does not catch
    it.

    owner: the Function of the argument.
    """

    def __init__(self, owner: object) -> None:
        super().__init__("a trace depends on the identity of a variable argument")
        self.owner = owner


class VariableArgument(Variable):
    """The placeholder of a variable among a function's arguments while the function is traced.

    owner: the Function. trace: the trace whose input it is.
    """

    __slots__ = ("_owner", "_trace")
    name: str

    def __init__(
        self, owner: Any, trace: Any, name: str, dtype: DType, shape: TensorShape, trainable: bool, constraint: Any
    ) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.trainable, self.constraint = trainable, constraint
        self._value = self._initial = self._guard = None
        self._lock = forks.lock()
        self._owner, self._trace = owner, trace

    def _require_identity(self) -> NoReturn:
        if not self._trace.finished:
            raise IdentityRequired(self._owner)
        raise FailedPreconditionError(
            what=f"variable {self.name!r} is an argument placeholder of the trace of {self._trace.name!r}, and is used "
            "after the trace has ended",
            do="use the variable that the function is called with",
        )

    def _resolved_value(self) -> NoReturn:
        self._require_identity()

    def read_array(self) -> NoReturn:
        """Raise IdentityRequired: there is no value. After the trace, raise FailedPreconditionError."""
        self._require_identity()

    def identity(self) -> int:
        """Raise IdentityRequired, or FailedPreconditionError after the trace."""
        self._require_identity()

    def ref(self) -> TensorReference:
        """Raise IdentityRequired, or FailedPreconditionError after the trace."""
        self._require_identity()

    def value(self) -> Tensor:
        """Return the value, as a tensor, of the variable that this placeholder represents in the current trace.

        Gradients of a trace are recorded in other traces. Gradients of the result flow to the placeholder and to the
        variable.
        """
        state = dispatch.state
        trace: Any = state.trace
        while trace is not None and id(self) not in trace.represented_variables:
            trace = trace.parent
        if trace is None:
            return super().value()
        tensor = trace.represented_variables[id(self)].value()
        read = array.identity_without_record(tensor)
        record = CustomRecord([self, tensor], [read], lambda dys: [dys[0], dys[0]])
        for tape in state.tapes:
            if self.trainable and getattr(tape, "watches_variables", False):
                tape.watch_variable(self)
            tape.record(record)
        return read

    read_value = value

    def __reduce__(self) -> NoReturn:
        self._require_identity()

    def __deepcopy__(self, memo: Any) -> Variable:
        self._require_identity()

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, an argument while tracing>"


def with_shape_placeholders(trace: FuncTrace, op: Operator, inputs: Sequence[Any]) -> list[Any]:
    """Return the inputs of a recorded call, with shape placeholders for inputs whose shape alone is read."""
    return [
        value
        if declared.name not in op.shape_only
        else type(value)(_without_elements(trace, v) for v in value)
        if isinstance(value, (list, tuple))
        else _without_elements(trace, value)
        for declared, value in zip(op.inputs, inputs)
    ]


def _without_elements(trace: FuncTrace, value: Any) -> object:
    if type(value) is ShapeOnlyTensor and value.source is not None:
        value = value.source
    is_foreign = type(value) is SymbolicTensor and value.trace is not trace and value.trace.finished
    if not (is_foreign or type(value) is ShapeOnlyTensor) or value.dtype.is_handle or value.constant is not None:
        return value
    return shape_placeholder(trace, value)


def shape_placeholder(trace: FuncTrace, value: Any) -> SymbolicTensor:
    """Return a tensor of `trace` with the shape and dtype of a shape-only tensor, or of a tensor of a finished
    trace.
    """
    zero = np.zeros((), value.dtype.np)
    if value.dtype is dtypes.string:
        zero[()] = b""
    if value.shape.is_fully_defined():
        return trace.constant(np.broadcast_to(zero, tuple(value.shape)), value.dtype, "shape_placeholder")
    shape = trace.capture(_shape_of(value))
    element = trace.constant(zero, value.dtype)
    operator: Any = BroadcastTo
    specs = [TensorSpec(value.shape, value.dtype)]
    return trace.record_specs(operator, (element, shape), operator.bind({}), specs, "shape_placeholder", None)[0]


def _shape_of(value: SymbolicTensor) -> SymbolicTensor:
    """Return the shape of a tensor of a finished trace. It is computed in that trace, once."""
    owner = value.trace
    result = owner.shapes.get(id(value))
    if result is None:
        with owner.resumed():
            shape: Any = Shape
            result = owner.shapes[id(value)] = shape(value, out_type=dtypes.int64)
    return result

"""Placeholders of a trace that represent outer values of which only a part is needed.

Lives here: `VariableArgument`, the placeholder of a variable among the arguments of a function; `IdentityRequired`;
shape placeholders, of tensors of which an operator reads the shape alone.
Not here: the types that select a trace (trace_type.py), traces for a single variable (function.py), captures of tensors
whose elements are read (trace.py).

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
from ..ops.array.shaping import BroadcastTo, Shape
from ..ops.autodiff import CustomRecord
from ..ops.definition import Operator
from ..ops.outline import Outline
from ..ops.tensor import Reference
from .symbolic import SymbolicTensor

if TYPE_CHECKING:
    from ..ops.tensor import Tensor
    from .trace import FuncTrace


class IdentityRequired(BaseException):
    """A trace depends on which variable an argument is. No Exception, as the user's code must not catch it.

    owner: the Function whose argument it is.
    """

    def __init__(self, owner: object) -> None:
        super().__init__("which variable an argument is")
        self.owner = owner


class VariableArgument(Variable):
    """What stands for a variable among a function's arguments while it is traced.

    owner: the Function. trace: the recording whose input it is.
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

    def _asked(self) -> NoReturn:
        if not self._trace.finished:
            raise IdentityRequired(self._owner)
        raise FailedPreconditionError(
            what=f"variable {self.name!r} stood for an argument while {self._trace.name!r} was traced, and is used "
            "after that",
            do="use the variable that the function is called with",
        )

    def _resolved_value(self) -> Any:
        self._asked()

    def read_array(self) -> Any:
        """It has no value. Raises IdentityRequired, or FailedPreconditionError after the trace."""
        self._asked()

    def identity(self) -> int:
        """It is any variable of its type. Raises as `read_array`."""
        self._asked()

    def ref(self) -> Reference:
        """It is any variable of its type. Raises as `read_array`."""
        self._asked()

    def value(self) -> Tensor:
        """The value as a tensor, of the variable that it stands for here: gradients of a trace run in other ones.

        Gradients of what is read there flow to both.
        """
        state = dispatch.state
        trace: Any = state.trace
        while trace is not None and id(self) not in trace.variables_here:
            trace = trace.parent
        if trace is None:
            return super().value()
        tensor = trace.variables_here[id(self)].value()
        read = array.identity_without_record(tensor)
        record = CustomRecord([self, tensor], [read], lambda dys: [dys[0], dys[0]])
        for tape in state.tapes:
            if self.trainable and getattr(tape, "watches_variables", False):
                tape.watch_variable(self)
            tape.record(record)
        return read

    read_value = value

    def __reduce__(self) -> Any:
        self._asked()

    def __deepcopy__(self, memo: Any) -> Variable:
        self._asked()

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, an argument while tracing>"


def by_shape(trace: FuncTrace, op: Operator, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of a call in a trace; those of which it reads the shape alone in a form that captures no elements."""
    return [
        value
        if declared.name not in op.shape_only
        else type(value)(_standing_in(trace, v) for v in value)
        if isinstance(value, (list, tuple))
        else _standing_in(trace, value)
        for declared, value in zip(op.inputs, inputs)
    ]


def _standing_in(trace: FuncTrace, value: Any) -> Any:
    if type(value) is Outline and value.source is not None:
        value = value.source
    foreign = type(value) is SymbolicTensor and value.trace is not trace and value.trace.finished
    if not (foreign or type(value) is Outline) or value.dtype.is_handle or value.constant is not None:
        return value
    return hollow(trace, value)


def hollow(trace: FuncTrace, value: Any) -> SymbolicTensor:
    """A tensor in `trace` that has the shape and dtype of an outline, or of a tensor of a finished trace."""
    zero = np.zeros((), value.dtype.np)
    if value.dtype is dtypes.string:
        zero[()] = b""
    if value.shape.is_fully_defined():
        return trace.constant(np.broadcast_to(zero, tuple(value.shape)), value.dtype, "hollow")
    shape = trace.capture(_shape_of(value))
    one = trace.constant(zero, value.dtype)
    operator: Any = BroadcastTo
    specs = [TensorSpec(value.shape, value.dtype)]
    return trace.record_specs(operator, (one, shape), operator.bind({}), specs, "hollow", None)[0]


def _shape_of(value: SymbolicTensor) -> SymbolicTensor:
    """The shape of a tensor of a finished trace, computed there: once, however often it is asked for."""
    home = value.trace
    known = home.shapes.get(id(value))
    if known is None:
        with home.resumed():
            shape: Any = Shape
            known = home.shapes[id(value)] = shape(value, out_type=dtypes.int64)
    return known

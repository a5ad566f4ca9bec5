"""Variables as arguments of a function: one trace serves every variable of a dtype and shape.

Lives here: `VariableArgument`, which stands for an argument while its function is traced, and `IdentityAsked`.
Not here: the type under which such a trace is kept (trace_type.py), when a trace is for one variable alone
(function.py).

The stand-in reads and writes a handle that is an input of the graph. It has no value and no identity: a program that
asks for either, as optimizers do that keep state for each variable, is traced for the very variable instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..core import forks
from ..core.dtypes import DType
from ..core.errors import FailedPreconditionError
from ..core.shapes import TensorShape
from ..eager.variable import Variable
from ..ops import array, dispatch
from ..ops.autodiff import CustomRecord
from ..ops.tensor import Reference

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class IdentityAsked(BaseException):
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
            raise IdentityAsked(self._owner)
        raise FailedPreconditionError(
            what=f"variable {self.name!r} stood for an argument while {self._trace.name!r} was traced, and is used "
            "after that",
            do="use the variable that the function is called with",
        )

    def _settled(self) -> Any:
        self._asked()

    def read_array(self) -> Any:
        """It has no value. Raises IdentityAsked, or FailedPreconditionError after the trace."""
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

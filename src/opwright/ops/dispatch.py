"""Dispatch of operator calls: to the trace that is recording, else to the eager interpreter.

Lives here: the per-thread state that both interpreters share (current trace, active tapes), and `call`.
Not here: the interpreters. They are upper layers and install themselves, so that imports point down.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ..core.lazy_imports import load

if TYPE_CHECKING:
    from weakref import WeakSet

    from .call import Call
    from .definition import Operator
    from .tensor import Tensor


class Trace(Protocol):
    """A recording in progress."""

    def record(self, op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> Any:
        """Add the call to the program being recorded; return symbolic tensors for its outputs."""

    def to_tensor(self, value: Any, dtype: Any, name: str | None) -> Tensor:
        """Return a tensor of this trace that holds `value`."""
        ...

    def lift_initial_value(self, variable: Any, value: Any) -> object:
        """Return the first value of a variable that is created while the trace records."""

    @property
    def opened(self) -> WeakSet[Any]:
        """The tapes opened while the trace records."""
        ...


class Tape(Protocol):
    """Something that remembers calls for differentiation."""

    persistent: bool

    def watch_variable(self, variable: Any) -> None:
        """Watch a variable: record the calls that depend on it."""

    def record(self, record: Any) -> None:
        """Record one call if it depends on watched tensors."""

    def follows(self, keys: Sequence[int]) -> bool:
        """Return whether to record a call whose inputs have these identities."""
        ...

    def keep(self, record: Any) -> None:
        """Record one call that `follows` accepted."""


def quiet_context() -> contextvars.Context:
    """Return a context with NumPy's floating-point warnings off; one call at a time can run in it."""
    context = contextvars.Context()
    context.run(np.seterr, all="ignore")
    return context


class _State(threading.local):
    def __init__(self) -> None:
        self.trace: Trace | None = None
        self.tapes: tuple[Tape, ...] = ()
        self.names: tuple[str, ...] = ()  # name_scope
        self.quiet = quiet_context()
        self.output_limit: int | None = None  # most bytes of one output of an eager call, while an importer folds


state = _State()

R = TypeVar("R")
Eager = Callable[["Operator", Sequence[Any], "Call", "str | None"], Any]
ToTensor = Callable[[Any, Any, "str | None"], "Tensor"]


def _first_eager(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> object:
    """Import the eager interpreter, which installs itself, and make the first eager call."""
    load("opwright.eager.execute")
    return _eager(op, inputs, bound, name)


def _first_eager_tensor(value: Any, dtype: Any, name: str | None) -> Tensor:
    load("opwright.eager.execute")
    return _eager_tensor(value, dtype, name)


_eager: Eager = _first_eager
_eager_tensor: ToTensor = _first_eager_tensor


def install_eager(execute: Eager, to_tensor: ToTensor) -> None:
    """Install the eager interpreter: the execution of a call, and the conversion of values to tensors. eager/ calls it
    once.
    """
    global _eager, _eager_tensor
    _eager, _eager_tensor = execute, to_tensor


def call(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None = None) -> Any:
    """Run or record one call. inputs: one entry per declared input; bound: the checked attributes."""
    trace = state.trace
    if trace is None:
        return _eager(op, inputs, bound, name)
    return trace.record(op, inputs, bound, name)


def to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return `value` as a tensor of the active interpreter. dtype: a DType, or None to determine it from the value."""
    trace = state.trace
    if trace is None:
        return _eager_tensor(value, dtype, name)
    return trace.to_tensor(value, dtype, name)


def quietly(function: Callable[..., R], *args: Any) -> R:
    """Call a function with NumPy's floating-point warnings off: division by zero follows IEEE 754 silently.

    A context prepared once costs 0.2 us a call, entering `np.errstate` each time 0.9 us.
    """
    try:
        return state.quiet.run(function, *args)
    except RuntimeError as error:
        if not str(error).startswith("cannot enter context"):
            raise
    return function(*args)  # we are inside such a call already: a kernel that runs operators


def _first_call_with_lods(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> object:
    load("opwright.ops.lod_propagation")
    return _call_with_lods(op, inputs, bound, name)


_call_with_lods: Eager = _first_call_with_lods


def install_lod_calls(call: Eager) -> None:
    """Install the execution of calls with LoDTensors; lod_propagation.py calls it once."""
    global _call_with_lods
    _call_with_lods = call


def call_with_lods(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> Any:
    """Run or record a call with LoDTensors among its inputs."""
    return _call_with_lods(op, inputs, bound, name)


def _first_instance(*parts: Any) -> object:
    load("opwright.scopes.instance")
    return _new_instance(*parts)


_new_instance: Callable[..., Any] = _first_instance


def install_instances(make: Callable[..., Any]) -> None:
    """Install the constructor of `Operator.on`; scopes/instance.py calls it once."""
    global _new_instance
    _new_instance = make


def new_instance(op: Operator, inputs: Any, outputs: Any, attrs: Any) -> Any:
    """Return an operator bound to the names of its variables."""
    return _new_instance(op, inputs, outputs, attrs)

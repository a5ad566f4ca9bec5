"""`ow.types.experimental`: the protocols of tracing under TensorFlow's names.

Lives here: the names, and the abstract types of callables for `isinstance`.  Not here: the implementations.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..core.type_spec import TraceType
from ..ops.tensor import Tensor
from .concrete import ConcreteFunction
from .function import Function
from .signature import FunctionType
from .trace_type import TracingContext


@runtime_checkable
class SupportsTracingProtocol(Protocol):
    """Objects that define the type by which `function` selects their traces."""

    def __tf_tracing_type__(self, context: TracingContext) -> TraceType:
        """Return the type of this object."""
        ...


@runtime_checkable
class Callable(Protocol):
    """Traced callables: Functions and ConcreteFunctions."""

    @property
    def function_type(self) -> FunctionType:
        """The parameters and their types."""
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> object: ...


class DistributedValues:
    """Values of several replicas; a process has one replica, whose values are plain tensors. For `isinstance`."""


class PerReplica(DistributedValues):
    """A value for each replica."""


class Mirrored(DistributedValues):
    """The same value on each replica."""


__all__ = ["experimental"]

TensorLike: Any = Tensor | int | float | bool | str | bytes | complex | tuple | list | np.ndarray | np.generic

experimental = SimpleNamespace(
    AtomicFunction=ConcreteFunction,
    Callable=Callable,
    ConcreteFunction=ConcreteFunction,
    FunctionType=FunctionType,
    GenericFunction=Function,
    PolymorphicFunction=Function,
    SupportsTracingProtocol=SupportsTracingProtocol,
    TensorLike=TensorLike,
    TraceType=TraceType,
    distributed=SimpleNamespace(Mirrored=Mirrored, PerReplica=PerReplica),
)

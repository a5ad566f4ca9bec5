"""Scopes of programs: names, devices, and declared order.

Lives here: `name_scope`; control_dependencies, group, no_op, tuple; queries of the current scope: inside_function,
is_symbolic_tensor, get_current_name_scope, device. Not here: unique names in a graph (graph/ir.py); the order of
effects, which is program order in any case.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..ops import array, dispatch
from ..ops.indexed_slices import IndexedSlices
from .symbolic import SymbolicTensor
from .trace import FuncTrace

state = dispatch.state


class name_scope:
    """A context in which nodes and variables are named `name/...`; its value is the prefix.

    name: appended to the enclosing scopes, with a suffix _1, _2 ... in a traced function if it is already used. A name
    that ends with "/", such as the value of a scope, is entered unchanged; an empty one leaves all scopes.

    raises ValueError for a name that is not a string
    """

    __slots__ = ("_name", "_saved")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"name for name_scope must be a string, found {name!r}")
        self._name = name
        self._saved: list[Any] = []

    @property
    def name(self) -> str:
        """The argument `name`."""
        return self._name

    def __enter__(self) -> str:
        self._saved.append(state.names)
        name = self._name
        if not name:
            state.names = ()
        elif name.endswith("/"):
            state.names = (*name[:-1].split("/"),)  # `tuple` is TensorFlow's here
        elif isinstance(state.trace, FuncTrace):
            state.names = (*state.trace.builder.unique("/".join((*state.names, name))).split("/"),)
        else:
            state.names = (*state.names, name)
        return "/".join((*state.names, "")) if state.names else ""

    def __exit__(self, *_: object) -> None:
        state.names = self._saved.pop()


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Return a context whose body runs after the given tensors; graphs preserve program order in any case.

    control_inputs: tensors, results of effects, or None; eagerly also a function, which is called.
    """
    if callable(control_inputs):
        control_inputs()
    elif control_inputs is not None and not isinstance(control_inputs, Sequence):
        raise TypeError(f"control_inputs is a list, found {control_inputs!r}")
    yield


def group(*inputs: Any, name: str | None = None) -> None:
    """Group effects; returns None. Effects are executed in program order in any case."""


def no_op(name: str | None = None) -> None:
    """Do nothing."""


def tuple(tensors: Sequence[Any], control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """Return copies of tensors that are available once all are computed; None and sparse rows are returned unchanged.

    raises ValueError without any tensor
    """
    if not any(t is not None for t in tensors):
        raise ValueError("Must have at least one tensor to make a tuple of.")
    with control_dependencies(control_inputs):
        return [t if t is None or isinstance(t, IndexedSlices) else array.identity(t) for t in tensors]


def inside_function() -> bool:
    """Return whether operators are being recorded in a function."""
    return state.trace is not None


def is_symbolic_tensor(tensor: Any) -> bool:
    """Return whether it is a tensor of a graph, without a value."""
    return isinstance(tensor, SymbolicTensor)


def get_current_name_scope() -> str:
    """Return the names of the enclosing `name_scope`s, joined by /."""
    return "/".join(state.names)


@contextlib.contextmanager
def device(device_name: Any) -> Iterator[None]:
    """Return a context that requests a device for its operators. The only device is the CPU.

    raises ValueError for an invalid device name; valid ones are such as "CPU:0", "/device:CPU:0", "/cpu:0", None
    """
    if device_name is not None and not callable(device_name) and not _DEVICE.fullmatch(str(device_name)):
        raise ValueError(f"Unknown attribute in device name {device_name!r}; wanted a name such as '/device:CPU:0'")
    yield


_DEVICE = re.compile(r"(/?(job:\w+|replica:\d+|task:\d+|(device:)?(cpu|gpu|tpu)(:(\d+|\*))?))*", re.IGNORECASE)

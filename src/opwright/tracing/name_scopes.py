"""Scopes of programs: names, devices, and declared order.

Lives here: `name_scope`; control_dependencies, group, no_op, tuple; questions about where a program is:
inside_function, is_symbolic_tensor, get_current_name_scope, device.
Not here: how a graph keeps its names apart (graph/ir.py); the order itself: nodes with effects keep program order
without being told.
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
    """A `with` inside which nodes and variables are named `name/...`; gives that prefix.

    name: added to the scopes around; in a traced function with _1, _2 ... where it was used before. One that ends with
    "/", as the prefix does that a scope gives, is entered as it is; an empty one leads out of all scopes.

    raises ValueError for a name that is no string
    """

    __slots__ = ("_name", "_saved")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"name for name_scope must be a string, found {name!r}")
        self._name = name
        self._saved: list[Any] = []

    @property
    def name(self) -> str:
        """As it was given."""
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
    """A `with` whose body runs after what is named, as it does anyway: a graph's effects keep program order.

    control_inputs: tensors or what effects gave, None; eagerly also a function, which is called.
    """
    if callable(control_inputs):
        control_inputs()
    elif control_inputs is not None and not isinstance(control_inputs, Sequence):
        raise TypeError(f"control_inputs is a list, found {control_inputs!r}")
    yield


def group(*inputs: Any, name: str | None = None) -> None:
    """What several effects give, as one: nothing. They happen where they stand in the program."""


def no_op(name: str | None = None) -> None:
    """Nothing."""


def tuple(tensors: Sequence[Any], control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """New tensors of the same values, all there once all are computed; None and sparse rows stay as they are.

    raises ValueError where there is no tensor among them
    """
    if not any(t is not None for t in tensors):
        raise ValueError("Must have at least one tensor to make a tuple of.")
    with control_dependencies(control_inputs):
        return [t if t is None or isinstance(t, IndexedSlices) else array.identity(t) for t in tensors]


def inside_function() -> bool:
    """Whether operators are being recorded in a function."""
    return state.trace is not None


def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of a graph, without a value."""
    return isinstance(tensor, SymbolicTensor)


def get_current_name_scope() -> str:
    """The names of the `name_scope`s around, joined by /."""
    return "/".join(state.names)


@contextlib.contextmanager
def device(device_name: Any) -> Iterator[None]:
    """A `with` whose operators are wanted on a device. There is one, the CPU, where they run.

    raises ValueError for what is no device's name, such as "CPU:0", "/device:CPU:0", "/cpu:0", None
    """
    if device_name is not None and not callable(device_name) and not _DEVICE.fullmatch(str(device_name)):
        raise ValueError(f"Unknown attribute in device name {device_name!r}; such as '/device:CPU:0' is wanted")
    yield


_DEVICE = re.compile(r"(/?(job:\w+|replica:\d+|task:\d+|(device:)?(cpu|gpu|tpu)(:(\d+|\*))?))*", re.IGNORECASE)

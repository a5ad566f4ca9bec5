"""Helpers of the tests of operators in C: the library of probes, its notes, models of single operators.

Not here: the worked examples of the interface (examples/).
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
from typing import Any, NamedTuple

import numpy as np
import pytest
from lite_kit import Build

from opwright import lite
from opwright.core.errors import UnavailableError
from opwright.lite.native import toolchain
from opwright.lite.native.toolchain import build_library

HERE = pathlib.Path(__file__).parent
INIT, PREPARE, INVOKE, FREE = 1, 2, 3, 4


def need_compiler(language: str = "c") -> None:
    """Skips the test where there is no compiler."""
    try:
        toolchain.find_compiler(language)
    except UnavailableError as error:
        pytest.skip(f"no {language} compiler: {error}")


class Event(NamedTuple):
    """One call of a probe; see probes.c."""

    what: int
    state: int | None
    node: int | None
    pointer: int | None
    value: int


class _Event(ctypes.Structure):
    _fields_ = (
        ("what", ctypes.c_long),
        ("state", ctypes.c_void_p),
        ("node", ctypes.c_void_p),
        ("pointer", ctypes.c_void_p),
        ("value", ctypes.c_long),
    )


class Probes:
    """The library of probes. ops: its registrations by name."""

    def __init__(self) -> None:
        self.path = str(build_library([HERE / "probes.c"]))
        self.ops = lite.load_custom_ops(self.path)
        self.code: Any = ctypes.CDLL(self.path)
        self._used = ctypes.c_int.in_dll(self.code, "events_used")
        self._events = (_Event * 4096).in_dll(self.code, "events")
        self.code.last_options.restype = ctypes.POINTER(ctypes.c_char)

    def clear(self) -> None:
        self._used.value = 0

    def events(self, *what: int) -> list[Event]:
        """Return the notes since `clear`, all or of these kinds."""
        every = [Event(e.what, e.state, e.node, e.pointer, e.value) for e in self._events[: self._used.value]]
        return [e for e in every if not what or e.what in what]

    def counts(self) -> tuple[int, int, int, int]:
        """How often init, prepare, invoke and free ran."""
        return tuple(len(self.events(what)) for what in (INIT, PREPARE, INVOKE, FREE))  # type: ignore[return-value]

    def interpreter(self, content: bytes, **more: Any) -> Any:
        return lite.Interpreter(model_content=content, custom_ops=self.ops, **more)


@functools.cache
def probes() -> Probes:
    need_compiler()
    return Probes()


def single(
    name: str,
    shape: Any = (5,),
    y_shape: Any = None,
    types: tuple[str, str] = ("FLOAT32", "FLOAT32"),
    x: Any = None,
    **options: Any,
) -> bytes:
    """A model of one operator: y = name(x). x: further fields of the input's tensor."""
    build = (
        Build().tensor("x", shape, types[0], **(x or {})).tensor("y", shape if y_shape is None else y_shape, types[1])
    )
    return build.custom(name, "x", "y", **options).done()


def chain(*names: str, **options: Any) -> bytes:
    """A model of these operators, one after the other."""
    build = Build()
    for i, name in enumerate(names):
        build.custom(name, "x" if i == 0 else f"t{i - 1}", "y" if i == len(names) - 1 else f"t{i}", **options)
    return build.done()


def run(interpreter: Any, *values: Any) -> Any:
    """Set the inputs, run, the first output."""
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(
            detail["index"], np.asarray(value, None if detail["dtype"] is np.bytes_ else detail["dtype"])
        )
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

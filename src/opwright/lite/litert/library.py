"""The official run time's shared library: locating it in the installed wheel, its typed functions, statuses.

Lives here: `library`, `TensorLayout`, `RankedTensorType`, `CustomOpKernel`, `check`, `element_type`, the environment.
Not here: the order of calls and messages on stderr (loaded_model.py, model.py, invocation.py), the callbacks
(callbacks.ll, custom_op_nodes.py).

The wheel's Python modules are not imported: its library needs nothing of them. The declarations hold for versions from
MINIMUM on; earlier ones create models without an environment, which is not visible in the symbols and would crash.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
from typing import Any

from ...core import forks
from ...core.dtypes import DType
from ...core.errors import InternalError, NotFoundError, OpError, UnavailableError, also
from ...core.forks import once

PACKAGE = "ai-edge-litert"
MINIMUM = "2.1.6"
_FILE = {"darwin": "libLiteRt.dylib", "win32": "libLiteRt.dll"}.get(sys.platform, "libLiteRt.so")
_INSTALL = f"pip install '{PACKAGE}>={MINIMUM}'"

HANDLE, SIZE, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
MOST_AXES = 8  # of a Layout
ALIGNMENT = 64  # of the memory of its tensor buffers
CPU = 1  # of its set of accelerators
READ, WRITE = 0, 1  # its modes of locking a buffer


class TensorLayout(ctypes.Structure):
    """LiteRtLayout: a shape without strides."""

    _fields_ = (
        ("rank", ctypes.c_uint32, 7),
        ("has_strides", ctypes.c_uint32, 1),
        ("dimensions", ctypes.c_int32 * MOST_AXES),
        ("strides", ctypes.c_uint32 * MOST_AXES),
    )

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.dimensions[: self.rank])

    @shape.setter
    def shape(self, sizes: tuple[int, ...]) -> None:
        self.rank, self.has_strides = len(sizes), 0
        self.dimensions[: len(sizes)] = sizes


class RankedTensorType(ctypes.Structure):
    """LiteRtRankedTensorType."""

    _fields_ = (("element_type", INT), ("layout", TensorLayout))


class CustomOpKernel(ctypes.Structure):
    """LiteRtCustomOpKernel: the addresses of its four callbacks. Each returns a status, which the run time ignores."""

    _fields_ = (("init", HANDLE), ("layouts", HANDLE), ("run", HANDLE), ("destroy", HANDLE))


class _Value(ctypes.Structure):
    """LiteRtAny: type 2 is an integer."""

    _fields_ = (("type", INT), ("integer", ctypes.c_int64))


class _EnvironmentOption(ctypes.Structure):
    _fields_ = (("tag", INT), ("value", _Value))


LAYOUTS = ctypes.CFUNCTYPE(INT, HANDLE, SIZE, ctypes.POINTER(TensorLayout), SIZE, ctypes.POINTER(TensorLayout))
"""GetOutputLayouts: user data, the inputs' number and layouts, the outputs'."""

_OUT = ctypes.POINTER(HANDLE)
_NUMBER = ctypes.POINTER(SIZE)
_TEXT = ctypes.POINTER(ctypes.c_char_p)
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "CreateEnvironment": (INT, ctypes.POINTER(_EnvironmentOption), _OUT),
    "CreateModelFromFile": (HANDLE, ctypes.c_char_p, _OUT),
    "CreateModelFromBuffer": (HANDLE, HANDLE, SIZE, _OUT),
    "GetNumModelSignatures": (HANDLE, _NUMBER),
    "GetModelSignature": (HANDLE, SIZE, _OUT),
    "GetSignatureKey": (HANDLE, _TEXT),
    "GetNumSignatureInputs": (HANDLE, _NUMBER),
    "GetNumSignatureOutputs": (HANDLE, _NUMBER),
    "GetSignatureInputName": (HANDLE, SIZE, _TEXT),
    "GetSignatureOutputName": (HANDLE, SIZE, _TEXT),
    "CreateOptions": (_OUT,),
    "SetOptionsHardwareAccelerators": (HANDLE, INT),
    "CreateOpaqueOptions": (ctypes.c_char_p, HANDLE, HANDLE, _OUT),
    "AddOpaqueOptions": (HANDLE, HANDLE),
    "AddCustomOpKernelOption": (HANDLE, ctypes.c_char_p, INT, ctypes.POINTER(CustomOpKernel), HANDLE),
    "CreateCompiledModel": (HANDLE, HANDLE, HANDLE, _OUT),
    "CompiledModelResizeInputTensorNonStrict": (HANDLE, SIZE, SIZE, ctypes.POINTER(INT), SIZE),
    "GetCompiledModelOutputTensorLayouts": (HANDLE, SIZE, SIZE, ctypes.POINTER(TensorLayout), ctypes.c_bool),
    "RunCompiledModel": (HANDLE, SIZE, SIZE, _OUT, SIZE, _OUT),
    "CompiledModelGetErrorMessages": (HANDLE, ctypes.POINTER(HANDLE)),
    "CompiledModelClearErrors": (HANDLE,),
    "CompiledModelIsFullyAccelerated": (HANDLE, ctypes.POINTER(ctypes.c_bool)),
    "CreateTensorBufferFromHostMemory": (ctypes.POINTER(RankedTensorType), HANDLE, SIZE, HANDLE, _OUT),
    "GetTensorBufferPackedSize": (HANDLE, _NUMBER),
    "LockTensorBuffer": (HANDLE, _OUT, INT),
    "UnlockTensorBuffer": (HANDLE,),
}
"""The functions that give a status, by name without `LiteRt`: the types of their parameters."""
_DESTROYERS = ("DestroyEnvironment", "DestroyModel", "DestroyOptions", "DestroyCompiledModel", "DestroyTensorBuffer")

STATUSES = {
    1: "invalid argument",
    2: "memory allocation failure",
    3: "run-time failure",
    4: "missing input tensor",
    5: "unsupported",
    6: "not found",
    7: "timeout expired",
    8: "wrong version",
    9: "unknown",
    10: "already exists",
    100: "cancelled",
    500: "file input or output",
    501: "invalid flatbuffer",
    502: "dynamic loading",
    503: "serialization",
    504: "compilation",
    1000: "index out of bounds",
    1001: "invalid IR type",
    1002: "invalid graph",
    1003: "graph modification",
}

ELEMENT_TYPES = {
    "float32": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "complex64": 8,
    "int8": 9,
    "float16": 10,
    "float64": 11,
    "uint64": 13,
    "uint32": 16,
    "uint16": 17,
    "bfloat16": 19,
}
"""The numbers of element types that tensor buffers of the CPU hold, a whole number of bytes each."""


def element_type(dtype: DType) -> int | None:
    """Return the number of an element type; None for types without buffers: strings, resources, types below a byte."""
    return ELEMENT_TYPES.get(dtype.name)


class LiteRtLibrary:
    """The loaded library. Its functions are attributes, without `LiteRt`. version: of the wheel. path: of the file."""

    def __init__(self, path: str, version: str) -> None:
        self.path, self.version = path, version
        self._loaded = ctypes.CDLL(path)
        for name, parameters in _FUNCTIONS.items():
            self._declare(name, INT, parameters)
        for name in _DESTROYERS:
            self._declare(name, None, (HANDLE,))

    def _declare(self, name: str, result: Any, parameters: tuple[Any, ...]) -> None:
        function = getattr(self._loaded, f"LiteRt{name}")
        function.restype, function.argtypes = result, parameters
        setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for type checkers: all are set
        raise AttributeError(name)

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return ctypes.cast(getattr(self, name), HANDLE).value or 0


@once
def library() -> LiteRtLibrary:
    """Return the library of the installed wheel, loaded once per process.

    raises NotFoundError if no wheel is installed, UnavailableError if it is older than MINIMUM, or its library is
    missing or does not load; both are ImportErrors, too
    """
    spec = importlib.util.find_spec("ai_edge_litert")
    if spec is None or not spec.submodule_search_locations:
        what = f"the official run time is not installed: no package {PACKAGE}"
        raise also(NotFoundError, ImportError)(op="lite.litert", what=what, do=_INSTALL)
    folder = next(iter(spec.submodule_search_locations))
    version = _version()
    if _numbers(version) < _numbers(MINIMUM):
        raise _unusable("is too old for custom operators", version)
    path = os.path.join(folder, _FILE)
    if not os.path.exists(path):
        raise _unusable(f"has no {_FILE}", version)
    try:
        return LiteRtLibrary(path, version)
    except AttributeError as error:
        raise _unusable(f"lacks a function: {error}", version) from None
    except OSError as error:
        raise _unusable(f"does not load: {error}", version) from None


def _version() -> str:
    for name in (PACKAGE, f"{PACKAGE}-nightly"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "0"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _unusable(what: str, version: str) -> OpError:
    return also(UnavailableError, ImportError)(
        op="lite.litert",
        what=f"the installed {PACKAGE} {what}",
        found=f"version {version}",
        wanted=f"{MINIMUM} or newer",
        do=_INSTALL,
    )


def check(status: int, doing: str) -> None:
    """Raise InternalError for the failure of a call that no argument of a user can cause."""
    if status:
        raise InternalError(
            op="lite.litert", what=f"{doing}: the official run time refused", found=describe_status(status)
        )


def describe_status(status: int) -> str:
    """Return a status as text."""
    return f"status {status}, {STATUSES.get(status, 'unknown')}"


_lock = forks.lock()
_INTEGER, _ACCELERATORS, _LOG_SEVERITY, _ONLY_ERRORS = 2, 24, 25, 3


def environment() -> int:
    """Return the environment of all models of this process: it logs only errors, uses no accelerators, and is never
    freed."""
    with _lock:
        return _environment()


@functools.cache  # under the lock
def _environment() -> int:
    handle, settings = HANDLE(), ((_LOG_SEVERITY, _ONLY_ERRORS), (_ACCELERATORS, CPU))
    options = [_EnvironmentOption(tag, _Value(_INTEGER, value)) for tag, value in settings]
    array = (_EnvironmentOption * len(options))(*options)
    check(library().CreateEnvironment(len(options), array, ctypes.byref(handle)), "creating its environment")
    return handle.value or 0

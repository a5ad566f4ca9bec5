"""Built libraries in this process, called with NumPy arrays.

Lives here: `load`, `LoadedLibrary`. Not here: building (libraries.py), the linker (compiler/native/linker.py).

The object file is linked here, so that no linker has to be installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..compiler.native.builtins import data_address
from ..compiler.native.executor import Executor, Step, aligned
from ..compiler.native.image import load_images
from ..compiler.native.linker import link
from ..compiler.native.workers import functions as executor_functions
from ..core import dtypes, forks
from ..core.errors import InvalidArgumentError, NotFoundError
from .status_codes import STATUS_TEXTS
from .thread_callbacks import MOST_THREADS

_MAP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class _Port(NamedTuple):
    """An input or output. identifier: its field in C; shape: for the largest sizes; varies: whether a run reports the
    shape of this output."""

    name: str
    identifier: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    varies: bool


class LoadedLibrary:
    """A built library: call it, or one of its signatures, with arrays by name, or in order; returns the outputs by
    name.

    Thread-safe: each thread has an arena of its own; calls of a model with state follow one another. threads: of a
    run, for libraries that take the caller's.
    signatures: functions by key, which share the state; inputs, outputs: names of a single signature, C identifiers
    where the model's are not unique; notes: the description. raises NotFoundError, InvalidArgumentError
    """

    def __init__(self, path: Path, threads: int = 1) -> None:
        self.notes = notes = json.loads(path.read_text())
        if notes["object"] is None:
            raise NotFoundError(
                op="aot.load", what="the library is C source", found=str(path), do='build it with format="lib"'
            )
        if threads > 1 and notes.get("threads") is None:
            raise InvalidArgumentError(
                op="aot.load",
                what="the library runs on the calling thread",
                found=threads,
                do="build(..., threads=True)",
            )
        if not 1 <= threads <= MOST_THREADS:
            raise InvalidArgumentError(
                op="aot.load", what="the number of threads", found=threads, wanted=f"1 to {MOST_THREADS}"
            )
        objects = path.with_name(notes["object"])
        if not objects.is_file():
            raise NotFoundError(op="aot.load", what="the object file is not beside its description", found=str(objects))
        image = link(objects.read_bytes(), with_variables=bool(notes.get("levels")))
        functions = load_images([image])[0]
        self._memory = _Memory(notes, threads)
        if notes.get("weights_file") is not None:
            self._memory.map_weights(path.with_name(notes["weights_file"]), functions[f"{notes['name']}_map_weights"])
        self._reset: Any = None
        if self._memory.state is not None:
            places = (ctypes.c_void_p,) * len(self._memory.places)
            self._reset = ctypes.CFUNCTYPE(None, *places)(functions[f"{notes['name']}_reset"])
        self.reset()
        self.signatures = {
            s["key"]: LibrarySignature(s, functions[s["function"]], self._memory) for s in notes["signatures"]
        }

    def __call__(self, *args: Any, **arrays: Any) -> dict[str, np.ndarray]:
        """Run the only signature. Arguments: the inputs, of exactly their dtypes and shapes, in order or by name."""
        return self._only(*args, **arrays)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs of the only signature."""
        return self._only.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs of the only signature."""
        return self._only.outputs

    @property
    def _only(self) -> LibrarySignature:
        if len(self.signatures) != 1:
            raise InvalidArgumentError(
                op="aot.LoadedLibrary",
                what="the library has several signatures",
                found=list(self.signatures),
                do="call library.signatures[key]",
            )
        return next(iter(self.signatures.values()))

    def reset(self) -> None:
        """Set the state of the first run, if the model has a state."""
        if self._reset is not None:
            with self._memory.lock:
                self._reset(*self._memory.places)


class _Threads:
    """Workers of this process as a library takes them: a structure of a context and two functions. It serves the
    thread that made it."""

    def __init__(self, count: int) -> None:
        functions = executor_functions()
        self._executor = Executor([Step(functions.tasks, [0, 0], count, chunk=1)], count)
        self._executor.block[6] = 1  # no signal ends it
        self._words = (ctypes.c_void_p * 3)(None, functions.thread_count, functions.parallel_for)

    @property
    def address(self) -> int:
        """Address of the structure."""
        self._words[0] = self._executor.address
        return ctypes.addressof(self._words)


class _Memory:
    """The state and the weights of a library, and an arena for each thread. places: addresses of the structures of the
    first two, as far as there are, which functions take in this order. threads: of a run."""

    def __init__(self, notes: Mapping[str, Any], threads: int) -> None:
        self.state = aligned(notes["state"]) if notes["state"] else None
        self.places = [] if self.state is None else [self.state.ctypes.data]
        self.lock = forks.lock()
        self._arena, self._threads = notes["arena"], threads
        division = notes.get("threads")
        self.takes_threads = division is not None
        if division is not None:
            self._arena = division["base"] + threads * division["scratch"]
        self._local = threading.local()

    def map_weights(self, path: Path, function: int) -> None:
        """Map a file of weights. function: address of NAME_map_weights. Raises NotFoundError, InvalidArgumentError."""
        try:
            self._file = np.memmap(path, np.uint8, "r")
        except (FileNotFoundError, ValueError) as error:  # ValueError: an empty file
            raise NotFoundError(
                op="aot.load", what="the weights are not beside the library", found=str(path)
            ) from error
        self._weights = ctypes.c_void_p()
        self.places.append(ctypes.addressof(self._weights))
        status = _MAP(function)(self._file.ctypes.data, self._file.nbytes, self.places[-1])
        if status:
            raise InvalidArgumentError(op="aot.load", what=STATUS_TEXTS[status], found=str(path))

    def threads(self) -> list[int | None]:
        """Return the address of the threads for runs on this thread, if the library takes any."""
        if not self.takes_threads:
            return []
        if self._threads == 1:
            return [None]
        if not hasattr(self._local, "threads"):
            self._local.threads = _Threads(self._threads)
        return [self._local.threads.address]

    def arena(self) -> tuple[int, int]:
        """Return the address and the size of this thread's arena."""
        place: tuple[int, int] | None = getattr(self._local, "place", None)
        if place is None:
            self._local.arena = arena = aligned(max(self._arena, 1))
            place = self._local.place = data_address(arena), arena.nbytes
        return place


class LibrarySignature:
    """A function of a library. inputs, outputs: names."""

    def __init__(self, note: Mapping[str, Any], address: int, memory: _Memory) -> None:
        self._memory = memory
        self._size_notes = [size for size in note.get("sizes", ()) if size["places"]]
        pointers = (ctypes.c_void_p,) * (3 + len(memory.places) + memory.takes_threads)
        self._run: Any = ctypes.CFUNCTYPE(ctypes.c_int, *pointers, ctypes.c_size_t)(address)
        self._inputs, self._outputs = (
            [
                _Port(
                    p["name"],
                    p["identifier"],
                    tuple(p["shape"]),
                    np.dtype(_BYTES.get(p["dtype"]) or dtypes.as_dtype(p["dtype"]).np),
                    p.get("varies", False),
                )
                for p in ports
            ]
            for ports in (note["inputs"], note["outputs"])
        )
        self.inputs = tuple(_names(self._inputs))
        self.outputs = tuple(_names(self._outputs))
        self._shapes = [port.shape for port in self._inputs]
        self._extents = sum(max(len(port.shape), 1) for port in self._outputs if port.varies)
        count = len(self._inputs) + len(self._size_notes), len(self._outputs) + self._extents
        self._fields = [ctypes.c_size_t * max(n, 1) for n in count]  # once: ctypes takes as long as a small model

    def __call__(self, *args: Any, **arrays: Any) -> dict[str, np.ndarray]:
        """Run the signature. Arguments: the inputs, of exactly their dtypes and shapes, in order or by name."""
        values = args if not arrays and len(args) == len(self._inputs) else self._in_order(args, arrays)
        arrays_in = [np.asarray(value) for value in values]
        sizes, shapes = self._sizes(arrays_in) if self._size_notes else ([], self._shapes)
        inputs = [self._checked(port, a, shape) for port, a, shape in zip(self._inputs, arrays_in, shapes)]
        outputs = [np.empty(port.shape, port.dtype) for port in self._outputs]
        memory = self._memory
        fields_in = self._fields[0](*map(data_address, inputs), *sizes)
        fields_out = self._fields[1](*map(data_address, outputs))
        with memory.lock if memory.state is not None else _WITHOUT_LOCK:
            status = self._run(fields_in, fields_out, *memory.places, *memory.threads(), *memory.arena())
        if status:
            raise InvalidArgumentError(op="aot.LoadedLibrary", what=STATUS_TEXTS[status])
        shaped = self._shaped(outputs, fields_out[len(outputs) :]) if self._extents else outputs
        return dict(zip(self.outputs, shaped))

    def _in_order(self, args: tuple[Any, ...], arrays: Mapping[str, Any]) -> list[Any]:
        """Return the inputs in order. Raises InvalidArgumentError for others."""
        values: Mapping[str, Any] = dict(zip(self.inputs, args), **arrays)
        if len(args) > len(self.inputs) or set(values) != set(self.inputs) or len(values) != len(args) + len(arrays):
            raise InvalidArgumentError(
                op="aot.LoadedLibrary", what="the inputs do not match", found=list(values), wanted=list(self.inputs)
            )
        return [values[key] for key in self.inputs]

    def _sizes(self, arrays: list[np.ndarray]) -> tuple[list[int], list[tuple[int, ...]]]:
        """Return the sizes that the inputs have, and the shapes of the inputs for them."""
        shapes = [list(port.shape) for port in self._inputs]
        sizes = []
        for note in self._size_notes:
            position, axis = note["places"][0]
            size = arrays[position].shape[axis] if axis < arrays[position].ndim else note["most"]
            sizes.append(size)
            for i, k in note["places"]:
                shapes[i][k] = size
        return sizes, [tuple(shape) for shape in shapes]

    def _shaped(self, outputs: list[np.ndarray], sizes: list[int]) -> list[np.ndarray]:
        """Return outputs in the shapes that the run has reported."""
        results, at = [], 0
        for port, array in zip(self._outputs, outputs):
            if port.varies:
                shape = tuple(sizes[at : at + len(port.shape)])
                at += max(len(port.shape), 1)
                array = array.reshape(-1)[: math.prod(shape)].reshape(shape)
            results.append(array)
        return results

    @staticmethod
    def _checked(port: _Port, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if array.dtype != port.dtype or array.shape != shape:
            raise InvalidArgumentError(
                op="aot.LoadedLibrary",
                what=f"input {port.name!r} does not match",
                found=f"{array.dtype}{list(array.shape)}",
                wanted=f"{port.dtype}{list(shape)}",
            )
        return np.ascontiguousarray(array)


_WITHOUT_LOCK = contextlib.nullcontext()
_BYTES = {"int2": np.int8, "int4": np.int8, "uint4": np.uint8}
"""Types of arrays for integers of less than 8 bits, one a byte, as of `lite.Interpreter`."""


def _names(ports: list[_Port]) -> list[str]:
    """Return the names by which arrays are passed: those of the model, identifiers where these are not unique."""
    names = [port.name for port in ports]
    return [port.name if names.count(port.name) == 1 else port.identifier for port in ports]


def load(path: str | os.PathLike[str], *, threads: int = 1) -> LoadedLibrary:
    """Load a library for this processor. path: the folder that `build` wrote, or its NAME.json.

    threads: of a run, for a library that was built with `threads=True`; results are those of one, bit by bit. raises
    NotFoundError; UnimplementedError for the object files of other processors
    """
    path = Path(path)
    if path.is_dir():
        descriptions = sorted(path.glob("*.json"))
        if len(descriptions) != 1:
            raise NotFoundError(
                op="aot.load",
                what="the folder does not have exactly one description",
                found=[p.name for p in descriptions],
            )
        (path,) = descriptions
    if not path.is_file():
        raise NotFoundError(op="aot.load", what="there is no such library", found=str(path), wanted="NAME.json")
    return LoadedLibrary(path, threads)

"""The official run time's objects for one model, and the messages that it writes on failures.

Lives here: `LiteRtModel`; `StderrCapture`, which captures stderr while a model is prepared.
Not here: the choice of replaced nodes (node_replacement.py), shapes and runs (model.py).

The run time writes to file descriptor 2, which other threads of the process share. Output is therefore captured only
where the run time reports (when a model is created, and at the first run after shapes have changed), and other lines
are passed on. A second thread captures nothing: its output joins that of the first.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from ...compiler.native.image import library as c_library
from ...core import forks
from ...core.errors import InvalidArgumentError, OpError, also
from ..format import Model
from .custom_op_nodes import CustomOpNode, kernel
from .library import CPU, HANDLE, check, describe_status, environment, library

_ITS_LINE = re.compile(rb"(INFO|WARNING|ERROR|VERBOSE|DEBUG|FATAL):? ")
_CONTINUED = "└".encode()
_lock = forks.lock()


class StderrCapture(contextlib.AbstractContextManager["StderrCapture"]):
    """Captures the run time's messages on stderr as `text`, available after the block; other output is passed on.

    whole: attribute all output to the run time, whose messages may span several lines
    """

    def __init__(self, whole: bool = False) -> None:
        self.text, self._whole = "", whole
        self._redirected = False
        self._stderr: int | None = None  # the original descriptor, None if closed

    def __enter__(self) -> StderrCapture:
        self._catches = _lock.acquire(blocking=False)
        if not self._catches:
            return self
        try:
            if sys.stderr is not None:
                with contextlib.suppress(OSError, ValueError):
                    sys.stderr.flush()
            self._file = tempfile.TemporaryFile()
            with contextlib.suppress(OSError):  # no free descriptor: capture nothing
                self._stderr = _duplicate(2)
                os.dup2(self._file.fileno(), 2)
                self._redirected = True
        except BaseException:
            _lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._catches:
            return
        try:
            if self._redirected:
                if sys.stderr is not None:
                    with contextlib.suppress(OSError, ValueError):
                        sys.stderr.flush()
                if self._stderr is None:
                    os.close(2)
                else:
                    os.dup2(self._stderr, 2)
                    os.close(self._stderr)
                self._file.seek(0)
                output = self._file.read()
                its, others = (output, b"") if self._whole else _split_lines(output)
                self.text = its.decode(errors="replace").rstrip()
                if others:
                    with contextlib.suppress(OSError):
                        os.write(2, others)
            self._file.close()
        finally:
            _lock.release()


def _duplicate(descriptor: int) -> int | None:
    """Return a duplicate of a descriptor, None for a closed one. Raises OSError if there are no free descriptors."""
    try:
        return os.dup(descriptor)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        return None


def _split_lines(output: bytes) -> tuple[bytes, bytes]:
    """Return the run time's lines, and the others."""
    its: list[bytes] = []
    others: list[bytes] = []
    for line in output.splitlines(keepends=True):
        (its if _ITS_LINE.match(line) or line.startswith(_CONTINUED) else others).append(line)
    return b"".join(its), b"".join(others)


OP = "lite.litert.CompiledModel"
_TO_STDERR, _KEPT = 1, 2  # its modes of reporting errors


class LiteRtModel:
    """The run time's model and compiled model, with the objects that they refer to, which live until `close`.

    nodes: replaced nodes. errors: exceptions in their callbacks, whose status the run time ignores
    """

    def __init__(self) -> None:
        self._options, self.model, self.compiled = HANDLE(), HANDLE(), HANDLE()
        self._content: Any = None  # the file's bytes, if the run time reads from memory
        self.nodes: list[CustomOpNode] = []
        self.errors: list[BaseException] = []

    def load(self, file: Model, original: Any, threads: int) -> None:
        """Load and compile. original: the path or bytes if the model is unchanged, else None.

        raises RuntimeErrors that are OpErrors, with the run time's messages
        """
        with StderrCapture() as captured:
            status = self._load(file, original) or self._compile(threads, _KEPT)
        if status and self.model.value:  # the stored messages are lost with the object: repeat, with messages on stderr
            with StderrCapture(whole=True) as captured:
                self._compile(threads, _TO_STDERR)
        if status:
            raise self.failure(status, "does not take the model", captured.text)

    def _load(self, file: Model, original: Any) -> int:
        its = library()
        if isinstance(original, str | os.PathLike):
            status = its.CreateModelFromFile(environment(), os.fsencode(original), ctypes.byref(self.model))
        else:
            self._content = original if isinstance(original, bytes) else file.to_bytes()
            address = ctypes.cast(ctypes.c_char_p(self._content), HANDLE)
            status = its.CreateModelFromBuffer(environment(), address, len(self._content), ctypes.byref(self.model))
        return int(status)

    def _compile(self, threads: int, errors: int) -> int:
        its = library()
        if self._options.value:
            its.DestroyOptions(self._options)
            self._options.value = None
        check(its.CreateOptions(ctypes.byref(self._options)), "making options")
        check(its.SetOptionsHardwareAccelerators(self._options, CPU), "choosing the processor")
        self._add_settings("xnnpack", f"num_threads = {threads}\n")
        self._add_settings("runtime_options_string", f"error_reporter_mode = {errors}\n")
        for node in self.nodes:
            code = node.carried.code.encode("utf-8", "surrogateescape")
            status = its.AddCustomOpKernelOption(self._options, code, 1, ctypes.byref(kernel()), node.address)
            check(status, f"giving {node.carried.name}")
        return int(its.CreateCompiledModel(environment(), self.model, self._options, ctypes.byref(self.compiled)))

    def _add_settings(self, group: str, settings: str) -> None:
        """Add a group of settings in the run time's format: TOML, in memory allocated by C."""
        c, its, text = c_library(), library(), settings.encode()
        c.malloc.restype, c.malloc.argtypes = HANDLE, [ctypes.c_size_t]
        memory = c.malloc(len(text) + 1)
        ctypes.memmove(memory, text, len(text) + 1)
        opaque = HANDLE()
        free = ctypes.cast(c.free, HANDLE)
        check(its.CreateOpaqueOptions(group.encode(), memory, free, ctypes.byref(opaque)), "making options")
        check(its.AddOpaqueOptions(self._options, opaque), "adding options")

    # ---- errors -----------------------------------------------------------------------------------------------------

    def raise_errors(self) -> None:
        """Raise the first error of a callback, if there is one."""
        if self.errors:
            error = self.errors[0]
            self.errors.clear()
            if self.compiled.value:
                library().CompiledModelClearErrors(self.compiled)
            raise error

    def failure(self, status: int, what: str, logged: str = "") -> OpError:
        """Return the error for a failed call, with the run time's messages. logged: messages on stderr."""
        said = [self._said(), *(line for line in logged.splitlines() if not line.startswith("INFO"))]
        text = "".join(f"\n  said    {line}" for part in said for line in part.splitlines() if line.strip())
        return also(InvalidArgumentError, RuntimeError)(
            op=OP, what=f"the official run time {what}{text}", found=describe_status(status)
        )

    def _said(self) -> str:
        """Return the messages of the run time's error reporter."""
        its, text = library(), HANDLE()
        if not self.compiled.value or its.CompiledModelGetErrorMessages(self.compiled, ctypes.byref(text)):
            return ""
        said = ctypes.string_at(text.value).decode(errors="replace") if text.value else ""
        c_library().free(text)
        its.CompiledModelClearErrors(self.compiled)
        return said

    def close(self) -> None:
        """Release everything, in the reverse order of dependencies."""
        its = library()
        for handle, destroy in (
            (self.compiled, its.DestroyCompiledModel),
            (self._options, its.DestroyOptions),
            (self.model, its.DestroyModel),
        ):
            if handle.value:
                value, handle.value = handle.value, None
                destroy(value)
        nodes, self.nodes, self._content = self.nodes, [], None
        for node in nodes:
            node.close()


def native_by_node(nodes: Sequence[CustomOpNode]) -> dict[str, bool]:
    """Return for each node, by position and name, whether it runs without Python."""
    return {f"{n.carried.place} ({n.carried.name})": n.is_native for n in nodes}

"""The official run time's objects for one model, and the messages that it writes where something fails.

Lives here: `LoadedModel`; `StderrCapture`, stderr captured while a model is prepared.
Not here: which nodes are replaced (node_replacement.py), shapes and runs (model.py).

The run time writes to file descriptor 2, which other threads of the process share. Output is therefore captured only
where the run time reports (when a model is created, and at the first run after shapes have changed), and lines that are
not the run time's are passed on. A second thread captures nothing: its output joins that of the first.
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
from ...core.errors import InvalidArgumentError, OpError
from ..format import Model
from ..runtime.errors import also
from .custom_op_nodes import CustomOpNode, kernel
from .library import CPU, HANDLE, check, describe_status, environment, library

_ITS_LINE = re.compile(rb"(INFO|WARNING|ERROR|VERBOSE|DEBUG|FATAL):? ")
_CONTINUED = "└".encode()
_lock = forks.lock()


class StderrCapture(contextlib.AbstractContextManager["StderrCapture"]):
    """Within: what the run time writes to stderr goes to `text`, known afterwards; what others write goes on later.

    whole: all of it is taken for the run time's, whose messages may have several lines
    """

    def __init__(self, whole: bool = False) -> None:
        self.text, self._whole = "", whole
        self._redirected = False
        self._stderr: int | None = None  # the descriptor it was, None where it is closed

    def __enter__(self) -> StderrCapture:
        self._catches = _lock.acquire(blocking=False)
        if not self._catches:
            return self
        try:
            if sys.stderr is not None:
                with contextlib.suppress(OSError, ValueError):
                    sys.stderr.flush()
            self._file = tempfile.TemporaryFile()
            with contextlib.suppress(OSError):  # no descriptor to spare: nothing is caught
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
                written = self._file.read()
                its, others = (written, b"") if self._whole else _split_lines(written)
                self.text = its.decode(errors="replace").rstrip()
                if others:
                    with contextlib.suppress(OSError):
                        os.write(2, others)
            self._file.close()
        finally:
            _lock.release()


def _duplicate(descriptor: int) -> int | None:
    """Another descriptor of the same, None where it is closed. Raises OSError where there is none to spare."""
    try:
        return os.dup(descriptor)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        return None


def _split_lines(written: bytes) -> tuple[bytes, bytes]:
    """The run time's lines, and the others."""
    its: list[bytes] = []
    others: list[bytes] = []
    for line in written.splitlines(keepends=True):
        (its if _ITS_LINE.match(line) or line.startswith(_CONTINUED) else others).append(line)
    return b"".join(its), b"".join(others)


OP = "lite.litert.CompiledModel"
_TO_STDERR, _KEPT = 1, 2  # its modes of telling errors


class LoadedModel:
    """Its model, its compiled model, and what these point to, which lives until `close`.

    nodes: that it was given; errors: what went wrong in their callbacks, whose status the run time does not heed
    """

    def __init__(self) -> None:
        self._options, self.model, self.compiled = HANDLE(), HANDLE(), HANDLE()
        self._content: Any = None  # the file's bytes, where the run time reads from them
        self.nodes: list[CustomOpNode] = []
        self.errors: list[BaseException] = []

    def make(self, file: Model, given: Any, threads: int) -> None:
        """Load and compile. given: the path or bytes that may be handed over as they are, else None.

        raises RuntimeErrors that are OpErrors, with what the run time said
        """
        with StderrCapture() as captured:
            status = self._load(file, given) or self._compile(threads, _KEPT)
        if status and self.model.value:  # what was kept is gone with what it did not make: once more, to hear it
            with StderrCapture(whole=True) as captured:
                self._compile(threads, _TO_STDERR)
        if status:
            raise self.failure(status, "does not take the model", captured.text)

    def _load(self, file: Model, given: Any) -> int:
        its = library()
        if isinstance(given, str | os.PathLike):
            status = its.CreateModelFromFile(environment(), os.fsencode(given), ctypes.byref(self.model))
        else:
            self._content = given if isinstance(given, bytes) else file.to_bytes()
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
        """Add a group of settings, in the form that it keeps them: TOML, in memory of C's."""
        c, its, text = c_library(), library(), settings.encode()
        c.malloc.restype, c.malloc.argtypes = HANDLE, [ctypes.c_size_t]
        memory = c.malloc(len(text) + 1)
        ctypes.memmove(memory, text, len(text) + 1)
        made = HANDLE()
        free = ctypes.cast(c.free, HANDLE)
        check(its.CreateOpaqueOptions(group.encode(), memory, free, ctypes.byref(made)), "making options")
        check(its.AddOpaqueOptions(self._options, made), "adding options")

    # ---- what went wrong --------------------------------------------------------------------------------------------

    def raise_errors(self) -> None:
        """Raise the first error out of a callback, if there is one."""
        if self.errors:
            error = self.errors[0]
            self.errors.clear()
            if self.compiled.value:
                library().CompiledModelClearErrors(self.compiled)
            raise error

    def failure(self, status: int, what: str, logged: str = "") -> OpError:
        """The error for a call that failed, with all that the run time said. logged: to stderr."""
        said = [self._said(), *(line for line in logged.splitlines() if not line.startswith("INFO"))]
        text = "".join(f"\n  said    {line}" for part in said for line in part.splitlines() if line.strip())
        return also(InvalidArgumentError, RuntimeError)(
            op=OP, what=f"the official run time {what}{text}", found=describe_status(status)
        )

    def _said(self) -> str:
        """What its error reporter kept."""
        its, text = library(), HANDLE()
        if not self.compiled.value or its.CompiledModelGetErrorMessages(self.compiled, ctypes.byref(text)):
            return ""
        said = ctypes.string_at(text.value).decode(errors="replace") if text.value else ""
        c_library().free(text)
        its.CompiledModelClearErrors(self.compiled)
        return said

    def close(self) -> None:
        """Let go of everything, what refers to others first."""
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
    """For each node, by place and name, whether it runs without Python."""
    return {f"{n.carried.place} ({n.carried.name})": n.is_native for n in nodes}

"""The official run time's objects for one model: its signatures, and the messages that it writes on failures.

Lives here: `LiteRtModel`; `ModelSignature`, `SignatureTensor`, `signatures_of`: inputs and outputs in the official run
time's order; `StderrCapture`, which captures stderr while a model is prepared.
Not here: the choice of replaced nodes (node_replacement.py), shapes and runs (model.py), buffers (invocation.py).

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
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ...compiler.native.image import library as c_library
from ...core import forks
from ...core.errors import InvalidArgumentError, OpError, also
from ..format import Model
from ..ops import types
from ..runtime.constants import tensor_from_file
from ..runtime.introspection import tensor_details
from ..runtime.tensor import Tensor
from .custom_op_nodes import CustomOpNode, kernel
from .library import CPU, HANDLE, SIZE, check, describe_status, environment, library


class SignatureTensor:
    """An input or an output. shape: the current one; the file's has -1 for sizes that may vary between runs."""

    def __init__(self, name: str, tensor: Tensor, is_input: bool) -> None:
        self.name, self.tensor, self.shape = name, tensor, tensor.shape
        self.signature = tensor.signature or tensor.shape
        self.what = f"{'input' if is_input else 'output'} {name!r}"

    @property
    def is_dynamic(self) -> bool:
        """Whether a size may vary between runs."""
        return -1 in self.signature

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Return whether a run may have this shape."""
        return len(shape) == len(self.signature) and all(s in (-1, n) for s, n in zip(self.signature, shape))

    def details(self) -> dict[str, Any]:
        """Return the interpreter's details, with the current shape."""
        details = tensor_details(self.tensor)
        return {**details, "name": self.tensor.name, "shape": np.array(self.shape, np.int32)}

    def brief(self) -> dict[str, Any]:
        """Return the details of the wheel's own compiled model."""
        return {
            "name": self.tensor.name,
            "index": self.tensor.index,
            "dtype": types.name_of(self.tensor.dtype).lower(),
            "shape": list(self.shape),
        }


class ModelSignature:
    """A signature: its key, None if the model has none, and its inputs and outputs in order.

    allocated: whether the run time is prepared for the inputs' shapes. has_run: whether it has run with them
    """

    def __init__(self, key: str | None, inputs: list[SignatureTensor], outputs: list[SignatureTensor]) -> None:
        self.key, self.inputs, self.outputs = key, inputs, outputs
        self.allocated = self.has_run = False
        self.buffers: Any = None  # of inputs and outputs, for `run`
        self.last_buffers: Any = None  # the buffers of the last run: the run time knows their memory

    def input(self, which: int | str) -> int:
        """Return the index of an input, by index or name. Raises InvalidArgumentError."""
        names = [p.name for p in self.inputs]
        if isinstance(which, str) and which in names:
            return names.index(which)
        if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(names):
            return which
        raise InvalidArgumentError(
            op="lite.litert", what="no such input", found=repr(which), wanted=", ".join(names) or "none"
        )


def signatures_of(handle: int, model: Model) -> list[ModelSignature]:
    """Return the signatures of a loaded model, or one for the main subgraph, with the tensors' names.

    handle: the run time's model, which determines the order. model: the same as objects
    """
    count = ctypes.c_size_t()
    check(library().GetNumModelSignatures(handle, ctypes.byref(count)), "counting signatures")
    signatures = []
    for i in range(count.value):
        signature = HANDLE()
        check(library().GetModelSignature(handle, i, ctypes.byref(signature)), "reading a signature")
        key = _text(library().GetSignatureKey, signature)
        definition = next((d for d in model.signature_defs if d.signature_key == key), None)
        main = model.subgraphs[definition.subgraph_index if definition is not None else 0]
        parts = []
        for is_input, side in ((True, "Input"), (False, "Output")):
            names = _names(signature, side)
            if definition is not None:
                by_name = {m.name: int(m.tensor_index) for m in (definition.inputs if is_input else definition.outputs)}
                indices = [by_name[name] for name in names]
                names = _all_names(indices, by_name)
            else:
                indices = [int(t) for t in (main.inputs if is_input else main.outputs)]
            parts.append([SignatureTensor(name, _tensor(model, main, t), is_input) for name, t in zip(names, indices)])
        signatures.append(ModelSignature(None if definition is None else key, *parts))
    return signatures


def _tensor(model: Model, subgraph: Any, index: int) -> Tensor:
    source = subgraph.tensors[index]
    return tensor_from_file(index, source, model.buffers[source.buffer])


def _names(signature: Any, side: str) -> list[str]:
    count = ctypes.c_size_t()
    check(getattr(library(), f"GetNumSignature{side}s")(signature, ctypes.byref(count)), f"counting {side.lower()}s")
    name = getattr(library(), f"GetSignature{side}Name")
    return [_text(name, signature, SIZE(i)) for i in range(count.value)]


def _all_names(indices: list[int], by_name: dict[str, int]) -> list[str]:
    """Return a name for each of these tensors; the run time repeats one name for a tensor with several."""
    names: dict[int, list[str]] = {}
    for name, index in by_name.items():
        names.setdefault(index, []).append(name)
    return [names[i].pop(0) if len(names[i]) > 1 else names[i][0] for i in indices]


def _text(function: Callable[..., int], *arguments: Any) -> str:
    text = ctypes.c_char_p()
    check(function(*arguments, ctypes.byref(text)), "reading a name")
    return (text.value or b"").decode("utf-8", "surrogateescape")


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
        messages = [self._messages(), *(line for line in logged.splitlines() if not line.startswith("INFO"))]
        text = "".join(f"\n  said    {line}" for part in messages for line in part.splitlines() if line.strip())
        return also(InvalidArgumentError, RuntimeError)(
            op=OP, what=f"the official run time {what}{text}", found=describe_status(status)
        )

    def _messages(self) -> str:
        """Return the messages of the run time's error reporter."""
        its, text = library(), HANDLE()
        if not self.compiled.value or its.CompiledModelGetErrorMessages(self.compiled, ctypes.byref(text)):
            return ""
        messages = ctypes.string_at(text.value).decode(errors="replace") if text.value else ""
        c_library().free(text)
        its.CompiledModelClearErrors(self.compiled)
        return messages

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

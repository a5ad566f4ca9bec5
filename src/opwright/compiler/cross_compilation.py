"""Plans for another processor: their kernels are recorded for it instead of loaded into this process.

Lives here: `cross_compiling`, `KernelRecorder`, `RecordedKernel`.
Not here: targets (target.py), the object file that a plan becomes (../aot/), plans (loops/plans.py).

Kernels that pack weights run while a plan is made. The address of a recorded kernel is therefore that of a function of
this process, which compiles the kernel for this processor, with vectors as wide as the target's, when it is called.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..core.lazy_imports import paused
from .native.executor import KERNEL
from .native.store import LoadedCode, find_module
from .target import Target, planning_for, processor

Stage = Callable[[Target, bool], Any]
_recorder: ContextVar[KernelRecorder | None] = ContextVar("kernel recorder", default=None)


class RecordedKernel(NamedTuple):
    """A kernel of a plan. entry: its function; stage: stages it, or the text of its module for the target."""

    entry: str
    stage: Stage | str
    function: Any  # keeps its address valid

    def text(self, target: Target) -> str:
        """Return the text of its module for a target."""
        if isinstance(self.stage, str):
            return self.stage
        with paused():
            return str(self.stage(target, False))


class KernelRecorder:
    """The kernels that plans for a target use, by address. failure: of a kernel that was called here, or None."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.kernels: dict[int, RecordedKernel] = {}
        self.failure: Exception | None = None
        self._addresses: dict[Any, int] = {}

    def record(self, entry: str, stage: Stage | str, key: tuple[str, str] | None) -> LoadedCode:
        """Return the code of a kernel, of which this process has none until it calls it. Arguments as of
        `compile_kernel`."""
        identity = key if key is not None else (entry, stage)
        address = self._addresses.get(identity)
        if address is None:
            index = len(self.kernels)
            function = KERNEL(lambda *arguments: self._call(index, arguments))
            address = self._addresses[identity] = ctypes.cast(function, ctypes.c_void_p).value or 0
            self.kernels[address] = RecordedKernel(entry, stage, function)
        return LoadedCode(address, entry)

    def _call(self, index: int, arguments: tuple[int, int, int, int]) -> int:
        """Run a kernel in this process. A failure must not leave a function that C calls."""
        kernel = list(self.kernels.values())[index]
        native = processor()
        try:
            text = kernel.text(native._replace(features="", vector_bytes=self.target.vector_bytes))
            with planning_for(native):
                status: int = KERNEL(find_module(kernel.entry, text, kernel.entry).address)(*arguments)
            return status
        except Exception as error:
            self.failure = self.failure or error
            return -1


@contextlib.contextmanager
def cross_compiling(target: Target) -> Iterator[KernelRecorder]:
    """Plan for a target in the context, on this thread, and record the kernels."""
    recorder = KernelRecorder(target)
    token = _recorder.set(recorder)
    try:
        with planning_for(target):
            yield recorder
    finally:
        _recorder.reset(token)
    if recorder.failure is not None:
        raise recorder.failure


def current_recorder() -> KernelRecorder | None:
    """Return the recorder of the context, None outside of `cross_compiling`."""
    return _recorder.get()

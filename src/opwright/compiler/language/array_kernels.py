"""Kernels on arrays that Python calls: `@ow.kernel` on a function with annotated parameters.

Lives here: `ArrayKernel`, `ArrayCode` (the code for one choice of constants and layouts).
Not here: arrays and the parallel loop during staging (arrays.py), families (compilation.py), kernels of operators
(../operator_kernels.py).

    @ow.kernel
    def scale(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n"), factor: kl.f32):
        for i in kl.parallel(x.shape[0]):
            y[i] = x[i] * factor

    scale(x, y, 0.5)
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from llvmlite import ir

from ...core import flags
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError
from ..native.executor import Executor, Step, StepError
from ..native.workers import raise_pending
from ..operator_kernels import OperatorKernel
from ..target import Target, host
from .compilation import compile_kernel, text_of
from .entry_points import ArrayFacts, emit_arrays
from .parameters import Array, call_words, number_word

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

MAX_CODES = 64
"""Limit of the choices of constants and layouts for which a kernel caches its code."""


class ArrayKernel:
    """A kernel on arrays, called with NumPy arrays, numbers, and constants by keyword.

    Positional parameters are annotated: `Array(dtype, *sizes)`, or a dtype for a number. Keyword-only parameters are
    compile-time constants; each choice of them, and of the arrays with adjacent elements along the last axis, is
    compiled once. Arrays are changed in place. Returns None.

    raises InvalidArgumentError for arguments of another dtype, rank or size, or a read-only array that it writes;
    OutOfRangeError, naming the kernel's line, for an access outside an array (checked=False omits these guards)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        annotations: Mapping[str, Any],
        checked: bool = True,
        name: str | None = None,
    ) -> None:
        self.function, self.checked, self.name = function, checked, name or function.__name__
        parameters = list(inspect.signature(function).parameters.values())
        self.parameters: dict[str, Any] = {
            p.name: annotations.get(p.name) for p in parameters if p.kind is not p.KEYWORD_ONLY
        }
        self.constants = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        for name, kind in self.parameters.items():
            if not isinstance(kind, Array | DType):
                raise TypeError(
                    f"kernel {self.name}: parameter {name} is annotated with kl.Array(dtype, ...) or a "
                    f"dtype, found {kind!r}"
                )
        self._codes: dict[Any, ArrayCode] = {}
        functools.update_wrapper(self, function)

    def of_operator(self, operator: Any) -> OperatorKernel:
        """Return this kernel as the kernel of an operator, under the operator's name."""
        return OperatorKernel(ArrayKernel(self.function, self.parameters, self.checked, operator.name), operator)

    def source(self, target: Target | None = None, **constants: Any) -> str:
        """Return the LLVM IR before optimization, for arrays with adjacent elements. target: default this machine."""
        with flags.override(show="kernel"):  # adds the lines as comments
            return str(emit_arrays(self, target or host(), self._constants(constants), self._dense())[0])

    def object_code(self, target: Target, **constants: Any) -> bytes:
        """Return the object file for a target, with the function
        `int64 NAME(int64 *words, int64 begin, int64 end, void *)`.

        words: for an array its address, its sizes and its strides in elements; for a number its bits. begin, end: of
        the parallel loop, whose extent `NAME.items` returns; 0, 1 without one. The function returns 0 or the number of
        a failed guard.
        """
        return target.object_code(str(emit_arrays(self, target, self._constants(constants), self._dense())[0]))

    def _dense(self) -> tuple[bool, ...]:
        return tuple(True for k in self.parameters.values() if isinstance(k, Array))

    def _constants(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return all constants, with defaults. Raises InvalidArgumentError for unknown or missing ones."""
        unknown = [n for n in keywords if n not in self.constants]
        constants = {**self.constants, **keywords}
        missing = [n for n, v in constants.items() if v is inspect.Parameter.empty]
        if unknown or missing:
            raise InvalidArgumentError(
                op=self.name,
                what="constants do not fit",
                found=", ".join(keywords) or "none",
                wanted=", ".join(self.constants) or "none",
            )
        return constants

    def __call__(self, *arguments: Any, **constants: Any) -> None:
        if len(arguments) != len(self.parameters):
            raise InvalidArgumentError(
                op=self.name,
                what=f"takes {len(self.parameters)} arguments",
                found=len(arguments),
                wanted=", ".join(self.parameters),
            )
        constants = self._constants(constants)
        words: list[int] = []
        sizes: dict[str, tuple[int, str]] = {}
        dense: list[bool] = []
        for (name, kind), x in zip(self.parameters.items(), arguments):
            if isinstance(kind, DType):
                words.append(number_word(x, kind, self.name, name))
            else:
                dense.append(self._array(name, kind, x, words, sizes))
        self.code(constants, tuple(dense)).run(words, dict(zip(self.parameters, arguments)))

    def code(self, constants: dict[str, Any], dense: tuple[bool, ...]) -> ArrayCode:
        """Return the staged kernel for its constants. dense: for each array, whether the elements along its last axis
        are adjacent.

        raises the errors of its function
        """
        key = (dense, tuple(constants.items()), flags.target)
        code = self._codes.get(key)
        if code is None:
            while len(self._codes) >= MAX_CODES:
                self._codes.pop(next(iter(self._codes)), None)
            code = self._codes[key] = ArrayCode(self, constants, dense)
        return code

    def _array(self, name: str, kind: Array, x: Any, words: list[int], sizes: dict[str, tuple[int, str]]) -> bool:
        """Append an array's words; return whether the elements along its last axis are adjacent."""
        folded = kind.folded(x.shape) if isinstance(x, np.ndarray) and x.dtype == kind.dtype.np else None
        if folded is None:
            description = f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else type(x).__name__
            raise InvalidArgumentError(op=self.name, what=f"argument {name}", found=description, wanted=repr(kind))
        if kind.leading:
            original, x = x, x.reshape(folded)
            if x.size and not np.may_share_memory(x, original):
                raise InvalidArgumentError(
                    op=self.name,
                    what=f"argument {name}: its leading axes cannot be folded without a copy",
                    found=list(original.strides),
                    do="np.ascontiguousarray",
                )
        for axis, (size, label) in enumerate(zip(x.shape, kind.shape)):
            expected, source = (
                (label, "the annotation") if isinstance(label, int) else sizes.setdefault(label, (size, name))
            )
            if expected != size:
                raise InvalidArgumentError(
                    op=self.name,
                    what=f"argument {name}, axis {axis} ({label!r})",
                    found=size,
                    wanted=f"{expected}, as in {source}",
                )
        itemsize = x.dtype.itemsize
        if x.size and any(s % itemsize for s in x.strides):
            raise InvalidArgumentError(
                op=self.name,
                what=f"argument {name}: strides are not multiples of the element size",
                found=list(x.strides),
                do="np.ascontiguousarray",
            )
        strides = [s // itemsize for s in x.strides] if x.size else [1] * x.ndim  # strides of empty arrays are unused
        words += [x.ctypes.data, *x.shape, *strides]
        return not strides or strides[-1] == 1 or x.shape[-1] <= 1

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(f'{n}: {k!r}' for n, k in self.parameters.items())})>"


class ArrayCode:
    """A kernel on arrays for one choice of constants and layouts.

    key: a digest of its instructions, its identity in plans and their files; words: the words of a call; counted:
    whether it has a parallel loop, whose number of items `address(items=True)` computes; fixed: whether that number
    depends only on sizes and numbers; written: the parameters that it writes.
    """

    __slots__ = ("_entries", "_texts", "counted", "fixed", "guards", "key", "name", "words", "written")

    def __init__(self, kernel: ArrayKernel, constants: dict[str, Any], dense: tuple[bool, ...]) -> None:
        staged: list[ArrayFacts] = []
        items = ir.Module(f"{kernel.name}.items")

        def stage(target: Target, polls: bool) -> ir.Module:
            module, facts = emit_arrays(kernel, target, constants, dense, polls, items)
            staged.append(facts)
            return module

        self.name = kernel.name
        self._texts = {kernel.name: text_of(stage), items.name: str(items)}
        (facts,) = staged
        self.guards, self.counted, self.written = facts.guards, facts.parallel, facts.written
        self.key = hashlib.sha256("".join(self._texts.values()).encode()).hexdigest()[:32]
        self.words = call_words(kernel.parameters)
        loads = sum(i.opname == "load" for b in items.globals[items.name].blocks for i in b.instructions)
        self.fixed = loads <= len(self.words)  # further loads read elements or variables
        self._entries: dict[bool, Callable[..., int]] = {}

    def address(self, items: bool = False) -> int:
        """Return the address of its machine code or of its item counter; 0 while another thread compiles it."""
        entry = f"{self.name}.items" if items else self.name
        return compile_kernel(entry, self._texts[entry]).address

    def run(self, words: list[int], arguments: Mapping[str, Any]) -> None:
        """Run the kernel. Raises the error of a failed guard. words: the words of the arguments by parameter."""
        for name in self.written:
            if not arguments[name].flags.writeable:
                raise InvalidArgumentError(op=self.name, what=f"writes argument {name}, which is read-only")
        block = (ctypes.c_int64 * len(words))(*words)
        items = self._entry(items=True)(block, 0, 1, None) if self.counted else 1
        threads = flags.get("num_threads") or 1
        if threads == 1 or items <= 1:
            status = self._entry()(block, 0, items, None)
        else:
            status = self._run_on_threads(words, items, threads)
        if status:
            raise_pending()
            raise self.guards.error(self.name, status)

    def _entry(self, items: bool = False) -> Callable[..., int]:
        entry = self._entries.get(items)
        if entry is None:
            entry = self._entries[items] = _ENTRY(self.address(items))
        return entry

    def _run_on_threads(self, words: list[int], items: int, threads: int) -> int:
        try:
            Executor([Step(self.address(), words, items)], threads=threads).run()
        except StepError as error:
            return error.status
        return 0

    def __repr__(self) -> str:
        return f"{self.name} {self.key}"

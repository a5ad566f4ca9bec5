"""Kernels on arrays that Python calls: `@ow.kernel` on a function whose parameters are annotated.

Lives here: `ArrayKernel`, `parallel`, `unroll`.  Not here: arrays while staged (arrays.py), families (families.py).

    @ow.kernel
    def scale(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n"), factor: kl.f32):
        for i in kl.parallel(x.shape[0]):
            y[i] = x[i] * factor

    scale(x, y, 0.5)
"""

from __future__ import annotations

import ctypes
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from ...autograph.api import to_graph
from ...core import dtypes, flags
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, SignatureError
from ..target import Target, host
from . import branches  # noqa: F401  registers what control flow on values means
from .arrays import Array, ArrayValue
from .bounded import BoundedPointer
from .control import LoopRange, carried
from .functions import divided
from .guards import Guards
from .kinds import I64, KIND, POINTER
from .operators import KernelTrace
from .parameters import number_word
from .places import Pointer
from .trace import WORDS, current, define
from .values import Value, minimum, value

if TYPE_CHECKING:
    from ..operator_kernels import OperatorKernel

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


class _Counted(Exception):
    """Ends the staging that only asks how many items the parallel loop has."""

    def __init__(self, count: Value) -> None:
        self.count = count


class ArrayTrace(KernelTrace):
    """The staging of a kernel on arrays. begin, end: the items of its parallel loop; None to count them alone."""

    division: Any = staticmethod(divided)
    counts_anything = True

    def __init__(
        self,
        builder: ir.IRBuilder,
        name: str,
        target: Target,
        begin: Value | None,
        end: Value | None,
        guards: Guards | None = None,
    ) -> None:
        super().__init__(builder, name, target)
        self.guards = guards
        self.begin, self.end = begin, end
        self.has_parallel = False

    def owned(self, memory: Any, size: int) -> Any:
        """Return the pointer to memory of the kernel's own, which checks its accesses."""
        return memory if self.guards is None or not self.guards.on else BoundedPointer(memory, size, self.guards)


def parallel(n: Any) -> Any:
    """`for i in parallel(n)`: as `range(n)`, its turns in any order, on several threads. Once in a kernel, in no loop.

    What stands outside of it is done by every thread: let it write no array.
    """
    staged = current()
    if not isinstance(staged, ArrayTrace):
        raise TypeError("parallel is for kernels on arrays; a family's items are work.items()")
    if staged.has_parallel:
        raise SignatureError(op=staged.name, what="a kernel has one parallel loop", found="two of them")
    staged.has_parallel = True
    count = value(carried(n))
    if count.dtype.is_floating or count.dtype.is_bool or count.count:
        raise TypeError(f"parallel takes an integer, found {count!r}")
    if count.dtype is dtypes.uint64:
        count = minimum(count, int(dtypes.int64.max))
    count = count.to(dtypes.int64)
    if staged.begin is None:
        raise _Counted(count)
    return LoopRange(staged.begin, staged.end)


def unroll(*limits: int) -> range:
    """`for i in unroll(4)`: so many copies of the body, as `range` of Python's numbers gives, which it insists on."""
    if not all(isinstance(n, int) for n in limits):
        raise TypeError(f"unroll takes Python's numbers, known when the kernel is compiled; found {limits!r}")
    return range(*limits)


class ArrayKernel:
    """A kernel on arrays; called with NumPy arrays, numbers, and constants by keyword.

    Positional parameters are annotated: `Array(dtype, *sizes)`, or a dtype for a number. Keyword-only parameters are
    constants known when it is compiled; each choice of them, and of which arrays have neighbouring elements along the
    last axis, is compiled once. Arrays are changed in place. Returns None.

    raises InvalidArgumentError for arguments of another dtype, rank or size, or a read-only array that it writes;
    OutOfRangeError, naming the kernel's line, for an access outside an array (checked=False leaves these guards out)
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
        self._compiled: dict[Any, _Compiled] = {}
        functools.update_wrapper(self, function)

    def of_operator(self, operator: Any) -> OperatorKernel:
        """This kernel as the kernel of the operator in whose class it stands, whose name it bears from here on."""
        from ..operator_kernels import OperatorKernel

        return OperatorKernel(ArrayKernel(self.function, self.parameters, self.checked, operator.name), operator)

    # ---- staging ------------------------------------------------------------------------------------------------

    def emit(
        self, constants: dict[str, Any], dense: tuple[bool, ...], target: Target, polls: bool = False
    ) -> tuple[ir.Module, _Facts]:
        """Return the module, with a function `NAME` and, where it has a parallel loop, `NAME.items`.

        polls: whether its loops ask now and then whether they are to go on, by a function of this process.
        """
        module = ir.Module(self.name)
        facts = _Facts(Guards(self.checked), set(), False)
        kinds: list[ir.Type] = []
        for kind in self.parameters.values():
            kinds += [KIND[kind]] if isinstance(kind, DType) else [POINTER, *[I64] * (2 * len(kind.shape))]
        self._emit_one(module, kinds, constants, dense, target, facts, counting=True)
        self._emit_one(module, kinds, constants, dense, target, facts, counting=False, polls=polls)
        return module, facts

    def _emit_one(
        self,
        module: ir.Module,
        kinds: list[ir.Type],
        constants: dict[str, Any],
        dense: tuple[bool, ...],
        target: Target,
        facts: _Facts,
        counting: bool,
        polls: bool = False,
    ) -> None:
        name = f"{self.name}.items" if counting else self.name
        b = define(module, name, I64, WORDS)
        words, begin, end, _ = b.function.args
        guards = None if counting else facts.guards  # what only counts items touches no array
        staged = ArrayTrace(b, self.name, target, None, None, guards)
        staged.polls = polls

        def call() -> Any:
            if not counting:
                staged.begin, staged.end = Value(begin, dtypes.int64), Value(end, dtypes.int64)
            given = [
                b.load(b.gep(words, [ir.Constant(I64, i)], source_etype=I64), typ=kind, align=8)
                for i, kind in enumerate(kinds)
            ]
            arguments = self._arguments(given, dense, guards or Guards(False), facts.written)
            return to_graph(self.function)(*arguments, **constants)

        if self.stage(staged, call):
            b.ret(ir.Constant(I64, 1 if counting else 0))
        else:
            facts.parallel = True

    def stage(self, staged: ArrayTrace, call: Callable[[], Any]) -> bool:
        """Stage the kernel by a call of its Python. Return whether that has come to its end.

        It has not where only the items of a parallel loop are counted: then the function returns their number.
        """

        def checked() -> None:
            result = call()
            if result is not None:
                raise SignatureError(
                    op=self.name,
                    what="a kernel on arrays returns nothing",
                    found=repr(result),
                    do="write into an array",
                )

        try:
            staged.run(checked)
        except _Counted as counted:
            staged.builder.ret(counted.count.x)
            for block in staged.builder.function.blocks:  # blocks without a terminator
                if not block.is_terminated:
                    ir.IRBuilder(block).unreachable()
            return False
        return True

    def _arguments(
        self, given: list[ir.Value], dense: tuple[bool, ...], guards: Guards, written: set[str]
    ) -> list[Any]:
        found: list[Any] = []
        named: dict[str, Value] = {}
        rest, arrays = iter(given), iter(dense)
        for name, kind in self.parameters.items():
            if isinstance(kind, DType):
                found.append(Value(next(rest), kind))
                continue
            pointer = Pointer(next(rest), kind.dtype)
            sizes = [Value(next(rest), dtypes.int64) for _ in kind.shape]
            strides: list[Any] = [Value(next(rest), dtypes.int64) for _ in kind.shape]
            if next(arrays) and strides:
                strides[-1] = 1
            shape = [named.setdefault(size, v) if isinstance(size, str) else size for size, v in zip(kind.shape, sizes)]
            found.append(ArrayValue(pointer, shape, strides, guards, name, written))
        return found

    def source(self, target: Target | None = None, **constants: Any) -> str:
        """The LLVM IR before optimisation, for arrays with neighbouring elements. target: by default this machine."""
        with flags.override(show="kernel"):  # which names the lines
            return str(self.emit(self._constants(constants), self._dense(), target or host())[0])

    def object_code(self, target: Target, **constants: Any) -> bytes:
        """The object file for a target, with the function `int64 NAME(int64 *words, int64 begin, int64 end, void *)`.

        words: for an array its address, its sizes and its strides in elements; for a number its bits. begin, end: of
        the parallel loop, whose extent `NAME.items` gives where there is one; else 0, 1. It gives 0, or which guard
        failed.
        """
        return target.object_code(str(self.emit(self._constants(constants), self._dense(), target)[0]))

    def _dense(self) -> tuple[bool, ...]:
        return tuple(True for k in self.parameters.values() if isinstance(k, Array))

    # ---- calling ------------------------------------------------------------------------------------------------

    def _constants(self, given: dict[str, Any]) -> dict[str, Any]:
        unknown = [n for n in given if n not in self.constants]
        found = {**self.constants, **given}
        missing = [n for n, v in found.items() if v is inspect.Parameter.empty]
        if unknown or missing:
            raise InvalidArgumentError(
                op=self.name,
                what="constants do not fit",
                found=", ".join(given) or "none",
                wanted=", ".join(self.constants) or "none",
            )
        return found

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
        key = (tuple(dense), tuple(constants.items()), flags.target)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = _Compiled(self, constants, tuple(dense))
        compiled.run(words, dict(zip(self.parameters, arguments)))

    def _array(self, name: str, kind: Array, x: Any, words: list[int], sizes: dict[str, tuple[int, str]]) -> bool:
        """Append an array's words; whether its last axis has neighbouring elements."""
        folded = kind.folded(x.shape) if isinstance(x, np.ndarray) and x.dtype == kind.dtype.np else None
        if folded is None:
            found = f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else type(x).__name__
            raise InvalidArgumentError(op=self.name, what=f"argument {name}", found=found, wanted=repr(kind))
        if kind.leading:
            whole, x = x, x.reshape(folded)
            if x.size and not np.may_share_memory(x, whole):
                raise InvalidArgumentError(
                    op=self.name,
                    what=f"argument {name}: its first axes are no one axis",
                    found=list(whole.strides),
                    do="np.ascontiguousarray",
                )
        for axis, (size, wanted) in enumerate(zip(x.shape, kind.shape)):
            known = (wanted, "the annotation") if isinstance(wanted, int) else sizes.setdefault(wanted, (size, name))
            if known[0] != size:
                raise InvalidArgumentError(
                    op=self.name,
                    what=f"argument {name}, axis {axis} ({wanted!r})",
                    found=size,
                    wanted=f"{known[0]}, as {known[1]} has it",
                )
        itemsize = x.dtype.itemsize
        if x.size and any(s % itemsize for s in x.strides):
            raise InvalidArgumentError(
                op=self.name,
                what=f"argument {name}: strides are no whole elements",
                found=list(x.strides),
                do="np.ascontiguousarray",
            )
        strides = [s // itemsize for s in x.strides] if x.size else [1] * x.ndim  # of nothing they mean nothing
        words += [x.ctypes.data, *x.shape, *strides]
        return not strides or strides[-1] == 1 or x.shape[-1] <= 1

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(f'{n}: {k!r}' for n, k in self.parameters.items())})>"


class _Facts:
    """What staging found out beside the code."""

    def __init__(self, guards: Guards, written: set[str], parallel: bool) -> None:
        self.guards, self.written, self.parallel = guards, written, parallel


class _Compiled:
    """One choice of constants and layouts as machine code."""

    def __init__(self, kernel: ArrayKernel, constants: dict[str, Any], dense: tuple[bool, ...]) -> None:
        from ..native.image import runs_images
        from ..native.store import find_module

        module, self.facts = kernel.emit(constants, dense, host(), runs_images())
        text = str(module)
        self.name = kernel.name
        self.code = find_module(kernel.name, text, kernel.name)
        self.run_alone = _KERNEL(self.code.address)
        self.count = _KERNEL(find_module(f"{kernel.name}.items", text, f"{kernel.name}.items").address)

    def run(self, words: list[int], arguments: dict[str, Any]) -> None:
        from ..native.interrupts import raise_pending

        for name in self.facts.written:
            if not arguments[name].flags.writeable:
                raise InvalidArgumentError(op=self.name, what=f"writes argument {name}, which is read-only")
        block = (ctypes.c_int64 * len(words))(*words)
        items = self.count(block, 0, 1, None) if self.facts.parallel else 1
        threads = flags.get("num_threads") or 1
        alone = threads == 1 or items <= 1
        status = self.run_alone(block, 0, items, None) if alone else self._shared(words, items, threads)
        if status:
            raise_pending()
            raise self.facts.guards.error(self.name, status)

    def _shared(self, words: list[int], items: int, threads: int) -> int:
        from ..native.executor import Executor, Step, StepError

        try:
            Executor([Step(self.code.address, words, items)], threads=threads).run()
        except StepError as error:
            return error.status
        return 0

"""Compilation of kernels: families, and the compile entry of all kernels.

Lives here: the decorator `family`, the machine code of a family's kernels, the words of their calls; `compile_kernel`,
`text_of`.
Not here: staging a function (trace.py), entry points (entry_points.py, elements.py), the cache of machine code
(../native/store.py). llvmlite is loaded when a kernel is staged.

A family is a set of kernels that differ by compile-time constants:

    i64 NAME(ptr words, i64 begin, i64 end, ptr scratch)

words: eight bytes each (parameters.py). begin, end: the work items of this call. The result is 0 or the number of a
failed guard.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ...core import flags
from ...core.dtypes import DType, int64
from ...core.lazy_imports import paused
from ..cross_compilation import current_recorder
from ..native.executor import Executor, Step
from ..native.image import runs_images
from ..native.store import LoadedCode, find_module, find_or_make
from ..target import Target, host
from .parameters import PointerKind, call_words, is_record, number_word

if TYPE_CHECKING:
    from llvmlite import ir

Stage = Callable[[Target, bool], Any]
"""A function that stages a kernel: target, whether users' loops poll for signals -> LLVM module."""


def text_of(stage: Stage, target: Target | None = None) -> str:
    """Stage a kernel for this process; return the text of its module. target: by default this processor."""
    from .module_text import module_text

    with paused():
        return module_text(stage(target or host(), runs_images()))


def compile_kernel(entry: str, stage: Stage | str, key: tuple[str, str] | None = None) -> LoadedCode:
    """Return the machine code of a kernel for this processor.

    entry: the function of the module to call. stage: stages the kernel, or the text of its module. key: the name and
    constants of one of Opwright's own kernels, which is staged only if it is not cached: keys include digests of the
    sources. Without a key, the instructions are the key, since the dependencies of a user's Python are unknown, and
    the kernel is staged immediately.
    raises the errors of store.find_or_make
    """
    recorder = current_recorder()
    if recorder is not None:
        return recorder.record(entry, stage, key)
    if key is None or isinstance(stage, str):
        return find_module(entry, stage if isinstance(stage, str) else text_of(stage), entry)
    target = host()
    return find_or_make(*key, target, lambda: (text_of(stage, target), entry))


class FamilyCode:
    """Machine code of one kernel. parameters: the type of each word, a dtype or `ptr[dtype]`; guarded: whether it may
    return other than 0. find: returns the address of code that another thread is compiling, 0 until then."""

    __slots__ = ("_address", "_find", "guarded", "name", "parameters")

    def __init__(
        self, address: int, name: str, parameters: tuple[Any, ...], guarded: bool = True, find: Callable[[], int] = int
    ) -> None:
        self._address, self._find = address, find
        self.name, self.parameters, self.guarded = name, parameters, guarded

    @property
    def address(self) -> int:
        """The address of its function; 0 while another thread compiles it."""
        if not self._address:
            self._address = self._find()
        return self._address


class KernelFamily:
    """Kernels of one function. code(**constants): machine code; emit(target, **constants): LLVM's module; guarded:
    whether the function returns a value, the number of a failed guard; hoisted: whether LLVM moves invariant
    instructions out of its loops (target.py: SHORT_PASSES); addressed: see there."""

    def __init__(self, function: Callable[..., Any], hoisted: bool = False, addressed: bool = False) -> None:
        self.function, self.name, self.hoisted, self.addressed = function, function.__name__, hoisted, addressed
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        parameters = list(inspect.signature(function).parameters.values())
        self.parameters = {
            p.name: _annotation(p, function) for p in parameters[1:] if p.kind is p.POSITIONAL_OR_KEYWORD
        }
        self.guarded = inspect.signature(function).return_annotation not in (None, "None")
        variadic = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
        self._codes: dict[Any, FamilyCode] = {}
        self._too_large: dict[Any, Exception] = {}  # constants that cannot be staged are not retried
        self.more = (variadic[0].name, _annotation(variadic[0], function)) if variadic else None
        self.constants = tuple(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL))
        for name, kind in (*self.parameters.items(), *([self.more] if self.more else ())):
            if not isinstance(kind, DType | PointerKind) and not is_record(kind):
                raise TypeError(f"{self.name}: parameter {name} is a dtype, ptr[dtype] or NamedTuple, found {kind!r}")

    @functools.cached_property
    def _words(self) -> dict[str, Any]:
        return {word.parameter: word.kind for word in call_words(self.parameters)}

    def kinds(self, constants: dict[str, Any]) -> dict[str, Any]:
        """Return the type of each word by name; `*more: i64` is as many words as the constant `more` specifies."""
        if self.more is None:
            return self._words
        name, kind = self.more
        return {**self._words, **{f"{name}.{i}": kind for i in range(constants[name])}}

    def arguments(self, words: Iterable[Any], value: Callable[[Any, Any], Any]) -> Iterator[Any]:
        """Yield the function's arguments after the first. value: converts a word to a value of a type."""
        remaining = iter(words)
        for kind in self.parameters.values():
            if is_record(kind):
                yield kind(*(value(next(remaining), int64) for _ in kind._fields))
            else:
                yield value(next(remaining), kind)
        if self.more is not None:
            yield from (value(word, self.more[1]) for word in remaining)

    def entry(self, constants: dict[str, Any]) -> str:
        """Return the readable name of one kernel."""
        return ".".join((self.name, *(f"{k}_{v}" for k, v in constants.items() if isinstance(v, int | str))))[:120]

    def source(self, target: Target | None = None, **constants: Any) -> str:
        """Return the IR of one kernel before optimization, with the lines of Python as comments."""
        with flags.override(show="kernel"):
            return str(self.emit(target or host(), **constants))

    def emit(self, target: Target, **constants: Any) -> ir.Module:
        """Return the module of one kernel before optimization; its function is `entry(constants)`. Raises TooLarge."""
        return self._emit(target, constants, polls=False)

    def _emit(self, target: Target, constants: dict[str, Any], polls: bool) -> ir.Module:
        from .entry_points import emit_family
        from .trace import TooLarge

        try:
            return emit_family(self, target, constants, polls)
        except TooLarge as error:
            self._too_large[target, tuple(constants.items())] = error
            raise

    def code(self, **constants: Any) -> FamilyCode:
        """Return the machine code of one kernel for this processor, compiled once and cached between processes.

        raises the errors of store.find_or_make
        """
        key = host(), tuple(constants.items())
        if key in self._too_large:
            raise self._too_large[key].with_traceback(None)
        codes = self._codes if current_recorder() is None else {}
        code = codes.get(key)
        if code is None:
            module = self.function.__module__
            own = (f"{module}.{self.name}", repr(sorted(constants.items()))) if module.startswith("opwright.") else None
            kinds, entry = tuple(self.kinds(constants).values()), self.entry(constants)

            def find() -> int:
                if key not in codes:
                    address, name = compile_kernel(
                        entry, lambda target, polls: self._emit(target, constants, polls), own
                    )
                    if not address:  # another thread is compiling it
                        return 0
                    codes[key] = FamilyCode(address, name, kinds, self.guarded)
                return codes[key].address

            code = codes[key] if find() else FamilyCode(0, own[0] if own else entry, kinds, self.guarded, find)
        return code

    def compiled_constants(self) -> list[dict[str, Any]]:
        """Return the constants of the kernels for this processor that this process has asked for."""
        return [dict(constants) for target, constants in self._codes if target == host()]

    def words(self, values: Sequence[Any]) -> np.ndarray:
        """Return the words of a call: addresses of arrays, which they keep, pointers and integers, bits of floats."""
        kinds = list(self._words.values())
        if len(values) < len(kinds) or (len(values) > len(kinds) and self.more is None):
            raise TypeError(f"{self.name} takes {', '.join(self.parameters)}; found {len(values)} words")
        kinds += [self.more[1] if self.more else None] * (len(values) - len(kinds))
        words = np.array([word(v, k) for v, k in zip(values, kinds)], np.int64).view(_CallWords)
        words.arrays = [v for v in values if isinstance(v, np.ndarray)]
        return words


class _CallWords(np.ndarray):
    """Words of a call. arrays: those whose addresses are among them, which may have no other owner."""

    arrays: list[np.ndarray]


def _annotation(parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """Return the type of a word. Annotations of other parameters and the result need not exist at run time."""
    annotation = parameter.annotation
    return eval(annotation, function.__globals__) if isinstance(annotation, str) else annotation


def word(v: Any, kind: Any) -> int:
    """Return an argument as a word of a call."""
    if isinstance(kind, PointerKind):
        return int(v.ctypes.data) if isinstance(v, np.ndarray) else int(v)
    return number_word(v, kind)


@overload
def family(function: Callable[..., Any]) -> KernelFamily: ...


@overload
def family(*, hoisted: bool = False, addressed: bool = False) -> Callable[[Callable[..., Any]], KernelFamily]: ...


def family(function: Callable[..., Any] | None = None, *, hoisted: bool = False, addressed: bool = False) -> Any:
    """Return the family of kernels of a function on the language's values, with its keyword-only parameters as
    constants. hoisted: whether LLVM moves invariant instructions out of its loops, which takes longer. addressed:
    whether its inner loops compute no addresses but a base and an index, which saves LLVM's strength reduction."""
    if function is None:
        return functools.partial(KernelFamily, hoisted=hoisted, addressed=addressed)
    return KernelFamily(function)


def call(code: FamilyCode, arguments: Sequence[Any], items: int, scratch: int = 0) -> None:
    """Run one kernel on NumPy arrays and numbers. Raises StepError if a guard fails."""
    words = [word(v, kind) for v, kind in zip(arguments, code.parameters, strict=True)]
    Executor([Step(code.address, words, items, scratch=scratch)], keep=tuple(arguments)).run()

"""Families: kernels that differ by constants known when they are compiled.

Lives here: the decorator `family`, finding a family's machine code, the words it is called with.
Not here: its entry point (entry_points.py, loaded when a kernel is staged), compiling it (compilation.py).

    i64 NAME(ptr words, i64 begin, i64 end, ptr scratch)

words: eight bytes each (parameters.py). begin, end: the work items of this call. The result is 0, or the number of the
guard that failed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import flags
from ...core.dtypes import DType, int64
from ..target import Target, host
from .compilation import compile_kernel
from .parameters import PointerKind, call_words, is_record, number_word

if TYPE_CHECKING:
    from llvmlite import ir


class FamilyCode(NamedTuple):
    """Machine code of one kernel. parameters: what its words are, a dtype or `ptr[dtype]` each."""

    address: int
    name: str
    parameters: tuple[Any, ...]


class Family:
    """Kernels of one function. code(**constants): machine code; emit(target, **constants): LLVM's module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.name = function, function.__name__
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
        self.parameters = {p.name: p.annotation for p in parameters[1:] if p.kind is p.POSITIONAL_OR_KEYWORD}
        more = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
        self._codes: dict[Any, FamilyCode] = {}
        self._too_large: dict[Any, Exception] = {}  # what cannot be staged is not tried again
        self.more = (more[0].name, more[0].annotation) if more else None
        self.constants = tuple(p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL))
        for name, kind in (*self.parameters.items(), *([self.more] if self.more else ())):
            if not isinstance(kind, DType | PointerKind) and not is_record(kind):
                raise TypeError(f"{self.name}: parameter {name} is a dtype, ptr[dtype] or NamedTuple, found {kind!r}")

    @functools.cached_property
    def _words(self) -> dict[str, Any]:
        return {word.parameter: word.kind for word in call_words(self.parameters)}

    def kinds(self, constants: dict[str, Any]) -> dict[str, Any]:
        """The type of each word by name: `*more: i64` stands for as many words as the constant `more` says."""
        if self.more is None:
            return self._words
        name, kind = self.more
        return {**self._words, **{f"{name}.{i}": kind for i in range(constants[name])}}

    def arguments(self, words: Iterable[Any], value: Callable[[Any, Any], Any]) -> Iterator[Any]:
        """Yield the function's arguments after the first, from a value for each word and its type."""
        rest = iter(words)
        for kind in self.parameters.values():
            if is_record(kind):
                yield kind(*(value(next(rest), int64) for _ in kind._fields))
            else:
                yield value(next(rest), kind)
        if self.more is not None:
            yield from (value(word, self.more[1]) for word in rest)

    def entry(self, constants: dict[str, Any]) -> str:
        """The name of one of its kernels, for people."""
        return ".".join((self.name, *(f"{k}_{v}" for k, v in constants.items() if isinstance(v, int | str))))[:120]

    def source(self, target: Target | None = None, **constants: Any) -> str:
        """The IR of one kernel before optimisation, with the lines of Python that it came from."""
        with flags.override(show="kernel"):
            return str(self.emit(target or host(), **constants))

    def emit(self, target: Target, **constants: Any) -> ir.Module:
        """The module of one kernel, before optimisation; its function is `entry(constants)`. Raises TooLarge."""
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
        """Return the machine code of one kernel for this processor; compiled once, and kept between processes.

        raises what store.find_or_make raises
        """
        key = host(), tuple(constants.items())
        if key in self._too_large:
            raise self._too_large[key].with_traceback(None)
        found = self._codes.get(key)
        if found is None:
            module = self.function.__module__
            own = (f"{module}.{self.name}", repr(sorted(constants.items()))) if module.startswith("opwright.") else None
            code = compile_kernel(
                self.entry(constants), lambda target, polls: self._emit(target, constants, polls), own
            )
            found = FamilyCode(code.address, code.name, tuple(self.kinds(constants).values()))
            if found.address:  # else another thread compiles it: asked for again
                self._codes[key] = found
        return found

    def words(self, values: Sequence[Any]) -> np.ndarray:
        """The words of a call: pointers and integers as they are, floats in the low bytes. Arrays by address."""
        kinds = list(self._words.values())
        if len(values) < len(kinds) or (len(values) > len(kinds) and self.more is None):
            raise TypeError(f"{self.name} takes {', '.join(self.parameters)}; found {len(values)} words")
        kinds += [self.more[1] if self.more else None] * (len(values) - len(kinds))
        return np.array([word(v, k) for v, k in zip(values, kinds)], np.int64)


def word(v: Any, kind: Any) -> int:
    """One word of a call."""
    if isinstance(kind, PointerKind):
        return int(v.ctypes.data) if isinstance(v, np.ndarray) else int(v)
    return number_word(v, kind)


def family(function: Callable[..., Any]) -> Family:
    """Make a family of kernels of a function on the language's values; keyword-only parameters are its constants."""
    return Family(function)


def call(code: FamilyCode, arguments: Sequence[Any], items: int, scratch: int = 0) -> None:
    """Run one kernel once, over NumPy arrays and numbers. Raises StepError where a guard failed."""
    from ..native.executor import Executor, Step

    words = [word(v, kind) for v, kind in zip(arguments, code.parameters, strict=True)]
    Executor([Step(code.address, words, items, scratch=scratch)], keep=tuple(arguments)).run()

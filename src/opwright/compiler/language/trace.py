"""The kernel being staged: its instruction builder, its target and its privileges; cached AutoGraph conversions.

Lives here: `Staging`, `current`, `define` (a function of a module), `intrinsic`; `Conversions`, converted functions in
the object cache.
Not here: values (values.py), calls of operators in a kernel (operators.py), the functions of a module around each kind
of kernel (entry_points.py, elements.py), the conversion (autograph/).

Converting a kernel takes as long as staging it. The cache has one object per source file, keyed by everything that a
conversion depends on except the function: this file's content and autograph/. Other sources may change without
another conversion. Within an object, functions are keyed by a digest of their code, so that an entry always matches the
code that this process has loaded.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import marshal
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from llvmlite import ir

from ...autograph.api import conversion_enabled, to_graph
from ...autograph.conversion import set_store
from ...core import files, flags
from ...core.errors import InvalidArgumentError, OpError, compose
from ...core.introspection import OURS, raised_at
from ...ops import dispatch
from ..cache import objects
from ..native.sources import converter, digest_of_file, sources
from ..target import Target
from .builder import InstructionBuilder, Names
from .llvm_types import I64, POINTER

if TYPE_CHECKING:
    from .bounds_checks import Guards
    from .pointers import Pointer

Result = TypeVar("Result")

_KERNELS = os.path.join(OURS, "compiler", "kernels") + os.sep

MAX_VALUES = 100_000
"""Limit of the values that a kernel may compute, unrolled loops included: LLVM would take minutes for more."""

FAST = ("reassoc", "contract", "arcp", "nsz")
"""LLVM flags of `fast_math` for sums, products and quotients. The user's list is in core/flag_effects.py.

NaN and infinities remain defined, and calls of the C library, pow among them, are unaffected.
"""


_FORMAT = "conversions 2"
_PLAIN = 2  # marshal's version without references: bytes do not depend on reference counts
Codes = dict[str, CodeType]


class Conversions:
    """Converted code of functions of this package. Thread-safe; the last writer of a file's object wins."""

    def __init__(self) -> None:
        self._files: dict[tuple[str | None, str], tuple[str, Codes]] = {}  # the object's name and content
        self._changed: set[tuple[str | None, str]] = set()

    def find(self, code: CodeType) -> CodeType | None:
        """Return the cached conversion of a function's code, or None."""
        return self._of(code)[1].get(_digest_of(code))

    def keep(self, code: CodeType, converted: CodeType) -> None:
        """Cache the conversion of a function's code, for the next `write`."""
        key, codes = self._of(code)
        codes[_digest_of(code)] = converted
        self._changed.add(key)

    def write(self) -> None:
        """Write the files that have new conversions."""
        while self._changed:
            key = self._changed.pop()
            folder, _ = key
            name, codes = self._files[key]
            objects(folder).keep(name, marshal.dumps(codes.copy()))

    def _of(self, code: CodeType) -> tuple[tuple[str | None, str], Codes]:
        key = flags.cache_dir, code.co_filename
        entry = self._files.get(key)
        if entry is None:
            name = _name(code.co_filename)
            entry = self._files.setdefault(key, (name, _read(flags.cache_dir, name)))
        return key, entry[1]


def _read(folder: str | None, name: str) -> Codes:
    data = objects(folder).find(name)
    if data is not None:
        with contextlib.suppress(EOFError, ValueError, TypeError):  # authentic, but of another format
            codes: Codes = marshal.loads(data)
            return codes
    return {}


def _digest_of(code: CodeType) -> str:
    return files.digest(marshal.dumps(code, _PLAIN))


def _name(filename: str) -> str:
    """Return the key of a source file's object: of its content and of what converts it, not of other sources."""
    python = sys.implementation.cache_tag or sys.version, importlib.util.MAGIC_NUMBER.hex()
    content, conversion = digest_of_file(filename), converter()
    read = (sources(),) if content is None or conversion is None else (content, conversion)
    return files.digest("\0".join((_FORMAT, *python, *read, filename)).encode())


CONVERSIONS = Conversions()
set_store(CONVERSIONS)


class TooLarge(InvalidArgumentError):
    """A kernel unrolls beyond the limit of compilation. Its forms run another way."""


class Staging:
    """The staging of one kernel. fast: the switch `fast_math`, by default its current value."""

    division: Callable[[str, Any, Any], Any] | None = None
    """Division of integers by arbitrary divisors: `(instruction, a, c) -> quotient`. By default the instruction is used
    directly: Opwright's own kernels divide by sizes and constants."""
    counts_anything = False
    """Whether the limits and steps of ranges are arbitrary; in Opwright's own kernels they cannot overflow."""
    polls = False
    """Whether loops poll for interrupts (control.py), as code of this process does."""
    functions_poll = False
    """Whether loops of inlined scalar functions poll."""
    shares_divisions = False
    """Whether a remainder is computed from the quotient, which saves a second division next to it."""
    has_extremes = True
    """Whether the target has minimum and maximum of integers; else they are a comparison and a select."""
    guards: Guards | None = None
    """The checks of a kernel whose accesses are checked (bounds_checks.py)."""
    is_users = True
    """Whether a user wrote the kernel: errors of its Python are then reported with the kernel's name."""
    needs_source = True
    """Whether a function that AutoGraph cannot convert is an error; else it runs unconverted."""
    budget: Any = None
    """Memory with the number of iterations until the next poll, once a loop counts them."""

    def __init__(self, builder: ir.IRBuilder, name: str, target: Target, fast: bool | None = None) -> None:
        self.builder, self.name, self.target = builder, name, target
        self.fast = bool(flags.fast_math) if fast is None else fast
        self.arithmetic_flags = FAST if self.fast else ()
        self.lines = "kernel" in flags.show  # whether comments of the IR name the lines of Python
        self.values = 0  # computed so far
        self.tiles: dict[int, tuple[Any, Any]] = {}  # sizes of the tiles that the kernel configured
        self._line: tuple[str, int] | None = None

    def run(self, body: Callable[[], Result]) -> Result:
        """Call a function with this kernel as the active interpreter: its operations on values become instructions.

        State is restored by `finally`: an interrupt can end the exit of a context manager.
        """
        state = dispatch.state
        saved = state.trace, state.tapes
        state.trace, state.tapes = self, ()  # type: ignore[assignment]  # operators.py adds what dispatch asks of it
        try:
            with conversion_enabled(True):
                return body()
        finally:
            state.trace, state.tapes = saved

    def stage(
        self, function: Callable[..., Any], arguments: Callable[[], tuple[Sequence[Any], Mapping[str, Any]]]
    ) -> Any:
        """Run a kernel's function, converted by AutoGraph, on the values that `arguments` returns.

        arguments: returns positional and keyword arguments; called within the staging. Returns the function's result
        after `returned`.
        raises InvalidArgumentError, for a user's kernel, instead of exceptions other than OpErrors and the errors of
        Python that name the mistake themselves
        """

        def call() -> Any:
            positional, named = arguments()
            return self.returned(_graph_form(function, self.needs_source)(*positional, **named))

        try:
            return self.run(call)
        except OpError as error:
            if self.is_users and error.op != self.name:  # the error of an operator that the kernel calls
                error.args = (compose(f"in its kernel, {error.message}", op=self.name, at=raised_at(error)),)
                error.op = self.name
            raise
        except (TypeError, ValueError, NameError, MemoryError, ZeroDivisionError):
            raise
        except Exception as error:
            if not self.is_users:
                raise
            what = f"its kernel cannot be staged: {type(error).__name__}: {error}"
            raise InvalidArgumentError(op=self.name, at=raised_at(error), what=what) from error
        finally:
            CONVERSIONS.write()

    def returned(self, result: Any) -> Any:
        """Check and convert the result of the kernel's function."""
        return result

    @contextlib.contextmanager
    def inside(self, builder: ir.IRBuilder) -> Iterator[ir.IRBuilder]:
        """Emit instructions by another builder within the context: into another function of the module."""
        outer, self.builder = self.builder, builder
        try:
            yield builder
        finally:
            self.builder = outer

    def count_value(self) -> None:
        """Count a value. Raises TooLarge beyond `MAX_VALUES`."""
        self.values += 1
        if self.values > MAX_VALUES:
            raise TooLarge(
                op=self.name,
                what="the kernel unrolls too much",
                found=f"more than {MAX_VALUES} values",
                do="kl.loop(n) emits a loop; range(n) copies its body",
            )
        if self.lines:
            self.mark()

    def owned(self, memory: Pointer, size: int) -> Pointer:
        """Return the pointer to stack memory of `size` elements; a kernel with guards checks its accesses."""
        return memory

    def mark(self) -> None:
        """Emit a comment with the line of the kernel's Python if it has changed."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and _is_between(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None and (line := (frame.f_code.co_filename, frame.f_lineno)) != self._line:
            self._line = line
            self.builder.comment(self.line_text(*line))

    def line_text(self, file: str, number: int) -> str:
        """Return the comment for a line."""
        return f"{os.path.basename(file)}:{number}"


@functools.lru_cache(maxsize=1024)
def _graph_form(function: Callable[..., Any], needs_source: bool) -> Callable[..., Any]:
    """Return a function converted by AutoGraph; the conversion takes as long as staging.

    raises ValueError if the source is unavailable, as for functions of the catalogue; with needs_source=False returns
    the function unconverted
    """
    if not needs_source and not inspect.isfunction(function):
        return function
    try:
        converted: Callable[..., Any] = to_graph(function)
        return converted
    except ValueError:
        if needs_source:
            raise
        return function


def _is_between(file: str) -> bool:
    """Return whether a frame belongs to the staging rather than to a kernel."""
    return file.startswith(OURS) and not file.startswith(_KERNELS)


Parameters = Sequence[tuple[str, ir.Type]]

WORK: Parameters = (("begin", I64), ("end", I64), ("scratch", POINTER))
"""Parameters that steps of plans pass to a kernel after its words (entry_points.py)."""


def define(
    module: ir.Module, name: str, result: ir.Type, parameters: Parameters, noalias: bool = False
) -> InstructionBuilder:
    """Add a function to a module; return a builder at the end of its first block.

    parameters: names and types; a name may be empty. noalias: whether the pointers point to disjoint memory
    """
    function = ir.Function(module, ir.FunctionType(result, [kind for _, kind in parameters]), name)
    function.scope = Names(len(parameters) + 1)
    for argument, (label, kind) in zip(function.args, parameters):
        if label:
            argument.name = label
        if noalias and isinstance(kind, ir.PointerType):
            argument.attributes.add("noalias")
    return InstructionBuilder(function.append_basic_block("entry"))


def current() -> Staging:
    """Return the kernel being staged. Raises RuntimeError outside of one."""
    trace = dispatch.state.trace
    if not isinstance(trace, Staging):
        raise RuntimeError("values of the kernel language exist only inside a kernel")
    return trace


def intrinsic(name: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
    """Call the intrinsic llvm.NAME; name includes the type suffix."""
    b = current().builder
    full = f"llvm.{name}"
    kinds = [x.type for x in operands]
    function = b.module.globals.get(full) or ir.Function(b.module, ir.FunctionType(result, kinds), full)
    return b.call(function, operands)

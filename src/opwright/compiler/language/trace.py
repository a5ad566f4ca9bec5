"""The kernel being staged: where its instructions go, which processor they are for, what its author may do.

Lives here: `Staging`, `current`, `define` (a function of a module), `intrinsic`.
Not here: values (values.py), calls of operators in a kernel (operators.py), the functions of a module around each kind
of kernel (entry_points.py, elements.py).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from llvmlite import ir

from ...autograph.api import conversion_enabled, to_graph
from ...autograph.conversion import set_store
from ...core import flags
from ...core.errors import InvalidArgumentError, OpError, compose
from ...core.introspection import OURS, raised_at
from ...ops import dispatch
from ..target import Target
from .conversions import CONVERSIONS
from .kinds import I64, POINTER

set_store(CONVERSIONS)

_KERNELS = os.path.join(OURS, "compiler", "kernels") + os.sep

MOST_VALUES = 100_000
"""Values that a kernel may compute while it is staged, with copies of unrolled loops: LLVM needs minutes for more."""

FAST = ("reassoc", "contract", "arcp", "nsz")
"""The flags that `fast_math` puts on sums, products and quotients. Users' list: core/flag_effects.py.

Never that there are no NaN or infinities, nor anything about calls of the C library, pow among them.
"""


class TooLarge(InvalidArgumentError):
    """A kernel unrolls more than may be compiled. Its forms are run another way."""


class Staging:
    """The staging of one kernel. fast: whether as the switch `fast_math` has it, by default as it is now."""

    division: Any = None
    """How integers are divided by elements of arrays, whatever these are: `(instruction, a, c) -> quotient`. By default
    by the instruction itself: Opwright's own kernels divide by sizes and constants."""
    counts_anything = False
    """Whether ranges have any limits and steps; those of Opwright's own kernels end far from their integer's."""
    polls = False
    """Whether loops ask now and then whether they are to go on (../polling.py), as code of this process does."""
    functions_poll = False
    """Whether the loops of functions on scalars that are inlined poll."""
    shares_divisions = False
    """Whether a remainder is computed of the quotient, which next to it costs no second division."""
    has_extremes = True
    """Whether integers have instructions for the smaller and the larger of two; else a comparison chooses."""
    guards: Any = None
    """The checks of a kernel whose accesses are checked (guards.py)."""
    is_users = True
    """Whether a user wrote the kernel: then errors of its Python are reported with the kernel's name."""
    needs_source = True
    """Whether a function that AutoGraph cannot convert is an error; else it runs as it is."""
    budget: Any = None
    """Where the turns that are left until the next poll are counted, once a loop counts them."""

    def __init__(self, builder: ir.IRBuilder, name: str, target: Target, fast: bool | None = None) -> None:
        self.builder, self.name, self.target = builder, name, target
        self.fast = bool(flags.fast_math) if fast is None else fast
        self.leave = FAST if self.fast else ()  # on sums, products and quotients
        self.lines = "kernel" in flags.show  # whether the IR names the lines of Python
        self.values = 0  # computed so far
        self.tiles: dict[int, tuple[Any, Any]] = {}  # sizes of the tiles that the kernel configured
        self._line: tuple[str, int] | None = None

    def run(self, body: Callable[[], Any]) -> Any:
        """Call a function as the Python of this kernel: what it does with values becomes instructions.

        By statements, as a context manager's exit can be cut off by an interrupt.
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
        """Run a kernel's function, as AutoGraph converts it, on the values that `arguments` returns.

        arguments: positional and keyword arguments; called within the staging. Returns what `returned` makes of the
        function's result.
        raises, of a user's kernel, InvalidArgumentError for what its function raises, but for OpErrors and the errors
        of Python that say by themselves what is wrong with a function
        """

        def call() -> Any:
            positional, named = arguments()
            return self.returned(_graph_form(function, self.needs_source)(*positional, **named))

        try:
            return self.run(call)
        except OpError as error:
            if self.is_users and error.op != self.name:  # it is about an operator that the kernel calls
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
        """Check and convert what the kernel's function returns."""
        return result

    @contextlib.contextmanager
    def inside(self, builder: ir.IRBuilder) -> Iterator[ir.IRBuilder]:
        """Put instructions where another builder does, within: into another function of the module."""
        outer, self.builder = self.builder, builder
        try:
            yield builder
        finally:
            self.builder = outer

    def count_value(self) -> None:
        """Note that one more value is computed. Raises TooLarge beyond `MOST_VALUES`."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise TooLarge(
                op=self.name,
                what="the kernel unrolls too much",
                found=f"more than {MOST_VALUES} values",
                do="kl.loop(n) is a loop where range(n) is copies of its body",
            )
        if self.lines:
            self.mark()

    def owned(self, memory: Any, size: int) -> Any:
        """Return the pointer to memory of the kernel's own. size: in elements, which a kernel with guards checks."""
        return memory

    def mark(self) -> None:
        """Write the line of the kernel's Python into the IR, where it is another than before."""
        frame: Any = sys._getframe(2)
        while frame is not None and _is_between(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None and (line := (frame.f_code.co_filename, frame.f_lineno)) != self._line:
            self._line = line
            self.builder.comment(self.line_text(*line))

    def line_text(self, file: str, number: int) -> str:
        """Return the comment that names a line."""
        return f"{os.path.basename(file)}:{number}"


@functools.lru_cache(maxsize=1024)
def _graph_form(function: Callable[..., Any], needs_source: bool) -> Callable[..., Any]:
    """Return a function as AutoGraph converts it, which takes as long as to stage a kernel.

    raises ValueError where the source is not to be had, as of the catalogue's functions; needs_source=False: returns it
    as it is
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
    """Whether a frame is of what stages kernels, not of a kernel."""
    return file.startswith(OURS) and not file.startswith(_KERNELS)


Parameters = Sequence[tuple[str, ir.Type]]

WORK: Parameters = (("begin", I64), ("end", I64), ("scratch", POINTER))
"""What steps of plans pass to a kernel after its words (entry_points.py)."""


def define(
    module: ir.Module, name: str, result: ir.Type, parameters: Parameters, noalias: bool = False
) -> ir.IRBuilder:
    """Add a function to a module; return a builder at the end of its first block.

    parameters: names and types; a name may be empty. noalias: whether no two pointers lead to the same memory
    """
    function = ir.Function(module, ir.FunctionType(result, [kind for _, kind in parameters]), name)
    for argument, (said, kind) in zip(function.args, parameters):
        if said:
            argument.name = said
        if noalias and isinstance(kind, ir.PointerType):
            argument.attributes.add("noalias")
    return ir.IRBuilder(function.append_basic_block("entry"))


def current() -> Staging:
    """Return the kernel being staged. Raises RuntimeError outside of one."""
    trace = dispatch.state.trace
    if not isinstance(trace, Staging):
        raise RuntimeError("the kernel language's values exist only inside a kernel")
    return trace


def intrinsic(name: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
    """Call llvm.NAME, given whole, with its suffix."""
    b = current().builder
    full = f"llvm.{name}"
    kinds = [x.type for x in operands]
    function = b.module.globals.get(full) or ir.Function(b.module, ir.FunctionType(result, kinds), full)
    return b.call(function, operands)

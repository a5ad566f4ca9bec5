"""The kernel being staged: where its instructions go, which processor they are for, what its author may do.

Lives here: `Staging`, `current`, `define` (a function of a module), `intrinsic`.
Not here: values (values.py), calls of operators in a kernel (operators.py), where each kind of kernel begins and ends
(emitting.py, calling.py, elements.py).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir

from ...autograph.api import conversion_enabled
from ...core import flags
from ...core.errors import InvalidArgumentError
from ...core.introspection import OURS
from ...ops import dispatch
from ..target import Target
from .kinds import I64, POINTER

_KERNELS = os.path.join(OURS, "compiler", "kernels") + os.sep

MOST_VALUES = 100_000
"""Values that a kernel may compute while it is staged, with copies of unrolled loops: LLVM needs minutes for more."""

FAST = ("reassoc", "contract", "arcp", "nsz")
"""The flags that `fast_math` puts on sums, products and quotients. Users' list: core/numerics.py.

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


def _is_between(file: str) -> bool:
    """Whether a frame is of what stages kernels, not of a kernel."""
    return file.startswith(OURS) and not file.startswith(_KERNELS)


Parameters = Sequence[tuple[str, ir.Type]]

WORDS: Parameters = (("words", POINTER), ("begin", I64), ("end", I64), ("scratch", POINTER))
"""The parameters by which steps of plans call a kernel (families.py)."""


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

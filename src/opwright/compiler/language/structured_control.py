"""Control flow of kernels as functions of lists of values, for kernels whose program is data instead of Python.

Lives here: `conditional`, `while_loop`, `fail_if`.
Not here: statements of kernels written in Python (branches.py), polls (control.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType

from llvmlite import ir

from ...autograph.handlers import StatementOptions, StatementState
from .branches import BRANCHES
from .control import spend
from .llvm_types import I64
from .trace import current
from .values import Value

Values = list[Value]


def _variables(count: int, values: Sequence[Value] = ()) -> StatementState:
    """Return the state of a statement on `count` variables, which are unset without values."""
    state = StatementState()
    cells = [CellType(v) for v in values] or [CellType() for _ in range(count)]
    state.cells = [(f"variable {i}", cell) for i, cell in enumerate(cells)]
    state.names = tuple(name for name, _ in state.cells)
    return state


def conditional(test: Value, then: Callable[[], Values], otherwise: Callable[[], Values], count: int) -> Values:
    """Stage both functions as branches; return the `count` values that the chosen one returns. test: a bool."""
    state = _variables(count)
    BRANCHES.if_stmt(test, lambda: state.set(then()), lambda: state.set(otherwise()), state, StatementOptions())
    return state.get()


def while_loop(test: Callable[[Values], Value], body: Callable[[Values], Values], values: Sequence[Value]) -> Values:
    """Stage a loop that replaces the values by body(values) while test(values); return the last ones.

    The loop polls for signals if code of this process does.
    """
    state, polls = _variables(len(values), values), current().functions_poll

    def iteration() -> None:
        state.set(body(state.get()))
        if polls:
            spend(current(), ir.Constant(I64, 1))

    BRANCHES.while_stmt(lambda: test(state.get()), iteration, state, StatementOptions())
    return state.get()


def fail_if(failed: Value, status: int) -> None:
    """End the kernel with a status if a bool is true."""
    b = current().builder
    ending, on = b.append_basic_block("failed"), b.append_basic_block("passed")
    b.cbranch(failed.x, ending, on)
    b.position_at_end(ending)
    b.ret(ir.Constant(I64, status))
    b.position_at_end(on)

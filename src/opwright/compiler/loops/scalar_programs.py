"""Scalar programs: a loop whose condition and body compute single elements only, as data for one kernel.

Lives here: `LoopProgram`, its blocks and steps.
Not here: reading them from a graph (../lowering/scalar_loops.py), their kernel (../kernels/scalar_loops.py), calls of
it (../scalar_loops.py), loops whose bodies have larger tensors.

Values are numbered; each has one element of one dtype. A block computes values from those of the blocks around it.
Programs are constants of a kernel: their text is its key in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.dtypes import DType
from .expressions import Expr


class Compute(NamedTuple):
    """result = expr(operands)."""

    result: int
    expr: Expr
    operands: tuple[int, ...]


class Guard(NamedTuple):
    """End with an error if the operand equals `limit`, is below it, or exceeds it in magnitude, as `Checked`."""

    operand: int
    refused: str
    limit: float


class ReadElement(NamedTuple):
    """result = lists[list][at], of the lists that are read; an error for an index outside of the list."""

    result: int
    list: int
    at: int


class Append(NamedTuple):
    """Append the operand to lists[list], of the lists that grow: once in each iteration of the outermost loop."""

    list: int
    operand: int


class Choose(NamedTuple):
    """results = those of one arm: the first if a bool selector is true, else the second; of an int32 the arm of that
    number, the last if there is none."""

    selector: int
    arms: tuple[Block, ...]
    results: tuple[int, ...]


class Repeat(NamedTuple):
    """results = parameters, which start as `initial` and become the results of `body`, once `cond` is false."""

    initial: tuple[int, ...]
    parameters: tuple[int, ...]
    cond: Block
    body: Block
    results: tuple[int, ...]


class Block(NamedTuple):
    """Steps in order, and the values that the block returns."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]


Step = Compute | Guard | ReadElement | Append | Choose | Repeat


class LoopProgram(NamedTuple):
    """One loop. dtypes: of its inputs, which are the values 0, 1, ...; the first `variables` of them change: the body
    returns their next values. appended, read: element types of the lists that grow by one element in each iteration,
    and of the lists that are read."""

    dtypes: tuple[DType, ...]
    variables: int
    cond: Block
    body: Block
    appended: tuple[DType, ...] = ()
    read: tuple[DType, ...] = ()

    @property
    def size(self) -> int:
        """Number of steps, nested ones included."""
        return _size(self.cond) + _size(self.body)


def _size(block: Block) -> int:
    count = 0
    for step in block.steps:
        inner = step.arms if isinstance(step, Choose) else (step.cond, step.body) if isinstance(step, Repeat) else ()
        count += 1 + sum(map(_size, inner))
    return count

"""Loops on single elements: condition, body and all that they nest are one kernel, whose variables are registers.

Lives here: the kernel of a `LoopProgram`, the layout of its words.
Not here: programs (../loops/scalar_programs.py), their calls (../scalar_loops.py).

The kernel reads and writes words of 8 bytes:

    the inputs, of which the variables have their last values afterwards
    the limit of iterations, and the number of iterations that ran
    the address behind the last element of each list that grows
    the address and the length of each list that is read

A loop whose lists are full returns FULL; called again with more memory, it continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import int64
from .. import language as kl
from ..language import i64, ptr
from ..loops.scalar_programs import Append, Block, Choose, Compute, Guard, LoopProgram, ReadElement, Repeat
from ..scalar_loops import DONE, FULL, REFUSED
from .expression import evaluate
from .moves import is_rejected

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work


@kl.family
def scalar_loop(work: Work, words: ptr[i64], *, program: LoopProgram) -> Value:
    """Run a loop until its condition is false, or for as many iterations as its lists have room for."""
    return _Stager(words, program).run()


class _Stager:
    """Stages the steps of a program. values: those computed so far, by number."""

    def __init__(self, words: Pointer, program: LoopProgram) -> None:
        self.words, self.program = words, program
        self.values: dict[int, Value] = {}
        self.turn = kl.value(0)
        count = len(program.dtypes)
        self.limit, self.turns = count, count + 1
        first = count + 2
        ends = [words[first + i] for i in range(len(program.appended))]
        self.appended = [kl.pointer(end, dtype) for end, dtype in zip(ends, program.appended)]
        first += len(ends)
        self.read = [kl.pointer(words[first + 2 * i], dtype) for i, dtype in enumerate(program.read)]
        self.lengths = [words[first + 2 * i + 1] for i in range(len(program.read))]

    def run(self) -> Value:
        program, words = self.program, self.words
        count = program.variables
        for i, dtype in enumerate(program.dtypes):
            self.values[i] = words.cast(dtype, 8)[i * (8 // dtype.size)]
        limit = words[self.limit]

        def holds(state: list[Value]) -> Value:
            self.values.update(enumerate(state[1:]))
            return self.block(program.cond)[0]

        def test(state: list[Value]) -> Value:
            return (state[0] < limit) & holds(state) if program.appended else holds(state)

        def body(state: list[Value]) -> list[Value]:
            self.turn = state[0]
            self.values.update(enumerate(state[1:]))
            return [state[0] + 1, *self.block(program.body)]

        start = [kl.value(0), *(self.values[i] for i in range(count))]
        state = kl.while_loop(test, body, start)
        words[self.turns] = state[0]
        for i, x in enumerate(state[1:]):
            words.cast(x.dtype, 8)[i * (8 // x.dtype.size)] = x
        return kl.select(holds(state), kl.value(FULL), DONE) if program.appended else kl.value(DONE)

    def block(self, block: Block) -> list[Value]:
        """Stage the steps of a block; return its results."""
        for step in block.steps:
            STAGES[type(step)](self, step)
        return [self.values[n] for n in block.results]

    def compute(self, step: Compute) -> None:
        self.values[step.result] = evaluate(step.expr, [self.values[n] for n in step.operands])

    def guard(self, step: Guard) -> None:
        x = self.values[step.operand]
        kl.fail_if(is_rejected(step.refused, x, kl.full(x.dtype, 0, step.limit)), REFUSED)

    def read_element(self, step: ReadElement) -> None:
        index = self.values[step.at].to(int64)
        kl.fail_if((index < 0) | (index >= self.lengths[step.list]), REFUSED)
        self.values[step.result] = self.read[step.list][index]

    def append(self, step: Append) -> None:
        self.appended[step.list][self.turn] = self.values[step.operand]

    def choose(self, step: Choose) -> None:
        results = self._arm(step, 0)
        self.values.update(zip(step.results, results))

    def _arm(self, step: Choose, first: int) -> list[Value]:
        """Stage the arms from one on."""
        if first == len(step.arms) - 1:
            return self.block(step.arms[first])
        selector = self.values[step.selector]
        chosen = selector if selector.dtype.is_bool else selector == first
        return kl.conditional(
            chosen, lambda: self.block(step.arms[first]), lambda: self._arm(step, first + 1), len(step.results)
        )

    def repeat(self, step: Repeat) -> None:
        def bound(block: Block, state: Sequence[Value]) -> list[Value]:
            self.values.update(zip(step.parameters, state))
            return self.block(block)

        start = [self.values[n] for n in step.initial]
        results = kl.while_loop(lambda s: bound(step.cond, s)[0], lambda s: bound(step.body, s), start)
        self.values.update(zip(step.results, results))


STAGES: dict[type[Any], Callable[[_Stager, Any], None]] = {
    Compute: _Stager.compute,
    Guard: _Stager.guard,
    ReadElement: _Stager.read_element,
    Append: _Stager.append,
    Choose: _Stager.choose,
    Repeat: _Stager.repeat,
}

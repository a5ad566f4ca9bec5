"""Branches and loops as native steps: the executor runs their subgraphs' plans, without Python in between.

Lives here: `BranchStep`, `LoopStep`: a node's words for the executor, kept in step with what is connected.
Not here: running them in Python (subgraph_calls.py, while_loop.py), chains of steps (chains.py).

A subgraph's plan is named in the words while the subgraph is connected to the node: its memory is the node's then. When
another node connects it, or it is planned again, its address becomes 0, which stops the executor there; the node then
runs in Python once, connects it, and offers it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler.native.executor import Executor, Step, StepError
from ...compiler.native.interrupts import state_address
from ...compiler.native.workers import functions
from ...core import flags
from .chains import Chain, copy_rows
from .tensor import DYNAMIC

if TYPE_CHECKING:
    from .subgraph_calls import Callee
    from .while_loop import LoopState

_CHOSEN, _CHOICES, _CHOICE = 3, 4, 3  # words of `branches` and `choice` in executor.ll
_COND, _ANSWER, _BODY, _FIRST, _FIRSTS, _ROWS, _COUNT, _POLL, _WHERE = range(9)  # of `loops`


class BranchStep:
    """IF, CASE, and a call, where there is one to choose. which: the number that chooses, an array of one element."""

    alone = True

    def __init__(self, which: np.ndarray, branches: Sequence[Callee]) -> None:
        self._which, self._branches = which, branches
        self._kept: dict[int, tuple[Chain, np.ndarray]] = {}
        self._off = False  # whether a branch is none for machine code
        threads = branches[0].node.subgraph.context.recommended_num_threads
        at = int(which.__array_interface__["data"][0])
        words = [at, which.dtype.itemsize, len(branches), 0, *(0,) * (_CHOICE * len(branches))]
        self.executor = Executor([Step(functions().branch, words, 1)], inner=threads)
        for callee in branches:
            callee.withdraw = self.withdraw

    def __call__(self) -> None:
        number = int(self._which[0])
        if self._which.dtype == bool:
            number = 1 - number
        self._run(number if 0 <= number < len(self._branches) else len(self._branches) - 1)

    def _run(self, chosen: int) -> None:
        callee = self._branches[chosen]
        callee.run()
        if chosen not in self._kept and not self._off:
            self._offer(chosen, callee)

    def _offer(self, chosen: int, callee: Callee) -> None:
        chain, outs = callee.subgraph.chain, callee.node.tensors_out
        rows = None
        if chain is not None and callee.subgraph.connected is callee and all(t.kind != DYNAMIC for t in outs):
            copied: Any = [(outs[i].array, callee.outputs[i].array) for i in callee.copied]
            rows = copy_rows(copied)
        if chain is None or rows is None:
            self._off = True
            return
        self._kept[chosen] = chain, rows
        self._words(chosen)[:] = chain.executor.address, rows.ctypes.data, len(rows)

    def _words(self, chosen: int) -> np.ndarray:
        start = _CHOICES + _CHOICE * chosen
        return self.executor.words[0][start : start + _CHOICE]

    def withdraw(self, callee: Callee) -> None:
        """A branch is not connected any more; it may have been planned again."""
        self._off = False
        for chosen, one in enumerate(self._branches):
            if one is callee:
                self._kept.pop(chosen, None)
                self._words(chosen)[:] = 0

    def is_ready(self) -> bool:
        """Whether what is offered may run; what is not yet stops the executor."""
        return not self._off and all(chain.is_ready() for chain, _ in self._kept.values())

    def resume(self) -> None:
        """Run the branch that was chosen, from where it stopped."""
        chosen = int(self.executor.words[0][_CHOSEN])
        kept = self._kept.get(chosen)
        if kept is None:
            self._run(chosen)
            return
        callee = self._branches[chosen]
        callee.subgraph.finish(kept[0])
        callee.hand_over()


class LoopStep:
    """WHILE."""

    alone = True

    def __init__(self, state: LoopState) -> None:
        self._state = state
        threads = state.node.subgraph.context.recommended_num_threads
        self._kept: tuple[Any, ...] = ()  # chains and rows that the words name
        self._off = False
        self.executor = Executor([Step(functions().loop, [0] * 9, 1)], inner=threads)
        self.executor.words[0][_POLL] = state_address()
        state.native = self

    def __call__(self) -> None:
        self._state.run()

    def offer(self) -> bool:
        """Name the condition's and the body's plans, now that both are connected; whether they may run."""
        state = self._state
        if not self._kept and not self._off:
            cond, body, node = state.cond.chain, state.body.chain, state.node
            answer = state.cond.tensors[state.cond.outputs[0]]
            first = rows = None
            if cond is not None and body is not None and not state.changing and answer.kind != DYNAMIC:
                copies: Any = [(to.array, t.array) for t, to in zip(state.inputs, node.tensors_out) if not to.is_object]
                first = copy_rows(copies)
                rows, aside = self._turn_rows()
            if cond is None or body is None or first is None or rows is None:
                self._off = True
                return False
            self._kept = cond, body, first, rows, aside
            self.executor.words[0][:_POLL] = (
                cond.executor.address,
                answer.array.__array_interface__["data"][0],  # type: ignore[union-attr]
                body.executor.address,
                first.ctypes.data,
                len(first),
                rows.ctypes.data,
                len(rows),
            )
        return self.is_ready() and bool(self._kept)

    def _turn_rows(self) -> tuple[np.ndarray | None, list[np.ndarray]]:
        """The copies after each turn: over arrays between where variables change places."""
        pairs: list[tuple[Any, Any]] = [(to, t.array) for to, t in self._state.copied if not t.is_object]
        if not self._state.shuffles:
            return copy_rows(pairs), []
        aside = [np.empty_like(array) for _, array in pairs]
        return copy_rows(
            [*((a, array) for a, (_, array) in zip(aside, pairs)), *((to, a) for a, (to, _) in zip(aside, pairs))]
        ), aside

    def withdraw(self) -> None:
        """The condition or the body is not connected any more; it may have been planned again."""
        self._kept, self._off = (), False
        self.executor.words[0][:_POLL] = 0

    def is_ready(self) -> bool:
        """Whether what is offered may run; where nothing is, the executor stops at once."""
        return not self._off and all(chain.is_ready() for chain in self._kept[:2])

    def turns(self) -> bool:
        """Run all turns, from the state as it is; whether it did."""
        if flags.check_inputs or not self.offer():
            return False
        words = self.executor.words[0]
        words[_FIRSTS] = 0
        try:
            self.executor.run()
        except StepError:
            self.resume()
        finally:
            words[_FIRSTS] = len(self._kept[2]) if self._kept else 0
        return True

    def resume(self) -> None:
        """Go on in Python from where the condition or the body stopped."""
        if not self._kept:
            self._state.run()
        else:
            self._state.resume(bool(self.executor.words[0][_WHERE]), *self._kept[:2])

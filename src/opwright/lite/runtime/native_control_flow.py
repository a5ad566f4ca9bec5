"""Branches and loops as native steps: the executor runs their subgraphs' plans without Python in between.

Lives here: `BranchStep`, `LoopStep`: a node's kernel arguments, updated as subgraphs are connected.
Not here: branches and loops in Python (subgraph_calls.py, while_loop.py), chains of steps (chains.py).

The kernel arguments hold the address of a subgraph's plan while the subgraph is connected to the node, which then owns
its memory. When another node connects it, or it is planned again, the address becomes 0, which stops the executor. The
node then runs in Python once, connects the subgraph, and sets the address again.
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

_CHOSEN, _CHOICES, _CHOICE = 3, 4, 3  # kernel arguments of `branches` and `choice` in executor.ll
_COND, _ANSWER, _BODY, _FIRST, _FIRSTS, _ROWS, _COUNT, _POLL, _WHERE = range(9)  # kernel arguments of `loops`


class BranchStep:
    """The step of IF, CASE and calls. which: the selector, an array of one element."""

    alone = True

    def __init__(self, which: np.ndarray, branches: Sequence[Callee]) -> None:
        self._which, self._branches = which, branches
        self._plans: dict[int, tuple[Chain, np.ndarray]] = {}
        self._off = False  # whether some branch cannot run in machine code
        threads = branches[0].node.subgraph.context.recommended_num_threads
        address = int(which.__array_interface__["data"][0])
        words = [address, which.dtype.itemsize, len(branches), 0, *(0,) * (_CHOICE * len(branches))]
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
        if chosen not in self._plans and not self._off:
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
        self._plans[chosen] = chain, rows
        self._words(chosen)[:] = chain.executor.address, rows.ctypes.data, len(rows)

    def _words(self, chosen: int) -> np.ndarray:
        start = _CHOICES + _CHOICE * chosen
        return self.executor.words[0][start : start + _CHOICE]

    def withdraw(self, callee: Callee) -> None:
        """Forget the plan of a branch that is no longer connected, and may be planned again."""
        self._off = False
        for chosen, one in enumerate(self._branches):
            if one is callee:
                self._plans.pop(chosen, None)
                self._words(chosen)[:] = 0

    def is_ready(self) -> bool:
        """Return whether the branches in the kernel arguments may run; any other branch stops the executor."""
        return not self._off and all(chain.is_ready() for chain, _ in self._plans.values())

    def resume(self) -> None:
        """Run the selected branch, from where it stopped."""
        chosen = int(self.executor.words[0][_CHOSEN])
        plan = self._plans.get(chosen)
        if plan is None:
            self._run(chosen)
            return
        callee = self._branches[chosen]
        callee.subgraph.finish(plan[0])
        callee.copy_outputs()


class LoopStep:
    """The step of WHILE."""

    alone = True

    def __init__(self, state: LoopState) -> None:
        self._state = state
        threads = state.node.subgraph.context.recommended_num_threads
        self._plans: tuple[Any, ...] = ()  # chains and rows referenced by the kernel arguments
        self._off = False
        self.executor = Executor([Step(functions().loop, [0] * 9, 1)], inner=threads)
        self.executor.words[0][_POLL] = state_address()
        state.native = self

    def __call__(self) -> None:
        self._state.run()

    def offer(self) -> bool:
        """Set the plans of condition and body, once both are connected; return whether they may run."""
        state = self._state
        if not self._plans and not self._off:
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
            self._plans = cond, body, first, rows, aside
            self.executor.words[0][:_POLL] = (
                cond.executor.address,
                answer.array.__array_interface__["data"][0],  # type: ignore[union-attr]
                body.executor.address,
                first.ctypes.data,
                len(first),
                rows.ctypes.data,
                len(rows),
            )
        return self.is_ready() and bool(self._plans)

    def _turn_rows(self) -> tuple[np.ndarray | None, list[np.ndarray]]:
        """Return the copies after each iteration; permuted variables are copied through temporary arrays."""
        pairs: list[tuple[Any, Any]] = [(to, t.array) for to, t in self._state.copied if not t.is_object]
        if not self._state.shuffles:
            return copy_rows(pairs), []
        aside = [np.empty_like(array) for _, array in pairs]
        return copy_rows(
            [*((a, array) for a, (_, array) in zip(aside, pairs)), *((to, a) for a, (to, _) in zip(aside, pairs))]
        ), aside

    def withdraw(self) -> None:
        """Forget the plans when condition or body is no longer connected."""
        self._plans, self._off = (), False
        self.executor.words[0][:_POLL] = 0

    def is_ready(self) -> bool:
        """Return whether condition and body may run; without plans the executor stops at once."""
        return not self._off and all(chain.is_ready() for chain in self._plans[:2])

    def iterate(self) -> bool:
        """Run all iterations from the current state; return whether machine code could."""
        if flags.check_inputs or not self.offer():
            return False
        words = self.executor.words[0]
        words[_FIRSTS] = 0
        try:
            self.executor.run()
        except StepError:
            self.resume()
        finally:
            words[_FIRSTS] = len(self._plans[2]) if self._plans else 0
        return True

    def resume(self) -> None:
        """Continue in Python where condition or body stopped."""
        if not self._plans:
            self._state.run()
        else:
            self._state.resume(bool(self.executor.words[0][_WHERE]), *self._plans[:2])

"""A plan as the kernel of a delegate's node.

Lives here: `PlanRegistration`: binding a plan to the tensors of the interpreter, running it, times by operator.
Not here: making the plan (delegate.py), running its steps (compiler/loops/plans.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compiler.loops.plans import Plan, Running
from ..registration import Registration
from ..runtime.holding import check_bytes
from ..runtime.node import Context, Node


class PlanRegistration(Registration):
    """Runs a plan in place of the nodes that it was made for."""

    __slots__ = ("_pairs", "_running", "_shapes", "plan")

    def __init__(self, plan: Plan) -> None:
        super().__init__(None, self._free, self._prepare, self._invoke)
        self.plan = plan
        self._running: Running | None = None
        self._pairs: list[tuple[Any, Any]] = []

    def _prepare(self, context: Context, node: Node) -> None:
        names = {b.name: b for b in (*self.plan.graph.inputs, *self.plan.graph.outputs)}
        self._pairs = [(names[f"t{t.index}"], t) for t in (*node.tensors_in, *node.tensors_out)
                       if t is not None and f"t{t.index}" in names]  # fmt: skip
        if self._running is None:
            check_bytes(self.plan.arena, "the arena of compiled operators")
            self.plan.pack()
            self._running = Running(self.plan, context.recommended_num_threads)

    def _fits(self) -> bool:
        return all(buffer.shape == t.shape for buffer, t in self._pairs)

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        self._connect()
        running = self._running
        assert running is not None
        run = running.run

        def step() -> None:
            if context.events is not None:
                profile(running, context)
            else:
                run()

        return step

    def _connect(self) -> None:
        assert self._running is not None
        self._running.connect({buffer: t.array.__array_interface__["data"][0] for buffer, t in self._pairs})

    def _invoke(self, context: Context, node: Node) -> None:
        """Where shapes are known only while the model runs: the nodes one by one, unless they are what was planned."""
        if self._fits():
            self._connect()
            assert self._running is not None
            self._running.run()
            return
        subgraph = node.subgraph
        for inner in node.replaced:
            subgraph.init(inner)
            subgraph._run_deferred(inner)

    def _free(self, context: Context, _: Any) -> None:
        self._running, self._pairs = None, []
        self.plan.forget()


def profile(running: Running, context: Context) -> None:
    """Run once, and tell the context how long each operator took: the first of those that a step stands for."""
    for step, seconds in running.profile():
        if step.form is not None and step.form.origin:
            first, *others = (int(name.rpartition(" ")[2]) for name in step.form.origin)
            context.add_profiling_event(first, seconds)
            for number in others:
                context.add_profiling_event(number, 0.0)

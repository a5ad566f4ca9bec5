"""Variables of a plan as a node runs it: their memory is the resource's own, which steps read and write in place.

Lives here: `Variables`.
Not here: which of them a plan has (uses.py), rules of nodes that read and assign them (compiler/lowering/variables.py),
resources (lite/runtime/resources.py).

A plan is made for variables of one dtype and shape. Where a variable has no value, or another one, the nodes run one by
one, by their own kernels: they raise the error, or leave variables that fit the next time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..runtime.errors import node_error
from ..runtime.node import Context, Node
from ..runtime.resources import RandomSequence, Resources
from .uses import Use


class Variables:
    """The variables of a node that runs a plan. seen: the count of the resources' changes for which the plan's
    addresses are right; CALL_ONCE nodes of the plan have run then."""

    __slots__ = ("_once", "_used", "resources", "seen")

    def __init__(self, node: Node, uses: Sequence[Use]) -> None:
        self.resources: Resources = node.subgraph.resources
        self._used = [(use, use.among(self.resources)) for use in uses]
        self._once = [inner for inner in node.replaced if inner.name == "CALL_ONCE"]
        self.seen = -1

    def __bool__(self) -> bool:
        return bool(self._used or self._once)

    @property
    def is_initialised(self) -> bool:
        """Whether its CALL_ONCE nodes, if any, have run."""
        done = self.resources.initialized
        return all(int(getattr(inner.options, "init_subgraph_index", 0)) in done for inner in self._once)

    def addresses(self, context: Context) -> dict[int, int] | None:
        """Where the variables are now, by the handles' tensors; None where the plan is not for their values. CALL_ONCE
        nodes run first, which comes before all else that has an effect."""
        for inner in self._once:
            context.begin(inner)
            try:
                inner.registration.invoke(context, inner)  # type: ignore[union-attr, misc]
            except Exception as error:
                raise node_error(error, inner, "invoke", context.reported) from error
        for _, variable in self._used:
            if isinstance(variable, RandomSequence):
                _ = variable.state  # which begins with the first run
        if not all(use.fits(variable.value) for use, variable in self._used):
            return None
        self.seen = self.resources.changes
        return {
            use.handle: variable.value.__array_interface__["data"][0]  # type: ignore[union-attr]
            for use, variable in self._used
        }

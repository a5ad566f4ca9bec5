"""Variables of plans, states of random numbers among them: which a plan reads and writes, and where they are.

Lives here: `Use`, kept with a plan; `Variables`, those of a plan as a node runs it.
Not here: rules of nodes that read and assign them (compiler/lowering/variables.py), variables of a whole model
(fast_path.py), resources (lite/runtime/resources.py).

The memory of a variable is the resource's own, which steps read and write in place. A plan is made for variables of one
dtype and shape. Where a variable has no value, or another one, the nodes run one by one, by their own kernels: they
raise the error, or leave variables that fit the next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.named_tuples import NamedTuple
from ..runtime.errors import node_error

if TYPE_CHECKING:
    from ..runtime.node import Context, Node
    from ..runtime.resources import Resources, ResourceVariable


class Use(NamedTuple):
    """A variable of a plan. handle: index of a handle's tensor, the plan's key; shape: of the values that the plan
    assigns, None if it only reads; size: number of elements. seeds: of a sequence of random numbers, whose container
    and name are the numbers of its subgraph and node."""

    handle: int
    container: str
    shared_name: str
    dtype: str
    shape: tuple[int, ...] | None
    size: int
    seeds: tuple[int, int] | None = None

    @classmethod
    def of_note(cls, row: Sequence[Any]) -> Use:
        """Return the use from its JSON value."""
        handle, container, name, dtype, shape, size, seeds = row
        return cls(
            handle,
            container,
            name,
            dtype,
            None if shape is None else tuple(shape),
            size,
            None if seeds is None else tuple(seeds),
        )

    def among(self, resources: Resources) -> ResourceVariable:
        """Return the variable that it refers to."""
        if self.seeds is not None:
            return resources.sequence(int(self.container), int(self.shared_name), self.seeds)
        return resources.variable(self.container, self.shared_name)

    def fits(self, value: np.ndarray | None) -> bool:
        """Whether the plan may read and write the memory of a variable with this value."""
        if value is None or value.dtype != dtypes.as_dtype(self.dtype).np:
            return False
        return value.size == self.size if self.shape is None else value.shape == self.shape


class Variables:
    """The variables of a node that runs a plan. seen: the count of the resources' changes for which the plan's
    addresses are valid; CALL_ONCE nodes of the plan have run then."""

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
        """Return the addresses of the variables, by the handles' tensors; None if the plan is not for their values.
        CALL_ONCE nodes run first, before anything with an effect."""
        for inner in self._once:
            context.begin(inner)
            try:
                inner.registration.invoke(context, inner)  # type: ignore[union-attr, misc]
            except Exception as error:
                raise node_error(error, inner, "invoke", context.reported) from error
        for use, variable in self._used:
            if use.seeds is not None:
                _ = variable.state  # type: ignore[attr-defined]  # a RandomSequence, which begins with the first run
        if not all(use.fits(variable.value) for use, variable in self._used):
            return None
        self.seen = self.resources.changes
        return {
            use.handle: variable.value.__array_interface__["data"][0]  # type: ignore[union-attr]
            for use, variable in self._used
        }

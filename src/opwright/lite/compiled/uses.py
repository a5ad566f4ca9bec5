"""Which variables a plan reads and writes, sequences of random numbers among them, as it is kept with the plan.

Lives here: `Use`.  Not here: variables while a plan runs (variables.py, fast_path.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.named_tuples import NamedTuple

if TYPE_CHECKING:
    from ..runtime.resources import Resources, ResourceVariable


class Use(NamedTuple):
    """A variable of a plan. handle: index of a handle's tensor, by which the plan knows it; shape: of values that the
    plan assigns, None where it only reads; size: number of elements. seeds: of a sequence of random numbers, whose
    container and name are the numbers of its subgraph and node."""

    handle: int
    container: str
    shared_name: str
    dtype: str
    shape: tuple[int, ...] | None
    size: int
    seeds: tuple[int, int] | None = None

    @classmethod
    def of_note(cls, row: Sequence[Any]) -> Use:
        """What JSON has made a list of."""
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
        """The variable that it is of."""
        if self.seeds is not None:
            return resources.sequence(int(self.container), int(self.shared_name), self.seeds)
        return resources.variable(self.container, self.shared_name)

    def fits(self, value: np.ndarray | None) -> bool:
        """Whether the plan may read and write the memory of a variable that has this value."""
        if value is None or value.dtype != dtypes.as_dtype(self.dtype).np:
            return False
        return value.size == self.size if self.shape is None else value.shape == self.shape

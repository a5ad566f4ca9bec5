"""Stacks of cells, and the interface of any cell to the loop over time.

Lives here: StackedRNNCells; output size, initial state and call of a cell, masks of a step.
Not here: the cells (cells.py), the loop (recurrent.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...autograph.api import convert_if_enabled
from ...core import nest
from ...ops import array
from ..layer import Layer
from .cells import GatedCell
from .configurable_layer import ConfigurableLayer
from .recurrent_wrappers import deserialize, serialize

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def output_size_of(cell: Any) -> int:
    """Return the last size of a cell's output."""
    size = getattr(cell, "output_size", None)
    if size is None:
        size = cell.state_size[0] if isinstance(cell.state_size, (list, tuple)) else cell.state_size
    return int(size)


def initial_state(cell: Any, batch_size: Any) -> list[Any]:
    """Return a cell's states before the first step, as a list."""
    make = getattr(cell, "get_initial_state", None)
    if make is not None:
        states = make(batch_size=batch_size)
        return list(states) if isinstance(states, (list, tuple)) else [states]
    sizes = cell.state_size if isinstance(cell.state_size, (list, tuple)) else [cell.state_size]
    return [array.zeros([batch_size, n], getattr(cell, "compute_dtype", "float32")) for n in sizes]


class StackedRNNCells(ConfigurableLayer):
    """Stack of cells, each fed by the output of the previous one. States: a list with each cell's.

    raises ValueError for other objects than cells
    """

    def __init__(self, cells: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            for needed in ("call", "state_size"):
                if not hasattr(cell, needed):
                    raise ValueError(f"All cells must have a `{needed}` attribute. Received cell without it: {cell}")
        self.cells = list(cells)

    @property
    def state_size(self) -> list[Any]:
        """State sizes of every cell."""
        return [c.state_size for c in self.cells]

    @property
    def output_size(self) -> int:
        """Output size of the last cell."""
        return output_size_of(self.cells[-1])

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """Return the initial states of every cell."""
        return [
            initial_state(c, batch_size) if nest.is_nested(c.state_size) else initial_state(c, batch_size)[0]
            for c in self.cells
        ]

    def build(self, input_shape: Any) -> None:
        """Build the cells."""
        shape = tuple(input_shape)
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(shape)
                cell.built = True
            shape = (shape[0], output_size_of(cell))

    def call(self, inputs: Any, states: Any, training: Any = False, **kwargs: Any) -> tuple[Any, list[list[Any] | Any]]:
        """Compute one step through all cells."""
        new = []
        for cell, state in zip(self.cells, states):
            nested = isinstance(state, (list, tuple))
            inputs, after = call_cell(cell, inputs, list(state) if nested else [state], training, **kwargs)
            new.append(list(after) if nested else after[0] if isinstance(after, (list, tuple)) else after)
        return inputs, new

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {**super().get_config(), "cells": [serialize(c) for c in self.cells]}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> StackedRNNCells:
        """Return a new stack with new cells."""
        config = dict(config)
        return cls([deserialize(c, custom_objects) for c in config.pop("cells")], **config)


def call_cell(cell: Any, inputs: Any, states: Any, training: Any, **kwargs: Any) -> Any:
    """Compute one step of any cell; pass `training` to layers whose `call` has it."""
    if isinstance(cell, Layer):
        if cell._call_spec().training:
            kwargs["training"] = training
        return cell(inputs, states, **kwargs)
    return convert_if_enabled(cell if callable(cell) else cell.call)(inputs, states, **kwargs)


def gated_cells(cell: Any) -> list[GatedCell]:
    """Return the gated cells in a cell or a stack of cells."""
    if isinstance(cell, StackedRNNCells):
        return [g for c in cell.cells for g in gated_cells(c)]
    return [cell] if isinstance(cell, GatedCell) else []


def select_by_mask(mask: Any, new: Any, old: Any) -> Tensor:
    """Select `new` where the mask [batch] is true, else `old`."""
    for _ in range((new.shape.rank or 1) - (mask.shape.rank or 1)):
        mask = array.expand_dims(mask, -1)
    return array.where(mask, new, old)

"""The state of a generator of random numbers as a variable, which checkpoints save and restore."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import dispatch
from ..ops.random.generator import Generator, install_state_variable
from .variable import Variable


class GeneratorState(Variable):
    """The state of a generator; assigning it resets the generator."""

    __slots__ = ("_generator",)

    def __init__(self, generator: Generator) -> None:
        before, dispatch.state.trace = dispatch.state.trace, None
        try:
            super().__init__(generator.read_state(), trainable=False, name="StateVar")
        finally:
            dispatch.state.trace = before
        self._generator = generator

    def read_array(self) -> np.ndarray:
        """Return the generator's state."""
        return self._generator.read_state()

    def write_array(self, array: Any) -> None:
        """Reset the generator to a state."""
        self._generator.reset(np.asarray(array))


install_state_variable(GeneratorState)

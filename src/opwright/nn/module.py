"""Module: an object that owns variables.

Lives here: the base class and its walk for variables.  Not here: layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..core import nest
from ..eager.variable import Variable


class Module:
    """Base class of things with variables: attributes that are variables, modules or nestings of them are found.

    name: by default the class's, in snake case.
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name or re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def name(self) -> str:
        """The module's name."""
        return getattr(self, "_name", type(self).__name__)

    def _walk(self, seen: set[int]) -> Iterator[Any]:
        """Variables and modules below this one, each once, attributes in the order of their names."""
        for key in sorted(vars(self)):
            try:
                leaves = nest.flatten(vars(self)[key])
            except (TypeError, ValueError):
                continue  # a nesting that is not ours, such as a dict with keys of mixed types
            for leaf in leaves:
                if isinstance(leaf, (Variable, Module)) and id(leaf) not in seen:
                    seen.add(id(leaf))
                    yield leaf
                    if isinstance(leaf, Module):
                        yield from leaf._walk(seen)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every variable of this module and those it holds."""
        return tuple(v for v in self._walk({id(self)}) if isinstance(v, Variable))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trainable."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are not."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """Every module below this one."""
        return tuple(m for m in self._walk({id(self)}) if isinstance(m, Module))

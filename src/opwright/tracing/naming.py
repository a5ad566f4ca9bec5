"""Name scopes: prefixes of the names of nodes and variables.

Lives here: `name_scope`.  Not here: how a graph keeps its names apart (graph/ir.py).
"""

from __future__ import annotations

from typing import Any

from ..ops import dispatch
from .trace import FuncTrace

state = dispatch.state


class name_scope:
    """A `with` inside which nodes and variables are named `name/...`; gives that prefix.

    name: added to the scopes around; in a traced function with _1, _2 ... where it was used before. One that ends with
    "/", as the prefix does that a scope gives, is entered as it is; an empty one leads out of all scopes.

    raises ValueError for a name that is no string
    """

    __slots__ = ("_name", "_saved")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"name for name_scope must be a string, found {name!r}")
        self._name = name
        self._saved: list[Any] = []

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    def __enter__(self) -> str:
        self._saved.append(state.names)
        name = self._name
        if not name:
            state.names = ()
        elif name.endswith("/"):
            state.names = tuple(name[:-1].split("/"))
        elif isinstance(state.trace, FuncTrace):
            state.names = tuple(state.trace.builder.unique("/".join((*state.names, name))).split("/"))
        else:
            state.names = (*state.names, name)
        return "/".join((*state.names, "")) if state.names else ""

    def __exit__(self, *_: object) -> None:
        state.names = self._saved.pop()

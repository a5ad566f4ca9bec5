"""The state of a library: what runs keep, and its values before the first run.

Lives here: `StateField`, `StateFields`. Not here: its memory and the function that initializes it (modules.py).

Variables that a CALL_ONCE node initializes have the values that it gives them: the interpreter runs it when the
library is built. A variable without a value has a field more, which tells whether a run has assigned it.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from ..compiler.loops.buffers import Buffer
from ..core.errors import UnimplementedError
from ..lite.compiled.whole_graphs import Variable
from ..lite.runtime.resources import CACHES, RandomSequence, ResourceVariable
from ..lite.runtime.subgraph import Subgraph
from ..lite.runtime.tensor import Tensor
from .identifiers import unique


class StateField(NamedTuple):
    """A variable of a library. identifier: its field in C; initial: its elements before the first run; flag: the index
    of the field that is 1 once a run has assigned it, None if it has a value from the beginning."""

    identifier: str
    name: str
    dtype: str
    initial: np.ndarray
    flag: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self.initial.shape

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.initial.nbytes


class StateFields:
    """The state of a library while its signatures are planned. digest: of the model."""

    def __init__(self, digest: str) -> None:
        self.fields: list[StateField] = []
        self._digest = digest
        self._indices: dict[int, int] = {}
        self._variables: list[Any] = []  # kept, as their identities are keys
        self._taken: set[str] = set()

    @property
    def updated_early(self) -> list[str]:
        """Names of the variable tensors and caches, which kernels of layers update; other variables are stored once
        nothing of a run can fail."""
        return [
            v.name if isinstance(v, Tensor) else f"cache {v.shared_name}"
            for v in self._variables
            if isinstance(v, Tensor) or (isinstance(v, ResourceVariable) and v.container == CACHES)
        ]

    def index(self, variable: Variable, memory: Buffer) -> int:
        """Return the index of a variable's field. memory: in a plan."""
        if id(variable) not in self._indices:
            self._variables.append(variable)
            self._indices[id(variable)] = self._add(variable, memory)
        index = self._indices[id(variable)]
        if self.fields[index].initial.size != memory.size:
            raise UnimplementedError(
                op="aot.build", what="the size of a variable depends on that of the inputs", found=repr(variable)
            )
        return index

    def _add(self, variable: Variable, memory: Buffer) -> int:
        flag = None
        if isinstance(variable, RandomSequence):
            name = f"random_{variable.container}_{variable.shared_name}"
            value: Any = variable.state if any(variable.seeds) else self._random(name)
        elif isinstance(variable, ResourceVariable) and variable.container == CACHES:
            name, value = f"cache {variable.shared_name}", np.zeros(memory.shape, memory.dtype.np)
        elif isinstance(variable, ResourceVariable):
            name, value = variable.shared_name, variable.value
        else:
            name, value = variable.name, variable.array
        if value is None:
            flag = len(self.fields)
            self.fields.append(StateField(unique(f"has_{name}", self._taken), name, "bool", np.zeros(1, np.bool_)))
            value = np.zeros(memory.shape, memory.dtype.np)
        elements = np.array(value, memory.dtype.np, order="C").reshape(memory.shape)
        self.fields.append(StateField(unique(name, self._taken), name, memory.dtype.name, elements, flag))
        return len(self.fields) - 1

    def _random(self, name: str) -> np.ndarray:
        """Return the beginning of a sequence without a seed: any, but equal libraries of equal models."""
        words = np.frombuffer(hashlib.sha256(f"{self._digest} {name}".encode()).digest()[:24], "<u8").copy()
        words[1] = 0  # the number of the next block
        return words

    @staticmethod
    def initialise(subgraph: Subgraph) -> None:
        """Run the CALL_ONCE nodes of a prepared subgraph. Raises the OpErrors of their nodes."""
        for node in subgraph.execution_plan:
            if node.name == "CALL_ONCE":
                node.registration.invoke(subgraph.context, node)  # type: ignore[union-attr, misc]

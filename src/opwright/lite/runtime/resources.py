"""Resources: what an interpreter keeps from run to run under a name: variables, hash tables, caches.

Lives here: `Resources` (one an interpreter, shared by its subgraphs), `ResourceVariable`, `RandomSequence`,
`HashTable`, `KeyValueCache`.
Not here: the operators that use them (lite/ops/state.py, lite/ops/tables.py), variable tensors (tensor.py).

A tensor of type RESOURCE holds one of these objects. `reset_all_variables` is for variable tensors and leaves resources
as they are, as in the official run time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import FailedPreconditionError, InvalidArgumentError
from ..ops.bit_generators import begun
from .memory import check_bytes
from .ownership import Ownership

_OBJECT = 64  # bytes that an element of a table or of strings takes besides its own, about


class Resources:
    """The resources of one interpreter, by name; made when first asked for. initialized: subgraphs that ran once.

    changes: how often a variable got other memory: who keeps an address looks it up again when this is another number.
    ownership: which thread uses the interpreter.
    """

    __slots__ = ("caches", "changes", "initialized", "nbytes", "ownership", "sequences", "tables", "variables")

    def __init__(self, ownership: Ownership) -> None:
        self.ownership = ownership
        self.variables: dict[tuple[str, str], ResourceVariable] = {}
        self.sequences: dict[tuple[int, int], RandomSequence] = {}
        self.tables: dict[int, HashTable] = {}
        self.caches: dict[int, KeyValueCache] = {}
        self.initialized: set[int] = set()
        self.nbytes = 0  # of all values together
        self.changes = 0

    def variable(self, container: str, shared_name: str) -> ResourceVariable:
        """The variable of this name in this container."""
        return self.variables.setdefault((container, shared_name), ResourceVariable(self, container, shared_name))

    def sequence(self, subgraph: int, node: int, seeds: tuple[int, int]) -> RandomSequence:
        """The random numbers of this node of this subgraph."""
        found = self.sequences.get((subgraph, node))
        if found is None:
            found = self.sequences[subgraph, node] = RandomSequence(self, subgraph, node, seeds)
        return found

    def restart(self, subgraph: int) -> None:
        """Tensors of a subgraph are allocated: its random numbers begin again."""
        for (owner, _), sequence in self.sequences.items():
            if owner == subgraph and sequence.value is not None:
                sequence.value = None
                self.changes += 1

    def table(self, table_id: int, key_dtype: str, value_dtype: str) -> HashTable:
        """The table of this number. Raises InvalidArgumentError where it has other types elsewhere in the model."""
        found = self.tables.setdefault(table_id, HashTable(self, table_id, key_dtype, value_dtype))
        if (found.key_dtype, found.value_dtype) != (key_dtype, value_dtype):
            raise InvalidArgumentError(
                what=f"hash table {table_id} has other types elsewhere in the model",
                found=f"{key_dtype} to {value_dtype}",
                wanted=f"{found.key_dtype} to {found.value_dtype}",
            )
        return found

    def cache(self, layer: int, shape: tuple[int, ...]) -> KeyValueCache:
        """The keys and values kept for a layer. Raises InvalidArgumentError where another node gave it another shape,
        ResourceExhaustedError."""
        found = self.caches.get(layer)
        if found is None:
            self.resize(0, 8 * math.prod(shape), f"the cache of layer {layer}")
            found = self.caches[layer] = KeyValueCache(shape)
        if found.keys.shape != shape:
            raise InvalidArgumentError(
                what=f"the cache of layer {layer} has another shape elsewhere in the model",
                found=list(shape),
                wanted=list(found.keys.shape),
            )
        return found

    def resize(self, old: int, new: int, what: str) -> None:
        """Count a value of `new` bytes for one of `old`. Raises ResourceExhaustedError above max_activation_bytes."""
        if new > old:
            check_bytes(self.nbytes - old + new, what)
        self.nbytes += new - old


class KeyValueCache:
    """Keys and values of what a layer of a generative model has read. first: by node, the position of entry 0."""

    __slots__ = ("first", "keys", "values")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.keys, self.values = np.zeros((2, *shape), np.float32)
        self.first: dict[Any, int] = {}


class ResourceVariable:
    """A value that stays; of any dtype and shape, which an assignment may change. value: None before the first."""

    __slots__ = ("container", "resources", "shared_name", "value")

    def __init__(self, resources: Resources, container: str, shared_name: str) -> None:
        self.resources, self.container, self.shared_name = resources, container, shared_name
        self.value: np.ndarray | None = None

    def assign(self, value: np.ndarray) -> None:
        """Keep a copy of these elements. Raises ResourceExhaustedError above the flag max_activation_bytes."""
        old = self.value
        if old is not None and old.shape == value.shape and old.dtype == value.dtype and value.dtype != object:
            np.copyto(old, value)
            return
        self.resources.resize(_bytes_of(old), _bytes_of(value), f"{self!r} and all other variables")
        self.value = np.array(value, order="C")
        self.resources.changes += 1

    def read(self) -> np.ndarray:
        """The elements, not to be written to. Raises FailedPreconditionError before the first assignment."""
        if self.value is None:
            raise FailedPreconditionError(
                what=f"{self!r} is read before anything was assigned to it",
                do="assign to it first, or let a CALL_ONCE initialise it",
                wanted="a value",
            )
        return self.value

    def __repr__(self) -> str:
        return f"variable {self.shared_name!r}" + (f" in {self.container!r}" if self.container else "")


class RandomSequence(ResourceVariable):
    """Where the random numbers of a node go on: value is the state of its generator, None before it begins.

    seeds: of the node; both 0: other numbers each time they begin.
    """

    __slots__ = ("seeds",)

    def __init__(self, resources: Resources, subgraph: int, node: int, seeds: tuple[int, int]) -> None:
        super().__init__(resources, str(subgraph), str(node))
        self.seeds = seeds

    @property
    def state(self) -> np.ndarray:
        """The state, which begins now if it has not."""
        if self.value is None:
            self.assign(begun(*self.seeds))
        assert self.value is not None
        return self.value

    def __repr__(self) -> str:
        return f"random numbers of node {self.shared_name} in subgraph {self.container}"


class HashTable:
    """Values by key, filled once: what is imported later is not taken. The first of equal keys counts."""

    __slots__ = ("items", "key_dtype", "resources", "table_id", "value_dtype")

    def __init__(self, resources: Resources, table_id: int, key_dtype: str, value_dtype: str) -> None:
        self.resources, self.table_id, self.key_dtype, self.value_dtype = resources, table_id, key_dtype, value_dtype
        self.items: dict[Any, Any] | None = None

    def fill(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Take keys and values of one shape, if it is empty still. Raises ResourceExhaustedError."""
        if self.items is not None:
            return
        self.resources.resize(0, _bytes_of(keys) + _bytes_of(values) + 2 * _OBJECT * keys.size, repr(self))
        made: dict[Any, Any] = {}
        for key, value in zip(keys.reshape(-1).tolist(), values.reshape(-1).tolist()):
            made.setdefault(key, value)
        self.items = made

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """The value of each key, else the default. Raises FailedPreconditionError before it is filled."""
        items = self.items
        if items is None:
            raise FailedPreconditionError(
                what="hashtable need to be initialized before using",
                found=repr(self),
                do="import keys and values first, such as in a CALL_ONCE",
                wanted="a table that was filled",
            )
        found = np.empty(keys.shape, default.dtype)
        other = default.reshape(-1)[0]
        found.reshape(-1)[...] = [items.get(key, other) for key in keys.reshape(-1).tolist()]
        return found

    def __len__(self) -> int:
        return 0 if self.items is None else len(self.items)

    def __repr__(self) -> str:
        return f"hash table {self.table_id}"


def _bytes_of(array: np.ndarray | None) -> int:
    if array is None:
        return 0
    if array.dtype != object:
        return array.nbytes
    return sum(_OBJECT + len(x) for x in array.reshape(-1).tolist())

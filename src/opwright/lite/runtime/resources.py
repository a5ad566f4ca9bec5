"""Resources: state of an interpreter that persists between runs under a name: variables, hash tables, caches.

Lives here: `Resources` (one for each interpreter, shared by its subgraphs), `ResourceVariable`, `RandomSequence`,
`HashTable`, `KeyValueCache`.
Not here: the operators that use them (lite/ops/state.py, lite/ops/state.py), variable tensors (tensor.py).

A tensor of type RESOURCE holds one of these objects. `reset_all_variables` applies to variable tensors and leaves
resources unchanged, as in the official run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import FailedPreconditionError, InvalidArgumentError
from ...core.lazy_imports import later
from .memory import check_bytes
from .ownership import Ownership

if TYPE_CHECKING:
    from ...scalar import counter_generators
else:  # not needed by the first answer of a model
    counter_generators = later("...scalar.counter_generators", __package__)

_OBJECT = 64  # approximate overhead in bytes of an element of a table or string tensor


CACHES = "\0caches"
"""The container of the variables of caches, which no name in a file equals."""


class Resources:
    """The resources of one interpreter, by name; each is created on first use.

    initialized: subgraphs that ran once. changes: incremented when a variable moves to other memory, which invalidates
    saved addresses. ownership: of the interpreter.
    """

    __slots__ = ("caches", "changes", "initialized", "nbytes", "ownership", "sequences", "tables", "variables")

    def __init__(self, ownership: Ownership) -> None:
        self.ownership = ownership
        self.variables: dict[tuple[str, str], ResourceVariable] = {}
        self.sequences: dict[tuple[int, int], RandomSequence] = {}
        self.tables: dict[int, HashTable] = {}
        self.caches: dict[int, KeyValueCache] = {}
        self.initialized: set[int] = set()
        self.nbytes = 0  # total of all values
        self.changes = 0

    def variable(self, container: str, shared_name: str) -> ResourceVariable:
        """Return the variable of this name in this container."""
        return self.variables.setdefault((container, shared_name), ResourceVariable(self, container, shared_name))

    def sequence(self, subgraph: int, node: int, seeds: tuple[int, int]) -> RandomSequence:
        """Return the random numbers of a node of a subgraph."""
        sequence = self.sequences.get((subgraph, node))
        if sequence is None:
            sequence = self.sequences[subgraph, node] = RandomSequence(self, subgraph, node, seeds)
        return sequence

    def restart(self, subgraph: int) -> None:
        """Reset the random numbers of a subgraph, whose tensors are being allocated."""
        for (owner, _), sequence in self.sequences.items():
            if owner == subgraph and sequence.value is not None:
                sequence.value = None
                self.changes += 1

    def table(self, table_id: int, key_dtype: str, value_dtype: str) -> HashTable:
        """Return the table of this number. Raises InvalidArgumentError if the model declares it with other types
        elsewhere."""
        table = self.tables.setdefault(table_id, HashTable(self, table_id, key_dtype, value_dtype))
        if (table.key_dtype, table.value_dtype) != (key_dtype, value_dtype):
            raise InvalidArgumentError(
                what=f"hash table {table_id} has other types elsewhere in the model",
                found=f"{key_dtype} to {value_dtype}",
                wanted=f"{table.key_dtype} to {table.value_dtype}",
            )
        return table

    def layer(self, number: int) -> KeyValueCache:
        """Return the key-value cache of a layer, which may not have started."""
        return self.caches.setdefault(number, KeyValueCache(self, number))

    def cache(self, layer: int, shape: tuple[int, ...]) -> KeyValueCache:
        """Return the key-value cache of a layer. Raises InvalidArgumentError if another node declares another shape,
        ResourceExhaustedError."""
        cache = self.layer(layer)
        cache.start(shape)
        if cache.keys.shape != shape:
            raise InvalidArgumentError(
                what=f"the cache of layer {layer} has another shape elsewhere in the model",
                found=list(shape),
                wanted=list(cache.keys.shape),
            )
        return cache

    def resize(self, old: int, new: int, what: str) -> None:
        """Account for a value that grows from `old` to `new` bytes. Raises ResourceExhaustedError above
        max_activation_bytes."""
        if new > old:
            check_bytes(self.nbytes - old + new, what)
        self.nbytes += new - old


class ResourceVariable:
    """A value that persists between runs; assignments may change dtype and shape. value: None before the first."""

    __slots__ = ("container", "resources", "shared_name", "value")

    def __init__(self, resources: Resources, container: str, shared_name: str) -> None:
        self.resources, self.container, self.shared_name = resources, container, shared_name
        self.value: np.ndarray | None = None

    def assign(self, value: np.ndarray) -> None:
        """Store a copy of these elements. Raises ResourceExhaustedError above the flag max_activation_bytes."""
        old = self.value
        if old is not None and old.shape == value.shape and old.dtype == value.dtype and value.dtype != object:
            np.copyto(old, value)
            return
        self.resources.resize(_bytes_of(old), _bytes_of(value), f"{self!r} and all other variables")
        self.value = np.array(value, order="C")
        self.resources.changes += 1

    def read(self) -> np.ndarray:
        """Return the elements, not to be modified. Raises FailedPreconditionError before the first assignment."""
        if self.value is None:
            raise FailedPreconditionError(
                what=f"{self!r} is read before anything was assigned to it",
                do="assign to it first, or let a CALL_ONCE initialise it",
                wanted="a value",
            )
        return self.value

    def __repr__(self) -> str:
        return f"variable {self.shared_name!r}" + (f" in {self.container!r}" if self.container else "")


class KeyValueCache:
    """Key-value cache of a layer of a generative model: variables of the interpreter, which plans update in place.

    stored_keys, stored_values: float32 [entries, heads, size]
    """

    __slots__ = ("layer", "resources", "stored_keys", "stored_values")

    def __init__(self, resources: Resources, layer: int) -> None:
        self.resources, self.layer = resources, layer
        self.stored_keys, self.stored_values = (self._variable(name) for name in ("keys", "values"))

    def _variable(self, name: str) -> ResourceVariable:
        return self.resources.variable(CACHES, f"{self.layer} {name}")

    def start(self, shape: tuple[int, ...]) -> None:
        """Fill a cache without entries with zeros. Raises ResourceExhaustedError."""
        for variable in (self.stored_keys, self.stored_values):
            if variable.value is None:
                variable.assign(np.zeros(shape, np.float32))

    @property
    def keys(self) -> np.ndarray:
        """The keys, once the cache has started."""
        return self.stored_keys.read()

    @property
    def values(self) -> np.ndarray:
        """The values, once the cache has started."""
        return self.stored_values.read()

    def first(self, subgraph: int, node: int) -> ResourceVariable:
        """Return the variable with the position of entry 0 as a node counts, int64 [1]; empty before its first run."""
        return self._variable(f"first {subgraph} {node}")


class RandomSequence(ResourceVariable):
    """State of a node's random number generator. value: None before its first use.

    seeds: of the node; if both are 0, each sequence is different.
    """

    __slots__ = ("seeds",)

    def __init__(self, resources: Resources, subgraph: int, node: int, seeds: tuple[int, int]) -> None:
        super().__init__(resources, str(subgraph), str(node))
        self.seeds = seeds

    @property
    def state(self) -> np.ndarray:
        """The generator's state, created on first use."""
        if self.value is None:
            self.assign(counter_generators.begun(*self.seeds))
        assert self.value is not None
        return self.value

    def __repr__(self) -> str:
        return f"random numbers of node {self.shared_name} in subgraph {self.container}"


class HashTable:
    """Values by key, imported once: later imports have no effect. The first of equal keys counts."""

    __slots__ = ("items", "key_dtype", "resources", "table_id", "value_dtype")

    def __init__(self, resources: Resources, table_id: int, key_dtype: str, value_dtype: str) -> None:
        self.resources, self.table_id, self.key_dtype, self.value_dtype = resources, table_id, key_dtype, value_dtype
        self.items: dict[Any, Any] | None = None

    def fill(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Import keys and values of one shape if the table is empty. Raises ResourceExhaustedError."""
        if self.items is not None:
            return
        self.resources.resize(0, _bytes_of(keys) + _bytes_of(values) + 2 * _OBJECT * keys.size, repr(self))
        items: dict[Any, Any] = {}
        for key, value in zip(keys.reshape(-1).tolist(), values.reshape(-1).tolist()):
            items.setdefault(key, value)
        self.items = items

    def find(self, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        """Return the value of each key, or the default. Raises FailedPreconditionError before the import."""
        items = self.items
        if items is None:
            raise FailedPreconditionError(
                what="hashtable need to be initialized before using",
                found=repr(self),
                do="import keys and values first, such as in a CALL_ONCE",
                wanted="a table that was filled",
            )
        values = np.empty(keys.shape, default.dtype)
        other = default.reshape(-1)[0]
        values.reshape(-1)[...] = [items.get(key, other) for key in keys.reshape(-1).tolist()]
        return values

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

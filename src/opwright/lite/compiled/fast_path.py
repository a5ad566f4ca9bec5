"""Run a model that was planned before by its cached plan, without reading the file.

Lives here: `FastPath`: a model's inputs and outputs, running it; `find`, the fast path of a model; `Use`, a variable or
random state as a plan states it, and `Variables`, those of a plan as a node runs it.
Not here: the note that is read (engine.py), the plan cache (compiler/plan_cache.py), rules of nodes that read and
assign variables (compiler/lowering/stateful.py), resources (lite/runtime/resources.py), the interpreter that takes the
fast path until it is asked for more.

An interpreter that runs a whole model as one plan needs of the file no more than the weights that steps read in place.
The properties of inputs and outputs are in a note in the cache, next to the cached plan, under the file's identity.

The memory of a variable is the resource's own, which steps read and write in place. A plan is made for variables of one
dtype and shape. Where a variable has no value, or another one, the nodes run one by one, by their own kernels: they
raise the error, or leave variables that fit the next time.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler import plan_cache
from ...compiler.cache import objects
from ...compiler.native.executor import StepError, StepFailed
from ...compiler.native.host import is_described
from ...core import dtypes, flags
from ...core.errors import OpError, ResourceExhaustedError, also
from ...core.lazy_imports import later
from ...core.named_tuples import NamedTuple
from ..runtime.errors import node_error
from ..runtime.memory import check_bytes
from ..runtime.ownership import DirectTensors
from ..runtime.tensor import ARENA, Tensor

if TYPE_CHECKING:
    from ...scalar import counter_generators
    from ..runtime.node import Context, Node
    from ..runtime.resources import Resources, ResourceVariable
else:
    counter_generators = later("...scalar.counter_generators", __package__)  # most models have no random numbers


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
        """Return whether the plan may read and write the memory of a variable with this value."""
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


FORMAT = 4  # of notes
_mappings: weakref.WeakValueDictionary[str, mmap.mmap] = weakref.WeakValueDictionary()  # of files, by their keys


class ElementType(NamedTuple):
    """The name of a tensor's schema.TensorType, without importing the schema, which takes 2 ms."""

    name: str


class StoredQuantization(NamedTuple):
    """The scale of a tensor's details, from a note."""

    scale: np.ndarray
    zero_point: np.ndarray
    quantized_dimension: int
    details: None = None


class FastPath:
    """One model executed by its cached plan. inputs, outputs: its tensors, in the file's order; tensors: these and the
    variable tensors, such as the state of an LSTM, by index; mapping: the file, which all interpreters of it share,
    like the plan; or the bytes that the caller gave.

    Callers own the interpreter (runtime/ownership.py): nothing here checks whether it runs.
    """

    def __init__(self, mapping: mmap.mmap | bytes, note: dict[str, Any], cached: plan_cache.CachedPlans) -> None:
        self.mapping, self._note, self._cached, self._plan = mapping, note, cached, cached.plans[0]
        self._uses = uses = [Use.of_note(row) for row in cached.note["parts"][0]["variables"]]
        self._variables: dict[tuple[str, str], np.ndarray] | None = None if uses or note["once"] else {}
        self._sequences: dict[Use, np.ndarray] = {}
        tensors: dict[int, Tensor] = {}
        for row in (*note["inputs"], *note["outputs"]):
            if row["index"] not in tensors:
                tensors[row["index"]] = _tensor(row)
        self._shapes = {row["index"]: tuple(row["shape"]) for row in note["outputs"]}
        self._state = [_tensor(row) for row in note["state"]]
        for t in self._state:
            t.is_variable = True
        self.tensors = tensors | {t.index: t for t in self._state}
        self.inputs = [tensors[row["index"]] for row in note["inputs"]]
        self.outputs = [tensors[row["index"]] for row in note["outputs"]]
        self._running: Any = None
        self._closed = False

    @property
    def allocated(self) -> bool:
        """Whether it can run."""
        return self._running is not None

    def allocate(self, threads: int) -> None:
        """Allocate memory for inputs, outputs and the arena. Raises ResourceExhaustedError."""
        if self._running is not None or self._closed:
            return
        try:
            check_bytes(self._plan.arena, "the arena of compiled operators")
            self._bind(threads)
        except OpError as error:
            raise also(type(error), RuntimeError)(f"{error.message}\nAllocateTensors() failed.") from error
        except MemoryError as error:
            raise also(ResourceExhaustedError, RuntimeError)(f"{error}\nAllocateTensors() failed.") from error

    def _bind(self, threads: int) -> None:
        """Allocate the plan's memory and the tensors'. Raises ResourceExhaustedError and MemoryError."""
        base = address_of(np.frombuffer(self.mapping, np.uint8))
        places = self._note["places"]
        running = self._plan.bind(threads, lambda index: base + places[str(index)])
        for t in self.tensors.values():
            t.set_shape(self._shapes.get(t.index, t.shape))
            t.bind(_zeros(t.shape, t.dtype.np))
        self.reset_variables()
        running.connect({i: address_of(t.array) for i, t in self.tensors.items() if i in self._plan.outside})
        self._running = running

    def reset_variables(self) -> None:
        """Reset variable tensors, as `Subgraph.reset_variables`."""
        for t in self._state:
            if t.array is not None:
                t.clear()

    def _initialise(self) -> bool:
        """Give variables the values that CALL_ONCE assigns; return whether the plan is for these. Raises
        ResourceExhaustedError."""
        variables: dict[tuple[str, str], np.ndarray] = {}
        rows = self._note["initial"]
        check_bytes(sum(row["bytes"] for row in rows), "the variables of the model")
        for row in rows:
            array = _zeros(tuple(row["shape"]), dtypes.as_dtype(row["dtype"]).np)
            raw = np.frombuffer(self.mapping, np.uint8, row["bytes"], row["place"])
            array.reshape(-1).view(np.uint8)[:] = raw
            variables[row["container"], row["name"]] = array
        self._sequences = {use: counter_generators.begun(*use.seeds) for use in self._uses if use.seeds is not None}
        values = {use: variables.get((use.container, use.shared_name)) for use in self._uses} | self._sequences
        if not all(use.fits(value) for use, value in values.items()):
            return False
        self._running.connect({use.handle: address_of(value) for use, value in values.items()})
        self._variables = variables
        return True

    def hand_over(self, resources: Resources) -> None:
        """Transfer the variables to an interpreter of the file."""
        if self._variables is not None:
            for (container, name), value in self._variables.items():
                resources.variable(container, name).assign(value)
            resources.initialized.update(self._note["once"])

    def go_on(self, resources: Resources) -> None:
        """Transfer the random numbers to an allocated interpreter."""
        for use, state in self._sequences.items():
            use.among(resources).assign(state)

    def run(self) -> bool:
        """Run the model; return whether it ran. It does not run before it is allocated, if a guard fails, or if a
        variable has no value: the operators' own kernels then report the error."""
        if self._running is None or (self._variables is None and not self._initialise()):
            return False
        try:
            self._running.run()
        except StepFailed:
            return False
        return True

    @property
    def direct(self) -> Callable[[], int]:
        """The native call of `run`, once it is allocated: returns 0 if the model has run."""
        entry: Callable[[], int] = self._running.executor.entry
        return entry

    def check(self, status: int) -> None:
        """Raise the exception of a signal's handler, if that ended a direct run."""
        with contextlib.suppress(StepError):
            self._running.executor.check(status)

    @property
    def reach(self) -> DirectTensors:
        """Return its inputs and outputs, once it is allocated."""
        return DirectTensors.of(self.inputs, self.outputs)

    def close(self) -> None:
        """Release its memory; it cannot run any more."""
        self._closed = True
        self._running = None
        for t in self.tensors.values():
            t.bind(None)


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Return an array aligned to 64 bytes."""
    n = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.zeros(n + 64, np.uint8)
    start = -address_of(raw) % 64
    return raw[start : start + n].view(dtype).reshape(shape)


def _tensor(row: dict[str, Any]) -> Tensor:
    t = Tensor(row["index"], row["name"], ElementType(row["type"]), tuple(row["before"]), ARENA)
    t.signature = None if row["signature"] is None else tuple(row["signature"])
    if row["quantization"] is not None:
        scale, zero, axis = row["quantization"]
        t.quantization = StoredQuantization(np.array(scale, np.float32), np.array(zero, np.int64), axis)
    return t


def digest_of(key: str) -> str:
    """Return the name of a file's note, which is for one processor and these sources, as its plan. key: the file's."""
    return plan_cache.digest_of(f"fast_path {FORMAT} {key}")


def has_places(note: dict[str, Any], cached: plan_cache.CachedPlans) -> bool:
    """Return whether a note has the places of all constants that a plan reads in the file."""
    return all(str(i) in note["places"] for i in cached.plans[0].inside)


def find(path: Any, content: Any = None) -> FastPath | None:
    """Return the fast path of the model in a file or in bytes; None if it has no plan of the entire model."""
    if not path and type(content) is not bytes:  # the bytes of other objects may change
        return None
    key = plan_cache.key_of_model(path, content)
    if key is None or not is_described():  # the digest would import LLVM, to describe a processor without plans
        return None
    stored = objects(flags.cache_dir).find(digest_of(key))
    if stored is None:
        return None
    note = json.loads(stored)
    cached = plan_cache.find(note["plan"]) if plan_cache.serves(note["plan"]) else None
    if cached is None or not has_places(note, cached):
        return None
    mapping = _mappings.get(key) if path else content
    if mapping is None:
        try:
            with open(path, "rb") as file:
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        if plan_cache.key_of_file(path) != key:
            return None
        mapping = _mappings.setdefault(key, mapping)
    if len(mapping) > flags.get("max_model_bytes"):  # an error of who opens the model
        return None
    return FastPath(mapping, note, cached)


def address_of(array: Any) -> int:
    """Return the address of an array's elements."""
    return int(array.__array_interface__["data"][0])

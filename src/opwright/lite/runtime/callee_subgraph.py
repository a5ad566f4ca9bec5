"""Subgraphs that nodes of other subgraphs call: an alternative to `allocate` and `invoke`.

Lives here: `CallableSubgraph`, this part of a Subgraph.
Not here: the calling nodes (subgraph_calls.py, while_loop.py), preparing nodes and planning memory (subgraph.py).

The inputs of such a subgraph are in the node's memory, and so are its outputs where possible:

    accept     as allocate, for inputs of these shapes, without binding
    connect    bind inputs and outputs to the node's arrays, then the kernels
    run        call the bound kernels in order
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from .steps import Chain
from .tensor import ARENA, CONSTANT, OUTSIDE, Tensor


class CallableSubgraph:
    """Part of `Subgraph`: the interface for nodes that run a subgraph."""

    index: int
    tensors: list[Tensor]
    inputs: list[int]
    outputs: list[int]
    ready: bool
    running: bool
    preserve_all: bool
    delegation: Any
    accepted: Any  # the arguments of `accept`; None if no node calls it
    joined: list[Callable[[], Any]]
    _connected: Any
    handles: dict[int, Any]  # by tensor: resources of inputs, the same in every run
    changing: frozenset[int]  # inputs whose shape may differ from run to run
    _arena_outputs: dict[int, Any]  # outputs in the arena, with their arrays
    _plan: Callable[..., None]
    _bind_steps: Callable[[], None]
    _run: Callable[[], None]
    raise_node_error: Callable[..., None]

    def accept(
        self,
        shapes: Sequence[tuple[int, ...]],
        changing: Iterable[int] = (),
        preserve_all: bool = False,
        handles: Mapping[int, Any] = MappingProxyType({}),
    ) -> None:
        """Prepare the subgraph for inputs of these shapes; `connect` comes next.

        changing: positions of inputs whose shape may differ from run to run. handles: by position, the resources of
        inputs that hold the same resource in every run. Returns at once if the subgraph is prepared for the same
        arguments. raises OpErrors that are RuntimeErrors, too
        """
        request = (tuple(shapes), frozenset(changing), dict(handles))
        if self.accepted == request:
            return
        self.ready, self.connected, self.accepted = False, None, None
        self.preserve_all = preserve_all
        for position, (i, shape) in enumerate(zip(self.inputs, shapes)):
            t = self.tensors[i]
            if t.kind == CONSTANT or t.is_variable:
                raise InvalidArgumentError(
                    what=f"input {position} of subgraph {self.index} must not be written",
                    found=repr(t),
                    wanted="a tensor that is neither a constant nor a variable",
                )
            if self.delegation is not None and shape != t.shape:
                self.delegation.resized()
            t.set_kind(OUTSIDE)
            t.set_shape(shape)
        handles_by_tensor = {self.inputs[position]: resource for position, resource in handles.items()}
        changing_tensors = frozenset(self.inputs[i] for i in request[1])
        if self.delegation is not None and (handles_by_tensor, changing_tensors) != (self.handles, self.changing):
            self.delegation.resized()
        self.handles, self.changing = handles_by_tensor, changing_tensors
        self._plan(outside=True)
        self.save_arena_outputs()
        self.accepted = request

    @property
    def connected(self) -> Any:
        """The caller whose arrays the subgraph reads and writes; None if there is none since it was last prepared."""
        return self._connected

    @connected.setter
    def connected(self, by: Any) -> None:
        before, self._connected = self._connected, by
        if before is not by and hasattr(before, "disconnected"):
            before.disconnected()

    @property
    def chain(self) -> Chain | None:
        """The whole subgraph as one native call, None if there is none; valid while the subgraph is connected."""
        joined = self.joined
        return joined[0] if len(joined) == 1 and isinstance(joined[0], Chain) else None

    def finish(self, chain: Chain) -> None:
        """Resume the chain where it stopped. Raises as `run`."""
        was, self.running = self.running, True
        try:
            chain.resume()
        except Exception as error:
            self.raise_node_error(error, [chain], chain)
        finally:
            self.running = was

    def save_arena_outputs(self) -> None:
        """Save the arena addresses of the outputs, and disconnect: the caller connects again."""
        self._arena_outputs = {i: self.tensors[i].array for i in self.outputs if self.tensors[i].kind == ARENA}
        self.connected = None

    def connect(self, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray | None], by: Any) -> None:
        """Bind inputs, except those of changing shape (see `feed`), and outputs to these arrays; None leaves an output
        in the arena.

        An output may be bound to an array only if it is `placeable`. by: the caller.
        """
        self.connected = None
        for i, array in zip(self.inputs, inputs):
            if array is not None:
                self.tensors[i].bind(array)
        for i, array in zip(self.outputs, outputs):
            if i in self._arena_outputs:
                self.tensors[i].bind(self._arena_outputs[i] if array is None else array)
        self._bind_steps()
        self.connected = by

    def placeable(self, position: int) -> bool:
        """Return whether the caller may choose the memory of an output."""
        i = self.outputs[position]
        return i in self._arena_outputs and self.outputs.count(i) == 1

    def feed(self, position: int, array: np.ndarray) -> None:
        """Bind an input of changing shape to an array."""
        t = self.tensors[self.inputs[position]]
        if t.shape != array.shape:
            t.set_shape(array.shape)
        t.bind(array)

    def run(self) -> None:
        """Run every node on behalf of a node of another subgraph."""
        was, self.running = self.running, True
        try:
            self._run()
        finally:
            self.running = was

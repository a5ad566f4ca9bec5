"""Subgraphs that nodes of other subgraphs run: another way to make one ready.

Lives here: `CallableSubgraph`, what a Subgraph has for the nodes that run it.
Not here: these nodes (subgraph_calls.py, while_loop.py), preparing and placing (subgraph.py).

Such a subgraph has its inputs in the node's memory, and its outputs where that can be:

    accept     as allocate, for inputs of these shapes, but for binding
    connect    bind inputs and outputs to the node's arrays, then the kernels
    run        call the bound kernels in order
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from .chains import Chain
from .tensor import ARENA, CONSTANT, OUTSIDE, Tensor


class CallableSubgraph:
    """Part of `Subgraph`."""

    index: int
    tensors: list[Tensor]
    inputs: list[int]
    outputs: list[int]
    ready: bool
    running: bool
    preserve_all: bool
    delegation: Any
    accepted: Any  # what `accept` made it ready for; None where it is no node that runs it
    joined: list[Callable[[], Any]]
    _connected: Any
    handles: dict[int, Any]  # by tensor, the resources that inputs hold each time
    changing: frozenset[int]  # inputs whose shape may be another at each run
    _places: dict[int, Any]  # outputs in the arena, and where there
    _plan: Callable[..., None]
    _bind_steps: Callable[[], None]
    _run: Callable[[], None]
    blame: Callable[..., None]

    def accept(
        self,
        shapes: Sequence[tuple[int, ...]],
        changing: Iterable[int] = (),
        preserve_all: bool = False,
        handles: Mapping[int, Any] = MappingProxyType({}),
    ) -> None:
        """Make it ready for a node that hands it inputs of these shapes; `connect` comes next.

        changing: which of them may have another shape each time. handles: by place, the resources of inputs that hold
        the same one each time. Nothing happens where it is ready for that.
        raises OpErrors that are RuntimeErrors, too
        """
        wanted = (tuple(shapes), frozenset(changing), dict(handles))
        if self.accepted == wanted:
            return
        self.ready, self.connected, self.accepted = False, None, None
        self.preserve_all = preserve_all
        for place, (i, shape) in enumerate(zip(self.inputs, shapes)):
            t = self.tensors[i]
            if t.kind == CONSTANT or t.is_variable:
                raise InvalidArgumentError(
                    what=f"input {place} of subgraph {self.index} is not to be written",
                    found=repr(t),
                    wanted="a tensor without elements of its own",
                )
            if self.delegation is not None and shape != t.shape:
                self.delegation.resized()
            t.set_kind(OUTSIDE)
            t.set_shape(shape)
        known = {self.inputs[place]: resource for place, resource in handles.items()}
        if self.delegation is not None and known != self.handles:
            self.delegation.resized()
        self.handles = known
        self.changing = frozenset(self.inputs[i] for i in wanted[1])
        self._plan(outside=True)
        self.keep_places()
        self.accepted = wanted

    @property
    def connected(self) -> Any:
        """Who connected it last, whose arrays it reads and writes; None where nobody did since it was made ready."""
        return self._connected

    @connected.setter
    def connected(self, by: Any) -> None:
        before, self._connected = self._connected, by
        if before is not by and hasattr(before, "disconnected"):
            before.disconnected()

    @property
    def chain(self) -> Chain | None:
        """All of it as one native call, where there is one: of a subgraph that is connected."""
        joined = self.joined
        return joined[0] if len(joined) == 1 and isinstance(joined[0], Chain) else None

    def finish(self, chain: Chain) -> None:
        """Go on where its chain has stopped. Raises as `run`."""
        was, self.running = self.running, True
        try:
            chain.resume()
        except Exception as error:
            self.blame(error, [chain], chain)
        finally:
            self.running = was

    def keep_places(self) -> None:
        """Remember where outputs are in the arena; who runs it connects it again."""
        self._places = {i: self.tensors[i].array for i in self.outputs if self.tensors[i].kind == ARENA}
        self.connected = None

    def connect(self, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray | None], by: Any) -> None:
        """Bind inputs to these arrays (but those that change, for which there is `feed`), outputs where one is given.

        An output may be given an array only if it is `placeable`. by: who connects.
        """
        self.connected = None
        for i, array in zip(self.inputs, inputs):
            if array is not None:
                self.tensors[i].bind(array)
        for i, array in zip(self.outputs, outputs):
            if i in self._places:
                self.tensors[i].bind(self._places[i] if array is None else array)
        self._bind_steps()
        self.connected = by

    def placeable(self, place: int) -> bool:
        """Whether an output may be written where the node that runs the subgraph wants it."""
        i = self.outputs[place]
        return i in self._places and self.outputs.count(i) == 1

    def feed(self, place: int, array: np.ndarray) -> None:
        """Let an input that may change be this array."""
        t = self.tensors[self.inputs[place]]
        if t.shape != array.shape:
            t.set_shape(array.shape)
        t.bind(array)

    def run(self) -> None:
        """Run every node, for the node of another subgraph that runs this one."""
        was, self.running = self.running, True
        try:
            self._run()
        finally:
            self.running = was

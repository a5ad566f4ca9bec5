"""A node as C sees it: its record, the tensors that it uses, its run.

Lives here: `NativeNode`, `NativeCall`.
Not here: calls of its methods (registration.py), the tensors (c_context.py).
"""

from __future__ import annotations

import ctypes as C
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentError
from ..runtime.node import Node
from ..runtime.tensor import DYNAMIC, OWN, Tensor, TensorView
from . import records
from .c_context import NativeContext
from .records import CCall, CNode, CTensorState


class NativeNode:
    """A node in C. added: indices of the tensors that it added. resized: indices of tensors that the running method
    resized."""

    def __init__(self, c_context: NativeContext, node: Node) -> None:
        self.c_context, self.node = c_context, node
        self.inputs = [-1 if t is None else t.index for t in node.tensors_in]
        self.outputs = [t.index for t in node.tensors_out]
        self.intermediates = [-1 if v is None else v.tensor.index for v in node.intermediates]
        self.temporaries: list[int] = []
        self.added: list[int] = []
        self.resized: set[int] = set()
        self.call: CCall | None = None
        self._keepalive: Any = None  # objects that the call points to
        self.record = c = CNode()
        lists = (self.inputs, self.outputs, self.intermediates, ())
        c.inputs, c.outputs, c.intermediates, c.temporaries = map(c_context.arrays.ints, lists)
        self.address = C.addressof(c)
        self._lists = c.inputs, c.outputs
        c_context.nodes[self.address] = self

    def set_options(self, address: int | None, size: int) -> None:
        """Set a custom operator's options for prepare and invoke."""
        self.record.custom_initial_data, self.record.custom_initial_data_size = address, size

    def touched(self) -> list[int]:
        """Return the distinct indices of all its tensors."""
        indices = dict.fromkeys((*self.inputs, *self.outputs, *self.intermediates, *self.temporaries, *self.added))
        indices.pop(-1, None)
        return list(indices)

    def ends(self) -> list[int]:
        """Return the distinct indices of its inputs and outputs."""
        indices = dict.fromkeys((*self.inputs, *self.outputs))
        indices.pop(-1, None)
        return list(indices)

    def writable(self) -> list[int]:
        """Return the indices of the tensors that it may write: outputs, variables, temporaries."""
        variables = [i for i in self.inputs if i >= 0 and self.c_context.tensors[i].is_variable]
        indices = dict.fromkeys((*self.outputs, *variables, *self.intermediates, *self.added))
        indices.pop(-1, None)
        return list(indices)

    def may_resize(self, i: int) -> bool:
        """Return whether this node determines a tensor's shape."""
        return i in self.outputs or i in self.added or i in self.intermediates

    def keep_sizes(self) -> None:
        """Allocate tensors that an earlier prepare resized and this one did not."""
        for i in self.added:
            t = self.c_context.tensors[i]
            if i in self.c_context.sized_tensors and t.kind in (DYNAMIC, OWN) and t.array is None:
                self.c_context.subgraph.allocate_own(t)

    def check_lists(self) -> None:
        """Raise InvalidArgumentError if C replaced the lists of inputs or outputs."""
        if (self.record.inputs, self.record.outputs) != self._lists:
            raise InvalidArgumentError(
                what="prepare replaced the node's list of inputs or outputs",
                wanted="the original lists; only the temporaries are its own",
            )

    def read_temporaries(self) -> None:
        """Update the list of temporaries from C. Raises InvalidArgumentError for an index that is not one of its
        tensors."""
        c_context = self.c_context
        temporaries = records.read_int_array(self.record.temporaries, len(c_context.tensors))
        added = range(c_context.subgraph.file_tensors, len(c_context.tensors))
        if temporaries is None or any(i not in added for i in temporaries):
            size = C.c_int32.from_address(self.record.temporaries).value
            raise InvalidArgumentError(
                what="the node's temporaries are not among its added tensors",
                found=f"{size} of them" if temporaries is None else temporaries,
                wanted=f"indices {added.start} to {added.stop - 1}"
                if added
                else "indices from TfLiteContext.AddTensors, of which there are none",
            )
        self.temporaries = temporaries
        ready = [i for i in temporaries if i in c_context.sized_tensors and c_context.tensors[i].type is not None]
        self.node.temporaries = [TensorView(c_context.tensors[i], True) for i in ready]

    def as_call(self, registration: int) -> CCall:
        """Return its run as a call, for tensors at their planned addresses; other nodes see its inputs and outputs."""
        array, ends = self.c_context.array, self.ends()
        sizes = [(C.c_int32 * len(t.shape))(*t.shape) for t in (self.c_context.tensors[i] for i in ends)]
        places = (CTensorState * len(ends))(
            *(CTensorState(i, array[i].type, array[i].bytes, len(s), C.addressof(s)) for i, s in zip(ends, sizes))
        )
        self._keepalive = sizes, places
        return CCall(registration, self.c_context.address, self.address, C.addressof(places), len(places))

    def release(self) -> None:
        """Free its arrays."""
        c = self.record  # where C has set another list it has freed ours
        for address in (c.inputs, c.outputs, c.intermediates, c.temporaries):
            self.c_context.arrays.free(address)
        c.inputs = c.outputs = c.intermediates = c.temporaries = None
        self.c_context.nodes.pop(self.address, None)


class NativeCall(NamedTuple):
    """A node's run in C: `int run(call)`.

    places: by tensor, the addresses of the words that hold the address of its elements. They are valid while the word
    at `where` is `expected`: C may add tensors in a run, which moves the array of tensors.
    """

    run: int
    call: int
    places: list[tuple[Tensor, list[int]]]
    where: int
    expected: int

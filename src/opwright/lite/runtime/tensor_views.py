"""Views of tensors' elements, held by a program or passed to a node's Python method for one call.

Lives here: `export_view`, `check_exported_views`; `ViewTracker`, of one node.  Not here: copies (tensor_io.py).

While a program holds a view the elements must not move. A view's base is a memoryview, and NumPy makes an array over it
the base of every slice: the array lives as long as the last slice, and a weak reference observes that. The official
interpreter counts references to the same end, and also refuses runs, which move nothing here.

A method must not keep its views after the run, because other tensors reuse their memory. Reference cycles are collected
before a view counts as kept.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import FailedPreconditionError
from .errors import also
from .node import Node
from .tensor import CONSTANT, Tensor

ExportedViews = dict[
    int, tuple[np.ndarray, "weakref.ref[np.ndarray]"]
]  # by tensor: its elements, and what was lent of them

HELD = (
    "There is at least 1 reference to internal data in the interpreter in the form of a numpy array or slice. Be "
    "sure to only hold the function returned from tensor() if you are using raw data access."
)


def export_view(lent: ExportedViews, t: Tensor, array: np.ndarray) -> np.ndarray:
    """The elements of a tensor, as an array whose life is watched. Constants and strings never move and are as is."""
    if t.kind == CONSTANT or array.dtype.kind == "O":
        return array
    known = lent.get(t.index)
    if known is not None and known[0] is array and (held := known[1]()) is not None:
        return held.view(array.dtype).reshape(array.shape)
    watched = np.asarray(array.reshape(-1).view(np.uint8).data)
    lent[t.index] = array, weakref.ref(watched)
    return watched.view(array.dtype).reshape(array.shape)


def check_exported_views(lent: ExportedViews, subgraph_index: int) -> None:
    """Raises the error for views that are still held, where the elements of the main subgraph are about to move."""
    if lent and subgraph_index == 0:
        held = [index for index, (_, view) in lent.items() if view() is not None]
        if held:
            raise also(FailedPreconditionError, RuntimeError)(
                what=HELD, found=f"views of tensors {', '.join(map(str, held))}", wanted="none while elements move"
            )
        lent.clear()


class ViewTracker:
    """What a node's method is given in one run. running: whether it runs now."""

    __slots__ = ("_refs", "name", "running")

    def __init__(self, name: str) -> None:
        self.name, self.running = name, False
        self._refs: list[tuple[str, weakref.ref[np.ndarray]]] = []

    def given(self, t: Tensor, array: Any) -> Any:
        """The elements of a tensor as the method gets them. Raises FailedPreconditionError while it does not run."""
        if t.kind == CONSTANT or array is None or array.dtype.kind == "O":
            return array
        if not self.running:
            raise FailedPreconditionError(
                op=self.name,
                what=f"the elements of tensor {t.name!r} are there while a method of its node runs",
                found="they are asked for at another time",
                do="keep node.inputs[i].data.copy() then",
            )
        return self.watched(t.name, array)

    def watched(self, name: str, array: np.ndarray) -> np.ndarray:
        """An array over the same memory, whose life is watched."""
        over = np.asarray(array.reshape(-1).view(np.uint8).data)
        self._refs.append((name, weakref.ref(over)))
        return over.view(array.dtype).reshape(array.shape)

    def check(self, method: str) -> None:
        """After the run. Raises FailedPreconditionError naming the tensors whose elements somebody holds."""
        refs, self._refs = self._refs, []
        if any(ref() is not None for _, ref in refs):
            gc.collect()
            held = dict.fromkeys(repr(name) for name, ref in refs if ref() is not None)
            if held:
                raise FailedPreconditionError(
                    op=self.name,
                    what=f"{method} keeps the elements of tensor {', '.join(held)} after the run",
                    wanted="none of them: their memory is used for other tensors",
                    do="keep a copy: .copy()",
                )

    def forget(self) -> None:
        """After a run that failed: what its traceback holds is no matter."""
        self._refs = []


def track_methods(node: Node, invoke: Callable[[], Any]) -> Callable[[], Any]:
    """One run of a node by methods that read its tensors' `data`."""
    watch = ViewTracker(node.name)
    for view in (*node.inputs, *node.outputs):
        if view is not None:
            view.lent = watch

    def step() -> None:
        watch.running = True
        try:
            invoke()
        except BaseException:
            watch.forget()
            raise
        finally:
            watch.running = False
        watch.check("its method invoke")

    return step


def track_call(
    name: str, kernel: Callable[..., Any], names: Sequence[Any], arrays: Sequence[Any], store: Callable[[Any], None]
) -> None:
    """One run of a function of arrays, whose results `store` takes. names: of the tensors, nested as the arrays."""
    watch = ViewTracker(name)

    def given(of: Any, array: Any) -> Any:
        if isinstance(array, tuple):
            return tuple(map(given, of, array))
        return array if array is None or array.dtype.kind == "O" else watch.watched(of, array)

    store(kernel(*map(given, names, arrays)))
    watch.check("compute")

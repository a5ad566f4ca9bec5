"""Views of tensors' elements, held by a program or passed to a node's Python method for one call.

Lives here: `export_view`, `check_exported_views`; `ViewTracker`, of one node.  Not here: copies (tensor_io.py).

While a program holds a view the elements must not move. A view's base is a memoryview, and NumPy makes an array over it
the base of every slice: the array lives as long as the last slice, and a weak reference observes that. The official
interpreter counts references for the same purpose, and also refuses runs, which move nothing here.

A method must not keep its views after the run, because other tensors reuse their memory. Reference cycles are collected
before a view counts as kept.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import FailedPreconditionError, also
from .node import Node
from .tensor import CONSTANT, Tensor

ExportedViews = dict[
    int, tuple[np.ndarray, "weakref.ref[np.ndarray]"]
]  # by tensor: its elements, and a weak reference to the exported view

HELD = (
    "There is at least 1 reference to internal data in the interpreter in the form of a numpy array or slice. Be "
    "sure to only hold the function returned from tensor() if you are using raw data access."
)


def export_view(exported: ExportedViews, t: Tensor, array: np.ndarray) -> np.ndarray:
    """Return the elements of a tensor as an array whose lifetime is tracked. Constants and strings never move."""
    if t.kind == CONSTANT or array.dtype.kind == "O":
        return array
    entry = exported.get(t.index)
    if entry is not None and entry[0] is array and (view := entry[1]()) is not None:
        return view.view(array.dtype).reshape(array.shape)
    base = np.asarray(array.reshape(-1).view(np.uint8).data)
    exported[t.index] = array, weakref.ref(base)
    return base.view(array.dtype).reshape(array.shape)


def check_exported_views(exported: ExportedViews, subgraph_index: int) -> None:
    """Raise the error for views that are alive when the elements of the main subgraph are about to move."""
    if exported and subgraph_index == 0:
        alive = [index for index, (_, view) in exported.items() if view() is not None]
        if alive:
            raise also(FailedPreconditionError, RuntimeError)(
                what=HELD, found=f"views of tensors {', '.join(map(str, alive))}", wanted="no views while elements move"
            )
        exported.clear()


class ViewTracker:
    """Tracks the views passed to a node's method in one run. running: whether the method is running."""

    __slots__ = ("_refs", "name", "running")

    def __init__(self, name: str) -> None:
        self.name, self.running = name, False
        self._refs: list[tuple[str, weakref.ref[np.ndarray]]] = []

    def view(self, t: Tensor, array: Any) -> Any:
        """Return the elements of a tensor for the method. Raises FailedPreconditionError while it is not running."""
        if t.kind == CONSTANT or array is None or array.dtype.kind == "O":
            return array
        if not self.running:
            raise FailedPreconditionError(
                op=self.name,
                what=f"the elements of tensor {t.name!r} are available only while a method of its node runs",
                found="an access at another time",
                do="keep node.inputs[i].data.copy() then",
            )
        return self.track(t.name, array)

    def track(self, name: str, array: np.ndarray) -> np.ndarray:
        """Return an array over the same memory whose lifetime is tracked."""
        base = np.asarray(array.reshape(-1).view(np.uint8).data)
        self._refs.append((name, weakref.ref(base)))
        return base.view(array.dtype).reshape(array.shape)

    def check(self, method: str) -> None:
        """Raise FailedPreconditionError naming the tensors whose views outlive the run."""
        refs, self._refs = self._refs, []
        if any(ref() is not None for _, ref in refs):
            gc.collect()
            alive = dict.fromkeys(repr(name) for name, ref in refs if ref() is not None)
            if alive:
                raise FailedPreconditionError(
                    op=self.name,
                    what=f"{method} keeps the elements of tensor {', '.join(alive)} after the run",
                    wanted="no references: other tensors reuse this memory",
                    do="keep a copy: .copy()",
                )

    def forget(self) -> None:
        """Drop all views after a failed run, whose traceback may refer to them."""
        self._refs = []


def track_methods(node: Node, invoke: Callable[[], Any]) -> Callable[[], Any]:
    """Return a step that runs a node's method and tracks the `data` views that it reads."""
    tracker = ViewTracker(node.name)
    for view in (*node.inputs, *node.outputs):
        if view is not None:
            view.tracker = tracker

    def step() -> None:
        tracker.running = True
        try:
            invoke()
        except BaseException:
            tracker.forget()
            raise
        finally:
            tracker.running = False
        tracker.check("its method invoke")

    return step


def track_call(
    name: str, kernel: Callable[..., Any], names: Sequence[Any], arrays: Sequence[Any], store: Callable[[Any], None]
) -> None:
    """Run a function of arrays, pass its results to `store`, and check that it kept no array.

    names: of the tensors, nested as the arrays.
    """
    tracker = ViewTracker(name)

    def tracked(label: Any, array: Any) -> object:
        if isinstance(array, tuple):
            return tuple(map(tracked, label, array))
        return array if array is None or array.dtype.kind == "O" else tracker.track(label, array)

    store(kernel(*map(tracked, names, arrays)))
    tracker.check("compute")

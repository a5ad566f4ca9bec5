"""Access to tensors from outside: copies of elements, and views of them.

Lives here: `write_tensor`, `read_tensor` and the shapes that an input may get, with the official interpreter's
messages; `export_view`, `check_exported_views`; `ViewTracker`, which checks the views of one node's Python method.
Not here: the consequences of a resize (subgraph.py), access that bypasses the checks (ownership.py).

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

from ...core.dtypes import of_numpy, string
from ...core.errors import FailedPreconditionError, InvalidArgumentError, OpError, also
from ..ops import types
from .node import Node
from .tensor import CONSTANT, Tensor

MOST = 2**31 - 1  # sizes are int32 in the file


def elements(t: Tensor, where: str | None = None) -> np.ndarray:
    """Return the elements of a tensor, in place.

    where: the location of a tensor inside a delegate. Raises InvalidArgumentError if the tensor has no elements.
    """
    if t.array is None:
        raise InvalidArgumentError(
            what="Tensor data is null. Run allocate_tensors() first",
            found=where or repr(t),
            wanted="a tensor that nodes of the plan touch" if where else None,
        )
    return t.array


def write_tensor(t: Tensor, value: Any) -> None:
    """Copy a value of exactly its dtype and shape into a tensor; types below a byte take bytes within their range.

    raises InvalidArgumentError
    """
    elements = np.asarray(value)
    if t.dtype is string and elements.dtype.kind in "SUO":
        elements = _as_bytes(elements, t)
    if elements.dtype != t.dtype.np and elements.dtype != types.IN_BYTES.get(t.type.name, t.dtype.np):
        what = f"Cannot set tensor: Got value of type {_type_name(elements)} but expected type "
        what += f"{types.name_of(t.dtype)} for input {t.index}, name: {t.name} "
        dtype = np.dtype(types.IN_BYTES.get(t.type.name, t.dtype.np))
        raise InvalidArgumentError(what=what, do=f"value.astype({dtype.name!r})")
    if elements.shape != t.shape:
        raise _mismatch(t, elements.shape)
    if t.array is None:
        what = "Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first"
        raise InvalidArgumentError(what=what, found=repr(t))
    if t.constant is not None:
        raise InvalidArgumentError(what="Cannot set tensor: it is a constant of the model", found=repr(t))
    if elements.dtype != t.array.dtype and elements.size:
        low, high = int(t.dtype.min), int(t.dtype.max)
        if elements.min() < low or elements.max() > high:
            what = f"Cannot set tensor: Values for {t.type.name} input must be between {low} and {high}."
            raise InvalidArgumentError(what=what, found=[int(elements.min()), int(elements.max())])
    np.copyto(t.array, elements, casting="unsafe")


def read_tensor(array: np.ndarray, t: Tensor) -> Any:
    """Return a copy of a tensor's elements, or a NumPy scalar for rank 0. Types below a byte are widened to bytes."""
    copy = array.astype(types.IN_BYTES.get(t.type.name, array.dtype))
    return copy if array.ndim or t.is_object else copy[()]


def _mismatch(t: Tensor, shape: tuple[int, ...]) -> OpError:
    if len(shape) != len(t.shape):
        got, expected, where = len(shape), len(t.shape), ""
    else:
        axis = next(i for i, (a, b) in enumerate(zip(shape, t.shape)) if a != b)
        got, expected, where = shape[axis], t.shape[axis], f"dimension {axis} of "
    what = f"Cannot set tensor: Dimension mismatch. Got {got} but expected {expected} for {where}input {t.index}."
    do = f"resize_tensor_input({t.index}, {list(shape)}), then allocate_tensors()"
    return InvalidArgumentError(what=what, found=list(shape), wanted=list(t.shape), do=do)


def resized_shape(t: Tensor, size: Any, strict: bool) -> tuple[int, ...]:
    """Return the new shape of an input. strict: only sizes that the file leaves unknown may change.

    raises InvalidArgumentError for an invalid shape, and one that is also a RuntimeError if `t` cannot have it
    """
    sizes = np.asarray(size)
    if sizes.ndim != 1:
        raise InvalidArgumentError(what=f"Shape should be 1D instead of {sizes.ndim}.", found=repr(size)[:80])
    if sizes.size and sizes.dtype.kind not in "iu":
        raise InvalidArgumentError(what="a shape is a list of integers", found=repr(size)[:80])
    fail = also(InvalidArgumentError, RuntimeError)
    if t.kind == CONSTANT:
        raise fail(what="Attempting to resize a fixed-size tensor.", found=repr(t))
    new = tuple(sizes.tolist())
    if any(d < 0 or d > MOST for d in new):
        raise fail(what=f"a size for input {t.index} is out of range", found=list(new), wanted=f"0 to {MOST}")
    if strict:
        declared = t.shape if t.signature is None else t.signature
        if len(new) != len(declared):
            raise fail(what="ResizeInputTensorStrict does not change the rank", found=list(new), wanted=list(declared))
        for axis, (old, now, fixed) in enumerate(zip(t.shape, new, declared)):
            if now != old and fixed != -1:
                what = f"Attempting to resize dimension {axis} of tensor {t.index} with value {old} to {now}. "
                what += "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
                raise fail(what=what, found=list(new), wanted=list(declared))
    return new


def _type_name(array: np.ndarray) -> str:
    try:
        return types.name_of(of_numpy(array.dtype))
    except (TypeError, OpError):
        return "NOTYPE"


def _as_bytes(elements: np.ndarray, t: Tensor) -> np.ndarray:
    """Return text as bytes, for a string tensor. Raises InvalidArgumentError for other objects."""
    items = []
    for item in elements.reshape(-1).tolist():
        if not isinstance(item, (str, bytes)):
            raise InvalidArgumentError(what=f"Cannot set tensor: {t.name!r} takes strings", found=type(item).__name__)
        items.append(item.encode() if isinstance(item, str) else item)
    return np.fromiter(items, object, elements.size).reshape(elements.shape)


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

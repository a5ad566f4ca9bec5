"""SymbolicTensor: a tensor inside `function`, computed when the graph runs.

Lives here: the type, the errors for operations that require a value, and static values.  Not here: recording
(trace.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core.dtypes import DType, string
from ..core.errors import FailedPreconditionError, OperatorNotAllowedInGraphError, UnimplementedError
from ..core.shapes import TensorShape, as_shape
from ..core.specs import TensorSpec
from ..graph import GraphBuilder, Value
from ..graph.ir import Placeholder
from ..ops.overloads import install_named
from ..ops.tensor import Tensor

if TYPE_CHECKING:
    from ..graph.ir import Node
    from .trace import FuncTrace


class OutOfScopeError(FailedPreconditionError, TypeError):
    """Raised if a tensor of one trace is used in another trace that is not nested in it."""


class SymbolicTensor(Tensor):
    """A graph value as a tensor. trace: the trace to which it belongs."""

    __slots__ = ("__weakref__", "_spec", "assign", "trace", "value_in_graph")

    def __init__(self, value: Value, trace: FuncTrace) -> None:
        self.value_in_graph, self.trace = value, trace
        self._spec = value.spec

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._spec.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape, as far as it is known."""
        return self._spec.shape

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape."""
        return self._spec

    @property
    def spec_name(self) -> str:
        """The name of TensorSpecs created from it."""
        return self.value_in_graph.name

    @property
    def constant(self) -> np.ndarray | None:
        """The value, if it is a constant of the graph."""
        return self.value_in_graph.constant

    @property
    def partial(self) -> list[int | None] | None:
        """The elements of a small vector of sizes, None for unknown ones; None if nothing is known."""
        return partial_sizes(self.value_in_graph, self.trace)

    @property
    def static_value(self) -> np.ndarray | None:
        """The value of a small tensor if it follows from constants, shapes and ranks; None otherwise."""
        elements = _partial(self.value_in_graph, self.trace, 0, {})
        return None if elements is None else completed(elements, self._spec.dtype)

    @property
    def name(self) -> str:
        """The name in the graph with the output index, such as "add:0"."""
        value = self.value_in_graph
        node = value.node.name if value.node is not None else value.name
        return f"{node}:{value.index}"

    @property
    def op(self) -> Placeholder | Node:
        """The node that computes it, with `name` and `type`; a Placeholder for an input of the graph."""
        value = self.value_in_graph
        return Placeholder(value.name, (value,)) if value.node is None else value.node

    @property
    def graph(self) -> FuncTrace:
        """The trace to which it belongs."""
        return self.trace

    def set_shape(self, shape: Any) -> None:
        """Refine the shape by information that inference lacks. Raises ValueError if the two are incompatible."""
        self._spec = TensorSpec(self._spec.shape.merge_with(as_shape(shape)), self._spec.dtype)
        GraphBuilder.refine(self.value_in_graph, self._spec)  # branches and loops read the specs of their results there

    def _refuse(self, what: str, instead: str) -> NoReturn:
        if self.trace.finished:
            raise OperatorNotAllowedInGraphError(self.out_of_scope())
        raise OperatorNotAllowedInGraphError(
            f"{what} is not allowed while tracing: {self} has no value yet (created at {self._where()}). "
            f"{instead}. (opwright explain OW601)"
        )

    def _as_tensor(self) -> NoReturn:
        """Raise the error of eager execution on a symbolic tensor, after its trace or within init_scope."""
        raise OperatorNotAllowedInGraphError(self.out_of_scope())

    def out_of_scope(self) -> str:
        """Return the error text for its use outside of its trace."""
        return (
            f"{self.out_of_scope_in()}, and has no value outside it. Return it from the function, or keep it in an "
            "ow.Variable. (opwright explain OW602)"
        )

    def out_of_scope_in(self) -> str:
        """Return the beginning of error texts for its use elsewhere: the trace that it belongs to."""
        return (
            f"{self!r} is out of scope and cannot be used here: it belongs to the trace of function "
            f"{self.trace.name!r}, created at {self._where()}"
        )

    def _where(self) -> str:
        node = self.value_in_graph.node
        return node.at or "an unknown line" if node is not None else "the function's arguments"

    def __bool__(self) -> NoReturn:
        self._refuse("Using a symbolic `tf.Tensor` as a Python `bool`", "Use ow.where")

    def __iter__(self) -> Iterator[Tensor]:
        first = self.shape[0] if self.shape.rank else None
        if first is None:
            self._refuse("Iterating over a symbolic `tf.Tensor`", "Give it a known first dimension")
        return (self[i] for i in range(first))

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for a symbolic Tensor ({self.name}). "
            "Please call `x.shape` rather than `len(x)` for shape information."
        )

    def __index__(self) -> NoReturn:
        self._refuse("Using a symbolic `tf.Tensor` as an index", "Pass it to ow.gather or to tensor[...]")

    def __int__(self) -> NoReturn:
        self._refuse("Converting a symbolic `tf.Tensor` to int", "Use ow.cast")

    def __float__(self) -> NoReturn:
        self._refuse("Converting a symbolic `tf.Tensor` to float", "Use ow.cast")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. This error may indicate that you're "
            "trying to pass a Tensor to a NumPy call, which is not supported. Use ow.numpy_function for that"
        )

    @property
    def numpy(self) -> NoReturn:  # pyright: ignore[reportIncompatibleMethodOverride]  # absent to hasattr
        """Raises AttributeError, as in TensorFlow, so that `hasattr(x, "numpy")` is False."""
        error = AttributeError("'Tensor' object has no attribute 'numpy'")
        if self.trace.finished:
            error.add_note(self.out_of_scope())
        else:
            error.add_note(
                f"{self} has no value while function {self.trace.name!r} is traced (created at {self._where()}); "
                "ow.print shows it at each run, ow.py_function calls Python with it"
            )
        raise error

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        shape = "" if self.shape.rank is None else f", shape={self.shape}"
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype.name})'


install_named(SymbolicTensor)

# Operators that only move elements.
MOVES = ("Pack", "Concat", "StridedSlice", "Slice", "Gather", "Identity", "ExpandDims", "Squeeze", "Reshape")
SMALL = 64  # elements; larger tensors are not sizes, axes or permutations
DEPTH = 32  # operators between a value and the shapes that determine it


def partial_sizes(value: Value, trace: Any = None) -> list[int | None] | None:
    """Return the elements of a small integer vector, None for unknown ones; None if its length is unknown.

    trace: the trace to which the value belongs, for lookups of captures.
    """
    elements = _partial(value, trace, 0, {})
    return None if elements is None or elements.ndim > 1 else elements.reshape(-1).tolist()


StaticValues = dict[Value, "np.ndarray | None"]


def _partial(value: Value, trace: Any, depth: int, cache: StaticValues) -> np.ndarray | None:
    """Return the known elements of a small tensor; if some are unknown, as an array of objects with None for these.

    cache: earlier results, as values may be read many times.
    """
    if value not in cache:
        cache[value] = _elements(value, trace, depth, cache)
    return cache[value]


def _elements(value: Value, trace: Any, depth: int, cache: StaticValues) -> np.ndarray | None:
    """Compute `_partial` of a value that is not in the cache.

    Operators that only move elements (MOVES) are computed by their reference kernels on arrays of objects; others, if
    they have no effect, only if all elements of their operands are known.
    """
    constant, node = value.constant, value.node
    if constant is not None:
        return constant if constant.size <= SMALL else None
    if depth > DEPTH:
        return None
    if node is None:
        outer = None if trace is None else trace.captured_tensor(value)
        if type(outer) is not SymbolicTensor:
            return None
        return _partial(outer.value_in_graph, outer.trace, depth + 1, cache)
    name = node.op.name
    if name in ("Shape", "Rank", "Size"):
        (operand,) = node.operands
        return elements_of_shape(name, operand.spec.shape)
    if name == "Cast" and node.attrs["dtype"].is_integer:
        return as_integers(_partial(next(node.operands), trace, depth + 1, cache))
    if node.op.effect is not None or any(node.subgraphs):
        return None
    slots: list[Any] = []
    specs: list[Any] = []
    for slot in node.inputs:
        items: Any = slot if isinstance(slot, tuple) else (slot,)
        arrays = [None if item is None else _partial(item, trace, depth + 1, cache) for item in items]
        kinds = [None if item is None else item.spec for item in items]
        slots.append(tuple(arrays) if isinstance(slot, tuple) else arrays[0])
        specs.append(tuple(kinds) if isinstance(slot, tuple) else kinds[0])
    return elements_of_call(node.op, dict(node.attrs), slots, specs, [v.spec for v in node.outputs], value.index)


def elements_of_call(
    op: Any, attrs: dict[str, Any], slots: Sequence[Any], specs: Sequence[Any], outputs: Sequence[Any], index: int
) -> np.ndarray | None:
    """Return the known elements of one output of a call without effects, None if nothing is known.

    slots: by input, the known elements, None for nothing, or a tuple of these; specs: the inputs' specs alike, None for
    inputs that are not there. outputs: the outputs' specs.
    """
    inputs: list[Any] = []
    for slot, spec in zip(slots, specs):
        arrays: list[Any] = []
        for array, kind in zip(*((slot, spec) if isinstance(slot, tuple) else ((slot,), (spec,)))):
            if kind is not None and array is None:
                if kind.shape.rank != 0 or op.name not in MOVES:
                    return None
                array = np.array(None, object)  # one unknown size
            elif kind is not None and op.name not in MOVES:
                array = completed(array, kind.dtype)
                if array is None:
                    return None
            arrays.append(array)
        inputs.append(tuple(arrays) if isinstance(slot, tuple) else arrays[0])
    try:
        if op.name in MOVES:
            return np.asarray(op.kernel(op.bind(attrs))(*inputs))
        if not _is_small(op, inputs, outputs):
            return None
        return np.asarray(op.compute(op.bind(attrs), inputs)[index])
    except (TypeError, ValueError, IndexError, UnimplementedError):
        return None  # reported at run time, with the node's name


def as_integers(elements: np.ndarray | None) -> np.ndarray | None:
    """Cast the known elements to integers; non-finite ones become unknown."""
    if elements is None or elements.dtype.kind in "iu":
        return elements
    integers = [None if e is None or not np.isfinite(e) else int(e) for e in elements.ravel().tolist()]
    result = np.empty(elements.shape, object)
    result[...] = np.array(integers, object).reshape(elements.shape)
    return result


def elements_of_shape(name: str, shape: TensorShape) -> np.ndarray | None:
    """Return the value of Shape, Rank or Size of a tensor of this shape, as far as it is known."""
    if shape.dims is None:
        return None
    if name == "Shape":
        return np.array(shape.dims, object)
    return np.array(shape.rank if name == "Rank" else shape.num_elements(), object)


def _is_small(op: Any, operands: Any, outputs: Sequence[Any]) -> bool:
    """Return whether computing a call produces few elements."""
    if op.elementwise:
        return True
    if op.name == "Range":
        start, limit, delta = (float(o) for o in operands)
        return delta != 0 and abs(limit - start) <= SMALL * abs(delta)
    sizes = [spec.shape.num_elements() for spec in outputs]
    return all(n is not None and n <= SMALL for n in sizes)


def completed(array: np.ndarray, dtype: DType) -> np.ndarray | None:
    """Return the array in its dtype; None if an element is unknown."""
    if array.dtype == object and dtype is not string:
        if any(item is None for item in array.flat):
            return None
        return array.astype(dtype.np)
    return array

"""KerasTensor: a symbolic tensor of a functional model, and the nodes that record calls on it.

Lives here: the type, `OperationNode`, operators as operations (`x + y`), the search for KerasTensors in arguments.
Not here: graphs of nodes (network.py), calls of layers (layer.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from ..core import nest
from ..core.dtypes import DType, as_dtype
from ..core.shapes import TensorShape, as_shape
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.call import Call
from ..ops.definition import Operator
from ..ops.tensor import Overriding
from ..tracing import symbolic
from . import configuration

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class KerasTensor(Overriding):
    """Symbolic tensor of a model under construction: dtype and shape (None for unknown sizes), no value.

    Layers, Python's operators and the functions of this package accept and return KerasTensors. sparse, ragged: only
    False, as models take dense tensors. record_history: kept for Keras's sake; calls are recorded in any case.
    raises ValueError for sparse and ragged ones
    """

    _known_elements: np.ndarray | None
    __slots__ = ("__weakref__", "_dtype", "_known_elements", "_name", "_shape", "history")

    sparse = ragged = False

    def __init__(
        self,
        shape: Any,
        dtype: Any = "float32",
        sparse: bool = False,
        ragged: bool = False,
        record_history: bool = True,
        name: str | None = None,
    ) -> None:
        if sparse or ragged:
            raise ValueError(
                f"KerasTensors are dense. Received: sparse={sparse}, ragged={ragged}. Convert inputs by "
                "`ow.sparse.to_dense` or `RaggedTensor.to_tensor`."
            )
        self._shape, self._dtype = as_shape(shape), as_dtype(dtype)
        self._name = name or "keras_tensor"
        self.history: tuple[Any, int, int] | None = None  # operation, index of its node, index of the output

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """Shape, with None for sizes known only at run time."""
        return self._shape

    @property
    def spec(self) -> TensorSpec:
        """Element type and shape."""
        return TensorSpec(self._shape, self._dtype)

    @property
    def spec_name(self) -> str:
        """Name of a TensorSpec created from the tensor."""
        return self._name

    @property
    def name(self) -> str:
        """Name of the input, or of the layer that computes it."""
        return self._name

    @property
    def partial(self) -> list[int | None] | None:
        """The elements of a small vector of sizes, None for unknown ones; None if nothing is known."""
        elements = self._elements(0)
        return None if elements is None or elements.ndim > 1 else elements.reshape(-1).tolist()

    @property
    def static_value(self) -> np.ndarray | None:
        """The value of a small tensor if it follows from constants, shapes and ranks; None otherwise."""
        elements = self._elements(0)
        return None if elements is None else symbolic.completed(elements, self._dtype)

    def renamed(self, name: str) -> KerasTensor:
        """Return a tensor of another operation with what is known of this one."""
        result = KerasTensor(self._shape, self._dtype, name=name)
        result._known_elements = self._elements(0)
        return result

    def _elements(self, depth: int) -> np.ndarray | None:
        """Return the known elements, None for unknown ones; None if the tensor is not a size, or nothing is known."""
        if hasattr(self, "_known_elements"):
            return self._known_elements
        if self.history is None or depth > symbolic.DEPTH or not isinstance(self.history[0], OperatorCall):
            return None
        self._known_elements = self._find_elements(self.history[0], depth)
        return self._known_elements

    def _find_elements(self, operation: OperatorCall, depth: int) -> np.ndarray | None:
        node, op = self.node, operation.op
        if op.name in ("Shape", "Rank", "Size"):
            return symbolic.elements_of_shape(op.name, as_shape(node.args[0].shape))
        if op.effect is not None or self._dtype.is_floating or (self._shape.num_elements() or 0) > symbolic.SMALL:
            return None

        def known(x: Any) -> Any:
            if isinstance(x, KerasTensor):
                return x._elements(depth + 1)
            constant = getattr(x, "constant", None)
            return None if constant is None or constant.size > symbolic.SMALL else constant

        def spec(x: Any) -> Any:
            return getattr(x, "spec", None)

        slots = [tuple(map(known, x)) if isinstance(x, (list, tuple)) else known(x) for x in node.args]
        specs = [tuple(map(spec, x)) if isinstance(x, (list, tuple)) else spec(x) for x in node.args]
        attrs = {name: getattr(operation.bound, name) for name in op.attr_defs}
        if op.name == "Cast" and self._dtype.is_integer:
            return symbolic.as_integers(known(node.args[0]))
        outputs = [t.spec for t in node.flat_outputs]
        assert self.history is not None
        return symbolic.elements_of_call(op, attrs, slots, specs, outputs, self.history[2])

    @property
    def node(self) -> OperationNode:
        """Call that computes the tensor."""
        assert self.history is not None
        result: OperationNode = self.history[0].nodes[self.history[1]]
        return result

    def record(self, op: Any, inputs: Any, bound: Any, name: str | None) -> KerasTensors:
        """Record an operator call on KerasTensors as an operation of the model."""
        return record(op, inputs, bound, name)

    def _refuse(self, what: str) -> TypeError:
        return TypeError(
            f"{what} of a KerasTensor is unavailable: {self} is a symbolic tensor without a value. Compute it "
            "in a layer's `call`, or with functions of tensors"
        )

    def __bool__(self) -> bool:
        raise self._refuse("The truth value")

    def __len__(self) -> int:
        raise self._refuse("The length")

    def __iter__(self) -> Iterator[Tensor]:
        first = self._shape[0] if self._shape.rank else None
        if first is None:
            raise self._refuse("Iteration over the first dimension")
        me: Any = self
        return (me[i] for i in range(first))

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise self._refuse("An array")

    def __int__(self) -> int:
        raise self._refuse("An integer")

    def __float__(self) -> float:
        raise self._refuse("A number")

    def __index__(self) -> int:
        raise self._refuse("An index")

    def numpy(self) -> NoReturn:
        """Raise TypeError: a KerasTensor has no value."""
        raise self._refuse("An array")

    def __repr__(self) -> str:
        return f"<KerasTensor shape={self._shape}, dtype={self._dtype.name}, name={self._name}>"


class OperationNode:
    """Call of an operation (a layer or an operator) on KerasTensors.

    args, kwargs: the arguments. inputs: the KerasTensors among them. outputs: the structured result; flat_outputs: its
    tensors.
    """

    __slots__ = ("args", "flat_outputs", "inputs", "kwargs", "operation", "outputs")

    def __init__(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        self.operation, self.args, self.kwargs, self.outputs = operation, args, kwargs, outputs
        self.inputs: list[KerasTensor] = find(args) + find(kwargs)
        self.flat_outputs: list[KerasTensor] = find(outputs)
        index = len(operation.nodes)
        operation.nodes.append(self)
        for i, tensor in enumerate(self.flat_outputs):
            tensor.history = (operation, index, i)

    def fill(self, value: Callable[[KerasTensor], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with KerasTensors replaced by values."""

        def leaf(x: object) -> object:
            return value(x) if isinstance(x, KerasTensor) else x

        args = tuple(nest.map_structure(leaf, a) for a in self.args)
        return args, {k: nest.map_structure(leaf, v) for k, v in self.kwargs.items()}


class OperatorCall:
    """Operator with its attributes as an operation of a model, without weights."""

    is_model = False

    def __init__(self, op: Operator, bound: Call, name: str | None = None) -> None:
        self.op, self.bound = op, bound
        self.name = configuration.fresh(name or op.name)
        self.nodes: list[OperationNode] = []

    def __call__(self, *inputs: Any) -> Any:
        return dispatch.call(self.op, inputs, self.bound, self.name)

    def __repr__(self) -> str:
        return f"<OperatorCall {self.op.name} name={self.name}>"


KerasTensors: TypeAlias = "KerasTensor | Sequence[KerasTensors] | Mapping[str, KerasTensors] | None"


def record(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> KerasTensors:
    """Record an operator call as a node, and return its KerasTensors."""
    specs = op.infer(bound, inputs, name)
    flat = [s for spec in specs for s in (spec if isinstance(spec, list) else (spec,))]
    operation = OperatorCall(op, bound, name)
    outputs = [KerasTensor(TensorShape(s.shape), s.dtype, name=operation.name) for s in flat]
    packed: KerasTensors = op.pack_outputs(outputs)
    OperationNode(operation, tuple(inputs), {}, packed)
    return packed


def find(structure: Any) -> list[KerasTensor]:
    """Return the KerasTensors in a structure, in order."""
    return [leaf for leaf in nest.flatten(structure) if isinstance(leaf, KerasTensor)]

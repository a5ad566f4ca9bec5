"""Functional models: their inputs, the graph of operations between KerasTensors, and its execution.

Lives here: `Input` and its layer; the traversal of nodes, their order, execution on tensors, conversion of inputs.
Not here: the model (model.py), its configuration (model_config.py).

A node's depth is the length of the longest path to an output; nodes run deepest first. Operations are listed by depth
as well, and at equal depth in the order of a backward walk from the outputs: this is the order of the model's weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import nest
from ..core.dtypes import as_dtype, string
from ..ops import array, dispatch
from ..ops.sparse import SparseTensor, to_dense
from . import backend
from .keras_tensor import KerasTensor, OperationNode, find
from .layer import Layer
from .layer_calls import InputSpec, current
from .operations import OperationCall as OperationCall  # its module gives KerasTensors Python's operators

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class InputLayer(Layer):
    """Layer of an input; `output` is its KerasTensor. Arguments: see `Input`."""

    def __init__(
        self,
        shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        sparse: Any = None,
        ragged: Any = None,
        batch_shape: Any = None,
        input_tensor: Any = None,
        optional: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if "input_shape" in kwargs:
            warnings.warn("Argument `input_shape` is deprecated. Use `shape` instead.", UserWarning, stacklevel=2)
            shape = kwargs.pop("input_shape")
        if "batch_input_shape" in kwargs:
            batch_shape = kwargs.pop("batch_input_shape")
        if shape is not None and batch_shape is not None:
            raise ValueError("You cannot pass both `shape` and `batch_shape` at the same time.")
        if batch_size is not None and batch_shape is not None:
            raise ValueError("You cannot pass both `batch_size` and `batch_shape` at the same time.")
        sizes = None if shape is None else (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if input_tensor is not None:
            _check_tensor(input_tensor, sizes, batch_size, batch_shape, dtype, sparse, ragged)
            batch_shape, dtype = tuple(input_tensor.shape), input_tensor.dtype
        elif sizes is not None:
            batch_shape = (batch_size, *sizes)
        if batch_shape is None:
            raise ValueError("You must pass a `shape` argument.")
        if ragged:
            raise ValueError("Inputs are not ragged: pass `to_tensor()` of a RaggedTensor, and masks")
        super().__init__(name=name, **kwargs)
        self.batch_shape = tuple(batch_shape)
        self._input_dtype = as_dtype(backend.floatx() if dtype is None else dtype)
        self.optional = optional
        self.sparse = bool(sparse)
        self.built = True
        if input_tensor is None:
            tensor = KerasTensor(self.batch_shape, self._input_dtype, name=self.name)
        else:
            tensor = input_tensor
        OperationNode(self, (), {}, tensor)

    @property
    def dtype(self) -> str:
        """Name of the input's dtype."""
        return self._input_dtype.name

    def call(self, inputs: Tensor | None = None) -> Tensor | None:
        """Return the input itself."""
        return inputs

    @property
    def output(self) -> KerasTensor:
        """The KerasTensor of the input."""
        tensor: KerasTensor = self.nodes[0].outputs
        return tensor

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        config = {"batch_shape": self.batch_shape, "dtype": self.dtype, "sparse": self.sparse, "name": self.name}
        return {**config, "optional": True} if self.optional else config


def _check_tensor(
    tensor: Any, shape: Any, batch_size: Any, batch_shape: Any, dtype: Any, sparse: Any, ragged: Any
) -> None:
    """Raise ValueError unless a tensor is a KerasTensor of what else is passed."""
    if not isinstance(tensor, KerasTensor):
        raise ValueError(f"Argument `input_tensor` must be a KerasTensor. Received invalid type: {type(tensor)}")
    dims = tuple(tensor.shape)
    given: tuple[tuple[str, Any, Any], ...] = (
        ("shape", None if shape is None else tuple(shape), dims[1:]),
        ("batch_shape", None if batch_shape is None else tuple(batch_shape), dims),
        ("batch_size", batch_size, dims[0] if dims else None),
        ("dtype", None if dtype is None else as_dtype(dtype), tensor.dtype),
        ("sparse", sparse, False),
        ("ragged", ragged, False),
    )
    for name, value, own in given:
        if value is not None and value != own:
            raise ValueError(
                f"When providing the `input_tensor` argument, you cannot provide an incompatible `{name}` argument. "
                f"Received: {value}, the tensor has {own}"
            )


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    dtype: Any = None,
    sparse: Any = None,
    ragged: Any = None,
    batch_shape: Any = None,
    name: str | None = None,
    tensor: Any = None,
    optional: bool = False,
) -> KerasTensor:
    """Return a KerasTensor, an input of a functional model.

    shape: without the batch, None for unknown sizes; batch_size: the batch size, if it is fixed; or batch_shape: both.
    dtype: by default "float32". sparse: whether SparseTensors are passed, which the model makes dense. name: the
    key of its data in dicts. tensor: a KerasTensor that becomes the input. optional: whether None may be passed.
    raises ValueError unless exactly one of `shape` and `batch_shape` is passed

    >>> x = ow.keras.Input((3,)); x.shape
    TensorShape([None, 3])
    """
    return InputLayer(shape, batch_size, dtype, sparse, ragged, batch_shape, tensor, optional, name=name).output


class Network:
    """Graph of layers between KerasTensors. nodes: calls in execution order. operations: each once, in order.

    raises ValueError if an input is not a KerasTensor, or an output does not depend on the inputs
    """

    def __init__(self, inputs: Any, outputs: Any, name: str) -> None:
        self.name = name
        for leaf in nest.flatten(inputs):
            if not isinstance(leaf, KerasTensor):
                raise ValueError(
                    f"All `inputs` values must be KerasTensors. Received: inputs={inputs} including "
                    f"invalid "
                    f"value {leaf} of type {type(leaf)}"
                )
        for leaf in nest.flatten(outputs):
            if not isinstance(leaf, KerasTensor):
                raise ValueError(
                    f"All `outputs` values must be KerasTensors. Received: outputs={outputs} including "
                    f"invalid value {leaf} of type {type(leaf)}"
                )
        if len({id(x) for x in find(inputs)}) != len(find(inputs)):
            raise ValueError(f"The list of inputs passed to the model contains the same input multiple times: {inputs}")
        self._use(inputs, outputs)
        if not all(t.history is None or isinstance(t.history[0], InputLayer) for t in self.flat_inputs):
            self._use(*self._copied())
        self._warned: set[str] = set()

    def _use(self, inputs: Any, outputs: Any) -> None:
        """Find the nodes between inputs and outputs."""
        self.inputs, self.outputs = inputs, outputs
        self.flat_inputs, self.flat_outputs = find(inputs), find(outputs)
        self._inputs_by_id = {id(t): t for t in self.flat_inputs}
        visited, met = self._visit()
        self.nodes, self.operations = self._order(visited, met)
        self.specs = [
            InputSpec(shape=_of_any_batch(t.shape.dims), allow_last_axis_squeeze=True, name=t.name)
            if t.shape.dims is not None
            else InputSpec(name=t.name)
            for t in self.flat_inputs
        ]

    def _copied(self) -> tuple[Any, Any]:
        """Return inputs and outputs of a copy of the nodes, where inputs that layers compute have layers of their own.

        A model of a part of another model does not contain the layers before that part.
        """
        copies: dict[int, KerasTensor] = {}
        for t in self.flat_inputs:
            own = t.history is None or isinstance(t.history[0], InputLayer)
            copies[id(t)] = t if own else Input(batch_shape=tuple(t.shape), dtype=t.dtype)

        def copy(t: Any) -> Any:
            if not isinstance(t, KerasTensor):
                return t
            if id(t) not in copies:
                copies[id(t)] = KerasTensor(t.shape, t.dtype, name=t.name)
            return copies[id(t)]

        for node in self.nodes:
            args, kwargs = node.fill(copy)
            OperationNode(node.operation, args, kwargs, nest.map_structure(copy, node.outputs))
        return nest.map_structure(copy, self.inputs), nest.map_structure(copy, self.outputs)

    def _visit(self) -> tuple[list[OperationNode], dict[int, int]]:
        """Return nodes in topological order, and the order in which a backward walk reaches operations."""
        done: set[int] = set()
        active: set[int] = set()
        order: list[OperationNode] = []
        met: dict[int, int] = {}
        stack: list[tuple[OperationNode, bool]] = []
        paths = [_path_text(path) for path, _ in nest.flatten_with_paths(self.outputs)]
        for path, output in zip(paths, self.flat_outputs):
            stack = [(output.node, False)] if output.history is not None else []
            if output.history is None and id(output) not in self._inputs_by_id:
                raise ValueError(
                    f"Output with path `{path}` is not connected to `inputs`: {output} does not depend on the model's "
                    "inputs"
                )
            while stack:
                node, finished = stack.pop()
                if finished:
                    active.discard(id(node))
                    done.add(id(node))
                    order.append(node)
                    continue
                if id(node) in done or id(node) in active:
                    continue
                active.add(id(node))
                met.setdefault(id(node.operation), len(met))
                stack.append((node, True))
                if all(id(t) in self._inputs_by_id for t in node.flat_outputs) and node.flat_outputs:
                    continue
                if isinstance(node.operation, InputLayer):
                    raise ValueError(
                        f"Output with path `{path}` is not connected to `inputs`: cannot find parent for tensor "
                        f"{node.flat_outputs[0]} at operation {node.operation.name!r}. It is not an input of the "
                        "model: add it to `inputs`"
                    )
                for tensor in reversed(node.inputs):
                    if id(tensor) not in self._inputs_by_id or tensor.history is not None:
                        stack.append((tensor.node, False))
        return order, met

    def _order(self, visited: Sequence[OperationNode], met: dict[int, int]) -> tuple[list[OperationNode], list[Any]]:
        depth: dict[int, int] = {}
        of_operation: dict[int, int] = {}
        operations: dict[int, Any] = {}
        for node in reversed(visited):
            key = id(node.operation)
            operations[key] = node.operation
            node_depth = max(depth.setdefault(id(node), 0), of_operation.get(key, 0))
            depth[id(node)] = of_operation[key] = node_depth
            if all(id(t) in self._inputs_by_id for t in node.flat_outputs):
                continue
            for tensor in node.inputs:
                if tensor.history is not None:
                    parent = id(tensor.node)
                    depth[parent] = max(node_depth + 1, depth.get(parent, 0))
        for tensor in self.flat_inputs:
            if tensor.history is not None and id(tensor.history[0]) not in operations:
                operation = tensor.history[0]
                operations[id(operation)], of_operation[id(operation)] = operation, 0
                met[id(operation)] = -1
        nodes = [n for n in visited if not all(id(t) in self._inputs_by_id for t in n.flat_outputs)]
        nodes.sort(key=lambda n: -depth[id(n)])  # stable; the producers of inputs are deeper
        listed = sorted(operations, key=lambda k: (-of_operation[k], met[k]))
        return nodes, [operations[k] for k in listed]

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, inputs: Any, call: Callable[..., Any] | None = None) -> Any:
        """Return the outputs for these inputs, in the outputs' structure. call: of an operation and its arguments.

        As in Keras, a mode that the model is called with replaces the one that a layer was called with when the model
        was made: Keras writes the default of a layer's `call` to files, such as `training=True` of `RandomFlip`.
        """
        values = {id(t): x for t, x in zip(self.flat_inputs, self.accept(inputs))}
        mode = current.context.training if current.context is not None else None
        for node in self.nodes:
            args, kwargs = node.fill(lambda t: values[id(t)])
            if mode is not None and "training" in kwargs:
                kwargs = {**kwargs, "training": mode}
            result = node.operation(*args, **kwargs) if call is None else call(node.operation, *args, **kwargs)
            flat = [result] if len(node.flat_outputs) == 1 and not nest.is_nested(result) else nest.flatten(result)
            for tensor, value in zip(node.flat_outputs, flat):
                values[id(tensor)] = value
        return nest.map_structure(lambda t: values[id(t)], self.outputs)

    def accept(self, inputs: Any) -> list[Any]:
        """Return one tensor per input: from a tensor, a list, or a dict by input name.

        raises ValueError if their number or shapes differ
        """
        flat: list[Any]
        if isinstance(inputs, dict):
            keys = list(self.inputs) if isinstance(self.inputs, dict) else [t.name for t in self.flat_inputs]
            missing = [k for k in keys if k not in inputs]
            if missing:
                raise ValueError(
                    f"Missing data for input {missing[0]!r} of model {self.name!r}. You passed a data dictionary with "
                    f"keys {list(inputs)}. Expected the following keys: {keys}"
                )
            if any(k not in keys for k in inputs):  # such as a misspelled name
                self._warn(self._other_structure(inputs))
            chosen = {k: inputs[k] for k in keys}
            flat = nest.flatten(chosen if isinstance(self.inputs, dict) else list(chosen.values()))
        else:
            flat = nest.flatten(inputs)
        if len(flat) != len(self.flat_inputs):
            keys_text = (
                f" named input(s) with keys {list(self.inputs)}" if isinstance(self.inputs, dict) else " input(s)"
            )
            raise ValueError(
                f'Layer "{self.name}" expects {len(self.flat_inputs)}{keys_text}, but it received {len(flat)} input '
                f"tensors. Inputs received: {[getattr(x, 'spec', x) for x in flat]}"
            )
        if isinstance(self.inputs, dict) and isinstance(inputs, (list, tuple)):
            if list(self.inputs) != sorted(self.inputs):  # in which order are they?
                raise ValueError(self._other_structure(inputs))
            self._warn(self._other_structure(inputs))
        return [self._convert_input(i, x) for i, x in enumerate(flat)]

    def _other_structure(self, inputs: Any) -> str:
        expected = nest.map_structure(lambda t: t.name, self.inputs)
        received = nest.map_structure(lambda x: f"Tensor(shape={getattr(x, 'shape', ())})", inputs)
        return (
            f"The structure of `inputs` doesn't match the expected structure of model {self.name!r}.\n"
            f"Expected: {expected}\nReceived: {received}"
        )

    def _warn(self, text: str) -> None:
        """Warn once: a step is traced for several shapes."""
        key = text.partition("\n")[0]
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(text, UserWarning, stacklevel=5)

    def _convert_input(self, i: int, x: Any) -> Tensor | None:
        declared = self.flat_inputs[i]
        if x is None:
            if declared.history is None or not declared.history[0].optional:
                raise ValueError(
                    f"The input {declared.name!r} of model {self.name!r} is not optional, but None was passed. Pass a "
                    "tensor, or make it by `Input(..., optional=True)`."
                )
            return None
        x = to_dense(x) if isinstance(x, SparseTensor) else dispatch.to_tensor(x)
        objection = self.specs[i].objection(x.shape, x.dtype)
        if objection is not None:
            path = _path_text(nest.flatten_with_paths(self.inputs)[i][0])
            raise ValueError(
                f'Input {i} of layer "{self.name}" is incompatible with the layer: {objection}, of the input with '
                f"name {declared.name!r} and path '{path}'"
            )
        declared_rank, rank = declared.shape.rank, x.shape.rank
        if declared_rank is not None and rank is not None and rank != declared_rank:
            x = array.expand_dims(x, -1) if rank < declared_rank else array.squeeze(x, [-1])
        if x.dtype is not declared.dtype and declared.dtype is not string:
            x = array.cast(x, declared.dtype)
        converted: Tensor = x
        return converted


def _of_any_batch(dims: tuple[int | None, ...]) -> tuple[int | None, ...]:
    return (None, *dims[1:]) if dims else dims


def _path_text(path: Sequence[Any]) -> str:
    return ".".join(map(str, path))

"""Introspection: tensors and nodes as dictionaries with the official interpreter's keys, and callable signatures.

Lives here: the results of get_input_details, get_tensor_details and _get_ops_details; `SignatureRunner`.
Not here: reading and writing elements (tensor_access.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import flags
from ...core.errors import InvalidArgumentError
from ..ops import types
from .node import Node
from .ownership import UNKNOWN_THREAD, exclusive
from .tensor import Tensor

if TYPE_CHECKING:
    from ..interpreter import Interpreter


def dtype_class(t: Tensor) -> Any:
    """Return the NumPy type of the elements, None for types that NumPy lacks.

    Strings are bytes, handles are objects, and types below a byte are widened to one.
    """
    dtype = types.BY_NAME.get(getattr(t.type, "name", ""))
    if dtype is None:
        return None
    return _OBJECTS.get(dtype.name) or types.IN_BYTES.get(t.type.name) or dtype.as_numpy_dtype


_OBJECTS = {"string": np.bytes_, "resource": np.object_}


def tensor_details(t: Tensor) -> dict[str, Any]:
    """Return one tensor's details. Raises InvalidArgumentError for a type that NumPy lacks."""
    dtype = dtype_class(t)
    if dtype is None:
        raise InvalidArgumentError(what="Could not get tensor details", found=repr(t), wanted="a type that NumPy holds")
    q = t.quantization
    scales = np.asarray(q.scale if q is not None else (), np.float32)
    zeros = np.asarray(q.zero_point if q is not None else (), np.int64).astype(np.int32)
    return {
        "name": t.name,
        "index": t.index,
        "shape": np.array(t.shape, np.int32),
        "shape_signature": np.array(t.shape if t.signature is None else t.signature, np.int32),
        "dtype": dtype,
        "quantization": (float(scales[0]), int(zeros[0])) if len(scales) == 1 and len(zeros) == 1 else (0.0, 0),
        "quantization_parameters": {
            "scales": scales,
            "zero_points": zeros if len(scales) else np.zeros(0, np.int32),
            "quantized_dimension": int(q.quantized_dimension) if q is not None and len(scales) else 0,
            "block_size": int(getattr(q.details, "block_size", 0)) if q is not None else 0,
        },
        "sparsity_parameters": {} if t.sparsity is None else _sparsity(t.sparsity),
    }


def _sparsity(sparsity: Any) -> dict[str, Any]:
    def level(metadata: Any) -> dict[str, Any]:
        if metadata.format == 0:
            return {"format": 0, "dense_size": int(metadata.dense_size)}
        return {
            "format": 1,
            "array_segments": np.asarray(metadata.array_segments.values, np.int32),
            "array_indices": np.asarray(metadata.array_indices.values, np.int32),
        }

    return {
        "traversal_order": np.asarray(sparsity.traversal_order, np.int32),
        "block_map": np.asarray(sparsity.block_map, np.int32),
        "dim_metadata": [level(m) for m in sparsity.dim_metadata],
    }


def node_details(node: Node) -> dict[str, Any]:
    """Return one node's details."""
    return {
        "index": node.number,
        "op_name": node.name if node.delegate is None else "DELEGATE",
        "inputs": np.array([-1 if t is None else t.index for t in node.tensors_in], np.int32),
        "outputs": np.array([t.index for t in node.tensors_out], np.int32),
        "operand_types": [dtype_class(t) for t in node.tensors_in if t is not None],
        "result_types": [dtype_class(t) for t in node.tensors_out],
    }


class SignatureRunner:
    """Runs one signature: `runner(x=array) -> {"y": array}`. Inputs are resized to the shapes of the arguments.

    raises ValueError (InvalidArgumentError) for missing, unknown or ill-typed inputs
    """

    def __init__(self, interpreter: Interpreter, key: str) -> None:
        self._interpreter, self._key = interpreter, key
        self._ownership = interpreter._ownership
        definition = interpreter._signatures.get(key)
        if definition is None:
            raise InvalidArgumentError(
                what=f'Invalid signature_key provided: "{key}".',
                wanted=f"one of {', '.join(interpreter._signatures) or 'none'}",
            )
        self._subgraph = int(definition.subgraph_index)
        self._inputs: dict[str, int] = {m.name: int(m.tensor_index) for m in definition.inputs}
        self._outputs: dict[str, int] = {m.name: int(m.tensor_index) for m in definition.outputs}
        self._bound = interpreter._subgraphs[self._subgraph].bound

    def bind(
        self,
        inputs: Mapping[str, np.ndarray | None] | None = None,
        outputs: Mapping[str, np.ndarray | None] | None = None,
    ) -> None:
        """Let inputs and outputs, by name, be arrays of the caller: runs read and write their memory, without a copy.

        Calls take a bound input from its array unless they pass another value, which is copied there, and return the
        array of a bound output. One array may be an input and an output, such as a cache of keys and values, which is
        then updated in place; and of several runners. None: no array any more. An array is contiguous, of the tensor's
        dtype and shape, that of an output writable. raises ValueError (InvalidArgumentError)
        """
        places = self._places(inputs or {}, self._inputs, "input"), self._places(outputs or {}, self._outputs, "output")
        self._bind(places[0] | places[1])

    @exclusive("bound")
    def _bind(self, arrays: Mapping[int, np.ndarray | None]) -> None:
        interpreter, subgraph = self._interpreter, self._interpreter._subgraphs[self._subgraph]
        subgraph.unbind_arrays(index for index, array in arrays.items() if array is None)
        interpreter._allocate(self._subgraph)
        subgraph.bind_arrays({index: array for index, array in arrays.items() if array is not None})

    def _places(
        self, arrays: Mapping[str, np.ndarray | None], places: Mapping[str, int], kind: str
    ) -> dict[int, np.ndarray | None]:
        for name in arrays:
            if name not in places:
                raise InvalidArgumentError(
                    what=f"Invalid {kind} name ({name}) for SignatureDef", wanted=f"one of {', '.join(places)}"
                )
        return {places[name]: array for name, array in arrays.items()}

    def __call__(self, **inputs: Any) -> dict[str, Any]:
        ownership = self._ownership
        direct_inputs = self._subgraph == 0 and not self._bound and inputs.keys() == self._inputs.keys()
        if ownership.direct is None or not direct_inputs or flags.check_inputs:
            return self._call(inputs)
        while ownership.thread:
            ownership.wait("invoked")
        ownership.thread = UNKNOWN_THREAD  # as in Interpreter.invoke
        try:
            direct = ownership.direct
            if direct is not None and self._write_inputs(inputs):
                if status := direct():
                    self._interpreter._stopped(status)
                return self._read_outputs()
        finally:
            ownership.thread = 0
        return self._call(inputs)

    def _write_inputs(self, inputs: dict[str, Any]) -> bool:
        """Write all inputs directly; return whether that was possible."""
        writable = self._ownership.writable
        for name, index in self._inputs.items():
            put = writable.get(index)
            if put is None or not put(inputs[name]):
                return False
        return True

    def _read_outputs(self) -> dict[str, Any]:
        """Return the outputs, while this thread owns the interpreter."""
        ownership, outputs = self._ownership, {}
        for name, index in self._outputs.items():
            copy = ownership.readable.get(index)
            if copy is None:
                ownership.thread = get_ident()
                outputs[name] = self._interpreter.get_tensor(index, self._subgraph)
            else:
                outputs[name] = copy()
        return outputs

    @exclusive("invoked")
    def _call(self, inputs: dict[str, Any]) -> dict[str, Any]:
        bound = {name: array for name, i in self._inputs.items() if (array := self._bound.get(i)) is not None}
        if len(inputs.keys() | bound.keys()) != len(self._inputs):
            raise InvalidArgumentError(
                what="Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(inputs)}",
                found=", ".join(inputs) or "none",
                wanted=", ".join(self._inputs) or "none",
            )
        arrays = {}
        for name, value in inputs.items():
            if name not in self._inputs:
                raise InvalidArgumentError(
                    what=f"Invalid Input name ({name}) for SignatureDef", wanted=f"one of {', '.join(self._inputs)}"
                )
            arrays[name] = np.asarray(value)
        interpreter = self._interpreter
        for name, array in arrays.items():
            interpreter._resize(self._inputs[name], array.shape, False, self._subgraph)
        interpreter._allocate(self._subgraph)
        tensors = interpreter._subgraphs[self._subgraph].tensors
        for name, array in {**bound, **arrays}.items():
            if array is not tensors[self._inputs[name]].array:
                interpreter._set(self._inputs[name], array, self._subgraph)
        interpreter._invoke(self._subgraph)
        outputs = {
            name: interpreter.get_tensor(i, self._subgraph) if (array := self._bound.get(i)) is None else array
            for name, i in self._outputs.items()
        }
        if self._subgraph == 0:
            interpreter._update_direct()
        return outputs

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Return details of each input by name."""
        return self._details(self._inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Return details of each output by name."""
        return self._details(self._outputs)

    def _details(self, names: dict[str, int]) -> dict[str, dict[str, Any]]:
        tensors = self._interpreter._subgraphs[self._subgraph].tensors
        return {name: tensor_details(tensors[index]) for name, index in names.items()}

"""`CompiledModel`: a model in the official run time, with Opwright's operators.

Lives here: the public interface: signatures, shapes, buffers, runs.
Not here: the run time's objects (loaded_model.py), checks of arguments (invocation.py), the choice of nodes that run
Opwright's operators (node_replacement.py) and these nodes (custom_op_nodes.py).
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core import flags
from ...core.errors import InvalidArgumentError
from ...core.processors import usable_processors
from ..format import Model
from ..format.model import refuse_external
from ..resolver import CustomOps
from ..runtime.model_loader import open_model
from .custom_op_nodes import CustomOpNode, kernel
from .invocation import (
    BufferBinding,
    ExclusiveRun,
    TensorBuffer,
    check_buffers,
    check_names,
    checked_array,
    is_named,
    ordered_values,
)
from .library import INT, TensorLayout, check, library
from .loaded_model import OP, LiteRtModel, ModelSignature, SignatureTensor, StderrCapture, native_by_node, signatures_of
from .node_replacement import replace_custom_nodes


class CompiledModel:
    """A model that the official LiteRT run time runs, with Opwright's operators as machine code.

    model: a path, the file's bytes, or a `lite.Model`. custom_ops: as for `lite.Interpreter`; Opwright's own are
    included. num_threads: maximum for one operator, by default as in the interpreter. hardware_accelerator: "cpu", the
    only one for which operators are available. Only one thread at a time may run it.

    >>> with lite.litert.CompiledModel("model.tflite", custom_ops=[Atan]) as model:
    ...     outputs = model.run({"x": x})

    An operator with a kernel that the compiled engine supports (see `native_nodes`) runs without Python; any other
    calls back into Python, where it takes as long as in the interpreter plus some microseconds.

    raises ImportError (errors.OpError, too) if the wheel `ai-edge-litert` is missing or too old, NotFoundError listing
    missing custom operators, UnimplementedError for tensors that the run time does not pass to operators, RuntimeError
    with the run time's messages if it rejects the model; ValueError (all are errors.OpError) for a missing or damaged
    model, or options of a node that its operator does not have
    """

    def __init__(
        self,
        model: Any,
        custom_ops: CustomOps = (),
        *,
        num_threads: int | None = None,
        hardware_accelerator: str = "cpu",
    ) -> None:
        if hardware_accelerator != "cpu":
            raise InvalidArgumentError(
                op=OP, what="no such accelerator", found=repr(hardware_accelerator), wanted="'cpu'"
            )
        if num_threads is not None and (
            not isinstance(num_threads, int) or isinstance(num_threads, bool) or num_threads < 1
        ):
            raise InvalidArgumentError(op=OP, what="num_threads is an integer of at least 1", found=repr(num_threads))
        library()  # report its problems first
        path = os.fspath(model) if isinstance(model, str | os.PathLike) else None
        if path is None and not isinstance(model, Model) and not hasattr(model, "__len__"):
            raise TypeError(f"model is a path, a file's bytes or a lite.Model, found {type(model).__name__}")
        file = open_model(path, None if path is not None else model)
        file.verify()  # its delegate computes wrong results if a tensor is written twice
        refuse_external(file)
        self._threads = num_threads or flags.get("num_threads") or usable_processors()
        self._loaded = loaded = LiteRtModel()
        self._finalizer = weakref.finalize(self, loaded.close)
        self._invoke = library().RunCompiledModel
        try:
            carriage = replace_custom_nodes(file, custom_ops)
            loaded.nodes = [CustomOpNode(c, carriage.resolver, self._threads, loaded.errors) for c in carriage.nodes]
            self._alone = ExclusiveRun(self._finalizer, loaded)  # after the nodes: exit handlers run in reverse order
            kernel()  # compiled before stderr is captured
            loaded.load(carriage.model, None if carriage.changed else model, self._threads)
            self._signatures = signatures_of(loaded.model.value or 0, carriage.model)
            for number, signature in enumerate(self._signatures):
                if not any(p.is_dynamic for p in signature.inputs):  # otherwise in the first run, for its shapes
                    with self._alone:
                        self._allocate(number, signature)
        except BaseException:
            self._finalizer()
            raise

    @classmethod
    def from_file(cls, model_path: str | os.PathLike[str], custom_ops: CustomOps = (), **options: Any) -> CompiledModel:
        """Return the model in a file; options as for the constructor."""
        return cls(os.fspath(model_path), custom_ops, **options)

    @classmethod
    def from_buffer(cls, model_data: Any, custom_ops: CustomOps = (), **options: Any) -> CompiledModel:
        """Return the model in bytes; options as for the constructor."""
        return cls(model_data, custom_ops, **options)

    # ---- signatures -------------------------------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of inputs and outputs by signature, in the run time's order; {} without signatures."""
        return {s.key: _names(s) for s in self._signatures if s.key is not None}

    def get_num_signatures(self) -> int:
        """Return the number of signatures; a model without any has one for its main subgraph."""
        return len(self._signatures)

    def get_signature_index(self, key: str) -> int:
        """Return the index of a signature, -1 for an unknown key."""
        return next((i for i, s in enumerate(self._signatures) if s.key == key), -1)

    def get_signature_by_index(self, index: int) -> dict[str, Any]:
        """Return the key and the names of inputs and outputs of a signature."""
        signature = self._by_number(index)
        return {"key": signature.key, **_names(signature)}

    def get_input_details(self, signature_key: str | None = None) -> list[dict[str, Any]]:
        """Return the details of each input as `lite.Interpreter.get_input_details` does, with the current shapes."""
        return [p.details() for p in self._signature(signature_key)[1].inputs]

    def get_output_details(self, signature_key: str | None = None) -> list[dict[str, Any]]:
        """Return the details of each output; see get_input_details."""
        return [p.details() for p in self._signature(signature_key)[1].outputs]

    def get_input_tensor_details(self, signature_key: str | None = None) -> dict[str, dict[str, Any]]:
        """Return name, index, dtype and shape of each input by name, as the wheel's own compiled model does."""
        return {p.name: p.brief() for p in self._signature(signature_key)[1].inputs}

    def get_output_tensor_details(self, signature_key: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the same for each output; see get_input_tensor_details."""
        return {p.name: p.brief() for p in self._signature(signature_key)[1].outputs}

    @property
    def native_nodes(self) -> dict[str, bool]:
        """For each replaced node, by position and name: whether it runs without Python. False before the run time
        requests its shapes."""
        return native_by_node(self._loaded.nodes)

    def is_fully_accelerated(self) -> bool:
        """Return whether the run time reports that no operator uses its plain kernels."""
        accelerated = ctypes.c_bool()
        with self._alone:
            check(library().CompiledModelIsFullyAccelerated(self._loaded.compiled, ctypes.byref(accelerated)), "asking")
        return accelerated.value

    def _by_number(self, index: int) -> ModelSignature:
        if not isinstance(index, int) or not 0 <= index < len(self._signatures):
            raise InvalidArgumentError(
                op=OP, what="no such signature", found=repr(index), wanted=f"0..{len(self._signatures) - 1}"
            )
        return self._signatures[index]

    def _signature(self, key: str | None) -> tuple[int, ModelSignature]:
        if key is None and len(self._signatures) == 1:
            return 0, self._signatures[0]
        number = -1 if key is None else self.get_signature_index(key)
        if number < 0:
            raise InvalidArgumentError(
                op=OP,
                what="no such signature" if key is not None else "the model has several signatures",
                found=None if key is None else repr(key),
                wanted=", ".join(s.key or "" for s in self._signatures),
                do="signature_key=",
            )
        return number, self._signatures[number]

    # ---- shapes -----------------------------------------------------------------------------------------------------

    def resize_input_tensor(
        self, input_index: int | str, dims: Sequence[int], signature_index: int = 0, strict: bool = True
    ) -> None:
        """Set the shape of an input. strict: only sizes that the file leaves unknown may change.

        `run` does this itself for sizes that the file leaves unknown. Raises InvalidArgumentError
        """
        signature = self._by_number(signature_index)
        number = signature.input(input_index)
        shape = tuple(map(int, dims))
        with self._alone:
            self._resize(signature_index, signature, {number: shape}, strict)

    def resize_input_tensor_by_name(
        self, signature_key: str, input_name: str, dims: Sequence[int], strict: bool = True
    ) -> None:
        """Set the shape of an input by name; see resize_input_tensor."""
        self.resize_input_tensor(input_name, dims, self._signature(signature_key)[0], strict)

    def _resize(
        self, number: int, signature: ModelSignature, shapes: Mapping[int, tuple[int, ...]], strict: bool
    ) -> None:
        for i, shape in shapes.items():
            p = signature.inputs[i]
            if (strict and not p.takes(shape)) or not shape or min(shape) < 1:
                do = "strict=False" if strict and shape and min(shape) > 0 else None
                allowed = f"{list(p.signature)}, -1 for any size of at least 1"
                raise InvalidArgumentError(
                    op=OP, what=f"{p.what} cannot have this shape", found=list(shape), wanted=allowed, do=do
                )
        resize = library().CompiledModelResizeInputTensorNonStrict
        for i, shape in shapes.items():
            status = resize(self._loaded.compiled, number, i, (INT * len(shape))(*shape), len(shape))
            if status:
                raise self._loaded.failure(status, f"does not give {signature.inputs[i].what} the shape {list(shape)}")
            signature.inputs[i].shape = shape
            signature.allocated, signature.buffers = False, None

    def _allocate(self, number: int, signature: ModelSignature) -> None:
        """Propagate shapes. Raises the errors of operators' shape rules."""
        outputs = signature.outputs
        layouts = (TensorLayout * max(len(outputs), 1))()
        signature.has_run = False
        with StderrCapture() as captured:
            status = library().GetCompiledModelOutputTensorLayouts(
                self._loaded.compiled, number, len(outputs), layouts, True
            )
        self._loaded.raise_errors()
        if status:
            raise self._loaded.failure(status, "does not make ready", captured.text)
        for p, layout in zip(outputs, layouts):
            p.shape = layout.shape
        signature.allocated = True

    # ---- buffers ----------------------------------------------------------------------------------------------------

    def create_input_buffers(self, signature_index: int = 0) -> list[TensorBuffer]:
        """Return memory for the inputs of a signature, for their current shapes."""
        return [_buffer(p) for p in self._by_number(signature_index).inputs]

    def create_output_buffers(self, signature_index: int = 0) -> list[TensorBuffer]:
        """Return memory for the outputs of a signature, for the shapes that follow from the inputs' current ones."""
        signature = self._by_number(signature_index)
        with self._alone:
            if not signature.allocated:
                self._allocate(signature_index, signature)
        return [_buffer(p) for p in signature.outputs]

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """Return memory for one input."""
        signature = self._signature(signature_key)[1]
        return _buffer(signature.inputs[signature.input(input_name)])

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """Return memory for one output."""
        number, signature = self._signature(signature_key)
        names = [p.name for p in signature.outputs]
        if output_name not in names:
            raise InvalidArgumentError(op=OP, what="no such output", found=repr(output_name), wanted=", ".join(names))
        return self.create_output_buffers(number)[names.index(output_name)]

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(
        self, inputs: Mapping[str, Any] | Sequence[Any] | np.ndarray = (), signature_key: str | None = None
    ) -> list[np.ndarray] | dict[str, np.ndarray]:
        """Run the model: a mapping of inputs by name returns a dict of outputs by name, a list returns a list.

        Each value has exactly the input's dtype and a shape that the file allows; results are copies. raises
        InvalidArgumentError for other values, the errors of operators, RuntimeError (errors.OpError, too) with the run
        time's messages if it fails
        """
        number, signature = self._signature(signature_key)
        values = ordered_values(signature, inputs)
        arrays = [checked_array(p, value) for p, value in zip(signature.inputs, values)]
        with self._alone:
            new = {i: a.shape for i, (p, a) in enumerate(zip(signature.inputs, arrays)) if a.shape != p.shape}
            if new:
                self._resize(number, signature, new, True)
            if not signature.allocated:
                self._allocate(number, signature)
            if signature.buffers is None:
                signature.buffers = _buffers(signature)
            bound = signature.buffers
            for buffer, array in zip(bound.inputs, arrays):
                buffer.array[...] = array
            self._run(number, signature, bound)
            results = [buffer.array.copy() for buffer in bound.outputs]
        if is_named(inputs):
            return dict(zip((p.name for p in signature.outputs), results))
        return results

    __call__ = run

    def run_by_index(
        self, signature_index: int, input_buffers: Sequence[TensorBuffer], output_buffers: Sequence[TensorBuffer]
    ) -> None:
        """Run a signature between buffers, in order. Raises as run, and for buffers of other shapes or dtypes."""
        signature = self._by_number(signature_index)
        with self._alone:
            if not signature.allocated:
                self._allocate(signature_index, signature)
            check_buffers(signature.inputs, input_buffers)
            check_buffers(signature.outputs, output_buffers)
            self._run(signature_index, signature, BufferBinding(input_buffers, output_buffers))

    def run_by_name(
        self, signature_key: str, input_map: Mapping[str, TensorBuffer], output_map: Mapping[str, TensorBuffer]
    ) -> None:
        """Run a signature between buffers by name; see run_by_index."""
        number, signature = self._signature(signature_key)
        check_names(signature.inputs, input_map, "inputs")
        check_names(signature.outputs, output_map, "outputs")
        self.run_by_index(
            number, [input_map[p.name] for p in signature.inputs], [output_map[p.name] for p in signature.outputs]
        )

    def _run(self, number: int, signature: ModelSignature, bound: BufferBinding) -> None:
        compiled, logged = self._loaded.compiled, ""
        signature.last_buffers = bound
        if signature.has_run:
            status = self._invoke(compiled, number, *bound.arguments)
        else:
            with StderrCapture() as captured:
                status = self._invoke(compiled, number, *bound.arguments)
            logged = captured.text
        self._loaded.raise_errors()
        if status:
            raise self._loaded.failure(status, "failed to run the model", logged)
        signature.has_run = True

    # ---- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Release the run time's objects; the model cannot run afterwards. Happens automatically on deletion."""
        if self._finalizer.alive:
            with self._alone:
                for signature in self._signatures:
                    signature.buffers = signature.last_buffers = None
                self._finalizer()

    def __enter__(self) -> CompiledModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._finalizer.alive:
            return "<CompiledModel, closed>"
        return f"<CompiledModel of {len(self._signatures)} signatures, {len(self._loaded.nodes)} custom nodes>"


def _names(signature: ModelSignature) -> dict[str, list[str]]:
    return {"inputs": [p.name for p in signature.inputs], "outputs": [p.name for p in signature.outputs]}


def _buffers(signature: ModelSignature) -> BufferBinding:
    """Return buffers for a run. A tensor has one memory: it may be both input and output, or an output twice."""
    first: dict[int, TensorBuffer] = {}

    def made(p: SignatureTensor) -> TensorBuffer:
        buffer = TensorBuffer(p.tensor, p.shape, p.what, first.get(p.tensor.index))
        first.setdefault(p.tensor.index, buffer)
        return buffer

    return BufferBinding([*map(made, signature.inputs)], [*map(made, signature.outputs)])


def _buffer(p: SignatureTensor) -> TensorBuffer:
    return TensorBuffer(p.tensor, p.shape, p.what)

"""`CompiledModel`: a model in the official run time, with Opwright's operators.

Lives here: making it, shapes, running, closing.
Not here: the library (library.py), which nodes are given to it (carrying.py), what they are there (nodes.py).
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...compiler.native.image import library as c_library
from ...core import flags
from ...core.errors import FailedPreconditionError, InvalidArgumentError, OpError
from ..format import Model
from ..format.external import refuse_external
from ..resolver import CustomOps
from ..runtime.errors import also
from ..runtime.opening import open_model
from .buffers import TensorBuffer
from .captured import Captured
from .carrying import Carried, carry
from .library import CPU, HANDLE, INT, Layout, check, environment, in_words, library
from .nodes import GivenNode, kernel
from .signatures import Place, Signature, signatures_of

_OP = "lite.litert.CompiledModel"


class _Held:
    """What the run time was given, until it is closed: its own objects, and what they point to."""

    def __init__(self) -> None:
        self.options, self.model, self.compiled = HANDLE(), HANDLE(), HANDLE()
        self.content: Any = None  # the file's bytes, where the run time reads from them
        self.nodes: list[GivenNode] = []
        self.errors: list[BaseException] = []  # out of callbacks

    def close(self) -> None:
        """Let go of everything, what refers to others first."""
        its = library()
        for handle, destroy in ((self.compiled, its.DestroyCompiledModel), (self.options, its.DestroyOptions),
                                (self.model, its.DestroyModel)):  # fmt: skip
            if handle.value:
                value, handle.value = handle.value, None
                destroy(value)
        for node in self.nodes:
            node.close()
        self.nodes, self.content = [], None


class CompiledModel:
    """A model that the official LiteRT run time runs, with operators of Opwright's given to it as machine code.

    model: a path, the file's bytes, or a `lite.Model`. custom_ops: as `lite.Interpreter` takes them; those that
    Opwright brings are there, too. num_threads: at most so many for one operator, by default as the interpreter.
    hardware_accelerator: "cpu", the one of which operators are given. One thread at a time may run it.

    >>> with lite.litert.CompiledModel("model.tflite", custom_ops=[Atan]) as model:
    ...     outputs = model.run({"x": x})

    An operator with a kernel that the compiled engine takes (`native_nodes` tells) runs without Python; any other
    calls back into Python, where it takes as long as in the interpreter and some microseconds more.

    raises ImportError (errors.OpError, too) where the wheel `ai-edge-litert` is missing or too old, NotFoundError
    listing custom operators that are not given, UnimplementedError for tensors that the run time passes to no
    operator, RuntimeError with what the run time said where it does not take the model; ValueError (all are
    errors.OpError) for a model that is missing or damaged, or options of a node that its operator does not know
    """

    def __init__(self, model: Any, custom_ops: CustomOps = (), *, num_threads: int | None = None,
                 hardware_accelerator: str = "cpu") -> None:  # fmt: skip
        if hardware_accelerator != "cpu":
            raise InvalidArgumentError(op=_OP, what="no such accelerator", found=repr(hardware_accelerator),
                                       wanted="'cpu'")  # fmt: skip
        if num_threads is not None and (not isinstance(num_threads, int) or isinstance(num_threads, bool)
                                        or num_threads < 1):  # fmt: skip
            raise InvalidArgumentError(op=_OP, what="num_threads is an integer of at least 1", found=repr(num_threads))
        library()  # what is wrong with it comes first
        path = os.fspath(model) if isinstance(model, str | os.PathLike) else None
        file = open_model(path, None if path is not None else model)
        file.verify(flow=False)
        refuse_external(file)
        self._threads = num_threads or flags.get("num_threads") or os.cpu_count() or 1
        self._lock, self._runner = threading.Lock(), 0
        self._held = held = _Held()
        self._finalizer = weakref.finalize(self, held.close)
        try:
            carriage = carry(file, custom_ops)
            held.nodes = [GivenNode(c, carriage.resolver, self._threads, held.errors) for c in carriage.nodes]
            kernel()
            with Captured() as captured:
                status = self._make(carriage.model, None if carriage.changed else model, carriage.nodes)
            if status:
                raise self._failure(status, "does not take the model", captured.text)
            self._signatures = signatures_of(held.model.value or 0, carriage.model)
            for number, signature in enumerate(self._signatures):
                if not any(p.is_dynamic for p in signature.inputs):  # else for the shapes of the first run
                    with self._running():
                        self._allocate(number, signature)
        except BaseException:
            self._finalizer()
            raise

    @classmethod
    def from_file(cls, model_path: str | os.PathLike[str], custom_ops: CustomOps = (), **options: Any) -> CompiledModel:
        """The model in a file; options as the constructor's."""
        return cls(os.fspath(model_path), custom_ops, **options)

    @classmethod
    def from_buffer(cls, model_data: Any, custom_ops: CustomOps = (), **options: Any) -> CompiledModel:
        """The model in bytes; options as the constructor's."""
        return cls(model_data, custom_ops, **options)

    # ---- making -----------------------------------------------------------------------------------------------------

    def _make(self, file: Model, given: Any, nodes: Sequence[Carried]) -> int:
        """Load and compile. given: the path or bytes that may be handed over as they are, else None. Gives a status."""
        its, held = library(), self._held
        if isinstance(given, str | os.PathLike):
            status = its.CreateModelFromFile(environment(), os.fsencode(given), ctypes.byref(held.model))
        else:
            content = given if isinstance(given, bytes) else file.to_bytes()
            held.content = content
            address = ctypes.cast(ctypes.c_char_p(content), HANDLE)
            status = its.CreateModelFromBuffer(environment(), address, len(content), ctypes.byref(held.model))
        if status:
            return int(status)
        check(its.CreateOptions(ctypes.byref(held.options)), "making options")
        check(its.SetOptionsHardwareAccelerators(held.options, CPU), "choosing the processor")
        self._add_settings("xnnpack", f"num_threads = {self._threads}\n")
        self._add_settings("runtime_options_string", "error_reporter_mode = 2\n")  # errors are kept, to be asked for
        for carried, node in zip(nodes, held.nodes):
            code = carried.code.encode("utf-8", "surrogateescape")
            status = its.AddCustomOpKernelOption(held.options, code, 1, ctypes.byref(kernel()), node.address)
            check(status, f"giving {carried.name}")
        return int(its.CreateCompiledModel(environment(), held.model, held.options, ctypes.byref(held.compiled)))

    def _add_settings(self, group: str, settings: str) -> None:
        """Add a group of settings, in the form that it keeps them: TOML, in memory of C's."""
        c, its, text = c_library(), library(), settings.encode()
        c.malloc.restype, c.malloc.argtypes = HANDLE, [ctypes.c_size_t]
        memory = c.malloc(len(text) + 1)
        ctypes.memmove(memory, text, len(text) + 1)
        made = HANDLE()
        free = ctypes.cast(c.free, HANDLE)
        check(its.CreateOpaqueOptions(group.encode(), memory, free, ctypes.byref(made)), "making options")
        check(its.AddOpaqueOptions(self._held.options, made), "adding options")

    # ---- what it takes and gives ------------------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs by signature, in the run time's order; {} where the model has none."""
        return {s.key: _names(s) for s in self._signatures if s.key is not None}

    def get_num_signatures(self) -> int:
        """How many signatures it can be run by; a model without any has one of its main subgraph."""
        return len(self._signatures)

    def get_signature_index(self, key: str) -> int:
        """The number of a signature, -1 where there is none of that key."""
        return next((i for i, s in enumerate(self._signatures) if s.key == key), -1)

    def get_signature_by_index(self, index: int) -> dict[str, Any]:
        """The key and the names of inputs and outputs of a signature."""
        signature = self._by_number(index)
        return {"key": signature.key, **_names(signature)}

    def get_input_details(self, signature_key: str | None = None) -> list[dict[str, Any]]:
        """Of each input what `lite.Interpreter.get_input_details` says; the shapes are those of now."""
        return [p.details() for p in self._signature(signature_key)[1].inputs]

    def get_output_details(self, signature_key: str | None = None) -> list[dict[str, Any]]:
        """As get_input_details, of each output."""
        return [p.details() for p in self._signature(signature_key)[1].outputs]

    def get_input_tensor_details(self, signature_key: str | None = None) -> dict[str, dict[str, Any]]:
        """Name, index, dtype and shape of each input by its name, as the wheel's own compiled model says them."""
        return {p.name: p.brief() for p in self._signature(signature_key)[1].inputs}

    def get_output_tensor_details(self, signature_key: str | None = None) -> dict[str, dict[str, Any]]:
        """As get_input_tensor_details, of each output."""
        return {p.name: p.brief() for p in self._signature(signature_key)[1].outputs}

    @property
    def native_nodes(self) -> dict[str, bool]:
        """For each node that runs an operator given to the run time, by place and name: whether it does so without
        Python. False, too, where the run time has not asked for its shapes yet."""
        return {f"{n.carried.place} ({n.carried.name})": n.is_native for n in self._held.nodes}

    def is_fully_accelerated(self) -> bool:
        """What the run time says: whether no operator runs by its plain kernels."""
        self._check_open()
        found = ctypes.c_bool()
        check(library().CompiledModelIsFullyAccelerated(self._held.compiled, ctypes.byref(found)), "asking")
        return found.value

    def _by_number(self, index: int) -> Signature:
        if not isinstance(index, int) or not 0 <= index < len(self._signatures):
            raise InvalidArgumentError(op=_OP, what="no such signature", found=repr(index),
                                       wanted=f"0..{len(self._signatures) - 1}")  # fmt: skip
        return self._signatures[index]

    def _signature(self, key: str | None) -> tuple[int, Signature]:
        if key is None and len(self._signatures) == 1:
            return 0, self._signatures[0]
        number = -1 if key is None else self.get_signature_index(key)
        if number < 0:
            raise InvalidArgumentError(op=_OP, what="no such signature" if key is not None else
                                       "the model has several signatures", found=None if key is None else repr(key),
                                       wanted=", ".join(s.key or "" for s in self._signatures),
                                       do="signature_key=")  # fmt: skip
        return number, self._signatures[number]

    # ---- shapes -----------------------------------------------------------------------------------------------------

    def resize_input_tensor(self, input_index: int | str, dims: Sequence[int], signature_index: int = 0,
                            strict: bool = True) -> None:  # fmt: skip
        """Give an input another shape. strict: only sizes that the file leaves unknown may change.

        `run` does so by itself where the file leaves them unknown. Raises InvalidArgumentError
        """
        signature = self._by_number(signature_index)
        number = signature.input(input_index)
        shape = tuple(map(int, dims))
        with self._running():
            self._resize(signature_index, signature, {number: shape}, strict)

    def resize_input_tensor_by_name(self, signature_key: str, input_name: str, dims: Sequence[int],
                                    strict: bool = True) -> None:  # fmt: skip
        """As resize_input_tensor, by names."""
        self.resize_input_tensor(input_name, dims, self._signature(signature_key)[0], strict)

    def _resize(self, number: int, signature: Signature, shapes: Mapping[int, tuple[int, ...]], strict: bool) -> None:
        for i, shape in shapes.items():
            p = signature.inputs[i]
            if (strict and not p.takes(shape)) or not shape or min(shape) < 1:
                do = "strict=False" if strict and shape and min(shape) > 0 else None
                wanted = f"{list(p.signature)}, -1 for any size of at least 1"
                raise InvalidArgumentError(op=_OP, what=f"{p.what} cannot have this shape", found=list(shape),
                                           wanted=wanted, do=do)  # fmt: skip
        resize = library().CompiledModelResizeInputTensorNonStrict
        for i, shape in shapes.items():
            status = resize(self._held.compiled, number, i, (INT * len(shape))(*shape), len(shape))
            if status:
                raise self._failure(status, f"does not give {signature.inputs[i].what} the shape {list(shape)}")
            signature.inputs[i].shape = shape
            signature.allocated, signature.buffers = False, None

    def _allocate(self, number: int, signature: Signature) -> None:
        """Have shapes worked out. What goes wrong in an operator's shape rules is raised."""
        outputs = signature.outputs
        layouts = (Layout * max(len(outputs), 1))()
        signature.told = False
        with Captured() as captured:
            status = library().GetCompiledModelOutputTensorLayouts(self._held.compiled, number, len(outputs), layouts,
                                                                   True)  # fmt: skip
        self._raise_errors()
        if status:
            raise self._failure(status, "does not make ready", captured.text)
        for p, layout in zip(outputs, layouts):
            p.shape = layout.shape
        signature.allocated = True

    # ---- buffers ----------------------------------------------------------------------------------------------------

    def create_input_buffers(self, signature_index: int = 0) -> list[TensorBuffer]:
        """Memory for the inputs of a signature, for the shapes they have now."""
        return [_buffer(p) for p in self._by_number(signature_index).inputs]

    def create_output_buffers(self, signature_index: int = 0) -> list[TensorBuffer]:
        """Memory for the outputs of a signature, for the shapes that follow from the inputs' of now."""
        signature = self._by_number(signature_index)
        with self._running():
            if not signature.allocated:
                self._allocate(signature_index, signature)
        return [_buffer(p) for p in signature.outputs]

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """Memory for one input."""
        signature = self._signature(signature_key)[1]
        return _buffer(signature.inputs[signature.input(input_name)])

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """Memory for one output."""
        number, signature = self._signature(signature_key)
        names = [p.name for p in signature.outputs]
        if output_name not in names:
            raise InvalidArgumentError(op=_OP, what="no such output", found=repr(output_name), wanted=", ".join(names))
        return self.create_output_buffers(number)[names.index(output_name)]

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, inputs: Mapping[str, Any] | Sequence[Any] | np.ndarray = (), signature_key: str | None = None) -> Any:
        """Run it: a mapping of inputs by name gives a dict of outputs by name, a list gives a list.

        Each value has exactly the input's dtype and a shape that the file allows; results are copies.
        raises InvalidArgumentError for other values, what operators raise, RuntimeError (errors.OpError, too) with what
        the run time said where it fails
        """
        number, signature = self._signature(signature_key)
        values = _in_order(signature, inputs)
        arrays = [_checked(p, value) for p, value in zip(signature.inputs, values)]
        with self._running():
            new = {i: a.shape for i, (p, a) in enumerate(zip(signature.inputs, arrays)) if a.shape != p.shape}
            if new:
                self._resize(number, signature, new, True)
            if not signature.allocated:
                self._allocate(number, signature)
            if signature.buffers is None:
                signature.buffers = [*map(_buffer, signature.inputs)], [*map(_buffer, signature.outputs)]
            ins, outs = signature.buffers
            for buffer, array in zip(ins, arrays):
                np.copyto(buffer.array, array)
            self._run(number, signature, ins, outs)
            results = [buffer.array.copy() for buffer in outs]
        if isinstance(inputs, Mapping):
            return dict(zip((p.name for p in signature.outputs), results))
        return results

    __call__ = run

    def run_by_index(self, signature_index: int, input_buffers: Sequence[TensorBuffer],
                     output_buffers: Sequence[TensorBuffer]) -> None:  # fmt: skip
        """Run a signature between buffers, in order. Raises as run, and for buffers of other shapes or dtypes."""
        signature = self._by_number(signature_index)
        with self._running():
            if not signature.allocated:
                self._allocate(signature_index, signature)
            for places, buffers in ((signature.inputs, input_buffers), (signature.outputs, output_buffers)):
                if len(buffers) != len(places):
                    raise InvalidArgumentError(op=_OP, what="another number of buffers", found=len(buffers),
                                               wanted=", ".join(p.what for p in places) or "none")  # fmt: skip
                for p, buffer in zip(places, buffers):
                    _check_buffer(p, buffer)
            self._run(signature_index, signature, input_buffers, output_buffers)

    def run_by_name(self, signature_key: str, input_map: Mapping[str, TensorBuffer],
                    output_map: Mapping[str, TensorBuffer]) -> None:  # fmt: skip
        """As run_by_index, by names."""
        number, signature = self._signature(signature_key)
        _check_names(signature.inputs, input_map, "inputs")
        _check_names(signature.outputs, output_map, "outputs")
        self.run_by_index(number, [input_map[p.name] for p in signature.inputs],
                          [output_map[p.name] for p in signature.outputs])  # fmt: skip

    def _run(self, number: int, signature: Signature, ins: Sequence[TensorBuffer],
             outs: Sequence[TensorBuffer]) -> None:  # fmt: skip
        handles = [(HANDLE * len(buffers))(*[b.handle for b in buffers]) for buffers in (ins, outs)]
        its, compiled = library(), self._held.compiled
        signature.held = ins, outs
        captured = None
        if signature.told:
            status = its.RunCompiledModel(compiled, number, len(ins), handles[0], len(outs), handles[1])
        else:
            with Captured() as captured:
                status = its.RunCompiledModel(compiled, number, len(ins), handles[0], len(outs), handles[1])
        self._raise_errors()
        if status:
            raise self._failure(status, "failed to run the model", captured.text if captured is not None else "")
        signature.told = True

    @contextmanager
    def _running(self) -> Iterator[None]:
        """One thread at a time; an operator that it runs may not run it again."""
        if self._runner == threading.get_ident():
            raise FailedPreconditionError(op=_OP, what="an operator of the model runs the model itself")
        with self._lock:
            self._check_open()
            self._runner = threading.get_ident()
            self._held.errors.clear()
            try:
                yield
            finally:
                self._runner = 0

    # ---- what goes wrong --------------------------------------------------------------------------------------------

    def _raise_errors(self) -> None:
        """Raise the first error out of a callback: the run time does not heed what callbacks return."""
        if self._held.errors:
            error = self._held.errors[0]
            self._held.errors.clear()
            if self._held.compiled.value:
                library().CompiledModelClearErrors(self._held.compiled)
            raise error

    def _failure(self, status: int, what: str, logged: str = "") -> OpError:
        """The error for a call of the run time that failed, with all that it said."""
        said = [self._said(), *(line for line in logged.splitlines() if not line.startswith("INFO"))]
        text = "".join(f"\n  said    {line}" for part in said for line in part.splitlines() if line.strip())
        return also(InvalidArgumentError, RuntimeError)(op=_OP, what=f"the official run time {what}{text}",
                                                        found=in_words(status))  # fmt: skip

    def _said(self) -> str:
        its, compiled = library(), self._held.compiled
        text = HANDLE()
        if not compiled.value or its.CompiledModelGetErrorMessages(compiled, ctypes.byref(text)) or not text.value:
            return ""
        said = ctypes.string_at(text.value).decode(errors="replace")
        c_library().free(text)
        its.CompiledModelClearErrors(compiled)
        return said

    # ---- the end ----------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise FailedPreconditionError(op=_OP, what="the model is closed")

    def close(self) -> None:
        """Give everything back to the run time; it cannot run any more. Happens by itself at the end."""
        with self._lock:
            for signature in self._signatures:
                signature.buffers = signature.held = None
            self._finalizer()

    def __enter__(self) -> CompiledModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._finalizer.alive:
            return "<CompiledModel, closed>"
        return f"<CompiledModel of {len(self._signatures)} signatures, {len(self._held.nodes)} nodes given to it>"


def _names(signature: Signature) -> dict[str, list[str]]:
    return {"inputs": [p.name for p in signature.inputs], "outputs": [p.name for p in signature.outputs]}


def _buffer(p: Place) -> TensorBuffer:
    return TensorBuffer(p.tensor, p.shape, p.what)


def _check_names(places: Sequence[Place], given: Mapping[str, Any], what: str) -> None:
    names = [p.name for p in places]
    missing, unknown = [n for n in names if n not in given], [n for n in given if n not in names]
    if missing or unknown:
        raise InvalidArgumentError(op=_OP, what=f"the {what} are others", found=", ".join(map(repr, given)) or "none",
                                   wanted=", ".join(map(repr, names)) or "none")  # fmt: skip


def _in_order(signature: Signature, inputs: Any) -> list[Any]:
    if isinstance(inputs, Mapping):
        _check_names(signature.inputs, inputs, "inputs")
        return [inputs[p.name] for p in signature.inputs]
    values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
    if len(values) != len(signature.inputs):
        raise InvalidArgumentError(op=_OP, what="another number of inputs", found=len(values),
                                   wanted=", ".join(p.name for p in signature.inputs) or "none")  # fmt: skip
    return values


def _checked(p: Place, value: Any) -> np.ndarray:
    array, wanted = np.asarray(value), np.dtype(p.tensor.dtype.np)
    if array.dtype != wanted:
        raise InvalidArgumentError(op=_OP, what=f"{p.what} has another dtype", found=array.dtype.name,
                                   wanted=wanted.name, do=f"value.astype({wanted.name!r})")  # fmt: skip
    if array.shape != p.shape and not p.takes(array.shape):
        raise InvalidArgumentError(op=_OP, what=f"{p.what} has another shape", found=list(array.shape),
                                   wanted=list(p.signature), do="resize_input_tensor(..., strict=False)")  # fmt: skip
    return array


def _check_buffer(p: Place, buffer: Any) -> None:
    if not isinstance(buffer, TensorBuffer):
        raise TypeError(f"{p.what} is a TensorBuffer of this module, found {type(buffer).__name__}")
    if buffer.shape != p.shape or buffer.dtype != np.dtype(p.tensor.dtype.np):
        raise InvalidArgumentError(op=_OP, what=f"the buffer of {p.what} is for another tensor", found=repr(buffer),
                                   wanted=f"{np.dtype(p.tensor.dtype.np).name}{list(p.shape)}")  # fmt: skip

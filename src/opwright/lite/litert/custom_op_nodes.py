"""Nodes of the official run time that run Opwright's operators: the record in memory, and the Python side.

Lives here: `CustomOpNode`, the two callbacks into Python.
Not here: the machine code that runs a node (callbacks.ll), the choice of nodes (node_replacement.py).

Each node has an interpreter of a model that consists of this node, so that options, versions, shapes, quantized
variants and errors are the interpreter's. If the compiled engine has claimed the node, machine code connects its plan
to the run time's memory and runs it; an operator of a C library runs through its record there; otherwise Python invokes
the interpreter.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...compiler.native.image import runs_images
from ...compiler.native.store import find_or_make
from ...compiler.native.workers import functions, raise_pending
from ...core.errors import InternalError, OpError, UnimplementedError
from ...core.forks import once
from ..compiled.fast_path import address_of
from ..compiled.plan_registration import PlanRegistration, one_by_one
from ..interpreter import Interpreter
from ..native.registration import NativeRegistration
from ..resolver import OpResolver
from ..runtime.node import Node
from ..runtime.tensor import DYNAMIC, Tensor
from .library import HANDLE, INT, LAYOUTS, MOST_AXES, SIZE, CustomOpKernel, describe_status, library
from .node_replacement import ReplacedNode

_PYTHON = ctypes.CFUNCTYPE(INT, HANDLE, INT, ctypes.POINTER(HANDLE))
_FAILED = 3  # the returned status; the run time ignores it
_STRANGE = -1  # status of callbacks.ll for a wrong number of tensors
_MOST_SWITCHES = 8
_RECORD, _PATCH = 10, 3  # words
_INPUTS, _OUTPUTS, _LOCK, _UNLOCK, _ADDRESSES, _EXECUTE, _PLAN, _PATCHES, _FIRST_PATCH, _TO_PYTHON = range(_RECORD)

_nodes: weakref.WeakValueDictionary[int, CustomOpNode] = weakref.WeakValueDictionary()  # by address of the record


class CustomOpNode:
    """A node that answers the run time's requests for shapes and runs.

    errors: list to which exceptions of callbacks are appended, for the model to raise raises the errors of an
    interpreter that cannot open the node: ValueErrors that are OpErrors
    """

    def __init__(self, carried: ReplacedNode, resolver: OpResolver, threads: int, errors: list[BaseException]) -> None:
        self.carried, self._errors = carried, errors
        try:
            self._interpreter = Interpreter(model_content=carried.model, num_threads=threads, op_resolver=resolver)
        except OpError as error:
            raise self._placed(error) from error.__cause__
        subgraph = self._interpreter._subgraphs[0]
        self._inputs = [subgraph.tensors[i] for i in subgraph.inputs]
        self._outputs = [subgraph.tensors[i] for i in subgraph.outputs]
        self._executor: Any = None  # of the plan, alive while its address is in the record
        self._planned: Node | None = None  # the node that owns the plan
        self._foreign: np.ndarray | None = None  # the call of an operator in C
        self.shape_error: BaseException | None = None  # why it has no shapes; the run time continues nevertheless
        passed, outputs = len(carried.passed), len(self._outputs)
        self._addresses = np.zeros(max(passed + outputs, 1), np.int64)
        self._patches: np.ndarray = np.zeros(0, np.int64)
        self.record = np.zeros(_RECORD, np.int64)
        self.record[[_INPUTS, _OUTPUTS]] = passed, outputs
        self.record[_LOCK], self.record[_UNLOCK] = (library().address(f"{n}TensorBuffer") for n in ("Lock", "Unlock"))
        self.record[_ADDRESSES] = address_of(self._addresses)
        self.record[_TO_PYTHON] = ctypes.cast(_compute, HANDLE).value or 0
        _nodes[self.address] = self

    @property
    def address(self) -> int:
        """Address of the record: the user data that the run time passes."""
        return address_of(self.record)

    @property
    def is_native(self) -> bool:
        """Whether it runs without Python, with the shapes of its last prepare."""
        return bool(self.record[_PLAN])

    # ---- shapes -----------------------------------------------------------------------------------------------------

    def shape(self, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Prepare the node for these shapes of its arguments; return the shapes of its outputs."""
        self.record[_PLAN] = 0
        self._executor = self._planned = self._foreign = None
        interpreter = self._interpreter
        if len(shapes) != len(self.carried.passed):
            raise self._strange(len(shapes))
        for index, sizes in zip(self.carried.passed, shapes):
            t = self._inputs[index]
            if t.shape != sizes:
                interpreter.resize_tensor_input(t.index, sizes)
        interpreter.allocate_tensors()
        for _ in range(_MOST_SWITCHES):  # until all kernels are compiled; each switch may start more compilations
            if not interpreter._waiting or interpreter._engine is None:
                break
            interpreter._engine.wait()
            interpreter._switch_engine()
        for t in self._outputs:
            if t.kind == DYNAMIC:
                raise UnimplementedError(
                    op=self.carried.name,
                    at=self.carried.place,
                    what=f"the shape of its output {t.name!r} follows from values, and the "
                    "official run time asks for shapes before there are any",
                    do="lite.Interpreter runs the model",
                )
            if len(t.shape) > MOST_AXES:
                raise UnimplementedError(
                    op=self.carried.name,
                    at=self.carried.place,
                    what=f"output {t.name!r} has {len(t.shape)} axes",
                    wanted=f"at most {MOST_AXES} in the official run time",
                )
        self._connect()
        return [t.shape for t in self._outputs]

    def _connect(self) -> None:
        """Set up machine code to run the compiled engine's plan or the operator in C, if there is one."""
        plan = self._interpreter._subgraphs[0].execution_plan
        if len(plan) != 1 or not runs_images():
            return
        node, registration = plan[0], plan[0].registration
        if isinstance(registration, PlanRegistration):
            connection = registration.words()
            if connection is not None:
                self._executor, tensors = connection
                self._planned = node
                self._patch((word, t, offset) for t, words in tensors for word, offset in words)
                self.record[_EXECUTE], self.record[_PLAN] = functions().run, self._executor.address
        elif isinstance(registration, NativeRegistration):
            call = registration.words(node)
            if call is not None:
                self._patch((word, t, 0) for t, words in call.places for word in words if self._is_given(t))
                self._foreign = np.array([call.run, call.call, call.where, call.expected], np.int64)
                self.record[_EXECUTE], self.record[_PLAN] = callback_addresses()[_FOREIGN], address_of(self._foreign)

    def _patch(self, words: Iterable[tuple[int, Tensor, int]]) -> None:
        """Set the words to write before each run: the address of a tensor's elements plus an offset."""
        rows = [(word, self._which(t), offset) for word, t, offset in words]
        self._patches = np.array(rows, np.int64).reshape(-1, _PATCH)
        self.record[_PATCHES], self.record[_FIRST_PATCH] = len(self._patches), address_of(self._patches)

    def _is_given(self, t: Tensor) -> bool:
        """Return whether the run time owns the tensor: it is not a constant."""
        return t in self._outputs or t in self._inputs

    def _which(self, t: Tensor) -> int:
        """Return the index of a tensor's address."""
        if t in self._outputs:
            return len(self.carried.passed) + self._outputs.index(t)
        return self.carried.passed.index(self._inputs.index(t))

    # ---- running in Python ------------------------------------------------------------------------------------------

    def compute(self, status: int) -> None:
        """Run the node between locked buffers, by the interpreter's own kernels."""
        raise_pending()  # the interrupt that stopped machine code
        if status:
            if status == _STRANGE:
                raise self._strange("others")
            raise InternalError(
                op=self.carried.name,
                at=self.carried.place,
                what="the official run time provides no memory for a tensor",
                found=describe_status(status),
            )
        for which, index in enumerate(self.carried.passed):
            _copy(self._inputs[index], self._addresses[which], False)
        if self._planned is not None:
            if self._executor is not None:
                self.record[_PLAN] = self._executor.address  # its threads may have been lost in a fork
            one_by_one(self._planned)
        elif self._foreign is not None:
            self._invoke_in_c()
        else:
            self._interpreter.invoke()
        for which, t in enumerate(self._outputs, len(self.carried.passed)):
            _copy(t, self._addresses[which], True)

    def _invoke_in_c(self) -> None:
        """Run an operator in C in the interpreter's memory, and connect it again: its words may have moved."""
        self.record[_PLAN], self._foreign = 0, None
        self._interpreter._subgraphs[0]._bind_steps()
        try:
            self._interpreter.invoke()
        finally:
            self._connect()

    def clear(self, outputs: Any) -> None:
        """Zero the outputs of a failed node, so that later nodes do not read uninitialized memory."""
        size = ctypes.c_size_t()
        for which in range(len(self._outputs)):
            address = int(self._addresses[len(self.carried.passed) + which])
            if address and not library().GetTensorBufferPackedSize(outputs[which], ctypes.byref(size)):
                ctypes.memset(address, 0, size.value)

    def fail(self, error: BaseException) -> BaseException:
        """Store an error for the model to raise."""
        placed = self._placed(error) if isinstance(error, OpError) else error
        self._errors.append(placed)
        return placed

    def _placed(self, error: OpError) -> OpError:
        """Return the error with the node's number in the original model."""
        name, location = self.carried.name, self.carried.place.removeprefix("node ")
        error.args = (error.message.replace(f"ode number 0 ({name})", f"ode {location} ({name})"), *error.args[1:])
        return error

    def _strange(self, count: object) -> InternalError:
        return InternalError(
            op=self.carried.name,
            at=self.carried.place,
            what="the official run time passes another number of tensors",
            found=count,
            wanted=len(self.carried.passed),
        )

    def keep_alive(self) -> None:
        """Prevent the operator's state from being freed at exit, as the node is still running."""
        self._interpreter._ownership.running = True

    def close(self) -> None:
        """Free the operator's state. The run time must have released the node before."""
        self.record[_PLAN] = 0
        self._interpreter.close()


def _copy(t: Tensor, address: Any, out: bool) -> None:
    """Copy a tensor's elements to the run time's memory (out), or from it."""
    assert t.array is not None
    array = t.array
    if not array.size:
        return
    memory = (ctypes.c_char * array.nbytes).from_address(int(address))
    theirs = np.frombuffer(memoryview(memory), array.dtype).reshape(array.shape)
    np.copyto(*((theirs, array) if out else (array, theirs)))


# ---- callbacks ------------------------------------------------------------------------------------------------------


def _get_output_layouts(record: int, count: int, inputs: Any, outputs_count: int, outputs: Any) -> int:
    """Run GetOutputLayouts, which the run time calls in allocation, after a change of shapes."""
    node = _nodes.get(record)
    if node is None:
        return _FAILED
    node.shape_error = None
    try:
        shapes = node.shape([inputs[i].shape for i in range(count)])
        if len(shapes) != outputs_count:
            raise node._strange(outputs_count)
        for i, sizes in enumerate(shapes):
            outputs[i].shape = sizes
        return 0
    except BaseException as error:  # exceptions must not leave a callback
        node.shape_error = node.fail(error)
        for i in range(outputs_count):
            outputs[i].shape = ()
        return _FAILED


_layouts = LAYOUTS(_get_output_layouts)


def _run_in_python(record: int, status: int, outputs: Any) -> int:
    """Run a node that has no plan, or whose plan stopped."""
    node = _nodes.get(record)
    if node is None:
        return _FAILED
    try:
        if node.shape_error is not None:
            raise node.shape_error
        node.compute(status)
        return 0
    except BaseException as error:
        node.fail(error)
    if outputs:
        node.clear(outputs)
    return _FAILED


_compute = _PYTHON(_run_in_python)


_INIT, _RUN, _DESTROY, _FOREIGN = range(4)


@once
def callback_addresses() -> tuple[int, ...]:
    """Return the addresses of the functions in callbacks.ll."""
    text = Path(__file__).with_name("callbacks.ll").read_text(encoding="utf-8")
    code = find_or_make("litert.callbacks", text, None, lambda: (text, "callbacks"))
    table: Callable[[int], int] = ctypes.CFUNCTYPE(SIZE, ctypes.c_int64)(code.address)
    return tuple(map(table, range(4)))


@once
def kernel() -> CustomOpKernel:
    """Return the callbacks of all nodes."""
    here = callback_addresses()
    return CustomOpKernel(here[_INIT], ctypes.cast(_layouts, HANDLE), here[_RUN], here[_DESTROY])


def _after_fork() -> None:
    """Clear plans in the child process, whose threads do not exist: the next run of a node starts them."""
    for node in list(_nodes.values()):
        if node._executor is not None:
            node.record[_PLAN] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""Interpreter: runs a `.tflite` model, under the official interpreter's names.

Lives here: opening a model, access to its tensors, signatures.
Not here: running (runtime/), kernels (ops/), resolvers (resolver.py), when machine code takes over
(compiled/engine_control.py).
"""

from __future__ import annotations

import enum
import functools
import os
import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags
from ..core.errors import InvalidArgumentError, OpError, also
from ..core.lazy_imports import finalizer, later
from ..core.named_tuples import NamedTuple
from ..core.processors import usable_processors
from .compiled.engine_control import EngineControl
from .compiled.fast_path import FastPath
from .compiled.fast_path import find as find_fast_path
from .runtime.errors import as_base
from .runtime.ownership import NO_TENSORS, UNKNOWN_THREAD, Ownership, brief, exclusive
from .runtime.tensor import ARENA, OWN, Tensor
from .runtime.tensor_access import (
    ExportedViews,
    check_exported_views,
    elements,
    export_view,
    read_tensor,
    resized_shape,
    write_tensor,
)

if TYPE_CHECKING:
    from ..core import blas_threads, children
    from . import resolver
    from .compiled import ahead, engine
    from .format import model as formats
    from .runtime import delegation, introspection, model_loader, profiler
    from .runtime import timeline as timelines
    from .runtime.subgraph import Subgraph
else:  # not needed by a model with a cached plan: 60 ms of a process's start
    resolver, formats = later(".resolver", __package__), later(".format.model", __package__)
    ahead, engine = later(".compiled.ahead", __package__), later(".compiled.engine", __package__)
    blas_threads, children = later("..core.blas_threads", __package__), later("..core.children", __package__)
    delegation, introspection = later(".runtime.delegation", __package__), later(".runtime.introspection", __package__)
    model_loader, profiler = later(".runtime.model_loader", __package__), later(".runtime.profiler", __package__)
    timelines = later(".runtime.timeline", __package__)


def _alive(me: weakref.ref[Interpreter]) -> Interpreter:
    interpreter = me()
    assert interpreter is not None, "delegates are asked by an interpreter that lives"
    return interpreter


class _File(NamedTuple):
    """State of an interpreter once its file is open."""

    model: formats.Model
    subgraphs: list[Subgraph]
    signatures: dict[str, Any]


class OpResolverType(enum.Enum):
    """The choice of kernels, under the official interpreter's names: AUTO and BUILTIN run supported operators as
    machine code (lite/compiled), the others run every operator by the interpreter's own kernels."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class Interpreter(EngineControl):
    """Runs a model.

    model_path or model_content: the file, or its bytes (a `lite.Model` is accepted). num_threads: maximum for one
    operator. custom_ops: `@ow.operator` classes in a list or a set, a dict from names to them or `lite.Registration`s,
    or a resolver; or a list of these. op_resolver: source of other kernels, by default the builtin operators.
    experimental_delegates: `lite.Delegate`s, applied in order; one that fails is dropped with a `lite.DelegateWarning`,
    and the model runs without it. experimental_op_resolver_type: BUILTIN_REF for only the interpreter's own kernels;
    otherwise operators with kernels in machine code run as such, from the first allocation on or once compiled, and
    `get_tensor` of an intermediate tensor is an error. experimental_preserve_all_tensors: keep every tensor, by the
    interpreter's own kernels.

    >>> interpreter = lite.Interpreter(model_content=content, custom_ops=[Atan])
    >>> interpreter.allocate_tensors()
    >>> interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    >>> interpreter.invoke()
    >>> y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    raises ValueError (errors.OpError, too) for a model that is missing, damaged or requires unavailable features
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: Any = None,
        num_threads: int | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        custom_ops: resolver.CustomOps = (),
        op_resolver: resolver.OpResolver | None = None,
        *,
        experimental_preserve_all_tensors: bool = False,
    ) -> None:
        if not isinstance(experimental_op_resolver_type, OpResolverType):
            raise ValueError(f"Unrecognized passed in op resolver type: {experimental_op_resolver_type}")
        if num_threads is not None:
            if not isinstance(num_threads, int) or isinstance(num_threads, bool):
                raise ValueError(f"type of num_threads should be int, found {type(num_threads).__name__}")
            if num_threads < 1:
                raise ValueError(f"num_threads should >= 1, found {num_threads}")
        self._ownership = Ownership()
        if op_resolver is not None and not isinstance(op_resolver, resolver.OpResolver):
            raise TypeError(f"op_resolver is a lite.OpResolver, found {type(op_resolver).__name__}")
        nothing = isinstance(custom_ops, tuple | list | set | dict) and not custom_ops
        self._custom_resolver = (
            None
            if op_resolver is None and nothing
            else resolver.with_customs(resolver.default_resolver() if op_resolver is None else op_resolver, custom_ops)
        )
        self._preserve_all = bool(experimental_preserve_all_tensors)
        self._threads = num_threads or flags.get("num_threads") or usable_processors()
        self._exported_views: ExportedViews = {}
        self._delegate_services: Any = None  # created for the first delegate
        self._engine = None
        compiling = experimental_op_resolver_type in (OpResolverType.AUTO, OpResolverType.BUILTIN)
        self._compiled = flags.compiled and compiling and not self._preserve_all
        self._waiting = False
        self._source = model_path
        is_bytes = model_content is not None and not isinstance(model_content, formats.Model)
        self._content = model_content if is_bytes else None
        self._file: _File | None = None
        self._fast_path: FastPath | None = None  # for a model with a cached plan, until more of the file is needed
        if self._compiled and self._custom_resolver is None and (not model_path or model_content is None):
            self._fast_path = self._find_fast_path()
        if self._fast_path is None:
            self._open(model_path, model_content)
        for delegate in experimental_delegates or ():
            self._delegate(delegate, strict=False)

    # ---- opening ---------------------------------------------------------------------------------------------------

    def _open(self, path: Any, content: Any) -> None:
        """Read the model. Raises OpErrors that are ValueErrors."""
        try:
            model, subgraphs = model_loader.open_subgraphs(
                path, content, self._resolver, self._threads, self._ownership
            )
        except OpError as error:
            raise as_base(error, ValueError) from error.__cause__
        self._file = _File(model, subgraphs, {d.signature_key: d for d in model.signature_defs})

    def _find_fast_path(self) -> FastPath | None:
        return None if flags.check_inputs or flags.verify else find_fast_path(self._source, self._content)

    @property
    def _resolver(self) -> resolver.OpResolver:
        """The resolver: the default one is built only once a file is read."""
        return resolver.default_resolver() if self._custom_resolver is None else self._custom_resolver

    @property
    def _opened(self) -> _File:
        """The open file; opened now if the fast path has not needed it."""
        if self._file is None:
            self._leave_fast_path()
        assert self._file is not None
        return self._file

    @property
    def _model(self) -> formats.Model:
        return self._opened.model

    @property
    def _subgraphs(self) -> list[Subgraph]:
        file = self._file
        return (self._opened if file is None else file).subgraphs

    @property
    def _signatures(self) -> dict[str, Any]:
        return self._opened.signatures

    @exclusive("changed")
    def _leave_fast_path(self) -> None:
        """Open the file, and reproduce the state of the fast path."""
        fast_path = self._fast_path
        if fast_path is None:  # another thread left it while this one waited
            return
        try:
            self._open(None, fast_path.mapping)
            if fast_path.allocated:
                fast_path.hand_over(self._subgraphs[0].resources)
                self._allocate(0)
                fast_path.go_on(self._subgraphs[0].resources)
                for index, t in fast_path.tensors.items():
                    np.copyto(elements(self._subgraphs[0].tensors[index]), elements(t))
            self._fast_path = None  # last: other threads may read details meanwhile
        except BaseException:  # a KeyboardInterrupt, or no memory: restore the state
            self._engine, self._waiting, self._file = None, False, None
            raise

    # ---- life -----------------------------------------------------------------------------------------------------

    @exclusive("allocated")
    def allocate_tensors(self) -> None:
        """Initialize and prepare the operators, and allocate tensors. Call it again after a resize.

        raises RuntimeError (errors.OpError, too) naming the node that failed, or all custom operators without kernel
        """
        if self._fast_path is not None:
            self._fast_path.allocate(self._threads)
        else:
            self._allocate(0)

    def invoke(self) -> None:
        """Run the model. Raises RuntimeError (errors.OpError, too) naming the node that failed."""
        ownership = self._ownership
        while ownership.thread:
            ownership.wait("invoked")
        ownership.thread = UNKNOWN_THREAD  # as `exclusive` does, without the cost of a call
        try:
            direct = ownership.direct
            if direct is None or flags.check_inputs:
                ownership.thread = get_ident()  # for kernels, which may read tensors
                self._invoke_and_update()
            elif status := direct():
                self._stopped(status)
        finally:
            ownership.thread = 0

    def _invoke_and_update(self) -> None:
        """Run the model, and update the direct invocation."""
        fast_path = self._fast_path
        if fast_path is None or flags.check_inputs or not fast_path.run():
            self._invoke(0)
        self._update_direct()

    def _update_direct(self) -> None:
        """Set the direct invocation and the direct tensors after a run."""
        fast_path = self._fast_path
        if fast_path is not None:
            run, reach, follow = fast_path.direct, fast_path.reach, None
        elif self._waiting:
            return
        else:
            main = self._subgraphs[0]
            run, _, _, follow = main.direct
            reach = NO_TENSORS if self._engine is None else main.reach
        ownership = self._ownership
        ownership.direct, ownership.follow = run, follow
        ownership.writable, ownership.readable = reach.writable, reach.readable

    def _stopped(self, status: int) -> None:
        """Resume after a direct run that returned a status, in machine code if possible."""
        ownership = self._ownership
        if ownership.follow is None or not ownership.follow():
            ownership.thread = get_ident()
            self._recover(status)

    def _recover(self, status: int) -> None:
        """Resume after a direct run that returned a status. This may move variables to other memory."""
        self._ownership.drop()
        if self._fast_path is None:
            self._subgraphs[0].recover(status)
            self._update_direct()
        else:
            self._fast_path.check(status)
            self._invoke(0)  # by the file's nodes

    @exclusive("profiled")
    def profile(self, runs: int = 20, *, memory: bool = False) -> profiler.Profile:
        """Invoke `runs` times and time each node. memory: run once more to measure each node's allocations beyond the
        arena.

        Returns a list with a row (a dict) for each node in execution order: node, operator, name (of the outputs),
        calls, first, average, seconds (the median), fastest, slowest, share, cumulative, bytes, memory. `operators()`
        aggregates them by operator; `called` has the rows of other subgraphs, by index.

        A delegate's node is the operator DELEGATE, with two more keys: the delegate's name and the nodes it replaces.
        (DelegateFlags.PER_OPERATOR_PROFILING: rows of the replaced nodes, if its kernels report them.)

        raises RuntimeError (errors.OpError, too) as invoke does; ValueError for no runs
        """
        if runs < 1:
            raise InvalidArgumentError(
                op="Interpreter.profile", what="no runs to time", found=f"runs={runs}", wanted="1 or more"
            )
        return profiler.profile(self._subgraphs, runs, memory)

    @exclusive("recorded")
    def timeline(self, runs: int = 5) -> timelines.Timeline:
        """Return what ran when, on which thread, in the fastest of `runs` runs: nodes, and the steps of compiled plans.

        raises RuntimeError (errors.OpError, too) as invoke does; ValueError for no runs
        """
        if runs < 1:
            raise InvalidArgumentError(
                op="Interpreter.timeline", what="no runs to record", found=f"runs={runs}", wanted="1 or more"
            )
        return timelines.timeline(self._subgraphs, runs)

    @exclusive("closed")
    def close(self) -> None:
        """Free every operator's state, once; the interpreter cannot run afterwards. Happens automatically on deletion.

        raises the first error of a free method, after all have been called
        """
        if self._fast_path is not None:
            self._fast_path.close()
            return
        if self._engine is not None:
            self._engine.cancel()
        errors = [error for subgraph in self._subgraphs for error in subgraph.close()]
        if errors:
            raise errors[0]

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @finalizer
    def __del__(self) -> None:
        if self.__dict__.get("_file") is not None and not self._ownership.torn:
            self.close()  # Python reports an exception raised here, and continues

    # ---- tensors --------------------------------------------------------------------------------------------------

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy a value, of exactly its dtype and shape, into a tensor. Raises ValueError."""
        ownership = self._ownership
        put = ownership.writable.get(tensor_index) if type(tensor_index) is int else None
        if put is None or ownership.thread or not put(value):  # atomic: no thread switch between these two
            self._set_any(tensor_index, value)

    @brief("written")
    def _set_any(self, tensor_index: int, value: Any) -> None:
        self._set(tensor_index, value, 0)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        """Return a copy of a tensor's elements; for rank 0 a NumPy scalar.

        raises ValueError for an invalid index or before allocate_tensors
        """
        ownership = self._ownership
        copy = ownership.readable.get(tensor_index) if type(tensor_index) is int and subgraph_index == 0 else None
        if copy is None or ownership.thread:
            return self._get_any(tensor_index, subgraph_index)
        return copy()  # atomic: no thread switch in between

    @brief("read")
    def _get_any(self, tensor_index: int, subgraph_index: int) -> Any:
        return read_tensor(self._elements(tensor_index, subgraph_index), self._tensor(tensor_index, subgraph_index))

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """Return a function that returns the tensor's elements in place, as a view; constants are read-only.

        Keep the function, not the view: while a view (or a slice of one) is alive, a resize of an input and an
        allocation that would move the elements raise RuntimeError. Runs are allowed; after one, a dynamic tensor may
        have moved.
        """
        if self._fast_path is not None:  # views require fixed memory
            self._leave_fast_path()
        return lambda: self._lend(tensor_index)

    @brief("read")
    def _lend(self, tensor_index: int) -> np.ndarray:
        return export_view(self._exported_views, self._tensor(tensor_index, 0), self._elements(tensor_index, 0))

    @exclusive("resized")
    def resize_tensor_input(self, input_index: int, tensor_size: Any, strict: bool = False) -> None:
        """Set the shape of an input; call allocate_tensors next. strict: only sizes that are unknown may change.

        raises RuntimeError (errors.OpError, too)
        """
        self._resize(input_index, tensor_size, strict, 0)

    @exclusive("reset")
    def reset_all_variables(self) -> None:
        """Set every variable tensor to zeros."""
        if self._fast_path is not None:
            self._fast_path.reset_variables()
            return
        for subgraph in self._subgraphs:
            subgraph.reset_variables()

    # ---- details --------------------------------------------------------------------------------------------------

    def get_input_details(self) -> list[dict[str, Any]]:
        """Return for each input: name, index, shape, shape_signature, dtype, quantization, quantization_parameters,
        sparsity_parameters."""
        fast_path = self._fast_path
        if fast_path is not None:
            return [*map(introspection.tensor_details, fast_path.inputs)]
        main = self._subgraphs[0]
        return [introspection.tensor_details(main.tensors[i]) for i in main.inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """Return the details of each output; see get_input_details."""
        fast_path = self._fast_path
        if fast_path is not None:
            return [*map(introspection.tensor_details, fast_path.outputs)]
        main = self._subgraphs[0]
        return [introspection.tensor_details(main.tensors[i]) for i in main.outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Return the details of every tensor that has them. Raises ValueError for an invalid index."""
        details = []
        for t in self._subgraph(subgraph_index).tensors:
            try:
                details.append(introspection.tensor_details(t))
            except ValueError:
                continue
        return details

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs."""
        return len(self._subgraphs)

    def _get_ops_details(self) -> list[dict[str, Any]]:
        return [introspection.node_details(node) for node in self._subgraphs[0].nodes]

    # ---- signatures -----------------------------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of inputs and outputs of each signature, by key; each list is sorted."""
        return {
            key: {"inputs": sorted(m.name for m in d.inputs), "outputs": sorted(m.name for m in d.outputs)}
            for key, d in self._signatures.items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> introspection.SignatureRunner:
        """Return a function that runs a signature: called with its inputs by name, it returns its outputs by name.

        signature_key: may be omitted for a single signature. Raises ValueError.
        """
        if signature_key is None:
            if len(self._signatures) != 1:
                what = f"SignatureDef signature_key is None and model has {len(self._signatures)} Signatures. "
                what += "None is only allowed when the model has 1 SignatureDef"
                raise InvalidArgumentError(what=what, wanted=", ".join(self._signatures) or None)
            signature_key = next(iter(self._signatures))
        return introspection.SignatureRunner(self, signature_key)

    # ---- delegates ------------------------------------------------------------------------------------------------

    @exclusive("changed")
    def modify_graph_with_delegate(self, delegate: Any) -> None:
        """Let a `lite.Delegate` claim nodes of every subgraph, after the delegates applied before.

        Call allocate_tensors next, unless tensors were allocated: then they are allocated again. It takes precedence
        over the compiled engine, which claims the remaining nodes. raises RuntimeError (errors.OpError, too) if the
        delegate fails, now or in allocate_tensors when its kernels are prepared; the interpreter then continues without
        it. TypeError for an object that is not a Delegate
        """
        if self._engine is None:
            self._delegate(delegate, strict=True)
            return
        ready = [i for i, subgraph in enumerate(self._subgraphs) if subgraph.ready]
        self._withdraw()
        try:
            self._delegate(delegate, strict=True)
        finally:
            for i in ready:
                self._subgraphs[i].unready()
                self._allocate(i)

    @exclusive("changed")
    def remove_all_delegates(self) -> None:
        """Free all delegates' kernels, and restore the file's plan. Call allocate_tensors next.

        The compiled engine is removed, too.
        """
        self._compiled = False
        self._withdraw()
        if self._delegate_services is not None:
            if any(s.delegation is not None and s.delegation.applied for s in self._subgraphs):
                self._ownership.check_idle("changed")
            delegation.remove_all_delegates(self._subgraphs)

    def _planning(self, identity: str) -> Callable[[ahead.Shapes], Any]:
        return functools.partial(_plan_apart, self._source, self._content, identity)

    def _delegate(self, delegate: Any, strict: bool) -> None:
        self._ownership.check_idle("changed")
        if self._delegate_services is None:
            me: weakref.ref[Interpreter] = weakref.ref(
                self
            )  # avoids a reference cycle, to free it without the collector
            self._delegate_services = delegation.DelegateServices(
                lambda name: _alive(me)._metadata(name), lambda subgraph: _alive(me)._check_resolved(subgraph), {}
            )
        delegation.apply_delegate(self._subgraphs, delegate, self._delegate_services, strict)

    def _metadata(self, name: str) -> bytes | None:
        for entry in self._model.metadata:
            if entry.name == name:
                data = self._model.buffers[entry.buffer].data
                return b"" if data is None else bytes(data)
        return None

    # ---- by subgraph, for signatures ------------------------------------------------------------------------------

    def _allocate(self, subgraph_index: int) -> None:
        subgraph = self._subgraph(subgraph_index)
        if subgraph.ready:
            return
        check_exported_views(self._exported_views, subgraph_index)
        if (
            subgraph.closed and self._engine is not None
        ):  # its plans are freed: later runs use the interpreter's kernels
            self._withdraw()
            self._compiled = False
        if self._compiled and self._engine is None:
            self._start_engine()
        if self._delegate_services is not None:
            for s in self._subgraphs:
                if s.delegation is not None:
                    s.delegation.redo()
        self._check_resolved(subgraph)
        subgraph.allocate(self._preserve_all)
        if self._engine is not None:
            self._waiting = self._engine.compile_missing()

    def _invoke(self, subgraph_index: int) -> None:
        if self._waiting:
            self._switch_engine()
        if self._waiting or not self._compiled:  # reference kernels run
            with blas_threads.at_most(self._blas_threads()):
                self._subgraphs[subgraph_index].invoke()
        else:
            self._subgraphs[subgraph_index].invoke()
        if self._waiting and self._engine is not None:
            self._engine.note_run()

    def _check_resolved(self, start: Subgraph) -> None:
        if any(n.registration is None for s in self._subgraphs for n in s.execution_plan):
            model_loader.check_resolved(self._subgraphs, start, self._resolver)

    def _subgraph(self, index: int) -> Subgraph:
        if not 0 <= index < len(self._subgraphs):
            raise InvalidArgumentError(
                what=f"subgraph_index is out of range: {index} for the model, "
                f"which has {len(self._subgraphs)} subgraphs."
            )
        return self._subgraphs[index]

    def _tensor(self, index: Any, subgraph_index: int) -> Tensor:
        try:
            position = index.__index__()
        except AttributeError:
            raise TypeError(f"a tensor index is an integer, found {index!r}") from None
        if self._fast_path is not None and subgraph_index == 0:
            t = self._fast_path.tensors.get(position)
            if t is not None:
                return t
        tensors = self._subgraph(subgraph_index).tensors
        if not 0 <= position < len(tensors):
            raise InvalidArgumentError(
                what=f"Invalid tensor index {position} exceeds max tensor index {len(tensors)}",
                do='get_input_details()[i]["index"]',
            )
        result: Tensor = tensors[position]
        return result

    def _elements(self, index: int, subgraph_index: int) -> np.ndarray:
        t = self._tensor(index, subgraph_index)
        if self._fast_path is not None:
            return elements(t)
        delegated = self._subgraphs[subgraph_index].delegation
        return elements(t, None if delegated is None or t.array is not None else delegated.inside(t))

    def _set(self, index: int, value: Any, subgraph_index: int) -> None:
        write_tensor(self._tensor(index, subgraph_index), value)

    def _resize(self, index: int, size: Any, strict: bool, subgraph_index: int) -> None:
        if self._fast_path is not None:
            self._leave_fast_path()
        try:
            t = self._tensor(index, subgraph_index)
        except OpError as error:
            raise as_base(error, RuntimeError) from None
        sizes = resized_shape(t, size, strict)
        subgraph = self._subgraph(subgraph_index)
        if t.index not in subgraph.inputs or t.kind not in (ARENA, OWN) or t.is_variable:
            what = f"tensor {index} is not an input of the model"
            raise also(InvalidArgumentError, RuntimeError)(
                what=what, found=repr(t), do='get_input_details()[i]["index"]'
            )
        try:
            if sizes != t.shape:
                check_exported_views(self._exported_views, subgraph_index)
            subgraph.resize_input(t, sizes)
        except OpError as error:
            raise as_base(error, RuntimeError) from None


class _Planner(Interpreter):
    """An interpreter for planning a model on a background thread; it compiles synchronously."""

    @property
    def _background(self) -> bool:
        return False

    def _find_fast_path(self) -> None:
        return None


def _plan_ahead(path: Any, content: Any, identity: str, shapes: ahead.Shapes) -> None:
    """Plan a model for inputs of these shapes, by subgraph, and cache the plans."""
    planner = _Planner(path, content, num_threads=1)
    for subgraph, input_shapes in enumerate(shapes):
        for i, shape in zip(planner._subgraphs[subgraph].inputs, input_shapes):
            if planner._subgraphs[subgraph].tensors[i].shape != shape:
                planner._resize(i, shape, False, subgraph)
    planner._allocate(0)
    ahead.note_planned(identity, shapes)


def _plan_apart(path: Any, content: Any, identity: str, shapes: ahead.Shapes) -> None:
    """Call `_plan_ahead` in a child process if possible: planning and LLVM take 150 MB, and Python's lock from
    concurrent runs."""
    arguments = [None if path is None else os.path.abspath(os.fsdecode(path)), identity, shapes]
    if not children.call_apart(f"{__name__}:_plan_in_child", arguments, content, background=False):
        _plan_ahead(path, content, identity, shapes)


def _plan_in_child(path: str | None, identity: str, shapes: ahead.Shapes, content: bytes | None = None) -> None:
    _plan_ahead(path, content, identity, [[*map(tuple, inputs)] for inputs in shapes])

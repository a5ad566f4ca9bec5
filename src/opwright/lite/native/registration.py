"""Registrations of operators in C: init, prepare, invoke and free call the library's functions.

Lives here: `NativeRegistration`.
Not here: entry points of a library (custom_ops.py), a node's record in C (nodes.py), tensors (c_context.py), callbacks
(callbacks.py).

A run of a node whose tensors are all at their planned addresses is one foreign call, without Python and without the
interpreter lock. Tensors that C may move, and those with another encoding in C, are copied before and after it.
"""

from __future__ import annotations

import ctypes as C
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...compiler.native.builtins import bound, builtins
from ...core.errors import CancelledError, FailedPreconditionError, InvalidArgumentError, OpError, UnimplementedError
from ..registration import Registration
from ..runtime.direct_invocation import DirectInvocation
from ..runtime.node import Context, Node
from ..runtime.tensor import DYNAMIC, Tensor
from . import records
from .c_context import EVERY, READABLE
from .c_state import check_shape, sync_from_c, sync_type_from_c
from .callbacks import native_context_of, provider
from .element_conversion import is_converted
from .nodes import NativeCall, NativeNode
from .records import CCall, CCalls, CContext, CRegistration, CTensor


class JoinedRun:
    """A run of consecutive nodes by one foreign call. failed: the index of the node that raised last."""

    __slots__ = ("_context", "_keepalive", "_record", "_run", "failed", "nodes")

    def __init__(self, context: Context, nodes: Sequence[Node]) -> None:
        self.nodes, self.failed, self._context = nodes, 0, context
        calls: list[CCall] = [node.user_data.call for node in nodes]
        addresses = (C.c_void_p * len(calls))(*map(C.addressof, calls))
        self._record = CCalls(C.addressof(addresses), len(calls), 0)
        self._run, call = foreign_call(provider().ow_run_all, C.addressof(self._record))
        self._keepalive = addresses, calls, call

    def __call__(self) -> None:
        status = self._run()
        if status:
            self._fail(status)

    @property
    def direct(self) -> DirectInvocation:
        """The foreign call alone."""
        return DirectInvocation(self._run, self._fail, calls_back=True)

    def _fail(self, status: int) -> None:
        self.failed = self._record.done
        node = self.nodes[self.failed]
        registration: Any = node.registration
        raise registration.failed_run(self._context, node, status)


def foreign_call(function: Any, argument: int) -> tuple[Callable[[], int], Any]:
    """Return a function that calls `int function(void *)` of a C library, and the object that it depends on."""
    functions = builtins()
    if functions is None:
        return functools.partial(function, argument), None
    words = (C.c_void_p * 2)(C.cast(function, C.c_void_p).value, argument)
    return bound(functions.foreign, C.addressof(words)), words


class NativeRegistration(Registration):
    """Registration of an operator in a shared library.

    library: the path. entry: the name of its entry point. name: the operator's name. record: its TfLiteRegistration.
    kept: objects that must live as long (the library, an operator's record).
    """

    __slots__ = ("_address", "_provider", "dependencies", "entry", "library", "name", "record")

    init_at_creation = True

    def __init__(
        self, provider: Any, record: CRegistration, name: str, version: int, library: str, entry: str, kept: Any
    ) -> None:
        super().__init__(self._init, self._free, self._prepare, self._invoke, version)
        self._provider, self.record, self._address = provider, record, C.addressof(record)
        self.name, self.library, self.entry, self.dependencies = name, library, entry, kept

    # ---- the four methods -------------------------------------------------------------------------------------------

    def _init(self, context: Context, options: Any) -> NativeNode:
        node = context.node
        address, size = self._options(node, options)
        c_context = native_context_of(node.subgraph, self._provider)
        native = NativeNode(c_context, node)
        c_context.initializing = native
        state = self._provider.ow_init(self._address, c_context.address, address, size)
        native.record.user_data = state
        native.set_options(address, size)
        if state == records.INIT_FAILED or c_context.host.misuse:
            native.record.user_data = None if state == records.INIT_FAILED else state
            try:
                raise self._error(context, native, "init", "said that it failed, by the state (void*)-1")
            finally:
                self._free(context, native)
        return native

    def _options(self, node: Node, options: Any) -> tuple[int | None, int]:
        """Return the address and size of a custom operator's options."""
        if options is None or (isinstance(options, bytes) and not node.has_options):
            return None, 0
        if not isinstance(options, bytes):
            raise UnimplementedError(
                op=node.name,
                what="kernels in C do not receive the options of builtin operators",
                found=f"{type(options).__name__} for {self.where}",
                wanted="a custom operator, or a builtin one without options",
            )
        return C.cast(C.c_char_p(options), C.c_void_p).value, len(options)  # the node keeps them alive

    def _prepare(self, context: Context, node: Node) -> None:
        native: NativeNode = node.user_data
        c_context, subgraph = native.c_context, node.subgraph
        native.resized.clear()
        c_context.reserve()
        for t in node.tensors_out:
            if t.is_object and not c_context.is_dynamic(
                t
            ):  # as in the official run time: invoke may determine the number of strings
                subgraph._dynamic.add(t.index) if t.kind == DYNAMIC else subgraph.make_dynamic(t)
        for i in native.touched():
            c_context.push(i, *(EVERY if subgraph.running else READABLE))
        status = self._provider.ow_prepare(self._address, c_context.address, native.address)
        if status not in (records.OK, records.SHAPE_NOT_KNOWN) or c_context.failure is not None:
            raise self._error(context, native, "prepare", self._words(status), status)
        try:
            native.check_lists()
            for i in native.writable():
                sync_type_from_c(c_context, i)
                sync_from_c(c_context, i) if c_context.is_elsewhere(i) else check_shape(c_context, i)
            native.keep_sizes()
            native.read_temporaries()
            if status == records.SHAPE_NOT_KNOWN:
                for i in native.outputs:
                    if i not in native.resized and not c_context.is_dynamic(c_context.tensors[i]):
                        subgraph.make_dynamic(c_context.tensors[i])
        except OpError as error:
            c_context.failure = error
            raise self._error(context, native, "prepare", "") from error

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        native: NativeNode = node.user_data
        c_context = native.c_context
        c_context.reserve()
        for i in native.touched():
            c_context.push(i, *EVERY)
        self._check_inputs(node)
        if any(self._is_handed_over(c_context.tensors[i]) for i in native.touched()):
            native.call = None
            return super().bind(context, node)
        native.call = native.as_call(self._address)
        return JoinedRun(context, [node])

    def failed_run(self, context: Context, node: Node, status: int) -> OpError:
        """Return the error of a run with this status, after restoring the node's tensors in C."""
        native: NativeNode = node.user_data
        context.begin(node)
        for i in native.touched():  # which C may have modified
            native.c_context.push(i, *EVERY)
        return self._error(context, native, "invoke", self._words(status), status)

    @staticmethod
    def is_joinable(node: Node) -> bool:
        """Return whether a bound node may be merged into a JoinedRun: none of its tensors is copied."""
        return node.user_data.call is not None

    bind_many = JoinedRun

    def words(self, node: Node) -> NativeCall | None:
        """Return a bound node's run for callers without Python (see NativeCall), None if its tensors are copied."""
        native: NativeNode = node.user_data
        if native.call is None or any(self._is_handed_over(native.c_context.tensors[i]) for i in native.touched()):
            return None
        start, step = C.addressof(native.c_context.array), C.sizeof(CTensor)
        fields = CTensor.data.offset, CTensor.allocation.offset
        places = [
            (native.c_context.tensors[i], [start + i * step + offset for offset in fields]) for i in native.ends()
        ]
        where = C.addressof(native.c_context.context) + CContext.tensors.offset
        run = C.cast(self._provider.ow_run, C.c_void_p).value or 0
        return NativeCall(run, C.addressof(native.call), places, where, start)

    @staticmethod
    def _check_inputs(node: Node) -> None:
        """Raise FailedPreconditionError for an input without elements, as the official run time does."""
        for i, t in enumerate(node.tensors_in):
            if t is not None and t.array is None:
                raise FailedPreconditionError(op=node.name, what=f"Input tensor {i} lacks data", found=repr(t))

    @staticmethod
    def _is_handed_over(t: Tensor) -> bool:
        return t._dtype is not None and (t.kind == DYNAMIC or is_converted(t) or t.is_object)

    def _invoke(self, context: Context, node: Node) -> None:
        native: NativeNode = node.user_data
        c_context = native.c_context
        native.resized.clear()
        c_context.reserve()
        for i in native.touched():
            c_context.push(i, *EVERY)
        self._check_inputs(node)
        status = self._provider.ow_invoke(self._address, c_context.address, native.address)
        writable = native.writable()
        if status != records.OK or c_context.failure is not None:
            for i in writable:
                c_context.discard(i)
            raise self._error(context, native, "invoke", self._words(status), status)
        try:
            for i in writable:
                sync_from_c(c_context, i)
            for t in node.tensors_out:
                if t.array is None:
                    raise InvalidArgumentError(
                        what=f"output {t.name!r} got no shape",
                        found=repr(t),
                        wanted="ResizeTensor in invoke, for what is dynamic",
                    )
        except OpError as error:
            c_context.failure = error
            raise self._error(context, native, "invoke", "") from error

    def _free(self, context: Context, native: NativeNode) -> None:
        c_context, state = native.c_context, native.record.user_data
        if state:
            self._provider.ow_free(self._address, c_context.address, state)
        native.release()
        if state and c_context.host.misuse:
            raise self._error(context, native, "free", "failed")

    # ---- messages ---------------------------------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """The library and the entry point."""
        return f"{self.library} ({self.entry})"

    def _words(self, status: int) -> str:
        return f"returned {records.STATUS.get(status, f'the status {status}, which is none')}"

    def _error(self, context: Context, native: NativeNode, phase: str, words: str, status: int = 1) -> OpError:
        """Return the error of a failed method, with its messages; or the error of a callback that caused it."""
        c_context = native.c_context
        failure, c_context.failure = c_context.failure, None
        for line in c_context.reported():
            context.report_error(line)
        if c_context.host.misuse and failure is None:
            words = "threw a C++ exception" if c_context.host.thrown else "misused the interface"
        c_context.host.report_used = c_context.host.misuse = c_context.host.thrown = 0
        cls = CancelledError if status == records.CANCELLED else FailedPreconditionError
        error = failure or cls(op=native.node.name, what=f"{phase} {words}")
        if not isinstance(error, OpError):
            raise error
        error.args = (f"{error.message}\n  library {self.where}",)
        return error

    def __repr__(self) -> str:
        return f"<Registration of {self.name} from {self.where}, version {self.version}>"

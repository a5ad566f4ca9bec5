"""Registrations of operators in C: init, prepare, invoke and free call the library's functions.

Lives here: `NativeRegistration`; `NativeNode`, a node's record in C, the tensors that it uses and its run.
Not here: entry points of a library (custom_ops.py), tensors (c_context.py), callbacks (callbacks.py).

A run of a node whose tensors are all at their planned addresses is one foreign call, without Python and without the
interpreter lock. Tensors that C may move, and those with another encoding in C, are copied before and after it.
"""

from __future__ import annotations

import ctypes as C
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...compiler.native.builtins import bound, builtins
from ...core.errors import CancelledError, FailedPreconditionError, InvalidArgumentError, OpError, UnimplementedError
from ..registration import Registration
from ..runtime.node import Context, Node
from ..runtime.ownership import DirectInvocation
from ..runtime.tensor import DYNAMIC, OWN, Tensor, TensorView
from . import records
from .c_context import EVERY, READABLE, NativeContext, is_converted
from .callbacks import check_shape, native_context_of, provider, sync_from_c, sync_type_from_c
from .records import CCall, CCalls, CContext, CNode, CRegistration, CTensor, CTensorState


class NativeNode:
    """A node in C. added: indices of the tensors that it added. resized: indices of tensors that the running method
    resized."""

    def __init__(self, c_context: NativeContext, node: Node) -> None:
        self.c_context, self.node = c_context, node
        self.inputs = [-1 if t is None else t.index for t in node.tensors_in]
        self.outputs = [t.index for t in node.tensors_out]
        self.intermediates = [-1 if v is None else v.tensor.index for v in node.intermediates]
        self.temporaries: list[int] = []
        self.added: list[int] = []
        self.resized: set[int] = set()
        self.call: CCall | None = None
        self._keepalive: Any = None  # objects that the call points to
        self.record = c = CNode()
        lists = (self.inputs, self.outputs, self.intermediates, ())
        c.inputs, c.outputs, c.intermediates, c.temporaries = map(c_context.arrays.ints, lists)
        self.address = C.addressof(c)
        self._lists = c.inputs, c.outputs
        c_context.nodes[self.address] = self

    def set_options(self, address: int | None, size: int) -> None:
        """Set a custom operator's options for prepare and invoke."""
        self.record.custom_initial_data, self.record.custom_initial_data_size = address, size

    def touched(self) -> list[int]:
        """Return the distinct indices of all its tensors."""
        indices = dict.fromkeys((*self.inputs, *self.outputs, *self.intermediates, *self.temporaries, *self.added))
        indices.pop(-1, None)
        return list(indices)

    def ends(self) -> list[int]:
        """Return the distinct indices of its inputs and outputs."""
        indices = dict.fromkeys((*self.inputs, *self.outputs))
        indices.pop(-1, None)
        return list(indices)

    def writable(self) -> list[int]:
        """Return the indices of the tensors that it may write: outputs, variables, temporaries."""
        variables = [i for i in self.inputs if i >= 0 and self.c_context.tensors[i].is_variable]
        indices = dict.fromkeys((*self.outputs, *variables, *self.intermediates, *self.added))
        indices.pop(-1, None)
        return list(indices)

    def may_resize(self, i: int) -> bool:
        """Return whether this node determines a tensor's shape."""
        return i in self.outputs or i in self.added or i in self.intermediates

    def keep_sizes(self) -> None:
        """Allocate tensors that an earlier prepare resized and this one did not."""
        for i in self.added:
            t = self.c_context.tensors[i]
            if i in self.c_context.sized_tensors and t.kind in (DYNAMIC, OWN) and t.array is None:
                self.c_context.subgraph.allocate_own(t)

    def check_lists(self) -> None:
        """Raise InvalidArgumentError if C replaced the lists of inputs or outputs."""
        if (self.record.inputs, self.record.outputs) != self._lists:
            raise InvalidArgumentError(
                what="prepare replaced the node's list of inputs or outputs",
                wanted="the original lists; only the temporaries are its own",
            )

    def read_temporaries(self) -> None:
        """Update the list of temporaries from C. Raises InvalidArgumentError for an index that is not one of its
        tensors."""
        c_context = self.c_context
        temporaries = records.read_int_array(self.record.temporaries, len(c_context.tensors))
        added = range(c_context.subgraph.file_tensors, len(c_context.tensors))
        if temporaries is None or any(i not in added for i in temporaries):
            size = C.c_int32.from_address(self.record.temporaries).value
            raise InvalidArgumentError(
                what="the node's temporaries are not among its added tensors",
                found=f"{size} of them" if temporaries is None else temporaries,
                wanted=f"indices {added.start} to {added.stop - 1}"
                if added
                else "indices from TfLiteContext.AddTensors, of which there are none",
            )
        self.temporaries = temporaries
        ready = [i for i in temporaries if i in c_context.sized_tensors and c_context.tensors[i].type is not None]
        self.node.temporaries = [TensorView(c_context.tensors[i], True) for i in ready]

    def as_call(self, registration: int) -> CCall:
        """Return its run as a call, for tensors at their planned addresses; other nodes see its inputs and outputs."""
        array, ends = self.c_context.array, self.ends()
        sizes = [(C.c_int32 * len(t.shape))(*t.shape) for t in (self.c_context.tensors[i] for i in ends)]
        places = (CTensorState * len(ends))(
            *(CTensorState(i, array[i].type, array[i].bytes, len(s), C.addressof(s)) for i, s in zip(ends, sizes))
        )
        self._keepalive = sizes, places
        return CCall(registration, self.c_context.address, self.address, C.addressof(places), len(places))

    def release(self) -> None:
        """Free its arrays."""
        c = self.record  # where C has set another list it has freed ours
        for address in (c.inputs, c.outputs, c.intermediates, c.temporaries):
            self.c_context.arrays.free(address)
        c.inputs = c.outputs = c.intermediates = c.temporaries = None
        self.c_context.nodes.pop(self.address, None)


class NativeCall(NamedTuple):
    """A node's run in C: `int run(call)`.

    places: by tensor, the addresses of the words that hold the address of its elements. They are valid while the word
    at `where` is `expected`: C may add tensors in a run, which moves the array of tensors.
    """

    run: int
    call: int
    places: list[tuple[Tensor, list[int]]]
    where: int
    expected: int


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
        self._push_all(node, native)
        if any(self._is_handed_over(c_context.tensors[i]) for i in native.touched()):
            native.call = None
            return super().bind(context, node)
        native.call = native.as_call(self._address)
        return JoinedRun(context, [node])

    def _push_all(self, node: Node, native: NativeNode) -> None:
        """Show C the tensors of a node as they are now. Raises OpError for inputs without a value."""
        native.c_context.reserve()
        for i in native.touched():
            native.c_context.push(i, *EVERY)
        self._check_inputs(node)

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
        self._push_all(node, native)
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

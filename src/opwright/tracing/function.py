"""`function`: a Python function that is traced once per type of its arguments and then executed as a graph.

Lives here: Function, the cache of traces. Not here: one trace (concrete.py), its creation (tracer.py), recording
(trace.py), execution and differentiation (program.py), binding of arguments (signature.py), their types
(trace_type.py), selection by type (dispatch_table.py).
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from ..autograph.api import convert_if_enabled
from ..core import flags
from ..core.introspection import signature_of
from ..core.notebook_reprs import shown_as
from ..core.specs import TensorSpec
from ..eager.variable import Variable
from ..ops import dispatch
from ..ops.tensor import Tensor
from .concrete import ConcreteFunction
from .container_type import ContainerType
from .dispatch_table import DispatchTable, RetraceDetector, detector_of
from .fast_path import (
    CACHE_LIMIT,
    CallCacheEntry,
    Uncacheable,
    call_key,
    can_cache,
    tensor_positions,
    with_unique_tensors,
)
from .placeholders import IdentityRequired
from .signature import Arguments, FunctionSignature, FunctionType, SignatureContext, kind_of
from .trace import TRACING
from .trace_type import TracingContext
from .tracer import record_trace

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
S = TypeVar("S")


class _InProgress(threading.local):
    def __init__(self) -> None:
        self.traces: list[tuple[Any, Any]] = []


_in_progress = _InProgress()


class Function(Generic[P, R]):
    """A Python function under `function`. A call selects a trace by the types of its arguments, or creates one.

    python_function: the original. Calls inside another trace are inlined into it.
    """

    def __init__(
        self,
        python_function: Callable[P, R],
        input_signature: Any = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
        experimental_implements: str | None = None,
        name: str | None = None,
    ) -> None:
        self.python_function = python_function
        self.signature = FunctionSignature(python_function, input_signature)
        self.name: str = name or self.signature.name
        self.autograph, self.jit_compile, self.reduce_retracing = autograph, jit_compile, reduce_retracing
        self.experimental_implements = experimental_implements
        self._table = DispatchTable(self._forget)
        self._call_cache: dict[Any, CallCacheEntry] = {}  # by keys of calls
        self._count = 0
        self._by_identity = False  # whether traces depend on the identity of variable arguments
        self._own: set[int] = set()  # ids of variables that a trace captures or is specific to
        self._bound: dict[int, tuple[Any, Function[..., Any]]] = {}
        self._detector: RetraceDetector = detector_of(python_function)
        functools.update_wrapper(
            self, python_function, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=()
        )
        if not hasattr(python_function, "__name__"):
            self.__name__ = self.name

    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        """The TensorSpecs given to `function`, or None."""
        return self.signature.input_signature

    @property
    def function_spec(self) -> FunctionSignature:
        """The parameters, and the binding of arguments to them."""
        return self.signature

    @property
    def function_type(self) -> FunctionType:
        """The parameters, with types where input_signature fixes them."""
        return self.signature.function_type

    def experimental_get_tracing_count(self) -> int:
        """Return the number of times the Python function has been traced."""
        return self._count

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable[..., str]:
        """Return a function that prints a stage of the compilation for these arguments, for jit_compile=True.

        stage: "report" (the default) lists the native nodes, and why the others are not native; "loops" prints the loop
        graphs, "plan" the steps with their memory.
        raises ValueError without jit_compile=True, and for other stages
        """
        if not self.jit_compile:
            raise ValueError(
                f"{self.name}: Compiler IR can only be returned for functions marked with 'jit_compile=True'. "
                "print(f.get_concrete_function(...).graph) shows the graph, ow.show('plan') the program, "
                "ow.show('llvm') the code of kernels"
            )
        from .concrete import stage_printer

        concrete = self.get_concrete_function(*args, **kwargs)
        bound = self.signature.bind(args, kwargs)
        tensors = concrete.kind.to_tensors(bound)
        return stage_printer(concrete, tensors)

    # ---- calling ----------------------------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if flags.run_functions_eagerly:
            return self.python_function(*args, **kwargs)
        key: Any
        entry: CallCacheEntry | None
        try:
            key, tensors_of_key = call_key(args, kwargs)
            entry = self._call_cache.get(key)
        except (Uncacheable, AttributeError, TypeError):  # errors are reported by the types of the arguments
            key, tensors_of_key, entry = None, [], None
        if entry is not None and (not self._own or self._own.isdisjoint(map(id, tensors_of_key))):
            self._detector.calls += 1
            value: R = entry.call(tensors_of_key)
            return value
        concrete, tensors = self._select(args, kwargs)
        result: R = concrete.call_flat(
            [
                t
                if isinstance(t, Tensor) or type(s) is not TensorSpec or s.dtype.is_handle
                else dispatch.to_tensor(t, s.dtype)
                for t, s in zip(tensors, concrete.tensor_specs)
            ]
        )
        if key is not None:
            self._cache_call(key, args, kwargs, concrete)
        return result

    def _select(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ConcreteFunction, list[Any]]:
        """Return the trace for a call, and its tensors among the arguments."""
        bound = self.signature.bind(args, kwargs)
        if self.signature.constraint is not None:
            bound = self.signature.cast(*bound)
        concrete = self._find(bound)
        return concrete, concrete.kind.to_tensors(bound)

    def _cache_call(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], concrete: ConcreteFunction) -> None:
        """Map calls with this key to the trace, if all of its tensors are among the arguments."""
        args, kwargs = with_unique_tensors(args), with_unique_tensors(kwargs)
        bound = self.signature.bind(args, kwargs)
        if self.signature.constraint is not None:
            bound = self.signature.cast(*bound)
        required = concrete.kind.to_tensors(bound)
        tensors = call_key(args, kwargs)[1]
        required_ids = set(map(id, required))
        if any(isinstance(t, Variable) and id(t) not in required_ids for t in tensors):
            return  # the trace is specific to this variable, which the key does not identify
        try:
            order = tensor_positions(required, tensors)
        except Uncacheable:
            return
        if not can_cache(required, concrete.tensor_specs, (args, kwargs)):
            return
        if len(self._call_cache) >= CACHE_LIMIT:
            self._call_cache.clear()
        self._call_cache[key] = CallCacheEntry(concrete, order)

    # ---- selecting and creating traces --------------------------------------------------------------------------

    def _find(self, bound: Arguments) -> ConcreteFunction:
        """Return the trace for a canonical call."""
        constraint = self.signature.constraint
        if constraint is not None:
            self._detector.calls += 1
            concrete = self._table.find(constraint)
            return concrete if concrete is not None else self._make(constraint, constraint, TracingContext(), bound)
        context = TracingContext(self._by_identity)
        kind = kind_of(*bound, context)
        concrete = self._table.find(kind)
        ids = {id(v) for v in context.variables}
        exact = None if self._own.isdisjoint(ids) else self._table.find(kind_of(*bound, TracingContext()))
        if exact is not None:
            concrete = exact
        elif concrete is None:
            try:
                concrete = self._make(kind, kind, context, bound)
            except IdentityRequired as error:
                if error.owner is not self:
                    raise
                self._by_identity = True
                return self._find(bound)
            if not ids:
                return concrete
        else:
            self._detector.calls += 1
        if ids and exact is None:
            captured = {id(v) for v in concrete.program.captured if isinstance(v, Variable)}
            self._own |= captured
            if not captured.isdisjoint(ids):  # a capture is also an argument: the trace would treat it as two variables
                context = TracingContext()
                kind = kind_of(*bound, context)
                self._own |= ids
                return self._make(kind, kind, context, bound)
        return concrete

    def _make(
        self, kind: ContainerType, named: ContainerType, context: TracingContext, call: Arguments | None = None
    ) -> ConcreteFunction:
        """Create the trace for a type of arguments that no trace supports.

        named: the type with the specs' names. call: the arguments, if it is a call; new variables may derive their
        initial values from them.
        """
        for function, traced in _in_progress.traces:
            if function is self and kind.is_subtype_of(traced):
                raise RecursionError(
                    f"tf.function-decorated function {self.name!r} calls itself, with arguments of the types that it "
                    "is being traced for: recursion of a tf.function is unsupported, since its graph would never end. "
                    "Use a loop, or recurse on Python values that change"
                )
        with TRACING:
            concrete: ConcreteFunction | None = self._table.find(kind)
            if concrete is None:
                if self.reduce_retracing:
                    wider = self._table.generalized(kind)
                    if wider != kind:
                        assert isinstance(wider, ContainerType)
                        kind = named = wider
                before = dispatch.state.trace, dispatch.state.tapes, dispatch.state.names
                depth = len(_in_progress.traces)
                outermost = depth == 0
                try:
                    _in_progress.traces.append((self, kind))
                    concrete = self._trace(kind, named, call)
                except RecursionError as error:
                    if not outermost or "tf.function-decorated" in str(error):
                        raise
                    raise RecursionError(
                        f"tracing tf.function-decorated function {self.name!r} did not end: {error}. Recursion of a "
                        "tf.function is unsupported unless Python values end it"
                    ) from None
                finally:  # reset by assignments: see Recording
                    dispatch.state.trace, dispatch.state.tapes, dispatch.state.names = before
                    del _in_progress.traces[depth:]
                self._table.add(kind, concrete, context.objects)
                if call is not None:  # explicitly requested traces do not count as retracing
                    self._detector.traced(self.name, kind, self._names(kind))
        return concrete

    def _names(self, kind: ContainerType) -> list[str]:
        positional = kind.parts[0]
        assert isinstance(positional, ContainerType)
        return self.signature.names(positional.parts)

    def _trace(self, kind: ContainerType, named: ContainerType, call: Arguments | None) -> ConcreteFunction:
        """Trace; if variables were created, trace again without permission to create them."""
        may_create = not len(self._table)
        concrete, created = self._record(kind, named, may_create, call)
        if created:
            concrete, _ = self._record(kind, named, False, None)
        return concrete

    def _record(
        self, kind: ContainerType, named: ContainerType, may_create: bool, call: Arguments | None
    ) -> tuple[ConcreteFunction, list[Any]]:
        self._count += 1
        return record_trace(self, kind, named, may_create, call)

    def _forget(self) -> None:
        """Clear the call cache: an object that a trace refers to has died, and its id may be reused."""
        self._call_cache.clear()

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the trace for these arguments: tensors, TensorSpecs or Python values; none if input_signature
        specifies all.

        raises TypeError for arguments that do not match the parameters, SignatureError for arguments that do not
        match input_signature
        """
        constraint = self.signature.constraint
        if constraint is not None:
            if args or kwargs:
                self.signature.cast(*self.signature.bind(args, kwargs), allow_specs=True)
            concrete = self._table.find(constraint)
            return concrete if concrete is not None else self._make(constraint, constraint, TracingContext())
        bound = self.signature.bind(args, kwargs)
        context = TracingContext()
        kind = kind_of(*bound, context)
        concrete = self._table.find(kind)
        return concrete if concrete is not None else self._make(kind, kind_of(*bound, SignatureContext()), context)

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Return the arguments and results of every trace as text."""
        return "\n\n".join(c.pretty_printed_signature(verbose) for c in self._table.values())

    # ---- object protocols -------------------------------------------------------------------------------------

    def _copy(self, python_function: Callable[..., Any]) -> Function[..., Any]:
        return type(self)(
            python_function,
            self.signature.input_signature,
            self.autograph,
            self.jit_compile,
            self.reduce_retracing,
            self.experimental_implements,
            self.name,
        )

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Q], S], instance: object, owner: type | None = None
    ) -> Function[Q, S]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Function[..., Any]:
        """Bind as a method: each instance has its own Function, which does not keep the instance alive."""
        if instance is None:
            return self
        existing = self._bound.get(id(instance))
        if existing is not None:
            return existing[1]
        key, plain = id(instance), self.python_function
        try:
            owner_ref = weakref.ref(self)

            def discard(_: Any) -> None:
                live_owner = owner_ref()
                if live_owner is not None:
                    live_owner._bound.pop(key, None)

            instance_ref: Any = weakref.ref(instance, discard)
        except TypeError:  # a class with __slots__ and no __weakref__

            def strong_ref() -> object:
                return instance

            instance_ref = strong_ref

        def method(*args: Any, **kwargs: Any) -> object:
            return convert_if_enabled(plain)(instance_ref(), *args, **kwargs)

        functools.update_wrapper(method, plain)
        parameters = list(signature_of(plain).parameters.values())
        if parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            parameters = parameters[1:]
        vars(method)["__signature__"] = inspect.Signature(parameters)
        bound = self._copy(method)
        bound._detector = RetraceDetector()
        self._bound[key] = (instance_ref, bound)
        return bound

    def __deepcopy__(self, memo: Any) -> Function[..., Any]:
        """Return a Function of the same Python function, without traces."""
        return self._copy(self.python_function)

    __copy__ = lambda self: self._copy(self.python_function)  # noqa: E731

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by name if it is a module attribute, otherwise by its Python function; traces are not pickled."""
        attribute: Any = sys.modules.get(self.__module__)
        name: str = getattr(self, "__qualname__", "")
        for part in name.split("."):
            attribute = getattr(attribute, part, None)
        if attribute is self:
            return name
        return _restored, (
            self.python_function,
            self.signature.input_signature,
            self.autograph,
            self.jit_compile,
            self.reduce_retracing,
            self.experimental_implements,
            self.name,
        )

    _repr_html_ = shown_as("function")

    def __repr__(self) -> str:
        return f"<opwright function {self.name}{self.signature.python}, {len(self._table)} traces>"


class _FunctionDecorator(Protocol):
    """The decorator that `function` returns if it is called with options only."""

    def __call__(self, func: Callable[P, R], /) -> Function[P, R]: ...


def _restored(*arguments: Any) -> Function[..., Any]:
    function = arguments[0]
    return function if isinstance(function, Function) else Function(*arguments)


@overload
def function(
    func: Callable[P, R],
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    name: str | None = None,
) -> Function[P, R]: ...
@overload
def function(
    func: None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    name: str | None = None,
) -> _FunctionDecorator: ...
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
    name: str | None = None,
) -> object:
    """Compile a Python function into a graph at its first call with arguments of each type. Usable with or without
    options.

    input_signature: TensorSpecs (nested like the parameters) that all calls must match; there is then one trace.
    jit_compile: whether to compile to machine code. reduce_retracing: whether to generalise shapes that change.
    experimental_implements: the name of the fused operator that a conversion generates for this function.

    >>> @ow.function
    ... def square_sum(x):
    ...     return ow.reduce_sum(x * x)

    raises TypeError if input_signature does not match the parameters, SignatureError at calls that do not match it
    """

    def wrap(f: Any) -> Any:
        if isinstance(f, (classmethod, staticmethod)):
            return type(f)(wrap(f.__func__))
        return Function(
            f,
            input_signature,
            autograph,
            jit_compile if experimental_compile is None else experimental_compile,
            reduce_retracing or bool(experimental_relax_shapes),
            experimental_implements,
            name,
        )

    return wrap if func is None else wrap(func)

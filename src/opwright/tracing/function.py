"""`function`: a Python function that is traced once for each kind of arguments and then runs as a graph.

Lives here: Function, the cache of traces.
Not here: one trace (concrete.py), making one (tracing.py), recording (trace.py), running and differentiating
(program.py), binding arguments (signature.py), their types (trace_type.py), choosing by them (dispatch_table.py).
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
    """A Python function under `function`: calls pick a trace by the arguments' types, or make one.

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
        self._by_identity = False  # whether what it computes depends on which variables its arguments are
        self._own: set[int] = set()  # ids of variables that some trace captures, or is made for
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
        """The parameters and how arguments are bound to them."""
        return self.signature

    @property
    def function_type(self) -> FunctionType:
        """The parameters, with types where input_signature fixes them."""
        return self.signature.function_type

    def experimental_get_tracing_count(self) -> int:
        """How many times the Python function has been traced."""
        return self._count

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> Callable[..., str]:
        """What shows the compiled form for these arguments: a function of the stage, for jit_compile=True.

        stage: "report" (the default) says which nodes are native and why the others are not; "loops" prints the loop
        graphs, "plan" the steps with their memory. raises ValueError without jit_compile=True, and for other stages
        """
        if not self.jit_compile:
            raise ValueError(
                f"{self.name}: Compiler IR can only be returned for functions marked with 'jit_compile=True'. "
                "print(f.get_concrete_function(...).graph) shows the graph, ow.show('plan') the program, "
                "ow.show('llvm') the code of kernels"
            )
        from .compiler_ir import shown

        concrete = self.get_concrete_function(*args, **kwargs)
        bound = self.signature.bind(args, kwargs)
        tensors = concrete.kind.to_tensors(bound)
        return shown(concrete, tensors)

    # ---- calling ----------------------------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if flags.run_functions_eagerly:
            return self.python_function(*args, **kwargs)
        key: Any
        way: CallCacheEntry | None
        try:
            key, met = call_key(args, kwargs)
            way = self._call_cache.get(key)
        except (Uncacheable, AttributeError, TypeError):  # the arguments' types say so in words, if they must
            key = way = None
        if way is not None and (not self._own or self._own.isdisjoint(map(id, met))):
            self._detector.calls += 1
            value: R = way.go(met)
            return value
        concrete, tensors = self._looked_up(args, kwargs)
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

    def _looked_up(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ConcreteFunction, list[Any]]:
        """The trace for a call, and what of its arguments are the trace's tensors."""
        bound = self.signature.bind(args, kwargs)
        if self.signature.constraint is not None:
            bound = self.signature.cast(*bound)
        concrete = self._find(bound)
        return concrete, concrete.kind.to_tensors(bound)

    def _cache_call(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any], concrete: ConcreteFunction) -> None:
        """Let calls with this key go to the trace at once, where its tensors are found among the arguments."""
        args, kwargs = with_unique_tensors(args), with_unique_tensors(kwargs)
        bound = self.signature.bind(args, kwargs)
        if self.signature.constraint is not None:
            bound = self.signature.cast(*bound)
        wanted = concrete.kind.to_tensors(bound)
        met = call_key(args, kwargs)[1]
        taken = set(map(id, wanted))
        if any(isinstance(t, Variable) and id(t) not in taken for t in met):
            return  # a trace for this very variable, which the key does not tell
        try:
            order = tensor_positions(wanted, met)
        except Uncacheable:
            return
        if not can_cache(wanted, concrete.tensor_specs, (args, kwargs)):
            return
        if len(self._call_cache) >= CACHE_LIMIT:
            self._call_cache.clear()
        self._call_cache[key] = CallCacheEntry(concrete, order)

    # ---- finding and making traces ------------------------------------------------------------------------------

    def _find(self, bound: Arguments) -> ConcreteFunction:
        """The trace for a canonical call."""
        constraint = self.signature.constraint
        if constraint is not None:
            self._detector.calls += 1
            found = self._table.find(constraint)
            return found if found is not None else self._make(constraint, constraint, TracingContext(), bound)
        context = TracingContext(self._by_identity)
        kind = kind_of(*bound, context)
        found = self._table.find(kind)
        ids = {id(v) for v in context.variables}
        exact = None if self._own.isdisjoint(ids) else self._table.find(kind_of(*bound, TracingContext()))
        if exact is not None:
            found = exact
        elif found is None:
            try:
                found = self._make(kind, kind, context, bound)
            except IdentityRequired as asked:
                if asked.owner is not self:
                    raise
                self._by_identity = True
                return self._find(bound)
            if not ids:
                return found
        else:
            self._detector.calls += 1
        if ids and exact is None:
            captured = {id(v) for v in found.program.captured if isinstance(v, Variable)}
            self._own |= captured
            if not captured.isdisjoint(ids):  # one variable by two ways: the trace takes them for two
                context = TracingContext()
                kind = kind_of(*bound, context)
                self._own |= ids
                return self._make(kind, kind, context, bound)
        return found

    def _make(
        self, kind: ContainerType, named: ContainerType, context: TracingContext, given: Arguments | None = None
    ) -> ConcreteFunction:
        """Trace for arguments of a type that no trace serves. named: the same, specs with the names given to them.

        given: the arguments, where it is a call; new variables may take their first values from them.
        """
        for function, other in _in_progress.traces:
            if function is self and kind.is_subtype_of(other):
                raise RecursionError(
                    f"tf.function-decorated function {self.name!r} calls itself, with arguments of the types that it "
                    "is being traced for: recursion of a tf.function is unsupported, since its graph would never end. "
                    "Use a loop, or recurse on Python values that change"
                )
        with TRACING:
            found: ConcreteFunction | None = self._table.find(kind)
            if found is None:
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
                    found = self._trace(kind, named, given)
                except RecursionError as error:
                    if not outermost or "tf.function-decorated" in str(error):
                        raise
                    raise RecursionError(
                        f"tracing tf.function-decorated function {self.name!r} did not end: {error}. Recursion of a "
                        "tf.function is unsupported unless Python values end it"
                    ) from None
                finally:  # reset by statements: see Recording
                    dispatch.state.trace, dispatch.state.tapes, dispatch.state.names = before
                    del _in_progress.traces[depth:]
                self._table.add(kind, found, context.objects)
                if given is not None:  # a trace that was asked for is nothing to be warned of
                    self._detector.traced(self.name, kind, self._names(kind))
        return found

    def _names(self, kind: ContainerType) -> list[str]:
        positional = kind.parts[0]
        assert isinstance(positional, ContainerType)
        return self.signature.names(positional.parts)

    def _trace(self, kind: ContainerType, named: ContainerType, given: Arguments | None) -> ConcreteFunction:
        """Trace; once more without the right to create variables where the first trace created some."""
        may_create = not len(self._table)
        concrete, created = self._record(kind, named, may_create, given)
        if created:
            concrete, _ = self._record(kind, named, False, None)
        return concrete

    def _record(
        self, kind: ContainerType, named: ContainerType, may_create: bool, given: Arguments | None
    ) -> tuple[ConcreteFunction, list[Any]]:
        self._count += 1
        return record_trace(self, kind, named, may_create, given)

    def _forget(self) -> None:
        """An object that some trace was made for is no more: ids in short ways may come again."""
        self._call_cache.clear()

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments: tensors, TensorSpecs or Python values; none where input_signature says all.

        raises TypeError for arguments that do not fit the parameters, SignatureError for those that do not fit
        input_signature
        """
        constraint = self.signature.constraint
        if constraint is not None:
            if args or kwargs:
                self.signature.cast(*self.signature.bind(args, kwargs), allow_specs=True)
            found = self._table.find(constraint)
            return found if found is not None else self._make(constraint, constraint, TracingContext())
        bound = self.signature.bind(args, kwargs)
        context = TracingContext()
        kind = kind_of(*bound, context)
        found = self._table.find(kind)
        return found if found is not None else self._make(kind, kind_of(*bound, SignatureContext()), context)

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Every trace's arguments and results in words."""
        return "\n\n".join(c.pretty_printed_signature(verbose) for c in self._table.values())

    # ---- as an object -----------------------------------------------------------------------------------------

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
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: a Function for each instance, which does not keep the instance alive."""
        if instance is None:
            return self
        known = self._bound.get(id(instance))
        if known is not None:
            return known[1]
        key, plain = id(instance), self.python_function
        try:
            home = weakref.ref(self)

            def died(_: Any) -> None:
                here = home()
                if here is not None:
                    here._bound.pop(key, None)

            weak: Any = weakref.ref(instance, died)
        except TypeError:  # a class with __slots__ and no __weakref__

            def weak() -> Any:
                return instance

        def method(*args: Any, **kwargs: Any) -> Any:
            return convert_if_enabled(plain)(weak(), *args, **kwargs)

        functools.update_wrapper(method, plain)
        parameters = list(signature_of(plain).parameters.values())
        if parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            parameters = parameters[1:]
        vars(method)["__signature__"] = inspect.Signature(parameters)
        bound = self._copy(method)
        bound._detector = RetraceDetector()
        self._bound[key] = (weak, bound)
        return bound

    def __deepcopy__(self, memo: Any) -> Function[..., Any]:
        """A Function of the same Python function, without traces."""
        return self._copy(self.python_function)

    __copy__ = lambda self: self._copy(self.python_function)  # noqa: E731

    def __reduce__(self) -> Any:
        """Pickled by name where it is a module's, else as its Python function; traces are made anew."""
        home: Any = sys.modules.get(self.__module__)
        for part in getattr(self, "__qualname__", "").split("."):
            home = getattr(home, part, None)
        if home is self:
            return self.__qualname__
        return _restored, (
            self.python_function,
            self.signature.input_signature,
            self.autograph,
            self.jit_compile,
            self.reduce_retracing,
            self.experimental_implements,
            self.name,
        )

    def __repr__(self) -> str:
        return f"<opwright function {self.name}{self.signature.python}, {len(self._table)} traces>"


class _FunctionDecorator(Protocol):
    """`function` with its options: the decorator of the Python function."""

    def __call__(self, func: Callable[P, R], /) -> Function[P, R]: ...


def _restored(*arguments: Any) -> Function[..., Any]:
    found = arguments[0]
    return found if isinstance(found, Function) else Function(*arguments)


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
) -> Any:
    """Make a graph of a Python function, at its first call with arguments of each kind. Usable bare or with arguments.

    input_signature: TensorSpecs (nested like the parameters) that all calls must fit; there is then one trace.
    jit_compile: whether to compile to machine code. reduce_retracing: whether to generalise shapes that change.
    experimental_implements: the name of a fused operator that this function stands for when converted.

    >>> @ow.function
    ... def square_sum(x):
    ...     return ow.reduce_sum(x * x)

    raises TypeError where input_signature does not fit the parameters, SignatureError at calls that do not fit it
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

"""`function`: a Python function that is traced once for each kind of arguments and then runs as a graph.

Lives here: Function, the cache of traces.
Not here: one trace (concrete.py), recording (trace.py), running and differentiating (program.py), keys and binding
(signature.py).
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import flags, nest
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..ops import array, dispatch
from ..ops.indexed_slices import IndexedSlices
from ..ops.tensor import Tensor
from .concrete import ConcreteFunction
from .program import Program
from .signature import Signature, key_of
from .symbolic import SymbolicTensor
from .trace import FuncTrace

state = dispatch.state
quietly = dispatch.quietly


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, (Tensor, TensorSpec, np.ndarray, np.generic))


FAST_LIMIT = 1024  # one trace with unknown sizes may be called with any number of shapes


class Function:
    """A Python function under `function`: calls pick a trace by the arguments' types, or make one.

    python_function: the original. Calls inside another trace are inlined into it.
    """

    def __init__(self, python_function: Callable[..., Any], input_signature: Any = None, autograph: bool = True,
                 jit_compile: bool | None = None, reduce_retracing: bool = False,
                 experimental_implements: str | None = None, name: str | None = None) -> None:  # fmt: skip
        self.python_function = python_function
        self.name: str = name or str(getattr(python_function, "__name__", type(python_function).__name__))
        self.autograph, self.jit_compile, self.reduce_retracing = autograph, jit_compile, reduce_retracing
        self.experimental_implements = experimental_implements
        self.signature = Signature(python_function, input_signature)
        self._traces: dict[Any, ConcreteFunction] = {}
        self._fast: dict[Any, tuple[Any, ...]] = {}
        self._lock = threading.RLock()
        self._count = 0
        self._created: list[Any] = []
        self._bound: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()
        functools.update_wrapper(
            self, python_function, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=()
        )

    @property
    def input_signature(self) -> Any:
        """The TensorSpecs given to `function`, or None."""
        return self.signature.input_signature

    @property
    def function_spec(self) -> Signature:
        """The parameters and how arguments are bound to them."""
        return self.signature

    def experimental_get_tracing_count(self) -> int:
        """How many times the Python function has been traced."""
        return self._count

    # ---- calling ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if flags.run_functions_eagerly:
            return self.python_function(*args, **kwargs)
        if not kwargs and state.trace is None and not state.tapes and not flags.check_numerics:
            # The short way, for eager tensors seen before: one look-up, the plan, and out.
            try:
                run, captured, dtype, concrete = self._fast[tuple([(a._dtype, a._array.shape) for a in args])]
            except (KeyError, AttributeError, TypeError):
                pass
            else:
                try:
                    results = quietly(run, *[a._array for a in args], *captured)
                except Exception as error:
                    raise concrete.program.plan.explain(error) from None
                if dtype is not None:
                    return EagerTensor(results[0], dtype)
                outputs = concrete.program.graph.outputs
                return concrete.pack([EagerTensor(r, v.spec.dtype) for r, v in zip(results, outputs)])
        bound_args, bound_kwargs = self.signature.bind(args, kwargs)
        concrete = self._find(bound_args, bound_kwargs)
        leaves = nest.flatten((bound_args, bound_kwargs))
        tensors = [v if isinstance(v, Tensor) else dispatch.to_tensor(v) for v in leaves if _is_tensor_like(v)]
        result = concrete.call_flat(tensors)
        if (
            not kwargs
            and state.trace is None
            and all(type(a) is EagerTensor for a in args)
            and len(args) == len(leaves)
        ):
            program = concrete.program
            dtype = program.graph.outputs[0].spec.dtype if concrete._single else None
            key = tuple([(a._dtype, a._array.shape) for a in args])
            if len(self._fast) >= FAST_LIMIT:
                self._fast.clear()
            self._fast[key] = (program.plan.run, [c._array for c in program.captured], dtype, concrete)
        return result

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:
        key = self._key(args, kwargs)
        found = self._traces.get(key)
        if found is None:
            with self._lock:
                found = self._traces.get(key)
                if found is None:
                    found = self._trace_first(args, kwargs)
                    self._traces[key] = found
        return found

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        specs = self.signature.input_signature
        if specs is not None:  # one trace serves all that fits
            return (len(args), key_of(args[len(specs) :]), key_of(kwargs))
        try:
            return (key_of(args), key_of(kwargs))
        except TypeError as error:
            raise TypeError(f"{self.name}: an argument cannot be told apart from others: {error}") from None

    def _trace_first(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:
        """Trace; once more without the right to create variables where the first trace created some."""
        may_create = self._count == 0
        concrete, created = self._trace(args, kwargs, may_create)
        if created:
            self._created.extend(created)
            concrete, _ = self._trace(args, kwargs, False)
        return concrete

    def _trace(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], may_create: bool
    ) -> tuple[ConcreteFunction, list[Any]]:
        self._count += 1
        parent = state.trace if isinstance(state.trace, FuncTrace) else None
        trace = FuncTrace(self.name, parent)
        trace.may_create_variables = may_create
        specs = self.signature.input_signature
        if specs is not None:
            args = (*specs, *args[len(specs) :])
        names = self.signature.names(args)
        with trace.recording():
            placed: list[tuple[Any, Any]] = []

            def place(name: str) -> Callable[[Any], Any]:
                def leaf(value: Any) -> Any:
                    if not _is_tensor_like(value):
                        return value
                    spec = value if isinstance(value, TensorSpec) else TensorSpec.from_tensor(value)
                    placeholder = trace.placeholder(spec, spec.name or name)
                    placed.append(
                        (placeholder, TensorSpec(spec.shape, spec.dtype, spec.name or placeholder.value_in_graph.name))
                    )
                    return placeholder

                return leaf

            inner_args = tuple(nest.map_structure(place(n), a) for n, a in zip(names, args))
            inner_kwargs = {k: nest.map_structure(place(k), v) for k, v in kwargs.items()}
            result = self.python_function(*inner_args, **inner_kwargs)
            flat: list[SymbolicTensor] = []

            def output(value: Any) -> Any:
                if value is None:
                    return value
                if isinstance(value, IndexedSlices):
                    parts = [array.identity(x) for x in (value.values, value.indices)]
                    shape = None if value.dense_shape is None else array.identity(value.dense_shape)
                    flat.extend(parts if shape is None else [*parts, shape])
                    return IndexedSlices(*parts, shape)
                try:
                    tensor = array.identity(value)
                except (TypeError, ValueError) as error:
                    raise TypeError(
                        f"To be compatible with tf.function, Python functions must return zero or more Tensors or "
                        f"ExtensionTypes or None values; in compilation of {self.name}, found return value of type "
                        f"{type(value).__name__}, which is not a Tensor or ExtensionType."
                    ) from error
                flat.append(tensor)
                return tensor

            structured = nest.map_structure(output, result)
        spec_of = {id(p): s for p, s in placed}
        signature = nest.map_structure(lambda v: spec_of.get(id(v), v), (inner_args, inner_kwargs))
        program = Program(trace, flat)
        concrete = ConcreteFunction(program, self.name, signature, structured, (inner_args, inner_kwargs), names)
        return concrete, trace.created_variables

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments: tensors, TensorSpecs or Python values; none where input_signature says all."""
        specs = self.signature.input_signature
        if specs is not None and not args and not kwargs:
            args = specs
        bound_args, bound_kwargs = self.signature.bind(args, kwargs)
        return self._find(bound_args, bound_kwargs)

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Every trace's arguments and results in words."""
        return "\n\n".join(c.pretty_printed_signature(verbose) for c in self._traces.values())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: a Function for each instance, which does not keep the instance alive."""
        if instance is None:
            return self
        bound = self._bound.get(instance)
        if bound is None:
            weak = weakref.ref(instance)
            plain = self.python_function

            def method(*args: Any, **kwargs: Any) -> Any:
                return plain(weak(), *args, **kwargs)

            functools.update_wrapper(method, plain)
            parameters = list(inspect.signature(plain).parameters.values())[1:]
            method.__signature__ = inspect.Signature(parameters)
            specs = self.signature.input_signature
            bound = Function(method, None, self.autograph, self.jit_compile, self.reduce_retracing,
                             self.experimental_implements, self.name)  # fmt: skip
            if specs is not None:
                bound.signature = Signature(method, specs)
            self._bound[instance] = bound
        return bound

    def __repr__(self) -> str:
        return f"<opwright function {self.name}{self.signature.python}, {len(self._traces)} traces>"


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

    def wrap(f: Callable[..., Any]) -> Function:
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

"""`function`: a Python function that is traced once for each kind of arguments and then runs as a graph.

Lives here: Function (the cache of traces), ConcreteFunction (one trace with its argument structure).
Not here: recording (trace.py), running and differentiating (program.py), keys and binding (signature.py).
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import flags, nest
from ..core.errors import SignatureError
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops import array, dispatch
from ..ops.indexed_slices import IndexedSlices
from ..ops.tensor import Tensor
from .program import Program
from .signature import Signature, key_of
from .symbolic import SymbolicTensor
from .trace import FuncTrace

state = dispatch.state
quietly = dispatch.quietly


def _is_tensor_like(value: Any) -> bool:
    return isinstance(value, (Tensor, TensorSpec, np.ndarray, np.generic))


class ConcreteFunction:
    """One trace of a function: a graph for arguments of certain types.

    Called with tensors of those types (positional or by parameter name); arguments that were Python values when it
    was traced are fixed and may be left out. Made by `Function.get_concrete_function`.
    """

    def __init__(self, program: Program, name: str, signature: Any, structured_outputs: Any,
                 arguments: tuple[tuple[Any, ...], dict[str, Any]], names: Sequence[str]) -> None:  # fmt: skip
        self.program, self.name = program, name
        self.structured_input_signature = signature
        self._structure = structured_outputs
        self._arguments = arguments  # canonical, tensors as placeholders
        self._names = list(names)
        self._weak_variables = [v for v in program.captured if isinstance(v, Variable)]
        flat = nest.flatten(structured_outputs, expand_composites=False)
        self._single = structured_outputs is not None and len(flat) == 1 and flat[0] is structured_outputs \
            and isinstance(structured_outputs, SymbolicTensor)  # fmt: skip

    # ---- looking at it ----------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Any:
        """The graph after passes. Prints; `as_graph_def()` gives its nodes by name."""
        return self.program.graph

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """Symbolic tensors: the arguments, then the captures."""
        return [*self.program.trace.inputs, *(p for _, p in self.program.trace.captures.values())]

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """Symbolic tensors of the results, flat."""
        return list(self.program.outputs)

    @property
    def captured_inputs(self) -> list[Any]:
        """What the graph takes from outside: tensors, and variables by handle."""
        return list(self.program.captured)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables that the graph reads or writes."""
        return tuple(self._weak_variables)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trainable."""
        return tuple(v for v in self._weak_variables if v.trainable)

    @property
    def structured_outputs(self) -> Any:
        """The results' structure, with symbolic tensors."""
        return self._structure

    @property
    def output_dtypes(self) -> Any:
        """The results' structure, with dtypes."""
        return nest.map_structure(lambda t: getattr(t, "dtype", None), self._structure)

    @property
    def output_shapes(self) -> Any:
        """The results' structure, with shapes."""
        return nest.map_structure(lambda t: getattr(t, "shape", None), self._structure)

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """The arguments and results in words."""
        args, kwargs = self.structured_input_signature
        shown = []
        details = []
        for name, value in [*zip(self._names, args), *kwargs.items()]:
            flat = nest.flatten(value)
            if any(isinstance(v, TensorSpec) for v in flat):
                shown.append(name)
                details.append(f"    {name}: {_describe(value)}")
            else:
                shown.append(f"{name}={value!r}")
        head = f"{self.name}({', '.join(shown)})"
        if not verbose:
            return head
        lines = [head, *(["  Args:", *details] if details else []), "  Returns:", f"    {_describe(self._structure)}"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)} at 0x{id(self):X}>"

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    # ---- calling ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call_flat(self._flatten(args, kwargs))

    def _flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The tensors of a call by the trace's own structure; fixed Python values are compared.

        raises SignatureError for tensors of another type, TypeError for other Python values
        """
        expected_args, expected_kwargs = self._arguments
        slots = [*zip(self._names, expected_args), *expected_kwargs.items()]
        tensor_slots = [n for n, v in slots if any(isinstance(x, SymbolicTensor) for x in nest.flatten(v))]
        given: dict[str, Any] = {}
        order = [n for n, _ in slots] if len(args) > len(tensor_slots) else tensor_slots
        if len(args) > len(order):
            raise TypeError(f"{self.name} takes {len(order)} positional arguments, got {len(args)}")
        given.update(zip(order, args))
        for key, value in kwargs.items():
            if key in given:
                raise TypeError(f"{self.name} got two values for argument {key!r}")
            if key not in dict(slots):
                by_input = {t.value_in_graph.name: t for t in self.program.trace.inputs}
                raise TypeError(
                    f"{self.name} got an unexpected argument {key!r}; "
                    f"it takes {', '.join(n for n, _ in slots) or 'none'}"
                    f"{' (graph inputs ' + ', '.join(by_input) + ')' if by_input else ''}"
                )
            given[key] = value
        flat: list[Any] = []
        for name, expected in slots:
            if name not in given:
                if name in tensor_slots:
                    raise TypeError(f"{self.name} is missing the argument {name!r}")
                continue
            flat += self._match(name, expected, given[name])
        return flat

    def _match(self, name: str, expected: Any, value: Any) -> list[Any]:
        wanted, got = nest.flatten(expected), nest.flatten(value)
        if len(wanted) != len(got):
            raise TypeError(
                f"{self.name}: argument {name!r} has {len(got)} leaves, the trace was made with {len(wanted)}"
            )
        flat: list[Any] = []
        for w, g in zip(wanted, got):
            if not isinstance(w, SymbolicTensor):
                if isinstance(w, Variable) and g is w:
                    continue
                if isinstance(g, (Tensor, np.ndarray)) or (type(w) is not type(g) or w != g):
                    raise TypeError(
                        f"ConcreteFunction {self.name} was constructed with {type(w).__name__} value {w!r} in {name}, "
                        f"but was called with {type(g).__name__} value {g!r}"
                    )
                continue
            try:
                tensor = g if isinstance(g, Tensor) else dispatch.to_tensor(g, w.dtype)
            except (TypeError, ValueError) as error:
                raise SignatureError(op=self.name, what=f"argument {name!r}: {error}") from None
            if tensor.dtype is not w.dtype or not tensor.shape.is_compatible_with(w.shape):
                raise SignatureError(
                    op=self.name, what=f"cannot compute {self.name} as input {name!r} does not fit the trace",
                    found=tensor.spec.short(), wanted=w.spec.short(),
                    do="call the Function itself, which traces anew where it must")  # fmt: skip
            flat.append(tensor)
        return flat

    def call_flat(self, tensors: Sequence[Any]) -> Any:
        """Call with the tensors only, in the order of `inputs`; gives the structured result."""
        return self.pack(self.program.call(tensors))

    def pack(self, results: Sequence[Any]) -> Any:
        """Flat results in the structure the Python function returned."""
        if self._single:
            return results[0]
        rest = iter(results)

        def fill(leaf: Any) -> Any:
            if isinstance(leaf, IndexedSlices):
                values, indices = next(rest), next(rest)
                return IndexedSlices(values, indices, None if leaf.dense_shape is None else next(rest))
            return next(rest) if isinstance(leaf, SymbolicTensor) else leaf

        return nest.map_structure(fill, self._structure)


def _describe(value: Any) -> str:
    if isinstance(value, (TensorSpec, SymbolicTensor)):
        return f"{value.dtype.name} Tensor, shape={value.shape}"
    if nest.is_nested(value):
        leaves = [f"{p}: {_describe(v)}" for p, v in nest.flatten_with_paths(value)]
        return f"{type(value).__name__}({'; '.join(leaves)})"
    return repr(value)


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
        if not kwargs and state.trace is None and not state.tapes:
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

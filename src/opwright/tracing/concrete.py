"""ConcreteFunction: one trace with the structure of its arguments and results.

Lives here: the properties of a trace; packing of results; `stage_printer`, the text of its compiled form.
Not here: binding of arguments (signature.py), the selection of a trace (function.py), execution and differentiation
(program.py), compilation (compiler/native_plan.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..core import nest
from ..core.notebook_reprs import shown_as
from ..core.type_spec import CompositeTensor
from ..eager.variable import Variable
from ..graph import Graph
from ..ops.lod_tensor import LoDTensor, LoDTensorSpec
from .container_type import ContainerType, halves
from .fast_path import (
    CACHE_LIMIT,
    CallCacheEntry,
    Uncacheable,
    call_key,
    can_cache,
    tensor_positions,
    with_unique_tensors,
)
from .program import Program
from .signature import FunctionType, flat_arguments, signature_text, summary
from .symbolic import SymbolicTensor
from .trace_type import SpecContext, type_of

STAGES = ("loops", "plan", "report")
"""Stages of compilation that `stage_printer` prints."""


trace_listeners: list[Callable[[Any], None]] = []
"""Functions that are called with each trace, while graphs are recorded (`ow.summary.trace_on`)."""


DEFAULT_KEY = "serving_default"
"""The key of the signature of a single function, in saved models and `.tflite` files."""


class ConcreteFunction:
    """One trace of a function: a graph for arguments of certain types.

    Call it with tensors of those types (positional or by parameter name, nested like the parameters or flat). Arguments
    that were Python values are constants of the trace and may be omitted. Created by `Function.get_concrete_function`.

    kind: the type of the arguments. named: the same type, with the specs' names.
    """

    def __init__(
        self,
        program: Program,
        name: str,
        kind: ContainerType,
        named: ContainerType,
        structured_outputs: Any,
        names: Sequence[str],
        signature: Any,
    ) -> None:
        self.program, self.name, self.kind = program, name, kind
        self.python_signature = signature
        self._named, self._names = named, list(names)
        self._structure = structured_outputs
        # The structure of packed results, with composites as their specs.
        self._packing = nest.map_structure(
            lambda v: v._type_spec if isinstance(v, CompositeTensor) else v, structured_outputs
        )
        self.single = isinstance(structured_outputs, SymbolicTensor)
        self.tensor_specs = kind.flatten()
        self._pack: Packer | None = None
        self._call_cache: dict[Any, CallCacheEntry] = {}  # by keys of calls
        self._raw: Graph | None = None
        for listen in trace_listeners:
            listen(self)

    # ---- properties -------------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph as it was recorded. Prints; `as_graph_def()` returns its nodes by name."""
        if self._raw is None:
            trace = self.program.trace
            inputs = [t.value_in_graph for t in self.inputs]
            outputs = [t.value_in_graph for t in self.program.outputs]
            self._raw = Graph(trace.builder.name, inputs, trace.builder.nodes, outputs, origin=self.program)
        return self._raw

    @property
    def optimized_graph(self) -> Graph:
        """The graph after passes, which is executed and converted."""
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
        """Captured tensors and variables."""
        return list(self.program.captured)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Variables that the graph reads or writes."""
        return tuple(v for v in self.program.captured if isinstance(v, Variable))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The trainable variables among `variables`."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[Any, Any]]:
        """The arguments of the trace, as (positional, by name): TensorSpecs for tensors, other values unchanged."""
        context = SpecContext()
        positional, by_name = halves(self._named)

        def named_spec(name: str, kind: Any) -> object:
            context.naming_scope = name
            return context.placeholder_for(kind)

        args = tuple(map(named_spec, self._names, positional.parts))
        return args, {n: named_spec(n, k) for n, k in zip(by_name.layout.names, by_name.parts)}

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

    @property
    def function_type(self) -> FunctionType:
        """The parameters, annotated with the types of the arguments, and the type of the results."""
        positional, by_name = halves(self.kind)
        kinds = dict(zip(self._names, positional.parts))
        kinds.update(zip(by_name.layout.names, by_name.parts))
        parameters = [
            p.replace(annotation=kinds[p.name], default=p.empty)
            for p in self.python_signature.parameters.values()
            if p.name in kinds
        ]
        return FunctionType(parameters, return_annotation=type_of(self._structure))

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """Return the arguments and results as text.

        >>> print(double_strings.pretty_printed_signature())  # doctest: +SKIP
        double(a)
          Args:
            a: string Tensor, shape=()
          Returns:
            string Tensor, shape=()
        """
        args, kwargs = self.structured_input_signature
        arguments = [*zip(self._names, args), *kwargs.items()]
        return signature_text(self.name, arguments, self._structure) if verbose else summary(self.name, arguments)

    _repr_html_ = shown_as("concrete_function")

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)} at 0x{id(self):X}>"

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    # ---- calling ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key: Any
        entry: CallCacheEntry | None
        try:
            key, tensors = call_key(args, kwargs)
            entry = self._call_cache.get(key)
        except (Uncacheable, AttributeError, TypeError):
            key, tensors, entry = None, [], None
        if entry is not None:
            return entry.call(tensors)
        result = self.call_flat(flat_arguments(self, args, kwargs))
        if key is not None and len(key) == 2 * len(tensors) + len(kwargs):  # eager tensors alone
            args, kwargs = with_unique_tensors(args), with_unique_tensors(kwargs)
            required = flat_arguments(self, args, kwargs)
            if not can_cache(required, self.tensor_specs, (args, kwargs)):
                return result
            order = tensor_positions(required, call_key(args, kwargs)[1])
            if len(self._call_cache) >= CACHE_LIMIT:
                self._call_cache.clear()
            self._call_cache[key] = CallCacheEntry(self, order)
        return result

    @property
    def slots(self) -> list[tuple[str, Any]]:
        """The name and type of each argument, positional ones first."""
        positional, by_name = halves(self.kind)
        return [*zip(self._names, positional.parts), *zip(by_name.layout.names, by_name.parts)]

    def call_flat(self, tensors: Sequence[Any]) -> Any:
        """Call with the tensors only, in the order of `inputs`; return the structured result."""
        return self.pack(self.program.call(tensors))

    def pack(self, results: Sequence[Any]) -> Any:
        """Pack flat results into the structure that the Python function returned."""
        if self.single:
            return results[0]
        if self._pack is None:
            self._pack = _packer(self._packing)
        return self._pack(iter(results))


Packer = Callable[[Iterator[Any]], Any]


def _packer(packing: Any) -> Packer:
    """Return the function that packs flat results into a structure."""
    kind = type(packing)
    if packing is None:
        return lambda tensors: None
    if kind is SymbolicTensor:
        return next
    if kind is tuple or kind is list:
        if all(type(p) is SymbolicTensor for p in packing):
            n = len(packing)
            return lambda tensors: kind(itertools.islice(tensors, n))
        parts = [_packer(p) for p in packing]
        return lambda tensors: kind([part(tensors) for part in parts])
    if kind is dict and all(type(name) is str for name in packing):
        names, packers = list(packing), [(name, _packer(packing[name])) for name in sorted(packing)]

        def pack(tensors: Iterator[Any]) -> dict[Any, Any | None]:
            packed = dict.fromkeys(names)
            for name, part in packers:
                packed[name] = part(tensors)
            return packed

        return pack
    if kind is LoDTensorSpec:
        n = packing.lod_level
        return lambda tensors: LoDTensor.of(next(tensors), tuple(itertools.islice(tensors, n)))
    return lambda tensors: nest.map_structure(
        lambda leaf: None if leaf is None else next(tensors), packing, expand_composites=True
    )


def stage_printer(concrete: ConcreteFunction, tensors: Sequence[Any]) -> Callable[..., str]:
    """Return a function that prints one stage of compilation, for arguments of these tensors' shapes.

    raises ValueError for unknown shapes; the function raises ValueError for unknown stages
    """
    from ..compiler.native_plan import NativePlan, call_of, report, specialize
    from ..compiler.partitioner import compile_regions

    program = concrete.program
    plan = program.plan
    assert isinstance(plan, NativePlan)
    shapes = [
        None if v.dtype.is_handle else _known_shape(concrete, t)
        for t, v in zip((*tensors, *program.captured), program.graph.inputs)
    ]

    def stage(stage: str = "report") -> str:
        if stage not in STAGES:
            raise ValueError(f"{concrete.name} has no stage {stage!r}; there are {', '.join(STAGES)}")
        compiled = plan.compiled_for(shapes)
        if compiled is None:
            return f"{concrete.name} is not compiled"
        if stage == "report":
            return report(compiled)
        planned = compile_regions(specialize(plan.graph, shapes), call_of)  # regions of the cache have no text
        return "\n".join(str(r.plan.graph if stage == "loops" else r.plan) for r in planned.regions)

    return stage


def _known_shape(concrete: ConcreteFunction, tensor: Any) -> tuple[int, ...]:
    shape = tensor.shape
    dims = getattr(shape, "dims", shape)
    if dims is None or None in dims:
        raise ValueError(f"{concrete.name} is compiled for known sizes only; found the shape {shape}")
    return tuple(map(int, dims))

"""ConcreteFunction: one trace with the structure of its arguments and results.

Lives here: calling a trace with tensors, what it says of itself.  Not here: which trace serves a call (function.py),
running and differentiating (program.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import nest
from ..core.errors import SignatureError
from ..core.specs import TensorSpec
from ..eager.variable import Variable
from ..ops import dispatch
from ..ops.indexed_slices import IndexedSlices
from ..ops.tensor import Tensor
from .program import Program
from .symbolic import SymbolicTensor


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

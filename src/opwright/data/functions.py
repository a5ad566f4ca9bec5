"""User functions of `map`, `filter` and other transformations, traced once and run per element of an iterator.

Lives here: `Failure`, `ElementFunction`; `IteratorContext`, the state of one iterator that survives repeated passes,
and `RandomPasses`, what datasets keep whose passes differ.
Not here: the transformations that use the results, iterators (iterator.py).

A transformation such as `repeat` or `flat_map` iterates its input several times. Seeded random operators continue from
one pass to the next within the outermost iterator; a new iterator restarts them. The state therefore belongs to the
iterator, and within it to a position in the tree of datasets: a dataset that occurs twice has separate sequences.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable
from typing import Any

from ..autograph.api import convert_if_enabled, thread_state
from ..core import flags
from ..core.errors import InvalidArgumentError, OutOfRangeError
from ..eager.python_functions import function_name
from ..graph import Graph
from ..ops import dispatch
from ..ops.random.state import own_sequences
from ..tracing.program import Program
from ..tracing.symbolic import SymbolicTensor
from ..tracing.trace import TRACING, FuncTrace
from ..tracing.tracer import autograph_enabled
from .structure import ElementStructure, Flat, as_array, flatten, map_leaves, operand, structure_of_value


class IteratorContext:
    """State of one position in an iterator's tree of datasets.

    calls: the number of draws from each random sequence; see `own_sequences`. random_access: whether elements are
    looked up by index; passes then have the same orders in all such contexts.
    """

    __slots__ = ("_inputs", "_passes", "calls", "random_access")

    def __init__(self, random_access: bool = False) -> None:
        self.calls: dict[Any, int] = {}
        self.random_access = random_access
        self._inputs: dict[Any, IteratorContext] = {}
        self._passes = 0

    def input(self, key: Any = 0) -> IteratorContext:
        """Return the context of an input dataset. key: its index, or a name for datasets computed by a function."""
        context = self._inputs.get(key)
        if context is None:
            context = self._inputs.setdefault(key, IteratorContext(self.random_access))
        return context

    def epoch(self, dataset: Any, reorder: bool) -> int:
        """Start a pass of a dataset of RandomPasses; return the number that determines its order.

        again: whether every pass has its own order. A lookup by index does not count as a pass.
        """
        if self.random_access:
            number, self._passes = self._passes, self._passes + 1
        else:
            number, dataset._epoch = dataset._epoch, dataset._epoch + 1
        return number if reorder else 0


class RandomPasses:
    """Mixin of datasets whose passes differ."""

    def begin(self) -> None:
        """Count passes from 0, which is part of iterator checkpoints, and draw what replaces a missing seed."""
        self._epoch = 0
        self._entropy = secrets.randbits(64)


quietly = dispatch.quietly


class Failure:
    """Error in place of an element; it passes down the pipeline and is raised at the consumer.

    Iterators in between stay alive, so that the following element can be requested. The traceback excludes the frame
    that caught the error: it is a generator, which `traceback.clear_frames` would close. An OutOfRangeError, with which
    iterators end, is an InvalidArgumentError here: the elements behind it would be lost.
    """

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        caught = error.__traceback__
        if isinstance(error, OutOfRangeError):
            error = InvalidArgumentError(op="Dataset", what=f"Function invocation produced OutOfRangeError: {error}")
        self.error = error.with_traceback(None if caught is None else caught.tb_next)


class ElementFunction:
    """User function as a program over flat elements.

    structure: the nested types of its arguments; a plain tuple becomes several arguments. form: the structure of the
    result. raises ValueError unless it is callable, and the errors of the function while tracing
    """

    __slots__ = ("captured", "form", "name", "program")

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Any,
        transformation: str,
        argument: str = "func",
        keep_list: bool = False,
    ) -> None:
        if not callable(function):
            raise ValueError(
                f"Argument `{argument}` must be a callable. Received {argument}={function!r} (of type {type(function)})"
            )
        self.name = f"Dataset.{transformation}({function_name(function)})"
        parent = dispatch.state.trace
        parent = parent if isinstance(parent, FuncTrace) else None
        trace = FuncTrace(f"Dataset_{transformation}_{function_name(function)}", parent)
        trace.may_create_variables = False
        form = ElementStructure(structure)
        convert = parent is None or thread_state.enabled
        with TRACING:
            before = dispatch.state.trace, dispatch.state.tapes, dispatch.state.names
            try:
                with trace.recording(), autograph_enabled(convert):
                    placeholders = [trace.placeholder(s, f"args_{i}") for i, s in enumerate(form.components)]
                    arguments = form.tensors_to_value(placeholders)
                    call = convert_if_enabled(function)
                    result = call(*arguments) if type(arguments) is tuple else call(arguments)
                    if type(result) is list and not keep_list:  # several values, not the rows of one tensor
                        result = tuple(result)
                    try:
                        spec, tensors = structure_of_value(result)
                        if not tensors:
                            raise TypeError("it contains no tensor")
                    except (TypeError, ValueError) as error:
                        what = f"Unsupported return value from function passed to {self.name}: {result!r}. {error}"
                        raise TypeError(what) from error
                    outputs = [trace.to_tensor(t) for t in tensors]
            finally:  # reset by statements: see tracing.trace.Recording
                dispatch.state.trace, dispatch.state.tapes, dispatch.state.names = before
        self.form = ElementStructure(spec)
        self.program = Program(trace, outputs)
        self.captured: list[Any] = [c if type(c) is SymbolicTensor else c._array for c in self.program.captured]

    @property
    def symbolic(self) -> list[SymbolicTensor]:
        """Captured tensors of an enclosing trace."""
        return [c for c in self.captured if type(c) is SymbolicTensor]

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers, including in branches and loops."""
        return _draws(self.program.graph)

    def rebind(self, take: Callable[[], Any]) -> ElementFunction:
        """Return the same function with values in place of symbolic captures."""
        if not any(type(c) is SymbolicTensor for c in self.captured):
            return self
        new = copy.copy(self)
        new.captured = [take() if type(c) is SymbolicTensor else c for c in self.captured]
        return new

    def caller(self, context: IteratorContext) -> Callable[..., Flat]:
        """Return a callable from arrays to a flat element, for a position of an iterator."""
        program, captured, dtypes = self.program, self.captured, self.form.dtypes
        plan = program.checked_plan if flags.checked else program.plan
        run = plan.run
        if self.is_random:
            run = own_sequences(run, context.calls)  # a new iterator restarts its random sequences

        def call(*arrays: Any) -> Flat:
            try:
                results = quietly(run, *arrays, *captured)
            except Exception as error:
                raise plan.explain(error) from None
            return tuple(map(as_array, results, dtypes))

        return call

    def truth(self, context: IteratorContext) -> Callable[..., bool]:
        """Return a predicate as a callable from arrays to bool."""
        call = self.caller(context)
        return lambda *arrays: bool(call(*arrays)[0])


def _draws(graph: Graph) -> bool:
    return any(node.op.effect == "random" or any(map(_draws, node.subgraphs)) for node in graph.nodes)


def check_predicate(function: ElementFunction, name: str = "predicate") -> ElementFunction:
    """Raise ValueError unless the function returns one scalar bool."""
    spec = function.form.spec
    components = function.form.components
    if len(components) != 1 or not components[0].dtype.is_bool or components[0].shape.rank not in (0, None):
        raise ValueError(
            f"Invalid `{name}`. `{name}` must return a `tf.bool` scalar tensor, but its return type is {spec!r}."
        )
    return function


def initial_state_operands(value: Any) -> tuple[Any, list[Any]]:
    """Return type and operands of an initial state; lists are tensors."""
    spec, tensors = structure_of_value(value)
    return spec, [operand(t) for t in tensors]


def trace_state_function(
    function: Callable[..., Any],
    state: Any,
    element: Any,
    transformation: str,
    argument: str,
    state_in: Callable[[ElementFunction], Any],
) -> tuple[ElementFunction, Any]:
    """Trace a function (state, element) until the type of its new state is that of the state, relaxing shapes.

    state_in: selects the type of the new state from the result. Returns the function and the state's type.
    raises TypeError if structure or dtypes of the state change
    """
    while True:
        traced = ElementFunction(function, (state, element), transformation, argument)
        new = state_in(traced)
        try:
            joined = map_leaves(lambda a, b: a.most_specific_common_supertype([b]), state, new)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"The element structure of the state of {traced.name} must match its initial state: "
                f"{error}. Expected {state!r} but found {new!r}."
            ) from None
        mismatches = [(a, b) for spec, a, b in zip(flatten(joined), flatten(state), flatten(new)) if spec is None]
        if mismatches:
            a, b = mismatches[0]
            raise TypeError(
                f"The element types for the new state of {traced.name} must match the initial state. "
                f"Expected {a!r}, got {b!r}."
            )
        if joined == state:
            return traced, state
        state = joined

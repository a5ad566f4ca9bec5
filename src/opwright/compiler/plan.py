"""Plan: an executable graph, with every lookup done once.

Lives here: the compiled function, and the node of an error in it.
Not here: its text (writer.py), operators' kernels (ops/), arenas of models in files (lite/).

The function is written out and compiled: for small graphs the interpreter's loop would cost as much as the kernels
(measured on 3 operators of 4x4: 1.9 us written out, 3.3 us as a loop over a list of steps).
"""

from __future__ import annotations

import functools
import itertools
import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..core import flags
from ..core.errors import OpError
from ..core.lazy_imports import finalizer
from ..graph import Graph, Node, Value
from ..graph.builder import constant_node
from ..ops.call import failure_cause, rule_failure
from ..ops.kernels import computed_by
from .writer import Writer

# Python interns the file name of all compiled code forever: deleted plans leave theirs to others.
_names_left: list[str] = []
Result = TypeVar("Result")


_numbers = itertools.count()
MOST_SIZES = 64
"""Maximum number of integers of an operand that are shown to a rule for shapes: sizes, multiples, paddings."""


def _file_name() -> str:
    try:
        return _names_left.pop()
    except IndexError:
        return f"<plan {next(_numbers)}>"


class Plan:
    """An executable graph: `run(*inputs) -> tuple of outputs`, on NumPy arrays (and handles, for state).

    graph: its source. source: the function as Python text. Values are dropped after their last use. check_numerics:
    check each result for NaN and Inf; the error names the node. check_inputs: check that kernels neither write their
    inputs nor return their memory without permission. inplace: write results into dying memory, if operators permit it;
    by default as the flag. reused: number of such lines.
    """

    __slots__ = ("_consuming", "_nodes", "_scope", "filename", "graph", "reused", "run", "source")

    def __init__(
        self, graph: Graph, check_numerics: bool = False, check_inputs: bool = False, inplace: bool | None = None
    ) -> None:
        self.graph = graph
        self.filename = _file_name()
        if inplace is None:
            inplace = flags.inplace

        def separate(inner: Graph) -> Callable[..., Any]:
            return Plan(inner, check_numerics, check_inputs, inplace).explained

        checks = functools.partial(_checked, graph.name, check_numerics, check_inputs)
        writer = Writer(graph, separate, checks if check_numerics or check_inputs else None, inplace)
        self.source, self._nodes, self.reused = writer.source, writer.node_of_line, writer.reused
        exec(compile(self.source, self.filename, "exec"), writer.scope)
        self.run: Callable[..., tuple[Any, ...]] = writer.scope["run"]
        self._scope, self._consuming = writer.scope, writer.consuming
        linecache.cache[self.filename] = (len(self.source), None, self.source.splitlines(True), self.filename)

    def consume(self, inputs: list[Any]) -> tuple[Any, ...]:
        """Implement `run(*inputs)` on a list, which it empties, so that an input without other references dies at its
        last use."""
        function = self._scope.get("consume")
        if function is None:
            exec(compile(self._consuming, self.filename, "exec"), self._scope)
            function = self._scope["consume"]
            self._consuming = ""
        results: tuple[Any, ...] = function(inputs)
        return results

    def explained(self, *inputs: Any) -> tuple[Any, ...]:
        """Implement `run` with errors explained by this plan: for a plan inside another."""
        try:
            return self.run(*inputs)
        except Exception as error:
            raise self.explain(error) from None

    def explain(self, error: Exception, inputs: Sequence[Any] = ()) -> Exception:
        """Return the error to raise for one from `run`: with the operator, the node and the user's line."""
        trace = error.__traceback__
        node: Node | None = None
        line, values = "", dict[str, Any]()
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                node = self._nodes.get(trace.tb_lineno)
                line, values = linecache.getline(self.filename, trace.tb_lineno), trace.tb_frame.f_locals
            trace = trace.tb_next
        if node is None or (isinstance(error, OpError) and error.node is not None):
            return error
        if getattr(node.op, "is_native", False) and not isinstance(error, OpError):  # from the handler of a signal
            return error
        if isinstance(error, OpError):
            located = type(error)(
                op=node.op.name,
                node=node.name,
                at=node.at,
                what=error.message.partition(": ")[2] if error.op == node.op.name else error.message,
            )
            return located.with_traceback(error.__traceback__)
        rejection = _rejection(node, line, values)
        if rejection is not None:
            return rejection.with_traceback(error.__traceback__)
        operands = {v.name: v.spec.short() for v in node.operands}
        first = next(node.operands, None)
        rule = computed_by(node.op, node.op.bind(dict(node.attrs)), None if first is None else first.dtype)
        failure = rule_failure(node.op, rule, error, node=node.name, at=node.at, found=operands)
        failure.__cause__ = failure_cause(error, failure)
        return failure

    def __str__(self) -> str:
        return f"plan of {self.graph.name}\n{self.source}"

    @finalizer
    def __del__(self) -> None:
        linecache.cache.pop(self.filename, None)
        _names_left.append(self.filename)


def _rejection(node: Node, line: str, values: Mapping[str, Any]) -> OpError | None:
    """Return the error of the operator's rule for shapes, for the operands of a failed call whose sizes, or elements
    that are sizes, were unknown when it was traced; None if the rule accepts them.

    line: the call in a plan's source; values: the plan's local variables, by name.
    """
    names = dict.fromkeys(re.findall(r"\b[xt]\d+(?:_\d+)?\b", line.partition("#")[0].rpartition(" = ")[2]))
    operands, locals_ = list(dict.fromkeys(node.operands)), [values.get(name) for name in names]
    arrays = [a for a in locals_ if isinstance(a, np.ndarray | np.generic)]
    if not len(arrays) == len(locals_) == len(operands):
        return None
    sized = {v: _known(node, v, a) for v, a in zip(operands, arrays)}
    inputs = [tuple([sized[v] for v in o]) if isinstance(o, tuple) else o and sized[o] for o in node.inputs]
    try:
        node.op.infer(node.op.bind(dict(node.attrs)), inputs)
    except OpError as error:
        message = error.message.partition(": ")[2] if error.op == node.op.name else error.message
        return type(error)(op=node.op.name, node=node.name, at=node.at, what=message)
    except Exception:  # a rule that wants more than shapes
        return None
    return None


def _known(node: Node, value: Value, array: Any) -> Value:
    """Return an operand of the node with the shape of an array, and as a constant where it may be a list of sizes."""
    spec = value.spec.with_shape(array.shape)
    if value.dtype.is_integer and array.size <= MOST_SIZES:
        return constant_node(node.op.const_operator(), np.asarray(array), spec, value.name).outputs[0]
    return Value(value.name, spec)


def _checked(
    graph: str, numerics: bool, inputs: bool, kernel: Callable[..., Result], node: Node
) -> Callable[..., Result]:
    """Return a kernel that raises if a result contains NaN or infinity, or it violates a rule of memory."""
    from ..ops.compute_wrappers import watched
    from ..ops.debugging.assertions import MOVERS, wrong_number

    if inputs:
        kernel = watched(node.op, kernel, node.name, node.at)
    if node.op.name in MOVERS or not numerics:
        return kernel
    dtypes = [v.dtype for v in node.outputs]

    def run(*arrays: Any) -> Result:
        result = kernel(*arrays)
        flat = node.op.flat_outputs(result)
        for i in range(len(flat)):
            shown = [repr(v) for v in node.operands]
            error = wrong_number(node.op.name, i, flat, dtypes, shown, node.name, node.at, graph)
            if error is not None:
                raise error
        return result

    return run

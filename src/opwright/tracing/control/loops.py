"""`while_loop`: a loop in the graph, and the gradients of loops.

Lives here: recording of condition and body into a `While` node; eager loops; `LoopRecord`, which differentiates a loop.
Not here: loops over the elements of tensors (higher_order.py).

The gradient is another loop, over the iterations in reverse, which differentiates the body once. Values inside an
iteration that it needs are read from lists: for each such tensor, the forward loop gains a variable, a list to which
the tensor is appended in each iteration. Only needed tensors are stored. Lists are ordinary values, so gradients of
gradients pass through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...core import dtypes, nest
from ...core.shapes import TensorShape, as_shape
from ...core.specs import TensorSpec
from ...core.type_spec import TypeSpec
from ...eager.variable import Variable
from ...ops import array, dispatch
from ...ops.autodiff import OpRecord, accumulate, backpropagate, is_trainable
from ...ops.list_ops import ListGet, ListLength, ListPush, ListReserve
from ...ops.list_tensor_ops import ListConcat
from ...ops.math import logical_and
from ...ops.tensor import Tensor
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .body import (
    CONTROL_RECORDS,
    Body,
    emit_while,
    flat_tensors,
    is_sparse,
    joined,
    of_graph,
    part_specs,
    parts,
    reachable_inputs,
    sparse_rows,
)
from .branches import dense_or_zeros

state = dispatch.state


class LoopRecord(OpRecord):
    """A call of `While`. structure: the loop's variables, and the captures of condition and body."""

    __slots__ = ("_counter", "_lists")

    def __init__(self, op: Any, bound: Any, structure: Sequence[Any], outputs: Sequence[Any]) -> None:
        super().__init__(op, bound, structure, outputs)
        self._lists: dict[int, tuple[SymbolicTensor, SymbolicTensor]] = {}  # by id of a body tensor: it and its list
        self._counter: SymbolicTensor | None = None

    @property
    def body(self) -> Body:
        """The body, with the additions of gradients."""
        return of_graph(self.outputs[0].value_in_graph.node.attrs["body"])

    # ---- the backward loop ----------------------------------------------------------------------------------------

    def backward(self, dys: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of the variables' initial values and of the captures."""
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        variables, captured = self.structure
        n = len(variables)
        body = self.body
        active, dense = self._participants(dys)
        if not active:
            return (None,) * (n + len(captured))
        outputs = self.outputs
        specs = [
            TensorSpec((), dtypes.int32, "iteration"),
            *(TensorSpec(body.inputs[j].shape, outputs[j].dtype, "d_variable") for j in active),
        ]
        sources = {i: captured[i] if isinstance(captured[i], Variable) else body.inputs[n + i] for i in dense}
        sparse = [i for i in dense if is_sparse(body, sources[i], [body.outputs[j] for j in active])]
        dense = [i for i in dense if i not in sparse]
        specs += [_spec_like(captured[i]) for i in dense] + [TensorSpec((), dtypes.variant)] * (2 * len(sparse))
        first_list = len(active) + len(dense)  # where the lists begin: two for each table that rows were looked up in
        reached: set[int] = set()

        def iteration(k: Any, *flat: Any) -> list[Any]:
            backward_trace = state.trace
            assert isinstance(backward_trace, FuncTrace)
            dvs, sums, list_variables = flat[: len(active)], flat[len(active) : first_list], flat[first_list:]
            before = k - 1
            backward_trace.foreign[body.trace] = self._values_at(before, backward_trace, body)
            targets: dict[int, Any] = {}
            for j, dv in zip(active, dvs):
                key = id(body.outputs[j])
                targets[key] = accumulate(targets[key], dv) if key in targets else dv
            keys = {id(body.inputs[j]) for j in active} | {id(s) for s in sources.values()}
            grads = backpropagate(body.trace.recorder.records, targets, keys)
            new = [dense_or_zeros(grads.get(id(body.inputs[j])), body.inputs[j]) for j in active]
            for i, total in zip(dense, sums):
                grad = grads.get(id(sources[i]))
                if grad is None:
                    new.append(total)
                else:
                    reached.add(i)
                    new.append(accumulate(total, grad))
            for position, i in enumerate(sparse):
                lists, grad = list(list_variables[2 * position : 2 * position + 2]), grads.get(id(sources[i]))
                if grad is not None:
                    reached.add(i)
                    lists = [ListPush(rows, part) for rows, part in zip(lists, parts(grad, sources[i]))]
                new += lists
            return [before, *new]

        def first() -> list[Any]:
            starts = [dense_or_zeros(dys[j], outputs[j]) for j in active]
            list_variables = [s for i in sparse for s in part_specs(sources[i])]
            lists = [ListReserve(0, element_dtype=s.dtype, element_shape=s.shape) for s in list_variables]
            return [self._num_iterations(), *starts, *(dense_or_zeros(None, captured[i]) for i in dense), *lists]

        _, *results = emit_while(trace, specs, lambda k, *_: k > 0, iteration, first, "while_grad")
        grads: list[Any] = [None] * (n + len(captured))  # of the inputs before the loop was widened
        for j, grad in zip(active, results):
            grads[j] = grad
        for i, grad in zip(dense, results[len(active) :]):
            if i in reached:
                grads[n + i] = grad
        for position, i in enumerate(sparse):
            if i in reached:
                lists = zip(results[first_list + 2 * position :], part_specs(sources[i]))
                values, indices = (ListConcat(x, element_dtype=s.dtype, element_shape=s.shape)[0] for x, s in lists)
                grads[n + i] = sparse_rows(values, indices, captured[i])
        return grads

    def _participants(self, dys: Sequence[Any]) -> tuple[list[int], list[int]]:
        """Return the indices of the variables with gradients in the loop, and of the captures with a gradient."""
        variables, captured = self.structure
        body, n = self.body, len(variables)
        operands = (*variables, *captured)
        active = {j for j, dy in enumerate(dys) if dy is not None and is_trainable(self.outputs[j].dtype)}
        while True:
            reached = reachable_inputs(body, operands, [body.outputs[j] for j in sorted(active)])
            more = {i for i in reached if i < n} | active
            if more == active:
                return sorted(active), [i - n for i in reached if i >= n]
            active = more

    def _values_at(self, iteration: Any, backward_trace: FuncTrace, body: Body) -> Callable[[SymbolicTensor], Any]:
        """Return the function from the body's tensors to their values, in the backward loop, of an iteration."""
        captured = self.structure[1]
        capture_inputs = body.inputs[len(body.inputs) - len(captured) :]
        outside: dict[int, Any] = {id(p): outer for outer, p in body.trace.captures.values()}
        outside.update((id(p), operand) for p, operand in zip(capture_inputs, captured))
        inside: dict[int, Any] = {}

        def value(tensor: SymbolicTensor) -> object:
            if id(tensor) in outside:
                return outside[id(tensor)]
            if id(tensor) not in inside:
                values_list = self._list_of(tensor)
                with backward_trace.resumed():
                    inside[id(tensor)] = ListGet(
                        values_list, iteration, element_dtype=tensor.dtype, element_shape=tensor.shape
                    )
            return inside[id(tensor)]

        return value

    def _num_iterations(self) -> Tensor:
        """Return the number of iterations of the forward loop."""
        for _, values_list in self._lists.values():
            return ListLength(values_list)
        if self._counter is None:
            self._counter = self._widen(
                TensorSpec((), dtypes.int32), lambda: array.zeros((), dtypes.int32), lambda count: count + 1
            )
        return self._counter

    # ---- additions to the forward loop ------------------------------------------------------------------------------

    def _list_of(self, tensor: SymbolicTensor) -> SymbolicTensor:
        """Return the list of a body tensor's values, one per iteration."""
        entry = self._lists.get(id(tensor))
        if entry is None:
            values_list = self._widen(
                TensorSpec((), dtypes.variant),
                lambda: ListReserve(0, element_dtype=tensor.dtype, element_shape=tensor.shape),
                lambda values_list: ListPush(values_list, tensor),
            )
            entry = self._lists[id(tensor)] = (tensor, values_list)
        return entry[1]

    def _widen(self, spec: TensorSpec, first: Callable[[], Any], step: Callable[[Any], Any]) -> SymbolicTensor:
        """Add a variable to the forward loop; return its final value."""
        trace: FuncTrace = self.outputs[0].trace
        node = self.outputs[0].value_in_graph.node
        variables, captured = self.structure
        n = len(variables)
        nodes = trace.builder.nodes
        position = nodes.index(node)
        num_nodes = len(nodes)
        with trace.resumed():
            start = trace.to_tensor(first())
        nodes[position:position] = [nodes.pop() for _ in range(len(nodes) - num_nodes)][::-1]  # before the loop
        wider = {}
        for key in ("cond", "body"):
            body = of_graph(node.attrs[key])
            placeholder = body.trace.free_placeholder(spec, "values")
            outputs: Sequence[Any] = body.outputs
            if key == "body":
                with body.trace.resumed():
                    outputs = [*outputs, body.trace.to_tensor(step(placeholder))]
            wider[key] = Body(body.trace, [*body.inputs[:n], placeholder, *body.inputs[n:]], outputs)
        inputs = (*variables, start), captured
        operands = [tuple(map(trace.value_of, part)) for part in inputs]
        node = trace.builder.widen(node, operands, {key: body.graph() for key, body in wider.items()}, [spec])
        added = SymbolicTensor(node.outputs[-1], trace)
        trace.widened(self.outputs, added)
        self.structure = inputs
        self.inputs = (*inputs[0], *inputs[1])
        self.outputs = (*self.outputs, added)
        return added


def _spec_like(operand: Any) -> TensorSpec:
    return TensorSpec(operand.shape, operand.dtype, "d_captured")


CONTROL_RECORDS["While"] = LoopRecord


V = TypeVar("V")


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: V,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> V:
    """Call `body` repeatedly on the loop variables while `cond` of them is true; return the final variables.

    loop_vars: a list or tuple of tensors or nestings of them; `cond` and `body` receive them as arguments, `body`
    returns the same number with the same dtypes and shapes. shape_invariants: a nesting of TensorShapes (or
    TensorSpecs) for variables whose shape changes. maximum_iterations: the limit on the number of iterations. Recorded
    once in a traced function; eagerly it is a Python loop. parallel_iterations, back_prop and swap_memory are accepted
    and ignored.
    raises TypeError if `body` returns another structure or dtype, ValueError if a shape changes without an invariant
    """
    del parallel_iterations, back_prop, swap_memory
    if not callable(cond):
        raise TypeError(f"'cond' must be callable. Received: {cond!r}")
    if not callable(body):
        raise TypeError(f"'body' must be callable. Received: {body!r}")
    initial: Any = loop_vars if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    final: V
    if state.trace is None:
        final = _run_eagerly(cond, body, initial, maximum_iterations)
    else:
        final = record_while(cond, body, initial, shape_invariants, maximum_iterations, name or "while")
    return final


def _run_eagerly(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: Any) -> Any:
    """Run the loop eagerly."""
    limit = None if maximum_iterations is None else int(maximum_iterations)
    iterations = 0
    loop_vars = nest.map_structure(_converted, loop_vars)
    while (limit is None or iterations < limit) and cond(*loop_vars):
        result = _as_sequence(body(*loop_vars), loop_vars)
        nest.assert_same_structure(list(loop_vars), list(result))
        loop_vars = nest.pack_sequence_as(result, [_converted(leaf) for leaf in nest.flatten(result)])
        iterations += 1
    return loop_vars


def _converted(leaf: Any) -> object:
    return dispatch.to_tensor(leaf) if isinstance(leaf, (Variable, bool, int, float, complex)) else leaf


def _as_sequence(result: Any, loop_vars: Sequence[Any]) -> list[Any] | list[Any] | tuple[Any, ...]:
    """Return a body's result as a sequence: with one loop variable, it may return the variable itself."""
    if len(loop_vars) == 1 and not (isinstance(result, (list, tuple)) and len(result) == 1):
        return [result]
    if not isinstance(result, (list, tuple)):
        raise TypeError(
            f"the body of the loop returned {type(result).__name__}, wanted a list or tuple of {len(loop_vars)} "
            "values, one for each loop variable"
        )
    return result


def record_while(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    shape_invariants: Any,
    maximum_iterations: Any,
    name: str,
) -> Any:
    """Add a `While` node to the active trace; return the structure of the loop variables, filled with its outputs."""
    parent = state.trace
    assert isinstance(parent, FuncTrace)
    tensors = flat_tensors(parent, loop_vars)
    holes = [t is None for t in tensors]
    initials = [t for t in tensors if t is not None]
    specs = [
        _loop_spec(t, s) for t, s, hole in zip(tensors, _invariants(loop_vars, shape_invariants), holes) if not hole
    ]
    limit = None if maximum_iterations is None else parent.to_tensor(maximum_iterations, dtypes.int32)
    if limit is not None:  # an additional first variable counts the iterations
        initials.insert(0, parent.to_tensor(0, limit.dtype))
        specs.insert(0, TensorSpec((), limit.dtype, "iteration"))
    num_counters = 0 if limit is None else 1
    structure: Any = loop_vars

    def arguments(placeholders: Sequence[Any]) -> Sequence[Any]:
        remaining = iter(placeholders[num_counters:])
        packed: Sequence[Any] = nest.pack_sequence_as(
            loop_vars, [None if hole else next(remaining) for hole in holes], expand_composites=True
        )
        return packed

    def flat_cond(*placeholders: Any) -> object:
        proceed = cond(*arguments(placeholders))
        if limit is None:
            return proceed
        return logical_and(placeholders[0] < limit, proceed)

    def flat_body(*placeholders: Any) -> list[Any]:
        nonlocal structure
        result = _as_sequence(body(*arguments(placeholders)), loop_vars)
        try:
            nest.assert_same_structure(list(loop_vars), list(result), expand_composites=True)
            joined([list(loop_vars), list(result)], ["the initial variables", "the result of the body"])
        except (ValueError, TypeError) as error:
            raise type(error)(f"the body of the loop changes the structure of its variables: {error}") from None
        structure = nest.pack_sequence_as(loop_vars, list(nest.flatten(result)))
        leaves = nest.flatten(result, expand_composites=True)
        for i, (leaf, hole) in enumerate(zip(leaves, holes)):
            if (leaf is None) != hole:
                raise TypeError(f"loop variable {i} is None only {'before' if hole else 'after'} an iteration")
        new_values = [leaf for leaf in leaves if leaf is not None]
        return [*(p + 1 for p in placeholders[:num_counters]), *new_values]

    outs = emit_while(parent, specs, flat_cond, flat_body, lambda: initials, name)
    remaining = iter(outs[num_counters:])
    return nest.pack_sequence_as(
        structure, [None if hole else next(remaining) for hole in holes], expand_composites=True
    )


def _invariants(loop_vars: Any, shape_invariants: Any) -> list[Any]:
    """Return the declared shape of each flat loop variable, or None."""
    if shape_invariants is None:
        return [None] * len(nest.flatten(loop_vars, expand_composites=True))
    flat: list[Any] = []

    def walk(value: Any, declared: Any) -> None:
        if isinstance(declared, TypeSpec) and not isinstance(declared, TensorSpec):
            flat.extend(getattr(s, "shape", None) for s in nest.flatten(declared, expand_composites=True))
        elif isinstance(declared, TensorSpec):
            flat.append(declared.shape)
        elif declared is None or isinstance(declared, TensorShape) or not nest.is_nested(value):
            leaves = len(nest.flatten(value, expand_composites=True))
            flat.extend([None if declared is None and leaves > 1 else as_shape(declared)] * leaves)
        else:
            nest.assert_same_structure(
                nest.map_structure(lambda _: 0, value), _shallow(value, declared), check_types=False
            )
            parts = sorted(value) if isinstance(value, dict) else range(len(value))
            for key in parts:
                walk(value[key], declared[key])

    walk(list(loop_vars), list(shape_invariants))
    return flat


def _shallow(value: Any, declared: Any) -> int | dict[Any, Any] | int | list[Any]:
    """Return the declared structure truncated at the leaves of `value`, for a comparison of the two structures."""
    if not nest.is_nested(value):
        return 0
    if isinstance(value, dict):
        return {k: _shallow(v, declared.get(k)) for k, v in value.items()} if isinstance(declared, dict) else 0
    if not isinstance(declared, (list, tuple)) or len(declared) != len(value):
        return 0
    return [_shallow(v, a) for v, a in zip(value, declared)]


def _loop_spec(tensor: SymbolicTensor, declared: TensorShape | None) -> TensorSpec:
    name = tensor.value_in_graph.name
    if declared is None:
        return TensorSpec(tensor.shape, tensor.dtype, name)
    if not tensor.shape.is_subtype_of(declared):
        raise ValueError(
            f"The shape invariant specified for {name} is not compatible with the initial shape of the loop variable. "
            f"It enters the loop with shape {tensor.shape}, but the specified shape invariant is {declared}."
        )
    return TensorSpec(declared, tensor.dtype, name)

"""Branches: `cond`, `switch_case`, `case`, and the gradients of their nodes.

Lives here: recording of branches into an `If` or `Case` node.  Not here: loops (loops.py).

The gradient of a branch node is a branch node over the gradients of the branches. Values inside the executed branch
that these need are additional outputs of the forward node, added on demand; the other branch returns `Undefined` in
their place, which is never read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...core import dtypes, nest
from ...core.errors import SignatureError
from ...eager.variable import Variable
from ...ops import array, dispatch
from ...ops.autodiff import OpRecord, accumulate, backpropagate, is_trainable
from ...ops.control import Case, If, Undefined, merged_specs
from ...ops.debugging import Assert
from ...ops.indexed_slices import IndexedSlices
from ...ops.math import reduce_any, reduce_sum
from ...ops.tensor import Tensor, TensorLike
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .body import (
    CONTROL_RECORDS,
    Body,
    capture_placeholders,
    captured_by,
    flat_tensors,
    is_sparse,
    joined,
    of_graph,
    parts,
    reachable_inputs,
    record_body,
    sparse_rows,
)

state = dispatch.state
R = TypeVar("R")


def cond(
    pred: Any, true_fn: Callable[[], R] | None = None, false_fn: Callable[[], R] | None = None, name: str | None = None
) -> R:
    """Return the result of one of two functions, selected by a scalar bool at run time.

    true_fn, false_fn: functions without arguments. In a traced function both are recorded, so both must return the same
    structure and dtypes. Eagerly, or if `pred` is a Python bool, one of them is called.
    raises TypeError if a function is missing or their results differ in structure or dtype
    """
    for function, role in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if not callable(function):
            raise TypeError(f"'{role}' must be callable. Received: {function!r}")
    assert true_fn is not None
    assert false_fn is not None
    if not isinstance(pred, TensorLike) or state.trace is None:
        chosen = bool(pred.value() if isinstance(pred, Variable) else pred)
        return (true_fn if chosen else false_fn)()
    return branch(If, pred, [true_fn, false_fn], ["true_fn", "false_fn"], "tf.cond", name or "cond")


def switch_case(
    branch_index: Any,
    branch_fns: Mapping[int, Callable[[], R]] | Sequence[Callable[[], R] | tuple[int, Callable[[], R]]],
    default: Callable[[], R] | None = None,
    name: str = "switch_case",
) -> R:
    """Return the result of one of several functions, selected by index at run time.

    branch_index: int32 scalar. branch_fns: callables, or (int, callable) pairs, or a dictionary of these; the keys are
    0 to n - 1. default: called for every other index; without it, the last function is.
    raises TypeError or ValueError for keys that are not 0 to n - 1, and if results differ
    """
    branches = _numbered(branch_fns, default)
    index = dispatch.to_tensor(branch_index)
    if index.dtype is not dtypes.int32:
        raise TypeError(f"branch_index must be an int32 tensor, found {index.dtype.name}")
    if state.trace is None:
        number = int(index)
        return branches[number if 0 <= number < len(branches) else -1]()
    roles = [f"branch {i}" for i in range(len(branches))]
    return branch(Case, index, branches, roles, "tf.switch_case", name)


def _numbered(branch_fns: Any, default: Callable[[], R] | None) -> list[Callable[[], R]]:
    if isinstance(branch_fns, Mapping):
        branch_fns = list(branch_fns.items())
    if not isinstance(branch_fns, (list, tuple)):
        raise TypeError(f"'branch_fns' must be a list, tuple or dict. Received: {branch_fns!r}")
    if not branch_fns:
        raise ValueError("'branch_fns' must have at least one element")
    if all(isinstance(f, tuple) for f in branch_fns):
        for key, _ in branch_fns:
            if not isinstance(key, int):
                raise TypeError(f"the keys of 'branch_fns' must be Python ints, found {key!r} of {type(key)}")
        pairs = sorted(branch_fns, key=lambda pair: pair[0])
        keys = [key for key, _ in pairs]
        if keys != list(range(len(keys))):
            raise ValueError(f"the keys of 'branch_fns' must be 0 to n - 1, found {keys}")
        branch_fns = [f for _, f in pairs]
    for f in (*branch_fns, *(() if default is None else (default,))):
        if not callable(f):
            raise TypeError(f"'branch_fns' must hold callables, found {f!r}")
    return [*branch_fns, *(() if default is None else (default,))]


def case(
    pred_fn_pairs: Mapping[Any, Callable[[], R]] | Sequence[tuple[Any, Callable[[], R]]],
    default: Callable[[], R] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> R:
    """Return the result of the function of the first true predicate.

    pred_fn_pairs: (scalar bool, callable) pairs. default: called if none is true; without it, that is an error at run
    time. exclusive: more than one true predicate is an error at run time.
    """
    del strict  # results are never unpacked here
    if isinstance(pred_fn_pairs, Mapping):
        pred_fn_pairs = [(p.deref() if hasattr(p, "deref") else p, f) for p, f in pred_fn_pairs.items()]
    if not isinstance(pred_fn_pairs, (list, tuple)):
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {pred_fn_pairs!r}")
    pairs = list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple (pred, callable). Received: {pair!r}")
    preds = [dispatch.to_tensor(p) for p, _ in pairs]
    stacked_preds = array.stack(preds)
    if exclusive:
        names = ", ".join(getattr(p, "name", "eager") if state.trace is not None else "eager" for p in preds)
        message = f"Input error: exclusive=True: more than 1 conditions ({names}) evaluated as True:"
        Assert(reduce_sum(array.cast(stacked_preds, dtypes.int32)) <= 1, [message, stacked_preds])
    result = default
    if result is None:
        *pairs, (_, last) = pairs

        def checked_last() -> R:
            Assert(reduce_any(stacked_preds), ["Input error: None of conditions evaluated as True:", stacked_preds])
            selected: R = last()
            return selected

        result = checked_last
    for pred, (_, function) in reversed(list(zip(preds, pairs))):
        result = _either(pred, function, result, name)
    return result()


def _either(pred: Any, function: Callable[[], R], otherwise: Callable[[], R], name: str) -> Callable[[], R]:
    return lambda: cond(pred, function, otherwise, name)


# ---- recording ----------------------------------------------------------------------------------------------------


def branch(
    op: Any, selector: Any, functions: Sequence[Callable[[], R]], roles: Sequence[str], caller: str, name: str
) -> R:
    """Record the functions into one node of `op`; return their results' structure, filled with its outputs.

    raises TypeError, on behalf of the caller, if their results differ in structure or dtype
    """
    parent = state.trace
    assert isinstance(parent, FuncTrace)
    selector = parent.to_tensor(selector)
    if selector.shape.rank not in (0, None):
        raise SignatureError(op=op.name, what="the selector is not a scalar", found=selector.spec.short())
    traces, results = [], []
    for function, role in zip(functions, roles):
        trace, _, result = record_body(f"{parent.name}_{name}_{role.replace(' ', '_')}", function, (), parent)
        traces.append(trace)
        results.append(result)
    flats = [flat_tensors(trace, result) for trace, result in zip(traces, results)]
    structure = _same_results(results, flats, roles, caller)
    outers = captured_by(traces)
    bodies = [
        Body(trace, capture_placeholders(trace, outers), [t for t in flat if t is not None])
        for trace, flat in zip(traces, flats)
    ]
    graphs = [body.graph() for body in bodies]
    operands = tuple(outer if isinstance(outer, Variable) else parent.to_tensor(outer) for outer in outers)
    outs = parent.record_control(
        BranchRecord, op, [selector, operands], branch_attrs(op, graphs), merged_specs(graphs, roles), name
    )
    remaining = iter(outs)
    flat = [None if t is None else next(remaining) for t in flats[0]]
    filled: R = nest.pack_sequence_as(structure, flat, expand_composites=True)
    return filled


def branch_attrs(op: Any, graphs: Sequence[Any]) -> dict[str, Any]:
    """Return the graphs as attributes of the operator."""
    if op is If:
        return {"then_branch": graphs[0], "else_branch": graphs[1]}
    return {"branches": tuple(graphs)}


def _same_results(results: Sequence[Any], flats: Sequence[Sequence[Any]], roles: Sequence[str], caller: str) -> object:
    """Return the structure of all results, with composites as their types."""
    for result, flat, role in zip(results[1:], flats[1:], roles[1:]):
        problem = ""
        try:
            nest.assert_same_structure(results[0], result, expand_composites=True)
        except (ValueError, TypeError) as error:
            problem = str(error)
        else:
            for i, (a, b) in enumerate(zip(flats[0], flat)):
                one, other = (None if t is None else t.dtype.name for t in (a, b))
                if one != other:
                    problem = f"result {i} is {one} in {roles[0]} and {other} in {role}"
                    break
        if not problem:
            try:
                joined([results[0], result], [roles[0], role])
            except TypeError as error:
                problem = str(error)
        if problem:
            raise TypeError(
                f"{roles[0]} and {role} arguments to {caller} must have the same number, type, and overall structure "
                f"of return values: {problem}"
            )
    return joined(results, roles)


# ---- gradients ------------------------------------------------------------------------------------------------------


class BranchRecord(OpRecord):
    """A call of `If` or `Case`. structure: the selector, then the operands of the branches."""

    __slots__ = ()

    def backward(self, dys: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of the inputs: a branch node over the gradients of each branch."""
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        selector, operands = self.structure
        bodies = self._bodies()
        incoming = [i for i, (y, dy) in enumerate(zip(self.outputs, dys)) if dy is not None and is_trainable(y.dtype)]
        reached: list[int] = sorted(
            {i for body in bodies for i in reachable_inputs(body, operands, [body.outputs[k] for k in incoming])}
        )
        if not reached:
            return (None,) * len(self.inputs)
        sparse = {i for i in reached if all(self._is_sparse(body, i, incoming) for body in bodies)}
        functions = [
            self._gradient_of(k, incoming, [dys[i] for i in incoming], reached, sparse) for k in range(len(bodies))
        ]
        roles = [f"gradient_of_branch_{k}" for k in range(len(bodies))]
        results = iter(branch(self.op, selector, functions, roles, "the gradient of a branch", "cond_grad"))
        grads: list[Any] = [None] * len(operands)
        for i in reached:
            grads[i] = sparse_rows(next(results), next(results), operands[i]) if i in sparse else next(results)
        return [None, *grads]

    def _is_sparse(self, body: Body, i: int, incoming: Sequence[int]) -> bool:
        """Return whether the gradients of operand i in this branch, if any, are sparse rows."""
        operand = self.structure[1][i]
        source = operand if isinstance(operand, Variable) else body.inputs[i]
        return is_sparse(body, source, [body.outputs[k] for k in incoming])

    def _bodies(self) -> list[Body]:
        return [of_graph(g) for g in self.outputs[0].value_in_graph.node.subgraphs]

    def _gradient_of(
        self, k: int, incoming: Sequence[int], dys: Sequence[Any], reached: Sequence[int], sparse: set[int]
    ) -> Callable[[], list[Tensor]]:
        """Return a function that records the gradients of branch k: one per reached operand, in parts if it is
        sparse.
        """
        operands = self.structure[1]
        body = self._bodies()[k]
        sources = [o if isinstance(o, Variable) else p for o, p in zip(operands, body.inputs)]

        def gradient() -> list[Any]:
            trace = state.trace
            assert isinstance(trace, FuncTrace)
            tensors = {id(p): o for p, o in zip(body.inputs, operands)}
            tensors.update((id(p), outer) for outer, p in body.trace.captures.values() if id(p) not in tensors)
            trace.foreign[body.trace] = lambda t: tensors[id(t)] if id(t) in tensors else self._output_for(k, t)
            targets: dict[int, Any] = {}
            for i, dy in zip(incoming, dys):
                key = id(body.outputs[i])
                dy = trace.to_tensor(dy)
                targets[key] = accumulate(targets[key], dy) if key in targets else dy
            grads = backpropagate(body.trace.recorder.records, targets, {id(sources[i]) for i in reached})
            results: list[Any] = []
            for i in reached:
                grad = grads.get(id(sources[i]))
                results += parts(grad, sources[i]) if i in sparse else [dense_or_zeros(grad, operands[i])]
            return results

        return gradient

    def _output_for(self, k: int, tensor: SymbolicTensor) -> Tensor:
        """Return the output of the node that contains a tensor inside branch k, adding one if necessary."""
        bodies = self._bodies()
        for i, output in enumerate(bodies[k].outputs):
            if output is tensor:
                result: Tensor = self.outputs[i]
                return result
        node = self.outputs[0].value_in_graph.node
        trace = self.outputs[0].trace
        wider = []
        for i, body in enumerate(bodies):
            with body.trace.resumed():
                extra: Any = tensor if i == k else Undefined(dtype=tensor.dtype, shape=tensor.shape)
            wider.append(Body(body.trace, body.inputs, [*body.outputs, extra]))
        node = trace.builder.widen(
            node, node.inputs, branch_attrs(self.op, [b.graph() for b in wider]), [tensor.value_in_graph.spec]
        )
        added = SymbolicTensor(node.outputs[-1], trace)
        trace.widened(self.outputs, added)
        self.outputs = (*self.outputs, added)
        return added


def dense_or_zeros(grad: Tensor | IndexedSlices | None, like: Any) -> Tensor:
    """Return a dense gradient: sparse ones converted, and zeros of the operand's shape for a missing one."""
    if isinstance(grad, IndexedSlices):
        return grad.to_dense()
    if grad is not None:
        return grad
    if isinstance(like, Variable) and like.shape.is_fully_defined():
        return array.zeros(like.shape, like.dtype)
    return array.zeros_like(like)


CONTROL_RECORDS.update(If=BranchRecord, Case=BranchRecord)

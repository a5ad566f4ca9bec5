"""Reverse-mode differentiation over recorded calls.

Lives here: `OpRecord` and `backpropagate`, used by the eager tape and by traced functions.
Not here: the decision to record (eager/tape.py), the gradient rules (each operator's own), their dependencies
(gradient_makers.py).

Backpropagation consists of operator calls, so outer tapes and traces record it: higher orders need nothing more.

A record refers to tensors by identity (tensor.py) and keeps alive only the tensors that the gradient reads
by value. The rule receives the others as shape-only tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..core.dtypes import DType
from . import array, dispatch, registry
from .call import Call, contract_violation, failure_cause, rule_failure
from .indexed_slices import IndexedSlices
from .tensor import ShapeOnlyTensor, WithheldError, shape_only_in_trace, shape_only_of, tensor_identity

# Operators whose gradient rules take IndexedSlices as they are; before the others, slices are made dense.
SPARSE_THROUGH = frozenset({"Identity", "IdentityN", "Neg", "ReadVariable"})


def is_trainable(dtype: DType) -> bool:
    """Return whether gradients flow through this dtype: floating and complex tensors, handles of state, lists."""
    return dtype.has_gradient


def _convert_gradients(op: Any, structure: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """Return the results of a user's gradient rule as tensors. Raises DefinitionError for an invalid gradient."""
    converted: list[Any] = []
    for name, item, grad in zip(op.input_names, structure, grads):
        if grad is None or item is None:
            converted.append(None)
        elif type(item) is not tuple:
            converted.append(_convert_gradient(op, name, item, grad))
        elif isinstance(grad, (tuple, list)) and len(grad) == len(item):
            converted.append(
                [
                    None if g is None else _convert_gradient(op, f"{name}[{i}]", x, g)
                    for i, (x, g) in enumerate(zip(item, grad))
                ]
            )
        else:
            description = f"{len(grad)} of them" if isinstance(grad, (tuple, list)) else type(grad).__name__
            raise contract_violation(
                op,
                "gradient",
                f"gives a list for the repeated input {name!r}",
                found=description,
                wanted=f"a list of {len(item)}, None where there is none",
            )
    return converted


def _convert_gradient(op: Any, name: str, x: Any, grad: Any) -> object:
    if not hasattr(grad, "spec"):
        try:
            grad = dispatch.to_tensor(grad, None if hasattr(grad, "dtype") else x.dtype)
        except (TypeError, ValueError):
            description = f"{grad!r} ({type(grad).__name__})"[:80]
            raise contract_violation(
                op, "gradient", f"gave no tensor for input {name!r}", found=description, wanted=x.spec.short()
            ) from None
    fits = op.elementwise or grad.shape.is_compatible_with(x.shape)  # those of element-wise operators are summed up
    if x.dtype.is_handle or (grad.dtype is x.dtype and fits):
        return grad
    part = "shape" if grad.dtype is x.dtype else "dtype"
    way_out = "elementwise = True in the class, if it broadcasts its inputs: then gradients are summed up"
    raise contract_violation(
        op,
        "the gradient rule",
        f"gave another {part} than input {name!r} has",
        found=f"{grad.dtype.name} {grad.shape}",
        wanted=f"{x.dtype.name} {x.shape}",
        do=way_out if part == "shape" and len(op.inputs) > 1 else None,
    )


_new = object.__new__


class OpRecord:
    """One recorded call of an operator: its flat inputs and outputs, and the propagation of gradients through it.

    inputs, outputs: tensor identities. structure: the arguments of the rule by declared input. results: by flat output.
    input_ids: ids of the inputs; flowing: ids of the outputs that gradients flow through. Both are None in a trace,
    where loops and branches get more of them.
    """

    __slots__ = ("bound", "flowing", "input_ids", "inputs", "op", "outputs", "results", "structure")

    def __init__(self, op: Any, bound: Call | None, structure: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.op, self.bound = op, bound
        self.structure = structure
        self.inputs: Sequence[Any] = structure if op.profile.simple else flattened(structure)
        self.outputs: Sequence[Any] = tuple(outputs)
        self.results: Sequence[Any] = self.outputs
        self.input_ids: Sequence[int] | None = None
        self.flowing: Sequence[int] | None = None

    @classmethod
    def light(
        cls, op: Any, bound: Call, structure: Sequence[Any], identities: Sequence[Any], outputs: Sequence[Any]
    ) -> OpRecord:
        """Return the record of an eager call, reduced to the needs of the gradient. identities: of the structure's
        tensors, without nesting.

        outputs: fresh tensors, of which no one else knows yet.
        """
        record: OpRecord = _new(cls)
        record.op, record.bound, record.inputs, record.input_ids = op, bound, identities, list(map(id, identities))
        record.outputs = fresh = []
        record.flowing = flowing = []
        for y in outputs:
            y._identity = identity = shape_only_of(y)
            fresh.append(identity)
            if identity.dtype.has_gradient:
                flowing.append(id(identity))
        needs = op.gradient_needs
        keep_mask = needs.kept_inputs
        if keep_mask is None:
            record.structure = structure
        elif op.profile.simple:
            if needs.keeps_no_input:
                record.structure = identities
            else:
                record.structure = [x if k else y for x, y, k in zip(structure, identities, keep_mask)]
        else:
            record.structure = [x if k else _identities(x) for x, k in zip(structure, keep_mask)]
        keep_mask = needs.kept_outputs
        if keep_mask is None:
            record.results = outputs
        elif op.profile.single:
            record.results = fresh
        else:
            packed = op.pack_all(outputs)
            results: list[Any] = []
            for y, keep in zip(packed, keep_mask):
                part = y if isinstance(y, (list, tuple)) else (y,)
                results.extend(part if keep else [one._identity for one in part])
            record.results = results
        return record

    def backward(self, dys: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of the flat inputs for the gradients of the flat outputs (None without flow).

        raises as `backward_to`
        """
        return self.backward_to(dys, None)

    def backward_to(self, dys: Sequence[Any], reached: Collection[int] | None) -> Sequence[Any]:
        """Return the gradients of the flat inputs for the gradients of the flat outputs (None without flow).

        reached: ids of the identities whose gradients are used, of others they may be None; None: all are used.
        raises LookupError where the operator has no gradient, WithheldError (an InvalidArgumentError) where the rule
        reads the elements of what is declared `no_need_buffer`
        """
        op = self.op
        rule = op.gradient_rule
        if op.profile.plain_gradient and self.input_ids and reached is not None:
            dy = dys[0]
            if dy is not None and type(dy) is not IndexedSlices:
                return self._backward_plain(op, rule, dy, reached)
        if rule is None:
            if op.has_gradient_rule:  # `gradient = None`: differentiation ends here, by declaration
                return (None,) * len(self.inputs)
            raise LookupError(
                f"{op.name}: the operator has no gradient, and one was asked for through it. "
                f"Define gradient(op, dy) in it, or put ow.stop_gradient around its result. (opwright explain OW501)"
            )
        assert self.bound is not None
        structure, results = self.structure, self.results
        arriving = dys
        if not op.profile.single or dys[0] is None or type(dys[0]) is IndexedSlices:
            arriving = [_arriving(op, dy, out) for dy, out in zip(dys, self.outputs)]
            if not op.profile.single:
                results, arriving = op.pack_all(results), op.pack_all(arriving)
        if op.no_need_buffer and dispatch.state.trace is not None:
            structure = _in_trace(op, op.input_names, structure)
            results = _in_trace(op, op.output_names, results)
        call = self.bound.with_inputs(structure, results)
        inputs, needed = self.inputs, None
        if reached is not None and len(inputs) > 1 and op.profile.simple:
            needed = [id(x) in reached for x in inputs]
            if False in needed:
                call._unneeded = [name for name, need in zip(op.input_names, needed) if not need]
        try:
            grads = rule(call, *arriving)
        except WithheldError as error:
            raise self._misdeclared(structure, error) from error
        except Exception as error:
            if op.trusted:
                raise
            raise (failure := rule_failure(op, "gradient", error)) from failure_cause(error, failure)
        if not isinstance(grads, (tuple, list)) or (len(op.inputs) == 1 and op.inputs[0].repeated):
            grads = (grads,)
        if len(grads) != len(op.inputs):
            raise contract_violation(
                op,
                "gradient",
                "gave another number of results than there are inputs",
                found=len(grads),
                wanted=f"{len(op.inputs)}: {', '.join(op.input_names)}",
            )
        if not op.trusted:
            grads = _convert_gradients(op, self.structure, grads)
        if op.profile.simple:
            if op.elementwise and len(inputs) > 1:
                needed = needed or [True] * len(inputs)
                return [_summed(g, x) if need and g is not None else None for g, x, need in zip(grads, inputs, needed)]
            result: Sequence[Any] = grads
            return result
        flat: list[Any] = []
        for item, grad in zip(self.structure, grads):
            if type(item) is tuple:
                flat.extend((None,) * len(item) if grad is None else grad)
            elif item is not None:
                if grad is not None and op.elementwise:
                    grad = array.sum_to_shape_of(grad, item)
                flat.append(grad)
        return flat

    def _backward_plain(self, op: Any, rule: Any, dy: Any, reached: Collection[int]) -> Sequence[Any]:
        """Implement `backward_to` for an eager call of an operator with `CallProfile.plain_gradient`."""
        call = self.bound.with_all(self.structure, self.results)  # type: ignore[union-attr]
        ids: Any = self.input_ids
        several = len(ids) > 1
        if several:
            call._unneeded = [name for name, key in zip(op.input_names, ids) if key not in reached]
        try:
            grads = rule(call, dy)
        except WithheldError as error:
            raise self._misdeclared(self.structure, error) from error
        if not several:
            return grads if type(grads) is tuple or type(grads) is list else (grads,)
        if not op.elementwise:
            result: Sequence[Any] = grads
            return result
        return [
            _summed(g, x) if g is not None and key in reached else None for g, x, key in zip(grads, self.inputs, ids)
        ]

    def _misdeclared(self, structure: Sequence[Any], error: WithheldError) -> Exception:
        """Return the error for a rule that reads elements which its declaration excludes."""
        op, read = self.op, error.identity
        name = ""
        if read is None:
            return error
        for one, item in zip(op.input_names, structure):
            if any(x is not None and x._identity is read._identity for x in (item if type(item) is tuple else (item,))):
                name = one
        if not name:
            return error
        declared = name in op.no_need_buffer
        what = f"input {name!r} is declared no_need_buffer" if declared else f"input {name!r} is not kept for it"
        failure = WithheldError(
            op=op.name,
            what=f"the gradient reads the elements of {name!r}, and {what}: only its shape is there",
            found=error.message.partition("\n")[0],
            wanted=f"op.{name}.shape, or what reads a shape alone: shape, size, zeros_like, ones_like",
            do=f"take {name!r} out of no_need_buffer"
            if declared
            else f"take it out of what the gradient operator declares shape_only, or read op.{name} in the rule itself",
        )
        failure.identity = read
        return failure


def _arriving(op: Any, dy: Any, out: Any) -> Any:
    """Return the gradient of an output as rules take it: zeros where none flows, sparse rows as a tensor."""
    if dy is None:
        flows = is_trainable(out.dtype) and out.dtype.name != "resource"  # of state there are no zeros
        return array.zeros_like(out) if flows else None
    return dy.to_dense() if type(dy) is IndexedSlices and op.name not in SPARSE_THROUGH else dy


def _summed(grad: Any, x: Any) -> Any:
    """Return a gradient summed to the shape of its input; most have it, which costs a fifth to see on arrays."""
    if type(x) is ShapeOnlyTensor:
        array_ = getattr(grad, "_array", None)
        if array_ is not None and array_.shape == x._shape:
            return grad
    return array.sum_to_shape_of(grad, x)


def _in_trace(op: Any, names: Sequence[str], parts: Sequence[Any]) -> list[Any]:
    return [shape_only_in_trace(x) if name in op.no_need_buffer else x for name, x in zip(names, parts)]


def flattened(structure: Sequence[Any]) -> tuple[Any, ...]:
    """Return the tensors of a call in the order of declared inputs, without nesting and absent ones."""
    flat: list[Any] = []
    for item in structure:
        if type(item) is tuple:
            flat.extend(item)
        elif item is not None:
            flat.append(item)
    return tuple(flat)


def _identities(item: Any) -> object:
    if type(item) is tuple:
        return tuple([x._identity for x in item])
    return None if item is None else item._identity


Backward = Callable[[Sequence[Any]], Sequence[Any]]


class CustomRecord:
    """A computation with its own backward function: a traced function, `custom_gradient`.

    backward_once: the same for a final call: it releases the stored tensors. input_ids, flowing: as of OpRecord.
    """

    __slots__ = ("_backward", "backward_once", "flowing", "input_ids", "inputs", "outputs")

    def __init__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], backward: Backward, backward_once: Backward | None = None
    ) -> None:
        self.inputs, self.outputs = tuple(map(tensor_identity, inputs)), tuple(map(tensor_identity, outputs))
        self.input_ids = list(map(id, self.inputs))
        self.flowing = [id(y) for y in self.outputs if y.dtype.has_gradient]
        self._backward, self.backward_once = backward, backward_once

    def backward(self, dys: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of the inputs for the gradients of the outputs (None without flow)."""
        return self._backward(dys)


def flowing_ids(record: Any) -> Sequence[int]:
    """Return the ids of a record's outputs that gradients flow through."""
    ids: Sequence[int] | None = record.flowing
    return [id(y) for y in record.outputs if y.dtype.has_gradient] if ids is None else ids


def accumulate(a: Any, b: Any) -> Any:
    """Return the sum of two gradients: sparse if both are, element-wise for lists."""
    if type(a) is IndexedSlices:
        return a + b
    if type(b) is IndexedSlices:
        return b.added_to(a)
    if a.dtype.name == "variant":
        return registry.get("ListAdd")(a, b)
    return a + b


def backpropagate(
    records: list[Any], targets: Mapping[int, Any], sources: set[int], use_up: bool = False
) -> dict[int, Any]:
    """Return gradients by identity of tensor (identity.identity_key), for the tensors in `sources`.

    records: calls in the order they ran. targets: gradient of each target, by identity. Identities stay alive in the
    records, so their ids are theirs alone. Only records between the wanted tensors and the targets are visited.
    use_up: `records`, a list, is emptied, and each record dropped as soon as it was passed, with what it kept.
    """
    reaches: set[int] = set(sources)  # ids that depend on a wanted tensor
    path = []
    for record in records:
        if not reaches.isdisjoint(record.input_ids or map(id, record.inputs)):
            reaches.update(record.flowing or flowing_ids(record))
            path.append(record)
    if use_up:
        records.clear()
    grads = dict(targets)
    while path:
        record = path.pop()
        dys: list[Any] = []
        flows = False
        for key in map(id, record.outputs):
            dy = grads.get(key) if key in sources else grads.pop(key, None)
            if dy is not None:
                flows = True
            dys.append(dy)
        if not flows:
            continue
        ids = record.input_ids or list(map(id, record.inputs))  # before `backward`, which may add inputs
        if type(record) is OpRecord:
            dxs = record.backward_to(dys, reaches)
        elif use_up and type(record) is CustomRecord and record.backward_once is not None:
            dxs = record.backward_once(dys)
        else:
            dxs = record.backward(dys)
        for key, dx in zip(ids, dxs):
            if dx is not None and key in reaches:
                before = grads.get(key)
                grads[key] = dx if before is None else accumulate(before, dx)
        dys = dxs = dy = dx = before = None  # type: ignore[assignment]  # the last use of these
    return {key: grads[key] for key in sources if key in grads}

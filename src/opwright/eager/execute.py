"""The eager interpreter: check, compute, wrap, and record to tapes.

Lives here: `execute`, the hottest path of the package.  Not here: tensors (tensor.py), tapes (tape.py).

An element-wise call of tensors takes a fast path: output dtypes from a table keyed by input dtypes, NumPy's
broadcasting as the shape check, and error messages only after a failure. All other calls are inferred before they run.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import flags
from ..core.dtypes import DType
from ..core.errors import OpError, ResourceExhaustedError
from ..core.introspection import users_line
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops import dispatch
from ..ops.arguments import tensors
from ..ops.autodiff import OpRecord, flattened
from ..ops.call import Call, contract_violation, failure_cause, mismatch, rule_failure
from ..ops.compute_wrappers import compare, fingerprint
from ..ops.definition import Operator
from ..ops.kernels import computed_by
from ..ops.tensor import Tensor, WithheldError, overriding, tensor_identity, withheld_error
from . import large_calls, short_calls
from .large_calls import LEAST_ELEMENTS
from .tensor import EagerTensor, make, number, tensor_of

state = dispatch.state
quietly = dispatch.quietly


def execute(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> Any:
    """Execute one call. inputs: one entry per declared input, in any form that the argument rules accept."""
    profile = op.profile
    if bound._short and not op.cpu_kernels:
        out = bound._short(*inputs)
        if out is None and profile.paired and (number_operands := _with_number(*inputs)):
            inputs = number_operands
            out = bound._short(*inputs)
        if out is not None:
            if state.tapes:
                _record(op, bound, inputs, (out,))
            if flags.check_numerics:
                _check_numerics(op, inputs, (out,), name)
            return out
    for x in inputs:
        if type(x) is not EagerTensor:
            operands: Any = _with_number(*inputs) if profile.paired else None
            if operands is None and profile.alike and len(inputs) > 2:
                operands = _with_numbers(inputs)
            if operands is None and profile.listed and _is_list_of_tensors(x):
                inputs = (tuple(x),)  # of a repeated input; `infer` checks that the operator takes it
            elif operands is None:
                inputs = tensors(op, inputs, make, name)
                special = overriding(inputs)
                if special is not None:
                    return special.record(op, inputs, bound, name)
            else:
                inputs = operands
            break
    else:
        if not profile.simple:  # a single tensor passed for a repeated input represents its slices
            inputs = tensors(op, inputs, make, name)
    if profile.quick:
        in_dtypes = tuple([x._dtype for x in inputs])
        out_dtypes = op.accepted.get(in_dtypes) or op.accept(in_dtypes)
        try:
            kernel = op.kernel(bound, in_dtypes[0]) if op.cpu_kernels else bound.reference or op.reference(bound)
            arrays = [x._array for x in inputs]
            large = arrays[0].size + arrays[-1].size >= LEAST_ELEMENTS
            if large and (profile.vector_cost or op.name in large_calls.KERNELS) and not op.cpu_kernels:
                kernel = large_calls.kernel_of(op, bound, arrays)
            result = quietly(kernel, *arrays)
        except Exception as error:
            raise (failure := explain(op, bound, inputs, name, error)) from failure_cause(error, failure)
        if profile.single:
            dtype: Any = out_dtypes[0]
            if not op.catalogue and not _is_elementwise_result(result, dtype, inputs[0]._array):
                _check_results(op, (result,), op.infer(bound, inputs), bound, inputs, name)
            out = tensor_of(result, dtype)
            if bound._short is None:
                short_calls.count_call(op, bound)
            if state.tapes:
                _record(op, bound, inputs, (out,))
            if flags.check_numerics:
                _check_numerics(op, inputs, (out,), name)
            return out
        specs: list[Any] = list(out_dtypes)
        promised: Sequence[Any] = specs
    else:
        if profile.simple:
            key = tuple([(x._dtype, x._array.shape) for x in inputs])
            kept: Any = bound.inferred.get(key)
            if type(kept) is InferredByElements:
                kept = kept.specs.get(kept.elements(inputs))
            promised = kept or _infer(op, bound, inputs, key, name)
            arrays = [x._array for x in inputs]
        elif profile.listed and op.catalogue:
            key = tuple([(x._dtype, x._array.shape) for x in inputs[0]])
            promised = bound.inferred.get(key) or _infer_list(op, bound, inputs[0], key, name)
            arrays = [[x._array for x in inputs[0]]]
        else:
            promised = _flat_specs(op.infer(bound, inputs, name))
            arrays = [None if x is None else [y._array for y in x] if type(x) is tuple else x._array for x in inputs]
        try:
            kernel = bound.reference
            if op.cpu_kernels or kernel is None:
                kernel = op.kernel(bound, _first_dtype(inputs))
            elif op.name in large_calls.KERNELS and op.catalogue and large_calls.is_large(arrays):
                kernel = large_calls.KERNELS[op.name](op, bound, arrays)
            result = quietly(kernel, *arrays)
        except Exception as error:
            raise (failure := explain(op, bound, inputs, name, error)) from failure_cause(error, failure)
        if profile.single and (op.catalogue or _matches_spec(result, promised[0])):
            out = tensor_of(result, promised[0].dtype)
            if bound._short is None:
                short_calls.count_call(op, bound)
            if state.tapes:
                _record(op, bound, inputs, (out,))
            if flags.check_numerics:
                _check_numerics(op, inputs, (out,), name)
            return out
        specs = [s.dtype for s in promised]
    flat = op.flat_outputs(result)
    if not op.catalogue:
        _check_results(op, flat, promised, bound, inputs, name)
    outs = tuple([tensor_of(a, d) for a, d in zip(flat, specs, strict=True)])
    if state.tapes:
        _record(op, bound, inputs, outs)
    if flags.check_numerics:
        _check_numerics(op, inputs, outs, name)
    return op.pack_outputs(outs)


def _with_number(x: Any, y: Any) -> tuple[EagerTensor, EagerTensor] | None:
    """Return a float tensor and a Python number, in either order, as two tensors; None if the general rule applies."""
    if type(x) is EagerTensor:
        if type(y) in _NUMBERS and x._dtype.is_floating:
            return x, number(y, x._dtype)
    elif type(y) is EagerTensor and type(x) in _NUMBERS and y._dtype.is_floating:
        return number(x, y._dtype), y
    return None


def _with_numbers(inputs: Sequence[Any]) -> tuple[EagerTensor, ...] | None:
    """Return a float tensor and Python numbers after it as tensors; None if the general rule applies."""
    first = inputs[0]
    if type(first) is not EagerTensor or not first._dtype.is_floating:
        return None
    operands = [first]
    for x in inputs[1:]:
        if type(x) is EagerTensor:
            operands.append(x)
        elif type(x) in _NUMBERS:
            operands.append(number(x, first._dtype))
        else:
            return None
    return tuple(operands)


def _is_list_of_tensors(value: Any) -> bool:
    kind = type(value)
    return (kind is list or kind is tuple) and {*map(type, value)} == _TENSORS


_NUMBERS = frozenset({float, int})
_TENSORS = {EagerTensor}


ADDRESSABLE = 1 << 47
"""Bytes of a process's address space on current processors."""


class OperandUseTracker:
    """An input of `infer` that records whether its value was read."""

    __slots__ = ("tensor", "value_read")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.value_read = tensor, False

    @property
    def spec(self) -> TensorSpec:
        return self.tensor.spec

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    @property
    def shape(self) -> TensorShape:
        return self.tensor.shape

    @property
    def constant(self) -> np.ndarray | None:
        self.value_read = True
        return self.tensor.constant


class InferredByElements:
    """Output specs that depend on elements of a few integers: new shapes, sizes, axes.

    places: of the inputs that were read; specs: by their elements
    """

    __slots__ = ("places", "specs")

    def __init__(self, places: Sequence[int]) -> None:
        self.places = places
        self.specs: dict[Any, list[Any]] = {}

    def elements(self, inputs: Sequence[Any]) -> Any:
        """Return the elements of these inputs as a key; their dtypes and shapes are another part of it."""
        return tuple([inputs[i]._array.tobytes() for i in self.places])


MOST_SPECS = 64
"""Maximum number of output specs that are kept for attributes, or for dtypes and shapes."""


def _infer(op: Operator, bound: Call, inputs: Sequence[Any], key: Any, name: str | None) -> list[Any]:
    """Return the flat output specs, cached for further calls if they depend on dtypes and shapes alone, or on the
    elements of short inputs of integers as well.

    raises ResourceExhaustedError for an output larger than any address space, before its kernel runs
    """
    operands = [OperandUseTracker(x) for x in inputs]
    promised = _flat_specs(op.infer(bound, operands, name))
    _check_addressable(op, promised, name)
    if promised and (key in bound.inferred or len(bound.inferred) < MOST_SPECS):
        places = [i for i, operand in enumerate(operands) if operand.value_read]
        if not places:
            bound.inferred[key] = promised
        elif all(_is_short(inputs[i]) for i in places):
            kept = bound.inferred.get(key)
            if type(kept) is not InferredByElements or kept.places != places:
                kept = bound.inferred[key] = InferredByElements(places)
            if len(kept.specs) < MOST_SPECS:
                kept.specs[kept.elements(inputs)] = promised
    return promised


def _is_short(x: Any) -> bool:
    """Return whether a tensor has so few integers that specs are kept by its elements."""
    result: bool = x._dtype.is_integer and x._array.size <= short_calls.MOST_INDICES
    return result


def _infer_list(op: Operator, bound: Call, tensors: Sequence[Any], key: Any, name: str | None) -> list[Any]:
    """Implement `_infer` for the tensors of one repeated input."""
    operands = tuple([OperandUseTracker(x) for x in tensors])
    try:
        promised = _flat_specs(op.infer(bound, (operands,), name))
    except AttributeError:  # a rule that reads more of a tensor than its spec
        return _flat_specs(op.infer(bound, (tensors,), name))
    _check_addressable(op, promised, name)
    of_elements = any(o.value_read or o.dtype.is_handle for o in operands)
    if promised and not of_elements and len(bound.inferred) < MOST_SPECS:
        bound.inferred[key] = promised
    return promised


def _check_addressable(op: Operator, promised: Sequence[Any], name: str | None) -> None:
    """Raise ResourceExhaustedError for an output larger than any address space, or than an importer may fold."""
    limit = dispatch.state.output_limit
    for spec in promised:
        if isinstance(spec, TensorSpec) and spec.shape.is_fully_defined():
            dims: Any = spec.shape.dims
            nbytes = math.prod(dims) * spec.dtype.size
            if nbytes > ADDRESSABLE:
                raise ResourceExhaustedError(
                    op=op.name,
                    node=name,
                    what="an output is larger than any memory",
                    found=f"{spec.short()}: {nbytes} bytes",
                    wanted=f"at most {ADDRESSABLE}",
                )
            if limit is not None and nbytes > limit:
                raise constants_too_large(f"{spec.short()}: {nbytes} bytes", limit, op=op.name, node=name)


def constants_too_large(
    size: str, limit: int, op: str | None = None, node: str | None = None
) -> ResourceExhaustedError:
    """Return the error of an importer whose constants exceed the flag max_activation_bytes."""
    return ResourceExhaustedError(
        op=op,
        node=node,
        what="constants computed at import take too much memory",
        found=size,
        wanted=f"at most {limit}",
        do="set the flag max_activation_bytes higher if the model is right",
    )


def _first_dtype(inputs: Sequence[Any]) -> DType | None:
    for x in inputs:
        first = (x[0] if x else None) if type(x) is tuple else x
        if first is not None:
            dtype: DType = first._dtype
            return dtype
    return None


def _flat_specs(specs: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for spec in specs:
        flat.extend(spec) if isinstance(spec, list) else flat.append(spec)
    return flat


def _matches_spec(result: Any, spec: Any) -> bool:
    """Return whether a result certainly has the inferred type: a tenth of the time of `_check_results`."""
    return type(result) is np.ndarray and result.dtype is spec.dtype.np and result.shape == spec.shape.dims


def _is_elementwise_result(result: Any, dtype: Any, first: np.ndarray) -> bool:
    """Return whether a result certainly is an element-wise operator's, of the first input's shape."""
    return type(result) is np.ndarray and result.dtype is dtype.np and result.shape == first.shape


def _check_results(
    op: Operator, results: Sequence[Any], promised: Sequence[Any], bound: Call, inputs: Sequence[Any], name: str | None
) -> None:
    """Check results against the inferred types. Catalogue operators are checked by tests, all others here.

    raises DefinitionError naming operator, kernel, found and wanted
    """
    difference = mismatch(results, promised)
    if difference is not None:
        raise contract_violation(op, computed_by(op, bound, _first_dtype(inputs)), node=name, **difference)


def _record(op: Operator, bound: Call, inputs: Sequence[Any], outputs: Sequence[EagerTensor]) -> None:
    """Record a call to the tapes that follow one of its inputs, unless its operator ends differentiation.

    outputs: fresh tensors
    """
    if op.gradient_rule is None and op.has_gradient_rule:
        return
    recorder = bound._recorder
    if type(recorder) is not int and recorder and len(state.tapes) == 1:
        tape: Any = state.tapes[0]
        parts = inputs if type(inputs) is tuple else tuple(inputs)
        done = recorder(tape._live, tape._records, parts, outputs)
        if done is False:
            for x in parts:
                tensor_identity(x)
            done = recorder(tape._live, tape._records, parts, outputs)
        if done:
            return
    flat = inputs if op.profile.simple else flattened(inputs)
    identities = list(map(_identity_of, flat))
    ids = list(map(id, identities))
    record = None
    for tape in state.tapes:
        if tape.follows(ids):
            if record is None:
                if _NO_IDENTITY in ids:
                    identities = list(map(tensor_identity, flat))
                record = OpRecord.light(op, bound, inputs, identities, outputs)
                if type(recorder) is int:
                    short_calls.count_record(op, bound)
            tape.keep(record)


_identity_of = operator.attrgetter("_identity")
_NO_IDENTITY = id(None)
"""The id of the identity of a tensor that no tape has recorded."""


def explain(op: Operator, bound: Call, inputs: Sequence[Any], name: str | None, error: Exception) -> Exception:
    """Return the error to raise for a failed kernel: the error of inference if it objects, else an error of the
    kernel.
    """
    if isinstance(error, WithheldError) and error.op is None:
        return withheld_error(error.identity, op.name, _name_of(error.identity, op, inputs))
    if not isinstance(error, OpError):
        try:
            op.infer(bound, inputs, name)
        except OpError as inference_error:
            return inference_error
    operand_types = {
        declared.name: "absent"
        if x is None
        else [y.spec.short() for y in x]
        if isinstance(x, tuple)
        else x.spec.short()
        for declared, x in zip(op.inputs, inputs)
    }
    return rule_failure(op, computed_by(op, bound, _first_dtype(inputs)), error, node=name, found=operand_types)


def _name_of(identity: Any, op: Operator, inputs: Sequence[Any]) -> str | None:
    """Return the name of the input that an identity represents."""
    for name, x in zip(op.input_names, inputs):
        if any(y is identity for y in (x if type(x) is tuple else (x,))):
            return name
    return None


def _check_numerics(op: Operator, inputs: Sequence[Any], outputs: Sequence[EagerTensor], name: str | None) -> None:
    """Implement the flag `check_numerics`. Raises InvalidArgumentError for a NaN or infinity."""
    from ..ops.debugging.assertions import MOVERS, wrong_number

    if op.name in MOVERS:
        return
    shown = [str(y) for x in inputs if x is not None for y in (x if type(x) is tuple else (x,))]
    for i in range(len(outputs)):
        error = wrong_number(
            op.name, i, [o._array for o in outputs], [o._dtype for o in outputs], shown, name, users_line()
        )
        if error is not None:
            raise error


def with_input_checks(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Return `execute` with a check around each call.

    It raises PermissionDeniedError if an input was written, or if a result shares memory with an input.
    """

    def checked_execute(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> object:
        before = [fingerprint(x) for x in inputs]
        result = execute(op, inputs, bound, name)
        declared = [o for o in op.outputs if not o.intermediate]
        parts = (result,) if len(declared) == 1 else result if isinstance(result, (tuple, list)) else ()
        results = [
            (o.name, getattr(x, "_array", None))
            for o, part in zip(declared, parts)
            for x in (part if isinstance(part, (tuple, list)) else (part,))
        ]
        compare(op, inputs, before, results, name, users_line())
        return result

    return checked_execute


def _install() -> None:
    """Install the checked `execute` under the flag `check_inputs`, so that the unchecked one need not test the flag."""
    dispatch.install_eager(with_input_checks(execute) if flags.check_inputs else execute, make)


dispatch.install_eager(execute, make)
flags.on_change("check_inputs", _install)

"""The values of a call: against an oracle, inference, its reference, in each dtype, traced; unchanged inputs.

Lives here: these checks.  Not here: places (scope_checks.py), gradients (gradient_check.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtypes import DType, as_dtype
from ..core.specs import TensorSpec
from ..eager.tensor import make
from ..graph import parse, same, text
from ..ops import dispatch, registry
from ..ops.lod_tensor import LoDTensor
from ..tracing.function import function
from .operator_call import (
    TOLERANCE,
    CheckedCall,
    NotApplicable,
    array,
    assert_near,
    assert_same,
    flat,
    lod_of,
    numbers,
    refs,
    replaced,
)


def matches_oracle(call: CheckedCall, expect: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """Check that the results are those of an independent formula.

    expect: called with the inputs as arrays, one argument for each declared input (None for an absent one, a list for a
    repeated one), floating ones in float64; returns an array, or a tuple of them. Or these themselves. An entry that is
    a pair (array, LoD) specifies the offsets too; otherwise they are ignored.
    """
    expected = expect
    if callable(expect):
        arguments = call.operands([_exact(array(t)) for t in call.tensors()])
        expected = expect(*[list(x) if isinstance(x, tuple) else x for x in arguments])
    parts = list(expected) if isinstance(expected, tuple) else [expected]
    results = call.flat()
    if len(results) != len(parts):
        raise AssertionError(f"{len(results)} results, {len(parts)} expected")
    names = [o.name for o in call.op.outputs if not o.intermediate]
    for i, (y, part) in enumerate(zip(results, parts)):
        where = f"output {names[i]!r}" if len(names) == len(results) else f"result {i}"
        lod = None
        if isinstance(part, tuple):
            part, lod = part
        assert_near(array(y), part, where, rtol, atol)
        if not (lod is None or lod_of(y) == [list(map(int, level)) for level in lod]):
            raise AssertionError(f"{where}: LoD {lod_of(y)}")


def _exact(a: np.ndarray) -> np.ndarray:
    """Return floating numbers in float64 and integers in int64, in which a formula does not round or overflow."""
    if a.dtype.kind in "iu" and a.dtype.itemsize < 8:
        return a.astype(np.int64)
    if a.dtype.kind in "fV" or a.dtype.name == "bfloat16":
        return a.astype(np.float64)
    return a.astype(np.complex128) if a.dtype.kind == "c" else a


def inference(call: CheckedCall) -> None:
    """Check that inference agrees with results whatever is known of inputs: values, shapes, ranks, dtypes, sizes."""
    op = call.op
    bound = op.bind(dict(call.attrs))
    plain = call.plain()
    tensors = plain.tensors()
    results = op.flat_outputs(_reference_results(plain, bound))
    levels: dict[str, Callable[[Any], Any]] = {
        "values": lambda t: t,
        "shapes": lambda t: TensorSpec(t.shape, t.dtype),
        "ranks": lambda t: TensorSpec([None] * t.shape.rank, t.dtype),
        "dtypes": lambda t: TensorSpec(None, t.dtype),
    }
    knowledge = {level: [to_spec(t) for t in tensors] for level, to_spec in levels.items()}
    for k, t in enumerate(tensors):
        for d in range(t.shape.rank):
            dims = t.shape.as_list()
            spec = TensorSpec([*dims[:d], None, *dims[d + 1 :]], t.dtype)
            knowledge[f"all but size {d} of tensor {k}"] = [*tensors[:k], spec, *tensors[k + 1 :]]
    for level, specs in knowledge.items():
        inferred = []
        for s in op.infer(bound, plain.operands(specs)):
            inferred.extend(s) if isinstance(s, list) else inferred.append(s)
        if len(inferred) != len(results):
            raise AssertionError(f"{len(results)} results, {len(inferred)} inferred from {level}")
        for y, spec in zip(results, inferred):
            if not spec.dtype.is_handle:
                actual = TensorSpec(np.shape(y), y.dtype if isinstance(y.dtype, type(spec.dtype)) else spec.dtype)
                fits = spec.shape.is_compatible_with(np.shape(y)) and np.dtype(y.dtype) == spec.dtype.np
                if not fits:
                    raise AssertionError(f"{actual.short()} came out; inferred from {level}: {spec.short()}")


def _reference_results(call: CheckedCall, bound: Any) -> object:
    """Return the results of the reference, including intermediate outputs."""
    reference = call.op.reference(bound)
    if reference is None:
        raise NotApplicable("it has no reference that can be run alone")
    arrays = [None if x is None else [t._array for t in x] if isinstance(x, tuple) else x._array for x in call.inputs]
    return dispatch.quietly(reference, *arrays)


def inputs_stay(call: CheckedCall) -> None:
    """Check that the operator does not write to its inputs."""
    copies = [[a.copy() for a in refs(t)] for t in call.tensors()]
    call.call()
    for (name, t), before in zip(call.parts(), copies):
        same_bits = all(a.tobytes() == b.tobytes() for a, b in zip(refs(t), before) if a.dtype != object)
        if not same_bits:
            raise AssertionError(f"input {name!r} was written to")


def every_dtype(call: CheckedCall) -> None:
    """Check that every declared dtype is computed, not only accepted."""
    op = call.op
    lead = next((i for i, x in zip(op.inputs, call.inputs) if x is not None and not isinstance(x, tuple)), None)
    if lead is None:
        raise NotApplicable("no input that is a tensor")
    wrong = []
    for dtype in (d for d in lead.dtypes if not d.is_handle):
        inputs = [
            replaced(x, numbers(array(x).shape, dtype, k))
            if x is not None and not isinstance(x, tuple) and lead.name in (i.name, i.like)
            else x
            for k, (i, x) in enumerate(zip(op.inputs, call.inputs))
        ]
        try:
            CheckedCall(op, tuple(inputs), call.attrs).call()
        except Exception as error:
            wrong.append(f"{dtype.name}: {str(error).splitlines()[0]}")
    if wrong:
        raise AssertionError("; ".join(wrong[:3]))


def kernel_is_compute(call: CheckedCall) -> None:
    """Check that a kernel computes the same as `compute`, the definition."""
    op = call.op
    if not op.kernels or op.compute_rule is None:
        raise NotApplicable("compute alone" if op.compute_rule is not None else "kernels alone")
    plain = call.plain()
    expected = op.flat_outputs(_reference_results(plain, op.bind(dict(call.attrs))))
    shown = [o.intermediate for o in op.outputs]
    if any(shown) or any(o.repeated for o in op.outputs):
        expected = [w for w, hidden in zip(expected, shown) if not hidden]
    for i, (result, reference) in enumerate(zip(plain.flat(), expected)):
        np.testing.assert_allclose(array(result), reference, rtol=1e-6, atol=1e-7, err_msg=f"result {i}")


def traces(call: CheckedCall) -> None:
    """Check that a function computes the same, with sizes known and unknown, and the graph prints and parses."""
    op, expected, tensors = call.op, call.flat(), call.tensors()
    unknown = [t if isinstance(t, LoDTensor) else TensorSpec([None] * t.shape.rank, t.dtype) for t in tensors]
    for label, specs in (("traced", tensors), ("traced with unknown sizes", unknown)):
        traced = function(lambda *args: flat(call.call(list(args))), autograph=False)
        concrete = traced.get_concrete_function(*specs)
        assert_same(flat(concrete(*tensors)), expected, label, bits=False)
        graph = concrete.graph
        printed = text(graph)
        if "opaque(" not in printed:
            read = parse(printed, lambda name: op if name == op.name else registry.get(name))
            if not same(read, graph):
                raise AssertionError(f"{label}: its graph's text reads back as another graph")


def pickles(call: CheckedCall) -> None:
    """Check that it is found by its name, which identifies it in files and pickles."""
    op = call.op
    is_found = registry.get(op.name) is op
    if not is_found:
        raise AssertionError(f"ow.ops.get({op.name!r}) gives another operator: the catalogue's has this name")


def converted_call(call: CheckedCall, name: str) -> CheckedCall:
    """Return the call with floating inputs in another dtype; integers are the rounded numbers, within its range.

    raises NotApplicable if there are no floating inputs, or one that does not take the dtype
    """
    dtype = as_dtype(name)
    op = call.op
    floating = [k for k, t in enumerate(call.tensors()) if t.dtype.is_floating]
    if not floating:
        raise NotApplicable("no input in floats")
    for declared, value in zip(op.inputs, call.inputs):
        members = value if isinstance(value, tuple) else () if value is None else (value,)
        if any(m.dtype.is_floating for m in members) and dtype not in declared.dtypes:
            raise NotApplicable(f"input {declared.name!r} does not take {name}")
    return call.over(
        [
            replaced(t, make(_converted_numbers(array(t), dtype))) if k in floating else t
            for k, t in enumerate(call.tensors())
        ]
    )


def _converted_numbers(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    if not dtype.is_integer:
        return numbers.astype(dtype.np)
    return np.clip(np.rint(numbers.astype(np.float64)), max(dtype.min, -100), min(dtype.max, 100)).astype(dtype.np)


def matches_formula(
    call: CheckedCall, name: str, expect: Callable[..., Any], rtol: float | None, atol: float | None
) -> None:
    """Check that the results in a narrow floating dtype or in integers are those of the formula.

    A sum of rounded terms may cancel, so the absolute tolerance of floats is the dtype's at the largest result. raises
    NotApplicable if the formula returns no integers for an integer result, or numbers out of its range
    """
    call = converted_call(call, name)
    arguments = call.operands([_exact(array(t)) for t in call.tensors()])
    expected = expect(*[list(x) if isinstance(x, tuple) else x for x in arguments])
    for y, part in zip(call.flat(), expected if isinstance(expected, tuple) else (expected,)):
        result, numbers = array(y), np.asarray(part[0] if isinstance(part, tuple) else part)
        if result.dtype.kind in "iu" and numbers.dtype.kind in "iufb":
            info = np.iinfo(result.dtype)
            exact = numbers.astype(np.float64)
            if not np.all((exact >= info.min) & (exact <= info.max) & (exact == np.rint(exact))):
                raise NotApplicable(f"the formula gives what {result.dtype} does not hold")
        elif result.dtype.name in TOLERANCE and atol is None:
            finite = np.abs(numbers[np.isfinite(numbers)])
            atol = TOLERANCE[result.dtype.name][0] * max(1.0, float(finite.max(initial=0)))
    matches_oracle(call, expect, rtol, atol)

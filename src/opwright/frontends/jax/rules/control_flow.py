"""Rules of calls and control flow: inner jaxprs inlined, scan, while, cond.

Lives here: primitives whose parameters hold jaxprs. Not here: execution of a jaxpr (execution.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import as_dtype
from ....core.lazy_imports import import_module
from ....eager.tape import custom_gradient
from ....ops import array, dispatch, math
from ....tracing import control
from ....tracing.tensor_array import TensorArray
from ...importing import is_known, tensor_of
from ..execution import BROADCASTING, RULES, JaxprContext, closed, is_key
from ..operands import cast, dims, reshape
from ..sizes import is_open
from .arrays import part

JAXPRS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "call": "call_jaxpr",
    "core_closed_call": "call_jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_vmap_call": "call",
    "composite": "jaxpr",
    "custom_lin": "jaxpr",
    "linear_call": "callee",
}
"""The parameter that holds the jaxpr of each call that is inlined."""


def _call(name: str, parameter: str) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        return context.run(params[parameter], inputs)


for _name, _parameter in JAXPRS.items():
    _call(_name, _parameter)
BROADCASTING.update(JAXPRS)


@RULES.rule("custom_jvp_call", "custom_vjp_call")
def custom_call(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the results of a function whose gradient is the one that its custom rule defines, by `jax.vjp`."""
    equation = context.equation
    values = {v: x for v, x in zip(equation.invars, inputs) if not hasattr(v, "val")}
    variables = [v for v in values if not is_known(values[v]) and _is_inexact(v.aval)]
    results = [i for i, v in enumerate(equation.outvars) if _is_inexact(v.aval)]
    if not variables or not results:
        return context.run(params["call_jaxpr"], inputs)
    kinds = [v.aval for v in (*values, *(equation.outvars[i] for i in results))]
    inner = context.inner()

    def pullback(*arguments: Any) -> Any:
        operands, cotangents = dict(zip(values, arguments)), arguments[len(values) :]

        def of_places(*chosen: Any) -> Any:
            current = {**operands, **dict(zip(variables, chosen))}
            outputs = _bind(equation, [v.val if hasattr(v, "val") else current[v] for v in equation.invars])
            return [outputs[i] for i in results]

        return import_module("jax").vjp(of_places, *(operands[v] for v in variables))[1](list(cotangents))

    def call(*tensors: Any) -> Any:
        current = {**values, **dict(zip(variables, tensors))}
        operands = [x if hasattr(v, "val") else current[v] for v, x in zip(equation.invars, inputs)]
        outputs = _tensors(inner.execute(params["call_jaxpr"], operands))

        def gradient(*cotangents: Any) -> Any:
            arguments = [*current.values(), *(cotangents[i] for i in results)]
            return _tensors(inner.traced(pullback, arguments, [(kind.shape, kind.dtype) for kind in kinds]))

        return outputs, gradient

    return custom_gradient(call)(*(values[v] for v in variables))


def _bind(equation: Any, operands: Sequence[Any]) -> Sequence[Any]:
    """Return the results of an equation's primitive on tracers of JAX."""
    primitive = equation.primitive
    params = primitive.get_bind_params(equation.params)
    functions, params = params if isinstance(params, tuple) else ((), params)  # a tuple before JAX 0.9
    results: Sequence[Any] = primitive.bind(*functions, *operands, **params)
    return results


def _is_inexact(kind: Any) -> bool:
    return not is_key(kind) and (as_dtype(kind.dtype).is_floating or as_dtype(kind.dtype).is_complex)


@RULES.rule("cond")
def cond(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the results of the branch of an index, which is moved into their range."""
    index, *operands = inputs
    branches = params["branches"]
    if is_known(index):
        return context.run(branches[int(np.clip(int(index), 0, len(branches) - 1))], operands)

    def function(i: int) -> Any:
        return lambda: _tensors(context.run(branches[i], operands))

    if not context.outputs:
        return []
    index = tensor_of(index)
    if index.dtype.is_bool or len(branches) == 2:
        return control.cond(cast(index, np.bool_) if not index.dtype.is_bool else index, function(1), function(0))
    bounded = math.minimum(math.maximum(cast(index, np.int32), np.int32(0)), np.int32(len(branches) - 1))
    return control.switch_case(bounded, [function(i) for i in range(len(branches))])


@RULES.rule("platform_index")
def platform_index(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return which branch of `lax.platform_dependent` is for processors; the one without platforms is for all."""
    platforms = params["platforms"]
    return np.int32(next(i for i, names in enumerate(platforms) if names is None or "cpu" in names))


def _tensors(values: Sequence[Any]) -> list[Any]:
    return list(map(tensor_of, values))


@RULES.rule("while")
def while_(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the carried values once the condition is false."""
    a, b = params["cond_nconsts"], params["body_nconsts"]
    of_condition, of_body, carried = inputs[:a], inputs[a : a + b], inputs[a + b :]

    def condition(*values: Any) -> Any:
        return tensor_of(context.run(params["cond_jaxpr"], [*of_condition, *values])[0])

    def body(*values: Any) -> Any:
        return _tensors(context.run(params["body_jaxpr"], [*of_body, *values]))

    return list(control.while_loop(condition, body, _tensors(carried)))


@RULES.rule("scan")
def scan(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return the final carried values, and the results of all steps along a new first axis."""
    n, count, length = params["num_consts"], params["num_carry"], int(params["length"])
    constants, carried, elements = inputs[:n], inputs[n : n + count], inputs[n + count :]
    jaxpr, backwards = params["jaxpr"], bool(params["reverse"])
    stacked = closed(jaxpr)[0].outvars[count:]
    if length == 0:
        empty = [np.zeros((0, *v.aval.shape), v.aval.dtype) for v in stacked]
        return [*carried, *empty]
    if length == 1 or (params.get("unroll") is not None and int(params["unroll"]) >= length):
        return _unrolled(context, jaxpr, constants, list(carried), elements, length, backwards)
    rows = _tensors(elements)
    arrays = [_array_of(v.aval, length) for v in stacked]
    first = dispatch.to_tensor(np.asarray(0, np.int32))

    def step(i: Any, *state: Any) -> Any:
        values, results = state[:count], state[count:]
        place = (length - 1) - i if backwards else i
        current = [array.gather(row, place, axis=0) for row in rows]
        outputs = _tensors(context.run(jaxpr, [*constants, *values, *current]))
        written = [r.write(place, v) for r, v in zip(results, outputs[count:])]
        return [i + 1, *outputs[:count], *written]

    final = control.while_loop(
        lambda i, *_: i < length, step, [first, *_tensors(carried), *arrays], maximum_iterations=length
    )
    return [*final[1 : 1 + count], *(r.stack() for r in final[1 + count :])]


def _array_of(aval: Any, length: int) -> Any:
    shape = [None if is_open([d]) else d for d in aval.shape]
    dtype: Any = aval.dtype
    if is_key(aval):
        shape, dtype = [*shape, *aval.dtype._impl.key_shape], np.uint32
    return TensorArray(dtype, size=length, element_shape=shape)


def _unrolled(
    context: JaxprContext,
    jaxpr: Any,
    constants: Sequence[Any],
    carried: list[Any],
    elements: Sequence[Any],
    length: int,
    backwards: bool,
) -> list[Any]:
    results: list[list[Any]] = [[] for _ in range(length)]
    for i in reversed(range(length)) if backwards else range(length):
        current = [reshape(part(e, 0, i, i + 1), dims(e)[1:]) for e in elements]
        outputs = context.run(jaxpr, [*constants, *carried, *current])
        results[i], carried = outputs[len(carried) :], outputs[: len(carried)]
    stacked = zip(*results)
    return [*carried, *(array.stack(_tensors(column)) for column in stacked)]

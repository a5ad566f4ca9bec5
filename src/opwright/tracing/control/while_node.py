"""A `While` node over flat variables.

Lives here: `emit_while`.
Not here: `while_loop`, which takes structures (loops.py), the gradient (loop_gradient.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import dtypes
from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...ops.control import While
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .body import Body, captured_by, control_record, flat_tensors, handed_in, record_body


def emit_while(
    trace: FuncTrace,
    specs: Sequence[TensorSpec],
    cond: Callable[..., Any],
    body: Callable[..., Any],
    initials: Callable[[], Sequence[Any]],
    name: str,
    born: Sequence[SymbolicTensor] = (),
) -> list[SymbolicTensor]:
    """A `While` node over flat variables.

    cond, body: functions of flat placeholders, recorded once, giving a scalar bool and the flat new variables.
    initials: asked for the variables' first values after these are recorded: a gradient loop learns meanwhile what
    its forward loop has to keep. born: a list that the body may add placeholders of its own trace to; these are
    further variables, after those of `specs`, which it gives new values and `initials` first ones.
    raises TypeError where a dtype changes, ValueError where a shape does
    """
    cond_trace, cond_inputs, goes_on = record_body(f"{trace.name}_{name}_cond", cond, specs, trace)
    (test,) = flat_tensors(cond_trace, goes_on) if not isinstance(goes_on, (list, tuple)) else (None,)
    if test is None or test.dtype is not dtypes.bool or test.shape.rank not in (0, None):
        raise TypeError(f"'cond' must return a boolean value, a scalar bool tensor; found {goes_on!r}")
    body_trace, body_inputs, results = record_body(f"{trace.name}_{name}_body", body, specs, trace)
    for placeholder in born:
        specs = [*specs, placeholder.value_in_graph.spec]
        body_inputs.append(placeholder)
        cond_inputs.append(cond_trace.free_placeholder(placeholder.spec, "born"))
    with body_trace.resumed():
        outputs = [
            body_trace.to_tensor(r, None if isinstance(r, (SymbolicTensor, Variable)) else s.dtype)
            for r, s in zip(results, specs)
        ]
    for spec, output in zip(specs, outputs):
        _check_variable(spec, output)
    outers = captured_by([cond_trace, body_trace])
    condition = Body(cond_trace, [*cond_inputs, *handed_in(cond_trace, outers)], [test])
    turn = Body(body_trace, [*body_inputs, *handed_in(body_trace, outers)], outputs)
    variables = tuple(trace.to_tensor(v) for v in initials())
    captured = tuple(outer if isinstance(outer, Variable) else trace.to_tensor(outer) for outer in outers)
    attrs = {"cond": condition.graph(), "body": turn.graph()}
    plain = [TensorSpec(s.shape, s.dtype) for s in specs]
    loop: Any = While
    record: Any = control_record(loop.name)
    return trace.record_control(record, loop, [variables, captured], attrs, plain, name)


def _check_variable(spec: TensorSpec, output: SymbolicTensor) -> None:
    if output.dtype is not spec.dtype:
        raise TypeError(
            f"Loop variable {spec.name!r} enters the loop with dtype {spec.dtype.name}, but has dtype "
            f"{output.dtype.name} after one iteration. It must keep its dtype: use ow.cast."
        )
    if not output.shape.is_subtype_of(spec.shape):
        raise ValueError(
            f"Input tensor {spec.name!r} enters the loop with shape {spec.shape}, but has shape {output.shape} after "
            "one iteration. To allow the shape to vary across iterations, use the `shape_invariants` argument of "
            "tf.while_loop to specify a less-specific shape."
        )

"""`while_loop`: a loop in the graph.

Lives here: recording of condition and body into a `While` node; eager loops.
Not here: the gradient (loop_gradient.py), loops over the elements of tensors (higher_order.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...core import dtypes, nest
from ...core.shapes import TensorShape, as_shape
from ...core.specs import TensorSpec
from ...core.type_spec import TypeSpec
from ...eager.variable import Variable
from ...ops import dispatch
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .body import emit_while, flat_tensors, joined
from .loop_gradient import LoopRecord as LoopRecord  # registers the gradient of the loops recorded here

state = dispatch.state
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
        from ...ops.math import logical_and

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

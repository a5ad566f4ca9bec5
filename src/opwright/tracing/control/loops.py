"""`while_loop`: a loop in the graph.

Lives here: recording condition and body into a `While` node, the loop run now.
Not here: its gradient (loop_gradient.py), loops over the elements of tensors (higher_order.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import dtypes, nest
from ...core.shapes import TensorShape, as_shape
from ...core.specs import TensorSpec
from ...core.type_spec import TypeSpec
from ...eager.variable import Variable
from ...ops import dispatch
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .body import emit_while, flat_tensors, joined
from .loop_gradient import LoopRecord as LoopRecord  # differentiates what is recorded here

state = dispatch.state


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Call `body` on the loop variables, again and again on what it gave, while `cond` of them is true.

    loop_vars: a list or tuple of tensors or nestings of them; `cond` and `body` take them as arguments, `body` gives
    as many of the same dtypes and shapes. shape_invariants: a like nesting of TensorShapes (or TensorSpecs) for
    variables whose shape changes. maximum_iterations: stop after so many turns. Recorded once in a traced function;
    eagerly it is Python's `while`, and gives what `body` gave last.
    parallel_iterations, back_prop and swap_memory are accepted and change nothing.
    raises TypeError where `body` gives another structure or dtype, ValueError where a shape changes unannounced
    """
    del parallel_iterations, back_prop, swap_memory
    if not callable(cond):
        raise TypeError(f"'cond' must be callable. Received: {cond!r}")
    if not callable(body):
        raise TypeError(f"'body' must be callable. Received: {body!r}")
    single = not isinstance(loop_vars, (list, tuple))
    if single:
        loop_vars = [loop_vars]
    if state.trace is None:
        return _run(cond, body, loop_vars, maximum_iterations)
    return record_while(cond, body, loop_vars, shape_invariants, maximum_iterations, name or "while")


def _run(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: Any) -> Any:
    """The loop run now."""
    limit = None if maximum_iterations is None else int(maximum_iterations)
    turns = 0
    loop_vars = nest.map_structure(_converted, loop_vars)
    while (limit is None or turns < limit) and cond(*loop_vars):
        result = _as_sequence(body(*loop_vars), loop_vars)
        nest.assert_same_structure(list(loop_vars), list(result))
        loop_vars = nest.pack_sequence_as(result, [_converted(leaf) for leaf in nest.flatten(result)])
        turns += 1
    return loop_vars


def _converted(leaf: Any) -> Any:
    return dispatch.to_tensor(leaf) if isinstance(leaf, (Variable, bool, int, float, complex)) else leaf


def _as_sequence(result: Any, loop_vars: Sequence[Any]) -> list[Any] | list[Any] | tuple[Any, ...]:
    """What a body gave, as a sequence: with one loop variable it may give the variable itself."""
    if len(loop_vars) == 1 and not (isinstance(result, (list, tuple)) and len(result) == 1):
        return [result]
    if not isinstance(result, (list, tuple)):
        raise TypeError(
            f"the body of the loop gave {type(result).__name__}, wanted a list or tuple of {len(loop_vars)} "
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
    """A `While` node in the recording trace; gives the structure of the loop variables, of its outputs."""
    parent = state.trace
    assert isinstance(parent, FuncTrace)
    given = flat_tensors(parent, loop_vars)
    holes = [t is None for t in given]
    initials = [t for t in given if t is not None]
    specs = [_loop_spec(t, s) for t, s, hole in zip(given, _invariants(loop_vars, shape_invariants), holes) if not hole]
    limit = None if maximum_iterations is None else parent.to_tensor(maximum_iterations, dtypes.int32)
    if limit is not None:  # a variable of our own, in front, counts the turns
        initials.insert(0, parent.to_tensor(0, limit.dtype))
        specs.insert(0, TensorSpec((), limit.dtype, "turn"))
    own = 0 if limit is None else 1
    structure: Any = loop_vars

    def arguments(placeholders: Sequence[Any]) -> Any:
        left = iter(placeholders[own:])
        return nest.pack_sequence_as(
            loop_vars, [None if hole else next(left) for hole in holes], expand_composites=True
        )

    def flat_cond(*placeholders: Any) -> Any:
        goes_on = cond(*arguments(placeholders))
        if limit is None:
            return goes_on
        from ...ops.math import logical_and

        return logical_and(placeholders[0] < limit, goes_on)

    def flat_body(*placeholders: Any) -> list[Any]:
        nonlocal structure
        result = _as_sequence(body(*arguments(placeholders)), loop_vars)
        try:
            nest.assert_same_structure(list(loop_vars), list(result), expand_composites=True)
            joined([list(loop_vars), list(result)], ["front of the loop", "a turn"])
        except (ValueError, TypeError) as error:
            raise type(error)(f"the body of the loop changes the structure of its variables: {error}") from None
        structure = nest.pack_sequence_as(loop_vars, list(nest.flatten(result)))
        leaves = nest.flatten(result, expand_composites=True)
        for i, (leaf, hole) in enumerate(zip(leaves, holes)):
            if (leaf is None) != hole:
                raise TypeError(f"loop variable {i} is None {'before' if hole else 'after'} a turn and not otherwise")
        kept = [leaf for leaf in leaves if leaf is not None]
        return [*(p + 1 for p in placeholders[:own]), *kept]

    outs = emit_while(parent, specs, flat_cond, flat_body, lambda: initials, name)
    left = iter(outs[own:])
    return nest.pack_sequence_as(structure, [None if hole else next(left) for hole in holes], expand_composites=True)


def _invariants(loop_vars: Any, shape_invariants: Any) -> list[Any]:
    """For each flat loop variable the shape announced for it, or None."""
    if shape_invariants is None:
        return [None] * len(nest.flatten(loop_vars, expand_composites=True))
    flat: list[Any] = []

    def walk(value: Any, announced: Any) -> None:
        if isinstance(announced, TypeSpec) and not isinstance(announced, TensorSpec):
            flat.extend(getattr(s, "shape", None) for s in nest.flatten(announced, expand_composites=True))
        elif isinstance(announced, TensorSpec):
            flat.append(announced.shape)
        elif announced is None or isinstance(announced, TensorShape) or not nest.is_nested(value):
            leaves = len(nest.flatten(value, expand_composites=True))
            flat.extend([None if announced is None and leaves > 1 else as_shape(announced)] * leaves)
        else:
            nest.assert_same_structure(
                nest.map_structure(lambda _: 0, value), _shallow(value, announced), check_types=False
            )
            parts = sorted(value) if isinstance(value, dict) else range(len(value))
            for key in parts:
                walk(value[key], announced[key])

    walk(list(loop_vars), list(shape_invariants))
    return flat


def _shallow(value: Any, announced: Any) -> int | dict[Any, Any] | int | list[Any]:
    """`announced` cut off at the leaves of `value`, so that the two structures can be compared."""
    if not nest.is_nested(value):
        return 0
    if isinstance(value, dict):
        return {k: _shallow(v, announced.get(k)) for k, v in value.items()} if isinstance(announced, dict) else 0
    if not isinstance(announced, (list, tuple)) or len(announced) != len(value):
        return 0
    return [_shallow(v, a) for v, a in zip(value, announced)]


def _loop_spec(tensor: SymbolicTensor, announced: TensorShape | None) -> TensorSpec:
    name = tensor.value_in_graph.name
    if announced is None:
        return TensorSpec(tensor.shape, tensor.dtype, name)
    if not tensor.shape.is_subtype_of(announced):
        raise ValueError(
            f"The shape invariant specified for {name} is not compatible with the initial shape of the loop variable. "
            f"It enters the loop with shape {tensor.shape}, but the specified shape invariant is {announced}."
        )
    return TensorSpec(announced, tensor.dtype, name)

"""One run of one operator on the variables of a scope, at a place.

Lives here: `run` and the order of what happens in it; errors that say which instance failed.
Not here: the choice of a kernel (ops/selection.py), the making of copies (transforms.py), graphs and control flow
(graphs.py), what inputs are as tensors (arguments.py).

On the CPU an operator that has run on such inputs before goes the short way (shortcut.py). The long way, which all
others go, is this:

    1. find the variables, and take LoDs apart                          arguments.py
    2. choose the kernel by the key that the inputs ask for             ops/selection.py
    3. transform inputs: layout, dtype, place; in a scope inside        transforms.py
    4. infer the outputs from the shapes there really are               Operator.infer
    5. compute; a kernel that declines hands over to the next
    6. write the outputs: to the variable of that name, in this scope or around it; made here if there is none
    7. with `check_unused_inputs`: stop where an input was not read     watching.py
    8. with `benchmark`: wait for the device
    9. with `check_numerics`: stop where a NaN or infinity came up

Nothing is kept on the instance. A run that fails has written nothing before step 6, and has dropped its own scope.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core import flags
from ..core.errors import NotFoundError, OpError, ResourceExhaustedError
from ..core.places import CPUPlace, Place, place_of
from ..ops import compute_wrappers, dispatch, kinds, selection, tuning
from ..ops.kernels import KernelKey, of_call
from ..ops.operands import Operand, transforms_of
from ..ops.rule_errors import contract_violation, failure_cause, kernel_name, mismatch, rule_failure
from ..ops.selection import Candidate, Explanation
from .arguments import Feed, as_tensor, feed_of, layout_of, left, on_host, settled, with_lods, write
from .held import context_of
from .scope import Scope, scope_or_global
from .shortcut import plain_inputs, remember, run_known
from .transforms import Workshop, report, transformed

if TYPE_CHECKING:
    from .instance import OpInstance

_NOT_REFUSALS = (MemoryError, ResourceExhaustedError, RecursionError)  # the CPU is no way out of these
_warned: set[tuple[str, str]] = set()
_run_control: Callable[[OpInstance, Scope, Place], None]


def install_control_flow(run_control: Callable[[OpInstance, Scope, Place], None]) -> None:
    """Called once: how an instance of an operator that holds graphs runs (graphs.py, above this module: its graphs'
    nodes run by `execute`)."""
    global _run_control
    _run_control = run_control


def run(instance: OpInstance, scope: Scope | None = None, place: Any = None) -> Explanation:
    """Run an instance: its inputs come from the scope (or one around it), its outputs go there.

    scope: by default the global one. place: a place or its name, by default the CPU.
    Gives which kernel it was, why, and what was done to the inputs: as `ow.ops.explain`, after the fact.
    raises what the operator raises, with its name and the line where the instance was made
    """
    return execute(instance, scope_or_global(scope), _place(place))


def explain(instance: OpInstance, scope: Scope | None = None, place: Any = None) -> Explanation:
    """Which kernel would compute the instance on this scope at this place, and why. Nothing is run. Raises as `run`."""
    scope, place = scope_or_global(scope), _place(place)
    op = instance.type
    if op.control:
        return _control(op, place)
    try:
        call = op.bind(dict(instance.attrs))
        return selection.explained(op, call, feed_of(instance, call, scope).operands, place)
    except Exception as error:
        raise located(instance, error) from None


def _place(place: Any) -> Place:
    return CPUPlace() if place is None else place_of(place)


def _control(op: Any, place: Place) -> Explanation:
    return Explanation(op.name, None, None, "control", "control flow runs the graphs among its attributes", place)


def execute(instance: OpInstance, scope: Scope, place: Place, call: Any = None) -> Explanation:
    """`run`, of which everything is known. call: the bound attributes, from whoever runs the instance many times."""
    op = instance.type
    try:
        if op.control:
            _run_control(instance, scope, place)
            return _control(op, place)
        if call is None:
            call = op.bind(dict(instance.attrs))
        plain = plain_inputs(instance, scope) if place.kind == "cpu" else None
        known = None if plain is None else run_known(instance, call, scope, plain)
        return known or _execute(instance, call, scope, place, plain)
    except Exception as error:
        better = located(instance, error)
        raise better from (error.__cause__ if isinstance(error, OpError) else error if better is not error else None)


def _execute(instance: OpInstance, call: Any, scope: Scope, place: Place, plain: Any) -> Explanation:
    op = instance.type
    feed = feed_of(instance, call, scope)
    key = selection.expected_kernel_key(op, call, feed.operands, place)
    feed = settled(feed)
    if feed.rows:
        return _on_rows(instance, feed, key, scope)
    found = selection.candidates(op, call, key, place)
    with Workshop(scope) as workshop:
        if tuning.active and len(found) > 1:
            found = _fastest_first(instance, call, feed, key, found, workshop)
        refusal: Exception | None = None
        for candidate in found:
            try:
                done = _attempt(instance, call, feed, key, candidate, workshop)
            except Exception as error:
                if candidate.branch != "reference" or candidate.place.kind == "cpu" or isinstance(error, _NOT_REFUSALS):
                    raise
                refusal = error  # arrays of the device do not go through the reference; or the call is wrong anywhere
                continue
            if done is not None:
                break
        else:
            raise _nothing(op, key, place, found, refusal) from refusal
        flat, arrays, kernel, steps = done
        if refusal is not None:
            selection.refuse(op, key, place, refusal)
        if candidate.branch == "fallback":
            _warn(op, place, candidate, refusal)
        outputs = with_lods(op, call, feed, flat)
        write(instance, scope, outputs, layout_of(op, key, feed))
        if flags.check_unused_inputs and candidate.place.kind == "cpu" and op.effect is None and op.effect_rule is None:
            from .watching import check_reads

            check_reads(op, kernel, arrays)
        if flags.benchmark:
            context_of(candidate.place).wait()
        if flags.check_numerics:
            _check_numerics(op, feed, flat)
    was = Explanation(op.name, key, candidate.key, candidate.branch, candidate.reason, candidate.place, tuple(steps))
    if plain is not None and candidate is found[0] and not steps:
        remember(op, call, kernel, feed.tensors, plain, was)
    return was


def _fastest_first(
    instance: OpInstance, call: Any, feed: Feed, key: Any, found: list[Candidate], workshop: Workshop
) -> list[Candidate]:
    """The candidates with the fastest in front, by a measurement made now or remembered; for the switch `tune`."""
    op, place = instance.type, found[0].place
    ways = [
        tuning.Way(
            tuning.label(c.key, c.kernel), _attempting(instance, call, feed, key, c, workshop), op.tolerances.get(c.key)
        )
        for c in found
        if c.branch in ("kernel", "reference") and c.place == place
    ]
    text = tuning.key_of_call(op, call, key, feed.operands)
    if text is None or len(ways) < 2 or not tuning.tunable(op):
        return found
    default = ways[0].name
    ways.sort(key=lambda way: way.name != "reference")  # what the others are compared with comes first
    tuning.choose(text, ways, (), default, context_of(place).wait)
    return selection.fastest_first(found, tuning.remembered(text))


def _attempting(instance: OpInstance, call: Any, feed: Feed, key: Any, candidate: Candidate, workshop: Workshop) -> Any:
    def attempt() -> Any:
        done = _attempt(instance, call, feed, key, candidate, workshop)
        return NotImplemented if done is None else done[0]

    return attempt


def _on_rows(instance: OpInstance, feed: Feed, key: Any, scope: Scope) -> Explanation:
    """A run on sparse rows, which are the host's: by the operator's rule for them, whatever the place."""
    op, cpu = instance.type, CPUPlace()
    given = [[on_host(t) for t in x] if isinstance(x, tuple) else on_host(x) for x in feed.given]
    result = kinds.call_on_rows(op, instance.attrs, given)
    shown = [o for o in op.outputs if not o.intermediate]
    results = iter([result] if len(shown) == 1 else result)
    write(instance, scope, [None if o.intermediate else next(results) for o in op.outputs], "any")
    chosen = KernelKey(cpu, key.dtype, "any", "reference")
    return Explanation(op.name, key, chosen, "host", "sparse rows are the host's: the rule `on_rows` computes", cpu)


def _nothing(op: Any, key: Any, place: Place, found: Sequence[Candidate], refusal: Exception | None) -> Exception:
    """The error where every candidate declined, or the reference refused and nothing may serve instead."""
    if refusal is None:
        return NotFoundError(
            op=op.name,
            what=f"every kernel for {key} declined",
            found=", ".join(str(c.key) for c in found),
            wanted="one that computes it",
        )
    if isinstance(refusal, OpError) and refusal.op == op.name:
        return refusal  # inference's own words: the call is wrong
    selection.refuse(op, key, place, refusal)
    return selection.not_found(op, key)


def _attempt(
    instance: OpInstance, call: Any, feed: Feed, key: Any, candidate: Candidate, workshop: Workshop
) -> tuple[list[Any], list[Any], Any, list[Any]] | None:
    """Compute by one candidate: the flat results as tensors, the arrays given, the kernel, the transforms.

    None where it hands over to the next
    """
    op, place = instance.type, candidate.place
    steps: list[Any] = []

    def ready(tensor: Any, operand: Operand) -> Any:
        wanted = transforms_of(op, call, operand, key, place)
        steps.extend(wanted)
        return transformed(tensor, operand, wanted, workshop)

    tensors = [
        None
        if t is None
        else tuple([ready(x, o) for x, o in zip(t, operand)])
        if type(t) is tuple
        else ready(t, operand)
        for t, operand in zip(feed.tensors, feed.operands)
    ]
    promised: list[Any] = []
    for spec in op.infer(call, tensors):
        promised.extend(spec) if isinstance(spec, list) else promised.append(spec)
    arrays = [None if t is None else _arrays(t) for t in tensors]
    kernel = op.reference(call) if candidate.kernel is None else of_call(op, candidate.kernel, call)
    on_host = place.kind == "cpu"
    if flags.check_inputs and on_host:
        kernel = compute_wrappers.watched(op, kernel, at=instance.at)
    report(op.name, instance.at, place, steps)
    computing = "compute" if candidate.kernel is None else kernel_name(op, candidate.key, candidate.kernel)
    with context_of(place):
        try:
            result = dispatch.quietly(kernel, *arrays)
        except Exception as error:
            if candidate.kernel is None:
                raise
            raise (failure := rule_failure(op, computing, error)) from failure_cause(error, failure)
    if result is NotImplemented:
        return None
    flat = list(op.flat_outputs(result))
    if len(flat) != len(promised):
        raise contract_violation(op, computing, **(mismatch(flat, promised) or {}))
    if not on_host and candidate.branch == "reference" and left(flat, arrays):
        raise TypeError("it computes on the host")
    return [as_tensor(op, r, s, place, arrays, computing) for r, s in zip(flat, promised)], arrays, kernel, steps


def _arrays(tensor: Any) -> Any:
    return [x._array for x in tensor] if type(tensor) is tuple else tensor._array


# ---- what comes after ---------------------------------------------------------------------------------------------


def _warn(op: Any, place: Place, candidate: Candidate, refusal: Exception | None) -> None:
    if (op.name, place.kind) not in _warned:
        _warned.add((op.name, place.kind))
        why = "" if refusal is None else f" ({type(refusal).__name__}: {str(refusal).partition(chr(10))[0]})"
        text = f"{op.name} runs on the CPU, not at {place}: {candidate.reason}{why}. Its inputs are copied there"
        warnings.warn(text, RuntimeWarning, stacklevel=6)


def _check_numerics(op: Any, feed: Feed, flat: Sequence[Any]) -> None:
    from ..ops.debugging.finiteness import MOVERS, wrong_number

    if op.name in MOVERS:
        return
    arrays = [t.constant for t in flat]
    shown = [str(o) for x in feed.operands if x is not None for o in (x if isinstance(x, tuple) else (x,))]
    for i in range(len(flat)):
        error = wrong_number(op.name, i, arrays, [t.dtype for t in flat], shown, None, None)
        if error is not None:
            raise error


def located(instance: OpInstance, error: Exception) -> Exception:
    """The error to raise for one that came up in a run: with the operator, and the line where the instance was made."""
    op, at = instance.type, instance.at
    if isinstance(error, OpError):
        if error.at is not None:  # of an operator inside a graph: it names its own line
            return error
        text = error.message.partition(": ")[2] if error.op == op.name else error.message
        return type(error)(op=op.name, node=error.node, at=at, what=text).with_traceback(error.__traceback__)
    return rule_failure(op, "compute", error, at=at, found=repr(instance))

"""Run one operator on the variables of a scope, at a place.

Lives here: `run` and the order of its steps; errors that name the failed instance. Not here: kernel selection
(ops/kernel_selection.py), transforms (bindings.py), graphs and control flow (graphs.py), inputs as tensors
(bindings.py).

On the CPU an operator that has run on such inputs before takes the fast path (fast_path.py). All others take the
general path:

    1. look up the variables, split LoDs                                bindings.py
    2. select a kernel by the key that the inputs ask for               ops/kernel_selection.py
    3. transform inputs: layout, dtype, place; in an inner scope        bindings.py
    4. infer the outputs from the actual shapes                         Operator.infer
    5. compute; the next candidate replaces a kernel that declines
    6. store the outputs in the variable of that name, in this scope or outward; created here if there is none
    7. with `check_unused_inputs`: stop if an input was not read        read_checks.py
    8. with `benchmark`: wait for the device
    9. with `check_numerics`: stop at a NaN or infinity

The instance stores nothing. A run that fails has written nothing before step 6 and drops its inner scope.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core import flags
from ..core.errors import NotFoundError, OpError, ResourceExhaustedError
from ..core.places import CPUPlace, Place, place_of
from ..ops import autotuner, compute_wrappers, dispatch, kernel_selection, var_types
from ..ops.call import contract_violation, failure_cause, kernel_name, mismatch, rule_failure
from ..ops.kernel_operands import KernelOperand, transforms_of
from ..ops.kernel_selection import Candidate, Explanation
from ..ops.kernels import KernelKey, of_call
from .bindings import (
    BoundInputs,
    TemporaryScope,
    as_tensor,
    bind_inputs,
    check_initialized,
    layout_of,
    on_host,
    pack_results,
    ran_on_host,
    report,
    store_results,
    transformed,
)
from .fast_path import cache_run, plain_inputs, run_cached
from .scope import Scope, scope_or_global
from .variable import context_of

if TYPE_CHECKING:
    from ..eager.tensor import EagerTensor
    from .instance import OpInstance
    from .variable import DeviceTensor

_NOT_REFUSALS = (MemoryError, ResourceExhaustedError, RecursionError)  # falling back to the CPU would not help
_warned: set[tuple[str, str]] = set()
_run_control_flow: Callable[[OpInstance, Scope, Place], None]


def install_control_flow(run_control_flow: Callable[[OpInstance, Scope, Place], None]) -> None:
    """Install the function that runs operators on graphs; called once (by graphs.py, above this module, whose nodes run
    by `execute`).
    """
    global _run_control_flow
    _run_control_flow = run_control_flow


def run(instance: OpInstance, scope: Scope | None = None, place: Any = None) -> Explanation:
    """Run an instance: its inputs come from the scope or an outer one, its outputs are stored there.

    scope: by default the global one. place: a place or its name, by default the CPU. Returns the selected kernel, the
    reason and the transforms of inputs, as `ow.ops.explain` after the fact. raises the operator's errors, with its name
    and the line that created the instance
    """
    return execute(instance, scope_or_global(scope), _place(place))


def explain(instance: OpInstance, scope: Scope | None = None, place: Any = None) -> Explanation:
    """Return the kernel that would be selected on this scope at this place, and why; nothing runs. Raises as `run`."""
    scope, place = scope_or_global(scope), _place(place)
    op = instance.type
    if op.control:
        return _explain_control_flow(op, place)
    try:
        call = op.bind(dict(instance.attrs))
        return kernel_selection.explained(op, call, bind_inputs(instance, call, scope).operands, place)
    except Exception as error:
        raise with_location(instance, error) from None


def _place(place: Any) -> Place:
    return CPUPlace() if place is None else place_of(place)


def _explain_control_flow(op: Any, place: Place) -> Explanation:
    return Explanation(op.name, None, None, "control", "control flow runs the graphs among its attributes", place)


def execute(instance: OpInstance, scope: Scope, place: Place, call: Any = None) -> Explanation:
    """Run an instance with resolved arguments. call: the bound attributes, from a caller that runs it many times."""
    op = instance.type
    try:
        if op.control:
            _run_control_flow(instance, scope, place)
            return _explain_control_flow(op, place)
        if call is None:
            call = op.bind(dict(instance.attrs))
        plain = plain_inputs(instance, scope) if place.kind == "cpu" else None
        explanation = None if plain is None else run_cached(instance, call, scope, plain)
        return explanation or _execute(instance, call, scope, place, plain)
    except Exception as error:
        located = with_location(instance, error)
        raise located from (error.__cause__ if isinstance(error, OpError) else error if located is not error else None)


def _execute(instance: OpInstance, call: Any, scope: Scope, place: Place, plain: Any) -> Explanation:
    op = instance.type
    feed = bind_inputs(instance, call, scope)
    key = kernel_selection.expected_kernel_key(op, call, feed.operands, place)
    feed = check_initialized(feed)
    if feed.rows:
        return _run_on_rows(instance, feed, key, scope)
    candidates = kernel_selection.candidates(op, call, key, place)
    with TemporaryScope(scope) as temporaries:
        if autotuner.active and len(candidates) > 1:
            candidates = _fastest_first(instance, call, feed, key, candidates, temporaries)
        refusal: Exception | None = None
        for candidate in candidates:
            try:
                computed = _attempt(instance, call, feed, key, candidate, temporaries)
            except Exception as error:
                if candidate.branch != "reference" or candidate.place.kind == "cpu" or isinstance(error, _NOT_REFUSALS):
                    raise
                refusal = error  # the reference cannot take device arrays, or the call itself is wrong
                continue
            if computed is not None:
                break
        else:
            raise _no_kernel_error(op, key, place, candidates, refusal) from refusal
        flat, arrays, kernel, steps = computed
        if refusal is not None:
            kernel_selection.refuse(op, key, place, refusal)
        if candidate.branch == "fallback":
            _warn_fallback(op, place, candidate, refusal)
        outputs = pack_results(op, call, feed, flat)
        store_results(instance, scope, outputs, layout_of(op, key, feed))
        if flags.check_unused_inputs and candidate.place.kind == "cpu" and op.effect is None and op.effect_rule is None:
            from .read_checks import check_reads

            check_reads(op, kernel, arrays)
        if flags.benchmark:
            context_of(candidate.place).wait()
        if flags.check_numerics:
            _check_numerics(op, feed, flat)
    explanation = Explanation(
        op.name, key, candidate.key, candidate.branch, candidate.reason, candidate.place, tuple(steps)
    )
    if plain is not None and candidate is candidates[0] and not steps:
        cache_run(op, call, kernel, feed.tensors, plain, explanation)
    return explanation


def _fastest_first(
    instance: OpInstance,
    call: Any,
    feed: BoundInputs,
    key: Any,
    candidates: list[Candidate],
    temporaries: TemporaryScope,
) -> list[Candidate]:
    """Return the candidates with the fastest first, measured now or earlier; for the switch `tune`."""
    op, place = instance.type, candidates[0].place
    measured = [
        autotuner.TimedAlgorithm(
            autotuner.label(c.key, c.kernel),
            _measurable(instance, call, feed, key, c, temporaries),
            op.tolerances.get(c.key),
        )
        for c in candidates
        if c.branch in ("kernel", "reference") and c.place == place
    ]
    tuning_key = autotuner.key_of_call(op, call, key, feed.operands)
    if tuning_key is None or len(measured) < 2 or not autotuner.tunable(op):
        return candidates
    default = measured[0].name
    measured.sort(key=lambda way: way.name != "reference")  # the reference for comparison runs first
    autotuner.choose(tuning_key, measured, (), default, context_of(place).wait)
    return kernel_selection.fastest_first(candidates, autotuner.remembered(tuning_key))


def _measurable(
    instance: OpInstance, call: Any, feed: BoundInputs, key: Any, candidate: Candidate, temporaries: TemporaryScope
) -> Callable[[], object]:
    def attempt() -> object:
        computed = _attempt(instance, call, feed, key, candidate, temporaries)
        return NotImplemented if computed is None else computed[0]

    return attempt


def _run_on_rows(instance: OpInstance, feed: BoundInputs, key: Any, scope: Scope) -> Explanation:
    """Run on sparse rows, which live on the host, by the operator's rule `on_rows`, whatever the place."""
    op, cpu = instance.type, CPUPlace()
    inputs = [[on_host(t) for t in x] if isinstance(x, tuple) else on_host(x) for x in feed.stored]
    result = var_types.call_on_rows(op, instance.attrs, inputs)
    shown = [o for o in op.outputs if not o.intermediate]
    results = iter([result] if len(shown) == 1 else result)
    store_results(instance, scope, [None if o.intermediate else next(results) for o in op.outputs], "any")
    chosen = KernelKey(cpu, key.dtype, "any", "reference")
    return Explanation(op.name, key, chosen, "host", "sparse rows live on the host: the rule `on_rows` computes", cpu)


def _no_kernel_error(
    op: Any, key: Any, place: Place, candidates: Sequence[Candidate], refusal: Exception | None
) -> Exception:
    """Return the error for a run that every candidate declined, or that the reference refused without a fallback."""
    if refusal is None:
        return NotFoundError(
            op=op.name,
            what=f"every kernel for {key} declined",
            found=", ".join(str(c.key) for c in candidates),
            wanted="one that computes it",
        )
    if isinstance(refusal, OpError) and refusal.op == op.name:
        return refusal  # inference's own error: the call is wrong
    kernel_selection.refuse(op, key, place, refusal)
    return kernel_selection.not_found(op, key)


def _attempt(
    instance: OpInstance, call: Any, feed: BoundInputs, key: Any, candidate: Candidate, temporaries: TemporaryScope
) -> tuple[list[Any], list[Any], Any, list[Any]] | None:
    """Compute with one candidate: return the flat results as tensors, the input arrays, the kernel, the transforms.

    None if the kernel declines
    """
    op, place = instance.type, candidate.place
    steps: list[Any] = []

    def transform_input(tensor: Any, operand: KernelOperand) -> EagerTensor | DeviceTensor:
        transforms = transforms_of(op, call, operand, key, place)
        steps.extend(transforms)
        return transformed(tensor, operand, transforms, temporaries)

    tensors = [
        None
        if t is None
        else tuple([transform_input(x, o) for x, o in zip(t, operand)])
        if type(t) is tuple
        else transform_input(t, operand)
        for t, operand in zip(feed.tensors, feed.operands)
    ]
    specs: list[Any] = []
    for spec in op.infer(call, tensors):
        specs.extend(spec) if isinstance(spec, list) else specs.append(spec)
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
    if len(flat) != len(specs):
        raise contract_violation(op, computing, **(mismatch(flat, specs) or {}))
    if not on_host and candidate.branch == "reference" and ran_on_host(flat, arrays):
        raise TypeError("it computes on the host")
    return [as_tensor(op, r, s, place, arrays, computing) for r, s in zip(flat, specs)], arrays, kernel, steps


def _arrays(tensor: Any) -> object:
    return [x._array for x in tensor] if type(tensor) is tuple else tensor._array


# ---- after the computation ----------------------------------------------------------------------------------------


def _warn_fallback(op: Any, place: Place, candidate: Candidate, refusal: Exception | None) -> None:
    if (op.name, place.kind) not in _warned:
        _warned.add((op.name, place.kind))
        why = "" if refusal is None else f" ({type(refusal).__name__}: {str(refusal).partition(chr(10))[0]})"
        text = f"{op.name} runs on the CPU, not at {place}: {candidate.reason}{why}. Its inputs are copied there"
        warnings.warn(text, RuntimeWarning, stacklevel=6)


def _check_numerics(op: Any, feed: BoundInputs, flat: Sequence[Any]) -> None:
    from ..ops.debugging.assertions import MOVERS, wrong_number

    if op.name in MOVERS:
        return
    arrays = [t.constant for t in flat]
    shown = [str(o) for x in feed.operands if x is not None for o in (x if isinstance(x, tuple) else (x,))]
    for i in range(len(flat)):
        error = wrong_number(op.name, i, arrays, [t.dtype for t in flat], shown, None, None)
        if error is not None:
            raise error


def with_location(instance: OpInstance, error: Exception) -> Exception:
    """Return the error to raise for a failed run: with the operator and the line that created the instance."""
    op, at = instance.type, instance.at
    if isinstance(error, OpError):
        if error.at is not None:  # from an operator inside a graph, with its own line
            return error
        text = error.message.partition(": ")[2] if error.op == op.name else error.message
        return type(error)(op=op.name, node=error.node, at=at, what=text).with_traceback(error.__traceback__)
    return rule_failure(op, "compute", error, at=at, found=repr(instance))

"""Plans of the reverse pass: the operator calls that a gradient consists of, kept for tapes that are seen again.

Lives here: `gradients`, which runs the plan of a tape; the signature by which it is looked up; its construction.
Not here: the reverse pass itself (ops/autodiff.py), which a plan repeats.

A reverse pass asks each record for its rule and each rule for its calls, and sums what arrives: on small tensors this
takes longer than the calls. The calls depend on the recorded operators, attributes, dtypes and shapes alone, unless a
rule reads elements. A plan is the pass over tensors without elements, written out as Python lines; where a rule reads
elements there is none. Its calls are ordinary ones, which outer tapes record, and its first gradients are compared with
those of the pass, bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count
from operator import attrgetter
from typing import Any, NoReturn
from weakref import WeakSet

from ..core import flags
from ..core.dtypes import DType
from ..ops import dispatch
from ..ops.arguments import tensors
from ..ops.autodiff import OpRecord, backpropagate
from ..ops.call import Call
from ..ops.definition import Operator
from ..ops.tensor import ShapeOnlyTensor, Tensor, withheld_error
from .short_calls import MOST_INDICES, signature_function
from .tensor import EagerTensor, make

SIGHTINGS = 32
"""Number of gradients of one signature after which it gets a plan."""
MOST_RECORDS, MOST_ELEMENTS = 256, 4096
"""Limits of a tape with a plan: calls, and elements of a tensor. The pass drops larger tensors one by one."""
MOST = 512
"""Maximum number of signatures that are remembered; the oldest is forgotten."""

Signature = tuple[Any, ...]
Run = Callable[..., list[Any]]

_plans: dict[Signature, tuple[int | Run | None, Any]] = {}
"""By signature, the number of sightings, later the plan, None if there is none; and the attributes to whose addresses
the signature refers."""


def gradients(records: list[Any], start: Mapping[int, Any], sources: Sequence[int], use_up: bool = False) -> list[Any]:
    """Return the gradient of each source, None without flow, as `backpropagate` does: by a plan if there is one.

    records, start, use_up: as of `backpropagate`. sources: ids of identities, 0 for one that nothing depends on.
    """
    signature = _signature(records, start, sources)
    if signature is None:
        return _by_pass(records, start, sources, use_up)
    plan, calls = _plans.get(signature, _UNSEEN)
    if plan is None:
        return _by_pass(records, start, sources, use_up)
    if type(plan) is not int:
        return plan(dispatch.call, records, [*start.values()])  # type: ignore[operator]  # no number
    calls = calls or tuple(map(_call, records))
    run = _plan(records, start, sources) if plan == SIGHTINGS else None
    planned = None if run is None else _without_tapes(run, records, start)
    expected = _by_pass(records, start, sources, use_up)
    while len(_plans) >= MOST and signature not in _plans:
        _plans.pop(next(iter(_plans)), None)  # unless another thread has removed it
    if plan < SIGHTINGS:
        _plans[signature] = plan + 1, calls
    else:
        _plans[signature] = run if planned is not None and all(map(_is_same, planned, expected)) else None, calls
    return expected


def _by_pass(records: list[Any], start: Mapping[int, Any], sources: Sequence[int], use_up: bool) -> list[Any]:
    by_id = backpropagate(records, start, {key for key in sources if key}, use_up)
    return [by_id.get(key) for key in sources]


def _signature(records: list[Any], start: Mapping[int, Any], sources: Sequence[int]) -> Signature | None:
    """Return what determines the calls of a reverse pass; None if a plan cannot hold them.

    That is the recorded calls, which of all tensors, initial gradients and sources are the same, dtypes and shapes.
    """
    if len(records) > MOST_RECORDS or dispatch.state.trace is not None:
        return None
    function = _signature_function or _find_signature_function()
    words = None if function is None else function(records, [*start, *sources])
    if words is None and {*map(type, records)} != _KINDS:
        return None
    try:
        seeds = tuple(map(_seed, start.values()))
        return _signature_by_python(records, start, sources, seeds) if words is None else (words, seeds)
    except AttributeError:  # of tensors of a trace
        return None


def _signature_by_python(
    records: Sequence[Any], start: Mapping[int, Any], sources: Sequence[int], seeds: Signature
) -> Signature:
    """Return the signature without machine code. seeds: dtypes and shapes of the initial gradients."""
    identities = [*chain.from_iterable(map(_inputs, records)), *chain.from_iterable(map(_outputs, records))]
    ids = chain(map(id, identities), start, sources)
    number: Any = {}.setdefault
    indices = [x._array.tobytes() for record in records for x in _indices(record)]
    return (
        tuple(map(_call, records)),
        tuple(map(number, ids, count())),  # the place of each in the order of first use
        tuple(map(_spec, identities)),
        seeds,
        tuple(indices),
    )


_signature_function: Callable[[list[Any], list[int]], bytes | None] | None = None
_sought = 0


def _find_signature_function() -> Callable[[list[Any], list[int]], bytes | None] | None:
    """Return the function of machine code for signatures, kept once it is there; looked for at every 64th gradient."""
    global _signature_function, _sought
    _sought += 1
    if _sought % 64 == 0:
        _signature_function = signature_function()
    return _signature_function


def _indices(record: OpRecord) -> Iterator[EagerTensor]:
    """Yield the inputs that hold for one plan with their elements, which rules read: axes, sizes, a few indices."""
    for j in record.op.profile.index_places:
        x = record.structure[j]
        if type(x) is EagerTensor and x._array.size <= MOST_INDICES:
            yield x


_UNSEEN = 0, None
_KINDS = {OpRecord}
_inputs, _outputs, _call = map(attrgetter, ("inputs", "outputs", "bound"))
_spec, _seed = attrgetter("dtype", "_shape"), attrgetter("_dtype", "_array.shape")


def _without_tapes(run: Run, records: list[Any], start: Mapping[int, Any]) -> list[Any]:
    state = dispatch.state
    tapes, state.tapes = state.tapes, ()
    try:
        return run(dispatch.call, records, [*start.values()])
    finally:
        state.tapes = tapes


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two gradients are the same bits."""
    if type(a) is not EagerTensor or type(b) is not EagerTensor:
        return a is b
    one, other = a._array, b._array
    return a._dtype is b._dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _plan(records: Sequence[Any], start: Mapping[int, Any], sources: Sequence[int]) -> Run | None:
    """Return the plan of a reverse pass: run(dispatch.call, records, initial gradients) -> gradients of the sources."""
    state = dispatch.state
    before = state.trace, state.tapes, state.names
    trace = _PlanTrace()
    try:
        state.trace, state.tapes, state.names = trace, (), ()
        return trace.plan(records, start, sources)
    except Exception:  # a rule reads elements, or calls what a plan does not hold: the pass is right for these
        return None
    finally:
        state.trace, state.tapes, state.names = before


class _NoPlan(Exception):
    """A reverse pass with a part that is not an ordinary call of one result: it runs as it is."""


class _AnyTensor(ShapeOnlyTensor):
    """A tensor of a pass that becomes a plan: it stands for all tensors of its dtype and shape."""

    __slots__ = ()

    @property
    def constant(self) -> NoReturn:
        """Raise WithheldError: what is known of one tensor does not hold for all."""
        raise withheld_error(self)


class _PlanTrace:
    """The trace of a reverse pass, in the sense of `dispatch.Trace`: it writes down the calls."""

    def __init__(self) -> None:
        self.opened: WeakSet[Any] = WeakSet()
        self._lines: list[str] = []
        self._scope: dict[str, Any] = {}
        self._texts: dict[int, str] = {}  # what stands for a tensor in the lines, by id
        self._kept: list[Any] = []  # whose ids these are

    def plan(self, records: Sequence[Any], start: Mapping[int, Any], sources: Sequence[int]) -> Run:
        """Return the function of the reverse pass. Raises if a plan cannot hold it."""
        by_id: dict[int, Any] = {}
        passed = []
        for k, record in enumerate(records):
            op = record.op
            if not (op.catalogue and op.profile.simple and op.profile.single):
                raise _NoPlan
            by_id.update({id(x._identity): x for x in _indices(record)})
            for j, x in enumerate(record.inputs):
                kept = record.structure[j]
                if id(x) not in by_id:
                    by_id[id(x)] = self._tensor(x.dtype, x._shape, f"records[{k}].structure[{j}]")
                elif type(kept) is EagerTensor and by_id[id(x)] is not kept:
                    self._texts[id(by_id[id(x)])] = f"records[{k}].structure[{j}]"
            (y,) = record.outputs
            by_id[id(y)] = self._tensor(y.dtype, y._shape, f"records[{k}].results[0]")
            passed.append(self._record(record, by_id))
        dys = {}
        for i, (key, dy) in enumerate(start.items()):
            target = by_id.setdefault(key, self._tensor(dy._dtype, dy._array.shape, f"dys[{i}]"))
            dys[id(target)] = self._tensor(dy._dtype, dy._array.shape, f"dys[{i}]")
        wanted = [id(by_id[key]) if key in by_id else 0 for key in sources]
        grads = backpropagate(passed, dys, {key for key in wanted if key})
        results = [self._text(grads[key]) if key in grads else "None" for key in wanted]
        start_line = "plain = not state.tapes and not flags.checked"  # then a call is what its function computes
        self._scope |= {"state": dispatch.state, "flags": flags}
        lines = ["def run(call, records, dys):", start_line, *self._lines, f"return [{', '.join(results)}]"]
        exec(compile("\n    ".join(lines), "<reverse plan>", "exec"), self._scope)
        run: Run = self._scope["run"]
        return run

    def _record(self, record: OpRecord, by_id: Mapping[int, Any]) -> OpRecord:
        inputs = [by_id[id(x)] for x in record.inputs]
        outputs = [by_id[id(y)] for y in record.outputs]
        result = OpRecord(record.op, record.bound, inputs, outputs)
        result.input_ids = list(map(id, inputs))
        result.flowing = [id(y) for y in outputs if y.dtype.has_gradient]
        return result

    def _tensor(self, dtype: DType, shape: Any, text: str) -> _AnyTensor:
        if type(shape) is not tuple or None in shape or dtype.is_handle or math.prod(shape) > MOST_ELEMENTS:
            raise _NoPlan
        tensor = _AnyTensor(dtype, shape)
        self._kept.append(tensor)
        self._texts[id(tensor)] = text
        return tensor

    def _text(self, tensor: Any) -> str:
        """Return what stands for a tensor in the lines. Raises _NoPlan for sparse rows."""
        text = self._texts.get(id(tensor))
        if text is None:
            if type(tensor) is not EagerTensor:
                raise _NoPlan
            text = self._texts[id(tensor)] = f"constant_{len(self._scope)}"
            self._scope[text] = tensor
        return text

    # ---- dispatch.Trace ---------------------------------------------------------------------------------------------

    def record(self, op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> Tensor:
        """Write down a call; return its result. Raises _NoPlan for effects, lists and several results."""
        if op.effect is not None or op.effect_rule is not None or not (op.profile.simple and op.profile.single):
            raise _NoPlan
        operands = tensors(op, inputs, self.to_tensor, name)
        (spec,) = op.infer(bound, operands, name)
        arguments = "".join([f"{self._text(x)}, " for x in operands])
        number = len(self._lines)
        result, op_text, bound_text = f"result_{number}", f"op_{number}", f"bound_{number}"
        self._scope[op_text], self._scope[bound_text] = op, bound
        call = f"{result} = call({op_text}, ({arguments}), {bound_text})"
        if op.profile.quick or op.name == "MatMul":  # the short path may take it (short_calls.py)
            short = f"short = plain and not {op_text}.cpu_kernels and {bound_text}._short"
            self._lines += [short, f"{result} = short({arguments}) if short else None", f"if {result} is None: {call}"]
        else:
            self._lines.append(call)
        return self._tensor(spec.dtype, spec.shape.dims, result)

    def to_tensor(self, value: Any, dtype: Any, name: str | None) -> Tensor:
        """Return a tensor of the pass as it is, numbers as eager tensors. Raises _NoPlan for variables."""
        if isinstance(value, (_AnyTensor, EagerTensor)):
            return value
        if type(value) is ShapeOnlyTensor and type(value.source) is _AnyTensor:  # of what is declared no_need_buffer
            return value.source
        if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
            raise _NoPlan
        return make(value, dtype, name)

    def lift_initial_value(self, variable: Any, value: Any) -> NoReturn:
        """Raise _NoPlan: gradient rules create no variables."""
        raise _NoPlan

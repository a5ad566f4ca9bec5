"""Which kernel computes a call: the key it asks for, what serves where no kernel has that key, and why.

Lives here: `expected_kernel_key` with its default, the fallback order, `explain`.
Not here: the table of kernels (kernels.py), tensors as the choice sees them (kernel_operands.py), variables (scopes/).

The key asked for has the place the call runs at, the dtype of its first input, and a layout where the operator knows
one (its attribute `data_format`; element-wise operators go by their inputs). By default every input is looked at: all
must be initialised, and those that are `like` one another agree in dtype. Inputs that are optional may be absent, those
that are `mixed` may differ, of those in `shape_only` nothing but the shape is touched; without inputs the dtype is that
of an attribute. A definition that wants another key has a method

    def expected_kernel_key(op, place):                      # attributes and inputs by name
        return ow.KernelKey(place, op.dtype_of("values"))    # dtype_of checks as the default does

and, where an input is to be converted rather than refused,

    def input_kernel_key(op, held, expected):                # held.slot, held.dtype, held.layout, held.place
        return KernelKey(expected.place, expected.dtype)     # float32 where the key says float64: cast, visibly

What serves a key, in this order:

    1. kernels registered for the place: library by library, the exact key, then any layout, any dtype, any of both
    2. the reference, at that place: `compute` is written with NumPy's functions, which arrays of devices speak; where
       one does not go through there, that is remembered with the operator
    3. with the switch `kernel_fallback`, the same on the CPU: inputs are copied, a warning says so once
    4. nothing: NotFoundError with what is registered

Operators with effects, and those on text, handles and constants alone, are the host's: they run on the CPU wherever
they are asked to, which is no fallback. No dtype is ever exchanged for another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes, flags
from ..core.dtypes import DType
from ..core.errors import NotFoundError, SignatureError
from ..core.lazy_imports import later
from ..core.places import CPUPlace, Place
from . import autotuner, strategies
from .kernel_operands import (
    InputTransform,
    KernelOperand,
    check_dtypes_agree,
    members,
    missing,
    on_devices,
    operands_of,
    transforms_of,
)
from .kernels import LAYOUTS, KernelKey, install_key_rules, must_reproduce, serving
from .rule_errors import call_rule, contract_violation

if TYPE_CHECKING:
    from . import cuda_kernels
    from .tuning_cache import Measured
else:
    cuda_kernels = later(".cuda_kernels", __package__)

# ---- the key asked for ----------------------------------------------------------------------------------------------


def expected_kernel_key(op: Any, call: Any, operands: Sequence[Any], place: Place) -> KernelKey:
    """Return the key of a call. call: the bound attributes; operands: a KernelOperand, None or a tuple for each input.

    raises InvalidArgumentError for inputs without a value, and for dtypes that differ where they must agree, naming
    operator, inputs and variables; NotFoundError where nothing has a dtype
    """
    if op.key_rule is None:
        return default_key(op, call, operands, place)
    key = call_rule(op, "expected_kernel_key", op.key_rule, call.with_inputs(operands), place)
    if not isinstance(key, KernelKey):
        raise contract_violation(
            op, "expected_kernel_key", "gave no key", found=type(key).__name__, wanted="a KernelKey"
        )
    return key


def default_key(op: Any, call: Any, operands: Sequence[Any], place: Place) -> KernelKey:
    """The key of an operator that has no `expected_kernel_key` of its own. Raises as `expected_kernel_key` does."""
    leaders: dict[str, KernelOperand] = {}
    first: DType | None = None
    for declared, value in zip(op.inputs, operands):
        if value is None and not declared.optional and declared.lod_of is None:
            raise missing(op, declared)
        if declared.name in op.shape_only:
            continue
        for one in members(value):
            if not one.is_initialized and declared.optional:
                continue
            dtype = one.dtype
            first = first if first is not None and on_devices(dtype) else dtype  # text anywhere: the host's
            if not declared.mixed:
                check_dtypes_agree(op, leaders.setdefault(declared.like or declared.name, one), one)
    found = first or _dtype_of_attributes(op, call)
    if found is None:
        raise NotFoundError(
            op=op.name,
            what="no input and no attribute says which dtype the kernel is to have",
            found="no initialized input",
            wanted=f"one of {', '.join(op.input_names) or 'the attributes of type DType'}",
            do="give the operator an expected_kernel_key",
        )
    return KernelKey(place, found, _layout(op, call, operands))


def _dtype_of_attributes(op: Any, call: Any) -> DType | None:
    for name, attr in op.attr_defs.items():
        value = getattr(call, name)
        if attr.type is DType and value is not None:
            result: DType | None = value
            return result
        if attr.type is np.ndarray and value is not None:
            return dtypes.of_numpy(value.dtype)
    return next((o.dtype for o in op.outputs if o.dtype is not None), None)


def _layout(op: Any, call: Any, operands: Sequence[Any]) -> str:
    if "data_format" in op.attr_defs:
        found = call.data_format
        return found if found in LAYOUTS else "any"
    if op.elementwise:
        for value in operands:
            for one in members(value):
                if one.layout != "any":
                    return one.layout
    return "any"


# ---- what serves a key ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute a call. kernel: fn(call, *arrays), None for the reference. key: what it is registered with.

    place: where it runs. branch: "kernel", "reference", "host" or "fallback". reason: in words.
    """

    key: KernelKey
    kernel: Callable[..., Any] | None
    place: Place
    branch: str
    reason: str


def is_hosts(op: Any, key: KernelKey) -> bool:
    """Whether an operator runs on the CPU wherever it is asked to: its state, effects or text are the host's."""
    fixed = (key.dtype, *(o.dtype for o in op.outputs))
    if op.effect is not None or op.effect_rule is not None or not all(d is None or on_devices(d) for d in fixed):
        return True
    return all(i.name in op.shape_only for i in op.inputs) and bool(op.inputs)


def candidates(op: Any, call: Any, key: KernelKey, place: Place) -> list[Candidate]:
    """The ways to compute a call that asks for `key` at `place`, in the order in which they are tried.

    raises NotFoundError listing what is registered where there is none
    """
    if key.place != place.kind:
        if key.place != "cpu":
            raise contract_violation(
                op,
                "expected_kernel_key",
                "asks for another device",
                found=str(key),
                wanted=f"one for {place.kind}, where it is run, or for the CPU",
            )
        if not (forced := _on_cpu(op, call, key, "host", "its expected_kernel_key asks for the CPU")):
            raise not_found(op, key)
        return forced
    if place.kind == "gpu":
        cuda_kernels.enter_for_gpus()
    found = [Candidate(k, fn, place, "kernel", _why(key, k)) for k, fn in serving(op, key)]
    if place.kind == "cpu":
        found += _reference(op, call, key, place, "reference", "the reference serves every key on the CPU")
    elif not found and is_hosts(op, key):
        found = _on_cpu(op, call, key, "host", "its state, effects, text or shapes are the host's")
    else:
        refusal = op.refused.get(_at(key, place)) or _irreproducible(op, place)
        if refusal is None:
            words = "a NumPy function" if isinstance(op.compute_rule, np.ufunc) else "written with NumPy's functions"
            why = f"the reference is {words}, which arrays of the device speak"
            found += _reference(op, call, key, place, "reference", why)
        if flags.kernel_fallback:
            because = f"; the reference does not run there: {refusal}" if refusal else ""
            found += _on_cpu(op, call, key, "fallback", f"nothing computes it on {place.kind}, the CPU does{because}")
    if not found:
        raise not_found(op, key)
    return found


def _irreproducible(op: Any, place: Place) -> str | None:
    """Return why the reference must not run there where results are to be reproducible; None where it may."""
    if place.kind == "cpu" or not must_reproduce():
        return None
    if op.name not in cuda_kernels.ATOMIC:
        return None
    return "its sums by index are atomic on GPUs, which deterministic and cuda_deterministic exclude"


def _at(key: KernelKey, place: Place) -> KernelKey:
    return KernelKey(place, key.dtype, key.layout, "reference")


def refuse(op: Any, key: KernelKey, place: Place, error: Exception) -> None:
    """Remember that the reference does not run at this kind of place, for this key."""
    op.refused[_at(key, place)] = f"{type(error).__name__}: {error}".partition("\n")[0]


def _reference(op: Any, call: Any, key: KernelKey, place: Place, branch: str, reason: str) -> list[Candidate]:
    return [] if call.reference is None else [Candidate(_at(key, place), None, place, branch, reason)]


def _on_cpu(op: Any, call: Any, key: KernelKey, branch: str, reason: str) -> list[Candidate]:
    cpu = CPUPlace()
    local = KernelKey(cpu, key.dtype, key.layout, key.library if key.library not in ("cublas", "cudnn") else "any")
    found = [Candidate(k, fn, cpu, branch, f"{reason}; there {_why(local, k)}") for k, fn in serving(op, local)]
    return found + _reference(op, call, local, cpu, branch, reason)


def _why(asked: KernelKey, found: KernelKey) -> str:
    relaxed = [f"any {part}" for part in ("dtype", "layout") if getattr(asked, part) != getattr(found, part)]
    text = f"a kernel of {found.library} is registered for " + (" and ".join(relaxed) or "just this key")
    return text if asked.library in ("any", found.library) else f"{text}; there is none of {asked.library}"


def not_found(op: Any, key: KernelKey) -> NotFoundError:
    """The error where nothing computes a key."""
    registered = ", ".join(map(str, op.kernels)) or "no kernels"
    here = [why for at, why in op.refused.items() if at.place == key.place]
    refusals = [f"the reference does not run on {key.place}: {why}" for why in here]
    wanted, do = "a kernel for the key, or a `compute`", "ow.ops.register_kernel, or define compute(op, ...)"
    if key.place != "cpu":
        wanted = "a kernel for the key, or a `compute` that runs there"
        if not flags.kernel_fallback:
            wanted, do = f"{wanted}, or the switch kernel_fallback", f"with ow.flags(kernel_fallback=True); {do}"
    return NotFoundError(
        op=op.name, what=f"there is no kernel for {key}", found="; ".join([registered, *refusals]), wanted=wanted, do=do
    )


# ---- saying so ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which kernel computes a call and why. requested: the key asked for. chosen: that of the kernel, or None.

    branch: "kernel", "reference", "host", "fallback", "control" or "none". reason: in words. place: where it runs.
    transforms: what becomes of inputs before. otherwise: what is tried next where the kernel declines.
    algorithm: which the reference takes, and why, where it has several (strategies.py). measured: a autotuner.Measured,
    what the tuner remembers of such shapes.
    """

    op: str
    requested: KernelKey | None
    chosen: KernelKey | None
    branch: str
    reason: str
    place: Place
    transforms: tuple[InputTransform, ...] = ()
    otherwise: tuple[Candidate, ...] = ()
    algorithm: str | None = None
    measured: Any = None

    def __str__(self) -> str:
        lines = [f"{self.op} at {self.place!r}", f"  asked for   {self.requested or 'no kernel'}"]
        lines.append(f"  chosen      {self.chosen or 'nothing'}: {self.reason}")
        if self.algorithm is not None:
            lines.append(f"  algorithm   {self.algorithm}")
        if self.measured is not None:
            lines.append(f"  measured    {self.measured}")
        lines += [f"  transform   {t}" for t in self.transforms]
        lines += [f"  otherwise   {c.key}: {c.reason}" for c in self.otherwise]
        return "\n".join(lines)


def explain(op: Any, inputs: Any = (), place: Any = None, **attrs: Any) -> Explanation:
    """Which kernel would compute a call at `place`, why, and what would be done to its inputs. Nothing is run.

    op: an operator or its name. inputs: in order or by name: tensors, arrays, specs, variables of a scope, None for an
    absent one, a list for a repeated one. place: a place or its name, by default the CPU. attrs: the attributes.
    raises as the choice itself would: InvalidArgumentError for inputs without a value or of dtypes that do not go
    together, NotFoundError where nothing has a dtype; where no kernel is found that is what the explanation says
    """
    from ..core.places import place_of
    from . import registry

    op = registry.operator_of(op)
    target = CPUPlace() if place is None else place_of(place)
    call = op.bind(attrs)
    if op.control:
        return Explanation(op.name, None, None, "control", "control flow runs the graphs among its attributes", target)
    given = _by_slot(op, inputs)
    return explained(op, call, operands_of(op, given), target, given)


def explained(
    op: Any, call: Any, operands: Sequence[Any], place: Place, values: Sequence[Any] | None = None
) -> Explanation:
    """The explanation of a call whose operands are known."""
    key = expected_kernel_key(op, call, operands, place)
    measured = autotuner.explained(op, call, key, operands) if op.kernels else None
    try:
        first, *rest = fastest_first(candidates(op, call, key, place), measured)
    except NotFoundError as error:
        return Explanation(op.name, key, None, "none", error.message, place)
    flat = [one for value in operands for one in members(value)]
    changes = [t for one in flat for t in transforms_of(op, call, one, key, first.place)]
    algorithm = None
    if first.kernel is None and first.place.kind == "cpu":
        found = strategies.explained(call, operands, values)
        algorithm = None if found is None else f"{found[0]}: {found[1]}"
    return Explanation(
        op.name,
        key,
        first.key,
        first.branch,
        first.reason,
        first.place,
        tuple(changes),
        tuple(rest),
        algorithm,
        measured,
    )


def fastest_first(found: list[Candidate], measured: Measured | None) -> list[Candidate]:
    """Candidates with the one in front that the tuner found fastest, while it is on."""
    if measured is None or not autotuner.active:
        return found
    for i, one in enumerate(found):
        if autotuner.label(one.key, one.kernel) == measured.chosen and one.branch in ("kernel", "reference"):
            why = f"the fastest on such shapes ({measured}); {one.reason}"
            return [dataclasses.replace(one, reason=why), *found[:i], *found[i + 1 :]]
    return found


def _by_slot(op: Any, inputs: Any) -> list[Any]:
    if isinstance(inputs, Mapping):
        for name in inputs:
            if name not in op.input_names:
                raise SignatureError(
                    op=op.name,
                    what=f"there is no input {name!r}",
                    found=repr(name),
                    wanted=f"one of {', '.join(op.input_names)}",
                )
        return [inputs.get(name) for name in op.input_names]
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if len(given) > len(op.inputs):
        raise SignatureError(op=op.name, what="too many inputs", found=len(given), wanted=f"at most {len(op.inputs)}")
    return given + [None] * (len(op.inputs) - len(given))


def _key_of_arrays(op: Any, call: Any, arrays: Iterable[Any]) -> KernelKey:
    return expected_kernel_key(op, call, operands_of(op, arrays), CPUPlace())


install_key_rules(_key_of_arrays)

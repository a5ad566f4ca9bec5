"""Kernel selection: the key of a call, the kernels for it in order of preference, and the reason.

Lives here: `expected_kernel_key` with its default, the fallback order, `explain`.
Not here: the table of kernels (kernels.py), operands (kernel_operands.py), variables (scopes/).

The key of a call has the place where the call runs, the dtype of its first input, and a layout if the operator has one
(its attribute `data_format`; element-wise operators follow their inputs). By default every input is checked: all must
be initialized, and inputs that are `like` one another must agree in dtype. Optional inputs may be absent, `mixed` ones
may differ, and only the shape of those in `shape_only` is read; without inputs the dtype is that of an attribute. A
definition that needs another key has a method

    def expected_kernel_key(op, place):                      # attributes and inputs by name
        return ow.KernelKey(place, op.dtype_of("values"))    # dtype_of checks as the default does

and, to convert an input rather than reject it,

    def input_kernel_key(op, operand, expected):             # operand has slot, dtype, layout, place
        return KernelKey(expected.place, expected.dtype)     # float32 where the key says float64: an explicit cast

Candidates for a key, in this order:

    1. kernels registered for the place: library by library, the exact key, then any layout, any dtype, any of both
    2. the reference, at that place: `compute` is written with NumPy's functions, which device arrays implement; if one
       fails there, the operator remembers it
    3. with the flag `kernel_fallback`, the same on the CPU: inputs are copied, with one warning
    4. otherwise NotFoundError, with the registered keys

Operators with effects, and operators on text, handles and constants only, belong to the host: they run on the CPU
wherever they are called, which is not a fallback. A dtype is never replaced by another.
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
from ..core.places import CPUPlace, Place, place_of
from . import autotuner, registry, strategies
from .call import call_rule, check_dtypes_agree, contract_violation, members, missing_input
from .kernel_operands import InputTransform, KernelOperand, on_devices, operands_of, transforms_of
from .kernels import LAYOUTS, KernelKey, install_key_rules, must_reproduce, serving

if TYPE_CHECKING:
    from . import cuda_kernels
    from .tuning_file import Measured
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
    """Return the key of an operator without its own `expected_kernel_key`. Raises as `expected_kernel_key` does."""
    leaders: dict[str, KernelOperand] = {}
    first: DType | None = None
    for declared, value in zip(op.inputs, operands):
        if value is None and not declared.optional and declared.lod_of is None:
            raise missing_input(op, declared)
        if declared.name in op.shape_only:
            continue
        for one in members(value):
            if not one.is_initialized and declared.optional:
                continue
            dtype = one.dtype
            first = first if first is not None and on_devices(dtype) else dtype  # text anywhere: computed on the host
            if not declared.mixed:
                check_dtypes_agree(op, leaders.setdefault(declared.like or declared.name, one), one)
    dtype_of_key = first or _dtype_of_attributes(op, call)
    if dtype_of_key is None:
        raise NotFoundError(
            op=op.name,
            what="no input and no attribute says which dtype the kernel is to have",
            found="no initialized input",
            wanted=f"one of {', '.join(op.input_names) or 'the attributes of type DType'}",
            do="give the operator an expected_kernel_key",
        )
    return KernelKey(place, dtype_of_key, _layout(op, call, operands))


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
        layout = call.data_format
        return layout if layout in LAYOUTS else "any"
    if op.elementwise:
        for value in operands:
            for one in members(value):
                if one.layout != "any":
                    return one.layout
    return "any"


# ---- what serves a key ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate for a call. kernel: fn(call, *arrays), None for the reference. key: its registered key.

    place: where it runs. branch: "kernel", "reference", "host" or "fallback". reason: as text.
    """

    key: KernelKey
    kernel: Callable[..., Any] | None
    place: Place
    branch: str
    reason: str


def runs_on_host(op: Any, key: KernelKey) -> bool:
    """Return whether an operator always runs on the CPU: its state, effects or text belong to the host."""
    fixed = (key.dtype, *(o.dtype for o in op.outputs))
    if op.effect is not None or op.effect_rule is not None or not all(d is None or on_devices(d) for d in fixed):
        return True
    return all(i.name in op.shape_only for i in op.inputs) and bool(op.inputs)


def candidates(op: Any, call: Any, key: KernelKey, place: Place) -> list[Candidate]:
    """Return the candidates for a call with this key at this place, in order of preference.

    raises NotFoundError with the registered keys if there is none
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
    options = [Candidate(k, fn, place, "kernel", _why(key, k)) for k, fn in serving(op, key)]
    if place.kind == "cpu":
        options += _reference(op, call, key, place, "reference", "the reference serves every key on the CPU")
    elif not options and runs_on_host(op, key):
        options = _on_cpu(op, call, key, "host", "its state, effects, text or shapes are the host's")
    else:
        refusal = op.refused.get(_at(key, place)) or _irreproducible(op, place)
        if refusal is None:
            words = "a NumPy function" if isinstance(op.compute_rule, np.ufunc) else "written with NumPy's functions"
            why = f"the reference is {words}, which arrays of the device speak"
            options += _reference(op, call, key, place, "reference", why)
        if flags.kernel_fallback:
            because = f"; the reference does not run there: {refusal}" if refusal else ""
            options += _on_cpu(op, call, key, "fallback", f"nothing computes it on {place.kind}, the CPU does{because}")
    if not options:
        raise not_found(op, key)
    return options


def _irreproducible(op: Any, place: Place) -> str | None:
    """Return why the reference is not reproducible at this place; None if it is, or need not be."""
    if place.kind == "cpu" or not must_reproduce():
        return None
    if op.name not in cuda_kernels.ATOMIC:
        return None
    return "its sums by index are atomic on GPUs, which deterministic and cuda_deterministic exclude"


def _at(key: KernelKey, place: Place) -> KernelKey:
    return KernelKey(place, key.dtype, key.layout, "reference")


def refuse(op: Any, key: KernelKey, place: Place, error: Exception) -> None:
    """Record that the reference does not run at this kind of place, for this key."""
    op.refused[_at(key, place)] = f"{type(error).__name__}: {error}".partition("\n")[0]


def _reference(op: Any, call: Any, key: KernelKey, place: Place, branch: str, reason: str) -> list[Candidate]:
    return [] if call.reference is None else [Candidate(_at(key, place), None, place, branch, reason)]


def _on_cpu(op: Any, call: Any, key: KernelKey, branch: str, reason: str) -> list[Candidate]:
    cpu = CPUPlace()
    local = KernelKey(cpu, key.dtype, key.layout, key.library if key.library not in ("cublas", "cudnn") else "any")
    options = [Candidate(k, fn, cpu, branch, f"{reason}; there {_why(local, k)}") for k, fn in serving(op, local)]
    return options + _reference(op, call, local, cpu, branch, reason)


def _why(asked: KernelKey, registered: KernelKey) -> str:
    relaxed = [f"any {part}" for part in ("dtype", "layout") if getattr(asked, part) != getattr(registered, part)]
    text = f"a kernel of {registered.library} is registered for " + (" and ".join(relaxed) or "just this key")
    return text if asked.library in ("any", registered.library) else f"{text}; there is none of {asked.library}"


def not_found(op: Any, key: KernelKey) -> NotFoundError:
    """Return the error for a key without candidates."""
    registered = ", ".join(map(str, op.kernels)) or "no kernels"
    reasons = [why for refused_key, why in op.refused.items() if refused_key.place == key.place]
    refusals = [f"the reference does not run on {key.place}: {why}" for why in reasons]
    requirement, do = "a kernel for the key, or a `compute`", "ow.ops.register_kernel, or define compute(op, ...)"
    if key.place != "cpu":
        requirement = "a kernel for the key, or a `compute` that runs there"
        if not flags.kernel_fallback:
            requirement, do = (
                f"{requirement}, or the switch kernel_fallback",
                f"with ow.flags(kernel_fallback=True); {do}",
            )
    return NotFoundError(
        op=op.name,
        what=f"there is no kernel for {key}",
        found="; ".join([registered, *refusals]),
        wanted=requirement,
        do=do,
    )


# ---- saying so ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Explanation:
    """The kernel selected for a call, and the reason. requested: the key of the call. chosen: of the kernel, or None.

    branch: "kernel", "reference", "host", "fallback", "control" or "none". reason: as text. place: where it runs.
    transforms: of inputs, applied before. otherwise: candidates tried next if the kernel declines. algorithm: the
    reference's choice among several, and why (strategies.py). measured: a tuning_file.Measured, the autotuner's times
    for such shapes.
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
    """Return the kernel that would compute a call at `place`, with the reason and the transforms of its inputs. Nothing
    runs.

    op: an operator or its name. inputs: in order or by name: tensors, arrays, specs, variables of a scope, None for an
    absent one, a list for a repeated one. place: a place or its name, by default the CPU. attrs: the attributes.
    raises as the selection itself: InvalidArgumentError for inputs without a value or of dtypes that do not agree,
    NotFoundError if nothing has a dtype. A missing kernel is part of the explanation.
    """
    op = registry.operator_of(op)
    target = CPUPlace() if place is None else place_of(place)
    call = op.bind(attrs)
    if op.control:
        return Explanation(op.name, None, None, "control", "control flow runs the graphs among its attributes", target)
    values = _by_slot(op, inputs)
    return explained(op, call, operands_of(op, values), target, values)


def explained(
    op: Any, call: Any, operands: Sequence[Any], place: Place, values: Sequence[Any] | None = None
) -> Explanation:
    """Return the explanation of a call whose operands are known."""
    key = expected_kernel_key(op, call, operands, place)
    measured = autotuner.explained(op, call, key, operands) if op.kernels else None
    try:
        first, *others = fastest_first(candidates(op, call, key, place), measured)
    except NotFoundError as error:
        return Explanation(op.name, key, None, "none", error.message, place)
    flat = [one for value in operands for one in members(value)]
    changes = [t for one in flat for t in transforms_of(op, call, one, key, first.place)]
    algorithm = None
    if first.kernel is None and first.place.kind == "cpu":
        strategy = strategies.explained(call, operands, values)
        algorithm = None if strategy is None else f"{strategy[0]}: {strategy[1]}"
    return Explanation(
        op.name,
        key,
        first.key,
        first.branch,
        first.reason,
        first.place,
        tuple(changes),
        tuple(others),
        algorithm,
        measured,
    )


def fastest_first(ways: list[Candidate], measured: Measured | None) -> list[Candidate]:
    """Return the candidates with the one first that the active autotuner measured as fastest."""
    if measured is None or not autotuner.active:
        return ways
    for i, one in enumerate(ways):
        if autotuner.label(one.key, one.kernel) == measured.chosen and one.branch in ("kernel", "reference"):
            why = f"the fastest on such shapes ({measured}); {one.reason}"
            return [dataclasses.replace(one, reason=why), *ways[:i], *ways[i + 1 :]]
    return ways


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
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if len(values) > len(op.inputs):
        raise SignatureError(op=op.name, what="too many inputs", found=len(values), wanted=f"at most {len(op.inputs)}")
    return values + [None] * (len(op.inputs) - len(values))


def _key_of_arrays(op: Any, call: Any, arrays: Iterable[Any]) -> KernelKey:
    return expected_kernel_key(op, call, operands_of(op, arrays), CPUPlace())


install_key_rules(_key_of_arrays)

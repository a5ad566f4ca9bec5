"""A library as portable C11: kernels, the functions that run their steps, and the weights as tables.

Lives here: `c_source_of`, `PORTABLE_C`. Not here: C of a kernel (compiler/c_source), the header (c_files.py), the same
library as machine code (modules.py).

The plan is for a processor without vectors: kernels are loops over single numbers, which C compilers make vectors of.
Integers are equal to those of the object file, and floats too, as long as the compiler keeps their order (no
-ffast-math) and fuses no multiplication with an addition that the source does not fuse.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ..compiler.c_source.byte_addresses import memory_functions, write_kernel
from ..compiler.c_source.expressions import helpers_text
from ..compiler.c_source.functions import CFunction
from ..compiler.c_source.kernels import table_text
from ..compiler.c_source.single_lanes import SingleLanes
from ..compiler.native.executor import ALIGNMENT
from ..compiler.target import SCALAR, Target
from ..core.errors import InternalError, UnimplementedError
from ..core.lazy_imports import paused
from .c_steps import StepFunctions
from .c_weights import map_function, table_declaration, weights_text
from .memory_layouts import MemoryLayout, fill_of
from .model_plans import ModelPlan, SignaturePlan
from .status_codes import ARENA_TOO_SMALL, MISALIGNED, NO_MEMORY, NOT_ASSIGNED, OK, OUT_OF_BOUNDS
from .thread_callbacks import count_in_c, share_in_c

PORTABLE_C = Target("c11", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", SCALAR)
"""The target that plans of C are for: its kernels use no instructions of a processor, and addresses have 64 bits."""


def c_source_of(model: ModelPlan, name: str, layout: MemoryLayout) -> dict[str, str]:
    """Return the contents of NAME.c and, unless the weights are a file of their own, NAME_weights.c.

    Raises UnimplementedError for kernels without a form in C, by name.
    """
    kernels = _Kernels(model, name)
    lines = [line for p in model.signatures for line in _signature(model, p, name, layout, kernels)]
    arrays = [] if layout.apart else layout.arrays
    tables = [table_declaration(name, i, array) for i, array in enumerate(arrays)]
    reset = _reset(model, name, layout) if model.state else []
    code = [
        "/* ---- kernels ---- */",
        "",
        helpers_text(kernels.helpers),
        *kernels.texts,
        "/* ---- the model ---- */",
        "",
        *(share_in_c(name, layout.stride) if any(f"{name}_share(" in line for line in lines) else []),
        *reset,
        *lines,
    ]
    source = [
        f"/* {name}: a model as C11, made by Opwright. Model: sha256 {model.digest}. */",
        f'#include "{name}.h"',
        "",
        "#include <math.h>",
        "#include <stdbool.h>",
        "#include <string.h>",
        *(["#include <stdatomic.h>"] if layout.stride else []),
        "",
        "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__",
        '#error "weights are packed in little-endian order"',
        "#endif",
        "",
        "/* ---- memory ---- */",
        "",
        memory_functions("\n".join(code)),
        f"/* ---- weights, of {name}{'.weights' if layout.apart else '_weights.c'} ---- */",
        "",
        *(f"extern {table};" for table in tables),
        *(map_function(name, layout) if layout.apart else []),
        "",
        *code,
    ]
    text = "\n".join(source) + "\n"
    if layout.apart:
        return {f"{name}.c": text}
    return {f"{name}.c": text, f"{name}_weights.c": weights_text(name, layout)}


# ---- kernels ---------------------------------------------------------------------------------------------------------


class _Kernels:
    """The kernels of a model in C. texts: of their functions, callees first; helpers: functions that they use."""

    def __init__(self, model: ModelPlan, name: str) -> None:
        self.texts: list[str] = []
        self.helpers: set[str] = set()
        self.entries: dict[int, tuple[str, ir.Function, bool]] = {}
        self._written: dict[str, str] = {}
        steps = [step for p in model.plans for step in p.plan.steps if not step.covers]
        for i, address in enumerate(dict.fromkeys(step.code.address for step in steps)):
            self._add(model, address, f"{name}_k{i}")

    def _add(self, model: ModelPlan, address: int, symbol: str) -> None:
        kernel = model.kernels[address]
        if isinstance(kernel.stage, str):
            raise UnimplementedError(
                op="aot.build", what="a kernel on arrays has no form in C yet", found=kernel.entry, do='format="lib"'
            )
        with paused():
            module = kernel.stage(PORTABLE_C, False)
        lanes = SingleLanes(module)
        body = f"{kernel.entry}.body"
        typed = any(f.name == body for f in module.functions)
        entry = lanes.function(body if typed else kernel.entry)
        self.entries[address] = symbol, entry, typed
        for x in module.global_values:
            if isinstance(x, ir.GlobalVariable) and x.name not in self._written:
                self._written[x.name] = table_text(lanes.table(x.name))
                self.texts.append(self._written[x.name])
        self.texts.append(f"/* {kernel.entry} */")
        for function in _in_order(entry):
            self._function(function, symbol if function is entry else None)

    def _function(self, function: ir.Function, symbol: str | None) -> None:
        if symbol is not None:
            function.name = symbol
        c: CFunction = write_kernel(function)
        text = c.text.replace("static inline", "static", 1) if symbol is not None else c.text
        if self._written.get(c.name) == text:
            return
        if c.name in self._written:
            raise InternalError(op="aot.build", what="two functions of kernels have one name", found=c.name)
        self._written[c.name] = text
        self.texts.append(text)
        self.helpers |= c.helpers


def _in_order(entry: ir.Function) -> list[ir.Function]:
    """Return a function after its callees."""
    order: list[ir.Function] = []

    def visit(function: ir.Function) -> None:
        for block in function.blocks:
            for x in block.instructions:
                callee = getattr(x, "callee", None)
                if isinstance(callee, ir.Function) and callee.blocks and callee not in order:
                    visit(callee)
        order.append(function)

    visit(entry)
    return order


# ---- the functions of signatures -------------------------------------------------------------------------------------


def _signature(
    model: ModelPlan, signature: SignaturePlan, name: str, layout: MemoryLayout, kernels: _Kernels
) -> list[str]:
    """Return the function of a signature, after those of its plans."""
    symbol = model.symbol(signature, name)
    lines: list[str] = []
    calls = []
    for number, planned in enumerate(signature.plans):
        steps = StepFunctions(model, signature, name, layout, kernels.entries, number)
        lines += [*steps.text(planned), ""]
        calls.append(steps.call)
    lines.append(f"int {symbol}({steps.public}void *arena, size_t arena_size) {{")
    lines += ["  size_t count = 1;"] * bool(layout.stride)
    is_chosen = bool(signature.sizes or signature.counts)
    lines += ["  int status;"] * (is_chosen or bool(signature.plans[0].written))
    lines += ["  size_t plan;"] * bool(signature.sizes)
    lines += [f"  int64_t counts[{2 * signature.counts}];"] if signature.counts else []
    lines += _checks(model, signature, layout)
    if layout.stride:
        lines += [f"  {line}" for line in count_in_c(layout.base, layout.stride)]
    if not is_chosen:
        return [*lines, *_plan_call(model, signature, 0, calls[0]), "}", ""]
    return [*lines, *_choice(model, signature, calls), "}", ""]


def _plan_call(model: ModelPlan, signature: SignaturePlan, number: int, call: str) -> list[str]:
    """Return statements that run a plan and return its status; if the status decides more, they set `status`."""
    planned = signature.plans[number]
    lines = []
    for i in sorted(planned.read):
        flag = model.state[i].flag
        if flag is not None:
            lines.append(f"  if (!state->{model.state[flag].identifier}[0]) return {NOT_ASSIGNED};")
    is_chosen = bool(signature.sizes or signature.counts)
    if not planned.written and not is_chosen:
        return [*lines, f"  return {call};"]
    lines += [f"  counts[{2 * i}] = 0;" for i, buffer in enumerate(planned.counts) if buffer is None]
    lines.append(f"  status = {call};")
    if signature.counters:
        lines.append(f"  if (status != {OK}) goto recount;")
    else:
        lines.append(f"  if (status != {OK}) return status;")
    for i in sorted(planned.written):
        flag = model.state[i].flag
        if flag is not None:
            lines.append(f"  state->{model.state[flag].identifier}[0] = 1;")
    for i in signature.varying:
        shape = planned.outputs[i].shape
        for axis, n in enumerate(shape):
            size = f"(size_t)counts[{2 * signature.reported[i]}]" if i in signature.reported and not axis else f"{n}u"
            lines.append(f"  outputs->{signature.outputs[i].identifier}_shape[{axis}] = {size};")
    return [*lines, f"  return {OK};"]


def _choice(model: ModelPlan, signature: SignaturePlan, calls: Sequence[str]) -> list[str]:
    """Return statements that run the plan for the sizes of the inputs. After a plan that stops at another number of
    rows than it is for, that for the counted number runs."""
    lines = [f"  counts[{2 * i + 1}] = 0;" for i in range(signature.counts)]
    lines += [f"  counts[{2 * p.counter + 1}] = {p.begin};" for p in signature.counters if p.counter is not None]
    lines += ["select:"] * bool(signature.counters)
    lines += [f"  counts[{2 * i}] = -1;" for i in range(signature.counts)]
    if not signature.sizes:
        return [*lines, *_plan_call(model, signature, 0, calls[0])]
    lines.append("  plan = 0;")
    for p in signature.sizes:
        if p.places:
            value, suffix = f"inputs->{p.identifier}", "u"
        elif p.element is not None:
            value, suffix = f"(int64_t)inputs->{signature.inputs[p.element[0]].identifier}[{p.element[1]}]", ""
        else:
            value, suffix = f"counts[{2 * (p.counter or 0) + 1}]", ""
        lines.append(f"  if ({value} < {p.least}{suffix} || {value} > {p.most}{suffix}) return {OUT_OF_BOUNDS};")
        lines.append(f"  plan = plan * {p.num_sizes}u + (size_t)({value} - {p.least}{suffix});")
    lines.append("  switch (plan) {")
    for number, (plan, call) in enumerate(zip(signature.numbers, calls)):
        lines += [f"    case {plan}u:", *(f"    {line}" for line in _plan_call(model, signature, number, call))]
    lines += [f"    default: return {OUT_OF_BOUNDS};", "  }"]
    if signature.counters:
        lines.append("recount:")
        for p in signature.counters:
            found, assumed = f"counts[{2 * (p.counter or 0)}]", f"counts[{2 * (p.counter or 0) + 1}]"
            lines += [f"  if ({found} >= 0 && {found} != {assumed}) {{", f"    {assumed} = {found};"]
            lines += ["    goto select;", "  }"]
        lines.append("  return status;")
    return lines


def _checks(model: ModelPlan, signature: SignaturePlan, layout: MemoryLayout) -> list[str]:
    """Return the checks of addresses and sizes."""
    lines = [f"  if (arena_size < {layout.arena}u) return {ARENA_TOO_SMALL};"] if layout.arena else []
    if not layout.arena:
        lines.append("  (void)arena_size;")
    places = [("arena", ALIGNMENT)] if layout.arena else []
    if layout.apart:
        places += [("weights", 1), ("weights->address", 1)]
    if model.state:
        places.append(("state", max(field.initial.itemsize for field in model.state)))
    for kind, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        if tensors:
            lines.append(f"  if (!{kind}) return {NO_MEMORY};")
        places += [(f"{kind}->{t.identifier}", t.alignment) for t in tensors]
    for place, alignment in places:
        lines.append(f"  if (!{place}) return {NO_MEMORY};")
        if alignment > 1:
            lines.append(f"  if ((uintptr_t){place} % {alignment}u) return {MISALIGNED};")
    return lines


def _reset(model: ModelPlan, name: str, layout: MemoryLayout) -> list[str]:
    """Return the function that initializes the state."""
    places = {start: i for i, start in enumerate(layout.places[id(a)] for a in layout.arrays)}
    weights = f", const struct {name}_weights *weights" if layout.apart else ""
    lines = [f"void {name}_reset(struct {name}_state *state{weights}) {{"]
    lines += ["  if (!weights || !weights->address) return;"] if layout.apart else []
    for field in model.state:
        fill = fill_of(field.initial)
        if fill is not None:
            lines.append(f"  memset(state->{field.identifier}, {fill}, sizeof state->{field.identifier});")
        else:
            place = layout.places[id(field.initial)]
            table = f"(const uint8_t *)weights->address + {place}" if layout.apart else f"{name}_w{places[place]}"
            lines.append(f"  memcpy(state->{field.identifier}, {table}, {field.nbytes}u);")
    return [*lines, "}", ""]

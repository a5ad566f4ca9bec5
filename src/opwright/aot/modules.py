"""The LLVM module of a library: the kernels of a plan, its weights, and the function that runs its steps.

Lives here: `emit_object`, `functions_of`, `symbols_of`.
Not here: planning (model_plans.py), memory (memory_layouts.py), the declarations in C (c_files.py).

The function of a signature is

    int NAME_run(const struct NAME_inputs *, const struct NAME_outputs *, void *arena, size_t arena_size)

where both structures consist of pointers; if the model has state, a pointer to it precedes the arena, and
`void NAME_reset(struct NAME_state *)` initializes it; if the weights are a file, a pointer to where they are follows
(weight_files.py), and the threads of the caller, if it may provide any (thread_callbacks.py). A model with several
signatures has a function for each, NAME_SIGNATURE. The function checks its arguments and calls that of the plan, which
keeps the words of the step that it runs on its stack and writes to nothing but the arena, the state and the outputs,
so callers with their own may run at once. A kernel is `i64 kernel(ptr words, i64 begin, i64 end, ptr scratch)`; see
compiler/language/compilation.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from ..compiler.background import LLVM
from ..compiler.native.executor import ALIGNMENT
from ..compiler.target import optimised
from ..core.errors import InternalError, UnimplementedError
from .cpu_levels import levels_text, with_features
from .memory_layouts import MemoryLayout, fill_of, weights_of
from .model_plans import ModelPlan, SignaturePlan
from .plan_functions import LibraryCode, bases_of, plan_text
from .plan_selection import counts_of, counts_text, recount_text, selection_text
from .specialized_kernels import is_specialized, shared_words, specialized_text
from .status_codes import ARENA_TOO_SMALL, MISALIGNED, NO_MEMORY, NOT_ASSIGNED, OK, OUT_OF_BOUNDS, UNSUPPORTED_LEVEL
from .step_words import WordTables, decoder_text
from .thread_callbacks import count_text, share_text
from .weight_files import map_text
from .windows_objects import windows_text, with_stack_probes


def symbols_of(model: ModelPlan, name: str) -> dict[int, str]:
    """Return the names of a library's kernels by the addresses of steps."""
    steps = [step for p in model.plans for step in p.plan.steps if not step.covers]
    return {address: f"{name}.k{i}" for i, address in enumerate(dict.fromkeys(step.code.address for step in steps))}


def emit_object(
    model: ModelPlan,
    name: str,
    layout: MemoryLayout,
    *,
    global_kernels: bool = False,
    progress: Callable[[float], object] = float,
) -> bytes:
    """Return the object file of a library. name: prefix of its symbols; global_kernels: whether kernels are global
    functions, for measurements; progress: called with the part that is done. Raises UnimplementedError for targets
    whose byte order is not that of their kernels."""
    from llvmlite import binding as llvm

    target = model.target
    count = len(model.kernels) + 2  # parts of the time: each kernel, and twice as long for the whole
    with LLVM:
        machine = target.machine()
        data_layout = str(machine.target_data)
        if data_layout.startswith("E") != target.is_big_endian:
            raise UnimplementedError(op="aot.build", what="the byte order of the target", found=target.triple)
        wide = _pointer_bits(data_layout)
        symbols = symbols_of(model, name)
        exported = functions_of(model, name, layout) + ([*symbols.values()] if global_kernels else [])
        main = llvm.parse_assembly(_text(model, name, layout, symbols, wide))
        main.triple, main.data_layout = target.triple, data_layout
        for done, (address, symbol) in enumerate(symbols.items()):
            progress(done / count)
            kernel = model.kernels[address]
            own = model.targets.get(address, target)
            text = kernel.text(own).replace(f'@"{kernel.entry}"', f'@"{symbol}"')
            part = llvm.parse_assembly(with_features(text, own) if model.levels else text)
            for function in part.functions if model.levels else ():  # of one name in several levels
                if not function.is_declaration and function.name != symbol:
                    function.linkage = "internal"
            part.triple, part.data_layout = target.triple, data_layout
            main.link_in(part)
            if is_specialized(target, layout):
                main.get_function(symbol).add_function_attribute("alwaysinline")
        for function in main.functions:
            if not function.is_declaration and function.name not in exported:
                function.linkage = "internal"
        text = with_stack_probes(str(main), name, target)
        code: bytes = machine.emit_object(optimised(text, target, machine))
    if layout.apart or not layout.weights or is_specialized(target, layout):
        return code
    return _with_weights(code, f"{name}_weights", layout)


def _with_weights(code: bytes, symbol: str, layout: MemoryLayout) -> bytes:
    """Return an object file with the weights in their place, which is left open: as text, they would be a third of the
    time of a build."""
    before, *after = code.split(_mark(symbol))
    if len(after) != 1:
        raise InternalError(op="aot.build", what="the place of weights in an object file", found=len(after))
    return b"".join((before, weights_of(layout), after[0][layout.weights - MARK :]))


MARK = 64
"""Bytes by which the place of weights is told: the least size of weights, which are aligned to as many."""


def _mark(symbol: str) -> bytes:
    return hashlib.sha512(f"opwright {symbol}".encode()).digest()


def _unknown_bytes_text(symbol: str, size: int, alignment: int) -> str:
    """Return a constant of which LLVM knows no byte: it begins with a mark."""
    first, rest = _escaped(_mark(symbol)), size - MARK
    kind = f"<{{ [{MARK} x i8], [{rest} x i8] }}>"
    value = f'<{{ [{MARK} x i8] c"{first}", [{rest} x i8] zeroinitializer }}>'
    return f"@{symbol} = internal externally_initialized constant {kind} {value}, align {alignment}"


def _pointer_bits(data_layout: str) -> int:
    """Return the size of a pointer: `p:32:32` in LLVM's text, by default 64."""
    for part in data_layout.split("-"):
        if part.startswith(("p:", "p0:")):
            return int(part.split(":")[1])
    return 64


def functions_of(model: ModelPlan, name: str, layout: MemoryLayout) -> list[str]:
    """Return the global functions of a library."""
    functions = [model.symbol(s, name) for s in model.signatures]
    functions += [f"{name}_reset"] * bool(model.state) + [f"{name}_map_weights"] * layout.apart
    return functions + ([f"{name}_level", f"{name}_set_level"] if model.levels else [])


def _text(model: ModelPlan, name: str, layout: MemoryLayout, symbols: dict[int, str], wide: int) -> str:
    """Return the module of the functions of signatures, of their plans, and of the weights."""
    lines = [f'declare i64 @"{symbol}"(ptr, i64, i64, ptr)' for symbol in symbols.values()]
    lines += windows_text(name, model.target)
    shared = shared_words(model, symbols, layout, name) if is_specialized(model.target, layout) else {}
    for symbol, words in shared.items():
        lines += specialized_text(symbol, words)
    if layout.apart:
        lines += map_text(name, layout, wide)
    elif layout.weights:
        if is_specialized(model.target, layout):  # whose code may have numbers of the weights in it
            lines.append(_bytes_text(f"{name}_weights", weights_of(layout), ALIGNMENT))
        else:
            lines.append(_unknown_bytes_text(f"{name}_weights", layout.weights, ALIGNMENT))
    if model.state:
        lines += _reset_text(model, name, layout)
    if model.levels:
        lines += levels_text(name, model.levels)
    tables = None if is_specialized(model.target, layout) else WordTables(max(map(bases_of, model.plans)))
    code = LibraryCode(name, layout, symbols, shared, tables, wide, counts_of(model) > 0)
    if layout.stride:
        lines += share_text(name, layout.stride, wide)
    for signature in model.signatures:
        lines += _entry_text(model, signature, name, layout, wide)
        for number, planned in enumerate(signature.plans):
            lines += plan_text(code, planned, _plan_symbol(model, signature, name, number))
    if tables is not None:
        lines += [
            _bytes_text(f"{name}.tables", bytes(tables.content)),
            *decoder_text(f"{name}.decode", tables.base_bits),
        ]
    return "\n".join(lines) + "\n"


def _plan_symbol(model: ModelPlan, signature: SignaturePlan, name: str, number: int) -> str:
    return f"{model.symbol(signature, name)}.plan{number}"


def _entry_text(model: ModelPlan, signature: SignaturePlan, name: str, layout: MemoryLayout, wide: int) -> list[str]:
    """Return the function of a signature: it checks its arguments and runs a plan."""
    symbol = model.symbol(signature, name)
    state = "ptr %state, " if model.state else ""
    holder = ("ptr %holder, " if layout.apart else "") + ("ptr %threads, " if layout.stride else "")
    lines = [
        f"define i32 @{symbol}(ptr %inputs, ptr %outputs, {state}{holder}ptr %arena, i{wide} %size) {{",
        "entry:",
        *_checks(model, signature, layout, wide),
        *(count_text(layout.base, layout.stride, wide) if layout.stride else []),
        *counts_text(signature, counts_of(model)),
        *selection_text(model, signature, name, wide),
    ]
    weights = "%weights" if layout.apart else f"@{name}_weights" if layout.weights else "null"
    arguments = f"ptr %inputs, ptr %outputs, {state or 'ptr null, '}ptr {weights}, ptr %arena"
    arguments += ", ptr %counts" if counts_of(model) else ""
    if layout.stride:
        arguments += f", ptr %threads, i{wide} %threads.count"
    for number, planned in enumerate(signature.plans):
        plan = _plan_symbol(model, signature, name, number)
        flags = sorted({flag for i in planned.read if (flag := model.state[i].flag) is not None})
        lines.append(f"plan{number}:")
        lines += [f"  store i64 0, ptr %count{i}" for i, buffer in enumerate(planned.counts) if buffer is None]
        for flag in flags:
            place = f"{number}.{flag}"
            lines += [
                f"  %flag{place} = getelementptr i8, ptr %state, i32 {layout.state[flag]}",
                f"  %has{place} = load i8, ptr %flag{place}",
                f"  %lacks{place} = icmp eq i8 %has{place}, 0",
                f"  br i1 %lacks{place}, label %unassigned, label %has{place}.on",
                f"has{place}.on:",
            ]
        lines += [
            f"  %result{number} = call i32 @{plan}({arguments})",
            f"  %good{number} = icmp eq i32 %result{number}, {OK}",
            f"  br i1 %good{number}, label %good{number}.on, label %failed{number}",
            f"failed{number}:",
            *(["  br label %recount"] if signature.counters else [f"  ret i32 %result{number}"]),
            f"good{number}.on:",
        ]
        for flag in [model.state[i].flag for i in sorted(planned.written)]:
            if flag is not None:
                lines += [
                    f"  %set{number}.{flag} = getelementptr i8, ptr %state, i32 {layout.state[flag]}",
                    f"  store i8 1, ptr %set{number}.{flag}",
                ]
        slot = len(signature.outputs)
        for i in signature.varying:
            for axis, n in enumerate(planned.outputs[i].shape):
                value = str(n)
                if i in signature.reported and not axis:
                    value = f"%rows{number}.{i}.size"
                    lines += [
                        f"  %rows{number}.{i} = load i64, ptr %count{signature.reported[i]}",
                        f"  {value} = {'trunc' if wide < 64 else 'add'} i64 %rows{number}.{i}"
                        + (f" to i{wide}" if wide < 64 else ", 0"),
                    ]
                lines += [
                    f"  %shape{number}.{slot} = getelementptr i{wide}, ptr %outputs, i32 {slot}",
                    f"  store i{wide} {value}, ptr %shape{number}.{slot}",
                ]
                slot += 1
        lines.append(f"  ret i32 {OK}")
    if signature.counters:
        lines += recount_text(signature)
    lines += [f"{label}:\n  ret i32 {status}" for label, status in _FAILURES.items()]
    return [*lines, "}"]


def _word_of(pointer: str) -> list[str]:
    """Return instructions for the address of a pointer as 64 bits."""
    return [f"  %{pointer}.word = ptrtoint ptr %{pointer} to i64"]


_FAILURES = {
    "small": ARENA_TOO_SMALL,
    "misaligned": MISALIGNED,
    "absent": NO_MEMORY,
    "unassigned": NOT_ASSIGNED,
    "unbounded": OUT_OF_BOUNDS,
    "unsupported": UNSUPPORTED_LEVEL,
}


_ESCAPED = np.array([list(f"\\{byte:02X}".encode()) for byte in range(256)], np.uint8)
"""LLVM's text of each byte, in a row: formatting bytes one by one took a fifth of the time of a build."""


def _bytes_text(symbol: str, content: bytes, alignment: int = 1) -> str:
    """Return a constant."""
    return f'@{symbol} = internal constant [{len(content)} x i8] c"{_escaped(content)}", align {alignment}'


def _escaped(content: bytes) -> str:
    return _ESCAPED[np.frombuffer(content, np.uint8)].tobytes().decode()


def _reset_text(model: ModelPlan, name: str, layout: MemoryLayout) -> list[str]:
    """Return the function that initializes the state, without the C library. Without weights it does nothing."""
    lines = [f"define void @{name}_reset(ptr %state) {{", "entry:", "  br label %field0"]
    if layout.apart:
        lines = [
            f"define void @{name}_reset(ptr %state, ptr %holder) {{",
            "entry:",
            "  %weights = load ptr, ptr %holder",
            "  %unmapped = icmp eq ptr %weights, null",
            f"  br i1 %unmapped, label %field{len(model.state)}, label %field0",
        ]
    weights = "%weights" if layout.apart else f"@{name}_weights"
    for i, (field, start) in enumerate(zip(model.state, layout.state)):
        fill = fill_of(field.initial)
        bits = 8 * (1 if fill is not None else min(field.initial.itemsize, 8))
        count = 8 * field.nbytes // bits
        if not count:
            lines += [f"field{i}:", f"  br label %field{i + 1}"]
            continue
        lines += [
            f"field{i}:",
            f"  %fields{i} = getelementptr i8, ptr %state, i32 {start}",
            f"  br label %loop{i}",
            f"loop{i}:",
            f"  %i{i} = phi i32 [ 0, %field{i} ], [ %after{i}, %loop{i} ]",
            f"  %place{i} = getelementptr i{bits}, ptr %fields{i}, i32 %i{i}",
        ]
        value = str(fill)
        if fill is None:
            value = f"%value{i}"
            lines += [
                f"  %initial{i} = getelementptr i8, ptr {weights}, i64 {layout.places[id(field.initial)]}",
                f"  %source{i} = getelementptr i{bits}, ptr %initial{i}, i32 %i{i}",
                f"  {value} = load i{bits}, ptr %source{i}",
            ]
        lines += [
            f"  store volatile i{bits} {value}, ptr %place{i}",  # which no optimisation replaces by memset
            f"  %after{i} = add i32 %i{i}, 1",
            f"  %last{i} = icmp eq i32 %after{i}, {count}",
            f"  br i1 %last{i}, label %field{i + 1}, label %loop{i}",
        ]
    return [*lines, f"field{len(model.state)}:", "  ret void", "}"]


def _checks(model: ModelPlan, signature: SignaturePlan, layout: MemoryLayout, wide: int) -> list[str]:
    """Return instructions that load the addresses of inputs and outputs and check all addresses."""
    lines = [
        f"  %fits = icmp uge i{wide} %size, {layout.arena}",
        "  br i1 %fits, label %fitting, label %small",
        "fitting:",
    ]
    checks = [("arena", ALIGNMENT)] if layout.arena else []
    if layout.apart:
        lines += [
            "  %no.holder = icmp eq ptr %holder, null",
            "  br i1 %no.holder, label %absent, label %held",
            "held:",
            "  %weights = load ptr, ptr %holder",
        ]
        checks.append(("weights", 1))
    if model.state:
        checks.append(("state", max(field.initial.itemsize for field in model.state)))
    for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
        if tensors:
            lines += [
                f"  %no.{kind}s = icmp eq ptr %{kind}s, null",
                f"  br i1 %no.{kind}s, label %absent, label %{kind}s.on",
                f"{kind}s.on:",
            ]
        for i, tensor in enumerate(tensors):
            lines += [
                f"  %{kind}{i}.field = getelementptr ptr, ptr %{kind}s, i32 {i}",
                f"  %{kind}{i} = load ptr, ptr %{kind}{i}.field",
            ]
            checks.append((f"{kind}{i}", tensor.alignment))
    for n, (pointer, alignment) in enumerate(checks):
        lines += [
            f"  %absent{n} = icmp eq ptr %{pointer}, null",
            f"  br i1 %absent{n}, label %absent, label %present{n}",
            f"present{n}:",
        ]
        if alignment > 1:
            lines += [
                *_word_of(pointer),
                f"  %low{n} = and i64 %{pointer}.word, {alignment - 1}",
                f"  %even{n} = icmp eq i64 %low{n}, 0",
                f"  br i1 %even{n}, label %even{n}.on, label %misaligned",
                f"even{n}.on:",
            ]
    return lines

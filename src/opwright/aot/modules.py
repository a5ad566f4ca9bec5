"""The LLVM module of a library: the kernels of a plan, its weights, and the function that runs its steps.

Lives here: `emit_object`, `MemoryLayout`.
Not here: planning (model_plans.py), the declarations in C (c_files.py).

The function is

    int NAME_run(const struct NAME_inputs *, const struct NAME_outputs *, void *arena, size_t arena_size)

where both structures consist of pointers; if the model has state, a pointer to it precedes the arena, and
`void NAME_reset(struct NAME_state *)` initializes it. The function keeps the words of the step that it runs on its
stack and writes to nothing but the arena, the state and the outputs, so callers with their own may run at once. A
kernel is `i64 kernel(ptr words, i64 begin, i64 end, ptr scratch)`; see compiler/language/compilation.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..compiler.background import LLVM
from ..compiler.loops.buffers import Buffer
from ..compiler.loops.plans import JUMP, Address, ArenaOffset, KernelStep, PackedConstant, word
from ..compiler.native.executor import ALIGNMENT
from ..compiler.target import optimised
from ..core.errors import InternalError, UnimplementedError
from .model_plans import ModelPlan, TensorDescription

OK, OUT_OF_RANGE, ARENA_TOO_SMALL, MISALIGNED, NO_MEMORY = range(5)
"""Status codes of a run: see c_files.STATUS_TEXTS."""


class MemoryLayout(NamedTuple):
    """Memory of a library. arena: bytes of the caller's memory, scratch of kernels included; scratch: its offset;
    weights: bytes of constants; places: their offsets, by the identity of their array; state: offsets of the fields of
    the state, and its size."""

    arena: int
    scratch: int
    weights: int
    places: dict[int, int]
    arrays: list[np.ndarray]
    state: list[int]


def _aligned(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def layout_of(model: ModelPlan) -> MemoryLayout:
    """Lay out a model: each constant once, aligned; the scratch memory of one thread after the arena; the state as C
    lays out a structure of arrays."""
    plan = model.plan
    state, end = [], 0
    for tensor in model.state:
        start = -(-end // tensor.buffer.dtype.size) * tensor.buffer.dtype.size
        state.append(start)
        end = start + tensor.nbytes
    places: dict[int, int] = {}
    arrays: list[np.ndarray] = []
    size = 0
    for step in plan.steps:
        for w in step.words:
            array = _constant(w.of) if isinstance(w, Address) else None
            if array is not None and id(array) not in places:
                places[id(array)] = size
                arrays.append(array)
                size += _aligned(array.nbytes)
    scratch = _aligned(plan.arena)
    return MemoryLayout(scratch + _aligned(plan.scratch), scratch, size, places, arrays, [*state, end])


def _constant(of: Buffer | PackedConstant) -> np.ndarray | None:
    return of.array if isinstance(of, PackedConstant) else of.constant


def weights_of(layout: MemoryLayout) -> bytes:
    """Return the constants as one block."""
    block = bytearray(layout.weights)
    for array in layout.arrays:
        start = layout.places[id(array)]
        block[start : start + array.nbytes] = np.ascontiguousarray(array).tobytes()
    return bytes(block)


def emit_object(model: ModelPlan, name: str, layout: MemoryLayout) -> bytes:
    """Return the object file of a library. name: prefix of its symbols. Raises UnimplementedError for targets whose
    byte order is not that of the weights."""
    from llvmlite import binding as llvm

    target = model.target
    with LLVM:
        machine = target.machine()
        data_layout = str(machine.target_data)
        if data_layout.startswith("E"):
            raise UnimplementedError(
                op="aot.build", what="weights are packed in little-endian order", found=target.triple
            )
        wide = _pointer_bits(data_layout)
        steps = [step for step in model.plan.steps if not step.covers]
        symbols = {
            address: f"{name}.k{i}" for i, address in enumerate(dict.fromkeys(step.code.address for step in steps))
        }
        main = llvm.parse_assembly(_text_of_run(model, name, layout, symbols, wide))
        main.triple, main.data_layout = target.triple, data_layout
        for address, symbol in symbols.items():
            kernel = model.kernels[address]
            text = kernel.text(target).replace(f'@"{kernel.entry}"', f'@"{symbol}"')
            part = llvm.parse_assembly(text)
            part.triple, part.data_layout = target.triple, data_layout
            main.link_in(part)
        for function in main.functions:
            if not function.is_declaration and function.name not in (f"{name}_run", f"{name}_reset"):
                function.linkage = "internal"
        code: bytes = machine.emit_object(optimised(str(main), machine))
    return code


def _pointer_bits(data_layout: str) -> int:
    """Return the size of a pointer: `p:32:32` in LLVM's text, by default 64."""
    for part in data_layout.split("-"):
        if part.startswith(("p:", "p0:")):
            return int(part.split(":")[1])
    return 64


def _text_of_run(model: ModelPlan, name: str, layout: MemoryLayout, symbols: dict[int, str], wide: int) -> str:
    """Return the module of the function that runs the steps, and of the weights."""
    plan, size_type = model.plan, f"i{wide}"
    lines = [f'declare i64 @"{symbol}"(ptr, i64, i64, ptr)' for symbol in symbols.values()]
    if layout.weights:
        lines.append(_weights_text(name, weights_of(layout)))
    if model.state:
        lines += _reset_text(model, name, layout)
    state = "ptr %state, " if model.state else ""
    lines += [
        f"define i32 @{name}_run(ptr %inputs, ptr %outputs, {state}ptr %arena, {size_type} %size) {{",
        "entry:",
        f"  %words = alloca [{max((len(s.words) for s in plan.steps), default=0) + 1} x i64], align 8",
    ]
    lines += _checks(model, layout, wide)
    bases = {id(t.buffer): f"%{kind}{i}.word" for kind, i, t in _outside(model)}
    for i, (tensor, offset) in enumerate(zip(model.state, layout.state)):
        lines.append(f"  %state{i}.word = add i64 %state.word, {offset}")
        bases[id(tensor.buffer)] = f"%state{i}.word"
    for number, step in enumerate(plan.steps):
        if step.covers == JUMP:  # `whole_graph` refuses control flow
            raise InternalError(op="aot.build", what=f"step {number} is a jump")
        if not step.covers:  # else the head of strands, which run one after the other
            lines += _step_text(number, step, symbols[step.code.address], bases, layout, name)
    lines.append(f"  ret i32 {OK}")
    lines += [f"{label}:\n  ret i32 {status}" for label, status in _FAILURES.items()]
    return "\n".join([*lines, "}"]) + "\n"


_FAILURES = {"failed": OUT_OF_RANGE, "small": ARENA_TOO_SMALL, "misaligned": MISALIGNED, "absent": NO_MEMORY}


def _outside(model: ModelPlan) -> Iterable[tuple[str, int, TensorDescription]]:
    for kind, tensors in (("input", model.inputs), ("output", model.outputs)):
        for i, tensor in enumerate(tensors):
            yield kind, i, tensor


def _weights_text(name: str, weights: bytes) -> str:
    escaped = "".join(map("\\{:02X}".format, weights))
    return f'@{name}_weights = internal constant [{len(weights)} x i8] c"{escaped}", align {ALIGNMENT}'


def _reset_text(model: ModelPlan, name: str, layout: MemoryLayout) -> list[str]:
    """Return the function that initializes the state, without the C library."""
    lines = [f"define void @{name}_reset(ptr %state) {{", "entry:", "  br label %field0"]
    for i, (tensor, start) in enumerate(zip(model.state, layout.state)):
        before = "entry" if not i else f"field{i - 1}"
        lines += [
            f"field{i}:",
            f"  %i{i} = phi i32 [ {start}, %{before} ], [ %after{i}, %field{i} ]",
            f"  %place{i} = getelementptr i8, ptr %state, i32 %i{i}",
            f"  store volatile i8 {tensor.initial}, ptr %place{i}",  # which no optimisation replaces by memset
            f"  %after{i} = add i32 %i{i}, 1",
            f"  %last{i} = icmp eq i32 %after{i}, {start + tensor.nbytes}",
            f"  br i1 %last{i}, label %field{i + 1}, label %field{i}",
        ]
    return [*lines, f"field{len(model.state)}:", "  ret void", "}"]


def _checks(model: ModelPlan, layout: MemoryLayout, wide: int) -> list[str]:
    """Return instructions that load the addresses of inputs and outputs and check all addresses."""
    lines = [
        f"  %arena.address = ptrtoint ptr %arena to i{wide}",
        f"  %arena.word = zext i{wide} %arena.address to i64"
        if wide < 64
        else "  %arena.word = add i64 %arena.address, 0",
        f"  %fits = icmp uge i{wide} %size, {layout.arena}",
        "  br i1 %fits, label %fitting, label %small",
        "fitting:",
    ]
    checks = [("%arena.word", "%arena", ALIGNMENT if layout.arena else 1)]
    if model.state:
        lines.append("  %state.word = ptrtoint ptr %state to i64")
        checks.append(("%state.word", "%state", max(t.buffer.dtype.size for t in model.state)))
    for kind, i, tensor in _outside(model):
        lines += [
            f"  %{kind}{i}.field = getelementptr ptr, ptr %{kind}s, i32 {i}",
            f"  %{kind}{i} = load ptr, ptr %{kind}{i}.field",
            f"  %{kind}{i}.word = ptrtoint ptr %{kind}{i} to i64",
        ]
        checks.append((f"%{kind}{i}.word", f"%{kind}{i}", tensor.buffer.dtype.size))
    for n, (address, pointer, alignment) in enumerate(checks):
        if pointer == "%arena" and not layout.arena:
            continue
        lines += [
            f"  %absent{n} = icmp eq ptr {pointer}, null",
            f"  br i1 %absent{n}, label %absent, label %present{n}",
            f"present{n}:",
        ]
        if alignment > 1:
            lines += [
                f"  %low{n} = and i64 {address}, {alignment - 1}",
                f"  %even{n} = icmp eq i64 %low{n}, 0",
                f"  br i1 %even{n}, label %even{n}.on, label %misaligned",
                f"even{n}.on:",
            ]
    return lines


def _step_text(
    number: int, step: KernelStep, symbol: str, bases: dict[int, str], layout: MemoryLayout, name: str
) -> list[str]:
    """Return the instructions of a step: its words, the call, the check of its status."""
    lines: list[str] = []
    for i, (w, kind) in enumerate(zip(step.words, step.code.parameters, strict=True)):
        text = _word_text(f"%w{number}.{i}", w, kind, bases, layout, name, lines)
        place = f"%p{number}.{i}"
        lines += [f"  {place} = getelementptr i64, ptr %words, i32 {i}", f"  store i64 {text}, ptr {place}"]
    scratch = f"%scratch{number}"
    return [
        *lines,
        f"  {scratch} = getelementptr i8, ptr %arena, i64 {layout.scratch}",
        f'  %status{number} = call i64 @"{symbol}"(ptr %words, i64 0, i64 {step.items}, ptr {scratch})',
        f"  %good{number} = icmp eq i64 %status{number}, 0",
        f"  br i1 %good{number}, label %done{number}, label %failed",
        f"done{number}:",
    ]


def _word_text(
    register: str, value: object, kind: object, bases: dict[int, str], layout: MemoryLayout, name: str, lines: list[str]
) -> str:
    """Return a word as an operand, after the instructions that compute it."""
    if isinstance(value, ArenaOffset):
        base, offset = "%arena.word", value.offset
    elif isinstance(value, Address):
        array = _constant(value.of)
        if array is not None:
            offset = layout.places[id(array)] + value.offset
            return f"ptrtoint (ptr getelementptr (i8, ptr @{name}_weights, i64 {offset}) to i64)"
        if id(value.of) not in bases:
            raise InternalError(op="aot.build", what=f"no memory of {value.of!r}")
        base, offset = bases[id(value.of)], value.offset
    else:
        return str(word(value, kind))
    if not offset:
        return base
    lines.append(f"  {register} = add i64 {base}, {offset}")
    return register

"""A library as portable C11: kernels, the functions that run their steps, and the weights as tables.

Lives here: `c_source_of`, `PORTABLE_C`. Not here: C of a kernel (compiler/c_source), the header (c_files.py), the same
library as machine code (modules.py).

The plan is for a processor without vectors: kernels are loops over single numbers, which C compilers make vectors of.
Integers are equal to those of the object file, and floats too, as long as the compiler keeps their order (no
-ffast-math) and fuses no multiplication with an addition that the source does not fuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from llvmlite import ir

from ..compiler.c_source.byte_addresses import MEMORY_FUNCTIONS, write_kernel
from ..compiler.c_source.expressions import helpers_text, literal
from ..compiler.c_source.functions import CFunction
from ..compiler.c_source.kernels import table_text
from ..compiler.c_source.single_lanes import SingleLanes
from ..compiler.loops.plans import JUMP, Address, ArenaOffset, KernelStep, word
from ..compiler.native.executor import ALIGNMENT
from ..compiler.target import SCALAR, Target
from ..core.errors import InternalError, UnimplementedError
from ..core.lazy_imports import paused
from .memory_layouts import MemoryLayout, constant_of, fill_of, scratch_of
from .model_plans import ModelPlan, SignaturePlan, SizedPlan
from .status_codes import (
    ARENA_TOO_SMALL,
    CUT_WEIGHTS,
    MISALIGNED,
    NO_MEMORY,
    NOT_ASSIGNED,
    OK,
    OTHER_WEIGHTS,
    OUT_OF_RANGE,
)
from .weight_files import HEADER_SIZE, WEIGHT_FILE_ALIGNMENT, header_of

PORTABLE_C = Target("c11", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", SCALAR)
"""The target that plans of C are for: its kernels use no instructions of a processor, and addresses have 64 bits."""
COLUMNS = 116


def c_source_of(model: ModelPlan, name: str, layout: MemoryLayout) -> dict[str, str]:
    """Return the contents of NAME.c and, unless the weights are a file of their own, NAME_weights.c.

    Raises UnimplementedError for kernels without a form in C, by name.
    """
    kernels = _Kernels(model, name)
    lines = [line for p in model.signatures for line in _signature(model, p, name, layout, kernels)]
    arrays = [] if layout.apart else layout.arrays
    tables = [_declaration(name, i, array) for i, array in enumerate(arrays)]
    reset = _reset(model, name, layout) if model.state else []
    source = [
        f"/* {name}: a model as C11, made by Opwright. Model: sha256 {model.digest}. */",
        f'#include "{name}.h"',
        "",
        "#include <math.h>",
        "#include <stdbool.h>",
        "#include <string.h>",
        "",
        "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__",
        '#error "weights are packed in little-endian order"',
        "#endif",
        "",
        "/* ---- memory ---- */",
        "",
        MEMORY_FUNCTIONS,
        f"/* ---- weights, of {name}{'.weights' if layout.apart else '_weights.c'} ---- */",
        "",
        *(f"extern {table};" for table in tables),
        *(_map(name, layout) if layout.apart else []),
        "",
        "/* ---- kernels ---- */",
        "",
        helpers_text(kernels.helpers),
        *kernels.texts,
        "/* ---- the model ---- */",
        "",
        *reset,
        *lines,
    ]
    text = "\n".join(source) + "\n"
    if layout.apart:
        return {f"{name}.c": text}
    weights = [f"/* The weights of {name}. */", "#include <stdint.h>", ""]
    weights += [_declaration(name, i, a) + ";" for i, a in enumerate(layout.arrays)]
    for i, array in enumerate(layout.arrays):
        weights += ["", f"_Alignas({ALIGNMENT}) {_declaration(name, i, array)} = {{", *_numbers(array), "};"]
    if not layout.arrays:
        weights.append(f"extern const uint8_t {name}_no_weights; /* C has no empty files */")
    return {f"{name}.c": text, f"{name}_weights.c": "\n".join(weights) + "\n"}


# ---- weights ---------------------------------------------------------------------------------------------------------


def _table_type(array: np.ndarray) -> str:
    kind = array.dtype
    if kind.kind in "iu":
        return f"{'u' if kind.kind == 'u' else ''}int{8 * kind.itemsize}_t"
    if kind.kind == "f" and kind.itemsize >= 4:
        return "float" if kind.itemsize == 4 else "double"
    return f"uint{8 * min(kind.itemsize, 8) if kind.kind != 'c' else 8}_t"


def _elements(array: np.ndarray) -> np.ndarray:
    """Return the elements as C writes them; those without a type as the bits of one."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind in "iu" or (flat.dtype.kind == "f" and flat.dtype.itemsize >= 4):
        return flat
    return flat.view(np.uint8 if flat.dtype.kind == "c" else f"u{min(flat.dtype.itemsize, 8)}")


def _declaration(name: str, number: int, array: np.ndarray) -> str:
    return f"const {_table_type(array)} {name}_w{number}[{max(_elements(array).size, 1)}]"


def _numbers(array: np.ndarray) -> list[str]:
    """Return the elements of a table in lines."""
    elements = _elements(array)
    if elements.dtype.kind == "f":
        kind: ir.Type = ir.FloatType() if elements.dtype.itemsize == 4 else ir.DoubleType()
        if not np.isfinite(elements).all():
            raise UnimplementedError(op="aot.build", what="weights that are not finite have no form in C")
        texts: Iterable[str] = (literal(kind, x).text for x in elements.tolist())
    elif elements.dtype.itemsize == 1:
        texts = map(str, elements.tolist())
    else:
        bits = 8 * elements.dtype.itemsize
        unsigned = elements.dtype.kind == "u"
        texts = (f"{x}u" if unsigned else literal(ir.IntType(bits), x).text for x in elements.tolist())
        if bits == 64 and unsigned:
            texts = (f"UINT64_C({x})" for x in elements.tolist())
    lines, line = [], " "
    for text in texts:
        if len(line) + len(text) > COLUMNS:
            lines.append(line)
            line = " "
        line += f" {text},"
    return [*lines, line if line.strip() else "  0,"]


def _map(name: str, layout: MemoryLayout) -> list[str]:
    """Return the function that checks a file of weights."""
    header = ", ".join(str(byte) for byte in header_of(layout))
    return f"""static const uint8_t {name}_header[{HEADER_SIZE}] = {{
  {header}}};

int {name}_map_weights(const void *file, size_t size, struct {name}_weights *weights) {{
  if (!weights) return {NO_MEMORY};
  weights->address = NULL;
  if (!file) return {NO_MEMORY};
  if ((uintptr_t)file % {WEIGHT_FILE_ALIGNMENT}u) return {MISALIGNED};
  if (size < {HEADER_SIZE}u) return {CUT_WEIGHTS};
  if (memcmp(file, {name}_header, {HEADER_SIZE}u)) return {OTHER_WEIGHTS};
  if (size < {HEADER_SIZE + layout.weights}u) return {CUT_WEIGHTS};
  weights->address = (const uint8_t *)file + {HEADER_SIZE};
  return {OK};
}}
""".splitlines()


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
    """Return the function of a signature, after that of its plan."""
    if signature.sizes:
        raise UnimplementedError(op="aot.build", what="sizes between bounds have no form in C yet", do='format="lib"')
    (planned,) = signature.plans
    symbol, prefix = model.symbol(signature, name), model.prefix(signature, name)
    state = f"struct {name}_state *state, " if model.state else ""
    weights = f"const struct {name}_weights *weights, " if layout.apart else ""
    parameters = f"const struct {prefix}_inputs *inputs, const struct {prefix}_outputs *outputs, {state}{weights}"
    lines = [f"static int {symbol}_steps({parameters}uint8_t *arena) {{"]
    lines += [f"  {line}" for line in _plan(model, planned, signature, name, layout, kernels)]
    arguments = ", ".join(["inputs", "outputs", *["state"] * bool(model.state), *["weights"] * layout.apart])
    lines += ["}", "", f"int {symbol}({parameters}void *arena, size_t arena_size) {{"]
    if planned.written:
        lines.append("  int status;")
    lines += _checks(model, signature, layout)
    for i in sorted(planned.read):
        flag = model.state[i].flag
        if flag is not None:
            lines.append(f"  if (!state->{model.state[flag].identifier}[0]) return {NOT_ASSIGNED};")
    call = f"{symbol}_steps({arguments}, (uint8_t *)arena)"
    if not planned.written:
        return [*lines, f"  return {call};", "}", ""]
    lines += [f"  status = {call};", f"  if (status != {OK}) return status;"]
    for i in sorted(planned.written):
        flag = model.state[i].flag
        if flag is not None:
            lines.append(f"  state->{model.state[flag].identifier}[0] = 1;")
    return [*lines, f"  return {OK};", "}", ""]


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
        places += [(f"{kind}->{t.identifier}", t.buffer.dtype.size) for t in tensors]
    for place, alignment in places:
        lines.append(f"  if (!{place}) return {NO_MEMORY};")
        if alignment > 1:
            lines.append(f"  if ((uintptr_t){place} % {alignment}u) return {MISALIGNED};")
    return lines


def _plan(
    model: ModelPlan, planned: SizedPlan, signature: SignaturePlan, name: str, layout: MemoryLayout, kernels: _Kernels
) -> list[str]:
    """Return the statements of a plan: each step calls a kernel, jumps are goto."""
    plan = planned.plan
    bases = {id(b): f"outputs->{t.identifier}" for b, t in zip(planned.outputs, signature.outputs)}
    bases |= {id(b): f"inputs->{t.identifier}" for b, t in zip(planned.inputs, signature.inputs)}
    bases |= {id(b): f"state->{model.state[field].identifier}" for b, field in planned.state}
    places = _Places(name, layout, bases)
    targets = {n + s.strand for n, s in enumerate(plan.steps) if s.covers == JUMP}
    lines: list[str] = []
    for number, step in enumerate(plan.steps):
        if number in targets:
            lines.append(f"step{number}:;")
        if step.covers == JUMP:
            lines += _jump(number, step, places)
        elif not step.covers:
            lines.append(_call(step, places, kernels, scratch_of(plan)))
    if len(plan.steps) in targets:
        lines.append(f"step{len(plan.steps)}:;")
    text = "\n".join(lines)
    own = ["state"] * bool(model.state) + ["weights"] * layout.apart
    unused = [x for x in ("inputs", "outputs", *own, "arena") if x not in text]
    return [*(f"(void){x};" for x in unused), *lines, f"return {OK};"]


class _Places:
    """The memory of steps in C."""

    def __init__(self, name: str, layout: MemoryLayout, bases: dict[int, str]) -> None:
        self._name, self._bases, self._layout = name, bases, layout
        numbers = {layout.places[id(a)]: i for i, a in enumerate(layout.arrays)}
        self._tables = {identity: numbers[place] for identity, place in layout.places.items()}

    def address(self, value: object) -> str | None:
        """Return the address of a word, None for a number."""
        if isinstance(value, ArenaOffset):
            return f"arena + {value.offset}" if value.offset else "arena"
        if not isinstance(value, Address):
            return None
        array = constant_of(value.of)
        if array is not None and self._layout.apart:
            return f"(uintptr_t)weights->address + {self._layout.places[id(array)] + value.offset}"
        if array is not None:
            base = f"{self._name}_w{self._tables[id(array)]}"
        elif id(value.of) in self._bases:
            base = self._bases[id(value.of)]
        else:
            raise InternalError(op="aot.build", what=f"no memory of {value.of!r}")
        return f"(uintptr_t){base} + {value.offset}" if value.offset else f"(uintptr_t){base}"


def _jump(number: int, step: KernelStep, places: _Places) -> list[str]:
    selector, size, value, _ = step.words
    target = f"goto step{number + step.strand};"
    address = places.address(selector)
    if address is None:
        return [target]
    kind = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}[int(str(size))]
    read = f"*(const int8_t *)({address})" if kind == "i8" else f"ow_load_{kind}((ow_address)({address}))"
    return [f"if ({read} != {value}) {target}"]


def _call(step: KernelStep, places: _Places, kernels: _Kernels, scratch: int) -> str:
    """Return the call of a kernel."""
    symbol, entry, typed = kernels.entries[step.code.address]
    texts = []
    kinds: Sequence[ir.Type] = [a.type for a in entry.args][:-3] if typed else [ir.IntType(64)] * len(step.words)
    for value, kind, c_kind in zip(step.words, step.code.parameters, kinds, strict=True):
        address = places.address(value)
        if address is not None:
            cast = "(ow_address)" if isinstance(c_kind, ir.PointerType) else "(int64_t)(uintptr_t)"
            texts.append(f"{cast}({address})")
        elif isinstance(c_kind, ir.PointerType):
            number = word(value, kind)
            texts.append("NULL" if not number else f"(ow_address)(uintptr_t)INT64_C({number})")
        else:
            texts.append(_number(word(value, kind), c_kind))
    memory = f"arena + {scratch}" if scratch else "arena"
    call = f"0, {step.items}, {memory}"
    if typed:
        return f"if ({symbol}({', '.join([*texts, call])})) return {OUT_OF_RANGE};"
    words = f"int64_t words[] = {{{', '.join(texts) or '0'}}};"
    return f"{{ {words} if ({symbol}((ow_address)words, {call})) return {OUT_OF_RANGE}; }}"


def _number(bits: int, kind: ir.Type) -> str:
    """Return the number of a word."""
    if isinstance(kind, ir.FloatType):
        return literal(kind, np.array(bits & 0xFFFFFFFF, np.uint32).view(np.float32).item()).text
    if isinstance(kind, ir.DoubleType):
        return literal(kind, np.array(bits & (1 << 64) - 1, np.uint64).view(np.float64).item()).text
    return literal(kind, bits).text


def _reset(model: ModelPlan, name: str, layout: MemoryLayout) -> list[str]:
    """Return the function that initializes the state."""
    places = {start: i for i, start in enumerate(layout.places[id(a)] for a in layout.arrays)}
    weights = f", const struct {name}_weights *weights" if layout.apart else ""
    lines = [f"void {name}_reset(struct {name}_state *state{weights}) {{"]
    lines += ["  if (!weights->address) return;"] if layout.apart else []
    for field in model.state:
        fill = fill_of(field.initial)
        if fill is not None:
            lines.append(f"  memset(state->{field.identifier}, {fill}, sizeof state->{field.identifier});")
        else:
            place = layout.places[id(field.initial)]
            table = f"(const uint8_t *)weights->address + {place}" if layout.apart else f"{name}_w{places[place]}"
            lines.append(f"  memcpy(state->{field.identifier}, {table}, {field.nbytes}u);")
    return [*lines, "}", ""]

"""The function that runs the steps of a signature, in C.

Lives here: `StepFunctions`. Not here: kernels, the function that checks arguments (c_source.py), the same for LLVM
(plan_functions.py).

Each step calls a kernel, jumps are goto. If the caller may provide threads (thread_callbacks.py), a step of much work
and the strands that a step heads are functions of their own, which find the memory of the run in a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from llvmlite import ir

from ..compiler.c_source.expressions import literal
from ..compiler.loops.plans import JUMP, Address, ArenaOffset, KernelStep, LoopPlan, word
from ..core.errors import InternalError
from .memory_layouts import MemoryLayout, constant_of
from .model_plans import ModelPlan, SignaturePlan
from .sized_plans import SizedPlan
from .status_codes import OK, OUT_OF_RANGE
from .thread_callbacks import is_shared

KernelEntries = Mapping[int, tuple[str, ir.Function, bool]]
"""For the address of each kernel its C function, that of LLVM, and whether it takes its words as parameters."""


class StepFunctions:
    """The functions of the steps of a plan of a signature. number: of the plan; public: parameters of the signature's
    function in C but for the arena, each with a comma; parameters: of the plan's function; call: the call of it."""

    def __init__(
        self,
        model: ModelPlan,
        signature: SignaturePlan,
        name: str,
        layout: MemoryLayout,
        entries: KernelEntries,
        number: int = 0,
    ) -> None:
        self._name, self._layout, self._entries = name, layout, entries
        self._signature, self._model = signature, model
        self._symbol, prefix = model.symbol(signature, name), model.prefix(signature, name)
        self._symbol += f"_plan{number}" if len(signature.plans) > 1 else ""
        self._memory = {
            "inputs": f"const struct {prefix}_inputs *",
            "outputs": f"const struct {prefix}_outputs *",
            **({"state": f"struct {name}_state *"} if model.state else {}),
            **({"weights": f"const struct {name}_weights *"} if layout.apart else {}),
        }
        threads = f"const struct {name}_threads *threads, " if layout.stride else ""
        public = "".join(f"{kind}{x}, " for x, kind in self._memory.items()) + threads
        constant = "const " if signature.varying else ""
        self.public = public.replace(f"{constant}struct {prefix}_outputs", f"struct {prefix}_outputs")
        self._memory |= {"counts": "int64_t *"} if signature.counts else {}
        self.parameters = "".join(f"{kind}{x}, " for x, kind in self._memory.items()) + threads
        arguments = [*self._memory, *["threads, count"] * bool(layout.stride), "(uint8_t *)arena"]
        self.call = f"{self._symbol}_steps({', '.join(arguments)})"
        self._places: _Places
        self._apart: list[str] = []

    def text(self, planned: SizedPlan) -> list[str]:
        """Return the functions of a plan; the last one runs the steps."""
        plan = planned.plan
        bases = {id(b): f"outputs->{t.identifier}" for b, t in zip(planned.outputs, self._signature.outputs)}
        bases |= {id(b): f"inputs->{t.identifier}" for b, t in zip(planned.inputs, self._signature.inputs)}
        bases |= {id(b): f"state->{self._model.state[field].identifier}" for b, field in planned.state}
        bases |= {id(b): f"(counts + {2 * i})" for i, b in enumerate(planned.counts) if b is not None}
        self._places = _Places(self._name, self._layout, bases)
        self._apart = []
        body = self._body(plan)
        text = "\n".join(body)
        threaded = bool(self._layout.stride)
        if "&frame" in text:
            body = [
                f"struct {self._symbol}_frame frame;",
                "int status;",
                *(f"frame.{x} = {x};" for x in (*self._memory, "arena")),
                *body,
            ]
        named = [*self._memory, *["threads", "count"] * threaded, "arena"]
        body = [*(f"(void){x};" for x in named if x not in text and "&frame" not in text), *body]
        count = "size_t count, " if threaded else ""
        head = f"static int {self._symbol}_steps({self.parameters}{count}uint8_t *arena) {{"
        frame = [f"  {kind}{x};" for x, kind in (self._memory | {"arena": "uint8_t *"}).items()]
        structure = [f"struct {self._symbol}_frame {{", *frame, "};", ""] if self._apart else []
        return [*structure, *self._apart, head, *(f"  {line}" for line in body), f"  return {OK};", "}"]

    def _body(self, plan: LoopPlan) -> list[str]:
        """Return the statements of a plan."""
        targets = {n + s.strand for n, s in enumerate(plan.steps) if s.covers == JUMP}
        scratch = self._layout.scratch(plan)
        memory = f"arena + {scratch}" if scratch else "arena"
        lines: list[str] = []
        covered = 0  # end of the steps of strands that are a function of their own
        for number, step in enumerate(plan.steps):
            if number in targets:
                lines.append(f"step{number}:;")
            if step.covers == JUMP:
                lines += _jump(number, step, self._places)
            elif number < covered:
                continue
            elif step.covers and self._layout.stride:
                covered = number + 1 + step.covers
                self._add_strands(number, step.items, plan.steps[number + 1 : covered])
                lines.append(self._shared(number, step, memory))
            elif not step.covers and self._layout.stride and is_shared(step):
                self._add_function(number, [self._called(step, "begin, end, scratch")])
                lines.append(self._shared(number, step, memory))
            elif not step.covers:
                lines.append(self._called(step, f"0, {step.items}, {memory}"))
        if len(plan.steps) in targets:
            lines.append(f"step{len(plan.steps)}:;")
        return lines

    def _shared(self, number: int, step: KernelStep, memory: str) -> str:
        function = f"{self._symbol}_step{number}"
        operands = f"{function}, &frame, {step.items}, {step.chunk or 0}, {memory}, threads, count"
        return f"if ((status = {self._name}_share({operands})) != {OK}) return status;"

    def _add_strands(self, number: int, strands: int, steps: Sequence[KernelStep]) -> None:
        """Add the function of strands: a step's items are strands, each a sequence of calls."""
        lines = ["for (; begin < end; begin++) switch (begin) {"]
        for strand in range(strands):
            lines.append(f"case {strand}:")
            lines += [f"  {self._called(s, f'0, {s.items}, scratch')}" for s in steps if s.strand == strand]
            lines.append("  break;")
        self._add_function(number, [*lines, "default: break;", "}"])

    def _add_function(self, number: int, body: list[str]) -> None:
        """Add the function of a step that is divided: it returns a status."""
        text = "\n".join(body)
        self._apart += [
            f"static int {self._symbol}_step{number}(const void *of, int64_t begin, int64_t end, uint8_t *scratch) {{",
            f"  const struct {self._symbol}_frame *frame = (const struct {self._symbol}_frame *)of;",
            *(f"  {kind}{x} = frame->{x};" for x, kind in self._memory.items() if f"{x}->" in text),
            *["  uint8_t *arena = frame->arena;"] * ("arena" in text),
            "  (void)frame;",
            *(f"  {line}" for line in body),
            f"  return {OK};",
            "}",
            "",
        ]

    def _called(self, step: KernelStep, span: str) -> str:
        """Return the call of a kernel. span: its last three arguments: items and scratch memory."""
        symbol, entry, typed = self._entries[step.code.address]
        texts = []
        kinds: Sequence[ir.Type] = [a.type for a in entry.args][:-3] if typed else [ir.IntType(64)] * len(step.words)
        for value, kind, c_kind in zip(step.words, step.code.parameters, kinds, strict=True):
            address = self._places.address(value)
            if address is not None:
                cast = "(ow_address)" if isinstance(c_kind, ir.PointerType) else "(int64_t)(uintptr_t)"
                texts.append(f"{cast}({address})")
            elif isinstance(c_kind, ir.PointerType):
                number = word(value, kind)
                texts.append("NULL" if not number else f"(ow_address)(uintptr_t)INT64_C({number})")
            else:
                texts.append(_number(word(value, kind), c_kind))
        if typed:
            return f"if ({symbol}({', '.join([*texts, span])})) return {OUT_OF_RANGE};"
        words = f"int64_t words[] = {{{', '.join(texts) or '0'}}};"
        return f"{{ {words} if ({symbol}((ow_address)words, {span})) return {OUT_OF_RANGE}; }}"


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


def _number(bits: int, kind: ir.Type) -> str:
    """Return the number of a word."""
    if isinstance(kind, ir.FloatType):
        return literal(kind, np.array(bits & 0xFFFFFFFF, np.uint32).view(np.float32).item()).text
    if isinstance(kind, ir.DoubleType):
        return literal(kind, np.array(bits & (1 << 64) - 1, np.uint64).view(np.float64).item()).text
    return literal(kind, bits).text

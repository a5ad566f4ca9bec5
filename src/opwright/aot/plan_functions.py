"""The function of a library that runs the steps of a plan.

Lives here: `plan_text`, `LibraryCode`. Not here: the function that checks its arguments (modules.py), tables of words
(step_words.py), kernels for the words that their calls share (specialized_kernels.py).

The function of a plan is

    i32 SYMBOL(ptr inputs, ptr outputs, ptr state, ptr weights, ptr arena)

and the memory of numbers of rows, if operators count any (run_sizes.py), and the threads of the caller with their
number, if the library has them (thread_callbacks.py): strands are a function of their own then, which is called as
kernels are, with the bases as its words.
It keeps the words of the step that it runs on its stack: of microcontrollers, as instructions that LLVM computes with;
elsewhere a table has the ones that differ from the step before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..compiler.loops.buffers import Buffer
from ..compiler.loops.plans import JUMP, Address, ArenaOffset, KernelStep, LoopPlan, word
from ..core.errors import InternalError
from .memory_layouts import MemoryLayout, constant_of, constant_word
from .sized_plans import SizedPlan
from .specialized_kernels import SharedWords
from .status_codes import OK, OUT_OF_RANGE, UNFINISHED
from .step_words import PlacedWord, WordTables
from .thread_callbacks import UNFINISHED_STEP, is_shared


class LibraryCode(NamedTuple):
    """The parts that the functions of all plans share.

    name: prefix of symbols; symbols: of kernels, by address; shared: see `SharedWords`; tables: of words, None where
    kernels are specialized; wide: bits of size_t; counts: whether operators count rows
    """

    name: str
    layout: MemoryLayout
    symbols: Mapping[int, str]
    shared: SharedWords
    tables: WordTables | None
    wide: int
    counts: bool


def bases_of(planned: SizedPlan) -> int:
    """Return the number of addresses that words of a plan are relative to."""
    return 3 + len(planned.inputs) + len(planned.outputs) + bool(planned.counts)


def plan_text(code: LibraryCode, planned: SizedPlan, symbol: str) -> list[str]:
    """Return the function of a plan. Each step begins a block; jumps are branches."""
    return _PlanText(code, planned, symbol).text()


class _PlanText:
    """The text of a plan's function. Words are relative to bases: the arena, the weights, the state, the inputs and
    the outputs, in this order."""

    def __init__(self, code: LibraryCode, planned: SizedPlan, symbol: str) -> None:
        self.code, self.planned, self.symbol = code, planned, symbol
        self.plan: LoopPlan = planned.plan
        self.bases = ["arena", "weights", "state"]
        self.places: dict[int, tuple[int, int]] = {}
        self.threaded = code.layout.stride > 0
        self._checked: list[int] = []  # whose status tells why the run ends
        for kind, buffers in (("input", planned.inputs), ("output", planned.outputs)):
            for i, buffer in enumerate(buffers):
                self.places[id(buffer)] = len(self.bases), 0
                self.bases.append(f"{kind}{i}")
        for buffer, field in planned.state:
            self.places[id(buffer)] = 2, code.layout.state[field]
        for i, count in enumerate(planned.counts):
            if count is not None:
                self.places[id(count)] = len(self.bases), 16 * i
        self.bases += ["counts"] * bool(planned.counts)

    def text(self) -> list[str]:
        """Return the function."""
        steps = self.plan.steps
        threads = f", ptr %threads, i{self.code.wide} %threads.count" if self.threaded else ""
        counts = ", ptr %counts" * self.code.counts
        parameters = f"ptr %inputs, ptr %outputs, ptr %state, ptr %weights, ptr %arena{counts}{threads}"
        lines = [
            f"define internal i32 @{self.symbol}({parameters}) {{",
            "entry:",
            f"  %words = alloca [{self._most_words(steps)} x i64], align 8",
            f"  %bases = alloca [{len(self.bases)} x i64], align 8",
            f"  %scratch = getelementptr i8, ptr %arena, i64 {self.code.layout.scratch(self.plan)}",
            *self._bases_text(),
            "  br label %step0",
        ]
        targets = {n + s.strand for n, s in enumerate(steps) if s.covers == JUMP}
        before: list[PlacedWord | None] = []
        covered = 0  # end of the steps of strands that are a function of their own
        apart: list[str] = []
        for number, step in enumerate(steps):
            if number in targets:
                before = []
            lines.append(f"step{number}:")
            if number < covered:
                lines.append(f"  br label %step{number + 1}")
            elif step.covers == JUMP:
                lines += self._jump(number, step)
            elif not step.covers:
                lines += self._step(number, step, before)
            elif self.threaded:
                covered = number + step.covers + 1
                apart += self._strands(number, step)
                lines += self._shared(number, step, f"{self.symbol}.strands{number}", "%bases")
            else:  # the head of strands, which run one after the other
                lines.append(f"  br label %step{number + 1}")
        lines += [f"step{len(steps)}:", f"  ret i32 {OK}", "failed:"]
        if self._checked:
            statuses = ", ".join(f"[ %status{n}, %step{n} ]" for n in self._checked)
            lines += [
                f"  %status = phi i64 {statuses}",
                f"  %early = icmp eq i64 %status, {UNFINISHED_STEP}",
                f"  %why = select i1 %early, i32 {UNFINISHED}, i32 {OUT_OF_RANGE}",
                "  ret i32 %why",
            ]
        else:
            lines.append(f"  ret i32 {OUT_OF_RANGE}")
        return [*lines, "}", *apart]

    @staticmethod
    def _most_words(steps: Iterable[KernelStep]) -> int:
        return max((len(s.words) for s in steps), default=0) + 1

    def _strands(self, number: int, head: KernelStep) -> list[str]:
        """Return the function of the strands that a step heads: i64 (ptr bases, i64 begin, i64 end, ptr scratch)."""
        steps = self.plan.steps[number + 1 : number + 1 + head.covers]
        cases = " ".join(f"i64 {strand}, label %strand{strand}" for strand in range(head.items))
        lines = [
            f"define internal i64 @{self.symbol}.strands{number}(ptr %bases, i64 %begin, i64 %end, ptr %scratch) {{",
            "entry:",
            f"  %words = alloca [{self._most_words(steps)} x i64], align 8",
            "  br label %turn",
            "turn:",
            "  %strand = phi i64 [ %begin, %entry ], [ %after, %next ]",
            "  %open = icmp ult i64 %strand, %end",
            "  br i1 %open, label %choose, label %done",
            "choose:",
            f"  switch i64 %strand, label %next [ {cases} ]",
        ]
        for strand in range(head.items):
            lines.append(f"strand{strand}:")
            before: list[PlacedWord | None] = []
            own = [(k, step) for k, step in enumerate(steps, number + 1) if step.strand == strand]
            for k, step in own:
                lines += [f"  br label %step{k}", f"step{k}:"]
                decoded, kernel = self._decoded(step, before)
                lines += [
                    *decoded,
                    f"  %status{k} = call i64 {kernel}(ptr %words, i64 0, i64 {step.items}, ptr %scratch)",
                    f"  %good{k} = icmp eq i64 %status{k}, 0",
                    f"  br i1 %good{k}, label %on{k}, label %failed",
                    f"on{k}:",
                ]
            lines.append("  br label %next")
        statuses = ", ".join(f"[ %status{k}, %step{k} ]" for k in range(number + 1, number + 1 + head.covers))
        return [
            *lines,
            "next:",
            "  %after = add i64 %strand, 1",
            "  br label %turn",
            "failed:",
            f"  %status = phi i64 {statuses}",
            "  ret i64 %status",
            "done:",
            "  ret i64 0",
            "}",
        ]

    def _bases_text(self) -> list[str]:
        """Return the instructions that load the bases."""
        lines = []
        for kind, buffers in (("input", self.planned.inputs), ("output", self.planned.outputs)):
            for i in range(len(buffers)):
                lines += [
                    f"  %{kind}{i}.field = getelementptr ptr, ptr %{kind}s, i32 {i}",
                    f"  %{kind}{i} = load ptr, ptr %{kind}{i}.field",
                ]
        for i, base in enumerate(self.bases):
            lines += [f"  %{base}.word = ptrtoint ptr %{base} to i64"]
            if self.code.tables is not None:
                lines += [
                    f"  %{base}.place = getelementptr i64, ptr %bases, i32 {i}",
                    f"  store i64 %{base}.word, ptr %{base}.place",
                ]
        return lines

    def _placed(self, value: object, kind: object) -> PlacedWord:
        """Return a word and its base."""
        if isinstance(value, ArenaOffset):
            return PlacedWord(0, value.offset)
        if not isinstance(value, Address):
            return PlacedWord(None, word(value, kind))
        array = constant_of(value.of)
        if array is not None:
            return PlacedWord(1, self.code.layout.places[id(array)] + value.offset)
        if not isinstance(value.of, Buffer) or id(value.of) not in self.places:
            raise InternalError(op="aot.build", what=f"no memory of {value.of!r}")
        base, start = self.places[id(value.of)]
        return PlacedWord(base, start + value.offset)

    def _operand(self, register: str, value: object, kind: object, lines: list[str]) -> str:
        """Return a word as an operand, after the instructions that compute it."""
        constant = constant_word(value, kind, self.code.layout, self.code.name)
        if constant is not None:
            return constant
        base, offset = self._placed(value, kind)
        assert base is not None
        if not offset:
            return f"%{self.bases[base]}.word"
        lines.append(f"  {register} = add i64 %{self.bases[base]}.word, {offset}")
        return register

    def _jump(self, number: int, step: KernelStep) -> list[str]:
        """Return a jump: unless the selector has a value, or in any case without a selector."""
        selector, size, value, _ = step.words
        target, after = f"%step{number + step.strand}", f"%step{number + 1}"
        if not isinstance(selector, Address | ArenaOffset):
            return [f"  br label {target}"]
        lines: list[str] = []
        address = self._operand(f"%w{number}", selector, None, lines)
        assert isinstance(size, int)
        bits = 8 * size
        return [
            *lines,
            f"  %selector{number} = inttoptr i64 {address} to ptr",
            f"  %selected{number} = load i{bits}, ptr %selector{number}",
            f"  %stays{number} = icmp eq i{bits} %selected{number}, {value}",
            f"  br i1 %stays{number}, label {after}, label {target}",
        ]

    def _step(self, number: int, step: KernelStep, before: list[PlacedWord | None]) -> list[str]:
        """Return the instructions of a step: its words, the call, the check of its status. before: the words that are
        in place, updated."""
        code, kernel = self.code, self.code.symbols[step.code.address]
        lines: list[str] = []
        if code.tables is None:
            kinds = zip(step.words, step.code.parameters, strict=True)
            words = [self._operand(f"%w{number}.{i}", w, kind, lines) for i, (w, kind) in enumerate(kinds)]
            shared = code.shared[kernel]
            own = "".join(f"i64 {w}, " for w, same in zip([*words, str(step.items)], shared) if same is None)
            call = f'@"{kernel}.call"({own}ptr %scratch)'
        else:
            lines, symbol = self._decoded(step, before)
            if self.threaded and is_shared(step):
                return [*lines, *self._shared(number, step, kernel, "%words")]
            call = f"{symbol}(ptr %words, i64 0, i64 {step.items}, ptr %scratch)"
        return [*lines, *self._called(number, call)]

    def _called(self, number: int, call: str) -> list[str]:
        """Return a call, and the check of its status."""
        self._checked += [number] * self.threaded
        return [
            f"  %status{number} = call i64 {call}",
            f"  %good{number} = icmp eq i64 %status{number}, 0",
            f"  br i1 %good{number}, label %step{number + 1}, label %failed",
        ]

    def _decoded(self, step: KernelStep, before: list[PlacedWord | None]) -> tuple[list[str], str]:
        """Return the instructions that store the words of a step, and its kernel."""
        code = self.code
        assert code.tables is not None
        placed = [self._placed(w, kind) for w, kind in zip(step.words, step.code.parameters, strict=True)]
        offset = code.tables.add(placed, before)
        before[: len(placed)] = placed
        table = f"getelementptr (i8, ptr @{code.name}.tables, i32 {offset})"
        call = f'  call void @"{code.name}.decode"(ptr {table}, ptr %words, ptr %bases)'
        return [call], f'@"{code.symbols[step.code.address]}"'

    def _shared(self, number: int, step: KernelStep, kernel: str, words: str) -> list[str]:
        """Return the instructions of a step on the threads of the caller."""
        operands = f'ptr @"{kernel}", ptr {words}, i64 {step.items}, i64 {step.chunk or 0}, ptr %scratch, ptr %threads'
        return self._called(number, f'@"{self.code.name}.share"({operands}, i{self.code.wide} %threads.count)')

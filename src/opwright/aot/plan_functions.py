"""The function of a library that runs the steps of a plan.

Lives here: `plan_text`, `LibraryCode`. Not here: the function that checks its arguments (modules.py), tables of words
(step_words.py), kernels for the words that their calls share (specialized_kernels.py).

The function of a plan is

    i32 SYMBOL(ptr inputs, ptr outputs, ptr state, ptr weights, ptr arena)

It keeps the words of the step that it runs on its stack: of microcontrollers, as instructions that LLVM computes with;
elsewhere a table has the ones that differ from the step before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..compiler.loops.buffers import Buffer
from ..compiler.loops.plans import JUMP, Address, ArenaOffset, KernelStep, LoopPlan, word
from ..core.errors import InternalError
from .memory_layouts import MemoryLayout, constant_of, constant_word, scratch_of
from .model_plans import SizedPlan
from .specialized_kernels import SharedWords
from .status_codes import OK, OUT_OF_RANGE
from .step_words import PlacedWord, WordTables


class LibraryCode(NamedTuple):
    """The parts that the functions of all plans share.

    name: prefix of symbols; symbols: of kernels, by address; shared: see `SharedWords`; tables: of words, None where
    kernels are specialized
    """

    name: str
    layout: MemoryLayout
    symbols: Mapping[int, str]
    shared: SharedWords
    tables: WordTables | None


def bases_of(planned: SizedPlan) -> int:
    """Return the number of addresses that words of a plan are relative to."""
    return 3 + len(planned.inputs) + len(planned.outputs)


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
        for kind, buffers in (("input", planned.inputs), ("output", planned.outputs)):
            for i, buffer in enumerate(buffers):
                self.places[id(buffer)] = len(self.bases), 0
                self.bases.append(f"{kind}{i}")
        for buffer, field in planned.state:
            self.places[id(buffer)] = 2, code.layout.state[field]

    def text(self) -> list[str]:
        """Return the function."""
        steps = self.plan.steps
        most = max((len(s.words) for s in steps), default=0) + 1
        lines = [
            f"define internal i32 @{self.symbol}(ptr %inputs, ptr %outputs, ptr %state, ptr %weights, ptr %arena) {{",
            "entry:",
            f"  %words = alloca [{most} x i64], align 8",
            f"  %bases = alloca [{len(self.bases)} x i64], align 8",
            *self._bases_text(),
            "  br label %step0",
        ]
        targets = {n + s.strand for n, s in enumerate(steps) if s.covers == JUMP}
        before: list[PlacedWord | None] = []
        for number, step in enumerate(steps):
            if number in targets:
                before = []
            lines.append(f"step{number}:")
            if step.covers == JUMP:
                lines += self._jump(number, step)
            elif not step.covers:
                lines += self._step(number, step, before)
            else:  # the head of strands, which run one after the other
                lines.append(f"  br label %step{number + 1}")
        lines += [f"step{len(steps)}:", f"  ret i32 {OK}", "failed:", f"  ret i32 {OUT_OF_RANGE}"]
        return [*lines, "}"]

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
        scratch = f"%scratch{number}"
        if code.tables is None:
            kinds = zip(step.words, step.code.parameters, strict=True)
            words = [self._operand(f"%w{number}.{i}", w, kind, lines) for i, (w, kind) in enumerate(kinds)]
            shared = code.shared[kernel]
            own = "".join(f"i64 {w}, " for w, same in zip([*words, str(step.items)], shared) if same is None)
            call = f'@"{kernel}.call"({own}ptr {scratch})'
        else:
            placed = [self._placed(w, kind) for w, kind in zip(step.words, step.code.parameters, strict=True)]
            offset = code.tables.add(placed, before)
            before[: len(placed)] = placed
            table = f"getelementptr (i8, ptr @{code.name}.tables, i32 {offset})"
            lines.append(f'  call void @"{code.name}.decode"(ptr {table}, ptr %words, ptr %bases)')
            call = f'@"{kernel}"(ptr %words, i64 0, i64 {step.items}, ptr {scratch})'
        return [
            *lines,
            f"  {scratch} = getelementptr i8, ptr %arena, i64 {scratch_of(self.plan)}",
            f"  %status{number} = call i64 {call}",
            f"  %good{number} = icmp eq i64 %status{number}, 0",
            f"  br i1 %good{number}, label %step{number + 1}, label %failed",
        ]

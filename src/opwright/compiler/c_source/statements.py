"""Statements of a function in C: variables, constants, loads and stores, and the control flow graph that orders them.

Lives here: `StatementWriter`, `in_comment`, `KEYWORDS`; `ControlFlowGraph` (order, dominators, loops), `ValueUses`.
Not here: structured control flow (functions.py), expressions (instructions.py).

A value with a single use is written in place; others become constants. Stack variables and phis are C variables.

All functions are generated from structured Python, so every loop has one entry; `ControlFlowGraph` refuses others.
Reverse postorder and dominators: K. Cooper, T. Harvey, K. Kennedy, A simple, fast dominance algorithm, 2001.
"""

from __future__ import annotations

import re
from collections import Counter

from llvmlite import ir
from llvmlite.ir import instructions as llvm

from ...core.errors import InternalError, UnimplementedError
from .expressions import ADD, MUL, PRIMARY, UNARY, CExpression, c_type, literal
from .instructions import Instructions, function_name, signed


def targets(block: ir.Block) -> list[ir.Block]:
    """Return the successors of a block."""
    end = block.terminator
    return [o for o in end.operands if isinstance(o, ir.Block)] if end is not None else []


class ControlFlowGraph:
    """The reachable blocks of a function.

    order: reverse postorder; index: of each block in it. parent: immediate dominators. loops: blocks by header.
    """

    def __init__(self, function: ir.Function) -> None:
        self.entry = function.blocks[0]
        self.order = self._reverse_postorder()
        self.index = {block: i for i, block in enumerate(self.order)}
        self.predecessors: dict[ir.Block, list[ir.Block]] = {block: [] for block in self.order}
        for block in self.order:
            for target in dict.fromkeys(targets(block)):
                self.predecessors[target].append(block)
        self.parent = self._dominators()
        self.children: dict[ir.Block, list[ir.Block]] = {block: [] for block in self.order}
        for block in self.order[1:]:
            self.children[self.parent[block]].append(block)
        self.loops = self._loops()

    def _reverse_postorder(self) -> list[ir.Block]:
        postorder: list[ir.Block] = []
        seen = {self.entry}
        stack = [(self.entry, iter(targets(self.entry)))]
        while stack:
            block, successors = stack[-1]
            successor = next(successors, None)
            if successor is None:
                postorder.append(block)
                stack.pop()
            elif successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(targets(successor))))
        return postorder[::-1]

    def _dominators(self) -> dict[ir.Block, ir.Block]:
        parent: dict[ir.Block, ir.Block] = {self.entry: self.entry}
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                processed = [p for p in self.predecessors[block] if p in parent]
                dominator = processed[0]
                for other in processed[1:]:
                    dominator = self._common(parent, dominator, other)
                if parent.get(block) is not dominator:
                    parent[block], changed = dominator, True
        return parent

    def _common(self, parent: dict[ir.Block, ir.Block], a: ir.Block, b: ir.Block) -> ir.Block:
        while a is not b:
            while self.index[a] > self.index[b]:
                a = parent[a]
            while self.index[b] > self.index[a]:
                b = parent[b]
        return a

    def dominates(self, a: ir.Block, b: ir.Block) -> bool:
        """Return whether block a dominates block b."""
        while self.index[b] > self.index[a]:
            b = self.parent[b]
        return a is b

    def is_back(self, source: ir.Block, target: ir.Block) -> bool:
        """Return whether an edge leads back to the header of a loop."""
        return self.index[target] <= self.index[source]

    def joins(self, block: ir.Block) -> bool:
        """Return whether a block has several predecessors, not counting back edges."""
        return sum(not self.is_back(p, block) for p in self.predecessors[block]) > 1

    def _loops(self) -> dict[ir.Block, set[ir.Block]]:
        loops: dict[ir.Block, set[ir.Block]] = {}
        for source in self.order:
            for header in targets(source):
                if not self.is_back(source, header):
                    continue
                if not self.dominates(header, source):
                    raise InternalError(what="a loop of a kernel has two entrances", found=header.name)
                inside = loops.setdefault(header, {header})
                stack = [source]
                while stack:
                    block = stack.pop()
                    if block not in inside:
                        inside.add(block)
                        stack.extend(self.predecessors[block])
        return loops


class ValueUses:
    """The uses of the values of a function.

    count: uses of each value; remaining: uses still to be written. where: the blocks of the uses; home: of the
    definition. outliving: values that are used outside of the loop of their definition. live: see `_live`.
    """

    def __init__(self, graph: ControlFlowGraph) -> None:
        self.graph = graph
        self.count: Counter[ir.Value] = Counter()
        self.where: dict[ir.Value, set[ir.Block]] = {}
        self.home: dict[ir.Value, ir.Block] = {}
        self._count()
        self.remaining = self.count.copy()
        self.outliving = self._outliving()

    def _count(self) -> None:
        self.live = live = self._live()
        for block in self.graph.order:
            for x in block.instructions:
                self.home[x] = block
                if x not in live:
                    continue
                if isinstance(x, llvm.PhiInstr):
                    for value, source in x.incomings:
                        if source in self.graph.index:
                            self._use(value, source)
                            if any(source in inside and block not in inside for inside in self.graph.loops.values()):
                                self.where[value].add(block)
                    continue
                for value in operands_of(x):
                    self._use(value, block)

    def _outliving(self) -> set[ir.Value]:
        values = set()
        for header, inside in self.graph.loops.items():
            for x, home in self.home.items():
                if home not in inside:
                    continue
                if home is not header if isinstance(x, llvm.PhiInstr) else self.where.get(x, set()) - inside:
                    values.add(x)
        return values

    def _live(self) -> set[ir.Value]:
        """Return the instructions that the result or the side effects of the function depend on: stores to variables
        are live if the variables are read."""
        live: set[ir.Value] = set()
        stores: dict[ir.Value, list[ir.Instruction]] = {}
        pending: list[ir.Instruction] = []
        for x in (x for block in self.graph.order for x in block.instructions):
            if isinstance(x, llvm.StoreInstr) and isinstance(x.operands[1], llvm.AllocaInstr):
                stores.setdefault(x.operands[1], []).append(x)
            elif isinstance(x, llvm.Terminator | llvm.StoreInstr) or (
                isinstance(x, llvm.CallInstr) and isinstance(x.type, ir.VoidType)
            ):
                pending.append(x)
        while pending:
            x = pending.pop()
            if x not in live:
                live.add(x)
                pending += [*operands_of(x), *stores.get(x, ())]
        return live

    def _use(self, value: ir.Value, block: ir.Block) -> None:
        self.count[value] += 1
        self.where.setdefault(value, set()).add(block)


def operands_of(x: ir.Instruction) -> list[ir.Instruction]:
    """Return the instructions whose values an instruction reads."""
    values = [value for value, _ in x.incomings] if isinstance(x, llvm.PhiInstr) else x.operands
    return [value for value in values if isinstance(value, llvm.Instruction)]


MAX_INLINE = 100  # characters of an expression that is written in place
MEMORY = "*"
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    auto bool break case catch char class const continue default delete do double else enum extern false float
    for goto if inline int long namespace new operator or and not xor private public register restrict return
    short signed sizeof static struct switch template this throw true try typedef union unsigned using virtual
    void volatile while main exp log sin cos tan pow sqrt floor ceil fabs fma NAN INFINITY NULL y0 y1 yn j0 j1
    jn gamma div abs index asm typeof export friend explicit mutable nullptr constexpr noexcept typeid typename
    wchar_t compl bitand bitor not_eq or_eq xor_eq and_eq dynamic_cast reinterpret_cast static_cast const_cast
    alignas alignof static_assert thread_local decltype concept requires co_await co_yield co_return consteval
    constinit char8_t char16_t char32_t protected linux unix errno stdin stdout stderr EOF memcpy
""",
    )
)
"""Keywords of C and C++, and names of headers."""


def in_comment(text: str) -> str:
    """Return text that may occur within a comment: without delimiters of comments and trigraphs."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


class StatementWriter:
    """The values, variables and statements of a function in C."""

    def __init__(self, function: ir.Function, bounded: bool, elements: dict[str, str]) -> None:
        self.function, self.elements = function, elements
        self.blocks = ControlFlowGraph(function)
        self.uses = ValueUses(self.blocks)
        self.instructions = Instructions(bounded)
        self.expressions: dict[ir.Value, CExpression] = {}
        self.pending: dict[ir.Value, CExpression] = {}  # to be written in place
        self.names: set[str] = set(KEYWORDS)
        self.variables: dict[ir.Value, str] = {}  # on the stack
        self.arrays: set[ir.Value] = set()  # variables of several elements
        self.elements_at: dict[ir.Value, tuple[ir.Value, CExpression]] = {}  # addresses: base and index

    def unique_name(self, name: str) -> str:
        stem = re.sub(r"\W", "_", name).strip("_") or "t"
        stem = re.sub(r"^\d+$|^_\d+$", "t", stem)
        stem = f"t{stem}" if stem[0].isdigit() else stem
        name, n = stem, 1
        while name in self.names:
            n += 1
            name = f"{stem}{'_' if stem[-1].isdigit() else ''}{n}"
        self.names.add(name)
        return name

    # ---- statements ---------------------------------------------------------------------------------------------

    def statements(self, block: ir.Block) -> list[str]:
        lines: list[str] = []
        comment = ""
        for x in block.instructions:
            if isinstance(x, llvm.Comment):
                if x.text != comment:
                    comment = x.text
                    lines.append(f"/* {in_comment(comment)} */")
            elif isinstance(x, llvm.StoreInstr):
                lines += self._store(x) if x in self.uses.live else []
            elif not isinstance(x, llvm.Terminator | llvm.PhiInstr | llvm.AllocaInstr):
                lines += self._value_statement(x, block)
        return _without_idle_comments(lines)

    def _value_statement(self, x: ir.Instruction, block: ir.Block) -> list[str]:
        """Write an instruction with a result, as a constant unless it is written in place."""
        if isinstance(x, llvm.CallInstr) and isinstance(x.type, ir.VoidType):
            return self._call_statement(x)
        if not self.uses.count[x]:
            return []
        if isinstance(x, llvm.GEPInstr):
            return self._address(x, block)
        operands = x.args if isinstance(x, llvm.CallInstr) else x.operands
        if isinstance(x, llvm.LoadInstr):
            return self.placed(x, self.loaded(x), block)
        return self.placed(x, self.instructions.expression(x, [self.value(o) for o in operands]), block)

    def loaded(self, x: llvm.LoadInstr) -> CExpression:
        """Return what a load reads."""
        return self._target(x.operands[0])

    def placed(self, x: ir.Instruction, expression: CExpression, block: ir.Block) -> list[str]:
        """Keep the expression of a value for its only use, or write a constant."""
        is_local = self.uses.where[x] == {block}
        plain = expression.precedence == PRIMARY and expression.text in self.variables.values()
        returned = self.uses.count[x] == 1 and block.terminator.operands == [x]  # no operator around it
        fits = plain or (self.uses.count[x] == 1 and len(expression.text) <= MAX_INLINE) or returned
        if is_local and x not in self.uses.outliving and fits:
            self.pending[x] = expression
            return []
        return [self._constant(x, expression)]

    def _constant(self, x: ir.Value, expression: CExpression) -> str:
        kind, text = c_type(x.type), signed(expression, x.type).text
        if x in self.uses.outliving:
            return f"{self.expressions[x].text} = {text};"
        name = self.unique_name(x.name)
        self.expressions[x] = CExpression(name)
        return f"const {kind} {name} = {text};"

    def value(self, x: ir.Value) -> CExpression:
        if isinstance(x, ir.Constant):
            if x.constant is ir.Undefined:
                return literal(x.type, 0)
            return literal(x.type, x.constant)
        self.uses.remaining[x] -= 1
        if x in self.pending:
            return self.pending[x] if self.uses.remaining[x] else self.pending.pop(x)
        return self.expressions[x]

    def _flushed(self, changed: set[str]) -> list[str]:
        """Write constants for pending expressions that read variables about to change."""
        stale = [x for x, e in self.pending.items() if e.reads & changed]
        lines = [self._constant(x, self.pending.pop(x)) for x in stale]
        for address, (base, index) in self.elements_at.items():
            if self.uses.remaining[address] > 0 and index.reads & changed:
                lines.append(self._index_constant(address, base, index))
        return lines

    # ---- memory -------------------------------------------------------------------------------------------------

    def _address(self, x: llvm.GEPInstr, block: ir.Block) -> list[str]:
        """Record an address; only its last index varies, as the others are 0 for tables."""
        index = signed(self.value(x.indices[-1]), x.indices[-1].type)
        table = isinstance(x.pointer, ir.GlobalVariable)
        if not table:
            self.uses.remaining[x.pointer] -= 1
        if len(x.indices) != 1 + table:
            raise UnimplementedError(what="a place in memory of several indices has no form in C", found=str(x)[:60])
        if not table and c_type(x.source_etype) != self._element(x.pointer):
            raise UnimplementedError(what="an array of the kernel is read as another dtype, which has no form in C")
        self.elements_at[x] = (x.pointer, index)
        simple = index.precedence == PRIMARY and not index.reads
        if simple or (self.uses.count[x] == 1 and self.uses.where[x] == {block}):
            return []
        return [self._index_constant(x, x.pointer, index)]

    def _index_constant(self, x: ir.Value, base: ir.Value, index: CExpression) -> str:
        """Write a constant for the index of an address."""
        name = self.unique_name("at")
        self.elements_at[x] = (base, CExpression(name))
        return f"const int64_t {name} = {index.text};"

    def _element(self, x: ir.Value) -> str:
        """Return the C type of the elements of a pointer."""
        if x in self.elements_at:
            return self._element(self.elements_at[x][0])
        if x in self.variables:
            return c_type(x.allocated_type)
        return self.elements.get(x.name, "void").removeprefix("const ")

    def _base(self, x: ir.Value) -> CExpression:
        """Return the pointer of an address."""
        if isinstance(x, ir.GlobalVariable):
            return CExpression(function_name(x.name))
        if x in self.variables:
            return CExpression(self.variables[x])
        if x in self.elements_at:
            base, index = self.elements_at[x]
            return CExpression(f"{self._base(base).within(ADD)} + {index.within(MUL)}", ADD, reads=index.reads)
        return self.expressions[x]

    def _target(self, x: ir.Value) -> CExpression:
        """Return the lvalue of an address: `x[i]`, `*x`, a variable."""
        self.uses.remaining[x] -= 1
        if x in self.variables and x not in self.arrays:
            return CExpression(self.variables[x], reads=frozenset({self.variables[x]}))
        if x in self.elements_at:
            base, index = self.elements_at[x]
            table = isinstance(base, ir.GlobalVariable)
            memory = frozenset() if table else frozenset({MEMORY})
            return CExpression(
                f"{self._base(base).within(PRIMARY)}[{index.text}]", PRIMARY, table, index.reads | memory
            )
        return CExpression(f"*{self._base(x).within(PRIMARY)}", UNARY, reads=frozenset({MEMORY}))

    def _store(self, x: llvm.StoreInstr) -> list[str]:
        value, address = x.operands
        expression = signed(self.value(value), value.type)
        target = self._target(address)
        local = address in self.variables and address not in self.arrays
        changed = {self.variables[address]} if local else {MEMORY}
        if local and expression.text == target.text:
            return []  # of a choice that keeps the value; compilers warn
        return [*self._flushed(changed), f"{target.text} = {expression.text};"]

    def _call_statement(self, x: llvm.CallInstr) -> list[str]:
        name = x.callee.name
        if not name.startswith("llvm.memcpy"):
            raise UnimplementedError(what="the kernel calls what has no form in C", found=name)
        target, source = (self._base(a) for a in x.args[:2])
        count = self.value(x.args[2])
        text = f"memcpy({target.text}, {source.text}, (size_t){count.within(PRIMARY)});"
        return [*self._flushed({MEMORY}), text]


def _without_idle_comments(lines: list[str]) -> list[str]:
    """Drop comments that another comment follows immediately."""
    return [
        line
        for i, line in enumerate(lines)
        if not (line.startswith("/* ") and i + 1 < len(lines) and lines[i + 1].startswith("/* "))
    ]

"""A function of LLVM's as C: statements, variables, structured control flow.

Lives here: `write_function`, `in_comment`.
Not here: expressions (instructions.py), the graph of blocks (blocks.py), which functions there are (the stagings).

What is used once stands where it is used; all else gets a constant of its own. A block is written inside of the block
that dominates it, so C's scopes are the regions where values are known. A variable on the stack, and a phi, is a C
variable. Branches become `if`, loops `for (;;)` or `while`; where several ways join, code follows after them, and what
cannot fall through to it jumps (N. Ramsey, Beyond Relooper, 2022).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from llvmlite import ir
from llvmlite.ir import instructions as llvm

from ...core.errors import UnimplementedError
from .blocks import Blocks, targets
from .expressions import ADD, MUL, PRIMARY, UNARY, Expr, c_type, literal
from .instructions import Instructions, function_name, signed

LONGEST = 100  # characters of an expression that is written in place
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
)  # C's and C++'s, and names of headers


@dataclass
class CFunction:
    """A function in C. prototype: without the semicolon. text: the definition. helpers: names it leans on."""

    name: str
    prototype: str
    text: str
    helpers: set[str] = field(default_factory=set)


def write_function(
    function: ir.Function, *, bounded: bool = False, comment: str = "", elements: dict[str, str] | None = None
) -> CFunction:
    """The C of one function.

    bounded: as Instructions. comment: stands above it. elements: by the name of a parameter that is a pointer, the C
    type of what it points to. raises UnimplementedError naming what C has no form for
    """
    return _Writer(function, bounded, elements or {}).write(comment)


def in_comment(text: str) -> str:
    """Text that may stand within a comment: no end or beginning of one, no trigraph."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


class _Writer:
    def __init__(self, function: ir.Function, bounded: bool, elements: dict[str, str]) -> None:
        self.function, self.elements = function, elements
        self.blocks = Blocks(function)
        self.instructions = Instructions(bounded)
        self.known: dict[ir.Value, Expr] = {}
        self.pending: dict[ir.Value, Expr] = {}  # to be written where it is used
        self.taken: set[str] = set(KEYWORDS)
        self.places: dict[ir.Value, str] = {}  # variables on the stack
        self.arrays: set[ir.Value] = set()  # those of several elements
        self.labels: dict[ir.Block, str] = {}
        self.late: set[ir.Value] = set()  # used outside of the loop that they are made in
        self.at: dict[ir.Value, tuple[ir.Value, Expr]] = {}  # places in memory: what they lie in, which element
        self.uses: Counter[ir.Value] = Counter()
        self.left: Counter[ir.Value] = Counter()  # uses still to be written
        self.where: dict[ir.Value, set[ir.Block]] = {}
        self.home: dict[ir.Value, ir.Block] = {}
        self._count_uses()

    # ---- what is used where -------------------------------------------------------------------------------------

    def _count_uses(self) -> None:
        needed = self._needed()
        for block in self.blocks.order:
            for x in block.instructions:
                self.home[x] = block
                if x not in needed:
                    continue
                if isinstance(x, llvm.PhiInstr):
                    for value, source in x.incomings:
                        if source in self.blocks.place:
                            self._use(value, source)
                            if any(source in inside and block not in inside for inside in self.blocks.loops.values()):
                                self.where[value].add(block)
                    continue
                for value in _read_by(x):
                    self._use(value, block)
        self.left = self.uses.copy()
        for header, inside in self.blocks.loops.items():
            for x, home in self.home.items():
                if home not in inside:
                    continue
                if home is not header if isinstance(x, llvm.PhiInstr) else self.where.get(x, set()) - inside:
                    self.late.add(x)

    def _needed(self) -> set[ir.Value]:
        """The instructions that what the function does or gives hangs on: what only others read is not written."""
        found: set[ir.Value] = set()
        todo = [
            x
            for block in self.blocks.order
            for x in block.instructions
            if isinstance(x, llvm.Terminator | llvm.StoreInstr)
            or (isinstance(x, llvm.CallInstr) and isinstance(x.type, ir.VoidType))
        ]
        while todo:
            x = todo.pop()
            if x not in found:
                found.add(x)
                todo += _read_by(x)
        return found

    def _use(self, value: ir.Value, block: ir.Block) -> None:
        self.uses[value] += 1
        self.where.setdefault(value, set()).add(block)

    def _name(self, wanted: str) -> str:
        stem = re.sub(r"\W", "_", wanted).strip("_") or "t"
        stem = re.sub(r"^\d+$|^_\d+$", "t", stem)
        stem = f"t{stem}" if stem[0].isdigit() else stem
        name, n = stem, 1
        while name in self.taken:
            n += 1
            name = f"{stem}{'_' if stem[-1].isdigit() else ''}{n}"
        self.taken.add(name)
        return name

    # ---- the whole ----------------------------------------------------------------------------------------------

    def write(self, comment: str) -> CFunction:
        f = self.function
        parameters = []
        for argument in f.args:
            name = self._name(argument.name)
            self.known[argument] = Expr(name)
            if isinstance(argument.type, ir.PointerType):
                parameters.append(f"{self.elements.get(argument.name, 'void')} *{name}")
            else:
                parameters.append(f"{c_type(argument.type)} {name}")
        body = self._variables() + self._tree(self.blocks.entry, None)
        words = set(re.findall(r"\w+", "\n".join(line for line in body if not line.lstrip().startswith("/*"))))
        idle = [self.known[a].text for a in f.args if self.known[a].text not in words]
        body = [*(f"(void){name};" for name in idle), *body]
        prototype = f"static inline {c_type(f.return_value.type)} {function_name(f.name)}({', '.join(parameters)})"
        text = f"{comment}{prototype} {{\n" + "".join(f"  {line}\n" if line else "\n" for line in body) + "}\n"
        return CFunction(function_name(f.name), prototype, text, self.instructions.helpers)

    def _variables(self) -> list[str]:
        """Declarations of what lies on the stack."""
        lines = []
        for block in self.blocks.order:
            for x in block.instructions:
                if isinstance(x, llvm.AllocaInstr):
                    kind = x.allocated_type
                    name = self.places[x] = self._name(x.name)
                    many = x.operands[0].constant if x.operands else 1
                    if isinstance(kind, ir.PointerType):
                        raise UnimplementedError(
                            what="a variable of the kernel is a place in memory, which has no form in C yet",
                            do="index the array itself",
                        )
                    if many != 1:
                        self.arrays.add(x)
                    lines.append(f"{c_type(kind)} {name}{f'[{many}]' if many != 1 else ''};")
        for x in sorted(self.late, key=lambda v: (self.blocks.place[self.home[v]], str(v.name))):
            if self.uses[x] and not isinstance(x, llvm.AllocaInstr):
                name = self._name(x.name)
                self.known[x] = Expr(name)
                lines.append(f"{c_type(x.type)} {name};")
        return lines

    # ---- control flow -------------------------------------------------------------------------------------------

    def _tree(self, block: ir.Block, follow: ir.Block | None) -> list[str]:
        """A block with all that it dominates. follow: what is written next."""
        if block in self.blocks.loops:
            return self._loop(block, follow)
        return self._with_joins(block, self._joins_of(block), follow)

    def _joins_of(self, block: ir.Block) -> list[ir.Block]:
        found = [c for c in self.blocks.children[block] if self.blocks.joins(c)]
        return sorted(found, key=lambda c: self.blocks.place[c])

    def _with_joins(self, block: ir.Block, joins: Sequence[ir.Block], follow: ir.Block | None) -> list[str]:
        after = [*joins, follow]
        lines = [*self._declared(joins), *self._statements(block)]
        ending = self._ending(block, after[0])
        jumped = any(f"goto {self.labels.get(j)};" in line for j in joins for line in ending)
        lines += ["{", *_indented(ending), "}"] if jumped else ending
        return [*lines, *self._joined(joins, follow)]

    def _joined(self, joins: Sequence[ir.Block], follow: ir.Block | None) -> list[str]:
        """The code where ways join, one after the other. No jump may pass a declaration in its own scope (C++)."""
        after = [*joins[1:], follow]
        codes = [self._tree(join, then) for join, then in zip(joins, after)]
        apart = any(join in self.labels for join in joins)
        lines: list[str] = []
        for join, code in zip(joins, codes):
            if join in self.labels:
                lines.append(f"{self.labels[join]}:;")
            lines += ["{", *_indented(code), "}"] if apart else code
        return lines

    def _declared(self, joins: Sequence[ir.Block]) -> list[str]:
        """The variables of phis where ways join."""
        lines = []
        for join in joins:
            for x in join.instructions:
                if isinstance(x, llvm.PhiInstr) and x not in self.known and self.uses[x]:
                    name = self._name(x.name)
                    self.known[x] = Expr(name)
                    lines.append(f"{c_type(x.type)} {name};")
        return lines

    def _loop(self, header: ir.Block, follow: ir.Block | None) -> list[str]:
        inside = self.blocks.loops[header]
        joins = self._joins_of(header)
        inner = [j for j in joins if j in inside]
        outer = [j for j in joins if j not in inside]
        end = header.terminator
        lines = self._declared(outer)
        leaves = isinstance(end, llvm.ConditionalBranch) and [t for t in targets(header) if t not in inside]
        if not leaves or len(leaves) != 1 or inner:
            code = self._with_joins(header, inner, header)
            lines += ["for (;;) {", *_indented(code), "}"]
            after: list[str] = []
        else:
            statements = self._statements(header)
            (away,) = leaves
            stay = next(t for t in targets(header) if t is not away)
            mask = self._value(end.operands[0])
            goes_on = mask if stay is end.operands[1] else Expr(f"!{mask.within(PRIMARY)}", UNARY)
            turn = self._branch(header, stay, header)
            if statements:
                stop = f"!{mask.within(PRIMARY)}" if stay is end.operands[1] else mask.text
                lines += ["for (;;) {", *_indented([*statements, f"if ({stop}) break;", *turn]), "}"]
            else:
                lines += [f"while ({goes_on.text}) {{", *_indented(turn), "}"]
            after = self._branch(header, away, outer[0] if outer else follow)
        lines += after
        return [*lines, *self._joined(outer, follow)]

    def _ending(self, block: ir.Block, follow: ir.Block | None) -> list[str]:
        """Where control goes from the end of a block."""
        end = block.terminator
        if isinstance(end, llvm.Ret):
            if not end.operands:
                return ["return;"] if follow is not None or block is not self.blocks.order[-1] else []
            value = end.operands[0]
            return [f"return {signed(self._value(value), value.type).text};"]
        if isinstance(end, llvm.ConditionalBranch):
            mask, yes, no = end.operands
            test = self._value(mask)
            a = self._branch(block, yes, follow)
            b = self._branch(block, no, follow)
            if not a:
                return [f"if (!{test.within(PRIMARY)}) {{", *_indented(b), "}"] if b else []
            lines = [f"if ({test.text}) {{", *_indented(a)]
            return [*lines, *(["} else {", *_indented(b)] if b else []), "}"]
        if isinstance(end, llvm.Branch):
            return self._branch(block, end.operands[0], follow)
        if isinstance(end, llvm.Unreachable):
            return []
        raise UnimplementedError(what="the kernel ends a block in a way that has no form in C", found=str(end)[:60])

    def _branch(self, block: ir.Block, target: ir.Block, follow: ir.Block | None) -> list[str]:
        first = not self.blocks.joins(target) and not self.blocks.is_back(block, target)
        lines = self._handed_over(block, target, declare=first)
        if self.blocks.is_back(block, target):
            return lines if target is follow else [*lines, "continue;"]
        if self.blocks.joins(target):
            if target is follow:
                return lines
            label = self.labels.setdefault(target, self._name(target.name))
            return [*lines, f"goto {label};"]
        return [*lines, *self._tree(target, follow)]

    def _handed_over(self, block: ir.Block, target: ir.Block, declare: bool) -> list[str]:
        """What the phis of the target get from this block, all at once."""
        given: list[tuple[str, ir.Type, Expr]] = []
        lines: list[str] = []
        for x in target.instructions:
            if not isinstance(x, llvm.PhiInstr) or not self.uses[x]:
                continue
            value = next(v for v, source in x.incomings if source is block)
            expression = signed(self._value(value), x.type)
            if x not in self.known:
                name = self._name(x.name)
                lines.append(f"{c_type(x.type)} {name} = {expression.text};")
                given.append((name, x.type, Expr(name)))
                self.known[x] = Expr(name, reads=frozenset({name}))
                continue
            given.append((self.known[x].text, x.type, expression))
        assigned: set[str] = set()
        later: list[str] = []
        for name, kind, expression in given:
            if expression.text == name:
                continue
            if any(re.search(rf"\b{re.escape(a)}\b", expression.text) for a in assigned):
                held = self._name(f"next_{name}")
                lines.append(f"const {c_type(kind)} {held} = {expression.text};")
                later.append(f"{name} = {held};")
            else:
                later.append(f"{name} = {expression.text};")
            assigned.add(name)
        return [*lines, *later]

    # ---- statements ---------------------------------------------------------------------------------------------

    def _statements(self, block: ir.Block) -> list[str]:
        lines: list[str] = []
        said = ""
        for x in block.instructions:
            if isinstance(x, llvm.Comment):
                if x.text != said:
                    said = x.text
                    lines.append(f"/* {in_comment(said)} */")
            elif isinstance(x, llvm.StoreInstr):
                lines += self._stored(x)
            elif not isinstance(x, llvm.Terminator | llvm.PhiInstr | llvm.AllocaInstr):
                lines += self._made(x, block)
        return _without_idle_comments(lines)

    def _made(self, x: ir.Instruction, block: ir.Block) -> list[str]:
        """An instruction that gives a value: written where it is used, or as a constant."""
        if isinstance(x, llvm.CallInstr) and isinstance(x.type, ir.VoidType):
            return self._call_statement(x)
        if not self.uses[x]:
            return []
        if isinstance(x, llvm.GEPInstr):
            return self._located(x, block)
        operands = x.args if isinstance(x, llvm.CallInstr) else x.operands
        if isinstance(x, llvm.LoadInstr):
            expression = self._target(x.operands[0])
        else:
            expression = self.instructions.expression(x, [self._value(o) for o in operands])
        near = self.where[x] == {block}
        plain = expression.precedence == PRIMARY and expression.text in self.places.values()
        given = self.uses[x] == 1 and block.terminator.operands == [x]  # returned: nothing is written around it
        fits = plain or (self.uses[x] == 1 and len(expression.text) <= LONGEST) or given
        if near and x not in self.late and fits:
            self.pending[x] = expression
            return []
        return [self._constant(x, expression)]

    def _constant(self, x: ir.Value, expression: Expr) -> str:
        kind, text = c_type(x.type), signed(expression, x.type).text
        if x in self.late:
            return f"{self.known[x].text} = {text};"
        name = self._name(x.name)
        self.known[x] = Expr(name)
        return f"const {kind} {name} = {text};"

    def _value(self, x: ir.Value) -> Expr:
        if isinstance(x, ir.Constant):
            if x.constant is ir.Undefined:
                return literal(x.type, 0)
            return literal(x.type, x.constant)
        self.left[x] -= 1
        if x in self.pending:
            return self.pending[x] if self.left[x] else self.pending.pop(x)
        return self.known[x]

    def _flushed(self, written: set[str]) -> list[str]:
        """Constants for what waits to be written and reads what is about to change."""
        waiting = [x for x, e in self.pending.items() if e.reads & written]
        lines = [self._constant(x, self.pending.pop(x)) for x in waiting]
        for place, (base, index) in self.at.items():
            if self.left[place] > 0 and index.reads & written:
                lines.append(self._fixed(place, base, index))
        return lines

    # ---- memory -------------------------------------------------------------------------------------------------

    def _located(self, x: llvm.GEPInstr, block: ir.Block) -> list[str]:
        """A place in memory: of its indices the last counts, as the others are 0 of tables."""
        index = signed(self._value(x.indices[-1]), x.indices[-1].type)
        table = isinstance(x.pointer, ir.GlobalVariable)
        if not table:
            self.left[x.pointer] -= 1
        if len(x.indices) != 1 + table:
            raise UnimplementedError(what="a place in memory of several indices has no form in C", found=str(x)[:60])
        if not table and c_type(x.source_etype) != self._element(x.pointer):
            raise UnimplementedError(what="an array of the kernel is read as another dtype, which has no form in C")
        self.at[x] = (x.pointer, index)
        simple = index.precedence == PRIMARY and not index.reads
        if simple or (self.uses[x] == 1 and self.where[x] == {block}):
            return []
        return [self._fixed(x, x.pointer, index)]

    def _fixed(self, x: ir.Value, base: ir.Value, index: Expr) -> str:
        """A constant for the index of a place."""
        name = self._name("at")
        self.at[x] = (base, Expr(name))
        return f"const int64_t {name} = {index.text};"

    def _element(self, x: ir.Value) -> str:
        """C's type of what a pointer points to."""
        if x in self.at:
            return self._element(self.at[x][0])
        if x in self.places:
            return c_type(x.allocated_type)
        return self.elements.get(x.name, "void").removeprefix("const ")

    def _base(self, x: ir.Value) -> Expr:
        """The pointer of a place."""
        if isinstance(x, ir.GlobalVariable):
            return Expr(function_name(x.name))
        if x in self.places:
            return Expr(self.places[x])
        if x in self.at:
            base, index = self.at[x]
            return Expr(f"{self._base(base).within(ADD)} + {index.within(MUL)}", ADD, reads=index.reads)
        return self.known[x]

    def _target(self, x: ir.Value) -> Expr:
        """What lies at a place: `x[i]`, `*x`, a variable."""
        self.left[x] -= 1
        if x in self.places and x not in self.arrays:
            return Expr(self.places[x], reads=frozenset({self.places[x]}))
        if x in self.at:
            base, index = self.at[x]
            table = isinstance(base, ir.GlobalVariable)
            held = frozenset() if table else frozenset({MEMORY})
            return Expr(f"{self._base(base).within(PRIMARY)}[{index.text}]", PRIMARY, table, index.reads | held)
        return Expr(f"*{self._base(x).within(PRIMARY)}", UNARY, reads=frozenset({MEMORY}))

    def _stored(self, x: llvm.StoreInstr) -> list[str]:
        value, place = x.operands
        expression = signed(self._value(value), value.type)
        target = self._target(place)
        local = place in self.places and place not in self.arrays
        written = {self.places[place]} if local else {MEMORY}
        return [*self._flushed(written), f"{target.text} = {expression.text};"]

    def _call_statement(self, x: llvm.CallInstr) -> list[str]:
        name = x.callee.name
        if not name.startswith("llvm.memcpy"):
            raise UnimplementedError(what="the kernel calls what has no form in C", found=name)
        into, source = (self._base(a) for a in x.args[:2])
        count = self._value(x.args[2])
        text = f"memcpy({into.text}, {source.text}, (size_t){count.within(PRIMARY)});"
        return [*self._flushed({MEMORY}), text]


def _read_by(x: ir.Instruction) -> list[ir.Instruction]:
    """The instructions whose values an instruction reads."""
    values = [value for value, _ in x.incomings] if isinstance(x, llvm.PhiInstr) else x.operands
    return [value for value in values if isinstance(value, llvm.Instruction)]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" if line else line for line in lines]


def _without_idle_comments(lines: list[str]) -> list[str]:
    """Comments with no statement before the next one are left out, but the last."""
    return [
        line
        for i, line in enumerate(lines)
        if not (line.startswith("/* ") and i + 1 < len(lines) and lines[i + 1].startswith("/* "))
    ]

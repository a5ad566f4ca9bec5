"""A function of LLVM as C: variables and structured control flow.

Lives here: `write_function`, `CFunction`.
Not here: statements (statements.py), expressions (instructions.py), the control flow graph (statements.py), which
functions a kernel has (kernels.py).

A block is nested in its immediate dominator, so that the scopes of C are the regions where values are defined. Branches
become `if`, loops `for (;;)` or `while`; the code of a join follows its branches, and branches that cannot fall through
to it jump (N. Ramsey, Beyond Relooper, 2022).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from llvmlite import ir
from llvmlite.ir import instructions as llvm

from ...core.errors import UnimplementedError
from .expressions import PRIMARY, UNARY, CExpression, c_type
from .instructions import function_name, signed
from .statements import StatementWriter, targets


@dataclass
class CFunction:
    """A function in C. prototype: without the semicolon. text: the definition. helpers: names that it uses."""

    name: str
    prototype: str
    text: str
    helpers: set[str] = field(default_factory=set)


def write_function(
    function: ir.Function, *, bounded: bool = False, comment: str = "", elements: dict[str, str] | None = None
) -> CFunction:
    """Return the C of one function.

    bounded: see `Instructions`. comment: precedes it. elements: C types of the elements of pointer parameters, by name.
    raises UnimplementedError for instructions without an equivalent in C
    """
    return FunctionWriter(function, bounded, elements or {}).write(comment)


class FunctionWriter(StatementWriter):
    """The control flow of a function in C."""

    def __init__(self, function: ir.Function, bounded: bool, elements: dict[str, str]) -> None:
        super().__init__(function, bounded, elements)
        self.labels: dict[ir.Block, str] = {}  # of joins that branches jump to

    def write(self, comment: str) -> CFunction:
        """Return the function."""
        f = self.function
        parameters = []
        for argument in f.args:
            name = self.unique_name(argument.name)
            self.expressions[argument] = CExpression(name)
            parameters.append(self.parameter(argument, name))
        body = self._variables() + self._tree(self.blocks.entry, None)
        words = set(re.findall(r"\w+", "\n".join(line for line in body if not line.lstrip().startswith("/*"))))
        unused = [self.expressions[a].text for a in f.args if self.expressions[a].text not in words]
        body = [*(f"(void){name};" for name in unused), *body]
        prototype = f"static inline {c_type(f.return_value.type)} {function_name(f.name)}({', '.join(parameters)})"
        text = f"{comment}{prototype} {{\n" + "".join(f"  {line}\n" if line else "\n" for line in body) + "}\n"
        return CFunction(function_name(f.name), prototype, text, self.instructions.helpers)

    def parameter(self, argument: ir.Argument, name: str) -> str:
        """Return the declaration of a parameter."""
        if isinstance(argument.type, ir.PointerType):
            return f"{self.elements.get(argument.name, 'void')} *{name}"
        return f"{c_type(argument.type)} {name}"

    def alloca(self, x: llvm.AllocaInstr, name: str, many: int) -> str:
        """Return the declaration of a variable of `many` elements."""
        if isinstance(x.allocated_type, ir.PointerType):
            raise UnimplementedError(
                what="a variable of the kernel is a place in memory, which has no form in C yet",
                do="index the array itself",
            )
        return f"{c_type(x.allocated_type)} {name}{f'[{many}]' if many != 1 else ''};"

    def _variables(self) -> list[str]:
        """Return the declarations of variables."""
        lines = []
        for block in self.blocks.order:
            for x in block.instructions:
                if isinstance(x, llvm.AllocaInstr) and self.uses.count[x]:
                    name = self.variables[x] = self.unique_name(x.name)
                    many = x.operands[0].constant if x.operands else 1
                    if many != 1:
                        self.arrays.add(x)
                    lines.append(self.alloca(x, name, many))
        for x in sorted(self.uses.outliving, key=lambda v: (self.blocks.index[self.uses.home[v]], str(v.name))):
            if self.uses.count[x] and not isinstance(x, llvm.AllocaInstr):
                name = self.unique_name(x.name)
                self.expressions[x] = CExpression(name)
                lines.append(f"{c_type(x.type)} {name};")
        return lines

    # ---- control flow -------------------------------------------------------------------------------------------

    def _tree(self, block: ir.Block, follow: ir.Block | None) -> list[str]:
        """Write a block and the blocks that it dominates. follow: the block written next."""
        if block in self.blocks.loops:
            return self._loop(block, follow)
        return self._with_joins(block, self._joins_of(block), follow)

    def _joins_of(self, block: ir.Block) -> list[ir.Block]:
        joins = [c for c in self.blocks.children[block] if self.blocks.joins(c)]
        return sorted(joins, key=lambda c: self.blocks.index[c])

    def _with_joins(self, block: ir.Block, joins: Sequence[ir.Block], follow: ir.Block | None) -> list[str]:
        after = [*joins, follow]
        lines = [*self._declared(joins), *self.statements(block)]
        ending = self._ending(block, after[0])
        jumped = any(f"goto {self.labels.get(j)};" in line for j in joins for line in ending)
        lines += ["{", *_indented(ending), "}"] if jumped else ending
        return [*lines, *self._joined(joins, follow)]

    def _joined(self, joins: Sequence[ir.Block], follow: ir.Block | None) -> list[str]:
        """Write the joins one after the other. No jump may pass a declaration in its own scope (C++)."""
        after = [*joins[1:], follow]
        codes = [self._tree(join, then) for join, then in zip(joins, after)]
        labelled = any(join in self.labels for join in joins)
        lines: list[str] = []
        for join, code in zip(joins, codes):
            if join in self.labels:
                lines.append(f"{self.labels[join]}:;")
            lines += ["{", *_indented(code), "}"] if labelled else code
        return lines

    def _declared(self, joins: Sequence[ir.Block]) -> list[str]:
        """Declare the variables of the phis of joins."""
        lines = []
        for join in joins:
            for x in join.instructions:
                if isinstance(x, llvm.PhiInstr) and x not in self.expressions and self.uses.count[x]:
                    name = self.unique_name(x.name)
                    self.expressions[x] = CExpression(name)
                    lines.append(f"{c_type(x.type)} {name};")
        return lines

    def _loop(self, header: ir.Block, follow: ir.Block | None) -> list[str]:
        inside = self.blocks.loops[header]
        joins = self._joins_of(header)
        inner = [j for j in joins if j in inside]
        outer = [j for j in joins if j not in inside]
        end = header.terminator
        lines = self._declared(outer)
        exits = isinstance(end, llvm.ConditionalBranch) and [t for t in targets(header) if t not in inside]
        if not exits or len(exits) != 1 or inner:
            code = self._with_joins(header, inner, header)
            lines += ["for (;;) {", *_indented(code), "}"]
            after: list[str] = []
        else:
            statements = self.statements(header)
            (exit_block,) = exits
            body_block = next(t for t in targets(header) if t is not exit_block)
            mask = self.value(end.operands[0])
            condition = mask if body_block is end.operands[1] else CExpression(f"!{mask.within(PRIMARY)}", UNARY)
            body = self._branch(header, body_block, header)
            if statements:
                stop = f"!{mask.within(PRIMARY)}" if body_block is end.operands[1] else mask.text
                lines += ["for (;;) {", *_indented([*statements, f"if ({stop}) break;", *body]), "}"]
            else:
                lines += [f"while ({condition.text}) {{", *_indented(body), "}"]
            after = self._branch(header, exit_block, outer[0] if outer else follow)
        lines += after
        return [*lines, *self._joined(outer, follow)]

    def _ending(self, block: ir.Block, follow: ir.Block | None) -> list[str]:
        """Write the terminator of a block."""
        end = block.terminator
        if isinstance(end, llvm.Ret):
            if not end.operands:
                return ["return;"] if follow is not None or block is not self.blocks.order[-1] else []
            value = end.operands[0]
            return [f"return {signed(self.value(value), value.type).text};"]
        if isinstance(end, llvm.ConditionalBranch):
            mask, yes, no = end.operands
            test = self.value(mask)
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
        lines = self._phi_assignments(block, target, declare=first)
        if self.blocks.is_back(block, target):
            return lines if target is follow else [*lines, "continue;"]
        if self.blocks.joins(target):
            if target is follow:
                return lines
            label = self.labels.setdefault(target, self.unique_name(target.name))
            return [*lines, f"goto {label};"]
        return [*lines, *self._tree(target, follow)]

    def _phi_assignments(self, block: ir.Block, target: ir.Block, declare: bool) -> list[str]:
        """Assign the phis of the target their values from this block, in parallel."""
        assignments: list[tuple[str, ir.Type, CExpression]] = []
        lines: list[str] = []
        for x in target.instructions:
            if not isinstance(x, llvm.PhiInstr) or not self.uses.count[x]:
                continue
            value = next(v for v, source in x.incomings if source is block)
            expression = signed(self.value(value), x.type)
            if x not in self.expressions:
                name = self.unique_name(x.name)
                lines.append(f"{c_type(x.type)} {name} = {expression.text};")
                assignments.append((name, x.type, CExpression(name)))
                self.expressions[x] = CExpression(name, reads=frozenset({name}))
                continue
            assignments.append((self.expressions[x].text, x.type, expression))
        assigned: set[str] = set()
        later: list[str] = []
        for name, kind, expression in assignments:
            if expression.text == name:
                continue
            if any(re.search(rf"\b{re.escape(a)}\b", expression.text) for a in assigned):
                copy = self.unique_name(f"next_{name}")
                lines.append(f"const {c_type(kind)} {copy} = {expression.text};")
                later.append(f"{name} = {copy};")
            else:
                later.append(f"{name} = {expression.text};")
            assigned.add(name)
        return [*lines, *later]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" if line else line for line in lines]

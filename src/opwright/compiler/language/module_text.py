"""The text of a module, as LLVM reads it.

Lives here: `module_text`.
Not here: building modules (builder.py, entry_points.py), LLVM (../native/linker.py).

llvmlite's own `str(module)` takes twice as long, a tenth of the time to compile a network. Here each instruction is one
format, operands are looked up, and values without a name of their own are numbered, which saves LLVM a table of names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir


class _Unknown(Exception):
    """An instruction that this module does not write."""


class _Function:
    """A function that is being written. Tables are by `id`: what a module refers to lives as long as it."""

    def __init__(self, kinds: dict[int, str]) -> None:
        self._kinds, self._references, self._typed = kinds, dict[int, str](), dict[int, str]()

    def types(self, kind: ir.Type) -> str:
        """Return the spelling of a type. All pointers are opaque."""
        text = self._kinds.get(id(kind))
        if text is None:
            text = self._kinds[id(kind)] = "ptr" if isinstance(kind, ir.PointerType) else str(kind)
        return text

    def reference(self, x: ir.Value) -> str:
        """Return the spelling of an operand: `%3`, `%"begin"`, a number."""
        text = self._references.get(id(x))
        if text is None:
            text = self._references[id(x)] = x.get_reference()
        return text

    def typed(self, x: ir.Value) -> str:
        """Return an operand with its type."""
        text = self._typed.get(id(x))
        if text is None:
            text = self._typed[id(x)] = f"{self.types(x.type)} {self.reference(x)}"
        return text

    def lines(self, function: ir.Function) -> list[str]:
        """Return the lines of the body. Raises _Unknown."""
        number, references = 0, self._references
        for block in function.blocks:
            for x in block.instructions:
                if x.name[:1] == "." and type(x.type) is not ir.VoidType:
                    references[id(x)] = f"%{number}"
                    number += 1
        lines = []
        for block in function.blocks:
            lines.append(f"{self.reference(block)[1:]}:")
            for x in block.instructions:
                write = _WRITERS.get(type(x))
                if write is None:
                    raise _Unknown(type(x).__name__)
                line = write(self, x)
                if x.metadata:
                    line += x._stringify_metadata(leading_comma=True)
                lines.append(line if type(x.type) is ir.VoidType else f"{self.reference(x)} = {line}")
        return lines


def _operation(f: _Function, x: Any) -> str:
    name = " ".join((x.opname, *x.flags)) if x.flags else x.opname
    return f"{name} {f.types(x.type)} {', '.join([f.reference(o) for o in x.operands])}"


def _aligned(x: Any) -> str:
    return "" if x.align is None else f", align {x.align}"


def _load(f: _Function, x: Any) -> str:
    return f"load {f.types(x.type)}, ptr {f.reference(x.operands[0])}{_aligned(x)}"


def _store(f: _Function, x: Any) -> str:
    return f"store {f.typed(x.operands[0])}, ptr {f.reference(x.operands[1])}{_aligned(x)}"


def _alloca(f: _Function, x: Any) -> str:
    return f"alloca {', '.join([f.types(x.allocated_type), *map(f.typed, x.operands)])}{_aligned(x)}"


def _element(f: _Function, x: Any) -> str:
    name = "getelementptr inbounds" if x.inbounds else "getelementptr"
    return f"{name} {f.types(x.source_etype)}, {', '.join(map(f.typed, x.operands))}"


def _call(f: _Function, x: Any) -> str:
    if x.attributes or x.arg_attributes or x.callee.function_type.var_arg:
        raise _Unknown("call")
    name = " ".join(filter(None, (x.tail, "call", *x.fastmath, x.cconv)))
    return f"{name} {f.types(x.type)} {_callee(f, x.callee)}({', '.join(map(f.typed, x.args))})"


def _callee(f: _Function, callee: Any) -> str:
    return callee.get_reference() if isinstance(callee, ir.InlineAsm) else f.reference(callee)


def _compare(f: _Function, x: Any) -> str:
    a, c = x.operands
    return f"{' '.join((x.opname, *x.flags, x.op))} {f.typed(a)}, {f.reference(c)}"


def _typed_operands(f: _Function, x: Any) -> str:
    name = " ".join((x.opname, *x.flags)) if x.flags else x.opname
    return f"{name} {', '.join(map(f.typed, x.operands))}"


def _cast(f: _Function, x: Any) -> str:
    return f"{x.opname} {f.typed(x.operands[0])} to {f.types(x.type)}"


def _phi(f: _Function, x: Any) -> str:
    name = " ".join((x.opname, *x.flags))
    incomings = [f"[{f.reference(v)}, {f.reference(block)}]" for v, block in x.incomings]
    return f"{name} {f.types(x.type)} {', '.join(incomings)}"


def _plain(f: _Function, x: Any) -> str:
    """Write an instruction without operands."""
    lines: list[str] = []
    x.descr(lines)
    return "".join(lines).rstrip()


_WRITERS: dict[type, Callable[[_Function, Any], str]] = {
    ir.Instruction: _operation,
    ir.LoadInstr: _load,
    ir.StoreInstr: _store,
    ir.AllocaInstr: _alloca,
    ir.GEPInstr: _element,
    ir.CallInstr: _call,
    ir.ICMPInstr: _compare,
    ir.FCMPInstr: _compare,
    ir.CastInstr: _cast,
    ir.PhiInstr: _phi,
    ir.Comment: _plain,
    ir.Unreachable: _plain,
    ir.Fence: _plain,
    **dict.fromkeys(
        (
            ir.SelectInstr,
            ir.InsertElement,
            ir.ExtractElement,
            ir.ShuffleVector,
            ir.Branch,
            ir.ConditionalBranch,
            ir.Ret,
        ),
        _typed_operands,
    ),
}


def module_text(module: ir.Module) -> str:
    """Return the text of a module for LLVM; llvmlite's own if it has an instruction that kernels rarely have."""
    lines = [f'; ModuleID = "{module.name}"']
    kinds: dict[int, str] = {}
    try:
        for x in module.globals.values():
            if not isinstance(x, ir.Function) or not x.blocks:
                lines.append(str(x))
                continue
            x.descr_prototype(lines)
            lines += ["{", *_Function(kinds).lines(x), "}"]
    except _Unknown:
        return str(module)
    return "\n".join([*lines, *module._get_metadata_lines()])

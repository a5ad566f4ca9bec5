"""Functions whose pointers are addresses of bytes, as C: kernels of libraries, which read memory as several dtypes.

Lives here: `write_kernel`, `memory_functions`, the C functions that load and store.
Not here: functions on arrays of one dtype each (functions.py).

Memory is read through types that may alias any other where the compiler has such types (GCC, Clang and compilers that
understand their attributes), and byte by byte (memcpy) otherwise, or where the address need not be aligned.
"""

from __future__ import annotations

import re

from llvmlite import ir
from llvmlite.ir import instructions as llvm

from .expressions import ADD, PRIMARY, UNARY, CExpression, c_type, reads, short
from .functions import CFunction, FunctionWriter
from .instructions import signed
from .single_lanes import _bits
from .statements import MEMORY

ELEMENTS = ("float", "double", "int16_t", "int32_t", "int64_t")
_ADDRESSES = """typedef uint8_t *ow_address;
"""
_OF_ELEMENTS = """/* The address of element i, by arithmetic that wraps. */
static inline ow_address ow_at(uint8_t *p, int64_t i, unsigned size) {
  return (ow_address)((uintptr_t)p + (uintptr_t)i * size);
}
"""


def memory_functions(text: str) -> str:
    """Return the functions on memory that a text calls: `load` and `store` of aligned elements, `read` and `write` of
    others. Compilers warn of functions that nothing calls."""
    called = set(re.findall(r"\bow_(?:at|load_\w+|store_\w+|read_\w+|write_\w+)\b", text))
    parts = [_ADDRESSES, *[_OF_ELEMENTS] * ("ow_at" in called)]
    for kind in ELEMENTS:
        name = short(kind)
        aligned, other = [], []
        if f"ow_load_{name}" in called:
            aligned.append(
                f"static inline {kind} ow_load_{name}(const uint8_t *p) {{\n"
                f"  return *(const ow_any_{name} *)(const void *)p;\n}}"
            )
            other.append(_copied(kind, "load"))
        if f"ow_store_{name}" in called:
            aligned.append(
                f"static inline void ow_store_{name}(uint8_t *p, {kind} x) {{ *(ow_any_{name} *)(void *)p = x; }}"
            )
            other.append(_copied(kind, "store"))
        if aligned:
            alias = f"typedef {kind} ow_any_{name} __attribute__((__may_alias__));"
            parts.append("\n".join(["#if defined(__GNUC__)", alias, *aligned, "#else", *other, "#endif\n"]))
        parts += [f"{_copied(kind, way)}\n" for way in ("read", "write") if f"ow_{way}_{name}" in called]
    return "\n".join(parts)


def _copied(kind: str, way: str) -> str:
    """Return a function on elements that need not be aligned. way: load, store, read, write."""
    name = f"ow_{way}_{short(kind)}"
    if way in ("store", "write"):
        return f"static inline void {name}(uint8_t *p, {kind} x) {{ memcpy(p, &x, sizeof x); }}"
    return f"static inline {kind} {name}(const uint8_t *p) {{\n  {kind} x;\n  memcpy(&x, p, sizeof x);\n  return x;\n}}"


def write_kernel(function: ir.Function) -> CFunction:
    """Return the C of a function on single numbers (single_lanes.py)."""
    return _KernelWriter(function, False, {}).write("")


class _KernelWriter(FunctionWriter):
    """A function in C."""

    def parameter(self, argument: ir.Argument, name: str) -> str:
        if not isinstance(argument.type, ir.PointerType):
            return f"{c_type(argument.type)} {name}"
        return f"uint8_t *{name}"  # not restrict: steps in place read and write the same memory

    def alloca(self, x: llvm.AllocaInstr, name: str, many: int) -> str:
        aligned = "_Alignas(8) " if many != 1 else ""
        return f"{aligned}{c_type(x.allocated_type)} {name}{f'[{many}]' if many != 1 else ''};"

    def value(self, x: ir.Value) -> CExpression:
        if x in self.variables:
            self.uses.remaining[x] -= 1
            name = self.variables[x]
            return CExpression(f"(ow_address){name if x in self.arrays else f'&{name}'}", UNARY)
        return super().value(x)

    def _address(self, x: llvm.GEPInstr, block: ir.Block) -> list[str]:
        if isinstance(x.pointer, ir.GlobalVariable):
            return super()._address(x, block)
        base, index = self.value(x.pointer), self.value(x.indices[-1])
        size = max(1, _bits(x.source_etype) // 8)
        index = signed(index, x.indices[-1].type)
        if index.text == "0":
            return self.placed(x, base, block)
        read = reads(base, index)
        if not index.text.lstrip("-").isdigit():
            return self.placed(x, CExpression(f"ow_at({base.text}, {index.text}, {size})", PRIMARY, reads=read), block)
        sign, offset = ("-", -int(index.text)) if index.text.startswith("-") else ("+", int(index.text))
        text = f"{base.within(ADD)} {sign} {offset * size}"
        return self.placed(x, CExpression(text, ADD, reads=read), block)

    def _place(self, x: ir.Value) -> CExpression | None:
        """Return the variable or element of a table at an address, None for memory."""
        if (x in self.variables and x not in self.arrays) or x in self.elements_at:
            return self._target(x)
        return None

    def loaded(self, x: llvm.LoadInstr) -> CExpression:
        place = self._place(x.operands[0])
        if place is not None:
            return place
        address, kind = self.value(x.operands[0]), x.type
        read = address.reads | {MEMORY}
        if isinstance(kind, ir.PointerType):
            return CExpression(f"(ow_address)(uintptr_t)ow_load_i64({address.text})", UNARY, reads=read)
        name = c_type(kind)
        if name == "int8_t":
            return CExpression(f"(int8_t)*{address.within(PRIMARY)}", UNARY, reads=read)
        return CExpression(f"ow_{self._way(x, kind, 'load', 'read')}({address.text})", PRIMARY, reads=read)

    @staticmethod
    def _way(x: ir.Instruction, kind: ir.Type, aligned: str, other: str) -> str:
        whole = x.align is None or 8 * x.align >= _bits(kind)
        return f"{aligned if whole else other}_{short(c_type(kind))}"

    def _store(self, x: llvm.StoreInstr) -> list[str]:
        value, address = x.operands
        if (address in self.variables and address not in self.arrays) or address in self.elements_at:
            return super()._store(x)
        expression, kind = signed(self.value(value), value.type), value.type
        place = self.value(address)
        if c_type(kind) == "int8_t":
            text = f"*{place.within(PRIMARY)} = (uint8_t){expression.within(UNARY)};"
        else:
            text = f"ow_{self._way(x, kind, 'store', 'write')}({place.text}, {expression.text});"
        return [*self._flushed({MEMORY}), text]

    def _call_statement(self, x: llvm.CallInstr) -> list[str]:
        target, source, count = (self.value(a) for a in x.args[:3])
        if not x.callee.name.startswith("llvm.memcpy"):
            return super()._call_statement(x)
        return [*self._flushed({MEMORY}), f"memcpy({target.text}, {source.text}, (size_t){count.within(PRIMARY)});"]

"""The instruction builder of kernels: llvmlite's, which leaves out instructions that compute nothing new.

Lives here: `InstructionBuilder`: an instruction that its block has already is that one, and integers plus 0 and times 1
are themselves; stack variables, whose values a block keeps instead of storing and loading them; `Names`.
Not here: what the language's operators emit (values.py), the text of a module (module_text.py).

LLVM would remove these instructions, too. But an instruction costs the time to build it, to write and read its text,
and to optimize it: in the kernels of products a fifth were such addresses, and loads and stores of sums in registers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .llvm_types import I32, I64, undefined


def _number(x: ir.Value) -> int | None:
    """Return a constant scalar integer as a number; None for other values."""
    is_integer = type(x) is ir.Constant and type(x.constant) is int and type(x.type) is ir.IntType
    return x.constant if is_integer else None


def _folded(name: str, a: ir.Value, c: ir.Value) -> ir.Value | None:
    """Return the result of an instruction on integers that is one of the operands, or a number; else None."""
    x, y = _number(a), _number(c)
    if y is not None and y == _NEUTRAL.get(name):
        return a
    if x is not None and name in _EXACT:
        if y is not None:
            result = _EXACT[name](x, y)
            limit = 1 << (a.type.width - 1)
            return ir.Constant(a.type, result) if -limit <= result < limit else None
        if x == _NEUTRAL[name] and name != "sub":
            return c
    return None


_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "sdiv": 1, "udiv": 1, "shl": 0, "ashr": 0, "lshr": 0}
"""The second operand by which an instruction returns the first."""
_COMPARISONS = ("icmp_signed", "icmp_unsigned", "fcmp_ordered", "fcmp_unordered")  # whose first operand is a sign
_EXACT: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def _shared(name: str) -> Callable[..., ir.Value]:
    """Return llvmlite's function of an instruction without effects, called once a block for the same operands."""
    create = getattr(ir.IRBuilder, name)
    folds, compares = name in _NEUTRAL, name in _COMPARISONS

    def instruction(self: InstructionBuilder, *operands: Any, **more: Any) -> ir.Value:
        if any(more.values()) or isinstance(operands[-1], str):  # flags, or a name
            return create(self, *operands, **more)
        if folds:
            folded = _folded(name, *operands)
            if folded is not None:
                return folded
        key = (name, *operands[:1], *map(id, operands[1:])) if compares else (name, *map(id, operands))
        one = self._present.get(key)
        if one is None:
            one = self._present[key] = create(self, *operands)
        return one

    return instruction


class Names:
    """The names of values of a function, in place of llvmlite's: most have none, and are numbered. used: numbers that
    values have already."""

    def __init__(self, used: int) -> None:
        self._count = used
        self._uses: dict[str, int] = {}

    def register(self, name: str, deduplicate: bool = False) -> str:
        """Return the name, with a number if it has been used."""
        if not name:
            self._count += 1
            return f".{self._count}"
        uses = self._uses.get(name, 0)
        self._uses[name] = uses + 1
        return f"{name}.{uses}" if uses else name


class _BlockState:
    """The state of a block at its end. present: instructions by name and operands, these by `id`, as an instruction
    refers to its operands; held: values of stack variables."""

    __slots__ = ("held", "present")

    def __init__(self) -> None:
        self.present: dict[Any, ir.Value] = {}
        self.held: dict[ir.Value, ir.Value] = {}


class InstructionBuilder(ir.IRBuilder):  # type: ignore[misc]  # llvmlite has no annotations
    """Build the instructions of one function."""

    add, sub, mul = _shared("add"), _shared("sub"), _shared("mul")
    sdiv, udiv, srem, urem = _shared("sdiv"), _shared("udiv"), _shared("srem"), _shared("urem")
    fadd, fsub, fmul, fdiv, fneg = _shared("fadd"), _shared("fsub"), _shared("fmul"), _shared("fdiv"), _shared("fneg")
    and_, or_, xor = _shared("and_"), _shared("or_"), _shared("xor")
    shl, ashr, lshr = _shared("shl"), _shared("ashr"), _shared("lshr")
    icmp_signed, icmp_unsigned = _shared("icmp_signed"), _shared("icmp_unsigned")
    fcmp_ordered, fcmp_unordered, select = _shared("fcmp_ordered"), _shared("fcmp_unordered"), _shared("select")
    trunc, zext, sext, bitcast = _shared("trunc"), _shared("zext"), _shared("sext"), _shared("bitcast")
    fptrunc, fpext, inttoptr, ptrtoint = _shared("fptrunc"), _shared("fpext"), _shared("inttoptr"), _shared("ptrtoint")
    fptoui, uitofp, fptosi, sitofp = _shared("fptoui"), _shared("uitofp"), _shared("fptosi"), _shared("sitofp")
    insert_element, extract_element = _shared("insert_element"), _shared("extract_element")
    shuffle_vector = _shared("shuffle_vector")

    def __init__(self, block: ir.Block) -> None:
        super().__init__(block)
        self._states: dict[ir.Block, _BlockState] = {}
        self._enter(block)
        self._unstored: dict[ir.Value, ir.Value] = {}  # values that the variables do not have in memory yet
        self._allocated = 0

    def element(self, p: ir.Value, index: ir.Value, kind: ir.Type) -> ir.Value:
        """Return the address of an element of an array of this type, as `gep` does."""
        if _number(index) == 0:
            return p
        key = ("element", id(p), id(index), id(kind))
        one = self._present.get(key)
        if one is None:
            one = self._present[key] = self.gep(p, [index], source_etype=kind)
        return one

    def splat(self, x: ir.Value, kind: ir.VectorType) -> ir.Value:
        """Return a vector whose lanes are all x."""
        key = ("splat", id(x), id(kind))
        one = self._present.get(key)
        if one is None:
            unset, zeros = undefined(kind), ir.Constant(ir.VectorType(I32, kind.count), None)
            one = self._present[key] = self.shuffle_vector(
                self.insert_element(unset, x, ir.Constant(I32, 0)), unset, zeros
            )
        return one

    def allocate(self, kind: ir.Type, size: int = 1, align: int | None = None) -> ir.Value:
        """Allocate stack memory of the function: in its entry block, before anything else."""
        entry = self.function.entry_basic_block
        memory = ir.AllocaInstr(entry, kind, ir.Constant(I64, size) if size != 1 else None, "")
        memory.align = align
        entry.instructions.insert(self._allocated, memory)
        self._allocated += 1
        if self.block is entry:
            self._anchor += 1
        return memory

    def put(self, variable: ir.Value, x: ir.Value) -> None:
        """Set a variable, memory by `allocate` that only `put` and `get` access; it is stored as the block is left."""
        self._held[variable] = self._unstored[variable] = x

    def get(self, variable: ir.Value, kind: ir.Type) -> ir.Value:
        """Return the value of a variable."""
        x = self._held.get(variable)
        if x is None:
            x = self._held[variable] = self.load(variable, typ=kind)
        return x

    def _store_variables(self) -> None:
        unstored, self._unstored = self._unstored, {}
        for variable, x in unstored.items():
            self.store(x, variable)

    def _enter(self, block: ir.Block) -> None:
        state = self._states.get(block)
        if state is None:
            state = self._states[block] = _BlockState()
        self._present, self._held = state.present, state.held

    # ---- positions and ends of blocks: variables are stored before -----------------------------------------------

    def position_at_end(self, block: ir.Block) -> None:
        self._store_variables()
        super().position_at_end(block)
        self._enter(block)

    def position_before(self, instr: ir.Instruction) -> None:
        self._store_variables()
        super().position_before(instr)
        self._present, self._held = {}, {}  # what the block has may follow

    def position_after(self, instr: ir.Instruction) -> None:
        self._store_variables()
        super().position_after(instr)
        self._present, self._held = {}, {}

    def position_at_start(self, block: ir.Block) -> None:
        self._store_variables()
        super().position_at_start(block)
        self._present, self._held = {}, {}

    def _set_terminator(self, term: ir.Instruction) -> ir.Instruction:
        self._store_variables()
        return super()._set_terminator(term)

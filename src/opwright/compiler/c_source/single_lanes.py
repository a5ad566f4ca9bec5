"""Functions with vectors as functions on single numbers: each lane of a vector becomes a value of its own.

Lives here: `SingleLanes`.
Not here: C (functions.py, byte_addresses.py). Kernels for targets of one lane have few vectors: of one lane, and the
bytes that they load together.

Masked loads and stores become branches, shuffles and insertions nothing at all.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from llvmlite.ir import instructions as llvm

from ...core.errors import UnimplementedError
from ..language.llvm_types import suffix
from ..language.vectors import EXPECT

I32, I64, POINTER = ir.IntType(32), ir.IntType(64), ir.PointerType()
Lanes = list[ir.Value]


class SingleLanes:
    """The functions of a module on single numbers. module: they are added to it, with the tables that they read."""

    def __init__(self, module: ir.Module) -> None:
        self.module = ir.Module(module.name)
        self._tables: dict[str, ir.GlobalVariable] = {}
        self._functions: dict[str, ir.Function] = {}
        for x in module.global_values:
            if isinstance(x, ir.GlobalVariable):
                table = ir.GlobalVariable(self.module, x.value_type, x.name)
                table.initializer, table.global_constant = x.initializer, True
                self._tables[x.name] = table
        for x in module.functions:
            self._declare(x)
        for x in module.functions:
            if x.blocks:
                _Rewriter(self, x, self._functions[x.name]).write()

    def _declare(self, old: ir.Function) -> None:
        kinds = [kind for x in old.args for kind in _kinds(x.type)]
        result = old.function_type.return_type
        if len(_kinds(result)) > 1 and old.blocks:
            raise UnimplementedError(what="a function returns several numbers", found=old.name)
        result = result.element if isinstance(result, ir.VectorType) else result
        new = self._functions[old.name] = ir.Function(self.module, ir.FunctionType(result, kinds), old.name)
        names = [(x, len(_kinds(x.type))) for x in old.args for _ in _kinds(x.type)]
        for argument, (x, _) in zip(new.args, names, strict=True):
            argument.name = x.name

    def function(self, name: str) -> ir.Function:
        """Return a function by its name."""
        return self._functions[name]

    def table(self, name: str) -> ir.GlobalVariable:
        """Return a table by its name."""
        return self._tables[name]

    def math(self, name: str, kind: ir.Type, count: int) -> ir.Function:
        """Return an intrinsic on single numbers. name: llvm.NAME without the suffix of types."""
        full = f"{name}.{suffix(kind)}"
        if full not in self._functions:
            self._functions[full] = ir.Function(self.module, ir.FunctionType(kind, [kind] * count), full)
        return self._functions[full]


def _kinds(kind: ir.Type) -> list[ir.Type]:
    return [kind.element] * kind.count if isinstance(kind, ir.VectorType) else [kind]


class _Rewriter:
    """One function."""

    def __init__(self, whole: SingleLanes, old: ir.Function, new: ir.Function) -> None:
        self.whole, self.old, self.new = whole, old, new
        self.values: dict[ir.Value, Lanes] = {}
        self.blocks = {block: new.append_basic_block(block.name) for block in old.blocks}
        self.ends: dict[ir.Block, ir.Block] = {}
        self.split: set[ir.Value] = set()  # variables of vectors: a variable for each lane
        self.b = ir.IRBuilder()
        rest = iter(new.args)
        for x in old.args:
            self.values[x] = [next(rest) for _ in _kinds(x.type)]

    def write(self) -> None:
        phis = []
        for block in self.old.blocks:
            self.b.position_at_end(self.blocks[block])
            for x in block.instructions:
                if isinstance(x, llvm.Comment):
                    self.b.comment(x.text)
                elif isinstance(x, llvm.PhiInstr):
                    self.values[x] = [self.b.phi(kind, x.name) for kind in _kinds(x.type)]
                    phis.append(x)
                else:
                    self.instruction(x)
            self.ends[block] = self.b.block
        for x in phis:
            for value, source in x.incomings:
                if source in self.ends:
                    for phi, lane in zip(self.values[x], self.lanes(value), strict=True):
                        phi.add_incoming(lane, self.ends[source])

    def lanes(self, x: ir.Value) -> Lanes:
        """Return the lanes of a value, one of a number."""
        if isinstance(x, ir.GlobalVariable):
            return [self.whole.table(x.name)]
        if not isinstance(x, ir.Constant):
            return self.values[x]
        kinds = _kinds(x.type)
        if isinstance(x.type, ir.VectorType) and isinstance(x.constant, list | tuple):
            return list(x.constant)
        if x.constant is ir.Undefined or x.constant is None:
            return [ir.Constant(k, None if isinstance(k, ir.PointerType) else 0) for k in kinds]
        return [x] if not isinstance(x.type, ir.VectorType) else [ir.Constant(k, x.constant) for k in kinds]

    def one(self, x: ir.Value) -> ir.Value:
        """Return a number."""
        (lane,) = self.lanes(x)
        return lane

    def instruction(self, x: ir.Instruction) -> None:
        name = type(x).__name__
        handler = getattr(self, f"_{name}", None)
        if handler is not None:
            handler(x)
        elif isinstance(x, llvm.CastInstr):
            self._cast(x)
        elif isinstance(x, llvm.Terminator):
            self._terminator(x)
        else:
            columns = [self.lanes(o) for o in x.operands]
            kinds = _kinds(x.type)
            self.values[x] = [self._plain(x, kind, [c[i % len(c)] for c in columns]) for i, kind in enumerate(kinds)]

    def _plain(self, x: ir.Instruction, kind: ir.Type, operands: Lanes) -> ir.Value:
        """Return an instruction on numbers."""
        b = self.b
        if isinstance(x, llvm.ICMPInstr):
            return self._put(llvm.ICMPInstr(b.block, x.op, *operands, name=x.name))
        if isinstance(x, llvm.FCMPInstr):
            return self._put(llvm.FCMPInstr(b.block, x.op, *operands, name=x.name))
        if isinstance(x, llvm.SelectInstr):
            return b.select(*operands, name=x.name)
        if type(x) is not llvm.Instruction:
            raise UnimplementedError(what="an instruction has no form in C yet", found=str(x)[:80])
        return self._put(llvm.Instruction(b.block, kind, x.opname, operands, x.name))

    def _put(self, x: ir.Instruction) -> ir.Instruction:
        self.b._insert(x)
        return x

    # ---- memory -------------------------------------------------------------------------------------------------

    def _AllocaInstr(self, x: llvm.AllocaInstr) -> None:
        kind = x.allocated_type
        count = x.operands[0] if x.operands else None
        if isinstance(kind, ir.VectorType):
            self.split.add(x)
        self.values[x] = [self.b.alloca(k, count, x.name) for k in _kinds(kind)]
        for memory in self.values[x]:
            memory.type = POINTER

    def _GEPInstr(self, x: llvm.GEPInstr) -> None:
        columns = [self.lanes(i) for i in x.indices]
        bases = self.lanes(x.pointer)
        kind = x.source_etype
        size = kind.count if isinstance(kind, ir.VectorType) else 1
        lanes = []
        for i in range(max(len(bases), *(len(c) for c in columns))):
            indices = [c[i % len(c)] for c in columns]
            if size > 1:
                indices = [self.b.mul(indices[0], ir.Constant(indices[0].type, size))]
            etype = kind.element if isinstance(kind, ir.VectorType) else kind
            lanes.append(self._gep(bases[i % len(bases)], indices, etype))
        self.values[x] = lanes

    def _gep(self, base: ir.Value, indices: Lanes, etype: ir.Type) -> ir.Value:
        address = self.b.gep(base, indices, source_etype=etype)
        address.type = POINTER
        return address

    def _places(self, address: ir.Value, kind: ir.Type) -> Lanes:
        """Return the addresses of the lanes of a vector in memory."""
        if address in self.split:
            return self.values[address]
        base, kinds = self.one(address), _kinds(kind)
        return [base, *(self._gep(base, [ir.Constant(I64, i)], k) for i, k in enumerate(kinds) if i)]

    def _LoadInstr(self, x: llvm.LoadInstr) -> None:
        kinds, (address,) = _kinds(x.type), x.operands
        places = self._places(address, x.type)
        self.values[x] = [self._load(p, k, x.align, x.name) for p, k in zip(places, kinds, strict=True)]

    def _load(self, place: ir.Value, kind: ir.Type, align: int | None, name: str = "") -> ir.Value:
        return self.b.load(place, name, align=_least(align, kind), typ=kind)

    def _StoreInstr(self, x: llvm.StoreInstr) -> None:
        value, address = x.operands
        for lane, place in zip(self.lanes(value), self._places(address, value.type), strict=True):
            self.b.store(lane, place, align=_least(x.align, lane.type))

    # ---- lanes --------------------------------------------------------------------------------------------------

    def _ShuffleVector(self, x: llvm.ShuffleVector) -> None:
        a, c, mask = x.operands
        both = self.lanes(a) + self.lanes(c)
        indices = [lane.constant for lane in self.lanes(mask)]
        self.values[x] = [both[i if isinstance(i, int) else 0] for i in indices]

    def _ExtractElement(self, x: llvm.ExtractElement) -> None:
        lanes, index = self.lanes(x.operands[0]), self.one(x.operands[1])
        if isinstance(index, ir.Constant):
            self.values[x] = [lanes[int(index.constant)]]
            return
        result = lanes[0]
        for i, lane in enumerate(lanes[1:], 1):
            result = self.b.select(self.b.icmp_signed("==", index, ir.Constant(index.type, i)), lane, result)
        self.values[x] = [result]

    def _InsertElement(self, x: llvm.InsertElement) -> None:
        lanes, one, index = [*self.lanes(x.operands[0])], self.one(x.operands[1]), self.one(x.operands[2])
        if isinstance(index, ir.Constant):
            lanes[int(index.constant)] = one
        else:
            lanes = [
                self.b.select(self.b.icmp_signed("==", index, ir.Constant(index.type, i)), one, lane)
                for i, lane in enumerate(lanes)
            ]
        self.values[x] = lanes

    def _cast(self, x: llvm.CastInstr) -> None:
        lanes = self.lanes(x.operands[0])
        kinds = _kinds(x.type)
        if x.opname == "bitcast" and len(lanes) != len(kinds):
            self.values[x] = self._regrouped(lanes, kinds)
            return
        if x.opname == "bitcast" and lanes[0].type == kinds[0]:
            self.values[x] = lanes
            return
        self.values[x] = [
            self._put(llvm.CastInstr(self.b.block, x.opname, lane, kind, x.name)) for lane, kind in zip(lanes, kinds)
        ]

    def _regrouped(self, lanes: Lanes, kinds: list[ir.Type]) -> Lanes:
        """Return the bits of lanes as lanes of another size, the first the lowest."""
        b, old, new = self.b, _bits(lanes[0].type), _bits(kinds[0])
        lanes = [b.bitcast(x, ir.IntType(old)) if not isinstance(x.type, ir.IntType) else x for x in lanes]
        result = []
        for i, kind in enumerate(kinds):
            whole: Any = None
            if new < old:
                start = i * new
                word = lanes[start // old]
                if start % old:
                    word = b.lshr(word, ir.Constant(word.type, start % old))
                whole = b.trunc(word, ir.IntType(new))
            else:
                for k in range(new // old):
                    part = b.zext(lanes[i * (new // old) + k], ir.IntType(new))
                    part = b.shl(part, ir.Constant(part.type, k * old)) if k else part
                    whole = part if whole is None else b.or_(whole, part)
            result.append(whole if isinstance(kind, ir.IntType) else b.bitcast(whole, kind))
        return result

    # ---- calls --------------------------------------------------------------------------------------------------

    def _CallInstr(self, x: llvm.CallInstr) -> None:
        if isinstance(x.callee, ir.InlineAsm):  # language/vectors.py: an operand hidden from optimizations
            self.values[x] = self.lanes(x.args[0])
            return
        name = x.callee.name
        columns = [self.lanes(a) for a in x.args]
        if name == EXPECT:
            self.values[x] = columns[0]
        elif name.startswith("llvm.prefetch."):
            pass
        elif name.startswith("llvm.masked."):
            self._masked(x, name.split(".")[2])
        elif name.startswith("llvm.vector.reduce."):
            operation = name.split(".")[3]
            total, *rest = columns[0]
            for lane in rest:
                total = {"add": self.b.add, "or": self.b.or_, "and": self.b.and_}[operation](total, lane)
            self.values[x] = [total]
        elif name.startswith("llvm.") and any(isinstance(a.type, ir.VectorType) for a in x.args):
            kinds = _kinds(x.type)
            stem = name.removesuffix("." + name.split(".")[-1])
            if ".sat." in name:
                raise UnimplementedError(what="a conversion of several numbers has no form in C yet", found=name)
            self.values[x] = [
                self.b.call(self.whole.math(stem, kind, len(columns)), [c[i] for c in columns])
                for i, kind in enumerate(kinds)
            ]
        else:
            self.values[x] = [self.b.call(self.whole.function(name), [v for c in columns for v in c])]

    def _masked(self, x: llvm.CallInstr, kind: str) -> None:
        if kind in ("load", "gather"):
            address, align, mask, other = x.args
            kinds = _kinds(x.type)
            places = self.lanes(address) if kind == "gather" else self._places(address, x.type)
            results = []
            for place, condition, default, k in zip(places, self.lanes(mask), self.lanes(other), kinds):
                slot = self._variable(k)
                self.b.store(default, slot)
                with self.b.if_then(condition):
                    self.b.store(self._load(place, k, align.constant), slot)
                results.append(self.b.load(slot, typ=k))
            self.values[x] = results
        elif kind in ("store", "scatter"):
            value, address, align, mask = x.args
            places = self.lanes(address) if kind == "scatter" else self._places(address, value.type)
            for lane, place, condition in zip(self.lanes(value), places, self.lanes(mask)):
                with self.b.if_then(condition):
                    self.b.store(lane, place, align=_least(align.constant, lane.type))
        else:
            raise UnimplementedError(what="a masked instruction has no form in C yet", found=x.callee.name)

    def _variable(self, kind: ir.Type) -> ir.Value:
        with self.b.goto_entry_block():
            slot = self.b.alloca(kind)
            slot.type = POINTER
        return slot

    def _terminator(self, x: llvm.Terminator) -> None:
        b = self.b
        if isinstance(x, llvm.Ret):
            if x.operands:
                b.ret(self.one(x.operands[0]))
            else:
                b.ret_void()
        elif isinstance(x, llvm.ConditionalBranch):
            mask, yes, no = x.operands
            b.cbranch(self.one(mask), self.blocks[yes], self.blocks[no])
        elif isinstance(x, llvm.Branch):
            b.branch(self.blocks[x.operands[0]])
        elif isinstance(x, llvm.Unreachable):
            b.unreachable()
        else:
            raise UnimplementedError(what="a kernel ends a block in a way that has no form in C", found=str(x)[:60])


def _bits(kind: ir.Type) -> int:
    if isinstance(kind, ir.IntType):
        return int(kind.width)
    return 32 if isinstance(kind, ir.FloatType) else 64


def _least(align: int | None, kind: ir.Type) -> int | None:
    """Return the alignment of a lane. align: of the vector."""
    if align is None or isinstance(kind, ir.PointerType):
        return align
    return min(align, max(1, _bits(kind) // 8))

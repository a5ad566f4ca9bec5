"""The control flow graph of a function: order, dominators, loops; and the uses of its values.

Lives here: `ControlFlowGraph`, `ValueUses`.  Not here: the C text (functions.py).

All functions are generated from structured Python, so every loop has one entry; `ControlFlowGraph` refuses others.
Reverse postorder and dominators: K. Cooper, T. Harvey, K. Kennedy, A simple, fast dominance algorithm, 2001.
"""

from __future__ import annotations

from collections import Counter

from llvmlite import ir
from llvmlite.ir import instructions as llvm

from ...core.errors import InternalError


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
    definition. outliving: values that are used outside of the loop of their definition.
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
        live = self._live()
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
        """Return the instructions that the result or the side effects of the function depend on."""
        live: set[ir.Value] = set()
        pending = [
            x
            for block in self.graph.order
            for x in block.instructions
            if isinstance(x, llvm.Terminator | llvm.StoreInstr)
            or (isinstance(x, llvm.CallInstr) and isinstance(x.type, ir.VoidType))
        ]
        while pending:
            x = pending.pop()
            if x not in live:
                live.add(x)
                pending += operands_of(x)
        return live

    def _use(self, value: ir.Value, block: ir.Block) -> None:
        self.count[value] += 1
        self.where.setdefault(value, set()).add(block)


def operands_of(x: ir.Instruction) -> list[ir.Instruction]:
    """Return the instructions whose values an instruction reads."""
    values = [value for value, _ in x.incomings] if isinstance(x, llvm.PhiInstr) else x.operands
    return [value for value in values if isinstance(value, llvm.Instruction)]

"""Basic blocks of a function as a graph: order, dominators, loops.

Lives here: `Blocks`.  Not here: writing them (functions.py).

Every function here came of structured Python, so every loop has one entrance; `Blocks` refuses others. Reverse
postorder and dominators: K. Cooper, T. Harvey, K. Kennedy, A simple, fast dominance algorithm, 2001.
"""

from __future__ import annotations

from llvmlite import ir

from ...core.errors import InternalError


def targets(block: ir.Block) -> list[ir.Block]:
    """The blocks that control goes to from the end of this one."""
    end = block.terminator
    return [o for o in end.operands if isinstance(o, ir.Block)] if end is not None else []


class Blocks:
    """The reachable blocks of a function.

    order: in reverse postorder. parent: the immediate dominator of each. loops: by header, the loop's blocks.
    """

    def __init__(self, function: ir.Function) -> None:
        self.entry = function.blocks[0]
        self.order = self._reverse_postorder()
        self.place = {block: i for i, block in enumerate(self.order)}
        self.before: dict[ir.Block, list[ir.Block]] = {block: [] for block in self.order}
        for block in self.order:
            for target in dict.fromkeys(targets(block)):
                self.before[target].append(block)
        self.parent = self._dominators()
        self.children: dict[ir.Block, list[ir.Block]] = {block: [] for block in self.order}
        for block in self.order[1:]:
            self.children[self.parent[block]].append(block)
        self.loops = self._loops()

    def _reverse_postorder(self) -> list[ir.Block]:
        found: list[ir.Block] = []
        seen = {self.entry}
        stack = [(self.entry, iter(targets(self.entry)))]
        while stack:
            block, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                found.append(block)
                stack.pop()
            elif following not in seen:
                seen.add(following)
                stack.append((following, iter(targets(following))))
        return found[::-1]

    def _dominators(self) -> dict[ir.Block, ir.Block]:
        parent: dict[ir.Block, ir.Block] = {self.entry: self.entry}
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                known = [p for p in self.before[block] if p in parent]
                found = known[0]
                for other in known[1:]:
                    found = self._common(parent, found, other)
                if parent.get(block) is not found:
                    parent[block], changed = found, True
        return parent

    def _common(self, parent: dict[ir.Block, ir.Block], a: ir.Block, b: ir.Block) -> ir.Block:
        while a is not b:
            while self.place[a] > self.place[b]:
                a = parent[a]
            while self.place[b] > self.place[a]:
                b = parent[b]
        return a

    def dominates(self, a: ir.Block, b: ir.Block) -> bool:
        """Whether all ways to b go through a."""
        while self.place[b] > self.place[a]:
            b = self.parent[b]
        return a is b

    def is_back(self, source: ir.Block, target: ir.Block) -> bool:
        """Whether this way leads back to where a loop begins."""
        return self.place[target] <= self.place[source]

    def joins(self, block: ir.Block) -> bool:
        """Whether several ways lead here, not counting those back to a loop's beginning."""
        return sum(not self.is_back(p, block) for p in self.before[block]) > 1

    def _loops(self) -> dict[ir.Block, set[ir.Block]]:
        found: dict[ir.Block, set[ir.Block]] = {}
        for source in self.order:
            for header in targets(source):
                if not self.is_back(source, header):
                    continue
                if not self.dominates(header, source):
                    raise InternalError(what="a loop of a kernel has two entrances", found=header.name)
                inside = found.setdefault(header, {header})
                stack = [source]
                while stack:
                    block = stack.pop()
                    if block not in inside:
                        inside.add(block)
                        stack.extend(self.before[block])
        return found

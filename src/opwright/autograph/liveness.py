"""Which variables are needed after each statement, so that a branch's temporaries are no state of the `if`.

Lives here: the backward walk over structured code, after jumps are gone; it notes on every if, for and while what the
rewriting needs (`Facts`).  Not here: what one statement reads and writes (activity.py).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .activity import FUNCTIONS, Effects, index_names, support

Names = frozenset[str]


@dataclass
class Facts:
    """Of one statement. state: variables it may change that are read later (or, in a loop, in the next round), sorted.

    kept: further ones that one branch changes and another reads: each branch must find them as they were.
    composites: text -> node of attributes and items it writes. containers: text -> node of dicts and lists whose items
    it may change otherwise. bound: all names its blocks bind, which they must
    declare. grows: symbols appended to. target: names that a loop's head binds each round.
    """

    state: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    composites: dict[str, Any] = field(default_factory=dict)
    containers: dict[str, Any] = field(default_factory=dict)
    bound: Names = frozenset()
    grows: set[str] = field(default_factory=set)
    target: Names = frozenset()


class Liveness:
    """The walk. always: names that are needed everywhere (global, nonlocal). functions: local functions' effects."""

    def __init__(self, always: set[str], functions: dict[str, Effects], own: set[str]) -> None:
        self._always, self._functions, self._own = frozenset(always), functions, own
        self._found: dict[int, tuple[Any, Effects]] = {}  # by node: loops are walked over until nothing changes

    def block(self, statements: list[Any], after: Names) -> Names:
        """The names needed before these statements, where `after` are needed behind them."""
        live = after
        for statement in reversed(statements):
            live = self.statement(statement, live)
        return live

    def _of(self, nodes: Any) -> Effects:
        """What a node or a list of nodes does; of a node it is found once, and not to be changed."""
        if not isinstance(nodes, ast.AST):
            return Effects(self._functions).add(nodes)
        kept = self._found.get(id(nodes))
        if kept is None:
            kept = self._found[id(nodes)] = nodes, Effects(self._functions).add(nodes)
        return kept[1]

    def statement(self, node: Any, after: Names) -> Names:
        """The names needed before one statement; notes Facts on it and on those inside."""
        if type(node) is ast.If:
            test = self._of(node.test)
            before = self.block(node.body, after) | self.block(node.orelse, after)
            node.facts = self._facts([node.body, node.orelse], before, after | self._always, False)  # type: ignore[attr-defined]
            return (before - test.writes) | test.reads
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node, after)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            items = self._of([i.context_expr for i in node.items])
            targets = self._of([i.optional_vars for i in node.items if i.optional_vars is not None])
            return ((self.block(node.body, after) - targets.writes) | targets.reads | items.reads) - items.writes
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self._try(node, after)
        if isinstance(node, ast.Match):
            subject = self._of(node.subject)
            before = after
            for case in node.cases:
                inner = self.block(case.body, after)
                guard = self._of(case.guard)
                before |= ((inner | guard.reads) - self._of(case.pattern).writes) | self._of(case.pattern).reads
            return before | subject.reads
        effects = self._of(node)
        if isinstance(node, ast.Return):
            return self._always | effects.reads
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return (after - {getattr(node, "name", "")}) | effects.reads
        return (after - (effects.writes - effects.changes)) | effects.reads | effects.changes

    def _loop(self, node: Any, after: Names) -> Names:
        after |= self._always
        stops: Names = frozenset(getattr(node, "stops", ()))
        if isinstance(node, ast.While):
            head = self._of(node.test)
            written: Names = frozenset(head.writes)
            blocks = [node.body, [ast.Expr(node.test)]]
        else:
            head = Effects(self._functions)
            target = self._of(node.target)
            written = frozenset(target.writes)
            head.reads |= target.reads
            blocks = [node.body, [ast.Assign([node.target], ast.Constant(None))]]
        live = after | head.reads | stops
        while True:  # what one round needs, the round before must keep
            inner = (self.block(node.body, live) - written) | live
            if inner == live:
                break
            live = inner
        needed = self.block(node.body, live)
        node.facts = self._facts(blocks, live, live, True)
        node.facts.target = written
        if isinstance(node, ast.For):
            items = self._of(node.iter)
            return live | items.reads
        return (needed - written) | live

    def _try(self, node: Any, after: Names) -> Names:
        behind = self.block(node.finalbody, after)
        caught = behind
        for handler in node.handlers:
            inner = self.block(handler.body, behind)
            caught |= (inner - {handler.name or ""}) | self._of(handler.type).reads
        inside = self.block(node.body, self.block(node.orelse, behind) | caught)
        return inside | caught

    def _facts(self, blocks: list[Any], before: Names, after: Names, repeats: bool) -> Facts:
        """Facts of a statement with these blocks, which run one after the other (repeats) or one of them.

        An item whose index changes inside is another one each time, so its container stands for it. A container that a
        loop binds anew is a variable of the loop, a copy already.
        """
        effects = Effects()
        for statement in (s for block in blocks for s in block):
            effects.merge(self._of(statement))
        changed = (effects.writes | effects.changes) & (self._own | self._always)
        composites: dict[str, Any] = {}
        containers: dict[str, Any] = {}

        def trackable(node: Any, names: frozenset[str]) -> bool:
            inside = names if repeats else index_names(node) or frozenset()
            return names <= before and not inside & effects.writes

        pending = dict(effects.containers)
        for text, (node, names) in effects.composites.items():
            if trackable(node, names):
                composites[text] = node
            elif isinstance(node, ast.Subscript):
                pending.setdefault(ast.unparse(node.value), (node.value, support(node.value) or frozenset()))
        for text, (node, names) in pending.items():
            if trackable(node, names):
                containers[text] = node
        return Facts(
            sorted(changed & after),
            sorted((changed & before) - after),
            composites,
            containers,
            frozenset(effects.writes),
            effects.grows & (changed | set(composites)),
        )

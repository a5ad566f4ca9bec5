"""Liveness: the variables that are read after each statement.

Lives here: `LivenessAnalysis`, the backward walk over structured code, after jumps are lowered, which annotates every
if, for and while with a `StatementLiveness`; a branch's temporaries are not among the variables. Not here: the effects
of statements (static_analysis.py).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .static_analysis import FUNCTIONS, Effects, Names, index_names, support


@dataclass
class StatementLiveness:
    """The variables of one statement. state: those it may change that are read later (for a loop: or in its next
    iteration), sorted.

    kept: further ones that one branch changes and another reads: each branch starts from their values before the
    statement. composites: text -> node of attributes and items it writes. containers: text -> node of dicts and lists
    whose items it may change otherwise. written: the names that each block binds, which it must declare. grows: symbols
    appended to. target: names that a loop's head binds in each iteration.
    """

    state: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    composites: dict[str, Any] = field(default_factory=dict)
    containers: dict[str, Any] = field(default_factory=dict)
    written: tuple[Names, ...] = ()
    grows: set[str] = field(default_factory=set)
    target: Names = frozenset()


class LivenessAnalysis:
    """The backward walk. always: names that are live everywhere (global, nonlocal). functions: effects of local
    functions.
    """

    def __init__(self, always: set[str], functions: dict[str, Effects], own: set[str]) -> None:
        self._always, self._functions, self._own = frozenset(always), functions, own
        self._effects: dict[int, tuple[Any, Effects]] = {}  # by node: loops are walked twice
        self._annotates = True

    def block(self, statements: list[Any], after: Names) -> Names:
        """Return the names live before these statements, given those live after them."""
        live = after
        for statement in reversed(statements):
            live = self.statement(statement, live)
        return live

    def _effects_of(self, nodes: Any) -> Effects:
        """Return the effects of a node or a list of nodes; those of a node are cached and must not be changed."""
        if not isinstance(nodes, ast.AST):
            return Effects(self._functions).add(nodes)
        cached = self._effects.get(id(nodes))
        if cached is None:
            cached = self._effects[id(nodes)] = nodes, Effects(self._functions).add(nodes)
        return cached[1]

    def statement(self, node: Any, after: Names) -> Names:
        """Return the names live before one statement; annotate it and the statements inside."""
        if type(node) is ast.If:
            test = self._effects_of(node.test)
            before = self.block(node.body, after) | self.block(node.orelse, after)
            if self._annotates:
                node.liveness = self._liveness_of([node.body, node.orelse], before, after | self._always, False)  # type: ignore[attr-defined]
            return (before - test.writes) | test.reads
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node, after)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            items = self._effects_of([i.context_expr for i in node.items])
            targets = self._effects_of([i.optional_vars for i in node.items if i.optional_vars is not None])
            return ((self.block(node.body, after) - targets.writes) | targets.reads | items.reads) - items.writes
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self._try(node, after)
        if isinstance(node, ast.Match):
            subject = self._effects_of(node.subject)
            before = after
            for case in node.cases:
                inner = self.block(case.body, after)
                guard = self._effects_of(case.guard)
                before |= ((inner | guard.reads) - self._effects_of(case.pattern).writes) | self._effects_of(
                    case.pattern
                ).reads
            return before | subject.reads
        effects = self._effects_of(node)
        if isinstance(node, ast.Return):
            return self._always | effects.reads
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return (after - {getattr(node, "name", "")}) | effects.reads
        return (after - (effects.writes - effects.changes)) | effects.reads | effects.changes

    def _loop(self, node: Any, after: Names) -> Names:
        after |= self._always
        stops: Names = frozenset(getattr(node, "stops", ()))
        if isinstance(node, ast.While):
            head = self._effects_of(node.test)
            bound: Names = frozenset(head.writes)
            blocks = [node.body, [ast.Expr(node.test)]]
        else:
            head = Effects(self._functions)
            target = self._effects_of(node.target)
            bound = frozenset(target.writes)
            head.reads |= target.reads
            blocks = [node.body, [ast.Assign([node.target], ast.Constant(None))]]
        live = after | head.reads | stops
        # An iteration's reads are live at the end of the one before. Statements add names and remove names, the same
        # for any names that are live after them, so that one walk of the body finds them all.
        annotates, self._annotates = self._annotates, False
        live |= self.block(node.body, live) - bound
        self._annotates = annotates
        if annotates:
            self.block(node.body, live)
            liveness = self._liveness_of(blocks, live, live, True)
            liveness.target = bound
            annotated: Any = node
            annotated.liveness = liveness
        return live | self._effects_of(node.iter).reads if isinstance(node, ast.For) else live

    def _try(self, node: Any, after: Names) -> Names:
        behind = self.block(node.finalbody, after)
        caught = behind
        for handler in node.handlers:
            inner = self.block(handler.body, behind)
            caught |= (inner - {handler.name or ""}) | self._effects_of(handler.type).reads
        inside = self.block(node.body, self.block(node.orelse, behind) | caught)
        return inside | caught

    def _liveness_of(self, blocks: list[Any], before: Names, after: Names, repeats: bool) -> StatementLiveness:
        """Return the liveness of a statement with these blocks, which run one after the other (repeats) or
        alternatively.

        An item whose index changes inside is a different one each time, so its container represents it. A container
        that a loop rebinds is a variable of the loop, and already copied.
        """
        effects, written = Effects(), []
        for block in blocks:
            of_statements = [self._effects_of(statement) for statement in block]
            written.append(frozenset[str]().union(*(e.writes for e in of_statements)))
            for of_statement in of_statements:
                effects.merge(of_statement)
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
        return StatementLiveness(
            sorted(changed & after),
            sorted((changed & before) - after),
            composites,
            containers,
            tuple(written),
            effects.grows & (changed | set(composites)),
        )

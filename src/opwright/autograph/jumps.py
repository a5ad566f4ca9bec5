"""Lower break, continue and return to structured control flow and flags.

Lives here: the lowering, statement by statement.  Not here: rewriting the structure (statements.py).

A jump at the end of one branch of an `if` needs no flag: the statements after the `if` move into the other branch,

    if a:                    if a:
        return x      ->         retval__ = x
    y = ...                  else:
    return y                     y = ...
                                 retval__ = y

Otherwise flags record that a jump has happened: the statements after it are guarded by `if not flag`, and loops test
their flags before each iteration (`node.stops`). Flags that are never read are removed.
"""

from __future__ import annotations

import ast
from typing import Any

from .handlers import is_flag
from .source import Node, children, nodes, own_nodes
from .static_analysis import FUNCTIONS

LOOPS = (ast.For, ast.While)
_TRY = (ast.Try, ast.TryStar)
JUMPS = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}


def with_location(new: Node, where: Any) -> Node:
    """Set the location of every new node to `where`'s: on one line, for a statement its head; return `new`."""
    head = getattr(where, "test", None) or getattr(where, "iter", None) or where
    same = where.lineno == head.end_lineno
    end = head.end_col_offset if same and head.end_col_offset > where.col_offset else where.col_offset + 1
    pending: list[Any] = [new]
    while pending:
        node = pending.pop()
        if "lineno" in node._attributes:
            if getattr(node, "lineno", None) is not None:
                if node is not new:
                    continue  # has a location, as have its children
            else:
                node.lineno = node.end_lineno = (
                    where.lineno
                )  # a call that spans lines would be reported on the last one
                node.col_offset, node.end_col_offset = where.col_offset, end
        pending += children(node)
    return new


def load(name: str) -> ast.Name:
    """Return a node that reads a variable."""
    return ast.Name(name, ast.Load())


def assign(name: str, value: Any, where: Any) -> ast.Assign:
    """Return the node of `name = value`."""
    return with_location(ast.Assign([ast.Name(name, ast.Store())], value, type_comment=None), where)


class _LoopFlags:
    """The names of one loop's flags."""

    def __init__(self, number: int) -> None:
        self.flags = {"break": f"break_{number}__", "continue": f"continue_{number}__"}


class JumpLowering:
    """The lowering of one function's body. returning: `return` is lowered to a flag.

    After `run`, flag and value are the names of its two variables. names: all names in use.
    """

    def __init__(self, names: set[str]) -> None:
        self._names_in_use = names
        self._loops: list[_LoopFlags] = []
        self._count = 0

    def _unique(self, stem: str) -> str:
        name, k = f"{stem}__", 1
        while name in self._names_in_use:
            name, k = f"{stem}_{k}__", k + 1
        self._names_in_use.add(name)
        return name

    def run(self, node: Any) -> None:
        """Rewrite the body of a function definition in place."""
        body = node.body
        own = own_nodes(body)
        moved = [inner for inner in own if _move_assigning_test(inner)]
        if moved:
            own = own_nodes(body)
        returns = [n for n in own if isinstance(n, ast.Return)]
        self.returning = not all(r in body for r in returns) and any(
            isinstance(n, (ast.If, *LOOPS)) and any(isinstance(m, ast.Return) for m in own_nodes([n])) for n in own
        )
        self.valued = any(r.value is not None and not _is_none(r.value) for r in returns)
        self.flag, self.value = self._unique("do_return"), self._unique("retval")
        always = _always_jumps(body)
        new = self.block(body)
        if self.returning:
            head, tail = body[0], body[-1]
            new.insert(0, assign(self.flag, ast.Constant(False), head))
            if self.valued:
                new.insert(0, assign(self.value, ag("NOT_RETURNED"), head))
                result = load(self.value) if always else ag_call("returned", load(self.value), load(self.flag))
                where = returns[0] if returns else tail
                new.append(with_location(ast.Return(result), where))
        lowered = self.returning or any(isinstance(n, (ast.Break, ast.Continue)) for n in own)
        node.body = _without_unread_flags(new) if lowered else new

    # ---- blocks -------------------------------------------------------------------------------------------------

    def block(self, statements: list[Any]) -> list[Any]:
        """Return the lowered statements, without unreachable ones."""
        result: list[Any] = []
        for i, statement in enumerate(statements):
            remaining = statements[i + 1 :]
            exits = self._exits(statement)
            if not exits:
                result.extend(self._without_jump(statement))
                continue
            if isinstance(statement, tuple(JUMPS)):
                result.extend(self._jump(statement))
                return result
            if isinstance(statement, ast.If):
                first, second = _always_jumps(statement.body), _always_jumps(statement.orelse)
                if first or second:
                    body = statement.body if first else statement.body + remaining
                    orelse = statement.orelse if second else statement.orelse + remaining
                    new = ast.If(statement.test, self._block_or_pass(body, statement), self.block(orelse))
                    result.append(ast.copy_location(new, statement))
                    return result
            always = _always_jumps([statement])
            result.extend(self._compound(statement))
            if always:
                return result
            if remaining:
                flags = self._flags_of(exits)
                result.append(self._guard(flags, self.block(remaining), remaining[0]))
            return result
        return result

    def _block_or_pass(self, statements: list[Any], where: Any) -> list[Any]:
        return self.block(statements) or [ast.copy_location(ast.Pass(), where)]

    def _guard(self, flags: list[str], body: list[Any], where: Any) -> ast.If:
        test: Any = load(flags[0]) if len(flags) == 1 else ast.BoolOp(ast.Or(), [load(f) for f in flags])
        guard = ast.If(ast.UnaryOp(ast.Not(), test), body or [ast.Pass()], [])
        guard.guards = flags  # type: ignore[attr-defined]  # for statements.py
        return with_location(guard, where)

    def _flags_of(self, exits: set[str]) -> list[str]:
        order = ("return", "break", "continue")
        return [self.flag if k == "return" else self._loops[-1].flags[k] for k in order if k in exits]

    def _without_jump(self, statement: Any) -> list[Any]:
        """Lower a statement that no jump leaves; loops inside it may have jumps of their own."""
        if isinstance(statement, (ast.If, ast.With, ast.Match, *_TRY, *LOOPS)):
            return self._compound(statement)
        return [statement]

    def _jump(self, statement: Any) -> list[Any]:
        if isinstance(statement, ast.Return):
            if not self.returning:
                return [statement]
            new: list[ast.stmt] = [assign(self.flag, ast.Constant(True), statement)]
            if self.valued:
                value = statement.value or ast.copy_location(ast.Constant(None), statement)
                new.insert(0, assign(self.value, value, statement))
            elif statement.value is not None:
                new.insert(0, ast.copy_location(ast.Expr(statement.value), statement))
            return new
        flag = self._loops[-1].flags[JUMPS[type(statement)]]
        return [assign(flag, ast.Constant(True), statement)]

    def _compound(self, statement: Any) -> list[Any]:
        if isinstance(statement, LOOPS):
            return self._loop(statement)
        if isinstance(statement, ast.Match):
            for case in statement.cases:
                case.body = self._block_or_pass(case.body, statement)
        elif isinstance(statement, _TRY):
            body_exits = self._exits_of(statement.body)
            if statement.orelse:
                orelse = self._block_or_pass(statement.orelse, statement)
                statement.orelse = (
                    [self._guard(self._flags_of(body_exits), orelse, orelse[0])] if body_exits else orelse
                )
            statement.body = self._block_or_pass(statement.body, statement)
            for handler in statement.handlers:
                handler.body = self._block_or_pass(handler.body, handler)
            statement.finalbody = self.block(statement.finalbody)
        elif isinstance(statement, ast.If):
            statement.body = self._block_or_pass(statement.body, statement)
            statement.orelse = self.block(statement.orelse)
        else:
            statement.body = self._block_or_pass(statement.body, statement)
        return [statement]

    def _loop(self, statement: Any) -> list[Any]:
        self._count += 1
        loop = _LoopFlags(self._count)
        exits = self._exits_of(statement.body)
        orelse = self.block(statement.orelse)
        self._loops.append(loop)
        body = self._block_or_pass(statement.body, statement)
        self._loops.pop()
        before: list[Any] = []
        stops = []
        if "return" in exits:
            stops.append(self.flag)
        if "break" in exits:
            stops.append(loop.flags["break"])
            before.append(assign(loop.flags["break"], ast.Constant(False), statement))
        if "continue" in exits:
            body.insert(0, assign(loop.flags["continue"], ast.Constant(False), statement.body[0]))
        statement.body, statement.orelse = body, []
        statement.stops = stops
        after: list[Any] = []
        if orelse:
            after = [self._guard(stops, orelse, orelse[0])] if stops else orelse
        return [*before, statement, *after]

    # ---- exits --------------------------------------------------------------------------------------------------

    def _exits_of(self, statements: list[Any]) -> set[str]:
        return set().union(*(self._exits(s) for s in statements)) if statements else set()

    def _exits(self, statement: Any) -> set[str]:
        """Return the kinds of jump that may leave this statement."""
        kind = JUMPS.get(type(statement))
        if kind is not None:
            return {kind}
        if isinstance(statement, LOOPS):
            return (self._exits_of(statement.body) & {"return"}) | self._exits_of(statement.orelse)
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            return set()
        kinds: set[str] = set()
        for child in children(statement):
            if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                kinds |= self._exits(child)
        return kinds if self.returning else kinds - {"return"}


def _move_assigning_test(node: Any) -> bool:
    """Rewrite `while (x := f()): ...` to `while True: if not (x := f()): break ...`, as the body may assign; return
    whether the node is such a loop."""
    if not isinstance(node, ast.While) or node.orelse:
        return False
    assigns = any(isinstance(n, ast.NamedExpr) for n in nodes(node.test))
    if assigns:
        stop = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
        node.body.insert(0, with_location(stop, node.test))
        node.test = ast.copy_location(ast.Constant(True), node.test)
    return assigns


def _is_none(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _always_jumps(statements: list[Any]) -> bool:
    """Return whether control never reaches the end of these statements except by an exception."""
    for s in statements:
        if isinstance(s, (*JUMPS, ast.Raise)):
            return True
        if isinstance(s, ast.If) and s.orelse and _always_jumps(s.body) and _always_jumps(s.orelse):
            return True
        if isinstance(s, ast.With) and _always_jumps(s.body):
            return True
        if isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and s.test.value and not _breaks(s.body):
            return True
        if isinstance(s, _TRY) and (
            _always_jumps(s.finalbody)
            or ((_always_jumps(s.body) or _always_jumps(s.orelse)) and all(_always_jumps(h.body) for h in s.handlers))
        ):
            return True
    return False


def _breaks(body: list[Any]) -> bool:
    """Return whether a `break` in a loop's body ends that loop."""
    for s in body:
        if isinstance(s, ast.Break):
            return True
        if isinstance(s, LOOPS):
            if _breaks(s.orelse):
                return True
        elif not isinstance(s, (*FUNCTIONS, ast.ClassDef)):
            inner = [c for c in children(s) if isinstance(c, (ast.stmt, ast.ExceptHandler, ast.match_case))]
            if _breaks(inner):
                return True
    return False


def _without_unread_flags(body: list[Any]) -> list[Any]:
    """Return the statements without assignments to flags that are never read."""
    all_nodes = nodes(*body)
    read = {n.id for n in all_nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    read.update(stop for n in all_nodes for stop in getattr(n, "stops", ()))

    def prune(statements: list[Any]) -> list[Any]:
        result = []
        for s in statements:
            if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, bool):
                name = getattr(s.targets[0], "id", "")
                if is_flag(name) and name not in read:
                    continue
            if not isinstance(s, (*FUNCTIONS, ast.ClassDef)):
                for field in ("body", "orelse", "finalbody"):
                    inner = getattr(s, field, None)
                    if inner:
                        setattr(
                            s, field, prune(inner) or ([] if field != "body" else [with_location(ast.Pass(), inner[0])])
                        )
                for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
                    part.body = prune(part.body) or [with_location(ast.Pass(), part.body[0])]
            result.append(s)
        return result

    return prune(body)


def ag(name: str) -> ast.Attribute:
    """Return the node ag__.name: one of the run-time operators."""
    return ast.Attribute(load("ag__"), name, ast.Load())


def ag_call(name: str, *args: Any) -> ast.Call:
    """Return the node ag__.name(*args)."""
    return ast.Call(ag(name), list(args), [])

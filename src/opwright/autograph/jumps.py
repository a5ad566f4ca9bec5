"""break, continue and return rewritten to plain structure and flags.

Lives here: the rewriting, statement by statement.  Not here: what becomes of the structure (statements.py).

A jump at the end of one branch of an `if` needs no flag: what follows the `if` moves into the other branch,

    if a:                    if a:
        return x      ->         retval__ = x
    y = ...                  else:
    return y                     y = ...
                                 retval__ = y

and where that is not enough, flags say that a jump has happened: what follows is guarded by `if not flag`, and loops
ask their flags before each round (`node.stops`). Flags that nobody reads are taken out again.
"""

from __future__ import annotations

import ast
from typing import Any

from .activity import FUNCTIONS, own_nodes
from .handlers import is_flag
from .source import children, nodes

LOOPS = (ast.For, ast.While)
_TRY = (ast.Try, ast.TryStar)
JUMPS = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}


def at(new: Any, where: Any) -> Any:
    """`new` with every node that has no position placed where `where` is: on one line, that of a statement's head."""
    head = getattr(where, "test", None) or getattr(where, "iter", None) or where
    same = where.lineno == head.end_lineno
    end = head.end_col_offset if same and head.end_col_offset > where.col_offset else where.col_offset + 1
    pending = [new]
    while pending:
        node = pending.pop()
        if "lineno" in node._attributes:
            if getattr(node, "lineno", None) is not None:
                if node is not new:
                    continue  # placed already, with what is in it
            else:
                node.lineno = node.end_lineno = where.lineno  # of several, a call would be placed on the last one
                node.col_offset, node.end_col_offset = where.col_offset, end
        pending += children(node)
    return new


def load(name: str) -> ast.Name:
    """A reading of a variable."""
    return ast.Name(name, ast.Load())


def assign(name: str, value: Any, where: Any) -> Any:
    """name = value."""
    return at(ast.Assign([ast.Name(name, ast.Store())], value, type_comment=None), where)


class _Loop:
    def __init__(self, number: int) -> None:
        self.flags = {"break": f"break_{number}__", "continue": f"continue_{number}__"}


class Lowering:
    """The rewriting of one function's body. returning: whether `return` is rewritten in it.

    After `run`, flag and value are the names of its two variables.
    """

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._loops: list[_Loop] = []
        self._count = 0

    def _unique(self, stem: str) -> str:
        name, k = f"{stem}__", 1
        while name in self._taken:
            name, k = f"{stem}_{k}__", k + 1
        self._taken.add(name)
        return name

    def run(self, node: Any) -> None:
        """Rewrite the body of a function definition in place."""
        body = node.body
        for inner in own_nodes(body):
            _move_assigning_test(inner)
        own = own_nodes(body)
        returns = [n for n in own if isinstance(n, ast.Return)]
        self.returning = bool(returns) and any(
            isinstance(n, (ast.If, *LOOPS)) and any(isinstance(m, ast.Return) for m in own_nodes([n])) for n in own
        )
        self.valued = any(r.value is not None and not _is_none(r.value) for r in returns)
        self.flag, self.value = self._unique("do_return"), self._unique("retval")
        always = _always(body)
        new = self.block(body)
        if self.returning:
            head, tail = body[0], body[-1]
            new.insert(0, assign(self.flag, ast.Constant(False), head))
            if self.valued:
                new.insert(0, assign(self.value, ag("NOT_RETURNED"), head))
                result = load(self.value) if always else ag_call("returned", load(self.value), load(self.flag))
                where = returns[0] if returns else tail
                new.append(at(ast.Return(result), where))
        node.body = _without_unread(new)

    # ---- blocks -------------------------------------------------------------------------------------------------

    def block(self, statements: list[Any]) -> list[Any]:
        """These statements, with what cannot be reached left out."""
        done: list[Any] = []
        for i, statement in enumerate(statements):
            rest = statements[i + 1 :]
            exits = self._exits(statement)
            if not exits:
                done.extend(self._plain(statement))
                continue
            if isinstance(statement, tuple(JUMPS)):
                done.extend(self._jump(statement))
                return done
            if isinstance(statement, ast.If):
                first, second = _always(statement.body), _always(statement.orelse)
                if first or second:
                    body = statement.body if first else statement.body + rest
                    orelse = statement.orelse if second else statement.orelse + rest
                    new = ast.If(statement.test, self._filled(body, statement), self.block(orelse))
                    done.append(ast.copy_location(new, statement))
                    return done
            always = _always([statement])
            done.extend(self._compound(statement))
            if always:
                return done
            if rest:
                flags = self._names(exits)
                done.append(self._guard(flags, self.block(rest), rest[0]))
            return done
        return done

    def _filled(self, statements: list[Any], where: Any) -> list[Any]:
        return self.block(statements) or [ast.copy_location(ast.Pass(), where)]

    def _guard(self, flags: list[str], body: list[Any], where: Any) -> Any:
        test: Any = load(flags[0]) if len(flags) == 1 else ast.BoolOp(ast.Or(), [load(f) for f in flags])
        guard = ast.If(ast.UnaryOp(ast.Not(), test), body or [ast.Pass()], [])
        guard.guards = flags  # type: ignore[attr-defined]  # for statements.py
        return at(guard, where)

    def _names(self, exits: set[str]) -> list[str]:
        order = ("return", "break", "continue")
        return [self.flag if k == "return" else self._loops[-1].flags[k] for k in order if k in exits]

    def _plain(self, statement: Any) -> list[Any]:
        """A statement that nothing jumps out of; loops inside it may still have jumps of their own."""
        if isinstance(statement, (ast.If, ast.With, ast.Match, *_TRY, *LOOPS)):
            return self._compound(statement)
        return [statement]

    def _jump(self, statement: Any) -> list[Any]:
        if isinstance(statement, ast.Return):
            if not self.returning:
                return [statement]
            new = [assign(self.flag, ast.Constant(True), statement)]
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
                case.body = self._filled(case.body, statement)
        elif isinstance(statement, _TRY):
            body_exits = self._exits_of(statement.body)
            if statement.orelse:
                orelse = self._filled(statement.orelse, statement)
                statement.orelse = [self._guard(self._names(body_exits), orelse, orelse[0])] if body_exits else orelse
            statement.body = self._filled(statement.body, statement)
            for handler in statement.handlers:
                handler.body = self._filled(handler.body, handler)
            statement.finalbody = self.block(statement.finalbody)
        elif isinstance(statement, ast.If):
            statement.body = self._filled(statement.body, statement)
            statement.orelse = self.block(statement.orelse)
        else:
            statement.body = self._filled(statement.body, statement)
        return [statement]

    def _loop(self, statement: Any) -> list[Any]:
        self._count += 1
        loop = _Loop(self._count)
        exits = self._exits_of(statement.body)
        orelse = self.block(statement.orelse)
        self._loops.append(loop)
        body = self._filled(statement.body, statement)
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
        after = []
        if orelse:
            after = [self._guard(stops, orelse, orelse[0])] if stops else orelse
        return [*before, statement, *after]

    # ---- what jumps -----------------------------------------------------------------------------------------------

    def _exits_of(self, statements: list[Any]) -> set[str]:
        return set().union(*(self._exits(s) for s in statements)) if statements else set()

    def _exits(self, statement: Any) -> set[str]:
        """The kinds of jump that may leave this statement."""
        kind = JUMPS.get(type(statement))
        if kind is not None:
            return {kind}
        if isinstance(statement, LOOPS):
            return (self._exits_of(statement.body) & {"return"}) | self._exits_of(statement.orelse)
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            return set()
        found: set[str] = set()
        for child in children(statement):
            if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                found |= self._exits(child)
        return found if self.returning else found - {"return"}


def _move_assigning_test(node: Any) -> None:
    """`while (x := f()): ...` as `while True: if not (x := f()): break ...`: what assigns belongs to the body."""
    if not isinstance(node, ast.While) or node.orelse:
        return
    if any(isinstance(n, ast.NamedExpr) for n in nodes(node.test)):
        stop = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
        node.body.insert(0, at(stop, node.test))
        node.test = ast.copy_location(ast.Constant(True), node.test)


def _is_none(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _always(statements: list[Any]) -> bool:
    """Whether control never reaches the end of these statements other than by an exception."""
    for s in statements:
        if isinstance(s, (*JUMPS, ast.Raise)):
            return True
        if isinstance(s, ast.If) and s.orelse and _always(s.body) and _always(s.orelse):
            return True
        if isinstance(s, ast.With) and _always(s.body):
            return True
        if isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and s.test.value and not _breaks(s.body):
            return True
        if isinstance(s, _TRY) and (
            _always(s.finalbody)
            or ((_always(s.body) or _always(s.orelse)) and all(_always(h.body) for h in s.handlers))
        ):
            return True
    return False


def _breaks(body: list[Any]) -> bool:
    """Whether a `break` in a loop's body ends that loop."""
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


def _without_unread(body: list[Any]) -> list[Any]:
    """Without assignments to flags that are never read."""
    all_nodes = nodes(*body)
    read = {n.id for n in all_nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    read.update(stop for n in all_nodes for stop in getattr(n, "stops", ()))

    def prune(statements: list[Any]) -> list[Any]:
        kept = []
        for s in statements:
            if isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, bool):
                name = getattr(s.targets[0], "id", "")
                if is_flag(name) and name not in read:
                    continue
            if not isinstance(s, (*FUNCTIONS, ast.ClassDef)):
                for field in ("body", "orelse", "finalbody"):
                    inner = getattr(s, field, None)
                    if inner:
                        setattr(s, field, prune(inner) or ([] if field != "body" else [at(ast.Pass(), inner[0])]))
                for part in (*getattr(s, "handlers", ()), *getattr(s, "cases", ())):
                    part.body = prune(part.body) or [at(ast.Pass(), part.body[0])]
            kept.append(s)
        return kept

    return prune(body)


def ag(name: str) -> ast.Attribute:
    """ag__.name: one of the run-time operators."""
    return ast.Attribute(load("ag__"), name, ast.Load())


def ag_call(name: str, *args: Any) -> ast.Call:
    """ag__.name(*args)."""
    return ast.Call(ag(name), list(args), [])

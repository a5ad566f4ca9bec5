"""A function's tree rewritten so that its control flow goes through the run-time operators.

Lives here: statements - `if`, `while`, `for`, `assert`, `return` - and nested functions.
Not here: jumps (jumps.py), which variables count (liveness.py), expressions (expressions.py), what the operators do
(operators.py).

    if x > 0:                         def if_body():
        y = x                             nonlocal y
    else:                                 y = x
        y = -x                        def else_body():
                                          nonlocal y
                                          y = -x
                                      ag__.if_stmt(x > 0, if_body, else_body, lambda: (y,))

Every new node stands where the user's was, so that errors and debuggers show the user's lines. The lambda names the
state: its cells are the variables.
"""

from __future__ import annotations

import ast
import contextlib
from typing import Any

from .activity import Scope, local_functions, own_nodes
from .expressions import Expressions, lazy
from .jumps import Lowering, ag_call, at, load
from .liveness import Facts, Liveness
from .source import Unsupported, nodes

SUFFIX = "_ag"  # of the names of functions made here; see conversion.renamed
_LEFT = frozenset({"do_not_convert", "kernel"})  # decorators that say: this function's text is not ours to change


def rewrite(node: Any, has_class: bool) -> Any:
    """Rewrite a FunctionDef or Lambda, in place; gives it. Decorators, defaults and annotations are its caller's.

    has_class: whether `super()` can mean something in it.
    raises Unsupported naming what cannot be rewritten
    """
    taken = {n.id if isinstance(n, ast.Name) else n.arg for n in nodes(node) if isinstance(n, (ast.Name, ast.arg))}
    return _Function(taken, [0]).run(node, has_class)


class _Function:
    """One function. taken: all names that must not be given to something new; numbers: the last one used."""

    def __init__(self, taken: set[str], numbers: list[int]) -> None:
        self._taken, self._numbers = taken, numbers

    def run(self, node: Any, has_class: bool) -> Any:
        if isinstance(node, ast.AsyncFunctionDef):
            raise Unsupported("it is a coroutine")
        body = node.body if isinstance(node.body, list) else [node.body]
        for child in own_nodes(body):
            if isinstance(child, (ast.Yield, ast.YieldFrom)):
                raise Unsupported("it is a generator")
            if isinstance(child, ast.Await):
                raise Unsupported("it awaits")
        first = node.args.posonlyargs + node.args.args
        self._expressions = Expressions(first[0].arg if first and has_class else None)
        self._has_class = has_class
        if isinstance(node, ast.Lambda):
            node.body = self._expressions.visit(node.body)
            return node
        documented = ast.get_docstring(node, clean=False) is not None
        head, node.body = (node.body[:1], node.body[1:]) if documented else ([], node.body)
        if not node.body:
            node.body = [at(ast.Pass(), node)]
        Lowering(self._taken).run(node)
        scope = Scope(node)
        self._scope = scope
        self._bound: set[str] = set()
        always = scope.declared_global | scope.declared_nonlocal
        Liveness(always, local_functions(node.body), scope.locals | always).block(node.body, frozenset(always))
        new = self._block(node.body)
        free = sorted(self._bound & scope.locals - scope.parameters)
        if free:  # names bound only inside the new functions are still this function's
            binding = ast.Assign([ast.Name(n, ast.Store()) for n in free], ast.Constant(None), type_comment=None)
            new.insert(0, at(ast.If(ast.Constant(False), [binding], []), node.body[0] if node.body else node))
        node.body = [*head, *new]
        return node

    # ---- statements ---------------------------------------------------------------------------------------------

    def _block(self, statements: list[Any]) -> list[Any]:
        new: list[Any] = []
        for statement in statements:
            rule = _RULES.get(type(statement))
            if rule is not None:
                new.extend(rule(self, statement))
            else:
                new.append(self._expressions.statement(statement, self._block))
        return new

    def _name(self, stem: str) -> str:
        self._numbers[0] += 1
        name = f"{stem}_{self._numbers[0]}{SUFFIX}"
        while name in self._taken:
            self._numbers[0] += 1
            name = f"{stem}_{self._numbers[0]}{SUFFIX}"
        return name

    def _made(self, stem: str, body: list[Any], facts: Facts, where: Any, argument: str | None = None) -> Any:
        """A function with this body, which binds the names of `facts` in the function around it."""
        if facts.bound:
            shared = sorted(facts.bound & self._scope.declared_global)
            outer = sorted(facts.bound - self._scope.declared_global)
            declared: list[Any] = [ast.Global(shared)] if shared else []
            if outer:
                declared.append(ast.Nonlocal(outer))
                self._bound.update(outer)
            body = [*(at(d, where) for d in declared), *body]
        arguments = ast.arguments([], [ast.arg(argument, None)] if argument else [], None, [], [], None, [])
        function = ast.FunctionDef(self._name(stem), arguments, body, [], None, type_comment=None)
        function.type_params = []  # type: ignore[attr-defined]  # 3.12
        return at(function, where)

    def _state(self, facts: Facts, where: Any) -> tuple[list[Any], list[Any]]:
        """Statements and the arguments that give an operator the variables of a statement."""
        before: list[Any] = []
        mentioned = ast.Tuple([load(n) for n in (*facts.state, *facts.kept)], ast.Load())
        variables: Any = ast.Lambda(ast.arguments([], [], None, [], [], None, []), mentioned)
        if not (facts.state or facts.kept):
            variables = ast.Constant(None)
        arguments = [variables]
        rows: list[Any] = []
        for text, target in sorted(facts.composites.items()):
            value = f"value_{self._numbers[0]}{SUFFIX}"
            assign = ast.Assign([_as(target, ast.Store())], load(value), type_comment=None)
            setter = self._made("set", [assign], Facts(), where, value)
            deleter = self._made("delete", [ast.Delete([_as(target, ast.Del())])], Facts(), where)
            before += [setter, deleter]
            functions = [lazy(_as(target, ast.Load())), load(setter.name), load(deleter.name)]
            rows.append(ast.Tuple([ast.Constant(text), *functions], ast.Load()))
        for text, target in sorted(facts.containers.items()):
            rows.append(ag_call("items_of", ast.Constant(f"{text}[...]"), lazy(_as(target, ast.Load()))))
        if rows:
            arguments.append(ast.Tuple(rows, ast.Load()))
        return before, arguments

    def _if(self, node: ast.If) -> list[Any]:
        facts: Facts = node.facts  # type: ignore[attr-defined]
        test = self._expressions.visit(node.test)
        bound, others = _binding(node.body), _binding(node.orelse)
        body = self._made("if_body", self._block(node.body), bound, node)
        made = [body]
        orelse: Any = ast.Constant(None)
        if node.orelse:
            other = self._made("else_body", self._block(node.orelse), others, node)
            made.append(other)
            orelse = load(other.name)
        setters, state = self._state(facts, node)
        notes = (("grows", facts.grows), ("kept", set(facts.kept)), ("guards", getattr(node, "guards", ())))
        told = [(k, _texts(v)) for k, v in notes if v]
        if told:
            state = [*_padded(state), _lazily(told, node)]
        call = ag_call("if_stmt", test, load(body.name), orelse, *state)
        return [*made, *setters, at(ast.Expr(call), node)]

    def _while(self, node: ast.While) -> list[Any]:
        facts: Facts = node.facts  # type: ignore[attr-defined]
        options, body_statements = self._options(node, facts)
        test = self._expressions.visit(_with_stops(node, node.test))
        head = self._made("loop_test", [at(ast.Return(test), node)], Facts(bound=facts.target), node.test)
        bound = _binding(node.body)
        body = self._made("loop_body", self._block(body_statements), bound, node)
        setters, state = self._state(facts, node)
        call = ag_call("while_stmt", load(head.name), load(body.name), *_padded(state), *options)
        return [head, body, *setters, at(ast.Expr(call), node)]

    def _for(self, node: ast.For) -> list[Any]:
        facts: Facts = node.facts  # type: ignore[attr-defined]
        options, body_statements = self._options(node, facts)
        item = f"item_{self._numbers[0]}{SUFFIX}"
        bind = ast.Assign([node.target], load(item), type_comment=None)
        items = self._expressions.visit(node.iter)
        first = at(bind, node.target)
        self._expressions.visit(node.target)
        bound = _binding([first, *node.body])
        body = self._made("loop_body", [first, *self._block(body_statements)], bound, node, item)
        made = [body]
        go_on: Any = ast.Constant(None)
        if getattr(node, "stops", ()):
            test = self._expressions.visit(_with_stops(node, None))
            head = self._made("loop_test", [at(ast.Return(test), node)], Facts(), node)
            made.append(head)
            go_on = load(head.name)
        setters, state = self._state(facts, node)
        call = ag_call("for_stmt", items, go_on, load(body.name), *_padded(state), *options)
        return [*made, *setters, at(ast.Expr(call), node)]

    def _options(self, node: Any, facts: Facts) -> tuple[list[Any], list[Any]]:
        """What the operator is told of a loop; the body without its call of set_loop_options."""
        keywords: list[Any] = []
        body = list(node.body)
        for i, statement in enumerate(body):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and _last_name(call.func) == "set_loop_options":
                body[i] = at(ast.Pass(), statement)
                names = ("parallel_iterations", "swap_memory", "maximum_iterations", "shape_invariants")
                given = [*zip(names, call.args), *((k.arg, k.value) for k in call.keywords)]
                for name, value in given:
                    if name is None:
                        raise Unsupported("set_loop_options is called with **")
                    if name == "shape_invariants" and isinstance(value, (ast.Tuple, ast.List)):
                        value = _by_text(value)
                    keywords.append((name, value))
                break
        if facts.grows:
            keywords.append(("grows", _texts(facts.grows)))
        if isinstance(node, ast.For):
            keywords.append(("target", ast.Constant(ast.unparse(node.target))))
        if not keywords:
            return [], body
        return [_lazily(keywords, node)], body

    def _assert(self, node: ast.Assert) -> list[Any]:
        message: Any = ast.Constant(None)
        if node.msg is not None:
            message = ast.Lambda(ast.arguments([], [], None, [], [], None, []), self._expressions.visit(node.msg))
        return [at(ast.Expr(ag_call("assert_stmt", self._expressions.visit(node.test), message)), node)]

    def _function(self, node: Any) -> list[Any]:
        """A nested function is rewritten where it stands, so that it is staged whoever calls it."""
        if isinstance(node, ast.FunctionDef) and not any(map(_leaves_alone, node.decorator_list)):
            with contextlib.suppress(Unsupported):  # a generator stays one
                _Function(self._taken, self._numbers).run(node, self._has_class)
        return [node]


def _as(target: Any, context: Any) -> Any:
    """A copy of an attribute or item as something read or written."""
    from .source import copy

    new = copy(target)
    new.ctx = context
    return new


def _padded(state: list[Any]) -> list[Any]:
    return state if len(state) == 2 else [*state, ast.Tuple([], ast.Load())]


def _texts(names: Any) -> Any:
    return ast.Tuple([ast.Constant(n) for n in sorted(names)], ast.Load())


def _lazily(items: list[tuple[str, Any]], where: Any) -> Any:
    """lambda: {name: value, ...}."""
    options = ast.Dict([ast.Constant(k) for k, _ in items], [v for _, v in items])
    return at(ast.Lambda(ast.arguments([], [], None, [], [], None, []), options), where)


def _binding(block: list[Any]) -> Facts:
    """The names that a block binds, asked before its statements are rewritten, which happens in place."""
    from .activity import Effects

    return Facts(bound=frozenset(Effects().add(block).writes))


def _with_stops(node: Any, test: Any) -> Any:
    """`not flag and ... and test`."""
    parts: list[Any] = [ast.UnaryOp(ast.Not(), load(s)) for s in getattr(node, "stops", ())]
    if test is not None:
        parts.append(test)
    if len(parts) == 1:
        return at(parts[0], node)
    return at(ast.BoolOp(ast.And(), parts), node)


def _last_name(node: Any) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _by_text(pairs: Any) -> Any:
    """[(x, shape)] as [("x", shape)]: the variable is meant, not its value now."""
    rows: list[Any] = []
    for pair in pairs.elts:
        if isinstance(pair, (ast.Tuple, ast.List)) and len(pair.elts) == 2:
            pair = ast.Tuple([ast.Constant(ast.unparse(pair.elts[0])), pair.elts[1]], ast.Load())
        rows.append(pair)
    return ast.List(rows, ast.Load())


def _leaves_alone(decorator: Any) -> bool:
    """Whether a decorator's function is not to be rewritten inside another."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if _last_name(called) in _LEFT:
        return True
    return isinstance(decorator, ast.Call) and any(
        k.arg == "autograph" and isinstance(k.value, ast.Constant) and not k.value.value for k in decorator.keywords
    )


_RULES: dict[type, Any] = {
    ast.If: _Function._if,
    ast.While: _Function._while,
    ast.For: _Function._for,
    ast.Assert: _Function._assert,
    ast.FunctionDef: _Function._function,
    ast.AsyncFunctionDef: lambda self, node: [node],
    ast.ClassDef: lambda self, node: [node],
}

"""Rewrite statements: Python's control flow becomes calls of the run-time operators.

Lives here: `if`, `while`, `for`, `assert`, annotated assignments, and nested functions.
Not here: jumps (jumps.py), which variables are state (static_analysis.py), expressions (expressions.py), what the
operators do (operators.py).

    if x > 0:                         def if_body():
        y = x                             nonlocal y
    else:                                 y = x
        y = -x                        def else_body():
                                          nonlocal y
                                          y = -x
                                      ag__.if_stmt(x > 0, if_body, else_body, lambda: (y,))

Every new node has the location of the user's, so that errors and debuggers show the user's lines. The lambda names the
state: its cells are the variables.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable
from typing import Any

from .expressions import Expressions, lazy
from .jumps import JumpLowering, ag_call, load, with_location
from .liveness import LivenessAnalysis, StatementLiveness
from .source import FunctionNode, Unsupported, copy, nodes, own_nodes
from .static_analysis import FunctionScope, Names, local_functions

SUFFIX = "_ag"  # of generated functions' names; see conversion.restore_names
_EXCLUDING_DECORATORS = frozenset({"do_not_convert", "kernel"})  # decorators of functions that are not rewritten


def rewrite(node: FunctionNode, has_class: bool) -> FunctionNode:
    """Rewrite a FunctionDef or Lambda in place and return it; the caller handles decorators, defaults and annotations.

    has_class: `super()` is meaningful in it. raises Unsupported naming what cannot be rewritten
    """
    names = {n.id if isinstance(n, ast.Name) else n.arg for n in nodes(node) if isinstance(n, (ast.Name, ast.arg))}
    return _FunctionRewriter(names, [0]).run(node, has_class)


class _FunctionRewriter:
    """The rewriter of one function. names: all names in use; numbers: the last one generated."""

    def __init__(self, names: set[str], numbers: list[int]) -> None:
        self._names_in_use, self._numbers = names, numbers

    def run(self, node: FunctionNode, has_class: bool) -> FunctionNode:
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
            node.body = [with_location(ast.Pass(), node)]
        JumpLowering(self._names_in_use).run(node)
        scope = FunctionScope(node)
        self._scope = scope
        self._bound: set[str] = set()
        always = scope.declared_global | scope.declared_nonlocal
        analysis = LivenessAnalysis(always, local_functions(scope.nodes), scope.locals | always)
        analysis.block(node.body, frozenset(always))
        new = self._block(node.body)
        free = sorted(self._bound & scope.locals - scope.parameters)
        if free:  # names bound only in generated functions remain locals of this one
            binding = ast.Assign([ast.Name(n, ast.Store()) for n in free], ast.Constant(None), type_comment=None)
            new.insert(
                0, with_location(ast.If(ast.Constant(False), [binding], []), node.body[0] if node.body else node)
            )
        node.body = [*head, *new]
        return node

    # ---- statements ---------------------------------------------------------------------------------------------

    def _block(self, statements: list[Any]) -> list[Any]:
        new: list[Any] = []
        for statement in statements:
            rule = _STATEMENTS.get(type(statement))
            if rule is not None:
                new.extend(rule(self, statement))
            else:
                new.append(self._expressions.statement(statement, self._block))
        return new

    def _name(self, stem: str) -> str:
        self._numbers[0] += 1
        name = f"{stem}_{self._numbers[0]}{SUFFIX}"
        while name in self._names_in_use:
            self._numbers[0] += 1
            name = f"{stem}_{self._numbers[0]}{SUFFIX}"
        return name

    def _define(
        self, stem: str, body: list[Any], bound: Names, where: Any, argument: str | None = None
    ) -> ast.FunctionDef:
        """Return a function with this body, whose bound names are variables of the enclosing function."""
        if bound:
            shared = sorted(bound & self._scope.declared_global)
            outer = sorted(bound - self._scope.declared_global)
            declared: list[Any] = [ast.Global(shared)] if shared else []
            if outer:
                declared.append(ast.Nonlocal(outer))
                self._bound.update(outer)
            body = [*(with_location(d, where) for d in declared), *body]
        arguments = ast.arguments([], [ast.arg(argument, None)] if argument else [], None, [], [], None, [])
        function = ast.FunctionDef(self._name(stem), arguments, body, [], None, type_comment=None)
        function.type_params = []  # type: ignore[attr-defined]  # 3.12
        return with_location(function, where)

    def _state(self, liveness: StatementLiveness, where: Any) -> tuple[list[Any], list[Any]]:
        """Return the statements and arguments that pass a statement's variables to its operator."""
        before: list[Any] = []
        mentioned = ast.Tuple([load(n) for n in (*liveness.state, *liveness.kept)], ast.Load())
        variables: Any = ast.Lambda(ast.arguments([], [], None, [], [], None, []), mentioned)
        if not (liveness.state or liveness.kept):
            variables = ast.Constant(None)
        arguments = [variables]
        rows: list[Any] = []
        for text, target in sorted(liveness.composites.items()):
            value = f"value_{self._numbers[0]}{SUFFIX}"
            assign = ast.Assign([_with_context(target, ast.Store())], load(value), type_comment=None)
            setter = self._define("set", [assign], frozenset(), where, value)
            deleter = self._define("delete", [ast.Delete([_with_context(target, ast.Del())])], frozenset(), where)
            before += [setter, deleter]
            functions = [lazy(_with_context(target, ast.Load())), load(setter.name), load(deleter.name)]
            rows.append(ast.Tuple([ast.Constant(text), *functions], ast.Load()))
        for text, target in sorted(liveness.containers.items()):
            rows.append(ag_call("items_of", ast.Constant(f"{text}[...]"), lazy(_with_context(target, ast.Load()))))
        if rows:
            arguments.append(ast.Tuple(rows, ast.Load()))
        return before, arguments

    def _if(self, node: ast.If) -> list[Any]:
        liveness: StatementLiveness = node.liveness  # type: ignore[attr-defined]
        test = self._expressions.visit(node.test)
        bound, others = liveness.written
        body = self._define("if_body", self._block(node.body), bound, node)
        definitions = [body]
        orelse: Any = ast.Constant(None)
        if node.orelse:
            other = self._define("else_body", self._block(node.orelse), others, node)
            definitions.append(other)
            orelse = load(other.name)
        setters, state = self._state(liveness, node)
        notes = (("grows", liveness.grows), ("kept", set(liveness.kept)), ("guards", getattr(node, "guards", ())))
        options = [(k, _text_tuple(v)) for k, v in notes if v]
        if options:
            state = [*_padded(state), _options_lambda(options, node)]
        call = ag_call("if_stmt", test, load(body.name), orelse, *state)
        return [*definitions, *setters, with_location(ast.Expr(call), node)]

    def _while(self, node: ast.While) -> list[Any]:
        liveness: StatementLiveness = node.liveness  # type: ignore[attr-defined]
        options, body_statements = self._options(node, liveness)
        test = self._expressions.visit(_with_stops(node, node.test))
        head = self._define("loop_test", [with_location(ast.Return(test), node)], liveness.target, node.test)
        body = self._define("loop_body", self._block(body_statements), liveness.written[0], node)
        setters, state = self._state(liveness, node)
        call = ag_call("while_stmt", load(head.name), load(body.name), *_padded(state), *options)
        return [head, body, *setters, with_location(ast.Expr(call), node)]

    def _for(self, node: ast.For) -> list[Any]:
        liveness: StatementLiveness = node.liveness  # type: ignore[attr-defined]
        options, body_statements = self._options(node, liveness)
        item = f"item_{self._numbers[0]}{SUFFIX}"
        bind = ast.Assign([node.target], load(item), type_comment=None)
        items = self._expressions.visit(node.iter)
        first = with_location(bind, node.target)
        self._expressions.visit(node.target)
        bound = liveness.written[0] | liveness.target
        body = self._define("loop_body", [first, *self._block(body_statements)], bound, node, item)
        definitions = [body]
        go_on: Any = ast.Constant(None)
        if getattr(node, "stops", ()):
            test = self._expressions.visit(_with_stops(node, None))
            head = self._define("loop_test", [with_location(ast.Return(test), node)], frozenset(), node)
            definitions.append(head)
            go_on = load(head.name)
        setters, state = self._state(liveness, node)
        call = ag_call("for_stmt", items, go_on, load(body.name), *_padded(state), *options)
        return [*definitions, *setters, with_location(ast.Expr(call), node)]

    def _options(self, node: Any, liveness: StatementLiveness) -> tuple[list[Any], list[Any]]:
        """Return the options of a loop, and its body without the call of set_loop_options."""
        keywords: list[Any] = []
        body = list(node.body)
        for i, statement in enumerate(body):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and _last_name(call.func) == "set_loop_options":
                body[i] = with_location(ast.Pass(), statement)
                names = ("parallel_iterations", "swap_memory", "maximum_iterations", "shape_invariants")
                arguments = [*zip(names, call.args), *((k.arg, k.value) for k in call.keywords)]
                for name, value in arguments:
                    if name is None:
                        raise Unsupported("set_loop_options is called with **")
                    if name == "shape_invariants" and isinstance(value, (ast.Tuple, ast.List)):
                        value = _keyed_by_text(value)
                    keywords.append((name, value))
                break
        if liveness.grows:
            keywords.append(("grows", _text_tuple(liveness.grows)))
        if isinstance(node, ast.For):
            keywords.append(("target", ast.Constant(ast.unparse(node.target))))
        if not keywords:
            return [], body
        return [_options_lambda(keywords, node)], body

    def _assert(self, node: ast.Assert) -> list[Any]:
        message: Any = ast.Constant(None)
        if node.msg is not None:
            message = ast.Lambda(ast.arguments([], [], None, [], [], None, []), self._expressions.visit(node.msg))
        return [with_location(ast.Expr(ag_call("assert_stmt", self._expressions.visit(node.test), message)), node)]

    def _annotated(self, node: ast.AnnAssign) -> list[Any]:
        """Rewrite `name: annotation = value` to an assignment: a function never evaluates the annotations of its
        variables, and Python rejects them for variables of an enclosing function."""
        if node.value is not None:
            value = self._expressions.visit(node.value)
            return [with_location(ast.Assign([self._expressions.visit(node.target)], value, type_comment=None), node)]
        if isinstance(node.target, ast.Name):
            if node.simple:
                self._bound.add(node.target.id)
            return [with_location(ast.Pass(), node)]
        return [self._expressions.statement(node, self._block)]

    def _function(self, node: Any) -> list[Any]:
        """Rewrite a nested function in place, so that it is staged regardless of its caller."""
        if isinstance(node, ast.FunctionDef) and not any(map(_excludes, node.decorator_list)):
            with contextlib.suppress(Unsupported):  # a generator stays one
                _FunctionRewriter(self._names_in_use, self._numbers).run(node, self._has_class)
        return [node]


def _with_context(target: Any, context: ast.expr_context) -> ast.expr:
    """Return a copy of an attribute or item with another context: load, store or delete."""
    new: ast.Attribute | ast.Subscript = copy(target)
    new.ctx = context
    return new


def _padded(state: list[Any]) -> list[Any]:
    return state if len(state) == 2 else [*state, ast.Tuple([], ast.Load())]


def _text_tuple(names: Iterable[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(n) for n in sorted(names)], ast.Load())


def _options_lambda(items: list[tuple[str, Any]], where: Any) -> object:
    """Return the node of `lambda: {name: value, ...}`."""
    options = ast.Dict([ast.Constant(k) for k, _ in items], [v for _, v in items])
    return with_location(ast.Lambda(ast.arguments([], [], None, [], [], None, []), options), where)


def _with_stops(node: Any, test: Any) -> object:
    """Return the node of `not flag and ... and test`."""
    parts: list[Any] = [ast.UnaryOp(ast.Not(), load(s)) for s in getattr(node, "stops", ())]
    if test is not None:
        parts.append(test)
    if len(parts) == 1:
        return with_location(parts[0], node)
    return with_location(ast.BoolOp(ast.And(), parts), node)


def _last_name(node: Any) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _keyed_by_text(pairs: Any) -> ast.List:
    """Rewrite [(x, shape)] to [("x", shape)]: the variable is meant, not its current value."""
    rows: list[Any] = []
    for pair in pairs.elts:
        if isinstance(pair, (ast.Tuple, ast.List)) and len(pair.elts) == 2:
            pair = ast.Tuple([ast.Constant(ast.unparse(pair.elts[0])), pair.elts[1]], ast.Load())
        rows.append(pair)
    return ast.List(rows, ast.Load())


def _excludes(decorator: Any) -> bool:
    """Return whether a decorator excludes its function from rewriting."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if _last_name(called) in _EXCLUDING_DECORATORS:
        return True
    return isinstance(decorator, ast.Call) and any(
        k.arg == "autograph" and isinstance(k.value, ast.Constant) and not k.value.value for k in decorator.keywords
    )


_STATEMENTS: dict[type, Any] = {
    ast.If: _FunctionRewriter._if,
    ast.While: _FunctionRewriter._while,
    ast.For: _FunctionRewriter._for,
    ast.Assert: _FunctionRewriter._assert,
    ast.AnnAssign: _FunctionRewriter._annotated,
    ast.FunctionDef: _FunctionRewriter._function,
    ast.AsyncFunctionDef: lambda self, node: [node],
    ast.ClassDef: lambda self, node: [node],
}

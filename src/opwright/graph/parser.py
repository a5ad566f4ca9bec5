"""The parser of graph text, which returns a graph equal to the printed one.

Lives here: `parse(text, operators)`, the syntax.  Not here: printing (printer.py), drawing graphs for readers (tools/).

    graph head(x: f32[1,7,7,1280], w: f32[1280,1000]) {
      m: f32[1,1280] = Mean(x, axis=[1, 2], keepdims=False)  # head.py:14
      MatMul: f32[1,1000] = MatMul(m, w)  # head.py:15
      return MatMul
    }

A node without outputs prints as `name: () = Op(...)`; an absent optional input as `_`; a repeated input as `[a, b]`. A
dialect may extend types: `x: i8[2]{scale=0.5, zero_point=3}`; names of graphs that are not words are strings, and
operators may be named by strings. Attribute values: Python's literals, complex(1.0, 2.0), dtype(f32), shape(2,?),
type(i8[2]), tensor(f32[2], [1.0, 2.0]), subgraphs in place. In files, large arrays may be stored separately:
stored(f32[1000], 'name').
"""

from __future__ import annotations

import base64
import re
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..core import dtypes, introspection
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec, spec_of_short
from .ir import Graph, Node, Operand, Value

DEEPEST = 64  # maximum nesting of subgraphs and lists, below the limit of Python's stack


Stored = Callable[[str], np.ndarray]
Detailed = Callable[[TensorSpec, dict[str, Any]], TensorSpec]

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)|(?P<space>\s+)
    |(?P<string>b?'(?:[^'\\\n]|\\.)*'|b?"(?:[^"\\\n]|\\.)*")
    |(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[-+](?:inf|nan)\b)
    |(?P<word>[A-Za-z_][\w./@\-]*)
    |(?P<sign>[][(){},:=?]|\.\.\.)""",
    re.VERBOSE,
)


class _Parser:
    def __init__(
        self,
        source: str,
        operators: Callable[[str], Any],
        stored: Stored | None = None,
        detailed: Detailed | None = None,
    ) -> None:
        self.source, self.operators, self.stored_arrays, self.detailed = source, operators, stored, detailed
        self.tokens: list[tuple[str, str, int]] = []
        offset = 0
        while offset < len(source):
            m = _TOKEN.match(source, offset)
            if not m:
                self.fail("a token", repr(source[offset]), offset)
            if m.lastgroup != "space":
                self.tokens.append((m.lastgroup or "", m.group(), offset))
            offset = m.end()
        self.tokens.append(("end", "the end", offset))
        self.i = 0
        self.depth = 0

    def fail(self, expected: str, actual: str, offset: int) -> NoReturn:
        line = self.source.count("\n", 0, offset) + 1
        raise InvalidArgumentError(what=f"graph text, line {line}", found=actual, wanted=expected)

    def peek(self, skip_comments: bool = True) -> tuple[str, str]:
        while skip_comments and self.tokens[self.i][0] == "comment":
            self.i += 1
        return self.tokens[self.i][:2]

    def next(self, expected: str | None = None, kind: str | None = None) -> str:
        token_kind, token = self.peek()
        if (expected is not None and token != expected) or (kind is not None and token_kind != kind):
            self.fail(repr(expected) if expected else f"a {kind}", repr(token), self.tokens[self.i][2])
        if token_kind == "end" and kind is None:
            self.fail("more text", repr(token), self.tokens[self.i][2])
        self.i += 1
        return token

    def accept(self, expected: str) -> bool:
        if self.peek()[1] == expected and self.peek()[0] != "string":
            self.i += 1
            return True
        return False

    def comma_list(self, close: str, item: Callable[[], Any]) -> list[Any]:
        items: list[Any] = []
        while not self.accept(close):
            items.append(item())
            if not self.accept(","):
                self.next(close)
                break
        return items

    def graph(self) -> Graph:
        self.next("graph")
        name = self.quotable()
        self.next("(")
        scope: dict[str, Value] = {}
        inputs = self.comma_list(")", lambda: self.declare(Value(*self.typed()), scope))
        self.next("{")
        nodes: list[Node] = []
        while not self.accept("return"):
            nodes.append(self.node(scope))
        outputs = [] if self.peek()[1] == "}" else [self.use(scope)]
        while self.accept(","):
            outputs.append(self.use(scope))
        self.next("}")
        return Graph(name, inputs, nodes, outputs)

    def declare(self, value: Value, scope: dict[str, Value]) -> Value:
        if value.name in scope:
            self.fail("a new name", repr(value.name), self.tokens[self.i - 1][2])
        scope[value.name] = value
        return value

    def use(self, scope: dict[str, Value]) -> Value:
        self.peek()
        offset = self.tokens[self.i][2]
        name = self.next(kind="word")
        if name not in scope:
            self.fail("a value defined before", repr(name), offset)
        return scope[name]

    def typed(self) -> tuple[str, TensorSpec]:
        name = self.next(kind="word")
        self.next(":")
        return name, self.spec()

    def spec(self) -> TensorSpec:
        offset = self.tokens[self.i][2]
        parts = [self.next(kind="word"), self.next("[")]
        while not self.accept("]"):
            parts.append(self.next())
        try:
            spec = spec_of_short("".join(parts) + "]")
            if not self.accept("{"):
                return spec
            details = dict(self.comma_list("}", self.named))
            if self.detailed is None:
                self.fail("a type alone", f"{spec.short()} with {', '.join(details)}", offset)
            return self.detailed(spec, details)
        except (ValueError, TypeError) as error:
            self.fail("a type", str(error), offset)

    def named(self) -> tuple[str, Any]:
        key = self.next(kind="word")
        self.next("=")
        return key, self.attr()

    def quotable(self) -> str:
        """Return the next word, or the text of the next string."""
        if self.peek()[0] != "string":
            return self.next(kind="word")
        offset = self.tokens[self.i][2]
        name = self.literal()
        if not isinstance(name, str):
            self.fail("a name", repr(name), offset)
        return name

    def node(self, scope: dict[str, Value]) -> Node:
        outs: list[tuple[str, TensorSpec]] = []
        name = self.next(kind="word")
        self.next(":")
        if self.accept("("):
            self.next(")")
        else:
            outs.append((name, self.spec()))
            while self.accept(","):
                outs.append(self.typed())
        self.next("=")
        offset = self.tokens[self.i][2]
        op_name = self.next(kind="string" if self.peek()[0] == "string" else "word")
        try:
            op = self.operators(op_name)
        except KeyError:
            self.fail("a known operator", repr(op_name), offset)
        self.next("(")
        inputs: list[Operand] = []
        attrs: dict[str, Any] = {}

        def argument() -> None:
            if self.accept("["):
                inputs.append(tuple(self.comma_list("]", lambda: self.use(scope))))
            elif self.tokens[min(self.i + 1, len(self.tokens) - 1)][1] == "=":
                attrs.update([self.named()])
            elif self.accept("_"):
                inputs.append(None)
            else:
                inputs.append(self.use(scope))

        self.comma_list(")", argument)
        _fill_in(op, inputs, attrs)
        kind, comment = self.peek(skip_comments=False)
        same_line = "\n" not in self.source[self.tokens[self.i - 1][2] : self.tokens[self.i][2]]
        line = comment[1:].strip() if kind == "comment" and same_line else None
        node = Node(op, inputs, attrs, [s for _, s in outs], name, line, [n for n, _ in outs])
        for value in node.outputs:
            self.declare(value, scope)
        return node

    def attr(self) -> object:
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"values nested at most {DEEPEST} deep", "more", self.tokens[self.i][2])
        value = self.value()
        self.depth -= 1
        return value

    def literal(self) -> object:
        """Return a number or string by Python's syntax."""
        self.peek()
        offset = self.tokens[self.i][2]
        source = self.next()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # an escape that Python does not know
                return introspection.literal(source.lstrip("+"))
        except (ValueError, SyntaxError, Warning) as error:
            self.fail("a literal as Python has them", f"{source[:40]} ({error})", offset)

    def value(self) -> object:
        kind, word = self.peek()
        offset = self.tokens[self.i][2]
        if word == "graph" and kind == "word":
            return self.graph()
        if self.accept("["):
            return tuple(self.comma_list("]", self.attr))
        if kind == "number" and word.strip("+-") in ("inf", "nan"):
            return float(self.next())
        if kind in ("string", "number"):
            return self.literal()
        self.next(kind="word")
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if word not in _CALLS:
            self.fail("an attribute value", repr(word), offset)
        self.next("(")
        return _CALLS[word](self, offset)

    def dtype(self, offset: int) -> DType:
        short = self.next(kind="word")
        self.next(")")
        try:
            return dtypes.of_short(short)
        except KeyError:
            self.fail("a dtype such as f32", repr(short), offset)

    def shape(self, offset: int) -> TensorShape:
        inside = []
        while not self.accept(")"):
            inside.append(self.next())
        try:
            return spec_of_short(f"f32[{''.join(inside)}]").shape
        except ValueError as error:
            self.fail("a shape such as shape(2,?)", str(error), offset)

    def type(self, offset: int) -> TensorSpec:
        spec = self.spec()
        self.next(")")
        return spec

    def complex(self, offset: int) -> complex:
        parts = self.comma_list(")", self.attr)
        if len(parts) != 2 or not all(isinstance(p, float) for p in parts):
            self.fail("complex(real, imaginary)", repr(parts), offset)
        return complex(*parts)

    def stored(self, offset: int) -> np.ndarray:
        spec = self.spec()
        self.next(",")
        name = self.attr()
        self.next(")")
        if self.stored_arrays is None or not isinstance(name, str):
            self.fail("a value in the text itself", f"stored({spec.short()}, {name!r})", offset)
        array = self.stored_arrays(name)
        stored_type = TensorSpec(array.shape, dtypes.of_stored(array.dtype)).short()
        if stored_type != spec.short():
            self.fail(spec.short(), f"{stored_type} under the name {name!r}", offset)
        array.setflags(write=False)
        return array

    def tensor(self, offset: int) -> np.ndarray:
        spec = self.spec()
        self.next(",")
        elements = self.attr()
        self.next(")")
        np_dtype, element_type = spec.dtype.np, _element_type(spec.dtype)
        array: np.ndarray
        try:
            shape: Any = tuple(spec.shape.as_list())
            if spec.dtype.is_handle:
                raise TypeError("handles have no text")
            if isinstance(elements, str):
                array = np.frombuffer(base64.b64decode(elements, validate=True), np_dtype).reshape(shape).copy()
            elif not isinstance(elements, tuple) or not all(isinstance(e, element_type) for e in elements):
                raise TypeError(f"wanted a list of {element_type.__name__}")
            elif spec.dtype is dtypes.string:
                array = np.fromiter(elements, object, len(elements)).reshape(shape)
            else:
                array = np.array(elements, np_dtype).reshape(shape)
        except (ValueError, TypeError, OverflowError) as error:
            self.fail(f"elements for {spec.short()}", str(error), offset)
        array.setflags(write=False)
        return array


_CONSTANTS = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}
_CALLS: dict[str, Callable[[_Parser, int], Any]] = {
    "dtype": _Parser.dtype,
    "shape": _Parser.shape,
    "stored": _Parser.stored,
    "complex": _Parser.complex,
    "type": _Parser.type,
    "tensor": _Parser.tensor,
}


def _element_type(dtype: DType) -> type:
    return bytes if dtype is dtypes.string else bool if dtype.is_bool else int if dtype.is_integer else float


def _fill_in(op: Any, inputs: list[Operand], attrs: dict[str, Any]) -> None:
    """Add absent inputs and default attributes of later versions of the operator, which an older text lacks."""
    missing = getattr(op, "inputs", ())[len(inputs) :]
    if all(i.optional for i in missing):
        inputs += [None] * len(missing)
    for name, attr in getattr(op, "attr_defs", {}).items():
        if attr.since > 1 and name not in attrs:
            attrs[name] = attr.default


def parse(
    source: str, operators: Callable[[str], Any], stored: Stored | None = None, detailed: Detailed | None = None
) -> Graph:
    """Parse a graph from its text.

    operators: returns the operator of a name, or of a string with its quotes, or raises KeyError. stored: returns
    arrays that the text refers to by name. detailed: returns a type with the details in the text, or raises ValueError.
    raises InvalidArgumentError with the line, the text found and the text expected
    """
    return parse_all(source, operators, stored, 1, detailed)[0]


def parse_all(
    source: str,
    operators: Callable[[str], Any],
    stored: Stored | None = None,
    limit: int | None = None,
    detailed: Detailed | None = None,
) -> list[Graph]:
    """Parse a text that contains several graphs; limit: their maximum number. See `parse`."""
    parser = _Parser(source, operators, stored, detailed)
    graphs: list[Graph] = []
    while (token := parser.peek())[0] != "end" or (limit and not graphs):
        if len(graphs) == limit:
            parser.fail("the end", repr(token[1]), parser.tokens[parser.i][2])
        graphs.append(parser.graph())
    return graphs

"""Functions that stand for a fused operator: their calls become one custom operator of the file.

Lives here: `fuse`, and reading what `function(experimental_implements=...)` was told.
Not here: how calls are marked in graphs (ops/fusion.py, tracing/inlining.py).

    @ow.function(experimental_implements='name: "my_op" attr {key: "tfl_fusable_op" value {b: true}} '
                                         'attr {key: "alpha" value {f: 0.5}}')

is the operator my_op with the option alpha = 0.5, taking the function's arguments and then what it captured. Without
tfl_fusable_op, or with a name alone, it is one where custom operators are allowed, and else what the function does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentError
from ...graph import Graph, Node, Value
from ...graph.passes import PatternRewriter, RewriteRule, rewrite
from ..format import schema
from ..format.flexbuffers import encode_options
from ..ops.external import ExternalOp, external_attrs

FUSABLE = "tfl_fusable_op"
TYPES = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64", "HALF": "FLOAT16"}  # protocol-buffer names other than the file's


class Implements(NamedTuple):
    """What a function stands for: the operator's name, its options, whether it must become one."""

    name: str
    options: dict[str, Any]
    always: bool


def fuse(graph: Graph, allow_custom_ops: bool) -> Graph:
    """The graph, and those in its nodes, with marked calls replaced by fused operators, and no marks."""

    def results(node: Node, rewriter: PatternRewriter) -> Sequence[Value] | Node:
        wanted = read_implements(node.attrs["implements"])
        given, taken = (operand if isinstance(operand, tuple) else () for operand in node.inputs)
        if not (wanted.always or allow_custom_ops):
            return given
        attrs = external_attrs(encode_options(wanted.options))
        return Node(ExternalOp(wanted.name), taken, attrs, [v.spec for v in node.outputs], node.name, node.at)

    if not any(True for _ in _marks(graph)):
        return graph
    marks = (
        RewriteRule("fusion_inputs", "FusionInputs", lambda node, rewriter: tuple(node.operands), "a mark"),
        RewriteRule("fusion_results", "FusionResults", results, "the operator that the function stands for"),
    )
    return rewrite(graph, marks)[0]


def _marks(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        if node.op.name == "FusionResults":
            yield node
        for inner in node.subgraphs:
            yield from _marks(inner)


def read_implements(text: str) -> Implements:
    """The name and attributes in a protocol-buffer text of `name` and `attr`s, or the name alone.

    raises InvalidArgumentError where the text begins like one and is none
    """
    if not re.match(r"\s*(name|attr)\s*[:{]", text):
        return Implements(text, {}, False)
    fields = _Text(text).fields()
    options: dict[str, Any] = {}
    for name, value in fields:
        if name == "attr":
            entry = dict(value)
            options[entry["key"]] = _attribute(entry.get("value", []))
    named = [value for name, value in fields if name == "name"]
    if len(named) != 1:
        raise InvalidArgumentError(what="experimental_implements names no operator", found=text, wanted='name: "my_op"')
    return Implements(named[0], options, options.pop(FUSABLE, False) is True)


def _attribute(fields: list[tuple[str, Any]]) -> Any:
    """The value in the fields of an AttrValue. A type is the number of the file's TensorType, as others write it."""
    for kind, value in fields:
        if kind == "list":
            return [_attribute([item]) for item in value]
        if kind == "type":
            name = value.removeprefix("DT_")
            return int(schema.enum("TensorType")[TYPES.get(name, name)])
        if kind == "shape":
            return [size for _, dim in value for field, size in dim if field == "size"]
        return value
    return None


_TOKEN = re.compile(r"""\s*(?:([{}:;,<>])|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([^\s{}:;,<>"']+))""")


class _Text:
    """Protocol-buffer text: fields of the form `name: value` and `name { fields }`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.wrong(f"{text[at:][:20]!r} is no part of it")
            self.tokens.append(found.group(0).strip())
            at = found.end()
        self.tokens.reverse()

    def wrong(self, what: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            what=f"experimental_implements cannot be read: {what}",
            found=self.text,
            wanted='name: "my_op" attr {key: "n" value {i: 10}}',
        )

    def next(self) -> str:
        if not self.tokens:
            raise self.wrong("it ends too early")
        return self.tokens.pop()

    def fields(self, end: str = "") -> list[tuple[str, Any]]:
        found = []
        while self.tokens and self.tokens[-1] != end:
            name = self.next()
            if name in (",", ";"):
                continue
            mark = self.next()
            if mark == ":" and self.tokens and self.tokens[-1] in "{<":
                mark = self.next()
            if mark in "{<":
                close = "}" if mark == "{" else ">"
                found.append((name, self.fields(close)))
                if self.next() != close:
                    raise self.wrong(f"{name} {mark} is not closed")
            elif mark == ":":
                found.append((name, self.scalar(self.next())))
            else:
                raise self.wrong(f"{mark!r} after {name!r}")
        if end and not self.tokens:
            raise self.wrong(f"{end!r} is missing")
        return found

    def scalar(self, token: str) -> Any:
        if token[0] in "\"'":
            return token[1:-1].encode().decode("unicode_escape")
        if token in ("true", "false", "True", "False"):
            return token.lower() == "true"
        for kind in (int, float):
            try:
                return kind(token)
            except ValueError:
                continue
        if re.fullmatch(r"DT_[A-Z0-9]+", token):
            return token
        raise self.wrong(f"{token!r} is no value")

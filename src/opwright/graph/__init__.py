"""The IR: Graph, Node, Value; its builders; its text form; passes as rule tables.

Lives here: what a program is once traced.  Not here: what operators mean (ops/) or how graphs are made (tracing/).
An operator is known here only as an object with a name, an effect and rules to call.
"""

from .builder import GraphBuilder, GraphRewriter
from .ir import Graph, Node, Value, same
from .parser import parse
from .printer import text

__all__ = ["Graph", "GraphBuilder", "GraphRewriter", "Node", "Value", "parse", "same", "text"]

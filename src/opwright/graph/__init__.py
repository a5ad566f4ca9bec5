"""The IR: Graph, Node, Value; its builders; its text form; passes as tables of rules.

Lives here: traced programs.  Not here: the meaning of operators (ops/), the creation of graphs (tracing/). To a graph,
an operator is an object with a name, an effect and rules to call.
"""

from .builder import GraphBuilder, GraphRewriter
from .ir import Graph, Node, Value, same
from .parser import parse
from .printer import text

__all__ = ["Graph", "GraphBuilder", "GraphRewriter", "Node", "Value", "parse", "same", "text"]

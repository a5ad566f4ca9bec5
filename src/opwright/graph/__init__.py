"""The IR: Graph, Node, Value; its builders; its text form; passes as tables of rules.

Lives here: traced programs.  Not here: the meaning of operators (ops/), the creation of graphs (tracing/). To a graph,
an operator is an object with a name, an effect and rules to call.
"""

from ..core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)

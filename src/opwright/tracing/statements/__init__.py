"""Python's control flow on values of a graph: the handler that AutoGraph dispatches to.

Lives here: the handler of tensors and other values of a graph, registered when this is imported.
Not here: rewriting Python (autograph/), the nodes of branches and loops (tracing/control/).

    graph_handler.py  GraphHandler: dispatch of statements; len, range, min, sorted ...
    conditionals.py   if, and the merging of the variables of its branches
    loops.py          while, and for over cursors
    cursors.py        iteration in a `for`
    growing_list.py   lists that grow in a graph

Another type of iterable (a dataset) subclasses `Cursor` and registers a `GraphHandler` whose `cursor` returns it.
"""

from .cursors import Cursor, Indexed
from .graph_handler import GraphHandler
from .growing_list import GrowingList
from .loops import run_for

__all__ = ["Cursor", "GraphHandler", "GrowingList", "Indexed", "run_for"]

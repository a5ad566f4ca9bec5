"""What Python's control flow means for values of a graph: AutoGraph's other half.

Lives here: the stage of tensors and what else lives in a graph, registered when this is imported.
Not here: rewriting Python (autograph/), the nodes that branches and loops become (tracing/control/).

    graph_handler.py      GraphHandler: which statement goes where       merge.py   variables of two branches as one
    conditionals.py   if                                           loops.py     while, and for over cursors
    cursors.py    what a `for` may run over                    builtins.py  len, range, min, sorted ...
    growing_list.py    lists that grow in staged code

Another kind of iterable (a dataset) subclasses `Cursor` and registers a `GraphHandler` whose `cursor` makes it.
"""

from .cursors import Cursor, Indexed
from .graph_handler import GraphHandler
from .growing_list import GrowingList
from .loops import run_for

__all__ = ["Cursor", "GraphHandler", "GrowingList", "Indexed", "run_for"]

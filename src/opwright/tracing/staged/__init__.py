"""What Python's control flow means for values of a graph: AutoGraph's other half.

Lives here: the stage of tensors and what else lives in a graph, registered when this is imported.
Not here: rewriting Python (autograph/), the nodes that branches and loops become (tracing/control/).

    stage.py      GraphStage: which statement goes where       merging.py   variables of two branches as one
    branches.py   if                                           loops.py     while, and for over cursors
    cursors.py    what a `for` may run over                    builtins.py  len, range, min, sorted ...
    growing.py    lists that grow in staged code

Another kind of iterable (a dataset) subclasses `Cursor` and registers a `GraphStage` whose `cursor` makes it.
"""

from .cursors import Cursor, Indexed
from .growing import GrowingList
from .loops import run_for
from .stage import GraphStage

__all__ = ["Cursor", "GraphStage", "GrowingList", "Indexed", "run_for"]

"""Converting down: operators that a stated run time lacks, said in older ones.

    graph = say_older(graph, "2.8")      # GELU, new in 2.9, becomes a handful of operators that 2.8 has

Lives here: the table of rules joined, `OLDER`; the walk is in walking.py, the rules in a module for each kind.
Not here: which version an operator needs and since when there is it (lite/format/versions.py), the report of what is
still too new when no rule is left (../runtime.py).

A rule need not know which run time is asked for: it gives the oldest form it can. What it emits is looked at again, so
rules build on each other.
"""

from ..lowering import join
from .arithmetic import ARITHMETIC
from .carrying import CARRYING
from .images import IMAGES
from .indexing import INDEXING
from .products import PRODUCTS
from .ranks import RANKS
from .walking import say_older, version_of

OLDER = join(ARITHMETIC, PRODUCTS, INDEXING, IMAGES, RANKS, CARRYING)  # by type last: many operators have those rules

__all__ = ["OLDER", "say_older", "version_of"]

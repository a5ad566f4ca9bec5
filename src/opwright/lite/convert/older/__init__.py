"""Converting down: operators that a stated run time lacks, said in older ones.

    graph = say_older(graph, "2.8")      # GELU, new in 2.9, becomes a handful of operators that 2.8 has

Lives here: the driver and its table of rules (driver.py), the rules in a module for
each kind.
Not here: which version an operator needs and since when there is it (lite/format/versions.py), the version that
a node needs and the report of what is still too new when no rule is left (../required_version.py).

A rule need not know which run time is asked for: it gives the oldest form it can. What it emits is looked at again, so
rules build on each other.
"""

from ..required_version import version_of
from .driver import OLDER, say_older

__all__ = ["OLDER", "say_older", "version_of"]

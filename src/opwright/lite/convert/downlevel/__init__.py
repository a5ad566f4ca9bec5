"""Downlevel conversion: express operators that a stated run time lacks by operators that it has.

    graph = downlevel(graph, "2.8")      # GELU, new in 2.9, becomes a handful of operators that 2.8 has

Lives here: the driver with its table of rules and the check of the result (driver.py), rules in a module for each kind.
Not here: versions of operators, and since which run time each exists (lite/format/versions.py).

A rule does not know the run time: it emits the oldest form it can. The driver rewrites the result again, so rules build
on each other.
"""

from .driver import DOWNLEVEL_RULES, check_runtime, downlevel, version_of

__all__ = ["DOWNLEVEL_RULES", "check_runtime", "downlevel", "version_of"]

"""Control flow under TensorFlow's names: `cond`, `case`, `switch_case`, `while_loop`, `map_fn`, `scan` and the folds.

Lives here: functions with Python functions as branches and bodies. Not here: Python's own `if` and `while` (autograph/
and tracing/statements/ convert them to these), the operators (ops/control.py).
"""

from .branches import case, cond, switch_case
from .higher_order import foldl, foldr, map_fn, scan, vectorized_map
from .loops import while_loop

__all__ = ["case", "cond", "foldl", "foldr", "map_fn", "scan", "switch_case", "vectorized_map", "while_loop"]

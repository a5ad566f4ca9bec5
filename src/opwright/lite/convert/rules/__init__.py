"""The rule tables: which lite operators stand for which catalogue operators.

Lives here: the tables joined, `RULES`; within an operator the order is that of the tables here, first match wins.
Not here: the walk that applies them (../legalize.py), merging within the dialect (../optimize.py).
"""

from __future__ import annotations

from ..lowering import join
from .arrays import ARRAYS
from .composites import COMPOSITES
from .control import CONTROL
from .convolution import CONVOLUTION
from .elementwise import ELEMENTWISE
from .indexing import INDEXING
from .matmul import MATMUL
from .nn import NN
from .reductions import REDUCTIONS
from .state import STATE
from .strings import STRINGS

RULES = join(ELEMENTWISE, ARRAYS, INDEXING, REDUCTIONS, MATMUL, CONVOLUTION, NN, CONTROL, STATE, STRINGS, COMPOSITES)

"""Names of variables that mean something of their own.

Lives here: the reserved names, and the numbers that stand for temporaries.  Not here: scopes (scope.py).

    @EMPTY@     no variable: an input that is absent, an output that nobody wants
    @TEMP@      a variable of the operator's own; becomes `<type>@<unique number>` when the instance is made
    v@GRAD      the gradient of v
    v@ZERO      zeros in the place of a gradient that does not come
"""

from __future__ import annotations

import itertools

EMPTY = "@EMPTY@"
TEMP = "@TEMP@"
GRAD = "@GRAD"
ZERO = "@ZERO"

_numbers = itertools.count()  # next() is one bytecode: no two threads get the same


def unique(op: str) -> str:
    """A name for a temporary of an operator, which no other has."""
    return f"{op}@{next(_numbers)}"


def grad_name(name: str) -> str:
    """What the gradient of a variable is called."""
    return name + GRAD

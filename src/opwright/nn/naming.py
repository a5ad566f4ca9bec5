"""Names of layers, metrics and losses: snake case of their classes, numbered from the second on.

Lives here: the rule and the counts.  Not here: names of nodes in graphs (tracing/).
"""

from __future__ import annotations

import re
from collections import Counter

_USED: Counter[str] = Counter()


def snake_case(name: str) -> str:
    """`MyConv2D` as `my_conv2d`.

    >>> snake_case("MultiHeadAttention"), snake_case("Conv2DTranspose")
    ('multi_head_attention', 'conv2d_transpose')
    """
    name = re.sub(r"\W+", "", name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def fresh(class_name: str) -> str:
    """dense, dense_1, dense_2, ...: a name not given before."""
    base = snake_case(class_name)
    count = _USED[base]
    _USED[base] += 1
    return f"{base}_{count}" if count else base


def reset() -> None:
    """Begin all numbers anew."""
    _USED.clear()

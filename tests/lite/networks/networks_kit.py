"""A row of the table of networks, and what rows are added with.  Not here: the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Network(NamedTuple):
    """build: a model of tf.keras, given tf. shapes, dtype: of its inputs; words: they are integers below this.

    names: of inputs that are a dictionary's.
    """

    build: Callable[[Any], Any]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float32"
    words: int = 0
    names: tuple[str, ...] = ()


NETWORKS: dict[str, Network] = {}


def network(*shapes: tuple[int, ...], **more: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A row under the name of the builder."""

    def add(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
        NETWORKS[build.__name__] = Network(build, shapes, **more)
        return build

    return add

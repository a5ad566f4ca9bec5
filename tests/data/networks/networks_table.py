"""A row of the tables of networks, and what rows are added with.  Not here: the rows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class Row(NamedTuple):
    """build: gives a Keras model, or what `programs` does; kinds: of files; settings: of the converter beside these."""

    build: Callable[[], Any]
    kinds: tuple[str, ...]
    settings: dict[str, Any]


def adder(table):
    """Return a decorator that adds a builder to a table under its name."""

    def network(*kinds, **settings):
        def add(build):
            table[build.__name__] = Row(build, kinds, settings)
            return build

        return add

    return network


def programs(module=None, **signatures):
    """A module with functions by signature, each (function, specs of its arguments by name)."""
    module = tf.Module() if module is None else module
    module.signatures_made = signatures
    return module

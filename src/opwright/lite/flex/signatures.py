"""TensorFlow's declarations of the operators that Flex operators may carry, as data (signatures.json).

Lives here: `Signature`, `signature`.  Not here: which of ours they are (forms.py).
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, NamedTuple


class Attribute(NamedTuple):
    """kind: "type", "int", "list(int)" ... has_default: whether it may be left out. default: then its value."""

    kind: str
    has_default: bool
    default: Any


class Signature(NamedTuple):
    """inputs, outputs: for each argument its type attribute, or its type; "N*T" for N of one type, "*T" for a list of
    types. attrs: by name."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Attribute]


@functools.cache
def _facts() -> dict[str, Any]:
    return json.loads(resources.files(__package__).joinpath("signatures.json").read_text("utf-8"))


@functools.cache
def signature(op: str) -> Signature | None:
    """The declaration of an operator; None for one that no Flex operator here carries."""
    row = _facts().get(op)
    if row is None:
        return None
    return Signature(tuple(row["in"]), tuple(row["out"]), {k: Attribute(*v) for k, v in row["attrs"].items()})

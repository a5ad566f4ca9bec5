"""Names of classes in other spellings."""

from __future__ import annotations

import re


def snake_case(name: str) -> str:
    """Convert a class name to snake case, as Keras does: a digit begins no word.

    >>> snake_case("MultiHeadAttention"), snake_case("Conv2DTranspose")
    ('multi_head_attention', 'conv2d_transpose')
    """
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def spaced_words(name: str) -> str:
    """Return a CamelCase name with underscores between its words: LeakyClip to Leaky_Clip, NMSBoxes to NMS_Boxes."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)

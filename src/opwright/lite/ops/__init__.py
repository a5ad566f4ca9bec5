"""The lite dialect: the builtin operators of `.tflite` files, each defined once.

Lives here: `get(name)`, `list_names()`, `operators()`; a module for each family.
Not here: the catalogue that programs call (opwright.ops), rules from one to the other (lite/convert/).
"""

from . import (  # noqa: F401  (importing them defines their operators)
    activation,
    arithmetic,
    comparison,
    convolution,
    elementwise,
    filling,
    joining,
    matmul,
    reduction,
    shaping,
    slicing,
    spatial,
)
from .definition import LiteOperator, get, list_names, lite_operator, operators

__all__ = ["LiteOperator", "get", "list_names", "lite_operator", "operators"]

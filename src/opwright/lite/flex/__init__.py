"""Flex operators: a framework's own operators inside `.tflite` files, as custom operators named Flex...

Lives here: `to_flex`, which converts a node of the catalogue; `flex_registration`, which runs one.
Not here: the lite dialect (lite/ops), users' operators (lite/convert/custom_operators.py).
"""

from .conversion import FlexNode, to_flex
from .registration import PREFIX, flex_registration

__all__ = ["PREFIX", "FlexNode", "flex_registration", "to_flex"]

"""Flex operators: a framework's own operators inside `.tflite` files, as custom operators named Flex...

Lives here: `to_flex` (a node of the catalogue as one), `flex_registration` (what runs one).
Not here: the lite dialect (lite/ops), operators of one's own (lite/convert/custom_operators.py).
"""

from .conversion import FlexNode, to_flex
from .registration import PREFIX, flex_registration

__all__ = ["PREFIX", "FlexNode", "flex_registration", "to_flex"]

"""Flex operators: a framework's own operators inside `.tflite` files, as custom operators named Flex...

Lives here: `carry` (a node of the catalogue as one), `flex_registration` (what runs one).
Not here: the lite dialect (lite/ops), operators of one's own (lite/convert/custom.py).
"""

from .conversion import Carried, carry
from .registration import PREFIX, flex_registration

__all__ = ["PREFIX", "Carried", "carry", "flex_registration"]

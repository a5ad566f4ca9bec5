"""Lists of tensors as tensors: what TensorArrays and loops that collect results become in files.

    variant scalars and List operators  ->  tensors [length, ...element] and operators on tensors

Lives here: `lower_lists`; elements.py (what is known of each list), sizes.py (sizes found before the loop that writes
the elements), counting.py (loops whose number of turns is known), lowering.py (the walk), operators.py (the table of
operators).
Not here: the list and its operators (opwright/ops/lists.py).

A list is lowered where all its elements have one shape, as far as that is known, and the sizes that are not known can
be computed before it is filled. Lists of lists, and lists that a function takes or gives, stay what they are: an error
names the operator and its line.
"""

from .lowering import lower_lists

__all__ = ["lower_lists"]

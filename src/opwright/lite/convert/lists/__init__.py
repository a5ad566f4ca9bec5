"""Lowering of tensor lists: TensorArrays, and loops that collect results, become tensors.

    variant scalars and List operators  ->  tensors [length, ...element] and operators on tensors

Lives here: `lower_lists` (list_rewriter.py), its table of operators (operators.py), the types of each list's elements
and the loops that fill it (list_analysis.py).
Not here: the list and its operators (ops/list_ops.py).

A list is lowered if all its elements have one shape, as far as it is known, and the unknown sizes can be computed
before the list is filled. Lists of lists, and lists among a function's inputs or outputs, are not lowered: an error
names the operator and its line.
"""

from .list_rewriter import lower_lists

__all__ = ["lower_lists"]

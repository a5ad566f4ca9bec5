"""Constant folding and common-subexpression elimination.

Lives here: FOLD and COMMON, tables of one rule each.  Not here: rules that know operators (arithmetic.py, shapes.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.errors import OpError
from ...core.specs import TensorSpec
from ..builder import constant_node, has_subgraphs
from ..ir import Graph, Node, Value
from .rewrite_rules import PatternRewriter, RewriteRule

FOLD_LIMIT_BYTES = 1 << 20  # a constant larger than this, and than its operands, would bloat the graph


def fold_constants(node: Node, rewriter: PatternRewriter) -> Sequence[Value] | None:
    """Run a pure node whose operands are all constants."""
    name = node.op.name
    if name == "Const" or not node.outputs:
        return None
    constants = []
    for value in node.operands:
        constants.append(value.constant)
        if constants[-1] is None:
            return None
    if node.op.effect is not None or (not constants and name not in ("Fill", "Range")) or has_subgraphs(node):
        return None
    if any(v.dtype.is_handle for v in node.outputs):
        return None  # a handle has no text
    sizes = [v.spec.shape.num_elements() for v in node.outputs]
    limit = max(FOLD_LIMIT_BYTES, *(c.nbytes for c in constants if c is not None), 0)
    if any(s is None or s * (v.dtype.size or 8) > limit for s, v in zip(sizes, node.outputs)):
        return None
    try:
        arrays = node.op.evaluate(node.inputs, node.attrs)
    except OpError:
        return None  # reported at run time, with the node's name
    return [replacement_constant(rewriter, node, v, array) for v, array in zip(node.outputs, arrays)]


def replacement_constant(rewriter: PatternRewriter, node: Node, value: Value, array: Any) -> Value:
    """Append a Const node that replaces one output of a node; return its output."""
    array = np.asarray(array, value.dtype.np)
    spec = TensorSpec(array.shape, value.dtype)
    return rewriter.insert(constant_node(node.op.const_operator(), array, spec, value.name, node.at)).outputs[0]


def _attr_key(value: Any) -> object:
    """Return a key that is equal for equal attributes. Raises TypeError for a graph: graphs are not compared."""
    if type(value) is Graph:
        raise TypeError("graphs are not hashed")
    if isinstance(value, np.ndarray):
        if value.dtype == object or value.nbytes > 256:
            return id(value)
        return (value.dtype, value.shape, value.tobytes())
    if isinstance(value, tuple):
        return tuple(map(_attr_key, value))
    # by repr, because 0.0 equals -0.0 and NaN does not equal itself
    return (type(value), repr(value)) if isinstance(value, (float, complex)) else (type(value), value)


def common_subexpression(node: Node, rewriter: PatternRewriter) -> Sequence[Value] | None:
    """Reuse an earlier node that computes the same."""
    if node.op.effect is not None:
        return None
    try:
        # by the operator itself: two user operators of one name may differ in options
        key = (node.op, node.inputs, tuple([(k, _attr_key(v)) for k, v in node.attrs.items()]))
        earlier = rewriter.memo.setdefault(key, node)
    except TypeError:  # an attribute that cannot be hashed
        return None
    return None if earlier is node else earlier.outputs


FOLD = (RewriteRule("fold_constants", "", fold_constants, "a pure operator of constants has one answer"),)
COMMON = (RewriteRule("common_subexpression", "", common_subexpression, "equal pure calls have equal answers"),)

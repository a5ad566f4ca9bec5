"""Masks before SOFTMAX: what is far below all else there comes out as zero, however far it is.

Lives here: `narrowed`, ranges in which masked elements are low enough, no lower.  Not here: what uses them (plan.py).

Attention says -1e9 where nothing is to be looked at. A range that held this would leave one integer to all the scores
beside it. Integers clamp what is below their range, so a range that goes on for `NEGLIGIBLE` below the scores does.
"""

from __future__ import annotations

from ....graph import Node, Value
from .calibrated_graph import CalibratedGraph, Range, constant, fused, is_float, operand, producer

NEGLIGIBLE = 12.0  # exp(-12) is a fifth of the step of a probability in int16
MOVERS = ("RESHAPE", "TRANSPOSE", "EXPAND_DIMS", "SQUEEZE")
CHOICES = ("SELECT", "SELECT_V2")


def narrowed(graph: CalibratedGraph) -> dict[Value, Range]:
    """Return the ranges of values that only SOFTMAX reads, and of constants added to them."""
    found: dict[Value, Range] = {}
    added: dict[Value, list[Range]] = {}
    for node in graph.operators:
        if node.op.name != "SOFTMAX":
            continue
        moved, value = [], operand(node, 0)
        while is_float(value) and graph.readers[value] == 1 and (source := producer(value)) is not None:
            moved.append(value)
            if source.op.name not in MOVERS:
                beta = float(node.attrs["beta"] or 1.0)
                kept = _masked(graph, source, NEGLIGIBLE / max(beta, 1e-3), added)
                found |= {} if kept is None else dict.fromkeys(moved, kept)
                break
            value = operand(source, 0)
    for mask, ranges in added.items():
        if graph.readers[mask] == len(ranges):  # nobody else wants it as it is
            found[mask] = min(low for low, _ in ranges), max(high for _, high in ranges)
    return found


def _masked(graph: CalibratedGraph, node: Node, enough: float, added: dict[Value, list[Range]]) -> Range | None:
    """Return the range that the result of a node needs; None where it masks nothing."""
    chooses = node.op.name in CHOICES
    if not (chooses or node.op.name == "ADD") or fused(node) != "NONE":
        return None
    pair = [operand(node, place) for place in ((1, 2) if chooses else (0, 1))]
    for x, mask in (pair, pair[::-1]):
        if x is None or mask is None:
            continue
        array, seen = constant(mask), graph.range_of(x)
        if array is None or seen is None or not array.size or constant(x) is not None:
            continue
        low, high = seen
        if chooses:
            return (low - enough, high) if array.max() < low - enough else None
        kept = array[array >= low - high - enough]
        if not kept.size or kept.size == array.size:
            return None
        bound = float(kept.min()) + low - high - enough
        added.setdefault(mask, []).append((bound, float(kept.max())))
        return low + bound, high + float(kept.max())
    return None

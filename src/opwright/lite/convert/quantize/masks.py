"""Masks before SOFTMAX: what is far below all else there comes out as zero, however far it is.

Lives here: `narrowed`, ranges in which masked elements are low enough, no lower.  Not here: what uses them (plan.py).

Attention says -1e9 where nothing is to be looked at. A range that held this would leave one integer to all the scores
beside it. Integers clamp what is below their range, so a range that goes on for `NEGLIGIBLE` below the scores does.
"""

from __future__ import annotations

from typing import Any

Range = tuple[float, float]
NEGLIGIBLE = 12.0  # exp(-12) is a fifth of the step of a probability in int16
MOVERS = ("RESHAPE", "TRANSPOSE", "EXPAND_DIMS", "SQUEEZE")
CHOICES = ("SELECT", "SELECT_V2")


def narrowed(graph: Any) -> dict[int, Range]:
    """Ranges of tensors that only SOFTMAX reads, and of constants added to them, by tensor.

    graph: a plan.Graph, with the ranges that were seen.
    """
    found: dict[int, Range] = {}
    added: dict[int, list[Range]] = {}
    for i, name in enumerate(graph.names):
        if name != "SOFTMAX":
            continue
        moved, t = [], graph.inputs[i][0]
        while graph.readers.get(t) == 1 and graph.is_float(t) and t in graph.producer:
            moved.append(t)
            producer = graph.producer[t]
            if graph.names[producer] not in MOVERS:
                beta = float(getattr(graph.operators[i].builtin_options, "beta", 1.0) or 1.0)
                kept = _masked(graph, producer, NEGLIGIBLE / max(beta, 1e-3), added)
                found |= {} if kept is None else dict.fromkeys(moved, kept)
                break
            t = graph.inputs[producer][0]
    for constant, ranges in added.items():
        if graph.readers[constant] == len(ranges):  # nobody else wants it as it is
            found[constant] = min(low for low, _ in ranges), max(high for _, high in ranges)
    return found


def _masked(graph: Any, i: int, enough: float, added: dict[int, list[Range]]) -> Range | None:
    """The range that the result of an operator needs; None where it masks nothing."""
    places = (1, 2) if graph.names[i] in CHOICES else (0, 1)
    if graph.names[i] not in (*CHOICES, "ADD") or graph.fused(i) != "NONE":
        return None
    pair = [graph.inputs[i][place] for place in places]
    for x, mask in (pair, pair[::-1]):
        array, seen = graph.constant(mask), graph.range_of(x)
        if array is None or seen is None or not array.size or graph.constant(x) is not None:
            continue
        low, high = seen
        if graph.names[i] in CHOICES:
            return (low - enough, high) if array.max() < low - enough else None
        kept = array[array >= low - high - enough]
        if not kept.size or kept.size == array.size:
            return None
        bound = float(kept.min()) + low - high - enough
        added.setdefault(mask, []).append((bound, float(kept.max())))
        return low + bound, high + float(kept.max())
    return None

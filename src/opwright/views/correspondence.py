"""Pairs of nodes of two graphs, and how they differ.

Lives here: `pair_nodes`, `differences`. Not here: drawing them (viewer.js), errors of values (measurements.py).

A node corresponds to the one of its name and operator, if both names are unique. Between such pairs, in program order,
the remaining nodes are aligned by operator: longest common subsequences (difflib), which find the nodes around inserted
QUANTIZE and DEQUANTIZE operators.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MAX_ALIGNED = 3000
"""Nodes between two pairs that are aligned, at most: difflib takes quadratic time."""

Document = Mapping[str, Any]


def pair_nodes(a: Document, b: Document, graph: int = 0) -> list[tuple[int, int]]:
    """Return pairs of node numbers of the graphs of one number, in the order of `a`."""
    rows_a, rows_b = a["graphs"][graph]["nodes"], b["graphs"][graph]["nodes"]
    ops_a, ops_b = _operators(a, rows_a), _operators(b, rows_b)
    unique_a, unique_b = _unique(rows_a), _unique(rows_b)
    pairs = {
        i: unique_b[name] for name, i in unique_a.items() if name in unique_b and ops_a[i] == ops_b[unique_b[name]]
    }
    anchors = _increasing(sorted(pairs.items()))
    taken = set(pairs.values())
    last_a, last_b = -1, -1
    for i, j in [*anchors, (len(rows_a), len(rows_b))]:
        free_a = [k for k in range(last_a + 1, i) if k not in pairs]
        free_b = [k for k in range(last_b + 1, j) if k not in taken]
        for p, q in _aligned([ops_a[k] for k in free_a], [ops_b[k] for k in free_b]):
            pairs[free_a[p]] = free_b[q]
        last_a, last_b = i, j
    return sorted(pairs.items())


def _operators(document: Document, rows: Sequence[Document]) -> list[str]:
    return [document["operators"][row["o"]]["name"] for row in rows]


def _unique(rows: Sequence[Document]) -> dict[str, int]:
    counts = Counter(row.get("n", "") for row in rows)
    return {row["n"]: i for i, row in enumerate(rows) if row.get("n") and counts[row["n"]] == 1}


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence whose second numbers increase, by patience sorting."""
    ends: list[int] = []  # the least second number that ends a subsequence of each length
    at: list[int] = []
    before: list[int] = []
    for k, (_, j) in enumerate(pairs):
        length = bisect.bisect_left(ends, j)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(j)
            at.append(k)
        else:
            ends[length], at[length] = j, k
    result, k = [], at[-1] if at else -1
    while k >= 0:
        result.append(pairs[k])
        k = before[k]
    return result[::-1]


def _aligned(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    if len(a) > MAX_ALIGNED or len(b) > MAX_ALIGNED:
        return [(k, k) for k in range(min(len(a), len(b))) if a[k] == b[k]]
    blocks = difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]


def differences(a: Document, b: Document, pairs: Sequence[tuple[int, int]], graph: int = 0) -> list[list[str]]:
    """Return for each pair what differs, as texts; empty for equal nodes."""
    return [_differences(a, b, i, j, graph) for i, j in pairs]


def _differences(a: Document, b: Document, i: int, j: int, graph: int) -> list[str]:
    one, other = a["graphs"][graph], b["graphs"][graph]
    x, y = one["nodes"][i], other["nodes"][j]
    texts = []
    attrs, attrs_b = a["attrs"][x["a"]], b["attrs"][y["a"]]
    texts += [
        f"{name}: {attrs.get(name, '-')} -> {attrs_b.get(name, '-')}"
        for name in dict.fromkeys((*attrs, *attrs_b))
        if attrs.get(name) != attrs_b.get(name)
    ]
    for side, label in (("i", "input"), ("u", "output")):
        left, right = x.get(side, ()), y.get(side, ())
        if len(left) != len(right):
            texts.append(f"{len(left)} -> {len(right)} {label}s")
        for k, (v, w) in enumerate(zip(left, right)):
            texts += _of_values(a, b, one["values"][v], other["values"][w], f"{label} {k}")
    if x.get("w", 0) != y.get("w", 0):
        texts.append(f"bytes of constants: {x.get('w', 0)} -> {y.get('w', 0)}")
    return texts


def _of_values(a: Document, b: Document, v: Sequence[Any], w: Sequence[Any], label: str) -> list[str]:
    texts = []
    types = a["types"][v[1]], b["types"][w[1]]
    if types[0] != types[1]:
        texts.append(f"{label}: {types[0]} -> {types[1]}")
    if v[2] != w[2]:
        texts.append(f"{label}: {v[2] or 'no scale'} -> {w[2] or 'no scale'}")
    return texts

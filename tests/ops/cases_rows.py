"""Rows of the test table: merging sparse rows, finding one, embedding lookups.

Lives here: MergeRows, RowsAt, EmbeddingRows.  Not here: the type IndexedSlices (test_indexed_slices.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import bad, bf16, c64, case, f32, f64, i32, i64


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def merged(values: np.ndarray, indices: np.ndarray, shape: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Row by row, as the definition has it."""
    where = sorted(set(indices.tolist()))
    rows = np.zeros((len(where), *values.shape[1:]), values.dtype)
    for value, index in zip(values, indices.tolist()):
        rows[where.index(index)] += value
    return rows, np.array(where, indices.dtype)


def found(rows: np.ndarray, where: np.ndarray, ids: np.ndarray) -> np.ndarray:
    at = {w: i for i, w in enumerate(where.tolist())}
    return np.array([rows[at[i]] for i in ids.reshape(-1).tolist()]).reshape(*ids.shape, *rows.shape[1:])


def looked_up(padding: int) -> Any:
    def expect(table: np.ndarray, ids: np.ndarray) -> np.ndarray:
        rows = table[ids]
        rows[ids == padding] = 0
        return rows

    return expect


SHAPE_DEPENDS_ON_DATA = {"MergeRows"}
ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

CASES = {
    "MergeRows": [
        case(f64(3, 2), ints(2, 0, 2), None, expect=merged),
        case(f64(3, 2), longs(2, 0, 2), longs(4, 2), expect=merged),
        case(f64(3, 2), ints(5, 2, 0), None, expect=merged),
        case(f64(3, 2), ints(0, 2, 5), ints(6, 2), expect=merged),
        case(f64(5), ints(1, 1, 1, 1, 1), None, expect=merged),
        case(f64(200, 2, 2), i64(200, low=0, high=50), None, expect=merged, rtol=1e-12),
        case(f64(90, 2), i32(90, low=0, high=2), None, expect=merged, rtol=1e-12),
        case(c64(3), ints(1, 0, 1), None, expect=merged),
        case(i32(4, 2), ints(1, 0, 1, 1), None, expect=merged),
        case(bf16(3, 2), ints(2, 1, 0), None, expect=merged),
        case(np.zeros((0, 3)), ints(), None, expect=merged),
        case(np.zeros((0, 3)), ints(), ints(4, 3), expect=merged),
        case(np.zeros((2, 0)), ints(3, 3), None, expect=merged),
        bad(f32(3, 2), ints(0, 1), None, says="indices and values differ in number"),
        bad(np.float32(1), ints(0), None, says="scalar"),
        bad(f32(2, 2), ints(0, 4), ints(4, 2), says=("index 4 is out of range", "0 <= index < 4")),
        bad(f32(2, 2), ints(-1, 1), ints(4, 2), says="index -1 is out of range"),
        bad(f32(2, 2), ints(0, 1), ints(4, 3), says="not as wide"),
    ],
    "RowsAt": [
        case(ROWS, ints(1, 4, 7), ints(7, 1, 7), expect=found),
        case(ROWS, longs(1, 4, 7), np.array([[7, 1], [4, 4]]), expect=found),
        case(ROWS, ints(1, 4, 7), np.int32(4), expect=found),
        case(ROWS, ints(1, 4, 7), ints(), expect=np.zeros((0, 2))),
        bad(ROWS, ints(1, 4, 7), ints(1, 5), says="no row 5 among the 3"),
        bad(ROWS, ints(1, 4, 7), ints(9), says="no row 9"),
        bad(np.zeros((0, 2)), ints(), ints(0), says="no row 0"),
        bad(ROWS, ints(1, 4), ints(1), says="differ in number"),
    ],
    "EmbeddingRows": [
        case(f64(5, 2), ints(3, 0, 3, 1), padding_idx=3, expect=looked_up(3)),
        case(f64(5, 2), np.array([[1, 0], [0, 2]]), padding_idx=0, expect=looked_up(0)),
        case(f64(5, 2, 3), np.int32(4), padding_idx=0, expect=lambda t, i: t[4]),
        case(f64(5, 2), ints(), padding_idx=0, expect=np.zeros((0, 2))),
        bad(f32(5, 2), ints(5), padding_idx=0, says="is not in [0, 5)"),
        bad(np.float32(1), ints(0), padding_idx=0, says="at least 1"),
    ],
}

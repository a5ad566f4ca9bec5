"""Rows for sequences: `ops/sequence`, called with offsets as ordinary tensors.

Lives here: a row or two of each kind for each operator.  Not here: worked examples, empty sequences everywhere and
LoDTensors (test_sequence_examples.py, test_sequence_empty.py), the recurrences' gradients
(test_sequence_recurrent.py). Oracles are loops over sequences (sequence_oracles.py).
"""

from __future__ import annotations

import numpy as np
import sequence_oracles as by_loop
from harness import bad, bools, case, f32, f64, i32, i64, u8

from opwright.core.errors import NotFoundError, OutOfRangeError

# How many rows come out depends on the offsets, or on numbers among the inputs.
SHAPE_DEPENDS_ON_DATA = {
    "SequencePoolGrad",
    "SequenceExpand",
    "SequenceExpandAs",
    "SequenceSlice",
    "SequencePlace",
    "SequencePad",
    "SequenceUnpad",
    "SequenceErase",
    "SequenceMask",
    "SequenceRepad",
}


def off(*lengths):
    return np.cumsum([0, *lengths])


def longs(*values):
    return np.array(values, np.int64)


def column(*values):
    return np.array(values, np.int64)[:, None]


def pooled(kind, pad=0.0):
    return lambda x, offsets: by_loop.pool(x, offsets, kind, pad)


def picked(x, offsets, index):
    y = np.zeros(index.shape)
    for at in np.ndindex(*index.shape):
        if index[at] >= 0:
            y[at] = x[(index[at], *at[1:])]
    return y


def pool_gradient(kind, offsets, rows, feature=()):
    """By the definition: what each row adds to the pooled one."""

    def oracle(dy, _, *index):
        dx = np.zeros((rows, *dy.shape[1:]))
        for i in range(len(offsets) - 1):
            a, b = offsets[i], offsets[i + 1]
            if b == a:
                continue
            if kind == "MAX":
                for f in np.ndindex(*dy.shape[1:]):
                    dx[(index[0][(i, *f)], *f)] = dy[(i, *f)]
            elif kind in ("FIRST", "LAST"):
                dx[a if kind == "FIRST" else b - 1] = dy[i]
            else:
                dx[a:b] = dy[i] / {"SUM": 1, "AVERAGE": b - a, "SQRT": (b - a) ** 0.5}[kind]
        return dx

    return oracle


SOME = off(2, 0, 3, 1)
INDEX = np.array([[0, 1], [-1, -1], [4, 2], [5, 5]], np.int32)

LSTM = {"use_peepholes": True}
UNITS = 3


def lstm_row(offsets, start=True, peepholes=True, **attrs):
    rows, n = int(offsets[-1]), len(offsets) - 1
    inputs = [f64(rows, 4 * UNITS), f64(UNITS, 4 * UNITS), f64(1, (7 if peepholes else 4) * UNITS)]
    inputs += [f64(n, UNITS), f64(n, UNITS)] if start else [None, None]
    return case(
        *inputs,
        offsets,
        use_peepholes=peepholes,
        grad=False,
        **attrs,
        expect=lambda *a: by_loop.lstm(*a, use_peepholes=peepholes, **attrs),
    )


def gru_row(offsets, start=True, bias=True, **attrs):
    rows, n = int(offsets[-1]), len(offsets) - 1
    return case(
        f64(rows, 3 * UNITS),
        f64(UNITS, 3 * UNITS),
        f64(1, 3 * UNITS) if bias else None,
        f64(n, UNITS) if start else None,
        offsets,
        grad=False,
        **attrs,
        expect=lambda *a: by_loop.gru(*a, **attrs),
    )


CASES = {
    "SequencePool": [
        *[case(f64(6, 2), SOME, pooltype=kind, pad_value=-1.5, expect=pooled(kind, -1.5)) for kind in by_loop.POOLS],
        *[case(f32(44, 2, 3), off(44), pooltype=kind, expect=pooled(kind)) for kind in by_loop.POOLS],
        case(f64(6), SOME, pooltype="MAX", expect=pooled("MAX")),
        case(f64(6, 2), SOME, pooltype="MAX", is_test=True, grad=False, expect=pooled("MAX")),
        case(i32(6, 2), SOME, pooltype="SUM", expect=pooled("SUM")),
        case(i64(6, 2), SOME, pooltype="MAX", expect=pooled("MAX")),
        case(f64(0, 2), off(0, 0), expect=np.zeros((2, 2))),
        case(np.array([[3.0], [3.0], [1.0]]), off(3), pooltype="MAX", expect=[[3.0]], grad=False),
        case(np.array([[1.0], [np.nan], [4.0]]), off(3), pooltype="MAX", expect=[[np.nan]], grad=False),
        bad(f64(5, 2), SOME, says=("offsets of 'x'", "there are 5 rows")),
        bad(f64(6, 2), longs(0, 4, 3, 6), says="falls from 4 to 3"),
        bad(f64(6, 2), longs(1, 6), says="starts at 1"),
        bad(f64(6, 2), longs(0), says="too few offsets"),
        bad(f64(6, 2), SOME, pooltype="max", says=("pooltype", "'MAX'")),
        bad(i32(6, 2), SOME, pooltype="AVERAGE", says="fraction"),
        bad(f64(6, 2), None, says="no LoD"),
    ],
    "SequencePoolGrad": [
        *[
            case(f64(4, 2), SOME, pooltype=kind, expect=pool_gradient(kind, SOME, 6))
            for kind in ("SUM", "AVERAGE", "SQRT", "FIRST", "LAST")
        ],
        case(f64(4, 2), SOME, INDEX, pooltype="MAX", expect=pool_gradient("MAX", SOME, 6)),
        bad(f64(4, 2), SOME, pooltype="MAX", says="max_index"),
        bad(f64(3, 2), SOME, says="one row for each sequence"),
    ],
    "SequencePick": [case(f64(6, 2), SOME, INDEX, expect=picked), bad(f64(6, 3), SOME, INDEX, says="differ in shape")],
    "SequenceSoftmax": [
        case(f64(6), SOME, expect=by_loop.softmax),
        case(f64(6, 1), SOME, expect=by_loop.softmax),
        case(np.array([1000.0, 1000.0, -1000.0, -1000.0]), off(2, 2), expect=[0.5, 0.5, 0.5, 0.5]),
        case(f64(0), off(0, 0), expect=np.zeros(0)),
        bad(f64(6, 2), SOME, says="more than one number"),
        bad(f64(5), SOME, says="there are 5 rows"),
    ],
    "SequenceSoftmaxGrad": [
        case(
            f64(6),
            f64(6),
            SOME,
            expect=lambda dy, y, o: (
                y * (dy - np.repeat([(dy * y)[a:b].sum() for a, b in by_loop.spans(o)], np.diff(o)))
            ),
        ),
        bad(f64(6, 1), f64(6), SOME, says="differ in shape"),
    ],
    "SequenceExpand": [
        case(f64(3, 2), u8(6), None, [off(2, 0, 4)], expect=lambda x, y, o, levels: by_loop.expand(x, None, levels[0])),
        case(
            f64(4, 2),
            None,
            off(1, 0, 3),
            [off(2, 3, 1)],
            expect=lambda x, y, o, levels: by_loop.expand(x, o, levels[0]),
        ),
        case(
            bools(2, 2),
            None,
            None,
            [off(1, 1), off(3, 2)],
            ref_level=0,
            expect=lambda x, y, o, levels: by_loop.expand(x, None, levels[0]),
        ),
        bad(f64(3, 2), None, None, [off(2, 0)], says=("as many rows", "its last level")),
        bad(f64(3, 2), None, off(1, 2), [off(2, 0, 1)], says="as many sequences"),
        bad(f64(3, 2), None, None, [off(2, 0, 1)], ref_level=1, says="no level 1"),
        bad(f64(3, 2), None, None, [off(2, 0, 1)], ref_level=-2, says="ref_level"),
        bad(f64(3), None, None, [off(2, 0, 1)], says="rank 2 or more"),
    ],
    "SequenceExpandAs": [
        case(f64(3, 2), None, off(2, 0, 3), expect=lambda x, y, o: np.repeat(x, [2, 0, 3], 0)),
        case(i32(3), u8(5), off(2, 0, 3), expect=lambda x, y, o: np.repeat(x, [2, 0, 3], 0)),
        bad(f64(2, 2), None, off(2, 0, 3), says="one row for each sequence"),
    ],
    "SequenceConcat": [
        case(
            [f64(3, 2), f64(4, 2), f64(0, 2)],
            [off(2, 1), off(0, 4), off(0, 0)],
            expect=lambda x, o: by_loop.concat(x, o),
        ),
        case([i32(2), i32(1)], [off(2), off(1)], expect=lambda x, o: by_loop.concat(x, o)),
        bad([f64(3, 2)], [off(2, 1)], says="nothing to join"),
        bad([f64(3, 2), f64(3, 1)], [off(2, 1), off(2, 1)], says="another shape"),
        bad([f64(3, 2), f64(3, 2)], [off(2, 1), off(3)], says="number of sequences"),
        bad([f64(3, 2), f64(3, 2)], [off(2, 1)], says="offsets for each input"),
        bad([f64(3, 2), f64(4, 2)], [off(2, 1), off(2, 1)], says=("offsets of 'input 1'", "4 rows")),
    ],
    "SequenceTake": [
        case(f64(5, 2), longs(3, 0), expect=lambda x, rows: x[[3, 0]]),
        bad(f64(5, 2), longs(5), says="no such row"),
    ],
    "SequencePlace": [
        case(
            f64(2, 3),
            longs(3, 0),
            np.int32(5),
            expect=lambda y, rows, n: np.stack([y[1], 0 * y[0], 0 * y[0], y[0], 0 * y[0]]),
        ),
        bad(f64(2, 3), longs(3, -1), np.int32(5), says="no such row"),
    ],
    "SequenceSlice": [
        case(f64(6, 2), column(1, 0, 0, 1), column(1, 0, 2, 0), SOME, expect=by_loop.slice),
        case(i32(3), np.array([[1], [0]], np.int32), np.array([[1], [1]], np.int32), off(2, 1), expect=by_loop.slice),
        bad(f64(3, 2), column(1, 0), column(-1, 1), off(2, 1), says=("'length'", "negative")),
        bad(f64(3, 2), column(-1, 0), column(1, 1), off(2, 1), says=("'offset'", "negative")),
        bad(f64(3, 2), column(1, 0), column(2, 1), off(2, 1), raises=OutOfRangeError, says="window of sequence 0"),
        bad(f64(3, 2), column(1), column(2, 1), off(2, 1), says=("'offset'", "shape [2, 1]")),
        bad(f64(3, 2), column(1, 0), longs(1, 1), off(2, 1), says=("'length'", "shape [2, 1]")),
    ],
    "SequenceReverse": [
        case(f64(6, 2), SOME, expect=by_loop.reverse),
        case(bools(3, 1, 2), off(2, 1), expect=by_loop.reverse),
        bad(f64(6), SOME, says="rank 2 or more"),
    ],
    "SequencePad": [
        case(f64(6, 2), np.array(-1.0), SOME, grad=(0,), expect=by_loop.pad),
        case(f64(6, 2), f64(2), SOME, padded_length=4, grad=(0,), expect=lambda *a: by_loop.pad(*a, 4)),
        case(i32(6, 1), np.array([7], np.int32), SOME, expect=by_loop.pad),
        case(f64(0, 2), np.array(1.0), off(0, 0), expect=(np.zeros((2, 0, 2)), [0, 0])),
        bad(f64(6, 2), np.array(1.0), SOME, padded_length=2, says=("longer than padded_length", "3 rows")),
        bad(f64(6, 2), f64(3), SOME, says=("pad value", "[2]")),
        bad(f64(6), np.array(1.0), SOME, says="rank 2 or more"),
    ],
    "SequenceUnpad": [
        case(f64(3, 4, 2), longs(2, 0, 4), expect=by_loop.unpad),
        case(f32(3, 4), np.array([2, 0, 4], np.int32), expect=by_loop.unpad),
        case(f64(2, 3, 2), longs(0, 0), expect=by_loop.unpad),
        bad(f64(3, 4, 2), longs(2, 5, 4), says=("a length", "0 to the padded length, 4")),
        bad(f64(3, 4, 2), longs(2, -1, 4), says="a length"),
        bad(f64(3, 4, 2), longs(2, 1), says=("'length'", "shape [3]")),
        bad(f64(3, 4, 2), column(2, 1, 0), says="'length'"),
        bad(f64(3), longs(2, 1, 0), says="rank 2 or more"),
    ],
    "SequenceRepad": [
        case(
            f64(6, 2),
            longs(2, 0, 4),
            np.array([3, 5, 2], np.int32),
            expect=lambda y, n, s: by_loop.pad(y, 0.0, off(2, 0, 4), 5)[0],
        ),
        bad(f64(5, 2), longs(2, 0, 4), np.array([3, 5, 2], np.int32), says="as many rows"),
    ],
    "SequenceMask": [
        case(longs(3, 0, 1), expect=[[1, 1, 1], [0, 0, 0], [1, 0, 0]], gives="int64"),
        case(longs(3, 0, 1), maxlen=2, out_dtype="float32", expect=[[1, 1], [0, 0], [1, 0]], gives="float32"),
        case(np.array([[2.0, 0.0]]), np.array(3, np.int32), expect=[[[1, 1, 0], [0, 0, 0]]]),
        case(longs(0, 0), expect=np.zeros((2, 0))),
        case(np.zeros(0, np.int64), expect=np.zeros((0, 0))),
        bad(longs(3, 0), maxlen=0, says="maxlen"),
        bad(longs(3, 0), np.array([0]), says="at least 1"),
    ],
    "SequenceContext": [
        case(
            f64(6, 2),
            None,
            SOME,
            context_length=3,
            context_start=-1,
            expect=lambda x, p, o: by_loop.windows(x, o, 3, -1),
        ),
        case(
            f64(6, 2),
            f64(2, 2),
            SOME,
            context_length=3,
            context_start=-1,
            padding_trainable=True,
            expect=lambda x, p, o: by_loop.windows(x, o, 3, -1, p),
        ),
        bad(f64(6, 2), None, SOME, context_length=3, padding_trainable=True, says="padding_data"),
        bad(f64(6, 2), f64(1, 2), SOME, context_length=3, padding_trainable=True, says="shape [2, 2]"),
    ],
    "SequenceContextGrad": [
        case(
            f64(6, 6),
            SOME,
            context_length=3,
            context_start=-1,
            padding_trainable=True,
            expect=lambda dy, o: by_loop.windows_gradient(dy, o, 3, -1),
        ),
        bad(f64(6, 5), SOME, context_length=3, says="whole windows"),
    ],
    "SequenceConv": [
        case(
            f64(6, 2),
            f64(6, 4),
            None,
            SOME,
            context_length=3,
            context_start=-1,
            expect=lambda x, w, p, o: by_loop.windows(x, o, 3, -1) @ w,
        ),
        case(
            f64(6, 2),
            f64(8, 1),
            f64(5, 2),
            SOME,
            context_length=4,
            context_start=-5,
            padding_trainable=True,
            expect=lambda x, w, p, o: by_loop.windows(x, o, 4, -5, p) @ w,
        ),
        case(
            f64(6, 2),
            f64(4, 3),
            f64(3, 2),
            SOME,
            context_length=2,
            context_start=2,
            padding_trainable=True,
            expect=lambda x, w, p, o: by_loop.windows(x, o, 2, 2, p) @ w,
        ),
        case(f32(0, 2), f32(4, 3), None, off(0, 0), context_length=2, expect=np.zeros((0, 3))),
        bad(f64(6, 2), f64(5, 4), None, SOME, context_length=3, says=("filter", "6 rows")),
        bad(f64(6, 2), f64(6, 4), None, SOME, context_length=3, context_stride=2, says="context_stride 1"),
        bad(f64(6, 2), f64(6, 4), None, SOME, context_length=0, says="context_length"),
        bad(f64(6, 2), f64(6, 4), None, SOME, says="context_length"),
        bad(f64(6, 2), f64(6, 4), f64(3, 2), SOME, context_length=3, padding_trainable=True, says="shape [2, 2]"),
        bad(f64(6, 2), f64(2, 4), f64(1, 2), SOME, context_length=1, padding_trainable=True, says="no padding"),
    ],
    "SequenceErase": [
        case(column(2, 2, 6, 1, 3, 9), SOME, tokens=[2, 9], expect=([[6], [1], [3]], [0, 0, 0, 3, 3])),
        case(column(2, 2).astype(np.int32), off(2), tokens=[2], expect=(np.zeros((0, 1)), [0, 0])),
        case(column(2, 3), off(1, 1), tokens=[], expect=([[2], [3]], [0, 1, 2])),
        bad(np.ones((3, 2), np.int64), off(3), tokens=[1], says="shape [rows, 1]"),
    ],
    "SequenceEnumerate": [
        case(
            column(4, 8, 15, 16, 23, 42),
            SOME,
            win_size=2,
            expect=[[4, 8], [8, 0], [15, 16], [16, 23], [23, 0], [42, 0]],
        ),
        case(
            column(4, 8, 15).astype(np.int32),
            off(3),
            win_size=5,
            pad_value=-1,
            expect=[[4, 8, 15, -1, -1], [8, 15, -1, -1, -1], [15, -1, -1, -1, -1]],
        ),
        bad(column(4, 8), off(2), win_size=1, says="win_size"),
        bad(np.ones((3, 2), np.int64), off(3), win_size=2, says="shape [rows, 1]"),
        bad(column(4, 8), off(3), win_size=2, says="there are 2 rows"),
    ],
    "SequenceReshape": [
        case(f64(6, 2), SOME, new_dim=1, expect=lambda x, o: (x.reshape(12, 1), 2 * o)),
        case(f64(4, 3), off(2, 0, 2), new_dim=6, expect=lambda x, o: (x.reshape(2, 6), o // 2)),
        case(i32(0, 3), off(0, 0), new_dim=6, expect=(np.zeros((0, 6)), [0, 0, 0])),
        bad(f64(4, 3), off(3, 1), new_dim=6, says=("sequence 1 of 2", "9 numbers")),
        bad(f64(4, 3), off(4), new_dim=0, says="new_dim"),
    ],
    "SequenceScatter": [
        case(f64(4, 3), column(0, 2, 1, 1, 2, 0), f64(6, 1), SOME, SOME, expect=by_loop.scatter),
        case(f64(4, 1, 3), column(0, 2, 1, 1, 2, 0), f64(6, 1), SOME, SOME, expect=by_loop.scatter),
        case(i32(2, 2), column(1).astype(np.int32), i32(1, 1), off(0, 1), off(0, 1), expect=by_loop.scatter),
        bad(f64(2, 3), column(0, 3), f64(2, 1), off(1, 1), off(1, 1), says="not a place in a row"),
        bad(f64(2, 3), column(0, -1), f64(2, 1), off(1, 1), off(1, 1), says="not a place in a row"),
        bad(f64(2, 3), column(0, 1), f64(2, 1), off(1, 1), off(2, 0), says="same lengths"),
        bad(f64(2, 3), column(0, 1), f64(3, 1), off(1, 1), off(1, 1), says="differ in rows"),
        bad(f64(3, 3), column(0, 1), f64(2, 1), off(1, 1), off(1, 1), says="for each row of x"),
        bad(f64(2, 3), longs(0, 1), f64(2, 1), off(1, 1), off(1, 1), says="'ids'"),
        bad(f64(2), column(0, 1), f64(2, 1), off(1, 1), off(1, 1), says="rank 2 or more"),
    ],
    "LodReset": [
        case(f64(6, 1), None, None, None, target_lod=[0, 1, 1, 6], expect=lambda x, *_: (x, [0, 1, 1, 6])),
        case(f64(3), np.array([0, 3], np.int32), None, None, expect=lambda x, *_: (x, [0, 3])),
        case(f64(3), f64(3), [off(1, 1), off(3, 0)], None, expect=lambda x, *_: (x, [0, 1, 2], [0, 3, 3])),
        case(
            f64(3),
            None,
            None,
            [off(1, 1)],
            target_lod=[0, 3, 3],
            append=True,
            expect=lambda x, *_: (x, [0, 1, 2], [0, 3, 3]),
        ),
        case(i32(0), None, None, None, target_lod=[0, 0], expect=lambda x, *_: (x, [0, 0])),
        bad(f64(6, 1), None, None, None, says="no LoD to set"),
        bad(f64(6, 1), None, None, None, target_lod=[0], says="two or more"),
        bad(f64(6, 1), None, None, None, target_lod=[1, 6], says="starts at 1"),
        bad(f64(6, 1), None, None, None, target_lod=[0, 4, 3, 6], says="falls"),
        bad(f64(6, 1), None, None, None, target_lod=[0, 5], says="6 rows"),
        bad(f64(6, 1), f64(2), None, None, says="does not hold offsets"),
        bad(f64(5, 1), f64(6), [off(6)], None, says="5 rows"),
        bad(f64(6, 1), None, None, [off(2, 4)], target_lod=[0, 2, 6], append=True, says="level 1 has 2 sequences"),
        bad(f64(), None, None, None, target_lod=[0, 1], says="scalar"),
    ],
    "DynamicLstm": [
        lstm_row(SOME),
        lstm_row(SOME, start=False, is_reverse=True),
        lstm_row(off(0, 5, 1), peepholes=False),
        lstm_row(
            off(2, 2), peepholes=False, gate_activation="tanh", cell_activation="relu", candidate_activation="identity"
        ),
        bad(f64(6, 12), f64(3, 12), f64(1, 21), f64(4, 3), None, SOME, raises=NotFoundError, says=("'h0'", "'c0'")),
        bad(f64(6, 12), f64(3, 12), f64(1, 21), None, f64(4, 3), SOME, raises=NotFoundError, says=("'h0'", "'c0'")),
        bad(f64(6, 12), f64(3, 12), f64(1, 21), f64(4, 3), f64(3, 3), SOME, says="h0 and c0"),
        bad(f64(6, 12), f64(3, 12), f64(1, 21), f64(3, 3), f64(3, 3), SOME, says=("'h0'", "[4, 3]")),
        bad(f64(6, 12), f64(3, 12), f64(1, 12), None, None, SOME, says=("'bias'", "use_peepholes=True", "[1, 21]")),
        bad(f64(6, 12), f64(3, 12), f64(1, 21), None, None, SOME, use_peepholes=False, says=("'bias'", "[1, 12]")),
        bad(f64(6, 12), f64(3, 9), f64(1, 21), None, None, SOME, says="'weight'"),
        bad(f64(6, 11), f64(3, 12), f64(1, 21), None, None, SOME, says="'x'"),
        bad(f64(6, 2, 6), f64(3, 12), f64(1, 21), None, None, SOME, says="rank 2"),
        bad(f64(6, 12), f64(3, 12), f64(1, 21), None, None, SOME, gate_activation="gelu", says="gate_activation"),
    ],
    "DynamicLstmGrad": [
        bad(
            f64(5, 3),
            f64(6, 3),
            f64(3, 12),
            f64(1, 21),
            None,
            None,
            SOME,
            f64(6, 3),
            f64(6, 3),
            f64(6, 12),
            f64(6, 3),
            says=("'dhidden'", "hidden"),
        )
    ],
    "DynamicGru": [
        gru_row(SOME),
        gru_row(SOME, start=False, is_reverse=True),
        gru_row(off(0, 5, 1), bias=False, origin_mode=True),
        gru_row(off(2, 2), start=False, origin_mode=True, gate_activation="tanh", activation="relu"),
        bad(f64(6, 8), f64(3, 9), None, None, SOME, says="'x'"),
        bad(f64(6, 9), f64(3, 8), None, None, SOME, says="'weight'"),
        bad(f64(6, 9), f64(3, 9), f64(1, 8), None, SOME, says=("'bias'", "[1, 9]")),
        bad(f64(6, 9), f64(3, 9), None, f64(4, 2), SOME, says=("'h0'", "[4, 3]")),
        bad(f64(6, 9), f64(3, 9), None, None, SOME, activation="gelu", says="activation"),
    ],
    "DynamicGruGrad": [
        bad(f64(5, 3), f64(3, 9), None, SOME, f64(6, 9), f64(6, 3), f64(6, 3), says=("'dhidden'", "hidden"))
    ],
}

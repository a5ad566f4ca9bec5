"""Rows of what is looked up, chosen and drawn: embeddings, tables of keys, hashes, boxes, texts, random numbers.

Lives here: rows.  Not here: hash tables that are resources (drawn_rows_programs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import NUMPY, Draw, Drawn, Row, T, const, plain

WHOLE = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "FLOAT16", "FLOAT32", "FLOAT64",
         "BFLOAT16", "BOOL", "COMPLEX64", "COMPLEX128")  # fmt: skip
"""Types that official kernels copy byte by byte; those below a byte they get wrong."""


def keyed(d: Draw) -> Drawn:
    n, rank = d.size(1, 5), 1 if d.kind == "STRING" else d.size(1, 4)
    keys = np.sort(d.rng.permutation(9)[:n]).astype(np.int32)
    value = d.t(n, *d.shape(rank - 1))
    wanted = d.t(d.size(1, 6), kind="INT32", low=0, high=9)
    return Drawn([wanted, T("INT32", (n,), values=keys), value], [plain(d.kind), plain("UINT8")])


def sparse_embedding(d: Draw) -> Drawn:
    rows, rank, n = d.size(2, 5), d.size(1, 4), d.size(1, 7)
    shape = [d.size(1, 3) for _ in range(rank)]
    flat = np.sort(d.rng.integers(0, np.prod(shape), n))
    places = np.stack(np.unravel_index(flat, shape), -1).astype(np.int32)
    inputs = [d.t(n, kind="INT32", low=0, high=rows - 1), T("INT32", places.shape, values=places), const(*shape),
              d.t(n, low=0.1, high=2), d.t(rows, *d.shape(d.size(1, 3)))]  # fmt: skip
    return Drawn(inputs, [plain("FLOAT32")], {"combiner": d.one("SUM", "MEAN", "SQRTN")})


def hashed(d: Draw) -> Drawn:
    rows = d.size(1, 4)
    inputs = [d.t(d.size(1, 4), d.size(1, 9), kind="FLOAT32"), d.t(rows, *d.shape(d.size(0, 2)))]
    if d.one(True, False):
        inputs.append(d.t(rows, kind="FLOAT32", low=-2, high=2))
    return Drawn(inputs, [plain("INT32")], {"type": d.one("SPARSE", "DENSE")})


def words(d: Draw) -> Drawn:
    some = [b"w%d" % i for i in range(d.size(0, 7))]
    text = d.one(b" ".join(some), b"  a b \t c\n d ", b"", "\u00e9 \u03b2 g".encode())
    values = np.empty(1, object)
    values[0] = text
    options = {"ngram_size": d.size(1, 4), "max_skip_size": d.size(0, 3), "include_all_ngrams": d.one(True, False)}
    return Drawn([T("STRING", (1,), values=values)], [plain("STRING")], options)


def boxes(soft: bool) -> Callable[[Draw], Drawn]:
    def number(d: Draw, value: Any, kind: str = "FLOAT32") -> T:
        return T(kind, (), values=np.array(value, NUMPY[kind]), constant=d.one(True, False))

    def made(d: Draw) -> Drawn:
        n = d.size(1, 14)
        scores = d.t(n, low=0, high=1)  # no two are equal: the official kernel's order of such is that of its heap
        inputs = [d.t(n, 4, low=0, high=4), scores, number(d, d.size(1, 9), "INT32"), number(d, d.rng.uniform(0, 1)),
                  number(d, d.rng.uniform(-0.2, 0.6))]  # fmt: skip
        if not soft:
            return Drawn(inputs, [plain("INT32"), plain("INT32")])
        inputs.append(number(d, d.one(0.0, 0.3, 1.0)))
        return Drawn(inputs, [plain("INT32"), plain("FLOAT32"), plain("INT32")])

    return made


def random_numbers(d: Draw) -> Drawn:
    seeds = {"seed": d.size(1, 1 << 31), "seed2": d.one(0, d.size(1, 1 << 31))}
    return Drawn([const(*d.shape(d.size(0, 4)))], [plain("FLOAT32")], seeds, runs=3)


def classes(d: Draw) -> Drawn:
    logits = d.t(d.size(1, 4), d.size(1, 7), kind="FLOAT32", low=-5, high=5)
    count = T("INT32", (), values=np.array(d.size(1, 20), np.int32), constant=True)
    return Drawn([logits, count], [plain(d.kind)], {"seed": d.size(1, 999), "seed2": d.size(0, 999)}, runs=3)


ROWS = [
    Row("HASHTABLE_LOOKUP", (*WHOLE, "STRING"), keyed),
    Row("EMBEDDING_LOOKUP_SPARSE", ("FLOAT32",), sparse_embedding, within=1e-6),  # sums in another order
    Row("LSH_PROJECTION", (*WHOLE, "STRING"), hashed),
    Row("SKIP_GRAM", ("STRING",), words),
    Row("NON_MAX_SUPPRESSION_V4", ("FLOAT32",), boxes(soft=False)),
    Row("NON_MAX_SUPPRESSION_V5", ("FLOAT32",), boxes(soft=True), within=1e-6),
    Row("RANDOM_UNIFORM", ("FLOAT32",), random_numbers),
    Row("RANDOM_STANDARD_NORMAL", ("FLOAT32",), random_numbers, within=1e-6),  # sines of another library
    Row("MULTINOMIAL", ("INT32", "INT64"), classes),
]

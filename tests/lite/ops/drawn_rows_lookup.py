"""Rows of what is looked up, chosen and drawn: embeddings, keys, hashes, boxes, texts, random numbers, sparse tensors.

Lives here: rows.  Not here: hash tables that are resources (drawn_rows_programs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import NUMPY, Draw, Drawn, Row, T, const, model_of, plain

from opwright.lite.format import objects

WHOLE = (
    "INT8",
    "UINT8",
    "INT16",
    "UINT16",
    "INT32",
    "UINT32",
    "INT64",
    "UINT64",
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "BFLOAT16",
    "BOOL",
    "COMPLEX64",
    "COMPLEX128",
)
"""Types that official kernels copy byte by byte; those below a byte they get wrong."""


def keyed(d: Draw) -> Drawn:
    n, rank = d.size(1, 5), 1 if d.kind == "STRING" else d.size(1, 4)
    keys = np.sort(d.rng.permutation(9)[:n]).astype(np.int32)
    value = d.t(n, *d.shape(rank - 1))
    expected = d.t(d.size(1, 6), kind="INT32", low=0, high=9)
    return Drawn([expected, T("INT32", (n,), values=keys), value], [plain(d.kind), plain("UINT8")])


def rows_by_number(d: Draw) -> Drawn:
    value = d.t(d.size(1, 5), *d.shape(d.size(1, 3)))
    expected = d.t(d.size(1, 6), kind="INT32", low=0, high=value.shape[0] - 1)
    return Drawn([expected, value], [plain(d.kind)])


def sparse_embedding(d: Draw) -> Drawn:
    rows, rank, n = d.size(2, 5), d.size(1, 4), d.size(1, 7)
    shape = [d.size(1, 3) for _ in range(rank)]
    flat = np.sort(d.rng.integers(0, np.prod(shape), n))
    places = np.stack(np.unravel_index(flat, shape), -1).astype(np.int32)
    inputs = [
        d.t(n, kind="INT32", low=0, high=rows - 1),
        T("INT32", places.shape, values=places),
        const(*shape),
        d.t(n, low=0.1, high=2),
        d.t(rows, *d.shape(d.size(1, 3))),
    ]
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
        inputs = [
            d.t(n, 4, low=0, high=4),
            scores,
            number(d, d.size(1, 9), "INT32"),
            number(d, d.rng.uniform(0, 1)),
            number(d, d.rng.uniform(-0.2, 0.6)),
        ]
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


def different(d: Draw) -> Drawn:
    places = d.one("INT32", "INT64")
    return Drawn([d.t(d.size(1, 12), low=-2, high=3)], [plain(d.kind), plain(places)], {"idx_out_type": places})


def buckets(d: Draw) -> Drawn:
    bounds = sorted(float(np.float32(v)) for v in d.rng.uniform(-9, 9, d.size(1, 6)).round(d.one(0, 9)))
    return Drawn([d.t(*d.shape(d.size(0, 5)))], [plain("INT32")], {"boundaries": bounds})


def places_to_dense(d: Draw) -> Drawn:
    rank, kind = d.size(1, 4), d.one("INT32", "INT64")
    shape = d.shape(rank)
    count = min(d.size(1, 5), int(np.prod(shape)))
    flat = np.sort(d.rng.permutation(int(np.prod(shape)))[:count])
    places = np.stack(np.unravel_index(flat, shape), -1).astype(NUMPY[kind])
    if rank == 1 and d.one(True, False):
        places = places[:, 0]
    inputs = [
        T(kind, places.shape, values=places),
        T(kind, (rank,), values=np.array(shape, NUMPY[kind]), constant=d.one(True, False)),
        d.one(d.t(count), d.t()),
        d.t(),
    ]
    return Drawn(inputs, [plain(d.kind)], {"validate_indices": d.one(True, False)})


def densified(d: Draw) -> Drawn:
    """A constant of two dimensions in either order, one level dense and one compressed."""
    shape, order = d.shape(2), d.one([0, 1], [1, 0])
    full = np.where(d.rng.random(shape) < 0.5, d.values(d.kind, shape, 1, 9), np.zeros((), NUMPY[d.kind]))
    laid = full.transpose(order)
    rows, columns = np.nonzero(laid)
    stored = T(d.kind, shape, values=laid[rows, columns].astype(NUMPY[d.kind]), constant=True)
    drawn = Drawn([stored], [plain(d.kind)])
    drawn.model = model_of("DENSIFY", drawn)
    name, kind = d.one(("Int32Vector", np.int32), ("Uint16Vector", np.uint16), ("Uint8Vector", np.uint8))
    vector = objects.table_class(name)
    ends = np.append(0, np.cumsum(np.bincount(rows, minlength=len(laid))))
    levels = [
        objects.DimensionMetadata(format=0, dense_size=len(laid)),
        objects.DimensionMetadata(
            format=1, array_segments=vector(values=ends.astype(kind)), array_indices=vector(values=columns.astype(kind))
        ),
    ]
    drawn.model.subgraphs[0].tensors[0].sparsity = objects.SparsityParameters(
        traversal_order=np.int32(order), block_map=np.int32([]), dim_metadata=levels
    )
    return drawn


ROWS = [
    Row("HASHTABLE_LOOKUP", (*WHOLE, "STRING"), keyed),
    Row("EMBEDDING_LOOKUP", ("COMPLEX64", "COMPLEX128"), rows_by_number),  # the other types: drawn_rows_products.py
    Row("EMBEDDING_LOOKUP_SPARSE", ("FLOAT32",), sparse_embedding, within=1e-6),  # sums in another order
    Row("LSH_PROJECTION", (*WHOLE, "STRING"), hashed),
    Row("SKIP_GRAM", ("STRING",), words),
    Row("NON_MAX_SUPPRESSION_V4", ("FLOAT32",), boxes(soft=False)),
    Row("NON_MAX_SUPPRESSION_V5", ("FLOAT32",), boxes(soft=True), within=1e-6),
    Row("RANDOM_UNIFORM", ("FLOAT32",), random_numbers),
    Row("RANDOM_STANDARD_NORMAL", ("FLOAT32",), random_numbers, within=1e-6),  # sines of another library
    Row("MULTINOMIAL", ("INT32", "INT64"), classes),
    Row("UNIQUE", ("INT8", "UINT8", "INT16", "INT32", "INT64", "FLOAT32"), different),
    Row("BUCKETIZE", ("INT32", "INT64", "FLOAT32", "FLOAT64"), buckets),
    Row("SPARSE_TO_DENSE", ("INT8", "UINT8", "INT32", "INT64", "FLOAT32"), places_to_dense),
    Row("DENSIFY", ("FLOAT32", "FLOAT16", "INT8"), densified),
]

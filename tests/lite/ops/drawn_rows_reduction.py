"""Rows of the table operator x type: reductions, searches and sums along axes, and conversions between types.

Lives here: these rows, on plain numbers.
Not here: reductions of tensors with scales, QUANTIZE and DEQUANTIZE (drawn_rows_elementwise_quantized.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from drawn import NUMPY, PACKED, Draw, Drawn, Row, T, plain
from drawn_rows_elementwise import ANY, HALF, NARROW, SINGLE, filled, shape_of, whole_range


def axes_of(d: Draw, rank: int) -> T:
    """Some axes, counted from either end, some of them twice; a list or, where there is one, perhaps a scalar."""
    chosen = d.rng.integers(-rank, rank, d.size(0, rank + 1)) if rank else d.rng.integers(-1, 1, d.size(0, 1))
    values = np.array(chosen if len(chosen) != 1 or d.one(True, False) else chosen[0], np.int32)
    return T("INT32", values.shape, values=values, constant=True)


def _reduced(draw: Callable[[Draw, tuple[int, ...]], T]) -> Callable[[Draw], Drawn]:
    def model(d: Draw) -> Drawn:
        shape = shape_of(d)
        return Drawn([draw(d, shape), axes_of(d, len(shape))], [plain(d.kind)], {"keep_dims": d.one(True, False)})

    return model


def _numbers(low: float = -9, high: float = 9) -> Callable[[Draw], Drawn]:
    return _reduced(lambda d, shape: d.t(*shape, low=low, high=high))


ends = _reduced(lambda d, shape: whole_range(d, *shape))


def averaged(d: Draw) -> Drawn:
    """Means of at least one element."""
    return filled(_numbers())(d)


def reduced_by_xnnpack(d: Draw) -> Drawn:
    shape = tuple(d.size(1, 4) for _ in range(4))
    axes = np.array(d.one([1, 2], [2], [3], [2, 3], [1, 2, 3]), np.int32)
    return Drawn(
        [d.t(*shape), T("INT32", axes.shape, values=axes, constant=True)],
        [plain(d.kind)],
        {"keep_dims": d.one(True, False)},
    )


def searched(d: Draw) -> Drawn:
    """Of elements that are equal the first one counts."""
    rank = d.size(1, 5)
    shape = tuple(d.size(1, 4) for _ in range(rank))
    x = d.t(*shape, low=-3, high=3)
    if d.kind == "FLOAT32":
        x.values = np.round(x.values)
    axis = np.array(d.size(-rank, rank - 1), NUMPY[wide := d.one("INT32", "INT64")]).reshape(d.one((), (1,)))
    index = d.one("INT32", "INT64")
    return Drawn(
        [x, T(wide, axis.shape, values=axis, constant=d.one(True, False))], [plain(index)], {"output_type": index}
    )


def running(d: Draw) -> Drawn:
    shape = shape_of(d, 5, 1)
    axis = np.array(d.size(-len(shape), len(shape) - 1), np.int32)
    return Drawn(
        [d.t(*shape), T("INT32", (), values=axis, constant=True)],
        [plain(d.kind)],
        {"exclusive": d.one(True, False), "reverse": d.one(True, False)},
    )


CAST_FROM = tuple(k for k in ANY if k != "UINT64")


def cast(d: Draw) -> Drawn:
    """To any other type. The official kernel has no uint64."""
    to = d.one(*CAST_FROM)
    x = whole_range(d, *shape_of(d)) if d.one(True, False) else d.t(*shape_of(d), low=-300, high=300)
    return Drawn([x], [plain(to)], {"in_data_type": d.kind, "out_data_type": to})


def cast_below_bytes(d: Draw) -> Drawn:
    to = d.one("INT4", "UINT4", "INT2")
    x = d.t(*filled_shape(d), low=-20, high=20)
    return Drawn([x], [plain(to)], {"in_data_type": d.kind, "out_data_type": to})


def filled_shape(d: Draw) -> tuple[int, ...]:
    return tuple(d.size(1, 3) for _ in range(d.size(0, 5)))


def cast_from_below_bytes(d: Draw) -> Drawn:
    """Elements that share bytes, in the file or given; the official interface takes no INT2."""
    x = d.t(*filled_shape(d), constant=d.kind == "INT2" or d.one(True, False))
    return Drawn([x], [plain("FLOAT32")], {"in_data_type": d.kind, "out_data_type": "FLOAT32"})


def bitcast(d: Draw) -> Drawn:
    """To a type of the same size, of a smaller or of a larger one."""
    size = np.dtype(NUMPY[d.kind]).itemsize
    to = d.one(*(k for k in ANY if k != "BOOL"))
    expected = np.dtype(NUMPY[to]).itemsize
    shape = filled_shape(d)
    if expected > size:
        shape = (*shape, expected // size)
    x = d.t(*shape)
    if d.kind[:1] in "IU" and to[:1] in "IU":  # of any bits; those of floats may be NaN
        x.values = d.rng.integers(0, 256, x.values.nbytes, np.uint8).view(x.values.dtype).reshape(shape)
    return Drawn([x], [plain(to)], {"output_type": to})


ROWS = [
    Row("SUM", ("FLOAT32",), _numbers(), within=SINGLE),
    Row("SUM", ("INT32", "INT64"), ends),
    Row("MEAN", ("FLOAT32",), averaged, within=SINGLE),
    Row("MEAN", ("INT32", "INT64"), _numbers()),
    Row("REDUCE_PROD", ("FLOAT32",), _numbers(-3, 3), within=SINGLE),
    Row("REDUCE_PROD", ("INT32", "INT64"), ends),
    Row("REDUCE_PROD", NARROW, _numbers(-3, 3), label="REDUCE_PROD raw"),
    *(Row(n, ("INT32", "INT64"), ends) for n in ("REDUCE_MAX", "REDUCE_MIN")),
    *(Row(n, NARROW, ends, label=f"{n} raw") for n in ("REDUCE_MAX", "REDUCE_MIN")),
    *(Row(n, ("FLOAT32",), _numbers()) for n in ("REDUCE_MAX", "REDUCE_MIN")),
    *(
        Row(n, ("BOOL",), _numbers())
        for n in ("SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")
    ),
    *(
        Row(n, (k,), reduced_by_xnnpack, within=w, path="AUTO")
        for n in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN")
        for k, w in (("FLOAT16", HALF), ("FLOAT32", 2 * SINGLE))
    ),
    *(Row(n, ("FLOAT32", "INT32", "BOOL"), searched) for n in ("ARG_MAX", "ARG_MIN")),
    *(Row(n, ("INT8", "UINT8"), searched, label=f"{n} raw") for n in ("ARG_MAX", "ARG_MIN")),
    Row("CUMSUM", ("FLOAT32",), running, within=SINGLE),
    Row("CUMSUM", ("INT32", "INT64"), running),
    Row("CAST", CAST_FROM, cast),
    Row("CAST", ("FLOAT32",), cast_below_bytes, label="CAST to less than a byte"),
    Row("CAST", tuple(PACKED), cast_from_below_bytes),
    Row("BITCAST", tuple(k for k in ANY if k != "BOOL"), bitcast),
]

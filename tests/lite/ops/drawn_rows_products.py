"""Rows of the table operator x type: products of matrices, tables of rows, resizes, diagonals, complex numbers.

Lives here: FULLY_CONNECTED in every format of weights, BATCH_MATMUL, EMBEDDING_LOOKUP, the resizes, MATRIX_DIAG,
MATRIX_SET_DIAG, RFFT2D, REAL, IMAG, COMPLEX_ABS.  Not here: convolutions and pools (drawn_rows_contractions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from drawn import Draw, Drawn, Row, T, const, like, model_of, plain
from drawn_rows_contractions import FLOAT, INTEGERS, SIGNED, SUMS, activations, biased, result, weights

from opwright.lite.format import objects, schema

HALF = 2e-3  # two steps of float16
HALF_SUMS = 0.03  # of 40 products: on processors that multiply float16 the official delegate adds them in it, too
MOVED = ("FLOAT32", "FLOAT16", "BFLOAT16", "FLOAT64", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL")
NARROW = tuple(kind for kind in MOVED if "64" not in kind)
SIX = ("FLOAT32", "UINT8", "INT8", "INT16", "INT32", "INT64")


def _dense_shape(d: Draw, keep: bool, k: int) -> tuple[int, ...]:
    rows = [d.one(0, 1, 2, 3) for _ in range(d.size(0, 3))]
    if keep or d.one(True, False):
        return (*rows, k)
    return (*rows, 2, k // 2) if k % 2 == 0 else (*rows, k, 1)


def _dense(kind: str | None = None, bias: str | None = None, constant: bool = True) -> Callable[[Draw], Drawn]:
    """kind, bias: types of weights and bias other than those that go with the activations."""

    def draw(d: Draw) -> Drawn:
        keep, k, n = d.one(True, False), d.size(1, 40), d.size(1, 7)
        x = activations(d, *_dense_shape(d, keep, k))
        w = weights(d, n, k, axis=0, kind=kind, constant=constant)
        options = {"fused_activation_function": d.activation(), "keep_num_dims": keep}
        if kind and d.kind == "FLOAT32":
            options["asymmetric_quantize_inputs"] = d.one(True, False)
        if d.kind == "INT16" and (bias == "INT64" or kind == "INT16"):  # else the latter reads the bias as int32
            options["quantized_bias_type"] = "INT64"
        inputs = biased(d, x, w, n, bias)
        return Drawn([x, w, inputs if bias else d.one(inputs, None)], [_output(d, x, w)], options)

    return draw


def _output(d: Draw, x: T, w: T) -> T:
    """As `result`; sums of products of int16 pass 2^31, where the official kernels wrap if the multiplier is large."""
    y = result(d, x, w)
    if w.type == "INT16":
        y.scale = float(np.float32(x.scale * float(np.max(w.scale)) * 2 ** d.rng.uniform(14, 20)))
    return y


def _empty_weights(d: Draw) -> Drawn:
    """No columns, or no rows."""
    rows, (n, k) = d.size(1, 3), d.one((d.size(1, 4), 0), (0, d.size(1, 4)))
    x, w = activations(d, rows, k), weights(d, n, k, axis=None, constant=False)
    return Drawn([x, w, biased(d, x, w, n)], [result(d, x, w)], {"keep_num_dims": d.one(True, False)})


def _signed_bytes(d: Draw, *shape: int) -> T:
    """int8 under the type UINT8; not -128, with which the official kernels of x86 are wrong."""
    values = d.integers("INT8", shape, narrow=True).view(np.uint8)
    return T("UINT8", shape, d.scale(), 0, values=values, constant=True)


def _first_hybrid(d: Draw) -> Drawn:
    """Weights of the first files quantised after training."""
    k, n = d.size(1, 20), d.size(1, 5)
    w = _signed_bytes(d, n, k)
    return Drawn([d.real(d.size(1, 3), k), w, d.one(biased(d, w, w, n), None)], [plain("FLOAT32")])


def _first_hybrid_conv(d: Draw) -> Drawn:
    w = _signed_bytes(d, 3, 2, 2, 4)
    options = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    return Drawn([d.real(d.size(1, 2), 4, 5, 4), w, biased(d, w, w, 3)], [plain("FLOAT32")], options)


def _shuffled(d: Draw) -> Drawn:
    rows, n, k = d.one(1, 4), 4 * d.size(1, 3), 16 * d.size(1, 3)
    x = d.x(rows, k, zero=128)
    w = T("UINT8", (n, k), d.scale(), 128, values=d.integers("UINT8", (n, k)), constant=True)
    y = T("INT16", (), float(np.float32(x.scale * w.scale * 2 ** d.rng.uniform(-1, 9))), 0)
    return Drawn([x, w, d.bias(x, w, n)], [y, T("UINT8", (rows, k))], {"weights_format": "SHUFFLED4x16INT8"})


def _sparse(kind: str, block: int) -> Callable[[Draw], Drawn]:
    """Weights of which the file has some blocks of a row, in the formats that the official kernels take."""

    def draw(d: Draw) -> Drawn:
        rows, n, blocks = d.size(1, 3), d.size(1, 6), d.size(1, 4)
        kept = d.rng.random((n, blocks)) < 0.5
        kept[0, 0] = True
        x = activations(d, rows, blocks * block)
        w = weights(d, n, blocks * block, axis=None, kind=None if kind == d.kind else kind)
        drawn = Drawn([x, w, biased(d, x, w, n)], [result(d, x, w)])
        w.values = w.values.reshape(n, blocks, block)[kept]
        drawn.model = model_of("FULLY_CONNECTED", drawn)
        vector = objects.table_class("Int32Vector")
        levels = [
            objects.DimensionMetadata(format=0, dense_size=n),
            objects.DimensionMetadata(
                format=1,
                array_segments=vector(values=np.append(0, np.cumsum(kept.sum(1))).astype(np.int32)),
                array_indices=vector(values=np.nonzero(kept)[1].astype(np.int32)),
            ),
        ]
        if block > 1:
            levels.append(objects.DimensionMetadata(format=0, dense_size=block))
        drawn.model.subgraphs[0].tensors[1].sparsity = objects.SparsityParameters(
            traversal_order=np.arange(len(levels), dtype=np.int32),
            dim_metadata=levels,
            block_map=np.array([1] * (block > 1), np.int32),
        )
        return drawn

    return draw


def _by_block(d: Draw, name: str, kind: str, shape: tuple[int, int], before: list[T | None], *after: T | None) -> Drawn:
    """Weights with a float16 scale for each block of a row."""
    w = T(kind, shape, values=d.integers(kind, shape), constant=True)
    drawn = Drawn([*before, w, *after], [plain(d.kind)])
    drawn.model = model_of(name, drawn)
    size = d.one(*(s for s in (8, 16, 32) if shape[1] % s == 0))
    scales = d.rng.uniform(0.01, 0.05, (shape[0], shape[1] // size)).astype(np.float16)
    drawn.model.buffers.append(objects.Buffer(data=scales.view(np.uint8).reshape(-1)))
    tensors = drawn.model.subgraphs[0].tensors
    tensors.append(
        objects.Tensor(
            shape=list(scales.shape), type=schema.TensorType.FLOAT16, name="scales", buffer=len(drawn.model.buffers) - 1
        )
    )
    tensors[len(before)].quantization = objects.QuantizationParameters(
        details=objects.table_class("BlockwiseQuantization")(scales=len(tensors) - 1, zero_points=-1, block_size=size)
    )
    return drawn


def _dense_by_block(d: Draw) -> Drawn:
    n, k = 4 * d.size(1, 4), 32 * d.size(1, 3)
    bias = d.real(n)
    bias.constant = True
    return _by_block(d, "FULLY_CONNECTED", "INT4", (n, k), [d.real(d.size(1, 4), k)], d.one(bias, None))


def _lookup_by_block(kind: str) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        rows, columns = d.size(1, 6), 8 * d.size(1, 4)
        return _by_block(d, "EMBEDDING_LOOKUP", kind, (rows, columns), [_ids(d, rows)])

    return draw


def _half_dense(d: Draw) -> Drawn:
    k, n = d.size(1, 40), d.size(1, 7)
    bias = d.t(n, kind=d.one("FLOAT16", "FLOAT32"), low=-3, high=3, constant=True)
    x, w = d.t(d.size(1, 4), k, low=-3, high=3), d.t(n, k, low=-3, high=3, constant=True)
    return Drawn([x, w, d.one(bias, None)], [plain("FLOAT16")], {"fused_activation_function": d.activation()})


def _half_hybrid(kind: str) -> Callable[[Draw], Drawn]:
    def draw(d: Draw) -> Drawn:
        k, n = 2 * d.size(4, 20), d.size(2, 7)
        w = d.w(n, k, axis=0, kind=kind)
        bias = d.t(n, kind="FLOAT32", low=-3, high=3, constant=True)
        return Drawn(
            [d.t(d.size(1, 4), k, low=-3, high=3), w, d.one(bias, None)],
            [plain("FLOAT16")],
            {"asymmetric_quantize_inputs": True},
        )

    return draw


def _batches(d: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leading sizes that are broadcast: up to three, some of them 1 on one side or missing there."""
    whole = [d.size(1, 3) for _ in range(d.size(0, 3))]
    a, b = ([d.one(s, s, 1) for s in whole], [d.one(s, s, 1) for s in whole])
    return tuple(a[d.size(0, len(a)) :] if d.one(True, False) else a), tuple(b)


def _product(rhs: str | None = None, constant: bool = False, matrix: bool = False) -> Callable[[Draw], Drawn]:
    """rhs: the type of the second operand where it is another than that of the first; matrix: whether it is only
    one, for one batch, as the reference kernel of hybrid products takes no more."""

    def draw(d: Draw) -> Drawn:
        (a, b), (m, k, n) = _batches(d), (d.size(1, 4), d.size(1, 20), d.size(1, 4))
        adj_x, adj_y = d.one(True, False), d.one(True, False)
        a, b = (a[:1], ()) if matrix else (a, b)
        left, right = (*a, *((k, m) if adj_x else (m, k))), (*b, *((n, k) if adj_y else (k, n)))
        options = {"adj_x": adj_x, "adj_y": adj_y}
        if d.kind in ("FLOAT32", "FLOAT16") and not rhs:
            return Drawn([d.t(*left, low=-3, high=3), d.t(*right, low=-3, high=3)], [plain(d.kind)], options)
        x = activations(d, *left)
        if not rhs:
            y = activations(d, *right)
        else:
            by_column = len(right) - (2 if adj_y else 1) if d.kind == "FLOAT32" else None
            y = weights(d, *right, axis=by_column, kind=rhs, constant=constant)
        if d.kind == "FLOAT32":
            options["asymmetric_quantize_inputs"] = d.one(True, False)
        return Drawn([x, y], [_output(d, x, y)], options)

    return draw


def _raw_product(d: Draw) -> Drawn:
    """To int32: products of the integers as they are."""
    drawn = _product()(d)
    return Drawn(drawn.inputs, [plain("INT32")], drawn.options)


def _unscaled_product(d: Draw) -> Drawn:
    """As the converter writes tf.matmul(int8, int8, output_type=int32): no tensor has a scale."""
    drawn = _product()(d)
    bare = [T(x.type, x.shape, values=x.values, constant=x.constant) for x in drawn.inputs]
    return Drawn(bare, [plain("INT32")], drawn.options)


def _ids(d: Draw, rows: int) -> T:
    values = d.rng.integers(0, rows, d.size(0, 5)).astype(np.int32)
    return T("INT32", values.shape, values=values, constant=d.one(True, False) and values.size > 0)


def _table_shape(d: Draw) -> tuple[int, ...]:
    return (d.size(1, 6), *(d.size(1, 4) for _ in range(d.size(1, 3))))


def _lookup(d: Draw) -> Drawn:
    shape = _table_shape(d)
    return Drawn([_ids(d, shape[0]), d.t(*shape)], [plain(d.kind)])


def _quantized_lookup(d: Draw) -> Drawn:
    shape = _table_shape(d)
    table = d.x(*shape)
    return Drawn([_ids(d, shape[0]), table], [like(table)])


def _real_lookup(kind: str) -> Callable[[Draw], Drawn]:
    """Rows of integers as reals; rows below a byte end where bytes do, as the official kernel takes no others."""

    def draw(d: Draw) -> Drawn:
        rows, columns = d.size(1, 6), d.size(1, 4) * (4 if kind in ("INT4", "INT2") else 1)
        scale = d.rng.uniform(0.005, 0.03, d.one(1, rows)).astype(np.float32)
        table = T(kind, (rows, columns), scale, 0, values=d.integers(kind, (rows, columns)), constant=True)
        return Drawn([_ids(d, rows), table], [plain(d.kind)])

    return draw


def _resize(both: bool = False) -> Callable[[Draw], Drawn]:
    """both: whether both flags may be set."""

    def draw(d: Draw) -> Drawn:
        shape = (d.size(1, 2), d.size(1, 7), d.size(1, 7), d.size(1, 3))
        flags = ("align_corners", "half_pixel_centers")
        flags = d.one((), flags[:1], flags[1:], flags[: 2 * both])
        scaled = d.kind in INTEGERS
        x = d.x(*shape) if scaled else d.t(*shape)
        return Drawn([x, const(d.size(1, 12), d.size(1, 12))], [like(x)], dict.fromkeys(flags, True))

    return draw


def _diagonal(d: Draw) -> Drawn:
    return Drawn([d.t(*(d.one(0, 1, 2, 3) for _ in range(d.size(1, 4))))], [plain(d.kind)])


def _set_diagonal(d: Draw) -> Drawn:
    shape = [d.one(1, 2, 3, 4) for _ in range(d.size(2, 4))]
    return Drawn([d.t(*shape), d.t(*shape[:-2], min(shape[-2:]))], [plain(d.kind)])


def _parts(d: Draw) -> Drawn:
    shape = tuple(d.one(0, 1, 2, 3) for _ in range(d.size(0, 5)))
    return Drawn([d.t(*shape)], [plain({"COMPLEX64": "FLOAT32", "COMPLEX128": "FLOAT64"}[d.kind])])


def _fourier(d: Draw) -> Drawn:
    shape = [d.size(1, 3) for _ in range(d.size(0, 2))] + [d.size(1, 9), d.size(1, 9)]
    return Drawn([d.t(*shape, low=-3, high=3), const(d.one(1, 2, 4, 8), d.one(2, 4, 8))], [plain("COMPLEX64")])


def _row(name: str, kinds: tuple[str, ...], draw: Any, within: float = 0, path: str = "REF", label: str = "") -> Row:
    return Row(name, kinds, draw, within, path, f"{name} {label}" if label else name)


_FC, _BMM, _EMBED = "FULLY_CONNECTED", "BATCH_MATMUL", "EMBEDDING_LOOKUP"
ROWS = [
    _row(_FC, FLOAT, _dense(), SUMS),
    _row(_FC, FLOAT, _dense(), SUMS, "OPT"),
    _row(_FC, FLOAT, _dense(), SUMS, "AUTO"),
    _row(_FC, INTEGERS, _dense(), label="any shape"),
    _row(_FC, ("INT8", "UINT8"), _dense(), 1, "OPT", "any shape"),
    _row(_FC, INTEGERS, _dense(constant=False), label="computed weights"),
    _row(_FC, ("INT16",), _dense(bias="INT64"), label="int64 bias"),
    _row(_FC, ("INT16",), _dense(bias="INT32"), 1, "OPT", "int32 bias"),
    _row(_FC, ("INT16",), _dense("INT16"), label="int16 weights"),
    _row(_FC, SIGNED, _dense("INT4"), label="any shape, int4"),
    _row(_FC, SIGNED, _dense("INT2"), label="any shape, int2"),
    _row(_FC, FLOAT, _dense("INT8"), SUMS, label="hybrid, any shape"),
    _row(_FC, FLOAT, _dense("INT8", constant=False), SUMS, label="hybrid, computed weights"),
    _row(_FC, ("FLOAT32", "INT8", "UINT8"), _empty_weights, label="empty weights"),
    _row(_FC, FLOAT, _first_hybrid, SUMS, label="hybrid uint8"),
    _row("CONV_2D", FLOAT, _first_hybrid_conv, SUMS, label="hybrid uint8"),
    _row(_FC, ("UINT8",), _shuffled, label="shuffled"),
    _row(_FC, ("UINT8",), _shuffled, 0, "OPT", "shuffled"),
    *(_row(_FC, FLOAT, _sparse("FLOAT32", b), SUMS, "OPT", f"sparse 1x{b}") for b in (1, 4)),
    _row(_FC, FLOAT, _sparse("FLOAT32", 16), SUMS, label="sparse 1x16"),
    _row(_FC, FLOAT, _sparse("INT8", 16), SUMS, label="hybrid, sparse"),
    _row(_FC, ("INT8",), _sparse("INT8", 16), 1, label="sparse"),  # whose official kernel has multipliers of 31 bits
    _row(_FC, FLOAT, _dense_by_block, SUMS, "OPT", "hybrid int4 by block"),
    _row(_FC, FLOAT, _dense_by_block, 0.01, "AUTO", "hybrid int4 by block"),
    *(
        _row(_EMBED, ("FLOAT32", "FLOAT16"), _lookup_by_block(k), label=f"of {k.lower()} by block")
        for k in ("INT4", "INT2")
    ),
    _row(_FC, ("FLOAT16",), _half_dense, HALF_SUMS, "AUTO"),
    *(_row(_FC, ("FLOAT16",), _half_hybrid(k), 0.02, "AUTO", f"hybrid {k.lower()}") for k in ("INT8", "INT4")),
    _row(_BMM, FLOAT, _product(), SUMS),
    _row(_BMM, FLOAT, _product(), SUMS, "AUTO"),
    _row(_BMM, ("FLOAT16",), _product(), HALF, "AUTO"),
    _row(_BMM, SIGNED, _product(), label="any shape"),
    _row(_BMM, ("INT8",), _raw_product, label="to int32"),
    _row(_BMM, ("INT8",), _unscaled_product, label="to int32 without scales"),
    _row(_BMM, ("INT16",), _product("INT8"), label="by int8"),
    _row(_BMM, FLOAT, _product("INT8", constant=True, matrix=True), SUMS, label="hybrid by a matrix"),
    _row(_BMM, FLOAT, _product("INT8", constant=True), 0.06, "AUTO", "hybrid, any shape"),  # REF is wrong with batches
    _row(_EMBED, MOVED, _lookup),
    _row(_EMBED, INTEGERS, _quantized_lookup),
    *(
        _row(_EMBED, ("FLOAT32", "FLOAT16"), _real_lookup(k), 0, label=f"of {k.lower()}")
        for k in ("INT8", "UINT8", "INT4", "INT2")
    ),
    _row("RESIZE_BILINEAR", FLOAT, _resize(), 3e-7),
    _row("RESIZE_BILINEAR", INTEGERS, _resize(), label="any shape"),
    _row("RESIZE_NEAREST_NEIGHBOR", NARROW, _resize(True)),
    _row("RESIZE_NEAREST_NEIGHBOR", INTEGERS, _resize(True), label="any shape"),
    _row("MATRIX_DIAG", SIX, _diagonal),
    _row("MATRIX_SET_DIAG", SIX, _set_diagonal),
    _row("REAL", ("COMPLEX64", "COMPLEX128"), _parts),
    _row("IMAG", ("COMPLEX64", "COMPLEX128"), _parts),
    _row("COMPLEX_ABS", ("COMPLEX64", "COMPLEX128"), _parts, 2e-7),
    _row("RFFT2D", FLOAT, _fourier, 1e-6),
]

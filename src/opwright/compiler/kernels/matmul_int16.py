"""Matrix products of int16, by int16 or int8, whose sums are int64: batches, broadcasting, either stored the other way.

Lives here: the maker of `MatMul` for int16, its family.
Not here: int16 by constant weights of int8 (gemm_int16.py), how batches broadcast (matmul.py).

Products of two elements are int32; they are widened before they are added up, as few of them may be beyond int32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import DType, int8, int16
from .. import language as kl
from ..language import i16, i32, i64, ptr, u8
from ..loops.forms import MatMul
from . import Unmade, maker
from .contractions_f32 import chunk_of, share
from .epilogue import Epilogue, epilogue_of
from .matmul import MOST_STEPS, batches
from .matmul_int8 import turned

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def matmul_int16(work, a: ptr[i16], b: ptr[u8], y: ptr[u8], rows: i64, depth: i64, columns: i64, a_pitch: i64,
                 b_pitch: i64, y_pitch: i64, a_step: i64, b_step: i64, *more: i64,
                 dtype: DType, along: bool, epilogue: Epilogue):  # fmt: skip
    """An item is a row of a product. a_step, b_step: elements from one product's matrix to the next. along: rows of b
    run along the depth; else along the columns."""
    b, y = b.cast(dtype, dtype.size), y.cast(epilogue.expr.dtype, epilogue.expr.dtype.size)
    finish = epilogue.bind(more)
    lanes = work.target.vector_bytes // 8
    for item in work.items():
        product = item // rows
        left, right = a + (product * a_step + item % rows * a_pitch), b + product * b_step
        for n in range(0, columns, 1 if along else lanes):
            if along:
                total = kl.zeros(i64, lanes)
                for k in range(0, depth, lanes):
                    mask = kl.first(kl.minimum(depth - k, lanes), lanes)
                    pair = (left.load(k, lanes, mask), (right + n * b_pitch).load(k, lanes, mask))
                    total = total + _product(*pair)
                (y + item * y_pitch)[n] = finish(kl.reduce_add(total), item, n, 0)
            else:
                mask = kl.first(kl.minimum(columns - n, lanes), lanes)
                total = kl.zeros(i64, lanes)
                for k in range(depth):
                    total = total + _product(left[k].splat(lanes), (right + k * b_pitch).load(n, lanes, mask))
                (y + item * y_pitch).store(finish(total, item, n, lanes, mask), n, mask)


def _product(a: Any, b: Any) -> Any:
    return (a.to(i32) * b.to(i32)).to(i64)


@maker(MatMul)
def make_matmul(form: MatMul, build: Builder) -> None:
    """Zero points are 0."""
    a, b, out = form.a, form.b, form.output
    if a.dtype is not int16 or b.dtype not in (int8, int16) or form.a_zero or form.b_zero or form.rounding:
        raise Unmade(f"a product of {a.dtype.name} and {b.dtype.name}")
    if b.constant is not None and not b.constant.flags.c_contiguous:
        raise Unmade("a constant with gaps")
    rows, columns = out.shape[-2:]
    if form.transpose_a:
        a = turned(a, build)
    lead = out.shape[:-2]
    epilogue, more = epilogue_of(form.expr, form.operands, out, build)
    parts = list(batches(lead, a.shape[:-2], b.shape[:-2]))
    if len(parts) > MOST_STEPS or (len(parts) > 1 and form.operands):
        raise Unmade(f"batches {list(a.shape[:-2])} by {list(b.shape[:-2])}")
    depth = a.shape[-1]
    code = matmul_int16.code(more=len(more), dtype=b.dtype, along=form.transpose_b, epilogue=epilogue)
    a_size, b_size = rows * a.pitch, b.shape[-2] * b.pitch
    for part in parts:
        words = [build.pointer(a, part.a * a_size), build.pointer(b, part.b * b_size),
                 build.pointer(out, part.first * rows * out.pitch), rows, depth, columns, a.pitch, b.pitch, out.pitch,
                 a_size * part.a_moves, b_size * part.b_moves, *more]  # fmt: skip
        items = part.products * rows
        build.step(code, words, items, chunk=chunk_of(4 * items * columns * depth, items))
    share(form, build, form.operands, epilogue)

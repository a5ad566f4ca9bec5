"""Rule of fusion for attention: a product, softmax over its rows, and a product with those.

Lives here: this rule.  Not here: its place among the others (fusion.py), the kernel (../kernels/attention.py).
"""

from __future__ import annotations

from ...core.dtypes import float32
from .expressions import Expr, arg, substitute
from .forms import Attention, Buffer, Form, Map, MatMul, RowPass
from .rewriting import Rewriting


def into_attention(state: Rewriting, form: RowPass) -> bool:
    """softmax(f(q k^T, mask)) v, where nobody else reads what lies between."""
    if form.kind != "softmax" or form.operands or not _plain(form.expr):
        return False
    readers = state.readers(form.output)
    product = readers[0] if readers else None
    if not isinstance(product, MatMul) or not state.only_reader(form.output, product) or product.a is not form.output:
        return False
    if product.transpose_a or product.transpose_b or product.operands or not _plain(product.expr):
        return False
    between: list[Form] = [form]
    found = _scores(state, form, form.input, form.before, between)
    if found is None:
        return False
    scores, operands, before = found
    whole = Attention(
        product.output,
        scores.a,
        scores.b,
        product.b,
        operands,
        before,
        not scores.transpose_b,
        origin=scores.origin + sum((f.origin for f in between), ()) + product.origin,
    )
    for part in (scores, *between):
        state.replace(part)
    state.replace(product, whole)
    state.parts[whole] = (scores, *between, product)
    return True


def _plain(expr: Expr) -> bool:
    return expr.op == "arg" and expr.value == 0 and expr.dtype is float32


def _scores(
    state: Rewriting, reader: Form, buffer: Buffer, before: Expr, between: list[Form]
) -> tuple[MatMul, tuple[Buffer, ...], Expr] | None:
    """The product that makes the scores, operands besides it and the expression of all. A map between them, of scales
    and masks, is put in front of `between`."""
    writer = state.writer(buffer)
    if not state.only_reader(buffer, reader) or (writer is not None and writer.output.parent is not None):
        return None
    if isinstance(writer, MatMul) and not writer.transpose_a and writer.a.dtype is float32:
        return writer, writer.operands, substitute(before, {0: writer.expr})
    if not isinstance(writer, Map) or reader is not between[-1] or len(between) > 1:
        return None
    for place, operand in enumerate(writer.operands):
        scores = state.writer(operand)
        same = operand.shape == buffer.shape and state.only_reader(operand, writer)
        if not same or not isinstance(scores, MatMul) or scores.transpose_a or scores.a.dtype is not float32:
            continue
        others = [b for i, b in enumerate(writer.operands) if i != place]
        count = len(scores.operands)
        args = {i: arg(others.index(b) + 1 + count, b.dtype) for i, b in enumerate(writer.operands) if i != place}
        mapped = substitute(writer.expr, {place: scores.expr, **args})
        between.insert(0, writer)
        return scores, (*scores.operands, *others), substitute(before, {0: mapped})
    return None

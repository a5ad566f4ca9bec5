"""Element types: no form, table or kernel reads a buffer as another dtype than it has."""

from typing import Any

import numpy as np
import pytest

from opwright.compiler import plan_serialization
from opwright.compiler.kernels.expression import evaluate
from opwright.compiler.loops.buffers import Buffer, Window
from opwright.compiler.loops.domain_ops import Resize
from opwright.compiler.loops.expressions import Expr, apply, arg, convert, evaluate_arrays, lookup, scalar
from opwright.compiler.loops.fusion import fused
from opwright.compiler.loops.graph import LoopGraph, Rewriting, verify
from opwright.compiler.loops.map_fusion import into_chain, into_producer, into_table
from opwright.compiler.loops.ops import (
    Contract,
    Depthwise,
    FusedAttention,
    Map,
    MatMul,
    Pool,
    Reduce,
    RowPass,
    TransposedContract,
)
from opwright.compiler.loops.plans import Address
from opwright.core.dtypes import bool as bool_
from opwright.core.dtypes import float32, float64, int8, int16, int32, int64, uint8
from opwright.core.errors import InternalError

F, ONE = float32, Window((1, 1))
SUM, F8, SUM8 = arg(0, F), arg(0, int8), arg(0, int32)
IMAGE, BYTES, VECTOR = (1, 4, 4, 8), Buffer("x8", int8, (1, 4, 4, 8)), Buffer("v", F, (8,))
X, Y, Y8 = Buffer("x", F, IMAGE), Buffer("y", F, IMAGE), Buffer("y8", int8, IMAGE)
FILTER, CHANNELS = Buffer("w", F, (8, 1, 1, 8)), Buffer("d", F, (1, 1, 8))
ROWS, TABLE = Buffer("rows", F, (1, 4, 4, 1)), Buffer("t", int64, (256,))
WRONG = {  # one wrong dtype each
    "the result of a map": Map(Y8, (X,), SUM),
    "an operand of a map": Map(Y, (BYTES,), SUM),
    "an operand that is not there": Map(Y, (X,), apply("add", SUM, arg(1, F))),
    "a table of a map": Map(Y8, (BYTES, TABLE), lookup(F8, arg(1, int8))),
    "the length of a table": Map(Y8, (BYTES, Buffer("t", int8, (128,))), lookup(F8, arg(1, int8))),
    "the index of a table": Map(
        Y8, (Buffer("i", int16, IMAGE), Buffer("t", int8, (256,))), lookup(arg(0, int16), arg(1, int8))
    ),
    "the sum of floats": Contract(Y, X, FILTER, (), convert(SUM8, F), ONE),
    "the sum of bytes": Contract(Y, BYTES, FILTER, (), SUM, ONE),
    "a channel's number": Contract(Y, X, FILTER, (Buffer("b", int32, (8,)),), apply("add", SUM, arg(1, F)), ONE),
    "the sum of a depthwise convolution": Depthwise(Y, BYTES, CHANNELS, (), SUM, ONE),
    "the sum of a transposed convolution": TransposedContract(Y, BYTES, FILTER, (), SUM, ONE),
    "the sum of a product": MatMul(Y, BYTES, BYTES, (), SUM),
    "the sum of int16": MatMul(Y, Buffer("x16", int16, IMAGE), BYTES, (), convert(SUM8, F)),
    "a mask of attention": FusedAttention(
        Y, X, X, X, (Buffer("m", F, IMAGE),), apply("add", SUM, convert(arg(1, int8), F))
    ),
    "scores of attention": FusedAttention(Y, X, X, X, (), SUM8),
    "the greatest of a pool": Pool(Y, BYTES, "max", SUM, ONE),
    "the sum of a pool": Pool(Y, BYTES, "sum", SUM, ONE),
    "the number of a pool's pixels": Pool(Y, X, "sum", apply("mul", SUM, convert(arg(1, int32), F)), ONE),
    "what a reduction reads": Reduce(ROWS, X, (3,), "sum", convert(F8, F), SUM),
    "what a reduction gives": Reduce(ROWS, X, (3,), "sum", SUM, convert(SUM8, F)),
    "a mean of pixels": Resize(Y8, BYTES, "bilinear", False, False, F8),
    "the nearest pixel": Resize(Y, BYTES, "nearest", False, False, SUM),
    "what a row pass reads": RowPass(Y, BYTES, (), "softmax", SUM, SUM),
    "what a row pass gives": RowPass(Y8, X, (), "softmax", SUM, F8),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_graph_refuses_a_read_as_another_dtype(name: str) -> None:
    form = WRONG[name]
    with pytest.raises(InternalError, match="loop graph"):
        LoopGraph("wrong", form.inputs, (form.output,), (form,))


def test_a_rule_cannot_put_one_into_a_graph() -> None:
    good = Map(Y, (X,), SUM)
    state = Rewriting(LoopGraph("good", (X,), (Y,), (good,)))
    with pytest.raises(InternalError, match="operand 0 is read as int8"):
        state.replace(good, Map(Y, (X,), convert(F8, F)))


@pytest.mark.parametrize(
    "constant", [np.zeros(256, np.int64), np.zeros(2048, np.int8), np.zeros(256, np.uint8), np.zeros((), np.int8)]
)
def test_a_buffer_has_its_constants_dtype_and_size(constant: np.ndarray) -> None:
    with pytest.raises(InternalError, match="does not have the elements of its buffer"):
        Buffer("t", int8, (256,), constant)


def test_arrays_are_read_as_what_they_are() -> None:
    x, table = np.arange(4, dtype=np.int8), np.arange(256, dtype=np.int64)
    look = lookup(F8, arg(1, int64))
    np.testing.assert_array_equal(evaluate_arrays(look, [x, table]), x)
    for args in ([x, table.view(np.int8)], [x, table.astype(np.int8)], [x.view(np.uint8), table], [x, table[:128]]):
        with pytest.raises(InternalError, match=r"read as|a table for"):
            evaluate_arrays(look, args)


def test_kernels_read_what_they_are_given() -> None:
    class Number:
        dtype = float64

    with pytest.raises(InternalError, match="is read as Value of float32"):
        evaluate(SUM, [Number()])


def test_tables_of_wide_numbers_become_one_of_bytes() -> None:
    """A comparison of look-ups of int64 chooses among bytes: for all of them, as NumPy does."""
    numbers = (np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64) * 1000) << 20
    limit = Buffer("limit", int64, (256,), np.full(256, 7 << 30, np.int64))
    x, c, y = (Buffer(n, d, (300,)) for n, d in (("x", int8), ("c", bool_), ("y", int8)))
    wide = Buffer("wide", int64, (256,), numbers)
    greater = Expr("greater", bool_, (lookup(F8, arg(1, int64)), lookup(F8, arg(2, int64))))
    choice = Map(y, (c, x), Expr("select", int8, (arg(0, bool_), arg(1, int8), scalar(-7, int8))))
    state = Rewriting(LoopGraph("choice", (x,), (y,), (Map(c, (x, wide, limit), greater), choice)))
    assert into_chain(state, choice)
    whole = state.latest(choice)
    assert isinstance(whole, Map)
    assert into_table(state, whole)
    (form,) = state.graph().ops
    every = np.arange(256, dtype=np.uint8).view(np.int8)
    table = form.inputs[1].constant
    assert table is not None
    np.testing.assert_array_equal(table, np.where(numbers > 7 << 30, every, -7))


def test_kept_constants_that_start_at_one_place_have_their_own_lengths() -> None:
    whole = np.arange(100, dtype=np.float32)
    writer = plan_serialization._PlanWriter({})
    first = writer._locate(Address(Buffer("part", F, (10,), whole[:10])), {})
    second = writer._locate(Address(Buffer("whole", F, (100,), whole)), {})
    body = writer.body()
    for (kind, at), array in ((first, whole[:10]), (second, whole)):
        assert kind == "constants"
        np.testing.assert_array_equal(body[at : at + array.nbytes].view(np.float32), array)


def test_unsigned_bytes_are_not_signed_ones() -> None:
    with pytest.raises(InternalError, match="operand 0 is read as int8"):
        LoopGraph("u", (Buffer("u", uint8, (3,)),), (Y8,), (Map(Y8, (Buffer("u", uint8, (3,)),), F8),))


@pytest.mark.parametrize("rule", [into_chain, into_producer])
def test_an_operand_that_stands_twice_is_not_fused(rule: Any) -> None:
    """A second operand would read an unwritten buffer; `scalar_operands` merges the two before."""
    h, z = Buffer("h", F, IMAGE), Buffer("z", F, IMAGE)
    first = Map(h, (X,), apply("abs", SUM)) if rule is into_chain else Contract(h, X, FILTER, (), SUM, ONE)
    last = Map(z, (h, h), apply("mul", SUM, arg(1, F)))
    graph = LoopGraph("twice", (X, FILTER), (z,), (first, last))
    assert not rule(Rewriting(graph), last)
    after, _ = fused(graph)
    verify(after)
    assert len(after.ops) == 1

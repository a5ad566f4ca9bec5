"""LoDTensors: what a LoD is, what may be done to it, and what becomes of it in calls, functions and gradients.

Lives here: offsets, validity, slices, nested lists, propagation, level checks.
Not here: what operators on sequences compute (cases_sequence.py, test_sequence_*.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opwright as ow
from opwright.core import lod
from opwright.core.errors import FailedPreconditionError, InvalidArgumentError, SignatureError


@st.composite
def lengths(draw, levels=3):
    """Lengths of one to so many levels, each of as many sequences as the level above has units."""
    units = draw(st.integers(1, 4))
    result = []
    for _ in range(draw(st.integers(1, levels))):
        level = draw(st.lists(st.integers(0, 3), min_size=units, max_size=units))
        result.append(level)
        units = sum(level)
        if units == 0:
            break
    return result


def rows_of(lens):
    return sum(lens[-1])


def tensor(lens, dtype=np.float64):
    result = ow.LoDTensor(np.arange(rows_of(lens)).astype(dtype))
    result.set_recursive_sequence_lengths(lens)
    return result


# ---- offsets (10.1 - 10.4) -------------------------------------------------------------------------------------------


def test_lengths_and_offsets_are_two_ways_to_say_it():
    x = ow.LoDTensor(np.zeros(9), [[0, 2, 3], [0, 3, 5, 9]])
    assert x.recursive_sequence_lengths() == [[2, 1], [3, 2, 4]]
    assert lod.absolute(lod.as_levels(x.lod()))[0].tolist() == [0, 5, 9]
    y = ow.create_lod_tensor(np.zeros(9), [[2, 1], [3, 2, 4]])
    assert y.lod() == x.lod()


@given(lengths())
def test_lengths_come_back(lens):
    levels = lod.from_lengths(lens)
    assert lod.to_lengths(levels) == lens
    assert lod.wrong(levels, rows_of(lens)) is None
    rows = lod.absolute(levels)
    assert all(level[-1] == rows_of(lens) for level in rows)
    for k, level in enumerate(levels[:-1]):  # an entry of a coarse level is the finer one that it points to
        np.testing.assert_array_equal(rows[k], rows[k + 1][level])


@pytest.mark.parametrize(
    ("offsets", "rows", "says"),
    [
        ([[0]], 0, "level 0 has 1 offsets"),
        ([[]], 0, "level 0 has 0 offsets"),
        ([[1, 3]], 3, "starts at 1"),
        ([[0, 2, 1, 3]], 3, "falls from 2 to 1 at entry 2"),
        ([[0, 2]], 3, "ends at 2, but there are 3 rows"),
        ([[0, 2]], 0, "ends at 2, but there are 0 rows"),
        ([[0, 2], [0, 3]], 3, "ends at 2, but level 1 has 1 sequences"),
    ],
)
def test_what_is_no_lod(offsets, rows, says):
    """Also over no rows, and also where levels disagree in the middle."""
    with pytest.raises(InvalidArgumentError, match=says):
        ow.LoDTensor(np.zeros((rows, 2)), offsets)
    x = ow.LoDTensor(np.zeros((rows, 2)))
    with pytest.raises(InvalidArgumentError, match=says):
        x.set_lod(offsets)
    assert x.lod() == []


def test_what_is_no_list_of_levels():
    for wrong in (["ab"], "ab", [[0.5, 1.0]], [0, 3]):
        with pytest.raises(TypeError, match="LoD"):
            ow.LoDTensor(np.zeros(3), wrong)
    with pytest.raises(InvalidArgumentError, match="negative"):
        tensor([[-1, 1]])
    with pytest.raises(InvalidArgumentError, match="scalar"):
        ow.LoDTensor(1.0, [[0, 1]])


def test_no_levels_are_a_lod():
    x = ow.LoDTensor(np.zeros(3))
    assert x.lod() == []
    assert x.has_valid_recursive_sequence_lengths()


@given(lengths(), st.data())
def test_slices_keep_what_is_below(lens, data):
    x = tensor(lens)
    level = data.draw(st.integers(0, len(lens) - 1))
    begin = data.draw(st.integers(0, len(lens[level]) - 1))
    end = data.draw(st.integers(begin + 1, len(lens[level])))
    if level < len(lens) - 1 and not sum(lens[level][begin:end]):  # no unit of the level below is left
        with pytest.raises(InvalidArgumentError, match="a LoD has at least one on each"):
            x.sequences(begin, end, level)
        return
    part = x.sequences(begin, end, level)
    nested = x.to_nested()
    for _ in range(level):
        nested = [unit for group in nested for unit in group]
    assert part.to_nested() == nested[begin:end]
    assert part.lod_level == len(lens) - level
    assert part.has_valid_recursive_sequence_lengths()


@pytest.mark.parametrize(("begin", "end", "level"), [(0, 0, 0), (1, 1, 0), (-1, 1, 0), (0, 3, 0), (0, 1, 2)])
def test_slices_that_are_none(begin, end, level):
    with pytest.raises(InvalidArgumentError, match=r"no (sequences|level)"):
        tensor([[1, 1], [2, 1]]).sequences(begin, end, level)


@given(lengths(), lengths())
def test_appending_adds_lengths(first, second):
    """By `concat`, which is the one way there is: sequences come after sequences on every level."""
    parts = [tensor(first), tensor(second)]
    if len(first) != len(second):
        with pytest.raises(InvalidArgumentError, match="differ in their LoD levels"):
            ow.concat(parts, 0)
        return
    joined = ow.concat(parts, 0)
    assert joined.recursive_sequence_lengths() == [a + b for a, b in zip(first, second)]
    assert lod.wrong(lod.as_levels(joined.lod()), rows_of(first) + rows_of(second)) is None
    assert joined.to_nested() == parts[0].to_nested() + parts[1].to_nested()


@given(lengths())
def test_nested_lists_come_back(lens):
    x = tensor(lens)
    again = ow.LoDTensor.from_nested(x.to_nested(), len(lens), ow.float64)
    assert again.lod() == x.lod()
    assert again.tolist() == x.tolist()


def test_nested_lists_of_rows():
    x = ow.LoDTensor.from_nested([[[1.0, 2.0]], [], [[3.0, 4.0], [5.0, 6.0]]])
    assert x.shape == (3, 2)
    assert x.lod() == [[0, 1, 1, 3]]
    none = ow.LoDTensor.from_nested([[], []], dtype=ow.int64, row_shape=(2,))
    assert none.shape == (0, 2)
    assert none.dtype == ow.int64
    assert none.lod() == [[0, 0, 0]]
    with pytest.raises(InvalidArgumentError, match="not a list"):
        ow.LoDTensor.from_nested([[1], 2])


@given(lengths(levels=1))
def test_padded_and_back(lens):
    x = ow.sequence.reshape(ow.LoDTensor(np.arange(2.0 * rows_of(lens)).reshape(-1, 2), lod.from_lengths(lens)), 1)
    padded, length = ow.sequence.pad(x, -1.0)
    assert length.numpy().tolist() == [2 * n for n in lens[0]]
    again = ow.sequence.unpad(padded, length)
    assert again.to_nested() == x.to_nested()
    there = ow.sequence.mask(length, padded.shape[1] or None, ow.bool)
    assert int(ow.reduce_sum(ow.cast(there, ow.int32))) == len(x)


def test_create_lod_tensor():
    x = ow.create_lod_tensor([[1, 2, 3], [4, 5]], [[3, 2]])
    assert (x.shape, x.dtype, x.lod()) == ((5, 1), ow.int64, [[0, 3, 5]])
    with pytest.raises(InvalidArgumentError, match="lengths are not those"):
        ow.create_lod_tensor([[1, 2, 3], [4, 5]], [[3, 3]])
    with pytest.raises(InvalidArgumentError, match="there are 5 rows"):
        ow.create_lod_tensor(np.zeros((5, 2)), [[3, 3]])
    assert ow.create_lod_tensor(x, [[1, 4]]).recursive_sequence_lengths() == [[1, 4]]


def test_other_rows_drop_a_lod_that_does_not_fit():
    x = tensor([[2, 1]])
    x.set(np.ones((3, 2)))
    assert x.lod() == [[0, 2, 3]]
    x.set(np.ones((4, 2)))
    assert x.lod() == []


def test_not_initialized():
    x = ow.LoDTensor()
    assert not x.is_initialized
    with pytest.raises(FailedPreconditionError, match="not initialized"):
        x.values  # noqa: B018


# ---- propagation (10.5, 10.6) ----------------------------------------------------------------------------------------


def test_by_position_the_lod_stays():
    x = tensor([[1, 1], [2, 1]])
    for y in (x * 2.0, 3.0 - x, ow.exp(x), ow.cast(x, ow.float32), ow.where(x > 1.0, x, -x), x + np.ones(3), -x):
        assert isinstance(y, ow.LoDTensor)
        assert y.lod() == x.lod()


def test_the_first_that_has_a_lod_gives_it():
    plain, a, b = ow.ones([3], ow.float64), tensor([[2, 1]]), tensor([[1, 2]])
    assert (plain + a).lod() == a.lod()
    assert (a + b).lod() == a.lod()
    assert (b + a).lod() == b.lod()


def test_where_rows_go_the_lod_vanishes():
    x = ow.LoDTensor(np.ones((3, 2)), [[0, 2, 3]])
    for y in (ow.reduce_sum(x), ow.reduce_sum(x, 0), ow.transpose(x), ow.reshape(x, [6]), ow.shape(x)):
        assert not isinstance(y, ow.LoDTensor)
    assert ow.reduce_sum(x, 1).lod() == x.lod()


def test_concatenation_of_rows_joins_sequences():
    a, b = tensor([[2, 1]]), tensor([[0, 2]])
    assert ow.concat([a, b], 0).lod() == [[0, 2, 3, 3, 5]]
    deep = tensor([[1, 1], [2, 1]])
    assert ow.concat([deep, deep], 0).lod() == [[0, 1, 2, 3, 4], [0, 2, 3, 5, 6]]
    for others in ([a, deep], [a, ow.ones([2], ow.float64)]):
        with pytest.raises(InvalidArgumentError, match="differ in their LoD levels"):
            ow.concat(others, 0)


def test_a_gradient_has_the_lod_of_its_input():
    x, w = tensor([[1, 1], [2, 1]]), ow.constant(2.0, ow.float64)
    with ow.GradientTape() as tape:
        tape.watch([x, w])
        y = ow.reduce_sum(ow.square(x) * w)
    dx, dw = tape.gradient(y, [x, w])
    assert dx.lod() == x.lod()
    assert dx.tolist() == [0.0, 4.0, 8.0]
    assert float(dw) == 5.0


def test_the_gradient_of_a_reversed_sequence_needs_no_lod_to_arrive():
    x = ow.LoDTensor(np.ones((3, 1)), [[0, 2, 3]])
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = ow.sequence.reverse(x)
    dx = tape.gradient(y, x, output_gradients=ow.constant([[1.0], [2.0], [3.0]], ow.float64))
    assert dx.to_nested() == [[[2.0], [1.0]], [[3.0]]]


# ---- level checks, when called and when traced -----------------------------------------------------------------------

ONE = ow.LoDTensor(np.ones((3, 1)), [[0, 2, 3]])
TWO = ow.LoDTensor(np.ones((3, 1)), [[0, 1, 2], [0, 2, 3]])
THREE = ow.LoDTensor(np.ones((3, 1)), [[0, 1], [0, 1], [0, 3]])
NONE = ow.ones([3, 1], ow.float64)
INTS = ow.LoDTensor(np.ones((3, 1), np.int64), [[0, 1, 2], [0, 2, 3]])
COLUMN = np.array([[1], [1]])

LEVELS = {
    "pool of none": (lambda x: ow.sequence.pool(x), NONE, "SequencePool: input 'x' has no LoD"),
    "pool of three": (lambda x: ow.sequence.pool(x), THREE, "'x' has 3 LoD levels"),
    "softmax": (lambda x: ow.sequence.softmax(x), NONE, "SequenceSoftmax: input 'x' has no LoD"),
    "expand of two": (lambda x: ow.sequence.expand(x, ONE), TWO, "'x' has 2 LoD levels"),
    "expand by none": (lambda x: ow.sequence.expand(ONE, x), NONE, "'y' has no LoD"),
    "expand_as none": (lambda x: ow.sequence.expand_as(NONE, x), NONE, "'y' has no LoD"),
    "expand_as two": (lambda x: ow.sequence.expand_as(NONE, x), TWO, "'y' has 2 LoD levels"),
    "concat with none": (lambda x: ow.sequence.concat([ONE, x]), NONE, "'x' has no LoD"),
    "concat with two": (lambda x: ow.sequence.concat([ONE, x]), TWO, "'x' has 2 LoD levels"),
    "slice": (lambda x: ow.sequence.slice(x, COLUMN, COLUMN), TWO, "'x' has 2 LoD levels"),
    "reverse of none": (lambda x: ow.sequence.reverse(x), NONE, "'x' has no LoD"),
    "reverse of two": (lambda x: ow.sequence.reverse(x), TWO, "'x' has 2 LoD levels"),
    "pad of none": (lambda x: ow.sequence.pad(x), NONE, "'x' has no LoD"),
    "pad of two": (lambda x: ow.sequence.pad(x), TWO, "'x' has 2 LoD levels"),
    "conv": (lambda x: ow.sequence.conv(x, np.ones((3, 1))), TWO, "'x' has 2 LoD levels"),
    "erase": (lambda x: ow.sequence.erase(x, [1]), INTS.values, "'x' has no LoD"),
    "enumerate": (lambda x: ow.sequence.enumerate(x, 2), INTS, "'x' has 2 LoD levels"),
    "reshape": (lambda x: ow.sequence.reshape(x, 1), TWO, "'x' has 2 LoD levels"),
    "scatter of none": (lambda x: ow.sequence.scatter(np.ones((2, 2)), INTS.values, x), ONE, "'ids' has no LoD"),
    "scatter of two": (lambda x: ow.sequence.scatter(np.ones((2, 2)), INTS, x), ONE, "'ids' has 2 LoD levels"),
    "lstm": (lambda x: ow.sequence.dynamic_lstm(x, np.ones((1, 4)), np.ones((1, 7))), TWO, "'x' has 2 LoD levels"),
    "gru": (lambda x: ow.sequence.dynamic_gru(x, np.ones((1, 3))), NONE, "'x' has no LoD"),
}


@pytest.mark.parametrize("traced", [False, True], ids=["called", "traced"])
@pytest.mark.parametrize("name", LEVELS)
def test_levels(name, traced):
    function, x, says = LEVELS[name]
    if traced:
        traced_function = ow.function(function, autograph=False)
        function = lambda x: traced_function.get_concrete_function(x)  # noqa: E731  tracing alone must object
    with pytest.raises((InvalidArgumentError, SignatureError), match=says):
        function(x)


def test_pool_leaves_the_level_above():
    y = ow.sequence.pool(TWO, "sum")
    assert y.lod() == [[0, 1, 2]]
    assert ow.sequence.pool(y, "sum").numpy().tolist() == [[2.0], [1.0]]


def test_softmax_goes_by_the_last_level():
    y = ow.sequence.softmax(TWO)
    assert y.lod() == TWO.lod()
    assert y.numpy().tolist() == [[0.5], [0.5], [1.0]]


def test_erase_keeps_the_levels_above():
    x = ow.LoDTensor(np.array([[1], [2], [2], [3]]), [[0, 1, 3], [0, 2, 3, 4]])
    y = ow.sequence.erase(x, [2])
    assert y.lod() == [[0, 1, 3], [0, 1, 1, 2]]


def test_expand_as_ignores_the_lod_of_its_rows():
    y = ow.sequence.expand_as(ow.LoDTensor(np.ones((2, 1)), [[0, 1, 1], [0, 2]]), ONE)
    assert y.lod() == ONE.lod()


def test_an_appended_level_must_nest():
    x = ow.LoDTensor(np.zeros((6, 1)), [[0, 2, 6]])
    with pytest.raises(InvalidArgumentError, match="level 0 ends at 6, but level 1 has 2 sequences"):
        ow.sequence.lod_append(x, [0, 2, 6])
    assert ow.sequence.lod_append(x, [0, 0, 2, 3, 3, 5, 6]).recursive_sequence_lengths() == [[2, 4], [0, 2, 1, 0, 2, 1]]


def test_an_appended_level_by_tensor_and_by_lod():
    x = ow.LoDTensor(np.zeros((3, 1)), [[0, 1, 2]][:0] or [[0, 1, 3]])
    level = ow.constant([0, 1, 2, 3])
    assert ow.sequence.lod_append(x, level).lod() == [[0, 1, 3], [0, 1, 2, 3]]
    assert ow.sequence.lod_append(x, TWO).lod() == TWO.lod()  # a LoD replaces, as it does in lod_reset


# ---- functions -------------------------------------------------------------------------------------------------------


def test_one_trace_serves_all_batches():
    traces = []

    @ow.function
    def f(x):
        traces.append(x.shape)
        y = ow.sequence.reverse(ow.tanh(x))
        return y, ow.sequence.pool(y, "last")

    for lens in ([2, 1], [0, 3, 0, 4], [0], [1]):
        x = ow.LoDTensor(np.linspace(-1.0, 1.0, 2 * sum(lens)).reshape(-1, 2), lod.from_lengths([lens]))
        y, last = f(x)
        assert y.lod() == x.lod()
        firsts = [[np.tanh(v) for v in part[0]] if part else [0.0, 0.0] for part in x.to_nested()]
        np.testing.assert_allclose(last.numpy(), firsts, 1e-12)
    assert len(traces) == 1
    assert f.get_concrete_function(ow.LoDTensorSpec([None, 2], ow.float64, 1))
    assert len(traces) == 1


def test_offsets_are_not_numbers_while_traced():
    @ow.function
    def f(x):
        return x.lod()

    with pytest.raises(FailedPreconditionError, match="known when the function runs"):
        f(ONE)


def test_rows_and_offsets_that_disagree_when_it_runs():
    """Operators that read offsets check properties that a spec does not know."""
    f = ow.function(lambda x: ow.sequence.pool(x, "sum"), autograph=False)
    wrong = ow.LoDTensor.of(ow.ones([5, 1]), [ow.constant([0, 2, 3], ow.int64)])
    with pytest.raises(InvalidArgumentError, match=r"(?s)SequencePool.*'x'.*there are 5 rows.*\[0, 2, 3\]"):
        f(wrong)


def test_in_a_loop():
    @ow.function
    def f(x):
        def body(i, x):
            return i + 1, ow.sequence.reverse(x) + 1.0

        return ow.while_loop(lambda i, x: i < 3, body, [0, x])[1]

    assert f(ow.LoDTensor([[1.0], [2.0], [3.0]], [[0, 2, 3]])).to_nested() == [[[5.0], [4.0]], [[6.0]]]


def test_saved_and_loaded(tmp_path):
    class Model(ow.Module):
        def __init__(self):
            super().__init__()
            self.w = ow.Variable(np.full((2, 8), 0.25))

        @ow.function(input_signature=[ow.LoDTensorSpec([None, 8], ow.float64, 1)])
        def __call__(self, x):
            hidden, _ = ow.sequence.dynamic_lstm(x, self.w, ow.zeros([1, 14], ow.float64))
            return hidden, ow.sequence.pool(hidden, "max")

    model = Model()
    ow.saved_model.save(model, str(tmp_path / "m"))
    loaded = ow.saved_model.load(str(tmp_path / "m"))
    for lens in ([2, 0, 1], [4]):
        x = ow.LoDTensor(np.linspace(-1, 1, 8 * sum(lens)).reshape(-1, 8), lod.from_lengths([lens]))
        for actual, expected in zip(loaded(x), model(x)):
            np.testing.assert_array_equal(actual.numpy(), expected.numpy())
        assert loaded(x)[0].lod() == x.lod()


def test_no_rows_at_all_work_everywhere():
    """10.7: nothing divides by the number of rows."""
    x = ow.LoDTensor(np.zeros((0, 4)), [[0, 0, 0]])
    assert ow.sequence.reverse(x).shape == (0, 4)
    assert ow.sequence.pad(x)[0].shape == (2, 0, 4)
    assert ow.sequence.unpad(np.zeros((2, 0, 4)), [0, 0]).lod() == [[0, 0, 0]]
    hidden, _ = ow.sequence.dynamic_lstm(x, np.zeros((1, 4)), np.zeros((1, 7)))
    assert hidden.shape == (0, 1)
    assert hidden.lod() == x.lod()


def test_internal_orders_are_no_lods():
    """10.8: what a recurrence keeps about its batches is in outputs of their own, which callers do not get."""
    from opwright.ops.sequence.lstm import DynamicLstm

    x = ow.LoDTensor(np.ones((3, 4)), [[0, 2, 3]])
    hidden, cell = ow.sequence.dynamic_lstm(x, np.ones((1, 4)), np.ones((1, 7)))
    assert hidden.lod() == cell.lod() == [[0, 2, 3]]
    assert [o.name for o in DynamicLstm.outputs if o.intermediate] == ["batch_gate", "batch_cell_pre_act"]

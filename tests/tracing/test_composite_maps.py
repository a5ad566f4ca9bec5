"""Ragged tensors in `map_fn`, `tile`, `where` and shapes of `ragged.range`; expected values are rows by Python."""

import numpy as np
import pytest

import opwright as ow

ROWS = [[1, 2], [], [3, 4, 5]]


def test_map_fn_maps_rows_of_ragged_and_sparse_tensors():
    x = ow.ragged.constant(ROWS)
    assert ow.map_fn(ow.reduce_sum, x).numpy().tolist() == [3, 0, 12]
    kept = ow.map_fn(lambda row: row + 1, x, fn_output_signature=ow.RaggedTensorSpec([None], ow.int32))
    assert kept.to_list() == [[2, 3], [], [4, 5, 6]]
    assert ow.map_fn(ow.square, x).to_list() == [[1, 4], [], [9, 16, 25]]
    assert kept.shape.as_list() == [3, None]
    growing = ow.map_fn(ow.range, ow.constant([2, 0, 1]), fn_output_signature=ow.RaggedTensorSpec([None], ow.int32))
    assert growing.to_list() == [[0, 1], [], [0]]
    pairs = ow.map_fn(
        lambda p: (p[0][:1], p[1]), (x, ow.constant([7, 8, 9])), (ow.RaggedTensorSpec([None], ow.int32), ow.int32)
    )
    assert pairs[0].to_list() == [[1], [], [3]]
    assert pairs[1].numpy().tolist() == [7, 8, 9]
    sparse = ow.SparseTensor([[0, 1], [2, 0]], [5, 6], [3, 2])
    same = ow.map_fn(lambda row: row, sparse)
    assert ow.sparse.to_dense(same).numpy().tolist() == [[0, 5], [0, 0], [6, 0]]
    none = ow.map_fn(
        lambda row: row, ow.ragged.constant([], ragged_rank=1), fn_output_signature=ow.RaggedTensorSpec([None])
    )
    assert none.to_list() == []
    with pytest.raises(ow.errors.UnimplementedError, match="map_flat_values"):
        ow.function(lambda: ow.map_fn(ow.reduce_sum, x))()
    with pytest.raises(ValueError, match="different first sizes"):
        ow.map_fn(lambda p: p[0], (x, ow.constant([1])))
    with pytest.raises(TypeError, match="same nested structure"):
        ow.map_fn(lambda v: (v, v), ow.constant([1]), fn_output_signature=[ow.int32, ow.int32])


@pytest.mark.parametrize("multiples", [(3, 1, 2), (1, 2, 1), (2, 0, 1), (1, 1, 0)])
def test_tile_repeats_rows_and_their_elements(multiples):
    rows = [[[1, 2], [3]], [], [[4]]]
    expected = [[row * multiples[2] for row in part] * multiples[1] for part in rows] * multiples[0]
    x = ow.ragged.constant(rows)
    assert ow.tile(x, multiples).to_list() == expected
    assert ow.function(lambda m: ow.tile(x, m))(ow.constant(multiples)).to_list() == expected
    even = ow.ragged.constant([[[1, 2]], []], ragged_rank=1, inner_shape=(2,))
    assert ow.tile(even, multiples).to_list() == [[[1, 2] * multiples[2]] * multiples[1], []] * multiples[0]


def test_tile_has_a_gradient():
    values = ow.constant([1.0, 2.0, 3.0])
    with ow.GradientTape() as tape:
        tape.watch(values)
        x = ow.RaggedTensor.from_row_lengths(values, [2, 1])
        y = ow.reduce_sum(ow.tile(x, [2, 3]) * 2.0)
    gradient = ow.convert_to_tensor(tape.gradient(y, values))
    assert gradient.numpy().tolist() == [12.0, 12.0, 12.0]


def test_where_returns_positions_and_rows():
    condition = ow.ragged.constant([[True, False, True], [], [True]])
    assert ow.where(condition).numpy().tolist() == [[0, 0], [0, 2], [2, 0]]
    x, y = ow.ragged.constant([["A", "B"], ["C"]]), ow.ragged.constant([["a"], ["b", "c"]])
    assert ow.compat.v1.where([True, False], x, y).to_list() == [[b"A", b"B"], [b"b", b"c"]]
    assert ow.compat.v1.where([False, True], [["p", "q"], ["r", "s"]], y).to_list() == [[b"a"], [b"r", b"s"]]


def test_ranges_of_vectors_of_other_sizes_are_refused():
    for arguments in [([[0]], 5), (0, [[5]]), ([0], [1, 2])]:
        with pytest.raises(ow.errors.InvalidArgumentError, match=r"ragged\.range"):
            ow.ragged.range(*arguments)


def test_compute_gradient_moves_scalars():
    theoretical, numerical = ow.test.compute_gradient(lambda x: x * x * ow.ones([2]), [3.0])
    np.testing.assert_allclose(theoretical, numerical, rtol=1e-3)
    assert theoretical[0].tolist() == [[6.0], [6.0]]


def test_an_error_of_range_in_a_function_of_a_dataset_does_not_end_it():
    def stop(x):
        raise StopIteration

    data = ow.data.Dataset.range(2).map(lambda x: ow.numpy_function(stop, [x], ow.int64))
    with pytest.raises(ow.errors.InvalidArgumentError, match="OutOfRangeError"):
        list(data)
    assert ow.data.Dataset.range(2).repeat().group_by_window(lambda x: x, lambda k, d: d, 1).cardinality() == -1


def test_code_points_of_several_strings_are_rows():
    decode = ow.strings.unicode_decode
    assert decode(["hé", "", "x"], "UTF-8").to_list() == [[104, 233], [], [120]]
    assert decode([["a"], ["bc"]], "UTF-8").to_list() == [[[97]], [[98, 99]]]
    assert decode(ow.ragged.constant([["a", "bé"], ["c"]]), "UTF-8").to_list() == [[[97], [98, 233]], [[99]]]
    characters, offsets = ow.strings.unicode_split_with_offsets(["héx", "ab"], "UTF-8")
    assert characters.to_list() == [[b"h", "é".encode(), b"x"], [b"a", b"b"]]
    assert offsets.to_list() == [[0, 1, 3], [0, 1]]
    traced = ow.function(lambda s: decode(s, "UTF-8"))(ow.constant(["hé", "x"]))
    assert traced.to_list() == [[104, 233], [120]]

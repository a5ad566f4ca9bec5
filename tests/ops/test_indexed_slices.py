"""IndexedSlices: sparse rows as values. What they mean, how they add up, how they stay sparse.

Lives here: the type.  Not here: its operators (cases_rows.py), optimizers' steps by it (tests/optimizers).
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opwright as ow
from opwright.core.errors import InvalidArgumentError
from opwright.ops.array_functions import combine
from opwright.ops.indexed_slices import summed


def slices(indices, values, shape=(5, 2), dtype="float64", index="int64"):
    values = ow.constant(np.asarray(values, dtype).reshape(len(indices), *(shape or (5, 2))[1:]))
    shape = None if shape is None else ow.constant(np.array(shape), "int64")
    return ow.IndexedSlices(values, ow.constant(np.asarray(indices, index)), shape)


def dense(indices, values, shape=(5, 2)):
    out = np.zeros(shape)
    np.add.at(out, np.asarray(indices, int), np.asarray(values, float).reshape(len(indices), *shape[1:]))
    return out


A = ([2, 0, 2], [[0.5, 1.0], [1.0, 2.0], [0.25, 3.0]])
B = ([4, 0], [[1.0, 1.0], [2.0, 2.0]])
NONE = ([], np.zeros((0, 2)))

# ---- what it is -----------------------------------------------------------------------------------------------------


def test_parts():
    s = slices(*A)
    assert s.height == 5
    assert s.rows is s.indices
    assert s.shape == (5, 2)
    assert s.dtype is ow.float64
    assert slices(*A, shape=None).height is None
    assert slices(*A, shape=None).shape.as_list() == [None, 2]
    np.testing.assert_array_equal(s.to_dense().numpy(), dense(*A))
    np.testing.assert_array_equal(slices(*NONE).to_dense().numpy(), np.zeros((5, 2)))


def test_one_index_for_each_row():
    with pytest.raises(InvalidArgumentError, match=r"indices and values differ in number[\s\S]*indices \[n\]"):
        ow.IndexedSlices(ow.constant([[1.0], [2.0]]), ow.constant([0]))


@pytest.mark.parametrize("index", [5, -1])
@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.merged(),
        lambda s: s.to_dense(),
        lambda s: s + ow.zeros((5, 2), "float64"),
        lambda s: ow.Variable(np.zeros((5, 2))).scatter_add(s),
    ],
    ids=["merged", "to_dense", "add", "scatter_add"],
)
def test_rows_that_are_not_there(use, index):
    with pytest.raises(InvalidArgumentError, match=str(index)):
        use(slices([1, index], [[1.0, 1.0], [1.0, 1.0]]))


def test_reading_as_a_tensor_makes_it_dense():
    np.testing.assert_array_equal((ow.ones((5, 2), "float64") * slices(*A)).numpy(), dense(*A))
    with pytest.raises(ValueError, match="dense_shape"):
        ow.convert_to_tensor(slices(*A, shape=None))


# ---- merging --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("indices", "wanted"),
    [([2, 0, 2], [0, 2]), ([4, 1, 0], [0, 1, 4]), ([0, 1, 3], [0, 1, 3]), ([1, 1], [1]), ([3], [3]), ([], [])],
)
def test_merged_is_unique_and_ascending(indices, wanted):
    values = np.arange(2.0 * len(indices)) + 1
    m = slices(indices, values).merged()
    assert m.indices.numpy().tolist() == wanted
    np.testing.assert_array_equal(m.values.numpy(), dense(indices, values)[wanted])
    again = m.merged()
    assert again.indices.numpy().tolist() == wanted


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(0, 2**31), st.sampled_from(["int32", "int64"]))
def test_merged_means_the_same(indices, seed, index):
    values = np.random.default_rng(seed).integers(-9, 9, (len(indices), 3)).astype(float)
    s = slices(indices, values, (7, 3), index=index)
    m = s.merged()
    assert m.indices.dtype.name == index
    np.testing.assert_array_equal(m.indices.numpy(), np.unique(np.array(indices, int)))
    np.testing.assert_array_equal(m.to_dense().numpy(), dense(indices, values, (7, 3)))


def test_merged_in_a_function_has_gradients():
    @ow.function
    def weighed(values, indices):
        m = ow.IndexedSlices(values, indices, None).merged()
        return ow.reduce_sum(m.values * m.values)

    values, indices = ow.constant([[1.0], [2.0], [3.0]]), ow.constant([4, 1, 4])
    with ow.GradientTape() as tape:
        tape.watch(values)
        y = weighed(values, indices)
    assert y.numpy() == 4**2 + 2**2
    np.testing.assert_array_equal(tape.gradient(y, values).numpy(), [[8.0], [4.0], [8.0]])


def test_lookup():
    np.testing.assert_array_equal(slices(*A).lookup([2, 0, 2]).numpy(), dense(*A)[[2, 0, 2]])
    with pytest.raises(InvalidArgumentError, match="no row 1 among the 2"):
        slices(*A).lookup(ow.constant([1]))
    values, indices = ow.constant([[1.0], [2.0], [3.0]]), ow.constant([4, 1, 4])
    with ow.GradientTape() as tape:
        tape.watch(values)
        y = ow.reduce_sum(ow.constant([[2.0], [3.0]]) * ow.IndexedSlices(values, indices).lookup([4, 4]))
    np.testing.assert_array_equal(tape.gradient(y, values).numpy(), [[5.0], [0.0], [5.0]])


# ---- adding up ------------------------------------------------------------------------------------------------------


def test_two_add_up_to_the_rows_of_both():
    s = slices(*A) + slices(*B, index="int32")
    assert s.indices.numpy().tolist() == [2, 0, 2, 4, 0]
    assert s.indices.dtype is ow.int64
    np.testing.assert_array_equal(s.to_dense().numpy(), dense(*A) + dense(*B))
    np.testing.assert_array_equal((slices(*A) - slices(*B)).to_dense().numpy(), dense(*A) - dense(*B))


@pytest.mark.parametrize(("one", "other"), [(A, NONE), (NONE, A), (NONE, NONE)])
def test_no_rows_are_rows_like_others(one, other):
    np.testing.assert_array_equal((slices(*one) + slices(*other)).to_dense().numpy(), dense(*one) + dense(*other))
    merged = summed([slices(*one), slices(*other)])
    np.testing.assert_array_equal(merged.to_dense().numpy(), dense(*one) + dense(*other))
    np.testing.assert_array_equal((slices(*one) + ow.ones((5, 2), "float64")).numpy(), dense(*one) + 1)


def test_next_to_a_tensor_they_are_a_tensor():
    ones = ow.ones((5, 2), "float64")
    for result in (slices(*A) + ones, ones + slices(*A), ow.add_n([ones, slices(*A)])):
        assert isinstance(result, ow.Tensor)
        np.testing.assert_array_equal(result.numpy(), dense(*A) + 1)
    np.testing.assert_array_equal((slices(*A) - ones).numpy(), dense(*A) - 1)
    np.testing.assert_array_equal((ones - slices(*A)).numpy(), 1 - dense(*A))
    np.testing.assert_array_equal((np.ones((5, 2)) - slices(*A)).numpy(), 1 - dense(*A))
    assert isinstance(slices(*A, shape=None) + ones, ow.Tensor)  # the tensor knows the shape


@pytest.mark.parametrize(
    "change", [lambda s: -s, lambda s: s * 3.0, lambda s: 3.0 * s, lambda s: s / 4.0, lambda s: np.float64(2.0) * s]
)
def test_linear_in_the_rows(change):
    result = change(slices(*A))
    assert isinstance(result, ow.IndexedSlices)
    np.testing.assert_array_equal(result.to_dense().numpy(), change(dense(*A)))


def test_factors_with_dimensions_are_refused():
    with pytest.raises(ValueError, match="scalars only"):
        slices(*A) * ow.ones((5, 2))


@pytest.mark.parametrize(
    "other", [slices(*B, shape=(6, 2)), slices([0], [[1.0, 2.0, 3.0]], (5, 3))], ids=["height", "width"]
)
def test_heights_and_widths_must_match(other):
    for add in (lambda: slices(*A) + other, lambda: ow.add_n([slices(*A), other])):
        with pytest.raises(InvalidArgumentError, match=r"do not add up[\s\S]*equal heights"):
            add()
    with pytest.raises(InvalidArgumentError, match="rows of one shape, a tensor of another"):
        slices(*A) + ow.zeros(other.shape, "float64")
    with pytest.raises(InvalidArgumentError, match="differ in dtype"):
        slices(*A) + slices(*A, dtype="float32")


def test_a_sum_of_rows_is_merged():
    s = summed([slices(*A), slices(*NONE), slices(*B)])
    assert isinstance(s, ow.IndexedSlices)
    assert s.indices.numpy().tolist() == [0, 2, 4]
    np.testing.assert_array_equal(s.to_dense().numpy(), dense(*A) + dense(*B))
    np.testing.assert_array_equal(ow.add_n([slices(*A), slices(*B)]).numpy(), dense(*A) + dense(*B))
    assert summed([slices(*A)]).indices.numpy().tolist() == [0, 2]
    mixed = ow.add_n([slices(*A), ow.ones((5, 2), "float64"), slices(*B), ow.ones((5, 2), "float64")])
    np.testing.assert_array_equal(mixed.numpy(), dense(*A) + dense(*B) + 2)


# ---- gradients by rows ----------------------------------------------------------------------------------------------

TABLE = np.arange(12.0).reshape(6, 2)
LOOKUPS = {
    "gather": lambda t, i: ow.gather(t, i),
    "embedding_lookup": lambda t, i: ow.nn.embedding_lookup(t, i),
    "sparse_read": lambda t, i: t.sparse_read(i),
}


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("lookup", LOOKUPS.values(), ids=LOOKUPS)
def test_lookups_give_rows_as_they_were_looked_up(lookup, traced):
    t = ow.Variable(TABLE)
    f = ow.function(lookup) if traced else lookup
    weights = ow.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]], "float64")
    with ow.GradientTape() as tape:
        y = ow.reduce_sum(f(t, ow.constant([[1, 5], [1, 0]])) * weights)
    g = tape.gradient(y, t)
    assert g.indices.numpy().tolist() == [1, 5, 1, 0]
    assert g.height == 6
    np.testing.assert_array_equal(g.values.numpy(), [[1, 2], [3, 4], [5, 6], [7, 8]])


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_padding_is_zeros_and_gets_no_gradient(traced):
    t = ow.Variable(TABLE)

    def lookup(i):
        return ow.nn.embedding_lookup(t, i, padding_idx=1)

    f = ow.function(lookup) if traced else lookup
    with ow.GradientTape(persistent=True) as tape:
        rows = f(ow.constant([[1, 5], [1, 0]]))
        y = ow.reduce_sum(rows)
    np.testing.assert_array_equal(rows.numpy(), [[[0, 0], TABLE[5]], [[0, 0], TABLE[0]]])
    g = tape.gradient(y, t)
    assert g.indices.numpy().tolist() == [5, 0]
    np.testing.assert_array_equal(g.to_dense().numpy()[1], [0, 0])
    optimizer = ow.optimizers.Adam(0.1)
    optimizer.apply([g], [t])
    np.testing.assert_array_equal(t.numpy()[1], TABLE[1])
    with ow.GradientTape() as tape:
        y = ow.reduce_sum(f(ow.constant([1, 1])))
    assert tape.gradient(y, t).indices.shape == (0,)


def test_two_lookups_in_a_function_stay_rows():
    t = ow.Variable(TABLE)

    @ow.function
    def inner(i):
        return ow.reduce_sum(ow.gather(t, i))

    @ow.function
    def f(i):
        return inner(i) + 2.0 * inner(i + 1)

    with ow.GradientTape() as tape:
        y = f(ow.constant([1, 1]))
    g = tape.gradient(y, t)
    assert isinstance(g, ow.IndexedSlices)
    np.testing.assert_array_equal(g.to_dense().numpy(), dense([1, 1, 2, 2], [[1, 1], [1, 1], [2, 2], [2, 2]], (6, 2)))

    @ow.function
    def gradient(i):
        with ow.GradientTape() as tape:
            y = f(i)
        g = tape.gradient(y, t)
        assert isinstance(g, ow.IndexedSlices)
        return g

    np.testing.assert_array_equal(gradient(ow.constant([1, 1])).to_dense().numpy(), g.to_dense().numpy())


# ---- arrays, and who else holds them --------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 4), max_size=80),
    st.integers(0, 2**31),
    st.sampled_from([np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum]),
)
def test_combine_is_ufunc_at_to_the_bit(indices, seed, ufunc):
    rng = np.random.default_rng(seed)
    at, updates, start = np.array(indices, int), rng.normal(size=(len(indices), 3)), rng.normal(size=(5, 3))
    ours, theirs = start.copy(), start.copy()
    combine(ufunc, ours, at, updates)
    ufunc.at(theirs, at, updates)
    np.testing.assert_array_equal(ours, theirs)


HOLD = {
    "value": lambda v: v.value(),
    "slice": lambda v: v[1:3],
    "array": np.asarray,
    "gather": lambda v: ow.reshape(v, [-1]),
    "dlpack": lambda v: np.from_dlpack(v.value()),
}
CHANGE = {
    "scatter_add": lambda v: v.scatter_add(ow.IndexedSlices(ow.ones((1, 64)), ow.constant([1]))),
    "scatter_update": lambda v: v.scatter_update(ow.IndexedSlices(ow.zeros((1, 64)), ow.constant([1]))),
    "assign_add": lambda v: v.assign_add(ow.ones((200, 64))),
    "assign_sub": lambda v: v.assign_sub(ow.ones((200, 64))),
}


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("hold", HOLD.values(), ids=HOLD)
@pytest.mark.parametrize("change", CHANGE.values(), ids=CHANGE)
def test_a_value_once_read_never_changes(change, hold, traced):
    v = ow.Variable(np.full((200, 64), 3.0, "f4"))

    def f():
        change(v)

    f = ow.function(f) if traced else f
    place = v.read_array().ctypes.data
    f()
    assert v.read_array().ctypes.data == place
    held = hold(v)
    before = np.array(held)
    f()
    np.testing.assert_array_equal(np.array(held), before)
    assert v.read_array().ctypes.data != place


def test_what_was_assigned_stays_its_owners():
    t, v = ow.ones((200, 64)), ow.Variable(np.zeros((200, 64), "f4"))
    v.assign(t)
    CHANGE["assign_add"](v)
    assert t.numpy().max() == 1
    assert v.numpy().min() == 2


def test_a_failed_write_leaves_the_variable_as_it_was():
    v = ow.Variable(np.full((200, 64), 3.0, "f4"))
    with pytest.raises(InvalidArgumentError):
        v.scatter_add(ow.IndexedSlices(ow.ones((1, 64)), ow.constant([200])))
    assert (v.numpy() == 3).all()
    CHANGE["scatter_add"](v)
    assert v.numpy()[1, 0] == 4


def test_readers_in_other_threads_see_whole_values():
    v = ow.Variable(np.zeros((2000, 64), "f4"))
    one, torn, done = ow.ones((2000, 64)), [], threading.Event()

    def read() -> None:
        while not done.is_set():
            value = v.value().numpy()
            if value.min() != value.max():
                torn.append(value)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for r in readers:
        r.start()
    for _ in range(200):
        v.assign_add(one)
    done.set()
    for r in readers:
        r.join()
    assert not torn
    assert v.numpy().min() == 200


@pytest.mark.parametrize("persistent", [False, True])
def test_rows_pass_through_a_function_that_forwards_the_table(persistent):
    t = ow.Variable(TABLE)

    @ow.function
    def table_and_norm():
        return t.value(), ow.reduce_sum(t * t)

    with ow.GradientTape(persistent=persistent) as tape:
        table, _ = table_and_norm()
        y = ow.reduce_sum(ow.gather(table, ow.constant([4, 4])))
    g = tape.gradient(y, t)
    if not isinstance(g, ow.IndexedSlices):  # with the norm's zeros, whose shape has to come from somewhere
        g = ow.IndexedSlices(g, ow.range(6), ow.constant([6, 2]))
    np.testing.assert_array_equal(g.to_dense().numpy(), dense([4, 4], np.ones(4), (6, 2)))

    @ow.function
    def table():
        return ow.identity(t.value())

    with ow.GradientTape(persistent=persistent) as tape:
        y = ow.reduce_sum(ow.gather(table(), ow.constant([4, 4])))
    g = tape.gradient(y, t)
    assert isinstance(g, ow.IndexedSlices)
    assert g.indices.numpy().tolist() == [4, 4]

    @ow.function
    def shrunk():
        return t * 0.5

    with ow.GradientTape(persistent=persistent) as tape:
        y = ow.reduce_sum(ow.gather(shrunk(), ow.constant([4, 4])))
    np.testing.assert_array_equal(ow.convert_to_tensor(tape.gradient(y, t)).numpy(), dense([4, 4], [0.5] * 4, (6, 2)))


def looped(t, i):
    total = ow.zeros([2], "float64")
    for k in ow.range(3):
        total += ow.reduce_sum(ow.gather(t, i[: k + 1]), 0) * ow.cast(k + 1, "float64")
    return ow.reduce_sum(total * total)


def branched(t, i):
    return ow.cond(i[0] > 0, lambda: ow.reduce_sum(ow.gather(t, i) ** 2), lambda: ow.cast(i[0], "float64"))


def branched_twice(t, i):
    one = ow.cond(i[0] > 0, lambda: ow.gather(t, i[:1]), lambda: ow.gather(t, ow.concat([i, i], 0)))
    return ow.reduce_sum(one * one)


def case_in_loop(t, i):
    total = ow.zeros([], "float64")
    for k in ow.range(3):
        total += ow.reduce_sum(ow.nn.embedding_lookup(t, i[k : k + 1], padding_idx=0) ** 2) + total
    return total


def not_rows(t, i):
    return ow.cond(i[0] > 0, lambda: ow.reduce_sum(ow.gather(t, i) ** 2), lambda: ow.reduce_sum(t * t))


@pytest.mark.parametrize(
    ("f", "stays"), [(looped, True), (branched, True), (branched_twice, True), (case_in_loop, True), (not_rows, False)]
)
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("kind", ["variable", "tensor"])
def test_rows_out_of_branches_and_loops(f, stays, first, kind):
    """As eagerly, where Python's own loops and branches run."""
    i = ow.constant([first, 5, first])
    result = []
    for call in (f, ow.function(f)):
        t = ow.Variable(TABLE) if kind == "variable" else ow.constant(TABLE)
        with ow.GradientTape() as tape:
            tape.watch(t)
            y = call(t, i)
        g = tape.gradient(y, t)
        result.append(np.zeros((6, 2)) if g is None else ow.convert_to_tensor(g).numpy())
    assert isinstance(g, ow.IndexedSlices) == stays
    np.testing.assert_allclose(result[1], result[0])


def test_second_order_through_rows_out_of_a_loop():
    t = ow.Variable(TABLE)
    f = ow.function(looped)
    with ow.GradientTape() as outer:
        with ow.GradientTape() as tape:
            y = f(t, ow.constant([1, 4, 1]))
        g = tape.gradient(y, t)
        z = ow.reduce_sum(ow.convert_to_tensor(g) ** 2)
    h = outer.gradient(z, t)
    with ow.GradientTape() as outer:
        with ow.GradientTape() as tape:
            y = looped(t, ow.constant([1, 4, 1]))
        z = ow.reduce_sum(ow.convert_to_tensor(tape.gradient(y, t)) ** 2)
    np.testing.assert_allclose(ow.convert_to_tensor(h).numpy(), ow.convert_to_tensor(outer.gradient(z, t)).numpy())

"""Variables: what they hold, how they are set, what they refuse."""

import copy
import operator
import pickle
import threading

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import FailedPreconditionError, InvalidArgumentError


def values(v):
    return v.numpy().tolist()


PRINTED = [  # as TensorFlow 2.21 prints them
    (lambda: ow.Variable(1.5), "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.5>"),
    (lambda: ow.Variable(0.1), "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=0.10000000149011612>"),
    (
        lambda: ow.Variable([1, 2], name="v"),
        "<tf.Variable 'v:0' shape=(2,) dtype=int32, numpy=array([1, 2], dtype=int32)>",
    ),
    (
        lambda: ow.Variable([[1, 2], [3, 4]]),
        "<tf.Variable 'Variable:0' shape=(2, 2) dtype=int32, numpy=\narray([[1, 2],\n       [3, 4]], dtype=int32)>",
    ),
    (lambda: ow.Variable("a"), "<tf.Variable 'Variable:0' shape=() dtype=string, numpy=b'a'>"),
    (
        lambda: ow.Variable(ow.zeros([0, 2]), shape=ow.TensorShape(None)),
        "<tf.Variable 'Variable:0' shape=<unknown> dtype=float32, numpy=array([], shape=(0, 2), dtype=float32)>",
    ),
    (
        lambda: ow.Variable([1.0], shape=[None], name="a/b"),
        "<tf.Variable 'a/b:0' shape=(None,) dtype=float32, numpy=array([1.], dtype=float32)>",
    ),
    (lambda: ow.Variable(1.0, dtype=ow.float64), "<tf.Variable 'Variable:0' shape=() dtype=float64, numpy=1.0>"),
]


@pytest.mark.parametrize(("make", "text"), PRINTED, ids=range(len(PRINTED)))
def test_printing(make, text):
    assert repr(make()) == text
    assert str(make()) == text


@pytest.mark.parametrize(
    ("make", "dtype", "shape"),
    [
        (lambda: ow.Variable([1, 2], dtype=ow.float32), "float32", [2]),
        (lambda: ow.Variable(lambda: ow.ones([2])), "float32", [2]),
        (lambda: ow.Variable(ow.Variable([1, 2])), "int32", [2]),
        (lambda: ow.Variable(np.float64([1])), "float64", [1]),
        (lambda: ow.Variable([1.0], shape=[None]), "float32", [None]),
        (lambda: ow.Variable(ow.constant(["a", "b"])), "string", [2]),
    ],
)
def test_initial_values(make, dtype, shape):
    v = make()
    assert (v.dtype, v.shape, v.get_shape()) == (dtype, shape, shape)
    assert (v.rank, v.ndim) == (len(shape), len(shape))
    assert v.trainable


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ow.Variable(), ValueError, "initial_value"),
        (lambda: ow.Variable(ow.constant([1, 2]), dtype=ow.float32), ValueError, "float32.*int32"),
        (lambda: ow.Variable([1, 2], shape=[3]), ValueError, r"\(2,\).*\(3,\)"),
        (lambda: ow.Variable([1.5], dtype=ow.int32), TypeError, "int32"),
        (lambda: ow.Variable([[1], [1, 2]]), ValueError, "non-rectangular"),
        (lambda: ow.Variable(object()), (TypeError, ValueError), "object"),
    ],
)
def test_wrong_initial_values(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_its_value_is_its_own():
    mine = np.float32([1, 2])
    v, w = ow.Variable(mine), ow.Variable(ow.constant(mine))
    u = ow.Variable(w)
    mine[0] = 9
    w.assign([5.0, 5.0])
    v.numpy()[0] = 9
    assert (values(v), values(u)) == ([1, 2], [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(v)[0] = 1


def test_a_value_that_was_read_stays():
    v = ow.Variable([1.0, 2.0])
    before, identity = v.value(), ow.identity(v)
    v.assign_add([1.0, 1.0])
    v.scatter_update(ow.IndexedSlices(ow.constant([7.0]), ow.constant([0])))
    assert before.numpy().tolist() == identity.numpy().tolist() == [1, 2]
    assert values(v) == [7, 3]


# ---- setting ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda v: v.assign([4.0, 5.0, 6.0]), [4, 5, 6]),
        (lambda v: v.assign([4, 5, 6]), [4, 5, 6]),
        (lambda v: v.assign(np.float64([4, 5, 6])), [4, 5, 6]),
        (lambda v: v.assign(v * 2.0), [2, 4, 6]),
        (lambda v: v.assign(ow.Variable([4.0, 5.0, 6.0])), [4, 5, 6]),
        (lambda v: v.assign_add([1.0, 1.0, 2.0]), [2, 3, 5]),
        (lambda v: v.assign_sub(ow.constant([1.0, 1.0, 2.0])), [0, 1, 1]),
        (lambda v: v.assign([4.0, 5.0, 6.0], use_locking=True, name="n", read_value=False), [4, 5, 6]),
        (lambda v: v.scatter_update(ow.IndexedSlices(ow.constant([9.0, 8.0]), ow.constant([0, 2]))), [9, 2, 8]),
        (lambda v: v.scatter_add(ow.IndexedSlices(ow.constant([1.0, 1.0]), ow.constant([0, 0]))), [3, 2, 3]),
        (lambda v: v.scatter_sub(ow.IndexedSlices(ow.constant([1.0, 2.0]), ow.constant([1, 1]))), [1, -1, 3]),
        (lambda v: v.scatter_add(ow.IndexedSlices([1.0], [2])), [1, 2, 4]),
        (lambda v: v.scatter_mul(ow.IndexedSlices([2.0, 3.0], [1, 1])), [1, 12, 3]),
        (lambda v: v.scatter_div(ow.IndexedSlices([2.0], [1])), [1, 1, 3]),
        (lambda v: v.scatter_max(ow.IndexedSlices([9.0, 0.0], [0, 1])), [9, 2, 3]),
        (lambda v: v.scatter_min(ow.IndexedSlices([9.0, 0.0], [0, 1])), [1, 0, 3]),
        (lambda v: v.scatter_nd_update([[0], [2]], [9.0, 8.0]), [9, 2, 8]),
        (lambda v: v.scatter_nd_add([[0], [0]], [1.0, 1.0]), [3, 2, 3]),
        (lambda v: v.scatter_nd_sub([[1]], [1.0]), [1, 1, 3]),
    ],
)
def test_assignments(change, wanted):
    v = ow.Variable([1.0, 2.0, 3.0])
    change(v)
    assert values(v) == wanted
    assert (v.dtype, v.shape) == (ow.float32, [3])


def test_assignments_give_the_variable():
    v = ow.Variable(1.0)
    assert v.assign(2.0).assign_add(3.0).assign_sub(1.0) is v
    assert v.numpy() == 4


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda v: v.assign([1.0, 2.0]), ValueError, r"'v:0'.*\(3,\).*\(2,\)"),
        (lambda v: v.assign(1.0), ValueError, r"'v:0'.*\(3,\).*\(\)"),
        (lambda v: v.assign_add([1.0, 2.0]), ValueError, r"'v:0'.*\(3,\).*\(2,\)"),
        (lambda v: v.assign_sub([[1.0]]), ValueError, r"'v:0'.*\(3,\).*\(1, 1\)"),
        (lambda v: v.assign_add(1.0), InvalidArgumentError, r"'v:0' with shape \(3,\) using.*\(\), shapes must be"),
        (lambda v: v.assign_sub([1.0]), InvalidArgumentError, r"'v:0' with shape \(3,\) using.*\(1,\), shapes must be"),
        (lambda v: v.assign(ow.constant([1, 2, 3])), ValueError, "float32.*int32"),
        (lambda v: v.assign_add(ow.constant([1.0, 2.0, 3.0], ow.float64)), ValueError, "float32.*float64"),
        (lambda v: v.assign(["a", "b", "c"]), TypeError, "float32"),
        (lambda v: v.assign([1j, 1j, 1j]), TypeError, "float32"),
        (lambda v: v.scatter_update(ow.IndexedSlices([1.0], [3])), InvalidArgumentError, "index 3.*0 <= index < 3"),
        (lambda v: v.scatter_add(ow.IndexedSlices([1.0], [-1])), InvalidArgumentError, "index -1"),
        (lambda v: v.scatter_add(ow.IndexedSlices([1.0, 2.0], [0])), InvalidArgumentError, "updates do not fill"),
    ],
)
def test_what_cannot_be_assigned(change, error, words):
    v = ow.Variable([1.0, 2.0, 3.0], name="v")
    with pytest.raises(error, match=f"(?s){words}"):
        change(v)
    assert values(v) == [1, 2, 3]


def test_shapes_may_be_wider_than_the_value():
    v = ow.Variable([1.0], shape=[None])
    assert values(v.assign([1.0, 2.0])) == [1, 2]
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([[1.0]])
    w = ow.Variable(1.0, shape=ow.TensorShape(None))
    assert values(w.assign([[1.0], [2.0]])) == [[1], [2]]
    assert w.shape.rank is None


def test_additions_have_the_shape_of_the_value_not_of_the_variable():
    v = ow.Variable([1.0, 2.0], shape=[None])
    assert values(v.assign_add([1.0, 1.0])) == [2, 3]
    add = ow.function(lambda x: v.assign_add(x) is None, input_signature=[ow.TensorSpec([None])])
    for change in (v.assign_add, v.assign_sub, add):
        with pytest.raises(InvalidArgumentError, match=r"shape \(2,\) using a Tensor with shape \(1,\), shapes"):
            change(ow.constant([1.0]))
    assert values(v) == [2, 3]


def test_every_dtype_can_be_held_and_set():
    for dtype in (ow.float16, ow.bfloat16, ow.float64, ow.int8, ow.uint64, ow.complex64):
        v = ow.Variable(ow.constant([1, 2], dtype))
        v.assign_add(ow.constant([1, 1], dtype))
        assert v.dtype == dtype
        assert np.asarray(v).dtype == dtype.np
        assert [complex(x) for x in np.asarray(v)] == [2, 3]
    v = ow.Variable([True, False])
    assert values(v.assign([False, False])) == [False, False]
    s = ow.Variable(["a", "b"])
    assert values(s.assign(["c", "d"])) == [b"c", b"d"]


def test_threads_do_not_lose_additions():
    v = ow.Variable(0)

    def add():
        for _ in range(300):
            v.assign_add(1)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert v.numpy() == 1200


# ---- in Python ----------------------------------------------------------------------------------------------------


def test_operators_read_it():
    v = ow.Variable([1.0, 2.0])
    assert (v + 1).numpy().tolist() == [2, 3]
    assert (1 - v).numpy().tolist() == [0, -1]
    assert (v * v).numpy().tolist() == [1, 4]
    assert (v == v).numpy().tolist() == [True, True]
    assert (-v).numpy().tolist() == [-1, -2]
    assert v[0].numpy() == 1
    assert ow.reduce_sum(v).numpy() == 3
    assert ow.convert_to_tensor(v).numpy().tolist() == [1, 2]
    assert np.asarray(v).tolist() == [1, 2]
    assert (np.float32([1, 1]) + v).numpy().tolist() == [2, 3]
    assert isinstance(v + v, ow.Tensor)
    assert not isinstance(v, ow.Tensor)


def test_python_values():
    assert bool(ow.Variable(True))
    assert int(ow.Variable(3)) == 3
    assert float(ow.Variable(1.5)) == 1.5
    assert [1, 2][ow.Variable(1)] == 2
    assert [float(x) for x in ow.Variable([1.0, 2.0])] == [1, 2]


def test_identity():
    v, w = ow.Variable(1.0), ow.Variable(1.0)
    assert {v.ref(): 1, w.ref(): 2}[w.ref()] == 2
    assert v.ref().deref() is v
    with pytest.raises(TypeError, match=r"unhashable.*ref\(\)"):
        hash(v)


def test_deep_copies_are_variables_of_their_own():
    v = ow.Variable([1.0], name="v", trainable=False, shape=[None])
    w = copy.deepcopy([v])[0]
    w.assign([2.0, 3.0])
    assert (values(v), values(w)) == ([1], [2, 3])
    assert (w.name, w.trainable, w.shape, w.dtype) == ("v:0", False, [None], ow.float32)
    pair = copy.deepcopy({"a": v, "b": v})
    assert pair["a"] is pair["b"]


def test_a_deleted_value_is_reported():
    v = ow.Variable(1.0, name="gone")
    v._value = None
    for read in (v.value, v.numpy, lambda: v + 1):
        with pytest.raises(FailedPreconditionError, match="'gone:0' has no value"):
            read()
    assert "deleted" in repr(v)
    assert v.assign(2.0).numpy() == 2


def test_constraint_is_kept():
    v = ow.Variable(1.0, constraint=ow.abs)
    assert v.constraint is ow.abs


def test_rows_are_read():
    v = ow.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert values(v.sparse_read([1, 1])) == [[3, 4], [3, 4]]
    assert values(v.gather_nd([[0, 1]])) == [2]


@pytest.mark.parametrize("change", [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow])
def test_operators_in_place_are_refused(change):
    v = ow.Variable(1.0)
    with pytest.raises(RuntimeError, match="assign_add"):
        change(v, 2.0)
    assert v.numpy() == 1


def test_pickles():
    v = pickle.loads(pickle.dumps(ow.Variable([1.0, 2.0], False, name="w", shape=[None])))
    assert (values(v), v.name, v.trainable, v.shape.as_list()) == ([1, 2], "w:0", False, [None])

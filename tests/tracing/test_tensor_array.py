"""TensorArray, eagerly and in graphs: values, errors, shapes, as an argument and a result.

Lives here: what it does by itself.  Not here: gradients, and what it does in loops (test_tensor_array_loops.py), the
lists underneath (tests/ops/test_tensor_list.py).
"""

from __future__ import annotations

import numpy as np
import pytest

MODES = ["eager", "graph"]


def run(tf, mode, program):
    """`program(tf)` now, or as a traced function; arrays for tensors, and for a TensorArray its elements stacked."""

    def flat():
        result = program(tf)
        parts = result if isinstance(result, tuple) else (result,)
        return [p.stack() if isinstance(p, tf.TensorArray) else p for p in parts]

    actual = flat() if mode == "eager" else tf.function(flat)()
    return [f.numpy() for f in actual]


def of(tf, size=3, **more):
    return tf.TensorArray(tf.float32, size=size, **more)


def read_then_stack_kept(tf):
    ta = of(tf, clear_after_read=False).unstack([1.0, 2, 3])
    return ta.read(0), ta.read(0), ta


def ragged(tf):
    return of(tf, 2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2])


# What each program gives, whichever way it runs.
GIVES = {
    "writes": (lambda tf: of(tf).write(0, [1.0, 2]).write(2, [3.0, 4]), [[[1, 2], [0, 0], [3, 4]]]),
    "read": (lambda tf: of(tf).write(0, 1.0).read(0), [1]),
    "unset, shape declared": (lambda tf: of(tf, element_shape=[2]).read(1), [[0, 0]]),
    "unset, shape learnt": (lambda tf: of(tf).write(0, [1.0, 2]).read(1), [[0, 0]]),
    "nothing set, shape declared": (lambda tf: of(tf, element_shape=[2]), [np.zeros([3, 2])]),
    "read again, kept": (read_then_stack_kept, [1, 1, [1, 2, 3]]),
    "written twice": (lambda tf: of(tf).write(1, 1.0).write(1, 2.0), [[0, 2, 0]]),
    "grows": (lambda tf: of(tf, 0, dynamic_size=True).write(3, 1.0), [[0, 0, 0, 1]]),
    "size after growing": (lambda tf: of(tf, 0, dynamic_size=True).write(3, 1.0).size(), [4]),
    "size": (lambda tf: of(tf, 2).size(), [2]),
    "no elements": (lambda tf: of(tf, 0, element_shape=[2]), [np.zeros([0, 2])]),
    "an int becomes a float": (lambda tf: of(tf).write(1, 1), [[0, 1, 0]]),
    "a list of tensors": (lambda tf: of(tf, 2).write(0, [tf.constant(1.0), 2.0]), [[[1, 2], [0, 0]]]),
    "partial shape": (lambda tf: of(tf, 2, element_shape=[None]).write(0, [1.0]), [[[1], [0]]]),
    "shapes differ": (lambda tf: of(tf, infer_shape=False).write(1, 1.0).write(0, [1.0]).read(0), [[1]]),
    "unstack": (lambda tf: of(tf).unstack([[1.0], [2], [3]]), [[[1], [2], [3]]]),
    "unstack integers": (lambda tf: of(tf).unstack([1, 2, 3]), [[1, 2, 3]]),
    "unstack more, dynamic": (lambda tf: of(tf, 1, dynamic_size=True).unstack([1.0, 2]), [[1, 2]]),
    "unstack, then write": (lambda tf: of(tf).unstack([1.0, 2, 3]).write(1, 9.0), [[1, 9, 3]]),
    "scatter": (lambda tf: of(tf).scatter([2, 0], [[1.0], [2]]), [[[2], [0], [1]]]),
    "scatter, one index twice": (lambda tf: of(tf).scatter([2, 2], [1.0, 2]), [[0, 0, 2]]),
    "scatter beside others": (lambda tf: of(tf).unstack([1.0, 2, 3]).scatter([1], [7.0]), [[1, 7, 3]]),
    "gather": (lambda tf: of(tf).unstack([1.0, 2, 3]).gather([2, 0, 0]), [[3, 1, 1]]),
    "gather none": (lambda tf: of(tf).unstack([1.0, 2, 3]).gather(tf.zeros([0], tf.int32)), [np.zeros([0])]),
    "concat": (lambda tf: of(tf, 2).write(0, [1.0, 2]).write(1, [3.0, 4]).concat(), [[1, 2, 3, 4]]),
    "concat, ragged": (lambda tf: ragged(tf).concat(), [[1, 1, 2]]),
    "concat, ragged rows": (
        lambda tf: of(tf, 2, infer_shape=False).write(0, [[1.0, 2]]).write(1, [[3.0, 4], [5, 6]]).concat(),
        [[[1, 2], [3, 4], [5, 6]]],
    ),
    "concat, one unset": (lambda tf: of(tf, 2).write(0, [1.0, 2]).concat(), [[1, 2, 0, 0]]),
    "split": (lambda tf: of(tf, 2, infer_shape=False).split([1.0, 2, 3], [1, 2]).read(1), [[2, 3]]),
    "split equally": (lambda tf: of(tf, 3).split([1.0, 2, 3], [1, 1, 1]), [[[1], [2], [3]]]),
    "split and joined": (lambda tf: of(tf, 2, infer_shape=False).split([1.0, 2, 3], [1, 2]).concat(), [[1, 2, 3]]),
    "identity": (lambda tf: of(tf, 2).write(0, 5.0).identity(), [[5, 0]]),
    "size from a tensor": (lambda tf: of(tf, tf.constant(2)).write(tf.constant(0), 1.0), [[1, 0]]),
    "text": (lambda tf: tf.TensorArray(tf.string, 2).write(1, "ab"), [np.array([b"", b"ab"], object)]),
    "booleans": (lambda tf: tf.TensorArray(tf.bool, 2).write(1, True), [[False, True]]),
    "integers": (lambda tf: tf.TensorArray(tf.int64, 2).write(1, 2**40), [[0, 2**40]]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GIVES)
def test_gives(tf, mode, name):
    program, expected = GIVES[name]
    actual = run(tf, mode, program)
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        np.testing.assert_array_equal(a, b)


def read_twice(tf):
    ta = of(tf).write(0, 1.0)
    ta.read(0)
    return ta.read(0)


# The classes of errors, eagerly and in a graph; None: it works there.
OUT, INVALID, VALUE, TYPE = "OutOfRangeError", "InvalidArgumentError", "ValueError", "TypeError"
RAISES = {
    "no size": (lambda tf: tf.TensorArray(tf.float32), VALUE, VALUE),
    "size a float": (lambda tf: of(tf, 2.5), TYPE, TYPE),
    "read before the start": (lambda tf: of(tf).read(-1), OUT, INVALID),
    "read behind the end": (lambda tf: of(tf).read(5), OUT, INVALID),
    "read unset": (lambda tf: of(tf).read(1), VALUE, INVALID),
    "read twice": (read_twice, INVALID, None),
    "write before the start": (lambda tf: of(tf).write(-1, 1.0), OUT, INVALID),
    "write behind the end": (lambda tf: of(tf).write(3, 1.0), OUT, INVALID),
    "write another dtype": (lambda tf: of(tf).write(1, tf.constant(1)), INVALID, INVALID),
    "write a float to integers": (lambda tf: tf.TensorArray(tf.int32, 2).write(1, 1.0), INVALID, INVALID),
    "write another shape": (lambda tf: of(tf).write(1, 1.0).write(0, [1.0]), VALUE, VALUE),
    "write another shape than declared": (lambda tf: of(tf, element_shape=[2]).write(0, [1.0]), VALUE, VALUE),
    "write another shape, not inferred": (
        lambda tf: of(tf, element_shape=[2], infer_shape=False).write(0, [1.0]),
        VALUE,
        VALUE,
    ),
    "float index": (lambda tf: of(tf).write(1.0, 1.0), TYPE, TYPE),
    "stack of nothing known": (lambda tf: of(tf), VALUE, INVALID),
    "stack of other shapes": (ragged, INVALID, INVALID),
    "unstack more than there are": (lambda tf: of(tf, 2).unstack([1.0, 2, 3]), VALUE, (INVALID, VALUE)),
    "unstack a scalar": (lambda tf: of(tf).unstack(1.0), VALUE, (INVALID, VALUE)),
    "scatter behind the end": (lambda tf: of(tf).scatter([2, 4], [1.0, 2]), OUT, INVALID),
    "gather behind the end": (lambda tf: of(tf).unstack([1.0, 2, 3]).gather([5]), (INVALID, "IndexError"), INVALID),
    "gather unset": (lambda tf: of(tf).gather([1]), VALUE, INVALID),
    "concat of other shapes": (lambda tf: ragged(tf).write(1, [[1.0]]).concat(), INVALID, INVALID),
    "concat of learnt shapes": (lambda tf: of(tf, 2).write(0, [1.0, 2]).write(1, [3.0]), VALUE, VALUE),
    "concat of scalars": (lambda tf: of(tf, 2).unstack([1.0, 2]).concat(), INVALID, (INVALID, VALUE)),
    "concat of none": (lambda tf: of(tf, 0).concat(), INVALID, INVALID),
    "split into more": (lambda tf: of(tf, 2).split([1.0, 2, 3], [1, 1, 1]), INVALID, INVALID),
    "split into less": (lambda tf: of(tf, 2).split([1.0, 2, 3], [1, 1]), INVALID, INVALID),
    "split by a matrix": (lambda tf: of(tf, 2).split([1.0, 2, 3], [[1, 1]]), INVALID, (INVALID, TYPE)),
    "split a scalar": (lambda tf: of(tf, 2).split(1.0, [1, 1]), INVALID, (INVALID, VALUE)),
    "split by a negative": (lambda tf: of(tf, 2).split([1.0, 2, 3], [-1, 4]), INVALID, INVALID),
    "grad": (lambda tf: of(tf).grad("x"), "NotImplementedError", "NotImplementedError"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RAISES)
def test_raises(tf, mode, name):
    program, eager, graph = RAISES[name]
    expected = eager if mode == "eager" else graph
    if expected is None:
        run(tf, mode, program)
        return
    classes = tuple(
        getattr(tf.errors, w, None) or getattr(__import__("builtins"), w)
        for w in ((expected,) if isinstance(expected, str) else expected)
    )
    with pytest.raises(classes):
        run(tf, mode, program)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (lambda tf: of(tf).read(-1), "Reading from negative indices (index -1) is not allowed."),
        (lambda tf: of(tf).read(5), "Tried to read from index 5 but array size is: 3"),
        (read_twice, "Could not read index 0 twice because it was cleared after a previous read (perhaps try setting"),
        (lambda tf: of(tf).write(-1, 1.0), "Writing to negative indices (index -1) is not allowed."),
        (lambda tf: of(tf).write(3, 1.0), "Tried to write to index 3 but array is not resizeable and size is: 3"),
        (lambda tf: of(tf).write(1, tf.constant(1)), "dtype is float32 but Op is trying to write dtype int32"),
        (lambda tf: of(tf).write(1, 1.0).write(0, [1.0]), "Incompatible shape for value ((1,)), expected (())"),
        (lambda tf: of(tf, 2).unstack([1.0, 2, 3]), "Cannot unstack 3 tensors into a TensorArray of static size 2"),
        (lambda tf: of(tf, 2).split([1.0, 2, 3], [1, 1]), "sum of lengths is 2 and value's shape is: [3]"),
        (lambda tf: of(tf, 2).split([1.0, 2], [2]), "not equal to the size of lengths (2 vs. 1)"),
    ],
)
def test_words_of_errors(tf, program, says):
    with pytest.raises((tf.errors.OpError, ValueError)) as caught:
        program(tf)
    assert says in str(caught.value)


@pytest.mark.ours
def test_errors_in_a_graph_name_the_line(tf):
    @tf.function
    def f(i):
        return of(tf).write(i, 1.0).stack()  # the line

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_tensor_array.py:\d+.*modify element 3 in a list"):
        f(tf.constant(3))


# ---- shapes while tracing -----------------------------------------------------------------------------------------


def test_shapes_are_learnt_while_tracing(tf):
    shapes = {}

    @tf.function(input_signature=[tf.TensorSpec([None, 5])])
    def f(x):
        ta = of(tf, 2)
        shapes["none"] = ta.element_shape
        ta = ta.write(0, x)
        shapes["part"] = ta.element_shape
        shapes["read part"] = ta.read(0).shape
        ta = ta.write(1, tf.ones([3, 5]))
        shapes["all"] = ta.element_shape
        shapes["stack"] = ta.stack().shape
        shapes["gather"] = ta.gather([1, 0, 1]).shape
        shapes["concat"] = ta.concat().shape
        other = of(tf, 2, infer_shape=False).write(0, tf.ones([3]))
        shapes["not inferred"] = other.read(0).shape
        shapes["unstack"] = of(tf, 4).unstack(tf.ones([4, 2, 1])).element_shape
        return ta.stack()

    f(tf.ones([3, 5]))
    expected = {
        "none": None,
        "part": [None, 5],
        "read part": [None, 5],
        "all": [3, 5],
        "stack": [2, 3, 5],
        "gather": [3, 3, 5],
        "concat": [None, 5],
        "not inferred": None,
        "unstack": [2, 1],
    }
    for key, shape in expected.items():
        actual = shapes[key]
        assert (actual.as_list() if actual.rank is not None else None) == shape, key


def test_properties(tf):
    ta = tf.TensorArray(tf.int64, 2, dynamic_size=True, element_shape=[2, None])
    assert ta.dtype == tf.int64
    assert ta.dynamic_size is True
    assert ta.element_shape.as_list() == [2, None]
    assert ta.handle is None
    assert not of(tf).dynamic_size
    with pytest.raises(AttributeError):
        ta.dtype = tf.int32
    with pytest.raises(TypeError):
        len(ta)
    with pytest.raises(TypeError):
        iter(ta)


def test_size_and_flow_are_not_given_both(tf):
    @tf.function
    def f(**more):
        flow = of(tf).flow
        return tf.TensorArray(tf.float32, flow=flow, **more).size()

    assert f().numpy() == 3
    with pytest.raises(ValueError, match="both `flow` and `size`"):
        f(size=2)
    with pytest.raises(ValueError, match="both `flow` and `element_shape`"):
        f(element_shape=[2])


def test_eager_writes_change_the_array(tf):
    """As in TensorFlow: eagerly `write` gives the array it was called on."""
    ta = of(tf)
    ta.write(0, 1.0)
    ta.write(1, 2.0)
    ta.scatter([2], [5.0])
    assert ta.stack().numpy().tolist() == [1, 2, 5]
    assert ta.read(0).numpy() == 1
    assert ta.stack().numpy().tolist() == [0, 2, 5]  # what was read is cleared
    ta.close()
    assert ta.size().numpy() == 0


def test_in_a_graph_every_version_stays(tf):
    @tf.function
    def f():
        a = of(tf, 2).write(0, 1.0).write(1, 2.0)
        b = a.write(0, 10.0)
        c = a.write(1, 20.0)
        d = b.write(1, 30.0)
        return a.stack(), b.stack(), c.stack(), d.stack()

    assert [x.numpy().tolist() for x in f()] == [[1, 2], [10, 2], [1, 20], [10, 30]]


# ---- as a value of functions and control flow -----------------------------------------------------------------------


@pytest.mark.ours  # TensorFlow gives the bare list
def test_result_of_a_function(tf):
    @tf.function
    def f(x):
        return {"ta": of(tf, 2).write(0, x).write(1, 2 * x), "x": x}

    ta = f(tf.constant([1.0, 2]))["ta"]
    assert isinstance(ta, tf.TensorArray)
    assert ta.dtype == tf.float32
    assert ta.stack().numpy().tolist() == [[1, 2], [2, 4]]


def test_spec(tf):
    spec = tf.TensorArraySpec([2], tf.float32)
    assert repr(spec) == "TensorArraySpec(TensorShape([2]), tf.float32, False, True)"
    assert spec.value_type is tf.TensorArray
    assert spec == tf.TensorArraySpec([2], tf.float32)
    assert spec != tf.TensorArraySpec([2], tf.float32, dynamic_size=True)
    assert spec.is_compatible_with(tf.TensorArraySpec([None], tf.float32))
    assert not spec.is_compatible_with(tf.TensorArraySpec([3], tf.float32))
    assert not spec.is_compatible_with(tf.TensorArraySpec([2], tf.int32))
    assert tf.TensorArraySpec.from_value(of(tf)).is_compatible_with(spec)
    with pytest.raises(TypeError):
        tf.TensorArraySpec.from_value(1)


@pytest.mark.ours
def test_argument_of_a_function(tf):
    traces = []

    @tf.function
    def f(ta, i):
        traces.append(ta.element_shape)
        return ta.write(i, 5.0), ta.stack()

    ta = of(tf).unstack([1.0, 2, 3])
    new, old = f(ta, tf.constant(1))
    assert new.stack().numpy().tolist() == [1, 5, 3]
    assert old.numpy().tolist() == [1, 2, 3]
    assert ta.stack().numpy().tolist() == [1, 2, 3]
    f(of(tf).unstack([4.0, 5]), tf.constant(0))
    assert len(traces) == 1
    f(tf.TensorArray(tf.float32, 2, dynamic_size=True).unstack([4.0, 5]), tf.constant(0))
    assert len(traces) == 2


@pytest.mark.ours
def test_input_signature(tf):
    @tf.function(input_signature=[tf.TensorArraySpec([None], tf.float32)])
    def f(ta):
        return ta.stack() * 2

    assert f(of(tf).unstack([[1.0], [2], [3]])).numpy().tolist() == [[2], [4], [6]]
    with pytest.raises((TypeError, ValueError)):
        f(of(tf).unstack([1.0, 2]))
    concrete = f.get_concrete_function()
    assert concrete(of(tf).unstack([[3.0]], name="x")).numpy().tolist() == [[6]]


@pytest.mark.ours
def test_captured_from_outside(tf):
    """A function that uses an eager array makes new ones of it and leaves it as it is."""
    ta = of(tf).unstack([1.0, 2, 3])

    @tf.function
    def f(x):
        return ta.write(0, x).stack(), ta.read(1)

    new, item = f(tf.constant(7.0))
    assert new.numpy().tolist() == [7, 2, 3]
    assert item.numpy() == 2
    assert ta.stack().numpy().tolist() == [1, 2, 3]


@pytest.mark.ours
def test_composite(tf):
    ta = of(tf, 2).write(0, [1.0, 2])
    (leaf,) = tf.nest.flatten({"a": ta})
    assert leaf is ta
    (flow,) = tf.nest.flatten(ta, expand_composites=True)
    assert flow is ta.flow
    assert flow.dtype == tf.dtypes.variant
    assert flow.shape == ()
    assert repr(flow) == "<tf.Tensor: shape=(), dtype=variant, value=<TensorList>>"
    with pytest.raises(tf.errors.InvalidArgumentError, match="variant to a NumPy array"):
        flow.numpy()
    again = tf.nest.pack_sequence_as(ta, [flow], expand_composites=True)
    assert again.element_shape == [2]
    assert again.stack().numpy().tolist() == [[1, 2], [0, 0]]
    result = tf.TensorArray(tf.float32, flow=flow)
    assert result.stack().numpy().tolist() == [[1, 2], [0, 0]]


@pytest.mark.parametrize("mode", MODES)
def test_branches(tf, mode):
    def f(p, x):
        ta = of(tf, 2).write(0, x)
        ta = tf.cond(p, lambda: ta.write(1, 2 * x), lambda: ta.write(1, -x))
        return ta.stack()

    call = f if mode == "eager" else tf.function(f)
    for p, expected in ((True, [3, 6]), (False, [3, -3])):
        assert call(tf.constant(p), tf.constant(3.0)).numpy().tolist() == expected


@pytest.mark.ours
def test_graphs_with_lists_print_and_parse(tf):
    from opwright.graph import parse, same, text
    from opwright.graph.builder import verify

    @tf.function
    def f(x, i):
        ta = of(tf, 3, dynamic_size=True).unstack(x).write(i, 1.0)
        return ta.stack(), ta.gather([0]), ta.size(), ta

    graph = f.get_concrete_function(tf.TensorSpec([3]), tf.TensorSpec([], tf.int32)).graph
    graph = getattr(graph, "graph", graph)
    verify(graph)
    assert same(parse(text(graph), tf.ops.get), graph)


@pytest.mark.ours
def test_equal_lists_are_made_once(tf):
    """Lists never change, so common sub-expressions may share one."""

    @tf.function
    def f(x):
        a, b = of(tf, 2).write(0, x), of(tf, 2).write(0, x)
        return a.write(1, 1.0).stack(), b.write(1, 2.0).stack()

    concrete = f.get_concrete_function(tf.constant(1.0))
    names = [n.op.name for n in concrete.program.graph.nodes]
    assert names.count("ListReserve") == 1
    assert names.count("ListSet") == 3
    assert [x.numpy().tolist() for x in f(tf.constant(5.0))] == [[5, 1], [5, 2]]


@pytest.mark.ours
def test_threads_may_run_one_function(tf):
    import threading

    @tf.function
    def f(x):
        ta = of(tf, 8)
        _, ta = tf.while_loop(lambda i, _: i < 8, lambda i, t: (i + 1, t.write(i, x)), [tf.constant(0), ta])
        return ta.stack()

    f(tf.constant(0.0))
    result = {}

    def work(k):
        result[k] = {tuple(f(tf.constant(float(k))).numpy()) for _ in range(100)}

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert result == {k: {(float(k),) * 8} for k in range(4)}

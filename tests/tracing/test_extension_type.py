"""ExtensionType: fields, their conversion, the Spec of a class, and its values wherever tensors may be."""

import copy
import pickle
from collections.abc import Mapping
from typing import Optional, Union

import numpy as np
import pytest


def masked(tf):
    class Masked(tf.experimental.ExtensionType):
        values: tf.Tensor
        n: int = 3
        name: str = "x"

        def total(self):
            return tf.reduce_sum(self.values) * tf.cast(self.n, tf.float32)

    return Masked


def test_fields_defaults_and_repr(tf):
    M = masked(tf)
    m = M([1.0, 2.0])
    assert m.values.numpy().tolist() == [1.0, 2.0]
    assert (m.n, m.name) == (3, "x")
    assert m.total().numpy() == 9.0
    assert repr(m) == (
        f"{M.__qualname__}(values=<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>, n=3, "
        "name='x')"
    )
    assert M(values=[1.0], name="y").name == "y"
    for bad in (lambda: M(), lambda: M([1.0], 1, "a", 4), lambda: M([1.0], z=4), lambda: M([1.0], n=2.5)):
        with pytest.raises(TypeError):
            bad()


def test_values_do_not_change(tf):
    m = masked(tf)([1.0])
    with pytest.raises(AttributeError, match="Cannot mutate attribute `n` outside the custom constructor"):
        m.n = 4
    with pytest.raises(AttributeError, match="Cannot mutate"):
        del m.n
    assert copy.deepcopy(m).n == 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(m)


def test_equality(tf):
    M = masked(tf)
    m = M([1.0, 2.0])
    assert (m == M([1.0, 2.0])).numpy()
    assert not (m == M([1.0, 3.0])).numpy()
    assert not (m != M([1.0, 2.0])).numpy()
    assert (m == M([1.0, 2.0], n=4)) is False
    assert (m == 3) is False


def every(tf):
    class Every(tf.experimental.ExtensionType):
        f: float
        pair: tuple[tf.Tensor, int] = (1.0, 2)
        many: tuple[tf.Tensor, ...] = ()
        named: Mapping[str, tf.Tensor] = {}
        maybe: Optional[tf.Tensor] = None  # noqa: UP045
        either: Union[int, str, None] = None  # noqa: UP007
        flag: bool = True
        dtype: tf.DType = tf.float32
        shape: tf.TensorShape = tf.TensorShape([1])

    return Every


def test_annotations_of_every_kind(tf):
    E = every(tf)
    e = E(1.0, many=[1, 2], named={"b": [2.0], "a": 1.0}, maybe=[3], either="s", dtype="float64", shape=[4, None])
    assert [t.numpy() for t in e.many] == [1, 2]
    assert e.named["b"].numpy().tolist() == [2.0]
    assert e.maybe.numpy().tolist() == [3]
    assert (e.either, e.dtype) == ("s", tf.float64)
    assert e.shape.as_list() == [4, None]
    assert [t.numpy().tolist() for t in tf.nest.flatten(e, expand_composites=True)] == [1.0, 1, 2, 1.0, [2.0], [3]]
    with pytest.raises(TypeError):
        e.named["c"] = 1.0


@pytest.mark.parametrize(
    "field",
    [{"f": 1}, {"either": 2.5}, {"pair": (1.0,)}, {"flag": 1}, {"named": 3}, {"many": 3}, {"pair": (1.0, "a")}],
    ids=lambda f: next(iter(f)),
)
def test_values_that_do_not_fit(tf, field):
    with pytest.raises(TypeError, match=next(iter(field))):
        every(tf)(**{"f": 1.0, **field})


@pytest.mark.parametrize("wanted", [list, dict, np.ndarray, list[int], object], ids=str)
def test_annotations_there_are_not(tf, wanted):
    with pytest.raises(TypeError, match="In field 'x': Unsupported type annotation"):
        type("B", (tf.experimental.ExtensionType,), {"__annotations__": {"x": wanted}, "__module__": __name__})


@pytest.mark.ours
def test_fields_by_spec(tf):
    class Ids(tf.experimental.ExtensionType):
        x: tf.TensorSpec([None], tf.int32)

    assert Ids([1, 2]).x.dtype == tf.int32
    for bad in ([[1, 2]], [1.5]):
        with pytest.raises(TypeError, match="x: expected"):
            Ids(bad)


def test_defaults_are_checked_with_the_class(tf):
    with pytest.raises(TypeError, match="default value for x"):
        type("B", (tf.experimental.ExtensionType,), {"__annotations__": {"x": int}, "x": 2.5, "__module__": __name__})


def test_validation_and_own_constructors(tf):
    class Pair(tf.experimental.ExtensionType):
        a: tf.Tensor
        b: tf.Tensor

        def __validate__(self):
            self.a.shape.assert_is_compatible_with(self.b.shape)

    Pair([1], [2])
    with pytest.raises(ValueError, match="incompatible"):
        Pair([1], [1, 2])

    class Twice(tf.experimental.ExtensionType):
        a: tf.Tensor
        k: int

        def __init__(self, x, forget=False):
            self.a = [x, x]
            if not forget:
                self.k = 7

    assert Twice(1.0).a.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="Missing required fields"):
        Twice(1.0, forget=True)


def test_inheritance_and_nesting(tf):
    M = masked(tf)

    class More(M):
        extra: tf.Tensor = 0.0
        inner: Optional[M] = None  # noqa: UP045

    more = More([1.0], extra=2.0, inner=M([5.0]))
    assert more.total().numpy() == 3.0
    assert [t.numpy().tolist() for t in tf.nest.flatten(more, expand_composites=True)] == [[1.0], 2.0, [5.0]]
    assert len(tf.nest.flatten([more, 1])) == 2


def test_the_spec(tf):
    M = masked(tf)
    spec = M.Spec(values=tf.TensorSpec([2]), n=3, name="x")
    assert spec == M([1.0, 2.0])._type_spec == M.Spec.from_value(M([3.0, 4.0]))
    assert hash(spec) == hash(M.Spec.from_value(M([3.0, 4.0])))
    assert spec.value_type is M
    assert repr(spec).endswith("Masked.Spec(values=TensorSpec(shape=(2,), dtype=tf.float32, name=None), n=3, name='x')")
    wide = M.Spec(tf.TensorSpec([None]), 3, "x")
    assert wide.is_compatible_with(M([1.0]))
    assert not wide.is_compatible_with(M([1.0], n=4))
    assert not wide.is_compatible_with(1.0)
    assert spec.is_subtype_of(wide)
    assert not wide.is_subtype_of(spec)
    assert spec.most_specific_common_supertype([M([1.0])._type_spec]) == wide
    assert spec.most_specific_common_supertype([M([1.0], n=4)._type_spec]) is None
    with pytest.raises(TypeError):
        M.Spec(tf.TensorSpec([2]))


def test_nest_puts_values_together(tf):
    m = masked(tf)([1.0, 2.0])
    doubled = tf.nest.map_structure(lambda t: t * 2.0, [m], expand_composites=True)[0]
    assert doubled.values.numpy().tolist() == [2.0, 4.0]
    assert doubled.n == 3
    assert tf.nest.pack_sequence_as(m._type_spec, [tf.constant([7.0, 8.0])], expand_composites=True).n == 3


def test_in_and_out_of_functions(tf):
    M = masked(tf)
    traced = []

    @tf.function
    def f(m, scale=2.0):
        traced.append(1)
        return {"m": M(m.values * scale, m.n, m.name)}

    out = f(M([1.0, 2.0]))["m"]
    assert isinstance(out, M)
    assert out.values.numpy().tolist() == [2.0, 4.0]
    f(M([3.0, 4.0]))
    assert len(traced) == 1
    f(M([3.0, 4.0], n=5))
    f(M([3.0]))
    assert len(traced) == 3
    concrete = f.get_concrete_function(M.Spec(tf.TensorSpec([None]), 3, "x"))
    assert concrete(M([1.0, 2.0, 3.0]), 2.0)["m"].values.numpy().tolist() == [2.0, 4.0, 6.0]
    g = tf.function(lambda m: m.total(), input_signature=[M.Spec(tf.TensorSpec([None]), 3, "x")])
    assert g(M([1.0, 2.0])).numpy() == 9.0
    assert g(M([1.0])).numpy() == 3.0


def test_in_control_flow(tf):
    M = masked(tf)

    @tf.function(autograph=False)
    def f(p, m):
        m = tf.cond(p, lambda: m, lambda: M(m.values + 1.0))
        return tf.while_loop(lambda i, m: i < 3, lambda i, m: (i + 1, M(m.values * 2.0)), (0, m))[1]

    assert f(tf.constant(False), M([1.0, 2.0])).values.numpy().tolist() == [16.0, 24.0]


def test_gradients_of_parts(tf):
    M = masked(tf)
    m = M([1.0, 2.0])
    f = tf.function(lambda m: M(m.values * 4.0).total())
    with tf.GradientTape() as tape:
        tape.watch(m.values)
        y = f(m)
    assert tape.gradient(y, m.values).numpy().tolist() == [12.0, 12.0]


@pytest.mark.ours  # TensorFlow refuses composites as sources
def test_gradients_of_whole_values(tf):
    m = masked(tf)([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(m)
        y = m.total()
    grad = tape.gradient(y, m)
    assert isinstance(grad, type(m))
    assert grad.values.numpy().tolist() == [3.0, 3.0]


def test_reduced_retracing_generalises_parts(tf):
    M = masked(tf)
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(m):
        shapes.append(m.values.shape.as_list())
        return m.total()

    for n in (1, 2, 3, 4):
        assert f(M([1.0] * n)).numpy() == 3.0 * n
    assert shapes == [[1], [None]]


class AtModuleLevel:
    """Stands for a module's class: pickle finds it by name."""


@pytest.mark.ours
def test_pickles(tf):
    global AtModuleLevel

    class AtModuleLevel(tf.experimental.ExtensionType):
        x: tf.Tensor
        n: int = 1

    AtModuleLevel.__qualname__ = "AtModuleLevel"
    back = pickle.loads(pickle.dumps(AtModuleLevel([1.0], 2)))
    assert (back.n, back.x.numpy().tolist()) == (2, [1.0])
    assert pickle.loads(pickle.dumps(back._type_spec)) == back._type_spec


def test_indexed_slices_are_composites(tf):
    rows = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), tf.constant([5, 3]))
    assert len(tf.nest.flatten(rows, expand_composites=True)) == 3
    out = tf.function(lambda r: tf.IndexedSlices(r.values * 2.0, r.indices, r.dense_shape))(rows)
    assert isinstance(out, tf.IndexedSlices)
    assert out.values.numpy().tolist() == [[2.0] * 3] * 2
    assert tf.type_spec_from_value(rows) == tf.type_spec_from_value(out)

"""LoDTensors where anything else that takes tensors meets them: functions of users, variables, tapes, wrong use.

Lives here: what is no operator.  Not here: LoDs through operators (test_lod_tensor.py), sequence operators.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import FailedPreconditionError, InvalidArgumentError, SignatureError

seq = ow.sequence
ROWS = np.random.default_rng(0).normal(size=(5, 3))


def batch(*lengths, rows=ROWS):
    return ow.create_lod_tensor(rows[: sum(lengths)], [list(lengths)])


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_of_their_own_flow_through_sequences(traced):
    @ow.custom_gradient
    def doubled(x):
        def grad(dy):
            assert isinstance(dy, ow.LoDTensor)
            return seq.reverse(dy) * 3.0

        return seq.reverse(x), grad

    def slope(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.reduce_sum(doubled(x) * ROWS)
        return tape.gradient(y, x)

    x = batch(2, 0, 3)
    result = (ow.function(slope) if traced else slope)(x)
    assert result.lod() == x.lod()
    np.testing.assert_allclose(result.numpy(), 3.0 * ROWS[[1, 0, 4, 3, 2]])


def test_what_is_computed_again_has_the_same_gradient():
    x = batch(2, 0, 3)
    again = ow.recompute_grad(lambda x: seq.reverse(x) * x)
    result = []
    for f in (again, again.__wrapped__):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = seq.pool(f(x), "max")
        result.append(tape.gradient(y, x))
        assert result[-1].lod() == x.lod()
    np.testing.assert_array_equal(result[0].numpy(), result[1].numpy())


def test_gradients_without_a_tape():
    @ow.function
    def slope(x):
        return ow.gradients(ow.reduce_sum(x * x), [x])[0]

    result = slope(batch(2, 0, 3))
    assert result.lod() == [[0, 2, 2, 5]]
    np.testing.assert_allclose(result.numpy(), 2.0 * ROWS)


def test_jacobians_are_of_rows():
    x = batch(2, 0, 3)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = seq.reverse(x)[:, 0]
    actual = tape.jacobian(y, x).numpy()
    expected = np.zeros((5, 5, 3))
    expected[np.arange(5), [1, 0, 4, 3, 2], 0] = 1.0
    np.testing.assert_array_equal(actual, expected)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_allclose(tape.batch_jacobian(y, x).numpy(), 2.0 * ROWS[:, None] * np.eye(3))


def test_variables_take_the_rows():
    x = batch(2, 0, 3)
    v = ow.Variable(x)
    v.assign(x * 2.0)
    v.assign_add(x)
    v.assign_sub(seq.reverse(x))
    np.testing.assert_allclose(v.numpy(), 3.0 * ROWS - ROWS[[1, 0, 4, 3, 2]])
    ow.function(lambda x: v.assign_add(x))(x)
    np.testing.assert_allclose(v.numpy(), 4.0 * ROWS - ROWS[[1, 0, 4, 3, 2]])
    ow.keras.optimizers.SGD(1.0).apply_gradients([(x, v)])
    np.testing.assert_allclose(v.numpy(), 3.0 * ROWS - ROWS[[1, 0, 4, 3, 2]])


def test_of_another_the_rows_are_meant():
    x = batch(2, 0, 3)
    for result in (ow.LoDTensor(x), ow.LoDTensor(x, [[0, 5]]), x.with_values(x)):
        assert not isinstance(result.values, ow.LoDTensor)
    assert ow.LoDTensor(x, [[0, 5]]).lod() == [[0, 5]]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(again):
    x = ow.LoDTensor(ROWS, [[0, 1, 3], [0, 2, 2, 5]])
    result = again(x)
    assert result.lod() == x.lod()
    assert result.dtype is x.dtype
    np.testing.assert_array_equal(result.numpy(), ROWS)


@pytest.mark.parametrize(
    ("layer", "args"),
    [
        ("Dense", (4,)),
        ("Dropout", (0.5,)),
        ("LayerNormalization", ()),
        ("BatchNormalization", ()),
        ("ReLU", ()),
        ("Softmax", ()),
    ],
)
def test_layers_by_position_keep_the_sequences(layer, args):
    x = batch(2, 0, 3, rows=ROWS.astype(np.float32))
    result = getattr(ow.keras.layers, layer)(*args)
    assert result(x, training=True).lod() == x.lod() if layer == "Dropout" else result(x).lod() == x.lod()


def test_embedded_tokens_are_in_the_sequences_of_the_tokens():
    ids = ow.LoDTensor([1, 2, 0], [[0, 2, 3]])
    assert ow.keras.layers.Embedding(5, 4)(ids).lod() == ids.lod()


# ---- the short way of functions -----------------------------------------------------------------------------------


def test_calls_of_all_sizes_take_one_way_and_their_own_lod():
    @ow.function
    def f(d, scale):
        return {"all": [seq.reverse(d["x"]) * scale, d["x"].levels], "sum": seq.pool(d["x"], "sum")}

    for _ in range(2):
        for lengths in ((2, 0, 3), (1, 1), (0,), (5,), (0, 0, 4, 0)):
            x = batch(*lengths)
            result = f({"x": x}, 2.0)
            assert result["all"][0].lod() == [np.cumsum([0, *lengths]).tolist()] == [result["all"][1][0].tolist()]
            np.testing.assert_allclose(result["all"][0].numpy(), 2.0 * seq.reverse(x).numpy())
            np.testing.assert_allclose(result["sum"].numpy(), seq.pool(x, "sum").numpy())
    assert f.experimental_get_tracing_count() == 1
    assert len(f._call_cache) == 1


def test_ways_are_distinguished_by_levels_rows_and_dtype():
    @ow.function
    def f(x):
        return x.lod_level if isinstance(x, ow.LoDTensor) else -1

    two = ow.LoDTensor(ROWS, [[0, 1, 3], [0, 2, 2, 5]])
    for _ in range(3):
        assert int(f(batch(2, 3))) == 1
        assert int(f(two)) == 2
        assert int(f(ow.constant(ROWS))) == -1
        assert int(f(ow.LoDTensor(ROWS))) == 0
        assert int(f(batch(2, 3, rows=ROWS[:, :2]))) == 1
        assert int(f(batch(2, 3, rows=ROWS.astype(np.float32)))) == 1
    assert f.experimental_get_tracing_count() == 6


def test_one_tensor_in_two_places():
    @ow.function
    def f(x, y):
        return x - 2.0 * y.values, y

    x, y = batch(2, 3), batch(1, 4, rows=ROWS[::-1])
    for a, b in ((x, y), (x, x), (y, x), (y, y)) * 2:
        result, same = f(a, b)
        np.testing.assert_allclose(result.numpy(), a.numpy() - 2.0 * b.numpy())
        assert result.lod() == a.lod()
        assert same.lod() == b.lod()


@pytest.mark.parametrize("concrete", [False, True])
def test_a_number_of_rows_that_is_asked_for_is_looked_at_each_time(concrete):
    f = ow.function(lambda x: seq.reverse(x), input_signature=[ow.LoDTensorSpec([5, 3], ow.float64, 1)])
    called = f.get_concrete_function() if concrete else f
    for _ in range(2):
        assert called(batch(2, 3)).lod() == [[0, 2, 5]]
        assert called(batch(5)).lod() == [[0, 5]]
        with pytest.raises((TypeError, ValueError)):
            called(batch(2, 2))


# ---- wrong use -----------------------------------------------------------------------------------------------------

WRONG = [
    (lambda: ow.LoDTensor(ROWS, [0, 2, 5]), TypeError, "one level is a list in a list: [[0, 2, 5]]"),
    (lambda: ow.LoDTensor(ROWS, [[0.0, 5.0]]), TypeError, "not a list of integers"),
    (lambda: ow.LoDTensor(ROWS, 5), TypeError, "not a list of levels"),
    (lambda: ow.create_lod_tensor([1, 2, 3], [[1, 2]]), InvalidArgumentError, "give an array or a tensor"),
    (lambda: ow.create_lod_tensor([[1.5, 2], [3]], [[2, 1]]), InvalidArgumentError, "something else than integers"),
    (lambda: ow.create_lod_tensor([[1, 2], [3]], [2, 1]), TypeError, "one level is a list in a list"),
    (lambda: batch(2, 3).with_values(ROWS[:4]), InvalidArgumentError, "5 rows"),
    (lambda: seq.concat(batch(2, 3)), TypeError, "a list of two or more LoDTensors"),
    (lambda: seq.pool(ow.constant(ROWS), "sum"), SignatureError, "an ordinary tensor, f64[5,3]"),
    (lambda: seq.expand(ow.constant(ROWS), batch(2, 0, 3)), InvalidArgumentError, "on its last level"),
    (lambda: seq.reverse(ow.LoDTensor(ROWS, [[0, 2], [0, 2, 5]])), InvalidArgumentError, "x.sequences"),
]


@pytest.mark.parametrize(("call", "error", "says"), WRONG, ids=range(len(WRONG)))
def test_wrong_use_proposes_a_fix(call, error, says):
    with pytest.raises(error) as caught:
        call()
    assert says in str(caught.value)
    assert "wanted" in str(caught.value)


def test_offsets_of_a_trace_are_set_by_an_operator():
    wrong = ow.function(lambda x, offsets: ow.LoDTensor(x, [offsets]))
    with pytest.raises(FailedPreconditionError, match="lod_reset"):
        wrong(ROWS, ow.constant([0, 2, 5]))
    right = ow.function(lambda x, offsets: seq.lod_reset(x, offsets))
    assert right(ROWS, ow.constant([0, 2, 5])).lod() == [[0, 2, 5]]


# ---- models and scopes -----------------------------------------------------------------------------------------------


def test_models_are_fitted_to_batches_of_sequences():
    class Summed(ow.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = ow.keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False)

        def call(self, x):
            return seq.pool(self.dense(x), "sum")

    x = [batch(2, 0, 3), batch(1, 4)]
    weight = np.array([[1.0], [-2.0], [0.5]])
    y = [seq.pool(b, "sum").numpy() @ weight for b in x]
    specs = ow.LoDTensorSpec([None, 3], ow.float64), ow.TensorSpec([None, 1], ow.float64)
    data = ow.data.Dataset.from_generator(lambda: zip(x, y), output_signature=specs)
    model = Summed()
    model.compile(ow.keras.optimizers.SGD(0.1), "mse")
    history = model.fit(data, epochs=200, verbose=0).history["loss"]
    assert history[-1] < 1e-2 * history[0]
    assert model.predict(data, verbose=0).shape == (5, 1)
    assert model.evaluate(data, verbose=0) < 1e-2 * history[0]


def test_on_scopes_offsets_need_no_name():
    scope, place = ow.Scope(), ow.CPUPlace()
    scope.var("x").set(batch(2, 0, 3))
    scope.var("value").set(ow.constant(0.0, ow.float64))
    ow.ops.get("SequencePad").on({"x": "x", "pad_value": "value"}, {"y": "y", "length": "n"}).run(scope, place)
    ow.ops.get("SequenceUnpad").on({"x": "y", "length": "n"}, {"y": "again"}).run(scope, place)
    assert scope.find_var("again").value.lod() == [[0, 2, 2, 5]]
    np.testing.assert_array_equal(scope.find_var("again").value.numpy(), ROWS)


# ---- datasets and maps -----------------------------------------------------------------------------------------------


def generated(*values, spec):
    return ow.data.Dataset.from_generator(lambda: iter(values), output_signature=spec)


def test_generators_give_sequences_packed_or_as_lists():
    spec = ow.LoDTensorSpec([None, 2], ow.float32)
    x = ow.LoDTensor(np.ones((3, 2), np.float32), [[0, 1, 3]])
    result = list(generated(x, [[[1, 2], [3, 4]], [], [[5, 6]]], [[], []], spec=spec).map(lambda x: x * 2.0))
    assert [f.lod() for f in result] == [[[0, 1, 3]], [[0, 2, 2, 3]], [[0, 0, 0]]]
    assert result[1].to_nested() == [[[2.0, 4.0], [6.0, 8.0]], [], [[10.0, 12.0]]]
    assert result[2].shape == (0, 2)


@pytest.mark.parametrize(
    "given",
    [
        ow.LoDTensor(np.ones((5, 2), np.float32), [[0, 2, 3], [0, 2, 2, 5]]),
        ow.LoDTensor(np.ones((5, 2)), [[0, 2, 5]]),
        ow.LoDTensor(np.ones((5, 3), np.float32), [[0, 2, 5]]),
        ow.ones([5, 2]),
    ],
)
def test_generators_that_give_other_sequences_than_they_say(given):
    with pytest.raises(InvalidArgumentError, match=r"output_signature(.|\n)*wanted  LoDTensorSpec"):
        list(generated(given, spec=ow.LoDTensorSpec([None, 2], ow.float32)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ow.map_fn(lambda v: v, x),
        lambda x: ow.scan(lambda a, v: a + v, x),
        lambda x: ow.data.Dataset.from_tensor_slices({"x": x}),
        lambda x: ow.data.Dataset.from_tensors(x).batch(2),
    ],
)
def test_what_goes_by_elements_proposes_a_fix(call):
    with pytest.raises(TypeError, match=r"x\.values|unpad"):
        call(batch(2, 0, 3))

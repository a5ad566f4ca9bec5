"""GradientTape: gradients against formulas, and everything a tape may be asked."""

import gc
import math
import weakref

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import UnimplementedError
from opwright.ops import dispatch


def gradient(f, *values, dtype=ow.float64, **options):
    """Gradients of f at the values, as Python lists."""
    xs = [ow.constant(v, dtype) for v in values]
    with ow.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return [None if g is None else g.numpy().tolist() for g in tape.gradient(y, xs, **options)]


FORMULAS = [  # function, point, the derivative worked out by hand
    (lambda x: x * x, 3.0, 6.0),
    (lambda x: x * x * x, 2.0, 12.0),
    (lambda x: 1 / x, 2.0, -0.25),
    (lambda x: ow.exp(2 * x), 0.5, 2 * math.e),
    (lambda x: x**3 - 2 * x + 1, 2.0, 10.0),
    (lambda x: ow.sin(x) * ow.cos(x), 0.7, math.cos(1.4)),
    (lambda x: ow.math.log(x * x), 4.0, 0.5),
    (lambda x: ow.sqrt(x), 4.0, 0.25),
    (lambda x: ow.where(x > 0, x * 2, x * 3), -1.0, 3.0),
    (lambda x: ow.abs(x), -2.0, -1.0),
    (lambda x: x - x, 5.0, 0.0),
    (lambda x: ow.stop_gradient(x) * x, 5.0, 5.0),
    (lambda x: x + ow.stop_gradient(x * x), 5.0, 1.0),
]


@pytest.mark.parametrize(("f", "at", "wanted"), FORMULAS)
def test_formulas(f, at, wanted):
    assert gradient(f, at) == [pytest.approx(wanted, rel=1e-12)]


def test_several_sources_broadcasting_and_sums():
    da, db = gradient(lambda a, b: ow.reduce_sum(a * b), [[1.0], [2.0]], [3.0, 4.0, 5.0])
    assert da == [[12], [12]]
    assert db == [3, 3, 3]
    assert gradient(lambda a, b: a * b, 3.0, [1.0, 2.0]) == [3, [3, 3]]  # not reduced: the sum of elements


def test_a_value_used_often():
    def f(x):
        y = x
        for _ in range(10):
            y = y + x
        return y * y

    assert gradient(f, 2.0) == [2 * 22 * 11]


def test_long_chains_do_not_recurse():
    def f(x):
        for _ in range(3000):
            x = x + 0.0
        return x

    assert gradient(f, 1.0) == [1]


# ---- orders -----------------------------------------------------------------------------------------------------


def test_second_and_third_order():
    x = ow.constant(2.0)
    with ow.GradientTape() as t3:
        t3.watch(x)
        with ow.GradientTape() as t2:
            t2.watch(x)
            with ow.GradientTape() as t1:
                t1.watch(x)
                y = x**4
            d1 = t1.gradient(y, x)
        d2 = t2.gradient(d1, x)
    d3 = t3.gradient(d2, x)
    assert [d.numpy() for d in (d1, d2, d3)] == [32, 48, 48]


def test_fourth_order_of_sine():
    x, tapes = ow.constant(0.3, ow.float64), [ow.GradientTape(persistent=True) for _ in range(4)]
    for t in tapes:
        t.__enter__()
        t.watch(x)
    y = ow.sin(x)
    for t in reversed(tapes):
        t.__exit__(None, None, None)
        # while the outer tapes go on recording
        y = t.gradient(y, x)
    assert y.numpy() == pytest.approx(math.sin(0.3))


def test_a_persistent_tape_asked_inside_itself():
    x = ow.constant(3.0)
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * x
        d1 = tape.gradient(y, x)
    assert tape.gradient(d1, x).numpy() == 18


def test_mixed_second_derivatives():
    x, y = ow.constant(2.0), ow.constant(3.0)
    with ow.GradientTape(persistent=True) as outer:
        outer.watch([x, y])
        with ow.GradientTape() as inner:
            inner.watch([x, y])
            z = x * x * y * y * y
        dx, dy = inner.gradient(z, [x, y])
    assert [g.numpy() for g in outer.gradient(dx, [x, y])] == [2 * 27, 2 * 2 * 3 * 9]
    assert [g.numpy() for g in outer.gradient(dy, [x, y])] == [2 * 2 * 3 * 9, 4 * 6 * 3]


# ---- what is watched ----------------------------------------------------------------------------------------------


def test_only_what_is_watched():
    x, c = ow.constant(2.0), ow.constant(3.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x * c
    assert [g if g is None else g.numpy() for g in tape.gradient(y, [x, c])] == [3, None]


def test_variables_are_watched_by_being_read():
    v, fixed, unread = ow.Variable(2.0), ow.Variable(3.0, trainable=False), ow.Variable(4.0)
    with ow.GradientTape() as tape:
        y = v * v * fixed
    assert tape.watched_variables() == (v,)
    assert [g if g is None else g.numpy() for g in tape.gradient(y, [v, fixed, unread])] == [12, None, None]


def test_untrainable_variables_can_be_watched():
    v = ow.Variable(3.0, trainable=False)
    with ow.GradientTape() as tape:
        tape.watch(v)
        y = v * v
    assert tape.gradient(y, v).numpy() == 6


def test_not_watching_variables():
    v, w = ow.Variable(2.0), ow.Variable(3.0)
    with ow.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = v * w
    assert tape.watched_variables() == (w,)
    assert [g if g is None else g.numpy() for g in tape.gradient(y, [v, w])] == [None, 2]


def test_reads_see_the_value_of_their_time():
    v = ow.Variable(2.0)
    with ow.GradientTape() as tape:
        y = v * v
        v.assign(10.0)
        z = v * y
    assert tape.gradient(z, v).numpy() == 4 + 10 * 4  # d/dv (10 v^2), v = 2, and y


def test_structures_go_in_and_come_out():
    x = {"a": ow.constant(1.0), "b": [ow.constant(2.0), (ow.constant(3.0),)]}
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x["a"] * x["b"][0] * x["b"][1][0]
    grads = tape.gradient(y, x)
    assert grads["a"].numpy() == 6
    assert isinstance(grads["b"][1], tuple)
    assert [grads["b"][0].numpy(), grads["b"][1][0].numpy()] == [3, 2]


@pytest.mark.parametrize("wrong", [1.0, np.float32(1), "x", None, [1.0]])
def test_only_tensors_can_be_watched_and_be_sources(wrong):
    with ow.GradientTape() as tape:
        if wrong is not None:
            with pytest.raises((ValueError, TypeError)):
                tape.watch(wrong)
        y = ow.constant(1.0)
    with pytest.raises(TypeError, match="source"):
        tape.gradient(y, wrong)


def test_watching_integers_warns(caplog):
    x = ow.constant(1)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert "must be floating" in caplog.text
    assert tape.gradient(y, x) is None


# ---- several targets, seeds, nothing ------------------------------------------------------------------------------


def test_several_targets_add_up():
    assert gradient(lambda x: [x * x, 3 * x, {"z": x}], 2.0) == [4 + 3 + 1]


def test_a_target_twice():
    x = ow.constant(2.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient([y, y], x).numpy() == 8


def test_a_target_on_the_way_to_another():
    x = ow.constant(2.0)
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, [x, y])[0].numpy() == 32
    assert tape.gradient(z, [x, y])[1].numpy() == 8
    assert tape.gradient([y, z], x).numpy() == 4 + 32
    assert tape.gradient([y, z], y).numpy() == 1 + 8


def test_the_target_is_the_source():
    x = ow.constant([2.0, 3.0])
    with ow.GradientTape() as tape:
        tape.watch(x)
    assert tape.gradient(x, x).numpy().tolist() == [1, 1]
    v = ow.Variable([2.0, 3.0])
    with ow.GradientTape() as tape:
        tape.watch(v)
        y = v * 1.0
    assert tape.gradient(y, v).numpy().tolist() == [1, 1]


def test_output_gradients():
    assert gradient(lambda x: x * x, [1.0, 2.0], output_gradients=np.float64([10, 1])) == [[20, 4]]
    assert gradient(lambda x: [x, x * x], 3.0, output_gradients=[2.0, 10.0]) == [62]
    assert gradient(lambda x: [x, x * x], 3.0, output_gradients=[None, 10.0]) == [61]
    with pytest.raises(ValueError, match="output_gradients has 1 entries, target has 2"):
        gradient(lambda x: [x, x], 3.0, output_gradients=[1.0])


def test_unconnected():
    x, other = ow.constant([1.0, 2.0]), ow.Variable([[3.0]])
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, other) is None
    zero = ow.UnconnectedGradients.ZERO
    for expected in (zero, "zero"):
        assert tape.gradient(y, other, unconnected_gradients=expected).numpy().tolist() == [[0]]
    assert tape.gradient(ow.constant(1.0), x) is None
    assert tape.jacobian(y, other) is None
    assert tape.jacobian(y, other, unconnected_gradients=zero).numpy().tolist() == [[[0]], [[0]]]


def test_no_gradient_through_integers(caplog):
    assert gradient(lambda x: ow.cast(ow.cast(x, ow.int32), ow.float64), 2.5) == [None]
    assert gradient(lambda x: ow.math.floor(x), 2.5) in ([None], [0.0])
    assert gradient(lambda x: ow.argmax(x), [1.0, 2.0]) == [None]
    assert "dtype of the target" in caplog.text


def test_no_target():
    x = ow.constant(1.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
    with pytest.raises(TypeError, match="found None"):
        tape.gradient(None, x)


# ---- sparse gradients -----------------------------------------------------------------------------------------------


def test_gather_gives_indexed_slices():
    v = ow.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with ow.GradientTape() as tape:
        y = ow.gather(v, [0, 2, 0]) * [[1.0], [10.0], [100.0]]
    g = tape.gradient(y, v)
    assert isinstance(g, ow.IndexedSlices)
    assert (g.shape, g.dtype) == ([3, 2], ow.float32)
    assert g.indices.numpy().tolist() == [0, 2, 0]
    assert g.values.numpy().tolist() == [[1, 1], [10, 10], [100, 100]]
    assert g.to_dense().numpy().tolist() == [[101, 101], [0, 0], [10, 10]]
    assert ow.convert_to_tensor(g).numpy().tolist() == [[101, 101], [0, 0], [10, 10]]
    merged = g.merged()
    assert merged.indices.numpy().tolist() == [0, 2]
    assert merged.values.numpy().tolist() == [[101, 101], [10, 10]]
    assert (g * 2.0).to_dense().numpy().tolist() == [[202, 202], [0, 0], [20, 20]]
    assert (-g).to_dense().numpy().tolist() == [[-101, -101], [0, 0], [-10, -10]]
    assert "IndexedSlices(indices=" in repr(g)


@pytest.mark.parametrize(
    "through",
    [
        ow.identity,
        lambda x: ow.identity_n([x])[0],
        lambda x: ow.identity(ow.identity(x)),
        lambda x: ow.negative(ow.negative(x)),
    ],
)
def test_identity_passes_indexed_slices_on(through):
    for source in (ow.Variable([[1.0], [2.0], [3.0]]), ow.constant([[1.0], [2.0], [3.0]])):
        with ow.GradientTape(persistent=True) as tape:
            tape.watch(source)
            x = through(source)
            y, z = ow.gather(x, [0, 2]), ow.gather(x, [0, 2]) + x[:2]
        assert isinstance(tape.gradient(y, source), ow.IndexedSlices)
        assert ow.convert_to_tensor(tape.gradient(y, source)).numpy().tolist() == [[1], [0], [1]]
        assert ow.convert_to_tensor(tape.gradient(z, source)).numpy().tolist() == [[2], [1], [1]]


def test_identity_passes_indexed_slices_on_inside_a_function():
    v = ow.Variable([[1.0], [2.0], [3.0]])

    @ow.function
    def grad(i):
        with ow.GradientTape() as tape:
            y = ow.gather(ow.identity(v), i)
        return tape.gradient(y, v)

    g = grad(ow.constant([2, 2]))
    assert isinstance(g, ow.IndexedSlices)
    assert g.to_dense().numpy().tolist() == [[0], [0], [2]]


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("source", [ow.Variable([1.0, 2.0, 3.0]), ow.constant([1.0, 2.0, 3.0])], ids=["v", "x"])
def test_masks_have_dense_gradients(source, axis):
    with ow.GradientTape() as tape:
        tape.watch(source)
        y = ow.boolean_mask(source, [True, False, True], axis)
    g = tape.gradient(y, source)
    assert isinstance(g, ow.Tensor)
    assert g.numpy().tolist() == [1, 0, 1]


def test_indexed_slices_add_up_sparsely_and_densely():
    v = ow.Variable([1.0, 2.0, 3.0])
    with ow.GradientTape(persistent=True) as tape:
        a, b = ow.gather(v, [0]), ow.gather(v, [2, 0])
        c = v * 2.0
    both = tape.gradient([a, b], v)
    assert isinstance(both, ow.IndexedSlices)
    assert sorted(both.indices.numpy().tolist()) == [0, 0, 2]
    assert both.to_dense().numpy().tolist() == [2, 0, 1]
    for targets, expected in (([a, c], [3, 2, 2]), ([c, a], [3, 2, 2]), ([a, b, c], [4, 2, 3])):
        dense = tape.gradient(targets, v)
        assert isinstance(dense, ow.Tensor)
        assert dense.numpy().tolist() == expected


def test_gradients_pass_on_from_gather():
    x = ow.constant([1.0, 2.0, 3.0])
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = ow.gather(x * x, [2, 2])
    assert np.asarray(ow.convert_to_tensor(tape.gradient(y, x))).tolist() == [0, 0, 12]


# ---- the life of a tape ---------------------------------------------------------------------------------------------


def test_a_tape_is_asked_once_unless_persistent():
    x = ow.constant(2.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 4
    for ask in (tape.gradient, tape.jacobian):
        with pytest.raises(RuntimeError, match="A non-persistent GradientTape can only be used to compute one set"):
            ask(y, x)
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert [tape.gradient(y, x).numpy() for _ in range(3)] == [4, 4, 4]
    del tape


def test_stop_recording():
    x = ow.constant(2.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            y = y * y
        z = x * 3.0 + y
    assert tape.gradient(z, x).numpy() == 3


def test_stopping_what_does_not_record():
    tape = ow.GradientTape()
    with pytest.raises(ValueError, match="not recording"), tape.stop_recording():
        pass
    with tape, pytest.raises(ValueError, match="re-enter"), tape:
        pass


def test_entering_again_goes_on():
    x = ow.constant(2.0)
    tape = ow.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    between = x * 5.0
    with tape:
        z = y * 3.0 + between
    assert tape.gradient(z, x).numpy() == 12


def test_reset():
    x = ow.constant(2.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = y + x * 3.0
    assert tape.gradient(z, x).numpy() == 3


def test_errors_inside_do_not_leave_the_tape_on():
    from opwright.ops import dispatch

    with pytest.raises(ZeroDivisionError), ow.GradientTape():
        raise ZeroDivisionError
    assert dispatch.state.tapes == ()


def test_a_tape_keeps_nothing_alive_after_its_gradient():
    x = ow.constant(2.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        between = x * x
        y = between * 2.0
    alive = weakref.ref(between)
    del between
    gc.collect()
    assert alive() is not None
    tape.gradient(y, x)
    gc.collect()
    assert alive() is None


def test_nothing_is_remembered_of_what_nobody_watches():
    with ow.GradientTape() as tape:
        x = ow.constant(1.0)
        for _ in range(10):
            x = x * 2.0
    assert tape._records == []


def test_threads_have_their_own_tapes():
    import threading

    x, result = ow.constant(2.0), []
    with ow.GradientTape() as tape:
        tape.watch(x)
        thread = threading.Thread(target=lambda: result.append(x * x))
        thread.start()
        thread.join()
    assert tape.gradient(result[0], x) is None


# ---- no gradient ----------------------------------------------------------------------------------------------------


@ow.operator
class TapeWithoutGradient:
    """x"""

    x = ow.Input(ow.floating)
    y = ow.Output(like="x")

    def compute(op, x):
        return x + 1


def test_an_operator_without_gradient_is_named():
    with pytest.raises(LookupError, match=r"TapeWithoutGradient: the operator has no gradient(?s:.*)stop_gradient"):
        gradient(TapeWithoutGradient, 1.0)
    assert gradient(lambda x: x * ow.stop_gradient(TapeWithoutGradient(x)), 1.0) == [2]
    assert gradient(lambda x: [x * 2, TapeWithoutGradient(ow.constant(1.0))], 1.0) == [2]


def test_a_gradient_that_ends_by_declaration():
    @ow.operator
    class TapeEnds:
        x = ow.Input(ow.floating)
        y = ow.Output(like="x")
        gradient = None

        def compute(op, x):
            return x + 1

    assert gradient(TapeEnds, 1.0) == [None]


def test_a_gradient_rule_of_the_wrong_length_is_named():
    @ow.operator
    class TapeWrong:
        x = ow.Input(ow.floating)
        w = ow.Input(ow.floating, like="x")
        y = ow.Output(like="x")

        def compute(op, x, w):
            return x + w

        def gradient(op, dy):
            return dy

    with pytest.raises(
        ow.errors.DefinitionError, match=r"TapeWrong: gradient gave another number of results(?s:.*)1\n(?s:.*)2: x, w"
    ):
        gradient(TapeWrong, 1.0, 2.0)


def test_rules_see_inputs_outputs_and_attributes():
    @ow.operator
    class TapeSees:
        xs = ow.Input(ow.floating, repeated=True)
        w = ow.Input(ow.floating, like="xs", optional=True)
        total = ow.Output()
        count = ow.Output(intermediate=True)
        by = ow.Attr(float, default=2.0)

        def infer(op):
            return op.xs[0].spec, ow.TensorSpec([], ow.float64)

        def compute(op, xs, w):
            return sum(xs) * op.by * (1 if w is None else w), np.float64(len(xs))

        def gradient(op, dtotal, dcount):
            seen.append((len(op.xs), op.w is None, op.total.numpy(), op.count.numpy(), op.by, dcount.numpy()))
            return [dtotal * op.by] * len(op.xs), None

        def helper(op):
            return op.by

    seen = []
    assert gradient(lambda a, b: TapeSees([a, b], by=3.0), 1.0, 2.0) == [3, 3]
    assert seen == [(2, True, 9, 2, 3.0, 0)]
    assert gradient(lambda a, w: TapeSees([a], w), 1.0, 2.0) == [2, None]


# ---- jacobians ---------------------------------------------------------------------------------------------------


def test_jacobian_of_a_linear_map_is_its_matrix():
    a = np.arange(6.0).reshape(2, 3)
    x = ow.constant([1.0, 2.0, 3.0], ow.float64)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = ow.linalg.matvec(ow.constant(a), x)
    assert tape.jacobian(y, x).numpy().tolist() == a.tolist()


def test_jacobian_by_hand():
    """y = (u v, u^2, sin v): rows (v, u), (2u, 0), (0, cos v)."""
    u, v = ow.constant(2.0, ow.float64), ow.constant(0.5, ow.float64)
    with ow.GradientTape() as tape:
        tape.watch([u, v])
        y = ow.stack([u * v, u * u, ow.sin(v)])
    du, dv = tape.jacobian(y, [u, v])
    assert du.numpy().tolist() == [0.5, 4, 0]
    assert dv.numpy().tolist() == pytest.approx([2, 0, math.cos(0.5)])


def test_jacobian_shapes_and_elements():
    x = ow.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        square, total, nothing = x * x, ow.reduce_sum(x), x[:0]
        picked = ow.gather(x, [1])
    j = tape.jacobian(square, x).numpy()
    assert j.shape == (3, 2, 3, 2)
    assert (j.reshape(6, 6) == np.diag(2 * x.numpy().ravel())).all()
    assert tape.jacobian(total, x).shape == [3, 2]
    assert tape.jacobian(nothing, x).shape == [0, 2, 3, 2]
    assert tape.jacobian(picked, x).numpy()[0, 1].tolist() == [[0, 0], [0, 1], [0, 0]]


def test_hessian():
    x = ow.constant([1.0, 2.0], ow.float64)
    with ow.GradientTape() as outer:
        outer.watch(x)
        with ow.GradientTape() as inner:
            inner.watch(x)
            y = x[0] ** 2 * x[1] ** 3
        g = inner.gradient(y, x)
    assert outer.jacobian(g, x).numpy().tolist() == [[16, 24], [24, 12]]


def test_batch_jacobian():
    x = ow.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ow.stack([x[:, 0] * x[:, 1], x[:, 0] ** 2, x[:, 1]], axis=1)
        empty = x[:, :0]
    result = tape.batch_jacobian(y, x).numpy()
    assert result.shape == (3, 3, 2)
    for (a, b), rows in zip(x.numpy(), result):
        assert rows.tolist() == [[b, a], [2 * a, 0], [0, 1]]
    full = tape.jacobian(y, x).numpy()
    assert (result == np.stack([full[i, :, i] for i in range(3)])).all()
    assert tape.batch_jacobian(empty, x).shape == [3, 0, 2]
    assert np.array_equal(tape.batch_jacobian(ow.constant([[1.0], [1.0], [1.0]]), x), np.zeros((3, 1, 2)))
    for wrong in (ow.reduce_sum(x), x[:2]):
        with pytest.raises(ValueError, match="Need first dimension"):
            tape.batch_jacobian(wrong, x)


# ---- complex numbers ------------------------------------------------------------------------------------------------


def test_complex_gradients_are_conjugate():
    """TensorFlow's convention: dL/dx + i dL/dy, so a descent step is z - rate * gradient."""
    z = ow.constant(3 + 4j, ow.complex128)
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(z)
        square = z * z
        length = ow.abs(z)
        real = ow.math.real(z)
    assert tape.gradient(square, z).numpy() == 2 * (3 - 4j)
    assert tape.gradient(length, z).numpy() == pytest.approx((3 + 4j) / 5)
    assert tape.gradient(real, z).numpy() == 1


def test_unimplemented_computation_is_reported_under_a_tape_too():
    empty = ow.operator(type("TapeEmpty", (), {"x": ow.Input(), "y": ow.Output(like="x")}))
    with pytest.raises(UnimplementedError, match="TapeEmpty"):
        gradient(empty, 1.0)


def test_gradients_without_a_use_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product by data needs one product backwards, not two, and a factor that is a number no sum."""
    names: list[str] = []
    eager = dispatch._eager
    monkeypatch.setattr(dispatch, "_eager", lambda op, *rest: (names.append(op.name), eager(op, *rest))[1])
    data, w = ow.constant(np.ones((6, 5), np.float64)), ow.constant(np.full((5, 3), 0.5))
    with ow.GradientTape() as tape:
        tape.watch(w)
        y = 0.25 * ow.matmul(data, w)
    names.clear()
    np.testing.assert_array_equal(tape.gradient(y, w).numpy(), np.full((5, 3), 0.25 * 6))
    assert names == ["Mul", "MatMul"]


def test_rules_may_ask_which_gradients_are_used() -> None:
    asked: list[tuple[bool, bool]] = []

    @ow.operator
    class ScaledByRows(ow.OperatorDefinition):
        x = ow.Input(dtypes=ow.floating)
        y = ow.Input(dtypes=ow.floating, like="x")
        z = ow.Output(like="x")
        elementwise = True

        def compute(op, x, y):
            return x * y

        def gradient(op, dz):
            asked.append((op.needs_gradient("x"), op.needs_gradient("y")))
            return dz * op.y if op.needs_gradient("x") else None, dz * op.x if op.needs_gradient("y") else None

    x, y = ow.constant([1.0, 2.0]), ow.constant([3.0, 4.0])
    for sources, expected in (([x], (True, False)), ([y], (False, True)), ([x, y], (True, True))):
        with ow.GradientTape() as tape:
            tape.watch([x, y])
            z = ScaledByRows(x, y)
        grads = tape.gradient(z, sources)
        assert asked[-1] == expected
        for source, grad in zip(sources, grads):
            np.testing.assert_array_equal(grad.numpy(), (y if source is x else x).numpy())


def test_attributes_of_any_name_reach_the_rule() -> None:
    """Rules get attributes whose names are no words of Python; `Call.with_all` writes them by name."""
    body = {
        "__module__": __name__,
        "x": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "lambda": ow.Attr(float, default=3.0),
        "compute": lambda op, x: getattr(op, "lambda") * x,
        "gradient": lambda op, dy: getattr(op, "lambda") * dy,
    }
    operator = ow.operator(type("ScaledByLambda", (), body))
    call = operator.bind({}).with_all(["x of it"], ["y of it"])
    assert (call.x, call.y, getattr(call, "lambda"), call.operator) == ("x of it", "y of it", 3.0, operator)
    matmul = ow.ops.get("MatMul").bind({"transpose_b": True})
    call = matmul.with_all([1, 2], [3])
    assert (call.a, call.b, call.output, call.attrs, call.operator) == (1, 2, 3, matmul.attrs, matmul.operator)
    assert call.needs_gradient("a")

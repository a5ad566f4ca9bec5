"""Operators in the kernel language, in functions: fused with their neighbours, native steps, what they refuse."""

import numpy as np
import pytest
from written_operators import BlendOfTwo, CentredRows, DoublingsToOne, LeakyLimit, RowNorms, TakenAt, WholeSteps, meant

import opwright as ow
from opwright import language as kl
from opwright.core import flags

RNG = np.random.default_rng(7)


def f32(*shape):
    return RNG.normal(scale=2, size=shape).astype(np.float32)


def native(function):
    return ow.function(function, jit_compile=True, autograph=False)


def made_of(f, *args):
    """Return the graph of a function for these arguments."""
    f(*args)
    return next(reversed(f.get_concrete_function(*args).program.plan._made.values()))[1]


def why_left(result):
    """By operator, why it runs as it is."""
    return {left.op: left.why for left in result.uncompiled}


@pytest.mark.parametrize("shape", [(3, 37), (1,), (16,), (5, 1, 7), ()])
def test_a_kernel_is_one_map_with_its_neighbours(shape):
    x = f32(*shape)
    f = native(lambda x: ow.tanh(LeakyLimit(ow.exp(x * 0.5), alpha=0.125) + 1.0))
    expected = np.tanh(meant(LeakyLimit, np.exp(x * np.float32(0.5)), alpha=0.125) + 1)
    np.testing.assert_allclose(f(ow.constant(x)), expected, 1e-5, 1e-6)
    if shape:
        result = made_of(f, ow.constant(x))
        assert [len(s.plan.steps) for s in result.regions] == [1]
        assert not result.uncompiled


def test_operands_broadcast():
    a, b = f32(4, 1, 6), f32(3, 1)
    f = native(lambda a, b: BlendOfTwo(ow.abs(a), b) * 2.0)
    np.testing.assert_allclose(f(ow.constant(a), ow.constant(b)), meant(BlendOfTwo, np.abs(a), b) * 2, 1e-6)
    assert not made_of(f, ow.constant(a), ow.constant(b)).uncompiled


def test_it_follows_a_matrix_product(tmp_path):
    x, w = f32(9, 20), f32(20, 33)
    f = native(lambda x, w: LeakyLimit(ow.matmul(x, w)))
    with flags.override(cache_dir=tmp_path):  # a plan from the cache has no operations
        np.testing.assert_allclose(f(ow.constant(x), ow.constant(w)), meant(LeakyLimit, x @ w), 1e-4, 1e-4)
        (region,) = made_of(f, ow.constant(x), ow.constant(w)).regions
    assert [type(form).__name__ for form in region.plan.ops] == ["MatMul"]


def test_a_loop_sees_elements_alone():
    """The loop would never end on the zeros that pad a vector or a tile."""
    x, w = np.abs(f32(5, 13)) / 4 + np.float32(0.01), np.abs(f32(13, 3)) / 64
    f = native(lambda x: DoublingsToOne(x + 0.0) * 1.0)
    np.testing.assert_array_equal(f(ow.constant(x)), meant(DoublingsToOne, x))
    g = native(lambda x, w: DoublingsToOne(ow.matmul(x, w)))
    np.testing.assert_array_equal(g(ow.constant(x), ow.constant(w)), meant(DoublingsToOne, x @ w))
    assert not made_of(g, ow.constant(x), ow.constant(w)).uncompiled


@pytest.mark.parametrize(("op", "dtype"), [(LeakyLimit, "float64"), (WholeSteps, "int32"), (WholeSteps, "int64")])
def test_other_dtypes(op, dtype):
    x = (f32(7, 5) * 10).astype(dtype)
    f = native(lambda x: op(x + x) + x)
    np.testing.assert_allclose(f(ow.constant(x)), meant(op, x + x) + x, 1e-12)
    assert not made_of(f, ow.constant(x)).uncompiled


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_dtype_that_kernels_lack_is_computed(dtype):
    x = ow.cast(ow.constant(f32(7, 5)), dtype)
    f = native(lambda x: LeakyLimit(x * x) + x)
    expected = meant(LeakyLimit, (x * x).numpy()) + x.numpy()
    np.testing.assert_allclose(f(x).numpy().astype(np.float32), expected.astype(np.float32), 2e-2)
    assert why_left(made_of(f, x))["LeakyLimit"] == f"its kernel is not for {dtype}"


def test_the_same_bits_in_all_ways():
    x = f32(41)
    eager = LeakyLimit(ow.constant(x), alpha=0.3).numpy()
    f = native(lambda x: LeakyLimit(x, alpha=0.3) * 1.0)
    np.testing.assert_array_equal(f(ow.constant(x)), eager)


def test_another_kernel_comes_first():
    @ow.operator
    class Tripled:
        r"""Thrice.   .. math:: y = 3x"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return 3 * x

        @ow.kernel
        def kernel(x):
            return x * 3.0

    ow.ops.register_kernel(Tripled, library="foreign")(lambda op, x: x * np.float32(30))
    x = f32(4, 4)
    f = native(lambda x: Tripled(x + 0.0) + 0.0)
    np.testing.assert_allclose(f(ow.constant(x)), x * 30, 1e-6)
    assert why_left(made_of(f, ow.constant(x)))["Tripled"] == "it has a kernel of its own"


def test_gradients_of_its_rule_run_beside():
    @ow.operator
    class Cubed:
        r"""Third power.   .. math:: y = x^3"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")
        elementwise = True

        def compute(op, x):
            return x * x * x

        def gradient(op, dy):
            return 3.0 * op.x * op.x * dy

        @ow.kernel
        def kernel(x):
            return x * x * x

    def slope(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.reduce_sum(Cubed(ow.sin(x)))
        return tape.gradient(y, x)

    x = f32(6, 7)
    np.testing.assert_allclose(native(slope)(ow.constant(x)), 3 * np.sin(x) ** 2 * np.cos(x), 1e-4, 1e-5)


# ---- kernels on arrays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_on_arrays_is_a_step(threads):
    x = f32(64, 40)

    def both(x):
        y, norms = RowNorms(ow.tanh(x), epsilon=0.5)
        return y * 2.0 + x, norms + 1.0

    y, norms = meant(RowNorms, np.tanh(x), epsilon=0.5)
    with flags.override(num_threads=threads):
        f = native(both)
        actual = f(ow.constant(x))
        eager = both(ow.constant(x))
    for a, b, expected in zip(actual, eager, (y * 2 + x, norms + 1), strict=True):
        np.testing.assert_allclose(a, expected, 1e-5, 1e-5)
        np.testing.assert_allclose(b, expected, 1e-5, 1e-5)
    result = made_of(f, ow.constant(x))
    assert not result.uncompiled
    assert len(result.regions) == 1


def test_one_result_of_several_may_be_all_that_is_read():
    x = f32(6, 9)
    f = native(lambda x: RowNorms(x * 1.0)[1] + 1.0)
    np.testing.assert_allclose(f(ow.constant(x)), meant(RowNorms, x)[1] + 1, 1e-5)


def test_an_array_of_another_dtype_is_computed():
    x = f32(6, 9).astype(np.float64)
    y, _ = RowNorms(ow.constant(x))
    assert y.dtype is ow.float64
    np.testing.assert_allclose(y, meant(RowNorms, x)[0], 1e-12)
    f = native(lambda x: RowNorms(x * 1.0)[0] + 0.0)
    np.testing.assert_allclose(f(ow.constant(x)), y, 1e-12)
    assert "float64" in why_left(made_of(f, ow.constant(x)))["RowNorms"]


def test_views_and_odd_strides():
    x = f32(12, 30)
    for part in (x[::2, ::3], x.T, x[:, :0], x[:0]):
        y, norms = RowNorms(ow.constant(part))
        np.testing.assert_allclose(y, meant(RowNorms, part)[0], 1e-5)
        np.testing.assert_allclose(norms, meant(RowNorms, part)[1], 1e-5)


@pytest.mark.parametrize("shape", [(7,), (3, 9), (2, 3, 4, 5), (0, 4)])
def test_arrays_of_any_leading_rank(shape):
    x, gain = f32(*shape), f32(shape[-1])
    expected = meant(CentredRows, x, gain) if x.size else x
    np.testing.assert_allclose(CentredRows(ow.constant(x), ow.constant(gain)), expected, 1e-5, 1e-5)
    f = native(lambda x, gain: CentredRows(x * 1.0, gain) + 0.0)
    np.testing.assert_allclose(f(ow.constant(x), ow.constant(gain)), expected, 1e-5, 1e-5)
    if x.size:
        assert "CentredRows" not in why_left(made_of(f, ow.constant(x), ow.constant(gain)))


def test_an_array_whose_first_axes_are_no_one_axis():
    def doubled(x: kl.Array(kl.f32, ..., "n")):
        for r in range(x.shape[0]):
            for i in range(x.shape[1]):
                x[r, i] = x[r, i] * 2.0

    kernel = ow.kernel(doubled)
    x = f32(4, 3, 5)
    expected = x * 2
    kernel(x)
    np.testing.assert_array_equal(x, expected)
    with pytest.raises(ow.errors.InvalidArgumentError, match="its leading axes cannot be folded without a copy"):
        kernel(x[:, ::2])


def test_a_failed_guard_names_operator_and_line():
    x, good = ow.constant(f32(5)), ow.constant([4, 0], ow.int32)
    f = native(lambda x, places: TakenAt(ow.exp(x), places, scale=3) + 1.0)
    expected = np.exp(x.numpy())[[4, 0]] * 3 + 1
    np.testing.assert_allclose(f(x, good), expected, 1e-5)
    for call in (f, lambda x, p: TakenAt(x, p)):
        with pytest.raises(ow.errors.OutOfRangeError, match=r"(?s)TakenAt.*written_operators.py:\d+.*outside of x"):
            call(x, ow.constant([4, 5], ow.int32))
    np.testing.assert_allclose(f(x, good), expected, 1e-5)


def _operator(kernel, **parts):
    body = {
        "__doc__": r"One more.   .. math:: y = x + 1",
        "__module__": __name__,
        "x": ow.Input(dtypes=(ow.float32,)),
        "y": ow.Output(like="x"),
        "kernel": kernel,
        **parts,
    }
    return ow.operator(type("Ill", (), body))


def _unnamed(z: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n")): ...


def _without_output(x: kl.Array(kl.f32, "n")): ...


def _number(x: kl.f32, y: kl.Array(kl.f32, "n")): ...


def _constant(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n"), *, lanes): ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_unnamed, "has a parameter 'z', which is none of x, y"),
        (_without_output, "has no parameter for output 'y'"),
        (_number, r"annotates 'x' with .*float32.*, wanted kl.Array"),
        (_constant, "has a constant 'lanes', which is not an attribute and has no default"),
    ],
)
def test_definitions_that_contradict_themselves(function, says):
    with pytest.raises(TypeError, match=says):
        _operator(ow.kernel(function))


def test_a_kernel_may_not_write_its_input():
    def careless(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n")):
        for i in range(x.shape[0]):
            x[i] = 0.0
            y[i] = 1.0

    op = _operator(ow.kernel(careless))
    x = ow.constant(f32(4))
    with pytest.raises(ow.errors.InvalidArgumentError, match="its kernel writes input 'x'"):
        op(x)
    f = native(lambda x: op(x + 0.0) + 0.0)
    with pytest.raises(ow.errors.InvalidArgumentError, match="its kernel writes input 'x'"):
        f(x)


def test_a_kernel_that_cannot_be_staged_reports_it():
    @ow.operator
    class Unstaged:
        r"""Nothing.   .. math:: y = x"""

        x = ow.Input(dtypes=(ow.float32,))
        y = ow.Output(like="x")

        @ow.kernel
        def kernel(x):
            return ow.cumsum(x)

    x = ow.constant(f32(4, 4))
    f = native(lambda x: Unstaged(x * 2.0) + 1.0)
    for call in (Unstaged, f):
        with pytest.raises(ow.errors.OpError, match=r"Unstaged\.f32 \(\S+\.py:\d+\): in its kernel, Cumsum: kernels"):
            call(x)


def test_a_kernel_that_raises_while_it_is_staged():
    @ow.operator
    class Raising:
        r"""Nothing.   .. math:: y = x"""

        x = ow.Input(dtypes=(ow.float32,))
        y = ow.Output(like="x")

        @ow.kernel
        def kernel(x):
            return {}["nothing"] * x

    x = ow.constant(f32(4, 4))
    for call in (Raising, native(lambda x: Raising(x * 2.0) + 1.0), ow.function(lambda x: Raising(x))):
        with pytest.raises(ow.errors.InvalidArgumentError, match=r"Raising.*its kernel cannot be staged: KeyError"):
            call(x)


def test_truth_values_in_and_out():
    @ow.operator
    class Above:
        r"""Whether it is above a half.   .. math:: y = x > 1/2"""

        x = ow.Input(dtypes=(ow.float32,))
        y = ow.Output(dtype=ow.bool)
        elementwise = True

        def compute(op, x):
            return x > 0.5

        @ow.kernel
        def kernel(x):
            return x > 0.5

    @ow.operator
    class Where:
        r"""x where it is open, else 0.   .. math:: y = x [open]"""

        x = ow.Input(dtypes=(ow.float32,))
        open = ow.Input(dtypes=(ow.bool,))
        y = ow.Output(like="x")
        elementwise = True

        def compute(op, x, open):
            return np.where(open, x, np.float32(0))

        @ow.kernel
        def kernel(x, open):
            if open:
                return x
            return 0.0 * x

    x = f32(3, 21)
    for call in (lambda x: Where(x, Above(x)), native(lambda x: Where(x, Above(x)))):
        np.testing.assert_array_equal(call(ow.constant(x)), np.where(x > 0.5, x, 0))


def test_arrays_that_the_entry_does_not_take_are_copied():
    """Misaligned, turned, of a dtype object of its own: the same numbers."""
    x = f32(6, 5)
    kernel, call = LeakyLimit.kernel_rule, LeakyLimit.bind({})
    expected = kernel(call, x)
    np.testing.assert_allclose(expected, meant(LeakyLimit, x), 1e-6)
    misaligned = np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)
    tagged = x.astype(np.dtype("float32", metadata={"of": "somebody"}))
    for other in (misaligned, tagged, np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2]):
        np.testing.assert_array_equal(kernel(call, other), expected)


def test_a_kernel_on_arrays_that_is_registered():
    @ow.operator
    class Scaled:
        r"""Scaled.   .. math:: y = 2x"""

        x = ow.Input(dtypes=(ow.float32, ow.float64))
        y = ow.Output(like="x")

        def compute(op, x):
            return x * 2

    def twenty(x: kl.Array(kl.f32, ...), y: kl.Array(kl.f32, ...)):
        for i in kl.parallel(x.shape[0]):
            y[i] = x[i] * 20.0

    ow.ops.register_kernel(Scaled, dtype=ow.float32)(ow.kernel(twenty))
    x = f32(2, 3)
    np.testing.assert_allclose(Scaled(ow.constant(x)), x * 20, 1e-6)
    np.testing.assert_allclose(Scaled(ow.constant(x.astype(np.float64))), x * 2.0, 1e-6)

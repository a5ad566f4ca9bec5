"""Operators in the official run time: the same as their formula, and as in our interpreter."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from lite_kit import Build, run
from litert_kit import CUSTOMS, Scale, compiling, drawn, needs_wheel, of_scales, scales

import opwright as ow
from opwright import lite
from opwright.lite.format import versions

pytestmark = needs_wheel
S = np.float32([0.5, -1.0, 2.0])

CHAINS = {
    "one": ({},),
    "options": ({"factor": 2.5},),
    "two of other options": ({"factor": 2.5}, {"factor": -1.5}),
    "three, one of them twice": ({"factor": 0.5}, {"factor": -1.5}, {"factor": 0.5}),
}


@pytest.mark.parametrize("compiled", [True, False], ids=["native", "python"])
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_nodes_of_one_operator_have_their_own_options(chain, compiled):
    x = drawn(2, 3)
    content = scales(*chain)
    with compiling(compiled), lite.litert.CompiledModel(content, CUSTOMS, num_threads=1) as model:
        result = model.run({"x": x, "s": S})
        assert set(model.native_nodes.values()) == {compiled}
        assert len(model.native_nodes) == len(chain)
        ours = run(lite.Interpreter(model_content=content, custom_ops=CUSTOMS), [x, S])
    assert list(result) == ["y"]
    np.testing.assert_allclose(result["y"], of_scales(x, S, *chain), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(result["y"], ours[0])


@pytest.mark.parametrize("compiled", [True, False], ids=["native", "python"])
def test_a_version_that_the_run_time_itself_does_not_find(compiled):
    """Its resolver has operators that it is given in version 1 alone."""
    x, chain = drawn(2, 3), ({"factor": 2.0, "cubed": True}, {"factor": 3.0})
    with compiling(compiled), lite.litert.CompiledModel(scales(*chain, version=2), CUSTOMS) as model:
        result = model.run([x, S])[0]
    np.testing.assert_allclose(result, of_scales(x, S, *chain), rtol=1e-5, atol=1e-5)


SHAPES = [
    ((2, 3), (3,)),
    ((), ()),
    ((4, 1), (1, 3)),
    ((1,), (2, 2, 5)),
    ((1000, 37), (37,)),
    ((2, 1, 1, 1, 1, 1, 2), ()),
]


@pytest.mark.parametrize("compiled", [True, False], ids=["native", "python"])
@pytest.mark.parametrize(("xs", "ss"), SHAPES, ids=str)
def test_shapes_and_broadcasting(xs, ss, compiled):
    x, s = drawn(*xs), drawn(*ss, seed=1)
    y = (2.0 * x.astype(np.float64)) + s
    b = Build().tensor("x", xs).tensor("s", ss).tensor("y", y.shape)
    content = b.custom("LitertScale", "x s", "y", factor=2.0).done("x s", "y")
    with compiling(compiled), lite.litert.CompiledModel(content, CUSTOMS, num_threads=2) as model:
        result = model.run([np.asarray(x), np.asarray(s)])[0]
    assert result.shape == y.shape
    np.testing.assert_allclose(result, y, rtol=1e-5, atol=1e-6)


DTYPES = {
    "FLOAT32": np.float32,
    "FLOAT64": np.float64,
    "FLOAT16": np.float16,
    "BFLOAT16": ow.bfloat16.as_numpy_dtype,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT32": np.int32,
    "UINT32": np.uint32,
    "INT64": np.int64,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
    "COMPLEX64": np.complex64,
}


@pytest.mark.parametrize("kind", DTYPES)
def test_every_element_type_that_it_passes(kind):
    """x from last to first, and the bias less x, or where there is none x + x: of these numbers exact in all types."""
    x = np.array([[1, 0], [1, 1], [0, 1]]).astype(DTYPES[kind])
    b = Build().tensor("x", x.shape, kind).tensor("first", x.shape, kind).tensor("second", x.shape, kind)
    with (
        compiling(),
        lite.litert.CompiledModel(
            b.custom("LitertSwap", "x", "first second").done("x", "first second"), CUSTOMS
        ) as model,
    ):
        first, second = model.run(x)
    assert first.dtype == second.dtype == x.dtype
    np.testing.assert_array_equal(first, np.array([[0, 1], [1, 1], [1, 0]]).astype(x.dtype))
    np.testing.assert_array_equal(second, np.array([[2, 0], [2, 2], [0, 2]]).astype(x.dtype))


@pytest.mark.parametrize("kind", ["FLOAT64", "INT32", "INT64"])
def test_kernels_of_other_types_than_float32(kind):
    dtype = DTYPES[kind]
    x, s = np.arange(-6, 6).reshape(4, 3).astype(dtype), np.array([1, 2, 3], dtype)
    b = Build().tensor("x", (4, 3), kind).tensor("s", (3,), kind).tensor("y", (4, 3), kind)
    with compiling(), lite.litert.CompiledModel(b.custom("LitertTotal", "x s", "y").done("x s", "y"), CUSTOMS) as model:
        result = model.run([x, s])[0]
        assert all(model.native_nodes.values())
    np.testing.assert_array_equal(result, x + 2 * s)


@pytest.mark.parametrize(
    ("inputs", "second"),
    [
        ("x _", lambda x: x + x),
        ("x", lambda x: x + x),
        ("x bias", lambda x: np.float32([10, 20]) - x),
        ("x x", lambda x: x - x),
    ],
    ids=["left out", "not there", "a constant", "the same tensor twice"],
)
def test_what_the_run_time_would_not_pass(inputs, second):
    """It reads through null where an input is left out, and takes no memory that is not at a multiple of 64."""
    x = drawn(3, 2)
    b = Build().tensor("x", (3, 2)).tensor("first", (3, 2)).tensor("second", (3, 2))
    b.tensor("pad", data=np.float32([7])).tensor("bias", data=np.float32([10, 20]))
    content = b.custom("LitertSwap", inputs, "first second").done("x", "first second")
    with compiling(), lite.litert.CompiledModel(content, CUSTOMS) as model:
        result = model.run([x])
    np.testing.assert_array_equal(result[0], x[::-1])
    np.testing.assert_allclose(result[1], second(x), rtol=1e-6)


@pytest.mark.parametrize("compiled", [True, False], ids=["native", "python"])
def test_an_operator_of_constants_alone(compiled):
    b = Build().tensor("c", data=np.float32([1, 2, 3])).tensor("h", (3,)).custom("LitertScale", "c c", "h", factor=2.0)
    b.tensor("x", (3,)).tensor("y", (3,)).op("ADD", "x h", "y")
    with compiling(compiled), lite.litert.CompiledModel(b.done(), CUSTOMS) as model:
        result = model.run([np.float32([1, 1, 1])])[0]
    np.testing.assert_array_equal(result, [4, 7, 10])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_on_arrays_with_two_results(threads):
    """Another index stops it: the error is the operator's own, and the next run goes on."""
    x, i = drawn(5, 4), np.int32([3, 0, 3, 4])
    b = Build().tensor("x", (5, 4)).tensor("i", (4,), "INT32").tensor("y", (4, 4)).tensor("t", (4,))
    content = b.custom("LitertPick", "x i", "y t").done("x i", "y t")
    with compiling(), lite.litert.CompiledModel(content, CUSTOMS, num_threads=threads) as model:
        for _ in range(2):
            y, total = model.run([x, i])
            np.testing.assert_array_equal(y, x[i])
            np.testing.assert_allclose(total, x[i].astype(np.float64).sum(1), rtol=1e-5)
            assert all(model.native_nodes.values())
            with pytest.raises(ow.errors.OutOfRangeError, match="index outside of x"):
                model.run([x, np.int32([0, 9, 0, 0])])


def test_between_builtin_operators():
    """ADD and MUL go to its own delegate, before and after."""
    x = drawn(4, 3)
    b = Build().tensor("x", (4, 3)).tensor("s", (3,)).tensor("h", (4, 3)).tensor("g", (4, 3)).tensor("y", (4, 3))
    content = (
        b.op("ADD", "x s", "h").custom("LitertScale", "h s", "g", factor=3.0).op("MUL", "g x", "y").done("x s", "y")
    )
    with compiling(), lite.litert.CompiledModel(content, CUSTOMS) as model:
        result = model.run([x, S])[0]
        assert model.is_fully_accelerated() is False
    np.testing.assert_allclose(result, ((x + S) * 3.0 + S) * x, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [-1.0, 1.0])
def test_in_the_branches_of_a_condition(value):
    """Each branch has the operator with options of its own."""
    b = Build("main").tensor("c", (), "BOOL").tensor("x", (3,)).tensor("y", (3,))
    b.node("IF", "c x", "y", then_subgraph_index=1, else_subgraph_index=2).ends("c x", "y")
    for factor in (2.0, 5.0):
        b.subgraph(f"branch {factor}").tensor("x", (3,)).tensor("y", (3,))
        b.custom("LitertScale", "x x", "y", factor=factor).ends("x", "y")
    x = np.float32([1, 2, 3])
    with compiling(), lite.litert.CompiledModel(b.done(None), CUSTOMS) as model:
        result = model.run([np.array(value > 0), x])[0]
        assert [name for name, native in model.native_nodes.items() if native]
    np.testing.assert_array_equal(result, x * (3 if value > 0 else 6))


@pytest.mark.parametrize("compiled", [True, False], ids=["native", "python"])
def test_integers_that_stand_for_reals(compiled):
    """int8 tensors with scales: within a step of the real formula, and the same as in our interpreter."""
    from opwright.lite.format import objects

    def quantization(scale, zero):
        return objects.QuantizationParameters(scale=np.float32([scale]), zero_point=np.int64([zero]))

    b = Build()
    for name, shape, scale, zero in (("x", (50,), 0.05, 3), ("s", (1,), 0.02, 0), ("y", (50,), 0.1, -5)):
        b.tensor(name, shape, "INT8", quantization=quantization(scale, zero))
    content = b.custom("LitertScale", "x s", "y", factor=2.0).done("x s", "y")
    x, s = np.arange(-25, 25).astype(np.int8), np.int8([50])
    real = (x - 3.0) * 0.05 * 2.0 + 1.0
    with compiling(compiled), lite.litert.CompiledModel(content, CUSTOMS) as model:
        result = model.run([x, s])[0]
        ours = run(lite.Interpreter(model_content=content, custom_ops=CUSTOMS), [x, s])[0]
    np.testing.assert_array_equal(result, ours)
    np.testing.assert_allclose((result + 5.0) * 0.1, np.clip(real, -12.3, 13.2), atol=0.0501)


def test_registrations_in_python():
    """The four methods of `lite.Registration`, with a state per node that is freed once."""
    freed = []
    twice = lite.Registration(
        init=lambda context, options: len(options),
        free=lambda context, state: freed.append(state),
        prepare=lambda context, node: context.resize_tensor(node.outputs[0], node.inputs[0].shape),
        invoke=lambda context, node: np.multiply(node.inputs[0].data, node.user_data, out=node.outputs[0].data),
    )
    b = Build().tensor("x", (2,)).tensor("y", (2,))
    content = b.custom("Twice", "x", "h", factor=2).custom("Twice", "h", "y", factor=2).done()
    with lite.litert.CompiledModel(content, {"Twice": twice}) as model:
        result = model.run([np.float32([1, 2])])[0]
    size = round(float(np.sqrt(result[0])))
    assert size > 0
    np.testing.assert_array_equal(result, np.float32([1, 2]) * size * size)
    assert freed == [size, size]


def test_operators_that_opwright_brings_need_not_be_given():
    """Roll is of lite/customs; the run time has none of this name."""
    b = Build().tensor("x", (5,)).tensor("shift", type="INT32", data=np.int32([2]))
    b.tensor("axis", type="INT32", data=np.int32([0]))
    with lite.litert.CompiledModel(b.tensor("y").custom("Roll", "x shift axis", "y").done()) as model:
        result = model.run([np.float32([1, 2, 3, 4, 5])])[0]
    np.testing.assert_array_equal(result, [4, 5, 1, 2, 3])


def test_one_under_whose_name_it_puts_a_stub():
    """The greatest of each window of 2 x 2, and which of the four it is, and 0.1, as MediaPipe has it."""
    b = Build().tensor("x", (1, 2, 4, 1)).tensor("y", (1, 1, 2, 1)).tensor("i", (1, 1, 2, 1))
    options = np.frombuffer(struct.pack("<6i", 1, 2, 2, 2, 2, 0), np.uint8)
    b.operator(versions.operator_code("CUSTOM", 1, "MaxPoolingWithArgmax2D"), "x", "y i", custom_options=options)
    x = np.float32([[1, 5, 2, 0], [3, 4, 9, 8]]).reshape(1, 2, 4, 1)
    with lite.litert.CompiledModel(b.done("x", "y i")) as model:
        result = model.run([x])
    np.testing.assert_array_equal(result[0].ravel(), [5, 9])
    np.testing.assert_array_equal(result[1].ravel(), np.float32([1.1, 2.1]))


def test_one_that_the_run_time_has_is_left_to_it_unless_given():
    """NumericVerify is among those it brings: without ours, nothing is given to it."""
    from opwright.lite.format import Model
    from opwright.lite.format.runtime_requirements import OFFICIAL_CUSTOMS
    from opwright.lite.litert.node_replacement import replace_custom_nodes

    content = Build().tensor("x", (2,)).tensor("y", (2,)).custom("Mfcc", "x x", "y").done()
    assert "Mfcc" in OFFICIAL_CUSTOMS
    assert replace_custom_nodes(Model.read(content), ()).nodes == []
    assert [n.name for n in replace_custom_nodes(Model.read(content), {"Mfcc": Scale}).nodes] == ["Mfcc"]

"""Users' operators in the interpreter: in the compiled engine with their neighbours, by their own code and no other's,
on quantised tensors, and what is said where they fail."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from engine_kit import engine, plan_of
from lite_kit import Build
from written_operators import BlendOfTwo, CentredRows, DoublingsToOne, LeakyLimit, RowNorms, TakenAt, WholeSteps, meant

import opwright as ow
from opwright import lite
from opwright.core import flags
from opwright.lite.convert.errors import ConverterError
from opwright.lite.format import flexbuffers, objects

RNG = np.random.default_rng(11)
REFERENCE = lite.OpResolverType.BUILTIN_REF


def f32(*shape: int) -> np.ndarray:
    return RNG.normal(scale=2, size=shape).astype(np.float32)


def model_of(function: Any, *arrays: np.ndarray, **settings: Any) -> bytes:
    """The file of a function of arrays like these."""
    signature = [ow.TensorSpec(a.shape, ow.as_dtype(a.dtype)) for a in arrays]
    f = ow.function(function, input_signature=signature, autograph=False)
    converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])
    converter.allow_custom_ops = True
    for name, value in settings.items():
        setattr(converter, name, value)
    content: bytes = converter.convert()
    return content


def answers(interpreter: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """One run: all outputs."""
    interpreter.allocate_tensors()
    for detail, a in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], a)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def both(content: bytes, customs: Any, *arrays: np.ndarray) -> tuple[Any, list[np.ndarray], list[np.ndarray]]:
    """The compiled interpreter after a run, its answers, and those of the reference kernels."""
    plain = lite.Interpreter(model_content=content, custom_ops=customs, experimental_op_resolver_type=REFERENCE)
    expected = answers(plain, *arrays)
    with engine():
        interpreter = lite.Interpreter(model_content=content, custom_ops=customs)
        return interpreter, answers(interpreter, *arrays), expected


A, B, ROWS, GAIN = f32(6, 37), f32(6, 1), f32(4, 19), f32(19)
PLACES = np.array([3, 0, 5], np.int32)
LITTLE = (np.abs(f32(5, 13)) / 4 + 0.01).astype(np.float32)

CASES: dict[str, tuple[Any, Any, tuple[np.ndarray, ...], Any]] = {
    # function, operators, inputs, meaning
    "between maps": (
        lambda x: ow.tanh(LeakyLimit(ow.exp(x * 0.25), alpha=0.5) - 1.0),
        [LeakyLimit],
        (A,),
        lambda x: np.tanh(meant(LeakyLimit, np.exp(x / 4), alpha=0.5) - 1),
    ),
    "two operands": (
        lambda a, b: BlendOfTwo(a, b) * 2.0,
        {"BlendOfTwo": BlendOfTwo},
        (A, B),
        lambda a, b: meant(BlendOfTwo, a, b) * 2,
    ),
    "after a product": (
        lambda x: LeakyLimit(ow.matmul(x, ow.ones([37, 20]))),
        [LeakyLimit],
        (A,),
        lambda x: meant(LeakyLimit, x @ np.ones((37, 20), np.float32)),
    ),
    "a loop": (lambda x: DoublingsToOne(x) + 1.0, [DoublingsToOne], (LITTLE,), lambda x: meant(DoublingsToOne, x) + 1),
    "integers": (
        lambda x: WholeSteps(x + x, step=5),
        [WholeSteps],
        ((A * 9).astype(np.int32),),
        lambda x: meant(WholeSteps, x + x, step=5),
    ),
    "float64": (lambda x: LeakyLimit(x), [LeakyLimit], (A.astype(np.float64),), lambda x: meant(LeakyLimit, x)),
    "arrays": (lambda x: ow.add_n([*RowNorms(x)[:1], x]), [RowNorms], (ROWS,), lambda x: meant(RowNorms, x)[0] + x),
    "two results": (
        lambda x: tuple(y * 1.0 for y in RowNorms(x, epsilon=0.5)),
        [RowNorms],
        (ROWS,),
        lambda x: meant(RowNorms, x, epsilon=0.5),
    ),
    "rows": (
        lambda x, g: CentredRows(ow.reshape(x, [2, 2, 19]), g) * 1.0,
        [CentredRows],
        (ROWS, GAIN),
        lambda x, g: meant(CentredRows, x.reshape(2, 2, 19), g),
    ),
    "by place": (
        lambda x, p: TakenAt(ow.abs(x), p, scale=2),
        [TakenAt],
        (ROWS[0], PLACES),
        lambda x, p: np.abs(x)[p] * 2,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_engine_takes_them(case):
    function, customs, arrays, meaning = CASES[case]
    interpreter, actual, plain = both(model_of(function, *arrays), customs, *arrays)
    expected = meaning(*arrays)
    for a, b, exact in zip(actual, plain, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(a, exact, 1e-5, 1e-5)
        np.testing.assert_allclose(b, exact, 1e-5, 1e-5)
    assert plan_of(interpreter) == ["Opwright"]


def test_one_step_for_a_kernel_and_its_neighbours(capsys):
    function, customs, arrays, _ = CASES["between maps"]
    with engine(show="plan"):
        answers(lite.Interpreter(model_content=model_of(function, *arrays), custom_ops=customs), *arrays)
    assert "1 steps" in capsys.readouterr().err


@ow.operator
class InNumPy:
    r"""No kernel.   .. math:: y = 2x"""

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")

    def compute(op, x):
        return x + x


def test_without_a_kernel_numpy_stands_between_native_steps():
    x = f32(5, 7)
    content = model_of(lambda x: ow.exp(InNumPy(ow.tanh(x) + 1.0)) * 2.0, x)
    interpreter, (result,), (plain,) = both(content, [InNumPy], x)
    np.testing.assert_allclose(result, np.exp(2 * (np.tanh(x) + 1)) * 2, 1e-5)
    np.testing.assert_allclose(plain, result, 1e-5)
    assert plan_of(interpreter) == ["Opwright", "InNumPy", "Opwright"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_dtype_that_its_kernel_lacks(dtype):
    x = f32(5, 7)

    def function(x: Any) -> Any:
        return ow.cast(LeakyLimit(ow.cast(x, dtype)), ow.float32)

    _, (result,), (plain,) = both(model_of(function, x), [LeakyLimit], x)
    exact = meant(LeakyLimit, x.astype(ow.as_dtype(dtype).np)).astype(np.float32)
    np.testing.assert_array_equal(plain, exact)
    np.testing.assert_array_equal(result, exact)


def test_four_methods_in_python():
    calls: list[Any] = []

    def prepare(context: Any, node: Any) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(context: Any, node: Any) -> None:
        node.outputs[0].data[...] = node.inputs[0].data * node.user_data

    r = lite.Registration(lambda context, options: 3.0, lambda context, data: calls.append(data), prepare, invoke)
    x = f32(4, 4)
    content = model_of(lambda x: ow.tanh(InNumPy(x)) + 1.0, x)
    interpreter, (result,), _ = both(content, {"InNumPy": r}, x)
    np.testing.assert_allclose(result, np.tanh(x * 3) + 1, 1e-5, 1e-6)
    interpreter.close()
    assert calls[-1] == 3.0


# ---- their own code and no other's ----------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
import opwright as ow
from opwright import lite
from opwright import language as kl

FACTOR = {factor}

def scaled(x):
    return x * FACTOR

@ow.operator
class Scaled:
    'Scaled.   .. math:: y = f x'
    x = ow.Input(dtypes=(ow.float32,))
    y = ow.Output(like="x")
    {kernel}

path = sys.argv[1]
if len(sys.argv) > 2:
    spec = ow.TensorSpec([9], ow.float32)
    f = ow.function(lambda x: Scaled(ow.exp(x)) + 1.0, input_signature=[spec], autograph=False)
    converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])
    converter.allow_custom_ops = True
    open(path, "wb").write(converter.convert())
for _ in range(2):
    interpreter = lite.Interpreter(path, custom_ops=[Scaled])
    interpreter.allocate_tensors()
    interpreter.invoke()
    print(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0], end=" ")
    interpreter.close()
"""
ON_SCALARS = """
    @ow.kernel
    def kernel(x):
        return scaled(x)
"""
ON_ARRAYS = """
    @ow.kernel
    def kernel(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n")):
        for i in range(x.shape[0]):
            y[i] = scaled(x[i])
"""


@pytest.mark.parametrize(
    "kernel", [pytest.param(ON_SCALARS, id="scalars"), pytest.param(ON_ARRAYS, id="arrays", marks=pytest.mark.slow)]
)
def test_a_changed_kernel_never_runs_from_the_cache(kernel, tmp_path):
    """Its helper's global is all that changes; the file and the operator's own text stay as they were."""
    path = tmp_path / "model.tflite"
    environ = os.environ | {
        "OPWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
        "OPWRIGHT_COMPILED": "1",
        "OPWRIGHT_BACKGROUND": "0",
    }
    for number, factor in enumerate((2.0, 5.0)):
        program = tmp_path / f"program{number}.py"
        program.write_text(PROGRAM.format(factor=factor, kernel=kernel))
        arguments = [sys.executable, str(program), str(path), *(["make"] if not number else [])]
        done = subprocess.run(arguments, capture_output=True, text=True, env=environ, check=False)
        assert done.stdout.split() == [str(factor + 1)] * 2, done.stderr


def test_without_the_operator_a_kept_plan_is_no_way_around(tmp_path):
    path = tmp_path / "model.tflite"
    x = f32(4, 4)
    path.write_bytes(model_of(lambda x: LeakyLimit(x) + 1.0, x))
    with engine():
        for kept in (False, True):
            interpreter = lite.Interpreter(str(path), custom_ops=[LeakyLimit])
            answers(interpreter, x)
            assert (interpreter._engine.delegate.cache.model_key is not None) == kept
        with pytest.raises((ValueError, RuntimeError), match="LeakyLimit"):
            answers(lite.Interpreter(str(path)), x)


# ---- quantised tensors ----------------------------------------------------------------------------------------------


def quantized_method(op: Any, x: Any, y: Any) -> Any:
    def run(q: np.ndarray) -> np.ndarray:
        real = (q.astype(np.float32) - x.zero_point) * x.scale
        return np.rint(np.abs(real) / y.scale).astype(np.int32) + y.zero_point

    return run


def size_operator(name: str, **parts: Any) -> Any:
    """|x|, with what its class says of quantised tensors."""
    body = {
        "__doc__": r"Size.   .. math:: y = \abs{x}",
        "__module__": __name__,
        "x": ow.Input(dtypes=ow.floating),
        "y": ow.Output(like="x"),
        "compute": lambda op, x: np.abs(x),
        "kernel": ow.kernel(lambda x: ow.abs(x)),
        **parts,
    }
    return ow.operator(type(name, (), body))


SAYING = {
    "nothing": (size_operator("SizeOfNothing"), False),
    "reals": (size_operator("SizeOfReals", quantized="reals"), True),
    "method": (size_operator("SizeByMethod", quantized=quantized_method), True),
    "numpy": (size_operator("SizeInNumPy", quantized="reals", kernel=None), True),
}
WEIGHTS = f32(8, 8)


def samples() -> Any:
    return ([np.random.default_rng(k).uniform(-3, 3, (4, 8)).astype(np.float32)] for k in range(10))


def quantized(function: Any, *, only: bool = False) -> bytes:
    ops = lite.TargetSpec()
    ops.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8 if only else lite.OpsSet.TFLITE_BUILTINS]
    return model_of(
        function,
        next(iter(samples()))[0],
        optimizations=[lite.Optimize.DEFAULT],
        representative_dataset=samples,
        target_spec=ops,
    )


@pytest.mark.parametrize("saying", SAYING)
def test_between_integers(saying):
    op, takes_integers = SAYING[saying]
    w = ow.constant(WEIGHTS)
    content = quantized(lambda x: ow.matmul(op(ow.matmul(x, w)), w))
    (x,) = next(iter(samples()))
    interpreter, (result,), (plain,) = both(content, [op], x)
    exact = np.abs(x @ WEIGHTS) @ WEIGHTS
    step = np.ptp(exact) / 255
    np.testing.assert_allclose(plain, exact, atol=6 * step)
    np.testing.assert_allclose(result, plain, atol=1.01 * step)
    node = next(n for n in interpreter._subgraphs[0].nodes if n.name == op.name)
    assert (node.tensors_in[0].type.name == "INT8") == takes_integers
    if saying != "numpy":
        assert plan_of(interpreter) == ["Opwright"]


def test_integers_alone_are_asked_for():
    w = ow.constant(WEIGHTS)
    with pytest.raises(ConverterError, match=r"(?s)integer operators alone.*SizeOfNothing"):
        quantized(lambda x: SAYING["nothing"][0](ow.matmul(x, w)), only=True)
    content = quantized(lambda x: SAYING["reals"][0](ow.matmul(x, w)), only=True)
    names = [code.custom_code for code in lite.Model.read(content).operator_codes]
    assert "SizeOfReals" in names


def byte_model(name: str, scale: float = 0.1, operands: int = 1) -> bytes:
    """A custom operator by itself on int8."""

    def steps(scale: float, zero: int) -> Any:
        return objects.QuantizationParameters(scale=[scale], zero_point=[zero])

    build, xs = Build(), " ".join(f"x{i}" for i in range(operands))
    for x in xs.split():
        build.tensor(x, (256,), "INT8", quantization=steps(scale, 3))
    build.tensor("y", (256,), "INT8", quantization=steps(scale * 2, -5))
    content: bytes = build.custom(name, xs, "y").done(xs)
    return content


EVERY = np.arange(-128, 128, dtype=np.int8)


@pytest.mark.parametrize("saying", SAYING)
def test_every_byte(saying):
    op, _ = SAYING[saying]
    interpreter, (result,), (plain,) = both(byte_model(op.name), [op], EVERY)
    exact = np.clip(np.abs((EVERY.astype(float) - 3) * 0.1) / 0.2 - 5, -128, 127)
    for integers in (result, plain):
        np.testing.assert_allclose(integers, exact, atol=0.51)
    if saying != "numpy":
        assert plan_of(interpreter) == ["Opwright"]


def test_two_operands_of_bytes():
    other = RNG.permutation(EVERY)
    interpreter, (result,), (plain,) = both(byte_model("BlendOfTwo", operands=2), [BlendOfTwo], EVERY, other)
    a, b = (EVERY.astype(float) - 3) * 0.1, (other.astype(float) - 3) * 0.1
    exact = np.clip((np.maximum(a, b) - np.minimum(a, b) / 2) / 0.2 - 5, -128, 127)
    for integers in (result, plain):
        np.testing.assert_allclose(integers, exact, atol=0.51)
    assert plan_of(interpreter) == ["Opwright"]


def test_integers_as_they_are():
    op = size_operator("SizeOfIntegers", x=ow.Input(dtypes=(ow.int8,)), quantized="integers", kernel=None)
    _, (result,), (plain,) = both(byte_model(op.name), [op], EVERY)
    np.testing.assert_array_equal(result, np.abs(EVERY))
    np.testing.assert_array_equal(plain, np.abs(EVERY))


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"quantized": None}, '(?s)no kernel for quantized tensors.*quantized = "integers" in its class'),
        ({"x": ow.Input(dtypes=(ow.int8,))}, "takes no reals, and its class says nothing of integers"),
        ({"quantized": lambda op, x, y: 3}, "quantized gave no function"),
    ],
)
def test_refused_when_tensors_are_allocated(parts, says):
    op = size_operator("SizeRefused", **parts)
    with engine():
        interpreter = lite.Interpreter(model_content=byte_model(op.name), custom_ops=[op])
        with pytest.raises(RuntimeError, match=says) as raised:
            interpreter.allocate_tensors()
    assert "SizeRefused" in str(raised.value)


def test_a_word_that_means_nothing():
    with pytest.raises(ValueError, match=r"quantized is one of .*'float'"):
        size_operator("SizeOfFloat", quantized="float")


# ---- what fails -----------------------------------------------------------------------------------------------------


@ow.operator
class Moody:
    r"""It fails where the first element says so.   .. math:: y = x"""

    x = ow.Input(dtypes=(ow.float32,))
    y = ow.Output(like="x")

    def compute(op, x):
        mood = int(x.flat[0])
        if mood == 1:
            raise KeyError("lost")
        if mood == 2:
            return x[:1]
        if mood == 3:
            return x.astype(np.int32)
        if mood == 4:
            x[0] = 7
        return None if mood == 5 else [x, x] if mood == 6 else x * 2


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("mood", "says"),
    [
        (1, "KeyError: 'lost'"),
        (2, "another dtype or shape"),
        (4, "writes its input 'x'"),
        (5, "dtype or shape"),
        (6, "dtype or shape"),
    ],
)
def test_a_method_that_fails(mood, says, compiled):
    x = np.zeros((3, 4), np.float32)
    content = model_of(lambda x: ow.exp(Moody(x + 0.0)), x)
    with flags.override(compiled=compiled, background=False):
        interpreter = lite.Interpreter(model_content=content, custom_ops=[Moody])
        answers(interpreter, x)
        bad = x.copy()
        bad[0, 0] = mood
        with pytest.raises(ow.errors.OpError, match=says) as raised:
            answers(interpreter, bad)
        assert "Moody" in str(raised.value)
        assert "Node number" in str(raised.value)
        (result,) = answers(interpreter, x + 10)
        np.testing.assert_allclose(result, np.exp((x + 10) * 2), 1e-5)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_failed_guard_and_a_run_after_it(compiled):
    x = f32(6)
    content = model_of(lambda x, p: TakenAt(ow.exp(x), p) + 1.0, x, PLACES)
    with flags.override(compiled=compiled, background=False):
        interpreter = lite.Interpreter(model_content=content, custom_ops=[TakenAt])
        for places in (np.array([0, 6, 1], np.int32), np.array([0, -1, 1], np.int32)):
            says = r"(?s)TakenAt.*outside of x.*Node number 1 \(TakenAt\)"
            with pytest.raises(ow.errors.OutOfRangeError, match=says):
                answers(interpreter, x, places)
            np.testing.assert_allclose(answers(interpreter, x, PLACES)[0], np.exp(x)[PLACES] + 1, 1e-5)


def test_a_kernel_that_cannot_be_staged():
    op = size_operator("SizeUnstaged", kernel=ow.kernel(lambda x: ow.cumsum(x)))
    x = f32(3, 3)
    content = model_of(lambda x: ow.exp(op(x)), x)
    with engine():
        interpreter = lite.Interpreter(model_content=content, custom_ops=[op])
        for _ in range(2):
            said = r"(?s)SizeUnstaged.*in its kernel, Cumsum.*Node number 0 \(SizeUnstaged\)"
            with pytest.raises(ow.errors.OpError, match=said):
                answers(interpreter, x)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:, ::2], lambda x: x.T], ids=["whole", "slice", "turned"])
def test_elements_that_compute_keeps(part, compiled):
    held: list[Any] = []

    @ow.operator
    class Keeping:
        r"""It keeps its input where that begins with 1.   .. math:: y = x"""

        x = ow.Input(dtypes=(ow.float32,))
        y = ow.Output(like="x")

        def compute(op, x):
            if x[0, 0] == 1:
                held.append(part(x))
            return x  # which is copied

    x = np.zeros((4, 6), np.float32)
    content = model_of(lambda x: ow.exp(Keeping(x + 0.0)), x)
    with flags.override(compiled=compiled, background=False):
        interpreter = lite.Interpreter(model_content=content, custom_ops=[Keeping])
        answers(interpreter, x)
        says = r"(?s)Keeping: compute keeps the elements .*Node number"
        with pytest.raises(ow.errors.FailedPreconditionError, match=says):
            answers(interpreter, x + 1)
        np.testing.assert_allclose(answers(interpreter, x + 2)[0], np.exp(x + 2), 1e-6)
        interpreter.close()
    assert not held[0].flags.writeable
    assert np.isfinite(held[0]).all()


def test_elements_that_invoke_keeps():
    held: list[Any] = []

    def prepare(context: Any, node: Any) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(context: Any, node: Any) -> None:
        node.outputs[0].data[...] = node.inputs[0].data
        if node.inputs[0].data[0] == 1:
            held.append(node.outputs[0].data[1:])
        if node.inputs[0].data[0] == 2:
            held.append(node.inputs[0])

    x = np.zeros(5, np.float32)
    content = model_of(lambda x: ow.exp(InNumPy(x + 0.0)), x)
    for compiled in (True, False):
        with flags.override(compiled=compiled, background=False):
            customs = {"InNumPy": lite.Registration(prepare=prepare, invoke=invoke)}
            interpreter = lite.Interpreter(model_content=content, custom_ops=customs)
            answers(interpreter, x)
            with pytest.raises(ow.errors.FailedPreconditionError, match=r"(?s)InNumPy: its method invoke keeps.*Node"):
                answers(interpreter, x + 1)
            answers(interpreter, x + 2)
            with pytest.raises(
                ow.errors.FailedPreconditionError, match=r"InNumPy: the elements of tensor .* are available only while"
            ):
                held[-1].data  # noqa: B018
            interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [7])
            np.testing.assert_allclose(answers(interpreter, np.zeros(7, np.float32))[0], np.ones(7), 1e-6)
            interpreter.close()


def test_a_cycle_is_not_kept():
    @ow.operator
    class Circular:
        r"""It leaves a circle of references behind.   .. math:: y = x"""

        x = ow.Input(dtypes=(ow.float32,))
        y = ow.Output(like="x")

        def compute(op, x):
            circle: list[Any] = [x]
            circle.append(circle)
            return x + 0

    x = f32(3)
    interpreter = lite.Interpreter(model_content=model_of(lambda x: Circular(x), x), custom_ops=[Circular])
    np.testing.assert_array_equal(answers(interpreter, x)[0], x)


@pytest.mark.parametrize("options", ["unknown", "damaged", "cut"])
def test_options_that_are_refused_are_reported_once(options):
    """By the error; the compiled engine, which saw them first, has nothing to add."""
    inputs = {"bogus": 3} if options == "unknown" else {"k": 3}
    content = bytearray(Build().custom("OnceTold", "x", "y", **inputs).done())
    raw = flexbuffers.encode_options({"k": 3})
    at = content.find(raw)
    if options != "unknown":
        content[at : at + len(raw)] = {"damaged": b"\xff" * len(raw), "cut": raw[:-1] + b"\0"}[options]

    @ow.operator(name="OnceTold")
    class OnceTold:
        """Multiples.  .. math:: y = k x"""

        x = ow.Input(ow.floating)
        y = ow.Output(like="x")
        k = ow.Attr(int, default=2)

        def compute(op, x):
            return x * op.k

    with engine(), warnings.catch_warnings():
        warnings.simplefilter("error")
        interpreter = lite.Interpreter(model_content=bytes(content), custom_ops=[OnceTold])
        with pytest.raises(RuntimeError, match="OnceTold"):
            interpreter.allocate_tensors()

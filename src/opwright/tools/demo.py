"""`opwright demo`: the main job, for real. Train, convert, refuse, define, run, compare, time.

Lives here: the steps and their checks.  Not here: anything but calls of the public API, as a user would write them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import opwright as ow

from .report import BadFile, notes, out, print_json

if TYPE_CHECKING:
    from ..lite.registration import Registration

X = [-8, 0.5, 2, 2.2, 201]
TARGETS = {
    "atan": [-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458],
    "sin": [-0.6569866, 0.99749499, 0.14112001, -0.05837414, 0.80641841],
}


@dataclass
class StepResult:
    """The result of one step, a row of the summary table."""

    step: str
    checked: str
    ok: bool
    seconds: float


class CheckFailed(Exception):
    """A step failed; the message has the result."""


def require(condition: bool, text: str) -> None:
    """Raise CheckFailed with `text` unless the condition holds."""
    if not condition:
        raise CheckFailed(text)


def train(name: str, steps: int) -> tuple[Any, Any]:
    """Fit y = op(x + offset); return the traced function and the variable."""
    operator = getattr(ow, name)
    offset = ow.Variable(0.0)
    y = TARGETS[name]

    @ow.function(input_signature=[ow.TensorSpec.from_tensor(ow.constant(X))])
    def model(x: Any) -> Any:
        return operator(x + offset, name=name.capitalize())

    optimizer = ow.optimizers.Adam(0.01)
    for _ in range(steps):
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(ow.square(model(X) - y))
        gradients = tape.gradient(loss, [offset])
        optimizer.apply_gradients(zip(gradients, [offset]))
    return model, offset


def convert(model: Any, allow_custom_ops: bool) -> bytes:
    """Return the .tflite file of a traced function."""
    converter = ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model)
    converter.allow_custom_ops = allow_custom_ops
    return converter.convert()


def refusal(action: Callable[[], Any]) -> str:
    """Return the message of the error that `action` must raise."""
    try:
        action()
    except Exception as error:
        return str(error)
    raise CheckFailed("nothing was refused")


@ow.operator
class Atan(ow.OperatorDefinition):
    """Inverse tangent, element by element.

    .. math:: y = \\arctan(x)
    """

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")

    def compute(op, x: np.ndarray) -> np.ndarray:
        y: np.ndarray = np.arctan(x)
        return y

    def gradient(op, dy: ow.Tensor) -> ow.Tensor:
        return dy / (1.0 + op.x * op.x)


def atan_registration() -> Registration:
    """Return the same operator as a Registration with two methods."""

    def prepare(context: Any, node: Any) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(context: Any, node: Any) -> None:
        np.arctan(node.inputs[0].data, out=node.outputs[0].data)

    return ow.lite.Registration(prepare=prepare, invoke=invoke)


def interpret(model: bytes, **how: Any) -> tuple[np.ndarray, float]:
    """Return the outputs for X, and the seconds of one call (median of 200)."""
    interpreter = ow.lite.Interpreter(model_content=model, **how)
    interpreter.allocate_tensors()
    source, result = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    interpreter.set_tensor(source, np.array(X, np.float32))
    times = []
    for _ in range(200):
        start = time.perf_counter()
        interpreter.invoke()
        times.append(time.perf_counter() - start)
    return interpreter.get_tensor(result), float(np.median(times))


def _steps(folder: Path, steps: int, console: Console) -> list[tuple[str, Callable[[], str]]]:
    """Return the steps in order; each returns a description of its check, or raises."""
    models: dict[str, Any] = {}
    offsets: dict[str, Any] = {}
    files: dict[str, bytes] = {}
    expected = {"atan": np.arctan, "sin": np.sin}

    def training(name: str) -> Callable[[], str]:
        def step() -> str:
            models[name], offsets[name] = train(name, steps)
            trained = float(offsets[name].numpy())
            console.print(f"The actual offset is: 1.0\nThe predicted offset is: {offsets[name].numpy()}")
            require(steps < 1000 or abs(trained - 1.0) < 5e-6, f"offset {trained}, wanted 1.0 to 5 digits")
            return f"offset {trained:.7f}, wanted 1.0"

        return step

    def refuse_conversion() -> str:
        text = refusal(lambda: convert(models["atan"], False))
        message = "error: 'tf.Atan' op is neither a custom op nor a flex op"
        require(message in text and "allow_custom_ops" in text, f"the error reads: {text}")
        return f"refused: {message}"

    def conversion(name: str) -> Callable[[], str]:
        def step() -> str:
            content = files[name] = convert(models[name], name == "atan")
            path = folder / f"{name}.tflite"
            model = ow.lite.Model.read(content)
            model.write(path)
            is_schema_3 = content[4:8] == b"TFL3" and model.version == 3
            require(is_schema_3, f"identifier {content[4:8]!r}, version {model.version}")
            require(path.read_bytes() == content or ow.lite.Model.read(path) == model, f"{path} reads back differently")
            custom = [c.custom_code for c in model.operator_codes if c.custom_code]
            require(custom == (["Atan"] if name == "atan" else []), f"custom operators {custom}")
            return f"{path}: {len(content)} bytes, TFL3, schema 3, custom operators {custom or 'none'}"

        return step

    def refuse_running() -> str:
        text = refusal(lambda: ow.lite.Interpreter(model_content=files["atan"]).allocate_tensors())
        message = "Encountered unresolved custom op: Atan."
        require(message in text, f"the error reads: {text}")
        return f"refused: {message}"

    def running(name: str, how: Callable[[], dict[str, Any]]) -> Callable[[], str]:
        def step() -> str:
            got, seconds = interpret(files[name], **how())
            reference = expected[name](np.array(X) + float(offsets[name].numpy()))
            error = float(np.abs(got - reference).max())
            require(error < 1e-6 * max(1.0, float(np.abs(X).max()) / 10), f"largest error {error:.2g} against NumPy")
            return f"largest error {error:.1e} against NumPy in float64; {seconds * 1e6:.1f} us a call"

        return step

    def resolver() -> dict[str, Any]:
        op_resolver = ow.lite.MutableOpResolver()
        op_resolver.add_all(ow.lite.BuiltinOpResolver())
        op_resolver.add_custom("Atan", atan_registration())
        return {"op_resolver": op_resolver}

    def gradient() -> str:
        x = ow.constant(X)
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = Atan(x)
        error = float(np.abs(tape.gradient(y, x).numpy() - 1 / (1 + np.square(X))).max())
        require(error < 1e-6, f"largest error {error:.2g} in the gradient")
        return f"gradient of the user's operator: largest error {error:.1e}"

    return [
        ("train atan", training("atan")),
        ("train sin", training("sin")),
        ("convert atan", refuse_conversion),
        ("convert atan, custom ops allowed", conversion("atan")),
        ("convert sin", conversion("sin")),
        ("interpret atan without the operator", refuse_running),
        ("define Atan with @ow.operator", gradient),
        ("interpret atan, custom_ops=[Atan]", running("atan", lambda: {"custom_ops": [Atan]})),
        ("interpret atan, Registration in a resolver", running("atan", resolver)),
        ("interpret sin, builtin", running("sin", dict)),
    ]


def run_demo(folder_name: str, steps: int = 1000, as_json: bool = False) -> bool:
    """Run every step, print the table; True if all checks hold."""
    folder = Path(folder_name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"{folder}: {error.strerror}") from error
    rows: list[StepResult] = []
    for name, step in _steps(folder, steps, notes() if as_json else out()):
        start = time.perf_counter()
        try:
            checked, ok = step(), True
        except Exception as error:  # a failed step must not hide the others
            checked, ok = f"{type(error).__name__}: {error}", False
        rows.append(StepResult(name, checked, ok, time.perf_counter() - start))
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        table = Table("step", "checked", "", "time", title="opwright demo")
        for row in rows:
            result = Text("ok", "green") if row.ok else Text("FAILED", "red")
            table.add_row(row.step, row.checked, result, f"{row.seconds * 1e3:.1f} ms")
        out().print(table)
    left = ", ".join(str(p) for p in sorted(folder.glob("*.tflite")))
    notes().print(f"files: {left or 'none'}")
    return all(row.ok for row in rows)

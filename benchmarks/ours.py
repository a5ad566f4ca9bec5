"""Our side of the rows, by the public API alone: `python -m benchmarks.ours ROW...`.

Lives here: one function for each row of rows.py, under the row's name.  Not here: timing (measure.py).
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure

FIVE = (-8.0, 0.5, 2.0, 2.2, 201.0)


def import_row() -> float:
    loaded = "import sys, opwright; sys.exit('the compiler is loaded at import' if 'llvmlite' in sys.modules else 0)"
    subprocess.run([sys.executable, "-c", loaded], check=True)
    return measure.import_seconds("opwright")


def import_whole() -> float:
    return measure.import_seconds("opwright", bare=False)


def _matrices() -> tuple[Any, Any, Any]:
    import numpy as np

    import opwright as ow

    rng = np.random.default_rng(0)
    x, w, b = (ow.constant(rng.standard_normal((4, 4), dtype=np.float32)) for _ in range(3))
    return x, w, b


def eager_add() -> Callable[[], object]:
    import opwright as ow

    x, y, _ = _matrices()
    return lambda: ow.add(x, y)


def traced_call() -> Callable[[], object]:
    import opwright as ow

    x, w, b = _matrices()

    @ow.function
    def layer(x, w, b):
        return ow.tanh(ow.add(ow.matmul(x, w), b))

    return lambda: layer(x, w, b)


def trace() -> Callable[[], object]:
    import opwright as ow

    def sixty(x, w):
        for _ in range(20):
            x = ow.tanh(ow.add(ow.matmul(x, w), w))
        return x

    spec = ow.TensorSpec([4, 4], ow.float32)
    return lambda: ow.function(sixty, autograph=False).get_concrete_function(spec, spec)


def tape_step() -> Callable[[], object]:
    import opwright as ow

    x, w, b = _matrices()

    def step() -> object:
        with ow.GradientTape() as tape:
            tape.watch(w)
            y = ow.tanh(ow.add(ow.matmul(x, w), b))
        return tape.gradient(y, w)

    return step


def _atan() -> Any:
    """A custom operator as its author would write it."""
    import numpy as np

    import opwright as ow

    @ow.operator
    class Atan:
        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return np.arctan(x)

    return Atan


def _converter(operator: Callable[[Any], Any]) -> Any:
    import opwright as ow

    offset = ow.Variable(0.0)

    @ow.function(input_signature=[ow.TensorSpec([5], ow.float32)])
    def model(x):
        return operator(x + offset)

    converter = ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model)
    converter.allow_custom_ops = True
    return converter


def convert() -> Callable[[], object]:
    operator = _atan()
    return lambda: _converter(operator).convert()


def interpreter() -> Callable[[], object]:
    import opwright as ow

    operator = _atan()
    model = _converter(operator).convert()

    def build() -> object:
        interpreter = ow.lite.Interpreter(model_content=model, custom_ops=[operator])
        interpreter.allocate_tensors()
        return interpreter

    return build


def sin_model() -> bytes:
    """The model that `invoke` runs, here and in the official run time."""
    import opwright as ow

    model: bytes = _converter(ow.sin).convert()
    return model


def invoke() -> Callable[[], object]:
    import numpy as np

    import opwright as ow

    interpreter = ow.lite.Interpreter(model_content=sin_model(), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array(FIVE, np.float32))
    invoke: Callable[[], object] = interpreter.invoke
    return invoke


def installed_size() -> float:
    """Bytes of this package and of what its requirements bring, transitively, without extras."""
    import opwright

    def size(files: Any) -> int:
        return sum(path.stat().st_size for path in files if path.is_file())

    total = size(Path(opwright.__file__).parent.rglob("*"))  # a checkout's metadata lists no sources
    for name in _requirements("opwright") - {"opwright"}:
        total += size(Path(str(file.locate())) for file in importlib.metadata.files(name) or ())
    return float(total)


def _requirements(name: str) -> set[str]:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: set[str] = set()
    pending = [name]
    while pending:
        name = canonicalize_name(pending.pop())
        if name not in found:
            found.add(name)
            needs = map(Requirement, importlib.metadata.requires(name) or ())
            pending += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


RUNS: dict[str, measure.Prepare] = {
    "import": import_row,
    "import_whole": import_whole,
    "eager_add": eager_add,
    "traced_call": traced_call,
    "trace": trace,
    "tape_step": tape_step,
    "convert": convert,
    "interpreter": interpreter,
    "invoke": invoke,
    "installed_size": installed_size,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--sin-model"]:
        sys.stdout.buffer.write(sin_model())
    else:
        measure.main(RUNS)

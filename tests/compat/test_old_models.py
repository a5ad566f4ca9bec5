"""Files that earlier versions wrote, and this one: loaded, run, differentiated; numbers by old_models.py's formulas.

Lives here: loading everything under models/VERSION.  Not here: what was saved (old_models.py, make_models.py).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from old_models import MODELS, soft_clip

import opwright as ow

pytestmark = pytest.mark.ours
FOLDER = Path(__file__).parent / "models"
VERSIONS = sorted(p.name for p in FOLDER.iterdir())
SAVED = [pytest.param(v, n, id=f"{v}-{n}") for v in VERSIONS for n in MODELS if (FOLDER / v / n).is_dir()]
LITE = [pytest.param(p, id=f"{p.parent.name}-{p.stem}") for p in sorted(FOLDER.glob("*/*.tflite"))]


def test_this_version_has_its_files() -> None:
    assert ow.__version__ in VERSIONS, "run python tests/compat/make_models.py"
    for name, case in MODELS.items():
        assert (FOLDER / ow.__version__ / name).is_dir()
        assert (FOLDER / ow.__version__ / f"{name}.tflite").is_file() == case.lite


@pytest.mark.parametrize("operator_version", [1, 2])
@pytest.mark.parametrize(("version", "name"), SAVED)
def test_saved_models(version: str, name: str, operator_version: int) -> None:
    """The user's operator is defined as it was when the file was written, or as it has grown since."""
    soft_clip(operator_version)
    case = MODELS[name]
    loaded = ow.saved_model.load(str(FOLDER / version / name))
    expected = case.wanted(*(np.float64(x) if x.dtype == np.float32 else x for x in case.inputs))
    np.testing.assert_allclose(loaded.run(*case.inputs), expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("operator_version", [1, 2])
@pytest.mark.parametrize("path", LITE)
def test_tflite_files(path: Path, operator_version: int) -> None:
    case = MODELS[path.stem]
    interpreter = ow.lite.Interpreter(str(path), custom_ops=[soft_clip(operator_version)])
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), case.inputs):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    expected = case.wanted(*(np.float64(x) if x.dtype == np.float32 else x for x in case.inputs))
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_else_saved_models_keep(version: str) -> None:
    control = ow.saved_model.load(str(FOLDER / version / "control"))
    for _ in range(3):
        control.run(np.float32([1.0]), 1)
    assert int(control.calls) == 3
    lists = ow.saved_model.load(str(FOLDER / version / "lists"))
    assert lists.join([b"a", b"bc"]).numpy() == b"A-BC"


@pytest.mark.parametrize("version", VERSIONS)
def test_gradients_through_saved_models(version: str) -> None:
    """d/dx of: the sum of running sums with a slope of 3 of its own; n turns of x/2 + 1 times 10; two soft clips."""
    x = ow.constant([1.5, 2.0, 0.25, 4.0])
    expected = {
        "lists": 3.0 * np.float64([4, 3, 2, 1]),
        "control": np.full(4, 10 * 0.5**5),
        "custom": (1 - np.tanh(x) ** 2) + 2 * (1 - np.tanh(np.float64(x) * 2 / 3) ** 2),
    }
    for operator_version in (1, 2):
        soft_clip(operator_version)
        for name, slope in expected.items():
            loaded = ow.saved_model.load(str(FOLDER / version / name))
            with ow.GradientTape() as tape:
                tape.watch(x)
                y = loaded.run(x, 5) if name == "control" else loaded.run(x)
            np.testing.assert_allclose(tape.gradient(y, x), slope, rtol=1e-5)


@pytest.mark.parametrize("version", VERSIONS)
def test_checkpoints(version: str) -> None:
    w, step = ow.Variable([0.0, 0.0]), ow.Variable(np.int64(0))
    ow.train.Checkpoint(w=w, step=step).read(str(FOLDER / version / "checkpoint" / "all")).assert_consumed()
    assert (w.numpy().tolist(), int(step)) == ([1.5, -2.0], 7)

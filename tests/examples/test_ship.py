"""examples/ship: libraries of a float and an int8 model in one C program, built with CMake; answers against NumPy."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

SHIP = Path(__file__).resolve().parent.parent.parent / "examples" / "ship"
SIDES = ("left", "right", "above", "below")


def scores(image):
    """The model's formula in float64: averages of 3 x 3 pixels at every second place, a product, softmax."""
    padded = np.zeros((17, 17))
    padded[:16, :16] = image  # SAME with stride 2: one row and column at the end
    smooth = np.array([[padded[2 * i : 2 * i + 3, 2 * j : 2 * j + 3].sum() / 9 for j in range(8)] for i in range(8)])
    y, x = np.mgrid[-1:1:8j, -1:1:8j]
    logits = np.array([4 * (smooth * side).sum() / 16 for side in (-x, x, -y, y)])
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def picture(side):
    image = np.full((16, 16), 0.1)
    middle = np.arange(16)
    bright = middle >= 11 if side % 2 else middle < 5
    image[(slice(None), bright) if side < 2 else bright] = 1
    return image


@pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("cc")), reason="needs cmake and cc")
def test_the_c_program_classifies_with_both_libraries(tmp_path):
    spec = importlib.util.spec_from_file_location("ship_models", SHIP / "models.py")
    models = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(models)
    models.main(str(tmp_path / "libraries"))
    build = tmp_path / "build"
    flags = "-DCMAKE_C_FLAGS=-Wall -Wextra -pedantic -Werror -std=c99"
    for command in (
        ["cmake", "-S", SHIP, "-B", build, f"-DLIBRARIES={tmp_path / 'libraries'}", flags],
        ["cmake", "--build", build, "--target", "classify"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert not done.returncode, done.stdout + done.stderr
    printed = subprocess.run([build / "classify"], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"(\w+): float (\w+) ([\d.]+), int8 (\w+) ([\d.]+)", printed)
    assert [line[0] for line in lines] == list(SIDES)
    for side, (_, exact, score, quantized, approximate) in enumerate(lines):
        expected = scores(picture(side))
        assert exact == quantized == SIDES[side] == SIDES[expected.argmax()]
        assert float(score) == pytest.approx(expected.max(), abs=6e-4)  # three places
        assert float(approximate) == pytest.approx(expected.max(), abs=0.05)
    absent = subprocess.run([build / "classify", tmp_path / "absent.pgm"], capture_output=True, text=True, check=False)
    assert absent.returncode == 1
    assert "absent.pgm" in absent.stderr

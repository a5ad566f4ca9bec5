"""examples/ship: libraries of a float and an int8 model in one C program, built with CMake, in a web page and in a
sketch; a training step on other processors; answers against NumPy."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path += [str(Path(__file__).resolve().parent.parent / name) for name in ("aot", "pages")]
from browser import Browser, served
from microcontrollers import BOARDS, run_on

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


def build_models(*args):
    spec = importlib.util.spec_from_file_location("ship_models", SHIP / "models.py")
    models = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(models)
    models.main(*args)


@pytest.mark.slow
def test_the_page_classifies_with_both_libraries(tmp_path):
    build_models(str(tmp_path / "libraries"), "wasm32-simd128")
    shutil.copy(SHIP / "page.html", tmp_path)
    with Browser() as browser, served(tmp_path) as address:
        browser.open(f"{address}/page.html#above")
        browser.wait(
            "document.querySelectorAll('#answers tr').length == 2 || document.getElementById('error').innerText"
        )
        assert browser.evaluate("document.getElementById('error').innerText") == ""
        for side in (2, 0, 1, 3):
            texts = browser.evaluate("Array.from(document.querySelectorAll('#answers td'), (cell) => cell.textContent)")
            expected = scores(picture(side)).max()
            assert [texts[:2], texts[4:6]] == [["float", SIDES[side]], ["int8", SIDES[side]]]
            assert float(texts[2]) == pytest.approx(expected, abs=6e-4)  # three places
            assert float(texts[6]) == pytest.approx(expected, abs=0.05)
            following = {2: 0, 0: 1, 1: 3, 3: 2}[side]
            browser.evaluate(f"document.querySelectorAll('button')[{following}].click()")


ARDUINO = """
#include <cstddef>
#include <cstdint>
#include <cstdio>
struct {
  void begin(long) {}
  bool available() { int c = std::getchar(); std::ungetc(c, stdin); return c != EOF; }
  int read() { return std::getchar(); }
  void print(const char *text) { std::printf("%s", text); }
  void println(double x) { std::printf("%.3f\\n", x); }
} Serial;
"""


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("g++") and shutil.which("gcc")), reason="needs cc: gcc and g++")
def test_the_sketch_classifies(tmp_path):
    """Arduino compiles a sketch as C++ after Arduino.h, and all sources in src of its libraries."""
    build_models(str(tmp_path), "host", "arduino")
    source = tmp_path / "shapes_int8" / "src"
    sketch = (SHIP / "classify" / "classify.ino").read_text()
    (tmp_path / "main.cpp").write_text(f"{ARDUINO}{sketch}int main() {{ setup(); loop(); }}\n")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", f"-I{source}"]
    objects = [tmp_path / f"{path.stem}.o" for path in source.glob("*.c")]
    for path in objects:
        subprocess.run(["gcc", "-c", *flags, source / f"{path.stem}.c", "-o", path], check=True)
    subprocess.run(["g++", *flags, tmp_path / "main.cpp", *objects, "-lm", "-o", tmp_path / "sketch"], check=True)
    sides = (3, 0, 2)
    serial = b"".join(np.rint(255 * picture(side)).astype(np.uint8).tobytes() for side in sides)
    done = subprocess.run([tmp_path / "sketch"], input=serial, capture_output=True, check=True)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    assert len(lines) == 4 + len(sides)
    for side, (name, score) in zip((0, 1, 2, 3, *sides), lines, strict=True):
        assert name == SIDES[side]
        assert float(score) == pytest.approx(scores(picture(side)).max(), abs=0.05)


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("cc")), reason="needs cmake and cc")
def test_the_c_program_classifies_with_both_libraries(tmp_path):
    build_models(str(tmp_path / "libraries"))
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


def descent():
    """The losses of every twentieth step, and what the fitted function returns, in float64."""
    x = np.array([-8, 0.5, 2, 2.2, 201])
    y = np.array([-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458])
    offset, losses = 0.0, []
    for _ in range(200):
        error = np.arctan(x + offset) - y
        losses.append((error**2).mean())
        offset -= 0.5 * (2 * error / (1 + (x + offset) ** 2)).mean()
    return losses[::20], np.arctan(x + offset)


def trained_on(machine, folder):
    """The numbers that train.c prints on this machine, or on an emulated one."""
    spec = importlib.util.spec_from_file_location("ship_training", SHIP / "training.py")
    training = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(training)
    training.main(str(folder), machine)
    library = folder / "atan" / "libatan.a"
    if machine == "cortex-m7":
        shutil.copy(folder / "atan" / "atan.h", folder)
        words = run_on(BOARDS[machine], folder, [SHIP / "train.c", library], "-O1 -DBOARD")
        return np.array(words, np.int32).view(np.float32)
    compiler, emulator = ("cc", []) if machine == "host" else ("aarch64-linux-gnu-gcc", ["qemu-aarch64"])
    warnings = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    program = folder / "train"
    command = [compiler, *warnings, "-static", SHIP / "train.c", f"-I{library.parent}", library, "-lm", "-o", program]
    subprocess.run(command, check=True, capture_output=True)
    return np.array(
        subprocess.run([*emulator, program], check=True, capture_output=True, text=True).stdout.split(), float
    )


TOOLS = {
    "host": ("cc",),
    "aarch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
    "cortex-m7": ("arm-none-eabi-gcc", "qemu-system-arm"),
}


@pytest.mark.parametrize("machine", [pytest.param(m, marks=() if m == "host" else pytest.mark.slow) for m in TOOLS])
def test_the_training_program_fits_the_offset(machine, tmp_path):
    missing = [tool for tool in TOOLS[machine] if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
    losses, fitted = descent()
    printed = trained_on(machine, tmp_path)
    np.testing.assert_allclose(printed[:10], losses, rtol=2e-3)  # errors of float32 near the end of the descent
    np.testing.assert_allclose(printed[10:], fitted, rtol=1e-6)

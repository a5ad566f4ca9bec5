"""Models as C11: no warnings, no undefined behaviour, the interpreter's integers; folders of build systems."""

import ctypes
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from built_singles import build_single
from microcontrollers import BOARDS, keyword_model, missing_tools, program_of, run_on

import opwright as ow
from opwright import aot
from opwright.core.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks import single_operators

from thorough import sampled

has_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror"]


def compiled(folder, compiler="gcc", flags=("-O2",)):
    """The shared library of NAME.c, with floats as the source computes them."""
    sources = sorted(p for p in folder.glob("*.c") if p.name != "main.c")
    out = folder / "library.so"
    command = [
        *compiler.split(),
        *WARNINGS,
        *flags,
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        *sources,
        "-lm",
        "-o",
        out,
    ]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:3000]
    return ctypes.CDLL(str(out))


def outputs_of(folder, library, feeds, runs=1, status=0):
    """The outputs of a library of one signature: like `aot.load`, of C. status: that runs return."""
    notes = json.loads(next(folder.glob("*.json")).read_text())
    (signature,) = notes["signatures"]
    inputs = [np.ascontiguousarray(x) for x in feeds]
    outputs = [np.zeros(t["shape"], ow.as_dtype(t["dtype"]).as_numpy_dtype) for t in signature["outputs"]]
    arena, state = (np.zeros(notes[k] + 128, np.uint8) for k in ("arena", "state"))
    places = [-(-a.ctypes.data // 64) * 64 for a in (arena, state)]
    both = [(ctypes.c_size_t * (len(xs) + 32))(*(x.ctypes.data for x in xs)) for xs in (inputs, outputs)]
    function = getattr(library, signature["function"])
    states = [ctypes.c_void_p(places[1])] if notes["state"] else []
    if states:
        getattr(library, f"{notes['name']}_reset")(*states)
    for _ in range(runs):
        returned = function(*both, *states, ctypes.c_void_p(places[0]), ctypes.c_size_t(notes["arena"]))
        assert returned == status
    extents = list(both[1][len(outputs) :])
    shapes = [
        tuple(extents.pop(0) for _ in a.shape) if t["varies"] else a.shape
        for t, a in zip(signature["outputs"], outputs)
    ]
    return [a.reshape(-1)[: np.prod(shape, dtype=int)].reshape(shape) for a, shape in zip(outputs, shapes)]


def interpreted(content, feeds, runs=1):
    interpreter = single_operators.ready(ow.lite.Interpreter(model_content=content), feeds)
    for _ in range(runs - 1):
        interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def check(actual, expected, name=""):
    for a, b in zip(actual, expected, strict=True):
        if b.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b, err_msg=name)
        else:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.fixture(scope="module")
def model():
    return keyword_model()


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(7).integers(-128, 128, (1, 49, 10, 1), np.int8)


@pytest.mark.slow
@has_gcc
def test_the_keyword_model_in_c_computes_the_same_integers(model, features, tmp_path):
    aot.build(model, out=tmp_path, name="kws", format="c")
    check(outputs_of(tmp_path, compiled(tmp_path), [features]), interpreted(model, [features]))
    (tmp_path / "features.bin").write_bytes(features.tobytes())
    sanitized = ["-O1", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]
    sources = [tmp_path / name for name in ("main.c", "kws.c", "kws_weights.c")]
    program = tmp_path / "kws"
    subprocess.run(["gcc", *WARNINGS, *sanitized, *sources, "-lm", "-o", program], check=True)
    printed = subprocess.run([program, tmp_path / "features.bin"], check=True, capture_output=True, text=True).stdout
    (scores,) = interpreted(model, [features])
    assert [int(x) for x in printed.split()[1:]] == scores.reshape(-1)[:10].tolist()


@has_gcc
@pytest.mark.parametrize(
    "operator", sampled(["SVDF INT8", "SOFTMAX FLOAT32", "RFFT2D", "GATHER INT32", "TFLite_Detection_PostProcess"], 3)
)
def test_operators_in_c(operator, tmp_path):
    single = next(single_operators.singles(operator))
    aot.build(single.content, out=tmp_path, name="one", format="c")
    check(outputs_of(tmp_path, compiled(tmp_path), single.feeds, 2), interpreted(single.content, single.feeds, 2))


@pytest.mark.slow
@has_gcc
@pytest.mark.parametrize("part", range(24))
def test_every_builtin_in_c_or_refused_by_name(part, tmp_path):
    count = 0
    for i, single in enumerate(itertools.islice(single_operators.singles(), part, None, 24)):
        folder = tmp_path / str(i)
        try:
            expected = interpreted(single.content, single.feeds)
        except OpError:
            continue  # a model of an operator's errors
        try:
            build_single(single, out=folder, name="one", format="c")
        except UnimplementedError:
            continue
        check(outputs_of(folder, compiled(folder, flags=("-O1",)), single.feeds), expected, single.name)
        count += 1
    assert count >= 10


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_tools), reason=f"needs {', '.join(missing_tools)}")
def test_c_runs_on_a_board(model, features, tmp_path):
    aot.build(model, out=tmp_path, name="kws", format="c")
    (scores,) = interpreted(model, [features])
    (tmp_path / "program.c").write_text(program_of("kws", {"features": features}, {"scores": scores.size}))
    sources = [tmp_path / name for name in ("program.c", "kws.c", "kws_weights.c")]
    status, ticks, *printed = run_on(BOARDS["cortex-m4"], tmp_path, sources, "-O3 -std=gnu11")
    assert int(status) == 0
    assert 40 * int(ticks) < 30_000_000
    np.testing.assert_array_equal(np.array(printed, int), scores.reshape(-1))


ARDUINO = """
#include <cstddef>
#include <cstdint>
#include <cstdio>
struct Printer {
  void begin(long) {}
  void print(const char *text) { std::printf("%s", text); }
  void print(double x) { std::printf("%g", x); }
  void println(int x) { std::printf("%d\\n", x); }
  void println() { std::printf("\\n"); }
} Serial;
void delay(int) {}
"""


@has_gcc
def test_the_folder_of_arduino_has_a_library_and_a_sketch(model, tmp_path):
    """Arduino compiles a sketch as C++ after Arduino.h, and all sources in src."""
    library = aot.build(model, out=tmp_path, name="kws", format="arduino")
    assert {"library.properties", "src/kws.c", "src/kws.h", "examples/kws/kws.ino"} <= {*library.files}
    properties = dict(line.split("=", 1) for line in (tmp_path / "library.properties").read_text().splitlines())
    assert {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url"} <= {*properties}
    sketch = (tmp_path / "examples/kws/kws.ino").read_text()
    (tmp_path / "main.cpp").write_text(f"{ARDUINO}{sketch}int main() {{ setup(); loop(); }}\n")
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{tmp_path}/src"]
    for source in ("kws", "kws_weights"):
        object_file = tmp_path / f"{source}.o"
        subprocess.run(["gcc", "-c", *flags, tmp_path / "src" / f"{source}.c", "-o", object_file], check=True)
    objects = [tmp_path / "kws.o", tmp_path / "kws_weights.o"]
    subprocess.run(["g++", *flags, tmp_path / "main.cpp", *objects, "-lm", "-o", tmp_path / "sketch"], check=True)
    printed = subprocess.run([tmp_path / "sketch"], check=True, capture_output=True, text=True).stdout
    (scores,) = interpreted(model, [np.zeros((1, 49, 10, 1), np.int8)])
    assert printed.startswith("status 0\n")
    assert [int(x) for x in printed.split()[3:]] == scores.reshape(-1)[:10].tolist()


FUNCTIONS = """
cmake_minimum_required(VERSION 3.13)
function(idf_component_register)
  cmake_parse_arguments(A "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  add_library(component STATIC)
  foreach(source ${A_SRCS})
    target_sources(component PRIVATE "${FOLDER}/${source}")
  endforeach()
  target_include_directories(component PRIVATE "${FOLDER}/${A_INCLUDE_DIRS}")
endfunction()
function(zephyr_include_directories folder)
  include_directories("${FOLDER}/${folder}")
endfunction()
function(zephyr_library_named name)
  add_library(component STATIC)
endfunction()
function(zephyr_library_sources)
  foreach(source ${ARGN})
    target_sources(component PRIVATE "${FOLDER}/${source}")
  endforeach()
endfunction()
"""


@pytest.mark.slow
@has_gcc
@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
@pytest.mark.parametrize("system", ["esp-idf", "zephyr"])
def test_folders_are_components_of_their_build_systems(system, model, tmp_path):
    """The functions of these build systems that the folder calls, by plain CMake."""
    folder, build = tmp_path / "kws", tmp_path / "out"
    library = aot.build(model, out=folder, name="kws", format=system)
    expected = {"esp-idf": {"idf_component.yml"}, "zephyr": {"zephyr/module.yml", "Kconfig"}}
    assert expected[system] | {"include/kws.h", "kws.c"} <= {*library.files}
    text = (
        f'{FUNCTIONS}project(check C)\nset(FOLDER "{folder}")\nset(CONFIG_KWS y)\ninclude("{folder}/CMakeLists.txt")\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(text)
    subprocess.run(["cmake", "-S", tmp_path, "-B", build], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    assert list(build.glob("libcomponent.a"))


def test_mistakes_of_source_formats_are_named(model, tmp_path):
    with pytest.raises(InvalidArgumentError, match="C for any processor"):
        aot.build(model, "cortex-m4", tmp_path, format="c")
    aot.build(model, out=tmp_path, name="kws", format="zephyr")
    with pytest.raises(NotFoundError, match="C source"):
        aot.load(tmp_path)

"""Life cycles of the worked examples in a native program: nothing is kept, nothing read or written out of place.

The program (examples/life_cycles.c) is a small run time around the provider. Quick runs count what the provider gave
out; slow ones run 10,000 cycles of every example under valgrind, and under the compiler's sanitizers.
"""

from __future__ import annotations

import ctypes
import gc
import pathlib
import shutil
import subprocess

import flatbuffers.flexbuffers as official_flexbuffers
import numpy as np
import pytest
from abi_kit import SANITIZED, needs_compiler, program_of
from native_kit import run, single

from opwright import lite
from opwright.lite.native import toolchain
from thorough import sampled

HERE = pathlib.Path(__file__).parent
SECOND = np.array([1, 0, 9, 4], np.float64)  # what a cycle's last run computes on
OPTIONS = bytes(official_flexbuffers.Dumps({"alpha": 2.5, "beta": -1.0}))
CYCLES = HERE / "examples" / "life_cycles.c"

EXAMPLES = [  # source, function, the last answer, where it ends
    ("atan_opaque.c", "AtanOpRegistrationExternal", np.arctan(SECOND)),
    ("atan_opaque.c", "AtanOpRegistration", np.arctan(SECOND)),
    ("atan_opaque.cc", "_ZN7atan_op18AtanOpRegistrationEv", np.arctan(SECOND)),
    ("sin_struct.c", "Register_SIN", np.sin(SECOND)),
    ("sin_struct.cc", "_Z12Register_SINv", np.sin(SECOND)),
    ("affine_opaque.c", "AffineOperator", 2.5 * SECOND - 1),
    ("affine_struct.cc", "_ZN6tflite3ops6custom21Register_MY_CUSTOM_OPEv", 2.5 * SECOND - 1),
    ("normalize_opaque.c", "NormalizeOperator", SECOND / 14),
    ("normalize_struct.cc", "Register_NORMALIZE", SECOND / 14),
    ("nonzero_opaque.c", "NonZeroOperator", np.flatnonzero(SECOND)),
    ("nonzero_struct.cc", "_Z16Register_NONZEROv", np.flatnonzero(SECOND)),
    ("refuses.c", "TraceOperator", "a trace"),
    ("refuses.c", "Register_ROOT", "element 0 is -8, below 0"),
]

pytestmark = needs_compiler


def libraries(**more):
    return {name: toolchain.build_library([HERE / "examples" / name], **more) for name in {row[0] for row in EXAMPLES}}


def live(program, library, entry, expected, cycles, *before):
    """Run the program; check what it says."""
    type_ = "i" if isinstance(expected, np.ndarray) and expected.dtype.kind == "i" else "f"
    options = OPTIONS.hex() if "ffine" in entry or "MY_CUSTOM" in entry else "-"
    command = [*before, str(program), str(library), entry, options, str(cycles), type_]
    environment = {"ASAN_OPTIONS": "detect_leaks=1:detect_odr_violation=0", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=environment)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr[:6000]}"
    said = dict(line.split(" ", 1) if " " in line else (line, "") for line in done.stdout.splitlines())
    assert said["kept"] == "0"
    if isinstance(expected, str):
        assert "1" in said["statuses"].split()
        assert "0" in said["statuses"].split() if "below" in expected else "output" not in said
        return
    assert said["statuses"] == "0 0 0 0 0"
    np.testing.assert_allclose([float(v) for v in said["output"].split()], expected, rtol=2e-7)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return program_of(CYCLES, tmp_path_factory.mktemp("cycles"), "-g", "-O1"), libraries()


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    try:
        program = program_of(CYCLES, tmp_path_factory.mktemp("sanitized"), *SANITIZED)
        return program, libraries(flags=SANITIZED, link_flags=SANITIZED)
    except subprocess.CalledProcessError as error:
        return pytest.skip(f"no sanitizers here: {error.stderr[:200]!r}")


@pytest.mark.slow
@pytest.mark.parametrize(("source", "entry", "expected"), EXAMPLES, ids=lambda v: v if isinstance(v, str) else "")
def test_ten_thousand_life_cycles_keep_nothing(plain, source, entry, expected):
    program, built = plain
    live(program, built[source], entry, expected, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "entry", "expected"), EXAMPLES, ids=lambda v: v if isinstance(v, str) else "")
def test_valgrind_finds_nothing_in_ten_thousand_life_cycles(plain, source, entry, expected):
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("no valgrind here")
    program, built = plain
    # Operators are made once and kept on purpose: reachable to the end, unlike what is lost.
    live(
        program,
        built[source],
        entry,
        expected,
        10_000,
        valgrind,
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite,indirect,possible",
        "-q",
    )


@pytest.mark.slow
@pytest.mark.parametrize(("source", "entry", "expected"), EXAMPLES, ids=lambda v: v if isinstance(v, str) else "")
def test_sanitizers_find_nothing_in_ten_thousand_life_cycles(sanitized, source, entry, expected):
    program, built = sanitized
    live(program, built[source], entry, expected, 10_000)


# --- the same from Python --------------------------------------------------------------------------------------------


def one_life(content, ops, xs):
    """An interpreter from its making to its end, resized on the way; the last answer."""
    interpreter = lite.Interpreter(model_content=content, custom_ops=ops)
    index = interpreter.get_input_details()[0]["index"]
    for x in xs:
        interpreter.resize_tensor_input(index, x.shape)
        interpreter.allocate_tensors()
        y = run(interpreter, x)
    return y


FROM_PYTHON = [
    ("affine_opaque.c", "Affine", "AffineOperator", "FLOAT32", {"alpha": 2.5, "beta": -1.0}),
    ("normalize_opaque.c", "Normalize", "NormalizeOperator", "FLOAT32", {}),
    ("normalize_struct.cc", "Normalize", "Register_NORMALIZE", "FLOAT32", {}),
    ("nonzero_opaque.c", "NonZero", "NonZeroOperator", "INT32", {}),
]


@pytest.mark.timeout(1800)  # 10,000 take 40 s, and more where others work too
@pytest.mark.parametrize("cycles", [40, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("source", "name", "entry", "type_", "options"), sampled(FROM_PYTHON), ids=lambda v: str(v)[:12]
)
def test_life_cycles_from_python_keep_nothing(source, name, entry, type_, options, cycles):
    blocks = toolchain.provider().ow_blocks
    blocks.restype = ctypes.c_int64
    ops = lite.build_custom_ops([HERE / "examples" / source], {name: entry})
    content = single(name, (6,), types=("FLOAT32", type_), **options)
    xs = np.float32([-8, 0.5, 2, 2.25, 0, -0.25]), SECOND.astype(np.float32)
    for _ in range(min(cycles, 500)):  # what is made once, and a collector's first rounds
        one_life(content, ops, xs)
    gc.collect()
    before, memory = blocks(), resident()
    for i in range(cycles):
        one_life(content, ops, xs)
        if i % 250 == 0:  # interpreters wait for the collector, which comes the later the more objects a process has
            gc.collect()
    gc.collect()
    assert blocks() == before
    assert resident() - memory < 24 << 20  # 10,000 times the smallest tensor's bookkeeping would be more


def resident():
    """Return the resident memory of this process in bytes; 0 where the system does not report it."""
    status = pathlib.Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0

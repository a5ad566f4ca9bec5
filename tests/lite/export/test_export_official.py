"""Exported operators in the unmodified official interpreter: the same answers.

Its wheel exports no function by which an operator could be added, but hands its resolver's address to Python
(`custom_op_registerers`). There the entry of the virtual table that finds custom operators is replaced, in a process of
its own. The struct API needs no symbol of a run time; the opaque one finds its functions in a small library of
the test's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from export_kit import Clip, Escape, Pair, floats, model_of, needs_gcc, run
from test_export_arrays import Norm

import opwright as ow
from thorough import crossed

pytest.importorskip("ai_edge_litert")
pytestmark = [needs_gcc, pytest.mark.skipif(sys.platform != "linux", reason="the layout of its resolver is Linux's")]

PROVIDER = Path(__file__).parent / "official_provider.c"
PROGRAM = """
import ctypes, json, sys
import numpy as np
from ai_edge_litert.interpreter import InterpreterWithCustomOps

library, entry, name, model, inputs, out, provider = sys.argv[1:]
if provider:
    ctypes.CDLL(provider, mode=ctypes.RTLD_GLOBAL)
make = getattr(ctypes.CDLL(library), entry)
make.restype = ctypes.c_void_p
FIND = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
SLOTS, BEFORE = 12, 2  # more than the virtual functions there are; what lies before the first
kept = []

def register(resolver):
    table = ctypes.cast(resolver, ctypes.POINTER(ctypes.c_void_p))
    old = ctypes.cast(table[0], ctypes.POINTER(ctypes.c_void_p))
    theirs = FIND(old[1])
    ours = FIND(lambda this, op, version: make() if op == name.encode() else theirs(this, op, version))
    new = (ctypes.c_void_p * (SLOTS + BEFORE))(*(old[i - BEFORE] for i in range(SLOTS + BEFORE)))
    new[BEFORE + 1] = ctypes.cast(ours, ctypes.c_void_p).value
    table[0] = ctypes.addressof(new) + BEFORE * 8
    kept.extend((ours, new))

interpreter = InterpreterWithCustomOps(custom_op_registerers=[register], model_path=model)
try:
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), np.load(inputs).values()):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    np.save(out, interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
except RuntimeError as error:
    print(json.dumps(str(error)))
"""


def official(folder: Path, op, api, model, *arrays):
    """Return the results of the official interpreter, or its error message."""
    from opwright.lite.native.toolchain import build_library

    header, source, _ = ow.export_c(op, folder, api=api)
    library = build_library([source], flags=["-O1", "-march=native"], link_flags=["-lm"])
    (folder / "model.tflite").write_bytes(model)
    np.savez(folder / "inputs.npz", *arrays)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM,
            str(library),
            f"{header.stem}OpRegistration",
            op.name,
            str(folder / "model.tflite"),
            str(folder / "inputs.npz"),
            str(folder / "out.npy"),
            "" if api == "struct" else str(build_library([PROVIDER])),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else np.load(folder / "out.npy")


@pytest.mark.parametrize(("case", "api"), crossed(["clip", "escape", "atan2", "norm"], ["struct", "opaque"], every=4))
def test_the_official_interpreter_gives_the_same(case, api, tmp_path):
    x = floats(np.float32).reshape(4, -1)
    grid = np.linspace(-2, 1, 9, dtype=np.float32), np.linspace(-1, 1, 5, dtype=np.float32)[:, None]
    op, arrays, attrs = {
        "clip": (Clip, (x,), {"alpha": 0.3}),
        "escape": (Escape, grid, {"limit": 50}),
        "norm": (Norm, (grid[1] * grid[0], grid[0]), {"epsilon": 0.25}),
        "atan2": (Pair, (x, x[::-1]), {"which": "atan2"}),
    }[case]
    model = model_of(op, *arrays, **attrs)
    result = official(tmp_path, op, api, model, *arrays)
    assert not isinstance(result, str), result
    np.testing.assert_array_equal(result, run(model, [op], *arrays))


def test_its_own_words_come_out_of_the_official_interpreter(tmp_path):
    from test_export_refusals import with_options

    from opwright.lite.format.flexbuffers import encode_options

    x = np.ones(3, np.float32)
    for options, words in (
        ({"alpha": -1.0}, "ExportedClip: attribute 'alpha' is out of its range: at least 0.0"),
        ({"_version": 3}, "the node has version 3 of the operator, this is version 2"),
    ):
        result = official(tmp_path, Clip, "struct", with_options(Clip, encode_options(options), x), x)
        assert isinstance(result, str)
        assert words in result

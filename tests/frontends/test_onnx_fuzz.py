"""Damaged ONNX files: mutants of the bytes of small models are read, or are an error by name; mutants of the places of
external data are read where they lie in the model's folder, and open no other file.

`python tests/frontends/test_onnx_fuzz.py 10000` tries more places, fuzz_files.py more bytes (`make fuzz`).
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import fuzz_files
import numpy as np
import pytest

import opwright as ow
from replaced_files import replace_file

onnx = pytest.importorskip("onnx")
contrib = pytest.importorskip("record_contrib_operators")


def findings(numbers):
    """Return the cases that raise another error than an OpError, or take too long."""
    models, wrong = fuzz_files.onnx_seeds(), {}
    for number in numbers:
        start = time.process_time()
        draw = random.Random(number)
        try:
            ow.from_onnx(fuzz_files.damaged(draw.choice(models), draw))
        except ow.errors.OpError:
            pass
        except Exception as error:
            wrong[number] = f"{type(error).__name__}: {error}"[:200]
        if time.process_time() - start > fuzz_files.MOST_SECONDS:
            wrong[number] = "too long"
    return wrong


# ---- external data ---------------------------------------------------------------------------------------------------

WEIGHTS = np.arange(48, dtype=np.float32)
LOCATIONS = [
    "w.bin",
    "inner/w.bin",
    "./w.bin",
    "inner/../w.bin",
    "../w.bin",
    "../../w.bin",
    "inner/../../w.bin",
    "link.bin",
    "loop.bin",
    "up/w.bin",
    "fifo",
    ".",
    "inner",
    "gone.bin",
    "~/w.bin",
    "$HOME/w.bin",
    "file:w.bin",
    "..\\\\w.bin",
    "w.bin/",
    "W.BIN",
    "%2e%2e/w.bin",
    "//w.bin",
]
NUMBERS = [
    "0",
    "4",
    "64",
    "96",
    "191",
    "192",
    "193",
    "-1",
    "-64",
    "1e2",
    "0x40",
    "1_0",
    "4.0",
    "+4",
    "999999999999999999999",
    "18446744073709551552",
    "-9223372036854775808",
]


@contextlib.contextmanager
def opened():
    """Return a list of the paths that Python opens inside of the context, as the interpreter's audit reports them."""
    paths = []
    _LISTENERS.append(paths)
    try:
        yield paths
    finally:
        _LISTENERS.remove(paths)


_LISTENERS = []


def _audit(event, arguments):
    if event == "open" and _LISTENERS and isinstance(arguments[0], (str, bytes, os.PathLike)):
        for listener in _LISTENERS:
            listener.append(os.fsdecode(arguments[0]))


sys.addaudithook(_audit)


def model_folder(root):
    """Create a model's folder with files, links and a pipe; next to it are files that no model may read."""
    folder = root / "model"
    (folder / "inner").mkdir(parents=True)
    for place in (folder, folder / "inner", root):
        (place / "w.bin").write_bytes(WEIGHTS.tobytes())
    (folder / "link.bin").symlink_to(root / "w.bin")
    (folder / "loop.bin").symlink_to(folder / "loop.bin")
    (folder / "up").symlink_to(root)
    os.mkfifo(folder / "fifo")
    return folder


def external_model(number, root):
    """Return a model whose only weights lie where a case says, and the entries of that place."""
    draw = random.Random(number)
    outside = [str(root / "w.bin"), "/etc/passwd", "/proc/self/environ", "", "w.bin\0", "a" * 5000]
    entries = {"location": draw.choice([*LOCATIONS, *outside] if draw.random() < 0.6 else ["w.bin", "inner/w.bin"])}
    for key in ("offset", "length"):
        if draw.random() < 0.6:
            entries[key] = draw.choice([*NUMBERS, "", "64", "word", "9" * 5000])
    size = draw.choice((0, 1, 16, 24, 48, 1 << 40))
    if draw.random() < 0.3:  # most likely what a file has
        size = draw.choice((1, 16, 24))
        entries = {"location": entries["location"], "offset": draw.choice(NUMBERS[:5]), "length": str(4 * size)}
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[size], data_location=1)
    if draw.random() < 0.1:
        tensor.raw_data = WEIGHTS.tobytes()
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    helper = onnx.helper
    result = helper.make_tensor_value_info("y", 1, [size])
    inside = draw.random() < 0.3  # as an attribute
    nodes = [helper.make_node("Constant", [], ["w"], value=tensor)] if inside else []
    nodes.append(helper.make_node("Identity", ["w"], ["y"]))
    graph = helper.make_graph(nodes, "g", [], [result], [] if inside else [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), entries, size


def external_findings(numbers, root):
    """Return the cases with another error, other values than the file's, or a file opened outside of the folder; and
    how many were read."""
    folder, wrong, read = model_folder(root), {}, 0
    path = folder / "m.onnx"
    for number in numbers:
        model, entries, size = external_model(number, root)
        replace_file(path, model.SerializeToString())
        values = None
        with opened() as paths:
            try:
                values = ow.from_onnx(path)().numpy()
            except ow.errors.OpError:
                pass
            except Exception as error:
                wrong[number] = f"{entries}: {type(error).__name__}: {error}"[:200]
        inside = str(folder.resolve()) + os.sep
        files = [p for p in paths if os.path.realpath(p).startswith(str(root.resolve())) or p in entries["location"]]
        if any(not os.path.realpath(p).startswith(inside) for p in files):
            wrong[number] = f"{entries}: opened {files}"
        if values is not None:
            read += 1
            start = int(entries.get("offset") or 0)
            content = (folder / entries["location"]).read_bytes()[start:]
            if values.tobytes() != content[: int(entries.get("length") or len(content))] or values.shape != (size,):
                wrong[number] = f"{entries}: other values than the file's"
    return wrong, read


def test_places_of_external_data(tmp_path):
    with opened() as paths:
        (tmp_path / "seen").write_bytes(b"")
    assert str(tmp_path / "seen") in paths  # the audit works
    wrong, read = external_findings(range(300), tmp_path)
    assert wrong == {}
    assert read > 10


@pytest.mark.filterwarnings("ignore")
def test_mutants_are_errors_by_name():
    assert findings(range(300)) == {}


def test_texts_that_are_not_utf_8():
    model, _ = contrib.model_of("rotary")
    content = model.SerializeToString().replace(b"RotaryEmbedding", b"Rotary\xffmbedding")
    with pytest.raises(ow.errors.InvalidArgumentError, match="not UTF-8"):
        ow.from_onnx(content)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        failures, _ = external_findings(range(int(sys.argv[1])), Path(root))
    print(*(f"{number}: {text}" for number, text in failures.items()), sep="\n")
    sys.exit(bool(failures))

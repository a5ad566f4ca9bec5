"""Files of arrays that commands take: what is read; damaged files are errors of the file, whatever their bytes."""

import io
import json

import distribute_kit as kit
import numpy as np
import pytest
from tools_harness import opwright, result_of

from opwright.tools.array_files import read_array, read_arrays
from opwright.tools.report import BadFile
from thorough import examples

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def written(save, *arrays, **named):
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


FILES = {
    "array": written(np.save, X),
    "archive": written(np.savez, x=X, y=X[0]),
    "compressed": written(np.savez_compressed, x=X, y=X[0]),
}


@pytest.mark.parametrize("name", ["archive", "compressed"])
def test_arrays_are_read_by_name_whatever_the_file_is_called(tmp_path, name):
    (tmp_path / "x").write_bytes(FILES[name])
    arrays = read_arrays(str(tmp_path / "x"))
    assert list(arrays) == ["x", "y"]
    np.testing.assert_array_equal(arrays["x"], X)
    np.testing.assert_array_equal(arrays["y"], X[0])
    with pytest.raises(BadFile, match="several arrays"):
        read_array(str(tmp_path / "x"))


def test_a_single_array_is_read(tmp_path):
    (tmp_path / "x.npz").write_bytes(FILES["array"])
    np.testing.assert_array_equal(read_array(str(tmp_path / "x.npz")), X)


def mutated(content, rng):
    bytes_ = np.frombuffer(content, np.uint8).copy()
    for _ in range(rng.integers(1, 5)):
        bytes_[rng.integers(len(bytes_))] = rng.integers(256)
    return bytes_[: rng.integers(len(bytes_)) if rng.random() < 0.2 else None].tobytes()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore")  # of NumPy, about headers of other versions
def test_damaged_files_are_value_errors(tmp_path, name):
    rng = np.random.default_rng(5)
    file, messages = tmp_path / "x", []
    for _ in range(examples(1200)):
        file.write_bytes(mutated(FILES[name], rng))
        try:
            read_arrays(str(file))
        except ValueError as error:
            messages.append(str(error))
    assert messages  # and nothing else was raised
    assert all(str(file) in message for message in messages)


def test_commands_name_a_truncated_archive(tmp_path):
    (tmp_path / "m.tflite").write_bytes(kit.convert(kit.function()))
    (tmp_path / "data").mkdir()
    rows = kit.elements(3)
    for i, row in enumerate(rows):
        np.savez(tmp_path / "data" / f"{i}.npz", x=row)
    cut = tmp_path / "data" / "1.npz"
    cut.write_bytes(cut.read_bytes()[:-9])
    result = result_of(
        *("run", tmp_path / "m.tflite", "--inputs", f"{tmp_path}/data/*.npz", "-o", tmp_path / "out", "--json"),
        exit_code=1,
    )
    assert (result["elements"], result["failed"]) == (3, 1)
    assert "is not an .npy or .npz file" in json.dumps(result["errors"])
    done = opwright("diff", tmp_path / "m.tflite", tmp_path / "m.tflite", "--input", cut, exit_code=3)
    assert f"{cut} is not an .npy or .npz file" in done.stderr

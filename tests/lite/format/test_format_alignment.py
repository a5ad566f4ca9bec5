"""Whole files that are not aligned as FlatBuffers writers align them: taken and refused as by the official verifier.

Other tools rewrite files with their own libraries; some put vectors of int64 at odd multiples of 4 bytes.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as official_schema
from ai_edge_litert.interpreter import Interpreter as Official
from click.testing import CliRunner
from lite_kit import Build

from opwright import lite
from opwright.core import errors, flags
from opwright.lite.format import Model, objects
from opwright.tools.cli import cli

Q = objects.QuantizationParameters(scale=np.float32([0.5]), zero_point=np.int64([3]))
SUMMANDS = np.int64([[1 << 40, -5, 7]])


def plain() -> bytes:
    """y = relu(x) of int8; o = f @ w; k = j + SUMMANDS of int64."""
    b = Build().tensor("x", (4, 3), "INT8", quantization=Q).tensor("y", (4, 3), "INT8", quantization=Q)
    b.tensor("f", (2, 3)).tensor("w", (3, 3), data=np.eye(3, dtype=np.float32) * 2).tensor("o", (2, 3))
    b.tensor("j", (2, 3), "INT64").tensor("s", type="INT64", data=SUMMANDS).tensor("k", (2, 3), "INT64")
    b.op("RELU", "x", "y").op("FULLY_CONNECTED", "f w _", "o").op("ADD", "j s", "k")
    return b.done("x f j", "y o k", "main")


FILE = plain()


def place(*steps: Any) -> int:
    """Where the offset to something is, by the steps from the model: methods, with their index; then a field's id."""
    table: Any = official_schema.Model.GetRootAs(FILE, 0)
    *ways, last = steps
    for way in ways:
        table = getattr(table, way)() if isinstance(way, str) else getattr(table, way[0])(way[1])
    position: int = table._tab.Pos + table._tab.Offset(4 + 2 * last)
    return position


def moved(at: int, size: int, modulus: int, remainder: int, table: bool = False) -> bytes:
    """The file, with a copy of what the offset at `at` leads to behind it, at an address of this remainder."""
    source = at + struct.unpack_from("<I", FILE, at)[0]
    data = bytearray(FILE) + bytes(-len(FILE) % 16)
    data += bytes((remainder - len(data)) % modulus)
    target = len(data)
    data += FILE[source : source + size] + bytes(16)
    struct.pack_into("<I", data, at, target - at)
    if table:
        (vtable,) = struct.unpack_from("<i", FILE, source)
        struct.pack_into("<i", data, target, target - (source - vtable))
    return bytes(data)


FIRST = (("Subgraphs", 0), ("Tensors", 0))
VECTORS = {  # where the offset is; bytes from the length on
    "int64 zero_point": ((*FIRST, "Quantization", 3), 12),
    "float32 scale": ((*FIRST, "Quantization", 2), 8),
    "int32 shape": ((*FIRST, 0), 12),
    "int32 inputs": ((("Subgraphs", 0), 1), 16),
    "text": ((*FIRST, 3), 8),
    "constant of float32": ((("Buffers", 1), 0), 40),
    "constant of int64": ((("Buffers", 2), 0), 28),
    "text of a signature": ((("SignatureDefs", 0), 2), 12),
}
PLACES = ((4, 1), (4, 2), (4, 3), (16, 0), (16, 4), (16, 8))
CASES = {
    f"{name} at {n} mod {m}": moved(place(*steps), size, m, n)
    for name, (steps, size) in VECTORS.items()
    for m, n in PLACES
}
CASES |= {
    f"options at {n} mod {m}": moved(place(("Subgraphs", 0), ("Operators", 1), 4), 16, m, n, table=True)
    for m, n in ((4, 1), (4, 2), (16, 0), (16, 4))
}


def answers(interpreter: Any) -> list[Any]:
    interpreter.allocate_tensors()
    x = (
        np.arange(-6, 6, dtype=np.int8).reshape(4, 3),
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6, dtype=np.int64).reshape(2, 3),
    )
    details = interpreter.get_input_details()
    for detail, value in zip(details, x, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    results = [interpreter.get_tensor(d["index"]).tolist() for d in interpreter.get_output_details()]
    return [*results, details[0]["quantization"], details[0]["name"]]


@pytest.mark.parametrize("case", CASES)
def test_taken_and_refused_as_officially(case: str) -> None:
    data = CASES[case]
    try:
        official = Official(model_content=data)
    except ValueError:  # not a valid Flatbuffer buffer
        with pytest.raises(errors.DataLossError, match="not aligned") as error:
            Model.read(data)
        assert "damaged" not in str(error.value)
        return
    expected = answers(official)
    for compiled in (False, True):
        with flags.override(compiled=compiled, background=False):
            assert answers(lite.Interpreter(model_content=data)) == expected
    model = Model.read(data)
    again = Model.read(model.to_bytes())
    assert again == Model.read(FILE)


def test_vectors_that_are_copied_are_read_only() -> None:
    model: Any = Model.read(CASES["int64 zero_point at 0 mod 16"])
    vector = model.subgraphs[0].tensors[0].quantization.zero_point
    assert vector.tolist() == [3]
    assert vector.dtype == np.int64
    assert not vector.flags.writeable


@pytest.mark.parametrize("command", ["inspect", "check", "run"])
def test_the_command_line_takes_what_is_whole(command: str, tmp_path: Path) -> None:
    path = tmp_path / "shifted.tflite"
    path.write_bytes(CASES["int64 zero_point at 0 mod 16"])
    done = CliRunner().invoke(cli, [command, str(path)])
    assert done.exit_code == 0, done.output
    path.write_bytes(CASES["float32 scale at 2 mod 4"])
    done = CliRunner().invoke(cli, [command, str(path)])
    assert done.exit_code != 0
    assert "not aligned" in done.output
    assert "damaged" not in done.output


def test_the_official_run_time_is_given_it_as_it_is() -> None:
    compiled = pytest.importorskip("opwright.lite.litert").CompiledModel
    model = compiled(CASES["int64 zero_point at 0 mod 16"])
    assert list(model.get_signature_list()) == ["main"]

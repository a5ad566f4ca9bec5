"""Damaged and hostile files: each either reads and verifies or raises OpError, soon and in little memory."""

from __future__ import annotations

import random
import struct
import tracemalloc

import pytest
from format_models import add_model, rich_model

from opwright.core import errors
from opwright.lite.format import Model
from thorough import examples, some

INVALID = "The model is not a valid Flatbuffer buffer"


def outcome(data: bytes) -> str:
    """ "ok" or the error's class; anything but OpError passes through and fails the test."""
    try:
        model = Model.read(data)
        model.verify()
        repr(model)
    except errors.OpError as error:
        return type(error).__name__ if str(error) else "error without a text"
    return "ok"


def test_the_models_to_damage_are_sound():
    assert outcome(add_model().to_bytes()) == outcome(rich_model().to_bytes()) == "ok"


def replaced(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (b"", errors.DataLossError, f"{INVALID}: the file is empty"),
        (b"\x10\0\0\0TFL", errors.DataLossError, "too short(.|\n)*found   7 bytes"),
        (replaced(add_model().to_bytes(), 4, b"TFL2"), errors.InvalidArgumentError, "'TFL2'(.|\n)*'TFL3'"),
        (replaced(add_model().to_bytes(), 0, b"\xff\xff\xff\x7f"), errors.DataLossError, "Model: .*outside"),
        (add_model().to_bytes()[:100], errors.DataLossError, f"{INVALID}: Model"),
    ],
    ids=["empty", "short", "identifier", "root", "cut"],
)
def test_what_is_wrong_is_said(data, error, says):
    with pytest.raises(error, match=says):
        Model.read(data)


def test_another_schema_version_is_said():
    data = add_model()
    data.version = 2
    with pytest.raises(errors.InvalidArgumentError, match="schema version 2 not equal to supported version 3"):
        Model.read(data.to_bytes())


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(errors.NotFoundError, match="Could not open"):
        Model.read(tmp_path / "none.tflite")
    with pytest.raises(errors.InvalidArgumentError, match="folder"):
        Model.read(tmp_path)
    (tmp_path / "empty.tflite").touch()
    with pytest.raises(errors.DataLossError, match=INVALID):
        Model.read(tmp_path / "empty.tflite")


def test_a_vector_past_the_end_is_named_with_its_path():
    model = add_model()
    model.subgraphs[0].tensors[1].shape = [7, 7, 77777]
    data = model.to_bytes()
    at = data.index(struct.pack("<4i", 3, 7, 7, 77777))
    with pytest.raises(errors.DataLossError) as caught:
        Model.read(replaced(data, at, struct.pack("<I", 4_000_000_000)))
    expected = (
        f"Model.subgraphs[0].tensors[1].shape: vector of 4000000000 int32 at offset {at} runs past the end of the file"
    )
    assert expected in str(caught.value)
    assert f"({len(data)} bytes)" in str(caught.value)


def test_every_truncation_is_an_error():
    """Nothing behind the cut may be needed by a file that still reads: only the padding at its end."""
    data = rich_model().to_bytes()
    read = [n for n in range(len(data)) if outcome(data[:n]) == "ok"]
    assert all(n > len(data) - 16 for n in read)


def test_every_byte_flipped():
    data = rich_model().to_bytes()
    seen = {
        outcome(replaced(data, at, bytes([data[at] ^ mask]))) for at in some(range(len(data))) for mask in (0xFF, 0x01)
    }
    assert seen == {"ok", "DataLossError", "InvalidArgumentError"}


def test_extreme_numbers_everywhere():
    data = rich_model().to_bytes()
    numbers = [struct.pack("<I", n) for n in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(data))]
    for at in some(range(0, len(data) - 4, 4)):
        for number in numbers:
            outcome(replaced(data, at, number))


def test_many_random_changes_at_once():
    data, draw = rich_model().to_bytes(), random.Random(7)
    for _ in range(examples(1500)):
        mutant = bytearray(data)
        for _ in range(draw.randint(1, 8)):
            at = draw.randrange(len(data) - 4)
            if draw.random() < 0.5:
                mutant[at] = draw.randrange(256)
            else:
                source = draw.randrange(len(data) - 4) & ~3
                mutant[at & ~3 : (at & ~3) + 4] = data[source : source + 4]
        outcome(bytes(mutant))


def bomb(fan: int) -> bytes:
    """A file whose subgraphs are one table `fan` times over, each with one tensor `fan` times over."""
    out = bytearray(8)
    out[4:8] = b"TFL3"

    def put(*parts: bytes) -> int:
        at = len(out)
        for part in parts:
            out.extend(part)
        return at

    model_vtable = put(struct.pack("<6H", 12, 12, 4, 0, 8, 0))  # version, subgraphs
    graph_vtable = put(struct.pack("<4H", 6, 8, 4, 0))  # tensors
    empty_vtable = put(struct.pack("<2H", 4, 4))
    model = put(struct.pack("<iII", 0, 3, 0))
    subgraphs = put(struct.pack("<I", fan), bytes(4 * fan))
    graph = put(struct.pack("<iI", 0, 0))
    tensors = put(struct.pack("<I", fan), bytes(4 * fan))
    tensor = put(struct.pack("<i", 0))
    for table, its in ((model, model_vtable), (graph, graph_vtable), (tensor, empty_vtable)):
        struct.pack_into("<i", out, table, table - its)
    struct.pack_into("<I", out, 0, model)
    struct.pack_into("<I", out, model + 8, subgraphs - model - 8)
    struct.pack_into("<I", out, graph + 4, tensors - graph - 4)
    for start, target in ((subgraphs, graph), (tensors, tensor)):
        for at in range(start + 4, start + 4 + 4 * fan, 4):
            struct.pack_into("<I", out, at, target - at)
    return bytes(out)


def test_offsets_that_share_cannot_blow_up_a_small_file():
    assert len(Model.read(bomb(1)).subgraphs[0].tensors) == 1
    data = bomb(10_000)  # 80 KB that ask for 100 million tables
    tracemalloc.start()
    with pytest.raises(errors.DataLossError, match=r"share|rest of the file"):
        Model.read(data)
    assert tracemalloc.get_traced_memory()[1] < 40 * len(data)  # Python objects of the tables there may be
    tracemalloc.stop()

"""Damaged zip files raise errors that their readers expect, whatever the compression of their members."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

import opwright as ow
from opwright.core.archives import DAMAGED_ZIP
from opwright.lite.format.model import Model


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_mutants_raise_the_errors_of_damaged_files(method: int) -> None:
    rng = np.random.default_rng(0)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in ("config.json", "model.weights.h5"):
            archive.writestr(name, rng.integers(0, 4, 400, np.uint8).tobytes())
    content = np.frombuffer(buffer.getvalue(), np.uint8)
    refused = 0
    for _ in range(300):
        mutant = content.copy()
        mutant[rng.integers(len(mutant), size=2)] ^= (1 << rng.integers(8, size=2)).astype(np.uint8)
        try:
            with zipfile.ZipFile(io.BytesIO(mutant.tobytes())) as archive:
                _ = [archive.read(name) for name in archive.namelist()]
        except DAMAGED_ZIP:
            refused += 1
    assert refused > 100, refused


def test_a_damaged_member_is_an_error_by_name(tmp_path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b"{}" + bytes(range(256)))
    start = buffer.getvalue().index(b"config.json") + len("config.json")
    content = bytearray(buffer.getvalue())
    content[start : start + 4] = b"\xff\xff\xff\xff"  # no block of deflate begins so
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    with pytest.raises(ow.errors.DataLossError, match=r"model\.keras"):
        ow.keras.models.load_model(path)
    model = Model()
    model.attachment = bytes(content)
    with pytest.raises(ow.errors.DataLossError, match="associated files"):
        model.associated_files()

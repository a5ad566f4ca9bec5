"""Windows of int8 images copied as rows: every geometry, against windows cut out one element at a time."""

from __future__ import annotations

import numpy as np
import pytest

from opwright.compiler.kernels.convolution_int8 import patches
from opwright.compiler.language.compilation import call
from opwright.compiler.target import host
from opwright.core import flags

ZERO = -7
WINDOWS = {"kernel": (1, 2, 3), "strides": (1, 2, 3), "dilations": (1, 1, 2), "before": (0, 0, 1, 3)}


def expected(
    x: np.ndarray, channels: int, size: tuple[int, int], window: dict[str, tuple[int, ...]], joined: bool
) -> list[np.ndarray]:
    """For each pixel of the output the bytes of its window, run by run; None where a run is filled up to four bytes."""
    n, height, width, _ = x.shape
    run = window["kernel"][1] if joined else 1
    rows = []
    for b, oy, ox in np.ndindex(n, *size):
        row: list[int | None] = []
        for ky in range(window["kernel"][0]):
            for s in range(window["kernel"][1] // run):
                y = oy * window["strides"][0] + ky * window["dilations"][0] - window["before"][0]
                for i in range(run):
                    at = ox * window["strides"][1] + s * window["dilations"][1] + i - window["before"][1]
                    inside = 0 <= y < height and 0 <= at < width
                    row += list(x[b, y, at, :channels]) if inside else [ZERO] * channels
                row += [None] * (-run * channels % 4)
        rows.append(row)
    return rows


@pytest.mark.parametrize("target", ["", "x86-64-v3"])
def test_windows_as_rows(target: str) -> None:
    rng = np.random.default_rng(1)
    with flags.override(target=target or flags.target):
        room = host().vector_bytes
        for _ in range(250):
            n, height, channels = (int(rng.integers(1, m)) for m in (3, 12, 40))
            width = int(rng.choice([1, 2, 3, 11]))
            pitch = channels + int(rng.choice([0, 0, 0, 5]))
            window = {name: tuple(int(v) for v in rng.choice(values, 2)) for name, values in WINDOWS.items()}
            size = int(rng.integers(1, 6)), int(rng.integers(1, 9))
            joined = window["dilations"][1] == 1 and pitch == channels
            x = rng.integers(-128, 128, (n, height, width, pitch), np.int8)
            # Nothing of the last pixel's gap may be read: the memory behind it is another's.
            flat = x.reshape(-1)[: x.size - (pitch - channels)].copy()
            rows = expected(x, channels, size, window, joined)
            row_pitch = len(rows[0]) + room
            out = np.full(len(rows) * row_pitch, 99, np.int8)
            segments, run = (1, window["kernel"][1]) if joined else (window["kernel"][1], 1)
            words = [
                flat,
                out,
                flat.size,
                height,
                width,
                pitch,
                channels,
                ZERO,
                window["kernel"][0],
                segments,
                run,
                *window["strides"],
                *window["dilations"],
                *window["before"],
                *size,
                row_pitch,
                np.full(n, ZERO, np.int32),
            ]
            call(patches.code(rounded=bool(n > 1)), words, len(rows))
            for i, row in enumerate(rows):
                actual = out[i * row_pitch : i * row_pitch + len(row)]
                kept = [j for j, v in enumerate(row) if v is not None]
                assert actual[kept].tolist() == [row[j] for j in kept], (x.shape, pitch, window, size, i)

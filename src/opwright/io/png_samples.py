"""Samples of PNG and BMP files: PNG written, PNG of 16 bits and BMP read, conversion between numbers of channels.

Lives here: `read`, `write`, `bits`, `with_channels`, `read_bmp`.
Not here: PNG of 8 bits or with palettes read (images.py).

A PNG file is a signature and chunks: the size, a name, data, and a CRC-32; the samples, big-endian, are in rows after a
byte that names their filter (PNG specification, W3C, third edition, 2025).
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from ..core.errors import InvalidArgumentError
from .host_calls import check_size

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by number of channels
_CHANNELS = {color_type: channels for channels, color_type in _COLOR_TYPES.items()}
_GRAY_WEIGHTS = (9797, 19234, 3737)  # BT.601 in 2**-15, as libpng has them


def _damaged(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(op="io.decode_png", what=f"Invalid PNG data: {what}")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write(array: np.ndarray, compression: int) -> bytes:
    """Return a PNG file. array: uint8 or uint16 [height, width, 1 to 4]. Raises InvalidArgumentError for others."""
    if (
        array.ndim != 3
        or array.dtype not in (np.uint8, np.uint16)
        or array.shape[2] not in _COLOR_TYPES
        or not array.size
    ):
        raise InvalidArgumentError(
            op="io.encode_png",
            what="cannot write these pixels",
            found=f"{array.dtype} {list(array.shape)}",
            wanted="uint8 or uint16 [height, width, channels], channels in 1, 2, 3, 4",
        )
    height, width, channels = array.shape
    rows = np.ascontiguousarray(array.astype(array.dtype.newbyteorder(">"), copy=False))
    raw = rows.view(np.uint8).reshape(height, -1)
    step = channels * array.dtype.itemsize
    filtered = np.ones((height, raw.shape[1] + 1), np.uint8)  # 1: each byte less that of the pixel to the left
    filtered[:, 1:] = raw
    filtered[:, 1 + step :] -= raw[:, :-step]
    head = struct.pack(">IIBBBBB", width, height, 8 * array.dtype.itemsize, _COLOR_TYPES[channels], 0, 0, 0)
    body = zlib.compress(filtered.tobytes(), compression)
    return _SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def bits(data: bytes) -> int:
    """Return the bits of a sample as the header has them, 0 without one."""
    return data[24] if len(data) > 24 and data.startswith(_SIGNATURE) and data[12:16] == b"IHDR" else 0


def channels_of(data: bytes) -> int:
    """Return the number of channels as the header has it, 0 for a palette."""
    return _CHANNELS.get(data[25], 0)


def read(data: bytes, channels: int) -> np.ndarray:
    """Return the samples of a file of 16 bits, uint16[height, width, channels]. channels: 0 for the file's.

    raises InvalidArgumentError for damaged and interlaced files, ResourceExhaustedError for more pixels than the flag
    max_activation_bytes allows
    """
    if len(data) < 33:
        raise _damaged("it has no header")
    width, height, depth, color_type, _, _, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    if depth != 16 or color_type not in _CHANNELS or not width or not height:
        raise _damaged(f"{depth} bits of color type {color_type}, {width} x {height} pixels")
    if interlaced:
        raise InvalidArgumentError(op="io.decode_png", what="interlaced files of 16 bits are not read as uint16")
    stored = _CHANNELS[color_type]
    step = 2 * stored
    size = height * (1 + width * step)
    check_size(size, "io.decode_png")
    body, offset = [], 33
    while offset + 12 <= len(data):
        length, name = struct.unpack(">I4s", data[offset : offset + 8])
        if name == b"IDAT":
            body.append(data[offset + 8 : offset + 8 + length])
        elif name == b"IEND":
            break
        offset += 12 + length
    try:
        raw = zlib.decompressobj().decompress(b"".join(body), size)
    except zlib.error as error:
        raise _damaged(str(error)) from None
    if len(raw) != size:
        raise _damaged(f"{len(raw)} bytes of samples, not {size}")
    rows = np.frombuffer(raw, np.uint8).reshape(height, 1 + width * step)
    samples = _unfiltered(rows, step)
    return with_channels(samples.view(">u2").reshape(height, width, stored).astype(np.uint16), channels)


def _unfiltered(rows: np.ndarray, step: int) -> np.ndarray:
    """Return the bytes of rows without their filters (section 9 of the specification)."""
    result = np.zeros((len(rows) + 1, rows.shape[1] - 1), np.uint8)
    for i, row in enumerate(rows):
        kind, line, above = row[0], row[1:], result[i]
        if kind == 0:
            result[i + 1] = line
        elif kind == 1:
            result[i + 1] = np.add.accumulate(line.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            result[i + 1] = line + above
        elif kind in (3, 4):
            result[i + 1] = _unfiltered_row(kind, line.tolist(), above.tolist(), step)
        else:
            raise _damaged(f"filter {kind}")
    return result[1:]


def _unfiltered_row(kind: int, line: list[int], above: list[int], step: int) -> list[int]:
    """Return a row of filter 3, the average, or 4, Paeth's: each byte depends on the one before."""
    row = [0] * step + line
    for i in range(len(line)):
        left, up = row[i], above[i]
        if kind == 3:
            predicted = (left + up) >> 1
        else:
            corner = above[i - step] if i >= step else 0
            p = left + up - corner
            distances = abs(p - left), abs(p - up), abs(p - corner)
            predicted = (left, up, corner)[distances.index(min(distances))]
        row[i + step] = (line[i] + predicted) & 0xFF
    return row[step:]


def with_channels(array: np.ndarray, channels: int) -> np.ndarray:
    """Return pixels with another number of channels; 0 for the same. array: uint8 or uint16 [height, width, 1 to 4].

    Gray is repeated, RGB weighted by BT.601, a missing alpha opaque, and a superfluous one dropped.
    """
    stored = array.shape[2]
    if channels in (0, stored):
        return array
    colors = array[..., : stored - (stored in (2, 4))]
    if channels in (3, 4) and colors.shape[2] == 1:
        colors = np.repeat(colors, 3, 2)
    elif channels in (1, 2) and colors.shape[2] == 3:
        half = (1 << 14) if array.dtype == np.uint16 else 0  # libpng rounds samples of 16 bits, and truncates others
        gray = sum(w * colors[..., i].astype(np.int64) for i, w in enumerate(_GRAY_WEIGHTS))
        colors = ((np.asarray(gray) + half) >> 15).astype(array.dtype)[..., None]
    if channels in (1, 3):
        return colors
    opaque = np.full_like(array[..., :1], np.iinfo(array.dtype).max)
    return np.concatenate((colors, array[..., -1:] if stored in (2, 4) else opaque), 2)


def read_bmp(data: bytes, channels: int) -> np.ndarray:
    """Return the pixels of an uncompressed BMP, uint8[height, width, channels]. channels: 0 for the file's.

    raises InvalidArgumentError for damaged files, palettes of colours and compression
    """

    def damaged(what: str) -> InvalidArgumentError:
        return InvalidArgumentError(op="io.decode_bmp", what=f"Invalid BMP data: {what}")

    if len(data) < 54 or data[:2] != b"BM":
        raise damaged("it has no header")
    offset, _, width, height, _, depth, compression = struct.unpack("<IIiiHHI", data[10:34])
    stored = depth // 8
    if depth not in (8, 24, 32) or compression not in (0, 3) or width < 1 or not height:
        raise damaged(f"{depth} bits a pixel, compression {compression}, {width} x {height} pixels")
    row_size, rows = (width * stored + 3) // 4 * 4, abs(height)
    if offset + row_size * rows > len(data):
        raise damaged(f"{rows} rows of {row_size} bytes do not fit into {len(data)} bytes")
    pixels = np.frombuffer(data, np.uint8, row_size * rows, offset).reshape(rows, row_size)[:, : width * stored]
    pixels = pixels.reshape(rows, width, stored)[:: -1 if height > 0 else 1]
    return with_channels(pixels[..., [2, 1, 0, 3][:stored]] if stored > 1 else pixels.copy(), channels)

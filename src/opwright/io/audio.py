"""`ow.audio`: WAV files of 16-bit samples as tensors.

Lives here: `decode_wav`, `encode_wav`.
Not here: spectrograms (ops/signal).

A file is a RIFF of chunks, each a name, a size and data (Multimedia Programming Interface and Data Specifications 1.0,
IBM and Microsoft, 1991): `fmt ` has the format, `data` the samples, channels interleaved.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..eager.python_functions import call_on_arrays
from ..ops import dispatch
from ..ops.tensor import Tensor
from .host_calls import check_size, scalar, string_operand, string_spec

__all__ = ["decode_wav", "encode_wav"]

_PCM, _EXTENSIBLE = 1, 0xFFFE
_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")


class DecodedWav(NamedTuple):
    """audio: float32[samples, channels] in [-1, 1]. sample_rate: int32, samples per second."""

    audio: Any
    sample_rate: Any


def _damaged(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(op="audio.decode_wav", what=what, wanted="a WAV file of 16-bit PCM")


def _chunks(data: bytes) -> tuple[bytes, bytes]:
    """Return the format and the samples of a file."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _damaged("Header mismatch: Expected RIFF and WAVE")
    form, offset = b"", 12
    while offset + 8 <= len(data):
        name, size = data[offset : offset + 4], int.from_bytes(data[offset + 4 : offset + 8], "little")
        body = data[offset + 8 : offset + 8 + size]
        if name == b"fmt ":
            form = body
        elif name == b"data":
            if not form:
                raise _damaged("the samples stand before the format")
            if len(body) < size:
                raise _damaged(f"Data too short: {size} bytes of samples are announced, {len(body)} are there")
            return form, body
        offset += 8 + size + (size & 1)
    raise _damaged("no samples: the file has no chunk 'data'")


def read_wav(data: bytes) -> tuple[np.ndarray, int]:
    """Return the samples, float32[samples, channels], and their rate. Raises InvalidArgumentError."""
    form, body = _chunks(data)
    if len(form) < 16:
        raise _damaged(f"a format of {len(form)} bytes")
    kind, channels, rate, _, frame, bits = struct.unpack("<HHIIHH", form[:16])
    if kind not in (_PCM, _EXTENSIBLE) or bits != 16:
        raise _damaged(f"Can only read 16-bit PCM WAV files, but received format {kind} with {bits} bits")
    if not channels or frame != 2 * channels or rate > 0x7FFFFFFF:
        raise _damaged(f"{channels} channels in frames of {frame} bytes, {rate} samples a second")
    samples = np.frombuffer(body[: len(body) // frame * frame], "<i2").reshape(-1, channels)
    return samples.astype(np.float32) / np.float32(32768), rate


def decode_wav(contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None) -> Any:
    """Return the samples of a 16-bit PCM WAV file, and their rate, as a named tuple (audio, sample_rate).

    contents: the file's bytes, a string of shape (). desired_channels: drop channels, or repeat the last one, to reach
    this number; -1 for the file's. desired_samples: cut, or pad with zeros, to this number; -1 for the file's.
    returns audio, float32[samples, channels] in [-1, 1], and sample_rate, int32
    raises InvalidArgumentError for other files, ResourceExhaustedError for more samples than the flag
    max_activation_bytes allows
    """

    def read(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        samples, rate = read_wav(scalar(array, "audio.decode_wav"))
        count, channels = samples.shape
        check_size(4 * max(desired_samples, count) * max(desired_channels, channels), "audio.decode_wav")
        if desired_channels not in (-1, channels):
            repeated = np.repeat(samples[:, -1:], max(desired_channels - channels, 0), 1)
            samples = np.concatenate((samples[:, :desired_channels], repeated), 1)
        if desired_samples not in (-1, count):
            padding = np.zeros((max(desired_samples - count, 0), samples.shape[1]), np.float32)
            samples = np.concatenate((samples[:desired_samples], padding))
        return samples, np.array(rate, np.int32)

    for label, number in (("desired_channels", desired_channels), ("desired_samples", desired_samples)):
        if number < -1:
            raise InvalidArgumentError(op="audio.decode_wav", what=f"{label} is negative", found=number)
    sizes = [None if n == -1 else n for n in (desired_samples, desired_channels)]
    specs = [TensorSpec(TensorShape(sizes), dtypes.float32), TensorSpec((), dtypes.int32)]
    return DecodedWav(*call_on_arrays(read, [string_operand(contents, "audio.decode_wav", 0)], specs, name))


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """Return the bytes of a 16-bit PCM WAV file: a string of shape ().

    audio: float32[samples, channels]; values outside of [-1, 1] are clamped. sample_rate: int32, samples per second.
    raises InvalidArgumentError for another dtype or rank
    """

    def write(samples: np.ndarray, rate: np.ndarray) -> bytes:
        if samples.ndim != 2 or samples.dtype != np.float32 or not 1 <= samples.shape[1] <= 0xFFFF // 2:
            raise InvalidArgumentError(
                op="audio.encode_wav",
                what="cannot write these samples",
                found=f"{samples.dtype} {list(samples.shape)}",
                wanted="float32[samples, channels]",
            )
        if not 0 < int(rate) <= 0x7FFFFFFF // (2 * samples.shape[1]):
            raise InvalidArgumentError(op="audio.encode_wav", what="sample_rate is out of range", found=int(rate))
        scaled = np.nan_to_num(samples) * np.float32(32768)
        rounded = np.copysign(np.floor(np.abs(scaled) + np.float32(0.5)), scaled)  # halves away from zero
        return wav_bytes(np.clip(rounded, -32768, 32767).astype("<i2"), int(rate))

    if isinstance(audio, np.ndarray) and audio.dtype.kind == "f":
        audio = audio.astype(np.float32)  # as TensorFlow converts arrays
    operands = [dispatch.to_tensor(audio), dispatch.to_tensor(sample_rate)]
    result: Tensor = call_on_arrays(write, operands, string_spec(), name)
    return result


def wav_bytes(samples: np.ndarray, rate: int) -> bytes:
    """Return the bytes of a file. samples: int16[samples, channels]."""
    channels = samples.shape[1]
    body = samples.tobytes()
    frame = 2 * channels
    return (
        _HEADER.pack(
            b"RIFF",
            36 + len(body),
            b"WAVE",
            b"fmt ",
            16,
            _PCM,
            channels,
            rate,
            rate * frame,
            frame,
            16,
            b"data",
            len(body),
        )
        + body
    )

"""Signals of ONNX: Fourier transforms, windows, weights of mel spectrograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import InvalidArgumentError
from ....ops import array, math, signal
from ....ops.array import cast
from ...constants import FOLDING
from ..execution import RULES
from ..files import dtype_of_code
from ..operands import at, axis_of, dims, dtype_of, rank_of

rule = RULES.rule


def _pairs(values: Any) -> Any:
    return array.stack([math.real(values), math.imag(values)], -1)


def _complex(x: Any) -> Any:
    """Return [..., 1 or 2] as complex numbers [...]."""
    real = x[..., 0]
    return math.complex(real, x[..., 1] if dims(x)[-1] == 2 else array.zeros_like(real))


def _to_length(x: Any, length: int, axis: int) -> Any:
    whole = dims(x)[axis]
    if whole is None:
        raise InvalidArgumentError(what="a Fourier transform needs the length at import")
    if whole > length:
        return x[(*[slice(None)] * axis, slice(0, length))]
    pads = np.zeros((rank_of(x), 2), np.int32)
    pads[axis, 1] = length - whole
    return array.pad(x, pads) if whole < length else x


@rule("DFT")
def discrete_fourier_transform(context: Any, inputs: Any, attributes: Any) -> Any:
    x, length = inputs[0], at(inputs, 1)
    if context.opset >= 20:
        axis = -2 if at(inputs, 2) is None else int(context.required(inputs[2], "the axis").reshape(-1)[0])
    else:
        axis = attributes.get("axis", 1)
    axis = axis_of(axis, rank_of(x))
    onesided, inverse = bool(attributes.get("onesided")), bool(attributes.get("inverse"))
    count = None if length is None else int(context.required(length, "dft_length").reshape(-1)[0])
    half = dtype_of(x)
    x = cast(x, np.float32) if half.size < 4 else x
    z = _complex(x)
    if onesided and inverse:
        whole = dims(z)[axis]
        count = 2 * ((whole or 1) - 1) if count is None else count
        z = _to_length(z, count // 2 + 1, axis)
        order = [i for i in range(rank_of(z)) if i != axis] + [axis]
        real = array.transpose(signal.irfft(array.transpose(z, order), [count]), np.argsort(order).tolist())
        return cast(array.expand_dims(real, -1), half)
    if count is not None:
        z = _to_length(z, count, axis)
    order = [i for i in range(rank_of(z)) if i != axis] + [axis]
    moved = array.transpose(z, order)
    moved = signal.ifft(moved) if inverse else signal.fft(moved)
    result = array.transpose(moved, np.argsort(order).tolist())
    if onesided:
        result = _to_length(result, (dims(result)[axis] or 0) // 2 + 1, axis)
    return cast(_pairs(result), half)


@rule("STFT")
def short_time_fourier_transform(context: Any, inputs: Any, attributes: Any) -> Any:
    x, step = inputs[0], int(context.required(inputs[1], "frame_step").reshape(-1)[0])
    window, length = at(inputs, 2), at(inputs, 3)
    if length is not None:
        count = int(context.required(length, "frame_length").reshape(-1)[0])
    elif window is not None:
        count = int(dims(window)[0] or 0)
    else:
        raise InvalidArgumentError(what="STFT needs a window or the length of frames")
    parts = [x[..., i] for i in range(dims(x)[-1] or 1)] if rank_of(x) == 3 else [x]
    frames = [signal.frame(p, count, step) for p in parts]
    if window is not None:
        frames = [math.multiply(f, window) for f in frames]
    z = math.complex(frames[0], frames[1] if len(frames) > 1 else array.zeros_like(frames[0]))
    spectrum = signal.fft(z)
    if attributes.get("onesided", 1) and len(frames) == 1:
        spectrum = spectrum[..., : count // 2 + 1]
    return _pairs(spectrum)


def _window(weights: tuple[float, ...]) -> Any:
    def window(context: Any, inputs: Any, attributes: Any) -> Any:
        """Return a sum of cosines over the periodic or symmetric length."""
        size = int(context.required(inputs[0], "the length of a window").reshape(-1)[0])
        to = dtype_of_code(attributes.get("output_datatype", 1), "a window")
        FOLDING.reserve(size)
        span = size if attributes.get("periodic", 1) else size - 1
        angle = 2 * np.pi * np.arange(size) / max(span, 1)
        total = sum((-1) ** i * w * np.cos(i * angle) for i, w in enumerate(weights))
        return np.asarray(total).astype(to.np)

    return window


# Harris, 1978; the standard has the Hamming weights as fractions of 46.
for _name, _weights in {
    "HannWindow": (0.5, 0.5),
    "HammingWindow": (25 / 46, 21 / 46),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}.items():
    rule(_name)(_window(_weights))


@rule("MelWeightMatrix")
def mel_weight_matrix(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return triangles between points that lie evenly on the mel scale, on the bins of a spectrum."""
    bins, length, rate, low, high = (context.required(v, "a parameter").reshape(-1)[0] for v in inputs)
    to = dtype_of_code(attributes.get("output_datatype", 1), "MelWeightMatrix")
    spectrum = int(length) // 2 + 1
    FOLDING.reserve(spectrum, int(bins) + 2)
    edges = 2595 * np.log10(1 + np.asarray([low, high], np.float64) / 700)
    points = edges[0] + np.arange(int(bins) + 2) * (edges[1] - edges[0]) / (int(bins) + 2)
    frequencies = 700 * (10 ** (points / 2595) - 1)
    places = np.floor((int(length) + 1) * frequencies / int(rate)).astype(int)
    matrix = np.zeros((spectrum, int(bins)))
    for i in range(int(bins)):
        first, middle, last = places[i : i + 3]
        if middle == first:
            matrix[middle, i] = 1
        else:
            matrix[first : middle + 1, i] = np.arange(middle - first + 1) / (middle - first)
        if last > middle:
            matrix[middle:last, i] = (last - np.arange(middle, last)) / (last - middle)
    return matrix.astype(to.np)

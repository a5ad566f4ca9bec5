"""Rows for signals: `ops/signal`.

Oracles are the sums of the definitions, written out as matrices of cosines and exponentials, loops over frames, the
formulas of windows in Python's floats, and round trips; literal values are TensorFlow 2.21's.
"""

from __future__ import annotations

import math

import numpy as np
from harness import bad, bools, c64, c128, case, f16, f32, f64, i32, strings

tau = 2 * math.pi


def lengths(*n):
    return np.array(n, np.int32)


def number(n):
    return np.array(n, np.int32)


def resized(x, n, axis):
    """Cut or padded with zeros."""
    x = np.moveaxis(x, axis, -1)[..., :n]
    x = np.concatenate([x, np.zeros((*x.shape[:-1], n - x.shape[-1]), x.dtype)], -1)
    return np.moveaxis(x, -1, axis)


def along(x, axis, matrix):
    """sum over j of matrix[k, j] x[..., j, ...]"""
    return np.moveaxis(np.moveaxis(x, axis, -1) @ matrix.T, -1, axis)


def waves(n, rows, sign):
    return np.exp(sign * 1j * tau * np.outer(np.arange(rows), np.arange(n)) / max(n, 1))


def dft(x, n=None, axes=(-1,), sign=-1):
    for i, axis in enumerate(axes):
        size = x.shape[axis] if n is None else int(n[i])
        x = along(resized(x, size, axis), axis, waves(size, size, sign))
    return x


def inverse(x, n=None, axes=(-1,)):
    y = dft(x, n, axes, 1)
    return y / math.prod(y.shape[a] for a in axes)


def half_dft(x, n, axes=(-1,)):
    y = dft(x + 0j, n, axes)
    last = int(n[-1])
    return np.take(y, range(last // 2 + 1 if last else 0), axes[-1])


def from_half(x, n, axes=(-1,)):
    """The others are conjugates: of the sum along the last axis that is a cosine and a sine each."""
    x = inverse(x, n[:-1], axes[:-1]) if len(axes) > 1 else x
    last, axis = int(n[-1]), axes[-1]
    x = np.moveaxis(resized(x, last // 2 + 1, axis), axis, -1)
    total = np.zeros((*x.shape[:-1], last))
    for k in range(last // 2 + 1):
        times = 1 if k in (0, last / 2) else 2
        angle = tau * k * np.arange(last) / last
        total += times * (x[..., k, None].real * np.cos(angle) - x[..., k, None].imag * np.sin(angle))
    return np.moveaxis(total / last, -1, axis)


def last(k):
    return tuple(range(-k, 0))


def cut(x, length, step, pad=None, axis=-1):
    """Frames one by one."""
    length, step, n = int(length), int(step), x.shape[axis]
    starts = range(0, n, step) if pad is not None else range(0, n - length + 1, step)
    frames = []
    for at in starts:
        part = np.take(x, range(at, min(at + length, n)), axis)
        missing = length - part.shape[axis]
        shape = [missing if i == axis % x.ndim else d for i, d in enumerate(x.shape)]
        frames.append(np.concatenate([part, np.full(shape, pad, x.dtype)], axis) if missing else part)
    axis %= x.ndim
    if not frames:
        return np.zeros((*x.shape[:axis], 0, length, *x.shape[axis + 1 :]), x.dtype)
    return np.stack(frames, axis)


def added(x, step, axis=-1):
    axis, step = axis % (x.ndim - 1), int(step)
    frames, length = x.shape[axis : axis + 2]
    out = np.zeros((*x.shape[:axis], max(0, (frames - 1) * step + length), *x.shape[axis + 2 :]), x.dtype)
    for f in range(frames):
        place = (slice(None),) * axis + (slice(f * step, f * step + length),)
        out[place] += np.take(x, f, axis)
    return out


def cosines(type, n):
    """Return the matrix of `dct`."""
    k, j = np.arange(n)[:, None], np.arange(n)
    if type == 1:
        result = 2 * np.cos(math.pi * j * k / (n - 1))
        result[:, [0, -1]] /= 2
    elif type == 2:
        result = 2 * np.cos(math.pi * (2 * j + 1) * k / (2 * n))
    elif type == 3:
        result = 2 * np.cos(math.pi * j * (2 * k + 1) / (2 * n))
        result[:, 0] = 1
    else:
        result = 2 * np.cos(math.pi * (2 * j + 1) * (2 * k + 1) / (4 * n))
    return result


def orthonormal(type, n):
    """Rows of length 1, up to sign."""
    if type == 3:
        return orthonormal(2, n).T
    rows = cosines(type, n)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def cosine(type, n=None, norm=None, undo=False):
    def oracle(x):
        size = x.shape[-1] if n is None else n
        x = resized(x, size, -1)
        matrix = (orthonormal if norm else cosines)({2: 3, 3: 2}.get(type, type) if undo else type, size)
        return x @ matrix.T

    return oracle


def hann(n, period, base=0.5):
    return np.array([base - (1 - base) * math.cos(tau * k / period) for k in range(n)])


def bessel(x):
    """I_0 by its series."""
    total = term = 1.0
    for k in range(1, 200):
        term *= (x / 2) ** 2 / k**2
        total += term
    return total


def kaiser(n, beta):
    return np.array([bessel(beta * math.sqrt(max(0, 1 - (2 * k / (n - 1) - 1) ** 2))) / bessel(beta) for k in range(n)])


def derived(n, beta):
    sums = np.cumsum(kaiser(n // 2 + 1, beta))
    up = np.sqrt(sums[:-1] / sums[-1])
    return np.concatenate([up, up[::-1]])


def vorbis(n):
    return np.array([math.sin(math.pi / 2 * math.sin(math.pi / n * (k + 0.5)) ** 2) for k in range(n)])


def spectra(length, step, fft_length, window=None, pad=None):
    def oracle(x):
        weights = hann(length, length) if window is None else window
        return half_dft(cut(x, length, step, pad) * weights, (fft_length,))

    return oracle


def modified(length, window, scale=1.0, pad=None):
    """The cosines of the definition, on frames as they are."""
    half = length // 2

    def oracle(x):
        j, k = np.arange(length)[:, None], np.arange(half)
        waves = 2 * np.cos(math.pi / half * (j + 0.5 + half / 2) * (k + 0.5))
        return cut(x, length, half, pad) * window @ waves * scale

    return oracle


def call(name):
    def function(*args, **attrs):
        import opwright as ow

        return getattr(ow.signal, name)(*args, **attrs)

    return function


def there_and_back(forward, backward, inside):
    """A signal through its spectra, where it comes back as it was."""

    def function(x):
        return backward(forward(x))[..., inside]

    return function


def stft_and_back(x):
    from opwright import signal

    result = signal.stft(x, 8, 2)
    return signal.inverse_stft(result, 8, 2, window_fn=signal.inverse_stft_window_fn(2))[..., 6:-6]


def mdct_and_back(window, norm=None):
    def function(x):
        from opwright import signal

        window_fn = getattr(signal, window) if window else None
        return signal.inverse_mdct(signal.mdct(x, 8, window_fn=window_fn, norm=norm), window_fn, norm)[..., 4:-4]

    return function


def mels(bins, spectrum, rate, low, high):
    def mel(f):
        return 1127 * math.log(1 + f / 700)

    edges = [mel(low) + (mel(high) - mel(low)) * i / (bins + 1) for i in range(bins + 2)]
    out = np.zeros((spectrum, bins))
    for i in range(1, spectrum):
        m = mel(i * rate / 2 / (spectrum - 1))
        for j in range(bins):
            a, b, c = edges[j : j + 3]
            out[i, j] = max(0, min((m - a) / (b - a), (c - m) / (c - b)))
    return out


def rolled(by, axes):
    def oracle(x):
        for axis in axes:
            x = np.roll(x, by * (x.shape[axis] // 2), axis)
        return x

    return oracle


CASES = {
    "FFT": [
        case(c128(5), expect=dft),
        case(c128(2, 6), expect=dft),
        case(c64(3, 8), expect=dft, rtol=1e-5, atol=1e-5),
        case(c64(2, 0), expect=np.zeros((2, 0), np.complex64), gives="complex64"),
        bad(f32(3), says="dtype"),
        bad(c64(), says="rank of at least 1"),
    ],
    "IFFT": [
        case(c128(5), expect=inverse),
        case(c64(2, 6), expect=inverse, rtol=1e-5, atol=1e-5),
        case(c64(0, 4), expect=np.zeros((0, 4), np.complex64)),
        bad(c64(), says="rank of at least 1"),
    ],
    "FFT2D": [
        case(c128(2, 3, 4), expect=lambda x: dft(x, axes=last(2))),
        case(c64(3, 3), expect=lambda x: dft(x, axes=last(2)), rtol=1e-5, atol=1e-5),
        bad(c64(3), says="rank of at least 2"),
    ],
    "IFFT2D": [case(c128(2, 3, 4), expect=lambda x: inverse(x, axes=last(2))), bad(c64(3), says="rank of at least 2")],
    "FFT3D": [
        case(c128(2, 3, 4), expect=lambda x: dft(x, axes=last(3))),
        case(c128(2, 2, 1, 3), expect=lambda x: dft(x, axes=last(3))),
        bad(c64(3, 3), says="rank of at least 3"),
    ],
    "IFFT3D": [
        case(c128(2, 3, 4), expect=lambda x: inverse(x, axes=last(3))),
        bad(c64(3, 3), says="rank of at least 3"),
    ],
    "RFFT": [
        case(f64(6), lengths(6), expect=half_dft),
        case(f64(2, 5), lengths(5), expect=half_dft),
        case(f64(2, 5), lengths(3), expect=half_dft),
        case(f64(2, 5), lengths(8), expect=half_dft),
        case(f32(2, 4), lengths(4), expect=half_dft, gives="complex64", rtol=1e-5, atol=1e-5),
        case(f64(2, 1), lengths(1), expect=half_dft),
        case(f32(0, 4), lengths(4), expect=np.zeros((0, 3), np.complex64)),
        case(f32(3), lengths(0), expect=np.zeros(0, np.complex64), grad=False),
        bad(f16(3), lengths(3), says="dtype"),
        bad(f32(3), lengths(3, 3), says="shape [1]"),
        bad(f32(3), lengths(-1), says="at least 0"),
        bad(f32(), lengths(3), says="rank of at least 1"),
    ],
    "IRFFT": [
        case(c128(4), lengths(6), expect=from_half),
        case(c128(2, 3), lengths(5), expect=from_half),
        case(c128(2, 6), lengths(4), expect=from_half),
        case(c128(2, 2), lengths(7), expect=from_half),
        case(c64(2, 3), lengths(4), expect=from_half, gives="float32", rtol=1e-5, atol=1e-5),
        case(c128(2, 1), lengths(1), expect=from_half),
        bad(f32(3), lengths(3), says="dtype"),
        bad(c64(3), lengths(), says="shape [1]"),
    ],
    "RFFT2D": [
        case(f64(2, 3, 4), lengths(3, 4), expect=lambda x, n: half_dft(x, n, last(2))),
        case(f64(3, 4), lengths(2, 5), expect=lambda x, n: half_dft(x, n, last(2))),
        bad(f32(3), lengths(3, 3), says="rank of at least 2"),
    ],
    "IRFFT2D": [
        case(c128(2, 3, 3), lengths(3, 4), expect=lambda x, n: from_half(x, n, last(2))),
        case(c128(3, 4), lengths(4, 5), expect=lambda x, n: from_half(x, n, last(2))),
        bad(c64(3), lengths(3, 3), says="rank of at least 2"),
    ],
    "RFFT3D": [
        case(f64(2, 3, 4), lengths(2, 3, 4), expect=lambda x, n: half_dft(x, n, last(3))),
        case(f64(2, 3, 3), lengths(3, 2, 3), expect=lambda x, n: half_dft(x, n, last(3))),
        bad(f32(3, 3, 3), lengths(3, 3), says="shape [3]"),
    ],
    "IRFFT3D": [
        case(c128(2, 3, 3), lengths(2, 3, 4), expect=lambda x, n: from_half(x, n, last(3))),
        bad(c64(3, 3), lengths(3, 3, 3), says="rank of at least 3"),
    ],
    "signal.rfft": [
        case(f64(2, 6), expect=lambda x: half_dft(x, (6,))),
        case([1, 2, 3], expect=np.array([6, -1.5 + math.sqrt(0.75) * 1j]), gives="complex64", rtol=1e-6, atol=1e-6),
        bad(f32(), says="rank"),
    ],
    "signal.irfft": [case(c128(2, 4), expect=lambda x: from_half(x, (6,))), bad(f32(3), says="dtype")],
    "signal.rfft2d": [case(f64(3, 5), expect=lambda x: half_dft(x, (3, 5), last(2))), bad(f32(3), says="rank")],
    "signal.irfft2d": [case(c128(3, 3), expect=lambda x: from_half(x, (3, 4), last(2)))],
    "signal.rfft3d": [case(f64(2, 3, 3), expect=lambda x: half_dft(x, (2, 3, 3), last(3)))],
    "signal.irfft3d": [case(c128(2, 3, 3), expect=lambda x: from_half(x, (2, 3, 4), last(3)))],
    "FFTND": [
        case(c128(2, 3, 4), lengths(3, 2), axes=(1, 0), expect=lambda x, n: dft(x, n, (1, 0))),
        case(c128(2, 3), lengths(4), axes=(-2,), expect=lambda x, n: dft(x, n, (-2,))),
        bad(c64(2, 3), lengths(2), axes=(2,), says="axis 2"),
        bad(c64(2, 3), lengths(2, 2), axes=(0, 0), says="twice"),
        bad(c64(2, 3), lengths(2), axes=(0, 1), says="shape [2]"),
        bad(c64(2, 3), lengths(), axes=(), says="axes is empty"),
    ],
    "IFFTND": [
        case(c128(2, 3, 4), lengths(2, 5), axes=(0, 2), expect=lambda x, n: inverse(x, n, (0, 2))),
        bad(c64(2, 3), lengths(2), axes=(2,), says="axis 2"),
    ],
    "RFFTND": [
        case(f64(2, 3, 4), lengths(4, 3), axes=(2, 1), expect=lambda x, n: half_dft(x, n, (2, 1))),
        case(f64(3, 4), lengths(4), axes=(-2,), expect=lambda x, n: half_dft(x, n, (-2,))),
        bad(f32(2, 3), lengths(2), axes=(2,), says="axis 2"),
    ],
    "IRFFTND": [
        case(c128(2, 3, 4), lengths(4, 4), axes=(2, 1), expect=lambda x, n: from_half(x, n, (2, 1))),
        case(c128(3, 4), lengths(5), axes=(-2,), expect=lambda x, n: from_half(x, n, (-2,))),
        bad(c64(2, 3), lengths(2), axes=(2,), says="axis 2"),
    ],
    "signal.fftnd": [
        case(c128(2, 3), expect=lambda x: dft(x, axes=(0, 1))),
        case(c128(2, 3), norm="ortho", expect=lambda x: dft(x, axes=(0, 1)) / math.sqrt(6)),
        case(c128(2, 3), axes=[0], norm="forward", expect=lambda x: dft(x, axes=(0,)) / 2),
        bad(c64(2), norm="x", says="norm", raises=ValueError),
    ],
    "signal.ifftnd": [case(c128(2, 3), norm="ortho", expect=lambda x: inverse(x, axes=(0, 1)) * math.sqrt(6))],
    "signal.rfftnd": [case(f64(2, 5), norm="backward", expect=lambda x: half_dft(x, (2, 5), (0, 1)))],
    "signal.irfftnd": [
        case(c128(2, 3), expect=lambda x: from_half(x, (2, 4), (0, 1))),
        case(c128(2, 3), fft_length=[3], axes=[-1], norm="forward", expect=lambda x: from_half(x, (3,)) * 3),
    ],
    "signal.fftshift": [
        case(np.arange(5.0), expect=[3.0, 4.0, 0.0, 1.0, 2.0]),
        case(f64(2, 5), expect=rolled(1, (0, 1))),
        case(f64(4, 3), axes=-1, expect=rolled(1, (1,))),
        case(i32(4, 3), axes=(0, -1), expect=rolled(1, (0, 1))),
        case(f32(), expect=lambda x: x),
    ],
    "signal.ifftshift": [
        case(np.arange(5.0), expect=[2.0, 3.0, 4.0, 0.0, 1.0]),
        case(f64(3, 5), axes=[1], expect=rolled(-1, (1,))),
    ],
    "Frame": [
        case(f64(7), number(3), number(2), None, expect=cut),
        case(f64(2, 8), number(3), number(2), np.array(0.5), expect=cut),
        case(f64(9), number(2), number(4), np.array(2.0), expect=cut),
        case(f64(2), number(3), number(1), None, expect=cut),
        case(f64(2), number(3), number(1), np.array(9.0), expect=cut),
        case(f64(5, 2), number(3), number(1), None, axis=0, expect=lambda *a: cut(*a, axis=0)),
        case(f64(2, 5, 2), number(3), number(2), np.array(1.0), axis=-2, expect=lambda *a: cut(*a, axis=-2)),
        case(i32(4), number(0), number(1), None, expect=np.zeros((5, 0), np.int32)),
        case(i32(0), number(2), number(1), number(7), expect=np.zeros((0, 2), np.int32)),
        case(bools(5), number(2), number(2), None, expect=cut, widen=False),
        case(strings(4), np.array(2, np.int64), number(1), None, expect=cut, widen=False),
        bad(f32(), number(2), number(1), None, says="a scalar cannot be framed"),
        bad(f32(4), number(2), number(0), None, says="frame_step is too small"),
        bad(f32(4), number(-1), number(1), None, says="frame_length is too small"),
        bad(f32(4), number(2), number(1), None, axis=3, says="axis 3 is out of range"),
        bad(f32(4), number(2), number(1), f64(), says="differ in dtype"),
    ],
    "signal.frame": [
        case(np.arange(7, dtype=np.int32), 3, 2, expect=[[0, 1, 2], [2, 3, 4], [4, 5, 6]]),
        case(
            np.arange(7, dtype=np.int32),
            3,
            2,
            pad_end=True,
            pad_value=9,
            expect=[[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 9, 9]],
        ),
        case(f64(4, 3), 2, 1, axis=0, expect=lambda x, n, s: cut(x, n, s, axis=0)),
    ],
    "OverlapAndAdd": [
        case(f64(3, 4), number(2), expect=added),
        case(f64(2, 3, 5), number(2), expect=added),
        case(f64(3, 2), number(3), expect=added),
        case(f64(2, 4, 4), number(4), expect=added),
        case(f64(3, 4, 2), number(3), axis=0, expect=lambda x, s: added(x, s, 0)),
        case(f64(2, 3, 4, 2), number(1), axis=-2, expect=lambda x, s: added(x, s, -2)),
        case(np.zeros((0, 5), np.float32), number(2), expect=np.zeros(3, np.float32)),
        case(np.zeros((3, 0, 5), np.float32), number(5), expect=np.zeros((3, 0), np.float32)),
        case(i32(3, 2), number(1), expect=added),
        case(c128(3, 4), number(3), expect=added),
        bad(f32(3), number(1), says="rank at least 2"),
        bad(f32(3, 3), number(0), says="frame_step is too small"),
    ],
    "signal.overlap_and_add": [case(f64(3, 4), 2, expect=added), bad(f32(3, 2), 1.5, says="dtype")],
    "signal.dct": [
        *(case(f64(2, 5), type=t, expect=cosine(t)) for t in (1, 2, 3, 4)),
        *(case(f64(6), type=t, norm="ortho", expect=cosine(t, norm="ortho")) for t in (2, 3, 4)),
        *(case(f64(2, 5), type=t, n=n, expect=cosine(t, n)) for t in (1, 2, 3, 4) for n in (3, 7)),
        case(f32(4), expect=cosine(2), gives="float32", rtol=1e-5, atol=1e-5, half=False),
        case(f64(3, 1), expect=cosine(2)),
        case(f32(2, 0), expect=np.zeros((2, 0), np.float32), unknown=False, half=False),
        bad(f32(4), type=5, says="Types I, II, III and IV", raises=ValueError),
        bad(f32(4), type=1, norm="ortho", says="not supported", raises=ValueError),
        bad(f32(1), type=1, says="greater than one", raises=ValueError),
        bad(f32(4), norm="x", says="Unknown normalization", raises=ValueError),
        bad(f32(4), n=0, says="positive integer", raises=ValueError),
        bad(f32(4), axis=0, says="axis must be -1", raises=NotImplementedError),
        bad(i32(4), says="int32", raises=TypeError),
    ],
    "signal.idct": [
        *(case(f64(2, 5), type=t, expect=cosine(t, undo=True)) for t in (1, 2, 3, 4)),
        *(case(f64(6), type=t, norm="ortho", expect=cosine(t, norm="ortho", undo=True)) for t in (2, 3, 4)),
        case(
            np.ones(4),
            n=6,
            expect=[
                6.078116022520108,
                1.0000000000000002,
                -1.6286262797369306,
                0.16452466459917608,
                1.0,
                -0.6140144073823544,
            ],
        ),
    ],
    "signal.stft": [
        case(f64(2, 12), 4, 2, expect=lambda x, *_: spectra(4, 2, 4)(x)),
        case(f64(11), 6, 4, expect=lambda x, *_: spectra(6, 4, 8)(x)),
        case(f64(11), 6, 4, fft_length=5, pad_end=True, expect=lambda x, *_: spectra(6, 4, 5, pad=0.0)(x)),
        case(f64(9), 3, 2, window_fn=None, expect=lambda x, *_: spectra(3, 2, 4, np.ones(3))(x)),
        case(
            f32(9), 4, 2, gives="complex64", rtol=1e-5, atol=1e-5, half=False, expect=lambda x, *_: spectra(4, 2, 4)(x)
        ),
        case(
            np.arange(12.0),
            number(3),
            number(2),
            grad=False,
            expect=[[v, -v * 1j, -v] for v in (1, 3, 5, 7, 9)],
            atol=1e-12,
        ),
        bad(f32(8), number(4)[None], 2, says="frame_length is a scalar", raises=ValueError),
    ],
    "signal.inverse_stft": [
        case(c128(2, 3), 4, 2, expect=lambda x, *_: added(from_half(x, (4,)) * hann(4, 4), 2)),
        case(
            c128(2, 3, 3),
            3,
            2,
            fft_length=4,
            window_fn=None,
            expect=lambda x, *_: added(from_half(x, (4,))[..., :3], 2),
        ),
        case(
            c128(2, 3),
            6,
            2,
            fft_length=4,
            window_fn=None,
            expect=lambda x, *_: added(resized(from_half(x, (4,)), 6, -1), 2),
        ),
        case(f64(20), call=stft_and_back, expect=lambda x: x[6:-6]),
        bad(c64(3), 4, 2, says="rank of at least 2"),
    ],
    "signal.inverse_stft_window_fn": [
        case(
            2,
            6,
            call=lambda step, n: call("inverse_stft_window_fn")(step)(n, dtype="float64"),
            grad=False,
            expect=lambda step, n: hann(6, 6) / np.tile((hann(6, 6) ** 2).reshape(3, 2).sum(0), 3),
        ),
        case(
            3,
            5,
            call=lambda step, n: call("inverse_stft_window_fn")(step)(n, dtype="float64"),
            grad=False,
            expect=lambda step, n: hann(5, 4) / np.tile((np.append(hann(5, 4), 0) ** 2).reshape(2, 3).sum(0), 2)[:5],
        ),
    ],
    "signal.mdct": [
        case(f64(2, 12), 4, expect=lambda x, _: modified(4, vorbis(4))(x)),
        case(f64(17), 8, window_fn=None, norm="ortho", expect=lambda x, _: modified(8, math.sqrt(0.5), 8**-0.5)(x)),
        case(f64(14), 8, pad_end=True, expect=lambda x, _: modified(8, vorbis(8), pad=0.0)(x)),
        case(
            np.arange(12.0),
            4,
            expect=np.array(
                [
                    [-5.60732072, -0.21486955],
                    [-11.18950088, 0.70122925],
                    [-16.77168105, 1.61732805],
                    [-22.35386122, 2.53342685],
                    [-27.93604138, 3.44952565],
                ]
            ),
            rtol=1e-6,
        ),
        bad(f32(12), 6, says="multiple of 4", raises=ValueError),
    ],
    "signal.inverse_mdct": [
        *(
            case(f64(2, 24), call=mdct_and_back(w, norm), expect=lambda x: x[..., 4:-4])
            for w in (None, "vorbis_window", "kaiser_bessel_derived_window")
            for norm in (None, "ortho")
        ),
        bad(f32(4), says="rank of at least 2"),
    ],
    "signal.hann_window": [
        case(5, dtype="float64", expect=hann(5, 4)),
        case(6, dtype="float64", expect=hann(6, 6)),
        case(6, periodic=False, dtype="float64", expect=hann(6, 5)),
        case(1, expect=np.ones(1, np.float32)),
        case(0, expect=np.zeros(0, np.float32)),
        case(number(1), expect=np.ones(1, np.float32)),
        case(number(6), np.array(True), expect=hann(6, 6).astype(np.float32), rtol=1e-5, atol=1e-6),
        case(4, dtype="bfloat16", expect=[0.0, 0.5, 1.0, 0.5], gives="bfloat16"),
        bad(5, dtype="int32", says="floating point type", raises=ValueError),
        bad([5], says="scalar", raises=ValueError),
    ],
    "signal.hamming_window": [
        case(5, dtype="float64", expect=hann(5, 4, 0.54)),
        case(6, dtype="float64", expect=hann(6, 6, 0.54)),
        case(6, periodic=False, expect=hann(6, 5, 0.54), gives="float32", rtol=1e-5),
    ],
    "signal.kaiser_window": [
        case(5, dtype="float64", expect=kaiser(5, 12.0), grad=False),
        case(6, np.array(8.6), dtype="float64", expect=kaiser(6, 8.6), rtol=1e-12),
        case(1, expect=np.ones(1, np.float32)),
        case(2, expect=kaiser(2, 12.0), gives="float32", rtol=1e-5),
        case(number(1), expect=np.ones(1, np.float32)),
        case(5, dtype="float16", expect=kaiser(5, 12.0), gives="float16", rtol=2e-3),
    ],
    "signal.kaiser_bessel_derived_window": [
        case(6, dtype="float64", expect=derived(6, 12.0)),
        case(8, 4.0, dtype="float64", expect=derived(8, 4.0)),
        case(5, expect=derived(5, 12.0), rtol=1e-5, gives="float32"),
        case(0, expect=np.zeros(0, np.float32)),
    ],
    "signal.vorbis_window": [
        case(6, dtype="float64", expect=vorbis(6)),
        case(number(5), expect=vorbis(5), rtol=1e-5, gives="float32"),
        case(0, expect=np.zeros(0, np.float32)),
    ],
    "signal.linear_to_mel_weight_matrix": [
        case(4, 9, 8000, 125.0, 3800.0, dtype="float64", expect=mels(4, 9, 8000, 125.0, 3800.0)),
        case(5, 17, 16000.0, 80.0, 7600.0, expect=mels(5, 17, 16000, 80, 7600), rtol=1e-4, atol=1e-5),
        bad(0, says="num_mel_bins must be positive", raises=ValueError),
        bad(4, 9, -1, says="sample_rate must be positive", raises=ValueError),
        bad(4, 9, 8000, -1.0, says="non-negative", raises=ValueError),
        bad(4, 9, 8000, 125.0, 100.0, says="lower_edge_hertz", raises=ValueError),
        bad(4, 9, 8000, 125.0, 4100.0, says="Nyquist", raises=ValueError),
        bad(4, dtype="int32", says="floating", raises=ValueError),
    ],
    "signal.mfccs_from_log_mel_spectrograms": [
        case(f64(3, 5), expect=lambda x: x @ cosines(2, 5).T / math.sqrt(10)),
        bad(f32(2, 0), says="positive", raises=ValueError),
    ],
}

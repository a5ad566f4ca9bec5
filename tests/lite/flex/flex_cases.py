"""Functions of one operator that only the framework has, and inputs: what Flex operators are tested on.

Lives here: the table.  Not here: what TensorFlow answers (answers.npz, by make_answers.py), the checks (test_flex.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opwright as ow

m, linalg, strings, image, signal = ow.math, ow.linalg, ow.strings, ow.image, ow.signal


def f32(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Floats between the limits."""
    return np.random.default_rng(seed + sum(shape)).uniform(low, high, shape).astype(np.float32)


def spd(n: int) -> np.ndarray:
    """A symmetric positive definite matrix."""
    a = f32(n, n, seed=5)
    return (a @ a.T + n * np.eye(n)).astype(np.float32)


UNIT, POSITIVE, X = f32(7, low=-0.95, high=0.95), f32(7, low=0.1, high=4.0), f32(3, 4)
WORDS = np.array(["Ab cd", "", "éa b"], object)
IDS = np.array([0, 0, 2, 3], np.int32)

#   name: (function, *inputs)
CASES: dict[str, tuple[Any, ...]] = {
    "Lgamma": (m.lgamma, POSITIVE),
    "Digamma": (m.digamma, POSITIVE),
    "Erfinv": (m.erfinv, UNIT),
    "Ndtri": (m.ndtri, f32(5, low=0.1, high=0.9)),
    "BesselI0e": (m.bessel_i0e, X),
    "BesselI1e": (m.bessel_i1e, X),
    "Igamma": (m.igamma, POSITIVE, f32(7, seed=3, low=0.1, high=3.0)),
    "Igammac": (m.igammac, POSITIVE, POSITIVE),
    "Betainc": (m.betainc, POSITIVE, POSITIVE, f32(7, low=0.1, high=0.9)),
    "Zeta": (m.zeta, POSITIVE + 1, POSITIVE),
    "Polygamma": (m.polygamma, np.ones(7, np.float32), POSITIVE),
    "NextAfter": (m.nextafter, X, -X),
    "Cross": (linalg.cross, f32(4, 3), f32(4, 3, seed=1)),
    "Cumprod": (lambda x: m.cumprod(x, axis=1, exclusive=True, reverse=True), X),
    "CumulativeLogsumexp": (lambda x: m.cumulative_logsumexp(x, axis=1, reverse=True), X),
    "EuclideanNorm_float64": (lambda x: m.reduce_euclidean_norm(x, axis=[0], keepdims=True), X.astype(np.float64)),
    "Cholesky": (linalg.cholesky, spd(4)),
    "MatrixInverse": (lambda x: linalg.inv(x, adjoint=True), spd(3)),
    "MatrixDeterminant": (linalg.det, spd(3)),
    "LogMatrixDeterminant": (linalg.slogdet, spd(3)),
    "MatrixSolve": (linalg.solve, spd(3), f32(3, 2)),
    "Qr": (linalg.qr, f32(4, 3)),
    "MatrixTriangularSolve": (lambda a, b: linalg.triangular_solve(a, b, lower=False), np.triu(spd(3)), f32(3, 2)),
    "Svd": (lambda x: linalg.svd(x, compute_uv=False), f32(4, 3)),
    "SelfAdjointEig": (linalg.eigvalsh, spd(4)),
    "MatrixSquareRoot": (linalg.sqrtm, spd(3)),
    "Lu": (lambda x: linalg.lu(x)[0], spd(4)),
    "MatrixBandPart": (lambda x: linalg.band_part(x, 1, 0), f32(2, 4, 4).astype(np.float64)),
    "FFT": (signal.fft, f32(8).astype(np.complex64)),
    "IFFT2D": (signal.ifft2d, f32(4, 4).astype(np.complex64)),
    "RFFT": (lambda x: signal.rfft(x, [6]), f32(2, 6)),
    "IRFFT": (lambda x: signal.irfft(x), f32(5).astype(np.complex64)),
    "Angle": (m.angle, (f32(3) + 1j * f32(3, seed=1)).astype(np.complex64)),
    "StringLength": (lambda s: strings.length(s, unit="UTF8_CHAR"), WORDS),
    "StringUpper": (strings.upper, WORDS),
    "StringJoin": (lambda a, b: strings.join([a, b], separator="-"), WORDS, WORDS),
    "Substr": (lambda s: strings.substr(s, 0, 1), np.array(["ab", "cd"], object)),
    "RegexReplace": (lambda s: strings.regex_replace(s, "[a-b]", "<\\\\0>"), WORDS),
    "StringToNumber": (strings.to_number, np.array(["1.5", "-2e3"], object)),
    "AsString": (lambda x: strings.as_string(x, precision=3), X),
    "StringToHashBucketFast": (lambda s: strings.to_hash_bucket_fast(s, 1000), WORDS),
    "ReduceJoin": (lambda s: strings.reduce_join(s, axis=0, separator="+"), np.array([["a", "b"], ["c", ""]], object)),
    "AdjustHue": (lambda x: image.adjust_hue(x, 0.2), f32(2, 2, 3, low=0.0, high=1.0)),
    "AdjustContrast": (lambda x: image.adjust_contrast(x, 1.5), f32(2, 3, 3)),
    "RGBToHSV": (image.rgb_to_hsv, f32(2, 2, 3, low=0.0, high=1.0)),
    "ResizeBicubic": (lambda x: image.resize(x, [5, 7], "bicubic"), f32(1, 3, 4, 2)),
    "ResizeArea": (lambda x: image.resize(x, [2, 3], "area"), f32(1, 4, 6, 2)),
    "CropAndResize": (
        lambda x, b: image.crop_and_resize(x, b, [0], [3, 3], "nearest", 0.5),
        f32(1, 5, 5, 2),
        np.array([[0.1, 0.1, 0.8, 1.2]], np.float32),
    ),
    "ExtractImagePatches": (
        lambda x: image.extract_patches(x, [1, 2, 2, 1], [1, 1, 2, 1], [1, 1, 1, 1], "SAME"),
        f32(1, 4, 4, 2),
    ),
    "SegmentMax": (lambda x: m.segment_max(x, ow.constant(IDS)), f32(4, 2)),
    "SegmentMean": (lambda x: m.segment_mean(x, ow.constant(IDS)), f32(4, 2)),
    "InvertPermutation": (m.invert_permutation, np.array([2, 0, 1], np.int32)),
    "LeftShift": (ow.bitwise.left_shift, np.array([1, 5], np.int32), np.array([2, 3], np.int32)),
    "InTopK": (lambda t, p: m.in_top_k(t, p, 2), np.array([1, 3], np.int32), f32(2, 5)),
    "UnravelIndex": (lambda i: ow.unravel_index(i, [3, 4]), np.array([5, 11], np.int32)),
    "DynamicPartition": (lambda x: ow.dynamic_partition(x, ow.constant([0, 1, 0, 1]), 2), f32(4, 2)),
    "DynamicStitch": (
        lambda a, b: ow.dynamic_stitch([ow.constant([0, 2]), ow.constant([1, 3])], [a, b]),
        f32(2, 2),
        f32(2, 2, seed=1),
    ),
    "StatelessRandomNormal": (lambda x: ow.random.stateless_normal([4], seed=[1, 2]) + x, f32(4)),
    "DenseBincount": (lambda x: m.bincount(x, minlength=5, maxlength=5), np.array([1, 1, 3], np.int32)),
    "Sum_float64": (lambda x: m.reduce_sum(x, axis=1), X.astype(np.float64)),
    "MatMul_float64": (ow.matmul, X.astype(np.float64), f32(4, 2).astype(np.float64)),
    "Roll_float64": (lambda x: ow.roll(x, [1], [1]), X.astype(np.float64)),
    "Multiply_float64": (lambda x: x * 2.5, X.astype(np.float64)),
}

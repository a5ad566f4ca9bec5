"""Forms of spectra.

Lives here: `Fourier`.  Not here: other forms (forms.py), its kernel (../kernels/fourier.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .forms import Buffer, Form


@dataclass(frozen=True, eq=False)
class Fourier(Form):
    """The discrete Fourier transform of rows, float32: y[k] = sum_j x[j] exp(-2 pi i j k / size), 0 behind a row's end.

    input: real [..., n], and the output the first half, [..., size / 2 + 1, 2]; or, complex, [..., n, 2], and the
    output [..., size, 2]. Real and imaginary parts are neighbours. n <= size.
    """

    input: Buffer
    size: int
    complex: bool = False

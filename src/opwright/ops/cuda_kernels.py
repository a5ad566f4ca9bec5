"""Kernels for GPUs, built on CuPy's libraries: matrix products and convolutions by cuBLAS, special functions.

Lives here: the table of kernels, and `enter`, which registers it at the first request for a GPU.
Not here: operators without a kernel of their own. Element-wise operators, reductions and data movement run their
reference: device arrays implement NumPy's protocols by CuPy's kernels and cuBLAS.

cuDNN has no row: CuPy dropped its binding in version 14. A convolution is one matrix product per kernel element, which
reads the image in place; grouped convolutions decline. Kernels that need CuPy's name import it.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.places import CUDAPlace, Place
from . import registry
from .kernels import KernelKey, register_kernel

# Operators whose reference adds by index (`add.at`, `bincount` with weights): CuPy does that by atomic additions, in
# whatever order threads come. The switch cuda_deterministic has them computed on the CPU.
ATOMIC = frozenset(
    {
        "AvgPoolGrad",
        "ConfusionMatrix",
        "DenseBincount",
        "GatherGrad",
        "MaxPool3DGrad",
        "MaxPoolGrad",
        "MergeRows",
        "MirrorPadGrad",
        "ResizeBicubicGrad",
        "ResizeBilinearGrad",
        "ResizeNearestNeighborGrad",
        "ScatterNd",
        "SegmentMean",
        "SequenceContextGrad",
        "SequenceScatter",
        "TensorScatterAdd",
        "TensorScatterSub",
    }
)

_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
_COMPLEX = (dtypes.complex64, dtypes.complex128)


def _matmul(call: Any, a: Any, b: Any) -> object:
    """Run the reference: on arrays of a GPU `np.matmul` is cuBLAS's gemm, batched if needed."""
    return call.operator.compute_rule(call, a, b)


def _convolve(call: Any, image: Any, filters: Any) -> object:
    """y[n, p, :] = sum over q of x[n, p * stride + q * dilation - before, :] @ w[q]."""
    from .nn.convolution_rules import check_depths, from_last, to_last
    from .windows import spatial_windows

    x = to_last(image, call.data_format)
    check_depths(x.shape[-1], *filters.shape[-2:])
    if x.shape[-1] != filters.shape[-2]:
        return NotImplemented
    windows = spatial_windows(call, x.shape[1:-1], filters.shape)
    if 0 in x.shape or 0 in filters.shape or any(w.out == 0 for w in windows):
        return NotImplemented
    narrow = x.dtype.itemsize == 2  # 16-bit floats are added up in 32 bits
    work = x.astype(np.float32) if narrow else x
    taps = filters.astype(np.float32) if narrow else filters
    if any(w.before or w.after for w in windows):
        work = np.pad(work, [(0, 0), *((w.before, w.after) for w in windows), (0, 0)])
    total: Any = None
    for q in itertools.product(*(range(w.kernel) for w in windows)):
        seen = work[(slice(None), *(w.tap(i) for w, i in zip(windows, q)))]
        part = np.matmul(seen, taps[q])
        total = part if total is None else total + part
    return from_last(total.astype(x.dtype) if narrow else total, call.data_format)


_SPECIAL = {  # operator -> its name in cupyx.scipy.special
    "BesselI0": "i0",
    "BesselI0e": "i0e",
    "BesselI1": "i1",
    "BesselI1e": "i1e",
    "BesselJ0": "j0",
    "BesselJ1": "j1",
    "BesselY0": "y0",
    "BesselY1": "y1",
    "Betainc": "betainc",
    "Digamma": "digamma",
    "Erf": "erf",
    "Erfc": "erfc",
    "Erfinv": "erfinv",
    "Igamma": "gammainc",
    "Igammac": "gammaincc",
    "Lgamma": "gammaln",
    "Ndtri": "ndtri",
    "Zeta": "zeta",
}


def _special(name: str) -> Callable[..., Any]:
    def kernel(call: Any, *arrays: Any) -> object:
        function = getattr(importlib.import_module("cupyx.scipy.special"), name, None)
        if function is None:
            return NotImplemented
        return function(*arrays).astype(arrays[0].dtype, copy=False)

    kernel.__name__ = name
    return kernel


def table() -> list[tuple[str, str, tuple[Any, ...], Callable[..., Any]]]:
    """Return operator, library, dtypes and kernel of each row."""
    return [
        ("MatMul", "cublas", (*_FLOATS, *_COMPLEX), _matmul),
        ("Conv2D", "cublas", _FLOATS, _convolve),
        ("Conv3D", "cublas", _FLOATS, _convolve),
        *((op, "foreign", _FLOATS[1:], _special(name)) for op, name in _SPECIAL.items()),
    ]


def enter(place: Place) -> None:
    """Register every row for a kind of place; existing kernels of a key stay."""
    for name, library, dtypes_, kernel in table():
        op = registry.get(name)
        for dtype in dtypes_:
            if KernelKey(place, dtype, "any", library) not in op.kernels:
                register_kernel(op, place=place, dtype=dtype, library=library)(kernel)


@functools.cache
def enter_for_gpus() -> None:
    """Register every row for GPUs, once."""
    enter(CUDAPlace(0))

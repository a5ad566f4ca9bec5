"""Kernels for GPUs, made of CuPy's libraries: products and convolutions by cuBLAS, special functions.

Lives here: the table of them, and `enter`, which registers it when a GPU is first asked for.
Not here: what needs no kernel. Element-wise operators, reductions and what moves values run as they are written: arrays
of a device speak NumPy's protocols, and CuPy's answers to them are its own kernels and cuBLAS.

cuDNN has no row: CuPy gave its binding up with version 14. A convolution is one product of matrices for each element
of the kernel, which reads the image in place; grouped ones decline. CuPy is imported by the kernels that need its name.
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


def _matmul(call: Any, a: Any, b: Any) -> Any:
    """The reference: on arrays of a GPU its `np.matmul` is cuBLAS's gemm, in batches where there are any."""
    return call.operator.compute_rule(call, a, b)


def _convolve(call: Any, image: Any, filters: Any) -> Any:
    """y[n, p, :] = sum over q of x[n, p * stride + q * dilation - before, :] @ w[q]."""
    from .nn.convolution import check_depths, from_last, to_last
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
    def kernel(call: Any, *arrays: Any) -> Any:
        function = getattr(importlib.import_module("cupyx.scipy.special"), name, None)
        if function is None:
            return NotImplemented
        return function(*arrays).astype(arrays[0].dtype, copy=False)

    kernel.__name__ = name
    return kernel


def table() -> list[tuple[str, str, tuple[Any, ...], Callable[..., Any]]]:
    """Operator, library, dtypes and kernel of each row."""
    return [
        ("MatMul", "cublas", (*_FLOATS, *_COMPLEX), _matmul),
        ("Conv2D", "cublas", _FLOATS, _convolve),
        ("Conv3D", "cublas", _FLOATS, _convolve),
        *((op, "foreign", _FLOATS[1:], _special(name)) for op, name in _SPECIAL.items()),
    ]


def enter(place: Place) -> None:
    """Register every row for a kind of place; a key that somebody filled before keeps its kernel."""
    for name, library, taken, kernel in table():
        op = registry.get(name)
        for dtype in taken:
            if KernelKey(place, dtype, "any", library) not in op.kernels:
                register_kernel(op, place=place, dtype=dtype, library=library)(kernel)


@functools.cache
def enter_for_gpus() -> None:
    """`enter`, once, for GPUs."""
    enter(CUDAPlace(0))

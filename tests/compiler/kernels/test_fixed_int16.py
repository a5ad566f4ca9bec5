"""Fixed-point functions of int16 in kernels: the bits of the integers' own rules, for every number."""

from __future__ import annotations

import numpy as np
import pytest

from opwright.compiler import language as kl
from opwright.compiler.kernels import fixed_int16
from opwright.compiler.language import i32, ptr
from opwright.compiler.language.family import call
from opwright.compiler.target import host
from opwright.lite.ops.quantized import narrow_fixed_point as wanted

EVERY = np.arange(-32768, 32768, dtype=np.int32)


@kl.family
def each(work, x: ptr[i32], y: ptr[i32], *, name: str, bits: int):
    """An item is a vector."""
    lanes = work.lanes(i32)
    for item in work.items():
        y.store(getattr(fixed_int16, name)(x.load(item * lanes, lanes), bits), item * lanes)


@pytest.mark.parametrize(("name", "bits"), [("logistic", 3), *(("tanh", bits) for bits in (0, 2, 3, 4, 5, 6))])
def test_every_number(name, bits):
    found = np.zeros_like(EVERY)
    call(each.code(name=name, bits=bits), [EVERY, found], EVERY.size // (host().vector_bytes // 4))
    np.testing.assert_array_equal(found, getattr(wanted, name)(EVERY.astype(np.int64), bits))

"""The official run time restricted to AVX2 for the benchmarks: what its CPUID instructions are answered.

The oracle is what the system says of the processor.
"""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import restricted

BITS = {
    "avx2": ("rbx", 5),
    "avx512f": ("rbx", 16),
    "avx512bw": ("rbx", 30),
    "avx512_vnni": ("rcx", 11),
    "amx_tile": ("rdx", 24),
    "bmi2": ("rbx", 8),
    "gfni": ("rcx", 8),
}
"""Where subleaf 0 of leaf 7 has features, in the words of /proc/cpuinfo."""

pytestmark = pytest.mark.skipif(not restricted.targets(), reason="this processor has no more than AVX2")


def answered(leaf, subleaf, kept):
    """Registers after the handler met UD2, and how far it went on."""
    code = np.frombuffer(restricted.UD2 + bytes(2), np.uint8)
    context = np.full(64, 0xABCDEF0123, np.int64)
    words = context[restricted.FIRST_REGISTER // 8 :]
    at = restricted.REGISTERS
    words[[at["rax"], at["rcx"], at["rip"]]] = leaf, subleaf, code.ctypes.data
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(restricted._handler(kept))
    handler(4, None, context.ctypes.data)
    return {name: int(words[index]) for name, index in at.items()}, int(words[at["rip"]]) - code.ctypes.data


def test_features_beyond_a_target_are_hidden():
    there = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    registers, step = answered(7, 0, 0)
    assert step == 2
    for feature, (register, bit) in BITS.items():
        hidden = feature.startswith(("avx512", "amx"))
        assert registers[register] >> bit & 1 == (feature in there and not hidden), feature


def test_avx_vnni_is_kept_where_the_target_has_it():
    there = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    for target, kept in restricted.KEPT.items():
        registers, _ = answered(7, 1, kept)
        expected = restricted.AVX_VNNI if "avx_vnni" in there and target == "x86-64-v3-vnni" else 0
        assert [registers[r] for r in ("rax", "rbx", "rcx", "rdx")] == [expected, 0, 0, 0], target


def test_other_leaves_are_answered_as_they_are():
    registers, _ = answered(0, 0, 0)
    vendor = b"".join(registers[r].to_bytes(4, "little") for r in ("rbx", "rdx", "rcx")).decode()
    assert re.search(rf"^vendor_id\s*: {vendor}$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)

"""The ctypes records are laid out as the C compiler lays out the headers' structs, and the numbers are the headers'.

Not here: that the headers are as the interface says (test_native_headers.py).
"""

from __future__ import annotations

import ctypes
import re

import pytest
from native_kit import need_compiler

from opwright.lite.format import schema
from opwright.lite.native import records, toolchain
from opwright.lite.native.callbacks import provider
from opwright.lite.native.toolchain import build_library

pytestmark = pytest.mark.ours

STRUCTS = {
    "TfLiteTensor": records.CTensor,
    "TfLiteNode": records.CNode,
    "TfLiteContext": records.CContext,
    "TfLiteRegistration": records.CRegistration,
    "TfLiteQuantizationParams": records.CQuantizationParams,
    "TfLiteQuantization": records.CQuantization,
    "TfLiteAffineQuantization": records.CAffineQuantization,
    "TfLiteBlockwiseQuantization": records.CBlockwiseQuantization,
    "OwHost": records.CHost,
    "OwCall": records.CCall,
}
NUMBERS = {
    "kTfLiteMmapRo": records.MMAP_RO,
    "kTfLiteArenaRw": records.ARENA_RW,
    "kTfLiteDynamic": records.MEM_DYNAMIC,
    "kTfLiteArenaRwPersistent": records.ARENA_RW_PERSISTENT,
    "kTfLitePersistentRo": records.PERSISTENT_RO,
    "kTfLiteNonCpu": records.NON_CPU,
    "kTfLiteAffineQuantization": records.AFFINE,
    "kTfLiteBlockwiseQuantization": records.BLOCKWISE,
    "kTfLiteBuiltinCustom": records.CUSTOM_CODE,
    "OW_INIT": records.INIT,
    "OW_PREPARE": records.PREPARE,
    "OW_INVOKE": records.INVOKE,
    "OW_FREE": records.FREE,
    **{name: number for number, name in records.STATUS.items()},
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """For each struct, its size and the offset and size of each field; the numbers in order."""
    need_compiler()
    lines = ["#include <stddef.h>", '#include "provider.h"', "#define S(s, f) sizeof(((s*)0)->f)"]
    for struct, record in STRUCTS.items():
        fields = [f"offsetof({struct}, {name}), S({struct}, {name})" for name, *_ in record._fields_]
        lines.append(f"const size_t of_{struct}[] = {{sizeof({struct}), {', '.join(fields)}}};")
    lines.append(f"const int numbers[] = {{{', '.join(NUMBERS)}}};")
    source = tmp_path_factory.mktemp("records") / "records.c"
    source.write_text("\n".join(lines) + "\n")
    return ctypes.CDLL(str(build_library([source], include_dirs=[toolchain.PROVIDER])))


@pytest.mark.parametrize("struct", STRUCTS)
def test_layout(compiled, struct):
    record = STRUCTS[struct]
    names = [name for name, *_ in record._fields_]
    actual = (ctypes.c_size_t * (1 + 2 * len(names))).in_dll(compiled, f"of_{struct}")
    expected = [getattr(record, name) for name in names]
    assert ctypes.sizeof(record) == actual[0]
    assert {n: (w.offset, w.size) for n, w in zip(names, expected)} == {
        n: (actual[1 + 2 * i], actual[2 + 2 * i]) for i, n in enumerate(names)
    }


def test_numbers(compiled):
    assert list((ctypes.c_int * len(NUMBERS)).in_dll(compiled, "numbers")) == list(NUMBERS.values())


def test_certain_bytes_of_a_registration():
    assert records.COMMON_BYTES == 64
    assert ctypes.sizeof(records.CRegistration) == 88


def test_every_type_of_files_has_its_number():
    need_compiler()
    native = provider()
    native.TfLiteTypeGetName.restype = ctypes.c_char_p
    for name in schema.TensorType.__members__:
        said = native.TfLiteTypeGetName(records.TYPES[name]).decode()
        assert re.sub("_", "", said) == re.sub("_", "", name)

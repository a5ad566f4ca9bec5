"""The options' reader in exported C: whatever the bytes, no access outside of them, and what Python's reader says."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from export_kit import GCC, needs_gcc

import opwright as ow
from opwright import lite
from opwright.lite.custom_options import bind_options
from opwright.lite.format.flexbuffers import encode_options


@ow.operator(version=3, name="ExportedOptions")
class Options:
    """An attribute of each kind."""

    x = ow.Input(ow.float32)
    y = ow.Output(like="x")
    real = ow.Attr(float, default=1.5, check=ow.attr.between(-10.0, 1e6))
    whole = ow.Attr(int, default=2, check=ow.attr.at_least(-100))
    flag = ow.Attr(bool, default=True)
    mode = ow.Attr(str, default="near", check=ow.attr.one_of("near", "far", "farther"))
    maybe = ow.Attr(float, default=None, since=2)

    def compute(op, x):
        return x

    @ow.kernel
    def kernel(x, *, real, whole, flag, mode, maybe):
        return x * real + whole if flag and mode != "far" and maybe is None else x


MAIN = """
#include "ExportedOptions.c"
int main(int count, char **names) {
  FILE *file = fopen(names[count - 1], "rb");
  uint32_t n;
  while (fread(&n, 4, 1, file) == 1) {
    char *bytes = (char *)malloc(n); /* of this very size, so that the sanitizer sees a byte too many */
    if (n > 0 && fread(bytes, 1, n, file) != n) return 2;
    ow_state *s = (ow_state *)ow_init(NULL, bytes, n);
    if (s->error[0]) printf("- %.40s\\n", s->error);
    else printf("%.17g %lld %d %d %d %.17g\\n", s->real, (long long)s->whole, s->flag_choice, s->mode_choice,
                s->maybe_choice, s->maybe_choice > 0 ? s->maybe : 0.0);
    ow_free(NULL, s);
    free(bytes);
  }
  fclose(file);
  return 0;
}
"""

GOOD = [
    {},
    {"real": 2.5},
    {"real": 3, "whole": -7},
    {"flag": False, "mode": "far"},
    {"flag": 1, "mode": "farther"},
    {"maybe": None, "mode": b"far"},
    {"maybe": 0.1, "whole": 2**40, "real": 1e5 + 0.1},
    {"mode": "near", "_version": 2},
    {"real": -3.0, "whole": 0, "flag": True, "mode": "far", "maybe": -2.25, "_version": 3},
]
BAD = [
    {"whole": 1.5},
    {"mode": "nearer"},
    {"flag": 2},
    {"other": 1},
    {"real": "1"},
    {"real": [1.0]},
    {"whole": 2**63},
    {"mode": {"a": 1}},
    {"_version": 4},
    {"real": 1e7},
    {"whole": -101},
    {"mode": b"nea"},
]


def mutants(n: int, seed: int = 7) -> list[bytes]:
    rng = np.random.default_rng(seed)
    documents = [encode_options(o) for o in (*GOOD, *BAD)]
    result = [*documents, b"", b"\0", b"\0\0\1", bytes(64), b"\xff" * 64]
    for _ in range(n):
        data = bytearray(documents[rng.integers(len(documents))])
        for _ in range(rng.integers(1, 4)):
            how, at = rng.integers(4), rng.integers(max(len(data), 1))
            if how == 0 and data:
                data[at] = rng.integers(256)
            elif how == 1 and data:
                data[at] ^= 1 << rng.integers(8)
            elif how == 2:
                del data[at : at + rng.integers(1, 9)]
            else:
                data[at:at] = rng.bytes(rng.integers(1, 9))
        result.append(bytes(data))
    return result


def by_python(options: bytes) -> str | None:
    """Return the output of the C program for options that the Python reader accepts; None for others."""
    try:
        call = bind_options(Options, options)
    except (ow.errors.OpError, TypeError, ValueError):
        return None
    if call.whole >= 2**63:  # an int of C has 64 bits
        return None
    modes = ["near", "far", "farther"]
    return (
        f"{call.real:.17g} {call.whole} {int(call.flag)} {modes.index(call.mode)} {int(call.maybe is not None)} "
        f"{call.maybe or 0.0:.17g}"
    )


def by_c(documents: list[bytes], folder: Path, *flags: str) -> list[str]:
    ow.export_c(Options, folder, api="struct")
    (folder / "main.c").write_text(MAIN)
    (folder / "documents").write_bytes(b"".join(struct.pack("<I", len(d)) + d for d in documents))
    command = [
        GCC,
        "-std=c11",
        *flags,
        f"-I{lite.include_dir()}",
        str(folder / "main.c"),
        "-o",
        str(folder / "main"),
        "-lm",
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if built.returncode and any("sanitize" in f for f in flags):
        pytest.skip(f"no sanitizers: {built.stderr[-200:]}")
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [str(folder / "main"), str(folder / "documents")],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def compare(documents: list[bytes], said: list[str]) -> int:
    """How many documents both take. What Python takes C takes, with the same values."""
    assert len(said) == len(documents)
    both = 0
    for document, line in zip(documents, said):
        want = by_python(document)
        if want is not None:
            assert line == want, document
            both += 1
    return both


@needs_gcc
def test_every_kind_of_attribute_is_read_as_python_reads_it(tmp_path):
    documents = [encode_options(o) for o in (*GOOD, *BAD)]
    said = by_c(documents, tmp_path, "-O0")
    assert compare(documents, said) == len(GOOD)
    assert all(line.startswith("- ") for line in said[len(GOOD) :])


@needs_gcc
@pytest.mark.slow
def test_broken_bytes_under_the_sanitizers(tmp_path):
    documents = mutants(60_000)
    said = by_c(documents, tmp_path, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    assert compare(documents, said) > 1000
    taken = [(d, line) for d, line in zip(documents, said) if not line.startswith("- ") and by_python(d) is None]
    assert len(taken) < len(documents) / 20, taken[:5]  # damage in parts that C does not look at, such as T's value

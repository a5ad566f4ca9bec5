"""Built libraries of many models in one C program for another processor, run under an emulator.

Lives here: `Machine`, `MACHINES`, `FAULTS` of emulators, `run_models`.
Not here: the models (benchmarks/single_operators.py), the tests.

A program starts in a second, a cross compiler in less: one program runs all models of a processor, named by number, so
that one that crashes ends its own run only.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
from built_singles import build_single

from opwright.core import dtypes
from opwright.core.errors import OpError


class Machine(NamedTuple):
    """A processor under an emulator. target, cpu, features: as of `aot.build`; compiler, emulator: commands; order: of
    bytes, as of NumPy."""

    target: str
    cpu: str
    features: str
    compiler: tuple[str, ...]
    emulator: tuple[str, ...]
    order: str = "<"

    @property
    def missing(self):
        """The tools that are not installed."""
        return [tool for tool in (self.compiler[0], self.emulator[0]) if not shutil.which(tool)]


FAULTS = {
    "s390x": (
        ("COMPLEX_ABS COMPLEX64",),
        """
        int main(void) {
          float x = 0.5f;
          double y = 0.1;
          __asm__("ld %%f0, %0; ld %%f2, %0; le %%f0, %1; le %%f2, %1; mdebr %%f0, %%f2; std %%f0, %0"
                  : "+m"(y) : "m"(x) : "f0", "f2");
          return y != 0.25;
        }
        """,
    ),
    "riscv64-v": (
        (
            "COS FLOAT32",
            "SIN FLOAT32",
            "FLOOR_DIV INT16",
            "RANDOM_STANDARD_NORMAL INT32",
            "RANDOM_STANDARD_NORMAL FLOAT32",
        ),
        """
        int main(void) {
          __asm__ volatile(".option arch, +v; vsetivli zero, 4, e32, m1, ta, ma; vfcvt.rtz.x.f.v v12, v12");
          return 0;
        }
        """,
    ),
}
"""Instructions that QEMU 7.2 has wrong: MDEBR takes 64 bits of its float32 factors; VFCVT.RTZ and VFNCVT.RTZ end the
emulator (assertion in translate.c), unless a conversion by the current rounding mode precedes them in their block. QEMU
10.0 has both right. By machine: models whose code has it, and a program that fails then."""

MACHINES = {
    "aarch64": Machine("aarch64", "", "", ("aarch64-linux-gnu-gcc",), ("qemu-aarch64", "-cpu", "cortex-a57")),
    "aarch64-dotprod": Machine("aarch64-dotprod", "", "", ("aarch64-linux-gnu-gcc",), ("qemu-aarch64", "-cpu", "max")),
    "armv7": Machine("armv7-neon", "", "", ("arm-linux-gnueabihf-gcc",), ("qemu-arm", "-cpu", "max")),
    "riscv64": Machine("riscv64", "", "", ("riscv64-linux-gnu-gcc",), ("qemu-riscv64", "-cpu", "rv64")),
    "riscv64-v": Machine(
        "riscv64-v", "", "", ("riscv64-linux-gnu-gcc",), ("qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0")
    ),
    "ppc64le": Machine("ppc64le", "", "", ("powerpc64le-linux-gnu-gcc",), ("qemu-ppc64le", "-cpu", "power9")),
    "s390x": Machine("s390x", "", "", ("s390x-linux-gnu-gcc",), ("qemu-s390x", "-cpu", "max"), ">"),
    "windows": Machine("x86-64-v3-windows", "", "", ("x86_64-w64-mingw32-gcc",), ("wine",)),
}


def faulty_models(name, folder):
    """Return the models whose results the emulator of a machine gets wrong, or ends at."""
    machine, (models, program) = MACHINES[name], FAULTS.get(name, ((), ""))
    if not models:
        return ()
    (folder / "probe.c").write_text(program)
    subprocess.run([*machine.compiler, "-O1", "-static", "probe.c", "-o", "probe.exe"], cwd=folder, check=True)
    is_right = not subprocess.run([*machine.emulator, "./probe.exe"], cwd=folder, capture_output=True).returncode
    return () if is_right else models


_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned char *space(size_t n) {
  unsigned char *p = malloc(n + 128);
  memset(p, 0xA5, n + 128);
  return p + (64 - (size_t)p % 64);
}
static void *from(FILE *f, size_t n) {
  void *p = space(n);
  if (n && fread(p, 1, n, f) != n) exit(3);
  return p;
}
static void write_shape(const size_t *shape, size_t rank, FILE *f) {
  int64_t n;
  for (; rank--; shape++) {
    n = (int64_t)*shape;
    fwrite(&n, 8, 1, f);
  }
}
"""


def _runner(notes):
    """C that runs one model twice and writes the outputs of the second run."""
    name, big, state = notes["name"], notes["name"].upper(), notes["state"]
    (notes,) = notes["signatures"]
    size = {
        p["identifier"]: int(np.prod(p["shape"], dtype=np.int64)) * _dtype(p).itemsize
        for p in notes["inputs"] + notes["outputs"]
    }
    lines = [
        f"static int go_{name}(FILE *in, FILE *out) {{",
        f"  struct {name}_inputs i; struct {name}_outputs o;",
        f"  void *arena = space({big}_ARENA_SIZE); int status, n;",
    ]
    lines += [f"  i.{p['identifier']} = from(in, {size[p['identifier']]});" for p in notes["inputs"]]
    lines += ["  (void)in; memset(&o, 0, sizeof o);" if notes["inputs"] else "  (void)in; memset(&i, 0, sizeof i);"]
    lines += [f"  o.{p['identifier']} = (void *)space({size[p['identifier']]});" for p in notes["outputs"]]
    if state:
        lines += [f"  static struct {name}_state state; {name}_reset(&state);"]
    lines += [
        "  for (n = 0; n < 2; n++) {",
        f"    status = {name}_run(&i, &o, {'&state, ' if state else ''}arena, {big}_ARENA_SIZE);",
        "    if (status) return status;",
        "  }",
    ]
    for p in notes["outputs"]:
        if p["varies"]:
            lines.append(f"  write_shape(o.{p['identifier']}_shape, {len(p['shape'])}, out);")
        lines.append(f"  fwrite(o.{p['identifier']}, 1, {size[p['identifier']]}, out);")
    return "\n".join([*lines, "  return 0;", "}"])


def _dtype(port):
    return np.dtype(dtypes.as_dtype(port["dtype"]).np)


def run_models(machine, models, folder):
    """The outputs of models by name; an error's text where one is not built, ends with a status or crashes.

    models: of one operator (benchmarks/single_operators.py)
    """
    folder = Path(folder)
    results, notes = {}, {}
    for number, single in enumerate(models):
        prefix, name = f"row{number}", single.name
        try:
            build_single(
                single, machine.target, folder, name=prefix, cpu=machine.cpu, features=machine.features, format="object"
            )
        except OpError as error:
            results[name] = f"not built: {error}"
            continue
        notes[name] = json.loads((folder / f"{prefix}.json").read_text())
        data = b"".join(
            np.ascontiguousarray(x).astype(x.dtype.newbyteorder(machine.order)).tobytes() for x in single.feeds
        )
        (folder / f"{prefix}.in").write_bytes(data)
    text = [f'#include "{n["name"]}.h"' for n in notes.values()] + [_MAIN] + [_runner(n) for n in notes.values()]
    text += [
        "int main(int argc, char **argv) {",
        "  int k;",
        "  for (k = 1; k < argc; k++) {",
        "    char path[64];",
        "    FILE *in, *out; int status = -1, row = atoi(argv[k]);",
        '    sprintf(path, "row%d.in", row); in = fopen(path, "rb");',
        '    sprintf(path, "row%d.out", row); out = fopen(path, "wb");',
        "    if (!in || !out) return 4;",
        "    switch (row) {",
    ]
    text += [f"      case {n['name'][3:]}: status = go_{n['name']}(in, out); break;" for n in notes.values()]
    text += [
        "    }",
        '    fclose(in); fclose(out); printf("%d %d\\n", row, status); fflush(stdout);',
        "  }",
        "  return 0;",
        "}",
    ]
    (folder / "rows.c").write_text("\n".join(text))
    objects = [n["object"] for n in notes.values()]
    command = [*machine.compiler, "-O1", "-static", "rows.c", *objects, "-lm", "-o", "rows.exe"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-3000:]
    by_number = {n["name"][3:]: name for name, n in notes.items()}
    statuses, left = {}, list(by_number)
    while left:
        done = subprocess.run(
            [*machine.emulator, "./rows.exe", *left], cwd=folder, capture_output=True, text=True, check=False
        )
        printed = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        statuses |= printed
        left = [n for n in left if n not in printed]
        if left:
            statuses[left[0]] = f"crashed with {done.returncode}: {done.stderr.strip()[-200:]}"
            left = left[1:]
    for number, status in statuses.items():
        name = by_number[number]
        results[name] = (
            _outputs(notes[name], folder / f"row{number}.out", machine.order) if status == "0" else f"status {status}"
        )
    return results


def _outputs(notes, path, order):
    data, arrays = path.read_bytes(), []
    for port in notes["signatures"][0]["outputs"]:
        dtype, shape = _dtype(port), port["shape"]
        if port["varies"]:
            shape = np.frombuffer(data[: 8 * len(shape)], np.dtype(np.int64).newbyteorder(order))
            data = data[8 * len(shape) :]
        n = int(np.prod(port["shape"], dtype=np.int64)) * dtype.itemsize
        array = np.frombuffer(data[:n], dtype.newbyteorder(order)).astype(dtype)
        arrays.append(array[: np.prod(shape, dtype=np.int64)].reshape(shape))
        data = data[n:]
    assert not data, "the program wrote more"
    return arrays

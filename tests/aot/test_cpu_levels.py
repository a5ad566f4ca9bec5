"""Several levels of a processor in one library: each computes as a library of its own, the processor's is chosen."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from test_libraries import HOST, has_compiler, network

from opwright import aot
from opwright.aot.cpu_levels import levels_of
from opwright.aot.targets import find_target
from opwright.compiler.target import processor
from opwright.core.errors import InvalidArgumentError, UnimplementedError

PROGRAM = """
#include "net.h"
#include <stdio.h>
static uint8_t memory[NET_ARENA_SIZE + NET_ARENA_ALIGN];
static float image[NET_IMAGE_SIZE], scores[NET_SCORES_SIZE], shape[1];
int main(void) {
  struct net_inputs in = {image};
  struct net_outputs out = {scores, shape};
  uint8_t *arena = memory + (NET_ARENA_ALIGN - (uintptr_t)memory % NET_ARENA_ALIGN);
  FILE *file = fopen("image.bin", "rb");
  int level, best = net_level(), status;
  size_t i;
  if (!file || fread(image, sizeof image, 1, file) != 1) return 1;
  status = net_run(&in, &out, arena, NET_ARENA_SIZE);
  printf("best %d status %d bad %d %d\\n", best, status, net_set_level(-1), net_set_level(LEVELS + 1));
  for (level = 1; level <= LEVELS; level++) {
    status = net_set_level(level);
    printf("level %d status %d run %d", level, status, status ? 0 : net_run(&in, &out, arena, NET_ARENA_SIZE));
    for (i = 0; !status && i < NET_SCORES_SIZE; i++) printf(" %.9g", (double)scores[i]);
    printf("\\n");
  }
  status = net_set_level(NET_BEST_LEVEL);
  printf("again %d %d\\n", status, net_level());
  return 0;
}
"""


def levels_of_program(folder, levels, compiler, emulator=()):
    """Compile the program and run it: the best level, and the scores of each that the processor has."""
    (folder / "levels.c").write_text(PROGRAM.replace("LEVELS", str(levels)))
    strict = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    strict += ["-mcpu=baseline"] if "ziglang" in compiler else []  # whose default is this machine's processor
    command = [*compiler, *strict, "-static", "-O1", "levels.c", "libnet.a", "-lm", "-o", "levels"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return lambda *cpu: _parsed([*emulator, *cpu, "./levels"], folder)


def _parsed(command, folder):
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    first, *rows, last = done.stdout.splitlines()
    best, status, *bad = map(int, re.findall(r"-?\d+", first))
    assert (status, bad) == (0, [9, 9])
    assert last == f"again 0 {best}"
    scores = {}
    for row in rows:
        _, level, _, status, _, run, *values = row.split()
        assert (status, run) in (("0", "0"), ("9", "0"))
        if status == "0":
            scores[int(level)] = np.array(values, np.float32)
    return best, scores


@pytest.mark.slow
@has_compiler
@pytest.mark.skipif(not processor().has("avx2"), reason="needs AVX2")
def test_each_level_is_the_library_of_its_target(tmp_path):
    """Bits of a library for the level alone; the highest level that the processor has is chosen."""
    content, image = network()
    library = aot.build(content, out=tmp_path, name="net", cpu="v4-vnni,v3,v2,v4")
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    best, scores = levels_of_program(tmp_path, 4, HOST)()
    names = {1: "x86-64-v2", 2: "x86-64-v3", 3: "x86-64-v4", 4: "x86-64-v4-vnni"}
    features = {2: "avx2", 3: "avx512vl", 4: "avx512vnni"}
    has = {level: level == 1 or processor().has(features[level]) for level in names}
    assert best == max(level for level, there in has.items() if there)
    assert set(scores) == {level for level, there in has.items() if there}
    for level, name in names.items():
        if not has[level]:
            continue
        alone = aot.build(content, name, tmp_path / name, name="net", format="object")
        assert alone.weights <= library.weights
        expected = aot.load(tmp_path / name)(image=image)["scores"].reshape(-1)
        np.testing.assert_array_equal(scores[level], expected)
    chosen = aot.load(tmp_path)(image=image)["scores"].reshape(-1)
    np.testing.assert_array_equal(chosen, scores[best])


@pytest.mark.slow
@has_compiler
@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="needs qemu-x86_64")
def test_the_highest_level_of_x86_processors(tmp_path):
    content, image = network()
    aot.build(content, "x86-64-v2", tmp_path, name="net", cpu="v2,v3,v4")
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    run = levels_of_program(tmp_path, 3, HOST, ("qemu-x86_64",))
    best = {cpu: run("-cpu", cpu) for cpu in ("Nehalem", "Haswell", "Haswell,-bmi2")}
    assert {cpu: result[0] for cpu, result in best.items()} == {"Nehalem": 1, "Haswell": 2, "Haswell,-bmi2": 1}
    np.testing.assert_allclose(best["Haswell"][1][1], best["Haswell"][1][2], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("qemu-aarch64") or not shutil.which("aarch64-linux-gnu-gcc"), reason="needs qemu-aarch64 and a gcc"
)
def test_the_highest_level_of_aarch64_processors(tmp_path):
    content, image = network()
    aot.build(content, "aarch64", tmp_path, name="net", cpu="generic,dotprod,i8mm")
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    run = levels_of_program(tmp_path, 3, ["aarch64-linux-gnu-gcc"], ("qemu-aarch64",))
    assert {cpu: run("-cpu", cpu)[0] for cpu in ("cortex-a57", "neoverse-n1", "max")} == {
        "cortex-a57": 1,
        "neoverse-n1": 2,
        "max": 3,
    }


@pytest.mark.slow
def test_equal_constants_of_levels_are_stored_once(tmp_path):
    """Weights of float32 are packed alike for v4 and v4-vnni."""
    content, _ = network()
    both = aot.build(content, out=tmp_path / "both", name="net", cpu="v4,v4-vnni", format="object")
    one = aot.build(content, "x86-64-v4", tmp_path / "one", name="net", format="object")
    assert both.weights == one.weights


def test_objects_for_windows_have_levels(tmp_path):
    """Whose functions of bytes (CPUID, probes of the stack) LLVM does not assemble."""
    library = aot.build(network()[0], "x86-64-v2-windows", tmp_path, name="net", cpu="v2,v3", format="object")
    content = (tmp_path / "net.o").read_bytes()
    assert content[:2] == b"\x64\x86"  # IMAGE_FILE_MACHINE_AMD64
    assert b"__chkstk" not in content
    assert library.files == ("net.o", "net.h", "net.json")


def test_mistakes_are_named(tmp_path):
    content, _ = network()
    for names in ("v2,v9", "v2,v2", "v2,"):
        with pytest.raises(InvalidArgumentError, match="v4-vnni"):
            aot.build(content, "x86-64-v2", tmp_path, cpu=names)
    with pytest.raises(UnimplementedError, match="x86-64 and AArch64"):
        aot.build(content, "cortex-m4", tmp_path, cpu="v2,v3")
    with pytest.raises(InvalidArgumentError, match="lib"):
        aot.build(content, out=tmp_path, cpu="v2,v3", format="c")
    assert [v.name for v in levels_of(find_target("x86-64-v3-windows"), "v4,v1")] == ["v1", "v4"]
    assert levels_of(find_target("x86-64-v3-windows"), "v4,v1")[1].target.triple.endswith("windows-msvc")

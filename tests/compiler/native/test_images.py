"""Objects of LLVM's are linked into images and loaded by us: what runs is what was written, and damage is seen."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from images_kit import ANSWER, EVERYTHING, TABLE, function

from opwright.compiler import target as targets
from opwright.compiler.native.image import PAGE, Image, load_images, runs_images
from opwright.compiler.native.linker import link
from opwright.compiler.native.workers import executor_text
from opwright.core.errors import DataLossError, NotFoundError, UnimplementedError

pytestmark = pytest.mark.skipif(not runs_images(), reason="LLVM's own loader is used on this system")

NAMES = ("host", "generic", "x86-64-v4", "aarch64")


@functools.cache
def everything(name: str) -> bytes:
    return targets.named(name).object_code(EVERYTHING)


def check_all(entries: dict[str, int]) -> None:
    run = function(entries["all"])
    out, given_in = ctypes.create_string_buffer(b"x" * 64, 64), ctypes.create_string_buffer(b"y" * 64, 64)
    assert run(out, 0, 10, given_in) == 0
    assert out.raw == b"\0" * 10 + b"x" * 54
    assert run(out, 1, 20, given_in) == 0
    assert out.raw == b"y" * 20 + b"x" * 44
    assert [run(out, 2, i, given_in) for i in range(256)] == TABLE
    table, itself, half = (run(out, 3, i, given_in) for i in range(3))
    assert ctypes.string_at(table, 256) == bytes(TABLE)
    assert itself == entries["all"]
    assert ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(half)(5.0) == 2.5
    x, y = np.float32([1, 2, 3, 4]), np.zeros(4, np.float32)
    assert run(y.ctypes.data, 4, 0, x.ctypes.data) == 0
    assert y.tolist() == [1, 4, 9, 16]
    assert run(out, 5, 21, given_in) == 30
    assert run(out, 6, 0, given_in) == 0
    assert int.from_bytes(out.raw[:8], "little") == entries["visible"]
    ldexpf = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float, ctypes.c_int)(int.from_bytes(given_in.raw[:8], "little"))
    assert ldexpf(3.0, 2) == 12.0
    assert run(out, 7, 0, given_in) == -1


def test_all_that_an_object_has_runs() -> None:
    image = link(everything("host"))
    assert set(image.entries) == {"all", "visible"}
    check_all(load_images([image])[0])


def test_images_lie_side_by_side() -> None:
    small = link(targets.host().object_code(ANSWER.replace("VALUE", "5")))
    paged = small._replace(align=PAGE)
    loaded = load_images([small, link(everything("host")), paged, link(everything("host"))])
    assert [function(loaded[i]["k"])(None, 0, 0, None) for i in (0, 2)] == [5, 5]
    assert (loaded[2]["k"] - paged.entries["k"]) % PAGE == 0
    check_all(loaded[1])
    check_all(loaded[3])
    assert load_images([]) == []


def test_nothing_is_writable_and_executable() -> None:
    entries = load_images([link(everything("host"))])[0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        start, end = (int(x, 16) for x in span.split("-"))
        if start <= entries["all"] < end:
            assert rights == "r-xp"
            return
    pytest.fail("the code is nowhere")


@pytest.mark.parametrize("name", NAMES)
def test_an_image_survives_its_bytes(name: str) -> None:
    image = link(everything(name))
    assert Image.from_bytes(image.to_bytes()) == image


@given(st.sampled_from(NAMES), st.data())
def test_a_cut_image_is_seen(name: str, data: st.DataObject) -> None:
    whole = link(everything(name)).to_bytes()
    with pytest.raises(DataLossError):
        Image.from_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(DataLossError):
        Image.from_bytes(whole + b"\0")


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda b: b"OWI1" + b))
def test_what_is_no_image_is_seen(data: bytes) -> None:
    with pytest.raises(DataLossError):
        Image.from_bytes(data)


@given(st.sampled_from(NAMES), st.data())
def test_a_changed_object_is_refused_or_linked_within_bounds(name: str, data: st.DataObject) -> None:
    """Whatever LLVM, or a disk, may give: an image whose places lie in it, or an error that says what was found."""
    code = bytearray(everything(name))
    for _ in range(data.draw(st.integers(1, 3))):
        last = len(code) - 1  # sections and symbols are named at the end
        at = data.draw(st.integers(0, 63) | st.integers(0, last) | st.integers(last * 2 // 3, last))
        code[at] = data.draw(st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255))
    code = code[: data.draw(st.just(len(code)) | st.integers(0, len(code)))]
    try:
        image = link(bytes(code))
    except UnimplementedError:
        return
    assert Image.from_bytes(image.to_bytes()) == image


REFUSED = {
    "variables of its own": (
        "generic",
        "@count = global i64 3\ndefine i64 @k() {\n  %n = load i64, ptr @count\n"
        "  store i64 4, ptr @count\n  ret i64 %n\n}\n",
    ),
    "another kind": ("riscv64", ANSWER.replace("VALUE", "1")),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_an_image_is_refused(why: str) -> None:
    name, text = REFUSED[why]
    with pytest.raises(UnimplementedError, match=why):
        link(targets.named(name).object_code(text))


def test_a_function_that_is_not_there_is_named() -> None:
    text = "declare i64 @nobody_has_this()\ndefine i64 @k() {\n  %x = call i64 @nobody_has_this()\n  ret i64 %x\n}\n"
    with pytest.raises(NotFoundError, match="nobody_has_this"):
        load_images([link(targets.host().object_code(text))])


# --- the other processor, under qemu ----------------------------------------------------------------------------------

LOADER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <math.h>
#include <sys/mman.h>
%DECLARED%
static void *c_functions[] = { %IMPORTS% };
static uint32_t bases[] = { %BASES% }, imports[] = { %PLACES% };
enum { SIZE = %SIZE%, BASES = %COUNT_BASES%, IMPORTS = %COUNT_IMPORTS% };
static char *load(const char *path) {
  char *at = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FILE *file = fopen(path, "rb");
  if (fread(at, 1, SIZE, file) != SIZE) exit(2);
  for (int i = 0; i < BASES; i++) *(uint64_t *)(at + bases[i]) += (uint64_t)at;
  for (int i = 0; i < IMPORTS; i++) *(void **)(at + imports[i]) = c_functions[i];
  mprotect(at, SIZE, PROT_READ | PROT_EXEC);
  return at;
}
%MAIN%
"""
MAIN = """
typedef long (*all_t)(void *, long, long, void *);
int main(void) {
  char *at = load("image"), out[64], in[64];
  all_t all = (all_t)(at + %ALL%);
  memset(out, 'x', 64); memset(in, 'y', 64);
  printf("%ld ", all(out, 0, 10, in)); printf("%d %c ", out[9], out[10]);
  printf("%ld ", all(out, 1, 20, in)); printf("%c %c ", out[19], out[20]);
  long sum = 0; for (int i = 0; i < 256; i++) sum += all(out, 2, i, in) * i; printf("%ld ", sum);
  printf("%d ", ((unsigned char *)all(out, 3, 0, in))[255]);
  printf("%d ", all(out, 3, 1, in) == (long)all);
  printf("%g ", ((float (*)(float))all(out, 3, 2, in))(5.0f));
  float x[4] = {1, 2, 3, 4}, y[4]; all(y, 4, 0, x); printf("%g %g %g %g ", y[0], y[1], y[2], y[3]);
  printf("%ld ", all(out, 5, 21, in));
  all(out, 6, 0, in); printf("%d %d\\n", *(char **)out == at + %VISIBLE%, *(void **)in == (void *)ldexpf);
}
"""


def run_aarch64(image: Image, main: str, folder: Path, declared: str = "") -> str:
    """Return the output of a C program that loads an image of AArch64 as `load_images` does."""
    if importlib.util.find_spec("ziglang") is None or shutil.which("qemu-aarch64") is None:
        pytest.skip("needs ziglang and qemu-aarch64")
    values = {
        "DECLARED": declared,
        "MAIN": main,
        "IMPORTS": ", ".join(name for _, name in image.imports),
        "PLACES": ", ".join(str(at) for at, _ in image.imports),
        "BASES": ", ".join(map(str, image.bases)),
        "SIZE": len(image.content),
        "COUNT_BASES": len(image.bases),
        "COUNT_IMPORTS": len(image.imports),
        **{name.upper(): at for name, at in image.entries.items()},
    }
    text = LOADER
    for name, value in values.items():
        text = text.replace(f"%{name}%", str(value))
    (folder / "image").write_bytes(image.content)
    (folder / "main.c").write_text(text)
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", "-O1", "-w"]
    subprocess.run([*compiler, "main.c", "-lm", "-o", "main"], cwd=folder, check=True)
    return subprocess.run(["qemu-aarch64", "./main"], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_an_image_of_the_other_processor_runs(tmp_path: Path) -> None:
    image = link(everything("aarch64"))
    assert image.align == PAGE
    total = sum(i * b for i, b in enumerate(TABLE))
    assert run_aarch64(image, MAIN, tmp_path).split() == [
        *("0", "0", "x", "0", "y", "x", str(total), str(TABLE[255]), "1", "2.5"),
        *("1", "4", "9", "16", "30", "1", "1"),
    ]


# The kernels: each item is added to once; threads that meet; a guard.
POOL = """
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
typedef long (*kernel_t)(long *, long, long, void *);
typedef struct { kernel_t kernel; long *words; long items, chunk, spare[4]; } step_t;
typedef struct {
  step_t *steps; long count; void *pool, *scratch; long bytes, failed, took; void *state; long polls, alone, lead;
} plan_t;
static long add(long *words, long begin, long end, void *scratch) {
  *(long *)scratch = begin;
  for (long i = begin; i < end; i++) ((long *)words[0])[i] += words[1];
  return *(volatile long *)scratch != begin;
}
static long meet(long *words, long begin, long end, void *scratch) {
  __atomic_add_fetch(&words[0], 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&words[0], __ATOMIC_SEQ_CST) < words[1]) sched_yield();
  return 0;
}
static long guard(long *words, long begin, long end, void *scratch) { return end > 30 ? 7 : 0; }
void *PyEval_SaveThread(void) { return 0; }
void PyEval_RestoreThread(void *state) {}
void *PyLong_FromLongLong(long value) { return (void *)value; }
void *PyLong_AsVoidPtr(void *self) { return self; }
int PyGILState_Ensure(void) { return 0; }
void PyGILState_Release(int state) {}
int PyErr_CheckSignals(void) { return 0; }
void PyErr_Fetch(void **type, void **value, void **trace) {}
void PyErr_Restore(void *type, void *value, void *trace) {}
"""
RUN = """
int main(void) {
  char *at = load("image");
  void *(*executor)(long) = (void *(*)(long))(at + %EXECUTOR%);
  long (*run)(plan_t *) = executor(0), (*run_timed)(plan_t *, long *) = executor(1);
  void *(*call)(void *, void *) = executor(2), *(*work)(void *) = executor(3);
  static long state[8];
  pthread_key_t key;
  pthread_key_create(&key, 0);
  state[5] = key;
  for (int threads = 2; threads <= 4; threads++) {
    static char pools[5][4096] __attribute__((aligned(128))), scratch[512] __attribute__((aligned(64)));
    char *pool = pools[threads];
    ((long *)pool)[1] = threads, ((long *)pool)[2] = 1000, ((long *)pool)[3] = 100, ((long **)pool)[4] = state;
    for (long which = 1; which < threads; which++) {
      long *worker = (long *)(pool + 896 + 128 * threads + 16 * which);
      pthread_t thread;
      worker[0] = (long)pool, worker[1] = which;
      pthread_create(&thread, 0, work, worker);
    }
    static long sums[100];
    memset(sums, 0, sizeof sums);
    long adds[2] = {(long)sums, 1}, meets[2] = {0, threads}, times[60];
    step_t steps[60];
    for (int i = 0; i < 60; i++) steps[i] = (step_t){add, adds, 100, 7};
    steps[30] = (step_t){meet, meets, threads, 1};
    steps[59] = (step_t){add, adds, 100, 0};
    plan_t plan = {steps, 60, pool, scratch, 128, 0};
    long status = 0, wrong = 0;
    for (int turn = 0; turn < 300; turn++) {
      meets[0] = 0;
      plan.took = 1 << 20;  // so that workers are woken
      status |= turn % 3 == 0 ? run(&plan) : turn % 3 == 1 ? run_timed(&plan, times) : (long)call(&plan, 0);
      if (turn % 50 == 0) usleep(20000);
    }
    for (int i = 0; i < 100; i++) wrong += sums[i] != 59 * 300;
    steps[31].kernel = guard;
    meets[0] = 0;
    long failed = run(&plan);
    printf("%ld %ld %ld %ld ", status, wrong, failed, plan.failed);
  }
  return 0;
}
"""


def test_the_executor_of_the_other_processor_runs(tmp_path: Path) -> None:
    target = targets.named("aarch64")
    image = link(target.object_code(executor_text(target)))
    assert run_aarch64(image, RUN, tmp_path, POOL).split() == ["0", "0", "7", "31"] * 3

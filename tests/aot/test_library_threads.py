"""Libraries on threads that the caller provides: the bits of one thread, the example's pool, callbacks that err."""

import shutil
import subprocess

import numpy as np
import pytest

import opwright as ow
from opwright import aot
from opwright.aot.model_plans import plan_model
from opwright.aot.targets import find_target
from opwright.core.errors import InvalidArgumentError, UnimplementedError

has_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


@pytest.fixture(scope="module")
def network():
    """Strands of convolutions, and a product whose rows are divided: content, inputs, the interpreter's outputs."""
    rng = np.random.default_rng(3)
    wide, deep = (rng.normal(size=s).astype(np.float32) for s in ((3, 3, 3, 32), (3, 3, 32, 1)))
    narrow, dense = (rng.normal(size=s).astype(np.float32) for s in ((1, 1, 32, 16), (16, 64)))

    @ow.function(
        input_signature=[
            ow.TensorSpec([1, 192, 192, 3], ow.float32, name="image"),
            ow.TensorSpec([2], ow.int32, name="rows"),
        ]
    )
    def model(image, rows):
        x = ow.nn.relu6(ow.nn.conv2d(image, wide, 2, "SAME"))
        x = ow.nn.relu6(ow.nn.depthwise_conv2d(x, deep, (1, 1, 1, 1), "SAME"))
        x = ow.reshape(ow.nn.conv2d(x, narrow, 1, "SAME"), [-1, 16]) @ dense
        return {"y": ow.tanh(x), "picked": ow.gather(x, rows)}

    content = ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model).convert()
    feeds = {"image": rng.normal(size=(1, 192, 192, 3)).astype(np.float32), "rows": np.array([9215, 7], np.int32)}
    with ow.flags(background=False):
        expected = ow.lite.Interpreter(model_content=content).get_signature_runner()(**feeds)
    return content, feeds, expected


@pytest.fixture(scope="module")
def library(network, tmp_path_factory):
    """The folder of the network's library for this processor."""
    folder = tmp_path_factory.mktemp("threads")
    aot.build(network[0], out=folder, name="net", threads=True)
    return folder


def test_results_are_the_interpreters_on_any_number_of_threads(network, library):
    content, feeds, expected = network
    steps = plan_model(content, find_target("host")).plan.steps
    assert any(s.covers > 0 for s in steps)
    assert any(not s.covers and (s.chunk or 1) < s.items for s in steps)
    for threads in (1, 2, 5):
        run = aot.load(library, threads=threads)
        for _ in range(3):
            results = run(**feeds)
            assert sorted(results) == ["picked", "y"]
            for key, value in results.items():
                np.testing.assert_array_equal(value, expected[key])
        with pytest.raises(InvalidArgumentError, match="an index points outside of what it indexes"):
            run(image=feeds["image"], rows=np.array([0, 9216], np.int32))


def printed_by_example(folder, feeds, command):
    """The first elements of each output that the example prints."""
    subprocess.run([*command, "-pthread", "-o", "example"], cwd=folder, check=True)
    for name, array in feeds.items():
        (folder / f"{name}.bin").write_bytes(array.tobytes())
    files = [f"{name}.bin" for name in feeds]
    done = subprocess.run([folder / "example", *files], cwd=folder, check=True, capture_output=True, text=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[0]: np.array(row[1:], np.float32) for row in rows}


@has_gcc
@pytest.mark.parametrize("compiler", ["gcc -std=c99", "g++ -x c++", "gcc -std=c11 -fsanitize=thread"])
def test_the_example_has_a_pool_of_threads(compiler, network, library):
    _, feeds, expected = network
    language = ["-x", "none"] if "c++" in compiler else []
    printed = printed_by_example(library, feeds, [*compiler.split(), *WARNINGS, "main.c", *language, "libnet.a", "-lm"])
    for key, values in printed.items():
        np.testing.assert_array_equal(values, expected[key].reshape(-1)[:10])


@has_gcc
@pytest.mark.parametrize("flags", [pytest.param(["-O2"], marks=pytest.mark.slow), ["-O1", "-fsanitize=thread"]])
def test_c_source_runs_on_threads(flags, network, tmp_path):
    content, feeds, expected = network
    aot.build(content, out=tmp_path, name="net", format="c", threads=True)
    command = ["gcc", "-std=c11", *flags, *WARNINGS, "-ffp-contract=off", "main.c", "net.c", "net_weights.c", "-lm"]
    printed = printed_by_example(tmp_path, feeds, command)
    for key, values in printed.items():
        np.testing.assert_allclose(values, expected[key].reshape(-1)[:10], rtol=1e-5, atol=1e-5)


CALLS = """
#include "net.h"
#include <stdio.h>
#include <string.h>
static uint8_t memory[NET_ARENA_SIZE_FOR(3) + NET_ARENA_ALIGN];
static float image[NET_IMAGE_SIZE], first[NET_Y_SIZE], y[NET_Y_SIZE], picked[NET_PICKED_SIZE];
static int32_t rows[2];
static size_t calls, asked = 3;
static size_t three(void *c) { (void)c; return asked; }
static void backwards(void *c, size_t n, void (*task)(void *, size_t), void *work) {
  calls++;
  *(int *)c += 1;
  while (n-- > 0) task(work, n);
}
static void idle(void *c, size_t n, void (*task)(void *, size_t), void *work) {
  (void)c, (void)n, (void)task, (void)work;
}
static void beyond(void *c, size_t n, void (*task)(void *, size_t), void *work) {
  (void)c;
  task(work, n + 1000);
  while (n-- > 0) task(work, n);
}
int main(void) {
  uint8_t *arena = memory + (NET_ARENA_ALIGN - (uintptr_t)memory % NET_ARENA_ALIGN) % NET_ARENA_ALIGN;
  int own = 0;
  struct net_threads good = {&own, three, backwards}, none = {&own, three, 0}, also = {&own, 0, backwards};
  struct net_threads bad = {&own, three, idle}, far = {&own, three, beyond};
  struct net_inputs in = {image, rows};
  struct net_outputs out;
  size_t i, size = NET_ARENA_SIZE_FOR(3);
  for (i = 0; i < NET_IMAGE_SIZE; i++) image[i] = (float)(i % 7) - 3.0f;
  out.y = first;
  out.picked = picked;
  printf("%d ", net_run(&in, &out, NULL, arena, NET_ARENA_SIZE));
  out.y = y;
  printf("%d ", net_run(&in, &out, &good, arena, size));
  printf("%d %d ", memcmp(first, y, sizeof y), own == (int)calls && own > 2);
  memset(y, 0, sizeof y);
  printf("%d ", net_run(&in, &out, &far, arena, size));
  printf("%d ", memcmp(first, y, sizeof y));
  printf("%d %d ", net_run(&in, &out, &none, arena, size), net_run(&in, &out, &also, arena, size));
  printf("%d %d ", net_run(&in, &out, &good, arena, size - 1), net_run(&in, &out, &bad, arena, size));
  asked = 0;
  printf("%d ", net_run(&in, &out, &bad, arena, NET_ARENA_SIZE));
  asked = 3;
  rows[1] = -9216;
  printf("%d ", net_run(&in, &out, &good, arena, size));
  rows[1] = 9216;
  printf("%d", net_run(&in, &out, &good, arena, size));
  return 0;
}
"""


@has_gcc
@pytest.mark.parametrize("format", ["lib", "c"])
def test_callbacks_that_err_are_statuses(format, network, tmp_path):
    """Tasks in any order, on one thread, for indices that there are not; a callback that is null or does nothing."""
    aot.build(network[0], out=tmp_path, name="net", format=format, threads=True)
    (tmp_path / "calls.c").write_text(CALLS)
    sources = ["libnet.a"] if format == "lib" else ["net.c", "net_weights.c"]
    command = ["gcc", "-std=c11", "-O1", *WARNINGS, "calls.c", *sources, "-lm", "-o", "calls"]
    subprocess.run(command, cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "calls"], check=True, capture_output=True, text=True).stdout
    assert printed == "0 0 0 1 0 0 4 4 2 10 0 1 1"


def test_threads_that_cannot_be_are_refused(network, tmp_path):
    content = network[0]
    aot.build(content, out=tmp_path, name="net", format="object")
    with pytest.raises(InvalidArgumentError, match="threads=True"):
        aot.load(tmp_path, threads=2)
    for target, format in (("wasm32-simd128", None), ("cortex-m4", "lib"), ("host", "arduino")):
        with pytest.raises(UnimplementedError, match="run on one thread"):
            aot.build(content, target, tmp_path, format=format, threads=True)

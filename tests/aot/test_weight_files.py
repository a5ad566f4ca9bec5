"""Weights as a file: the results of embedded ones, in C and in Python; files that are not a library's are statuses."""

import hashlib
import shutil
import struct
import subprocess

import numpy as np
import pytest
from test_libraries import HOST, has_compiler, interpreted, network, single_operators

import opwright as ow
from opwright import aot
from opwright.core.errors import InvalidArgumentError, NotFoundError, UnimplementedError

WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


def printed_by(program, folder, *arguments):
    """The numbers that an example prints, by output."""
    done = subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return {line.split()[0]: np.array(line.split()[1:], np.float32) for line in done.stdout.splitlines()}


@has_compiler
@pytest.mark.parametrize(
    ("kind", "standard"),
    [("lib", "-std=c99"), pytest.param("lib", "-std=c17", marks=pytest.mark.slow), ("c", "-std=c11")],
    ids=["lib-99", "lib-17", "c"],
)
def test_the_example_maps_the_file(kind, standard, tmp_path):
    content, image = network()
    library = aot.build(content, out=tmp_path, name="net", format=kind, weights="file")
    assert "net.weights" in library.files
    sources = ["main.c", "libnet.a" if kind == "lib" else "net.c"]
    command = [*HOST, standard, "-O1", "-ffp-contract=off", *WARNINGS, *sources, "-lm", "-o", "example"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    printed = printed_by(tmp_path / "example", tmp_path, "image.bin")
    for values, expected in zip(printed.values(), interpreted(content, [image]), strict=True):
        np.testing.assert_allclose(values, expected.reshape(-1)[:10], rtol=0 if kind == "lib" else 1e-5)
    # Where a system has no mmap, the example reads the file.
    subprocess.run([*command, "-U__unix__", "-UNET"], cwd=tmp_path, check=True, capture_output=True)
    for values, mapped in zip(printed_by(tmp_path / "example", tmp_path, "image.bin").values(), printed.values()):
        np.testing.assert_array_equal(values, mapped)
    (tmp_path / "net.weights").unlink()
    done = subprocess.run([tmp_path / "example"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "net.weights: status 4\n"


@pytest.mark.parametrize("operator", [None, "UNIDIRECTIONAL_SEQUENCE_LSTM FLOAT32"])
def test_a_loaded_library_maps_the_file(operator, tmp_path):
    """A network, and a model with state, whose first values are weights."""
    content, feeds = (network()[0], [network()[1]]) if operator is None else (None, None)
    if operator is not None:
        single = next(single_operators.singles(operator))
        content, feeds = single.content, single.feeds
    library = aot.build(content, out=tmp_path, name="net", format="object", weights="file")
    embedded = aot.build(content, out=tmp_path / "embedded", name="net", format="object")
    assert library.weights == embedded.weights
    assert (tmp_path / "net.weights").stat().st_size == 64 + library.weights
    assert (tmp_path / "net.o").stat().st_size < (tmp_path / "embedded" / "net.o").stat().st_size - library.weights // 2
    run = aot.load(tmp_path)
    for runs in (1, 2):
        for actual, expected in zip(run(*feeds).values(), interpreted(content, feeds, runs), strict=True):
            np.testing.assert_array_equal(actual, expected)
    run.reset()
    for actual, expected in zip(run(*feeds).values(), interpreted(content, feeds), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_weights_of_variables_are_in_the_file(tmp_path):
    """`NAME_reset` reads the initial values of variables from the file."""
    values = np.arange(8, dtype=np.float32)
    variable = ow.Variable(values)

    @ow.function(input_signature=[ow.TensorSpec([8], ow.float32, name="x")])
    def add(x):
        return {"sum": variable.assign_add(x)}

    aot.build(add, out=tmp_path, name="net", format="object", weights="file")
    run = aot.load(tmp_path)
    np.testing.assert_array_equal(run(np.ones(8, np.float32))["sum"], values + 1)
    np.testing.assert_array_equal(run(np.ones(8, np.float32))["sum"], values + 2)
    run.reset()
    np.testing.assert_array_equal(run(np.ones(8, np.float32))["sum"], values + 1)


@has_compiler
@pytest.mark.parametrize("kind", ["lib", "c"])
def test_files_that_are_not_the_library_s_are_statuses(kind, tmp_path):
    content, _ = network()
    aot.build(content, out=tmp_path, name="net", format=kind, weights="file")
    (tmp_path / "calls.c").write_text(
        """
        #include "net.h"
        #include <stdio.h>
        #include <string.h>
        static _Alignas(64) uint8_t file[NET_WEIGHTS_SIZE + 64], changed[NET_WEIGHTS_SIZE + 64];
        static uint8_t memory[NET_ARENA_SIZE + NET_ARENA_ALIGN];
        static float image[NET_IMAGE_SIZE], scores[NET_SCORES_SIZE], shape[1];
        int main(void) {
          struct net_weights w = {0};
          struct net_inputs in = {image};
          struct net_outputs out;
          uint8_t *arena = memory + (NET_ARENA_ALIGN - (uintptr_t)memory % NET_ARENA_ALIGN);
          size_t n = NET_WEIGHTS_SIZE, k;
          FILE *f = fopen(NET_WEIGHTS_FILE, "rb");
          if (!f || fread(file, 1, n, f) != n || fgetc(f) != EOF) return 1;
          out.scores = scores;
          out.shape = shape;
          printf("%d ", net_run(&in, &out, &w, arena, NET_ARENA_SIZE));        /* not mapped */
          printf("%d ", net_run(&in, &out, NULL, arena, NET_ARENA_SIZE));
          printf("%d ", net_map_weights(NULL, n, &w));
          printf("%d ", net_map_weights(file, n, NULL));
          printf("%d %d %d ", net_map_weights(file, n - 1, &w), net_map_weights(file, 63, &w),
                 net_map_weights(file, 0, &w));
          memcpy(changed + 1, file, n);
          printf("%d ", net_map_weights(changed + 1, n, &w));
          for (k = 0; k < 64; k++) {
            memcpy(changed, file, n);
            changed[k] ^= 1;
            if (net_map_weights(changed, n, &w) != NET_OTHER_WEIGHTS || w.address) return 2;
          }
          printf("%d ", net_map_weights(file, n, &w));
          printf("%d ", net_run(&in, &out, &w, arena, NET_ARENA_SIZE));
          net_map_weights(changed, n, &w);
          printf("%d\\n", net_run(&in, &out, &w, arena, NET_ARENA_SIZE));      /* no longer mapped */
          return 0;
        }
        """
    )
    sources = ["calls.c", "libnet.a" if kind == "lib" else "net.c"]
    subprocess.run([*HOST, *sources, "-lm", "-o", "calls"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "calls"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["4", "4", "4", "4", "8", "8", "8", "3", "0", "0", "4"]


def test_the_header_has_version_digest_and_size(tmp_path):
    """As its format is documented: name, version, size of the header, digest and size of the constants."""
    aot.build(network()[0], out=tmp_path, name="net", format="object", weights="file")
    content = (tmp_path / "net.weights").read_bytes()
    name, version, header, digest, size, rest = struct.unpack("<8sII32sQ8s", content[:64])
    assert (name, version, header, rest) == (b"OPWRIGHT", 1, 64, bytes(8))
    assert size == len(content) - 64
    assert digest == hashlib.sha256(content[64:]).digest()


def test_mistakes_are_named(tmp_path):
    content, _ = network()
    with pytest.raises(InvalidArgumentError, match="embedded, file"):
        aot.build(content, out=tmp_path, weights="flash")
    for kind, target in (("arduino", "host"), ("web", "wasm32")):
        with pytest.raises(UnimplementedError, match='weights="embedded"'):
            aot.build(content, target, tmp_path, format=kind, weights="file")
    aot.build(content, out=tmp_path, name="net", format="object", weights="file")
    whole = (tmp_path / "net.weights").read_bytes()
    for damaged, words in (
        (whole[:-1], "end before their last byte"),
        (whole[:40], "end before their last byte"),
        (b"x" + whole[1:], "not those of this library"),
    ):
        (tmp_path / "net.weights").write_bytes(damaged)
        with pytest.raises(InvalidArgumentError, match=words):
            aot.load(tmp_path)
    (tmp_path / "net.weights").unlink()
    with pytest.raises(NotFoundError, match="weights"):
        aot.load(tmp_path)


@pytest.mark.slow
@has_compiler
@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_cmake_places_the_file_where_the_example_runs(tmp_path):
    aot.build(network()[0], out=tmp_path / "net", name="net", weights="file")
    for command in (["cmake", "-S", "net", "-B", "made"], ["cmake", "--build", "made"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert printed_by(tmp_path / "made" / "net_example", tmp_path / "made").keys() == {"scores", "shape"}

"""Regions of jitted functions are kept: a later process plans nothing, and their key has what decides their results."""

import os
import subprocess
import sys

import numpy as np
import pytest

import opwright as ow
from opwright.compiler import native_plan
from opwright.compiler.background import compiling
from opwright.compiler.native.image import runs_images
from opwright.core import flags

pytestmark = pytest.mark.skipif(not runs_images(), reason="LLVM's own loader is used on this system")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((7, 24)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    with flags.override(cache_dir=tmp_path):
        yield tmp_path


class Refusing:
    """In the place of the partitioner, where nothing is to be planned."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} is asked for")


def jitted(function, *args):
    """Return the results of a newly traced function, after its plans are cached."""
    result = ow.function(function, jit_compile=True, autograph=False)(*map(ow.constant, args))
    wait()
    return result


def wait():
    compiling.submit(lambda: None).wait()


def kept(monkeypatch, function, *args):
    """The same, and nothing may be planned."""
    with monkeypatch.context() as patched:
        patched.setattr(native_plan, "partitioner", Refusing())
        return jitted(function, *args)


def dense(weights, bias=0.5):
    return lambda x: ow.tanh(ow.matmul(x, ow.constant(weights)) + bias) * 2.0


def meant(x, weights, bias=0.5):
    return np.tanh(x.astype(np.float64) @ weights.astype(np.float64) + bias) * 2


def test_a_kept_function_gives_what_it_gave(folder, monkeypatch):
    weights = RNG.standard_normal((24, 9)).astype(np.float32)
    first = jitted(dense(weights), X)
    np.testing.assert_allclose(first, meant(X, weights), 1e-5, 1e-5)
    for x in (X, X[::-1], np.asfortranarray(X)):
        np.testing.assert_allclose(kept(monkeypatch, dense(weights), x), meant(x, weights), 1e-5, 1e-5)
    turned = np.asfortranarray(weights)  # the same elements, which lie elsewhere
    np.testing.assert_array_equal(kept(monkeypatch, dense(turned), X), first)


def test_constants_sizes_and_operators_are_in_the_key(folder):
    weights = RNG.standard_normal((24, 9)).astype(np.float32)
    for change in range(3):
        other = weights.copy()
        other[change, 0] += 1
        np.testing.assert_allclose(jitted(dense(other), X), meant(X, other), 1e-5, 1e-5)
        np.testing.assert_allclose(jitted(dense(weights, change), X), meant(X, weights, change), 1e-5, 1e-5)
        np.testing.assert_allclose(jitted(dense(weights), X[change:]), meant(X[change:], weights), 1e-5, 1e-5)
    np.testing.assert_allclose(jitted(lambda x: ow.sin(x) * 2.0 + 1.0, X), np.sin(X.astype(np.float64)) * 2 + 1, 1e-5)
    np.testing.assert_allclose(jitted(lambda x: ow.cos(x) * 2.0 + 1.0, X), np.cos(X.astype(np.float64)) * 2 + 1, 1e-5)


def test_state_loops_and_nodes_between_regions(folder, monkeypatch):
    count = ow.Variable(np.float32(0))
    table = RNG.standard_normal((40, 24)).astype(np.float32)

    def body(x):
        count.assign_add(1.0)
        x = ow.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, ow.tanh(x * 1.5) + 0.25), (ow.constant(0), x))[1]
        x = ow.numpy_function(np.positive, [ow.exp(x) * 2.0], ow.float32)
        x = ow.reshape(x, [7, 24])
        return ow.gather(ow.constant(table), ow.constant([3, 39])) + ow.reduce_sum(x * 0.5 - 1.0) * count

    expected = X.astype(np.float64)
    for _ in range(3):
        expected = np.tanh(expected * 1.5) + 0.25
    total = np.sum(np.exp(expected) * 2 * 0.5 - 1)
    np.testing.assert_allclose(jitted(body, X), table[[3, 39]] + total, 1e-4)
    for calls in (2, 3):
        result = (jitted if calls == 2 else lambda *a: kept(monkeypatch, *a))(body, X)
        np.testing.assert_allclose(result, table[[3, 39]] + total * calls, 1e-4)


def test_loops_on_single_elements(folder, monkeypatch):
    def powers(x, n):
        def body(i, y, z):
            z = ow.while_loop(lambda z: z < y, lambda z: z * 3.0, [z])[0]
            return i + 1, ow.where(i % 2 == 0, y * 2.0, y + 1.0), z

        return ow.while_loop(lambda i, y, z: i < n, body, (ow.constant(0), x, x))[1:]

    def gradient(x, n):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y, z = powers(x, n)
        return y, z, tape.gradient(z, x)

    x, n = np.float32(1), np.int32(4)
    y, z = 1.0, 1.0
    for i in range(n):
        while z < y:
            z *= 3
        y = y * 2 if i % 2 == 0 else y + 1
    expected = [y, z, z]
    np.testing.assert_allclose(jitted(gradient, x, n), expected)
    np.testing.assert_allclose(kept(monkeypatch, gradient, x, n), expected)


def test_guards_of_kept_regions_name_the_operator(folder, monkeypatch):
    def look(x, at):
        return ow.gather(ow.tanh(x) * 2.0, at) + 1.0

    jitted(look, X, [0, 6])
    np.testing.assert_allclose(kept(monkeypatch, look, X, [1, 2]), np.tanh(X[[1, 2]]) * 2 + 1, 1e-5, 1e-5)
    with pytest.raises(ow.errors.InvalidArgumentError, match="Gather"):
        kept(monkeypatch, look, X, [0, 7])


def operator(factor):
    @ow.operator
    class KeptScale:
        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return x * np.asarray(factor, x.dtype)

        @ow.kernel
        def kernel(x):
            return x * factor

    return KeptScale


def test_users_kernels_are_in_the_key(folder, monkeypatch):
    for factor in (2.0, 3.0):
        scale = operator(factor)
        function = lambda x, scale=scale: ow.exp(scale(x)) + 1.0  # noqa: E731  another trace each time
        np.testing.assert_allclose(jitted(function, X), np.exp(X * factor) + 1, 1e-4)
        np.testing.assert_allclose(kept(monkeypatch, function, X), np.exp(X * factor) + 1, 1e-4)


def test_damaged_files_are_made_again(folder):
    weights = RNG.standard_normal((24, 9)).astype(np.float32)
    jitted(dense(weights), X)
    paths = sorted((folder / "kernels").glob("*.kernel"))
    assert paths
    for path in paths:
        content = bytearray(path.read_bytes())
        for at in range(40, len(content), 997):
            content[at] ^= 0x10
        path.write_bytes(content)
    np.testing.assert_allclose(jitted(dense(weights), X), meant(X, weights), 1e-5, 1e-5)


SCRIPT = """
import sys
import numpy as np
import opwright as ow
from opwright.compiler.background import compiling

f = ow.function(lambda x: ow.sqrt(x) * 2.0 + 1.0, jit_compile=True)
loop = ow.function(lambda x: ow.while_loop(lambda y: y < 9.0, lambda y: y * 2.0, [x]), jit_compile=True)
y = f(ow.constant(np.float32([[1, 4], [9, 16]]))) + loop(ow.constant(3.0)) - 12.0
print(float(ow.reduce_sum(y)), *[m for m in sys.modules if m.startswith(HEAVY)])
compiling.submit(lambda: None).wait()
"""
HEAVY = (
    "llvmlite",
    "opwright.compiler.language",
    "opwright.compiler.kernels",
    "opwright.compiler.loops",
    "opwright.compiler.lowering",
)


def test_a_later_process_imports_no_compiler(tmp_path):
    env = os.environ | {"OPWRIGHT_CACHE_DIR": str(tmp_path)}
    script = f"HEAVY = {HEAVY!r}\n{SCRIPT}"
    first, second = (
        subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    )
    assert len(first) > 10
    assert second == [first[0]]
    assert float(first[0]) == 24


def test_control_flow_is_kept(folder, monkeypatch):
    """With the jumps of its plan and the constants of its bodies."""
    weights = (RNG.standard_normal((24, 24)) * 0.1).astype(np.float32)

    def turns(x, n):
        def turn(i, x):
            y = ow.tanh(ow.matmul(x, ow.constant(weights)))
            return i + 1, ow.cond(i % 2 == 0, lambda: y, lambda: y * 0.5)

        return ow.while_loop(lambda i, x: i < n, turn, (0, x))[1]

    def meant(x, n):
        for i in range(n):
            x = np.tanh(x.astype(np.float64) @ weights) * (1, 0.5)[i % 2]
        return x

    np.testing.assert_allclose(jitted(turns, X, np.int32(5)), meant(X, 5), 1e-4, 1e-5)
    for n in (5, 0, 8):
        np.testing.assert_allclose(kept(monkeypatch, turns, X, np.int32(n)), meant(X, n), 1e-4, 1e-5)

"""Models as native libraries: the same bits as the interpreter's compiled engine, C that compilers accept, refusals."""

import importlib.util
import itertools
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from built_singles import REFUSED, build_single

import opwright as ow
from opwright import aot
from opwright.aot.identifiers import identifier
from opwright.aot.model_plans import plan_model
from opwright.aot.targets import find_target
from opwright.compiler.byte_order import in_other_order
from opwright.core.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError
from opwright.tools.cli import cli

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks import single_operators

HOST = [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else ["cc"]
has_compiler = pytest.mark.skipif(not shutil.which(HOST[0]), reason="needs a C compiler")
UNSEEDED = ("RANDOM_", "MULTINOMIAL")
"""Operators whose models here have no seed: no two interpreters draw the same numbers."""


def network():
    """A convolution, a depthwise one, a pool and a product: weights, an arena, several kernels."""
    rng = np.random.default_rng(3)
    kernel, depthwise = (rng.normal(size=s).astype(np.float32) for s in ((3, 3, 3, 8), (3, 3, 8, 1)))
    dense = rng.normal(size=(8, 5)).astype(np.float32)

    @ow.function(input_signature=[ow.TensorSpec([1, 16, 16, 3], ow.float32, name="image")])
    def model(x):
        x = ow.nn.relu(ow.nn.conv2d(x, kernel, 2, "SAME"))
        x = ow.nn.depthwise_conv2d(x, depthwise, (1, 1, 1, 1), "SAME")
        return {"scores": ow.nn.softmax(ow.reduce_mean(x, [1, 2]) @ dense), "shape": ow.reduce_max(x)}

    converter = ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model)
    return converter.convert(), rng.normal(size=(1, 16, 16, 3)).astype(np.float32)


def interpreted(content, feeds, runs=1):
    """The outputs of the last of some runs."""
    with ow.flags(background=False):
        interpreter = single_operators.ready(ow.lite.Interpreter(model_content=content), feeds)
        for _ in range(runs - 1):
            interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def rows(every):
    return [pytest.param(part, marks=pytest.mark.slow if part else ()) for part in range(every)]


@pytest.mark.parametrize("part", rows(48))
def test_every_builtin_is_a_library_or_refused_by_name(part, tmp_path):
    """One model for each operator and type."""
    assert run_models(itertools.islice(single_operators.singles(), part, None, 48), tmp_path) >= 5


@pytest.mark.slow
@pytest.mark.timeout(1800)  # which a busy machine may take for 150 models
@pytest.mark.parametrize("part", range(12))
def test_every_row_of_the_operators_is_a_library_or_refused_by_name(part, tmp_path):
    """All fixed cases and drawn rows of the operators' tests."""
    assert run_models(itertools.islice(single_operators.rows(), part, None, 12), tmp_path) >= 100


def run_models(singles, folder):
    """Compare libraries of models with the interpreter, bit by bit; others are refused by an error that names what is
    missing. Returns how many are compared."""
    compared, faults = 0, []
    for i, single in enumerate(singles):
        try:
            results = interpreted(single.content, single.feeds, runs=2)
        except OpError:
            continue  # a model of an operator's errors
        name, refusal = f"row{i}", ""
        try:
            build_single(single, out=folder, name=name, format="object")
        except UnimplementedError as error:
            refusal = str(error)
        if refusal:
            faults += [] if any(reason in refusal for reason in REFUSED) else [(single.name, refusal)]
            continue
        run = aot.load(folder / f"{name}.json")
        run(*single.feeds)
        outputs = run(*single.feeds)
        if single.name.startswith(UNSEEDED):
            assert [(a.shape, a.dtype) for a in outputs.values()] == [(a.shape, a.dtype) for a in results], single.name
            continue
        pairs = list(zip(outputs.values(), results, strict=True))
        if not all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=b.dtype.kind in "fc") for a, b in pairs):
            faults.append((single.name, *pairs))
        compared += 1
    assert not faults, "\n".join(map(str, faults))
    return compared


def test_a_network_has_the_interpreters_bits_on_several_threads(tmp_path):
    content, image = network()
    library = aot.build(content, out=tmp_path, name="net")
    run = aot.load(tmp_path)
    assert run.inputs == ("image",)
    details = ow.lite.Interpreter(model_content=content)
    details.allocate_tensors()
    by_name = details.get_signature_runner()
    with ow.flags(compiled=False):
        names = sorted(by_name(image=image))
    assert sorted(run.outputs) == names == ["scores", "shape"]
    expected = interpreted(content, [image])
    results = {}

    def work(number):
        results[number] = [list(run(image=image).values()) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for outputs in itertools.chain.from_iterable(results.values()):
        for actual, one in zip(outputs, expected, strict=True):
            np.testing.assert_array_equal(actual, one)
    assert library.arena > 0
    assert library.weights >= 4 * (3 * 3 * 3 * 8 + 8 * 5)


@has_compiler
@pytest.mark.parametrize("standard", ["-std=c99", "-std=c17"])
def test_the_example_compiles_without_warnings_and_prints_the_results(standard, tmp_path):
    content, image = network()
    aot.build(content, out=tmp_path, name="net")
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(
        [*HOST, standard, "-O1", *warnings, "main.c", "libnet.a", "-lm", "-o", "example"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    lines = subprocess.run(
        [tmp_path / "example", "image.bin"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    printed = {line.split()[0]: np.array(line.split()[1:], np.float32) for line in lines}
    expected = dict(zip(aot.load(tmp_path).outputs, interpreted(content, [image])))
    for name, values in expected.items():
        np.testing.assert_array_equal(printed[name], values.reshape(-1)[:10])


STANDARDS = {
    "gcc": ("c99", "c11", "c17", "c2x"),
    "clang": ("c99", "c11", "c17", "c2x"),
    "g++": ("c++11", "c++17", "c++20"),
    "clang++": ("c++11", "c++17", "c++20"),
}


@pytest.mark.slow
@pytest.mark.parametrize("compiler", STANDARDS)
def test_every_standard_of_c_compiles_the_examples_without_warnings(compiler, tmp_path):
    """Examples of a plain library, of one with its weights in a file and threads of the caller, of one with state; as
    machine code, and as C source, which is C11."""
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    content, _ = network()
    state = next(single_operators.singles("SVDF FLOAT32")).content
    variants = {
        "plain": (content, {}),
        "divided": (content, {"weights": "file", "threads": True}),
        "state": (state, {}),
    }
    files = []
    for name, (model, settings) in variants.items():
        for kind in ("lib", "c"):
            folder = tmp_path / f"{name}_{kind}"
            aot.build(model, out=folder, name="net", format=kind, **settings)
            files.append((folder / "main.c", STANDARDS[compiler]))
            if kind == "c" and "++" not in compiler:
                files.append((folder / "net.c", [s for s in STANDARDS[compiler] if s != "c99"]))
    for path, standards in files:
        for standard in standards:
            language = ["-x", "c++" if "++" in compiler else "c"]
            flags = [f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
            done = subprocess.run(
                [compiler, *flags, *language, path.name], cwd=path.parent, capture_output=True, text=True
            )
            assert not done.returncode, f"{path} {standard}\n{done.stderr[:2000]}"


@has_compiler
def test_bad_calls_are_statuses(tmp_path):
    """An arena too small or not aligned, an address that is null: numbers, not crashes."""
    content, _ = network()
    aot.build(content, out=tmp_path, name="net")
    (tmp_path / "calls.c").write_text(
        """
        #include "net.h"
        #include <stdio.h>
        static uint8_t memory[NET_ARENA_SIZE + 2 * NET_ARENA_ALIGN];
        static float image[NET_IMAGE_SIZE + 1], scores[NET_SCORES_SIZE], shape[1];
        int main(void) {
          uint8_t *arena = memory + (NET_ARENA_ALIGN - (uintptr_t)memory % NET_ARENA_ALIGN);
          struct net_inputs in = {image}, odd = {(const float *)((const char *)image + 1)}, none = {0};
          struct net_outputs out;
          out.scores = scores;
          out.shape = shape;
          printf("%d %d %d %d %d %d", net_run(&in, &out, arena, NET_ARENA_SIZE),
                 net_run(&in, &out, arena, NET_ARENA_SIZE - 1), net_run(&in, &out, arena + 4, NET_ARENA_SIZE),
                 net_run(&odd, &out, arena, NET_ARENA_SIZE), net_run(&none, &out, arena, NET_ARENA_SIZE),
                 net_run(&in, &out, 0, NET_ARENA_SIZE));
          return 0;
        }
        """
    )
    subprocess.run([*HOST, "calls.c", "libnet.a", "-lm", "-o", "calls"], cwd=tmp_path, check=True, capture_output=True)
    printed = subprocess.run([tmp_path / "calls"], check=True, capture_output=True, text=True).stdout
    assert printed == "0 2 3 3 4 4"


RUNNERS = {
    "aarch64": ("aarch64-linux-musl", "qemu-aarch64"),
    "aarch64-dotprod": ("aarch64-linux-musl", "qemu-aarch64"),
    "riscv64": ("riscv64-linux-musl", "qemu-riscv64"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNERS)
def test_other_processors_compute_the_same_results(name, tmp_path):
    triple, runner = RUNNERS[name]
    if not importlib.util.find_spec("ziglang") or not shutil.which(runner):
        pytest.skip(f"needs ziglang and {runner}")
    content, image = network()
    aot.build(content, name, tmp_path, name="net")
    command = [*HOST, "-target", triple, "-O1", "main.c", "libnet.a", "-lm", "-o", "example"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    cpu = ["-cpu", "max"] if "dotprod" in name else []
    program = [runner, *cpu, tmp_path / "example", "image.bin"]
    lines = subprocess.run(program, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
    printed = [np.array(line.split()[1:], np.float32) for line in lines]
    for actual, expected in zip(printed, interpreted(content, [image]), strict=True):
        np.testing.assert_allclose(actual, expected.reshape(-1)[:10], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_objects_of_other_systems_are_of_their_formats(tmp_path):
    content, _ = network()
    formats = {
        "aarch64-apple-darwin": b"\xcf\xfa\xed\xfe",
        "x86_64-pc-windows-msvc": b"\x64\x86",
        "wasm32-unknown-unknown": b"\0asm",
        "armv7-unknown-linux-gnueabihf": b"\x7fELF\x01",
    }
    for triple, magic in formats.items():
        aot.build(content, triple, tmp_path, name="net", format="object")
        assert (tmp_path / "net.o").read_bytes().startswith(magic), triple


def test_constants_are_in_the_byte_order_of_the_target(tmp_path):
    """Numbers have their highest byte first on s390x; the bytes of packed int8 filters keep their places."""
    bias = np.linspace(-1, 1, 60, dtype=np.float32)

    @ow.function(input_signature=[ow.TensorSpec([7, 60], ow.float32, name="x")])
    def biased(x):
        return x * bias

    orders = {"s390x": ">f4", "aarch64": "<f4"}
    for target, order in orders.items():
        aot.build(biased, target, tmp_path, name="biased", format="object")
        content = (tmp_path / "biased.o").read_bytes()
        for one in orders.values():
            assert (bias.astype(one).tobytes() in content) == (one == order), (target, one)
    single = next(single_operators.singles("FULLY_CONNECTED INT8"))
    plan = plan_model(single.content, find_target("s390x"))
    (filters,) = [c for p in plan.plans for c in p.plan.constants if c.numbers is not None]
    swapped = in_other_order(filters.array, filters.numbers)
    sums = filters.numbers(swapped)
    assert 0 < sum(view.size for view in sums) < filters.array.size
    for view, original in zip(sums, filters.numbers(filters.array), strict=True):
        np.testing.assert_array_equal(view.byteswap(), original)
        view[...] = original
    np.testing.assert_array_equal(swapped, filters.array)


@pytest.mark.parametrize("operator", ["SVDF INT8", "UNIDIRECTIONAL_SEQUENCE_LSTM FLOAT32"])
def test_state_stays_between_runs_until_it_is_reset(operator, tmp_path):
    single = next(single_operators.singles(operator))
    library = aot.build(single.content, out=tmp_path, name="net")
    run = aot.load(tmp_path)
    first, second = ([*run(*single.feeds).values()] for _ in range(2))
    np.testing.assert_array_equal(first, interpreted(single.content, single.feeds))
    np.testing.assert_array_equal(second, interpreted(single.content, single.feeds, runs=2))
    assert library.state > 0
    assert any((a != b).any() for a, b in zip(first, second))
    run.reset()
    np.testing.assert_array_equal([*run(*single.feeds).values()], first)
    header = (tmp_path / "net.h").read_text()
    assert "void net_reset(struct net_state *state);" in header


def test_equal_models_make_equal_files(tmp_path):
    content, _ = network()
    for folder in ("a", "b"):
        with ow.flags(cache_dir=tmp_path / f"cache of {folder}"):  # otherwise the second one is the first
            aot.build(content, out=tmp_path / folder, name="net")
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


def test_mistakes_are_named(tmp_path):
    content, image = network()
    with pytest.raises(NotFoundError, match="no such target"):
        aot.build(content, "abacus-unknown", tmp_path)
    with pytest.raises(NotFoundError, match="no such system in the triple"):
        aot.build(content, "aarch64-unknown-lnux-gnu", tmp_path)
    with pytest.raises(NotFoundError, match="feature \\+nonsense"):
        aot.build(content, "aarch64", tmp_path, features="+dotprod,+nonsense")
    with pytest.raises(NotFoundError, match="processor cortex-b5"):
        aot.build(content, "aarch64-linux-android21", tmp_path, cpu="cortex-b5")
    with pytest.raises(InvalidArgumentError, match="lib, object"):
        aot.build(content, out=tmp_path, format="zip")
    with pytest.raises(NotFoundError, match="exactly one description"):
        aot.load(tmp_path)
    assert not list(tmp_path.iterdir())
    aot.build(content, out=tmp_path, name="net")
    run = aot.load(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"float64\[1, 16, 16, 3\]"):
        run(image.astype(np.float64))
    with pytest.raises(InvalidArgumentError, match="image"):
        run(picture=image)
    notes = json.loads((tmp_path / "net.json").read_text())
    (tmp_path / notes["object"]).unlink()
    with pytest.raises(NotFoundError, match="object file"):
        aot.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "result"),
    [("serving_default_x:0", "serving_default_x_0"), ("int", "t_int"), ("7", "t_7"), ("", "t_"), ("a/b c", "a_b_c")],
)
def test_names_become_identifiers(name, result):
    assert identifier(name) == result


def test_the_command(tmp_path):
    from click.testing import CliRunner

    content, _ = network()
    (tmp_path / "my model.tflite").write_bytes(content)
    arguments = ["build", str(tmp_path / "my model.tflite"), "-o", str(tmp_path / "out"), "--json"]
    facts = json.loads(CliRunner().invoke(cli, arguments, catch_exceptions=False).stdout)
    assert "my_model.h" in facts["files"]
    assert (tmp_path / "out" / "libmy_model.a").is_file()
    listed = CliRunner().invoke(cli, ["build", "--list-targets"]).stdout
    assert "aarch64-dotprod" in listed
    assert CliRunner().invoke(cli, ["build"]).exit_code == 2

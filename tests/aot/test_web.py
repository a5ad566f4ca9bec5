"""Models as WebAssembly modules: the interpreter's numbers in Node.js, mistakes of callers, the page in a browser.

Integers are equal to those of the interpreter; floating-point numbers differ by at most 1e-5 of the largest element of
an output (float16: 1e-2), as sums are added in the order of vectors of 128 bits.
"""

import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opwright as ow
from opwright import aot
from opwright.aot.model_runs import TensorFacts
from opwright.aot.tensor_differences import Tolerance, tensor_difference
from opwright.aot.wasm_linker import link
from opwright.compiler.target import Target
from opwright.core.errors import InvalidArgumentError, OpError, UnimplementedError

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent.parent / "pages"))
from benchmarks import single_operators
from browser import Browser, served
from built_singles import REFUSED, build_single
from test_libraries import interpreted, network, rows

TARGETS = [pytest.param("wasm32", marks=pytest.mark.slow), "wasm32-simd128"]
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")
JOBS = """
import { readFileSync, writeFileSync } from "node:fs";
const results = {};
for (const { name, feeds, runs } of JSON.parse(readFileSync("jobs.json"))) {
  try {
    const module = await import(`./${name}.mjs`);
    const model = await module.load();
    const arrays = {};
    module.inputs.forEach((t, i) => {
      const bytes = readFileSync(feeds[i]);
      const names = { bool: "Uint8", float16: "Uint16", bfloat16: "Uint16", complex64: "Float32",
                      complex128: "Float64", int64: "BigInt64", uint64: "BigUint64" };
      const name = names[t.dtype] ?? t.dtype[0].toUpperCase() + t.dtype.slice(1);
      arrays[t.name] = new globalThis[`${name}Array`](new Uint8Array(bytes).buffer);
    });
    let outputs;
    for (let i = 0; i < runs; i++) outputs = model.run(arrays);
    module.outputs.forEach((t, i) => writeFileSync(`${name}.${i}.out`, outputs[t.name]));
    results[name] = "ok";
  } catch (error) {
    results[name] = String(error);
  }
}
console.log(JSON.stringify(results));
"""


def node(script, folder):
    """Return the output of a script."""
    (folder / "script.mjs").write_text(script)
    done = subprocess.run(["node", "script.mjs"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_node
@pytest.mark.parametrize("part", rows(48))
@pytest.mark.parametrize("target", TARGETS)
def test_results_of_every_builtin_are_the_interpreters(target, part, tmp_path):
    jobs, expected = [], {}
    for i, single in enumerate(itertools.islice(single_operators.singles(), part, None, 48)):
        try:
            results = interpreted(single.content, single.feeds, runs=2)
        except OpError:
            continue  # a model of an operator's errors
        name, refusal = f"row{i}", ""
        try:
            build_single(single, target, tmp_path, name=name)
        except UnimplementedError as error:
            refusal = str(error)
        if refusal:
            assert any(reason in refusal for reason in REFUSED), (single.name, refusal)
            continue
        feeds = [f"{name}.{k}.in" for k in range(len(single.feeds))]
        for feed, array in zip(feeds, single.feeds):
            (tmp_path / feed).write_bytes(np.asarray(array).tobytes())
        jobs.append({"name": name, "feeds": feeds, "runs": 2})
        expected[name] = single.name, results
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    statuses = json.loads(node(JOBS, tmp_path))
    assert len(statuses) >= 10
    faults = [(expected[name][0], status) for name, status in statuses.items() if status != "ok"]
    for name, (operator, results) in expected.items():
        for k, exact in enumerate(map(np.asarray, results) if statuses[name] == "ok" else ()):
            actual = np.frombuffer((tmp_path / f"{name}.{k}.out").read_bytes(), exact.dtype).reshape(exact.shape)
            facts = TensorFacts(operator, exact.shape, exact.dtype, 0.0, 0)
            row = tensor_difference(actual, facts, exact, facts, Tolerance())
            if not row.agrees:
                faults.append(row)
    assert not faults, "\n".join(map(str, faults))


@needs_node
def test_sources_and_mistakes(tmp_path):
    """Modules load from files, bytes, responses and compiled modules; mistakes have words; memories are separate."""
    content, image = network()
    library = aot.build(content, "wasm32-simd128", tmp_path, name="net")
    assert library.files == ("net.wasm", "net.mjs", "net.d.ts", "index.html", "net.json")
    (tmp_path / "image.bin").write_bytes(image.tobytes())
    printed = node(
        """
        import { readFileSync } from "node:fs";
        import { load, inputs, outputs, signatures, StatusError } from "./net.mjs";
        const bytes = readFileSync("net.wasm");
        const image = new Float32Array(new Uint8Array(readFileSync("image.bin")).buffer);
        const sources = [undefined, bytes, new Uint8Array(bytes).buffer, new WebAssembly.Module(bytes),
                         new Response(bytes), Promise.resolve(new Response(bytes)),
                         new URL("net.wasm", import.meta.url)];
        const models = await Promise.all(sources.map((source) => load(source)));
        const scores = models.map((model) => Array.from(model.run({ image }).scores));
        const again = Array.from(models[0].run({ image }).scores);
        const errors = [];
        for (const [arrays, key] of [[{}], [{ image, more: image }], [{ image: image.subarray(1) }],
                                     [{ image: Array.from(image) }], [{ image }, "train"]]) {
          try { models[0].run(arrays, key); errors.push("none"); } catch (error) { errors.push(String(error)); }
        }
        try { await load(new Response("", { status: 404 })); } catch (error) { errors.push(String(error)); }
        try { await load(bytes.subarray(0, 100)); } catch (error) { errors.push(error.constructor.name); }
        const imports = WebAssembly.Module.imports(new WebAssembly.Module(bytes));
        const exports = WebAssembly.Module.exports(new WebAssembly.Module(bytes)).map((e) => e.name);
        console.log(JSON.stringify({ scores, again, errors, imports, exports, key: signatures[0].key,
                                     inputs, outputs: outputs.map((t) => t.name) }));
        """,
        tmp_path,
    )
    facts = json.loads(printed)
    scores = interpreted(content, [image])[0]
    for values in [*facts["scores"], facts["again"]]:
        np.testing.assert_allclose(values, scores.reshape(-1), rtol=1e-5, atol=1e-6)
    assert facts["imports"] == []
    assert facts["exports"] == ["memory", "net_run", "__heap_base"]
    assert facts["inputs"] == [{"name": "image", "dtype": "float32", "shape": [1, 16, 16, 3], "size": 768}]
    assert facts["outputs"] == ["scores", "shape"]
    words = ("is undefined", "no input more", "Float32Array(767)", "Array(768)", "no signature train", "404")
    for word, error in zip((*words, "CompileError"), facts["errors"], strict=True):
        assert word in error


@needs_node
def test_the_page_of_the_docs(tmp_path, monkeypatch):
    text = (Path(__file__).resolve().parents[2] / "docs" / "web.md").read_text()
    build, script, output = (text.split(f"```{kind}\n")[-1].split("```")[0] for kind in ("python", "js", "text"))
    monkeypatch.chdir(tmp_path)
    exec(build, {})
    assert node(script, tmp_path / "web") == output


@needs_node
def test_statuses_and_state(tmp_path):
    """An index out of range is a StatusError with the words of the header; a state stays until it is reset."""

    @ow.function(input_signature=[ow.TensorSpec([1], ow.int32, name="index")])
    def pick(index):
        return ow.gather(ow.constant([1.0, 2.0, 3.0]), index)

    aot.build(pick, "wasm32", tmp_path, name="pick")
    single = next(single_operators.singles("SVDF INT8"))
    aot.build(single.content, "wasm32-simd128", tmp_path, name="svdf")
    (tmp_path / "x.bin").write_bytes(single.feeds[0].tobytes())
    printed = node(
        """
        import { readFileSync } from "node:fs";
        import * as pick from "./pick.mjs";
        import * as svdf from "./svdf.mjs";
        const model = await pick.load();
        let status;
        try {
          model.run({ index: Int32Array.of(7) });
        } catch (error) {
          status = [error.name, error.status, error.message];
        }
        const picked = Object.values(model.run({ index: Int32Array.of(2) })).map((x) => Array.from(x));
        const recurrent = await svdf.load();
        const arrays = { [svdf.inputs[0].name]: new Int8Array(new Uint8Array(readFileSync("x.bin")).buffer) };
        const run = () => Array.from(Object.values(recurrent.run(arrays))[0]);
        const runs = [run(), run()];
        recurrent.reset();
        runs.push(run());
        console.log(JSON.stringify({ status, picked, runs }));
        """,
        tmp_path,
    )
    facts = json.loads(printed)
    assert facts["status"][:2] == ["StatusError", 1]
    assert "points outside" in facts["status"][2]
    assert facts["picked"] == [[3.0]]
    first, second = (interpreted(single.content, single.feeds, runs)[0].reshape(-1).tolist() for runs in (1, 2))
    assert facts["runs"] == [first, second, first]
    assert first != second


def test_mistakes_are_named(tmp_path):
    content, _ = network()
    with pytest.raises(InvalidArgumentError, match="WebAssembly only"):
        aot.build(content, out=tmp_path, format="web")
    text = """
    declare double @fmod(double, double)
    define double @net_run(double %x) {
      %y = call double @fmod(double %x, double 3.0)
      ret double %y
    }
    """
    with pytest.raises(UnimplementedError, match="fmod"):
        link(Target.named("wasm32-simd128").object_code(text), ["net_run"])


@needs_node
def test_the_linker_relocates_data_and_functions(tmp_path):
    """Tables behind the stack, in order and aligned; a function that recurses without end traps."""
    text = """
    @bytes = internal constant [3 x i8] c"\\01\\02\\03", align 1
    @words = internal constant [4 x i32] [i32 70000, i32 -5, i32 7, i32 9], align 64
    @where = internal constant ptr getelementptr (i32, ptr @words, i32 3)
    define internal i32 @word(i32 %i) noinline {
      %p = getelementptr i32, ptr @words, i32 %i
      %w = load volatile i32, ptr %p
      ret i32 %w
    }
    define i32 @sum(i32 %i) {
      %p = getelementptr i8, ptr @bytes, i32 %i
      %b = load volatile i8, ptr %p
      %n = zext i8 %b to i32
      %w = call i32 @word(i32 %i)
      %q = load volatile ptr, ptr @where
      %last = load i32, ptr %q
      %s = add i32 %n, %w
      %t = add i32 %s, %last
      ret i32 %t
    }
    define i32 @deep(i32 %i) {
      %a = alloca [4096 x i8], align 16
      store volatile i8 1, ptr %a
      %next = add i32 %i, 1
      %r = call i32 @deep(i32 %next)
      %b = load volatile i8, ptr %a
      %n = zext i8 %b to i32
      %s = add i32 %r, %n
      ret i32 %s
    }
    """
    code = link(Target.named("wasm32-simd128").object_code(text), ["sum", "deep"])
    (tmp_path / "m.wasm").write_bytes(code)
    printed = node(
        """
        import { readFileSync } from "node:fs";
        const { instance } = await WebAssembly.instantiate(readFileSync("m.wasm"), {});
        const { sum, deep, memory, __heap_base: heap } = instance.exports;
        let trap;
        try { deep(0); } catch (error) { trap = error.constructor.name; }
        console.log(JSON.stringify([sum(0), sum(1), sum(2), heap.value, memory.buffer.byteLength, trap]));
        """,
        tmp_path,
    )
    *sums, heap, size, trap = json.loads(printed)
    assert sums == [1 + 70000 + 9, 2 - 5 + 9, 3 + 7 + 9]
    assert heap % 64 == 0
    assert 1 << 16 < heap < size == 1 << 17
    assert trap == "RuntimeError"


@pytest.mark.slow
def test_the_page_runs_the_model(tmp_path):
    content, _ = network()
    aot.build(content, "wasm32-simd128", tmp_path, name="net")
    with Browser() as browser, served(tmp_path) as address:
        browser.open(f"{address}/index.html")
        browser.wait("document.getElementById('time').value")
        assert browser.evaluate("document.getElementById('time').value").endswith(" ms")
        cells = browser.evaluate("Array.from(document.querySelectorAll('#outputs td'), (cell) => cell.textContent)")
    assert cells[:2] == ["scores", "float32[1,5]"]
    assert sum(map(float, cells[2].split())) == pytest.approx(1, abs=1e-5)  # a softmax

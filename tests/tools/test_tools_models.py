"""inspect, check, run, bench: what they print, what they take, and their exit codes.

Oracles: NumPy for what models give; the exit codes as the command line documents them.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from lite_kit import Build
from tools_harness import opwright, result_of

import opwright as ow
from opwright.lite.format import objects, schema


def convert(function, custom=False):
    converter = ow.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], function)
    converter.allow_custom_ops = custom
    return converter.convert()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with sin.tflite (builtin operators), atan.tflite (a custom one), two.tflite (two inputs)."""
    folder = tmp_path_factory.mktemp("models")

    @ow.function(input_signature=[ow.TensorSpec([5], name="x")])
    def sine(x):
        return ow.sin(x + 1.0)

    @ow.function(input_signature=[ow.TensorSpec([5], name="x")])
    def arctangent(x):
        return ow.atan(x + 1.0)

    @ow.function(input_signature=[ow.TensorSpec([2], name="a"), ow.TensorSpec([2], name="b")])
    def difference(a, b):
        return a - b

    (folder / "sin.tflite").write_bytes(convert(sine))
    (folder / "atan.tflite").write_bytes(convert(arctangent, custom=True))
    (folder / "two.tflite").write_bytes(convert(difference))
    return folder


@pytest.fixture
def npy(tmp_path):
    """A function that saves an array and gives the file's path."""

    def save(array, name="x.npy"):
        np.save(tmp_path / name, array)
        return str(tmp_path / name)

    return save


# ---- inspect ---------------------------------------------------------------------------------------------------------


def test_inspect_names_operators_and_tensors(models):
    result = opwright("inspect", models / "atan.tflite")
    for text in ("schema 3", "signature serving_default: x ->", "ADD", "Atan", "custom", "0 (input)", "float32"):
        assert text in result.stdout


LONG = "network/block_7/expand_relu/Relu;network/block_7/expand/Conv2D;network/block_7/expand/BiasAdd/ReadVariableOp;17"


@pytest.fixture
def chain(tmp_path):
    """Twenty nodes, whose tensors have long names with an end that tells them apart."""
    build = Build().tensor("x")
    for i in range(20):
        build.tensor(f"{LONG}{i:02}").op("NEG", "x" if i == 0 else f"{LONG}{i - 1:02}", f"{LONG}{i:02}")
    (tmp_path / "chain.tflite").write_bytes(build.done("x", f"{LONG}19", "serve"))
    return tmp_path / "chain.tflite"


def test_inspect_in_short_is_short(chain):
    whole, short = (opwright("inspect", chain, *more).stdout for more in ((), ("--short",)))
    assert sum("network/" in line for line in short.splitlines()) == 2  # in the signature and as the output
    assert "20 nodes, 21 tensors, 0 bytes of constants" in short
    for text in ("NEG", "0 (input)", "20 (output)", "schema 3"):
        assert text in short
    assert sum("network/" in line for line in whole.splitlines()) == 21
    assert result_of("inspect", chain, "--short", "--json") == result_of("inspect", chain, "--json")


@pytest.mark.parametrize("width", [70, 80, 120])
def test_inspect_keeps_to_a_width(chain, width):
    lines = opwright("inspect", chain, "--width", width).stdout.splitlines()
    rows = [line for line in lines if "..." in line and "float32" in line]
    assert len(rows) == 20
    assert max(map(len, rows)) == width
    assert all(f"7{i:02}" in row for i, row in enumerate(rows))  # their ends tell them apart
    assert max(map(len, opwright("inspect", chain, env={"COLUMNS": str(width)}).stdout.splitlines()[5:])) == width


def test_inspect_has_whole_names_where_they_are_asked_for(chain):
    stdout = opwright("inspect", chain, "--width", 0).stdout
    assert all(f"{LONG}{i:02}" in stdout for i in range(20))
    opwright("inspect", chain, "--width", -1, exit_code=2)
    assert "network/" in opwright("inspect", chain, "--width", 1).stdout  # a part of a name stays, whatever the width


def test_inspect_as_json(models):
    result = result_of("inspect", models / "sin.tflite", "--json")
    assert result["version"] == 3
    assert result["bytes"] == (models / "sin.tflite").stat().st_size
    assert [(o["operator"], o["version"], o["nodes"]) for o in result["operators"]] == [("ADD", 1, 1), ("SIN", 1, 1)]
    (graph,) = result["subgraphs"]
    assert [graph["tensors"][i]["shape"] for i in graph["inputs"]] == [[5]]
    assert result["signatures"][0]["inputs"] == ["x"]


# ---- check -----------------------------------------------------------------------------------------------------------


def test_check_of_a_model_that_runs(models):
    result = opwright("check", models / "sin.tflite")
    assert "verified; needs run time 1.9.0" in result.stdout
    assert result_of("check", models / "sin.tflite", "--json")["ok"] is True


def test_check_reports_which_custom_operators_to_bring(models):
    result = opwright("check", models / "atan.tflite")
    assert "custom operator Atan: pass it as custom_ops=[Atan]" in result.stdout
    actual = result_of("check", models / "atan.tflite", "--json")
    assert actual["ok"] is True
    assert [o["here"] for o in actual["operators"]] == ["yes", "needs your definition"]


@pytest.mark.parametrize(
    ("runtime", "ok"), [("1.5", False), ("1.8.9", False), ("1.9", True), ("1.9.0", True), ("2.8", True)]
)
def test_check_for_a_run_time(models, runtime, ok):
    result = opwright("check", models / "sin.tflite", "--runtime", runtime, exit_code=0 if ok else 1)
    assert (f"needs 1.9; {runtime} stops at SIN version 1, node 1" in result.stdout) is not ok
    assert result_of("check", models / "sin.tflite", "--runtime", runtime, "--json", exit_code=not ok)["ok"] is ok


@pytest.fixture
def gelu(tmp_path):
    """A model with an operator that came with run time 2.9."""

    @ow.function(input_signature=[ow.TensorSpec([5])])
    def f(x):
        return ow.nn.gelu(ow.sin(x))

    path = tmp_path / "gelu.tflite"
    path.write_bytes(convert(f))
    return path


def test_check_for_2_8_of_a_model_that_needs_2_9(gelu):
    result = opwright("check", gelu, "--runtime", "2.8", exit_code=1)
    assert "needs 2.9; 2.8 stops at GELU version 1, node 1" in result.stdout
    opwright("check", gelu, "--runtime", "2.9")


def test_check_of_a_version_nobody_has(models, tmp_path):
    model = ow.lite.Model.read(models / "sin.tflite")
    model.operator_codes[1].version = 99
    model.write(tmp_path / "late.tflite")
    result = opwright("check", tmp_path / "late.tflite", exit_code=1)
    assert "SIN version 99 is not in this interpreter" in result.stdout
    result = opwright("check", tmp_path / "late.tflite", "--runtime", "2.16", exit_code=1)
    assert "2.16 stops at SIN version 99, node 1: no run time is known to have it" in result.stdout
    result = opwright("run", tmp_path / "late.tflite", exit_code=1)
    assert "opwright explain OW102" in result.stderr


def test_run_of_a_quantised_model_reports_why_not(models, tmp_path):
    model = ow.lite.Model.read(models / "sin.tflite")
    scale = objects.QuantizationParameters(scale=np.float32([0.5]), zero_point=np.int64([0]))
    model.subgraphs[0].tensors[0].type, model.subgraphs[0].tensors[0].quantization = schema.TensorType.INT8, scale
    model.write(tmp_path / "quantised.tflite")
    result = opwright("run", tmp_path / "quantised.tflite", exit_code=1)
    assert "opwright explain OW103" in result.stderr


@pytest.mark.parametrize("runtime", ["", "new", "2.x", "-1", "2."])
def test_check_takes_versions_only(models, runtime):
    assert "is not a version" in opwright("check", models / "sin.tflite", "--runtime", runtime, exit_code=2).stderr


# ---- run -------------------------------------------------------------------------------------------------------------

X = np.float32([-8, 0.5, 2, 2.2, 201])


def test_run_in_order_and_by_name(models, npy):
    for inputs in (npy(X), f"x={npy(X)}"):
        (output,) = result_of("run", models / "sin.tflite", "--input", inputs, "--json")
        assert output["shape"] == [5]
        assert output["dtype"] == "float32"
        np.testing.assert_allclose(output["values"], np.sin(X + 1), atol=1e-6)


def test_run_puts_unnamed_inputs_where_named_ones_are_not(models, npy):
    b, a = npy(np.float32([1, 2]), "b.npy"), npy(np.float32([10, 20]), "a.npy")
    (output,) = result_of("run", models / "two.tflite", "--input", f"b={b}", "--input", a, "--json")
    assert output["values"] == [9, 18]


def test_run_takes_a_file_with_an_equals_sign_in_its_name(models, npy):
    (output,) = result_of("run", models / "sin.tflite", "--input", npy(X, "x=1.npy"), "--json")
    np.testing.assert_allclose(output["values"], np.sin(X + 1), atol=1e-6)


def test_run_saves_outputs(models, npy, tmp_path):
    opwright("run", models / "sin.tflite", "--input", npy(X), "--output", tmp_path / "new" / "folder")
    saved = np.load(tmp_path / "new" / "folder" / "0.npy")
    np.testing.assert_allclose(saved, np.sin(X + 1), atol=1e-6)
    assert [p.name for p in (tmp_path / "new" / "folder").iterdir()] == ["0.npy"]


def test_run_with_random_inputs_reports_it_and_repeats(models):
    first, again, other = (opwright("run", models / "sin.tflite", "--seed", seed) for seed in (3, 3, 4))
    assert first.stdout == again.stdout != other.stdout
    assert "input x: random, seed 3" in first.stderr


def test_run_resizes_an_input_to_another_shape(models, npy):
    result = opwright("run", models / "sin.tflite", "--input", npy(np.float32([1, 2])))
    assert "input x: resized from [5] to [2]" in result.stderr
    assert "float32[2]" in result.stdout


def test_run_returns_nan_and_infinity_as_text(models, npy):
    (output,) = result_of("run", models / "two.tflite", "--input", npy(np.float32([np.nan, -np.inf])), "--json")
    assert output["values"] == ["nan", "-inf"]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (X.astype(np.float64), "Got value of type FLOAT64 but expected type FLOAT32"),
        (X.astype(np.int32), "Got value of type INT32 but expected type FLOAT32"),
    ],
    ids=["float64", "int32"],
)
def test_run_refuses_another_dtype(models, npy, array, says):
    assert says in opwright("run", models / "sin.tflite", "--input", npy(array), exit_code=1).stderr


def test_run_refuses_shapes_that_do_not_go_together(models, npy):
    result = opwright("run", models / "two.tflite", "--input", npy(np.ones(3, np.float32)), exit_code=1)
    assert "SUB" in result.stderr
    assert "Traceback" not in result.stderr


def test_run_refuses_names_that_are_none(models, npy):
    result = opwright("run", models / "sin.tflite", "--input", f"z={npy(X)}", exit_code=2)
    assert "the model has no input 'z'; its inputs: x" in result.stderr
    result = opwright("run", models / "sin.tflite", "--input", npy(X), "--input", npy(X), exit_code=2)
    assert "2 inputs are given, and the model has 1" in result.stderr
    result = opwright("run", models / "sin.tflite", "--input", f"x={npy(X)}", "--input", f"x={npy(X)}", exit_code=2)
    assert "'x' is given twice" in result.stderr


def test_run_of_a_custom_operator_that_is_not_here_names_it(models, tmp_path):
    model = ow.lite.Model.read(str(models / "atan.tflite"))
    for code in model.operator_codes:
        code.custom_code = "Arcus" if code.custom_code else code.custom_code
    (tmp_path / "arcus.tflite").write_bytes(model.to_bytes())
    result = opwright("run", tmp_path / "arcus.tflite", exit_code=1)
    assert "Encountered unresolved custom op: Arcus." in result.stderr
    assert "opwright explain OW101" in result.stderr


def test_run_finds_custom_operators_in_the_catalogue(models, tmp_path):
    np.save(tmp_path / "x.npy", X)
    (result,) = result_of("run", models / "atan.tflite", "--input", tmp_path / "x.npy", "--json")
    np.testing.assert_allclose(result["values"], np.arctan(X + 1.0), rtol=1e-6)


def bad_arrays(folder):
    np.savez(folder / "two.npz", a=X, b=X)
    np.save(folder / "pickled.npy", np.array([{}], object), allow_pickle=True)
    (folder / "cut.npy").write_bytes(b"")
    np.save(folder / "whole.npy", X)
    (folder / "cut2.npy").write_bytes((folder / "whole.npy").read_bytes()[:-3])
    (folder / "text.npy").write_text("1 2 3")
    (folder / "zip.npy").write_bytes(b"PK\3\4 not really")
    return ["two.npz", "pickled.npy", "cut.npy", "cut2.npy", "text.npy", "zip.npy", "none.npy", "."]


def test_run_of_files_that_are_no_arrays(models, tmp_path):
    for name in bad_arrays(tmp_path):
        result = opwright("run", models / "sin.tflite", "--input", tmp_path / name, exit_code=3)
        assert result.stderr.startswith("opwright: "), name
        assert str(tmp_path / name) in result.stderr


# ---- bench -----------------------------------------------------------------------------------------------------------


def test_bench_prints_times(models):
    result = opwright("bench", models / "sin.tflite", "--runs", 5, "--ops")
    for text in ("load", "allocate", "invoke median", "Run order", "Top by computation time", "By operator"):
        assert text in result.stdout
    for column in (
        "node type",
        "first us",
        "avg us",
        "median us",
        "least us",
        "cdf %",
        "mem KB",
        "times called",
        "name",
        "count",
    ):
        assert column in result.stdout
    assert "nodes executed: 2 a run" in result.stdout
    assert "memory: arena " in result.stdout


def test_bench_as_json(models):
    with ow.flags(compiled=False):  # compiled, both nodes are one kernel and the first has all the time
        result = result_of("bench", models / "sin.tflite", "--runs", 5, "--ops", "--json")
    seconds = result["seconds"]
    assert result["runs"] == 5
    assert 0 < seconds["invoke_fastest"] <= seconds["invoke_median"] <= seconds["invoke_slowest"]
    assert [(o["node"], o["operator"], o["calls"]) for o in result["nodes"]] == [(0, "ADD", 10), (1, "SIN", 10)]
    for rows in (result["nodes"], result["operators"]):
        assert all(o["average"] > 0 and o["memory"] >= 0 for o in rows)
        assert all(0 < o["fastest"] <= min(o["average"], o["seconds"]) for o in rows)
        assert sum(o["share"] for o in rows) == pytest.approx(1)
        assert rows[-1]["cumulative"] == pytest.approx(1)
    assert {o["operator"]: o["count"] for o in result["operators"]} == {"ADD": 1, "SIN": 1}
    assert result_of("bench", models / "sin.tflite", "--runs", 5, "--json")["nodes"] == []


def test_bench_of_other_shapes_and_given_inputs(models, tmp_path):
    np.save(tmp_path / "x.npy", X)
    result_of("bench", models / "sin.tflite", "--runs", 1, "--input", tmp_path / "x.npy", "--json")
    result = opwright("bench", models / "sin.tflite", "--runs", 1, "--shape", "7")
    assert "to [7]" in result.stderr
    opwright("bench", models / "sin.tflite", "--shape", "two,3", exit_code=2)
    opwright("bench", models / "sin.tflite", "--shape", "nobody=3", exit_code=2)


def test_bench_writes_a_page(models, tmp_path):
    opwright("bench", models / "sin.tflite", "--runs", 1, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count('<td class="text">SIN</td>') == 2  # by operator and by node
    opwright("bench", models / "sin.tflite", "--runs", 1, "--html", tmp_path / "no" / "page.html", exit_code=3)


def test_bench_against_the_official_interpreter(models):
    pytest.importorskip("ai_edge_litert.interpreter")
    result = result_of("bench", models / "sin.tflite", "--runs", 3, "--vs", "litert", "--json")
    assert set(result["litert"]) == set(result["seconds"])
    assert all(seconds > 0 for label, seconds in result["litert"].items() if label != "invoke_deviation")
    assert "litert / ours" in opwright("bench", models / "sin.tflite", "--runs", 3, "--vs", "litert").stdout
    opwright("bench", models / "sin.tflite", "--vs", "nobody", exit_code=2)
    assert "litert / ours" in opwright("bench", models / "atan.tflite", "--runs", 3, "--vs", "litert").stdout


@pytest.mark.parametrize("option", [("--runs", 0), ("--threads", 0), ("--runs", "many")], ids=str)
def test_bench_refuses_figures_that_make_no_sense(models, option):
    opwright("bench", models / "sin.tflite", *option, exit_code=2)


def test_profile_counts_what_invoke_does(models):
    interpreter = ow.lite.Interpreter(model_path=models / "sin.tflite")
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.profile()
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    with pytest.raises(ValueError, match="no runs"):
        interpreter.profile(runs=0)
    assert [row["operator"] for row in interpreter.profile(runs=3)] == ["ADD", "SIN"]
    result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(result, np.sin(X + 1), atol=1e-6)


def test_profile_of_a_failing_model_names_the_node_and_can_be_repeated(models):
    failures = iter([False, True, False, False])

    def invoke(context, node):
        if next(failures):
            raise ValueError("once")

    atan = ow.lite.Registration(prepare=lambda context, node: None, invoke=invoke)
    interpreter = ow.lite.Interpreter(model_path=models / "atan.tflite", custom_ops={"Atan": atan})
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match=r"Node number 1 \(Atan\) failed to invoke"):
        interpreter.profile(runs=2)
    interpreter.invoke()
    assert len(interpreter.profile(runs=1)) == 2


# ---- bad files -------------------------------------------------------------------------------------------------------


def damage(good: bytes) -> dict[str, bytes]:
    wrong_offset = bytearray(good)
    wrong_offset[0:4] = b"\xff\xff\xff\x7f"
    return {
        "empty": b"",
        "one byte": b"T",
        "cut in half": good[: len(good) // 2],
        "cut at the end": good[:-20],
        "another identifier": good[:4] + b"TFL9" + good[8:],
        "root outside": bytes(wrong_offset),
        "text": b"this is not a model at all, and long enough to look at",
    }


COMMANDS = ("inspect", "check", "run", "bench")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", list(damage(b"\0" * 100)))
def test_damaged_files(models, tmp_path, command, kind):
    path = tmp_path / "bad.tflite"
    path.write_bytes(damage((models / "sin.tflite").read_bytes())[kind])
    result = opwright(command, path, exit_code=3)
    assert result.stderr.startswith(f"opwright: {path}")
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_files_that_are_not_there_or_are_folders(tmp_path, command):
    for path in (tmp_path / "none.tflite", tmp_path):
        assert str(path) in opwright(command, path, exit_code=3).stderr


def test_check_of_a_damaged_file_as_json(tmp_path):
    Path(tmp_path / "bad.tflite").write_bytes(b"")
    result = json.loads(opwright("check", tmp_path / "bad.tflite", "--json", exit_code=3).stdout)
    assert result["verified"] is False
    assert result["ok"] is False


def test_names_with_brackets_are_printed_as_they_are(models, tmp_path):
    model = ow.lite.Model.read(models / "sin.tflite")
    model.subgraphs[0].tensors[1].name = "[red]w[/red]:smile:"
    model.write(tmp_path / "named.tflite")
    assert "[red]w[/red]:smile:" in opwright("inspect", tmp_path / "named.tflite").stdout

"""`opwright check`: versions, run times, stamps, metadata, custom operators; exit codes as documented.

Oracles: the run times in tflite_versions (as versions.json has them), official files, models made to break one thing.
"""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from tools_harness import opwright, result_of

import opwright as ow
from opwright.lite.format import flexbuffers, objects, schema, versions

CORPUS = sorted((pathlib.Path(__file__).parents[1] / "data" / "tflite").glob("*.tflite"))
T = schema.TensorType

MINE = '''
import numpy as np
import opwright as ow

@ow.operator(name="CheckTestMine", version=2)
class Mine:
    """Twice x.  .. math:: y = 2 x"""
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    k = ow.Attr(int, default=2, since=2)
    def compute(op, x):
        return x * op.k
'''


def tensor(name, type="FLOAT32", shape=(1, 4, 4, 2), **fields):
    return objects.Tensor(name=name, type=T[type], shape=list(shape), **fields)


def model(*rows, metadata=None):
    """rows: (operator, version, options, type of inputs and output, number of inputs). Nodes share operator codes."""
    codes, keys, tensors, operators = [], {}, [], []
    for name, version, options, type, n in rows:
        if (name, version) not in keys:
            keys[name, version] = len(codes)
            known = name in schema.BuiltinOperator.__members__
            codes.append(versions.operator_code(name if known else "CUSTOM", version, None if known else name))
        first = len(tensors)
        tensors += [tensor(f"t{first + i}", type) for i in range(n + 1)]
        operators.append(
            objects.Operator(
                opcode_index=keys[name, version],
                builtin_options=options,
                inputs=list(range(first, first + n)),
                outputs=[first + n],
            )
        )
    inputs = sorted({int(i) for op in operators for i in op.inputs})
    main = objects.SubGraph(tensors=tensors, operators=operators, inputs=inputs, outputs=[len(tensors) - 1], name="m")
    made = ow.lite.Model(operator_codes=codes, subgraphs=[main], buffers=[objects.Buffer()])
    if metadata is not None:
        made.buffers.append(objects.Buffer(data=np.frombuffer(metadata, np.uint8)))
        made.metadata.append(objects.Metadata(name=versions.METADATA_NAME, buffer=1))
    return made


@pytest.fixture
def saved(tmp_path):
    def write(result, name="m.tflite"):
        result.write(tmp_path / name)
        return tmp_path / name

    return write


CONV = objects.Conv2DOptions(stride_w=1, stride_h=1)


def late_model():
    """CONV_2D version 7 (run time 2.11) at node 1 and 3, GELU version 1 (2.9) at node 2."""
    return model(
        ("ADD", 1, None, "FLOAT32", 2),
        ("CONV_2D", 7, CONV, "FLOAT32", 3),
        ("GELU", 1, objects.GeluOptions(), "FLOAT32", 1),
        ("CONV_2D", 7, CONV, "FLOAT32", 3),
    )


def test_every_failing_node_is_named_the_first_first(saved):
    path = saved(late_model())
    result = opwright("check", path, "--runtime", "2.8", exit_code=1)
    lines = result.stdout.splitlines()
    assert lines[1] == "needs 2.11; 2.8 stops at CONV_2D version 7, node 1"
    assert "- 2.8 also stops at GELU version 1, node 2, which needs 2.9" in lines
    assert "- 2.8 also stops at CONV_2D version 7, node 3, which needs 2.11" in lines
    actual = result_of("check", path, "--runtime", "2.8", "--json", exit_code=1)
    assert [(s["operator"], s["version"], s["node"], s["needs"]) for s in actual["stops"]] == [
        ("CONV_2D", 7, 1, "2.11.0"),
        ("GELU", 1, 2, "2.9.0"),
        ("CONV_2D", 7, 3, "2.11.0"),
    ]
    assert (actual["min_runtime"], actual["ok"], actual["runtime"]) == ("2.11.0", False, "2.8")


@pytest.mark.parametrize(
    ("runtime", "stops"),
    [
        ("1.4", 4),
        ("1.5", 3),
        ("1.14", 3),
        ("2.8", 3),
        ("2.8.0", 3),
        ("2.8.9", 3),
        ("2.9", 2),
        ("2.10.1", 2),
        ("2.11", 0),
        ("2.11.0", 0),
        ("2.23", 0),
        ("2", 0),
        ("3.0", 0),
        ("999999.1.2", 0),
    ],
)
def test_run_times_as_people_write_them(saved, runtime, stops):
    result = result_of("check", saved(late_model()), "--runtime", runtime, "--json", exit_code=1 if stops else 0)
    assert len(result["stops"]) == stops


@pytest.mark.parametrize("runtime", ["2.x", "", "v2.8", "2.8-rc0", "-2.8", "2..8", "1.2.3.4.5", "9" * 5000, "２.8"])
def test_what_is_no_run_time_is_wrong_usage(saved, runtime):
    assert "is not a version" in opwright("check", saved(late_model()), "--runtime", runtime, exit_code=2).stderr


def test_nodes_of_other_subgraphs(saved):
    result = late_model()
    again = ow.lite.Model.read(result.to_bytes()).subgraphs[0]
    again.name = "second"
    result.subgraphs.append(again)
    stdout = opwright("check", saved(result), "--runtime", "2.10", exit_code=1).stdout
    assert "needs 2.11; 2.10 stops at CONV_2D version 7, node 1\n" in stdout
    assert "2.10 also stops at CONV_2D version 7, 3 nodes: 3; 1, 3 of subgraph 1, which needs 2.11" in stdout


def test_nodes_of_one_cause_are_one_line(saved):
    """As in a network of many layers in a new version."""
    rows = [("CONV_2D", 7, CONV, "FLOAT32", 3), ("GELU", 1, objects.GeluOptions(), "FLOAT32", 1)]
    path = saved(model(*(rows[i in (3, 9)] for i in range(12))))
    lines = opwright("check", path, "--runtime", "2.8", exit_code=1).stdout.splitlines()
    assert [line for line in lines if "2.8" in line] == [
        "needs 2.11; 2.8 stops at CONV_2D version 7, node 0",
        "- 2.8 also stops at CONV_2D version 7, 9 nodes: 1, 2, 4..8, 10, 11, which needs 2.11",
        "- 2.8 also stops at GELU version 1, 2 nodes: 3, 9, which needs 2.9",
    ]


DILATED = objects.DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1, dilation_w_factor=2)
LYING = {  # a node whose stamp is too low; the run time it needs by the table of versions, one without it, one with it
    "dilation": (("DEPTHWISE_CONV_2D", 1, DILATED, "FLOAT32", 3), "1.12.0", "1.11", "1.12"),
    "a type": (("CONV_2D", 1, CONV, "INT8", 3), "1.14.0", "1.13", "1.14"),
}


@pytest.mark.parametrize("case", LYING)
def test_what_a_node_needs_counts_and_not_its_stamp(saved, case):
    row, least, without, having = LYING[case]
    path = saved(model(row, metadata=versions.metadata_of(least)))
    stdout = opwright("check", path, "--runtime", without, exit_code=1).stdout
    assert f"needs run time {least}" in stdout
    needed = versions.stamp(
        row[0], versions.view(ow.lite.Model.read(path).subgraphs[0], ow.lite.Model.read(path).subgraphs[0].operators[0])
    )
    assert f"{without} stops at {row[0]} version {needed} (stamped 1), node 0" in stdout
    assert "metadata" not in stdout  # it is right
    result = result_of("check", path, "--runtime", without, "--json", exit_code=1)
    assert [(s["version"], s["needed"], s["needs"]) for s in result["stops"]] == [(1, needed, least)]
    assert result["operators"][0]["min_runtime"] == result["min_runtime"] == least
    opwright("check", path, "--runtime", having)
    wrong = saved(model(row, metadata=versions.metadata_of("1.5.0")), "wrong.tflite")
    assert f"says 1.5.0, the operators need {least}" in opwright("check", wrong).stdout


def test_metadata_of_a_version_that_nobody_has(saved):
    path = saved(model(("NEG", 9, None, "FLOAT32", 1), metadata=versions.metadata_of("1.5.0")))
    stdout = opwright("check", path, exit_code=1).stdout
    assert "says 1.5.0, the operators need one newer than is known here" in stdout


def test_custom_operators_that_a_run_time_lacks(saved, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    path = saved(customs(("CheckTestMine", 2), ("CheckTestMine", 2), ("TFLite_Detection_PostProcess", 1)))
    opwright("check", path)
    lines = opwright("check", path, "--runtime", "2.17", exit_code=1).stdout.splitlines()
    assert lines[0].endswith(", and custom operators")
    assert lines[1] == "2.17 has no custom operator CheckTestMine, 2 nodes: 0, 1: it has to be registered there"
    assert not any("Detection" in line and "has no" in line for line in lines)  # officially registered
    result = result_of("check", path, "--runtime", "2.17", "--json", exit_code=1)
    assert [(s["operator"], s["node"]) for s in result["absent"]] == [("CheckTestMine", 0), ("CheckTestMine", 1)]
    assert result["stops"] == []
    opwright("check", path, "--runtime", "2.17", "--custom", tmp_path / "mine.py")  # the user brings it
    flexbuffers = saved(customs(("FlexErf", 1)), "flex.tflite")
    assert (
        "2.17 has no custom operator FlexErf, node 0: TensorFlow's Flex delegate runs it"
        in opwright("check", flexbuffers, "--runtime", "2.17", exit_code=1).stdout
    )


def test_versions_nobody_has(saved):
    path = saved(model(("NEG", 1, None, "FLOAT32", 1), ("NEG", 40, None, "FLOAT32", 1)))
    stdout = opwright("check", path, "--runtime", "99.0", exit_code=1).stdout
    assert "needs a run time newer than is known here; 99.0 stops at NEG version 40, node 1" in stdout
    assert "NEG version 40 is not in this interpreter, which has version 1" in stdout
    assert result_of("check", path, "--json", exit_code=1)["operators"][1]["here"] == "no"
    cbrt = saved(model(("STABLEHLO_CBRT", 1, None, "FLOAT32", 1)), "cbrt.tflite")  # in the table, and has no kernel
    stops = result_of("check", cbrt, "--runtime", "2.23", "--json", exit_code=1)["stops"]
    assert [(s["operator"], s["needs"]) for s in stops] == [("STABLEHLO_CBRT", "")]


def test_stamps_that_are_not_those_needed(saved):
    low = saved(model(("CONV_2D", 1, CONV, "INT8", 3)), "low.tflite")
    (warning,) = result_of("check", low, "--json")["warnings"]
    assert "CONV_2D is stamped version 1, but node 0 needs version 3 (input 0 is INT8" in warning
    high = saved(model(("CONV_2D", 5, CONV, "FLOAT32", 3)), "high.tflite")
    (warning,) = result_of("check", high, "--json")["warnings"]
    assert warning == "CONV_2D is stamped version 5, though version 1 expresses its nodes (run time 1.5)"
    for path in (low, high):
        assert "- warning: CONV_2D is stamped" in opwright("check", path).stdout
        opwright("check", path, "--strict", exit_code=1)


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        (versions.metadata_of("1.5.0"), ""),
        (versions.metadata_of("1.5"), "says 1.5, the operators need 1.5.0"),
        (versions.metadata_of("2.3.0"), "says 2.3.0, the operators need 1.5.0"),
        (versions.metadata_of(""), "says nothing, the operators need 1.5.0"),
        (b"2.3.0", "malformed"),
        (b"two\0", "malformed"),
        (b"2.\xff\0", "malformed"),
        (b"", "malformed"),
        (None, ""),
    ],
)
def test_the_metadata_is_compared(saved, metadata, says):
    result = result_of("check", saved(model(("ADD", 1, None, "FLOAT32", 2), metadata=metadata)), "--json")
    assert len(result["warnings"]) == (1 if says else 0)
    assert says in "".join(result["warnings"])


def customs(*rows):
    return model(*((name, version, None, "FLOAT32", 1) for name, version in rows))


def test_custom_operators_that_are_brought(saved, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    path = saved(customs(("CheckTestMine", 2)))
    assert "custom operator CheckTestMine: pass it as custom_ops=[CheckTestMine]" in opwright("check", path).stdout
    actual = result_of("check", path, "--custom", tmp_path / "mine.py", "--json")
    assert (actual["operators"][0]["here"], actual["problems"], actual["ok"]) == ("yes", [], True)
    newer = saved(customs(("CheckTestMine", 3), ("CheckTestOther", 1)), "newer.tflite")
    result = opwright("check", newer, "--custom", tmp_path / "mine.py", exit_code=1)
    assert "CheckTestMine version 3: the definition given has version 1..2; get a newer one" in result.stdout
    assert "custom operator CheckTestOther: pass it" in result.stdout


def test_versions_in_the_options_of_custom_operators_count(saved, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    changed = customs(("CheckTestMine", 1), ("CheckTestMine", 1), ("CheckTestMine", 1))
    for node, version in zip(changed.subgraphs[0].operators, (None, 2, 3)):
        node.custom_options = flexbuffers.encode_options({} if version is None else {"_version": version})
    path = saved(changed)
    result = json.loads(opwright("check", path, "--custom", tmp_path / "mine.py", "--json", exit_code=1).stdout)
    rows = [(row["version"], row["nodes"], row["here"]) for row in result["operators"] if row["nodes"]]
    assert rows == [(1, 1, "yes"), (2, 1, "yes"), (3, 1, "no")]
    assert result["problems"] == [
        "custom operator CheckTestMine version 3: the definition given has version 1..2; get a newer one"
    ]


def test_custom_operators_of_a_module(saved, tmp_path, monkeypatch):
    (tmp_path / "check_test_module.py").write_text(MINE + "\nother = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = saved(customs(("CheckTestMine", 1)))
    for inputs in ("check_test_module:Mine", "check_test_module"):
        assert result_of("check", path, "--custom", inputs, "--json")["ok"] is True
    for inputs, says in (
        ("check_test_module:other", "has no operator other"),
        ("no_such_module:X", "No module"),
        ("check_test_module:X", "has no operator X"),
        (tmp_path / "none.py", "no such file"),
        (":", "--custom :"),
    ):
        assert says in opwright("check", path, "--custom", inputs, exit_code=3).stderr


def test_custom_operators_that_are_known(saved):
    stdout = opwright("check", saved(customs(("TFLite_Detection_PostProcess", 1), ("FlexNoSuchOperator", 1)))).stdout
    assert "custom operator TFLite_Detection_PostProcess" not in stdout  # it is shipped
    assert "(TensorFlow's NoSuchOperator, run by the Flex delegate)" in stdout


def test_a_damaged_file_is_exit_code_3(tmp_path, saved):
    content = saved(late_model()).read_bytes()
    for i, damaged in enumerate((b"", content[:100], b"\0" * 200, content[:4] + b"XXXX" + content[8:])):
        path = tmp_path / f"bad{i}.tflite"
        path.write_bytes(damaged)
        opwright("check", path, exit_code=3)
        assert result_of("check", path, "--json", exit_code=3)["verified"] is False
    opwright("check", tmp_path / "absent.tflite", exit_code=3)


@pytest.mark.parametrize("path", CORPUS, ids=[p.stem for p in CORPUS])
def test_official_files_run_where_they_say(path):
    """By the run time in the metadata they run there, and on none before it."""
    result = result_of("check", path, "--runtime", "2.23", "--json", exit_code=None)
    assert result["verified"] is True
    assert result["stops"] == []
    assert result["warnings"] == [] or "int16" in path.stem
    if not result["min_runtime"]:
        return
    assert result_of("check", path, "--runtime", result["min_runtime"], "--json", exit_code=None)["stops"] == []
    major, minor, *_ = map(int, result["min_runtime"].split("."))
    before = f"{major}.{minor - 1}" if minor else "1.15"
    stops = result_of("check", path, "--runtime", before, "--json", exit_code=1)["stops"]
    assert stops
    assert max(versions.runtime_key(s["needs"]) for s in stops) == versions.runtime_key(result["min_runtime"])


def test_op_show_of_a_builtin(saved):
    stdout = opwright("op", "show", "DEPTHWISE_CONV_2D").stdout
    assert "dilation_w_factor is not 1 or dilation_h_factor is not 1" in stdout
    assert "int32; default 1; since version 2" in stdout
    result = result_of("op", "show", "CONV_2D", "--json")["CONV_2D"]
    assert result["official"] == [1, 8]
    assert [v["min_runtime"] for v in result["versions"]][6] == "2.11.0"
    for name in ("LSTM", "STABLEHLO_CBRT", "CALL_ONCE"):
        assert name in opwright("op", "show", name).stdout

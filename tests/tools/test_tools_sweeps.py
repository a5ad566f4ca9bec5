"""`search`, `bench` of several models, `op test` on workers: the merged reports, failures, exit codes."""

import distribute_kit as kit
import numpy as np
import pytest
from tools_harness import opwright, result_of

import opwright as ow


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved dense layer and its samples: x, and what it computes in float64."""
    folder = tmp_path_factory.mktemp("saved")
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((16, 4)).astype(np.float32)
    model = ow.function(
        lambda x: ow.matmul(x, ow.constant(weights)), input_signature=[ow.TensorSpec([1, 16], ow.float32, name="x")]
    )
    ow.saved_model.save(ow.Module(), folder / "dense", signatures=model)
    x = rng.standard_normal((40, 16)).astype(np.float32)
    np.savez(folder / "samples.npz", x=x[:, np.newaxis])
    return folder, x, x.astype(np.float64) @ weights


def test_quantizations_are_compared_on_the_samples(saved, tmp_path):
    folder, x, expected = saved
    rows = result_of(
        *("search", folder / "dense", "--data", folder / "samples.npz", "-o", tmp_path, "--executor", "threads:2"),
        *("--quantize", "float16", "--quantize", "int8", "--json"),
    )
    assert [row["quantize"] for row in rows] == ["float32", "float16", "int8"]
    assert rows[0]["largest_error"] == 0
    for row in rows:
        interpreter = ow.lite.Interpreter(row["file"])
        runner = interpreter.get_signature_runner()
        outputs = np.concatenate([next(iter(runner(x=r[np.newaxis]).values())) for r in x])
        error = np.abs(outputs - expected).max()
        assert abs(error - row["largest_error"]) < 1e-5
        assert abs(row["relative_error"] - row["largest_error"] / np.abs(expected).max()) < 1e-6
        assert row["bytes"] == (tmp_path / f"dense-{row['quantize']}.tflite").stat().st_size
    assert 0 < rows[1]["largest_error"] < 0.02 < rows[2]["relative_error"] + 0.02 < 0.1


def test_a_quantization_that_fails_is_a_row_of_the_report(saved, tmp_path):
    folder, _, _ = saved
    np.savez(tmp_path / "other.npz", y=np.zeros((3, 1, 16), np.float32))
    result = opwright("search", folder / "dense", "--data", tmp_path / "other.npz", "-o", tmp_path, exit_code=1)
    assert result.stdout.count("BadFile") == 6
    opwright("search", tmp_path, "--data", folder / "samples.npz", "-o", tmp_path / "x", exit_code=1)


def test_several_models_have_one_table(tmp_path):
    (tmp_path / "a.tflite").write_bytes(kit.convert(kit.function()))
    (tmp_path / "b.tflite").write_bytes(kit.convert(kit.function()))
    (tmp_path / "c.tflite").write_bytes(b"no model")
    a, b, c = (tmp_path / f"{name}.tflite" for name in "abc")
    rows = result_of("bench", a, b, "--runs", 5, "--executor", "threads:1", "--json")
    assert [row["file"] for row in rows] == [str(a), str(b)]
    assert all(0 < row["seconds"]["invoke_fastest"] <= row["seconds"]["invoke_median"] for row in rows)
    rows = result_of("bench", a, c, "--runs", 5, "--json", exit_code=1)
    assert ["error" in row for row in rows] == [False, True]
    assert "for one model" in opwright("bench", a, b, "--ops", exit_code=2).output


def test_operators_are_checked_on_workers():
    outcomes = result_of("op", "test", "Softsign", "--executor", "threads:1", "--json")
    assert set(ow.testing.CHECKS) <= {outcome["check"] for outcome in outcomes}
    assert "failed" not in {outcome["state"] for outcome in outcomes}
    assert "no operator" in opwright("op", "test", "Nonsense", "--executor", "threads:1", exit_code=3).output.lower()

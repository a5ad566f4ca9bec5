"""`opwright run --inputs`: outputs by file, failures, custom operators on workers, resumed jobs, exit codes."""

import distribute_kit as kit
import numpy as np
import pytest
from tools_harness import opwright, result_of

OPERATOR = '''
import numpy as np
import opwright as ow

@ow.operator
class TwiceTanh:
    """Twice the hyperbolic tangent."""
    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")
    def infer(op):
        return op.x.spec
    def compute(op, x):
        return (np.tanh(x) * 2).astype(x.dtype)
'''


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.tflite"
    file.write_bytes(kit.convert(kit.function()))
    return file


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    for i, row in enumerate(kit.elements(20)):
        np.save(tmp_path / "data" / f"row{i:02d}.npy", row)
    return tmp_path / "data"


def test_each_file_has_an_output_of_its_name(path, data, tmp_path):
    result = opwright("run", path, "--inputs", f"{data}/*.npy", "--executor", "threads:2", "-o", tmp_path / "out")
    assert result.stdout.startswith("20 elements, 0 failed;")
    rows = [np.load(tmp_path / "out" / f"row{i:02d}.npy") for i in range(20)]
    np.testing.assert_allclose(rows, kit.meaning(kit.elements(20)), rtol=1e-5)


def test_failing_files_are_named_and_the_job_is_not_repeated(path, data, tmp_path):
    (data / "row03.npy").write_bytes(b"no array")
    (data / "row07.npy").write_bytes(b"")
    command = ("run", path, "--inputs", f"{data}/*.npy", "--batch", 4, "-o", tmp_path / "out", "--json")
    first = result_of(*command, exit_code=1)
    assert (first["elements"], first["failed"], first["resumed"]) == (20, 2, 0)
    assert sorted(error["file"][-9:] for error in first["errors"]) == ["row03.npy", "row07.npy"]
    assert len(list((tmp_path / "out").glob("*.npy"))) == 18
    again = result_of(*command, exit_code=1)
    assert (again["failed"], again["resumed"]) == (2, 20)
    assert again["errors"] == first["errors"]
    np.save(data / "row03.npy", kit.elements(20)[3])
    assert "another job" in opwright(*command, exit_code=1).output


def test_custom_operators_of_a_file_reach_other_processes(data, tmp_path):
    import runpy

    import opwright as ow

    source = tmp_path / "my_operators.py"
    source.write_text(OPERATOR)
    operator = runpy.run_path(str(source))["TwiceTanh"]

    @ow.function(input_signature=[ow.TensorSpec([None, kit.COLUMNS], ow.float32, name="x")])
    def model(x):
        return operator(x)

    converter = ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model)
    converter.allow_custom_ops = True
    (tmp_path / "m.tflite").write_bytes(converter.convert())
    command = ("run", tmp_path / "m.tflite", "--inputs", f"{data}/*.npy", "-o", tmp_path / "out", "--batch", 10)
    opwright(*command, "--custom", source, "--executor", "processes:1")
    rows = [np.load(tmp_path / "out" / f"row{i:02d}.npy") for i in range(20)]
    np.testing.assert_allclose(rows, kit.meaning(kit.elements(20)), rtol=1e-5)


def test_files_of_several_inputs_and_a_table_of_outputs(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    import opwright as ow

    spec = ow.TensorSpec([None, 2], ow.float32)
    signature = [ow.TensorSpec(spec.shape, spec.dtype, name="a"), ow.TensorSpec(spec.shape, spec.dtype, name="b")]
    model = ow.function(lambda a, b: a - b, input_signature=signature)
    (tmp_path / "m.tflite").write_bytes(kit.convert(model))
    x = kit.elements(6, 4)
    for i, row in enumerate(x):
        np.savez(tmp_path / f"{i}.npz", a=row[:2], b=row[2:])
    opwright("run", tmp_path / "m.tflite", "--inputs", f"{tmp_path}/*.npz", "-o", tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    np.testing.assert_array_equal(table["output"].combine_chunks().to_numpy_ndarray(), x[:, :2] - x[:, 2:])


def test_files_of_one_name_in_two_folders(path, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "x.npy", kit.elements(1)[0])
    opwright("run", path, "--inputs", f"{tmp_path}/?/x.npy", "-o", tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").glob("*.npy")) == ["a_x.npy", "b_x.npy"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--inputs", "{data}/*.npy"), 2, "--inputs needs -o"),
        (("--inputs", "{data}/*.txt", "-o", "{out}"), 3, "no file matches"),
        (("--inputs", "{data}/*.npy", "--input", "x.npy", "-o", "{out}"), 2, "--input is for one run"),
        (("--executor", "threads:2"), 2, "--executor goes with --inputs"),
        (("--inputs", "{data}/*.npy", "-o", "{out}", "--executor", "cluster"), 1, "no executor has this name"),
        (("--inputs", "{data}/*.npy", "-o", "{data}"), 1, "no job wrote"),
    ],
)
def test_usage(path, data, tmp_path, arguments, code, message):
    texts = [text.format(data=data, out=tmp_path / "out") for text in arguments]
    assert message in opwright("run", path, *texts, exit_code=code).output

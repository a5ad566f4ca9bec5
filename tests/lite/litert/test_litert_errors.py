"""Test the limits of the official run time: each is a clear error, the process continues, stderr stays empty."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from lite_kit import Build
from litert_kit import CUSTOMS, compiling, drawn, needs_wheel, scales

import opwright as ow
from opwright import lite
from opwright.core.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)

S = np.float32([0.5, -1.0, 2.0])


def process(program, **environment):
    """Run a program in a process of its own: what it prints and what lands on stderr."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPWRIGHT_COMPILED": "1", **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# ---- the wheel ------------------------------------------------------------------------------------------------------


def folder(tmp_path, version, files):
    """A package that stands where the wheel would."""
    package = tmp_path / "ai_edge_litert"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('it is not to be imported')")
    for name, content in files.items():
        (package / name).write_bytes(content)
    info = tmp_path / f"ai_edge_litert-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ai-edge-litert\nVersion: {version}\n")
    return str(tmp_path)


LOOK = """
    from opwright import lite
    from opwright.core.errors import OpError
    try:
        lite.litert.CompiledModel(b"")
    except ImportError as error:
        assert isinstance(error, OpError)
        print(error)
"""


def test_without_the_wheel_it_reports_how_to_get_it():
    said, _ = process(
        """
    import sys
    sys.modules["ai_edge_litert"] = None
    import importlib.util
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: None if name == "ai_edge_litert" else find(name, package)
    """
        + LOOK
    )
    assert "not installed" in said
    assert "pip install 'ai-edge-litert>=" in said


@pytest.mark.parametrize(
    ("version", "files", "says"),
    [("2.0.3", {}, "too old"), ("2.3.0", {}, "has no"), ("2.3.0", {"libLiteRt.so": b"no library"}, "does not load")],
    ids=["old", "without the library", "damaged"],
)
def test_wheels_of_no_use(version, files, says, tmp_path):
    said, _ = process(LOOK, PYTHONPATH=folder(tmp_path, version, files))
    assert says in said, said
    assert f"version {version}" in said
    assert "2.1.6 or newer" in said


@pytest.mark.skipif(sys.platform != "linux", reason="the library's name is Linux's")
def test_a_library_without_the_function(tmp_path):
    import _ctypes  # a library that loads, but another

    content = Path(_ctypes.__file__).read_bytes()
    said, _ = process(LOOK, PYTHONPATH=folder(tmp_path, "2.3.0", {"libLiteRt.so": content}))
    assert "lacks a function" in said
    assert "LiteRt" in said


@needs_wheel
def test_nothing_of_the_wheel_is_imported_and_nothing_is_left_on_stderr():
    said, errors = process(
        """
    import sys, warnings
    sys.path[:0] = [FOLDERS]
    import numpy as np
    from litert_kit import *
    from opwright import lite
    with lite.litert.CompiledModel(scales({"factor": 2.0}), CUSTOMS) as model:
        print(model.run([np.ones((2, 3), np.float32), np.zeros(3, np.float32)])[0].tolist())
        print("mine", file=sys.stderr)
    print([name for name in sys.modules if name.startswith("ai_edge_litert")])
    """.replace("FOLDERS", ", ".join(repr(p) for p in sys.path if "tests" in p))
    )
    assert said.split("\n")[:2] == ["[[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]", "[]"]
    assert errors == "mine\n"


@needs_wheel
@pytest.mark.slow  # what is said without stderr, below, is quick
def test_a_process_without_stderr():
    said, _ = process(
        """
    import os, sys
    sys.path[:0] = [FOLDERS]
    os.close(2)
    sys.stderr = None
    import numpy as np
    from litert_kit import *
    from opwright import lite
    with lite.litert.CompiledModel(scales({"factor": 2.0}), CUSTOMS) as model:
        print(model.run([np.ones((2, 3), np.float32), np.zeros(3, np.float32)])[0].sum())
    """.replace("FOLDERS", ", ".join(repr(p) for p in sys.path if "tests" in p))
    )
    assert said == "12.0\n"


@needs_wheel
@pytest.mark.parametrize(
    "closed",
    [pytest.param((2,), marks=pytest.mark.slow), pytest.param((1, 2), marks=pytest.mark.slow), (0, 1, 2)],
    ids=str,
)
def test_what_it_says_is_in_the_error_without_stderr_too(closed, tmp_path):
    content = Build().tensor("x", (2,)).tensor("y", (2,)).op("NEG", "x", "y", version=77).done()
    (tmp_path / "model").write_bytes(content)
    process(f"""
    import os
    from opwright import lite
    for descriptor in {closed}:
        os.close(descriptor)
    try:
        lite.litert.CompiledModel({str(tmp_path / "model")!r})
    except RuntimeError as error:
        with open({str(tmp_path / "said")!r}, "w") as file:
            file.write(str(error))
    """)
    assert "'NEG' version '77'" in (tmp_path / "said").read_text()


# ---- the model ------------------------------------------------------------------------------------------------------


def refused(cls, says, content, customs=CUSTOMS, **settings):
    with pytest.raises(cls) as caught:
        lite.litert.CompiledModel(content, customs, **settings)
    assert isinstance(caught.value, OpError)
    for part in (says,) if isinstance(says, str) else says:
        assert part in str(caught.value), str(caught.value)


@needs_wheel
def test_an_operator_that_nobody_gave():
    refused(
        NotFoundError,
        ["unresolved custom op: LitertScale", "node number 0", "CompiledModel(..., custom_ops="],
        scales({}),
        (),
    )
    refused(RuntimeError, "LitertScale", scales({}), ())


@needs_wheel
def test_a_version_that_the_operator_does_not_have():
    refused(NotFoundError, ["version 3", "1..2"], scales({}, version=3))


@needs_wheel
def test_options_that_the_operator_does_not_know():
    refused(OpError, ["LitertScale", "colour"], scales({}, {"colour": 3}))


@needs_wheel
@pytest.mark.parametrize("kind", ["STRING", "INT4", "RESOURCE", "VARIANT", "COMPLEX128"])
def test_element_types_that_it_does_not_pass(kind):
    b = Build().tensor("x", (2,), kind).tensor("first", (2,), kind).tensor("second", (2,), kind)
    refused(
        UnimplementedError,
        [kind, "LitertSwap (node number 0)", "lite.Interpreter"],
        b.custom("LitertSwap", "x", "first second").done("x", "first second"),
    )


@needs_wheel
def test_a_variable_as_operand():
    b = Build().tensor("x", (2,)).tensor("v", (2,), is_variable=True).tensor("y", (2,))
    refused(UnimplementedError, ["'v'", "from run to run"], b.custom("LitertTotal", "x v", "y").done())


@needs_wheel
@pytest.mark.parametrize(
    ("content", "cls"),
    [
        (b"", InvalidArgumentError),
        (b"no model", OpError),
        (scales({})[:-40], OpError),
        ("/no/such/file.tflite", NotFoundError),
    ],
    ids=["empty", "other bytes", "cut off", "missing"],
)
def test_files_that_are_none(content, cls):
    refused(cls, "", content)


@needs_wheel
def test_what_it_does_not_compile(capfd):
    """A builtin operator in a version that it has not: its own words are in the error, not on stderr."""
    content = Build().tensor("x", (2,)).tensor("y", (2,)).op("NEG", "x", "y", version=77).done()
    with pytest.raises(RuntimeError) as caught:
        lite.litert.CompiledModel(content)
    assert "'NEG' version '77'" in str(caught.value)
    assert "the official run time" in str(caught.value)
    assert capfd.readouterr().err == ""


@needs_wheel
@pytest.mark.parametrize(
    "settings", [{"num_threads": 0}, {"num_threads": "2"}, {"hardware_accelerator": "gpu"}], ids=str
)
def test_settings_that_are_none(settings):
    refused(InvalidArgumentError, next(iter(settings)).split("_")[-1], scales({}), **settings)


@needs_wheel
def test_what_is_no_operator():
    with pytest.raises(TypeError, match="custom_ops"):
        lite.litert.CompiledModel(scales({}), [3])


# ---- running --------------------------------------------------------------------------------------------------------

WRONG = {
    "dtype": ([drawn(2, 3).astype(np.float64), S], "astype('float32')"),
    "shape": ([drawn(2, 4), S], "another shape"),
    "rank": ([drawn(6), S], "another shape"),
    "too few": ([S], "number of inputs"),
    "too many": ([S, S, S], "number of inputs"),
    "other names": ({"x": drawn(2, 3), "t": S}, "'t'"),
    "a name missing": ({"x": drawn(2, 3)}, "'x', 's'"),
    "text": (["one", "two"], "dtype"),
    "nothing": ([], "number of inputs"),
}


@needs_wheel
@pytest.mark.parametrize(("inputs", "says"), WRONG.values(), ids=WRONG)
def test_inputs_that_do_not_fit(inputs, says):
    with compiling(), lite.litert.CompiledModel(scales({"factor": 2.0}), CUSTOMS) as model:
        with pytest.raises(InvalidArgumentError) as caught:
            model.run(inputs)
        assert says in str(caught.value)
        np.testing.assert_array_equal(model.run([np.ones((2, 3), np.float32), S * 0])[0], np.full((2, 3), 2))


@ow.operator(name="LitertFails")
class Fails:
    """Fails as told by the first element: at 1 in shape rules of three, at 2 in computing, at 3 with a wrong result."""

    x = ow.Input()
    y = ow.Output(like="x")

    def infer(op):
        if op.x.spec.shape[0] == 3:
            raise InvalidArgumentError("not three of them")
        return op.x.spec

    def compute(op, x):
        if x[0] == 2:
            raise ZeroDivisionError("by nought")
        if x[0] == 4:
            raise KeyboardInterrupt
        return x[1:] if x[0] == 3 else x


def failing(rows=-1):
    b = Build()
    for name in ("x", "h", "y"):
        b.tensor(name, (abs(rows),), shape_signature=[rows])
    return b.custom("LitertFails", "x", "h").op("NEG", "h", "y").done()


@needs_wheel
@pytest.mark.parametrize(
    ("x", "cls", "says"),
    [
        ([1, 1, 1], OpError, ["not three of them", "Node number 0 (LitertFails) failed to prepare"]),
        ([2, 0], OpError, ["by nought", "Node number 0 (LitertFails) failed to invoke"]),
        ([3, 0], OpError, ["LitertFails"]),
        ([4, 0], KeyboardInterrupt, []),
    ],
    ids=["shape rules", "computing", "a wrong result", "interrupted"],
)
def test_what_an_operator_raises_arrives_and_the_model_goes_on(x, cls, says):
    """The run time itself heeds no status of a callback."""
    with lite.litert.CompiledModel(failing(), [Fails]) as model:
        np.testing.assert_array_equal(model.run([np.float32([7, 8])])[0], [-7, -8])
        for _ in range(2):  # the run time holds what failed for done
            with pytest.raises(cls) as caught:
                model.run([np.float32(x)])
            for part in says:
                assert part in str(caught.value)
        np.testing.assert_array_equal(model.run([np.float32([5, 6, 7, 8])])[0], [-5, -6, -7, -8])


@needs_wheel
def test_shape_rules_that_fail_fail_when_the_model_is_made():
    refused(OpError, ["not three of them", "LitertFails"], failing(rows=3), [Fails])


@needs_wheel
def test_shapes_that_follow_from_values():
    @ow.operator(name="LitertPositive")
    class Positive:
        """The elements above 0."""

        x = ow.Input()
        y = ow.Output()

        def infer(op):
            return ow.TensorSpec((None,), op.x.dtype)

        def compute(op, x):
            return x[x > 0]

    content = Build().tensor("x", (3,)).tensor("y", (3,)).custom("LitertPositive", "x", "y").done()
    refused(UnimplementedError, ["follows from values", "LitertPositive (node number 0)"], content, [Positive])


@needs_wheel
def test_what_a_builtin_operator_says_is_in_the_error(capfd):
    """GATHER finds an index out of bounds in the run; what it says is kept by the run time, and told by the error."""
    b = Build().tensor("x", (4,)).tensor("i", (2,), "INT32").tensor("h", (4,)).tensor("y", (2,))
    content = b.custom("LitertTotal", "x x", "h").op("GATHER", "h i", "y", axis=0).done("x i", "y")
    x = np.float32([1, 2, 3, 4])
    with lite.litert.CompiledModel(content, CUSTOMS) as model:
        with pytest.raises(RuntimeError) as caught:
            model.run([x, np.int32([1, 100])])
        assert "gather index out of bounds" in str(caught.value)
        np.testing.assert_array_equal(model.run([x, np.int32([1, 3])])[0], [6, 12])
    assert capfd.readouterr().err == ""


@needs_wheel
def test_an_operator_that_uses_its_own_model():
    models = []
    again = lite.Registration(
        prepare=lambda context, node: context.resize_tensor(node.outputs[0], (2,)),
        invoke=lambda context, node: models[0].run([np.float32([1, 2])]),
    )
    with lite.litert.CompiledModel(
        Build().tensor("x", (2,)).tensor("y", (2,)).custom("Again", "x", "y").done(), {"Again": again}
    ) as model:
        models.append(model)
        with pytest.raises((FailedPreconditionError, OpError), match="uses the model while it runs"):
            model.run([np.float32([1, 2])])

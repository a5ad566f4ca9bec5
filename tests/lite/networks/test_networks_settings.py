"""The converter as an object: settings, wrong ones among them, the same bytes again, threads, failures, files left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks_harness import converter_of, lite, model_of, official, own, run

import opwright as ow
from thorough import THOROUGH

pytestmark = pytest.mark.any_engine
DEFAULT = [lite.Optimize.DEFAULT]
# What the official converter of TensorFlow 2.21 documents, and what its users set beside.
OFFICIAL_SETTINGS = [
    "allow_custom_ops",
    "exclude_conversion_metadata",
    "experimental_enable_resource_variables",
    "experimental_new_converter",
    "experimental_new_dynamic_range_quantizer",
    "experimental_new_quantizer",
    "inference_input_type",
    "inference_output_type",
    "optimizations",
    "representative_dataset",
    "target_spec",
    "unfold_batchmatmul",
    "experimental_lower_to_saved_model",
    "legalize_custom_tensor_list_ops",
    "_experimental_lower_tensor_list_ops",
    "_experimental_default_to_single_batch_in_tensor_list_ops",
    "_experimental_disable_per_channel",
    "_experimental_disable_per_channel_quantization_for_dense_layers",
    "_experimental_full_integer_quantization_bias_type",
]


@ow.function(input_signature=[ow.TensorSpec([None, 4], ow.float32, name="x")])
def twice(x: Any) -> Any:
    return {"y": x * 2.0 + 1.0}


@ow.function(input_signature=[ow.TensorSpec([None, 4], ow.float32, name="x")])
def error_function(x: Any) -> Any:
    return {"y": ow.math.lgamma(x)}


def converter(function: Any = twice, **settings: Any) -> Any:
    made = lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], function)
    for name, value in settings.items():
        target, _, last = name.rpartition("__")
        setattr(getattr(made, target) if target else made, last, value)
    return made


@pytest.mark.parametrize("name", OFFICIAL_SETTINGS)
def test_official_settings(name: str) -> None:
    """Each is there with a default that may be said again."""
    made = converter()
    plain = made.convert()
    setattr(made, name, getattr(made, name))
    assert made.convert() == plain


def test_a_setting_there_is_not() -> None:
    with pytest.raises(AttributeError, match="post_training_quantize"):
        converter().post_training_quantize = True
    with pytest.raises(AttributeError, match="supported_op"):
        converter().target_spec.supported_op = [lite.OpsSet.TFLITE_BUILTINS]


def samples(*shape: int, dtype: Any = np.float32) -> Callable[[], Any]:
    return lambda: iter([[np.ones(shape, dtype)]])


# settings, and what the error says
WRONG = {
    "input_type_of_floats": ({"inference_input_type": ow.int8}, "must be tf.float32"),
    "type_without_samples": ({"optimizations": DEFAULT, "inference_output_type": ow.uint8}, "must be tf.float32"),
    "one_optimization": ({"optimizations": lite.Optimize.DEFAULT}, "optimizations is not a list"),
    "optimization_by_name": ({"optimizations": ["DEFAULT"]}, "optimizations holds other values than Optimize"),
    "one_set": ({"target_spec__supported_ops": lite.OpsSet.TFLITE_BUILTINS}, "supported_ops is not a list"),
    "set_by_name": ({"target_spec__supported_ops": ["TFLITE_BUILTINS"]}, "holds other values than OpsSet"),
    "one_type": (
        {"target_spec__supported_types": ow.float16, "optimizations": DEFAULT},
        "supported_types is not a list",
    ),
    "type_of_weights": ({"target_spec__supported_types": [ow.int32], "optimizations": DEFAULT}, "int32"),
    "integers_without_samples": (
        {"target_spec__supported_ops": [lite.OpsSet.TFLITE_BUILTINS_INT8], "optimizations": DEFAULT},
        "`representative_dataset` must be specified",
    ),
    "samples_no_function": ({"representative_dataset": 5, "optimizations": DEFAULT}, "is not a function"),
    "no_samples": ({"representative_dataset": lambda: iter([]), "optimizations": DEFAULT}, "yields no sample"),
    "samples_of_type": (
        {"representative_dataset": samples(2, 4, dtype=np.float64), "optimizations": DEFAULT},
        "Got value of type FLOAT64 but expected type FLOAT32 for input 0, name: x",
    ),
    "run_time_no_version": ({"target_spec__runtime": "newest"}, "runtime is not a version"),
    "run_time_number": ({"target_spec__runtime": 2.8}, "runtime is not a version"),
    "place_of_versions": ({"custom_version_in": "file"}, "custom_version_in is not understood"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings(name: str) -> None:
    """Refused with the setting's name; the converter is as good as before once it is set right."""
    settings, said = WRONG[name]
    made = converter(**settings)
    for _ in range(2):
        with pytest.raises((ValueError, ow.errors.UnimplementedError), match=said):
            made.convert()
    fresh = converter()
    made.optimizations, made.target_spec, made.representative_dataset = [], lite.TargetSpec(), None
    made.inference_input_type = made.inference_output_type = ow.float32
    made.custom_version_in = "code"
    assert made.convert() == fresh.convert()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda c: c.from_keras_model(5), "from_keras_model takes a model or layer"),
        (lambda c: c.from_keras_model(ow.keras.Sequential([ow.keras.layers.Dense(2)])), "does not know the shapes"),
        (lambda c: c.from_concrete_functions([twice]), "takes a list of ConcreteFunctions"),
        (lambda c: c.from_concrete_functions([]), "no function"),
        (lambda c: c.from_saved_model("no_such_folder"), "SavedModel file does not exist at: no_such_folder"),
    ],
    ids=["not_a_model", "unbuilt", "not_concrete", "nothing", "no_folder"],
)
def test_what_is_no_model(make: Callable[[Any], Any], said: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError, ow.errors.NotFoundError), match=said):
        make(lite.TFLiteConverter)


def test_after_a_failure() -> None:
    made = converter(error_function)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"'tf\.Lgamma' op is neither a custom op nor a flex op"):
            made.convert()
    made.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS, lite.OpsSet.SELECT_TF_OPS]
    x = np.linspace(0.5, 3, 8, dtype=np.float32).reshape(2, 4)
    found = own(made.convert()).get_signature_runner()(x=x)["y"]
    np.testing.assert_allclose(found, ow.math.lgamma(x).numpy(), rtol=1e-6)


def test_ways_in_give_the_same_answers(tmp_path: Path) -> None:
    """A model, its saved form and its function; nothing is left in the folder of temporary files."""
    model = model_of("wide_deep")
    before = set(os.listdir(tempfile.gettempdir()))
    ow.saved_model.save(model, str(tmp_path / "saved"))
    contents = [
        converter_of("wide_deep").convert(),
        lite.TFLiteConverter.from_saved_model(str(tmp_path / "saved")).convert(),
    ]
    assert not {name for name in set(os.listdir(tempfile.gettempdir())) - before if "opwright" in name.lower()}
    inputs = {
        "wide": np.ones((2, 4), np.float32),
        "deep": np.ones((2, 6), np.float32),
        "extra_one": np.ones((2, 1), np.float32),
    }
    found = [make(content).get_signature_runner()(**inputs) for content in contents for make in (own, official)]
    for answers in found[1:]:
        assert answers.keys() == found[0].keys()
        for name, wanted in found[0].items():
            np.testing.assert_allclose(answers[name], wanted, rtol=1e-5, atol=1e-6)


def test_signatures_of_a_module() -> None:
    """Several functions, a variable between them."""

    class Counter(ow.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = ow.Variable(0.0)

        @ow.function(input_signature=[ow.TensorSpec([], ow.float32, name="by")])
        def add(self, by: Any) -> Any:
            self.n.assign_add(by)
            return {"n": self.n.read_value()}

        @ow.function(input_signature=[ow.TensorSpec([None], ow.float32, name="x")])
        def shift(self, x: Any) -> Any:
            return {"y": x + self.n, "least": ow.reduce_min(x)}

    counter = Counter()
    functions = [counter.add.get_concrete_function(), counter.shift.get_concrete_function()]
    content = lite.TFLiteConverter.from_concrete_functions(functions, counter).convert()
    for interpreter in (own(content), official(content)):
        assert interpreter.get_signature_list() == {
            "add": {"inputs": ["by"], "outputs": ["n"]},
            "shift": {"inputs": ["x"], "outputs": ["least", "y"]},
        }
        add, shift = (interpreter.get_signature_runner(key) for key in ("add", "shift"))
        assert [float(add(by=np.float32(k))["n"]) for k in (1, 2.5)] == [1.0, 3.5]
        np.testing.assert_array_equal(shift(x=np.arange(3, dtype=np.float32))["y"], [3.5, 4.5, 5.5])
    assert float(counter.n.numpy()) == 0.0


SAME = ("dict_io", "autoencoder", "bilstm_mask")
SCRIPT = f"""import hashlib, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from networks_harness import content_of
print([hashlib.sha256(content_of(n, k)).hexdigest() for n in {SAME!r} for k in ("float", "dynamic")])"""


@pytest.mark.slow
def test_the_same_bytes() -> None:
    """Again, from another converter, and in two processes whose hashes differ."""
    for name in SAME:
        for kind in ("float", "dynamic"):
            made = converter_of(name, kind)
            assert made.convert() == made.convert() == converter_of(name, kind).convert()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "77")
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert first == second
    assert len(first.split()) == 2 * len(SAME)


def test_threads() -> None:
    """Conversions at the same time, of one converter and of several."""
    shared = {name: converter_of(name) for name in SAME}
    wanted = {name: made.convert() for name, made in shared.items()}
    wrong: list[Any] = []

    def work(name: str) -> None:
        try:
            wrong.extend(name for _ in range(2 if THOROUGH else 1) if shared[name].convert() != wanted[name])
            wrong.extend(name for _ in range(2 if THOROUGH else 1) if converter_of(name).convert() != wanted[name])
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in SAME * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_constants() -> None:
    """A weight of 64 MB."""
    w = ow.constant(np.ones((4096, 4096), np.float32))
    function = ow.function(lambda x: ow.matmul(x, w))
    made = lite.TFLiteConverter.from_concrete_functions(
        [function.get_concrete_function(ow.TensorSpec([1, 4096], ow.float32))]
    )
    content = made.convert()
    assert 4 * 4096**2 < len(content) < 4 * 4096**2 + 1000
    ((y, _),) = run(own(content), [np.ones((1, 4096), np.float32)])
    np.testing.assert_array_equal(y, np.full((1, 4096), 4096.0, np.float32))

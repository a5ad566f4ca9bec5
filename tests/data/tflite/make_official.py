"""Makes the official corpus: small .tflite files by TensorFlow's converter, and what the official interpreter answers.

    python tests/data/tflite/make_official.py [NAME ...]     where TensorFlow is installed; some only: listed, not kept

Lives here: converting each model of the tables (official_float.py, official_layers.py, official_quantized.py,
official_state.py), running it, writing NAME.tflite beside this file and all inputs and outputs into official.npz. Tests
read them with tests/data/tflite/official.py and need no TensorFlow.

A key of official.npz is NAME|CALL|SIGNATURE|in or out|ARGUMENT; calls of a model follow each other on one interpreter,
as models with state need. Answers of models with Flex operators are TensorFlow's own.
"""

import pathlib
import sys
import tempfile
import traceback

import numpy as np
import official_float
import official_layers
import official_quantized
import official_state
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
TABLE = {**official_float.MODELS, **official_layers.MODELS, **official_quantized.MODELS, **official_state.MODELS}


def convert(result):
    """The bytes of a model: `made` says functions by signature, the object that owns them, and converter settings."""
    with tempfile.TemporaryDirectory() as folder:
        options = dict(result)
        functions, module = options.pop("functions"), options.pop("module", None) or tf.Module()
        after = options.pop("after", None)
        keras = options.pop("keras", None)
        for other in ("calls", "by_tensorflow"):
            options.pop(other, None)
        if keras is None:
            concrete = {}
            for key, (function, specs) in functions.items():
                function = function if hasattr(function, "get_concrete_function") else tf.function(function)
                setattr(module, f"f_{key}", function)
                concrete[key] = function.get_concrete_function(**specs)
            tf.saved_model.save(module, folder, signatures=concrete)
            converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(functions))
        else:
            converter = tf.lite.TFLiteConverter.from_keras_model(keras)
        for name, value in options.items():
            owner = converter.target_spec if name.startswith("supported_") else converter
            assert hasattr(owner, name), name
            setattr(owner, name, value)
        content = converter.convert()
        return after(content) if after else content


def values_for(runner, rng, inputs):
    """Inputs of one call: those given, the rest drawn."""
    values = {}
    for name, detail in sorted(runner.get_input_details().items()):
        if inputs and name in inputs:
            values[name] = np.asarray(inputs[name], detail["dtype"] if detail["dtype"] is not np.bytes_ else None)
            continue
        shape = [d if d > 0 else 2 for d in detail["shape_signature"]]
        values[name] = draw(rng, shape, detail["dtype"])
    return values


def draw(rng, shape, dtype):
    """Values of a dtype, of moderate size."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    if kind.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)
    if kind.kind in "iu":
        low = 0 if kind.kind == "u" else -100
        return rng.integers(low, 100, shape).astype(kind)
    if kind.kind == "S":
        return rng.choice(np.array([b"a", b"bc", b"", b"def"]), shape)
    return rng.standard_normal(shape).astype(kind)


def official_runner(content):
    """signature -> what runs it in the official interpreter, without delegates."""
    kind = tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = tf.lite.Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=kind)
    return interpreter.get_signature_runner


def run(name, content, result):
    """Return the results of the official interpreter. by_tensorflow: those of TensorFlow, for Flex operators."""
    calls = result.get("calls", [(key, None) for key in result["functions"]])
    runner_of = official_runner(content)
    rng, kept = np.random.default_rng(0), {}
    for number, (signature, operands) in enumerate(calls):
        runner = runner_of(signature)
        inputs = values_for(runner, rng, operands)
        if result.get("by_tensorflow"):
            function = result["functions"][signature][0]
            outputs = {k: v.numpy() for k, v in function(**{k: tf.constant(v) for k, v in inputs.items()}).items()}
        else:
            outputs = runner(**inputs)
        for side, values in (("in", inputs), ("out", outputs)):
            for argument, value in values.items():
                value = np.asarray(value)
                if value.dtype == object:
                    value = value.astype("S") if value.size else value.astype("S1")
                kept[f"{name}|{number}|{signature}|{side}|{argument}"] = value
    return kept


def main():
    """Make every model named, or all of them."""
    names = sys.argv[1:] or list(TABLE)
    kept, failed = {}, []
    for name in names:
        tf.random.set_seed(0)
        try:
            created = TABLE[name](np.random.default_rng(1))
            content = convert(created)
        except Exception as error:
            failed.append(name)
            traceback.print_exc(limit=-2)
            print(f"{name}: CONVERT {type(error).__name__}: {str(error)[:600]}")
            continue
        try:
            result = run(name, content, created)
        except Exception as error:
            failed.append(name)
            print(f"{name}: RUN {type(error).__name__}: {str(error)[:600]}")
            result = {}
        (HERE / f"{name}.tflite").write_bytes(content)
        kept |= result
        print(f"{name}: {len(content)} bytes, {sum(v.nbytes for v in result.values())} bytes of values", flush=True)
    print(f"{len(names)} models, failed: {failed}")
    path = HERE / "official.npz"
    if sys.argv[1:] and path.exists():  # some only: replace theirs
        with np.load(path) as old:
            kept = {k: old[k] for k in old if k.split("|")[0] not in names} | kept
    np.savez_compressed(path, **dict(sorted(kept.items())))


if __name__ == "__main__":
    main()

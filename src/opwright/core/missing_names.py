"""Names of TensorFlow and Keras that this package lacks, each with the nearest way.

Lives here: `text_of`, the text of the errors of public modules, and the table of ways.
Not here: the error (lazy_imports.py), the lists of names of the other libraries and their comparison
(tests/compat/make_compatibility.py).
"""

from __future__ import annotations

import difflib
import fnmatch
import sys

WAYS: tuple[tuple[str, str], ...] = (
    ("tf.raw_ops", "the operators behind functions are `ow.ops.get(NAME)`; call the functions of `ow` and its modules"),
    ("tf.compat.v1.flags tf.compat.v1.app", "use argparse"),
    ("tf.compat.v1.layers tf.compat.v1.estimator", "use `ow.keras.layers` and `ow.keras.Model`"),
    (
        "tf.compat.v1.*",
        "graphs with sessions do not exist here: call functions directly, or trace them by `ow.function`",
    ),
    (
        "tf.distribute.* tf.train.ClusterDef tf.train.JobDef tf.train.ServerDef",
        "training and inference on several processes and machines are `ow.distribute` (docs/distribute.md)",
    ),
    (
        "keras.distribution tf.variable_creator_scope",
        "replicas are processes of `ow.distribute` (docs/distribute.md), whose variables are ordinary ones",
    ),
    (
        "tf.config.experimental_connect_to_* tf.config.experimental.ClusterDeviceFilters "
        "tf.data.experimental.distributed_save",
        "several machines are `ow.distribute`",
    ),
    ("tf.data.experimental.service", "elements on several processes come by `ow.distribute.map`"),
    (
        "tf.tpu tf.mlir tf.config.experimental.*_mlir_bridge",
        "XLA and TPUs are not used; `ow.function(jit_compile=True)` compiles for the CPU, `ow.from_stablehlo`"
        " reads StableHLO",
    ),
    (
        "tf.config.experimental.get_memory_usage tf.config.experimental.reset_memory_stats",
        "figures of memory are `opwright bench`'s",
    ),
    (
        "tf.feature_column",
        "use the preprocessing layers `ow.keras.layers.StringLookup`, `Discretization`, `CategoryEncoding`, "
        "or `ow.keras.utils.FeatureSpace`",
    ),
    ("tf.queue tf.nondifferentiable_batch_function", "use `ow.data.Dataset`, or Python's `queue` and `threading`"),
    (
        "tf.saved_model.experimental tf.saved_model.Asset tf.saved_model.[A-Z]*",
        "saved models have a format of their own (docs/saved_model.md), without these names",
    ),
    (
        "tf.graph_util tf.import_graph_def tf.io.write_graph tf.Operation tf.RegisterGradient tf.no_gradient "
        "tf.sysconfig.* tf.load_library tf.load_op_library",
        "graphs and operators are `ow.Graph` and `ow.operator` (docs/custom_operators.md), without C++",
    ),
    ("keras.ops.linalg.jvp", "use `ow.autodiff.ForwardAccumulator`"),
    ("tf.lite.experimental.load_delegate", "pass delegates to `ow.lite.Interpreter` (docs/interpreter.md)"),
    ("tf.lite.experimental", "use `opwright inspect`, `opwright diff` and `ow.aot.debug_quantization`"),
    (
        "tf.optimizers.legacy keras.optimizers.legacy",
        "use the optimizers of `ow.keras.optimizers`, which have one version",
    ),
    (
        "tf.optimizers.* keras.optimizers.*",
        "derive a class from `ow.keras.optimizers.Optimizer` with `build` and `update_step`",
    ),
    ("tf.quantization.experimental", "models are quantized by `ow.lite.TFLiteConverter` (docs/quantization.md)"),
    (
        "tf.quantization.* tf.dtypes.q* tf.q*int* tf.dtypes.QUANTIZED_DTYPES",
        "quantized tensors are those of `.tflite` files; `ow.quantization.fake_quant_with_min_max_vars` simulates them",
    ),
    (
        "tf.experimental.dtensor",
        "replicas are processes of `ow.distribute` (docs/distribute.md), whose variables are ordinary ones",
    ),
    (
        "tf.experimental.tensorrt",
        "`opwright` compiles models for the CPU; TensorRT reads ONNX, which `ow.to_onnx` writes",
    ),
    (
        "tf.experimental.dispatch_for_* tf.experimental.unregister_dispatch_for",
        "call functions of the parts of an extension type, or define an operator by `ow.operator`",
    ),
    ("tf.experimental.dlpack", "tensors and other libraries' arrays exchange memory by `numpy.from_dlpack`"),
    (
        "tf.experimental.DynamicRaggedShape tf.experimental.RowPartition tf.experimental.StructuredTensor "
        "tf.experimental.ExtensionTypeBatchEncoder",
        "partitions are the `row_splits` of `ow.RaggedTensor`; records are `ow.experimental.ExtensionType`s",
    ),
    (
        "tf.experimental.async_* tf.experimental.function_executor_type tf.experimental.enable_strict_mode",
        "calls are finished when they return; nothing needs to be set",
    ),
    ("tf.experimental.*register_filesystem_plugin", "files are those of the system; pass a local path"),
    (
        "tf.experimental.float* tf.experimental.*int[24]",
        "there are no float8 dtypes nor integers of 2 bits; `ow.int4` is one of 4",
    ),
    ("tf.dtypes.experimental", "there are no float8 dtypes nor integers of 2 bits; `ow.int4` is one of 4"),
    ("tf.random_index_shuffle tf.random.experimental.*", "use `ow.random.stateless_shuffle` of `ow.range(n)`"),
    ("tf.*.learned_unigram_candidate_sampler", "count classes, and use `fixed_unigram_candidate_sampler` with them"),
    ("tf.nn.RNNCell*", "use `ow.keras.layers.StackedRNNCells`, or a cell of your own"),
    ("tf.math.sobol_sample", "use `scipy.stats.qmc.Sobol(d, scramble=False)`"),
    ("keras.ops.ctc_loss keras.ops.nn.ctc_loss", "use `ow.nn.ctc_loss` or `ow.keras.losses.ctc`"),
    ("tf.image.decode_* tf.io.decode_jxl", "read the file with Pillow, and pass its array"),
    ("tf.image.generate_bounding_box_proposals", "use `ow.image.non_max_suppression`"),
    (
        "tf.io.decode_proto tf.io.encode_proto tf.make_*",
        "messages that are read are `ow.train.Example`'s (`ow.io.parse_example`); use "
        "`ow.io.serialize_tensor` and `parse_tensor`",
    ),
    (
        "tf.data.experimental.*",
        "no such transformation; `ow.data.Dataset` has `map`, `scan`, `from_generator`, `group_by_window`",
    ),
    ("tf.debugging.*", "tracebacks are never filtered; `ow.show` prints stages of compilation"),
    ("tf.test.*", "tests of programs need `ow.test.TestCase` alone; operators are checked by `ow.testing`"),
    ("tf.profiler.*", "use `ow.profiler.experimental.Profile`, or `opwright bench --trace` for models"),
    ("tf.train.*", "checkpoints are `ow.train.Checkpoint` (docs/saved_model.md), without this option"),
    (
        "tf.NoneTensorSpec tf.check_pinned",
        "types of values that are not tensors are found by `ow.type_spec_from_value`",
    ),
    ("tf.initializers.* keras.initializers.*", "pass a function of shape and dtype as initializer"),
    ("keras.export", "use `Model.export`, `ow.saved_model.save` or `ow.lite.TFLiteConverter`"),
    (
        "keras.callbacks.RemoteMonitor keras.callbacks.OrbaxCheckpoint",
        "use `ow.keras.callbacks.LambdaCallback`, `ModelCheckpoint` or `BackupAndRestore`",
    ),
    ("keras.config.*", "there is one backend, this package"),
    (
        "keras.layers.JaxLayer keras.layers.FlaxLayer keras.layers.TorchModuleWrapper keras.layers.TFSMLayer",
        "import the model by `ow.from_jax`, `ow.from_torch` or `ow.saved_model.load`",
    ),
    ("keras.layers.*", "derive a class from `ow.keras.layers.Layer`; docs/api.md lists the layers that there are"),
    ("keras.legacy keras.utils.legacy", "use `ow.keras.saving.serialize_keras_object` and `deserialize_keras_object`"),
    ("keras.ops.*", "use the functions of `ow`; all take the symbolic tensors of functional models"),
    ("keras.random.*", "use `ow.random`"),
    (
        "keras.saving.KerasFileEditor",
        "`.keras` files are zip archives; weights are edited by `ow.keras.models.load_model` and `set_weights`",
    ),
    ("keras.visualization", "boxes are tensors: `ow.image.draw_bounding_boxes`, `non_max_suppression`"),
    ("keras.wrappers", "wrap the model in a class with `fit` and `predict` of your own"),
    (
        "keras.StatelessScope keras.SymbolicScope keras.Function keras.Operation",
        "use `ow.function`, `ow.recompute_grad`, layers and functional models",
    ),
    ("keras.utils.*", "use `ow.keras.Model.inputs` and Python's own classes"),
    ("keras.src keras.backend.*", "use the functions of `ow` and of `ow.keras.ops`"),
)
"""Patterns of names, separated by blanks, and the nearest way; the first that a name or its module matches counts."""


def text_of(module: str, name: str) -> str:
    """Return the text of the error for a name that a module lacks; if TensorFlow or Keras has it, the nearest way."""
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return text
    way = way_of(peer_name(module, name))
    # A name that TensorFlow has is seldom a misspelt one of this package: then only very close names are proposed.
    cutoff = 0.6 if way is None else 0.85
    close = difflib.get_close_matches(name, dir(sys.modules[module]), 3, cutoff) if module in sys.modules else []
    text += f": {way}" if way else ""
    return f"{text}; did you mean {' or '.join(close)}?" if close else text


def peer_name(module: str, name: str) -> str:
    """Return the name that TensorFlow or Keras has for a name of a module of this package.

    >>> peer_name("opwright.nn.losses", "CTC"), peer_name("opwright.ops.linalg", "inv")
    ('keras.losses.CTC', 'tf.linalg.inv')
    """
    parts = [*module.split(".")[1:], name]
    if parts[0] == "nn" and len(parts) > 2:
        return ".".join(["keras", *("ops" if p == "keras_ops" else p for p in parts[1:])])
    if parts[0] == "optimizers":
        return ".".join(["keras", *parts])
    if parts[0] == "keras":
        return ".".join(parts)
    if (
        parts[:2] != ["compat", "v1"]
        and len(parts) > 2
        and parts[0] in ("core", "ops", "eager", "tracing", "saved", "io", "compat", "testing")
    ):
        parts = parts[1:]
    return ".".join(["tf", *({"test_case": "test"}.get(p, p) for p in parts)])


def way_of(name: str) -> str | None:
    """Return how to do what a missing name does, by the first pattern of WAYS that it or its module matches."""
    prefixes = [name[: i or None] for i, c in enumerate(name + ".") if c == "."]
    for patterns, way in WAYS:
        if any(fnmatch.fnmatchcase(prefix, pattern) for prefix in prefixes for pattern in patterns.split()):
            return way
    return None

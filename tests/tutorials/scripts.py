"""First lines of scripts, older names, and steps of training, as tutorials have them. See tutorial_programs.py."""

import logging
import os
import tempfile

import numpy as np
from tutorial_programs import program


@program
def first_lines(tf):
    tf.get_logger().setLevel(logging.ERROR)
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    tf.compat.v1.enable_eager_execution()
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_visible_devices([], "GPU")
    tf.config.set_soft_device_placement(True)
    with tf.device("/CPU:0"):
        total = tf.reduce_sum(tf.constant([1.0, 2.0]))
    logical = tf.config.list_logical_devices()
    return {
        "cpu": [cpu.name, cpu.device_type],
        "logical": [logical[0].name, logical[0].device_type],
        "total": total,
        "gpu": [tf.test.is_built_with_cuda(), tf.test.gpu_device_name()],
        "threads": tf.config.threading.get_inter_op_parallelism_threads(),
        "eager": tf.executing_eagerly(),
        "versions": [tf.__version__] == [tf.version.VERSION],
        "visible": [d.name for d in tf.config.get_visible_devices("CPU")],
    }


@program
def older_names(tf):
    v1 = tf.compat.v1
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return {
        "sums": [v1.reduce_sum(x, reduction_indices=1), v1.reduce_mean(x, axis=0, keep_dims=True)],
        "largest": [v1.argmax(x, dimension=1), v1.argmin(x)],
        "expanded": v1.squeeze(v1.expand_dims(x, dim=0), squeeze_dims=[0]),
        "where": v1.where(tf.constant([True, False]), x, -x),
        "casts": [v1.to_float([1, 2]), v1.to_int32([1.7, -1.7]), v1.to_int64([2])],
        "division": [v1.div(tf.constant([7, -7]), 2), v1.div(tf.constant([7.0]), 2.0)],
        "math": [v1.log(x), v1.rsqrt(x), v1.log1p(x), v1.matrix_inverse(x)],
        "gather": v1.gather(x, [1], axis=1),
        "texts": [tf.compat.as_bytes("a"), tf.compat.as_text(b"b"), tf.compat.as_str_any(3)],
        "sizes": [v1.dimension_value(x.shape[0]), tf.compat.dimension_value(tf.TensorShape([None])[0])],
    }


@program
def names_of_losses_and_initializers(tf):
    y, p = tf.constant([[0.0, 1.0], [1.0, 0.0]]), tf.constant([[0.1, 0.9], [0.8, 0.3]])
    functions = ["MSE", "mae", "MAPE", "msle", "KLD", "logcosh"]
    results = {name: getattr(tf.keras.losses, name)(y, p) for name in functions}
    for name in ("binary_crossentropy", "hinge", "squared_hinge", "poisson", "huber", "categorical_hinge"):
        results[f"metric {name}"] = getattr(tf.keras.metrics, name)(y, p)
    results["zeros"] = tf.zeros_initializer()(shape=[2])
    results["ones"] = tf.ones_initializer()([2], dtype=tf.int32)
    results["constant"] = tf.constant_initializer(3.0)(shape=[2])
    results["drawn"] = list(tf.random_normal_initializer(0.0, 0.1, seed=1)(shape=[3, 4]).shape)
    results["module"] = tf.initializers.Zeros()([1])
    results["reduction"] = tf.keras.losses.Reduction.SUM
    return results


@program
def losses_of_labels(tf):
    losses = tf.keras.losses
    rng = np.random.default_rng(4)
    embeddings = rng.normal(size=(6, 5)).astype("float32")
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    labels = np.array([0, 1, 0, 2, 1, 0])
    logits = rng.normal(size=(2, 7, 5)).astype("float32")
    probabilities = np.exp(logits[0]) / np.exp(logits[0]).sum(-1, keepdims=True)
    return {
        "circle": losses.Circle()(labels, embeddings),
        "circle rows": losses.circle(labels, embeddings, gamma=16, margin=0.25),
        "circle pairs": losses.circle(labels, embeddings, labels[:3], embeddings[:3], remove_diagonal=False, gamma=8),
        "generalized": losses.CategoricalGeneralizedCrossEntropy(0.7)(labels[:7] % 5, probabilities[:6]),
        "ctc": losses.CTC(reduction=None)(np.array([[1, 2, 2], [3, 0, 0]]), logits),
    }


def losses_by_step(tf, optimizer, steps=4):
    """Return the weights of a network after each of some steps on one batch."""
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(16, 6)).astype("float32"), rng.normal(size=(16, 3)).astype("float32")
    first = [rng.normal(size=s).astype("float32") * 0.3 for s in ((6, 4), (4,), (4, 3), (3,))]
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(4, activation="tanh", name="hidden"), tf.keras.layers.Dense(3, name="top")]
    )
    model.build((None, 6))
    model.set_weights(first)
    model.compile(optimizer, "mse")
    losses = [model.train_on_batch(x, y) for _ in range(steps)]
    return {"loss": float(losses[-1]), "weights": model.get_weights()}


@program
def steps_of_optimizers(tf):
    optimizers = tf.keras.optimizers
    rows = {
        "adafactor": optimizers.Adafactor(0.05),
        "adafactor fixed": optimizers.Adafactor(0.02, relative_step=False, clip_threshold=0.5, beta_2_decay=-0.6),
        "lamb": optimizers.Lamb(0.02, weight_decay=0.1),
        "muon": optimizers.Muon(0.02, exclude_layers=["top"], adam_weight_decay=0.1, weight_decay=0.05),
        "muon plain": optimizers.Muon(0.05, nesterov=False, rms_rate=None, weight_decay=None, adam_lr_ratio=0.5),
        "scaled": optimizers.LossScaleOptimizer(optimizers.SGD(0.1), initial_scale=8.0, dynamic_growth_steps=2),
        "several": optimizers.MultiOptimizer(
            optimizers.OptimizerMap(optimizers.Adam(0.05), {".*top/kernel": optimizers.SGD(0.3, momentum=0.9)})
        ),
    }
    results = {name: losses_by_step(tf, optimizer) for name, optimizer in rows.items()}
    results["scale"] = float(rows["scaled"].dynamic_scale.numpy())
    return results


@program
def structures(tf):
    tree = tf.keras.tree
    nested = [(1, 2), [3], {"b": 4, "a": (5, None)}]
    seen = []

    def visit(part):
        seen.append(str(part))
        return tree.MAP_TO_NONE if part == 4 else "list" if part == [3] else None

    def names_of_errors(*calls):
        names = []
        for call in calls:
            try:
                call()
                names.append("none")
            except (TypeError, ValueError) as error:
                names.append(type(error).__name__)
        return names

    return {
        "traverse": str(tree.traverse(visit, nested)),
        "inside out": str(tree.traverse(visit, nested, top_down=False)),
        "seen": seen,
        "paths": [[str(path), leaf] for path, leaf in tree.flatten_with_path(nested)],
        "tuples": str(tree.lists_to_tuples(nested)),
        "shapes": str(tree.map_shape_structure(lambda s: s[::-1], {"a": (1, None), "b": [(2, 3), (4,)]})),
        "shallow": str(tree.map_structure_up_to([0, [0, 0]], str, [[1, 1], [2, 2]])),
        "none": str(tree.map_structure(lambda x: x + 1, [1, None], none_is_leaf=False)),
        "several": str(tree.map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})),
        "errors": names_of_errors(
            lambda: tree.assert_same_paths([1, (2, 3)], (1, [2, 3])),
            lambda: tree.assert_same_paths([1, 2], [1, [2]]),
            lambda: tree.assert_same_structure([1, (2,)], [1, [2]]),
            lambda: tree.assert_same_structure([1, (2,)], [1, [2]], check_types=False),
            lambda: tree.map_structure_up_to([1, [2]], str, [1, 2]),
            lambda: tree.traverse(3, [1]),
        ),
    }


@program
def reversible_embeddings(tf):
    layers, rng = tf.keras.layers, np.random.default_rng(2)
    words = tf.constant(rng.integers(0, 7, (2, 3)), tf.int32)
    table, other = rng.normal(size=(7, 4)).astype("float32"), rng.normal(size=(4, 7)).astype("float32")
    results = {}
    for name, options, weights in (
        ("tied", {"mask_zero": True}, [table]),
        ("apart", {"tie_weights": False, "logit_soft_cap": 1.5}, [table, other]),
    ):
        layer = layers.ReversibleEmbedding(7, 4, **options)
        layer.build()
        layer.set_weights(weights)
        rows = layer(words)
        results[name] = {"rows": rows, "logits": layer(rows, reverse=True)}
        own = set(layer.get_config()) - {"dtype", "name", "trainable", "quantization_config"}
        results[name]["config"] = sorted(own)
        inputs = tf.keras.Input((3,), dtype="int32")
        model = tf.keras.Model(inputs, layer(layer(inputs), reverse=True))
        results[name]["model"] = model(words)
    return results


@program
def gradients_that_are_not_finite(tf):
    inner = tf.keras.optimizers.SGD(1.0)
    optimizer = tf.keras.optimizers.LossScaleOptimizer(inner, initial_scale=16.0)
    v = tf.Variable([1.0, 2.0])
    optimizer.build([v])
    optimizer.apply([tf.constant([16.0, 32.0])], [v])
    first = v.numpy()
    optimizer.apply([tf.constant([np.inf, 1.0])], [v])
    return {
        "first": first,
        "second": v.numpy(),
        "scale": float(optimizer.dynamic_scale.numpy()),
        "iterations": int(inner.iterations.numpy()),
        "loss": optimizer.scale_loss(tf.constant(2.0)),
    }


@program
def mixed_precision(tf):
    keras = tf.keras
    results = {}
    rng = np.random.default_rng(5)
    x = rng.normal(size=(8, 6)).astype("float32")
    weights = [rng.normal(size=s).astype("float32") * 0.5 for s in ((6, 4), (4,), (4, 2), (2,))]
    for name in ("mixed_float16", "mixed_bfloat16"):
        keras.mixed_precision.set_global_policy(name)
        try:

            class Network(keras.Model):
                def __init__(self):
                    super().__init__()
                    self.inner = keras.layers.Dense(4, activation="relu")
                    self.outer = keras.layers.Dense(2, dtype="float32")

                def call(self, x):
                    return self.outer(self.inner(x))

            inputs = keras.Input((6,))
            hidden = keras.layers.Dense(4, activation="relu")(inputs)
            functional = keras.Model(inputs, keras.layers.Dense(2, dtype="float32")(hidden))
            layers = [keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2, dtype="float32")]
            for kind, model in (
                ("sequential", keras.Sequential(layers)),
                ("functional", functional),
                ("subclass", Network()),
            ):
                model(x)
                model.set_weights(weights)
                model.compile("sgd", "mse")
                dense = [layer for layer in model.layers if layer.name.startswith("dense")]
                results[f"{name} {kind}"] = {
                    "output": np.round(np.asarray(model(x)), 1),
                    "policies": [layer.dtype_policy.name for layer in dense],
                    "dtypes": [dense[0].compute_dtype, dense[0].variable_dtype, dense[0](x).dtype.name],
                    "optimizer": type(model.optimizer).__name__,
                    "loss": round(float(model.train_on_batch(x, x[:, :2])), 1),
                }
        finally:
            keras.mixed_precision.set_global_policy("float32")
    policy = keras.mixed_precision.Policy("mixed_float16")
    results["policy"] = [policy.compute_dtype, policy.variable_dtype, policy.get_config()]
    results["global"] = keras.config.dtype_policy().name
    return results


@program
def averaged_weights(tf):
    keras = tf.keras
    results = {}
    for swap_on_epoch in (False, True):
        model = keras.Sequential([keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
        model.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5), "mse")
        seen = []

        class Look(keras.callbacks.Callback):
            def __init__(self, seen):
                super().__init__()
                self.seen = seen

            def on_test_end(self, logs=None):
                self.seen.append(float(self.model.get_weights()[0][0, 0]))

            def on_epoch_end(self, epoch, logs=None):
                self.seen.append(float(self.model.get_weights()[0][0, 0]))

        x, y = np.ones((4, 1), "float32"), np.ones((4, 1), "float32")
        callbacks = [Look(seen), keras.callbacks.SwapEMAWeights(swap_on_epoch), Look(seen)]
        history = model.fit(x, y, epochs=3, verbose=0, validation_data=(x, y), callbacks=callbacks)
        results[f"swap_on_epoch={swap_on_epoch}"] = [seen, history.history["val_loss"], model.get_weights()[0]]
    return results


@program
def sampled_losses(tf):
    rng = np.random.default_rng(8)
    weights, biases = rng.normal(size=(20, 5)).astype("float32"), rng.normal(size=20).astype("float32")
    labels, inputs = np.array([[3, 4], [0, 19], [7, 7]]), rng.normal(size=(3, 5)).astype("float32")
    sampled = (
        tf.constant([3, 7, 11, 19], tf.int64),
        tf.constant([[0.3, 0.2], [0.5, 0.01], [0.1, 0.1]]),
        tf.constant([0.3, 0.1, 0.2, 0.01]),
    )
    arguments = {"num_sampled": 4, "num_classes": 20, "num_true": 2, "sampled_values": sampled}
    w = tf.Variable(weights)
    with tf.GradientTape() as tape:
        softmax = tf.nn.sampled_softmax_loss(w, biases, labels, inputs, **arguments)
        nce = tf.nn.nce_loss(w, biases, labels, inputs, **arguments)
        total = tf.reduce_sum(softmax) + tf.reduce_sum(nce)
    gradient = tf.convert_to_tensor(tape.gradient(total, w))
    hits = tf.nn.compute_accidental_hits(tf.constant(labels, tf.int64), sampled[0], 2)
    all_of_them = tf.random.all_candidate_sampler(tf.constant([[1], [2]], tf.int64), 1, 3, True)
    uniform = tf.random.uniform_candidate_sampler(tf.constant([[1]], tf.int64), 1, 6, False, 12)
    return {
        "softmax": softmax,
        "nce": nce,
        "kept hits": tf.nn.sampled_softmax_loss(w, biases, labels, inputs, remove_accidental_hits=False, **arguments),
        "gradient": gradient,
        "hits": [hits[0], hits[1]],
        "all": [sorted(all_of_them[0].numpy().tolist()), all_of_them[1], all_of_them[2]],
        "uniform": [uniform.true_expected_count, uniform.sampled_expected_count],
    }


@program
def older_preprocessing(tf):
    text, sequence = tf.keras.preprocessing.text, tf.keras.preprocessing.sequence
    sentences = ["The cat sat on the mat.", "The dog ate my homework!", "A cat, a dog"]
    results = {}
    for name, options in (
        ("plain", {}),
        ("few", {"num_words": 4, "oov_token": "<oov>"}),
        ("characters", {"char_level": True, "lower": False}),
    ):
        tokenizer = text.Tokenizer(**options)
        tokenizer.fit_on_texts(sentences)
        numbers = tokenizer.texts_to_sequences([*sentences, "my new cat"])
        results[name] = {
            "index": tokenizer.word_index,
            "counts": dict(tokenizer.word_counts),
            "numbers": numbers,
            "texts": tokenizer.sequences_to_texts(numbers),
            "matrices": [tokenizer.sequences_to_matrix(numbers, mode) for mode in ("binary", "count", "freq", "tfidf")],
            "padded": sequence.pad_sequences(numbers, maxlen=5, padding="post"),
            "again": text.tokenizer_from_json(tokenizer.to_json()).texts_to_sequences(sentences),
        }
    series = np.arange(20.0).reshape(10, 2)
    windows = sequence.TimeseriesGenerator(series, np.arange(10), 3, sampling_rate=2, stride=2, batch_size=2)
    couples, labels = sequence.skipgrams([1, 2, 3, 0, 4], 5, window_size=1, negative_samples=0, shuffle=False)
    return {
        **results,
        "words": text.text_to_word_sequence("Hello,  World; again", lower=False),
        "hashed": text.hashing_trick("some words of it", 50, "md5"),
        "windows": [len(windows), *windows[0], *windows[len(windows) - 1]],
        "table": sequence.make_sampling_table(6, 0.01),
        "couples": [couples, labels],
        "resized": tf.keras.preprocessing.image.smart_resize(np.arange(60.0).reshape(4, 5, 3), (2, 2)),
    }


@program
def assertions_of_tests(tf):
    class Case(tf.test.TestCase):
        def runTest(self):
            self.assertAllEqual([1, 2], tf.constant([1, 2]))
            self.assertAllClose({"a": [1.0]}, {"a": tf.constant([1.0 + 1e-7])})
            self.assertAllClose([tf.constant([1.0]), 2.0], [[1.0], 2.0])
            self.assertAllInRange([0.2, 0.9], 0, 1)
            self.assertAllInSet(tf.constant([1, 2]), {1, 2, 3})
            self.assertNotAllClose([1.0], [1.1])
            self.assertDTypeEqual(tf.constant(1), tf.int32)
            self.assertShapeEqual(np.zeros((2, 3)), tf.zeros([2, 3]))
            self.assertAllCloseAccordingToType(tf.constant([1.0], tf.float16), [1.0005])
            self.assertEqual(self.evaluate(tf.constant(3)), 3)
            with self.assertRaises(AssertionError):
                self.assertAllEqual([1, 2], [1, 3])
            with self.assertRaises(AssertionError):
                self.assertAllClose([1.0], [1.1])
            with self.assertRaises(AssertionError):
                self.assertAllEqual([1, 2], [[1, 2]])
            self.ran = os.path.isdir(self.get_temp_dir())

    case = Case()
    outcome = case.run()
    theoretical, numerical = tf.test.compute_gradient(lambda x: x * x, [tf.constant([[1.0, 2.0]])])
    return {
        "outcome": [outcome.wasSuccessful(), len(outcome.errors), len(outcome.failures), case.ran],
        "theoretical": theoretical,
        "numerical": [np.round(n, 3) for n in numerical],
    }


@program
def profiles(tf):
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            for step in range(2):
                with tf.profiler.experimental.Trace("train", step_num=step):
                    tf.reduce_sum(tf.ones([4]))
        return sorted(
            "HOST" if os.path.isfile(os.path.join(root, name)) else name
            for root, _, names in os.walk(folder)
            for name in names
            if name.endswith((".trace.json.gz", ".xplane.pb"))
        )[:1]


@program
def columns_as_vectors(tf):
    space = tf.keras.utils.FeatureSpace
    table = {
        "age": np.array([30.0, 40.0, 22.0, 60.0], "float32"),
        "job": np.array(["a", "b", "a", "c"]),
        "number": np.array([1, 5, 1, 7]),
        "code": np.array(["x", "y", "z", "x"]),
        "weight": np.array([1.0, 2.0, 3.0, 4.0], "float32"),
        "plain": np.array([0.5, 0.25, 0.0, -1.0], "float32"),
    }
    features = {
        "age": "float_normalized",
        "job": "string_categorical",
        "number": space.integer_categorical(max_tokens=3, num_oov_indices=1),
        "code": space.string_hashed(5),
        "weight": "float_discretized",
        "plain": space.float_rescaled(2.0, 1.0),
    }
    vectors = space(features, crosses=[("job", "number")], crossing_dim=6, num_discretization_bins=3)
    vectors.adapt(tf.data.Dataset.from_tensor_slices(table).batch(3))
    inputs, encoded = vectors.get_inputs(), vectors.get_encoded_features()
    model = tf.keras.Model(inputs, encoded)
    separate = space({"age": "float", "job": "string_hashed"}, output_mode="dict", hashing_dim=4)
    rows = tf.data.Dataset.from_tensor_slices(table).batch(2).map(vectors)
    return {
        "table": vectors(table),
        "row": vectors({name: column[1] for name, column in table.items()}),
        "inputs": sorted(inputs),
        "width": list(encoded.shape),
        "model": model({name: tf.constant(column[:2, None]) for name, column in table.items()}),
        "mapped": [np.asarray(batch) for batch in rows],
        "separate": separate({"age": table["age"], "job": table["job"]}),
    }

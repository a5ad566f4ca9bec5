"""Losses, metrics and training runs as functions of the module `tf`, each giving numbers by name.

keras_figures.json has what Keras gives for them (make_keras_figures.py writes it); test_keras_figures.py compares.
"""

import numpy as np

N = 24


def data(seed=0):
    """Targets and predictions of several kinds, the same everywhere."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(N, 4)).astype("float32")
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    labels = rng.integers(0, 4, N)
    return {
        "real": (rng.normal(size=(N, 4)).astype("float32"), rng.normal(size=(N, 4)).astype("float32")),
        "positive": (rng.random((N, 4)).astype("float32"), rng.random((N, 4)).astype("float32")),
        "binary": ((rng.random((N, 1)) > 0.5).astype("float32"), rng.random((N, 1)).astype("float32")),
        "labels": ((rng.random((N, 4)) > 0.5).astype("float32"), rng.random((N, 4)).astype("float32")),
        "onehot": (np.eye(4, dtype="float32")[labels], p),
        "onehot_logits": (np.eye(4, dtype="float32")[labels], logits),
        "sparse": (labels.astype("int32"), p),
        "sparse_column": (labels.astype("int32")[:, None], p),
        "sparse_logits": (labels.astype("int32"), logits),
        "classes": (labels.astype("int32"), rng.integers(0, 4, N).astype("int32")),
        "image": (rng.integers(0, 3, (2, 5, 5)).astype("int32"), rng.random((2, 5, 5, 3)).astype("float32")),
        "weights": rng.random(N).astype("float32"),
    }


LOSSES = [  # class, arguments, data
    ("MeanSquaredError", {}, "real"),
    ("MeanAbsoluteError", {}, "real"),
    ("MeanAbsolutePercentageError", {}, "real"),
    ("MeanSquaredLogarithmicError", {}, "positive"),
    ("LogCosh", {}, "real"),
    ("Huber", {}, "real"),
    ("Huber", {"delta": 0.3}, "real"),
    ("Poisson", {}, "positive"),
    ("KLDivergence", {}, "onehot"),
    ("Hinge", {}, "labels"),
    ("Hinge", {}, "real"),
    ("SquaredHinge", {}, "labels"),
    ("CategoricalHinge", {}, "onehot"),
    ("CosineSimilarity", {}, "real"),
    ("CosineSimilarity", {"axis": 0}, "real"),
    ("Dice", {}, "labels"),
    ("Dice", {"axis": -1}, "labels"),
    ("Tversky", {"alpha": 0.3, "beta": 0.7}, "labels"),
    ("BinaryCrossentropy", {}, "binary"),
    ("BinaryCrossentropy", {"label_smoothing": 0.2}, "labels"),
    ("BinaryCrossentropy", {"from_logits": True}, "labels"),
    ("BinaryFocalCrossentropy", {}, "labels"),
    ("BinaryFocalCrossentropy", {"apply_class_balancing": True, "gamma": 3.0, "from_logits": True}, "labels"),
    ("CategoricalCrossentropy", {}, "onehot"),
    ("CategoricalCrossentropy", {"label_smoothing": 0.1}, "onehot"),
    ("CategoricalCrossentropy", {"from_logits": True}, "onehot_logits"),
    ("CategoricalFocalCrossentropy", {}, "onehot"),
    ("CategoricalFocalCrossentropy", {"from_logits": True, "alpha": 0.5, "label_smoothing": 0.1}, "onehot_logits"),
    ("SparseCategoricalCrossentropy", {}, "sparse"),
    ("SparseCategoricalCrossentropy", {}, "sparse_column"),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, "sparse_logits"),
    ("SparseCategoricalCrossentropy", {"ignore_class": 1}, "sparse"),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, "image"),
]
METRICS = [
    ("Accuracy", {}, "classes"),
    ("BinaryAccuracy", {}, "labels"),
    ("BinaryAccuracy", {"threshold": 0.3}, "binary"),
    ("CategoricalAccuracy", {}, "onehot"),
    ("SparseCategoricalAccuracy", {}, "sparse"),
    ("SparseCategoricalAccuracy", {}, "sparse_column"),
    ("TopKCategoricalAccuracy", {"k": 2}, "onehot"),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, "sparse"),
    ("TruePositives", {}, "labels"),
    ("FalsePositives", {"thresholds": [0.2, 0.7]}, "labels"),
    ("TrueNegatives", {"thresholds": [0.7, 0.2]}, "labels"),
    ("FalseNegatives", {}, "binary"),
    ("Precision", {}, "labels"),
    ("Precision", {"thresholds": [0.1, 0.5, 0.9]}, "labels"),
    ("Precision", {"top_k": 2}, "labels"),
    ("Precision", {"class_id": 1}, "labels"),
    ("Precision", {"top_k": 2, "class_id": 1}, "labels"),
    ("Recall", {}, "labels"),
    ("Recall", {"top_k": 1, "class_id": 2}, "labels"),
    ("AUC", {}, "labels"),
    ("AUC", {"curve": "PR"}, "labels"),
    ("AUC", {"summation_method": "minoring"}, "labels"),
    ("AUC", {"curve": "PR", "summation_method": "majoring"}, "labels"),
    ("AUC", {"thresholds": [0.2, 0.5, 0.8]}, "labels"),
    ("AUC", {"multi_label": True}, "labels"),
    ("AUC", {"multi_label": True, "label_weights": [0.1, 0.2, 0.3, 0.4]}, "labels"),
    ("AUC", {"from_logits": True}, "labels"),
    ("SensitivityAtSpecificity", {"specificity": 0.4}, "labels"),
    ("SpecificityAtSensitivity", {"sensitivity": 0.4}, "labels"),
    ("PrecisionAtRecall", {"recall": 0.4}, "labels"),
    ("RecallAtPrecision", {"precision": 0.4}, "labels"),
    ("F1Score", {}, "onehot"),
    ("F1Score", {"average": "micro", "threshold": 0.4}, "onehot"),
    ("FBetaScore", {"average": "macro", "beta": 2.0}, "onehot"),
    ("FBetaScore", {"average": "weighted", "beta": 0.5}, "onehot"),
    ("MeanSquaredError", {}, "real"),
    ("RootMeanSquaredError", {}, "real"),
    ("MeanAbsoluteError", {}, "real"),
    ("MeanAbsolutePercentageError", {}, "real"),
    ("MeanSquaredLogarithmicError", {}, "positive"),
    ("CosineSimilarity", {}, "real"),
    ("LogCoshError", {}, "real"),
    ("KLDivergence", {}, "onehot"),
    ("Poisson", {}, "positive"),
    ("Hinge", {}, "labels"),
    ("SquaredHinge", {}, "labels"),
    ("CategoricalHinge", {}, "onehot"),
    ("BinaryCrossentropy", {}, "labels"),
    ("CategoricalCrossentropy", {}, "onehot"),
    ("SparseCategoricalCrossentropy", {}, "sparse"),
    ("PearsonCorrelation", {}, "real"),
    ("ConcordanceCorrelation", {}, "real"),
    ("R2Score", {}, "real"),
    ("R2Score", {"class_aggregation": "variance_weighted_average"}, "real"),
    ("R2Score", {"class_aggregation": None}, "real"),
    ("R2Score", {"num_regressors": 2}, "real"),
    ("IoU", {"num_classes": 4, "target_class_ids": [1, 2]}, "classes"),
    ("MeanIoU", {"num_classes": 4}, "classes"),
    ("MeanIoU", {"num_classes": 4, "ignore_class": 2}, "classes"),
    ("MeanIoU", {"num_classes": 3, "sparse_y_pred": False}, "image"),
    ("BinaryIoU", {"target_class_ids": [1], "threshold": 0.4}, "binary"),
    ("OneHotIoU", {"num_classes": 4, "target_class_ids": [0, 3]}, "onehot"),
    ("OneHotMeanIoU", {"num_classes": 4}, "onehot"),
]


COUNTED = (
    "AUC",
    "FalseNegatives",
    "FalsePositives",
    "Precision",
    "PrecisionAtRecall",
    "Recall",
    "RecallAtPrecision",
    "SensitivityAtSpecificity",
    "SpecificityAtSensitivity",
    "TrueNegatives",
    "TruePositives",
)


def title(case):
    name, arguments, kind = case
    return f"{name}({', '.join(f'{k}={v}' for k, v in arguments.items())}) of {kind}"


def numbers(value):
    return np.asarray(value, "float64").reshape(-1).tolist()


def weights_for(y_true, kind):
    """One for each sample; for images one for each pixel."""
    if kind == "image":
        return np.linspace(0.1, 2.0, y_true.size).reshape(y_true.shape).astype("float32")
    return data()["weights"]


def loss(tf, case):
    """Each reduction, with and without weights."""
    name, arguments, kind = case
    actual = data()
    y_true, y_pred = actual[kind]
    weights = weights_for(y_true, kind)
    make = getattr(tf.keras.losses, name)
    result = {}
    for reduction in ("sum_over_batch_size", "sum", "none", "mean_with_sample_weight"):
        created = make(reduction=reduction, **arguments)
        result[reduction] = numbers(created(y_true, y_pred))
        if name not in ("Dice", "Tversky") and arguments.get("axis") != 0:
            result[f"{reduction}, weighted"] = numbers(created(y_true, y_pred, sample_weight=weights))
    return result


def metric(tf, case):
    """After one batch, after a second with weights, after a reset and another."""
    name, arguments, kind = case
    y_true, y_pred = data()[kind]
    other_true, other_pred = data(1)[kind]
    weights = weights_for(y_true, kind)
    if name in COUNTED and y_true.ndim == 2:
        weights = weights[:, None]  # Keras broadcasts, and does not add axes, where it counts
    if "IoU" in name:
        weights = np.round(3 * weights)  # Keras counts in integers there and drops the rest of a weight
    created = getattr(tf.keras.metrics, name)(**arguments)
    result = {}
    created.update_state(y_true, y_pred)
    result["first"] = numbers(created.result())
    created.update_state(other_true, other_pred, sample_weight=weights)
    result["second, weighted"] = numbers(created.result())
    created.reset_state()
    created.update_state(other_true, other_pred)
    result["after a reset"] = numbers(created.result())
    return result


# ---- training ----------------------------------------------------------------------------------------------------


def problem():
    """Three classes in the plane: 90 points, and the same with two targets."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(90, 2)).astype("float32")
    angle = np.arctan2(x[:, 1], x[:, 0])
    y = ((angle + np.pi) / (2 * np.pi) * 3).astype("int32") % 3
    return x, y


def filled(model):
    """Weights that do not depend on anybody's random numbers."""
    rng = np.random.default_rng(3)
    model.set_weights([rng.normal(size=w.shape).astype("float32") * 0.5 for w in model.get_weights()])
    return model


def mlp(tf, outputs=3, activation="softmax"):
    keras = tf.keras
    return filled(
        keras.Sequential(
            [
                keras.Input((2,)),
                keras.layers.Dense(16, activation="relu"),
                keras.layers.Dense(8, activation="tanh"),
                keras.layers.Dense(outputs, activation=activation),
            ]
        )
    )


def curves(history):
    return {k: numbers(v) for k, v in sorted(history.history.items())}


def fit_adam(tf):
    """Adam, accuracy, a validation split, batches that do not divide the data."""
    x, y = problem()
    model = mlp(tf)
    model.compile(tf.keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(x, y, batch_size=16, epochs=12, shuffle=False, validation_split=0.2, verbose=0)
    result = curves(history)
    result["evaluate"] = numbers(model.evaluate(x, y, verbose=0))
    result["predict"] = numbers(model.predict(x[:5], verbose=0))
    return result


def fit_sgd_weighted(tf):
    """Momentum, one-hot labels, sample and class weights, weighted metrics, regularisers."""
    x, y = problem()
    keras = tf.keras
    model = filled(
        keras.Sequential(
            [
                keras.Input((2,)),
                keras.layers.Dense(8, activation="sigmoid", kernel_regularizer=keras.regularizers.L2(0.01)),
                keras.layers.Dense(3),
            ]
        )
    )
    model.compile(
        keras.optimizers.SGD(0.1, momentum=0.9),
        keras.losses.CategoricalCrossentropy(from_logits=True),
        metrics=["accuracy", "mse"],
        weighted_metrics=[keras.metrics.CategoricalAccuracy(name="weighted")],
    )
    one_hot = keras.utils.to_categorical(y, 3)
    weights = np.linspace(0.5, 1.5, len(x)).astype("float32")
    history = model.fit(x, one_hot, batch_size=32, epochs=4, shuffle=False, sample_weight=weights, verbose=0)
    result = curves(history)
    history = model.fit(
        x, one_hot, batch_size=32, epochs=2, shuffle=False, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, verbose=0
    )
    result.update({f"by class, {k}": v for k, v in curves(history).items()})
    return result


def fit_two_outputs(tf):
    """A functional model with shared layers, two inputs and outputs, losses by name with weights."""
    keras = tf.keras
    x, y = problem()
    a, b = keras.Input((2,), name="a"), keras.Input((2,), name="b")
    shared = keras.layers.Dense(6, activation="tanh", name="shared")
    both = keras.layers.Concatenate(name="both")([shared(a), shared(b)])
    kind = keras.layers.Dense(3, activation="softmax", name="kind")(both)
    size = keras.layers.Dense(1, name="size")(keras.layers.Add(name="sum")([shared(a), shared(b)]))
    model = filled(keras.Model(inputs=[a, b], outputs=[kind, size]))
    model.compile(
        keras.optimizers.RMSprop(0.01),
        loss={"kind": "sparse_categorical_crossentropy", "size": "mse"},
        loss_weights={"kind": 1.0, "size": 0.3},
        metrics={"kind": ["accuracy"], "size": ["mae"]},
    )
    target = {"kind": y, "size": np.linalg.norm(x, axis=1, keepdims=True)}
    history = model.fit({"a": x, "b": x[::-1]}, target, batch_size=30, epochs=5, shuffle=False, verbose=0)
    result = curves(history)
    results = model.evaluate([x, x[::-1]], target, batch_size=30, verbose=0, return_dict=True)
    result.update({f"evaluate {k}": numbers(v) for k, v in sorted(results.items())})
    result["weights"] = [w.shape[0] for w in model.get_weights()]
    return result


def fit_binary(tf):
    """One sigmoid output, several metrics, the learning rate's callbacks."""
    keras = tf.keras
    x, y = problem()
    y = (y > 0).astype("float32")
    model = mlp(tf, 1, "sigmoid")
    model.compile(
        keras.optimizers.Adagrad(0.1),
        "binary_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc"), keras.metrics.Precision(name="precision")],
    )
    callbacks = [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.8 if epoch > 2 else rate),
        keras.callbacks.EarlyStopping("loss", min_delta=0.02, patience=1),
    ]
    return curves(
        model.fit(x, y, epochs=20, shuffle=False, callbacks=callbacks, validation_data=(x[:30], y[:30]), verbose=0)
    )


def fit_plateau(tf):
    """ReduceLROnPlateau, and going back to the best weights."""
    keras = tf.keras
    x, y = problem()
    model = mlp(tf)
    model.compile(keras.optimizers.SGD(2.0), "sparse_categorical_crossentropy")
    callbacks = [
        keras.callbacks.ReduceLROnPlateau("loss", factor=0.3, patience=1, min_delta=0.05, cooldown=1),
        keras.callbacks.EarlyStopping("loss", patience=4, restore_best_weights=True),
    ]
    result = curves(model.fit(x, y, epochs=15, batch_size=45, shuffle=False, callbacks=callbacks, verbose=0))
    result["evaluate"] = numbers(model.evaluate(x, y, verbose=0))
    return result


RUNS = {f.__name__: f for f in (fit_adam, fit_sgd_weighted, fit_two_outputs, fit_binary, fit_plateau)}


def every(tf):
    """All of it."""
    return {
        "losses": {title(c): loss(tf, c) for c in LOSSES},
        "metrics": {title(c): metric(tf, c) for c in METRICS},
        "runs": {name: run(tf) for name, run in RUNS.items()},
    }

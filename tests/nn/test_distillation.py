"""keras.distillation: losses by NumPy, students that learn from teachers alone, files, and invalid arguments."""

import numpy as np
import pytest

from opwright import keras

RANDOM = np.random.default_rng(0)
TEACHER, STUDENT = RANDOM.normal(size=(2, 6, 4))
distillation = keras.distillation


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("loss", ["kl_divergence", keras.losses.KLDivergence(), "mse"])
def test_values_by_numpy(loss):
    value = distillation.LogitsDistillation(2.0, loss).compute_loss(TEACHER, STUDENT).numpy()
    p, q = softmax(TEACHER / 2), softmax(STUDENT / 2)
    divergence = 4 * (p * np.log(p / q)).sum(-1).mean()
    expected = np.square(TEACHER / 2 - STUDENT / 2).mean() if loss == "mse" else divergence
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    several = distillation.FeatureDistillation(["mse", None, "mae"])
    outputs = [TEACHER] * 3, [STUDENT] * 3
    several.validate_outputs(*outputs)
    expected = np.square(TEACHER - STUDENT).mean() + np.abs(TEACHER - STUDENT).mean()
    np.testing.assert_allclose(several.compute_loss(*outputs).numpy(), expected, rtol=1e-5)


def networks():
    """Return a network that has learnt a rule, and a smaller one that has not."""
    models = []
    for width in 16, 8:
        x = keras.Input((4,))
        hidden = keras.layers.Dense(width, activation="relu", name="wide")(x)
        y = keras.layers.Dense(3, name="logits")(keras.layers.Dense(8, activation="tanh", name="hidden")(hidden))
        models.append(keras.Model(x, y))
    x = RANDOM.normal(size=(256, 4)).astype("float32")
    y = (x @ RANDOM.normal(size=(4, 3))).argmax(-1)
    models[0].compile(keras.optimizers.Adam(0.02), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    models[0].fit(x, y, epochs=6, verbose=0)
    return models, x


def test_a_student_learns_from_the_teacher_alone(tmp_path):
    (teacher, student), x = networks()
    losses = [
        distillation.LogitsDistillation(2.0),
        distillation.FeatureDistillation("mse", teacher_layer_name="hidden", student_layer_name="hidden"),
    ]
    model = distillation.Distiller(teacher, student, losses, [1.0, 0.5], student_loss_weight=0.0)
    model.compile(keras.optimizers.Adam(0.02), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    frozen = teacher.get_weights()
    wrong = np.zeros(len(x), int)  # targets that have no weight
    history = model.fit(x, wrong, epochs=12, verbose=0).history
    assert {"student_loss", "distillation_loss", "total_loss"} <= set(history)
    assert history["distillation_loss"][-1] < 0.2 * history["distillation_loss"][0]
    np.testing.assert_allclose(history["total_loss"], history["distillation_loss"], rtol=1e-6)
    for weight, value in zip(teacher.get_weights(), frozen):
        np.testing.assert_array_equal(weight, value)
    agree = student.predict(x, verbose=0).argmax(-1) == teacher.predict(x, verbose=0).argmax(-1)
    assert agree.mean() > 0.85
    model.save(tmp_path / "distiller.keras")
    with pytest.warns(UserWarning, match="compile"):
        back = keras.models.load_model(tmp_path / "distiller.keras")
    np.testing.assert_array_equal(back.predict(x, verbose=0), model.predict(x, verbose=0))
    assert back.distillation_losses[1].get_config() == losses[1].get_config()


def test_invalid_arguments():
    (teacher, student), _ = networks()
    logits = distillation.LogitsDistillation()
    other = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3)])
    own = type("Own", (keras.Model,), {})()
    named = distillation.FeatureDistillation(teacher_layer_name="none")
    for make, says in (
        (lambda: distillation.Distiller(teacher, other, logits), "shapes are incompatible"),
        (lambda: distillation.Distiller(teacher, 3, logits), "Student must be"),
        (lambda: distillation.Distiller(teacher, student, None), "cannot be `None`"),
        (lambda: distillation.Distiller(teacher, student, logits, student_loss_weight=2), "between"),
        (lambda: distillation.Distiller(teacher, student, [logits], [1.0, 2.0]), "must match"),
        (lambda: distillation.Distiller(teacher, student, named), "In teacher model"),
        (lambda: distillation.Distiller(own, student, named), "subclassed"),
        (lambda: distillation.LogitsDistillation(-1.0), "positive"),
        (lambda: distillation.LogitsDistillation(loss=[None]), "at least one"),
        (lambda: distillation.FeatureDistillation("unknown"), "Unknown loss"),
        (lambda: distillation.Distiller(teacher, student, logits).compile(loss=None), "cannot be `None`"),
    ):
        with pytest.raises(ValueError, match=says):
            make()

"""`keras.distillation`: a student model that learns from the outputs and features of a teacher.

Lives here: losses between teacher and student, the model that trains the student.  Not here: losses of targets
(losses/), training (training/).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import nest
from ..core.errors import InvalidArgumentError
from ..ops import array, dispatch, math, nn
from ..ops.tensor import Tensor
from . import losses
from .configuration import ObjectRegistry
from .metrics import Mean
from .model import Model
from .model_config import deserialize, serialize

__all__ = ["DistillationLoss", "Distiller", "FeatureDistillation", "LogitsDistillation"]

FINAL = "final_output"
"""The key of a model's outputs among its features."""


def _loss_functions(loss: Any) -> Any:
    """Return losses of names, instances and configurations, in their structure; None stays."""
    if loss is None or callable(loss):
        return loss
    if isinstance(loss, list | tuple):
        return type(loss)(map(_loss_functions, loss))
    if isinstance(loss, dict) and "class_name" not in loss:
        return {key: _loss_functions(value) for key, value in loss.items()}
    try:
        return losses.get(loss)
    except ValueError as error:
        raise ValueError(f"Unknown loss function: '{loss}'.") from error


def _loss_configs(loss: Any) -> Any:
    return nest.map_structure(lambda each: None if each is None else losses.serialize(each), loss)


def _check_same_structure(one: Any, other: Any, what: str) -> None:
    try:
        nest.assert_same_structure(one, other, check_types=False)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{what} structure mismatch: {error}") from error


class DistillationLoss:
    """Base of losses between the outputs of a teacher and of a student."""

    teacher_layer_name: str | None = None
    student_layer_name: str | None = None
    loss: Any

    def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any) -> Tensor:
        """Return the loss, a scalar. Raises NotImplementedError of the base class."""
        raise NotImplementedError("Subclasses must implement compute_loss")

    def validate_outputs(self, teacher_outputs: Any, student_outputs: Any) -> None:
        """Raise ValueError for outputs that the loss cannot compare: of other structures."""
        _check_same_structure(teacher_outputs, student_outputs, "Output")

    def validate_model_compatibility(self, teacher: Model, student: Model) -> None:
        """Raise ValueError for models that the loss cannot compare."""

    def _set_loss(self, loss: Any) -> None:
        self.loss = _loss_functions(loss)
        if all(each is None for each in nest.flatten(self.loss)):
            raise ValueError(f"The `loss` of {type(self).__name__} must contain at least one non-`None` value.")

    def _sum(self, teacher: Any, student: Any, value: Any) -> Tensor:
        """Return the sum of `value(loss, teacher, student)` of all outputs that have a loss."""
        parts = zip(*(nest.flatten(each) for each in (self.loss, teacher, student)))
        return math.add_n([value(loss, *outputs) for loss, *outputs in parts if loss is not None])


class FeatureDistillation(DistillationLoss):
    """Mean loss between the outputs of a layer of the teacher and one of the student; without names, final outputs.

    loss: a name, a loss or a structure like the outputs, in which None leaves one out
    raises ValueError for losses that are all None; for names of layers in subclassed models, and unknown names, when a
    `Distiller` is created
    """

    def __init__(
        self, loss: Any = "mse", teacher_layer_name: str | None = None, student_layer_name: str | None = None
    ) -> None:
        self.teacher_layer_name, self.student_layer_name = teacher_layer_name, student_layer_name
        self._set_loss(loss)

    def validate_model_compatibility(self, teacher: Model, student: Model) -> None:
        """Raise ValueError for layers that are not found."""
        named = ("teacher", teacher, self.teacher_layer_name), ("student", student, self.student_layer_name)
        for role, model, layer in named:
            if layer is None:
                continue
            if model._network is None:
                raise ValueError(
                    "FeatureDistillation with specific layer names requires Functional or Sequential models. The "
                    f"{role} model(s) appear to be subclassed (no symbolic inputs/outputs). Use it without layer "
                    "names, or LogitsDistillation."
                )
            try:
                model.get_layer(name=layer)
            except ValueError as error:
                raise ValueError(f"In {role} model: {error}") from error

    def validate_outputs(self, teacher_outputs: Any, student_outputs: Any) -> None:
        """Raise ValueError for outputs of another structure than the losses."""
        super().validate_outputs(teacher_outputs, student_outputs)
        _check_same_structure(self.loss, teacher_outputs, "Loss")

    def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any) -> Tensor:
        """Return the sum of the mean losses."""
        return self._sum(teacher_outputs, student_outputs, lambda loss, t, s: math.reduce_mean(loss(t, s)))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        names = {"teacher_layer_name": self.teacher_layer_name, "student_layer_name": self.student_layer_name}
        return {"loss": _loss_configs(self.loss), **names}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> FeatureDistillation:
        """Return the loss of a configuration."""
        return cls(**config)


class LogitsDistillation(DistillationLoss):
    """Loss between logits divided by a temperature; of the Kullback-Leibler divergence between their softmaxes.

    That one is multiplied by the temperature's square (Hinton et al., arXiv:1503.02531).
    raises ValueError for a temperature that is not a positive number, and losses that are all None
    """

    def __init__(self, temperature: float = 3.0, loss: Any = "kl_divergence") -> None:
        if not isinstance(temperature, int | float):
            raise ValueError(f"temperature must be a number, got {type(temperature)}")
        if temperature <= 0.0:
            raise ValueError(f"temperature must be positive. Received: {temperature}")
        self.temperature = temperature
        self._set_loss(loss)

    def compute_loss(self, teacher_outputs: Any, student_outputs: Any, **kwargs: Any) -> Tensor:
        """Return the sum of the mean losses."""

        def value(loss: Any, teacher: Any, student: Any) -> Tensor:
            scaled = [dispatch.to_tensor(logits) / self.temperature for logits in (teacher, student)]
            if not isinstance(loss, losses.KLDivergence) and loss is not losses.kl_divergence:
                return math.reduce_mean(loss(*scaled))
            divergence: Tensor = math.reduce_mean(loss(*map(nn.softmax, scaled))) * self.temperature**2
            return divergence

        return self._sum(teacher_outputs, student_outputs, value)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {"temperature": self.temperature, "loss": _loss_configs(self.loss)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LogitsDistillation:
        """Return the loss of a configuration."""
        return cls(**config)


def _check_models(teacher: Any, student: Any) -> None:
    """Raise ValueError for others than models, and for inputs and outputs of other shapes or dtypes."""
    for role, model in ("Teacher", teacher), ("Student", student):
        if not isinstance(model, Model):
            raise ValueError(f"{role} must be a keras.Model, got {type(model)}")
    if teacher._network is None or student._network is None:
        return
    for what in "input", "output":
        pairs = zip(getattr(teacher, f"{what}s"), getattr(student, f"{what}s"), strict=True)
        for one, other in pairs:
            sizes = f"Teacher: {tuple(one.shape)}, Student: {tuple(other.shape)}."
            if len(one.shape) != len(other.shape):
                raise ValueError(f"Teacher and student {what} shapes have different dimensions. {sizes}")
            if any(None not in (m, n) and m != n for m, n in zip(one.shape, other.shape)):
                raise ValueError(f"Teacher and student {what} shapes are incompatible. {sizes}")
            if one.dtype != other.dtype:
                raise ValueError(
                    f"Teacher and student {what} dtypes must match. Teacher: {one.dtype}, Student: {other.dtype}."
                )


class Distiller(Model):
    """Model whose `fit` trains a student by targets and by a teacher, which is frozen; its outputs are the student's.

    distillation_losses: one or several `DistillationLoss`; distillation_loss_weights: of their sum, by default 1.
    student_loss_weight: of the loss of targets, from 0 to 1; the teacher's share is the rest.
    raises ValueError for models that do not fit each other or the losses, and weights out of range
    """

    def __init__(
        self,
        teacher: Model,
        student: Model,
        distillation_losses: Any,
        distillation_loss_weights: Sequence[float] | None = None,
        student_loss_weight: float = 0.5,
        name: str = "distiller",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        _check_models(teacher, student)
        if not isinstance(student_loss_weight, int | float):
            raise ValueError(f"student_loss_weight must be a number, got {type(student_loss_weight)}")
        if not 0.0 <= student_loss_weight <= 1.0:
            raise ValueError(f"student_loss_weight must be between 0.0 and 1.0, got {student_loss_weight}")
        if distillation_losses is None:
            raise ValueError(
                "'distillation_losses' cannot be `None`. Provide a distillation loss (e.g., LogitsDistillation or "
                "FeatureDistillation) or a list of distillation losses."
            )
        several = isinstance(distillation_losses, list | tuple)
        self.distillation_losses = list(distillation_losses) if several else [distillation_losses]
        weights = [1.0] * len(self.distillation_losses) if distillation_loss_weights is None else []
        self.distillation_loss_weights = weights or list(distillation_loss_weights or ())
        if len(self.distillation_loss_weights) != len(self.distillation_losses):
            raise ValueError(
                f"Number of distillation_loss_weights ({len(self.distillation_loss_weights)}) must match number of "
                f"distillation_losses ({len(self.distillation_losses)})"
            )
        for loss in self.distillation_losses:
            loss.validate_model_compatibility(teacher, student)
        self.teacher, self.student, self.student_loss_weight = teacher, student, student_loss_weight
        self._teacher_features = self._features(teacher, "teacher_layer_name")
        self._student_features = self._features(student, "student_layer_name")
        self.teacher.trainable = False
        self.student_loss_tracker = Mean(name="student_loss")
        self.distillation_loss_tracker = Mean(name="distillation_loss")
        self.total_loss_tracker = Mean(name="total_loss")

    def _features(self, model: Model, attribute: str) -> Any:
        """Return a model of the outputs and of the layers that losses name, or None if they name none."""
        names = {getattr(loss, attribute, None) for loss in self.distillation_losses} - {None}
        if not names:
            return None
        outputs = {name: model.get_layer(name=name).output for name in sorted(map(str, names))}
        return Model(model.inputs, {FINAL: model.output, **outputs}, name=f"{model.name}_features")

    def compile(  # type: ignore[override]  # the rest is passed on by name
        self, optimizer: Any = "adam", loss: Any = None, metrics: Any = None, **kwargs: Any
    ) -> None:
        """Set the optimizer, the loss of targets (a name, a loss or a structure like the outputs), and metrics.

        raises ValueError without a loss, and for metrics that are not a list
        """
        if loss is None:
            raise ValueError("'loss' cannot be `None`.")
        if metrics is not None and not isinstance(metrics, list | tuple):
            raise ValueError(f"metrics must be a list or tuple, got {type(metrics)}")
        self._student_loss = _loss_functions(loss)
        super().compile(optimizer=optimizer, loss=None, metrics=metrics, **kwargs)

    def call(self, inputs: Any, training: Any = None, mask: Any = None, **kwargs: Any) -> Any:
        """Return the student's outputs."""
        masks = {} if mask is None else {"mask": mask}
        return self.student(inputs, training=training, **masks, **kwargs)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Tensor:
        """Return the weighted sum of the loss of targets and those of the teacher, and update their means."""
        if y_pred is None:
            y_pred = self(x, training=training)
        share = self.student_loss_weight
        of_targets: Any = array.zeros(())
        if share > 0.0 and y is not None:
            parts = zip(*(nest.flatten(each) for each in (self._student_loss, y, y_pred)))
            of_targets = math.add_n([math.reduce_mean(loss(*pair)) for loss, *pair in parts if loss is not None])
        of_teacher: Any = array.zeros(())
        if share < 1.0:
            teacher = self._outputs(self.teacher, self._teacher_features, x, False)
            student = self._outputs(self.student, self._student_features, x, training, y_pred)
            for loss, weight in zip(self.distillation_losses, self.distillation_loss_weights):
                pair = [
                    features[getattr(loss, attribute, None) or FINAL]
                    for features, attribute in ((teacher, "teacher_layer_name"), (student, "student_layer_name"))
                ]
                loss.validate_outputs(*pair)
                value = loss.compute_loss(*pair)
                if value.shape.rank:
                    raise InvalidArgumentError(
                        op=type(loss).__name__,
                        what=f"returned a non-scalar loss with shape {value.shape}",
                        do="return the mean or the sum in compute_loss",
                    )
                of_teacher = of_teacher + weight * value
        total: Tensor = share * of_targets + (1.0 - share) * of_teacher
        self.student_loss_tracker.update_state(of_targets)
        self.distillation_loss_tracker.update_state(of_teacher)
        self.total_loss_tracker.update_state(total)
        return total

    @staticmethod
    def _outputs(model: Model, features: Any, x: Any, training: bool, outputs: Any = None) -> dict[str, Any]:
        """Return the outputs by FINAL, and those of layers by name. outputs: of the model, if they are computed."""
        if features is not None:
            result: dict[str, Any] = features(x, training=training)
            return result
        return {FINAL: model(x, training=training) if outputs is None else outputs}

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, with both models."""
        return {
            "teacher": serialize(self.teacher),
            "student": serialize(self.student),
            "distillation_losses": [serialize(loss) for loss in self.distillation_losses],
            "distillation_loss_weights": self.distillation_loss_weights,
            "student_loss_weight": self.student_loss_weight,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Distiller:
        """Return the model of a configuration."""
        made = {name: deserialize(config[name], custom_objects) for name in ("teacher", "student")}
        found = [deserialize(loss, custom_objects) for loss in config["distillation_losses"]]
        return cls(**{**config, **made, "distillation_losses": found})


_REGISTRY = ObjectRegistry("distillation loss", "keras.distillation")
_REGISTRY.add([FeatureDistillation, LogitsDistillation, Distiller])

"""Layers that apply other layers in training.

Lives here: RandomColorJitter, RandAugment, AugMix.
Not here: the base (image_layer.py), single changes (geometric_augmentation.py, color_augmentation.py).
"""

from __future__ import annotations

from typing import Any

from ...core import nest
from ...ops import array, dispatch, math
from ...tracing.control import switch_case
from .. import random
from .color_augmentation import (
    BYTES,
    AutoContrast,
    Equalization,
    RandomBrightness,
    RandomColorDegeneration,
    RandomContrast,
    RandomHue,
    RandomPosterization,
    RandomSaturation,
    RandomSharpness,
    Solarization,
)
from .geometric_augmentation import RandomRotation, RandomShear, RandomTranslation
from .image_layer import ImageLayer, factor_range


class RandomColorJitter(ImageLayer):
    """Brightness, contrast, saturation and hue in training, one after another, each with its factor; None leaves it."""

    def __init__(
        self,
        value_range: Any = BYTES,
        brightness_factor: Any = None,
        contrast_factor: Any = None,
        saturation_factor: Any = None,
        hue_factor: Any = None,
        seed: Any = None,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        factors = (brightness_factor, contrast_factor, saturation_factor, hue_factor)
        self._init_image_layer(
            seed,
            data_format,
            value_range=value_range,
            brightness_factor=brightness_factor,
            contrast_factor=contrast_factor,
            saturation_factor=saturation_factor,
            hue_factor=hue_factor,
        )
        classes = RandomBrightness, RandomContrast, RandomSaturation, RandomHue
        common = {"value_range": value_range, "seed": seed, "data_format": data_format, "dtype": self.dtype_policy}
        self._steps = [cls(factor, **common) for cls, factor in zip(classes, factors) if factor is not None]

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw a transformation of each layer, in a list."""
        return [step.get_random_transformation(data, training, self.generator) for step in self._steps]

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Apply the layers in order."""
        if training:
            for step, drawn in zip(self._steps, transformation):
                images = step.transform_images(images, drawn)
        return images


class _Chosen(ImageLayer):
    """Base of layers that choose among others for each batch."""

    LAYERS: tuple[str, ...] = (
        *("random_shear", "random_translation", "random_rotation", "random_brightness", "random_color_degeneration"),
        *("random_contrast", "random_sharpness", "random_posterization", "solarization", "auto_contrast"),
        "equalization",
    )

    def _init_layers(self, factor: Any, interpolation: str, value_range: Any, seed: Any, data_format: Any) -> None:
        common = {
            "data_format": data_format,
            "dtype": self.dtype_policy,
            "bounding_box_format": self.bounding_box_format,
        }
        moved = {"interpolation": interpolation, "seed": seed, **common}
        colored = {"value_range": value_range, "seed": seed, **common}
        plain = {"value_range": value_range, **common}
        self.random_shear = RandomShear(factor, factor, **moved)
        self.random_translation = RandomTranslation(factor, factor, **moved)
        self.random_rotation = RandomRotation(factor, **moved)
        self.random_brightness = RandomBrightness(factor, **colored)
        self.random_color_degeneration = RandomColorDegeneration(factor, **colored)
        self.random_contrast = RandomContrast(factor, **colored)
        self.random_sharpness = RandomSharpness(factor, **colored)
        self.random_posterization = RandomPosterization(max(1, int(8 * factor[1])), **colored)
        self.solarization = Solarization(factor, factor, **colored)
        self.auto_contrast = AutoContrast(**plain)
        self.equalization = Equalization(**plain)

    def _apply_one(self, index: Any, what: str, value: Any, transforms: Any) -> Any:
        """Return images, masks or boxes after the layer of an index into `transforms`; beyond them as they are."""
        branches = [self._branch(name, what, value, drawn) for name, drawn in transforms.items()]
        return switch_case(index, [*branches, lambda: nest.map_structure(array.identity, value)])

    def _branch(self, name: str, what: str, value: Any, transformation: Any) -> Any:
        def run() -> Any:
            result = getattr(getattr(self, name), f"transform_{what}")(value, transformation)
            return nest.map_structure(lambda y, x: array.ensure_shape(array.cast(y, x.dtype), x.shape), result, value)

        return run

    def transform_images(self, images: Any, transformation: Any, training: bool = True) -> Any:
        """Apply the layers drawn, of which only these are computed."""
        return self._changed("images", images, transformation) if training and transformation is not None else images

    def transform_segmentation_masks(self, segmentation_masks: Any, transformation: Any, training: bool = True) -> Any:
        """Apply the layers drawn to masks."""
        if not training or transformation is None:
            return segmentation_masks
        return self._changed("segmentation_masks", dispatch.to_tensor(segmentation_masks), transformation)

    def _changed(self, what: str, value: Any, transformation: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _changed(what, value, transformation)")


class RandAugment(_Chosen):
    """Random changes of a batch in training: num_ops layers, drawn from eleven, with `factor` as their strength.

    See Cubuk et al. 2019. factor: a number or range in [0, 1].
    """

    def __init__(
        self,
        value_range: Any = BYTES,
        num_ops: int = 2,
        factor: Any = 0.5,
        interpolation: str = "bilinear",
        seed: Any = None,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        factor = factor_range(factor, "factor", 0, 1)
        self._init_image_layer(
            seed, data_format, value_range=value_range, num_ops=num_ops, factor=factor, interpolation=interpolation
        )
        self._init_layers(factor, interpolation, value_range, seed, data_format)

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "layer_idxes", int32 [num_ops], and a transformation of each layer, "transforms"."""
        if not training:
            return None
        generator = self.generator if seed is None else seed
        chosen = random.randint([self.num_ops], 0, len(self.LAYERS), seed=generator)
        layers = {name: getattr(self, name) for name in self.LAYERS}
        return {
            "transforms": {k: layer.get_random_transformation(data, True, generator) for k, layer in layers.items()},
            "layer_idxes": chosen,
        }

    def transform_bounding_boxes(self, bounding_boxes: Any, transformation: Any, training: bool = True) -> Any:
        """Apply the layers drawn to boxes."""
        if not training or transformation is None:
            return bounding_boxes
        return self._changed("bounding_boxes", nest.map_structure(dispatch.to_tensor, bounding_boxes), transformation)

    def _changed(self, what: str, value: Any, transformation: Any) -> Any:
        chosen: Any = dispatch.to_tensor(transformation["layer_idxes"])
        for i in range(self.num_ops):
            value = self._apply_one(chosen[i], what, value, transformation["transforms"])
        return value


class AugMix(_Chosen):
    """Means of images and of num_chains chains of random changes of them in training, each of chain_depth layers.

    See Hendrycks et al. 2020. factor: the strength of the layers, a number or range in [0, 1]. alpha: of the
    distributions of the weights, of chains (Dirichlet) and of the images (beta). all_ops: whether brightness, contrast,
    sharpness and color degeneration are among the layers. Boxes stay where they are.
    """

    SOME = (
        *("random_shear", "random_translation", "random_rotation", "random_posterization", "solarization"),
        *("auto_contrast", "equalization"),
    )

    def __init__(
        self,
        value_range: Any = BYTES,
        num_chains: int = 3,
        chain_depth: int = 3,
        factor: Any = 0.3,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: str = "bilinear",
        seed: Any = None,
        data_format: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        factor = factor_range(factor, "factor", 0, 1)
        self._init_image_layer(
            seed,
            data_format,
            value_range=value_range,
            num_chains=num_chains,
            chain_depth=chain_depth,
            factor=factor,
            alpha=alpha,
            all_ops=all_ops,
            interpolation=interpolation,
        )
        self._init_layers(factor, interpolation, value_range, seed, data_format)
        self._names = self.LAYERS if all_ops else self.SOME

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """Draw "chain_mixing_weights", [num_chains], "weight_sample", a scalar, and the steps of each chain.

        "chain_transforms": a list of steps a chain: "index", of a layer or none, and "transforms" of layers: eagerly,
        of the one drawn
        """
        if not training:
            return None
        generator = self.generator if seed is None else seed
        shares = random.gamma([self.num_chains], self.alpha, seed=generator)
        chosen = random.randint([self.num_chains, self.chain_depth], 0, len(self._names) + 1, seed=generator)
        return {
            "chain_mixing_weights": shares / math.reduce_sum(shares),
            "weight_sample": random.beta([], self.alpha, self.alpha, seed=generator),
            "chain_transforms": [
                [self._step(chosen[i, j], data, generator) for j in range(self.chain_depth)]
                for i in range(self.num_chains)
            ],
        }

    def _step(self, index: Any, data: Any, generator: Any) -> dict[str, Any]:
        names = self._names
        if dispatch.state.trace is None:
            names = names[int(index) : int(index) + 1]
            index = 0
        return {
            "index": index,
            "transforms": {k: getattr(self, k).get_random_transformation(data, True, generator) for k in names},
        }

    def _changed(self, what: str, value: Any, transformation: Any) -> Any:
        dtype = value.dtype if value.dtype.is_floating else self.compute_dtype
        weights = array.cast(transformation["chain_mixing_weights"], dtype)
        own = array.cast(transformation["weight_sample"], dtype)
        mixed = array.zeros_like(array.cast(value, dtype))
        for i, steps in enumerate(transformation["chain_transforms"]):
            changed = value
            for step in steps:
                changed = self._apply_one(step["index"], what, changed, step["transforms"])
            mixed = mixed + array.cast(changed, dtype) * weights[i]
        mixed = own * array.cast(value, dtype) + (1.0 - own) * mixed
        if what != "images":
            return mixed
        return math.clip_by_value(mixed, float(self.value_range[0]), float(self.value_range[1]))

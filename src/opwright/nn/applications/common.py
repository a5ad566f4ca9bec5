"""Parts that the networks of `keras.applications` share: inputs, the last layers, weights, scaling of pictures.

Lives here: `Settings`, `finish`, `preprocess`, `decode_predictions`.  Not here: the networks (residual.py ...).

Pictures have their channels last. Nothing is downloaded: weights are a local file that `load_weights` reads, such as
the `.weights.h5` of a model of Keras.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.introspection import signature_of
from ...ops import array, dispatch
from ...ops.tensor import TensorLike
from .. import backend
from ..layers import Dense, GlobalAveragePooling2D, GlobalMaxPooling2D
from ..model import Model
from ..network import Input
from ..utils import get_source_inputs

WITHOUT_SHAPE = ("include_top", "weights", "input_tensor", "pooling", "classes", "classifier_activation")
"""Arguments of networks that take `input_shape` first, in Keras's order."""
POOLS = {"avg": GlobalAveragePooling2D, "max": GlobalMaxPooling2D}
DOC = """Return the network {name}, without weights unless a file is given.

input_shape: (height, width, channels), by default ({size}, {size}, 3). include_top: with the layers that classify into
classes by classifier_activation, otherwise pooled by pooling: None, "avg" or "max". weights: a local file, as for
`load_weights`. input_tensor: a symbolic tensor for the pictures.
raises ValueError for weights that are not a file, and smaller pictures
"""


def network(build: Callable[..., Any]) -> Callable[..., Callable[..., Model]]:
    """Return a function of a network's name and own settings, which returns the function that builds the model.

    build: of the input tensor and the settings, returns the features, a function of them for the top, and where there
    is one, the last layer of networks without top. It gets the model's name if it has a parameter `prefix`
    """

    takes_name = "prefix" in signature_of(build).parameters

    def define(
        name: str, size: int | None = 224, least: int = 32, order: Sequence[str] = (), **own: Any
    ) -> Callable[..., Model]:
        def model(
            include_top: bool = True,
            weights: Any = None,
            input_tensor: Any = None,
            input_shape: Any = None,
            pooling: str | None = None,
            classes: int = 1000,
            classifier_activation: Any = "softmax",
            name: str = own.pop("model_name", name.lower()),
            **more: Any,
        ) -> Model:
            check_weights(weights, name)
            x = picture(input_tensor, input_shape, size if include_top else None, least)
            settings = {**own, **more, "prefix": name} if takes_name else {**own, **more}
            features, top, *last = build(x, **settings)
            if include_top:
                y = top(features, classes, classifier_activation)
            elif pooling is not None:
                y = {"avg": GlobalAveragePooling2D, "max": GlobalMaxPooling2D}[pooling](name=f"{pooling}_pool")(
                    features
                )
            else:
                y = features
            y = last[0](y) if last and not include_top else y
            inputs = x if input_tensor is None else get_source_inputs(input_tensor)
            result = Model(inputs, y, name=name)
            if weights is not None:
                result.load_weights(weights)
            return result

        result = ordered(model, order, signature_of(build).parameters) if order else model
        result.__name__ = result.__qualname__ = name
        result.__doc__ = DOC.format(name=name, size=size)
        return result

    return define


def ordered(model: Callable[..., Model], order: Sequence[str], own: Mapping[str, Any]) -> Callable[..., Model]:
    """Return the function with the first arguments in Keras's order. own: parameters of the network's own arguments."""
    known = dict(signature_of(model).parameters)
    known.pop("more")
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = {key: known[key] if key in known else own[key].replace(kind=kind) for key in order}
    signature = inspect.Signature([*first.values(), *(p for key, p in known.items() if key not in first)])

    def with_arguments(*args: Any, **kwargs: Any) -> Model:
        return model(**signature.bind(*args, **kwargs).arguments)

    with_arguments.__dict__["__signature__"] = signature
    return with_arguments


def check_weights(weights: Any, name: str) -> None:
    """Check that weights are None or a file. Raises ValueError, which says where they may come from."""
    if weights is None or (isinstance(weights, (str, os.PathLike)) and os.path.exists(weights)):
        return
    raise ValueError(
        f"{name}: weights={weights!r} is not a local file, and nothing is downloaded. Pass weights=None, or a file "
        "that Keras wrote: keras.applications.{name}(weights='imagenet').save_weights('NAME.weights.h5')".replace(
            "{name}", name
        )
    )


def picture(input_tensor: Any, input_shape: Any, size: int | None, least: int) -> Any:
    """Return the symbolic pictures of a network. Raises ValueError for pictures smaller than `least`."""
    if backend.image_data_format() != "channels_last":
        raise ValueError("networks take pictures with their channels last; set_image_data_format('channels_last')")
    if input_tensor is not None:
        return input_tensor
    shape = (size, size, 3) if input_shape is None else tuple(input_shape)
    if len(shape) != 3 or any(n is not None and n < least for n in shape[:2]):
        raise ValueError(f"Input size must be at least {least}x{least}; Received: input_shape={input_shape}")
    return Input(shape=shape)


def pooled_classes(x: Any, classes: int, activation: Any, pool: str | None = "avg_pool", **dense: Any) -> Any:
    """Return probabilities of classes of features, averaged over the picture."""
    x = GlobalAveragePooling2D(name=pool)(x)
    return Dense(classes, activation=activation, name="predictions", **dense)(x)


# ---- pictures ------------------------------------------------------------------------------------------------------

MEANS, DEVIATIONS = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
"""Statistics of ImageNet's training pictures by channel, scaled to [0, 1]."""
_CAFFE_MEANS = np.array([103.939, 116.779, 123.68])
"""The same of blue, green and red from 0 to 255, as Caffe's networks take them."""


def preprocess_input(x: Any, data_format: str | None = None, mode: str = "caffe") -> Any:
    """Return pictures with values from 0 to 255 as a network takes them: a tensor for a tensor, else an array; an array
    of floating-point numbers is overwritten, as by Keras.

    mode: "tf": from -1 to 1; "torch": less ImageNet's means, divided by its deviations; "caffe": blue, green, red, less
    the means; "none": as they are. data_format: where the channels are, by default that of the configuration.
    raises ValueError for other modes and formats
    """
    if mode not in ("caffe", "tf", "torch", "none"):
        raise ValueError(f"Expected mode to be one of `caffe`, `tf` or `torch`. Received: mode={mode}")
    data_format = data_format or backend.image_data_format()
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"data_format is channels_last or channels_first. Received: data_format={data_format}")
    if mode == "none":
        return x
    if isinstance(x, TensorLike):
        pixels: Any = x if x.dtype.is_floating else array.cast(x, backend.floatx())
        constant: Callable[[Any], Any] = functools.partial(dispatch.to_tensor, dtype=pixels.dtype)
    else:
        pixels = np.asarray(x)
        pixels = pixels if pixels.dtype.kind == "f" else pixels.astype(backend.floatx())
        constant = functools.partial(np.asarray, dtype=pixels.dtype)
    in_place = pixels if pixels is x and isinstance(x, np.ndarray) and x.flags.writeable else None
    if mode == "tf":
        return _into(in_place, pixels / constant(127.5) - constant(1.0))
    last = data_format == "channels_last"

    def of_channels(values: Any) -> Any:
        return constant(np.asarray(values) if last else np.reshape(values, (3, 1, 1)))

    if mode == "torch":
        return _into(in_place, (pixels / constant(255.0) - of_channels(MEANS)) / of_channels(DEVIATIONS))
    swap = (..., slice(None, None, -1)) if last else (..., slice(None, None, -1), slice(None), slice(None))
    swapped = pixels[swap] - of_channels(_CAFFE_MEANS)
    return swapped if in_place is None else _into(in_place[swap], swapped)


def _into(target: np.ndarray | None, values: Any) -> Any:
    """Write values to an array, if there is one; return the array or the values."""
    if target is None:
        return values
    target[...] = values
    return target


def preprocessing(mode: str) -> Callable[..., Any]:
    """Return the `preprocess_input` of a network's module."""

    def preprocess(x: Any, data_format: str | None = None) -> Any:
        return preprocess_input(x, data_format, mode)

    preprocess.__name__ = preprocess.__qualname__ = "preprocess_input"
    preprocess.__doc__ = f"Return pictures from 0 to 255 as the network takes them: mode {mode!r} of `imagenet_utils`."
    return preprocess


def decode_predictions(preds: Any, top: int = 5, class_index: Any = None) -> list[list[tuple[str, str, float]]]:
    """Return for each row of probabilities of ImageNet's classes the most probable: (number, name, probability).

    class_index: a local JSON file {"0": ["n01440764", "tench"], ...}, by default where Keras keeps it.
    raises ValueError for other shapes and without such a file
    """
    rows = np.asarray(preds)
    if rows.ndim != 2 or rows.shape[1] != 1000:
        raise ValueError(
            "`decode_predictions` expects a batch of predictions (i.e. a 2D array of shape (samples, 1000)). Received "
            f"array with shape: {rows.shape}"
        )
    path = class_index or os.path.expanduser("~/.keras/models/imagenet_class_index.json")
    if not os.path.exists(path):
        raise ValueError(f"there is no file {path} of names of classes, and nothing is downloaded; pass class_index=")
    with open(path, encoding="utf-8") as file:
        names = json.load(file)
    return [[(*names[str(i)], float(row[i])) for i in row.argsort()[::-1][:top]] for row in rows]

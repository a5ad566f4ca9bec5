"""`keras.applications`: networks for pictures, without weights unless a local file has them.

Lives here: names by module, as Keras has them.  Not here: the networks (residual.py, mobile.py), their inputs and
weights (common.py). Other networks of Keras are read from its files by `from_keras`.
"""

from __future__ import annotations

from types import ModuleType

from . import common, mobile, residual
from .common import decode_predictions, preprocessing

_MODULES = {
    "densenet": ("torch", ("DenseNet121", "DenseNet169", "DenseNet201")),
    "efficientnet": ("none", tuple(f"EfficientNetB{i}" for i in range(8))),
    "mobilenet": ("tf", ("MobileNet",)),
    "mobilenet_v2": ("tf", ("MobileNetV2",)),
    "resnet": ("caffe", ("ResNet50", "ResNet101", "ResNet152")),
    "resnet50": ("caffe", ("ResNet50",)),
    "resnet_v2": ("tf", ("ResNet50V2", "ResNet101V2", "ResNet152V2")),
    "vgg16": ("caffe", ("VGG16",)),
    "vgg19": ("caffe", ("VGG19",)),
    "xception": ("tf", ("Xception",)),
}
"""The modules of Keras: how each scales pictures, and its networks."""

MODULES: dict[str, ModuleType] = {}
__all__ = ["MODULES", "imagenet_utils"]
for _module, (_mode, _names) in _MODULES.items():
    MODULES[_module] = _made = ModuleType(f"{__name__}.{_module}", f"Networks: {', '.join(_names)}.")
    vars(_made).update(preprocess_input=preprocessing(_mode), decode_predictions=decode_predictions)
    for _name in _names:
        _network = getattr(mobile if hasattr(mobile, _name) else residual, _name)
        vars(_made)[_name] = globals()[_name] = _network
        __all__ += [_name] if _name not in __all__ else []
    globals()[_module] = _made
    __all__ += [_module]
imagenet_utils = ModuleType(f"{__name__}.imagenet_utils", "Scaling of pictures, and names of classes.")
vars(imagenet_utils).update(preprocess_input=common.preprocess_input, decode_predictions=decode_predictions)
MODULES["imagenet_utils"] = imagenet_utils

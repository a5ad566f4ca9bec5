"""`keras.applications`: networks for pictures, without weights unless a local file has them.

Lives here: names by module, as Keras has them.  Not here: the networks (residual.py, inception.py ...), their inputs
and weights (common.py).
"""

from __future__ import annotations

from types import ModuleType

from . import common, convnext, inception, mobile, mobile_second, nasnet, residual
from .common import decode_predictions, preprocessing

_NETWORKS = (mobile, mobile_second, residual, inception, convnext, nasnet)
_MODULES = {
    "convnext": ("none", tuple(f"ConvNeXt{size}" for size in ("Tiny", "Small", "Base", "Large", "XLarge"))),
    "densenet": ("torch", ("DenseNet121", "DenseNet169", "DenseNet201")),
    "efficientnet": ("none", tuple(f"EfficientNetB{i}" for i in range(8))),
    "efficientnet_v2": ("none", tuple(f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "S", "M", "L"))),
    "inception_resnet_v2": ("tf", ("InceptionResNetV2",)),
    "inception_v3": ("tf", ("InceptionV3",)),
    "mobilenet": ("tf", ("MobileNet",)),
    "mobilenet_v2": ("tf", ("MobileNetV2",)),
    "mobilenet_v3": ("none", ("MobileNetV3Small", "MobileNetV3Large")),
    "nasnet": ("tf", ("NASNetMobile", "NASNetLarge")),
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
        _network = next(getattr(module, _name) for module in _NETWORKS if hasattr(module, _name))
        vars(_made)[_name] = globals()[_name] = _network
        __all__ += [_name] if _name not in __all__ else []
    globals()[_module] = _made
    __all__ += [_module]
imagenet_utils = ModuleType(f"{__name__}.imagenet_utils", "Scaling of pictures, and names of classes.")
vars(imagenet_utils).update(preprocess_input=common.preprocess_input, decode_predictions=decode_predictions)
MODULES["imagenet_utils"] = imagenet_utils

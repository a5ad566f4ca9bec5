"""The .tflite file format: models as plain Python objects, read, written, checked and stamped with versions.

    model = Model.read("net.tflite")        # mapped, weights are views
    model.verify()                          # raises InvalidArgumentError with the first finding
    model.write("copy.tflite")              # atomic; equal contents yield equal bytes

Lives here: the bytes and their meaning as a file. Not here: graphs, kernels, conversion (the rest of lite/).
Other tables' classes are attributes of `objects` (`objects.Tensor`), enums of `schema` (`schema.TensorType`).
"""

from ...core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)

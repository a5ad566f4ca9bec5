"""The .tflite file format: models as plain Python objects, read, written, checked and stamped with versions.

    model = Model.read("net.tflite")        # mapped, weights are views
    model.verify()                          # raises InvalidArgumentError with the first thing wrong
    model.write("copy.tflite")              # atomic; the same contents give the same bytes

Lives here: the bytes and their meaning as a file. Not here: graphs, kernels, conversion (the rest of lite/).
Other tables' classes are attributes of `objects` (`objects.Tensor`), enums of `schema` (`schema.TensorType`).
"""

from typing import TYPE_CHECKING

from ...core.importing import lazily

if TYPE_CHECKING:
    from . import objects, schema, versions
    from .model import Model
    from .strings import pack_strings, unpack_strings
    from .verify import findings

_HOMES = {
    ".": "objects, schema, versions",
    ".model": "Model",
    ".strings": "pack_strings, unpack_strings",
    ".verify": "findings",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = ["Model", "findings", "objects", "pack_strings", "schema", "unpack_strings", "versions"]

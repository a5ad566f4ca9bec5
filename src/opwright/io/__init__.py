"""`ow.io`: files and their formats as tensors, under the names of `tf.io`; `ow.audio`.

Lives here: the public names, imported when first used (`__init__.pyi`).

    files.py gfile.py local_files.py    whole files, Python's file objects, paths and errors
    records.py                          TFRecord files
    messages.py examples.py             Example messages as objects, and as tensors
    tensor_protos.py                    tensors as messages
    images.py png_samples.py audio.py   images, by Pillow; PNG of 16 bits; WAV
    event_files.py summary.py           event files of TensorBoard, `ow.summary`
    text.py                             CSV, raw bytes, base64
    host_calls.py                       operands of these functions, which run outside of the catalogue's operators

Not here: datasets of files (data/), checkpoints (saved/), `.tflite` (lite/).
"""

from ..core.lazy_imports import lazily as _lazily

__getattr__, __dir__, __all__ = _lazily(__name__)

"""`keras.preprocessing`: older names of what `keras.utils` and layers do.

Lives here: re-exports.  Not here: text (text.py), sequences (sequence.py), images (image.py).
"""

from ..utils import image_dataset_from_directory, text_dataset_from_directory, timeseries_dataset_from_array
from . import image, sequence, text

__all__ = [
    "image",
    "image_dataset_from_directory",
    "sequence",
    "text",
    "text_dataset_from_directory",
    "timeseries_dataset_from_array",
]

"""Images: sizes, frames, colours, boxes, quality. Public names as in `ow.image`, imported when first used.

Lives here: the family's public names; those of image files, which are above this layer (io/images.py).
Not here: convolutions and pools (nn/).
"""

from ...core.lazy_imports import lazily as _lazily
from .resize import resize as resize  # the function, before importing its module sets that name

__getattr__, __dir__, __all__ = _lazily(__name__)

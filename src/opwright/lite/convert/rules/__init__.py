"""The rule tables: which lite operators stand for which catalogue operators.

Lives here: the tables joined, `RULES`; within an operator the order is that of the tables here, first match wins.
Not here: the walk that applies them (../legalize.py), merging within the dialect (../optimize.py).
"""

from __future__ import annotations

from ..rewriter import join
from .arrays import ARRAYS
from .bits import BITS
from .colours import COLOURS
from .composites import COMPOSITES
from .control import CONTROL
from .convolution import CONVOLUTION
from .direct import DIRECT
from .images import IMAGES
from .indexing import INDEXING
from .losses import LOSSES
from .matmul import MATMUL
from .matrices import MATRICES
from .nn import NN
from .quantizing import QUANTIZING
from .random import RANDOM
from .reductions import REDUCTIONS
from .scattering import SCATTERING
from .segments import SEGMENTS
from .sequences import SEQUENCES
from .spectral import SPECTRAL
from .strings import STRINGS
from .training import TRAINING
from .volumes import VOLUMES

RULES = join(
    DIRECT,
    ARRAYS,
    INDEXING,
    REDUCTIONS,
    MATMUL,
    CONVOLUTION,
    NN,
    CONTROL,
    STRINGS,
    BITS,
    COLOURS,
    IMAGES,
    LOSSES,
    MATRICES,
    QUANTIZING,
    RANDOM,
    SCATTERING,
    SEGMENTS,
    SEQUENCES,
    SPECTRAL,
    TRAINING,
    VOLUMES,
    COMPOSITES,
)

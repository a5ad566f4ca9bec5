"""Legalisation rules: tables from catalogue operators to lite operators.

Lives here: `RULES`, the tables joined; rules of one operator are tried in the order of the tables.
Not here: the pass that applies them, merging within the dialect (../passes.py).
"""

from __future__ import annotations

from ..rewriter import join
from ..subgraphs import CONTROL
from .arrays import ARRAYS, RANDOM, STRINGS
from .axes import REDUCTIONS, SEGMENTS, SEQUENCES
from .bits import BITS
from .composites import COMPOSITES, QUANTIZING
from .convolution import CONVOLUTION, VOLUMES
from .direct import DIRECT
from .gather_scatter import INDEXING, SCATTERING
from .hash_tables import TABLES
from .images import COLOURS, IMAGES
from .linear_algebra import MATRICES, SPECTRAL
from .matmul import MATMUL
from .nn import LOSSES, NN
from .window_gradients import TRAINING

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
    TABLES,
    TRAINING,
    VOLUMES,
    COMPOSITES,
)

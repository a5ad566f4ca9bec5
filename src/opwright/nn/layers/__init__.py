"""All layers, under Keras's names.

Lives here: re-exports, and the list of layers that configurations name.
Not here: the base class (../layer.py), InputLayer and `Input` (../functional.py).
"""

from __future__ import annotations

import inspect as _inspect

from .activation import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from .attention import GroupedQueryAttention, GroupQueryAttention, MultiHeadAttention
from .batch_normalization import BatchNormalization
from .cells import GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells
from .convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    Convolution1D,
    Convolution1DTranspose,
    Convolution2D,
    Convolution2DTranspose,
    Convolution3D,
    Convolution3DTranspose,
)
from .core import Dense, EinsumDense, Embedding, Identity, Lambda, Masking
from .depthwise import (
    DepthwiseConv1D,
    DepthwiseConv2D,
    SeparableConv1D,
    SeparableConv2D,
    SeparableConvolution1D,
    SeparableConvolution2D,
)
from .merging import (
    Add,
    Average,
    Concatenate,
    Dot,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
    add,
    average,
    concatenate,
    dot,
    maximum,
    minimum,
    multiply,
    subtract,
)
from .normalization import (
    GroupNormalization,
    LayerNormalization,
    RMSNormalization,
    SpectralNormalization,
    UnitNormalization,
)
from .pooling import (
    AdaptiveAveragePooling1D,
    AdaptiveAveragePooling2D,
    AdaptiveAveragePooling3D,
    AdaptiveMaxPooling1D,
    AdaptiveMaxPooling2D,
    AdaptiveMaxPooling3D,
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    GlobalMaxPooling3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)
from .preprocessing import CategoryEncoding, Normalization, Rescaling
from .recurrent import GRU, LSTM, RNN, SimpleRNN
from .recurrent_wrappers import Bidirectional, TimeDistributed
from .regularization import (
    ActivityRegularization,
    AlphaDropout,
    Dropout,
    GaussianDropout,
    GaussianNoise,
    SpatialDropout1D,
    SpatialDropout2D,
    SpatialDropout3D,
)
from .reshaping import (
    Cropping1D,
    Cropping2D,
    Cropping3D,
    Flatten,
    Permute,
    RepeatVector,
    Reshape,
    ZeroPadding1D,
    ZeroPadding2D,
    ZeroPadding3D,
)
from .scored import AdditiveAttention, Attention
from .upsampling import Resizing, UpSampling1D, UpSampling2D, UpSampling3D
from .wrapper import LAYERS, Wrapper, deserialize, serialize

__all__ = sorted(name for name, value in globals().items() if not name.startswith("_") and name not in ("annotations", "LAYERS")
                 and not _inspect.ismodule(value))  # fmt: skip

LAYERS.add(value for name, value in list(globals().items()) if name in __all__ and _inspect.isclass(value))

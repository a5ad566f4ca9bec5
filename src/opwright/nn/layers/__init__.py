"""All layers, under Keras's names.

Lives here: re-exports.
Not here: the base class (../layer.py), inputs (../input_layer.py).
"""

from __future__ import annotations

from ..input_layer import Input, InputLayer
from ..input_spec import InputSpec
from ..layer import Layer
from .activation import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax
from .attention import GroupedQueryAttention, GroupQueryAttention, MultiHeadAttention
from .batch_normalization import BatchNormalization
from .cells import GRUCell, LSTMCell, SimpleRNNCell
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
from .recurrent_wrappers import Bidirectional, TimeDistributed, Wrapper, deserialize, serialize
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
from .stacked_cells import StackedRNNCells
from .upsampling import Resizing, UpSampling1D, UpSampling2D, UpSampling3D

__all__ = [
    "ELU", "GRU", "LSTM", "RNN", "Activation", "ActivityRegularization", "AdaptiveAveragePooling1D",
    "AdaptiveAveragePooling2D", "AdaptiveAveragePooling3D", "AdaptiveMaxPooling1D", "AdaptiveMaxPooling2D",
    "AdaptiveMaxPooling3D", "Add", "AdditiveAttention", "AlphaDropout", "Attention", "Average", "AveragePooling1D",
    "AveragePooling2D", "AveragePooling3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "BatchNormalization",
    "Bidirectional", "CategoryEncoding", "Concatenate", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose",
    "Conv3D", "Conv3DTranspose", "Convolution1D", "Convolution1DTranspose", "Convolution2D", "Convolution2DTranspose",
    "Convolution3D", "Convolution3DTranspose", "Cropping1D", "Cropping2D", "Cropping3D", "Dense", "DepthwiseConv1D",
    "DepthwiseConv2D", "Dot", "Dropout", "EinsumDense", "Embedding", "Flatten", "GRUCell", "GaussianDropout",
    "GaussianNoise", "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D", "GlobalAvgPool1D",
    "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D", "GlobalMaxPool3D",
    "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "GroupNormalization", "GroupQueryAttention",
    "GroupedQueryAttention", "Identity", "Input", "InputLayer", "InputSpec", "LSTMCell", "Lambda", "Layer",
    "LayerNormalization", "LeakyReLU", "Masking", "MaxPool1D", "MaxPool2D", "MaxPool3D", "MaxPooling1D",
    "MaxPooling2D", "MaxPooling3D", "Maximum", "Minimum", "MultiHeadAttention", "Multiply", "Normalization", "PReLU",
    "Permute", "RMSNormalization", "ReLU", "RepeatVector", "Rescaling", "Reshape", "Resizing", "SeparableConv1D",
    "SeparableConv2D", "SeparableConvolution1D", "SeparableConvolution2D", "SimpleRNN", "SimpleRNNCell", "Softmax",
    "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "SpectralNormalization", "StackedRNNCells",
    "Subtract", "TimeDistributed", "UnitNormalization", "UpSampling1D", "UpSampling2D", "UpSampling3D", "Wrapper",
    "ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D", "add", "average", "concatenate", "deserialize", "dot",
    "maximum", "minimum", "multiply", "serialize", "subtract",
]

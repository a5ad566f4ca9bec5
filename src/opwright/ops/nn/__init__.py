"""Neural-network operators: convolutions, pools, activations, normalisations, losses, dropout.

Lives here: the names of `ow.nn` that are functions.  Not here: layers with weights (the `nn` package above).
"""

from ..array import depth_to_space, space_to_batch, space_to_depth
from ..math import in_top_k, l2_normalize, sigmoid, softplus, softsign, tanh, top_k, zero_fraction
from .activation import crelu, elu, gelu, leaky_relu, relu, relu6, selu, silu, swish
from .bias import bias_add
from .convolution import (
    atrous_conv2d,
    atrous_conv2d_transpose,
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    conv_transpose,
    convolution,
)
from .depthwise import (
    depthwise_conv2d,
    depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input,
    separable_conv2d,
)
from .dropout import dropout, stateless_dropout
from .embedding import embedding_lookup
from .losses import (
    compute_average_loss,
    l2_loss,
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from .moments import (
    batch_norm_with_global_normalization,
    batch_normalization,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
)
from .normalization import fused_batch_norm, layer_normalization, local_response_normalization, lrn
from .pooling import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_pool_with_argmax,
    pool,
)
from .softmax import log_softmax, softmax, softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits

__all__ = [
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "dropout",
    "elu",
    "embedding_lookup",
    "fused_batch_norm",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "layer_normalization",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
    "moments",
    "normalize_moments",
    "pool",
    "relu",
    "relu6",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "stateless_dropout",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "zero_fraction",
]

"""Neural-network operators: convolutions, pools, activations, normalisations, losses, dropout.

Lives here: the names of `ow.nn` that are functions.  Not here: layers with weights (the `nn` package above).
"""

from ..array import depth_to_space, space_to_batch, space_to_depth
from ..array.indexing import embedding_lookup
from ..math import (
    approx_max_k,
    approx_min_k,
    in_top_k,
    l2_normalize,
    sigmoid,
    softplus,
    softsign,
    tanh,
    top_k,
    zero_fraction,
)
from ..random.candidates import all_candidate_sampler, fixed_unigram_candidate_sampler
from ..sparse.functions import embedding_lookup_sparse, safe_embedding_lookup_sparse
from . import experimental, gru, lstm  # noqa: F401  operators without a public function
from .activation import (
    bias_add,
    crelu,
    dropout,
    elu,
    gelu,
    leaky_relu,
    relu,
    relu6,
    selu,
    silu,
    stateless_dropout,
    swish,
)
from .convolution import atrous_conv2d, conv1d, conv2d, conv3d, convolution
from .ctc import collapse_repeated, ctc_greedy_decoder, ctc_loss, ctc_unique_labels
from .ctc_beam_search import ctc_beam_search_decoder
from .depthwise import (
    depthwise_conv2d,
    depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input,
    separable_conv2d,
)
from .fractional import fractional_avg_pool, fractional_max_pool
from .isotonic import isotonic_regression
from .morphology import dilation2d, erosion2d
from .normalization import (
    batch_norm_with_global_normalization,
    batch_normalization,
    fused_batch_norm,
    layer_normalization,
    local_response_normalization,
    lrn,
)
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
from .raw_convolution import with_space_to_batch
from .sampled import compute_accidental_hits, nce_loss, sampled_softmax_loss
from .softmax import (
    compute_average_loss,
    l2_loss,
    log_poisson_loss,
    log_softmax,
    scale_regularization_loss,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from .tensor_moments import moments, normalize_moments, sufficient_statistics, weighted_moments
from .transposed_convolution import (
    atrous_conv2d_transpose,
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
    conv_transpose,
)

__all__ = [
    "all_candidate_sampler",
    "approx_max_k",
    "approx_min_k",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "collapse_repeated",
    "compute_accidental_hits",
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
    "ctc_beam_search_decoder",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_unique_labels",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "dilation2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "fractional_avg_pool",
    "fractional_max_pool",
    "fused_batch_norm",
    "gelu",
    "in_top_k",
    "isotonic_regression",
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
    "nce_loss",
    "normalize_moments",
    "pool",
    "relu",
    "relu6",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
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
    "with_space_to_batch",
    "zero_fraction",
]

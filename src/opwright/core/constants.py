"""Constants of activation functions, with their sources.

Lives here: the numbers that definitions, kernels and converter rules share.  Not here: the functions themselves.
"""

from typing import Any

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
"""Klambauer et al., Self-normalizing neural networks, 2017, appendix A.1, rounded to the nearest float64."""

CLAMPS: dict[str, tuple[int, Any]] = {
    "RELU": (0, None),
    "RELU_N1_TO_1": (-1, 1),
    "RELU6": (0, 6),
    "RELU_0_TO_1": (0, 1),
}
"""Activations that clamp, by their name in files: the bounds; None for no upper bound."""

FUSED_CLAMPS = ("RELU", "RELU_N1_TO_1", "RELU6")
"""Clamps that an operator of a file can apply to its own result."""

GELU_CUBIC, GELU_SLOPE = 0.044715, 0.7978845608028654
"""Constants of x (1 + tanh(slope (x + cubic x^3))) / 2, slope = sqrt(2 / pi): Hendrycks and Gimpel, Gaussian error
linear units (GELUs), 2016, section 2."""

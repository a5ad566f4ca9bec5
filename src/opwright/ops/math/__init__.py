"""Mathematics: arithmetic, analysis, comparison, rounding, reductions, sorting and segments.

Lives here: the family's public names.  Not here: shapes and selection (array/), matrices (linalg/), networks (nn/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.importing import lazily

if TYPE_CHECKING:
    from ..nn.softmax import log_softmax, softmax
    from . import integrals as integrals  # operators whose functions are in ow.math.special
    from . import special as special
    from .arithmetic import (
        accumulate_n,
        add,
        add_n,
        divide,
        floordiv,
        floormod,
        maximum,
        minimum,
        multiply,
        negative,
        pow,
        realdiv,
        scalar_mul,
        squared_difference,
        subtract,
        truediv,
    )
    from .arithmetic import (
        floormod as mod,
    )
    from .bessel import bessel_i0, bessel_i0e, bessel_i1, bessel_i1e
    from .clipping import clip_by_average_norm, clip_by_global_norm, clip_by_norm, clip_by_value, global_norm
    from .comparison import (
        approximate_equal,
        equal,
        greater,
        greater_equal,
        less,
        less_equal,
        logical_and,
        logical_not,
        logical_or,
        logical_xor,
        not_equal,
    )
    from .complexes import abs, angle, complex, conj, imag, real, sign
    from .counting import bincount, confusion_matrix, count_nonzero, histogram_fixed_width, zero_fraction
    from .cumulative import cumprod, cumsum, cumulative_logsumexp
    from .elementary import exp, expm1, log, log1p, polyval, reciprocal, rsqrt, sqrt, square
    from .guarded import divide_no_nan, multiply_no_nan, reciprocal_no_nan, xdivy, xlog1py, xlogy
    from .incomplete import betainc, igamma, igammac
    from .logistic import log_sigmoid, sigmoid, softplus, softsign
    from .moments import l2_normalize, reduce_logsumexp, reduce_std, reduce_variance
    from .reduction import (
        reduce_all,
        reduce_any,
        reduce_euclidean_norm,
        reduce_max,
        reduce_mean,
        reduce_min,
        reduce_prod,
        reduce_sum,
    )
    from .rounding import ceil, floor, is_finite, is_inf, is_nan, nextafter, rint, round, truncatediv, truncatemod
    from .segment import segment_max, segment_mean, segment_min, segment_prod, segment_sum
    from .sorting import (
        argmax,
        argmin,
        argsort,
        in_top_k,
        invert_permutation,
        is_non_decreasing,
        is_strictly_increasing,
        sort,
        top_k,
    )
    from .special import digamma, erf, erfc, erfcinv, erfinv, lbeta, lgamma, ndtri, polygamma, zeta
    from .trigonometry import acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, sin, sinh, tan, tanh
    from .unsorted_segment import (
        unsorted_segment_max,
        unsorted_segment_mean,
        unsorted_segment_min,
        unsorted_segment_prod,
        unsorted_segment_sqrt_n,
        unsorted_segment_sum,
    )

_HOMES = {
    ".": "integrals, special",
    "..nn.softmax": "log_softmax, softmax",
    ".arithmetic": (
        "accumulate_n, add, add_n, divide, floordiv, floormod, floormod as mod, maximum, minimum, multiply, negative, "
        "pow, realdiv, scalar_mul, squared_difference, subtract, truediv"
    ),
    ".bessel": "bessel_i0, bessel_i0e, bessel_i1, bessel_i1e",
    ".clipping": "clip_by_average_norm, clip_by_global_norm, clip_by_norm, clip_by_value, global_norm",
    ".comparison": (
        "approximate_equal, equal, greater, greater_equal, less, less_equal, logical_and, logical_not, logical_or, "
        "logical_xor, not_equal"
    ),
    ".complexes": "abs, angle, complex, conj, imag, real, sign",
    ".counting": "bincount, confusion_matrix, count_nonzero, histogram_fixed_width, zero_fraction",
    ".cumulative": "cumprod, cumsum, cumulative_logsumexp",
    ".elementary": "exp, expm1, log, log1p, polyval, reciprocal, rsqrt, sqrt, square",
    ".guarded": "divide_no_nan, multiply_no_nan, reciprocal_no_nan, xdivy, xlog1py, xlogy",
    ".incomplete": "betainc, igamma, igammac",
    ".logistic": "log_sigmoid, sigmoid, softplus, softsign",
    ".moments": "l2_normalize, reduce_logsumexp, reduce_std, reduce_variance",
    ".reduction": (
        "reduce_all, reduce_any, reduce_euclidean_norm, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum"
    ),
    ".rounding": "ceil, floor, is_finite, is_inf, is_nan, nextafter, rint, round, truncatediv, truncatemod",
    ".segment": "segment_max, segment_mean, segment_min, segment_prod, segment_sum",
    ".sorting": (
        "argmax, argmin, argsort, in_top_k, invert_permutation, is_non_decreasing, is_strictly_increasing, sort, top_k"
    ),
    ".special": "digamma, erf, erfc, erfcinv, erfinv, lbeta, lgamma, ndtri, polygamma, zeta",
    ".trigonometry": "acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, sin, sinh, tan, tanh",
    ".unsorted_segment": (
        "unsorted_segment_max, unsorted_segment_mean, unsorted_segment_min, unsorted_segment_prod, "
        "unsorted_segment_sqrt_n, unsorted_segment_sum"
    ),
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "approximate_equal", "asin", "asinh", "atan",
    "atan2", "atanh", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc", "ceil", "clip_by_average_norm",
    "clip_by_global_norm", "clip_by_norm", "clip_by_value", "complex", "conj", "cos", "cosh", "digamma", "divide",
    "divide_no_nan", "equal", "erf", "erfc", "erfcinv", "erfinv", "exp", "expm1", "floor", "floordiv", "floormod",
    "global_norm", "greater", "greater_equal", "igamma", "igammac", "imag", "is_finite", "is_inf", "is_nan", "lbeta",
    "less", "less_equal", "lgamma", "log", "log1p", "log_sigmoid", "log_softmax", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "multiply_no_nan", "ndtri", "negative",
    "nextafter", "not_equal", "polygamma", "polyval", "pow", "real", "realdiv", "reciprocal", "reciprocal_no_nan",
    "rint", "round", "rsqrt", "scalar_mul", "sigmoid", "sign", "sin", "sinh", "softmax", "softplus", "softsign",
    "sqrt", "square", "squared_difference", "subtract", "tan", "tanh", "truediv", "truncatediv", "truncatemod",
    "xdivy", "xlog1py", "xlogy", "zeta",
]  # fmt: skip
__all__ += [  # reductions, sorting and segments
    "argmax", "argmin", "argsort", "bincount", "confusion_matrix", "count_nonzero", "cumprod", "cumsum",
    "cumulative_logsumexp", "histogram_fixed_width", "in_top_k", "invert_permutation", "is_non_decreasing",
    "is_strictly_increasing", "l2_normalize", "reduce_all", "reduce_any", "reduce_euclidean_norm", "reduce_logsumexp",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum", "reduce_variance",
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum", "sort", "top_k",
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sqrt_n", "unsorted_segment_sum", "zero_fraction",
]  # fmt: skip

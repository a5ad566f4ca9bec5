"""Mathematical functions of float32 over an array namespace `m`, as straight-line code for one element or a vector.

    exponential.py    exp, log, their neighbors, pow, sigmoid, softplus, rsqrt; sinh, cosh, tanh and their inverses;
                      erf, erfc, gelu
    trigonometric.py  sin, cos, tan and their inverses
    division.py       remainders and integral quotients, of float64 too
    single.py         in float32 alone, faster and less accurate: activations, exp, sin and cos of compiled graphs; exp,
                      log, tanh, sigmoid, for kernels under the switch `fast_math`
    double.py         of float64: exp, expm1, log, log1p, tanh, erf, erfc
    polynomials.py    the coefficients, written by tests/compiler/make_polynomials.py

The functions of the first three modules compute in float64 and are within 0.53 units in the last place over the whole
range. They have one branch: sin, cos and tan reduce large lanes one by one.

../table.py names these modules by row and imports them when code is first generated.

Beyond the names of the array namespace they use `where_any`, `each_lane`, `table_element`, `float_remainder`,
`has_exponents`, `fraction`, `round_exponent` and `scale` (compiler/language/functions.py).
"""

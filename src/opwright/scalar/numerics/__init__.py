"""Mathematical functions of float32 over an array namespace `m`, as straight-line code for one element or a vector.

    exponential.py      exp, log, their neighbours, pow, sigmoid, softplus, rsqrt; sinh, cosh, tanh and their inverses
    trigonometric.py    sin, cos, tan and their inverses
    error_functions.py  erf, erfc, gelu
    division.py         remainders and whole quotients, of float64 too
    single.py           activations in float32 alone, for the ends of products: quicker, and further off
    approximate.py      exp, log, tanh, sigmoid in float32 alone, for kernels under the switch `fast_math`
    polynomials.py      the coefficients, made by tests/compiler/make_polynomials.py

The functions of the first four modules compute in float64 and are within 0.53 units in the last place over the whole
range. They have one branch: sin, cos and tan reduce large lanes one by one.

Lives here: nothing but these modules, which ../table.py names by row and loads when code is first made.

Beyond the names of the array namespace they use `where_any`, `each_lane`, `table_element`, `float_remainder`,
`has_exponents`, `fraction`, `round_exponent` and `scale` (compiler/language/functions.py).
"""

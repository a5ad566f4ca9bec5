"""Snippets of the table: Expressions, calls, classes and functions inside."""

# ruff: noqa  people write like this
from .table import case


@case(3, -3)
def conditional_expression(x):
    return x if x > 0 else -x


@case(3, -3, 0, ours=True)
def conditional_expression_nested(x):
    return 1 if x > 0 else -1 if x < 0 else 0


@case((3, 4), (-3, 4), (3, -4))
def logic_and(a, b):
    return 1 if a > 0 and b > 0 else 0


@case((3, 4), (-3, 4), (-3, -4))
def logic_or(a, b):
    return 1 if a > 0 or b > 0 else 0


@case(3, -3)
def logic_not(a):
    return 1 if not a > 0 else 0


@case((1, 2, 3), (3, 2, 1), (1, 0, 1))
def logic_three(a, b, c):
    return 1 if a > 0 and b > 0 and c > 1 else 0


@case((1, 2, 3), (3, 2, 1), (1, 3, 2))
def chained(a, b, c):
    if a < b < c:
        return 1
    return 0


@case((1, 5), (5, 1))
def chained_constants(a, b):
    return 1 if 0 < a <= 3 < b else 0


@case(([1, 2, 3], 5), ([1, 2, 3], 1), ours=True)
def short_circuit(xs, i):
    n = 3
    if i < n and xs[i] > 1:
        return 1
    return 0


@case((2, 5), (7, 5), ours=True)
def membership_in_list(x, y):
    if x in [1, 2, y]:
        return 1
    return 0


@case(([1, 2, 3], 2), ([1, 2, 3], 5), ours=True)
def membership_in_tensor(xs, x):
    return 1 if x in xs else 0


@case(([1, 2, 3], 2), ([1, 2, 3], 5), ours=True)
def no_membership(xs, x):
    if x not in xs:
        return 1
    return 0


@case(5, -5)
def lambda_with_condition(x):
    f = lambda v: v if v > 0 else -v  # noqa: E731
    return f(x) + f(-x)


@case((3, -4))
def lambda_default(x, y):
    f = lambda v, w=y: v if v > w else w  # noqa: E731
    return f(x)


@case(4, -4)
def nested_function(x):
    def g(v):
        if v > 0:
            return v * 2
        return v

    return g(x) + g(-x)


@case(4, -4)
def closure(x):
    y = x + 1

    def g(v):
        if v > y:
            return v
        return y

    return g(0)


@case(4, ours=True)
def nonlocal_counter(n):
    total = 0

    def add(i):
        nonlocal total
        if i > 1:
            total = total + i

    for i in [0, 1, 2, 3]:
        add(i + n)
    return total


@case(5, ours=True)
def nonlocal_in_staged_loop(n):
    total = 0

    def add(i):
        nonlocal total
        total += i

    for i in range(n):
        add(i)
    return total


def twice(function):
    def wrapped(v):
        return function(function(v))

    return wrapped


@case(4, -4)
def decorated(x):
    @twice
    def g(v):
        if v > 0:
            return v + 1
        return v - 1

    return g(x)


@twice
def decorated_global(v):
    if v > 0:
        return v * 3
    return v - 1


@case(4, -4)
def decorated_global_call(x):
    return decorated_global(x)


def helper(v):
    while v > 10:
        v -= 3
    return v


@case(40, 4)
def calls_are_converted(x):
    return helper(x) + helper(x + 1)


@case(4)
def keyword_and_star_calls(x):
    def g(a, *rest, b=1, **more):
        return a + sum(rest) + b if b > 0 else more["c"]

    return g(x, 1, 2, b=x, c=3)


def power(v, k):
    if k == 0:
        return v * 0 + 1
    return v * power(v, k - 1)


@case(3)
def python_recursion(x):
    return power(x, 3)


@case([1, -2, 3])
def comprehension(xs):
    ys = [v if v > 0 else -v for v in [xs[0], xs[1], xs[2]]]
    return ys[0] + ys[1] * ys[2]


@case([1, -2, 3], ours=True)
def comprehension_over_tensor(xs):
    ys = [v * 2 for v in xs]
    return ys[0] + ys[1] + ys[2]


@case([1, 2, 3])
def comprehension_filtered(xs):
    return sum([v * k for k, v in enumerate([xs[0], xs[1], xs[2]]) if k != 1])


@case(3)
def dict_and_set_comprehensions(x):
    d = {k: k * x for k in range(3)}
    return d[2] + len({k for k in (1, 1, 2)})


@case(3)
def generator_expression(x):
    return sum(k * x for k in range(4))


@case((3, 5), (5, 3), ours=True)
def min_max_abs(a, b):
    return min(a, b), max(a, b, 4), abs(a - b)


@case([3, 1, 2])
def builtin_len(xs):
    return len(xs)


@case([3, 1, 2])
def builtin_sorted(xs):
    ys = sorted(xs)
    return ys[0], ys[2]


@case([3, 1, 2], ours=True)
def builtin_sum_min_max(xs):
    return sum(xs), min(xs), max(xs)


@case((3, -1), (3, 1), ours=True)
def any_all_of_list(a, b):
    x = any([a > 5, b > 0])
    y = all([a > 0, b > 0])
    return (1 if x else 0) + (2 if y else 0)


@case(2.7, -2.7)
def int_of_float(x):
    return int(x)


@case(3)
def float_of_int(x):
    return float(x) / 2.0


@case(3, -3, ours=True)
def truth_of_number(x):
    y = 0
    if x + 3:
        y = 1
    return y


@case([1, 2, 3], ours=True)
def builtin_map(xs):
    s = 0
    for v in map(lambda v: v * v, xs):
        s += v
    return s


@case(4)
def unpacking_and_star(x):
    a, *b = x, x + 1, x + 2
    if x > 0:
        a, (c, d) = 1, b
    else:
        c, d = b
    return a + c * d


@case(4, -4)
def try_finally(x):
    log = 0
    try:
        if x > 0:
            log = x
    finally:
        log = log + 1
    return log


@case(4, -4, ours=True)
def try_return(x):
    try:
        if x > 0:
            return x
    except ValueError:
        return 0
    return -1


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


@case(4, -4, ours=True)
def with_return(x):
    with Context():
        if x > 0:
            return x
    return -1


@case(4, -4)
def with_return_at_top(x):
    with Context():
        y = x if x > 2 else 2
        return y


@case(4, -4, ours=True)
def match_statement(x):
    kind = "square"
    match kind:
        case "square":
            if x > 0:
                y = x * x
            else:
                y = x
        case _:
            y = 0
    return y


@case(4, ours=True)
def asserts(x):
    assert x > 0, "positive"
    assert x > 1
    return x


@case(4, 3)
def deleting(x):
    t = x + 1
    y = t
    del t
    if x > 3:
        t = 5
        y = t
    return y


@case(5)
def multiline_condition(x):
    if x > 0 and x < 10:
        y = x + 1
    else:
        y = 0
    return y


@case(5)
def local_import(x):
    import math

    if x > 0:
        y = x * int(math.floor(2.5))
    else:
        y = x
    return y


@case(3)
def same_line(x):
    if x > 0:
        y = 1
        z = 2  # noqa: E701, E702
    else:
        y = z = 0  # noqa: E701
    return y + z

"""Programs whose control flow depends on their arguments: each means the same for numbers, eager tensors and graphs.

`@case(args, ...)`: the calls. Lists become vectors of int32, numbers int32 scalars, floats float32. ours: TensorFlow
cannot stage it.
"""

# ruff: noqa  people write like this
CASES = []


def case(*calls, ours=False):
    def keep(function):
        CASES.append((function, [c if isinstance(c, tuple) else (c,) for c in calls], ours))
        return function

    return keep


# ---- if


@case(3, -3, 0)
def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


@case(3, -3)
def if_alone(x):
    y = x
    if x > 0:
        y = x * 2
    return y


@case(3, -3, 0)
def if_elif(x):
    if x > 0:
        y = 1
    elif x < 0:
        y = -1
    else:
        y = 0
    return y


@case((1, 2), (2, 1), (0, 0))
def if_nested(a, b):
    r = 0
    if a > b:
        if a > 1:
            r = a
        else:
            r = b
    elif a < b:
        r = a + b
    return r


@case(5, -5)
def if_several_variables(x):
    a, b = x, x + 1
    if x > 0:
        a, b = b, a
    return a, b


@case(5, -5)
def if_temporaries_are_no_state(x):
    y = 0
    if x > 0:
        t = x + 1
        y = t * 2
    return y


@case(5, -5)
def if_values_born_in_both(x):
    if x > 0:
        p = 1
        q = x
    else:
        q = -x
        p = 2
    return p + q


@case(5, -5)
def if_returns_in_both(x):
    if x > 0:
        return x
    else:
        return -x


@case(5, -5)
def if_early_return(x):
    if x > 0:
        return x
    y = x * x
    return y


@case(5, -5, 0, 50)
def if_many_returns(x):
    if x > 10:
        return 10
    if x > 0:
        return x
    if x == 0:
        return 100
    return -x


@case((1, 1), (1, -1), (-1, 1), (-1, -1), ours=True)
def if_partial_return(a, b):
    r = 0
    if a > 0:
        if b > 0:
            return 7
        r = 1
    r = r + a
    return r


@case(4, -4)
def if_with_augmented(x):
    y = 10
    if x > 0:
        y += x
        y *= 2
    else:
        y -= x
    return y


@case(4, -4)
def if_pass(x):
    y = 1
    if x > 0:
        pass
    else:
        y = 2
    return y


@case(4, -4)
def if_dict_values(x):
    d = {"a": 1, "b": x}
    if x > 0:
        d = {"a": x, "b": 2}
    return d["a"] + d["b"]


@case(4, -4)
def if_dict_item(x):
    d = {"a": 1}
    if x > 0:
        d["a"] = x
    return d["a"]


class Box:
    def __init__(self, value):
        self.value = value
        self.log = 0

    def add(self, x):
        if x > 0:
            self.value = self.value + x
        return self.value

    def total(self, n):
        for i in range(n):
            self.log += i
        return self.log


@case(4, -4)
def if_attribute(x):
    b = Box(1)
    if x > 0:
        b.value = x
    return b.value


@case(4, -4)
def method_calls(x):
    b = Box(10)
    b.add(x)
    return b.add(x + 1)


@case(0, 4)
def method_with_loop(n):
    return Box(1).total(n)


class Parent:
    def shifted(self, x):
        if x > 0:
            return x + 1
        return x


class Child(Parent):
    def shifted(self, x):
        if x > 2:
            y = super().shifted(x)
        else:
            y = super(Child, self).shifted(-x)
        return y + 1


@case(4, -4, 1)
def super_calls(x):
    return Child().shifted(x)


class Private:
    def __init__(self):
        self.__hidden = 3

    def get(self, x):
        if x > 0:
            self.__hidden = x
        return self.__hidden


@case(4, -4, ours=True)
def private_names(x):
    return Private().get(x)


class Callable_:
    def __call__(self, x):
        if x > 0:
            return x + 1
        return x - 1


@case(4, -4)
def callable_objects(x):
    return Callable_()(x)


@case(4, -4)
def python_condition_stays_python(x):
    flag = True
    if flag:
        y = x
    return y


@case(4, -4)
def none_checks_are_python(x):
    y = None
    if y is None:
        y = x
    return y


# ---- while


@case(10, 0, 1)
def while_simple(n):
    s = 0
    while n > 0:
        s += n
        n -= 1
    return s


@case(27, 1, 7)
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@case((48, 18), (7, 13), (5, 0))
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@case(10, 0)
def while_break(n):
    s = 0
    while n > 0:
        if s > 20:
            break
        s += n
        n -= 1
    return s, n


@case(10, 0)
def while_continue(n):
    s = 0
    while n > 0:
        n -= 1
        if n % 3 == 0:
            continue
        s += n
    return s


@case(10, 3, 0)
def while_break_and_continue(n):
    s = 0
    i = 0
    while i < n:
        i += 1
        if i == 2:
            continue
        if i > 6:
            break
        s += i
    return s, i


@case(3, 30, ours=True)
def while_true_break(n):
    i = 0
    while True:
        i += n
        if i > 20:
            break
    return i


@case(3, 30, ours=True)
def while_true_return(n):
    i = 0
    while True:
        i += n
        if i > 20:
            return i


@case((10, 7), (10, 70), ours=True)
def while_return(n, t):
    i = 0
    while i < n:
        if i * 3 > t:
            return i
        i += 1
    return -1


@case(5, 0)
def while_nested(n):
    s = 0
    while n > 0:
        m = n
        while m > 0:
            s += m
            m -= 1
        n -= 1
    return s


@case(9, 0)
def while_nested_breaks(n):
    s = 0
    while n > 0:
        m = n
        while m > 0:
            m -= 1
            if m == 3:
                break
            s += 1
        if s > 12:
            break
        n -= 1
    return s, n


@case(5, 30, ours=True)
def while_else(n):
    i = 0
    while i < n:
        if i == 10:
            break
        i += 1
    else:
        i = 100
    return i


@case(6, ours=True)
def while_walrus(n):
    s = 0
    while (n := n - 1) > 0:
        s += n
    return s, n


@case((3, 9), (9, 3))
def while_and(a, b):
    c = 0
    while a < 20 and b < 20:
        a += 1
        b += 2
        c += 1
    return c


@case((3, 9))
def while_or_not(a, b):
    c = 0
    while a < 10 or not b > 12:
        a += 1
        b += 1
        c += 1
    return c


# ---- for


@case(5, 0, 1)
def for_range(n):
    s = 0
    for i in range(n):
        s += i
    return s


@case((2, 7), (7, 2))
def for_range_two(a, b):
    s = 0
    for i in range(a, b):
        s += i * i
    return s


@case((2, 20, 3), (20, 2, -4), (5, 5, 1), (0, 10, 10))
def for_range_three(a, b, c):
    s = 0
    for i in range(a, b, c):
        s += i
    return s


@case([1, 2, 3], [5])
def for_elements(xs):
    s = 0
    for x in xs:
        s += x
    return s


@case([1, 2, 3, 4, 5])
def for_continue(xs):
    s = 0
    for x in xs:
        if x % 2 == 0:
            continue
        s += x
    return s


@case([1, 2, 3, 4, 5], [1, 1])
def for_break(xs):
    s = 0
    for x in xs:
        if x > 3:
            break
        s += x
    return s


@case(([4, 5, 6], 5), ([4, 5, 6], 7), ours=True)
def for_return(xs, t):
    for x in xs:
        if x == t:
            return x * 10
    return -1


@case(([4, 5, 6], 5), ([4, 5, 6], 7), ours=True)
def for_return_index(xs, t):
    for i in range(len(xs)):
        if xs[i] == t:
            return i
    return -1


@case(([4, 5, 6], 5), ([4, 5, 6], 7), ours=True)
def for_else(xs, t):
    found = 0
    for x in xs:
        if x == t:
            found = 1
            break
    else:
        found = 2
    return found


@case(([1, 2, 3], [10, 20]), ([3], [1]))
def for_nested(xs, ys):
    s = 0
    for x in xs:
        for y in ys:
            s += x * y
    return s


@case(([1, 2, 3], [3, 2]), ([3], [5]), ours=True)
def for_nested_break(xs, ys):
    s = 0
    for x in xs:
        for y in ys:
            if x == y:
                break
            s += 1
        else:
            s += 100
    return s


@case(([1, 2, 3], [3, 2]), ([3], [5]), ours=True)
def for_nested_return(xs, ys):
    s = 0
    for x in xs:
        for y in ys:
            if x == y:
                return s
            s += 1
    return -1


@case(([1, 2, 3], [3, 2]), ([3], [5]))
def for_nested_continue(xs, ys):
    s = 0
    for x in xs:
        if x == 2:
            continue
        for y in ys:
            if y == 2:
                continue
            s += x * y
    return s


@case([3, 1, 2])
def for_target_after(xs):
    for x in xs:
        pass
    return x


@case(4)
def for_value_born_inside(n):
    for i in range(n):
        last = i * 2
    return last


@case(4)
def for_modifies_target(n):
    s = 0
    for i in range(n):
        i = i * 10
        s += i
    return s


@case([2, 3, 4], ours=True)
def for_enumerate(xs):
    s = 0
    for i, x in enumerate(xs):
        s += i * x
    return s


@case([2, 3, 4], ours=True)
def for_enumerate_start(xs):
    s = 0
    for i, x in enumerate(xs, 5):
        s += i * x
    return s


@case(([1, 2, 3], [4, 5, 6]), ours=True)
def for_zip(xs, ys):
    s = 0
    for x, y in zip(xs, ys):
        s += x * y
    return s


@case(([1, 2, 3], [4, 5, 6]), ours=True)
def for_zip_enumerate(xs, ys):
    s = 0
    for i, (x, y) in enumerate(zip(xs, ys)):
        if x > 1:
            s += i * x * y
    return s


@case([1, 2, 3])
def for_reversed(xs):
    s = 0
    for x in reversed([xs[0], xs[1]]):
        s = s * 10 + x
    return s


@case(6)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case(30, 2)
def primes(n):
    count = 0
    for i in range(2, n):
        prime = True
        for j in range(2, i):
            if i % j == 0:
                prime = False
                break
        if prime:
            count += 1
    return count


@case(20)
def fizzbuzz(n):
    f = b = fb = 0
    for i in range(1, n + 1):
        if i % 15 == 0:
            fb += 1
        elif i % 3 == 0:
            f += 1
        elif i % 5 == 0:
            b += 1
    return f, b, fb


@case(3)
def for_python_list(x):
    s = 0
    for k in [1, 2, 3]:
        s += k * x
    return s


@case(2, 9, ours=True)
def for_python_list_staged_break(x):
    s = 0
    for k in [1, 2, 3, 4]:
        if k > x:
            break
        s += k
    return s


@case(2, 9, ours=True)
def for_python_list_staged_return(x):
    for k in [1, 2, 3, 4]:
        if k > x:
            return k * 100
    return -1


@case(2, 9)
def for_python_list_staged_continue(x):
    s = 0
    for k in [1, 2, 3, 4]:
        if k == x:
            continue
        s += k
    return s


@case((3, 2), (0, 5))
def for_in_if(n, m):
    s = 0
    if n > m:
        for i in range(n):
            s += i
    else:
        for i in range(m):
            s -= i
    return s


@case(5)
def if_in_for_in_if(n):
    s = 0
    if n > 2:
        for i in range(n):
            if i % 2 == 0:
                s += i
            else:
                s -= 1
    return s


@case(4)
def tuple_state(n):
    t = (0, 1)
    for i in range(n):
        t = (t[1], t[0] + i)
    return t


@case(4)
def dict_state(n):
    d = {"a": 0, "b": 1}
    for i in range(n):
        d = {"a": d["b"], "b": d["a"] + i}
    return d["a"], d["b"]


@case(4)
def dict_item_state(n):
    d = {"a": 0}
    for i in range(n):
        d["a"] += i
    return d["a"]


# ---- expressions


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
    if (
        x > 0
        and x < 10
    ):  # fmt: skip
        y = (
            x
            + 1
        )  # fmt: skip
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
    if x > 0: y = 1; z = 2  # noqa: E701, E702
    else: y = z = 0  # noqa: E701
    return y + z


# ---- lists that grow


@case(4, ours=True)
def append_in_loop(n):
    out = []
    for i in range(n):
        out.append(i * i)
    return out


@case([1, -2, 3], ours=True)
def append_under_condition(xs):
    out = []
    for x in xs:
        if x > 0:
            out.append(x)
    return out


@case((4, 1), ours=True)
def append_to_list_with_items(n, x):
    out = [x]
    for i in range(n):
        out.append(i)
    return out


@case(5, ours=True)
def append_and_read(n):
    fib = [0, 1]
    for i in range(n):
        fib.append(fib[-1] + fib[-2])
    return fib[n], len(fib)


@case(4, ours=True)
def append_then_iterate(n):
    out = []
    for i in range(n):
        out.append(i + 1)
    p = 1
    for v in out:
        p *= v
    return p


@case(4, ours=True)
def append_tuples(n):
    out = []
    for i in range(n):
        out.append((i, i * 2))
    s = 0
    for a, b in out:
        s += a * b
    return s


@case(4, -4, ours=True)
def append_in_if(x):
    out = [1]
    if x > 0:
        out.append(x)
    return out


@case(3, ours=True)
def append_in_nested_loops(n):
    out = []
    for i in range(n):
        for j in range(i):
            out.append(i * 10 + j)
    return out


@case(6, ours=True)
def append_in_while_with_break(n):
    out = []
    while n > 0:
        n -= 1
        if n == 2:
            break
        out.append(n)
    return out


@case(3, ours=True)
def stack_pop(n):
    todo = [n]
    s = 0
    while len(todo) > 0:
        v = todo.pop()
        s += v
        if v > 0:
            todo.append(v - 1)
    return s


@case([3, 5, 2], ours=True)
def filtered_comprehension(xs):
    return [v * 2 for v in xs if v > 2]


@case(5, -5)
def class_inside(x):
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        def of(self, y):
            if y > 0:
                return y * self.factor
            return y

    total = x
    for factor in (2, 3):
        total = total + Scaled(factor).of(x)
    return total


@case((7, 2), (-7, 2), ours=True)
def class_inside_with_super_and_closures(x, k):
    class Base:
        def shrink(self, y):
            while y > k:
                y = y - k
            return y

    class Child(Base):
        def __call__(self, y):
            def again(z):
                return self.shrink(z) if z > 0 else z

            return again(super().shrink(y))

    return Child()(x)


@case((0, 2), (3, 2), (2, 5), ours=True)
def returned_past_a_loop_that_always_continues(n, m):
    a, b = n, m
    if b > 3:
        b = b - 1
    else:
        w = m
        while w > 0:
            w -= 1
            for i in range(n):
                a += i
            else:
                continue
            if a > 1:
                continue
            else:
                return a
    return b

"""Snippets of the table: `for`."""

# ruff: noqa  people write like this
from .table import case


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
    result = 0
    for x in xs:
        if x == t:
            result = 1
            break
    else:
        result = 2
    return result


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


@case([1, 2, 3], [5])
def for_annotated(xs):
    x: int
    s: int = 0
    for x in xs:
        y: int = x * x
        s = s + y
    return s

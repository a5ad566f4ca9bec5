"""Snippets of the table: Lists that grow."""

# ruff: noqa  people write like this
from .table import case


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

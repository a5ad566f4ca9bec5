"""Snippets of the table: `while`."""

# ruff: noqa  people write like this
from .table import case


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

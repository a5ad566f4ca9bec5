"""The converter's table for control flow, lists in loops and recurrent layers.

Not here: single operators (convert_cases.py), the checks (test_convert_control.py, test_convert_recurrent.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from convert_harness import case, f32

import opwright as ow

X, V = f32(4, 3), f32(3)
ONE, MANY = np.int32(1), np.int32(5)
WORDS = np.array([b"one", b""], object)
W = ow.constant(f32(3, 3) * 0.3)
B = ow.constant(f32(3))


def if_else(x: Any) -> Any:
    if ow.reduce_sum(x) > 0.0:
        y = x * 2.0
    else:
        y = x - 1.0
    return y


def nested_if(x: Any, n: Any) -> Any:
    if n > 0:
        if n > 3:
            y, z = x + 1.0, x
        else:
            y, z = x, x * x
    else:
        y, z = x * 0.5, -x
    return y, z


def elif_chain(x: Any, n: Any) -> Any:
    if n == 0:
        y = x
    elif n == 1:
        y = x * 2.0
    elif n == 2:
        y = ow.exp(x)
    else:
        y = ow.zeros_like(x)
    return y


def early_return(x: Any, n: Any) -> Any:
    if n < 2:
        return x
    x = ow.nn.relu(x)
    if n < 4:
        return x + 1.0
    return x * x


def weights_inside(x: Any) -> Any:
    if x[0, 0] > 0.0:
        y = ow.nn.relu(ow.matmul(x, W) + B)
    else:
        y = ow.matmul(x, W) + B
    return y


def branch_of_constants(n: Any) -> Any:
    if n > 2:
        y = ow.constant([1.0, 2.0])
    else:
        y = ow.constant([3.0, 4.0])
    return y


def branch_hands_on(x: Any, y: Any, n: Any) -> Any:
    if n > 2:
        a, b = x, y
    else:
        a, b = y, x
    return a, b


def shapes_differ(x: Any, n: Any) -> Any:
    y = ow.cond(n > 2, lambda: x, lambda: ow.concat([x, x], 0))
    return y * 2.0


def count(n: Any) -> Any:
    i = ow.constant(0)
    while i < n:
        i += 1
    return i


def sum_to(x: Any, n: Any) -> Any:
    i, total = ow.constant(0), ow.zeros_like(x)
    while i < n:
        total, i = total + x * ow.cast(i, ow.float32), i + 1
    return total, i


def dense_steps(x: Any, n: Any) -> Any:
    for _ in ow.range(n):
        x = ow.nn.relu(ow.matmul(x, W) + B)
    return x


def with_break(x: Any) -> Any:
    for i in ow.range(10):
        x = x * 1.5 + ow.cast(i, ow.float32)
        if ow.reduce_max(x) > 20.0:
            break
    return x


def with_continue(x: Any, n: Any) -> Any:
    for i in ow.range(n):
        if i % 2 == 0:
            continue
        x = x + ow.cast(i, ow.float32)
    return x


def return_in_loop(x: Any, n: Any) -> Any:
    for i in ow.range(n):
        x = x + 1.0
        if ow.reduce_sum(x) > 9.0:
            return x, i
    return x * 0.0, n


def loop_in_loop(x: Any, n: Any) -> Any:
    for i in ow.range(n):
        for j in ow.range(i):
            if (i + j) % 2 == 0:
                x = x + ow.cast(j, ow.float32)
            else:
                x = x * 0.5
    return x


def swaps(x: Any, y: Any, n: Any) -> Any:
    for _ in ow.range(n):
        x, y = y, x
    return x, y


def three_in_a_ring(x: Any, n: Any) -> Any:
    a, b, c = x, x + 1.0, x + 2.0
    for _ in ow.range(n):
        a, b, c = b + 1.0, c, a
    return a, b, c


def grows(x: Any, n: Any) -> Any:
    y = x
    i = 0
    while i < n:
        ow.autograph.experimental.set_loop_options(shape_invariants=[(y, ow.TensorShape([None]))])
        y = ow.concat([y, x * ow.cast(i, ow.float32)], 0)
        i += 1
    return y, ow.shape(y)[0]


def halves(x: Any) -> Any:
    while ow.shape(x)[0] > 1:
        ow.autograph.experimental.set_loop_options(shape_invariants=[(x, ow.TensorShape([None, 3]))])
        x = x[: ow.shape(x)[0] // 2] + 1.0
    return x


def unused_input(x: Any, y: Any, n: Any) -> Any:
    def turn(i: Any, a: Any, b: Any) -> Any:
        return i + 1, a * 1.5, b

    return ow.while_loop(lambda i, a, b: i < n, turn, [0, x, y])[1]


def over_rows(x: Any) -> Any:
    total = ow.zeros([3])
    for row in x:
        total = total * 0.5 + row
    return total


def strings_in_branches(n: Any) -> Any:
    return ow.cond(n > 2, lambda: ow.constant([b"many", b"x"]), lambda: ow.constant([b"few", b""]))


def strings_carried(x: Any, y: Any, n: Any) -> Any:
    for i in ow.range(n):
        x, y = ow.gather(y, [1, 0]), x
        if i > 3:
            y = ow.constant([b"five", b"six"])
    return x, y


def switch(x: Any, n: Any) -> Any:
    return ow.switch_case(n, [lambda: x, lambda: x * 2.0, lambda: x - 1.0, lambda: ow.exp(x), lambda: -x])


def switch_of_one(x: Any, n: Any) -> Any:
    return ow.switch_case(n, [lambda: x * 3.0])


BATCH = {0: (0,)}
CONTROL = [
    case("if", if_else, V),
    case("if_no", if_else, -np.abs(V)),
    case("if_unknown", if_else, X, open={0: (0, 1)}),
    *(case(f"nested_if_{n}", nested_if, V, np.int32(n)) for n in (0, 2, 7)),
    *(case(f"elif_{n}", elif_chain, V, np.int32(n)) for n in (0, 1, 2, 3)),
    *(case(f"early_return_{n}", early_return, V, np.int32(n)) for n in (1, 2, 9)),
    case("weights_inside", weights_inside, X),
    case("weights_inside_batch", weights_inside, -X, open=BATCH),
    case("branch_of_constants", branch_of_constants, MANY),
    case("branch_of_constants_no", branch_of_constants, ONE),
    case("branch_hands_on", branch_hands_on, V, f32(2), MANY),
    case("branch_hands_on_no", branch_hands_on, V, V, ONE),
    case("shapes_differ", shapes_differ, V, MANY),
    case("shapes_differ_no", shapes_differ, V, ONE),
    case("count", count, np.int32(100)),
    case("count_zero_turns", count, np.int32(0)),
    case("sum_to", sum_to, V, MANY),
    case("sum_to_zero_turns", sum_to, V, np.int32(-3)),
    case("sum_to_batch", sum_to, X, MANY, open={0: (0, 1)}),
    case("dense_steps", dense_steps, X, MANY),
    case("dense_steps_batch", dense_steps, X, MANY, open=BATCH),
    case("break", with_break, V),
    case("break_late", with_break, V * 0.0),
    case("continue", with_continue, V, MANY),
    case("return_in_loop", return_in_loop, V, MANY),
    case("return_in_loop_no", return_in_loop, V, ONE),
    case("loop_in_loop", loop_in_loop, V, MANY),
    case("loop_in_loop_zero", loop_in_loop, V, np.int32(0)),
    case("swaps", swaps, V, V + 1, MANY),
    case("three_in_a_ring", three_in_a_ring, V, MANY),
    case("grows", grows, V, MANY),
    case("grows_zero_turns", grows, V, np.int32(0)),
    case("halves", halves, f32(9, 3)),
    case("halves_batch", halves, f32(9, 3), open=BATCH),
    case("unused_input", unused_input, V, V, MANY),
    case("over_rows", over_rows, X),
    case("over_rows_batch", over_rows, X, open=BATCH),
    case("strings_in_branches", strings_in_branches, MANY),
    case("strings_in_branches_no", strings_in_branches, ONE),
    *(case(f"strings_carried_{n}", strings_carried, WORDS, WORDS[::-1].copy(), np.int32(n)) for n in (0, 1, 2, 3, 6)),
    *(case(f"switch_{n}", switch, V, np.int32(n)) for n in (-2, 0, 1, 2, 3, 4, 11)),
    case("switch_of_one", switch_of_one, V, MANY),
]


# ---- lists in loops --------------------------------------------------------------------------------------------------


def written(x: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=5)
    for i in ow.range(5):
        ta = ta.write(i, x * ow.cast(i, ow.float32))
    return ta.stack()


def written_backwards(x: Any, n: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=n)
    i = n - 1
    while i >= 0:
        ta = ta.write(i, x + ow.cast(i, ow.float32))
        i -= 1
    return ta.stack()


def some_unset(x: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=4, element_shape=(3,))
    for i in ow.range(0, 4, 2):
        ta = ta.write(i, x)
    return ta.stack()


def dynamic_size(x: Any, n: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=0, dynamic_size=True)
    for i in ow.range(n):
        ta = ta.write(i, x * ow.cast(i, ow.float32))
    return ta.stack(), ta.size()


def dynamic_with_gaps(x: Any, n: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=0, dynamic_size=True, element_shape=(3,))
    for i in ow.range(n):
        ta = ta.write(i * 2, x)
    return ta.stack()


def until_large(x: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=0, dynamic_size=True)
    i = ow.constant(0)
    while i < 10:
        if ow.reduce_sum(x) > 20.0:
            break
        ta = ta.write(i, x)
        x, i = x + 1.0, i + 1
    return ta.stack(), i


def unstacked(x: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=4).unstack(x)
    total = ow.zeros([3])
    for i in ow.range(4):
        total = total + ta.read(3 - i) * ow.cast(i, ow.float32)
    return total, ta.size()


def concatenated(x: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=3, element_shape=(4, 3))
    for i in ow.range(3):
        ta = ta.write(i, x + ow.cast(i, ow.float32))
    return ta.concat(), ta.gather([2, 0])


def split(x: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=2, infer_shape=False).split(x, [2, 2])
    return ta.read(1) - ta.read(0)


def scattered(x: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=5, element_shape=(3,)).scatter([3, 1, 0, 1], x)
    return ta.stack()


def read_and_write(x: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=6, clear_after_read=False, element_shape=(3,))
    ta = ta.write(0, x).write(1, x * 2.0)
    for i in ow.range(2, 6):
        ta = ta.write(i, ta.read(i - 1) * 0.5 + ta.read(i - 2))
    return ta.stack()


def in_a_branch(x: Any, n: Any) -> Any:
    ta = ow.TensorArray(ow.float32, size=2)
    if n > 2:
        ta = ta.write(0, x).write(1, x)
    else:
        ta = ta.write(0, -x).write(1, x * 2.0)
    return ta.stack()


def strings_read(x: Any) -> Any:
    ta = ow.TensorArray(ow.int32, size=3).unstack([5, 6, 7])
    return x * ow.cast(ta.read(1), ow.float32)


def nested_arrays(x: Any) -> Any:
    def row(r: Any) -> Any:
        return ow.map_fn(lambda e: e * e + 1.0, r)

    return ow.map_fn(row, x)


def several_results(x: Any) -> Any:
    out = ow.map_fn(lambda e: (ow.reduce_sum(e), e * 2.0, e > 0.0), x, dtype=(ow.float32, ow.float32, ow.bool))
    return out[0], out[1], out[2]


def scan_pair(x: Any) -> Any:
    return ow.scan(lambda a, e: (a[0] + e, a[1] * 0.5 + a[0]), x, initializer=(ow.zeros([3]), ow.ones([3])))


LISTS = [
    case("written", written, V),
    case("written_batch", written, V, open=BATCH),
    case("written_backwards", written_backwards, V, MANY),
    case("some_unset", some_unset, V),
    case("dynamic_size", dynamic_size, V, MANY),
    case("dynamic_size_batch", dynamic_size, V, MANY, open=BATCH),
    case("dynamic_with_gaps", dynamic_with_gaps, V, MANY),
    case("until_large", until_large, np.abs(V)),
    case("unstacked", unstacked, X),
    case("concatenated", concatenated, X),
    case("split", split, X),
    case("scattered", scattered, X),
    case("read_and_write", read_and_write, V),
    case("in_a_branch", in_a_branch, V, MANY),
    case("in_a_branch_no", in_a_branch, V, ONE),
    case("ints_in_a_list", strings_read, V),
    case("map_fn", lambda x: ow.map_fn(lambda e: e * 2.0 + 1.0, x), X),
    case("map_fn_count_unknown", lambda x: ow.map_fn(lambda e: e * 2.0 + 1.0, x), X, open=BATCH),
    case("map_fn_all_unknown", lambda x: ow.map_fn(lambda e: ow.nn.softmax(e) * 2.0, x), X, open={0: (0, 1)}),
    case("map_fn_scalars", lambda x: ow.map_fn(ow.reduce_sum, x), X),
    case("map_fn_in_map_fn", nested_arrays, X),
    case("map_fn_several", several_results, X),
    case("scan", lambda x: ow.scan(lambda a, e: a * 0.5 + e, x), X),
    case("scan_reversed", lambda x: ow.scan(lambda a, e: a * 0.5 + e, x, reverse=True), X),
    case("scan_pair", scan_pair, X),
    case("scan_batch", scan_pair, X, open=BATCH),
    case("foldl", lambda x: ow.foldl(lambda a, e: a * 0.5 + e, x), X),
    case("foldr", lambda x: ow.foldr(lambda a, e: a * 0.5 - e, x), X, open=BATCH),
]

"""Attributes and items that control flow over tensors creates, changes and deletes: each branch has its own.

A row is a program of one number, what it gives for some numbers, or the error that says why a graph cannot have it.
Rows of `LEAKS` are those where TensorFlow lets one branch's items into the other; what Python does is the oracle there.
"""

import contextlib

import pytest


class Thing:
    """An object with attributes."""


def key_in_one_branch(n):
    x = {"a": 1}
    if n > 0:
        x["b"] = 3
    return x


def key_in_one_branch_not_read(n):
    x = {"a": 1}
    if n > 0:
        x["b"] = n
    return x["a"]


def key_in_the_other_branch(n):
    x = {"a": 1}
    if n > 0:
        pass
    else:
        x["b"] = 3
    return x


def key_by_a_name(n):
    x, key = {"a": 1}, "b"
    if n > 0:
        x[key] = 3
    return x


def key_of_a_nested_dict(n):
    x = {"a": {}}
    if n > 0:
        x["a"]["b"] = 3
    return x


def attribute_in_one_branch(n):
    o = Thing()
    if n > 0:
        o.b = 3
    return o.b


def attribute_of_an_item(n):
    x = {"o": Thing()}
    if n > 0:
        x["o"].b = 3
    return n


def key_that_is_unpacked_into(n):
    x = {"a": 1}
    if n > 0:
        _, x["b"] = 3, 4
    return x


def key_that_is_none(n):
    x = {"a": 1}
    if n > 0:
        x["b"] = None
    return x


def key_that_is_a_loop_target(n):
    x = {"a": 1}
    if n > 0:
        for x["b"] in range(3):
            pass
    return x


def key_in_a_nested_if(n):
    x = {"a": 1}
    if n > 0:
        if n > 1:
            x["b"] = 3
        else:
            x["b"] = 4
    return x


def key_inside_try(n):
    x = {"a": 1}
    try:
        if n > 0:
            x["b"] = 3
    finally:
        n = 0
    return x


def key_inside_with(n):
    x = {"a": 1}
    if n > 0:
        with contextlib.nullcontext():
            x["b"] = 3
    return x


def key_in_a_python_loop(n):
    x = {"a": 1}
    for i in range(3):
        if n > i:
            x["b"] = i
    return x


def key_deleted_in_one_branch(n):
    x = {"a": 1, "b": 2}
    if n > 0:
        del x["b"]
    return x


def attribute_deleted_in_one_branch(n):
    o = Thing()
    o.b = 1
    if n > 0:
        n = 0
    else:
        del o.b
    return n


REFUSED = [
    (key_in_one_branch, "else"),
    (key_in_one_branch_not_read, "else"),
    (key_in_the_other_branch, "main"),
    (key_by_a_name, "else"),
    (key_of_a_nested_dict, "else"),
    (attribute_in_one_branch, "else"),
    (attribute_of_an_item, "else"),
    (key_that_is_unpacked_into, "else"),
    (key_that_is_none, "else"),
    (key_that_is_a_loop_target, "else"),
    (key_in_a_nested_if, "else"),
    (key_inside_try, "else"),
    (key_inside_with, "else"),
    (key_in_a_python_loop, "else"),
    (key_deleted_in_one_branch, "main"),
    (attribute_deleted_in_one_branch, "else"),
]


@pytest.mark.parametrize(("program", "branch"), REFUSED, ids=[p.__name__ for p, _ in REFUSED])
def test_what_one_branch_creates_must_be_in_the_other_too(tf, program, branch):
    with pytest.raises(ValueError, match=f"must also be initialized in the {branch} branch"):
        tf.function(program)(tf.constant(0))


def test_a_refused_branch_leaves_objects_as_they_were(tf):
    o = Thing()

    @tf.function
    def f(n):
        if n > 0:
            o.b = 3
        return n

    with pytest.raises(ValueError, match=r"o\.b"):
        f(tf.constant(0))
    if tf.__name__ == "opwright":  # TensorFlow leaves the attribute behind
        assert not hasattr(o, "b")


def key_in_both_branches(n):
    x = {"a": 1}
    if n > 0:
        x["b"] = n * 3
    else:
        x["b"] = 4
    return x["b"]


def attribute_in_both_branches(n):
    o = Thing()
    if n > 0:
        o.b = 3
    else:
        o.b = 4
    return o.b


def key_in_all_of_three(n):
    x = {"a": 1}
    if n > 1:
        x["b"] = 3
    elif n > 0:
        x["b"] = 4
    else:
        x["b"] = 5
    return x["b"]


def dict_bound_anew_after_a_change(n):
    x = {"a": 1}
    if n > 0:
        x["a"] = 3
        if n > 1:
            x = {"a": 5}
    return x["a"]


def key_born_in_a_loop(n):
    x = {"a": 1}
    m = n + 1
    while m > 0:
        x["b"] = m * 10
        m -= 1
    return x["b"]


def key_added_to(n):
    x = {"a": 1}
    if n > 0:
        x["a"] += n
    return x["a"]


SAME = [
    key_in_both_branches,
    attribute_in_both_branches,
    key_in_all_of_three,
    dict_bound_anew_after_a_change,
    key_born_in_a_loop,
    key_added_to,
]


def index_from_the_end(n):
    x = [1, 2]
    if n > 0:
        x[-1] = 5
    return x[0] * 10 + x[1]


def index_that_is_computed(n):
    x, i = [1, 2], 0
    if n > 0:
        x[i + 1] = 5
    return x[0] * 10 + x[1]


def index_of_two_numbers(n):
    x = {(1, 2): 1}
    if n > 0:
        x[1, 2] = 3
    return x[1, 2]


def index_that_changes_inside(n):
    x = {"a": 1, "b": 2}
    if n > 0:
        for k in ("a", "b"):
            x[k] = 7
    return x["a"] * 10 + x["b"]


def index_that_is_a_call(n):
    x = [1, 2]
    if n > 0:
        x[len(x) - 1] = 5
    return x[0] * 10 + x[1]


def items_by_a_python_loop_in_a_loop(n):
    x = [1, 2]
    while n > 0:
        for k in range(2):
            x[k] = x[k] + n
        n -= 1
    return x[0] * 10 + x[1]


def slice_of_a_list(n):
    x = [1, 2]
    if n > 0:
        x[0:1] = [6]
    return x[0] * 10 + x[1]


def update_of_a_dict(n):
    x = {"a": 1}
    if n > 0:
        x.update(a=3)
    return x["a"]


def change_by_a_local_function(n):
    x = {"a": 1}

    def change():
        x["a"] = 3

    if n > 0:
        change()
    return x["a"]


def keys_deleted_in_both(n):
    x = {"a": 1, "b": 2}
    if n > 0:
        del x["b"]
        x["a"] = 4
    else:
        del x["b"]
    return x["a"] + len(x)


LEAKS = [
    index_from_the_end,
    index_that_is_computed,
    index_of_two_numbers,
    index_that_changes_inside,
    index_that_is_a_call,
    items_by_a_python_loop_in_a_loop,
    slice_of_a_list,
    update_of_a_dict,
    change_by_a_local_function,
    keys_deleted_in_both,
]


def same_as_python(tf, program):
    traced = tf.function(program)
    assert [int(traced(tf.constant(n))) for n in range(3)] == [program(n) for n in range(3)]


@pytest.mark.parametrize("program", SAME, ids=lambda p: p.__name__)
def test_items_are_those_of_the_branch_that_runs(tf, program):
    same_as_python(tf, program)


@pytest.mark.ours
@pytest.mark.parametrize("program", LEAKS, ids=lambda p: p.__name__)
def test_items_changed_by_other_means_stay_in_their_branch(tf, program):
    same_as_python(tf, program)


def length_by_a_deletion(n):
    x = [1, 2]
    if n > 0:
        del x[0]
    return x


def length_by_a_slice(n):
    x = [1, 2]
    if n > 0:
        x[0:1] = [7, 8]
    return x


def keys_by_update(n):
    x = {"a": 1}
    if n > 0:
        x.update(b=3)
    return x


def keys_by_pop(n):
    x = {"a": 1, "b": 2}
    if n > 0:
        x.pop("b")
    return x


def keys_deleted_in_a_loop(n):
    x = {"a": 1, "b": 2}
    for k in ("a", "b"):
        while n > 0:
            del x[k]
            n -= 1
    return x


SHAPES = [length_by_a_deletion, length_by_a_slice, keys_by_update, keys_by_pop, keys_deleted_in_a_loop]


@pytest.mark.ours
@pytest.mark.parametrize("program", SHAPES, ids=lambda p: p.__name__)
def test_lengths_and_keys_cannot_depend_on_a_tensor(tf, program):
    with pytest.raises((TypeError, ValueError), match=r"'x\[\.\.\.\]'|x\[k\]"):
        tf.function(program)(tf.constant(0))

"""Scopes: lookup outward, shadowing, dropping, threads; what a variable holds."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opwright as ow
from opwright.scopes.variable import EMPTY, GRAD, TEMP, ZERO, ScopeTensor


def test_var_creates_in_this_scope_only() -> None:
    outer = ow.Scope()
    inner = outer.new_scope()
    made = inner.var("x")
    assert inner.var("x") is made
    assert outer.find_var("x") is None
    outer.var("x")
    assert inner.var("x") is made


def test_find_var_walks_to_the_ancestors_and_returns_none_when_absent() -> None:
    outer = ow.Scope()
    deep = outer.new_scope().new_scope()
    assert deep.find_var("x") is None
    x = outer.var("x")
    assert deep.find_var("x") is x
    assert "x" in deep
    assert deep.find_scope("x") is outer


def test_find_local_var_does_not_walk() -> None:
    outer = ow.Scope()
    outer.var("x")
    assert outer.new_scope().find_local_var("x") is None


def test_dropping_a_parent_drops_its_children() -> None:
    outer = ow.Scope()
    kid = outer.new_scope()
    grandkid = kid.new_scope()
    outer.drop_kids()
    assert kid.is_dropped
    assert grandkid.is_dropped
    assert not outer.is_dropped
    assert outer.kids == ()
    other = outer.new_scope()
    outer.drop()
    assert other.is_dropped


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.var("x"),
        lambda s: s.find_var("x"),
        lambda s: s.find_local_var("x"),
        lambda s: s.new_scope(),
        lambda s: s.local_var_names(),
        lambda s: s.drop_kids(),
        lambda s: s.rename("x", "y"),
        lambda s: s.erase("x"),
        lambda s: s.kids,
    ],
)
def test_using_a_dropped_scope_reports_it(use: Any) -> None:
    scope = ow.Scope()
    scope.var("x")
    scope.drop()
    scope.drop()  # again changes nothing
    with pytest.raises(ow.errors.FailedPreconditionError, match="dropped"):
        use(scope)


def test_a_child_may_shadow_a_name_without_changing_it() -> None:
    outer = ow.Scope()
    outer.var("x").set(1.0)
    inner = outer.new_scope()
    inner.var("x").set(2.0)
    assert (float(outer.find_var("x").value), float(inner.find_var("x").value)) == (1.0, 2.0)
    inner.erase("x")
    assert float(inner.find_var("x").value) == 1.0


def test_names_rename_and_erase() -> None:
    scope = ow.Scope()
    x = scope.var("x")
    scope.var("y")
    assert scope.local_var_names() == ["x", "y"]
    assert scope.rename("x", "z") is x
    assert (x.name, scope.local_var_names()) == ("z", ["y", "z"])
    with pytest.raises(ow.errors.AlreadyExistsError, match="'y'"):
        scope.rename("z", "y")
    with pytest.raises(ow.errors.NotFoundError, match="'x'"):
        scope.rename("x", "w")
    with pytest.raises(ow.errors.NotFoundError, match="'q'"):
        scope.erase(["y", "q"])
    assert scope.local_var_names() == ["y", "z"]  # all or nothing
    scope.erase(["y", "z"])
    assert scope.local_var_names() == []
    with pytest.raises(ow.errors.SignatureError, match="name"):
        scope.var("")


@given(st.lists(st.sampled_from(["var a", "var b", "in", "out", "set a", "erase a"]), max_size=25))
def test_lookup_is_that_of_nested_dicts(steps: list[str]) -> None:
    scopes, dicts = [ow.Scope()], [{}]  # type: ignore[var-annotated]
    for number, step in enumerate(steps):
        word, _, name = step.partition(" ")
        if word == "in":
            scopes.append(scopes[-1].new_scope())
            dicts.append({})
        elif word == "out" and len(scopes) > 1:
            scopes.pop().drop()
            dicts.pop()
        elif word == "var":
            scopes[-1].var(name)
            dicts[-1].setdefault(name, None)
        elif word == "set":
            scopes[-1].var(name).set(number)
            dicts[-1][name] = number
        elif word == "erase" and name in dicts[-1]:
            scopes[-1].erase(name)
            del dicts[-1][name]
        for name in "ab":
            holder = next((d for d in reversed(dicts) if name in d), None)
            found = scopes[-1].find_var(name)
            assert (found is None) == (holder is None)
            if holder is not None:
                assert (int(found.value) if found.is_initialized else None) == holder[name]


def test_many_threads_get_one_variable_and_keep_their_scopes_apart() -> None:
    outer, found, kids = ow.Scope(), [], []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for i in range(50):
            found.append((i, outer.var(f"v{i}")))
            with outer.new_scope() as kid:
                kid.var("mine").set(i)
                assert int(kid.find_var("mine").value) == i
            kids.append(kid)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(v) for _, v in found}) == 50
    assert outer.kids == ()
    assert all(k.is_dropped for k in kids)
    assert len(kids) == 400


def test_the_global_scope_and_its_guard() -> None:
    usual, mine, seen = ow.global_scope(), ow.Scope(), []
    with ow.scope_guard(mine):
        assert ow.global_scope() is mine
        with ow.scope_guard(usual):
            assert ow.global_scope() is usual
        thread = threading.Thread(target=lambda: seen.append(ow.global_scope()))
        thread.start()
        thread.join()
    assert ow.global_scope() is usual
    assert seen == [usual]  # a guard is its thread's
    with pytest.raises(ow.errors.SignatureError, match="scope"), ow.scope_guard("x"):
        pass


def test_the_reserved_names() -> None:
    assert (EMPTY, TEMP, GRAD, ZERO) == ("@EMPTY@", "@TEMP@", "@GRAD", "@ZERO")


# ---- variables ------------------------------------------------------------------------------------------------------


def test_a_variable_holds_nothing_at_first() -> None:
    x = ow.Scope().var("x")
    assert not x.is_initialized
    assert x.kind is None
    with pytest.raises(ow.errors.FailedPreconditionError, match="'x'"):
        _ = x.value
    tensor = x.get_tensor()
    assert isinstance(tensor, ow.LoDTensor)
    assert (x.kind, x.is_initialized) == ("dense", False)
    tensor.set(np.ones((3, 2), np.float32), ow.CPUPlace())
    tensor.set_lod([[0, 1, 3]])
    assert x.is_initialized
    assert x.value.lod() == [[0, 1, 3]]
    assert x.get_tensor() is tensor


def test_kinds_follow_the_value() -> None:
    scope = ow.Scope()
    rows = ow.IndexedSlices(ow.ones([1, 2]), ow.constant([1]), ow.constant([3, 2]))
    trainable = ow.Variable(1.0)
    for value, kind in [
        (1, "dense"),
        ([1.0, 2.0], "dense"),
        (np.ones(2), "dense"),
        (ow.constant("a"), "dense"),
        (ow.LoDTensor([[1.0], [2.0]], [[0, 1, 2]]), "dense"),
        (rows, "rows"),
        ([ow.constant(1.0), np.ones(2)], "list"),
        ([], "list"),
        (trainable, "object"),
        (object(), "object"),
        ({"a": 1}, "object"),
        (iter([]), "object"),
    ]:
        x = scope.var("x")
        x.set(value)
        assert x.kind == kind, value
        assert x.is_initialized
    x.set(trainable)
    assert x.value is trainable
    x.set(rows)
    assert x.value is rows
    with pytest.raises(ow.errors.InvalidArgumentError, match="'x' holds no dense tensor"):
        x.get_tensor()
    x.clear()
    assert not x.is_initialized


def test_setting_copies_arrays_and_keeps_the_tensor_object() -> None:
    x, array = ow.Scope().var("x"), np.zeros(2, np.float32)
    x.set(array)
    held = x.get_tensor()
    array[0] = 5.0
    assert x.value.numpy().tolist() == [0.0, 0.0]
    x.set([1.0, 2.0, 3.0])
    assert held is x.get_tensor()
    assert held.numpy().tolist() == [1.0, 2.0, 3.0]


def test_a_value_that_is_no_tensor_leaves_the_variable_as_it_was() -> None:
    x = ow.Scope().var("x")
    x.set(1.0)
    with pytest.raises(ValueError, match="rectangular"):
        x.set([[1.0], [2.0, 3.0]])
    assert float(x.value) == 1.0


def test_a_lod_that_does_not_fit_new_rows_is_dropped() -> None:
    tensor = ScopeTensor()
    tensor.set(np.ones((3, 1)))
    tensor.set_recursive_sequence_lengths([[1, 2]])
    tensor.set(np.zeros((3, 4)))
    assert tensor.lod() == [[0, 1, 3]]
    tensor.set(np.zeros((2, 4)))
    assert tensor.lod() == []


def test_a_tensor_lives_where_it_is_put() -> None:
    tensor, place = ScopeTensor(), ow.SimulatedPlace(0)
    tensor.set([1.0, 2.0], place)
    assert tensor.place == place
    assert tensor.numpy().tolist() == [1.0, 2.0]
    assert (tensor.values + 1.0).numpy().tolist() == [2.0, 3.0]  # eager operators take a copy
    tensor.set(tensor.values, ow.CPUPlace())
    assert tensor.place == ow.CPUPlace()
    with pytest.raises(ow.errors.InvalidArgumentError, match="string"):
        tensor.set("text", place)
    x = ow.Scope().var("x")
    x.set(ow.DeviceContextPool.instance().get(place).to_device(np.ones(3, np.float32)))
    assert x.place == place
    assert x.value.numpy().tolist() == [1.0, 1.0, 1.0]

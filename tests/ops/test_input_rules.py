"""An operator writes none of its inputs, and its results are its own: users' always, the catalogue's by the switch.

Lives here: what users' computations may do, the walk of the catalogue's tables under `check_inputs`.
Not here: who may write into memory that dies (tests/compiler/test_inplace.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from test_operators import TABLES

import opwright as ow
from each_row import each_row
from opwright.compiler.plan import Plan
from opwright.core.errors import PermissionDeniedError
from opwright.ops.compute_wrappers import fingerprint


def defined(compute: Any, inplace: Any = None, views: Any = None) -> Any:
    class Rule:
        """f(a, b)   .. math:: y = f(a, b)"""

        a = ow.Input(dtypes=ow.floating)
        b = ow.Input(like="a")
        y = ow.Output(like="a")

    Rule.compute = compute
    if inplace:
        Rule.inplace = inplace
    if views:
        Rule.views = views
    return ow.operator(Rule)


def a_plus_one(op: Any, a: Any, b: Any) -> Any:
    a += 1
    return a.copy()


def sort_b(op: Any, a: Any, b: Any) -> Any:
    c = a + b
    b.sort()
    return c


def out_b(op: Any, a: Any, b: Any) -> Any:
    return np.add(a, b, out=b)


def fill_a(op: Any, a: Any, b: Any) -> Any:
    np.copyto(a, 0)
    return b.copy()


@pytest.mark.parametrize(("compute", "name"), [(a_plus_one, "a"), (sort_b, "b"), (out_b, "b"), (fill_a, "a")])
@pytest.mark.parametrize("traced", [False, True])
def test_a_write_raises_and_names_operator_and_input(compute: Any, name: str, traced: bool) -> None:
    op = defined(compute)
    call = ow.function(lambda a, b: op(a, b)) if traced else op
    a, b = ow.constant([3.0, 1.0]), ow.constant([2.0, 1.0])
    with pytest.raises(PermissionDeniedError) as excinfo:
        call(a, b)
    text = str(excinfo.value)
    assert "Rule" in text
    assert f"writes its input {name!r}" in text
    assert f"{name}.copy()" in text
    np.testing.assert_array_equal(a.numpy(), [3.0, 1.0])
    np.testing.assert_array_equal(b.numpy(), [2.0, 1.0])


def test_a_list_of_inputs_is_read_only_too() -> None:
    @ow.operator
    class SumInto:
        """sum   .. math:: y = \\sum_i x_i"""

        x = ow.Input(dtypes=ow.floating, repeated=True)
        y = ow.Output()

        def infer(op) -> Any:
            return op.x[0].spec

        def compute(op, x: Any) -> Any:
            for other in x[1:]:
                x[0] += other
            return x[0].copy()

    with pytest.raises(PermissionDeniedError, match="'x'"):
        SumInto([ow.constant([1.0]), ow.constant([2.0])])


def test_registered_kernels_are_held_to_the_rules_too() -> None:
    op = defined(lambda op, a, b: a + b)

    @ow.ops.register_kernel(op, dtype=ow.float32)
    def doubling(call: Any, a: Any, b: Any) -> Any:
        a *= 2
        return a

    @ow.ops.register_kernel(op, dtype=ow.float64)
    def same(call: Any, a: Any, b: Any) -> Any:
        return b

    x = ow.constant([1.0])
    with pytest.raises(PermissionDeniedError, match="writes its input 'a'"):
        op(x, x)
    y = ow.constant([1.0], ow.float64)
    assert not np.shares_memory(op(y, y)._array, y._array)


def test_other_errors_stay_what_they_are() -> None:
    def wrong(op: Any, a: Any, b: Any) -> Any:
        raise ValueError("of another kind")

    with pytest.raises(ow.errors.InvalidArgumentError, match="of another kind"):
        defined(wrong)(ow.constant([1.0]), ow.constant([1.0]))


def test_what_forces_its_way_is_found_by_the_switch() -> None:
    def forced(op: Any, a: Any, b: Any) -> Any:
        a.flags.writeable = True
        a[0] = 7
        return b + 1

    op = defined(forced)
    with ow.flags(check_inputs=True), pytest.raises(PermissionDeniedError, match="writes its input 'a'"):
        op(ow.constant([1.0, 2.0]), ow.constant([1.0, 2.0]))
    with ow.flags(check_inputs=True), pytest.raises(PermissionDeniedError, match="'a'"):
        ow.function(lambda a, b: op(a, b))(ow.constant([1.0, 2.0]), ow.constant([1.0, 2.0]))


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("written", ["x", "offsets"])
def test_of_a_lod_tensor_values_and_offsets_are_watched(written: str, traced: bool) -> None:
    @ow.operator
    class Evil:
        """The same.

        .. math:: y = x
        """

        x = ow.Input(dtypes=ow.floating, kinds=("dense", "lod"))
        offsets = ow.Input(lod_of="x")
        y = ow.Output(like="x")
        lod = "vanishes"

        def compute(op: Any, x: Any, offsets: Any) -> Any:
            array = {"x": x, "offsets": offsets}[written]
            while array.base is not None:
                array = array.base
            array.setflags(write=True)
            array.reshape(-1)[1] += 1
            return x + 1

    t = ow.create_lod_tensor(np.arange(12, dtype=np.float32).reshape(6, 2), [[2, 1, 3]])
    call = ow.function(lambda t: Evil(t)) if traced else Evil
    with ow.flags(check_inputs=True), pytest.raises(PermissionDeniedError, match=f"writes its input '{written}'"):
        call(t)


ALIASES = [lambda op, a, b: a, lambda op, a, b: a[:], lambda op, a, b: a.reshape(a.shape), lambda op, a, b: a[::-1]]


@pytest.mark.parametrize("compute", ALIASES)
def test_a_result_in_an_inputs_memory_is_copied_and_by_the_switch_an_error(compute: Any) -> None:
    op = defined(compute)
    a, b = ow.constant([1.0, 2.0, 3.0]), ow.constant([0.0, 0.0, 0.0])
    y = op(a, b)
    assert not np.shares_memory(y._array, a._array)
    np.testing.assert_array_equal(y.numpy(), compute(None, a.numpy(), b.numpy()))
    with ow.flags(check_inputs=True), pytest.raises(PermissionDeniedError) as excinfo:
        op(a, b)
    for words in ("Rule", "output 'y'", "input 'a'", "y.copy()", 'inplace = {"y": "a"}'):
        assert words in str(excinfo.value)


def test_declared_views_stay_views() -> None:
    for setting in ("inplace", "views"):
        op = defined(lambda op, a, b: a, **{setting: {"y": "a"}})
        a, b = ow.constant([1.0, 2.0]), ow.constant([0.0, 0.0])
        with ow.flags(check_inputs=True):
            assert np.shares_memory(op(a, b)._array, a._array)


def test_a_declared_view_is_not_written_by_a_plan() -> None:
    op = defined(lambda op, a, b: a, views={"y": "a"})
    kept: list[Any] = []

    def keep(op: Any, a: Any, b: Any) -> Any:
        result = a + b
        kept.append(result)  # what no operator should do
        return result

    keeper = defined(keep)
    spec = ow.TensorSpec([64, 512])
    graph = ow.function(lambda x: ow.exp(keeper(x, x)) + op(x, x)).get_concrete_function(spec).graph
    x = np.ones((64, 512), np.float32)
    got = Plan(graph).run(x)[0]
    np.testing.assert_allclose(got, np.exp(2.0) + 1.0, rtol=1e-6)
    assert (kept[0] == 2.0).all()
    assert (x == 1.0).all()


def test_users_operators_write_results_into_memory_that_dies() -> None:
    inputs: list[Any] = []

    @ow.operator
    class Halved:
        """Half   .. math:: y = x / 2"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")
        inplace = {"y": "x"}

        def compute(op, x: Any, *, out: Any = None) -> Any:
            assert not x.flags.writeable
            inputs.append(out is not None and np.shares_memory(x, out))
            return np.multiply(x, x.dtype.type(0.5), out=out)

    spec = ow.TensorSpec([64, 512])
    graph = ow.function(lambda x: Halved(Halved(x + 1.0))).get_concrete_function(spec).graph
    x = np.ones((64, 512), np.float32)
    np.testing.assert_array_equal(Plan(graph).run(x)[0], np.full((64, 512), 0.5, np.float32))
    assert inputs == [True, True]
    assert (x == 1.0).all()
    np.testing.assert_array_equal(Halved(ow.constant([2.0])).numpy(), [1.0])


@pytest.mark.parametrize("setting", ["inplace", "views"])
def test_declarations_name_parts(setting: str) -> None:
    with pytest.raises(ValueError, match="must name an output and an input"):
        defined(lambda op, a, b: a + b, **{setting: {"y": "c"}})
    with pytest.raises(ValueError, match="must name an output and an input"):
        defined(lambda op, a, b: a + b, **{setting: {"z": ("a", "b")}})


def test_fingerprints() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert fingerprint(x) == fingerprint(x.copy()) == fingerprint(np.asfortranarray(x))
    assert fingerprint(x) != fingerprint(x.reshape(3, 2))
    assert fingerprint(x) != fingerprint(x.view(np.int32))
    y = x.copy()
    y[0, 0] = -0.0
    assert fingerprint(x) != fingerprint(y)
    assert fingerprint(np.array([b"a", b"b"], object)) != fingerprint(np.array([b"a", b"c"], object))
    assert fingerprint([x, x]) != fingerprint([x])
    assert fingerprint(object()) is None


# ---- the catalogue ---------------------------------------------------------------------------------------------------


@each_row("key", TABLES, by=lambda key: key[:1].lower())
def test_the_catalogue_writes_no_input_and_returns_no_undeclared_view(key: str) -> None:
    with ow.flags(check_inputs=True):
        for row in TABLES[key]:
            if not row.raises:
                row.run()


def test_the_switch_counts_from_the_first_call_where_the_environment_sets_it() -> None:
    """And is not read at all where it does not."""
    code = "import opwright as ow; ow.identity(1.0); from opwright.ops import dispatch; print(dispatch._eager.__name__)"
    for value, expected in (("1", "checked_execute"), ("", "execute")):
        environ = {**os.environ, "OPWRIGHT_CHECK_INPUTS": value}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True)
        assert done.stdout.split() == [expected]

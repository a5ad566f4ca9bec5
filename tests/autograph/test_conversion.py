"""Conversion: where code comes from, what is shared with the user's function, what is left alone, what errors show."""

import ast
import functools
import linecache
import sys
import traceback
import warnings

import pytest

import opwright as ow
from opwright.autograph import source
from opwright.autograph.api import to_graph
from opwright.autograph.conversion import reset_modules

THRESHOLD = 0


def raised(f, *args):
    """The error and the lines of this file in its traceback, innermost last."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        ow.function(f)(*args)
    frames = traceback.extract_tb(caught.value.__traceback__)
    return caught.value, [s for s in frames if s.filename == __file__ and s.name == f.__name__]


def first_line(f):
    return f.__code__.co_firstlineno


X = ow.constant(3)


# ---- errors name the variable and the line


def test_undefined_in_one_branch():
    def f(x):
        if x > 0:
            y = 1
        return y

    error, frames = raised(f, X)
    assert isinstance(error, ValueError)
    assert "'y' must also be initialized in the else branch" in str(error)
    assert f"{__file__}:{first_line(f) + 1}" in str(error)
    assert frames[-1].lineno == first_line(f) + 1


def test_no_return_in_one_branch():
    def f(x):  # noqa: RET503
        if x > 0:
            return x

    error, _ = raised(f, X)
    assert isinstance(error, ValueError)
    assert "A value must also be returned from the else branch" in str(error)


def test_dtype_between_branches():
    def f(x):
        if x > 0:
            y = ow.constant(1.0)
        else:
            y = ow.constant(1)
        return y

    error, _ = raised(f, X)
    assert isinstance(error, TypeError)
    assert "'y' has dtype float32 in the main branch, but dtype int32 in the else branch" in str(error)
    assert f":{first_line(f) + 1}" in str(error)


def test_structure_between_branches():
    def f(x):
        if x > 0:
            y = (x, x)
        else:
            y = x
        return y

    error, _ = raised(f, X)
    assert isinstance(error, TypeError)
    assert "'y' must have the same nested structure in the main and else branches" in str(error)


def test_none_in_one_branch():
    def f(x):
        y = None
        if x > 0:
            y = x
        return y

    error, _ = raised(f, X)
    assert isinstance(error, ValueError)
    assert "'y' is None at the end of the else branch." in str(error)


def test_dtype_between_iterations():
    def f(x):
        y = 0
        while x > 0:
            y = ow.constant(0.5)
            x -= 1
        return y

    error, frames = raised(f, X)
    assert isinstance(error, TypeError)
    assert "'y' has dtype int32 before the loop, but dtype float32 after one iteration" in str(error)
    assert f":{first_line(f) + 2}" in str(error)
    assert frames[-1].lineno == first_line(f) + 2


def test_structure_between_iterations():
    def f(x):
        y = (x, x)
        while x > 0:
            y = x
            x -= 1
        return y

    error, _ = raised(f, X)
    assert isinstance(error, TypeError)
    assert "'y' does not have the same nested structure after one iteration" in str(error)


def test_none_before_the_loop():
    def f(x):
        y = None
        while x > 0:
            y = x
            x -= 1
        return y

    error, _ = raised(f, X)
    assert isinstance(error, ValueError)
    assert "'y' is not allowed to be None before the loop" in str(error)


def test_shape_between_iterations_and_invariants():
    def f(x):
        y = ow.constant([0])
        for i in ow.range(x):
            y = ow.concat([y, [i]], 0)
        return y

    error, _ = raised(f, X)
    assert isinstance(error, ValueError)
    assert "'y' has shape (1,) before the loop, but shape (2,) after one iteration" in str(error)

    def g(x):
        y = ow.constant([0])
        for i in ow.range(x):
            ow.autograph.experimental.set_loop_options(shape_invariants=[(y, ow.TensorShape([None]))])
            y = ow.concat([y, [i]], 0)
        return y

    assert ow.function(g)(X).numpy().tolist() == [0, 0, 1, 2]


def test_maximum_iterations():
    def f(x):
        s = 0
        while x > 0:
            ow.autograph.experimental.set_loop_options(maximum_iterations=4)
            s += 1
        return s

    assert int(ow.function(f)(X)) == 4


def test_undefined_before_the_loop():
    def f(x):
        while x > 0:
            y = y + x  # noqa: F821
            x -= 1
        return y

    error, _ = raised(f, X)
    assert isinstance(error, ValueError)
    assert "'y' must be defined before the loop" in str(error)


def test_value_born_in_a_loop_that_does_not_run():
    @ow.function
    def f(n):
        for i in ow.range(n):
            last = i
        return last

    assert int(f(ow.constant(3))) == 2
    with pytest.raises(ow.errors.InvalidArgumentError, match="loop must iterate at least once to initialize last"):
        f(ow.constant(0))


def test_assert_on_a_tensor_is_checked_when_it_runs():
    @ow.function
    def f(x):
        assert x > 0, "not positive"
        return x

    assert int(f(X)) == 3
    with pytest.raises(ow.errors.InvalidArgumentError, match="not positive"):
        f(ow.constant(-1))


def test_errors_of_users_keep_their_lines():
    def g(v):
        raise KeyError("mine")

    def f(x):
        for i in ow.range(x):
            if i > 0:
                g(i)
        return x

    error, frames = raised(f, X)
    assert isinstance(error, KeyError)
    assert [s.lineno - first_line(f) for s in frames] == [1, 2, 3]
    assert not any("opwright/autograph" in s.filename for s in traceback.extract_tb(error.__traceback__))


def test_undefined_variables_are_pythons_errors():
    def f(x):
        if False:
            y = 1
        for z in []:  # noqa: B007
            pass
        return z if x is None else y

    with pytest.raises(NameError, match="'y'"):
        to_graph(f)(1)
    with pytest.raises(NameError, match="'z'"):
        to_graph(f)(None)


def test_an_annotation_without_a_value_declares_a_local():
    def f(x):
        if x > 0:
            THRESHOLD: int
            x = x + THRESHOLD  # noqa: F821  not the module's
        return x

    with pytest.raises(NameError, match="'THRESHOLD'"):
        to_graph(f)(1)


# ---- what is shared with the user's function


def test_globals_and_nonlocals_are_shared():
    global THRESHOLD
    limit = 1

    def f(x):
        nonlocal limit
        if x > THRESHOLD:
            limit += 1
        return limit

    g = to_graph(f)
    THRESHOLD = 5
    assert g(3) == 1
    THRESHOLD = 0
    assert g(3) == 2
    limit = 10
    assert g(3) == 11
    assert limit == 11


def test_attributes_are_kept():
    default = []

    def f(a: int, /, b=default, *args, c: str = "c", **kwargs) -> int:
        """Documented."""
        if a:
            b.append(a)
        return b

    f.mark = 1
    g = to_graph(f)
    assert g(5) is default
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        assert getattr(g, name) == getattr(f, name)
    assert g.__defaults__ is f.__defaults__
    assert g.__annotations__ == f.__annotations__
    assert g.__code__.co_filename == __file__
    assert g.__code__.co_name == "f"
    assert g.mark == 1
    assert g.__kwdefaults__ == {"c": "c"}


def test_frames_have_the_users_lines():
    seen = []

    def f(x):
        if x > 0:
            seen.append((sys._getframe().f_lineno, sys._getframe().f_code.co_name, sys._getframe().f_code.co_filename))
        return x

    ow.function(f)(X)
    assert seen == [(first_line(f) + 2, "f", __file__)]


def test_nodes_have_the_users_lines():
    def f(x):
        if x > 0:
            y = x * 2
        else:
            y = x
        return y

    nodes = {n.op.name: n.at for n in ow.function(f).get_concrete_function(X).graph.nodes}
    assert nodes["If"] == f"{__file__}:{first_line(f) + 1}"


# ---- sources


def test_source_from_linecache():
    text = "def f(x):\n    if x > 0:\n        return 1\n    return 2\n"
    linecache.cache["<typed>"] = (len(text), None, text.splitlines(keepends=True), "<typed>")
    space = {}
    exec(compile(text, "<typed>", "exec"), space)
    assert int(ow.function(space["f"])(X)) == 1


def test_no_source_warns_once_and_runs():
    space = {}
    exec("def f(x):\n    return x + 1\n", space)
    with pytest.warns(UserWarning, match=r"(?s)AutoGraph could not transform .*its source code is not available"):
        assert int(ow.function(space["f"])(X)) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert int(ow.function(space["f"])(X)) == 4
    with pytest.raises(ValueError, match="cannot be converted"):
        ow.autograph.to_code(space["f"])


def test_lambdas_on_one_line():
    one, two = (lambda x: 1 if x > 0 else 2), (lambda x: 3 if x > 0 else 4)
    assert (int(ow.function(one)(X)), int(ow.function(two)(X))) == (1, 3)


def test_generators_run_as_they_are():
    def numbers(n):
        for i in range(n):
            if i != 1:
                yield i

    @ow.function
    def f(x):
        return [x + i for i in numbers(3)]

    assert [int(v) for v in f(X)] == [3, 5]


def test_to_code_is_readable():
    def f(x):
        if x > 0:
            x = x * x
        return x

    code = ow.autograph.to_code(f)
    assert code.startswith("def tf__f(x):")
    assert "ag__.if_stmt(x > 0, " in code
    compile(code, "<code>", "exec")


# ---- what is left alone


def test_do_not_convert():
    @ow.autograph.experimental.do_not_convert
    def plain(x):
        return 1 if x > 0 else 2

    @ow.function
    def f(x):
        return plain(x)

    with pytest.raises(TypeError, match="not allowed"):
        f(X)
    with pytest.raises(TypeError, match="not allowed"):
        ow.function(lambda x: 1 if x > 0 else 2, autograph=False)(X)


def test_skipped_modules():
    def f(x):
        return helper_for_skipping(x)

    assert int(ow.function(f)(X)) == 1
    ow.autograph.skip_module(__name__)
    try:
        with pytest.raises(TypeError, match="not allowed"):
            ow.function(f)(X)
    finally:
        reset_modules()
    assert int(ow.function(f)(X)) == 1


def helper_for_skipping(x):
    return 1 if x > 0 else 2


def test_library_calls_are_not_converted():
    @ow.function
    def f(x):
        return functools.reduce(lambda a, b: a if a > b else b, [x, x + 1, x - 1])

    assert int(f(X)) == 4


def test_a_staged_loop_is_recorded_once(capsys):
    @ow.function
    def f(n):
        for i in ow.range(n):
            print("loop")
            if i > 1:
                print("then")
            else:
                print("else")

    f(X)
    f(ow.constant(9))
    assert capsys.readouterr().out.split() == ["loop", "then", "else"]


def test_nodes_that_tracebacks_annotate(monkeypatch):
    """IPython's tracebacks set `parent` on every node of their trees, also on ast.Load, which all trees share."""
    foreign = ast.parse("x = 1")
    shared = ast.parse("x").body[0].value.ctx
    monkeypatch.setattr(shared, "parent", foreign.body[0], raising=False)
    monkeypatch.setattr(foreign.body[0], "parent", ast.parse("__x").body[0].value, raising=False)
    foreign.body[0].parent.parent = foreign.body[0]  # a cycle
    tree = ast.parse("self.__y + __z")
    source.mangle_private_names(tree, "Class")
    assert ast.unparse(tree) == "self._Class__y + _Class__z"
    assert foreign.body[0].parent.id == "__x"

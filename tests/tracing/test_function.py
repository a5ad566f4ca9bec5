"""`function`: what is traced and when, what a concrete function says and takes, gradients through it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.graph import parse, same


def values(x: Any) -> Any:
    return ow.nest.map_structure(lambda t: t.numpy() if hasattr(t, "numpy") else t, x)


class Counter:
    """A function body that counts its traces."""

    def __init__(self, body: Any) -> None:
        self.traces, self.body = 0, body

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.traces += 1
        return self.body(*args, **kwargs)


# ---- tracing rules -------------------------------------------------------------------------------------------------


def test_one_trace_for_one_dtype_and_shape() -> None:
    count = 0

    @ow.function
    def double(a: Any) -> Any:
        nonlocal count
        count += 1
        return a + a

    assert double(ow.constant(1)).numpy() == 2
    assert double(ow.constant(2)).numpy() == 4
    assert count == 1
    assert double(ow.constant(1.5)).numpy() == 3.0
    assert double(ow.constant([1, 2])).numpy().tolist() == [2, 4]
    assert count == 3
    assert double(ow.constant("a")).numpy() == b"aa"
    assert double.experimental_get_tracing_count() == count == 4


@pytest.mark.parametrize(
    ("first", "second", "traces"),
    [
        (1, 1, 1),
        (1, 2, 2),
        (1, 1.0, 2),
        (True, 1, 2),
        ("a", "a", 1),
        ([1, 2], [1, 2], 1),
        ([1, 2], (1, 2), 2),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, 1),
        (None, None, 1),
        (np.ones(3, np.float32), np.zeros(3, np.float32), 1),
        (np.ones(3, np.float32), np.zeros(3, np.float64), 2),
        (np.ones(3, np.float32), ow.constant([1.0, 2.0, 3.0]), 1),
    ],
    ids=str,
)
def test_python_values_by_type_and_value(first: Any, second: Any, traces: int) -> None:
    body = Counter(lambda x, y: x)
    f = ow.function(lambda x, y: body(y, x))
    f(first, ow.constant(1.0))
    f(second, ow.constant(1.0))
    assert body.traces == traces


def test_variables_of_one_type_share_a_trace() -> None:
    body = Counter(lambda v: v + 1.0)
    f = ow.function(lambda v: body(v))
    a, b = ow.Variable(1.0), ow.Variable(2.0)
    assert f(a).numpy() == 2.0
    a.assign(5.0)
    assert f(a).numpy() == 6.0
    assert body.traces == 1
    assert f(b).numpy() == 3.0
    assert body.traces == 1


def test_an_object_matches_through_a_weak_reference() -> None:
    class Thing:
        scale = 2.0

    body = Counter(lambda t, x: x * t.scale)
    f = ow.function(lambda t, x: body(t, x))
    thing = Thing()
    f(thing, ow.constant(1.0))
    f(thing, ow.constant(1.0))
    assert body.traces == 1
    f(Thing(), ow.constant(1.0))
    assert body.traces == 2
    del thing
    gc.collect()
    f(Thing(), ow.constant(1.0))
    assert body.traces == 3


def test_side_effects_happen_when_tracing() -> None:
    log: list[str] = []

    @ow.function
    def f(x: Any) -> Any:
        log.append(repr(x))
        return x

    f(ow.constant(1))
    f(ow.constant(2))
    assert log == ["<tf.Tensor 'x:0' shape=() dtype=int32>"]


def test_str_of_a_symbolic_tensor() -> None:
    seen: list[str] = []

    @ow.function
    def f(a: Any) -> Any:
        seen.append(str(a))
        return a

    f(ow.constant([1.0, 2.0]))
    assert seen == ['Tensor("a:0", shape=(2,), dtype=float32)']


# ---- input_signature -----------------------------------------------------------------------------------------------


def test_input_signature_makes_one_trace() -> None:
    body = Counter(lambda x: ow.where(x % 2 == 0, x // 2, 3 * x + 1))

    @ow.function(input_signature=(ow.TensorSpec(shape=[None], dtype=ow.int32),))
    def next_collatz(x: Any) -> Any:
        return body(x)

    assert next_collatz(ow.constant([1, 2])).numpy().tolist() == [4, 1]
    assert next_collatz(ow.constant([1, 2, 3])).numpy().tolist() == [4, 1, 10]
    assert next_collatz([5]).numpy().tolist() == [16]
    assert body.traces == 1
    for bad in (ow.constant([[1, 2], [3, 4]]), ow.constant([1.0, 2.0])):
        with pytest.raises(ValueError, match=r"next_collatz.*TensorSpec\(shape=\(None,\), dtype=tf.int32"):
            next_collatz(bad)


def test_input_signature_nested_named_and_short() -> None:
    @ow.function(input_signature=[{"a": ow.TensorSpec([2], name="left"), "b": ow.TensorSpec([])}, ow.TensorSpec([2])])
    def f(d: Any, y: Any, scale: float = 2.0) -> Any:
        return (d["a"] * d["b"] + y) * scale

    out = f({"a": [1.0, 2.0], "b": 3.0}, [1.0, 1.0])
    assert out.numpy().tolist() == [8.0, 14.0]
    assert [v.name for v in f.get_concrete_function().graph.inputs] == ["left", "d", "y"]
    with pytest.raises(ValueError, match="structure"):
        f([1.0], [1.0, 1.0])
    with pytest.raises(TypeError, match="input_signature"):
        ow.function(lambda x: x, input_signature=[ow.TensorSpec([]), ow.TensorSpec([])])
    with pytest.raises(TypeError, match="input_signature"):
        ow.function(lambda x: x, input_signature=ow.TensorSpec([]))
    with pytest.raises(TypeError, match="TensorSpec"):
        ow.function(lambda x: x, input_signature=[3])


def test_arguments_that_do_not_fit_the_parameters() -> None:
    @ow.function
    def f(x: Any, *, flag: bool = False) -> Any:
        return -x if flag else x

    assert f(ow.constant(1.0), flag=True).numpy() == -1.0
    for call in (lambda: f(), lambda: f(1, 2), lambda: f(ow.constant(1.0), other=1)):
        with pytest.raises(TypeError, match=r"f\("):
            call()


def test_defaults_keywords_and_variadics() -> None:
    @ow.function
    def f(a: Any, b: float = 2.0, *rest: Any, c: float = 1.0, **more: Any) -> Any:
        return a * b + c + sum(rest) + sum(more.values())

    one = ow.constant(1.0)
    assert f(one).numpy() == 3.0
    assert f(one, b=3.0).numpy() == 4.0
    assert f(one, 2.0, one, one).numpy() == 5.0
    assert f(one, d=one, e=one).numpy() == 5.0
    assert f.experimental_get_tracing_count() == 4


# ---- results -------------------------------------------------------------------------------------------------------


def test_structures_of_results() -> None:
    @ow.function
    def f(x: Any) -> Any:
        return {"sum": x + 1.0, "parts": (x, [x * 2.0, None])}

    out = values(f(ow.constant(3.0)))
    assert out == {"sum": 4.0, "parts": (3.0, [6.0, None])}
    assert ow.function(lambda: None)() is None
    with pytest.raises(TypeError, match="zero or more Tensors"):
        ow.function(lambda x: object())(ow.constant(1.0))


def test_sparse_gradients_as_results() -> None:
    table = ow.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    @ow.function
    def grad(i: Any) -> Any:
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(ow.gather(table, i))
        return tape.gradient(loss, table)

    out = grad(ow.constant([2, 0, 2]))
    assert isinstance(out, ow.IndexedSlices)
    assert out.indices.numpy().tolist() == [2, 0, 2]
    assert out.to_dense().numpy().tolist() == [[1, 1], [0, 0], [2, 2]]


# ---- concrete functions --------------------------------------------------------------------------------------------


def test_a_concrete_function_shows_itself() -> None:
    @ow.function
    def double(a: Any) -> Any:
        return a + a

    concrete = double.get_concrete_function(ow.TensorSpec([], ow.string))
    assert str(concrete) == (
        "ConcreteFunction double(a)\n  Args:\n    a: string Tensor, shape=()\n  Returns:\n    string Tensor, shape=()"
    )
    assert concrete.structured_input_signature == ((ow.TensorSpec((), ow.string, "a"),), {})
    assert str(concrete.structured_outputs) == 'Tensor("Identity:0", shape=(), dtype=string)'
    assert concrete(ow.constant("b")).numpy() == b"bb"
    assert concrete(a=ow.constant("c")).numpy() == b"cc"
    assert [n.name for n in concrete.graph.nodes][-1] == "Identity"
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"i32\[\].*\n.*str\[\]"):
        concrete(ow.constant(1))
    with pytest.raises(TypeError, match="missing"):
        concrete()
    with pytest.raises(TypeError, match="unexpected"):
        concrete(b=ow.constant("x"))


def test_every_trace_is_listed_with_its_types() -> None:
    @ow.function
    def double(a: Any) -> Any:
        return a + a

    double(ow.constant(1))
    double(ow.constant([1.5, 2.5]))
    assert double.pretty_printed_concrete_signatures() == (
        "double(a)\n  Args:\n    a: int32 Tensor, shape=()\n  Returns:\n    int32 Tensor, shape=()\n\n"
        "double(a)\n  Args:\n    a: float32 Tensor, shape=(2,)\n  Returns:\n    float32 Tensor, shape=(2,)"
    )
    concrete = double.get_concrete_function(ow.constant([1.5, 2.5]))
    assert concrete.output_dtypes is ow.float32
    assert concrete.output_shapes == ow.TensorShape([2])


def test_many_shapes_through_one_trace_keep_no_more_than_a_bound() -> None:
    from opwright.tracing.function import CACHE_LIMIT

    @ow.function(input_signature=[ow.TensorSpec([None])])
    def total(x: Any) -> Any:
        return ow.reduce_sum(x)

    for n in range(CACHE_LIMIT + 10):
        assert total(ow.ones([n])).numpy() == n
    assert total.experimental_get_tracing_count() == 1
    assert len(total._call_cache) <= CACHE_LIMIT


def test_a_graph_as_flat_records() -> None:
    @ow.function
    def double(a: Any) -> Any:
        return ow.add(a, a, name="add")

    graph = double.get_concrete_function(ow.constant("a")).graph
    assert [(node.input, node.name) for node in graph.as_graph_def().node] == [
        ([], "a"),
        (["a", "a"], "add"),
        (["add"], "Identity"),
    ]
    parts = ow.function(lambda x: ow.split(x, 2)[1] * 2.0).get_concrete_function(ow.TensorSpec([4])).graph
    reads = {node.op: node.input for node in parts.as_graph_def().node}
    assert reads["Mul"][0].endswith(":1")
    assert [n.op.name for n in parts.get_operations()][-1] == "Identity"


def test_literals_are_bound() -> None:
    @ow.function
    def power(a: Any, b: Any) -> Any:
        return a**b

    square = power.get_concrete_function(a=ow.TensorSpec(None, ow.float32), b=2)
    assert str(square).startswith("ConcreteFunction power(a, b=2)")
    assert "shape=<unknown>" in str(square)
    assert square(ow.constant(10.0)).numpy() == 100.0
    assert square(ow.constant([1.0, 3.0]), b=2).numpy().tolist() == [1.0, 9.0]
    with pytest.raises(TypeError, match="was constructed with int value 2 in b, but was called with int value 3"):
        square(ow.constant(10.0), b=3)


def test_graph_text_parses_back() -> None:
    v = ow.Variable([1.0, 2.0])

    @ow.function
    def f(x: Any) -> Any:
        v.assign_add(x)
        return ow.concat([x, v, [7.0, float("nan")]], 0)

    graph = f.get_concrete_function(ow.TensorSpec([2])).graph
    assert same(parse(str(graph), ow.ops.get), graph)
    assert "test_function.py" in str(graph)


# ---- captures, variables, nesting ----------------------------------------------------------------------------------


def test_captures() -> None:
    outside, v = ow.constant(10.0), ow.Variable(1.0)

    @ow.function
    def f(x: Any) -> Any:
        return x + outside * v

    assert f(ow.constant(1.0)).numpy() == 11.0
    v.assign(2.0)
    assert f(ow.constant(1.0)).numpy() == 21.0
    concrete = f.get_concrete_function(ow.TensorSpec([]))
    assert concrete.variables == (v,)
    assert any(c is outside for c in concrete.captured_inputs)


def test_reads_and_writes_keep_program_order() -> None:
    v = ow.Variable(1.0)

    @ow.function
    def f() -> Any:
        before = v.read_value()
        v.assign_add(1.0)
        middle = v.read_value()
        v.assign(middle * 10.0)
        return before, middle, v.read_value()

    assert values(f()) == (1.0, 2.0, 20.0)
    assert values(f()) == (20.0, 21.0, 210.0)


def test_functions_nest() -> None:
    @ow.function
    def add(a: Any, b: Any) -> Any:
        return a + b

    @ow.function
    def dense(x: Any, w: Any, b: Any) -> Any:
        return add(ow.matmul(x, w), b)

    out = dense(ow.ones([3, 2]), ow.ones([2, 2]), ow.ones([2]))
    assert out.numpy().tolist() == [[3.0, 3.0]] * 3
    assert add.experimental_get_tracing_count() == 1


def test_methods_have_a_cache_an_instance_and_do_not_leak() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = ow.Variable(scale)

        @ow.function
        def __call__(self, x: Any) -> Any:
            return x * self.scale

    a, b = Model(2.0), Model(3.0)
    one = ow.constant(1.0)
    assert a(one).numpy() == 2.0
    assert b(one).numpy() == 3.0
    reference = weakref.ref(a)
    del a
    gc.collect()
    assert reference() is None


def test_variables_are_made_on_the_first_call_only() -> None:
    class Lazy:
        v: Any = None

        @ow.function
        def __call__(self, x: Any) -> Any:
            if self.v is None:
                self.v = ow.Variable(ow.ones([2]) * 3.0)
            return x * self.v

    lazy = Lazy()
    assert lazy(ow.constant([1.0, 2.0])).numpy().tolist() == [3.0, 6.0]
    assert lazy(ow.constant(1.0)).numpy().tolist() == [3.0, 3.0]

    @ow.function
    def always(x: Any) -> Any:
        return x + ow.Variable(1.0)

    with pytest.raises(ValueError, match=r"singleton tf\.Variables"):
        always(ow.constant(1.0))


# ---- errors --------------------------------------------------------------------------------------------------------


def test_a_symbolic_tensor_has_no_value() -> None:
    for use in (bool, int, float, lambda x: [1, 2][x], lambda x: np.sin(x), lambda x: x.numpy(), len):
        with pytest.raises((TypeError, NotImplementedError, AttributeError)):
            ow.function(lambda x, use=use: use(x), autograph=False)(ow.constant(1))


def test_a_leaked_tensor_is_reported_with_its_function() -> None:
    leaked: list[Any] = []

    @ow.function
    def leaky(x: Any) -> Any:
        leaked.append(x * 2.0)
        return x

    leaky(ow.constant(1.0))
    with pytest.raises((TypeError, ow.errors.OpError), match="leaky"):
        ow.function(lambda x: x + leaked[0])(ow.constant(1.0))
    with pytest.raises((TypeError, ow.errors.OpError), match="leaky"):
        leaked[0] + 1.0


def test_shape_errors_appear_while_tracing() -> None:
    @ow.function
    def f(a: Any, b: Any) -> Any:
        return ow.matmul(a, b)

    with pytest.raises(ow.errors.InvalidArgumentError, match="MatMul"):
        f.get_concrete_function(ow.TensorSpec([2, 3]), ow.TensorSpec([4, 5]))


# ---- shapes --------------------------------------------------------------------------------------------------------


def test_unknown_dims_and_rank() -> None:
    @ow.function(input_signature=[ow.TensorSpec(None)])
    def f(x: Any) -> Any:
        return ow.reduce_sum(x) + ow.cast(ow.rank(x), ow.float32)

    assert f(ow.ones([2, 3])).numpy() == 8.0
    assert f(ow.constant(5.0)).numpy() == 5.0


def test_sizes_flow_through_shape_arithmetic() -> None:
    seen: list[Any] = []

    @ow.function(input_signature=[ow.TensorSpec([None, 4, 6])])
    def f(x: Any) -> Any:
        y = ow.reshape(x, [ow.shape(x)[0], 24])
        seen.append(y.shape)
        z = ow.reshape(x, ow.concat([ow.shape(x)[:2], [3, 2]], 0))
        seen.append(z.shape)
        return y

    assert f(ow.ones([5, 4, 6])).shape == (5, 24)
    assert seen == [ow.TensorShape([None, 24]), ow.TensorShape([None, 4, 3, 2])]


# ---- gradients -----------------------------------------------------------------------------------------------------


def test_gradients_of_every_order_agree_with_eager() -> None:
    def f(x: Any, y: Any) -> Any:
        return ow.reduce_sum(ow.tanh(x * y) * ow.exp(-x), axis=0) * y[0]

    x, y = ow.constant([0.3, -0.7, 1.1], ow.float64), ow.constant([0.5, 1.5, -0.2], ow.float64)

    def third(f: Any) -> list[Any]:
        result = []
        with ow.GradientTape() as t3:
            t3.watch([x, y])
            with ow.GradientTape() as t2:
                t2.watch([x, y])
                with ow.GradientTape() as t1:
                    t1.watch([x, y])
                    z = f(x, y)
                first = t1.gradient(z, [x, y])
                s = ow.reduce_sum(first[0] * first[1])
            second = t2.gradient(s, [x, y])
            s = ow.reduce_sum(second[0] * second[1])
        third = t3.gradient(s, [x, y])
        for group in (first, second, third):
            result += [g.numpy() for g in group]
        return result

    for eager, traced in zip(third(f), third(ow.function(f))):
        np.testing.assert_allclose(traced, eager, rtol=1e-12)
    inner = ow.function(f)
    for eager, traced in zip(third(f), third(ow.function(lambda x, y: inner(x, y)))):
        np.testing.assert_allclose(traced, eager, rtol=1e-12)


def test_gradient_inside_a_function() -> None:
    @ow.function
    def grad(x: Any) -> Any:
        with ow.GradientTape() as outer:
            outer.watch(x)
            with ow.GradientTape() as inner:
                inner.watch(x)
                y = x * x * x
            g = inner.gradient(y, x)
        return g, outer.gradient(g, x)

    assert values(grad(ow.constant(2.0))) == (12.0, 12.0)


def test_variables_get_gradients_through_functions() -> None:
    v = ow.Variable(3.0)

    @ow.function
    def f(x: Any) -> Any:
        return x * v * v

    with ow.GradientTape(persistent=True) as tape:
        y = f(ow.constant(2.0))
    assert tape.watched_variables() == (v,)
    assert tape.gradient(y, v).numpy() == 12.0
    assert tape.gradient(y, [v])[0].numpy() == 12.0
    frozen = ow.Variable(3.0, trainable=False)
    g = ow.function(lambda x: x * frozen)
    with ow.GradientTape() as tape:
        y = g(ow.constant(2.0))
    assert tape.gradient(y, frozen) is None


def test_custom_gradient_inside_a_function() -> None:
    @ow.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 1.0, lambda dy: ow.clip_by_value(dy * 100.0, -1.0, 1.0) * x

    def outer(x: Any) -> Any:
        return ow.reduce_sum(clipped(x * 2.0))

    x = ow.constant([3.0, 4.0])
    for f in (outer, ow.function(outer), ow.function(lambda x: ow.function(outer)(x))):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        assert tape.gradient(y, x).numpy().tolist() == [12.0, 16.0]

    @ow.function
    def inside(x: Any) -> Any:
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.function(outer)(x) + ow.function(outer)(x * 0.5)
        return tape.gradient(y, x)

    assert inside(x).numpy().tolist() == [12.0 + 3.0, 16.0 + 4.0]


def test_unconnected_and_integer_results() -> None:
    @ow.function
    def f(x: Any) -> Any:
        return x * 2.0, ow.cast(x, ow.int32), ow.stop_gradient(x)

    x = ow.constant(3.0)
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a, b, c = f(x)
    assert tape.gradient(a, x).numpy() == 2.0
    assert tape.gradient(b, x) is None
    assert tape.gradient(c, x).numpy() == 0.0  # as TensorFlow 2.21: another output depends on x
    assert tape.gradient(c, x, unconnected_gradients="zero").numpy() == 0.0


# ---- switches ------------------------------------------------------------------------------------------------------


def test_run_functions_eagerly() -> None:
    count = 0

    @ow.function
    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        assert ow.executing_eagerly() == ow.config.functions_run_eagerly()
        return x

    ow.config.run_functions_eagerly(True)
    try:
        f(ow.constant(1.0))
        f(ow.constant(1.0))
    finally:
        ow.config.run_functions_eagerly(False)
    assert count == 2
    f(ow.constant(1.0))
    f(ow.constant(1.0))
    assert count == 3


def test_check_numerics_names_the_node_and_the_line() -> None:
    @ow.function
    def f(x: Any) -> Any:
        y = ow.math.log(x, name="the_log")
        return ow.exp(-y)

    x = ow.constant([1.0, -1.0])
    assert np.isnan(f(x).numpy()[1])
    with ow.flags(check_numerics=True):
        assert np.isfinite(f(ow.constant([1.0, 2.0])).numpy()).all()
        with pytest.raises(
            ow.errors.InvalidArgumentError, match=r"Log 'the_log' \(.*test_function\.py:\d+\): NaN or Inf"
        ):
            f(x)
    assert np.isnan(f(x).numpy()[1])


def test_init_scope_runs_now() -> None:
    @ow.function
    def f(x: Any) -> Any:
        with ow.init_scope():
            assert ow.executing_eagerly()
            now = ow.constant(2.0) * 3.0
        return x + now

    assert f(ow.constant(1.0)).numpy() == 7.0


def test_name_scopes_name_nodes() -> None:
    @ow.function
    def f(x: Any) -> Any:
        with ow.name_scope("outer"), ow.name_scope("inner"):
            return ow.tanh(x, name="squash")

    assert "outer/inner/squash" in {n.name for n in f.get_concrete_function(ow.TensorSpec([])).graph.nodes}


def test_variables_are_read_where_the_signature_wants_tensors():
    f = ow.function(lambda a: a * 2.0, input_signature=[ow.TensorSpec([])])
    assert f(ow.Variable(2.0)).numpy() == 4

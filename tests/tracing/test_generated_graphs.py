"""Graphs of generated programs: passes change no bit of what they compute, text holds all of them, and neither does
saving lose anything - forward graphs, those extended for a gradient, and gradients' own."""

import numpy as np
import pytest
from gradient_programs import POINTS, Made, programs, reset, tensors, total, v
from hypothesis import given, settings
from hypothesis import strategies as st
from test_generated_gradients import SETTINGS, close, first_order, second_order

import opwright as ow
from opwright.compiler.plan import Plan
from opwright.graph import Graph, parse, same, text
from opwright.graph.builder import verify
from opwright.ops import dispatch, registry
from opwright.ops.tensor_list import TensorList
from thorough import examples


def recorded(program):
    """The graph of a program as it was recorded, before any pass."""
    trace = program.trace
    outputs = [o.value_in_graph for o in program.outputs]
    return Graph(trace.builder.name, program.graph.inputs, trace.builder.nodes, outputs)


def run(graph, arrays):
    reset()
    results = dispatch.quietly(Plan(graph).run, *arrays)
    return list(map(np.asarray, flat(results))), v.numpy()


def flat(results):
    """Arrays, also those in lists, in lists of lists; what is not set as a number of its own."""
    for x in results:
        if isinstance(x, TensorList):
            yield from flat(x.elements())
        else:
            yield np.int8(0) if x is None else x


def same_bits(actual, expected):
    for x, y in zip(actual[0], expected[0], strict=True):
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes(), (x, y)
    assert actual[1].tobytes() == expected[1].tobytes()


def check_graph(program, arrays):
    raw, simplified = recorded(program), program.graph
    expected = run(raw, arrays)
    for graph in (raw, simplified):
        verify(graph, after="recording")
        same_bits(run(graph, arrays), expected)
        again = parse(text(graph), registry.get)
        verify(again, after="reading")
        assert same(again, graph)
        assert text(again) == text(graph)
        same_bits(run(again, arrays), expected)


def check(source, point, n):
    with Made(source) as program:
        arguments = tensors(point, n)
        whole = ow.function(lambda *args: first_order(program, args)).get_concrete_function(*arguments)
        traced = ow.function(program)
        first_order(traced, arguments)  # what differentiates it is made
        second_order(traced, arguments)
        concrete = traced.get_concrete_function(*arguments)
        for one in (whole, concrete):
            arrays = [x._array for x in (*arguments, *one.program.captured)]
            check_graph(one.program, arrays)
        for derivative in concrete.program._derivatives.values():
            check_graph(derivative.forward, arrays)
            reset()
            symbols = (*derivative.forward.outputs, *derivative.placeholders)
            results = derivative.forward.run(arguments, concrete.program.captured)
            values = (*results, *arguments, *concrete.program.captured)
            known = {id(symbol): value for symbol, value in zip(symbols, values, strict=True)}
            for backward in (built.program for built in derivative._backward.values()):
                if any(dy.dtype.is_handle for dy in backward.trace.inputs):
                    continue
                inputs = [np.ones(dy.shape.dims or (), dy.dtype.np) for dy in backward.trace.inputs]
                held = [known.get(id(c), c) for c in backward.captured]
                if all(hasattr(c, "_array") for c in held):
                    check_graph(backward, [*inputs, *(c._array for c in held)])


def check_saved(source, point, n, folder):
    with Made(source) as program:
        arguments = tensors(point, n)
        module = ow.Module()
        module.v = v
        module.f = ow.function(program)
        expected = first_order(module.f, arguments)
        twice = second_order(module.f, arguments)
        reset()
        ow.saved_model.save(module, folder)
    loaded = ow.saved_model.load(folder)

    def like(order, function):
        loaded.v.assign([0.6, -0.7])
        with ow.GradientTape() as outer:
            outer.watch(arguments[:3])
            with ow.GradientTape() as tape:
                tape.watch(arguments[:3])
                outputs = function(*arguments)
                y = total(outputs)
            grads = tape.gradient(y, [*arguments[:3], loaded.v], unconnected_gradients="zero")
            grads = [ow.convert_to_tensor(g) for g in grads]
            if order == 1:
                return [*outputs, *grads]
            mixed = ow.add_n([ow.reduce_sum(ow.sin(g + k)) for k, g in enumerate(grads)])
        actual = outer.gradient(mixed, [*arguments[:3], loaded.v], unconnected_gradients="zero")
        return [ow.convert_to_tensor(g) for g in actual]

    close(like(1, loaded.f), expected, "loaded")
    close(like(2, loaded.f), twice, "loaded, second order")
    whole = ow.function(lambda: like(1, loaded.f))
    close(whole(), expected, "loaded, in a function")


def test_an_output_of_a_branch_that_is_left_alone_has_its_name_in_text():
    @ow.function
    def f(x):
        _, b = ow.cond(x > 0.0, lambda: (x, x * x), lambda: (x, x))
        return b

    graph = f.get_concrete_function(ow.TensorSpec([], "float32")).optimized_graph
    verify(graph)
    assert same(parse(text(graph), registry.get), graph)


@settings(max_examples=examples(12), **SETTINGS)
@given(programs(), POINTS, st.integers(0, 3))
def test_passes_and_text_of_generated_programs(source, point, n):
    check(source, point, n)


@settings(max_examples=examples(8), **SETTINGS)
@given(programs(), POINTS, st.integers(0, 3))
def test_saved_programs_have_the_same_gradients(tmp_path_factory, source, point, n):
    check_saved(source, point, n, str(tmp_path_factory.mktemp("saved") / "model"))


@pytest.mark.slow
@settings(max_examples=300, **SETTINGS)
@given(programs(), POINTS, st.integers(0, 3))
def test_many_generated_programs(tmp_path_factory, source, point, n):
    check(source, point, n)
    check_saved(source, point, n, str(tmp_path_factory.mktemp("saved") / "model"))

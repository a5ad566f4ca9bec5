"""Test functions that leave jit_compile open: which call runs machine code, and that nothing but the call decides.

Lives here: schedules, shapes that come once, warnings, errors, switches, threads, forks.
Not here: what compiled functions compute (test_jit_compile.py).
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler import background, compile_schedule, native_plan, tiered_plan
from opwright.compiler.native import store

RNG = np.random.default_rng(3)


def array(*shape: int) -> Any:
    return ow.constant(RNG.standard_normal(shape, dtype=np.float32))


def row_sums(x: Any) -> Any:
    return ow.reduce_sum(ow.tanh(x) * 2.0, 1)


def plan_of(f: Any, *args: Any) -> Any:
    return f.get_concrete_function(*args).program.plan


def is_compiled(f: Any, *args: Any) -> bool:
    return bool(plan_of(f, *args)._compiled)


def bits_by_call(calls: int) -> list[bytes]:
    f, x = (
        ow.function(row_sums, autograph=False),
        ow.constant(np.linspace(-3, 3, 4096, dtype=np.float32).reshape(64, 64)),
    )
    return [f(x).numpy().tobytes() for _ in range(calls)]


def test_calls_alone_decide_which_result_is_the_first_of_machine_code(monkeypatch):
    with ow.flags(hot_calls=3):
        at_once = bits_by_call(6)
        monkeypatch.setattr(
            background.compiling, "submit", lambda work, urgent=False: background.Job(work, False)
        )  # never starts
        assert bits_by_call(6) == at_once
    assert len(set(at_once[:3])) == len(set(at_once[3:])) == 1


def test_a_call_that_needs_the_code_waits_for_it():
    f, x = ow.function(row_sums, autograph=False), array(8, 8)
    with ow.flags(hot_calls=2):
        for _ in range(2):
            np.testing.assert_allclose(f(x), row_sums(x), 1e-5, 1e-6)
            assert not is_compiled(f, x)
        np.testing.assert_allclose(f(x), row_sums(x), 1e-5, 1e-6)
        assert is_compiled(f, x)
        assert "native call" in str(plan_of(f, x)) or "run" in str(plan_of(f, x))


@pytest.mark.parametrize("switch", ["jit=False", "jit_compile=False"])
def test_switches(switch):
    f, x = ow.function(row_sums, autograph=False, jit_compile=None if switch == "jit=False" else False), array(4, 4)
    with ow.flags(hot_calls=1, jit=switch != "jit=False"):
        for _ in range(4):
            f(x)
        assert type(plan_of(f, x)).__name__ == "Plan"


def test_work_starts_the_compiler_earlier():
    def schedule(size: int) -> tuple[int, int]:
        program = ow.function(lambda x: ow.matmul(x, x) @ x, autograph=False).get_concrete_function(
            ow.TensorSpec([size, size])
        )
        return compile_schedule.schedule(program.program.graph)

    with ow.flags(hot_calls=0):  # by the schedule, whatever the environment says
        (few, few_switch), (many, many_switch) = schedule(1024), schedule(4)
    assert few == compile_schedule.FEWEST_CALLS
    assert 5 * few < many <= compile_schedule.MOST_CALLS
    assert few < few_switch < 20 < 1000 < many_switch <= many + compile_schedule.MOST_AWAITED


def test_steps_of_small_networks_are_compiled_within_a_short_training():
    """Estimates are of NumPy's speed: a step of a small segmentation network takes 2 to 4 ms."""
    layers = ow.keras.layers
    parts = [layers.Conv2D(8, 3, padding="same"), layers.Conv2DTranspose(2, 3, padding="same")]
    model = ow.keras.Sequential([ow.keras.Input((12, 12, 1)), *parts])

    @ow.function(input_signature=[ow.TensorSpec([32, 12, 12, 1])])
    def step(x):
        with ow.GradientTape() as tape:
            loss = ow.reduce_sum(model(x) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    with ow.flags(hot_calls=0):
        start, switch = compile_schedule.schedule(step.get_concrete_function().program.graph)
    assert start < 10
    assert switch < 250


def test_an_unknown_batch_counts_with_its_size():
    """A large batch is compiled as early as where its size is part of the signature."""

    def schedule(rows: int | None) -> tuple[int, int]:
        f = ow.function(lambda x: ow.tanh(ow.matmul(x, ow.ones([512, 512]))), autograph=False)
        plan = tiered_plan.TieredPlan(f.get_concrete_function(ow.TensorSpec([rows, 512])).program.graph)
        return plan._schedule([np.zeros([256, 512], np.float32)])

    assert schedule(None) == schedule(256)


def test_shapes_that_come_once_are_never_compiled(monkeypatch):
    monkeypatch.setattr(native_plan.NativePlan, "plan_for", lambda *_: pytest.fail("compiled"))
    f = ow.function(row_sums, input_signature=[ow.TensorSpec([None, 4])], autograph=False)
    with ow.flags(hot_calls=2):
        for size in range(1, 40):
            np.testing.assert_allclose(f(ow.ones([size, 4])), np.full(size, 8 * np.tanh(1.0)), 1e-5)


def test_a_short_last_batch_is_one_more_set_of_shapes():
    f = ow.function(row_sums, input_signature=[ow.TensorSpec([None, 4])], autograph=False)
    with ow.flags(hot_calls=2), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            for size in (32, 32, 32, 7):
                np.testing.assert_allclose(f(ow.ones([size, 4])), np.full(size, 8 * np.tanh(1.0)), 1e-5)
        assert len(plan_of(f)._compiled) == 2


def test_kernels_serve_other_sizes():
    """A batch or sequence of another length is planned again, and runs the machine code that is there."""

    def loss_gradient(x: Any, labels: Any, weights: Any) -> Any:
        with ow.GradientTape() as tape:
            tape.watch(weights)
            h = ow.matmul(x, weights)
            centered = h - ow.reduce_mean(h, -1, keepdims=True)
            h = centered / ow.sqrt(ow.reduce_mean(centered**2, -1, keepdims=True) + 1e-5)
            scores = ow.nn.softmax(ow.matmul(h, h, transpose_b=True) / 4.0)
            losses = ow.nn.sparse_softmax_cross_entropy_with_logits(labels, ow.matmul(scores, h))
            loss = ow.reduce_mean(losses)
        return loss, tape.gradient(loss, weights)

    weights = array(48, 16)
    f = ow.function(loss_gradient, reduce_retracing=True, jit_compile=True, autograph=False)
    forms = (48, 100, 110, 130, 150, 192, 300, 350, 390, 410, 420, 440)  # each height of tiles with each end of rows
    for size in (*forms, 240, 310, 400, 470):
        x, labels = array(size, 48), ow.constant(RNG.integers(0, 16, size))
        expected, loaded = loss_gradient(x, labels, weights), set(store._loaded)
        for compiled, eager in zip(f(x, labels, weights), expected):
            np.testing.assert_allclose(compiled, eager, 1e-4, 1e-5)
        assert size in forms or not set(store._loaded) - loaded, size
    assert "1 native calls" in f.experimental_get_compiler_ir(x, labels, weights)("report")


def test_further_shapes_are_scheduled_by_the_time_of_planning():
    f = ow.function(row_sums, input_signature=[ow.TensorSpec([None, 4])], autograph=False)
    plan, x = plan_of(f), ow.ones([100, 4])
    with ow.flags(hot_calls=0):
        start, switch = plan._schedule([np.ones([32, 4], np.float32)])
    with ow.flags(hot_calls=1):
        f(x), f(x)
    with ow.flags(hot_calls=0):
        later_start, later_switch = plan._schedule([np.ones([31, 4], np.float32)])
    assert compile_schedule.FEWEST_CALLS <= later_start <= start
    assert later_switch - later_start < (switch - start) / 5


def test_many_sets_of_shapes_warn_once_and_are_bounded(monkeypatch):
    monkeypatch.setattr(native_plan, "MOST", 10)
    f = ow.function(row_sums, input_signature=[ow.TensorSpec([None, 4])], autograph=False)
    with ow.flags(hot_calls=1), warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        for size in range(1, 16):
            for _ in range(2):
                np.testing.assert_allclose(f(ow.ones([size, 4])), np.full(size, 8 * np.tanh(1.0)), 1e-5)
        assert len(plan_of(f)._compiled) == 10
    assert [str(w.message)[:40] for w in raised] == ["row_sums has been compiled for 8 sets of"]


def test_plans_that_are_forgotten_warn_once(monkeypatch):
    monkeypatch.setattr(native_plan, "MOST", 3)
    f = ow.function(row_sums, input_signature=[ow.TensorSpec([None, 4])], autograph=False, jit_compile=True)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        for size in (1, 2, 3, 2, 4, 5, 1):
            np.testing.assert_allclose(f(ow.ones([size, 4])), np.full(size, 8 * np.tanh(1.0)), 1e-5)
    assert [str(w.message)[:40] for w in raised] == ["row_sums has been compiled for 3 sets of"]


def test_gradients_of_a_hot_function():
    x = array(16, 16)

    def grads(f: Any) -> list[np.ndarray]:
        results = []
        for _ in range(5):
            with ow.GradientTape() as tape:
                tape.watch(x)
                y = ow.reduce_sum(f(x) ** 2.0)
            results.append(tape.gradient(y, x).numpy())
        return results

    with ow.flags(hot_calls=2):
        hot = grads(ow.function(row_sums, autograph=False))
    np.testing.assert_allclose(hot, grads(row_sums), 1e-4, 1e-5)


def test_an_error_names_the_operator_before_and_after():
    f = ow.function(lambda x, i: ow.tanh(ow.gather(x, i)) + 1.0, autograph=False)
    x, good, bad = array(8, 4), ow.constant([1, 2]), ow.constant([1, 99])
    with ow.flags(hot_calls=2):
        for _ in range(4):
            with pytest.raises(ow.errors.InvalidArgumentError, match="Gather") as raised:
                f(x, bad)
            assert "99" in str(raised.value)
            f(x, good)


def test_what_cannot_be_compiled_goes_on_as_it_is(monkeypatch):
    def refuse(*_: Any) -> Any:
        raise RuntimeError("no target")

    monkeypatch.setattr(native_plan, "_compiled", refuse)
    f, x = ow.function(row_sums, autograph=False), array(4, 4)
    with ow.flags(hot_calls=1):
        f(x)
        with pytest.warns(RuntimeWarning, match="no target"):
            f(x)
        for _ in range(2):
            np.testing.assert_allclose(f(x), row_sums(x), 1e-6)


def test_a_fault_of_the_compiler_is_no_error_of_the_call(monkeypatch):
    def fail(*_: Any) -> Any:
        raise KeyError("a rule's own mistake")

    monkeypatch.setattr(native_plan, "_compiled", fail)
    f, x = ow.function(row_sums, autograph=False), array(4, 4)
    with ow.flags(hot_calls=1), warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        for _ in range(4):
            np.testing.assert_array_equal(f(x), row_sums(x))
    assert ["row_sums is not compiled: KeyError" in str(w.message) for w in raised] == [True]


def test_a_function_of_python_alone_stays():
    f = ow.function(lambda x: ow.py_function(lambda v: v, [x], ow.float32), autograph=False)
    with ow.flags(hot_calls=1):
        for _ in range(4):
            assert f(ow.constant(2.0)).numpy() == 2.0


def test_threads_that_call_at_once():
    f, x = ow.function(row_sums, autograph=False), array(64, 64)
    expected, wrong = row_sums(x).numpy(), list[int]()

    def work() -> None:
        wrong.extend(i for i in range(20) if not np.allclose(f(x).numpy(), expected, 1e-5, 1e-6))

    with ow.flags(hot_calls=5):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert is_compiled(f, x)


def test_a_fork_between_the_start_and_the_first_run():
    import os

    f, x = ow.function(row_sums, autograph=False), array(8, 8)
    expected = row_sums(x).numpy()
    with ow.flags(hot_calls=2):
        for _ in range(2):
            f(x)
        child = os.fork()
        if not child:
            os._exit(0 if all(np.allclose(f(x).numpy(), expected, 1e-5, 1e-6) for _ in range(3)) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for _ in range(3):
            np.testing.assert_allclose(f(x), expected, 1e-5, 1e-6)


def test_variables_are_updated_the_same():
    def losses(hot: int) -> list[float]:
        w = ow.Variable(ow.zeros([4, 3]))
        x, y = array_of(64, 4), array_of(64, 3)

        @ow.function
        def step() -> Any:
            with ow.GradientTape() as tape:
                loss = ow.reduce_mean((x @ w - y) ** 2.0)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss

        with ow.flags(hot_calls=hot):
            return [float(step()) for _ in range(10)]

    def array_of(*shape: int) -> Any:
        return ow.constant(np.random.default_rng(1).standard_normal(shape).astype(np.float32))

    np.testing.assert_allclose(losses(3), losses(100), 1e-5)


def test_a_first_call_estimates_nothing(monkeypatch):
    f, x = ow.function(row_sums, autograph=False), array(4, 4)
    with ow.flags(hot_calls=0), monkeypatch.context() as patched:
        patched.setattr(compile_schedule, "schedule", lambda *_: pytest.fail("estimated"))
        np.testing.assert_allclose(f(x), row_sums(x), 1e-6)
    with ow.flags(hot_calls=1):
        f(x)
        assert is_compiled(f, x)


def test_calls_before_the_first_of_machine_code_share_the_wait_for_a_late_compiler(monkeypatch):
    """No call waits long, and which of them runs machine code does not follow from the waits."""
    f, x = ow.function(row_sums, autograph=False), array(8, 8)
    goes_on, waited = threading.Event(), []
    plan_for, wait = native_plan.NativePlan.plan_for, background.Job.wait

    def late(self: Any, shapes: Any) -> Any:
        store._not_found += 1
        assert goes_on.wait(60)
        return plan_for(self, shapes)

    def timed_wait(self: Any, seconds: float | None = None) -> None:
        waited.append(seconds)
        if seconds is None:
            goes_on.set()
            wait(self)

    monkeypatch.setattr(native_plan.NativePlan, "plan_for", late)
    monkeypatch.setattr(background.Job, "wait", timed_wait)
    monkeypatch.setattr(compile_schedule, "schedule", lambda *_: (2, 12))
    monkeypatch.setattr(compile_schedule, "patience", lambda *_: 0.5)
    plan = plan_of(f, x)
    with ow.flags(hot_calls=0):
        f(x), f(x)
        started = store.num_not_found()
        while plan._candidates[()].began is None or store.num_not_found() == started:
            threading.Event().wait(0.001)
        for call in range(3, 12):
            f(x)
            assert len(waited) == call - 3
            assert not is_compiled(f, x)
        f(x)
    assert is_compiled(f, x)
    assert waited == [0.5] * 8 + [None]


def test_calls_wait_for_no_compiler_that_finds_all_kernels(monkeypatch):
    f, x = ow.function(row_sums, autograph=False), array(8, 8)
    with ow.flags(hot_calls=1):
        f(x), f(x)  # the kernels are there
    again = ow.function(row_sums, autograph=False)
    monkeypatch.setattr(compile_schedule, "schedule", lambda *_: (2, 12))
    monkeypatch.setattr(compile_schedule, "patience", lambda *_: pytest.fail("waited"))
    with ow.flags(hot_calls=0):
        for _ in range(12):
            again(x)
    assert is_compiled(again, x)


def test_the_time_that_is_missing_is_shared():
    shares, elapsed = [], 0.0
    for calls in range(10, 1, -1):
        shares.append(compile_schedule.patience(3.0, elapsed, calls, 0.1))
        elapsed += shares[-1] + 0.1
    np.testing.assert_allclose(shares, [0.21] * 9)
    assert compile_schedule.patience(3.0, 4.0, 5, 0.05) == 0.06  # it takes longer than expected
    assert compile_schedule.patience(3.0, 1.0, 100, 0.05) == 0  # it will be there


@pytest.mark.parametrize("op", ["conv2d", "depthwise_conv2d", "conv2d_transpose"])
def test_estimates_count_the_products_of_convolutions(op):
    x, channels = ow.TensorSpec([2, 12, 10, 4]), 6
    filters = [3, 5, 4, channels] if op != "conv2d_transpose" else [3, 5, channels, 4]
    call = {
        "conv2d": lambda x, w: ow.nn.conv2d(x, w, 1, "SAME"),
        "depthwise_conv2d": lambda x, w: ow.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
        "conv2d_transpose": lambda x, w: ow.nn.conv2d_transpose(x, w, [2, 12, 10, channels], 1, "SAME"),
    }[op]
    graph = ow.function(call, autograph=False).get_concrete_function(x, ow.TensorSpec(filters)).program.graph
    (node,) = [node for node in graph.nodes if "filters" in node.op.input_names or "filter" in node.op.input_names]
    products = 2 * 12 * 10 * 3 * 5 * 4 * channels
    assert round(compile_schedule._multiplications(node, 1)) == products
    assert products / 5_000 < compile_schedule._products_time(node, 1) < products / 500


def test_loops_count_with_their_iterations():
    def powers(n: int) -> Any:
        def run(x: Any) -> Any:
            for _ in ow.range(n):
                x = ow.matmul(x, x)
            return x

        return ow.function(run).get_concrete_function(ow.TensorSpec([4, 4])).program.graph

    few, many = (compile_schedule.call_time(powers(n)) for n in (10, 1000))
    assert 50 < many / few < 100

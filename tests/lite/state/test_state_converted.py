"""Functions that write variables, converted: both interpreters give what the function gives, call after call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_kit import op_names
from state_harness import Call, answers, assert_agree, assert_equal, converted, official, ours

import opwright as ow
from opwright.lite.convert.errors import ConverterError
from opwright.lite.format import Model, versions
from thorough import sampled

rng = np.random.default_rng(5)
F32 = np.float32


def f32(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def spec(shape: Any = (), dtype: Any = ow.float32, name: str | None = None) -> ow.TensorSpec:
    return ow.TensorSpec(shape, dtype, name)


def check(
    functions: dict[str, tuple[Any, list[Any]]], calls: list[Call], delegates: bool = True, **settings: Any
) -> bytes:
    """functions: by signature, what is traced and for which specs. The functions themselves run last: they write the
    variables that the files begin with."""
    concrete = {key: f.get_concrete_function(*specs) for key, (f, specs) in functions.items()}
    content = converted(*concrete.values(), **settings)

    def eager() -> Any:
        results = []
        for key, inputs in calls:
            result = functions[key][0](**{k: ow.constant(v) for k, v in inputs.items()})
            result = result if isinstance(result, dict) else {"output_0": result}
            results.append({k: np.asarray(v.numpy()) for k, v in result.items()})
        return results

    if len(functions) == 1:
        only = next(iter(functions))
        signed = [("serving_default", inputs) for key, inputs in calls if key == only]
    else:
        signed = calls
    assert_agree(content, signed, eager, delegates)
    return content


def names(content: bytes, subgraph: int = 0) -> str:
    return " ".join(op_names(content, subgraph))


class Counter(ow.Module):
    """Some variables, and functions that share them."""

    def __init__(self) -> None:
        self.count = ow.Variable(10.0, name="count")
        self.frozen = ow.Variable([1.0, 2.0], name="frozen")
        self.row = ow.Variable(np.ones([2, 3], np.float32), name="row")

    @ow.function
    def increment(self, x: Any) -> Any:
        self.count.assign_add(x)
        return {"scaled": self.count * self.frozen}

    @ow.function
    def read(self) -> Any:
        return {"count": self.count.read_value(), "frozen": self.frozen.read_value()}

    @ow.function
    def order(self, x: Any) -> Any:
        before = self.row.read_value()
        self.row.assign(x)
        between = self.row.read_value()
        self.row.assign_sub(x * 0.5)
        return {"before": before, "between": between, "after": self.row + 0.0}

    @ow.function
    def nothing_read(self, x: Any) -> Any:
        self.count.assign(x)

    @ow.function
    def loop(self, n: Any) -> Any:
        for _ in ow.range(n):
            self.count.assign_add(self.frozen[1])
        return self.count.read_value()

    @ow.function
    def branch(self, p: Any) -> Any:
        if p:
            self.count.assign(self.count * 2.0)
        else:
            self.count.assign_sub(self.frozen[0])
        return self.count.read_value()

    @ow.function
    def nested(self, n: Any, p: Any) -> Any:
        total = ow.constant(0.0)
        for i in ow.range(n):
            if p and i > 0:
                self.count.assign_add(1.0)
            total += self.count
        return {"total": total, "count": self.count.read_value()}


def test_signatures_share_a_variable() -> None:
    m = Counter()
    functions = {"increment": (m.increment, [spec(name="x")]), "read": (m.read, [])}
    calls = [("read", {}), ("increment", {"x": F32(1)}), ("read", {}), ("increment", {"x": F32(2)}), ("read", {})]
    content = check(functions, calls)
    assert names(content, 0) == "CALL_ONCE VAR_HANDLE READ_VARIABLE ADD ASSIGN_VARIABLE READ_VARIABLE MUL"
    assert names(content, 1) == "CALL_ONCE VAR_HANDLE READ_VARIABLE"
    assert names(content, 2) == "VAR_HANDLE ASSIGN_VARIABLE"


def test_the_file_keeps_the_values_of_when_it_was_converted() -> None:
    m = Counter()
    concrete = m.read.get_concrete_function(), m.increment.get_concrete_function(spec(name="x"))
    first = converted(*concrete)
    assert first == converted(*concrete)
    m.count.assign(3.0)
    assert float(answers(ours(first), [("read", {})])[0]["count"]) == 10
    assert float(answers(ours(converted(*concrete)), [("read", {})])[0]["count"]) == 3


CASES: dict[str, tuple[str, list[Any], list[dict[str, Any]]]] = {
    "order": ("order", [spec([2, 3], name="x")], [{"x": f32(2, 3)}, {"x": f32(2, 3)}]),
    "loop": ("loop", [spec((), ow.int32, "n")], [{"n": np.int32(n)} for n in (3, 0, 1)]),
    "branch": ("branch", [spec((), ow.bool, "p")], [{"p": np.bool_(p)} for p in (1, 0, 1)]),
    "nested": (
        "nested",
        [spec((), ow.int32, "n"), spec((), ow.bool, "p")],
        [{"n": np.int32(3), "p": np.bool_(p)} for p in (1, 0, 1)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_effects_in_program_order(name: str) -> None:
    method, specs, inputs = CASES[name]
    m = Counter()
    check({"f": (getattr(m, method), specs)}, [("f", g) for g in inputs])


def test_a_write_nobody_reads_is_done() -> None:
    m = Counter()
    content = converted(m.nothing_read.get_concrete_function(spec(name="x")), m.read.get_concrete_function())
    calls = [("nothing_read", {"x": F32(4)}), ("read", {})]
    assert_agree(content, calls)
    assert float(answers(ours(content), calls)[1]["count"]) == 4


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
    ],
)
def test_dtypes(dtype: str) -> None:
    v = ow.Variable(np.zeros(2, dtype))

    @ow.function
    def swap(x: Any) -> Any:
        old = v.read_value()
        v.assign(x)
        return old

    check({"f": (swap, [spec([2], dtype, "x")])}, [("f", {"x": np.array(x, dtype)}) for x in ([1, 0], [1, 1], [0, 1])])


def test_variables_of_one_name_are_two() -> None:
    a, b = ow.Variable(1.0, name="v"), ow.Variable(2.0, name="v")

    @ow.function
    def swap() -> Any:
        x = a.read_value()
        a.assign(b)
        b.assign(x * 3.0)
        return {"a": a.read_value(), "b": b.read_value()}

    check({"f": (swap, [])}, [("f", {})] * 3)


def test_shapes_that_change() -> None:
    v = ow.Variable(np.zeros([1, 2], np.float32), shape=ow.TensorShape([None, 2]))

    @ow.function
    def grow(x: Any) -> Any:
        v.assign(ow.concat([v, x], 0))
        return v * 2.0

    # XNNPACK, as the official interpreter applies it, takes the first shape for all time
    check({"f": (grow, [spec([None, 2], name="x")])}, [("f", {"x": f32(n, 2)}) for n in (1, 3, 2)], delegates=False)


@pytest.mark.parametrize("kind", ["add", "sub", "update", "max", "min"])
def test_rows(kind: str) -> None:
    v = ow.Variable(np.full([4, 2], 0.5, np.float32))

    @ow.function
    def change(i: Any, x: Any) -> Any:
        getattr(v, f"scatter_{kind}")(ow.IndexedSlices(x, i))
        return v.read_value()

    calls = [("f", {"i": np.array(i, np.int32), "x": f32(3, 2)}) for i in ([0, 2, 3], [1, 1, 2], [3, 3, 3])]
    check({"f": (change, [spec([3], ow.int32, "i"), spec([3, 2], name="x")])}, calls)


def test_rows_by_a_scalar() -> None:
    v = ow.Variable(np.zeros([4, 2], np.float32))

    @ow.function
    def change(i: Any) -> Any:
        v.scatter_add(ow.IndexedSlices(ow.constant(2.0), i))
        return v.read_value()

    check({"f": (change, [spec([2], ow.int32, "i")])}, [("f", {"i": np.array([3, 3], np.int32)})] * 2)


# ---- training on the device ------------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {},
    "SGD momentum": {"momentum": 0.9},
    "SGD nesterov": {"momentum": 0.9, "nesterov": True},
    "Adam": {},
    "Adam amsgrad": {"amsgrad": True},
    "AdamW": {},
    "Adamax": {},
    "Nadam": {},
    "Adagrad": {},
    "Adadelta": {},
    "RMSprop": {},
    "RMSprop centered": {"centered": True, "momentum": 0.9},
    "Ftrl": {},
    "Lion": {},
}
X, Y = f32(4, 3), f32(4, 2)


@pytest.mark.parametrize("name", sampled(OPTIMIZERS, 8))
def test_train_and_infer(name: str) -> None:
    ow.random.set_seed(1)
    layers = ow.keras.layers
    model = ow.keras.Sequential([layers.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(2)])
    optimizer = getattr(ow.keras.optimizers, name.partition(" ")[0])(0.05, **OPTIMIZERS[name])
    optimizer.build(model.trainable_variables)

    @ow.function
    def train(x: Any, y: Any) -> Any:
        with ow.GradientTape() as tape:
            loss = ow.reduce_mean(ow.math.square(model(x) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return {"loss": loss}

    @ow.function
    def infer(x: Any) -> Any:
        return {"y": model(x)}

    train_call, infer_call = ("train", {"x": X, "y": Y}), ("infer", {"x": X})
    size = [4] if name != "SGD" else [None]
    content = check(
        {
            "train": (train, [spec([*size, 3], name="x"), spec([*size, 2], name="y")]),
            "infer": (infer, [spec([*size, 3], name="x")]),
        },
        [infer_call, train_call, train_call, infer_call, train_call],
    )
    losses = [float(a["loss"]) for a in answers(official(content), [train_call] * 5)]
    assert losses[-1] < losses[0] or name == "Ftrl"


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_train_an_embedding(name: str) -> None:
    layers = ow.keras.layers
    model = ow.keras.Sequential([layers.Input((3,), dtype="int32"), layers.Embedding(5, 4), layers.Flatten()])
    optimizer = getattr(ow.keras.optimizers, name)(0.05)
    optimizer.build(model.trainable_variables)

    @ow.function
    def train(x: Any) -> Any:
        with ow.GradientTape() as tape:
            loss = ow.reduce_mean(ow.math.square(model(x) - 1.0))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return {"loss": loss}

    calls = [("f", {"x": np.array(x, np.int32)}) for x in ([[0, 1, 1], [4, 4, 4]], [[2, 0, 0], [1, 4, 3]])]
    check({"f": (train, [spec([2, 3], ow.int32, "x")])}, calls * 2)


# ---- what is refused -------------------------------------------------------------------------------------------------


def refusal(change: Any, initial: Any = 0.0, **settings: Any) -> str:
    v = ow.Variable(initial, name="counter")

    @ow.function
    def f() -> Any:
        change(v)
        return v.read_value()

    with pytest.raises(ConverterError) as caught:
        converted(f.get_concrete_function(), **settings)
    return str(caught.value)


def test_refused_where_the_setting_reports_it() -> None:
    text = refusal(lambda v: v.assign_add(1.0), experimental_enable_resource_variables=False)
    assert "changes the variable counter" in text
    assert "experimental_enable_resource_variables = True" in text
    assert "test_state_converted.py" in text


def test_strings_are_refused() -> None:
    assert "which holds strings" in refusal(lambda v: v.assign(["b"]), np.array([b"a"], object))


def test_products_of_rows_are_refused_with_ways_out() -> None:
    slices = ow.IndexedSlices(ow.constant([2.0]), ow.constant([0]))
    text = refusal(lambda v: v.scatter_mul(slices), np.ones(2, np.float32))
    assert "ScatterMulVariable" in text
    assert "scatter_update" in text


def test_what_is_only_read_is_a_constant_even_inside_loops() -> None:
    w = ow.Variable([2.0, 3.0])

    @ow.function
    def f(n: Any) -> Any:
        x = ow.ones([2])
        for _ in ow.range(n):
            x = x * w
        return x

    content = check({"f": (f, [spec((), ow.int32, "n")])}, [("f", {"n": np.int32(3)})])
    model = Model.read(content)
    assert not {"VAR_HANDLE", "CALL_ONCE"} & {versions.op_name(code) for code in model.operator_codes}
    assert_equal(
        answers(ours(content), [("serving_default", {"n": np.int32(2)})]), [{"output_0": np.array([4, 9], np.float32)}]
    )

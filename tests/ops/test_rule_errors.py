"""Errors in the rules of user-defined operators: the operator and the rule are named in every way of running."""

import itertools
import pickle
import re

import numpy as np
import pytest

import opwright as ow
from opwright import lite

EXCEPTIONS = (
    KeyError("q"),
    IndexError("i"),
    LookupError("l"),
    RuntimeError("r"),
    ValueError("v"),
    TypeError("t"),
    AttributeError("a"),
    ZeroDivisionError("z"),
    ArithmeticError("m"),
    AssertionError("s"),
    MemoryError("e"),
    NotImplementedError("n"),
    OSError(2, "no such file"),
    StopIteration("i"),
    UnicodeError("u"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    Exception("x"),
    np.linalg.LinAlgError("singular"),
)
COUNT = itertools.count()


def raising(error):
    def rule(op, *args):
        raise error

    return rule


def define(**body):
    name = f"RuleErrors{next(COUNT)}"
    parts = {
        "x": ow.Input(ow.floating),
        "y": ow.Output(like="x"),
        "compute": lambda op, x: x * 1,
        "gradient": lambda op, dy: dy,
    }
    return ow.operator(name=name)(type(name, (), {**parts, **body}))


def on_scope(op, x):
    scope = ow.Scope()
    scope.var("x").set(x)
    op.on({"x": "x"}, {"y": "y"}).run(scope, ow.CPUPlace())


def converted(op, shape=(2,)):
    model = ow.function(lambda x: op(x) + 1.0, input_signature=[ow.TensorSpec(shape, ow.float32)])
    converter = lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()])
    converter.allow_custom_ops = True
    return converter.convert()


def interpret(op, content):
    interpreter = lite.Interpreter(model_content=content, custom_ops=[op])
    interpreter.allocate_tensors()
    interpreter.invoke()


RUNS = {
    "eager": lambda op, x: op(ow.constant(x)),
    "traced": lambda op, x: ow.function(lambda v: op(v) + 1.0)(ow.constant(x)),
    "jit": lambda op, x: ow.function(lambda v: op(v) + 1.0, jit_compile=True)(ow.constant(x)),
    "in a loop": lambda op, x: ow.function(
        lambda v: ow.while_loop(lambda i, w: i < 2, lambda i, w: (i + 1, op(w)), (ow.constant(0), v))
    )(ow.constant(x)),
    "scope": on_scope,
}
GRADIENTS = {"eager": lambda f: f, "traced": ow.function}


@pytest.mark.parametrize("way", RUNS)
@pytest.mark.parametrize("rule", ["infer", "compute"])
@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda e: type(e).__name__)
def test_an_exception_of_a_rule_names_operator_and_rule(way, rule, error):
    op = define(**{rule: raising(error)})
    with pytest.raises(ow.errors.OpError) as caught:
        RUNS[way](op, np.float32([1, 2]))
    text = str(caught.value)
    assert text.startswith(op.name)
    assert f"{rule} raised {type(error).__name__}: {error}" in text
    assert caught.value.op == op.name
    builtin = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    if not isinstance(error, (StopIteration, UnicodeDecodeError)):  # what ends generators; takes five arguments
        assert isinstance(caught.value, builtin)


@pytest.mark.parametrize("way", GRADIENTS)
@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda e: type(e).__name__)
def test_an_exception_of_a_gradient_names_operator_and_rule(way, error):
    op = define(gradient=raising(error))

    def gradient(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = op(x)
        return tape.gradient(y, x)

    with pytest.raises(ow.errors.OpError, match=f"^{op.name}.*gradient raised {type(error).__name__}"):
        GRADIENTS[way](gradient)(ow.constant([1.0]))


@pytest.mark.parametrize("rule", ["compute", "infer"])
def test_an_exception_of_a_rule_is_named_in_the_interpreter(rule):
    wrong = []  # converted while all is well

    def infer(op):
        if wrong and rule == "infer":
            raise KeyError("q")
        return op.x.spec

    def compute(op, x):
        if wrong and rule == "compute":
            raise KeyError("q")
        return x * 1

    op = define(infer=infer, compute=compute)
    content = converted(op)
    interpret(op, content)
    wrong.append(True)
    with pytest.raises(ow.errors.OpError, match=rf"^{op.name}(?s:.*)KeyError: 'q'"):
        interpret(op, content)


@pytest.mark.parametrize(
    ("rule", "run"),
    [
        ("expected_kernel_key", lambda op: ow.ops.explain(op, [np.float32([1])])),
        ("infer_kinds", lambda op: op.infer_kinds(["dense"])),
        ("lod", lambda op: op(ow.create_lod_tensor(np.float32([[1], [2]]), [[1, 1]]))),
        ("version_needed", lambda op: converted(op)),
    ],
)
def test_an_exception_of_another_rule_names_operator_and_rule(rule, run):
    op = define(**{rule: raising(KeyError("q"))})
    with pytest.raises(ow.errors.OpError, match=rf"{op.name}(?s:.*){rule} raised KeyError: 'q'"):
        run(op)


def test_a_failing_kernel_is_named_by_its_key():
    op = define()
    ow.ops.register_kernel(op, dtype=ow.float32)(raising(RuntimeError("boom")))
    for way in ("eager", "traced", "scope"):
        with pytest.raises(RuntimeError, match=rf"^{op.name}.*the kernel \(cpu, float32, any layout, foreign\) raised"):
            RUNS[way](op, np.float32([1, 2]))
    other = define()
    ow.ops.register_kernel(other)(lambda op, x: x[:1] * 1)
    for way in ("eager", "scope"):
        with pytest.raises(ow.errors.DefinitionError, match=r"the kernel \(cpu, .*\) gave another shape"):
            RUNS[way](other, np.float32([1, 2]))


def test_an_error_of_an_operator_called_by_a_rule_names_both():
    op = define(gradient=lambda op, dy: ow.matmul(dy, dy))
    x = ow.constant([[1.0, 2.0, 3.0]])
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = op(x)
    with pytest.raises(ow.errors.InvalidArgumentError, match=rf"^MatMul(?s:.*)in +gradient of {op.name}"):
        tape.gradient(y, x)


def test_errors_of_two_classes_are_pickled():
    with pytest.raises(KeyError) as caught:
        define(infer=raising(KeyError("q")))(ow.constant([1.0]))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert (str(again), again.op) == (str(caught.value), caught.value.op)


@pytest.mark.parametrize("way", ["eager", "traced", "scope"])
@pytest.mark.parametrize(
    ("offsets", "words"),
    [([4, 2, 0], "starts at 4"), ([0, 2, 9], "ends at 9"), ([0, 3, 2, 4], "falls from 3 to 2"), ([0], "has 1 offsets")],
)
def test_offsets_that_are_no_lod_are_refused_where_they_are_computed(way, offsets, words):
    op = define(
        x=ow.Input(ow.floating),
        offsets=ow.Input(ow.int64, lod_of="x"),
        y=ow.Output(like="x"),
        new=ow.Output(dtype=ow.int64, lod_of="y"),
        lod="changed",
        gradient=None,
        infer=lambda op: (op.x.spec, ow.TensorSpec([None], ow.int64)),
        compute=lambda op, x, given: (x * 1, np.array(offsets)),
    )
    x = ow.create_lod_tensor(np.float32([[1], [2], [3], [4]]), [[2, 2]])

    def run():
        if way == "scope":
            scope = ow.Scope()
            scope.var("x").set(x)
            op.on({"x": "x"}, {"y": "y"}).run(scope, ow.CPUPlace())
        elif way == "traced":
            ow.function(op)(x)
        else:
            op(x)

    with pytest.raises(ow.errors.DefinitionError, match=rf"^{op.name}.*compute gave offsets of 'y' .*{words}"):
        run()


def test_offsets_must_fit_the_level_above():
    op = define(
        x=ow.Input(ow.floating),
        offsets=ow.Input(ow.int64, lod_of="x"),
        y=ow.Output(like="x"),
        new=ow.Output(dtype=ow.int64, lod_of="y"),
        lod="changed",
        gradient=None,
        infer=lambda op: (op.x.spec, ow.TensorSpec([None], ow.int64)),
        compute=lambda op, x, inputs: (x * 1, np.array([0, len(x)])),
    )
    x = ow.create_lod_tensor(np.float32([[1], [2], [3]]), [[1, 1], [2, 1]])  # two sequences of one each
    with pytest.raises(ow.errors.DefinitionError, match=r"level 0 ends at 2, but level 1 has 1 sequences"):
        op(x)
    above = define(lod="above", infer=lambda op: op.x.spec, compute=lambda op, x: x * 1)
    with pytest.raises(ow.errors.DefinitionError, match=r"not a LoD: level 0 ends at 2, but there are 3 rows"):
        above(x)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "Adagrad", "RMSprop", "Ftrl", "Nadam", "AdamW", "Adamax"])
@pytest.mark.parametrize("shape", [[4, 1], [2, 1], [3, 2]])
@pytest.mark.parametrize("traced", [False, True])
def test_optimizers_compare_the_dense_shape_of_sparse_rows(optimizer, shape, traced):
    table = ow.Variable(np.zeros((3, 1), np.float32))
    step = getattr(ow.optimizers, optimizer)(1.0)
    step.build([table])

    def run():
        rows = ow.IndexedSlices(ow.ones([1, shape[1]]), ow.constant([1]), dense_shape=ow.constant(shape))
        step.apply([rows], [table])

    with pytest.raises(ow.errors.InvalidArgumentError, match=r"has another dense shape(?s:.*)found.*\(3, 1\)"):
        (ow.function(run) if traced else run)()
    assert not table.numpy().any()


def test_definition_errors_are_invalid_arguments():
    assert issubclass(ow.errors.DefinitionError, ow.errors.InvalidArgumentError)
    assert re.search("violates its contract", ow.errors.DefinitionError.__doc__)

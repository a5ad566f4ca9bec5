"""`print` and `strings.format`: what is written, when, and in which order. Runs against TensorFlow too."""

import sys

import numpy as np
import pytest


def printed(capfd, tf, *values, **options):
    tf.print(*values, output_stream=sys.stdout, **options)
    sys.stdout.flush()
    return capfd.readouterr().out


INTEGERS = [
    ((3,), None, "[0 1 2]\n"),
    ((6,), None, "[0 1 2 3 4 5]\n"),
    ((7,), None, "[0 1 2 ... 4 5 6]\n"),
    ((10,), 1, "[0 ... 9]\n"),
    ((10,), -1, "[0 1 2 3 4 5 6 7 8 9]\n"),
    ((2, 2), None, "[[0 1]\n [2 3]]\n"),
    ((2, 2, 2), None, "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]\n"),
    ((8, 1), None, "[[0]\n [1]\n [2]\n ...\n [5]\n [6]\n [7]]\n"),
    ((), None, "0\n"),
    ((0,), None, "[]\n"),
    ((0, 2), None, "[]\n"),
]


@pytest.mark.parametrize(("shape", "summarize", "expected"), INTEGERS)
def test_integers(tf, capfd, shape, summarize, expected):
    value = tf.reshape(tf.range(int(np.prod(shape))), shape)
    options = {} if summarize is None else {"summarize": summarize}
    assert printed(capfd, tf, value, **options) == expected


FLOATS = [
    ("float32", 0.682211161, "0.682211161"),
    ("float32", 1 / 3, "0.333333343"),
    ("float32", 1e-5, "1e-05"),
    ("float32", 123456789.0, "123456792"),
    ("float32", 1e20, "1e+20"),
    ("float32", np.inf, "inf"),
    ("float32", -np.inf, "-inf"),
    ("float32", np.nan, "nan"),
    ("float32", -0.0, "-0"),
    ("float32", 1.0, "1"),
    ("float32", 1e5, "100000"),
    ("float32", 1e6, "1e+06"),
    ("float32", 0.1, "0.1"),
    ("float32", np.pi, "3.14159274"),
    ("float32", 3.4028235e38, "3.40282347e+38"),
    ("float32", 1.17549435e-38, "1.17549435e-38"),
    ("float64", 1 / 3, "0.33333333333333331"),
    ("float64", 0.1, "0.1"),
    ("float64", 1e15, "1e+15"),
    ("float64", 123456789.0, "123456789"),
    ("float64", 1e6, "1000000"),
    ("float64", np.pi, "3.1415926535897931"),
    ("float16", 0.1, "0.0999755859"),
    ("float16", 1e-5, "1.00135803e-05"),
    ("float16", 65504, "65504"),
    ("bfloat16", 0.1, "0.100097656"),
    ("bfloat16", 3.14159, "3.140625"),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), FLOATS)
def test_floats(tf, capfd, dtype, value, expected):
    assert printed(capfd, tf, tf.cast(tf.constant(value, tf.float64), dtype)) == expected + "\n"


def test_random_floats_read_back(tf, capfd):
    """Nine significant digits at most, and they mean the same number."""
    values = np.random.default_rng(0).normal(size=200).astype(np.float32) * np.float32(10) ** (np.arange(200) % 70 - 35)
    shown = printed(capfd, tf, tf.constant(values, tf.float32), summarize=-1).strip("[]\n").split()
    assert [np.float32(s) for s in shown] == values.astype(np.float32).tolist()
    assert max(len(s.partition("e")[0].strip("-").replace(".", "").lstrip("0")) for s in shown) <= 9


def test_other_dtypes(tf, capfd):
    assert printed(capfd, tf, tf.constant([True, False]), tf.constant(True)) == "[1 0] 1\n"
    assert printed(capfd, tf, tf.constant([1, 255], tf.uint8), tf.constant(-3, tf.int8)) == "[1 255] -3\n"
    assert printed(capfd, tf, tf.constant(["a", 'q"x', "é\n"]), 1) == '["a" "q\\"x" "é\\n"] 1\n'
    assert printed(capfd, tf, tf.constant("bare, if alone")) == "bare, if alone\n"


def test_python_values(tf, capfd):
    values = ("text", 1, 1.5, True, None, [1, 2], (1, "s"), {"b": 1, "a": 2}, [], {}, ())
    assert printed(capfd, tf, *values) == "text 1 1.5 True None [1, 2] (1, 's') {'a': 2, 'b': 1} [] {} ()\n"
    assert printed(capfd, tf, "{} braces {0} %s", tf.constant(1)) == "{} braces {0} %s 1\n"


def test_structures(tf, capfd):
    structure = {"b": (tf.constant(1), "x"), "a": [tf.constant([1, 2]), {"c": tf.constant(["s"])}]}
    assert printed(capfd, tf, structure) == "{'a': [[1 2], {'c': [\"s\"]}], 'b': (1, 'x')}\n"


def test_separators(tf, capfd):
    assert printed(capfd, tf, 1, tf.constant(2), "x", sep="|", end="!") == "1|2|x!"
    assert printed(capfd, tf) == "\n"


def test_long_structures_are_broken_up_as_pprint_does(tf, capfd):
    values = {f"key_{i}": tf.constant([i]) for i in range(12)}
    assert printed(capfd, tf, values).startswith("{'key_0': [0],\n 'key_1': [1],\n 'key_10': [10]")


def test_wrong_arguments(tf):
    with pytest.raises(ValueError, match=r"Unrecognized keyword arguments for tf.print: \{'foo': 2\}"):
        tf.print(1, foo=2)
    with pytest.raises(ValueError, match="Unsupported output stream"):
        tf.print(1, output_stream="nowhere")


def test_stderr_is_the_default(tf, capfd):
    tf.print("told")
    sys.stderr.flush()
    assert "told\n" in capfd.readouterr().err


def test_to_a_file(tf, tmp_path):
    file = tmp_path / "log.txt"
    for i in range(2):
        tf.print("line", tf.constant(i), output_stream=f"file://{file}")
    assert file.read_text() == "line 0\nline 1\n"


@pytest.mark.ours
def test_to_the_log(tf, caplog):
    import logging

    with caplog.at_level(logging.INFO, "opwright"):
        tf.print("a", tf.constant(1), output_stream=logging.info)
        tf.print("b", output_stream=logging.WARNING)
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [("INFO", "a 1"), ("WARNING", "b")]


def test_in_a_function_each_run_in_program_order(tf, capfd):
    state = tf.Variable(0)
    traced = []

    @tf.function
    def f(x):
        traced.append(1)
        tf.print("before", x, {"x": x}, state, output_stream=sys.stdout)
        state.assign_add(1)
        tf.print("after", state, tf.shape(x), output_stream=sys.stdout)
        return x

    for _ in range(2):
        f(tf.constant([1.0, 2.5]))
    sys.stdout.flush()
    assert capfd.readouterr().out == (
        "before [1 2.5] {'x': [1 2.5]} 0\nafter 1 [2]\nbefore [1 2.5] {'x': [1 2.5]} 1\nafter 2 [2]\n"
    )
    assert len(traced) == 1


def test_python_objects_are_those_of_the_trace(tf, capfd):
    box = ["first"]

    @tf.function
    def f():
        tf.print(box, output_stream=sys.stdout)

    f()
    box[0] = "second"
    f()
    sys.stdout.flush()
    assert capfd.readouterr().out == "['first']\n['first']\n"


def test_format(tf):
    assert tf.strings.format("a {} b {}", (tf.range(10), tf.constant(["x"]))).numpy() == b'a [0 1 2 ... 7 8 9] b ["x"]'
    assert tf.strings.format("{}", tf.range(10), summarize=1).numpy() == b"[0 ... 9]"
    assert tf.strings.format("x % y", [tf.range(3)], placeholder="%").numpy() == b"x [0 1 2] y"
    assert tf.strings.format("{}", tf.constant("str")).numpy() == b'"str"'
    with pytest.raises(ValueError, match="The template expects 2 tensors, but the inputs only has 1"):
        tf.strings.format("{} {}", [tf.range(2)])


def test_format_in_a_function(tf):
    f = tf.function(lambda x: tf.strings.format("<{}>", x))
    assert f(tf.constant([1.5, 2.0])).numpy() == b"<[1.5 2]>"
    assert f(tf.constant([[1.5]])).numpy() == b"<[[1.5]]>"


def test_sparse_rows_as_the_tensor_they_mean(tf, capfd):
    rows = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]), tf.constant([3]))
    assert printed(capfd, tf, rows) == "[1 0 0]\n"

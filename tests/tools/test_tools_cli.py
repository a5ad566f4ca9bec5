"""The command line as a whole: help, entry points, colours; demo, diagnostics, explain."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tools_harness import opwright, result_of

import opwright as ow
from opwright.tools import diagnostics
from opwright.tools.cli import cli
from opwright.tools.diagnostics import CODES

SOURCES = Path(ow.__file__).parent


def commands(group=cli, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def command_line(*arguments, **environment):
    """`python -m opwright` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "opwright", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


# ---- help and entry points -------------------------------------------------------------------------------------------


def test_there_are_the_documented_commands():
    assert {" ".join(c) for c in commands()} == {
        "demo",
        "inspect",
        "check",
        "convert",
        "resolver",
        "run",
        "build",
        "diff",
        "view",
        "bench",
        "search",
        "doctor",
        "explain",
        "op new",
        "op model",
        "op export",
        "op list",
        "op show",
        "op spec",
        "op compat",
        "op test",
    }


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_help_shows_two_examples(path):
    text = opwright(*path, "--help").stdout
    examples = [line.strip() for line in text.partition("Examples:")[2].splitlines()[1:3]]
    assert len(examples) == 2
    assert all(line.startswith(f"opwright {' '.join(path)}") for line in examples), examples
    assert text == opwright(*path, "-h").stdout


def test_version_and_unknown_commands():
    assert ow.__version__ in opwright("--version").stdout
    opwright("nonsense", exit_code=2)
    opwright("inspect", exit_code=2)
    opwright("inspect", "x.tflite", "--nonsense", exit_code=2)


def test_python_m_opwright():
    result = command_line("explain", "OW101")
    assert result.returncode == 0
    assert result.stdout.startswith("OW101")
    assert result.stderr == ""
    assert command_line("inspect", "no such file").returncode == 3


def test_the_command_line_starts_without_what_a_command_may_not_need():
    loads = "import opwright.tools.cli, sys; print([m for m in ('llvmlite', 'rich.table') if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


ESCAPE = "\x1b["


def test_colours_only_where_they_are_wanted():
    assert ESCAPE not in command_line("explain").stdout
    assert ESCAPE in command_line("explain", FORCE_COLOR="1", TERM="xterm-256color").stdout
    plain = command_line("doctor", FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color").stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)  # no colour; bold headings may stay


def test_lines_are_not_broken_where_no_terminal_is():
    lines = command_line("op", "list", "Pool").stdout.splitlines()
    rows = [line for line in lines if "Pool" in line]
    assert len({len(line) for line in lines}) == 1
    assert all(row.count("│") == 6 for row in rows)


@pytest.mark.parametrize(
    ("name", "exit_code", "options"),
    [
        ("cnn_float", 0, ("--json",)),
        ("activations", 1, ()),
        pytest.param("cnn_float", 0, (), marks=pytest.mark.slow),
        pytest.param("activations", 1, ("--json",), marks=pytest.mark.slow),
    ],
)
def test_the_exit_code_is_that_of_the_command_when_nobody_reads(name, exit_code, options):
    model = Path(__file__).parents[1] / "data" / "tflite" / f"{name}.tflite"
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        call = [sys.executable, "-m", "opwright", "check", str(model), "--runtime", "2.8", *options]
        process = subprocess.run(call, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    finally:
        os.close(theirs)
    assert (process.returncode, process.stderr) == (exit_code, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_is_said_in_a_line():
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "opwright", "op", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert (process.returncode, len(process.stderr.splitlines())) == (3, 1)


def test_a_reader_that_stops_early_is_no_error():
    shell = f"{sys.executable} -m opwright op spec | head -n 1"
    process = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=120, check=True)
    assert process.stdout.strip() == "{"
    assert "Traceback" not in process.stderr


# ---- demo ------------------------------------------------------------------------------------------------------------


def test_demo_checks_every_step_and_leaves_files(tmp_path):
    steps = result_of("demo", "--steps", 20, "--out", tmp_path / "out", "--json")
    assert len(steps) == 10
    assert all(step["ok"] and step["seconds"] >= 0 for step in steps), steps
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"atan.tflite", "sin.tflite"}
    assert "needs your definition" in opwright("check", tmp_path / "out" / "atan.tflite").stdout


def test_demo_prints_a_table(tmp_path):
    result = opwright("demo", "--steps", 5, "--out", tmp_path)
    assert result.stdout.count("The actual offset is: 1.0") == 2
    for text in ("Encountered unresolved custom op: Atan.", "custom_ops=[Atan]", " us a call"):
        assert text in result.stdout


def test_demo_fails_when_a_check_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(ow.lite.TFLiteConverter, "convert", lambda self: b"nothing")
    result = opwright("demo", "--steps", 5, "--out", tmp_path, exit_code=1)
    assert "FAILED" in result.stdout
    assert "nothing was refused" in result.stdout


def test_demo_that_cannot_write(tmp_path):
    (tmp_path / "file").write_text("")
    assert "file" in opwright("demo", "--steps", 5, "--out", tmp_path / "file" / "out", exit_code=3).stderr
    opwright("demo", "--steps", 0, exit_code=2)


# ---- doctor ----------------------------------------------------------------------------------------------------------


def test_doctor_finds_what_is_needed():
    result = opwright("doctor")
    for text in ("Python", "numpy", "llvmlite", "compiling a kernel", "cache folder", "OPWRIGHT_SHOW"):
        assert text in result.stdout
    actual = {row["what"]: row for row in result_of("doctor", "--json")}
    assert all(row["ok"] for row in actual.values())
    assert actual["compiling a kernel"]["found"] == "works"


def test_doctor_tells_of_what_is_missing_or_misspelt(monkeypatch):
    monkeypatch.setattr(diagnostics, "RUN_TIME", ("numpy", "no-such-package"))
    monkeypatch.setenv("OPWRIGHT_SPEED", "high")
    result = {row["what"]: row for row in result_of("doctor", "--json", exit_code=1)}
    assert result["no-such-package"] == {"what": "no-such-package", "found": "missing", "ok": False}
    assert result["OPWRIGHT_SPEED"]["ok"] is False


def test_doctor_shows_switches_with_their_source():
    result = command_line("doctor", "--json", OPWRIGHT_SHOW="time")
    assert '"time (environment)"' in result.stdout
    wrong = command_line("doctor", OPWRIGHT_VERIFY="maybe")
    assert wrong.returncode == 1
    assert "environment variable OPWRIGHT_VERIFY" in wrong.stderr


# ---- explain ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", list(CODES))
def test_explain(code):
    text = opwright("explain", code.lower()).stdout
    assert text.startswith(f"{code}  {CODES[code].title}")
    assert f"{len(CODES[code].ways)}. " in text
    assert result_of("explain", code, "--json")[code]["title"] == CODES[code].title


def test_explain_lists_codes_and_knows_no_others():
    assert list(result_of("explain", "--json")) == list(CODES)
    assert all(code in opwright("explain").stdout for code in CODES)
    assert "did you mean OW1" in opwright("explain", "OW110", exit_code=1).stderr
    assert "lists them" in opwright("explain", "xyz", exit_code=1).stderr


def test_codes_in_errors_are_those_explained():
    used = set()
    for path in SOURCES.rglob("*.py"):
        if path.parent.name != "tools":
            used |= set(re.findall(r'explain="(OW\d+)"|\(opwright explain (OW\d+)\)', path.read_text("utf-8")))
    assert {code for pair in used for code in pair if code} == set(CODES)


def unresolved():
    @ow.function(input_signature=[ow.TensorSpec([2])])
    def f(x):
        return ow.atan(x)

    converter = ow.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    converter.allow_custom_ops = True
    ow.lite.Interpreter(model_content=converter.convert()).allocate_tensors()


def unconvertible():
    @ow.function(input_signature=[ow.TensorSpec([2])])
    def f(x):
        return ow.atan(x)

    ow.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f).convert()


def assigning():
    v = ow.Variable(1.0)

    @ow.function(input_signature=[ow.TensorSpec([])])
    def f(x):
        return v.assign(x)

    converter = ow.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    converter.experimental_enable_resource_variables = False
    converter.convert()


def underivable():
    @ow.operator
    class NoWayBack:
        """One way only.   .. math:: y = x"""

        x = ow.Input(ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return x

    x = ow.constant(1.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = NoWayBack(x)
    tape.gradient(y, x)


def branching():
    ow.function(lambda x: x if x > 0 else -x, autograph=False)(ow.constant(1.0))


def leaking():
    kept = []
    ow.function(lambda x: kept.append(x + 1.0))(ow.constant(1.0))
    kept[0] + 1.0  # the error is in computing it


def remaking():
    created = []

    @ow.function
    def f(x):
        created.append(ow.Variable(x.shape.rank))
        return x

    f(ow.constant(1.0))
    f(ow.constant([1.0]))


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("OW101", unresolved),
        ("OW201", unconvertible),
        ("OW202", assigning),
        ("OW301", lambda: ow.constant(1.0) + ow.constant(1)),
        ("OW301", lambda: ow.sin(ow.constant(True))),
        ("OW401", lambda: ow.lite.Interpreter(model_content=b"damaged")),
        ("OW401", lambda: ow.lite.Model.read(b"\0\0\0\0TFL3" + b"\xff" * 100)),
        ("OW501", underivable),
        ("OW601", branching),
        ("OW602", leaking),
        ("OW603", remaking),
    ],
    ids=lambda x: x if isinstance(x, str) else x.__name__,
)
def test_errors_name_their_code(code, wrong):
    with pytest.raises(Exception, match=f"opwright explain {code}"):
        wrong()

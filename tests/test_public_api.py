"""The public names: the list, the package, its modules and docs/api.md agree; importing stays light."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import opwright as ow
from opwright.compiler import language
from opwright.lite import format as lite_format
from opwright.lite import ops as lite_ops
from opwright.lite.convert import quantize
from opwright.ops import array, debugging

ROOT = Path(__file__).parents[1]
API = (ROOT / "docs" / "api.md").read_text("utf-8")


def sections() -> dict[str, list[str]]:
    """The names of each section of docs/api.md: those in backticks before a bullet's colon."""
    result: dict[str, list[str]] = {}
    for section in re.split(r"^#+ ", API, flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        bullets = re.findall(r"^- (.*?):(?:\s|$)", text, flags=re.M | re.S)
        result[title] = [name for bullet in bullets for name in re.findall(r"`(\w+)`", bullet)]
    return result


def is_module_section(title):
    return title.startswith("`ow.")


def documented_names():
    return [name for title, names in sections().items() if not is_module_section(title) for name in names]


UNLISTED = {
    "opwright": {"__version__", "load_ipython_extension"},
    "opwright.lite": {"customs", "litert"},
    "opwright.ops.math": {"special"},
    "opwright.ops.array": {"MergeRows", "RowsAt", "run_time_axes", "zero_of"},
}


def test_public_names():
    for name in ow.__all__:
        getattr(ow, name)
    public = {n for n, v in vars(ow).items() if n[0] != "_" and (not isinstance(v, ModuleType) or n in ow.__all__)}
    public -= UNLISTED["opwright"]  # there after their first use, in another test
    assert public == set(ow.__all__) == set(documented_names())


def test_no_name_is_listed_twice():
    assert len(ow.__all__) == len(set(ow.__all__))
    assert len(documented_names()) == len(set(documented_names()))


def names_of(module):
    """Return the names of a module: its `__all__`, or its own definitions."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    own = {n: v for n, v in vars(module).items() if n[0] != "_" and getattr(v, "__module__", "") == module.__name__}
    return {n for n, v in own.items() if inspect.isfunction(v) or inspect.isclass(v)}


MODULES = [title.strip("`").removeprefix("ow.") for title in sections() if is_module_section(title)]
NOT_FOR_USERS = {"attr": {"Attr", "Check"}, "errors": {"compose"}}


SECOND_NAMES = {"initializers", "losses", "metrics"}  # modules of ow.keras


def test_every_public_module_has_a_section():
    assert set(MODULES) == {n for n in ow.__all__ if isinstance(getattr(ow, n), ModuleType)} - SECOND_NAMES
    assert all(getattr(ow, name) is getattr(ow.keras, name) for name in SECOND_NAMES)


@pytest.mark.parametrize("name", MODULES)
def test_names_of_modules(name):
    documented = sections()[f"`ow.{name}`"]
    module = getattr(ow, name)
    assert len(documented) == len(set(documented))
    assert set(documented) == names_of(module) - NOT_FOR_USERS.get(name, set())
    for each in documented:
        assert getattr(module, each, None) is not None, each


@pytest.mark.parametrize("family", ["array", "math", "linalg", "strings"])
def test_top_level_operators_are_the_families(family):
    """A name at top level and in a family is one function."""
    module = getattr(ow, family, None) or sys.modules[f"opwright.ops.{family}"]
    for name in set(names_of(module)) & set(ow.__all__) - {"split", "real", "complexes"}:
        assert getattr(module, name) is getattr(ow, name), name


TF_TOP_LEVEL = """
    abs acos acosh add add_n argmax argmin argsort as_dtype as_string asin asinh atan atan2 atanh batch_to_space
    bitcast boolean_mask broadcast_dynamic_shape broadcast_static_shape broadcast_to cast clip_by_global_norm
    clip_by_norm clip_by_value complex concat constant convert_to_tensor cos cosh cumsum custom_gradient divide
    dynamic_partition dynamic_stitch einsum ensure_shape equal executing_eagerly exp expand_dims eye fill floor
    function gather gather_nd get_static_value greater greater_equal guarantee_const
    histogram_fixed_width identity identity_n init_scope is_tensor less less_equal
    linspace logical_and logical_not logical_or matmul maximum meshgrid minimum multiply name_scope negative
    newaxis norm not_equal one_hot ones ones_like pad parallel_stack pow range rank realdiv reduce_all reduce_any
    reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum repeat reshape reverse
    reverse_sequence roll round saturate_cast scalar_mul scatter_nd searchsorted sequence_mask shape shape_n
    sigmoid sign sin sinh size slice sort space_to_batch space_to_batch_nd split sqrt square squeeze stack
    stop_gradient strided_slice subtract tan tanh tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min
    tensor_scatter_nd_sub tensor_scatter_nd_update tensordot tile transpose truediv truncatediv truncatemod unique
    unique_with_counts unravel_index unstack where zeros zeros_like DType Graph GradientTape IndexedSlices Module Tensor
    TensorShape TensorSpec UnconnectedGradients Variable bfloat16 bool complex128 complex64 double float16 float32
    float64 half int16 int32 int64 int8 string uint16 uint32 uint64 uint8 bitwise config debugging dtypes errors linalg
    lite math nest nn optimizers random strings
""".split()  # noqa: SIM905  a list of this length reads better as words


def test_names_that_tensorflow_has_at_top_level():
    """As `dir(tensorflow)` of 2.21 has them, as far as the families go."""
    assert not set(TF_TOP_LEVEL) - set(ow.__all__)


def test_names_that_are_others_too():
    assert ow.math.softmax is ow.nn.softmax
    assert ow.math.log_softmax is ow.nn.log_softmax
    assert {"softmax", "log_softmax", "add"} <= set(dir(ow.math))
    with pytest.raises(AttributeError, match="nonsense"):
        ow.math.nonsense  # noqa: B018
    for name in set(ow.dtypes.__all__) & set(ow.__all__):
        assert getattr(ow.dtypes, name) is getattr(ow, name), name
    assert ow.dtypes.as_dtype("half") is ow.dtypes.half is ow.float16


def test_codes_of_errors():
    """As TensorFlow numbers them; an error class has the code of its name."""
    assert (ow.errors.OK, ow.errors.UNKNOWN, ow.errors.INVALID_ARGUMENT, ow.errors.UNAUTHENTICATED) == (0, 2, 3, 16)
    codes = [n for n in ow.errors.__all__ if n.isupper()]
    assert sorted(getattr(ow.errors, n) for n in codes) == list(range(17))
    for name in set(ow.errors.__all__) - set(codes) - {"OperatorNotAllowedInGraphError"}:  # no status of an operator
        cls = getattr(ow.errors, name)
        assert cls("").error_code == cls.code == getattr(ow.errors, cls.code_name)
    result = [ow.errors.NOT_FOUND, ow.errors.DATA_LOSS, ow.errors.INTERNAL, ow.errors.FAILED_PRECONDITION]
    assert result == [5, 15, 13, 9]


# ---- importing -------------------------------------------------------------------------------------------------------


def in_a_new_process(code):
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=200)
    return process.stdout.strip()


@pytest.mark.parametrize(
    "late",
    [
        "llvmlite",
        "flatbuffers",
        "rich",
        "click",
        "opwright.ops.linalg",
        "opwright.ops.nn",
        "opwright.ops.random",
        "opwright.ops.strings",
        "opwright.optimizers",
        "opwright.lite",
        "opwright.tools",
        "opwright.ops",
        "opwright.eager",
        "opwright.tracing",
        "opwright.compiler",
        "numpy",
    ],
)
def test_import_leaves_out_what_can_wait(late):
    assert in_a_new_process(f"import opwright, sys; print({late!r} in sys.modules)") == "False"


def test_no_public_name_needs_the_compiler():
    code = "import opwright as ow, sys; [getattr(ow, n) for n in ow.__all__]; print('llvmlite' in sys.modules)"
    assert in_a_new_process(code) == "False"


LATE = """
import os, sys
import ml_dtypes
import opwright as ow
WAYS = ("from opwright import {0}", "assert {0!r} in dir(ow); ow.{0}; assert ow.{0} is vars(ow)[{0!r}]")
from opwright.core.lazy_imports import _homes
modules = {}
for name, (module, _) in _homes("opwright").items():
    modules.setdefault(module, []).append(name)
every = 1 if os.environ.get("OPWRIGHT_THOROUGH") == "1" else 9
# Each module's first name is asked for in a process that has loaded nothing.
for i, (module, names) in list(enumerate(modules.items()))[::every]:
    child = os.fork()
    if not child:
        try:
            exec(WAYS[i % 2].format(names[0]))
            for name in names[1:]:
                for way in WAYS:
                    exec(way.format(name))
        except BaseException as error:
            print(module, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, names
print(len(modules))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_names_come_by_every_way_of_asking():
    tree = ast.parse(Path(ow.__file__ + "i").read_text("utf-8"))
    modules = {(n.level, n.module) for n in tree.body if isinstance(n, ast.ImportFrom)}
    assert in_a_new_process(LATE) == str(len(modules))


def test_late_modules_can_be_imported_by_their_path():
    assert (
        in_a_new_process("import opwright.lite as a, opwright; from opwright import lite as b; print(a is b)") == "True"
    )
    assert in_a_new_process("import opwright.nn as nn; print(nn.relu(-1.0).numpy() == 0)") == "True"


def test_names_that_are_none():
    with pytest.raises(AttributeError, match="module 'opwright' has no attribute 'nonsense'"):
        ow.nonsense  # noqa: B018


def test_version_is_that_of_the_package():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == ow.__version__


LAZY = [
    ow,
    ow.aot,
    ow.distribute,
    ow.lite,
    lite_format,
    lite_ops,
    quantize,
    ow.nn,
    ow.ops,
    ow.math,
    array,
    debugging,
    language,
]


def names_in_the_stub(module):
    """The names that a package's stub exports, as a type checker reads it."""
    tree = ast.parse(Path(module.__file__ + "i").read_text("utf-8"))
    aliases = [a for n in tree.body if isinstance(n, ast.ImportFrom) and n.level for a in n.names]
    assigned = [n.targets[0].id for n in tree.body if isinstance(n, ast.Assign)]
    exported = [a.asname for a in aliases if a.asname] + assigned
    return [name for name in exported if name.startswith("__") or not name.startswith("_")]


@pytest.mark.parametrize("module", LAZY, ids=lambda m: m.__name__)
def test_every_late_name_is_there(module):
    names = names_in_the_stub(module)
    assert len(set(names)) == len(names)
    for name in names:
        assert hasattr(module, name), name
    assert not set(module.__all__) - set(dir(module))
    assert set(names) - set(module.__all__) == UNLISTED.get(module.__name__, set())
    assert len(set(module.__all__)) == len(module.__all__)


def test_no_submodule_hides_a_late_name():
    """Importing a submodule sets the package's attribute of its name, which `__getattr__` never sees then."""
    for package in LAZY:
        submodules = {path.stem for path in Path(package.__file__).parent.iterdir()}
        for name in set(names_in_the_stub(package)) & submodules:
            assert isinstance(getattr(package, name), ModuleType), (package, name)


FIRSTS = """
import os, sys
import ml_dtypes
for program in {programs!r}:
    child = os.fork()
    if not child:
        exec(program, {{}})
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_operators_run_whatever_was_imported_first():
    """Python's operators, and who runs a call, come with whichever module makes the first tensor."""
    firsts = {
        "from opwright.ops.math import add": "add([1.0], [2.0]).numpy()[0]",
        "from opwright.eager.tensor import constant": "(constant(1.0) + 2.0).numpy()",
        "from opwright.eager.variable import Variable": "(Variable(1.0) + 2.0).numpy()",
        "import opwright.lite, opwright as ow": "ow.add(1.0, 2.0).numpy()",
        "from opwright import function": "function(lambda x: x + 2.0, autograph=False)(1.0).numpy()",
    }
    printed = in_a_new_process(FIRSTS.format(programs=[f"{first}; print({use})" for first, use in firsts.items()]))
    assert printed.split() == ["3.0"] * len(firsts), printed


# ---- switches --------------------------------------------------------------------------------------------------------


def test_show_prints_stages_inside_the_with(capfd):
    @ow.function
    def f(x):
        return x + 1.0

    with ow.show("graph", "passes"):
        f(ow.constant(1.0))
    shown = capfd.readouterr().err
    assert "graph f(x: f32[])" in shown
    assert "pass dead_code" in shown
    f(ow.constant([1.0]))
    assert capfd.readouterr().err == ""


def test_show_takes_only_stages_there_are():
    with pytest.raises(ow.errors.InvalidArgumentError, match="graph, passes, kernel"), ow.show("everything"):
        pass
    with pytest.raises(ow.errors.InvalidArgumentError, match="no stage"):
        ow.show()


def test_check_numerics_names_the_operator():
    ow.debugging.enable_check_numerics()
    try:
        with pytest.raises(ow.errors.InvalidArgumentError, match=r"RealDiv.*NaN or Inf"):
            ow.constant(1.0) / 0.0
    finally:
        ow.debugging.disable_check_numerics()
    assert (ow.constant(1.0) / 0.0).numpy() == float("inf")

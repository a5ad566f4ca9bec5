"""Test building operators: compilation, compiler errors, cached libraries, and incomplete ones."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pathlib
import subprocess
import sys

import pytest
from abi_kit import needs_compiler
from native_kit import run, single

from opwright import errors, lite
from opwright.core import flags
from opwright.lite.native import build_cache, toolchain
from thorough import sampled

EXAMPLES = pathlib.Path(__file__).parent / "examples"
SCALE = """
#include "tensorflow/lite/c/common.h"
#include "factor.h"
static TfLiteStatus Prepare(TfLiteContext* c, TfLiteNode* n) {
  const TfLiteTensor* x = &c->tensors[n->inputs->data[0]];
  return c->ResizeTensor(c, &c->tensors[n->outputs->data[0]], TfLiteIntArrayCopy(x->dims));
}
static TfLiteStatus Invoke(TfLiteContext* c, TfLiteNode* n) {
  const TfLiteTensor* x = &c->tensors[n->inputs->data[0]];
  float* y = c->tensors[n->outputs->data[0]].data.f;
  for (size_t i = 0; i < x->bytes / sizeof(float); ++i) y[i] = x->data.f[i] * FACTOR + shift();
  return kTfLiteOk;
}
TfLiteRegistration* Register_SCALE(void) {
  static TfLiteRegistration r = {.prepare = Prepare, .invoke = Invoke};
  return &r;
}
"""


@pytest.fixture
def folder(tmp_path):
    """A source with a header in the same folder, and a second source in C++ that it calls."""
    (tmp_path / "scale.c").write_text(SCALE)
    (tmp_path / "factor.h").write_text("#define FACTOR 3.0f\nfloat shift(void);\n")
    (tmp_path / "shift.cc").write_text('extern "C" { float shift() { return SHIFT; } }\n')
    return tmp_path


@pytest.fixture
def cache(tmp_path):
    """A folder of its own for what is built; but for the provider, which a process has once."""
    toolchain.provider()
    with flags.override(cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache" / "operators"


def note_of(library):
    (note,) = library.parent.glob(library.stem.split("-")[-1] + "*.note")
    return note


def answer(ops):
    interpreter = lite.Interpreter(model_content=single("SCALE", (3,)), custom_ops=ops)
    interpreter.allocate_tensors()
    return run(interpreter, [1, 2, 3]).tolist()


def scale(folder, shift="0.5f", **more):
    return lite.build_custom_ops(
        [folder / "scale.c", folder / "shift.cc"],
        defines={"SHIFT": shift, "UNUSED": None},
        include_dirs=[folder],
        **more,
    )


@needs_compiler
class TestOneCall:
    def test_c_and_cpp_in_one_library(self, folder, cache):
        assert answer(scale(folder)) == [3.5, 6.5, 9.5]

    def test_it_is_compiled_once(self, folder, cache, monkeypatch):
        scale(folder)
        monkeypatch.setattr(toolchain.Compiler, "run", lambda *_: pytest.fail("it was compiled again"))
        assert answer(scale(folder)) == [3.5, 6.5, 9.5]

    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            (lambda f: (f / "scale.c").write_text(SCALE.replace("* FACTOR", "* FACTOR * 2")), [6.5, 12.5, 18.5]),
            (lambda f: (f / "factor.h").write_text("#define FACTOR 1.0f\nfloat shift(void);\n"), [1.5, 2.5, 3.5]),
        ],
        ids=["source", "header"],
    )
    def test_a_change_is_seen(self, folder, cache, change, expected):
        assert answer(scale(folder)) == [3.5, 6.5, 9.5]
        change(folder)
        assert answer(scale(folder)) == expected

    def test_one_source_and_flags_as_words(self, folder, cache):
        (folder / "scale.c").write_text(SCALE.replace("shift()", "SHIFT"))
        ops = lite.build_custom_ops(
            folder / "scale.c",
            "Register_SCALE",
            include_dirs=folder,
            flags="-DSHIFT=2.0f '-DUNUSED=a b' -O3",
            link_flags="-lm",
        )
        assert answer(ops) == [5, 8, 11]

    def test_another_define_is_another_library(self, folder, cache):
        assert answer(scale(folder)) == [3.5, 6.5, 9.5]
        assert answer(scale(folder, shift="1.0f")) == [4, 7, 10]
        assert len(list(cache.glob("*.so"))) == 2


@needs_compiler
class TestWhatIsKept:
    @pytest.mark.parametrize(
        "damage",
        sampled(
            [
                lambda p: p.write_bytes(p.read_bytes()[:-100]),
                lambda p: p.write_bytes(p.read_bytes()[:500] + b"\xff" + p.read_bytes()[501:]),
                lambda p: p.write_bytes(b""),
                lambda p: p.unlink(),
                lambda p: note_of(p).write_text("{"),
                lambda p: note_of(p).write_text('{"library": 3, "made_of": [1]}'),
                lambda p: note_of(p).unlink(),
            ]
        ),
        ids=["cut", "changed", "empty", "gone", "note cut", "note of another form", "no note"],
    )
    def test_damage_is_made_good(self, folder, cache, damage):
        path = toolchain.build_library([EXAMPLES / "refuses.c"])
        whole = path.read_bytes()
        damage(path)
        assert toolchain.build_library([EXAMPLES / "refuses.c"]) == path
        assert path.read_bytes() == whole
        assert ctypes.CDLL(str(path)).Register_ROOT is not None

    def test_a_folder_that_cannot_be_written(self, folder, tmp_path):
        (tmp_path / "file").write_text("no folder")
        with flags.override(cache_dir=tmp_path / "file"):
            with pytest.warns(RuntimeWarning, match="cannot be kept"):
                first = toolchain.build_library([EXAMPLES / "refuses.c"])
            assert toolchain.build_library([EXAMPLES / "refuses.c"]) == first  # in this process

    def test_the_folder_has_a_limit(self, folder, cache, monkeypatch):
        first = toolchain.build_library([EXAMPLES / "affine_opaque.c"])
        monkeypatch.setattr(build_cache, "MOST_BYTES", 100)
        second = toolchain.build_library([EXAMPLES / "sin_struct.c"])
        assert sorted(p.name for p in cache.iterdir()) == sorted([second.name, note_of(second).name])
        assert not first.exists()

    @pytest.mark.slow
    def test_processes_may_build_at_once(self, cache):
        with multiprocessing.get_context("spawn").Pool(3) as pool:
            paths = pool.map(_build_in, [str(cache.parent)] * 3)
        assert len(set(paths)) == 1
        suffixes = sorted(p.suffix for p in cache.iterdir())  # the provider's and the library's, nothing half made
        assert suffixes == [".note", ".note", ".so", ".so"]


def _build_in(folder):
    with flags.override(cache_dir=pathlib.Path(folder)):
        path = toolchain.build_library([EXAMPLES / "refuses.c"])
        ctypes.CDLL(str(toolchain.provider()._name), mode=ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(path))
        return str(path)


class TestErrors:
    @needs_compiler
    def test_the_compilers_own_lines(self, tmp_path):
        source = tmp_path / "typo.c"
        source.write_text(
            '#include "tensorflow/lite/c/common.h"\nint f(TfLiteNode* n) {\n  return n->input->size;\n}\n'
        )
        with pytest.raises(errors.InvalidArgumentError) as error:
            toolchain.build_library([source])
        text = str(error.value)
        assert "typo.c:3" in text
        assert "return n->input->size;" in text
        assert "typo.c: it does not compile" in text

    @needs_compiler
    def test_a_name_that_nobody_declared_is_an_error(self, tmp_path):
        """As a warning it would become a symbol that is missing when the library is loaded."""
        source = tmp_path / "guide.c"
        source.write_text(
            '#include "tensorflow/lite/c/c_api_opaque.h"\n'
            "int f(TfLiteOpaqueNode* n) { return TfLiteOpaqueNodeNumInputs(n); }\n"
        )
        with pytest.raises(errors.InvalidArgumentError, match="TfLiteOpaqueNodeNumInputs"):
            toolchain.build_library([source])

    @needs_compiler
    def test_warnings_are_shown(self, tmp_path, cache):
        source = tmp_path / "careless.c"
        source.write_text('#warning "think again"\n')
        with pytest.warns(RuntimeWarning, match="think again"):
            toolchain.build_library([source])

    @needs_compiler
    def test_many_lines_are_cut(self, tmp_path):
        source = tmp_path / "many.c"
        source.write_text("".join(f"int f{i} = nothing{i};\n" for i in range(200)))
        with pytest.raises(errors.InvalidArgumentError, match=r"and \d+ lines more") as error:
            toolchain.build_library([source])
        assert len(str(error.value).splitlines()) < 80

    @pytest.mark.parametrize(
        ("sources", "error", "words"),
        [
            ([], errors.InvalidArgumentError, "no sources"),
            ([EXAMPLES], errors.NotFoundError, "examples"),
            (["/nowhere/atan.c"], errors.NotFoundError, "/nowhere/atan.c"),
            ([__file__], errors.InvalidArgumentError, "does not say its language"),
        ],
    )
    def test_sources_that_are_none(self, sources, error, words):
        with pytest.raises(error, match=words):
            toolchain.build_library(sources)

    def test_an_include_folder_that_is_not_there(self):
        with pytest.raises(errors.NotFoundError, match="/nowhere"):
            toolchain.build_library([EXAMPLES / "refuses.c"], include_dirs=["/nowhere"])

    def test_no_compiler(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(errors.UnavailableError, match=r"pip install 'opwright\[c\]'"):
            toolchain.build_library([EXAMPLES / "refuses.c"])
        toolchain._select_compiler.cache_clear()

    def test_no_compiler_for_the_run_time(self, monkeypatch, tmp_path):
        """A finished library needs one too, on a machine's first time."""
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
        words = "the run time that operators in C call"
        with flags.override(cache_dir=tmp_path / "new"), pytest.raises(errors.UnavailableError, match=words) as error:
            toolchain.provider.__wrapped__()
        assert "opwright[c]" in str(error.value)
        toolchain._select_compiler.cache_clear()

    def test_cc_names_what_is_not_there(self, monkeypatch):
        monkeypatch.setenv("CC", "no-such-cc -pipe")
        with pytest.raises(errors.UnavailableError, match="no-such-cc"):
            toolchain.build_library([EXAMPLES / "refuses.c"])

    def test_cc_that_is_no_compiler(self, monkeypatch):
        monkeypatch.setenv("CC", f"{sys.executable} -c 'raise SystemExit(3)'")
        with pytest.raises(errors.InvalidArgumentError, match="exit status 3"):
            toolchain.build_library([EXAMPLES / "refuses.c"])


@needs_compiler
def test_cc_is_asked_first(monkeypatch, cache, tmp_path):
    wrapper = tmp_path / "my-cc"
    real = toolchain.find_compiler("c").command
    log = tmp_path / "log"
    wrapper.write_text(f'#!/bin/sh\necho called >> {log}\nexec {" ".join(real)} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CC", f"{wrapper} -pipe")
    toolchain.build_library([EXAMPLES / "refuses.c"])
    assert log.read_text().count("called") == 2  # compiled, linked


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it builds its C++ library first
def test_the_compiler_of_the_extra(monkeypatch, cache):
    """Where nothing else is on the machine: the provider and operators in both languages, by ziglang."""
    pytest.importorskip("ziglang")
    program = f"""
import os
os.environ["PATH"] = "/nowhere"
os.environ.pop("CC", None), os.environ.pop("CXX", None)
from opwright import lite
from opwright.lite.native import toolchain
assert toolchain.find_compiler("c").zig and toolchain.find_compiler("c++").zig
for source, name in (("atan_opaque.c", "ATAN"), ("atan_opaque.cc", "ATAN"), ("normalize_struct.cc", "NORMALIZE")):
    print(sorted(lite.build_custom_ops([{str(EXAMPLES)!r} + "/" + source])))
"""
    environment = {**os.environ, "OPWRIGHT_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['NORMALIZE']"


@needs_compiler
def test_a_kept_library_is_loaded_once(tmp_path):
    """Reuse of a library updates its timestamp, which must not change its identity for a process that loaded it."""
    (tmp_path / "once.c").write_text(
        '#include "tensorflow/lite/c/common.h"\n'
        "static TfLiteStatus run(TfLiteContext* c, TfLiteNode* n) "
        "{ (void)c, (void)n; return kTfLiteOk; }\n"
        "TfLiteRegistration* Register_ONCE(void) "
        "{ static TfLiteRegistration r = {.invoke = run}; return &r; }\n"
    )
    first, second = (lite.build_custom_ops(tmp_path / "once.c")["ONCE"] for _ in range(2))
    assert first.record.invoke == second.record.invoke

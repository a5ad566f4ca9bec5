"""Settings of all tests, and the fixture `tf`: the module that behaviour tests are about.

A slow machine is no failure, so hypothesis has no deadline (pytest-timeout has one). It draws the same examples in
every run, so that a run says something about the change; OPWRIGHT_EXPLORE=1 draws new ones, and OPWRIGHT_THOROUGH=1
eight times as many (thorough.py). Both also draw constants of the package's sources: reading these takes a process 5 s,
and other runs would draw other examples after each change. With OPWRIGHT_TESTS_AGAINST=tensorflow the tests that use
`tf` run against TensorFlow itself, in an environment that has it: what they expect is then the peer's behaviour, and
not ours written down. Tests marked `ours` are left out there.

The suite runs with the compiled engine, and waits for it where a user's program would start with the reference
kernels: what a test compares must not depend on how quick the compiler is. `make test` runs the interpreter's tests a
second time by the reference engine (OPWRIGHT_COMPILED=0). Machine code and plans are kept between runs in
build/test-cache, by digests of all that they depend on, sources included: what is found is never that of other code.
CHECK_SKIPS=1 fails a run that skips what expected_skips.py does not list. On Linux, a run that leaves processes behind
fails, too, and kills them (orphans.py).
"""

import gc
import importlib
import os
import pathlib
import re
import sys

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

import drawn_numbers
import expected_skips
import orphans
from thorough import THOROUGH, examples

HERE = pathlib.Path(__file__).parent
sys.path += [
    str(HERE / "data" / "tflite"),
    str(HERE / "lite"),
    str(HERE / "compiler"),
    str(HERE / "distribute"),
]  # the corpus, lite_kit, ...

settings.register_profile(
    "opwright",
    deadline=None,
    derandomize=not os.environ.get("OPWRIGHT_EXPLORE"),
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine's fault: one took 34 s to draw two inputs
)
settings.load_profile("opwright")
if not (os.environ.get("OPWRIGHT_EXPLORE") or THOROUGH):
    providers._get_local_constants = lambda: providers._local_constants  # none

os.environ.setdefault("OPWRIGHT_CACHE_DIR", str(HERE.parent / "build" / "test-cache"))  # not the user's own
os.environ.setdefault("OPWRIGHT_COMPILED", "1")
os.environ.setdefault("OPWRIGHT_PREBUILT", "0")  # kernels under test are compiled here
os.environ.setdefault("OPWRIGHT_BACKGROUND", "0")  # the first run is compiled, on a slow machine too

UNDER_TEST = os.environ.get("OPWRIGHT_TESTS_AGAINST", "opwright")


@pytest.fixture
def tf():
    """The module under test: opwright, or the peer named by OPWRIGHT_TESTS_AGAINST."""
    return importlib.import_module(UNDER_TEST)


@pytest.fixture(scope="module")
def reference_engine():
    """Within the module, interpreters run reference kernels unless a delegate is passed."""
    from opwright.core import flags

    with flags.override(compiled=False):
        yield


@pytest.fixture(scope="module")
def reference_unless_thorough():
    """Within the module, which is not about machine code, interpreters run reference kernels, as compiling takes half
    of the time of such tests; in a thorough run they run what the suite does."""
    from opwright.core import flags

    with flags.override(compiled=flags.compiled and THOROUGH):
        yield


_OURS = re.compile(r"^(import|from) (opwright|gradient_programs|click|harness)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """Against a peer, files that import our own package are about it alone."""
    if UNDER_TEST != "opwright" and collection_path.suffix == ".py" and collection_path.name != "conftest.py":
        return bool(_OURS.search(collection_path.read_text("utf-8"))) or None
    return None


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc):
    """Make no items of slow cases in a run that leaves them out: they are two fifths of all, 0.2 ms each and process.
    One stays, by which pytest knows that the function has parameters."""
    if metafunc.config.option.markexpr.startswith("not slow") and len(calls := metafunc._calls) > 1:
        is_slow = metafunc.definition.get_closest_marker("slow") is not None
        quick = [] if is_slow else [call for call in calls if all(mark.name != "slow" for mark in call.marks)]
        metafunc._calls = quick or calls[:1]


_PLACES = {}  # of files and folders among their neighbours, where they were collected in another order


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Collect a whole folder in every second test process from the last file to the first. Without kept bytecode each
    file's asserts are rewritten once, 8 s in all, and not by two processes at a time."""
    report = yield
    number = getattr(collector.config, "workerinput", {}).get("workerid", "gw0").removeprefix("gw")
    is_reversed = int(number) % 2 and len(collector.config.args) == 1
    if is_reversed and isinstance(collector, pytest.Session | pytest.Directory):
        _PLACES.update((node, place) for place, node in enumerate(report.result))
        report.result = report.result[::-1]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Restore the order of collection. Against a peer only tests of common behaviour run."""
    if _PLACES:
        items.sort(key=lambda item: [_PLACES[node] for node in item.listchain() if node in _PLACES])
    if UNDER_TEST != "opwright":
        skip = pytest.mark.skip(reason="about opwright alone")
        for item in items:
            if "ours" in item.keywords or "tf" not in getattr(item, "fixturenames", ()):
                item.add_marker(skip)


def settle():
    """What is there now stays: many tests collect garbage, and need not look at all tests and at what others left."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish(session):
    settle()


@pytest.hookimpl(tryfirst=True)  # before fixtures
def pytest_runtest_setup(item):
    drawn_numbers.restart(item.module, drawn_numbers.SET_UP)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    drawn_numbers.restart(item.module, drawn_numbers.CALL)


@pytest.hookimpl(trylast=True)  # after fixtures are gone
def pytest_runtest_teardown(item, nextitem):
    if nextitem is not None and nextitem.path.parent != item.path.parent:
        settle()


@pytest.hookimpl(tryfirst=True)  # in place of pytest's own
def pytest_runtest_protocol(item, nextitem):
    """A test process of xdist sends one report of a test that passes: the five messages that pytest sends of each take
    more time than most tests do. Its duration is that of set-up and teardown, too."""
    if not hasattr(item.config, "workerinput"):
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if all(report.passed for report in reports):
        call = next(report for report in reports if report.when == "call")
        call.duration = sum(report.duration for report in reports)
        reports = [call]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        orphans.adopt()


@pytest.hookimpl(wrapper=True, trylast=True)  # after the test processes of xdist have ended, before the summary
def pytest_sessionfinish(session):
    result = yield
    if hasattr(session.config, "workerinput"):
        return result
    _check_skips(session)
    # Without test processes, whatever ends at this process's own exit is still there.
    is_distributed = session.config.pluginmanager.hasplugin("dsession")
    if is_distributed and sys.platform == "linux" and (alive := orphans.survivors()):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        lines = "".join(f"\n  {process} {command}" for process, command in alive.items())
        reporter.write_line(f"\nprocesses that outlived the tests, killed now:{lines}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return result


def _check_skips(session):
    """With CHECK_SKIPS, fail a run that skips tests for a reason that expected_skips.py does not list."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("CHECK_SKIPS") or reporter is None:
        return
    wrong = expected_skips.unexpected(
        (r.nodeid, r.longrepr[2] if isinstance(r.longrepr, tuple) else str(r.longrepr))
        for r in reporter.stats.get("skipped", ())
    )
    if wrong:
        reporter.write_line("\nskipped, and not listed in expected_skips.py:\n  " + "\n  ".join(wrong))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """How many cases of the table operator x type (tests/lite/ops/drawn_table.py) were tried, and passed."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ())]
    rows = [v for r in reports for name, v in getattr(r, "user_properties", ()) if name == "operator x type"]
    if not rows:
        return
    operators = {r[0].split()[0].rstrip(",") for r in rows}
    tried, passed = sum(r[3] for r in rows), sum(r[4] for r in rows)
    terminalreporter.write_line(
        f"operator x type: {len(operators)} operators, {len(rows)} rows, {tried} cases tried "
        f"against the official kernels, {passed} passed (docs/operator_table.md)"
    )

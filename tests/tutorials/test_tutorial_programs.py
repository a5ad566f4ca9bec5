"""Programs of tutorials have TensorFlow's results: dtypes, shapes, texts exactly, numbers to some ulp."""

import math

import pytest
import tutorial_programs

import opwright as ow

CLOSE = {"pictures": {"rel_tol": 2e-5, "abs_tol": 2e-4}}  # pixels up to 255, whose ulp is 1.5e-5
OTHERS = {"rel_tol": 2e-6, "abs_tol": 1e-7}
FIGURES = {module: tutorial_programs.figures(module) for module in tutorial_programs.MODULES}
NAMES = [(module, name) for module, results in FIGURES.items() for name in results if name != "made_with"]


@pytest.fixture(autouse=True)
def level_of_messages():
    """Restore the logger's level, which programs set."""
    level = ow.get_logger().level
    yield
    ow.get_logger().setLevel(level)


def differences(result, expected, close, where=""):
    """Return where two results differ."""
    if isinstance(expected, dict) and "elements" in expected:
        heads = [{k: v[k] for k in ("dtype", "shape")} if isinstance(v, dict) else v for v in (result, expected)]
        if heads[0] != heads[1]:
            return [f"{where}: {heads[0]} for {heads[1]}"]
        return differences(result["elements"], expected["elements"], close, where)
    if isinstance(expected, dict) and isinstance(result, dict):
        if list(result) != list(expected):
            return [f"{where}: keys {list(result)} for {list(expected)}"]
        return [d for k in expected for d in differences(result[k], expected[k], close, f"{where} {k}")]
    if isinstance(expected, list) and isinstance(result, list):
        if len(result) != len(expected):
            return [f"{where}: {len(result)} for {len(expected)}"]
        return [d for i, (a, b) in enumerate(zip(result, expected)) for d in differences(a, b, close, f"{where}[{i}]")]
    if isinstance(expected, float) and isinstance(result, float):
        same = math.isclose(result, expected, **close) or (math.isnan(result) and math.isnan(expected))
        return [] if same else [f"{where}: {result!r} for {expected!r}"]
    return [] if result == expected else [f"{where}: {result!r} for {expected!r}"]


def test_every_program_has_figures():
    for module, results in FIGURES.items():
        assert set(tutorial_programs.programs_of(module)) == set(results) - {"made_with"}


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_program(module, name):
    result = tutorial_programs.plain(tutorial_programs.programs_of(module)[name](ow))
    assert differences(result, FIGURES[module][name], CLOSE.get(module, OTHERS), name) == []

"""`make lint`'s check of names and prose reports the old dialect and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import house_style


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ('"""What is left of the arena."""', "What"),
        ('"""Return the plan. Of two the cheaper."""', ". Of"),
        ("x = 1  # nobody has a kernel", "nobody"),
        ("x = 1  # those that have no kernel", "those that"),
        ("x = 1  # the plan is made anew", "anew"),
        ('"""Return the scale.\n\n    Those of the bias are 1.\n    """', ". Those"),
    ],
)
def test_phrases_of_the_old_dialect(line: str, phrase: str) -> None:
    (finding,) = house_style.phrases(Path("module.py"), line + "\n")
    assert finding.text.startswith(repr(phrase)), finding


@pytest.mark.parametrize(
    "line",
    [
        '"""Return what `Of those that` has."""',
        "x = 'What anew'  # text of the program",
        '"""Return the number of elements."""',
        "# The cost of a step depends on the target.",
    ],
)
def test_other_sentences(line: str) -> None:
    assert not list(house_style.phrases(Path("module.py"), line + "\n"))


def test_lines_of_a_page() -> None:
    page = "# Plans\n\n```python\nWhat = 1  # What anew\n```\n\nA plan is made anew.\n"
    (finding,) = house_style.phrases(Path("page.md"), page)
    assert (finding.line, finding.text) == (7, "'anew': again")


def test_a_vague_name_that_is_used_too_often() -> None:
    few = "def f(found):\n    return found\n"
    assert not list(house_style.vague_names({Path("a.py"): few}))
    many = "".join(f"found = {i}\n" for i in range(house_style.MOST_USES + 1))
    assert len(list(house_style.vague_names({Path("a.py"): many}))) == house_style.MOST_USES + 1


def test_modules_named_by_a_participle() -> None:
    (finding,) = house_style.participles([Path("src/planning_table.py"), Path("src/settling.py")])
    assert finding.path.name == "settling.py"


def test_class_names_of_several_modules() -> None:
    package = Path("src/opwright")
    shared = {package / f"{place}.py": "".join(f"class C{i}: ...\n" for i in range(21)) for place in ("a", "b")}
    assert len(list(house_style.shared_classes(shared))) == 42
    few = {path: source.replace("class C20: ...\n", "") for path, source in shared.items()}
    assert not list(house_style.shared_classes(few))


def test_budgets_of_tests() -> None:
    source = "".join(f'def test_what_{i}():\n    """What {i} is."""\n' for i in range(3))
    uses = [("what", house_style.Finding(Path("a.py"), i, "'What': ...")) for i in range(3)]
    assert not list(house_style.over_budget(uses, {"what": 3}))
    assert len(list(house_style.over_budget(uses, {"what": 2}))) == 3
    assert len(list(house_style.over_budget(uses, {}))) == 3
    sources = {Path(f"tests/test_{k}.py"): source for k in range(200)}
    assert {f.text.partition(":")[0] for f in house_style.findings_of_tests(sources)} >= {"'What'"}
    assert any("in the name 'test_what_0'" in f.text for f in house_style.findings_of_tests(sources))


def test_vague_locals_of_tests() -> None:
    many = "".join(f"found = {i}\n" for i in range(house_style.TEST_LOCALS["found"] + 1))
    assert len(list(house_style.vague_names({Path("a.py"): many}, house_style.TEST_LOCALS))) == many.count("\n")


def test_references_to_modules() -> None:
    package = house_style.ROOT / "src" / "opwright"
    source = '"""Return it (core/errors.py, dtypes.py; table.py of ../scalar, nowhere.py)."""\n# see core/nowhere.py\n'
    findings = list(house_style.missing_files(package / "ops" / "call.py", source, package))
    assert [(f.line, f.text.split("'")[1]) for f in findings] == [
        (1, "table.py"),
        (1, "nowhere.py"),
        (2, "core/nowhere.py"),
    ]


def test_docstrings_start_with_a_verb() -> None:
    source = '''
class C:
    """A class."""

    @property
    def size(self):
        """The number of elements."""

    def full(self):
        """Whether no element can be added."""

    def add(self):
        """Add an element."""
'''
    (finding,) = house_style.without_verb(Path("module.py"), source)
    assert (finding.line, finding.text) == (10, "'Whether no element': start with a verb")

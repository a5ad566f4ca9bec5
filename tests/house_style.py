"""Check names and prose of the source against docs/glossary.md's vocabulary: `make lint` runs this.

Six checks, each a table below: phrases of the house's old dialect in docstrings, comments and pages; docstrings of
functions that start with no verb; local names that say nothing; module names that are participles; class names that
several modules define; modules that docstrings and comments refer to and that do not exist. Tests, benchmarks and
examples have budgets instead, which may only be lowered: uses of phrases, of vague locals, of such words in names of
tests.
Prints each finding as path:line: the violation and what to write instead; exits with 1 if there are any.
"""

from __future__ import annotations

import ast
import collections
import functools
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

PHRASES = (
    (r"(?:^|[.;:]\s+)(?:What|Those|Of|Whoever|Nobody|Who) ", "start with a verb or with the thing itself"),
    (r"\bthose that\b", "name the thing again"),
    (r"\banew\b", "again"),
    (r"\bhangs? on\b", "depends on"),
    (r"\b(?:nobody|whoever)\b", "name the caller, the reader or the user"),
    (r"\bso many\b", "give the count its name"),
    (r"\bbeside\b", "next to, besides or with"),
    (r"\bin its turn\b", "name the order"),
    (r"\bstands? for itself\b", "symmetric, or unquantised"),
)
"""Patterns of the old dialect, with what to write instead."""

NO_VERBS = re.compile(
    r"(?:A|After|All|An|As|At|Before|Between|By|During|Each|Every|For|From|How|If|In|It|Its|No|Of|On|One|Only|Some|The|"
    r"These|This|To|When|Where|Whether|Which|With|Within|Without)\b"
)
"""First words of a docstring that is no instruction: functions are described by a verb, properties by a noun."""

VAGUE_NAMES = ("found", "made", "given", "known", "wanted")
MOST_USES = 100
"""How often src may use each vague name for a local or a parameter."""

TERMS = {
    "boston_housing",  # names of Keras
    "california_housing",
    "constant_folding",
    "debugging",
    "indexing",
    "importing",
    "padding",
    "pooling",
    "preprocessing",
    "rounding",
    "saving",
    "sorting",
    "tiling",
    "training",
}
"""Module names in -ing that are terms of the field: everything else is named by a noun."""
MOST_SHARED_CLASSES = 20
"""How many class names several modules may define, such as an operator and the Keras layer of its name."""

OTHER_FILES = {
    "BytecodeFormat.md",  # of MLIR
    "NAME.ll",
    "graph_builder.py",  # of Model Explorer
    "head.py",  # of a user, in examples
    "node_data_builder.py",
}
"""Files of other projects that docstrings and comments name."""
FILE_NAME = re.compile(r"(?<![\w.*/-])(?:\.\./)*[\w-]+(?:/[\w-]+)*\.(?:pyi?|ll|md)\b")

TEST_FOLDERS = ("tests", "benchmarks", "examples")
TEST_PHRASES = {
    "anew": 1,
    "beside": 20,
    "hangs on": 1,
    "nobody": 10,
    "of": 29,
    "so many": 5,
    "those": 2,
    "those that": 13,
    "what": 39,
    "whoever": 1,
}
"""Uses of each phrase in tests and benchmarks, at most; 0 of all others."""
TEST_LOCALS = {"found": 264, "given": 327, "known": 100, "made": 363, "wanted": 200}
"""Uses of each vague name in tests and benchmarks, at most."""
TEST_NAME_WORDS = {
    "anew": 5,
    "beside": 6,
    "found": 41,
    "given": 29,
    "gives": 25,
    "held": 18,
    "made": 69,
    "nobody": 17,
    "says": 16,
    "those": 41,
    "told": 8,
    "what": 276,
}
"""Functions of tests and benchmarks with these words in their names, at most."""
TEST_PARTICIPLES = {
    "cases_array_writing",
    "cases_debugging",
    "convert_cases_fusing",
    "drawn_rows_making",
    "test_retracing",
    "test_sorting",
    "test_streaming",
    "test_tiling",
    "test_typing",
}
"""Modules of tests named in -ing: terms, and tables whose random inputs depend on the order of their names."""


class Finding(NamedTuple):
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return (
            f"{self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path}:{self.line}: {self.text}"
        )


def prose(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of a module's docstrings and comments, or of a page's paragraphs."""
    if path.suffix == ".md":
        text = re.sub(r"```.*?```", lambda m: "\n" * m.group().count("\n"), source, flags=re.S)
        yield from ((i, re.sub(r"`[^`]*`", "``", line)) for i, line in enumerate(text.splitlines(), 1))
        return
    yield from outline(source).prose


class Outline(NamedTuple):
    """Lines of a module's docstrings and comments, of uses of vague names, of its classes and functions.

    summaries: the docstrings of functions that are no properties.
    """

    prose: list[tuple[int, str]]
    vague: list[tuple[int, str]]
    classes: list[tuple[int, str]]
    functions: list[tuple[int, str]]
    summaries: list[tuple[int, str]]


@functools.cache
def outline(source: str) -> Outline:
    """Return the outline of a module, read once for all rules."""
    result = Outline([], [], [], [], [])
    hashes = {i: line for i, line in enumerate(source.split("\n"), 1) if "#" in line}
    texts: dict[int, list[tuple[int, float]]] = {i: [] for i in hashes}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            for i in range(node.lineno, node.end_lineno + 1) if hashes else ():
                if i in hashes:
                    start = node.col_offset if i == node.lineno else 0
                    texts[i].append((start, node.end_col_offset if i == node.end_lineno else math.inf))
        elif isinstance(node, ast.Name | ast.arg):
            name = node.id if isinstance(node, ast.Name) else node.arg
            if name in VAGUE_NAMES:
                result.vague.append((node.lineno, name))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                constant = statement.value if isinstance(statement, ast.Expr) else None
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    result.prose.append((statement.lineno, re.sub(r"`[^`]*`", "``", constant.value)))
            if isinstance(node, ast.ClassDef):
                result.classes.append((node.lineno, node.name))
            elif isinstance(node, ast.FunctionDef):
                result.functions.append((node.lineno, node.name))
                first = node.body[0]
                text = (
                    first.value.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else ""
                )
                if isinstance(text, str) and not any("property" in ast.dump(d) for d in node.decorator_list):
                    result.summaries.append((first.lineno, text.partition("\n")[0]))
    result.prose.extend((i, comment) for i, line in hashes.items() if (comment := _comment(line, texts[i])))
    return result


def _comment(line: str, texts: list[tuple[int, float]]) -> str:
    """Return the comment of a line, empty if there is none. texts: where its literals are, in bytes of UTF-8."""
    encoded = line.encode()
    for match in re.finditer(b"#", encoded):
        if not any(start <= match.start() < end for start, end in texts):
            return re.sub(r"`[^`]*`", "``", encoded[match.start() :].decode().lstrip("# "))
    return ""


def phrases(path: Path, source: str) -> Iterator[Finding]:
    """Yield the phrases of the old dialect."""
    for line, text in prose(path, source):
        for pattern, instead in PHRASES:
            for match in re.finditer(pattern, text):
                at = line + text.count("\n", 0, match.start())
                yield Finding(path, at, f"{' '.join(match.group().split())!r}: {instead}")


def without_verb(path: Path, source: str) -> Iterator[Finding]:
    """Yield the docstrings of functions that start with no verb."""
    for line, text in outline(source).summaries:
        if NO_VERBS.match(text):
            yield Finding(path, line, f"{' '.join(text.split()[:3])!r}: start with a verb")


def missing_files(path: Path, source: str, package: Path) -> Iterator[Finding]:
    """Yield the files that docstrings and comments of a module of the package refer to and that do not exist.

    A name is relative to the module's folder, to one that contains it, to the repository, or to the file named before.
    """
    folders = [path.parent, *(p for p in path.parents if p.is_relative_to(package)), package.parent, ROOT]
    for line, text in outline(source).prose:
        before: list[Path] = []
        for match in FILE_NAME.finditer(text):
            name = match.group()
            file = next((f / name for f in (*folders, *before) if (f / name).exists()), None)
            if file is not None:
                before = [file.parent]
            elif name.rpartition("/")[2] not in OTHER_FILES:
                yield Finding(
                    path, line + text.count("\n", 0, match.start()), f"{name!r} does not exist: name the file"
                )


def vague_names(sources: dict[Path, str], most: Mapping[str, int] | None = None) -> Iterator[Finding]:
    """Yield the uses of each vague name that is used too often. most: uses of each name; MOST_USES by default."""
    uses = collections.defaultdict(list)
    for path, source in sources.items():
        for line, name in outline(source).vague:
            uses[name].append(Finding(path, line, f"{name!r} is used too often: name what the value is"))
    for name, findings in uses.items():
        if len(findings) > (MOST_USES if most is None else most[name]):
            yield from findings


def over_budget(uses: Iterable[tuple[str, Finding]], budgets: Mapping[str, int]) -> Iterator[Finding]:
    """Yield the findings of each key that has more of them than its budget."""
    by_key = collections.defaultdict(list)
    for key, finding in uses:
        by_key[key].append(finding)
    for key, findings in by_key.items():
        if len(findings) > budgets.get(key, 0):
            yield from findings


def findings_of_tests(sources: dict[Path, str]) -> Iterator[Finding]:
    """Yield what exceeds the budgets of tests, benchmarks and examples."""
    every = [finding for path, source in sources.items() for finding in phrases(path, source)]
    yield from over_budget(((_phrase(f.text), f) for f in every), TEST_PHRASES)
    yield from vague_names(sources, TEST_LOCALS)
    functions = (
        (word, Finding(path, line, f"{word!r} in the name {name!r}: name the subject and the result"))
        for path, source in sources.items()
        for line, name in outline(source).functions
        for word in name.split("_")
        if word in TEST_NAME_WORDS
    )
    yield from over_budget(functions, TEST_NAME_WORDS)
    yield from (finding for finding in participles(sources) if finding.path.stem not in TEST_PARTICIPLES)


def _phrase(text: str) -> str:
    """Return the phrase of a finding, without the end of the sentence before it."""
    return text.partition(":")[0].strip("'.; ").casefold()


def participles(paths: Iterable[Path]) -> Iterator[Finding]:
    """Yield modules whose name is a participle and no term of the field."""
    for path in paths:
        if path.stem.endswith("ing") and path.stem not in TERMS:
            yield Finding(path, 1, f"module {path.stem!r}: use a noun, or add the term to TERMS")


def shared_classes(sources: dict[Path, str]) -> Iterator[Finding]:
    """Yield classes of a name that another module defines, if these are too many."""
    places = collections.defaultdict(list)
    for path, source in sources.items():
        for line, name in outline(source).classes:
            places[name].append((path, line))
    shared = {name: at for name, at in places.items() if len({path for path, _ in at}) > 1}
    if len(shared) > MOST_SHARED_CLASSES:
        for name, at in sorted(shared.items()):
            yield from (Finding(path, line, f"class {name!r} is defined in another module, too") for path, line in at)


def findings(root: Path) -> Iterator[Finding]:
    """Yield what is wrong in a checkout."""
    sources = {path: path.read_text("utf-8") for path in sorted((root / "src").rglob("*.py"))}
    pages = {
        path: path.read_text("utf-8")
        for path in sorted([root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").glob("*.md")])
    }
    for path, source in {**sources, **pages}.items():
        yield from phrases(path, source)
    for path, source in sources.items():
        yield from without_verb(path, source)
        yield from missing_files(path, source, root / "src" / "opwright")
    yield from vague_names(sources)
    yield from participles(sources)
    yield from shared_classes(sources)
    yield from findings_of_tests(
        {path: path.read_text("utf-8") for folder in TEST_FOLDERS for path in sorted((root / folder).rglob("*.py"))}
    )


def main() -> int:
    every = list(findings(ROOT))
    print(*every, sep="\n", end="\n" if every else "")
    return bool(every)


if __name__ == "__main__":
    sys.exit(main())

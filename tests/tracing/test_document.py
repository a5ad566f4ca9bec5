"""The specification document of `function`: every code block in order, in one namespace, shows what it shows there.

Compared without whitespace, which the document lost, and without tracebacks, which name files. Blocks after a failing
one run nevertheless, so that each failure is its own.
"""

import ast
import contextlib
import io
import logging
import re
import types
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "data" / "function_guide.py"


def blocks():
    result = []
    for part in re.split(r"^# %%\n", GUIDE.read_text("utf-8"), flags=re.M)[1:]:
        code = "\n".join(line for line in part.splitlines() if not re.match(r"# [=~?]", line))
        shown = re.search(r"^# ([=~?]) ?(.*)", part, flags=re.M)
        result.append((code, *(shown.groups() if shown else ("=", ""))))
    return result


BLOCKS = blocks()


def run(code, path, scope):
    """What running a block as a notebook's cell prints, the value of a last expression included."""
    path.write_text(code, "utf-8")
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        exec(compile(tree, str(path), "exec"), scope)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(path), "eval"), scope)
            if value is not None and not isinstance(value, scope["tf"].Variable):
                print(repr(value))
    return out.getvalue()


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    import opwright

    folder = tmp_path_factory.mktemp("guide")
    scope = {"__name__": "guide", "tf": opwright}
    results = []
    logger = logging.getLogger("opwright")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        for i, (code, _, _) in enumerate(BLOCKS):
            if code.startswith("import tensorflow"):
                results.append("")
                continue
            try:
                results.append(run(code, folder / f"block_{i}.py", scope))
            except Exception as error:
                results.append(error)
            if "traceback" in scope:
                scope["traceback"] = types.SimpleNamespace(print_exc=lambda limit: None)
    finally:
        logger.setLevel(level)
    return results


def squeezed(text, numbers):
    text = re.sub(r"<class '[\w.]*\.(\w+)'>", r"<class '\1'>", text)
    text = re.sub(r"<\w*Dataset ", "<Dataset ", text)  # the peer's internal class
    text = re.sub(r"contains [1-6] nodes", "contains no more than 6 nodes", text)  # a Dataset's loop; ours has fewer
    if not numbers:
        text = re.sub(r"\d[\d.]*(e[+-]\d+)?", "0", text)
    return re.sub(r"\s+", "", text)


@pytest.mark.ours
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("i", range(len(BLOCKS)), ids=[f"{i}-{b[0].split()[-1][:20]}" for i, b in enumerate(BLOCKS)])
def test_block(guide, i):
    _, how, shown = BLOCKS[i]
    result = guide[i]
    if isinstance(result, Exception):
        raise result
    if how != "?":
        assert squeezed(result, how == "=") == squeezed(shown, how == "="), result

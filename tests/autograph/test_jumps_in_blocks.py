"""break, continue and return inside every kind of block, in every kind of loop over tensors: as plain Python.

The programs are generated: loops, each with one or two blocks around the jump, statements before, behind and in each
clause of a block. Python's own answer for numbers is the oracle; rows that TensorFlow does otherwise are ours.
"""

import contextlib
import itertools

import pytest

from thorough import sampled

LOOPS = {
    "while": "while n > 0:\n    n -= 1\n    i = n",
    "for": "for i in tf.range(n):",
    "for in while": "while n > 0:\n    n -= 2\n    for i in tf.range(n + 2):",
}
BLOCKS = {
    "with": "with block():\n    {}\nt += 1",
    "with two": "with block(), block() as b:\n    t += 2\n    {}\n    t += 1",
    "try finally": "try:\n    {}\n    t += 3\nfinally:\n    t += 100",
    "try except": "try:\n    {}\n    t += 3\nexcept ValueError:\n    t += 1000",
    "except": "try:\n    raise ValueError\nexcept ValueError as error:\n    {}\n    t += 3",
    "if in finally": "try:\n    t += 1\nfinally:\n    {}",
    "try else": "try:\n    {}\n    t += 3\nexcept ValueError:\n    t += 1000\nelse:\n    t += 50",
    "else": "try:\n    t += 3\nexcept ValueError:\n    t += 1000\nelse:\n    {}\n    t += 50",
    "match": "match 3:\n    case 3:\n        {}\n        t += 7",
    "if": "if n > 1:\n    t += 5\n    {}\nelse:\n    t += 11",
}
JUMPS = {"break": "break", "continue": "continue", "return": "return t * 10000"}
BEYOND_TENSORFLOW = {"return", "match", "try else", "else", "if in finally"}


def indented(text, by=4):
    return "\n".join(" " * by + line for line in text.split("\n"))


def put(template, statement):
    """The statement in the place of {}, at its depth."""
    lines = []
    for line in template.split("\n"):
        depth = len(line) - len(line.lstrip())
        lines += [indented(statement, depth)] if line.strip() == "{}" else [line]
    return "\n".join(lines)


def program(loop, blocks, jump):
    body = f"if i == 2:\n    t += 10\n    {JUMPS[jump]}\nt += i"
    for block in blocks:
        body = put(BLOCKS[block], body)
    depth = 8 if loop == "for in while" else 4
    return f"def f(n, t):\n{indented(LOOPS[loop])}\n{indented(body, depth + 4)}\n    return t\n"


SINGLE = [(block,) for block in BLOCKS]
NESTED = list(itertools.permutations(("with", "try finally", "try except", "if"), 2))
ROWS = [
    pytest.param(
        loop,
        blocks,
        jump,
        id=f"{jump} in {' in '.join(blocks)} in {loop}",
        marks=[pytest.mark.ours] if BEYOND_TENSORFLOW & {jump, *blocks} else [],
    )
    for loop in LOOPS
    for blocks in SINGLE + (NESTED if loop == "while" else [])
    for jump in JUMPS
]


class Numbers:
    """Stands for the module where the program runs on plain numbers."""

    range = range


@pytest.mark.parametrize(("loop", "blocks", "jump"), sampled(ROWS, 4))
def test_jumps_leave_blocks_as_in_python(tf, tmp_path, loop, blocks, jump):
    path = tmp_path / "program.py"  # a file: the rewriting reads the source
    text = program(loop, blocks, jump)
    path.write_text(text)
    names = {"tf": tf, "block": contextlib.nullcontext}
    exec(compile(text, str(path), "exec"), names)
    traced = tf.function(names["f"])
    expected = [_plain(text, n) for n in (0, 1, 5)]
    assert [int(traced(tf.constant(n), tf.constant(0))) for n in (0, 1, 5)] == expected


def _plain(text, n):
    names = {"tf": Numbers, "block": contextlib.nullcontext}
    exec(text, names)
    return names["f"](n, 0)

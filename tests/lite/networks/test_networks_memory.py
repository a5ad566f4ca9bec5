"""The arena of networks: never larger than the official interpreter's for the same file.

The official arena is read off the addresses of its tensors: what lies between the first byte and the last of those that
nodes write, gaps within an alignment closed. Of files that float kernels quantise as they run it holds scratch, too.
"""

from __future__ import annotations

from typing import Any

import pytest
from ai_edge_litert.interpreter import OpResolverType
from networks_all import NETWORKS
from networks_harness import content_of, official, own

from opwright.lite.runtime.memory import subgraph_memory

ALIGNMENT = 64
FAST = ("mobilenet_v2", "mobilenet_v3", "densenet", "inception", "unet", "transformer")
KINDS = ("float", "dynamic", "int8")


def official_arena(content: bytes, kernels: OpResolverType) -> int:
    """Bytes of the official interpreter's arena."""
    interpreter = official(content, kernels)
    nodes = interpreter._get_ops_details()
    result = {d["index"] for d in interpreter.get_input_details()} | {int(i) for n in nodes for i in n["outputs"]}
    read = {int(i) for n in nodes for i in n["inputs"]}
    spans = []
    for details in interpreter.get_tensor_details():
        if details["index"] in read - result:
            continue  # constants and variables
        try:
            array = interpreter.tensor(details["index"])()
        except ValueError:  # of no elements, or made while the model runs
            continue
        start = array.__array_interface__["data"][0]
        spans.append((start, start + array.nbytes))
        del array  # the interpreter counts references
    total, end = 0, 0
    for first, last in sorted(span for span in spans if span[0] < span[1]):
        total += last - (end if end and first <= end + 2 * ALIGNMENT else first) if last > end else 0
        end = max(end, last)
    return total


def cases() -> list[Any]:
    """Each network and kind; quick are some networks, each of one kind."""
    quick = {(name, KINDS[i % len(KINDS)]) for i, name in enumerate(FAST)}
    every = [(name, kind) for name in NETWORKS for kind in KINDS]
    return [pytest.param(*case, marks=[] if case in quick else pytest.mark.slow) for case in every]


@pytest.mark.parametrize(("name", "kind"), cases())
def test_arena_is_no_larger_than_the_official_one(name: str, kind: str) -> None:
    content = content_of(name, kind)
    try:
        expected = official_arena(content, OpResolverType.BUILTIN_REF)
    except (ValueError, RuntimeError):  # the reference kernels lack an operator
        expected = official_arena(content, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter = own(content)
    main = subgraph_memory(interpreter._subgraphs[0])
    assert main.copied == 0
    variables = sum(t.nbytes for t in interpreter._subgraphs[0].tensors if t.is_variable)
    assert main.arena + main.own - variables <= expected + ALIGNMENT, f"{main}, official {expected}"

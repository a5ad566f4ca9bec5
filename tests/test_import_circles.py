"""Imports make no circles: those within functions count, those for type checkers do not."""

from __future__ import annotations

import grimp


def circles(graph: grimp.ImportGraph) -> list[set[str]]:
    """Return the strongly connected components of more than one module: Tarjan, 1972, without recursion."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[set[str]] = []
    for start in sorted(graph.modules):
        work = [] if start in order else [(start, iter(graph.find_modules_directly_imported_by(start)))]
        if work:
            order[start] = low[start] = len(order)
            stack.append(start)
        while work:
            module, imported = work[-1]
            for other in imported:
                if other not in order:
                    order[other] = low[other] = len(order)
                    stack.append(other)
                    work.append((other, iter(graph.find_modules_directly_imported_by(other))))
                    break
                if other in stack:
                    low[module] = min(low[module], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == order[module]:
                    at = stack.index(module)
                    component, stack[at:] = set(stack[at:]), []
                    if len(component) > 1:
                        result.append(component)
    return result


def test_a_circle_is_found() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("e", "a"), ("d", "f"), ("f", "d")):
        for module in (importer, imported):
            graph.add_module(module)
        graph.add_import(importer=importer, imported=imported)
    assert sorted(map(sorted, circles(graph))) == [["b", "c"], ["d", "f"]]


def test_imports_make_no_circles() -> None:
    graph = grimp.build_graph("opwright", exclude_type_checking_imports=True, cache_dir=None)
    assert len(graph.modules) > 500
    left = circles(graph)
    assert not left, "\n".join(", ".join(sorted(c)) for c in left)

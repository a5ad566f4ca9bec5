"""The table of rules that lower operators to the loop graph.

Lives here: `RuleTable`.  Not here: the rules (compiler/rules, lite/compiled/rules).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.origins import load

Rule = Callable[[Any], None]
"""A function of the lowering context of one node (`At`)."""


class RuleTable:
    """Rules by operator, each in a module that is imported when the rule is first looked up.

    package: of the modules. modules: by operator, the module with its rule.
    """

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self._package, self._modules = package, modules
        self._rules: dict[str, Rule] = {}

    def rule(self, *names: str) -> Callable[[Rule], Rule]:
        """Register the decorated function as the rule of these operators."""

        def register(function: Rule) -> Rule:
            self._rules.update(dict.fromkeys(names, function))
            return function

        return register

    def find(self, name: str) -> Rule | None:
        """Return the rule of an operator, or None if it has none; imports its module."""
        module = self._modules.get(name)
        if module is not None:
            load(f"{self._package}.{module}")
        return self._rules.get(name)

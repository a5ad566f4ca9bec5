"""Style rules of operator definitions: documentation, names, numbers, gradients.

Lives here: `lint`, for the catalogue (tests/ops) and for users (`opwright op test`); `COMMON`, the documentation of
parts that many operators share, and `meaning`.
Not here: requirements on every definition (definition_checks.py), the documentation of a part of one operator (`doc=`,
or its docstring), the check of results (tools/catalogue.py).
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..core import introspection
from ..core.dtypes import float32, float64
from ..core.errors import OpError
from . import registry

OPERATOR_NAME = re.compile(r"(?:\w+\.)*[A-Z][A-Za-z0-9]*")
PART_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?")


def _parts(op: Any) -> Iterator[tuple[str, Any]]:
    for kind, parts in (("input", op.inputs), ("output", op.outputs), ("attribute", op.attr_defs.values())):
        for part in parts:
            yield kind, part


def _names(op: Any) -> Iterator[str]:
    """Check that operators are in CamelCase, their parts in snake_case, and that no name has a version."""
    if not OPERATOR_NAME.fullmatch(op.name):
        yield f"the name {op.name!r} is not in CamelCase"
    if re.search(r"V\d+$", op.name):
        yield f"the name {op.name!r} ends with a version; say @operator(version=...)"
    for kind, part in _parts(op):
        if not PART_NAME.fullmatch(part.name):
            yield f"{kind} {part.name!r} is not in snake_case"


def _class_body(op: Any) -> list[ast.stmt]:
    """Return the statements of the class that defines an operator; none without its source."""
    rule = next((r for r in (op.compute_rule, op.infer_rule, op.gradient_rule) if hasattr(r, "__code__")), None)
    code = inspect.unwrap(rule).__code__ if rule is not None else None
    try:
        lines, _ = inspect.findsource(code) if code is not None else ([], 0)
        tree = _tree("".join(lines))
    except (OSError, SyntaxError):
        return []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ClassDef)
            and code is not None
            and node.lineno <= code.co_firstlineno <= (node.end_lineno or 0)
        ):
            inner = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == code.co_name]
            if inner:
                return node.body
    return []


@functools.lru_cache(maxsize=4)  # operators of one file are asked for one after the other
def _tree(source: str) -> ast.Module:
    return introspection.parse(source)


def _declared_once(op: Any) -> Iterator[str]:
    """Check that inputs, outputs and attributes have different names: Python silently keeps the second of two."""
    body = _class_body(op)
    seen: set[str] = set()
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if isinstance(statement, ast.FunctionDef):
            names = [statement.name]
        for name in names:
            if name in seen:
                yield f"{name!r} is declared twice; the first is lost"
            seen.add(name)


def _words(op: Any) -> Iterator[str]:
    """Check the documentation: a sentence first, a formula, and the meaning of every part."""
    first = " ".join(op.doc.split("\n\n")[0].split())
    if not op.doc:
        yield "no docstring"
    elif not first.endswith((".", ":")) and ".. math::" not in first:
        yield f"the docstring's first paragraph is not a sentence: {first[:80]!r}"
    if not op.formula:
        yield "no formula: write `.. math::` and the formula in the docstring, \\text{...} where words say more"
    elif "\\text" not in op.formula and not any(is_named(p.name, op.formula) for _, p in _parts(op)):
        yield f"the formula names none of its parts: {op.formula!r}"
    for kind, part in _parts(op):
        if not is_documented(op, part):
            yield f"nothing says what {kind} {part.name!r} means: give it doc=..., or name it in the docstring"


def _floats(op: Any) -> Iterator[str]:
    """Check that an input of floats accepts float32 and float64."""
    for declared in op.inputs:
        floats = {d for d in declared.dtypes if d.is_floating}
        lacking = [d.name for d in (float32, float64) if d not in floats]
        if floats and lacking:
            yield f"input {declared.name!r} takes {', '.join(sorted(d.name for d in floats))} but not {lacking[0]}"


def _gradient(op: Any) -> Iterator[str]:
    """Check that an operator of floats has a gradient, or declares that differentiation ends here."""
    floats = any(d.is_floating or d.is_complex for i in op.inputs for d in i.dtypes)
    if floats and not op.has_gradient_rule and not op.control:
        yield "takes floats and has no gradient; write one, or `gradient = None` where differentiation ends"


def _meaning(op: Any) -> Iterator[str]:
    if op.compute_rule is None and not op.kernels and not op.control:
        yield "computes nothing: define compute(op, ...) or a @kernel"


def _defaults(op: Any) -> Iterator[str]:
    """Check that defaults pass their own check and are immutable."""
    for attr in op.attr_defs.values():
        if not attr.required:
            try:
                attr.convert(attr.default)
            except (TypeError, ValueError) as error:
                yield f"attribute {attr.name!r}: its default {attr.default!r} is not allowed: wanted {error}"


def _checks(op: Any) -> Iterator[str]:
    """Check that every check has a description."""
    for attr in op.attr_defs.values():
        if attr.check is not None and not attr.check.wanted.strip():
            yield f"attribute {attr.name!r}: its check has no words for the error"


RULES: tuple[Callable[[Any], Iterator[str]], ...] = (
    _names,
    _declared_once,
    _words,
    _floats,
    _gradient,
    _meaning,
    _defaults,
    _checks,
)


def lint(op: Any) -> list[str]:
    """Return the violations of the style rules in a definition, one sentence each.

    op: an operator, or its name
    raises KeyError for a name that there is not
    """
    problems = registry.operator_of(op)
    return [sentence for rule in RULES for sentence in rule(problems)]


# ---- the texts of errors --------------------------------------------------------------------------------------------

_CLASSES: tuple[type[OpError], ...] = (OpError, *OpError.__subclasses__())
ERRORS = {cls.__name__ for cls in _CLASSES} | {"SignatureError"}
SAYING = {"found", "wanted", "do"}
SIGNALS = {"OutOfRangeError"}  # the end of a sequence refuses nothing


def lint_errors(source: str, where: str) -> list[str]:
    """Return the lines that raise an error whose text is empty, or says neither what was found nor wanted.

    A text that is put together from values (an f-string, or a name) says what was found itself.
    """
    problems: list[str] = []
    for node in ast.walk(introspection.parse(source)):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
            continue
        call = node.exc
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        operators = {k.arg: k.value for k in call.keywords}
        text = operators.get("what", call.args[0] if call.args else None)
        if name in ERRORS and None not in operators:
            if _is_empty(text):
                problems.append(f"{where}:{node.lineno}: {name} has no text")
            elif isinstance(text, ast.Constant) and name not in SIGNALS and not operators.keys() & SAYING:
                problems.append(f"{where}:{node.lineno}: {name} says neither what was found nor what is wanted")
        elif name.endswith("Error") and hasattr(builtins, name) and _is_empty(text):
            problems.append(f"{where}:{node.lineno}: {name} has no text")
    return problems


def _is_empty(text: ast.expr | None) -> bool:
    if text is None:
        return True
    return isinstance(text, ast.Constant) and (not isinstance(text.value, str) or not text.value.strip())


COMMON = {
    # tensors
    "input": "the tensor it works on",
    "input_": "the tensor it works on",
    "output": "the result",
    "handle": "the variable",
    "iterator": "the iterator, by handle",
    "orig_input": "the input of the operator whose gradient this is",
    "orig_output": "the output of the operator whose gradient this is",
    # axes and shapes
    "axis": "the dimension it works along; negative ones count from the last",
    "batch_dims": "how many leading dimensions are batches",
    "keep_dims": "whether reduced dimensions stay, with size 1",
    "shape": "the sizes of the result",
    "element_shape": "the shape of each element, as far as it is known",
    "shapes": "the shape of each component",
    # types
    "dtype": "the type of the result",
    "dtypes": "the type of each component",
    "out_type": "the type of the result",
    "output_dtype": "the type of the result",
    "index_type": "the type of the indices it gives",
    "element_dtype": "the type of each element",
    # windows
    "data_format": "where the channels are: last (NHWC, NDHWC) or after the batch (NCHW, NCDHW)",
    "ksize": "the window's size in each dimension",
    "strides": "the step of the window, or of the slice, in each dimension",
    "padding": "SAME, VALID, or EXPLICIT with explicit_paddings",
    "explicit_paddings": "elements added before and after each dimension",
    "dilations": "the step between the filter's elements in each dimension",
    # slices: bit masks, bit i for index i
    "begin": "where the slice begins in each dimension",
    "end": "where the slice ends in each dimension, itself left out",
    "begin_mask": "bits of the indices whose begin is left out",
    "end_mask": "bits of the indices whose end is left out",
    "ellipsis_mask": "the bit of the index that is an ellipsis",
    "new_axis_mask": "bits of the indices that are new dimensions of size 1",
    "shrink_axis_mask": "bits of the indices that take one element and drop the dimension",
    # matrices
    "transpose_a": "whether the first matrix is transposed",
    "transpose_b": "whether the second matrix is transposed",
    "adjoint_a": "whether the first matrix is transposed and conjugated",
    "adjoint_b": "whether the second matrix is transposed and conjugated",
    # images
    "align_corners": "whether the centres of the corner pixels stay where they are",
    "half_pixel_centers": "whether pixels have their centres at halves",
    "antialias": "whether the kernel widens where the image becomes smaller",
    "kernel_type": "the sampling kernel, by name",
    "method": "how pixels are interpolated",
    "scale": "the factor in each dimension",
    "translation": "the shift in each dimension",
    # random numbers
    "seed": "with seed2 what the numbers follow from; both 0 for new ones each run",
    "seed2": "with seed what the numbers follow from; both 0 for new ones each run",
    "stream": "which generator they come from, so that equal calls differ",
    # text
    "separator": "what stands between the parts",
    "unit": "whether positions count bytes or characters",
    "input_encoding": "the encoding of what it reads",
    "output_encoding": "the encoding of what it gives",
    "replacement_char": "the code point in place of wrong ones",
    # sequences
    "offsets": "the offsets of the sequences' rows",
    "activation": "the function of the new state, by name",
    "gate_activation": "the function of the gates, by name",
    "cell_activation": "the function of the cell where it leaves, by name",
    "candidate_activation": "the function of what may enter the cell, by name",
    "is_reverse": "whether sequences are gone through from their end",
    "use_peepholes": "whether the gates see the cell",
    "pooltype": "how rows become one, by name",
    "context_length": "how many rows a window has",
    "context_start": "where the window begins, counted from its row",
    "h0": "the state before the first step of each sequence",
    "c0": "the cell before the first step of each sequence",
    "batch_gate": "the gates as the forward call kept them",
    "batch_hidden": "the states as the forward call kept them",
    "batch_reset_hidden_prev": "the reset states as the forward call kept them",
    "batch_cell_pre_act": "the cells as the forward call kept them",
    "cell": "the cells as the forward call gave them",
    # programs
    "recipe": "what makes the elements",
}


def meaning(op: Any, part: Any) -> str:
    """Return the documentation of a part: its own `doc=`, else the shared one; empty without either."""
    if part.doc:
        return str(part.doc)
    of = getattr(part, "lod_of", None)
    return f"the offsets of the sequences of {of}" if of else COMMON.get(part.name, "")


def is_documented(op: Any, part: Any) -> bool:
    """Return whether a part is documented: by `doc=`, by name in the operator's docstring, or by COMMON."""
    return bool(meaning(op, part)) or is_named(part.name, op.doc)


def is_named(name: str, text: str) -> bool:
    """Return whether a text contains this name, alone or in a formula; indices such as x_i and x[i] refer to x."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9])", text.replace("\\_", "_")) is not None

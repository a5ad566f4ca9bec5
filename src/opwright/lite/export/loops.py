"""C loops over the elements of tensors, one for each function of a kernel.

Lives here: `loop`.  Not here: the functions of one element (compiler/c_source), broadcasting (elements.c).

An input goes on by one element at each turn or stays where it is. The loops that C compilers make vectors of have their
steps written out: all inputs go on, or all but one do; what is left has steps in variables.
"""

from __future__ import annotations

from ...core import dtypes
from ...core.dtypes import DType
from .cases import Case, Export, later_type

ELEMENTS = {dtypes.float32: "float", dtypes.float64: "double", dtypes.int32: "int32_t", dtypes.int64: "int64_t",
            dtypes.bool: "uint8_t"}  # fmt: skip
"""C's types of elements in memory."""

LITE_TYPES = {dtypes.float32: "kTfLiteFloat32", dtypes.float64: "kTfLiteFloat64", dtypes.int32: "kTfLiteInt32",
              dtypes.int64: "kTfLiteInt64", dtypes.bool: "kTfLiteBool"}  # fmt: skip


def loop(export: Export, case: Case) -> str:
    """The loop of one function over n elements."""
    names = [f"in{k}" for k, _ in case.given]
    later = [o for o in export.options if o.passed and o.later is not None
             and (not o.choices or isinstance(case.fixed[o.name], type))]  # fmt: skip
    lines = [f"static void {case.source.name}_loop(const void *const *inputs, const int64_t *steps,",
             f"{' ' * len(f'static void {case.source.name}_loop(')}void *output, int64_t n, const ow_state *state) {{"]
    for name, (k, dtype) in zip(names, case.given):
        lines.append(f"  const {ELEMENTS[dtype]} *{name} = (const {ELEMENTS[dtype]} *)inputs[{k}]; "
                     f"/* {export.parameters[k]} */")  # fmt: skip
    lines.append(f"  {ELEMENTS[case.source.dtype]} *out = ({ELEMENTS[case.source.dtype]} *)output;")
    lines += [f"  const {later_type(option)} {option.field} = state->{option.field};" for option in later]
    if not later:
        lines.append("  (void)state;")
    passed = [option.field for option in later]
    if len(names) == 1:
        lines += ["  (void)steps;", *_turns(case, [f"{names[0]}[i]"], passed, "  ")]
        return "\n".join([*lines, "}", ""])
    tests = []
    for still in (None, *range(len(names))):
        test = " && ".join(f"steps[{k}] == {0 if i == still else 1}" for i, (k, _) in enumerate(case.given))
        held = [] if still is None else [f"    const {ELEMENTS[case.given[still][1]]} one = {names[still]}[0];"]
        elements = ["one" if k == still else f"{name}[i]" for k, name in enumerate(names)]
        tests.append((test, [*held, *_turns(case, elements, passed, "    ")]))
    text = ""
    for test, body in tests:
        text += f"{'  ' if not text else ' else '}if ({test}) {{\n" + "\n".join(body) + "\n  }"
    general = _turns(case, [f"{name}[i * steps[{k}]]" for name, (k, _) in zip(names, case.given)], passed, "    ")
    return "\n".join([*lines, text + " else {", *general, "  }", "}", ""])


def _turns(case: Case, elements: list[str], passed: list[str], indent: str) -> list[str]:
    given = [f"{e} != 0" if d.is_bool else e for e, (_, d) in zip(elements, case.given)]
    call = f"{case.source.name}({', '.join([*given, *passed])})"
    return [f"{indent}for (int64_t i = 0; i < n; ++i) out[i] = {_stored(call, case.source.dtype)};"]


def _stored(call: str, dtype: DType) -> str:
    return f"(uint8_t){call}" if dtype.is_bool else call

"""Fragments of exported C: loops over the elements of tensors, and the sizes that a shape rule computes.

Lives here: `loop`, one for each function of a kernel; `sizes_text`, arithmetic that cannot overflow, conditions and
refusals.
Not here: functions of one element (compiler/c_source), broadcasting (elements.c), the expressions of sizes
(size_expressions.py).

An input advances by one element at each iteration or stays where it is. The loops that C compilers vectorise have their
strides written out: all inputs advance, or all but one; the strides of other loops are variables.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core import dtypes
from ...core.dtypes import DType
from ...ops.definition import Operator
from . import options
from .kernel_variants import KernelVariant, OperatorExport, later_type
from .size_expressions import COMPARISONS, Branch, ComputedSizes, Expression, Tree

ELEMENTS = {
    dtypes.float32: "float",
    dtypes.float64: "double",
    dtypes.int32: "int32_t",
    dtypes.int64: "int64_t",
    dtypes.bool: "uint8_t",
}
"""C's types of elements in memory."""

LITE_TYPES: dict[DType, str] = {
    dtypes.float16: "kTfLiteFloat16",
    dtypes.bfloat16: "kTfLiteBFloat16",
    dtypes.float32: "kTfLiteFloat32",
    dtypes.float64: "kTfLiteFloat64",
    dtypes.int8: "kTfLiteInt8",
    dtypes.uint8: "kTfLiteUInt8",
    dtypes.int16: "kTfLiteInt16",
    dtypes.uint16: "kTfLiteUInt16",
    dtypes.int32: "kTfLiteInt32",
    dtypes.uint32: "kTfLiteUInt32",
    dtypes.int64: "kTfLiteInt64",
    dtypes.uint64: "kTfLiteUInt64",
    dtypes.bool: "kTfLiteBool",
}
"""The members of TfLiteType."""


def loop(export: OperatorExport, case: KernelVariant) -> str:
    """Return the loop of one function over n elements."""
    names = [f"in{k}" for k, _ in case.present]
    later = [
        o
        for o in export.options
        if o.passed and o.later is not None and (not o.choices or isinstance(case.fixed[o.name], type))
    ]
    lines = [
        f"static void {case.source.name}_loop(const void *const *inputs, const int64_t *steps,",
        f"{' ' * len(f'static void {case.source.name}_loop(')}void *output, int64_t n, const ow_state *state) {{",
    ]
    for name, (k, dtype) in zip(names, case.present):
        lines.append(
            f"  const {ELEMENTS[dtype]} *{name} = (const {ELEMENTS[dtype]} *)inputs[{k}]; /* {export.parameters[k]} */"
        )
    lines.append(f"  {ELEMENTS[case.source.dtype]} *out = ({ELEMENTS[case.source.dtype]} *)output;")
    lines += [f"  const {later_type(option)} {option.field} = state->{option.field};" for option in later]
    if not later:
        lines.append("  (void)state;")
    passed = [option.field for option in later]
    if len(names) == 1:
        lines += ["  (void)steps;", *_loop_body(case, [f"{names[0]}[i]"], passed, "  ")]
        return "\n".join([*lines, "}", ""])
    tests = []
    for still in (None, *range(len(names))):
        test = " && ".join(f"steps[{k}] == {0 if i == still else 1}" for i, (k, _) in enumerate(case.present))
        load = [] if still is None else [f"    const {ELEMENTS[case.present[still][1]]} one = {names[still]}[0];"]
        elements = ["one" if k == still else f"{name}[i]" for k, name in enumerate(names)]
        tests.append((test, [*load, *_loop_body(case, elements, passed, "    ")]))
    text = ""
    for test, body in tests:
        text += f"{'  ' if not text else ' else '}if ({test}) {{\n" + "\n".join(body) + "\n  }"
    general = _loop_body(case, [f"{name}[i * steps[{k}]]" for name, (k, _) in zip(names, case.present)], passed, "    ")
    return "\n".join([*lines, text + " else {", *general, "  }", "}", ""])


def _loop_body(case: KernelVariant, elements: list[str], passed: list[str], indent: str) -> list[str]:
    arguments = [f"{e} != 0" if d.is_bool else e for e, (_, d) in zip(elements, case.present)]
    call = f"{case.source.name}({', '.join([*arguments, *passed])})"
    return [f"{indent}for (int64_t i = 0; i < n; ++i) out[i] = {_stored(call, case.source.dtype)};"]


def _stored(call: str, dtype: DType) -> str:
    return f"(uint8_t){call}" if dtype.is_bool else call


_HELPERS = {
    "+": """static inline int64_t ow_sum(int64_t a, int64_t b, bool *fits) {
  if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {
    *fits = false;
    return 0;
  }
  return a + b;
}
""",
    "-": """static inline int64_t ow_difference(int64_t a, int64_t b, bool *fits) {
  if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) {
    *fits = false;
    return 0;
  }
  return a - b;
}
""",
    "*": """static inline int64_t ow_product(int64_t a, int64_t b, bool *fits) {
  const int64_t most = (int64_t)1 << 31; /* sizes are below it, and so is what they are made of */
  if (a > most || a < -most || b > most || b < -most) {
    *fits = *fits && (a == 0 || b == 0);
    return 0;
  }
  return a * b;
}
""",
    "//": """static inline int64_t ow_quotient(int64_t a, int64_t b, bool *fits) { /* rounded down, as Python's */
  if (b == 0 || (b == -1 && a == INT64_MIN)) {
    *fits = false;
    return 0;
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
""",
    "%": """static inline int64_t ow_remainder(int64_t a, int64_t b, bool *fits) { /* of b's sign, as Python's */
  if (b == 0) *fits = false;
  if (b == 0 || b == -1) return 0;
  return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}
""",
}
"""Arithmetic on sizes without overflow: options come from the model, which is untrusted."""
_CALLED = {"+": "ow_sum", "-": "ow_difference", "*": "ow_product", "//": "ow_quotient", "%": "ow_remainder"}


def sizes_text(op: Operator, computed: ComputedSizes, sizes: Sequence[str]) -> str:
    """Return C that computes sizes: `ow_compute`. sizes: all names, in the order of the array of sizes."""
    used: set[str] = set()
    lines = []
    for combination, tree in computed.trees:
        tests = [f"state->{o.field}_choice == {i}" for o, i in zip(computed.chosen, combination)]
        body = "\n".join(_statements(tree, sizes, used, "    "))
        lines += [f"  if ({' && '.join(tests) or 'true'}) {{", body, "  }"]
    if not computed.chosen:
        lines = ["\n".join(_statements(computed.trees[0][1], sizes, used, "  "))]
    name = options.escaped(op.name)
    helpers = "".join(text for sign, text in _HELPERS.items() if sign in used)
    needed = ", ".join(computed.names)
    first = min(sizes.index(n) for n in computed.names)
    return f"""{helpers}
/* Sizes that the shape rule computes: {needed}. False where it refuses the inputs, or they are too large. */
static inline bool ow_rule(const ow_state *state, int64_t *sizes) {{
  bool fits = true;
  (void)state;
{chr(10).join(lines)}
{"" if not computed.chosen else "  return false;" + chr(10)}}}

static TfLiteStatus ow_compute(ow_context *context, const ow_state *state, int64_t *sizes) {{
  bool good = ow_rule(state, sizes);
  for (int i = {first}; good && i < OW_SIZES; ++i) good = sizes[i] >= 0 && sizes[i] <= INT32_MAX;
  if (good) return kTfLiteOk;
  OW_REPORT(context, "{name}: there is no output for inputs of these sizes");
  return kTfLiteError;
}}
"""


def _statements(tree: Tree, sizes: Sequence[str], used: set[str], indent: str) -> list[str]:
    if isinstance(tree, Branch):
        condition = _c(tree.condition, sizes, used)
        then = _statements(tree.then, sizes, used, indent + "  ")
        return [f"{indent}if ({condition}) {{", *then, f"{indent}}}", *_statements(tree.otherwise, sizes, used, indent)]
    if tree is None:
        return [f"{indent}return false;"]
    return [
        *(f"{indent}sizes[{sizes.index(n)}] = {_c(e, sizes, used)};" for n, e in tree.items()),
        f"{indent}return fits;",
    ]


def _c(e: Expression, sizes: Sequence[str], used: set[str]) -> str:
    if isinstance(e, int):
        return str(e) if abs(e) < 2**31 else f"INT64_C({e})"
    if isinstance(e, str):
        return f"sizes[{sizes.index(e)}]"
    if e[0] == "attr":
        return f"(int64_t)state->{e[1]}"
    left, right = _c(e[1], sizes, used), _c(e[2], sizes, used)
    if e[0] in COMPARISONS:
        return f"{left} {e[0]} {right}"
    used.add(e[0])
    return f"{_CALLED[e[0]]}({left}, {right}, &fits)"

"""C that reads a node's options into an operator's attributes.

Lives here: the struct of attributes, its defaults, reading and checking each.  Not here: FlexBuffers (flexbuffers.c).

The official run time crashes after a failed init, so init never fails: it stores an error message, which prepare
reports. An older file lacks options of later versions and gets their defaults; unknown options, and a version newer
than the operator's, are errors.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ...compiler.c_source.statements import in_comment
from ...core import dtypes
from ...core.dtypes import DType
from ..format.flexbuffers import VERSION_KEY
from .kernel_variants import AttributeOption, OperatorExport, c_number, condition, later_type

READERS = {float: ("double", "ow_read_float"), int: ("int64_t", "ow_read_int"), bool: ("bool", "ow_read_bool")}


def flexbuffers(export: OperatorExport) -> str:
    """Return the FlexBuffers reader, with functions only for the kinds of attributes present: compilers warn about
    unused ones."""
    first, *more = re.split(r"/\* @(\w+) \*/\n", (Path(__file__).parent / "flexbuffers.c").read_text("utf-8"))
    words = {READERS[o.attr.type][1] if o.attr.type is not str else "ow_read_text" for o in export.options}
    words |= {"ow_read_float"} if "ow_read_bool" in words else set()
    return first + "".join(text for name, text in zip(more[::2], more[1::2]) if f"ow_read_{name}" in words)


def escaped(text: str) -> str:
    """Return text in ASCII as part of a C string literal."""
    return "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())


def quoted(text: str) -> str:
    """Return a C string literal in ASCII."""
    return f'"{escaped(text)}"'


def printed(text: str) -> str:
    """Return a C string literal that printf prints unchanged."""
    return quoted(text.replace("%", "%%"))


def state_struct(export: OperatorExport) -> str:
    """Return the struct of a node's state."""
    lines = [
        "/* What a node says of its attributes. error: in words, what is wrong with its options, or nothing. */",
        "typedef struct ow_state {",
        "  char error[200];",
    ]
    for option in export.options:
        if option.later is not None:
            lines.append(f"  {later_type(option)} {option.field};")
        if option.choices:
            lines.append(f"  int {option.field}_choice; /* {choices_in_words(option)} */")
        if option.attr.required:
            lines.append(f"  bool {option.field}_given;")
    return "\n".join([*lines, "} ow_state;\n"])


def choices_in_words(option: AttributeOption) -> str:
    """Return its values with their indices."""
    words = [
        f"{i}: {'any other' if isinstance(c, type) else 'not given' if c is None else _shown(c)}"
        for i, c in enumerate(option.choices)
    ]
    text = ", ".join(words)
    return in_comment(text if len(text) < 90 else text[:87] + "...")


def _shown(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)


def reading(export: OperatorExport) -> str:
    """Return `ow_read_options`, which reads the attributes of one node."""
    branches = [_branch(export, option) for option in export.options]
    version = f"""    if (strcmp(name, {quoted(VERSION_KEY)}) == 0) {{ /* the version that the node was written with */
      int64_t version;
      const ow_found how = ow_read_int(options, v, &version);
      if (how == OW_DAMAGED) goto damaged;
      if (how != OW_FINE || version < 1) {{
        snprintf(state->error, sizeof state->error, "the version in the node's options is invalid");
        return;
      }}
      if (version > {export.op.version}) {{
        snprintf(state->error, sizeof state->error, "the node has version %lld of the operator, this is version %d",
                 (long long)version, {export.op.version});
        return;
      }}
    }}"""
    others = ""
    if "T" not in export.op.attr_defs:
        others = """ else if (strcmp(name, "T") == 0) { /* TensorFlow's own attribute: the inputs say it, too */
    }"""
    known_names = ", ".join(export.op.attr_defs) or "none"
    return f"""static void ow_read_options(ow_bytes options, ow_state *state) {{
  ow_value v;
  ow_map map;
  if (options.data == NULL || options.size == 0) return;
  if (!ow_root(options, &v)) goto damaged;
  if (v.type == OW_FLEX_NULL) return;
  if (v.type != OW_FLEX_MAP) {{
    snprintf(state->error, sizeof state->error, "the node's options are not a map of attributes");
    return;
  }}
  if (!ow_open_map(options, v, &map)) goto damaged;
  for (size_t i = 0; i < map.n; ++i) {{
    const char *name;
    if (!ow_entry(options, &map, i, &name, &v)) goto damaged;
{version}{"".join(branches)}{others} else {{
      snprintf(state->error, sizeof state->error, "options that it does not know: %.60s; known: %.90s", name,
               {quoted(known_names)});
      return;
    }}
  }}
  return;
damaged:
  snprintf(state->error, sizeof state->error, "damaged options: %lu bytes that are not a whole FlexBuffers document",
           (unsigned long)options.size);
}}
"""


def _branch(export: OperatorExport, option: AttributeOption) -> str:
    kind: Any = option.attr.type
    name, field = option.name, option.field
    wrong = printed(f"attribute '{name}' has the wrong type: it is {option.attr.type_name()}")
    lines = [f" else if (strcmp(name, {quoted(name)}) == 0) {{"]
    if None in option.choices:
        index = option.choices.index(None)
        lines += [
            "      if (v.type == OW_FLEX_NULL) {",
            f"        state->{field}_choice = {index};",
            "        continue;",
            "      }",
        ]
    if kind is str:
        lines += [
            "      const char *text;",
            "      size_t length;",
            "      const ow_found how = ow_read_text(options, v, &text, &length);",
        ]
    else:
        c, reader = READERS[kind]
        lines += [f"      {c} number;", f"      const ow_found how = {reader}(options, v, &number);"]
    lines += ["      if (how == OW_DAMAGED) goto damaged;", "      if (how != OW_FINE) {", *_failed(wrong)]
    if option.attr.required:
        lines.append(f"      state->{field}_given = true;")
    lines += _chosen(option) if option.later is None else _number(export, option)
    return "\n".join([*lines, "    }"])


def _chosen(option: AttributeOption) -> list[str]:
    """Return statements that determine the index of an attribute's value."""
    lines = [f"      state->{option.field}_choice = -1;"]
    for i, value in enumerate(option.choices):
        if value is None:
            continue
        if isinstance(value, str):
            test = f"length == {len(value.encode())} && memcmp(text, {quoted(value)}, {len(value.encode())}) == 0"
        elif isinstance(value, bool):
            test = "number" if value else "!number"
        else:
            test = f"number == {c_number(value)}"
        lines.append(f"      if ({test}) state->{option.field}_choice = {i};")
    values = ", ".join(_shown(c) for c in option.choices if c is not None)
    words = printed(f"attribute '{option.name}' has a value that this code is not made for; it has {values}"[:180])
    return [*lines, f"      if (state->{option.field}_choice < 0) {{", *_failed(words)]


def _failed(words: str) -> list[str]:
    """Return statements that store an error message and stop reading."""
    return [f"        snprintf(state->error, sizeof state->error, {words});", "        return;", "      }"]


def _number(export: OperatorExport, option: AttributeOption) -> list[str]:
    """Return statements that read a number of any value within its check."""
    lines = []
    tests = condition(option.attr.check.canonical_form, "number") if option.attr.check is not None else []
    range_text = option.attr.check.wanted if option.attr.check is not None else ""
    checks = [(t, f"attribute '{option.name}' is out of its range: {range_text}") for t in tests]
    if option.name in export.narrow:
        dtype = export.narrow[option.name]
        words = f"attribute '{option.name}' is out of its range: the operator computes with it as {dtype.name}"
        checks += [(test, words) for test in _range_tests(dtype)]
    for test, words in checks:
        lines += [f"      if (!({test})) {{", *_failed(printed(words[:180]))]
    if option.choices:
        later = next(i for i, c in enumerate(option.choices) if isinstance(c, type))
        lines.append(f"      state->{option.field}_choice = {later};")
    return [*lines, f"      state->{option.field} = number;"]


def _range_tests(dtype: DType) -> list[str]:
    """Return tests whether an int64 is in the range of the dtype."""
    if dtype is dtypes.uint64:
        return ["number >= 0"]
    name = f"{'U' if dtype.is_unsigned else ''}INT{8 * dtype.size}"
    return [f"{'0' if dtype.is_unsigned else f'{name}_MIN'} <= number && number <= {name}_MAX"]


def defaults(export: OperatorExport) -> list[str]:
    """Return statements that set each attribute's value for nodes that do not specify it."""
    lines = []
    for option in export.options:
        value = None if option.attr.required else option.attr.default
        if option.choices:
            matching = [i for i, c in enumerate(option.choices) if c == value and type(c) is type(value)]
            later = [i for i, c in enumerate(option.choices) if isinstance(c, type)]
            index = matching[0] if matching else later[0] if later and value is not None else -1
            lines.append(f"state->{option.field}_choice = {index};")
        if option.later is not None:
            number = value if value is not None else 0
            lines.append(f"state->{option.field} = {c_number(option.later(number))};")
    return lines


def missing(export: OperatorExport) -> list[str]:
    """Return statements of prepare for required attributes, and for defaults that are not exported."""
    lines = []
    for option in export.options:
        if option.attr.required:
            words = printed(f"{export.op.name}: attribute '{option.name}' is missing from the node's options")
            lines += [f"if (!state->{option.field}_given) {{", *_refused(words)]
        elif option.choices:
            which = f"{export.op.name}: attribute '{option.name}' has its default"
            lines += [
                f"if (state->{option.field}_choice < 0) {{",
                *_refused(printed(f"{which}, which this code is not made for")),
            ]
    return lines


def _refused(words: str) -> list[str]:
    return [f"  OW_REPORT(context, {words});", "  return kTfLiteError;", "}"]


def choice_number(export: OperatorExport) -> str:
    """Return a C expression for the index of a node's combination of attributes."""
    text = "0"
    for option in export.options:
        if option.choices and option.passed:
            text = (
                f"state->{option.field}_choice"
                if text == "0"
                else (f"({text}) * {len(option.choices)} + state->{option.field}_choice")
            )
    return text

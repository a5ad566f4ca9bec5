"""The source file and the header of an exported operator.

Lives here: the order of the parts; prepare and invoke.
Not here: the parts (options.py, fragments.py, apis.py, compiler/c_source).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...compiler.c_source.expressions import helpers_text
from ...compiler.c_source.statements import in_comment
from ...core.dtypes import DType
from ...ops.definition import Operator
from . import array_kernels, options
from .apis import Api
from .array_kernels import ArrayExport
from .fragments import ELEMENTS, LITE_TYPES, loop
from .kernel_variants import OperatorExport

_HERE = Path(__file__).parent

_ARITHMETIC = """/* Results are IEEE 754's, to the last bit: no sum is regrouped, no product fused unasked. */
#if defined(__FAST_MATH__)
#error "this file needs IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2)
#error "this file needs float and double to be rounded at each step: on 32-bit x86 use -msse2 -mfpmath=sse"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif
"""


def filled(template: str, export: OperatorExport) -> str:
    """Return a template with the operator's name, its C name, and its version."""
    words = {"NAME": export.name, "OP": options.escaped(export.op.name), "VERSION": str(export.op.version)}
    return re.sub(r"@(NAME|OP|VERSION)@", lambda m: words[m[1]], template)


def comment(text: str, width: int = 116) -> str:
    """Return a block comment of these lines."""
    safe = in_comment(text).splitlines()
    return "/* " + "\n * ".join(line[:width] for line in safe).replace(" * \n", " *\n") + "\n */\n"


def doc_text(op: Operator) -> str:
    """Return the operator's docstring or signature."""
    return op.doc.strip() or op.signature()


def header(export: OperatorExport, api: Api) -> str:
    """Return NAME.h."""
    guard = f"{export.name.upper()}_OPERATOR_H_"
    includes = "\n".join(f'#include "{{root}}/{h}"' for h in api.headers)
    about = f"{export.op.signature()}, version {export.op.version}\n\n{doc_text(export.op)}\n\nFor {api.what}."
    return f"""{comment(about)}
#ifndef {guard}
#define {guard}

/* The run time's headers, as LiteRT and as TensorFlow have them. */
#if defined(__has_include)
#if __has_include("tflite/{api.headers[0]}")
#define OW_HEADERS_OF_LITERT 1
#endif
#endif
#ifdef OW_HEADERS_OF_LITERT
{includes.format(root="tflite")}
#else
{includes.format(root="tensorflow/lite")}
#endif

#ifdef __cplusplus
extern "C" {{
#endif
{filled(api.declaration, export)}
#ifdef __cplusplus
}}
#endif

#endif
"""


def source(export: OperatorExport, api: Api) -> str:
    """Return NAME.c."""
    of_arrays = isinstance(export, ArrayExport)
    sources: list[Any] = export.sources if isinstance(export, ArrayExport) else [case.source for case in export.cases]
    functions = {f.name: f for one in sources for f in one.functions}
    tables = dict.fromkeys(t for one in sources for t in one.tables)
    helpers = helpers_text(set().union(*(f.helpers for f in functions.values())))
    parts = [
        comment(
            f"{export.op.signature()}, version {export.op.version}\n\n{doc_text(export.op)}\n\n"
            f"Takes {export.words()}. For {api.what}.\nMade by `opwright op export` of the operator's kernel, "
            "for C99, C11 and C++11; README.md says how to build it."
        ),
        f'#include "{export.name}.h"\n\n'
        + "".join(f"#include <{h}.h>\n" for h in ("float", "math", "stdbool", "stdint", "stdio", "stdlib", "string")),
        _ARITHMETIC,
        _title("The kernel" if of_arrays else "The kernel: one element"),
        *([helpers] if helpers else []),
        *tables,
        *(f.text for f in functions.values()),
        _title("Its attributes, from a node's options"),
        options.flexbuffers(export),
        options.state_struct(export),
        options.reading(export),
        *([] if of_arrays else _elements(export)),
        _title("The run time"),
        f"typedef {api.context} ow_context;\ntypedef {api.node} ow_node;\ntypedef {api.tensor} ow_tensor;\n",
        api.functions.lstrip("\n"),
        _life(export),
        *(
            [array_kernels.tensors(export), _prepare_arrays(export), _invoke_arrays(export)]
            if isinstance(export, ArrayExport)
            else [_look(export), _prepare(export), _invoke(export)]
        ),
        filled(api.registration, export).lstrip("\n"),
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def _elements(export: OperatorExport) -> list[str]:
    """Return loops over the elements of tensors."""
    return [
        _title("Its tensors"),
        f"enum {{ OW_INPUTS = {len(export.op.inputs)} }};\n",
        (_HERE / "elements.c").read_text("utf-8"),
        *(loop(export, case) for case in export.cases),
        _table(export),
    ]


def _title(text: str) -> str:
    return f"/* ---- {text} {'-' * (108 - len(text))} */\n"


def _table(export: OperatorExport) -> str:
    """Return the variants, as the table in which invoke looks them up."""
    rows = []
    for c in export.cases:
        types = ", ".join("kTfLiteNoType" if d is None else LITE_TYPES[d] for d in c.inputs)
        sizes = ", ".join("0" if d is None else f"sizeof({ELEMENTS[d]})" for d in c.inputs)
        gives = c.source.dtype
        rows.append(
            f"    {{{{{types}}}, {LITE_TYPES[gives]}, {c.choice}, {{{sizes}}}, sizeof({ELEMENTS[gives]}), "
            f"{c.source.name}_loop}},"
        )
    return f"""/* What there is: types of inputs and result, which choice of attributes, sizes of elements, the loop. */
typedef struct ow_case {{
  TfLiteType types[OW_INPUTS];
  TfLiteType gives;
  int choice;
  size_t sizes[OW_INPUTS];
  size_t size;
  void (*loop)(const void *const *inputs, const int64_t *steps, void *output, int64_t n, const ow_state *state);
}} ow_case;

static const ow_case ow_cases[] = {{
{chr(10).join(rows)}
}};

static const ow_case *ow_case_of(const TfLiteType *types, int choice) {{
  for (size_t i = 0; i < sizeof ow_cases / sizeof ow_cases[0]; ++i) {{
    const ow_case *one = &ow_cases[i];
    if (one->choice == choice && memcmp(one->types, types, sizeof one->types) == 0) return one;
  }}
  return NULL;
}}
"""


def _life(export: OperatorExport) -> str:
    body = "\n".join(f"  {line}" for line in options.defaults(export))
    return f"""/* Once for each node: its attributes. What is wrong with them prepare says. */
static void *ow_init(ow_context *context, const char *buffer, size_t length) {{
  ow_state *state = (ow_state *)calloc(1, sizeof(ow_state));
  ow_bytes given;
  (void)context;
  if (state == NULL) return NULL;
{body + chr(10) if body else ""}  given.data = (const uint8_t *)buffer;
  given.size = length;
  ow_read_options(given, state);
  for (char *c = state->error; *c != 0; ++c) {{ /* names are the file's: no control characters in reports */
    if (*c == 127 || (unsigned char)*c < 32) *c = '?';
  }}
  return state;
}}

static void ow_free(ow_context *context, void *state) {{
  (void)context;
  free(state);
}}
"""


def _look(export: OperatorExport) -> str:
    name = options.escaped(export.op.name)
    optional, there = "", "ow_input(context, node, k)"
    if export.optional:
        there = f"k < ow_inputs(node) ? {there} : NULL"
        places = " || ".join(f"k == {k}" for k in export.optional)
        optional = f"""    if (t == NULL && ({places})) {{ /* it may be left out */
      types[k] = kTfLiteNoType;
      ranks[k] = 0;
      data[k] = context; /* which nobody reads */
      continue;
    }}
"""
    return f"""/* The inputs of a node as types and sizes. */
static TfLiteStatus ow_look(ow_context *context, ow_node *node, TfLiteType *types, int *ranks,
                            int64_t (*dims)[OW_MAX_RANK], const void **data) {{
  for (int k = 0; k < OW_INPUTS; ++k) {{
    const ow_tensor *t = {there};
{optional}    if (t == NULL) {{
      OW_REPORT(context, "{name}: input %d is left out", k);
      return kTfLiteError;
    }}
    types[k] = ow_type(t);
    ranks[k] = ow_rank(t);
    data[k] = ow_data(t);
    if (ranks[k] < 0 || ranks[k] > OW_MAX_RANK) {{
      OW_REPORT(context, "{name}: input %d has %d dimensions; at most %d are possible", k, ranks[k], (int)OW_MAX_RANK);
      return kTfLiteError;
    }}
    for (int axis = 0; axis < ranks[k]; ++axis) dims[k][axis] = ow_dim(t, axis);
  }}
  return kTfLiteOk;
}}
"""


def _state_checked(export: OperatorExport) -> str:
    """Return statements of prepare that report errors of init and check the number of tensors."""
    name = options.escaped(export.op.name)
    required = "\n".join(f"  {line}" for line in options.missing(export))
    outputs = len(export.op.outputs)
    least = inputs = len(export.op.inputs)
    while least - 1 in export.optional:
        least -= 1
    fits = (
        "ow_inputs(node) != OW_INPUTS"
        if least == inputs
        else (f"ow_inputs(node) < {least} || ow_inputs(node) > OW_INPUTS")
    )
    return f"""  if (state == NULL) {{
    OW_REPORT(context, "{name}: no memory for its attributes");
    return kTfLiteError;
  }}
  if (state->error[0] != 0) {{
    OW_REPORT(context, "{name}: %s", state->error);
    return kTfLiteError;
  }}
{required + chr(10) if required else ""}  if ({fits} || ow_outputs(node) != {outputs}) {{
    OW_REPORT(context, "{name}: the node has %d inputs and %d outputs; wanted: %d and {outputs}",
              ow_inputs(node), ow_outputs(node), (int)OW_INPUTS);
    return kTfLiteError;
  }}
"""


def _prepare_arrays(export: ArrayExport) -> str:
    sizes = array_kernels.compute(export)
    return f"""/* After each change of the inputs' shapes: checks, and the shapes of the results. */
static TfLiteStatus ow_prepare(ow_context *context, ow_node *node) {{
  const ow_state *state = (const ow_state *)ow_state_of(node);
  ow_inputs_of look;
{_state_checked(export)}  if (ow_look(context, node, &look) != kTfLiteOk{sizes}) return kTfLiteError;
{array_kernels.shapes(export)}  return kTfLiteOk;
}}
"""


def _invoke_arrays(export: ArrayExport) -> str:
    name = options.escaped(export.op.name)
    return f"""/* Each run. */
static TfLiteStatus ow_invoke(ow_context *context, ow_node *node) {{
  const ow_state *state = (const ow_state *)ow_state_of(node);
  ow_inputs_of look;
  void *out[OW_OUTPUTS];
  int64_t status = -1;
  const char *failed = "";
  if (state == NULL || ow_look(context, node, &look) != kTfLiteOk{array_kernels.compute(export)}) {{
    return kTfLiteError;
  }}
  for (int k = 0; k < OW_OUTPUTS; ++k) {{
    const ow_tensor *t = ow_output(context, node, k);
    if (t == NULL) return kTfLiteError;
    out[k] = ow_data(t);
  }}
  switch ({options.choice_number(export)}) {{
{array_kernels.running(export)}  }}
  if (status == 0) return kTfLiteOk;
  OW_REPORT(context, "{name}: %s", status < 0 ? "its attributes differ from the prepared ones" : failed);
  return kTfLiteError;
}}
"""


def _type_names(export: OperatorExport) -> str:
    used: dict[DType, None] = dict.fromkeys(
        d for c in export.cases for d in (*(d for _, d in c.present), c.source.dtype)
    )
    return ", ".join(f"{d.name} is {LITE_TYPES[d]}" for d in used)


def _prepare(export: OperatorExport) -> str:
    op, name = export.op, options.escaped(export.op.name)
    lines = []
    for k, declared in enumerate(op.inputs):
        if declared.ranks is not None:
            test = " && ".join(f"ranks[{k}] != {r}" for r in declared.ranks)
            words = f"input {declared.name!r} has %d dimensions; wanted: {' or '.join(map(str, declared.ranks))}"
            lines += [
                f"  if ({test}) {{",
                f'    OW_REPORT(context, "{name}: {words}", ranks[{k}]);',
                "    return kTfLiteError;",
                "  }",
            ]
    like = op.outputs[0].like
    if not op.elementwise and like is not None and op.infer_rule is None and len(op.inputs) > 1:
        k = op.input_names.index(like)
        lines += [
            f"  bool alike = rank == ranks[{k}]; /* the result has the shape of {like} */",
            f"  for (int axis = 0; alike && axis < rank; ++axis) alike = shape[axis] == dims[{k}][axis];",
            "  if (!alike) {",
            f'    OW_REPORT(context, "{name}: the inputs make a larger shape than {like} has");',
            "    return kTfLiteError;",
            "  }",
        ]
    types = ", ".join("%d" for _ in op.inputs)
    type_arguments = ", ".join(f"(int)types[{k}]" for k in range(len(op.inputs)))
    return f"""/* After each change of the inputs' shapes: checks, and the shape of the result. */
static TfLiteStatus ow_prepare(ow_context *context, ow_node *node) {{
  const ow_state *state = (const ow_state *)ow_state_of(node);
  TfLiteType types[OW_INPUTS];
  int ranks[OW_INPUTS];
  int64_t dims[OW_INPUTS][OW_MAX_RANK], shape[OW_MAX_RANK];
  const void *data[OW_INPUTS];
  ow_axes axes;
{_state_checked(export)}  if (ow_look(context, node, types, ranks, dims, data) != kTfLiteOk) return kTfLiteError;
  const ow_case *found = ow_case_of(types, {options.choice_number(export)});
  if (found == NULL) {{ /* {_type_names(export)} */
    OW_REPORT(context, "{name}: inputs of types {types} (TfLiteType); it takes {export.words()}", {type_arguments});
    return kTfLiteError;
  }}
  ow_tensor *output = ow_output(context, node, 0);
  if (output == NULL || ow_type(output) != found->gives) {{
    OW_REPORT(context, "{name}: the output has type %d; it gives %d (TfLiteType)",
              output == NULL ? 0 : (int)ow_type(output), (int)found->gives);
    return kTfLiteError;
  }}
  const int rank = ow_broadcast(ranks, dims, shape, &axes);
  if (rank < 0) {{
    OW_REPORT(context, "{name}: the shapes of the inputs do not fit together");
    return kTfLiteError;
  }}
{chr(10).join(lines) + chr(10) if lines else ""}  TfLiteIntArray *sizes = ow_shape(rank);
  if (sizes == NULL) {{
    OW_REPORT(context, "{name}: no memory for a shape");
    return kTfLiteError;
  }}
  for (int axis = 0; axis < rank; ++axis) sizes->data[axis] = (int)shape[axis];
  return ow_resize(context, output, sizes);
}}
"""


def _invoke(export: OperatorExport) -> str:
    name = options.escaped(export.op.name)
    return f"""/* Each run. */
static TfLiteStatus ow_invoke(ow_context *context, ow_node *node) {{
  const ow_state *state = (const ow_state *)ow_state_of(node);
  TfLiteType types[OW_INPUTS];
  int ranks[OW_INPUTS];
  int64_t dims[OW_INPUTS][OW_MAX_RANK], shape[OW_MAX_RANK], index[OW_MAX_RANK] = {{0}}, steps[OW_INPUTS];
  const void *data[OW_INPUTS];
  ow_axes axes;
  if (state == NULL || ow_look(context, node, types, ranks, dims, data) != kTfLiteOk) return kTfLiteError;
  const ow_case *found = ow_case_of(types, {options.choice_number(export)});
  ow_tensor *output = ow_output(context, node, 0);
  if (found == NULL || output == NULL || ow_broadcast(ranks, dims, shape, &axes) < 0) {{
    OW_REPORT(context, "{name}: the inputs differ from the prepared ones");
    return kTfLiteError;
  }}
  char *out = (char *)ow_data(output);
  const int last = axes.rank - 1;
  const int64_t n = axes.sizes[last];
  for (int axis = 0; axis <= last; ++axis) {{
    if (axes.sizes[axis] == 0) return kTfLiteOk; /* nothing to compute */
  }}
  for (int k = 0; k < OW_INPUTS; ++k) {{
    steps[k] = axes.steps[k][last];
    if (data[k] == NULL) out = NULL;
  }}
  if (out == NULL) {{
    OW_REPORT(context, "{name}: a tensor has no data");
    return kTfLiteError;
  }}
  for (;;) {{
    found->loop(data, steps, out, n, state);
    out += (size_t)n * found->size;
    int axis = last - 1; /* the next row: the last axis that is not at its end goes on */
    for (; axis >= 0; --axis) {{
      const bool goes_on = ++index[axis] < axes.sizes[axis];
      const int64_t by = goes_on ? 1 : 1 - axes.sizes[axis];
      for (int k = 0; k < OW_INPUTS; ++k) {{
        data[k] = (const char *)data[k] + by * axes.steps[k][axis] * (int64_t)found->sizes[k];
      }}
      if (goes_on) break;
      index[axis] = 0;
    }}
    if (axis < 0) return kTfLiteOk;
  }}
}}
"""

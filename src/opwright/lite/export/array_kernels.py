"""Export of kernels on arrays: the mapping of arrays to tensors, and the shapes that follow.

Lives here: `array_export_of`, the parts of the source that concern tensors.
Not here: kernels on scalars (kernel_variants.py, fragments.py), the rest of the source (source.py), the kernel's own C
(compiler/c_source), computed sizes (size_expressions.py, fragments.py).

The annotations determine everything: an input's sizes are numbers or names, and a name is one size in all arrays. The
shape rule computes output sizes that no input has. If there are none, `infer` runs on sample sizes, to check that it
agrees with the annotations.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...compiler.c_source.expressions import c_type
from ...compiler.c_source.kernels import ArraySource, array_source
from ...compiler.language.llvm_types import KIND
from ...compiler.language.parameters import REST, Array, number_word
from ...compiler.operator_kernels import ATTR, INPUT, OperatorKernel
from ...core.dtypes import int64, uint8
from ...core.errors import OpError, UnimplementedError
from ...core.specs import TensorSpec
from ...ops.definition import Operator
from . import options
from .fragments import LITE_TYPES, sizes_text
from .kernel_variants import MOST_CHOICES, OperatorExport, c_name, check_names, option_of, stem_of
from .size_expressions import ComputedSizes, computed_sizes


@dataclass
class ArrayExport(OperatorExport):
    """An operator with a kernel on arrays, as C.

    sources: by choice of constants. sizes: their names in order: those of inputs, then computed ones.
    """

    kernel: Any = None
    sources: list[ArraySource] = field(default_factory=list)
    sizes: tuple[str, ...] = ()
    computed: ComputedSizes | None = None

    @property
    def inputs(self) -> list[tuple[str, Array]]:
        """The kernel's parameters for inputs."""
        return self._placed(INPUT)

    @property
    def outputs(self) -> list[tuple[str, Array]]:
        """The kernel's parameters for outputs."""
        return self._placed("output")

    def _placed(self, role: str) -> list[tuple[str, Array]]:
        parameters = [(position, name) for name, (kind, position) in self.kernel.roles.items() if kind == role]
        return [(name, self.kernel.arrays[name]) for _, name in sorted(parameters)]

    def words(self) -> str:
        """Describe the inputs."""
        return ", ".join(f"{name} {kind!r}" for name, kind in self.inputs)


def array_export_of(op: Operator, kernel: OperatorKernel, attrs: Mapping[str, Any]) -> ArrayExport:
    """Return the parts of the operator's C. Raises UnimplementedError for anything that C cannot express."""
    check_names(op, attrs)
    numbers = [attribute for role, attribute in kernel.roles.values() if role == ATTR]
    constants = [n for n in kernel.kernel.constants if n in op.attr_defs]
    candidates = [option_of(op, a, attrs, a.name in (*numbers, *constants)) for a in op.attr_defs.values()]
    attributes = tuple(o for o in candidates if o is not None)
    for option in attributes:
        if option.name in constants and not option.choices:
            raise UnimplementedError(
                op=op.name,
                what=f"attribute {option.name!r} is a constant of its kernel",
                do=f"export it for known values: attrs={{{option.name!r}: [...]}}",
            )
        if option.name in numbers and option.later is None:
            raise UnimplementedError(
                op=op.name,
                what=f"attribute {option.name!r} is a number of its kernel",
                found="known values of it",
                do="leave it out of attrs=",
            )
    export = ArrayExport(op, c_name(op.name), stem_of(op.name), op.input_names, attributes, kernel=kernel)
    chosen = [o for o in attributes if o.choices and o.passed]
    combinations = list(itertools.product(*(o.choices for o in chosen)))
    if len(combinations) > MOST_CHOICES:
        raise UnimplementedError(
            op=op.name,
            what="its attributes have too many combinations",
            found=len(combinations),
            wanted=f"at most {MOST_CHOICES}",
            do="attrs={...}",
        )
    export.choices = len(combinations)
    export.narrow = {
        attribute: kind
        for name, (role, attribute) in kernel.roles.items()
        if role == ATTR and (kind := kernel.kernel.parameters[name]).is_integer and kind is not int64
    }
    _check_numbers(op, kernel)
    export.sizes = tuple(dict.fromkeys(s for _, k in export.inputs for s in k.shape if isinstance(s, str)))
    _complete_sizes(export)
    for k, values in enumerate(combinations):
        constants_of_variant = {n: v for n, v in kernel.kernel.constants.items() if n not in op.attr_defs}
        constants_of_variant |= {o.name: v for o, v in zip(chosen, values) if o.name in constants}
        name = f"{export.stem}_{k}" if len(combinations) > 1 else export.stem
        try:
            export.sources.append(array_source(kernel.kernel, name, constants_of_variant))
        except OpError as error:
            if error.op is not None:
                raise
            raise UnimplementedError(op=op.name, what=error.message) from error
    wrong = sorted(n for n, _ in export.inputs if any(n in s.written for s in export.sources))
    if wrong:
        raise UnimplementedError(op=op.name, what=f"its kernel writes input {wrong[0]!r}", do="write an output")
    return export


def _check_numbers(op: Operator, kernel: OperatorKernel) -> None:
    """Raise UnimplementedError if an attribute's type or default does not fit the kernel's parameter."""
    for name, (role, attribute) in kernel.roles.items():
        kind = kernel.kernel.parameters[name]
        if role != ATTR or kind.is_floating:
            continue
        attr = op.attr_defs[attribute]
        if attr.type is float:
            raise UnimplementedError(
                op=op.name,
                what=f"attribute {attribute!r} is a float and the kernel's parameter {kind.name}",
                do="annotate both alike",
            )
        if not attr.required and attr.default is not None:
            number_word(attr.default, kind, op.name, attribute)


def _complete_sizes(export: ArrayExport) -> None:
    """Set the sizes of outputs that no input has. Raises UnimplementedError if C cannot compute them, or `infer`
    contradicts the annotations."""
    op = export.op
    names = tuple(
        dict.fromkeys(
            s for _, k in export.outputs for s in k.shape if isinstance(s, str) and s != REST and s not in export.sizes
        )
    )
    if names:
        export.computed = computed_sizes(op, export.options, export.inputs, export.outputs, names)
        export.sizes += names
        return
    samples = dict(zip(export.sizes, (7, 11, 13, 17, 19, 23, 29, 31)))
    full = [_shape(kind, samples) for _, kind in export.inputs]
    try:
        specs = op.infer(
            op.bind({o.name: o.choices[0] for o in export.options if o.attr.required and o.choices}),
            [TensorSpec(s, k.dtype) for s, (_, k) in zip(full, export.inputs)],
        )
    except (OpError, TypeError, ValueError):  # the rule rejects these sizes; the annotations remain valid
        return
    for spec, (name, kind) in zip(specs, export.outputs):
        if spec.shape.is_fully_defined() and tuple(spec.shape) != tuple(_shape(kind, samples)):
            raise UnimplementedError(
                op=op.name,
                what=f"the shape of output {name!r} is not what its annotation says",
                found=f"infer: {spec.short()}",
                wanted=repr(kind),
                do="name the sizes that are alike by one name",
            )


def _shape(kind: Array, sizes: Mapping[str, int]) -> list[int]:
    return [n for s in kind.shape for n in ((2, 3) if s == REST else (s if isinstance(s, int) else sizes[s],))]


# ---- C ----------------------------------------------------------------------------------------------------------


def tensors(export: ArrayExport) -> str:
    """Return C that reads the inputs' sizes."""
    op = options.escaped(export.op.name)
    lines = []
    for k, (name, kind) in enumerate(export.inputs):
        inner = len(kind.shape) - kind.leading
        sign, words = ("<", "at least ") if kind.leading else ("!=", "")
        call = f"ow_take(context, node, {k}, {LITE_TYPES[kind.dtype]}, look)"
        rank = f"{op}: {name} has %d dimensions; wanted: {words}{inner}"
        lines += [
            f"  /* {name}: {kind!r} */",
            f"  if ({call} != kTfLiteOk) return kTfLiteError;",
            f"  if (look->ranks[{k}] {sign} {inner}) {{",
            f'    OW_REPORT(context, "{rank}", look->ranks[{k}]);',
            "    return kTfLiteError;",
            "  }",
        ]
        for axis, size in enumerate(kind.shape):
            what = options.quoted(f"{name}, axis {axis}")
            if size == REST:
                lines += [
                    f"  int64_t rest{k} = 1;",
                    f"  for (int axis = 0; axis < look->ranks[{k}] - {inner}; ++axis) {{",
                    f"    rest{k} = (int64_t)((uint64_t)rest{k} * (uint64_t)look->dims[{k}][axis]);",
                    "  }",
                ]
                size_text = f"rest{k}"
            else:
                from_end = len(kind.shape) - axis
                size_text = f"look->dims[{k}][look->ranks[{k}] - {from_end}]"
            if isinstance(size, str):
                index = export.sizes.index(size)
                lines.append(
                    f"  if (!ow_same(context, {what}, &look->sizes[{index}], {size_text})) return kTfLiteError;"
                )
            else:
                lines += [
                    "  {",
                    f"    int64_t wanted = {size};",
                    f"    if (!ow_same(context, {what}, &wanted, {size_text})) return kTfLiteError;",
                    "  }",
                ]
    count = max(len(export.sizes), 1)
    counts = f"OW_INPUTS = {len(export.inputs)}, OW_OUTPUTS = {len(export.outputs)}, OW_SIZES = {count}"
    return f"""enum {{ {counts}, OW_MAX_RANK = 64 }};

/* What a node's inputs are: sizes by name, in the order {", ".join(export.sizes) or "none"}. */
typedef struct ow_inputs_of {{
  int ranks[OW_INPUTS];
  int64_t dims[OW_INPUTS][OW_MAX_RANK], sizes[OW_SIZES];
  const void *data[OW_INPUTS];
}} ow_inputs_of;

/* One input's type, sizes and data. */
static TfLiteStatus ow_take(ow_context *context, ow_node *node, int k, TfLiteType type, ow_inputs_of *look) {{
  const ow_tensor *t = ow_input(context, node, k);
  if (t == NULL || ow_type(t) != type) {{
    OW_REPORT(context, "{op}: input %d has type %d; it takes %d (TfLiteType)", k, t == NULL ? 0 : (int)ow_type(t),
              (int)type);
    return kTfLiteError;
  }}
  look->data[k] = ow_data(t);
  look->ranks[k] = ow_rank(t);
  if (look->ranks[k] < 0 || look->ranks[k] > OW_MAX_RANK) {{
    OW_REPORT(context, "{op}: input %d has %d dimensions; at most %d are possible", k, look->ranks[k],
              (int)OW_MAX_RANK);
    return kTfLiteError;
  }}
  for (int axis = 0; axis < look->ranks[k]; ++axis) look->dims[k][axis] = ow_dim(t, axis);
  return kTfLiteOk;
}}

/* Whether a size is what it was elsewhere; the first that is seen is kept. */
static inline bool ow_same(ow_context *context, const char *what, int64_t *known, int64_t size) {{
  if (*known < 0) *known = size;
  if (*known == size) return true;
  OW_REPORT(context, "{op}: %s has size %lld; wanted: %lld", what, (long long)size, (long long)*known);
  return false;
}}

static TfLiteStatus ow_look(ow_context *context, ow_node *node, ow_inputs_of *look) {{
  for (int i = 0; i < OW_SIZES; ++i) look->sizes[i] = -1;
{chr(10).join(lines)}
  return kTfLiteOk;
}}
{"" if export.computed is None else sizes_text(export.op, export.computed, export.sizes)}"""


def compute(export: ArrayExport) -> str:
    """Return a condition to append to `ow_look`: whether the computed sizes are invalid."""
    return "" if export.computed is None else " || ow_compute(context, state, look.sizes) != kTfLiteOk"


def shapes(export: ArrayExport) -> str:
    """Return statements of prepare that set each output's shape."""
    op = options.escaped(export.op.name)
    lines = []
    for k, (name, kind) in enumerate(export.outputs):
        inner = len(kind.shape) - kind.leading
        rank, first = str(inner), ""
        if kind.leading:
            like = export.op.outputs[k].like
            leading = [i for i, (_, other) in enumerate(export.inputs) if other.leading]
            source = next((i for i in leading if export.inputs[i][0] == like), leading[0])
            before = f"look.ranks[{source}] - {len(export.inputs[source][1].shape) - 1}"
            rank = f"{before} + {inner}"
            first = (
                f"    for (int axis = 0; axis < {before}; ++axis) {{\n"
                f"      sizes->data[axis] = (int)look.dims[{source}][axis];\n    }}\n"
            )
        own = [s for s in kind.shape if s != REST]
        places = [f"look.sizes[{export.sizes.index(s)}]" if isinstance(s, str) else str(s) for s in own]
        own_sizes = "".join(f"    sizes->data[rank - {inner - i}] = (int){p};\n" for i, p in enumerate(places))
        lines.append(f"""  {{ /* {name}: {kind!r} */
    ow_tensor *output = ow_output(context, node, {k});
    if (output == NULL || ow_type(output) != {LITE_TYPES[kind.dtype]}) {{
      OW_REPORT(context, "{op}: output {k} has type %d; it gives {kind.dtype.name}",
                output == NULL ? 0 : (int)ow_type(output));
      return kTfLiteError;
    }}
    const int rank = {rank};
    TfLiteIntArray *sizes = ow_shape(rank);
    if (sizes == NULL) return kTfLiteError;
{first}{own_sizes}    if (ow_resize(context, output, sizes) != kTfLiteOk) return kTfLiteError;
  }}
""")
    return "".join(lines)


def running(export: ArrayExport) -> str:
    """Return statements of invoke that run the kernel; `status` is the index of the failed guard."""
    cases = []
    for k, source in enumerate(export.sources):
        call = ", ".join(_words(export))
        items = f"{source.items}({call})" if source.items is not None else "1"
        guards = ", ".join(options.quoted(g.rpartition("/")[2]) for g in source.guards) or '""'
        cases.append(f"""    case {k}: {{
      static const char *const guards[] = {{{guards}}};
      status = {source.name}({call}, 0, {items});
      if (status > 0) failed = guards[status - 1];
      break;
    }}
""")
    return "".join(cases)


def _words(export: ArrayExport) -> list[str]:
    """Return the kernel's arguments."""
    words = []
    fields = {o.name: o.field for o in export.options}
    for name, (role, tensor) in export.kernel.roles.items():
        kind = export.kernel.kernel.parameters[name]
        if role == ATTR:
            words.append(f"({c_type(KIND[kind])})state->{fields[tensor]}")
            continue
        element = c_type(KIND[uint8 if kind.dtype.is_bool else kind.dtype])
        base = f"(const {element} *)look.data[{tensor}]" if role == INPUT else f"({element} *)out[{tensor}]"
        sizes = [f"look.sizes[{export.sizes.index(s)}]" if isinstance(s, str) else str(s) for s in kind.shape]
        words += [base, *sizes]
    return words

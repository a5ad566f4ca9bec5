"""The generations of the TensorFlow Lite C API, by the functions that an exported source calls.

Lives here: `Api`, the table APIS.  Not here: the rest of the source (source.py).

Every generation defines the same few functions at the top of the file, so that the remainder is common to all.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import NotFoundError


@dataclass(frozen=True)
class Api:
    """One generation of the C API.

    what: a description. headers: below tensorflow/lite or tflite. context, node, tensor: the names of the C types.
    functions: C functions by which the source calls the run time. registration, declaration: C templates, with
    `@Name@`, `@OP@`, `@VERSION@`.
    """

    name: str
    what: str
    headers: tuple[str, ...]
    context: str
    node: str
    tensor: str
    functions: str
    registration: str
    declaration: str


_OPAQUE_FUNCTIONS = """
#define OW_REPORT(context, ...) TfLiteOpaqueContextReportError(context, __VA_ARGS__)

static inline int ow_inputs(const ow_node *node) { return TfLiteOpaqueNodeNumberOfInputs(node); }
static inline int ow_outputs(const ow_node *node) { return TfLiteOpaqueNodeNumberOfOutputs(node); }
static inline void *ow_state_of(const ow_node *node) { return TfLiteOpaqueNodeGetUserData(node); }
static inline const ow_tensor *ow_input(ow_context *context, const ow_node *node, int i) {
  return TfLiteOpaqueNodeGetInput(context, node, i);
}
static inline ow_tensor *ow_output(ow_context *context, ow_node *node, int i) {
  return TfLiteOpaqueNodeGetOutput(context, node, i);
}
static inline TfLiteType ow_type(const ow_tensor *t) { return TfLiteOpaqueTensorType(t); }
static inline int ow_rank(const ow_tensor *t) { return TfLiteOpaqueTensorNumDims(t); }
static inline int ow_dim(const ow_tensor *t, int axis) { return TfLiteOpaqueTensorDim(t, axis); }
static inline void *ow_data(const ow_tensor *t) { return TfLiteOpaqueTensorData(t); }
static inline TfLiteIntArray *ow_shape(int rank) { return TfLiteIntArrayCreate(rank); }
static inline TfLiteStatus ow_resize(ow_context *context, ow_tensor *t, TfLiteIntArray *shape) {
  return TfLiteOpaqueContextResizeTensor(context, t, shape); /* which takes the shape over */
}
"""

_STRUCT_FUNCTIONS = """
#define OW_REPORT(context, ...) (context)->ReportError(context, __VA_ARGS__)

static inline int ow_inputs(const ow_node *node) { return node->inputs == NULL ? 0 : node->inputs->size; }
static inline int ow_outputs(const ow_node *node) { return node->outputs == NULL ? 0 : node->outputs->size; }
static inline void *ow_state_of(const ow_node *node) { return node->user_data; }
static inline ow_tensor *ow_numbered(ow_context *context, int index) {
  return index < 0 || (size_t)index >= context->tensors_size ? NULL : &context->tensors[index];
}
static inline const ow_tensor *ow_input(ow_context *context, const ow_node *node, int i) {
  return ow_numbered(context, node->inputs->data[i]);
}
static inline ow_tensor *ow_output(ow_context *context, ow_node *node, int i) {
  return ow_numbered(context, node->outputs->data[i]);
}
static inline TfLiteType ow_type(const ow_tensor *t) { return t->type; }
static inline int ow_rank(const ow_tensor *t) { return t->dims == NULL ? -1 : t->dims->size; }
static inline int ow_dim(const ow_tensor *t, int axis) { return t->dims->data[axis]; }
static inline void *ow_data(const ow_tensor *t) { return t->data.data; }
/* By malloc, as the run time frees it: so the library needs no symbol of the run time. */
static inline TfLiteIntArray *ow_shape(int rank) {
  TfLiteIntArray *shape = (TfLiteIntArray *)malloc(sizeof(TfLiteIntArray) + sizeof(int) * (size_t)(rank + 1));
  if (shape != NULL) shape->size = rank;
  return shape;
}
static inline TfLiteStatus ow_resize(ow_context *context, ow_tensor *t, TfLiteIntArray *shape) {
  return context->ResizeTensor(context, t, shape); /* which takes the shape over */
}
"""

_STRUCT_REGISTRATION = """
TfLiteRegistration *@NAME@OpRegistration(void) {
  static TfLiteRegistration registration; /* what is not set here is null */
  registration.init = ow_init;
  registration.free = ow_free;
  registration.prepare = ow_prepare;
  registration.invoke = ow_invoke;
  registration.builtin_code = kTfLiteBuiltinCustom;
  registration.custom_name = "@OP@";
  registration.version = @VERSION@;
  return &registration;
}
"""

_STRUCT_DECLARATION = """
/* The operator's record, the same at each call; for a resolver's AddCustom("@OP@", ...). */
TfLiteRegistration *@NAME@OpRegistration(void);
"""


def _operator(kind: str, create: str, prefix: str) -> str:
    return f"""
{kind} *@NAME@OpRegistrationExternal(void) {{
  static {kind} *made; /* made by the first call, and kept */
  if (made == NULL) {{
    made = {create};
    if (made == NULL) return NULL;
    {prefix}SetInit(made, ow_init);
    {prefix}SetFree(made, ow_free);
    {prefix}SetPrepare(made, ow_prepare);
    {prefix}SetInvoke(made, ow_invoke);
  }}
  return made;
}}

const TfLiteRegistration *@NAME@OpRegistration(void) {{
  static TfLiteRegistration registration; /* what is not set here is null */
  registration.builtin_code = kTfLiteBuiltinCustom;
  registration.custom_name = "@OP@";
  registration.version = @VERSION@;
  registration.registration_external = @NAME@OpRegistrationExternal();
  return &registration;
}}
"""


def _operator_declaration(kind: str) -> str:
    return f"""
/* The operator, the same at each call, the first of which is made by one thread; for
 * TfLiteInterpreterOptionsAddOperator. It is kept until the process ends. */
{kind} *@NAME@OpRegistrationExternal(void);

/* The same as a record that a C++ resolver takes: AddCustom("@OP@", ...). */
const TfLiteRegistration *@NAME@OpRegistration(void);
"""


_OPAQUE_TYPES = ("TfLiteOpaqueContext", "TfLiteOpaqueNode", "TfLiteOpaqueTensor")
_OPAQUE_HEADERS = ("c/c_api.h", "c/c_api_opaque.h", "c/common.h", "builtin_ops.h")

APIS: dict[str, Api] = {
    api.name: api
    for api in (
        Api(
            "opaque",
            "the opaque API (TfLiteOperator): TensorFlow 2.18 and later, LiteRT",
            _OPAQUE_HEADERS,
            *_OPAQUE_TYPES,
            _OPAQUE_FUNCTIONS,
            _operator(
                "TfLiteOperator",
                'TfLiteOperatorCreate(kTfLiteBuiltinCustom, "@OP@", @VERSION@, NULL)',
                "TfLiteOperator",
            ),
            _operator_declaration("TfLiteOperator"),
        ),
        Api(
            "external",
            "the opaque API by its older names (TfLiteRegistrationExternal): TensorFlow 2.9 to 2.16",
            _OPAQUE_HEADERS,
            *_OPAQUE_TYPES,
            _OPAQUE_FUNCTIONS,
            _operator(
                "TfLiteRegistrationExternal",
                'TfLiteRegistrationExternalCreate(kTfLiteBuiltinCustom, "@OP@", @VERSION@)',
                "TfLiteRegistrationExternal",
            ),
            _operator_declaration("TfLiteRegistrationExternal"),
        ),
        Api(
            "struct",
            "the struct API (TfLiteRegistration): every version; the library needs no symbol of the run time",
            ("c/common.h", "builtin_ops.h"),
            "TfLiteContext",
            "TfLiteNode",
            "TfLiteTensor",
            _STRUCT_FUNCTIONS,
            _STRUCT_REGISTRATION,
            _STRUCT_DECLARATION,
        ),
    )
}
"""The generations by name."""


def api_named(name: str) -> Api:
    """Return a generation. Raises NotFoundError, which lists them."""
    if name not in APIS:
        raise NotFoundError(what="no such C API", found=name, wanted=", ".join(APIS))
    return APIS[name]

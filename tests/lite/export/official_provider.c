/* The functions of the opaque API that exported operators use, over the official run time's own structs: for tests that
   put an operator into an official interpreter, whose wheel exports none of them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/c_api_opaque.h"
#include "tensorflow/lite/c/common.h"

/* As the official run time reads it. */
struct TfLiteOperator {
  const char *custom_name;
  int version;
  void *(*init)(TfLiteOpaqueContext *, const char *, size_t);
  void (*free)(TfLiteOpaqueContext *, void *);
  TfLiteStatus (*prepare)(TfLiteOpaqueContext *, TfLiteOpaqueNode *);
  TfLiteStatus (*invoke)(TfLiteOpaqueContext *, TfLiteOpaqueNode *);
  void *async_kernel;
  int32_t builtin_code, node_index;
  uint64_t inplace_operator;
  void *user_data, *with_data[5];
};

TfLiteOperator *TfLiteOperatorCreate(TfLiteBuiltinOperator code, const char *name, int version, void *user_data) {
  TfLiteOperator *op = (TfLiteOperator *)calloc(1, sizeof(TfLiteOperator));
  op->custom_name = name;
  op->version = version;
  op->builtin_code = (int32_t)code;
  op->node_index = -1;
  op->user_data = user_data;
  return op;
}
void TfLiteOperatorSetInit(TfLiteOperator *op, void *(*f)(TfLiteOpaqueContext *, const char *, size_t)) { op->init = f; }
void TfLiteOperatorSetFree(TfLiteOperator *op, void (*f)(TfLiteOpaqueContext *, void *)) { op->free = f; }
void TfLiteOperatorSetPrepare(TfLiteOperator *op, TfLiteStatus (*f)(TfLiteOpaqueContext *, TfLiteOpaqueNode *)) {
  op->prepare = f;
}
void TfLiteOperatorSetInvoke(TfLiteOperator *op, TfLiteStatus (*f)(TfLiteOpaqueContext *, TfLiteOpaqueNode *)) {
  op->invoke = f;
}

static TfLiteContext *context_of(const TfLiteOpaqueContext *c) { return (TfLiteContext *)c; }
static const TfLiteNode *node_of(const TfLiteOpaqueNode *n) { return (const TfLiteNode *)n; }
static const TfLiteTensor *tensor_of(const TfLiteOpaqueTensor *t) { return (const TfLiteTensor *)t; }

int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode *n) { return node_of(n)->inputs->size; }
int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode *n) { return node_of(n)->outputs->size; }
void *TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode *n) { return node_of(n)->user_data; }
const TfLiteOpaqueTensor *TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext *c, const TfLiteOpaqueNode *n, int i) {
  return (const TfLiteOpaqueTensor *)&context_of(c)->tensors[node_of(n)->inputs->data[i]];
}
TfLiteOpaqueTensor *TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext *c, const TfLiteOpaqueNode *n, int i) {
  return (TfLiteOpaqueTensor *)&context_of(c)->tensors[node_of(n)->outputs->data[i]];
}
TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor *t) { return tensor_of(t)->type; }
int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor *t) { return tensor_of(t)->dims->size; }
int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor *t, int32_t i) { return tensor_of(t)->dims->data[i]; }
void *TfLiteOpaqueTensorData(const TfLiteOpaqueTensor *t) { return tensor_of(t)->data.data; }
TfLiteIntArray *TfLiteIntArrayCreate(int size) {
  TfLiteIntArray *a = (TfLiteIntArray *)malloc(sizeof(TfLiteIntArray) + sizeof(int) * (size_t)(size + 1));
  a->size = size;
  return a;
}
TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext *c, TfLiteOpaqueTensor *t, TfLiteIntArray *shape) {
  return context_of(c)->ResizeTensor(context_of(c), (TfLiteTensor *)t, shape);
}
void TfLiteOpaqueContextReportError(TfLiteOpaqueContext *c, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  context_of(c)->ReportError(context_of(c), "%s", text);
}
